//! Realistic facts to append: those that `ingest` got from the simulated upstreams, read from its log.

use bytes::Bytes;
use event_log::embedded::{EmbeddedLog, Options};
use event_log::{Append, EventLog, Record};
use schemas::avro::Encoder;
use schemas::event::{Fact, FactKind, Head, content_hash};
use schemas::facts::{self, FactData};
use schemas::position::LogOffset;
use schemas::topics::RECALLS;

use crate::{Failure, Settings, ingest};

/// The largest number of records and bytes per read.
const READ_RECORDS: usize = 2_000;
const READ_BYTES: usize = 4 << 20;

/// Reads facts about records from the partitions in turn, so that every batch has some of each. Facts about runs are left out, because the
/// end of a run names offsets of the original log. Facts of one key keep their order, so that they form a chain in any log.
pub(crate) async fn of(settings: &Settings, facts_max: usize) -> Result<Vec<Append>, Failure> {
    ingest::prepare(settings)?;
    let log = EmbeddedLog::open(&ingest::data_dir(settings).join("log"), Options::default())?;
    let mut partitions = Vec::new();
    for partition in 0..RECALLS.partitions {
        partitions.push(partition_of(&*log, partition, facts_max).await?.into_iter());
    }
    log.close().await?;
    let mut out = Vec::new();
    loop {
        let before = out.len();
        out.extend(partitions.iter_mut().filter_map(Iterator::next));
        if out.len() == before || out.len() >= facts_max {
            out.truncate(facts_max);
            return Ok(out);
        }
    }
}

async fn partition_of(log: &dyn EventLog, partition: u32, facts_max: usize) -> Result<Vec<Append>, Failure> {
    let (mut out, mut next) = (Vec::new(), LogOffset(0));
    while out.len() < facts_max {
        let batch = log.read(&RECALLS, partition, next, READ_RECORDS, READ_BYTES).await?;
        let Some(last) = batch.last() else { break };
        next = last.offset.next();
        let facts = batch.into_iter().map(|stored| stored.record).filter(|record| !record.key.starts_with(b"@run/"));
        out.extend(facts.map(|record| Append { topic: &RECALLS, partition, record }));
    }
    Ok(out)
}

/// Returns the bytes of a record's key, value and headers.
pub(crate) fn bytes_of(record: &Record) -> usize {
    let headers: usize = record.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    record.key.len() + record.value.len() + headers
}

/// Makes the next fact of a key, which continues its chain.
pub(crate) fn observe(encoder: &mut Encoder, head: &mut Head, key: &str, data: &FactData, at_ms: i64) -> Result<Append, Failure> {
    let (topic, kind) = (data.topic(), FactKind::Observed);
    let next = Fact::after(head, topic.name, kind, key, content_hash(kind, &data.canonical()));
    let fact = Fact { upstream: "bench", observed_at: at_ms, data: Some(data), ..next };
    *head = fact.head();
    let value = Bytes::from(facts::encode(encoder, fact)?);
    let partition = topic.partition_of(key.as_bytes());
    Ok(Append { topic, partition, record: Record { key: Bytes::from(key.to_owned()), value, at_ms, ..Record::default() } })
}
