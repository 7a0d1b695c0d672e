//! From files to a log.

use std::collections::BTreeMap;

use bytes::Bytes;
use schemas::avro::{self, Encoder};
use schemas::clock::rfc3339;
use schemas::hash::Hash32;
use schemas::position::LogOffset;
use schemas::topics::{self, IMPORTS};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::archive::{Archive, Chunk};
use super::{BATCH_BYTES, BATCH_RECORDS, Ends, Error};
use crate::{Append, EventLog, Headers, Record};

/// Chunks that are read ahead.
const CHUNKS_AHEAD: usize = 2;

/// What came of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Records appended.
    pub appended: u64,
    /// Records that were there already, and the same.
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
    ends: BTreeMap<String, Vec<i64>>,
}

/// Where the log must end once the imports that began are whole; `None` if all have ended.
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
            // What is no event of ours says nothing.
            let Ok(event) = avro::decode::<Event>(IMPORTS.name, &stored.record.value) else { continue };
            match event.event {
                Step::Began => wanted.get_or_insert_default().raise(&Ends(event.ends)),
                Step::Ended => wanted = None,
            }
        }
    }
    Ok(wanted)
}

/// Appends what the files hold and the log does not, at the offsets that it has there. `at_ms` is when; `progress` is told how many
/// records are passed or appended, of how many.
///
/// # Errors
/// When a file is broken or does not fit what the log has; what was appended before stays, and the import can be run again.
pub async fn import(
    log: &dyn EventLog,
    archives: Vec<Archive>,
    at_ms: i64,
    mut progress: impl FnMut(u64, u64) + Send,
) -> Result<Outcome, Error> {
    let mut ends = Ends::default();
    archives.iter().for_each(|archive| ends.raise(archive.ends()));
    let total = archives.iter().map(|archive| archive.ends().records()).sum();
    let mut importing = Importing { log, at_ms, wanted: unfinished(log).await?, ends, outcome: Outcome::default() };
    let mut chunks = reading(archives)?;
    while let Some(chunk) = chunks.recv().await {
        importing.take(chunk?).await?;
        progress(importing.outcome.appended + importing.outcome.passed, total);
    }
    importing.finish().await
}

/// Reads files on a thread of its own: a pipe may wait for long.
fn reading(archives: Vec<Archive>) -> Result<mpsc::Receiver<Result<Chunk, Error>>, Error> {
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

struct Importing<'a> {
    log: &'a dyn EventLog,
    at_ms: i64,
    /// What imports that have not ended want.
    wanted: Option<Ends>,
    /// What this one wants.
    ends: Ends,
    outcome: Outcome,
}

impl Importing<'_> {
    async fn take(&mut self, chunk: Chunk) -> Result<(), Error> {
        let Chunk { topic, partition, first, mut records } = chunk;
        let end = self.log.end(topic, partition).await?.0;
        if first > end {
            // The file is dense, so somebody else's log is shorter than what was just written to it.
            return Err(Error::Displaced { topic: topic.name, partition, expected: first, found: end });
        }
        let fresh = records.split_off(usize::try_from(end - first).unwrap_or(usize::MAX).min(records.len()));
        self.pass(&Chunk { topic, partition, first, records }).await?;
        if fresh.is_empty() {
            return Ok(());
        }
        self.begin().await?;
        let sizes: Vec<usize> = fresh.iter().map(size_of).collect();
        let batch = fresh.into_iter().map(|record| Append { topic, partition, record }).collect();
        let offsets = self.log.append(batch).await.map_err(|source| match source {
            crate::Error::TooLarge { .. } => {
                let largest = (end..).zip(&sizes).max_by_key(|(_, size)| **size).map_or(end, |(offset, _)| offset);
                Error::TooLarge { topic: topic.name, partition, offset: largest, source }
            }
            source => source.into(),
        })?;
        if let Some((expected, found)) = (end..).zip(&offsets).find(|(expected, found)| found.0 != *expected) {
            return Err(Error::Displaced { topic: topic.name, partition, expected, found: found.0 });
        }
        self.outcome.appended += offsets.len() as u64;
        Ok(())
    }

    /// Compares records with those that the log has at their offsets.
    async fn pass(&mut self, chunk: &Chunk) -> Result<(), Error> {
        let Chunk { topic, partition, first, records } = chunk;
        let mut passed = 0;
        while let Some(wanted) = records.get(passed..).filter(|wanted| !wanted.is_empty()) {
            let offset = first + passed as u64;
            let batch = self.log.read(topic, *partition, LogOffset(offset), wanted.len(), BATCH_BYTES).await?;
            if batch.is_empty() {
                return Err(Error::Differs { topic: topic.name, partition: *partition, offset });
            }
            for ((stored, wanted), offset) in batch.iter().zip(wanted).zip(offset..) {
                if stored.record != *wanted || stored.offset.0 != offset {
                    return Err(Error::Differs { topic: topic.name, partition: *partition, offset });
                }
            }
            passed += batch.len();
        }
        self.outcome.passed += records.len() as u64;
        Ok(())
    }

    /// Says in the log that it is not whole, before the first record makes it so.
    async fn begin(&mut self) -> Result<(), Error> {
        let is_said = self.wanted.as_ref().is_some_and(|wanted| {
            let mut both = wanted.clone();
            both.raise(&self.ends);
            both == *wanted
        });
        if !is_said {
            self.note(Step::Began).await?;
            self.wanted.get_or_insert_default().raise(&self.ends);
        }
        Ok(())
    }

    /// Says that it is whole, if something said that it is not.
    async fn finish(self) -> Result<Outcome, Error> {
        let Some(wanted) = &self.wanted else { return Ok(self.outcome) };
        for topic in topics::ALL {
            for partition in 0..topic.partitions {
                let (end, wanted) = (self.log.end(topic, partition).await?.0, wanted.of(topic.name, partition));
                if end < wanted {
                    return Err(Error::Unfinished { topic: topic.name.to_owned(), partition, end, wanted });
                }
            }
        }
        self.note(Step::Ended).await?;
        Ok(self.outcome)
    }

    async fn note(&self, event: Step) -> Result<(), Error> {
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

/// The bytes that count towards a log's limit.
fn size_of(record: &Record) -> usize {
    record.key.len() + record.value.len() + record.headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
}
