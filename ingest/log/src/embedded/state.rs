//! The state that callers and the committer share: of each partition, and whether records are accepted.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use disk_files::space::DiskFull;
use schemas::position::LogOffset;
use schemas::topics::Topic;
use tokio::sync::watch;

use super::packed_values::Packed;
use crate::Error;

/// How far a partition can be read, and whether more can be appended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Readable {
    pub(super) end: LogOffset,
    pub(super) is_final: bool,
}

/// The table of a topic, which its partitions share.
#[derive(Clone)]
pub(super) enum TopicTable {
    /// It is created with the first record of the topic: creating one costs about twenty syncs, and many topics stay empty.
    Missing,
    Open(fjall::Keyspace),
    /// The log is being opened again, because the disk was full.
    Reopening,
}

/// The state of one partition.
pub(super) struct PartitionState {
    pub(super) topic: &'static Topic,
    pub(super) partition: u16,
    pub(super) table: RwLock<TopicTable>,
    pub(super) readable: watch::Sender<Readable>,
    /// The packed value in which the last read stopped, so that the next page does not load and check it again.
    pub(super) unfinished: Mutex<Option<Packed>>,
}

impl PartitionState {
    pub(super) fn table(&self) -> TopicTable {
        self.table.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the keyspace of the topic's table; `None` if the topic has no records.
    pub(super) fn keyspace(&self) -> Result<Option<fjall::Keyspace>, Error> {
        match self.table() {
            TopicTable::Missing => Ok(None),
            TopicTable::Open(keyspace) => Ok(Some(keyspace)),
            TopicTable::Reopening => {
                Err(Error::Unavailable { what: "the log is being opened again, because the disk was full".to_owned(), source: None })
            }
        }
    }

    /// Replaces the table. The value that the last read loaded may belong to the previous one.
    pub(super) fn set_table(&self, table: TopicTable) {
        *self.unfinished.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let previous = std::mem::replace(&mut *self.table.write().unwrap_or_else(PoisonError::into_inner), table);
        // Releasing the last handle takes time and must not happen under the lock.
        drop(previous);
    }
}

/// Why appends are refused.
#[derive(Clone)]
pub(super) enum Stopped {
    Closed,
    Failed(Arc<fjall::Error>),
    /// The disk is full. Appends continue when it has space again.
    Full(Arc<fjall::Error>),
}

/// State that callers and the committer share.
pub(super) struct Shared {
    /// All partitions of all topics, in the order of `topics`.
    pub(super) partitions: Vec<PartitionState>,
    /// For each topic, the index of its first partition in `partitions`.
    pub(super) firsts: Vec<(&'static str, usize)>,
    pub(super) stopped: RwLock<Option<Stopped>>,
}

impl Shared {
    /// Sets the table of a topic's partitions.
    pub(super) fn set_table_of(&self, topic: &'static Topic, keyspace: &fjall::Keyspace) {
        for state in self.partitions.iter().filter(|state| state.topic.name == topic.name) {
            state.set_table(TopicTable::Open(keyspace.clone()));
        }
    }

    pub(super) fn partition_index(&self, topic: &'static Topic, partition: u32) -> Result<usize, Error> {
        let first = self.firsts.iter().find(|(name, _)| *name == topic.name).map(|(_, first)| *first);
        let index = first.and_then(|first| first.checked_add(usize::try_from(partition).ok()?));
        index
            .filter(|index| self.partitions.get(*index).is_some_and(|state| state.topic.name == topic.name))
            .ok_or(Error::NoPartition { topic: topic.name, partition })
    }

    /// The ends of all partitions, in their order. They are of one moment only if no commit runs.
    pub(super) fn ends(&self) -> Vec<LogOffset> {
        self.partitions.iter().map(|state| state.readable.borrow().end).collect()
    }

    /// The ends of one topic among those of all partitions.
    pub(super) fn ends_of(&self, topic: &'static Topic, ends: &[LogOffset]) -> Result<Vec<LogOffset>, Error> {
        let end = |partition| {
            let index = self.partition_index(topic, partition)?;
            ends.get(index).copied().ok_or(Error::NoPartition { topic: topic.name, partition })
        };
        (0..topic.partitions).map(end).collect()
    }

    pub(super) fn state(&self, topic: &'static Topic, partition: u32) -> Result<&PartitionState, Error> {
        let index = self.partition_index(topic, partition)?;
        self.partitions.get(index).ok_or(Error::NoPartition { topic: topic.name, partition })
    }

    /// Refuses all later appends. Unless they continue when the disk has space again, all waits end.
    pub(super) fn stop(&self, why: Stopped) {
        let is_final = !matches!(why, Stopped::Full(_));
        {
            let mut stopped = self.stopped.write().unwrap_or_else(PoisonError::into_inner);
            // The first reason is the cause; later ones are consequences.
            if matches!(*stopped, None | Some(Stopped::Full(_))) {
                *stopped = Some(why);
            }
        }
        if is_final {
            for state in &self.partitions {
                state.readable.send_modify(|readable| readable.is_final = true);
            }
        }
    }

    /// Accepts appends again after the disk was full.
    pub(super) fn resume(&self) {
        let mut stopped = self.stopped.write().unwrap_or_else(PoisonError::into_inner);
        if matches!(*stopped, Some(Stopped::Full(_))) {
            *stopped = None;
        }
    }

    pub(super) fn stopped(&self) -> Option<Stopped> {
        self.stopped.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn stopped_error(&self) -> Error {
        match self.stopped() {
            Some(Stopped::Failed(source)) => Error::Unavailable {
                what: "the log accepts no more records, because a commit failed and it is unknown which of its records are durable; restart the process"
                    .to_owned(),
                source: Some(Box::new(source)),
            },
            Some(Stopped::Full(source)) => Error::Unavailable {
                what: "the log accepts no records until the disk has space".to_owned(),
                source: Some(DiskFull::cause(&source).map_or_else(|| Box::new(source) as _, |full| Box::new(full) as _)),
            },
            Some(Stopped::Closed) | None => Error::Unavailable { what: "the log is closed".to_owned(), source: None },
        }
    }
}
