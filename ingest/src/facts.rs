//! Observations become facts: compared with the heads of their keys, chained to them, written as records.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use event_log::{Append, Headers, Record};
use schemas::avro::Encoder;
use schemas::clock::rfc3339;
use schemas::event::{Fact, FactKind, Head, Run, content_hash, fact_id, run_key};
use schemas::facts::{self, FactData};
use schemas::hash::{Hash32, hex};
use schemas::key;
use schemas::topics::{REJECTED, Topic};
use schemas::views::engine::{HEADS, HeadRow};
use serde::Serialize;
use upstreams::{Door, Manifest, Observation, Reject};
use view_store::View;

use crate::Error;

/// The largest record, in canonical form. A change holds it up to three times and must fit into one record of a log.
const RECORD_BYTES_MAX: usize = 128 << 10;
/// Raw bytes of a rejected record that are kept.
const RAW_BYTES_MAX: usize = 256 << 10;

/// An observation with its content hash, made where the page was mapped.
pub struct Hashed {
    /// The observation.
    pub observation: Observation,
    /// Its content hash.
    pub content_hash: Hash32,
}

impl Hashed {
    /// An observation with its hash, or, when the record is too large to go through logs and views, its rejection.
    ///
    /// # Errors
    /// The rejection.
    pub fn new(observation: Observation) -> Result<Self, Reject> {
        let canonical = observation.data.canonical();
        if canonical.len() > RECORD_BYTES_MAX {
            let reason = format!("the record has {} bytes, more than {RECORD_BYTES_MAX}", canonical.len());
            return Err(Reject { reference: observation.key, reason, raw: canonical });
        }
        Ok(Self { content_hash: content_hash(FactKind::Observed, &canonical), observation })
    }
}

/// A rejected record, as kept.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rejected<'a> {
    upstream: &'a str,
    door: &'a str,
    reference: &'a str,
    reason: &'a str,
    rejected_at: i64,
    #[serde(serialize_with = "as_bytes")]
    raw: &'a [u8],
    truncated: bool,
}

fn as_bytes<S: serde::Serializer>(raw: &&[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(raw)
}

/// Writes facts of one door.
pub struct Writer {
    topic: &'static Topic,
    upstream: &'static str,
    door: &'static str,
    engine: Arc<dyn View>,
    encoder: Encoder,
    rejects: Encoder,
    /// The time of the last fact, and the same written out.
    time: (i64, String),
}

impl Writer {
    /// A writer for a door.
    ///
    /// # Errors
    /// When the topic has no schema.
    pub fn new(manifest: &'static Manifest, door: &'static Door, engine: Arc<dyn View>) -> Result<Self, Error> {
        Ok(Self {
            topic: door.topic,
            upstream: manifest.name,
            door: door.name,
            engine,
            encoder: Encoder::new(door.topic.name)?,
            rejects: Encoder::new(REJECTED.name)?,
            time: (0, rfc3339(0)),
        })
    }

    /// The heads of some keys, in their order.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn heads(&self, keys: &[&str]) -> Result<Vec<HeadRow>, Error> {
        let keys: Vec<_> = keys.iter().map(|name| key![self.topic.name, *name]).collect();
        let rows = self.engine.get_many(&HEADS, &keys).await?;
        Ok(rows.into_iter().map(|row| row.as_deref().and_then(HeadRow::from_bytes).unwrap_or_default()).collect())
    }

    /// The facts that say what a page's observations changed: what reads as its head says is passed over. No key may be in the
    /// page twice.
    ///
    /// # Errors
    /// When the store fails or a fact cannot be written.
    pub async fn changed(&mut self, page: &[Hashed], now_ms: i64) -> Result<Vec<Append>, Error> {
        let names: Vec<&str> = page.iter().map(|hashed| hashed.observation.key.as_str()).collect();
        let heads = self.heads(&names).await?;
        let mut out = Vec::new();
        for (Hashed { observation, content_hash }, head) in page.iter().zip(heads) {
            if head.head.content_hash != *content_hash {
                let fact = Said { kind: FactKind::Observed, key: &observation.key, content_hash: *content_hash, superseded_by: "" };
                out.push(self.fact(fact, &head.head, Some(&observation.data), None, now_ms)?);
            }
        }
        Ok(out)
    }

    /// Of a page's observations, those that may go on with a record that stands under another key: (that key, theirs).
    ///
    /// # Errors
    /// When the store fails.
    pub async fn replaced(&self, page: &[Hashed]) -> Result<Vec<(String, String)>, Error> {
        let pairs: Vec<(&String, &String)> =
            page.iter().flat_map(|hashed| hashed.observation.replaces.iter().map(|old| (old, &hashed.observation.key))).collect();
        let rows = self.heads(&pairs.iter().map(|(old, _)| old.as_str()).collect::<Vec<_>>()).await?;
        let standing = pairs.into_iter().zip(rows).filter(|(_, row)| row.head.version > 0 && !row.gone);
        Ok(standing.map(|((old, new), _)| (old.clone(), new.clone())).collect())
    }

    /// The facts that say which keys go on under another one.
    ///
    /// # Errors
    /// When the store fails or a fact cannot be written.
    pub async fn superseded(&mut self, pairs: &BTreeMap<String, String>, now_ms: i64) -> Result<Vec<Append>, Error> {
        let pairs = pairs.iter().map(|(key, by)| (key.as_str(), by.as_str())).collect::<Vec<_>>();
        self.gone(FactKind::Superseded, &pairs, now_ms).await
    }

    /// The facts that say which keys are gone.
    ///
    /// # Errors
    /// When the store fails or a fact cannot be written.
    pub async fn withdrawn(&mut self, keys: &[String], now_ms: i64) -> Result<Vec<Append>, Error> {
        let pairs = keys.iter().map(|key| (key.as_str(), "")).collect::<Vec<_>>();
        self.gone(FactKind::Withdrawn, &pairs, now_ms).await
    }

    /// The facts that say of keys (each with the one that goes on with it, or none) that they stand no more; those that stood no more
    /// already are passed over.
    async fn gone(&mut self, kind: FactKind, pairs: &[(&str, &str)], now_ms: i64) -> Result<Vec<Append>, Error> {
        let rows = self.heads(&pairs.iter().map(|(key, _)| *key).collect::<Vec<_>>()).await?;
        let mut out = Vec::with_capacity(pairs.len());
        for ((key, superseded_by), row) in pairs.iter().zip(rows) {
            if row.head.version > 0 && !row.gone {
                let said = Said { kind, key, content_hash: content_hash_of(kind, superseded_by), superseded_by };
                out.push(self.fact(said, &row.head, None, None, now_ms)?);
            }
        }
        Ok(out)
    }

    /// A run event behind a head; answers the head it makes, too.
    ///
    /// # Errors
    /// When the fact cannot be written.
    pub fn run_event(&mut self, kind: FactKind, run: &Run, head: &Head, now_ms: i64) -> Result<(Append, Head), Error> {
        let key = run_key(self.door);
        let content_hash = content_hash_of(kind, &serde_json::to_string(run)?);
        let append = self.fact(Said { kind, key: &key, content_hash, superseded_by: "" }, head, None, Some(run.clone()), now_ms)?;
        let version = head.version + 1;
        let id = fact_id(self.topic.name, &key, version, &head.id, &content_hash);
        Ok((append, Head { version, id, content_hash }))
    }

    /// A record that no mapping fits, as kept.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn rejected(&mut self, reject: &Reject, now_ms: i64) -> Result<Append, Error> {
        let raw = &reject.raw[..reject.raw.len().min(RAW_BYTES_MAX)];
        let value = self.rejects.encode(&Rejected {
            upstream: self.upstream,
            door: self.door,
            reference: &reject.reference,
            reason: &reject.reason,
            rejected_at: now_ms,
            raw,
            truncated: raw.len() < reject.raw.len(),
        })?;
        let key = Bytes::from(format!("{}/{}", self.door, reject.reference));
        let record = Record { key, value: Bytes::from(value), headers: Headers::default(), at_ms: now_ms };
        Ok(Append { topic: &REJECTED, partition: 0, record })
    }

    fn fact(&mut self, said: Said<'_>, head: &Head, data: Option<&FactData>, run: Option<Run>, now_ms: i64) -> Result<Append, Error> {
        let Said { kind, key, content_hash, superseded_by } = said;
        let version = head.version + 1;
        let id = fact_id(self.topic.name, key, version, &head.id, &content_hash);
        let fact = Fact {
            id,
            kind,
            key,
            version,
            prev_hash: head.id,
            content_hash,
            upstream: self.upstream,
            observed_at: now_ms,
            superseded_by,
            data,
            run,
        };
        let value = facts::encode(&mut self.encoder, fact)?;
        // The facts of a page are of one time, and writing a time out costs as much as the rest of the headers.
        if self.time.0 != now_ms {
            self.time = (now_ms, rfc3339(now_ms));
        }
        let kind = ["highwater.", self.topic.name, ".", kind.as_str()].concat();
        let headers = Headers::cloud_event(hex(&id.0).as_str(), &kind, &["/", self.door].concat(), &self.time.1);
        let record = Record { key: Bytes::from(key.to_owned()), value: Bytes::from(value), headers, at_ms: now_ms };
        Ok(Append { topic: self.topic, partition: self.topic.partition_of(key.as_bytes()), record })
    }
}

/// What a fact says beside its record.
struct Said<'a> {
    kind: FactKind,
    key: &'a str,
    content_hash: Hash32,
    superseded_by: &'a str,
}

fn content_hash_of(kind: FactKind, what: &str) -> Hash32 {
    content_hash(kind, what.as_bytes())
}
