//! Which facts are there: the fold that keeps the head of every key and drops what does not chain.
//!
//! Promise: below the engine view's position of a partition, every fact either extended its key's chain or stands in
//! `dropped`; so every other reader needs only to skip those. Zombies, repeats and losers of races end here.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use event_log::{EventLog, Stored};
use schemas::avro;
use schemas::event::{Fact, FactKind, Run};
use schemas::key;
use schemas::position::LogOffset;
use schemas::tables::Write;
use schemas::topics::{self, Topic, TopicKind};
use schemas::views::engine::{DROPPED, HEADS, HeadRow, RUNS, RunRow};
use serde::de::IgnoredAny;
use view_store::View;

use crate::{Error, follow};

/// Facts read at once, from one partition.
const BATCH_RECORDS: usize = 4_000;
/// Bytes read at once, from one partition.
const BATCH_BYTES: usize = 8 << 20;

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
    /// When the log or the store fails.
    pub async fn catch_up(&self) -> Result<u64, Error> {
        let mut checkpoint = self.view.checkpoint().await?;
        let mut taken = 0;
        for topic in fact_topics() {
            for partition in 0..topic.partitions {
                loop {
                    let position = checkpoint.position(topic, partition);
                    let batch = self.log.read(topic, partition, position, BATCH_RECORDS, BATCH_BYTES).await?;
                    let Some(last) = batch.last() else { break };
                    checkpoint.raise_position(topic, partition, last.offset.next());
                    let writes = self.fold(topic, partition, &batch).await?;
                    taken += batch.len() as u64;
                    match self.view.commit(writes, &checkpoint).await {
                        // Another projector came further: go on from where it is.
                        Err(view_store::Error::Behind { .. }) => checkpoint = self.view.checkpoint().await?,
                        result => result?,
                    }
                }
            }
        }
        Ok(taken)
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

    async fn fold(&self, topic: &'static Topic, partition: u32, batch: &[Stored]) -> Result<Vec<Write>, Error> {
        let mut facts = Vec::with_capacity(batch.len());
        for stored in batch {
            // What is no fact at all does not chain either; it is dropped like any other.
            facts.push((stored, avro::decode::<Fact<IgnoredAny>>(topic.name, &stored.record.value)));
        }
        let keys: Vec<_> = {
            let mut seen = HashMap::new();
            for (_, fact) in &facts {
                if let Ok(fact) = fact {
                    seen.entry(fact.key.as_str()).or_insert_with(|| key![topic.name, fact.key.as_str()]);
                }
            }
            seen.into_values().collect()
        };
        let rows = self.view.get_many(&HEADS, &keys).await?;
        let mut heads: HashMap<String, HeadRow> = HashMap::with_capacity(keys.len());
        for (mut key, row) in keys.into_iter().zip(rows) {
            let Some(schemas::tables::Datum::Text(name)) = key.pop() else { continue };
            heads.insert(name, row.as_deref().and_then(HeadRow::from_bytes).unwrap_or_default());
        }
        let mut writes = Vec::with_capacity(heads.len());
        let mut changed: HashMap<String, HeadRow> = HashMap::with_capacity(heads.len());
        let mut runs: HashMap<String, RunRow> = HashMap::new();
        for (stored, fact) in facts {
            let dropped = |reason: &str| {
                tracing::warn!(topic = topic.name, partition, offset = stored.offset.0, reason, "a record is dropped");
                Write { table: &DROPPED, key: key![topic.name, i64::from(partition), signed(stored.offset)], value: Some(Bytes::new()) }
            };
            let fact = match fact {
                Ok(fact) => fact,
                Err(error) => {
                    writes.push(dropped(&error.to_string()));
                    continue;
                }
            };
            let Some(row) = heads.get_mut(&fact.key) else { continue };
            if !fact.chains(topic.name, &row.head) || topic.partition_of(fact.key.as_bytes()) != partition {
                writes.push(dropped("it does not chain"));
                continue;
            }
            let gone = matches!(fact.kind, FactKind::Withdrawn | FactKind::Superseded);
            *row = HeadRow { head: fact.head(), gone, observed_at: fact.observed_at };
            changed.insert(fact.key.clone(), *row);
            if let Some(run) = fact.run {
                self.run_event(&mut runs, &fact.key, fact.kind, fact.observed_at, run).await?;
            }
        }
        writes.extend(changed.into_iter().map(|(name, row)| Write {
            table: &HEADS,
            key: key![topic.name, name],
            value: Some(Bytes::from(row.to_bytes())),
        }));
        for (name, row) in runs {
            let value = serde_json::to_vec(&row).map_err(|source| Error::Row { table: RUNS.name, source })?;
            writes.push(Write { table: &RUNS, key: key![name], value: Some(Bytes::from(value)) });
        }
        Ok(writes)
    }

    async fn run_event(&self, runs: &mut HashMap<String, RunRow>, key: &str, kind: FactKind, at_ms: i64, run: Run) -> Result<(), Error> {
        let name = key.trim_start_matches("@run/");
        if !runs.contains_key(name) {
            let row = match self.view.get(&RUNS, &key![name]).await? {
                Some(bytes) => serde_json::from_slice(&bytes).map_err(|source| Error::Row { table: RUNS.name, source })?,
                None => RunRow::default(),
            };
            runs.insert(name.to_owned(), row);
        }
        if let Some(row) = runs.get_mut(name) {
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

/// An offset as a key column.
fn signed(offset: LogOffset) -> i64 {
    i64::try_from(offset.0).unwrap_or(i64::MAX)
}
