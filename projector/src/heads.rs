//! Maintains the latest-version index (`heads`): the head of every key of all fact topics, and of the whole chain of each change topic that
//! another service decides from. Records that do not extend their chain are dropped. Also indexes the rejected records, so that one that is
//! rejected again is recognised.
//!
//! Below the position of the engine's view in a partition, every record has either extended its chain or is listed in `dropped`.
//! Readers only need to skip the dropped ones. Records of outdated writers, duplicates and losers of races are dropped here.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use event_log::{EventLog, Stored};
use futures_util::stream::{self, StreamExt};
use proofs::hash::Hash32;
use schemas::avro;
use schemas::change::Change;
use schemas::event::{Fact, FactKind, Head, Run};
use schemas::key;
use schemas::position::{LogOffset, Seq};
use schemas::tables::{Key, Write};
use schemas::topics::{Topic, TopicKind};
use schemas::views::engine::{DROPPED, HEADS, HeadRow, REJECTS, RUNS, RunRow, rejected_bytes, rejected_reference};
use serde::Deserialize;
use serde::de::IgnoredAny;
use view_store::View;

use crate::service_def::{ServiceDef, indexed_topics};
use crate::{Error, follow};

/// The most facts that one read returns from a partition.
const BATCH_RECORDS: usize = 4_000;
/// The most bytes that one read returns from a partition.
const BATCH_BYTES: usize = 4 << 20;
/// How many partitions are read at the same time. Reading at the end of a partition takes a request to a broker.
const READS_AT_ONCE: usize = 8;

/// The key under which the head of a change topic is stored: the topic is one chain.
const WHOLE_TOPIC: &str = "@changes";

/// Maintains the heads of all indexed topics in the engine's view.
pub struct Heads {
    log: Arc<dyn EventLog>,
    view: Arc<dyn View>,
    topics: Vec<&'static Topic>,
}

impl Heads {
    /// Creates the index over a log and the engine's view, of the topics that some services need.
    #[must_use]
    pub fn new(log: Arc<dyn EventLog>, view: Arc<dyn View>, services: &[ServiceDef]) -> Self {
        Self { log, view, topics: indexed_topics(services) }
    }

    /// Also indexes a change topic, for a service that is not in the list of services.
    #[must_use]
    pub fn with_changes(mut self, topic: &'static Topic) -> Self {
        self.topics.push(topic);
        self
    }

    /// Indexes all new facts and returns how many there were.
    ///
    /// # Errors
    /// When the log or the store fails, or holds facts of a newer version.
    pub async fn catch_up(&self) -> Result<u64, Error> {
        self.catch_up_while(|| true).await
    }

    /// Like [`Self::catch_up`], but stops between two batches when `may_continue` returns false.
    ///
    /// # Errors
    /// As [`Self::catch_up`].
    pub async fn catch_up_while(&self, may_continue: impl Fn() -> bool) -> Result<u64, Error> {
        let pinned = self.view.pinned().await?;
        let view = pinned.as_deref().unwrap_or(&*self.view);
        let mut checkpoint = view.checkpoint().await?;
        let mut indexed = 0;
        loop {
            // Facts that one append distributed over several partitions are committed together. All facts of a key are in one partition, so
            // that no partition's batch depends on another one of the same round; only runs are shared.
            let (mut round, mut records) = (RoundWrites::default(), 0);
            let partitions = self.topics.iter().flat_map(|topic| (0..topic.partitions).map(move |partition| (*topic, partition)));
            let read = |(topic, partition)| self.read(topic, partition, checkpoint.position(topic, partition));
            let mut reads = stream::iter(partitions.map(read).collect::<Vec<_>>()).buffered(READS_AT_ONCE);
            while let Some((topic, partition, batch)) = reads.next().await {
                let batch = match batch {
                    // Facts read before a damaged one are indexed; the next round starts at the damage.
                    Err(_) if records > 0 => break,
                    batch => batch?,
                };
                if let Some(last) = batch.last() {
                    checkpoint.raise_position(topic, partition, last.offset.next());
                    match topic.kind {
                        TopicKind::Rejects => index_rejects(topic, &batch, &mut round),
                        TopicKind::Changes => index_changes(view, topic, partition, &batch, &mut round).await?,
                        TopicKind::Facts | TopicKind::Commands | TopicKind::Imports => {
                            index(view, topic, partition, &batch, &mut round).await?
                        }
                    }
                    records += batch.len();
                }
            }
            if records == 0 {
                view.finish_rebuild().await?;
            }
            if records == 0 || !may_continue() {
                return Ok(indexed);
            }
            indexed += records as u64;
            match view.commit(round.writes()?, &checkpoint).await {
                // Another projector has advanced the view: continue from its position.
                Err(view_store::Error::Behind { .. }) => checkpoint = view.checkpoint().await?,
                result => result?,
            }
        }
    }

    /// Waits until there may be new facts, or the view was replaced. Cancel-safe.
    ///
    /// # Errors
    /// When the log or the store fails.
    pub async fn wait(&self) -> Result<(), Error> {
        let pinned = self.view.pinned().await?;
        let view = pinned.as_deref().unwrap_or(&*self.view);
        let checkpoint = view.checkpoint().await?;
        tokio::select! {
            waited = follow::wait_for_any(&self.log, &self.topics, &checkpoint) => waited,
            () = view.replaced() => Ok(()),
        }
    }

    async fn read(&self, topic: &'static Topic, partition: u32, from: LogOffset) -> (&'static Topic, u32, Result<Vec<Stored>, Error>) {
        let batch = self.log.read(topic, partition, from, BATCH_RECORDS, BATCH_BYTES).await;
        (topic, partition, batch.map_err(Error::from))
    }
}

async fn index(view: &dyn View, topic: &'static Topic, partition: u32, batch: &[Stored], round: &mut RoundWrites) -> Result<(), Error> {
    // A record that is not a fact does not extend a chain either and is dropped.
    let facts: Vec<_> =
        batch.iter().map(|stored| avro::decode_borrowed::<Fact<IgnoredAny, &str>>(topic.name, &stored.record.value)).collect();
    let mut places: HashMap<&str, usize> = HashMap::with_capacity(facts.len());
    let mut keys: Vec<Key> = Vec::with_capacity(facts.len());
    for fact in facts.iter().flatten() {
        places.entry(fact.key).or_insert_with(|| {
            keys.push(key![topic.name, fact.key]);
            keys.len() - 1
        });
    }
    let rows = view.get_many(&HEADS, &keys).await?;
    let mut heads = rows.into_iter().map(read_head).collect::<Result<Vec<_>, _>>()?;
    for (stored, fact) in batch.iter().zip(facts) {
        let (offset, next) = (stored.offset, stored.offset.next());
        let dropped = |reason: &str| dropped(topic, partition, offset, reason);
        let fact = match known(topic, stored, fact)? {
            Ok(fact) => fact,
            Err(reason) => {
                round.dropped.push(dropped(&reason));
                continue;
            }
        };
        let Some((row, is_changed)) = places.get(fact.key).and_then(|place| heads.get_mut(*place)) else { continue };
        if topic.partition_of(fact.key.as_bytes()) != partition {
            round.dropped.push(dropped("it is in another partition than its key"));
            continue;
        }
        if next <= row.next {
            // An interrupted commit has written this head, and all other rows of the fact before it.
            continue;
        }
        if !fact.chains(topic.name, &row.head) {
            round.dropped.push(dropped("it does not extend its chain"));
            continue;
        }
        let gone = matches!(fact.kind, FactKind::Withdrawn | FactKind::Superseded);
        *row = HeadRow { head: fact.head(), gone, observed_at: fact.observed_at, next };
        *is_changed = true;
        if let Some(run) = fact.run {
            index_run_event(view, &mut round.runs, fact.key, fact.kind, fact.observed_at, next, run).await?;
        }
    }
    let changed = keys.into_iter().zip(heads).filter(|(_, (_, is_changed))| *is_changed);
    round.heads.extend(changed.map(|(key, (row, _))| Write::put(&HEADS, key, Bytes::from(row.to_bytes())).at(row.next.stored())));
    Ok(())
}

/// Indexes the changes of a service: the topic is one chain.
async fn index_changes(
    view: &dyn View,
    topic: &'static Topic,
    partition: u32,
    batch: &[Stored],
    round: &mut RoundWrites,
) -> Result<(), Error> {
    let key = key![topic.name, WHOLE_TOPIC];
    let (mut row, mut is_changed) = read_head(view.get(&HEADS, &key).await?)?;
    let mut seq = Seq::try_from(row.head.version).map_err(|source| Error::Position { of: topic.name, source })?;
    for stored in batch {
        let next = stored.offset.next();
        if next <= row.next {
            // An interrupted commit has written this head, and all other rows of the change before it.
            continue;
        }
        let decoded = avro::decode::<Change<IgnoredAny, IgnoredAny>>(topic.name, &stored.record.value);
        match known(topic, stored, decoded)? {
            Ok(change) if change.extends(seq, row.head.id) => {
                let id = avro::datum_hash(topic.name, &stored.record.value)
                    .map_err(|source| Error::Value { topic: topic.name.to_owned(), source })?;
                seq = change.seq;
                let head = Head { version: seq.stored(), id, content_hash: Hash32::ZERO };
                (row, is_changed) = (HeadRow { head, gone: false, observed_at: change.recorded_at, next }, true);
            }
            Ok(_) => round.dropped.push(dropped(topic, partition, stored.offset, "it does not extend its chain")),
            Err(reason) => round.dropped.push(dropped(topic, partition, stored.offset, &reason)),
        }
    }
    if is_changed {
        round.heads.push(Write::put(&HEADS, key, Bytes::from(row.to_bytes())).at(row.next.stored()));
    }
    Ok(())
}

async fn index_run_event(
    view: &dyn View,
    runs: &mut HashMap<String, RunRow>,
    key: &str,
    kind: FactKind,
    at_ms: i64,
    next: LogOffset,
    run: Run,
) -> Result<(), Error> {
    let name = key.trim_start_matches("@run/");
    if !runs.contains_key(name) {
        let row = match view.get(&RUNS, &key![name]).await? {
            Some(bytes) => serde_json::from_slice(&bytes).map_err(|source| Error::Row { table: RUNS.name, source })?,
            None => RunRow::default(),
        };
        runs.insert(name.to_owned(), row);
    }
    if let Some(row) = runs.get_mut(name).filter(|row| row.next < next) {
        row.next = next;
        kind.as_str().clone_into(&mut row.kind);
        row.at_ms = at_ms;
        row.count_end(kind, at_ms);
        if kind == FactKind::RunFinished {
            row.last_finished = Some(run.clone());
            row.last_finished_at_ms = at_ms;
            row.finished += 1;
            // Days in this form are in the order of their texts.
            let is_earlier = row.full_from.is_empty() || run.window_from < row.full_from;
            if run.full && !run.window_from.is_empty() && is_earlier {
                row.full_from.clone_from(&run.window_from);
            }
        }
        row.run = run;
    }
    Ok(())
}

/// Returns a decoded record, or the reason why it is to be dropped.
///
/// # Errors
/// When a newer version wrote the record: if it were dropped here, it would be missing for that version, too.
fn known<T>(topic: &Topic, stored: &Stored, decoded: Result<T, avro::Error>) -> Result<Result<T, String>, Error> {
    match decoded {
        Err(source @ avro::Error::UnknownFingerprint(_)) if stored.record.headers.is_event() => {
            Err(Error::Value { topic: topic.name.to_owned(), source })
        }
        decoded => Ok(decoded.map_err(|error| error.to_string())),
    }
}

/// Lists a record as dropped.
fn dropped(topic: &Topic, partition: u32, offset: LogOffset, reason: &str) -> Write {
    tracing::warn!(topic = topic.name, partition, offset = offset.0, reason, "record dropped");
    Write::put(&DROPPED, key![topic.name, i64::from(partition), offset], Bytes::new()).at(offset.next().stored())
}

/// A rejected record, as far as it is indexed. The stored field of the stream is named `door`.
#[derive(Deserialize)]
struct Rejected<'a> {
    #[serde(rename = "door")]
    stream: &'a str,
    reference: &'a str,
    #[serde(borrow)]
    raw: &'a [u8],
}

/// Indexes rejected records by their bytes and by their reference. A record that cannot be decoded is left out: it is then rejected again.
fn index_rejects(topic: &'static Topic, batch: &[Stored], round: &mut RoundWrites) {
    for stored in batch {
        let next = stored.offset.next();
        let Ok(Rejected { stream, reference, raw }) = avro::decode_borrowed(topic.name, &stored.record.value) else {
            tracing::warn!(topic = topic.name, offset = stored.offset.0, "rejected record cannot be decoded and is not indexed");
            continue;
        };
        for name in [rejected_bytes(raw), rejected_reference(reference)] {
            round.rejects.push(Write::put(&REJECTS, key![stream, name], Bytes::new()).at(next.stored()));
        }
    }
}

/// The writes of one round.
#[derive(Default)]
struct RoundWrites {
    dropped: Vec<Write>,
    rejects: Vec<Write>,
    runs: HashMap<String, RunRow>,
    heads: Vec<Write>,
}

impl RoundWrites {
    /// Heads are written last: a head implies that all other rows of the facts up to it are written.
    fn writes(self) -> Result<Vec<Write>, Error> {
        let mut writes = self.dropped;
        writes.extend(self.rejects);
        for (name, row) in self.runs {
            let value = serde_json::to_vec(&row).map_err(|source| Error::Row { table: RUNS.name, source })?;
            writes.push(Write::put(&RUNS, key![name], Bytes::from(value)).at(row.next.stored()));
        }
        writes.extend(self.heads);
        Ok(writes)
    }
}

/// Decodes a stored head, with a flag for changes; the default if there is no row.
fn read_head(row: Option<Bytes>) -> Result<(HeadRow, bool), view_store::Error> {
    let Some(bytes) = row else { return Ok((HeadRow::default(), false)) };
    let damaged = || view_store::Error::Damaged {
        table: HEADS.name.to_owned(),
        reason: "a head cannot be decoded: remove the directory `views`, it is rebuilt from the log".to_owned(),
    };
    Ok((HeadRow::from_bytes(&bytes).ok_or_else(damaged)?, false))
}
