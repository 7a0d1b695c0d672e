//! Exports topics as text and tables, for scripts and people: the records that extend their chains, in log order.

mod columns;

use std::collections::BTreeMap;

use proofs::hash::Hash32;
use schemas::avro;
use schemas::change::Change;
use schemas::clock::rfc3339;
use schemas::event::Fact;
use schemas::position::{LogOffset, Seq};
use schemas::reason::reason;
use schemas::topics::{REJECTED, Topic, TopicKind};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use table_file::{Format, Sink};

use crate::Error;
use crate::rebuild::Parts;

/// The most records that one read returns.
const BATCH_RECORDS: usize = 1_000;
/// The most bytes that one read returns.
const BATCH_BYTES: usize = 4 << 20;

/// Exports the records of a topic: passes them to `write` in pieces, until it returns false. Run events, and changes that no feed contains,
/// are included only with `all`. `progress` is called with the number of records read so far and the total.
///
/// # Errors
/// When the log or the store fails, or the topic has no export.
pub async fn export(
    parts: &Parts,
    topic: &'static Topic,
    format: Format,
    all: bool,
    mut progress: impl FnMut(u64, u64) + Send,
    write: Sink<'_>,
) -> Result<(), Error> {
    if topic.kind == TopicKind::Imports {
        return Err(Error::Refused(format!("topic {} describes this log alone and has no export", topic.name)));
    }
    // Only the readable formats leave the column of runs out.
    let columns = columns::of_topic(topic, all || format == Format::Parquet);
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    let mut out = table_file::writer(format, columns, write)?;
    // Records that are appended during the export are not included.
    let mut ends = Vec::new();
    for partition in 0..topic.partitions {
        ends.push(match topic.kind {
            TopicKind::Facts | TopicKind::Commands => parts.engine.checkpoint().await?.position(topic, partition),
            _ => parts.log.end(topic, partition).await?,
        });
    }
    let (mut done, total) = (0, ends.iter().map(|end| end.0).sum());
    for (partition, end) in (0..).zip(ends) {
        let mut from = LogOffset(0);
        let (mut seq, mut hash) = (Seq(0), Hash32::ZERO);
        while from < end {
            let batch = parts.log.read(topic, partition, from, BATCH_RECORDS, BATCH_BYTES).await?;
            let Some(last) = batch.last() else { break };
            let next = last.offset.next();
            let dropped = match topic.kind {
                TopicKind::Facts | TopicKind::Commands => view_store::engine::dropped(&*parts.engine, topic, partition, from, next).await?,
                _ => Vec::new(),
            };
            done += next.0.min(end.0) - from.0;
            progress(done, total);
            from = next;
            for stored in batch.iter().filter(|stored| stored.offset < end && dropped.binary_search(&stored.offset).is_err()) {
                let value = &stored.record.value;
                let position = Position { topic: topic.name, partition, offset: stored.offset };
                let row = match topic.kind {
                    TopicKind::Facts | TopicKind::Commands => fact_row(&position, decode(topic, value)?, all),
                    TopicKind::Rejects => Some(reject_row(&position, decode(topic, value)?)),
                    TopicKind::Imports => None,
                    TopicKind::Changes => {
                        let change: Change<Value, IgnoredAny> = match decode(topic, value) {
                            Ok(change) => change,
                            // It may be part of the chain: without it the export would end here, without a word.
                            Err(error) if stored.record.headers.is_event() => {
                                let (name, offset, reason) = (topic.name, stored.offset, reason(&error));
                                return Err(Error::Refused(format!(
                                    "the change at {name}/{partition} offset {offset} cannot be read: {reason}; export it with the version that wrote it"
                                )));
                            }
                            Err(_) => continue,
                        };
                        if !change.extends(seq, hash) {
                            continue;
                        }
                        seq = change.seq;
                        hash = avro::datum_hash(topic.name, value).map_err(|source| value_error(topic, source))?;
                        change_row(&position, change, hash, all)
                    }
                };
                if let Some(row) = row
                    && !out.row(in_order(row, &names))?
                {
                    return Ok(());
                }
            }
        }
    }
    Ok(out.finish()?)
}

/// The values of a row in the order of the columns.
fn in_order(row: Row, names: &[String]) -> Vec<Value> {
    let mut values = vec![Value::Null; names.len()];
    for (name, value) in row {
        if let Some(place) = names.iter().position(|column| column == name).and_then(|at| values.get_mut(at)) {
            *place = value;
        }
    }
    values
}

/// Returns the rejected records by stream, oldest first: the time and the raw bytes. Records whose raw bytes were truncated are left out.
///
/// # Errors
/// When the log fails.
pub async fn read_rejected(parts: &Parts) -> Result<RejectedByStream, Error> {
    let (mut streams, mut from): (RejectedByStream, _) = (BTreeMap::new(), LogOffset(0));
    loop {
        let batch = parts.log.read(&REJECTED, 0, from, BATCH_RECORDS, BATCH_BYTES).await?;
        let Some(last) = batch.last() else { return Ok(streams) };
        from = last.offset.next();
        for stored in &batch {
            let reject: Rejected = decode(&REJECTED, &stored.record.value)?;
            if !reject.truncated {
                streams.entry(reject.stream).or_default().push((reject.rejected_at, reject.raw));
            }
        }
    }
}

/// Rejected records by stream: when each was rejected (milliseconds since 1970), and its raw bytes.
pub type RejectedByStream = BTreeMap<String, Vec<(i64, Vec<u8>)>>;

struct Position {
    topic: &'static str,
    partition: u32,
    offset: LogOffset,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rejected {
    upstream: String,
    #[serde(rename = "door")]
    stream: String,
    reference: String,
    reason: String,
    rejected_at: i64,
    #[serde(deserialize_with = "bytes")]
    raw: Vec<u8>,
    truncated: bool,
}

fn bytes<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    struct Visitor;
    impl serde::de::Visitor<'_> for Visitor {
        type Value = Vec<u8>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("bytes")
        }
        fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_vec())
        }
    }
    deserializer.deserialize_bytes(Visitor)
}

type Row = Vec<(&'static str, Value)>;

fn fact_row(position: &Position, fact: Fact<Value>, all: bool) -> Option<Row> {
    if fact.kind.is_run() && !all {
        return None;
    }
    let run = fact.run.map(|run| serde_json::to_value(run).unwrap_or(Value::Null)).unwrap_or(Value::Null);
    let mut row = vec![
        ("topic", json!(position.topic)),
        ("partition", json!(position.partition)),
        ("offset", json!(position.offset)),
        ("id", json!(fact.id.to_string())),
        ("kind", json!(fact.kind.as_str())),
        ("key", json!(fact.key)),
        ("version", json!(fact.version)),
        ("observedAt", json!(rfc3339(fact.observed_at))),
        ("upstream", json!(fact.upstream)),
        ("contentHash", json!(fact.content_hash.to_string())),
        ("prevHash", json!(fact.prev_hash.to_string())),
        ("supersededBy", json!(fact.superseded_by)),
        ("data", fact.data.unwrap_or(Value::Null)),
    ];
    if all {
        row.push(("run", run));
    }
    Some(row)
}

fn change_row(position: &Position, change: Change<Value, IgnoredAny>, hash: Hash32, all: bool) -> Option<Row> {
    if !change.event.is_shown() && !all {
        return None;
    }
    Some(vec![
        ("topic", json!(position.topic)),
        ("partition", json!(position.partition)),
        ("offset", json!(position.offset)),
        ("seq", json!(change.seq)),
        ("hash", json!(hash.to_string())),
        ("prevHash", json!(change.prev_hash.to_string())),
        ("event", json!(change.event.as_str())),
        ("id", json!(change.id)),
        ("recordedAt", json!(rfc3339(change.recorded_at))),
        ("input", json!({"topic": change.input.topic, "partition": change.input.partition, "offset": change.input.stored_offset()})),
        ("record", change.after.unwrap_or(Value::Null)),
        ("before", change.before.unwrap_or(Value::Null)),
        ("reason", json!(change.reason)),
    ])
}

fn reject_row(position: &Position, reject: Rejected) -> Row {
    vec![
        ("topic", json!(position.topic)),
        ("partition", json!(position.partition)),
        ("offset", json!(position.offset)),
        ("upstream", json!(reject.upstream)),
        ("stream", json!(reject.stream)),
        ("reference", json!(reject.reference)),
        ("reason", json!(reject.reason)),
        ("rejectedAt", json!(rfc3339(reject.rejected_at))),
        ("truncated", json!(reject.truncated)),
    ]
}

fn decode<T: serde::de::DeserializeOwned>(topic: &Topic, value: &[u8]) -> Result<T, Error> {
    avro::decode(topic.name, value).map_err(|source| value_error(topic, source))
}

fn value_error(topic: &Topic, source: avro::Error) -> Error {
    Error::Value { topic: topic.name.to_owned(), source }
}
