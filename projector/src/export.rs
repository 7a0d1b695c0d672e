//! Exports topics as text and tables, for scripts and people: the records that extend their chains, in log order.

mod parquet;

use std::collections::BTreeMap;

use schemas::avro;
use schemas::change::Change;
use schemas::clock::rfc3339;
use schemas::event::Fact;
use schemas::hash::Hash32;
use schemas::position::LogOffset;
use schemas::topics::{REJECTED, Topic, TopicKind};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::Error;
use crate::rebuild::Parts;

/// The most records that one read returns.
const BATCH_RECORDS: usize = 1_000;
/// The most bytes that one read returns.
const BATCH_BYTES: usize = 4 << 20;

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON object per line.
    Ndjson,
    /// RFC 4180 with a header line; nested values as JSON.
    Csv,
    /// Apache Parquet with Snappy compression; integers as INT64, other values as strings, nested values as JSON.
    Parquet,
}

impl Format {
    /// The names of the formats.
    pub const NAMES: [&'static str; 3] = ["ndjson", "csv", "parquet"];

    /// Returns the format with a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "ndjson" => Some(Self::Ndjson),
            "csv" => Some(Self::Csv),
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }
}

/// Exports the records of a topic: passes them to `write` in pieces, until it returns false. Run events, and changes that no feed contains,
/// are included only with `all`.
///
/// # Errors
/// When the log or the store fails, or the topic has no export.
pub async fn export(
    parts: &Parts,
    topic: &'static Topic,
    format: Format,
    all: bool,
    write: &mut (dyn FnMut(&[u8]) -> bool + Send),
) -> Result<(), Error> {
    if topic.kind == TopicKind::Imports {
        return Err(Error::Refused(format!("topic {} describes this log alone and has no export", topic.name)));
    }
    let mut out: Box<dyn RowWriter + Send + '_> = match format {
        Format::Ndjson => Box::new(Ndjson { write }),
        Format::Csv => Box::new(Csv { write, header: false }),
        Format::Parquet => Box::new(parquet::Table::new(topic, write)?),
    };
    for partition in 0..topic.partitions {
        let mut from = LogOffset(0);
        // Records that are appended during the export are not included.
        let end = match topic.kind {
            TopicKind::Facts | TopicKind::Commands => parts.engine.checkpoint().await?.position(topic, partition),
            _ => parts.log.end(topic, partition).await?,
        };
        let (mut seq, mut hash) = (0, Hash32::ZERO);
        while from < end {
            let batch = parts.log.read(topic, partition, from, BATCH_RECORDS, BATCH_BYTES).await?;
            let Some(last) = batch.last() else { break };
            let next = last.offset.next();
            let dropped = match topic.kind {
                TopicKind::Facts | TopicKind::Commands => view_store::engine::dropped(&*parts.engine, topic, partition, from, next).await?,
                _ => Vec::new(),
            };
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
                            Err(_) => continue,
                        };
                        if change.seq != seq + 1 || change.prev_hash != hash {
                            continue;
                        }
                        seq += 1;
                        hash = avro::datum_hash(topic.name, value).map_err(|source| value_error(topic, source))?;
                        change_row(&position, change, hash, all)
                    }
                };
                if let Some(row) = row
                    && !out.row(row)?
                {
                    return Ok(());
                }
            }
        }
    }
    out.finish()
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
        ("input", json!({"topic": change.input.topic, "partition": change.input.partition, "offset": change.input.offset})),
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

/// Writes rows. Returns false when the reader is gone.
trait RowWriter {
    fn row(&mut self, row: Row) -> Result<bool, Error>;

    fn finish(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// Consumes bytes; returns false when the reader is gone.
type Sink<'a> = &'a mut (dyn FnMut(&[u8]) -> bool + Send);

struct Ndjson<'a> {
    write: Sink<'a>,
}

impl RowWriter for Ndjson<'_> {
    fn row(&mut self, row: Row) -> Result<bool, Error> {
        let mut out = Vec::with_capacity(1_024);
        for (i, (name, value)) in row.iter().enumerate() {
            let before = if i == 0 { '{' } else { ',' };
            out.extend_from_slice(format!("{before}\"{name}\":{value}").as_bytes());
        }
        out.extend_from_slice(b"}\n");
        Ok((self.write)(&out))
    }
}

struct Csv<'a> {
    write: Sink<'a>,
    header: bool,
}

impl RowWriter for Csv<'_> {
    fn row(&mut self, row: Row) -> Result<bool, Error> {
        let mut out = Vec::with_capacity(1_024);
        if !self.header {
            self.header = true;
            let names: Vec<&str> = row.iter().map(|(name, _)| *name).collect();
            out.extend_from_slice(names.join(",").as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        for (i, (_, value)) in row.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            csv_field(value, &mut out);
        }
        out.extend_from_slice(b"\r\n");
        Ok((self.write)(&out))
    }
}

/// Appends a field as in RFC 4180, quoted where necessary. Texts that a spreadsheet would evaluate as a formula get a leading apostrophe.
fn csv_field(value: &Value, out: &mut Vec<u8>) {
    let text = match value {
        Value::String(text) if text.starts_with(['=', '+', '-', '@', '\t', '\r']) => format!("'{text}"),
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    if text.contains([',', '"', '\r', '\n']) {
        out.push(b'"');
        out.extend_from_slice(text.replace('"', "\"\"").as_bytes());
        out.push(b'"');
    } else {
        out.extend_from_slice(text.as_bytes());
    }
}

fn decode<T: serde::de::DeserializeOwned>(topic: &Topic, value: &[u8]) -> Result<T, Error> {
    avro::decode(topic.name, value).map_err(|source| value_error(topic, source))
}

fn value_error(topic: &Topic, source: avro::Error) -> Error {
    Error::Value { topic: topic.name.to_owned(), source }
}
