//! Which facts are there: the fold that keeps the head of every key and drops what does not chain.
//!
//! Promise: below the engine view's position of a partition, every fact either extended its key's chain or stands in
//! `dropped`; so every other reader needs only to skip those. Zombies, repeats and losers of races end here.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use event_log::{EventLog, Stored};
use futures_util::stream::{self, StreamExt};
use schemas::avro;
use schemas::event::{Fact, FactKind, Run};
use schemas::key;
use schemas::position::LogOffset;
use schemas::tables::{Key, Write};
use schemas::topics::{self, Topic, TopicKind};
use schemas::views::engine::{DROPPED, HEADS, HeadRow, RUNS, RunRow};
use serde::de::IgnoredAny;
use view_store::View;

use crate::{Error, follow};

/// Facts read at once, from one partition.
const BATCH_RECORDS: usize = 4_000;
/// Bytes read at once, from one partition.
const BATCH_BYTES: usize = 4 << 20;
/// Partitions read at once: one at whose end a reader stands costs a question to a broker.
const READS_AT_ONCE: usize = 8;

/// The topics whose records chain per key.
pub fn fact_topics() -> impl Iterator<Item = &'static Topic> {
    topics::ALL.iter().filter(|topic| matches!(topic.kind, TopicKind::Facts | TopicKind::Commands))
}

/// Keeps the heads of all fact topics in the engine's view.
pub struct Heads {
    log: Arc<dyn EventLog>,
    view: Arc<dyn View>,
}

impl Heads {
    /// Over a log and the engine's view.
    #[must_use]
    pub fn new(log: Arc<dyn EventLog>, view: Arc<dyn View>) -> Self {
        Self { log, view }
    }

    /// Takes in all that is there; answers how many facts that were.
    ///
    /// # Errors
    /// When the log or the store fails, or holds facts of a newer version.
    pub async fn catch_up(&self) -> Result<u64, Error> {
        self.catch_up_while(|| true).await
    }

    /// The same, batch by batch while `may_go_on` says so.
    ///
    /// # Errors
    /// As [`Self::catch_up`].
    pub async fn catch_up_while(&self, may_go_on: impl Fn() -> bool) -> Result<u64, Error> {
        let mut checkpoint = self.view.checkpoint().await?;
        let mut taken = 0;
        loop {
            // What one append left in several partitions becomes one commit. A key lies in one partition, so that no fold misses
            // what another one of the same round has changed; runs are shared.
            let (mut folded, mut records) = (Folded::default(), 0);
            let partitions = fact_topics().flat_map(|topic| (0..topic.partitions).map(move |partition| (topic, partition)));
            let read = |(topic, partition)| self.read(topic, partition, checkpoint.position(topic, partition));
            let mut reads = stream::iter(partitions.map(read).collect::<Vec<_>>()).buffered(READS_AT_ONCE);
            while let Some((topic, partition, batch)) = reads.next().await {
                let batch = match batch {
                    // What was read before damage is kept; the next round begins with the damage.
                    Err(_) if records > 0 => break,
                    batch => batch?,
                };
                if let Some(last) = batch.last() {
                    checkpoint.raise_position(topic, partition, last.offset.next());
                    self.fold(topic, partition, &batch, &mut folded).await?;
                    records += batch.len();
                }
            }
            if records == 0 || !may_go_on() {
                return Ok(taken);
            }
            taken += records as u64;
            match self.view.commit(folded.writes()?, &checkpoint).await {
                // Another projector came further: go on from where it is.
                Err(view_store::Error::Behind { .. }) => checkpoint = self.view.checkpoint().await?,
                result => result?,
            }
        }
    }

    /// Ends when there may be more to take in. Cancel-safe.
    ///
    /// # Errors
    /// When the log or the store fails.
    pub async fn wait(&self) -> Result<(), Error> {
        let checkpoint = self.view.checkpoint().await?;
        let inputs: Vec<&'static Topic> = fact_topics().collect();
        follow::wait_any(&self.log, &inputs, &checkpoint).await
    }

    async fn read(&self, topic: &'static Topic, partition: u32, from: LogOffset) -> (&'static Topic, u32, Result<Vec<Stored>, Error>) {
        let batch = self.log.read(topic, partition, from, BATCH_RECORDS, BATCH_BYTES).await;
        (topic, partition, batch.map_err(Error::from))
    }

    async fn fold(&self, topic: &'static Topic, partition: u32, batch: &[Stored], folded: &mut Folded) -> Result<(), Error> {
        // What is no fact at all does not chain either; it is dropped like any other.
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
        let rows = self.view.get_many(&HEADS, &keys).await?;
        let mut heads = rows.into_iter().map(read_head).collect::<Result<Vec<_>, _>>()?;
        for (stored, fact) in batch.iter().zip(facts) {
            let next = signed(stored.offset.next());
            let dropped = |reason: &str| {
                tracing::warn!(topic = topic.name, partition, offset = stored.offset.0, reason, "a record is dropped");
                Write::put(&DROPPED, key![topic.name, i64::from(partition), signed(stored.offset)], Bytes::new()).at(next)
            };
            let fact = match fact {
                Ok(fact) => fact,
                // A newer version's: passed over here it would be lost for that version, too.
                Err(source @ avro::Error::UnknownFingerprint(_)) if stored.record.headers.is_event() => {
                    return Err(Error::Value { topic: topic.name.to_owned(), source });
                }
                Err(error) => {
                    folded.dropped.push(dropped(&error.to_string()));
                    continue;
                }
            };
            let Some((row, is_changed)) = places.get(fact.key).and_then(|place| heads.get_mut(*place)) else { continue };
            if topic.partition_of(fact.key.as_bytes()) != partition {
                folded.dropped.push(dropped("it lies in another partition than its key"));
                continue;
            }
            if next <= row.next {
                // A commit that was cut before its checkpoint has written the head, and before it whatever else this fact means.
                continue;
            }
            if !fact.chains(topic.name, &row.head) {
                folded.dropped.push(dropped("it does not chain"));
                continue;
            }
            let gone = matches!(fact.kind, FactKind::Withdrawn | FactKind::Superseded);
            *row = HeadRow { head: fact.head(), gone, observed_at: fact.observed_at, next };
            *is_changed = true;
            if let Some(run) = fact.run {
                self.run_event(&mut folded.runs, fact.key, fact.kind, fact.observed_at, next, run).await?;
            }
        }
        let changed = keys.into_iter().zip(heads).filter(|(_, (_, is_changed))| *is_changed);
        folded.heads.extend(changed.map(|(key, (row, _))| Write::put(&HEADS, key, Bytes::from(row.to_bytes())).at(row.next)));
        Ok(())
    }

    async fn run_event(
        &self,
        runs: &mut HashMap<String, RunRow>,
        key: &str,
        kind: FactKind,
        at_ms: i64,
        next: i64,
        run: Run,
    ) -> Result<(), Error> {
        let name = key.trim_start_matches("@run/");
        if !runs.contains_key(name) {
            let row = match self.view.get(&RUNS, &key![name]).await? {
                Some(bytes) => serde_json::from_slice(&bytes).map_err(|source| Error::Row { table: RUNS.name, source })?,
                None => RunRow::default(),
            };
            runs.insert(name.to_owned(), row);
        }
        if let Some(row) = runs.get_mut(name).filter(|row| row.next < next) {
            row.next = next;
            kind.as_str().clone_into(&mut row.kind);
            row.at_ms = at_ms;
            if kind == FactKind::RunFinished {
                row.last_finished = Some(run.clone());
                row.last_finished_at_ms = at_ms;
                row.finished += 1;
            }
            row.run = run;
        }
        Ok(())
    }
}

/// What one round of facts means.
#[derive(Default)]
struct Folded {
    dropped: Vec<Write>,
    runs: HashMap<String, RunRow>,
    heads: Vec<Write>,
}

impl Folded {
    /// Heads last: a head says that the facts up to it have been taken in, with all that they mean.
    fn writes(self) -> Result<Vec<Write>, Error> {
        let mut writes = self.dropped;
        for (name, row) in self.runs {
            let value = serde_json::to_vec(&row).map_err(|source| Error::Row { table: RUNS.name, source })?;
            writes.push(Write::put(&RUNS, key![name], Bytes::from(value)).at(row.next));
        }
        writes.extend(self.heads);
        Ok(writes)
    }
}

/// A stored head, not changed yet; the default where there is none.
fn read_head(row: Option<Bytes>) -> Result<(HeadRow, bool), view_store::Error> {
    let Some(bytes) = row else { return Ok((HeadRow::default(), false)) };
    let damaged = || view_store::Error::Damaged {
        table: HEADS.name.to_owned(),
        reason: "a head does not read back: delete the view store, which the log fills again".to_owned(),
    };
    Ok((HeadRow::from_bytes(&bytes).ok_or_else(damaged)?, false))
}

/// An offset as a key column.
fn signed(offset: LogOffset) -> i64 {
    i64::try_from(offset.0).unwrap_or(i64::MAX)
}
