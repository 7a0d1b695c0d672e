//! The log on Apache Kafka or another broker with the same protocol. [README.md](README.md) follows one record through it.
//!
//! Guarantees, in addition to those of [`EventLog`]:
//! - "Durable" means `acks=all`: every in-sync replica has the record.
//! - Topics are created with their number of partitions, without expiry and compaction. A topic with other settings is refused when the log
//!   is opened.
//! - An append whose acknowledgement was lost returns an error, although its records may be in the log. Duplicates do not chain.
//! - Callers store their read positions themselves. No consumer group is joined.

mod connect;
mod fetch;
mod framing;
mod last;
mod metadata;
mod publish;
mod records;
pub mod registry;
mod settings;
mod shared;
mod tail;
mod topics;

use std::sync::Arc;

use async_trait::async_trait;
use schemas::position::LogOffset;
use schemas::topics::Topic;
use tokio::sync::watch;

use self::fetch::Fetchers;
pub use self::framing::{FramedLog, Framing};
use self::metadata::MetadataClient;
use self::publish::Publisher;
pub use self::settings::Options;
use self::settings::failed;
use self::shared::{ANSWER_MAX, PartitionState, READY_MAX, RECONNECT_PAUSE, Shared};
use self::tail::Tail;
use crate::{Append, Error, EventLog, Stored};

/// An [`EventLog`] on Kafka.
pub struct KafkaLog {
    shared: Arc<Shared>,
    publisher: Publisher,
    metadata: Arc<MetadataClient>,
    tail: Tail,
    fetchers: Fetchers,
}

impl KafkaLog {
    /// Connects, creates missing topics, and checks existing ones.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if no broker answers, the credentials are refused, or a topic has wrong settings; the text says which.
    pub async fn open(options: Options) -> Result<Arc<Self>, Error> {
        connect::wait_for_broker(&options).await?;
        topics::make(&options).await?;
        let mut partitions = Vec::new();
        for topic in options.topics {
            let name: Arc<str> = options.name_of(topic).into();
            for partition in 0..topic.partitions {
                partitions.push(PartitionState { topic, partition, name: Arc::clone(&name), end: watch::Sender::new(LogOffset(0)) });
            }
        }
        let shared = Arc::new(Shared { options, partitions, closed: watch::Sender::new(false) });
        let publisher = Publisher::new(&shared)?;
        let metadata = MetadataClient::new(&shared)?;
        metadata.wait_for_leaders().await?;
        let tail = Tail::start(&shared, &metadata)?;
        let fetchers = Fetchers::new(&shared);
        Ok(Arc::new(Self { shared, publisher, metadata, tail, fetchers }))
    }

    fn state(&self, topic: &'static Topic, partition: u32) -> Result<(usize, &PartitionState), Error> {
        let index = self.shared.partition_index(topic, partition)?;
        let state = self.shared.partitions.get(index).ok_or(Error::NoPartition { topic: topic.name, partition })?;
        Ok((index, state))
    }

    /// Asks the broker for the partition's current end.
    async fn fetch_end(&self, index: usize) -> Result<LogOffset, Error> {
        let end = self.metadata.end(index).await?;
        if let Some(state) = self.shared.partitions.get(index) {
            state.raise_end(end);
            // An acknowledged record counts, even if the broker's answer is older.
            return Ok(end.max(*state.end.borrow()));
        }
        Ok(end)
    }
}

#[async_trait]
impl EventLog for KafkaLog {
    async fn append(&self, batch: Vec<Append>) -> Result<Vec<LogOffset>, Error> {
        self.publisher.append(batch).await
    }

    async fn read(
        &self,
        topic: &'static Topic,
        partition: u32,
        from: LogOffset,
        records_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Stored>, Error> {
        let (index, state) = self.state(topic, partition)?;
        self.tail.follow(index).await?;
        let mut end = *state.end.borrow();
        if from >= end {
            end = self.fetch_end(index).await?;
        }
        if from >= end || records_max == 0 {
            return Ok(Vec::new());
        }
        let limits = records::Limits { from, end, records_max, bytes_max };
        let tailed = tokio::time::timeout(ANSWER_MAX, self.tail.read(index, limits)).await;
        match tailed.map_err(|_| failed(&self.shared.options, "reading the newest records: none arrived", None))?? {
            Some(records) => Ok(records),
            None => self.fetchers.read(index, limits).await,
        }
    }

    async fn end(&self, topic: &'static Topic, partition: u32) -> Result<LogOffset, Error> {
        let (index, _) = self.state(topic, partition)?;
        self.fetch_end(index).await
    }

    async fn last_at_ms(&self) -> Result<i64, Error> {
        let (shared, ends) = (Arc::clone(&self.shared), self.metadata.ends().await?);
        let read = tokio::task::spawn_blocking(move || last::last_at_ms(&shared, &ends)).await;
        read.map_err(|_| failed(&self.shared.options, "a read was interrupted", None))?
    }

    async fn wait_past(&self, topic: &'static Topic, partition: u32, end: LogOffset) -> Result<(), Error> {
        let (index, state) = self.state(topic, partition)?;
        self.tail.follow(index).await?;
        let (mut known, mut closed) = (state.end.subscribe(), self.shared.closed.subscribe());
        tokio::select! {
            _ = known.wait_for(|known| *known > end) => Ok(()),
            _ = closed.wait_for(|closed| *closed) => Err(self.shared.closed()),
        }
    }

    async fn ready(&self) -> Result<(), Error> {
        if *self.shared.closed.borrow() {
            return Err(self.shared.closed());
        }
        self.metadata.brokers().await
    }

    async fn close(&self) -> Result<(), Error> {
        if self.shared.closed.send_replace(true) {
            return Ok(());
        }
        self.tail.stop().await;
        self.publisher.close().await
    }
}
