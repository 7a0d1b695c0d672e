//! Imports archive files into a log.

use std::collections::BTreeMap;

use bytes::Bytes;
use proofs::hash::Hash32;
use schemas::avro::{self, Encoder};
use schemas::clock::rfc3339;
use schemas::position::LogOffset;
use schemas::topics::{self, IMPORTS};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::archive::{Archive, Chunk};
use super::{BATCH_BYTES, BATCH_RECORDS, Ends, Error};
use crate::{Append, EventLog, Headers, Record};

/// How many chunks are read ahead.
const CHUNKS_AHEAD: usize = 2;

/// The result of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Records appended.
    pub appended: u64,
    /// Records that the log already had, with the same bytes.
    pub passed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    Began,
    Ended,
}

impl Step {
    fn as_str(self) -> &'static str {
        match self {
            Self::Began => "began",
            Self::Ended => "ended",
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Event {
    event: Step,
    at: i64,
    ends: BTreeMap<String, Vec<LogOffset>>,
}

/// Returns the end offsets that the log must reach before all started imports are complete; `None` if no import is unfinished.
///
/// # Errors
/// When the log fails.
pub async fn unfinished(log: &dyn EventLog) -> Result<Option<Ends>, crate::Error> {
    let (mut from, end) = (LogOffset(0), log.end(&IMPORTS, 0).await?);
    let mut wanted: Option<Ends> = None;
    while from < end {
        let batch = log.read(&IMPORTS, 0, from, BATCH_RECORDS, BATCH_BYTES).await?;
        let Some(last) = batch.last() else { break };
        from = last.offset.next();
        for stored in &batch {
            // Records without a known event are ignored.
            let Ok(event) = avro::decode::<Event>(IMPORTS.name, &stored.record.value) else { continue };
            match event.event {
                Step::Began => wanted.get_or_insert_default().raise(&Ends(event.ends)),
                Step::Ended => wanted = None,
            }
        }
    }
    Ok(wanted)
}

/// Appends the records of the archives that the log does not have yet, at the offsets that they have in the archive. `at_ms` is the current
/// time. `progress` is called with the number of records compared or appended so far and the total.
///
/// # Errors
/// When an archive is damaged or contradicts the log. Records that were appended before the error remain, and the import can be repeated.
pub async fn import(
    log: &dyn EventLog,
    archives: Vec<Archive>,
    at_ms: i64,
    mut progress: impl FnMut(u64, u64) + Send,
) -> Result<Outcome, Error> {
    let mut ends = Ends::default();
    archives.iter().for_each(|archive| ends.raise(archive.ends()));
    let total = archives.iter().map(|archive| archive.ends().records()).sum();
    let mut importing = Importer { log, at_ms, wanted: unfinished(log).await?, ends, outcome: Outcome::default() };
    let mut chunks = spawn_reader(archives)?;
    while let Some(chunk) = chunks.recv().await {
        importing.take(chunk?).await?;
        progress(importing.outcome.appended + importing.outcome.passed, total);
    }
    importing.finish().await
}

/// Reads the archives on a separate thread, because a pipe may block for a long time.
fn spawn_reader(archives: Vec<Archive>) -> Result<mpsc::Receiver<Result<Chunk, Error>>, Error> {
    let (sender, chunks) = mpsc::channel(CHUNKS_AHEAD);
    let read = move || {
        for mut archive in archives {
            while let Some(chunk) = archive.next_chunk().transpose() {
                let is_last = chunk.is_err();
                if sender.blocking_send(chunk).is_err() || is_last {
                    return;
                }
            }
        }
    };
    std::thread::Builder::new()
        .name("import".to_owned())
        .spawn(read)
        .map_err(|error| crate::Error::Unavailable { what: "a thread cannot be started".to_owned(), source: Some(Box::new(error)) })?;
    Ok(chunks)
}

struct Importer<'a> {
    log: &'a dyn EventLog,
    at_ms: i64,
    /// The end offsets that unfinished imports need.
    wanted: Option<Ends>,
    /// The end offsets that this import needs.
    ends: Ends,
    outcome: Outcome,
}

impl Importer<'_> {
    async fn take(&mut self, chunk: Chunk) -> Result<(), Error> {
        let Chunk { topic, partition, first, mut records } = chunk;
        let end = self.log.end(topic, partition).await?;
        if first > end {
            // Archives have no gaps, so if the log is shorter now, another process replaced it.
            return Err(Error::Displaced { topic: topic.name, partition, expected: first, found: end });
        }
        let fresh = records.split_off(usize::try_from(end.since(first)).unwrap_or(usize::MAX).min(records.len()));
        self.compare(&Chunk { topic, partition, first, records }).await?;
        if fresh.is_empty() {
            return Ok(());
        }
        self.begin().await?;
        let sizes: Vec<usize> = fresh.iter().map(size_of).collect();
        let batch = fresh.into_iter().map(|record| Append { topic, partition, record }).collect();
        let offsets = self.log.append(batch).await.map_err(|source| match source {
            crate::Error::TooLarge { .. } => {
                let largest = (end.0..).map(LogOffset).zip(&sizes).max_by_key(|(_, size)| **size).map_or(end, |(offset, _)| offset);
                Error::TooLarge { topic: topic.name, partition, offset: largest, source }
            }
            source => source.into(),
        })?;
        if let Some((expected, found)) = (end.0..).map(LogOffset).zip(&offsets).find(|(expected, found)| *found != expected) {
            return Err(Error::Displaced { topic: topic.name, partition, expected, found: *found });
        }
        self.outcome.appended += offsets.len() as u64;
        Ok(())
    }

    /// Compares records with the records of the log at the same offsets.
    async fn compare(&mut self, chunk: &Chunk) -> Result<(), Error> {
        let Chunk { topic, partition, first, records } = chunk;
        let mut passed = 0;
        while let Some(wanted) = records.get(passed..).filter(|wanted| !wanted.is_empty()) {
            let offset = first.plus(passed as u64);
            let batch = self.log.read(topic, *partition, offset, wanted.len(), BATCH_BYTES).await?;
            if batch.is_empty() {
                return Err(Error::Differs { topic: topic.name, partition: *partition, offset });
            }
            for ((stored, wanted), offset) in batch.iter().zip(wanted).zip((offset.0..).map(LogOffset)) {
                if stored.record != *wanted || stored.offset != offset {
                    return Err(Error::Differs { topic: topic.name, partition: *partition, offset });
                }
            }
            passed += batch.len();
        }
        self.outcome.passed += records.len() as u64;
        Ok(())
    }

    /// Appends the event that marks the log as incomplete, before the first imported record.
    async fn begin(&mut self) -> Result<(), Error> {
        let is_said = self.wanted.as_ref().is_some_and(|wanted| {
            let mut both = wanted.clone();
            both.raise(&self.ends);
            both == *wanted
        });
        if !is_said {
            self.append_event(Step::Began).await?;
            self.wanted.get_or_insert_default().raise(&self.ends);
        }
        Ok(())
    }

    /// Appends the event that marks the log as complete, if one marked it as incomplete.
    async fn finish(self) -> Result<Outcome, Error> {
        let Some(wanted) = &self.wanted else { return Ok(self.outcome) };
        for topic in topics::ALL {
            for partition in 0..topic.partitions {
                let (end, wanted) = (self.log.end(topic, partition).await?, wanted.of(topic.name, partition));
                if end < wanted {
                    return Err(Error::Unfinished { topic: topic.name.to_owned(), partition, end, wanted });
                }
            }
        }
        self.append_event(Step::Ended).await?;
        Ok(self.outcome)
    }

    async fn append_event(&self, event: Step) -> Result<(), Error> {
        let ends = if event == Step::Began { self.ends.0.clone() } else { BTreeMap::new() };
        let mut encoder = Encoder::new(IMPORTS.name).map_err(Error::Note)?;
        let value = encoder.encode(&Event { event, at: self.at_ms, ends }).map_err(Error::Note)?;
        let kind = format!("highwater.imports.{}", event.as_str());
        let headers = Headers::cloud_event(&Hash32::of(&value).to_string(), &kind, "/imports", &rfc3339(self.at_ms));
        let record = Record { key: Bytes::new(), value: Bytes::from(value), headers, at_ms: self.at_ms };
        self.log.append(vec![Append { topic: &IMPORTS, partition: 0, record }]).await?;
        Ok(())
    }
}

/// The bytes of a record that count towards the log's limit.
fn size_of(record: &Record) -> usize {
    record.key.len() + record.value.len() + record.headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
}
