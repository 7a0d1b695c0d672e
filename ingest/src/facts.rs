//! Turns the observations of a page into facts: compares each with the latest version of its key (its head), chains the new fact to that
//! head, and encodes it as a log record.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use event_log::{Append, Headers, Record};
use proofs::hash::{Hash32, hex};
use schemas::avro::Encoder;
use schemas::clock::rfc3339;
use schemas::event::{Fact, FactKind, Head, Run, content_hash, fact_id, run_key};
use schemas::facts::{self, FactData};
use schemas::key;
use schemas::topics::{REJECTED, Topic};
use schemas::views::engine::{HEADS, HeadRow, REJECTS, rejected_bytes, rejected_reference};
use serde::Serialize;
use texts::folding::other_normal_forms;
use upstreams::drift::Touched;
use upstreams::{Manifest, Observation, Reject, Stream};
use view_store::View;

use crate::Error;

/// The largest record, in bytes of its canonical form. A change can hold the record three times and must still fit into one log record.
const RECORD_BYTES_MAX: usize = 128 << 10;
/// How many observations are compared and appended at once. Some upstreams answer with all their records in one page.
pub(crate) const OBSERVATIONS_MAX: usize = 2_000;
/// How many raw bytes of a rejected record are stored.
const RAW_BYTES_MAX: usize = 256 << 10;

/// An observation with its content hash, which is computed while the page is mapped.
pub struct Hashed {
    /// The observation.
    pub observation: Observation,
    /// The hash of the observation's canonical form.
    pub content_hash: Hash32,
    /// Other hashes of the same content: that of earlier versions of this program, and those of its texts in other normal forms. A text is the same whether
    /// its accents are characters of their own.
    pub same_hashes: Vec<Hash32>,
}

impl Hashed {
    /// Hashes an observation.
    ///
    /// # Errors
    /// The rejection of a record that is larger than [`RECORD_BYTES_MAX`].
    pub fn new(observation: Observation) -> Result<Self, Reject> {
        let canonical = observation.data.canonical();
        if canonical.len() > RECORD_BYTES_MAX {
            let reason = format!("the record has {} bytes, more than {RECORD_BYTES_MAX}", canonical.len());
            return Err(Reject { reference: observation.key, reason, raw: canonical });
        }
        let hash = |canonical: &[u8]| content_hash(FactKind::Observed, canonical);
        let former = observation.former.as_ref().map(|former| hash(&former.canonical()));
        let other_forms = other_normal_forms(&canonical);
        let same_hashes = former.into_iter().chain(other_forms.iter().map(|form| hash(form))).collect();
        Ok(Self { content_hash: hash(&canonical), same_hashes, observation })
    }

    /// Whether the fact at a head has other content.
    fn differs_from(&self, head: &Head) -> bool {
        head.content_hash != self.content_hash && !self.same_hashes.contains(&head.content_hash)
    }
}

/// Returns the bytes of a rejected record that are stored.
fn stored_bytes(reject: &Reject) -> &[u8] {
    &reject.raw[..reject.raw.len().min(RAW_BYTES_MAX)]
}

/// A rejected record as it is stored in the topic `rejected`. The stored field of the stream is named `door`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rejected<'a> {
    upstream: &'a str,
    #[serde(rename = "door")]
    stream: &'a str,
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

/// Encodes the facts of one stream.
pub struct Writer {
    topic: &'static Topic,
    upstream: &'static str,
    stream: &'static str,
    engine: Arc<dyn View>,
    encoder: Encoder,
    rejects: Encoder,
    /// The time of the last fact in milliseconds since 1970, and the same time in RFC 3339. The text is reused for all facts of a page.
    time: (i64, String),
    /// The names of the records that this run has rejected, by their bytes.
    rejected: HashSet<String>,
}

impl Writer {
    /// Makes a writer for a stream.
    ///
    /// # Errors
    /// When the topic has no Avro schema.
    pub fn new(manifest: &'static Manifest, stream: &'static Stream, engine: Arc<dyn View>) -> Result<Self, Error> {
        Ok(Self {
            topic: stream.topic,
            upstream: manifest.name,
            stream: stream.name,
            engine,
            encoder: Encoder::new(stream.topic.name)?,
            rejects: Encoder::new(REJECTED.name)?,
            time: (0, rfc3339(0)),
            rejected: HashSet::new(),
        })
    }

    /// Reads the heads of some keys. The rows are in the order of the keys; a key without a fact has the default row.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn heads(&self, keys: &[&str]) -> Result<Vec<HeadRow>, Error> {
        let keys: Vec<_> = keys.iter().map(|name| key![self.topic.name, *name]).collect();
        let rows = self.engine.get_many(&HEADS, &keys).await?;
        Ok(rows.into_iter().map(|row| row.as_deref().and_then(HeadRow::from_bytes).unwrap_or_default()).collect())
    }

    /// Builds the facts for the observations of a page whose content differs from the head of their key. No key may occur twice in the
    /// page.
    ///
    /// # Errors
    /// When the store fails or a fact cannot be encoded.
    pub async fn changed(&mut self, page: &[Hashed], now_ms: i64) -> Result<Vec<Append>, Error> {
        let names: Vec<&str> = page.iter().map(|hashed| hashed.observation.key.as_str()).collect();
        let heads = self.heads(&names).await?;
        let mut out = Vec::new();
        for (hashed, head) in page.iter().zip(heads) {
            let Hashed { observation, content_hash, .. } = hashed;
            if hashed.differs_from(&head.head) {
                let fact = FactContent { kind: FactKind::Observed, key: &observation.key, content_hash: *content_hash, superseded_by: "" };
                out.push(self.fact(fact, &head.head, Some(&observation.data), None, now_ms)?);
            }
        }
        Ok(out)
    }

    /// Counts the records of a page that would be appended and tell something about the format: new ones, and changed ones if at least half
    /// of the known records have changed.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn touched(&self, page: &[Hashed]) -> Result<Touched, Error> {
        let (mut new, mut known, mut changed) = (0, 0, 0);
        for page in page.chunks(OBSERVATIONS_MAX) {
            let names: Vec<&str> = page.iter().map(|hashed| hashed.observation.key.as_str()).collect();
            for (hashed, row) in page.iter().zip(self.heads(&names).await?) {
                if row.head.version == 0 {
                    new += 1;
                } else {
                    known += 1;
                    changed += i64::from(hashed.differs_from(&row.head));
                }
            }
        }
        Ok(Touched { new, changed: if changed * 2 >= known { changed } else { 0 } })
    }

    /// Says of each rejected record whether it was rejected before with the same bytes, in an earlier run or on an earlier page.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn known_rejects(&mut self, rejects: &[Reject]) -> Result<Vec<bool>, Error> {
        let names: Vec<String> = rejects.iter().map(|reject| rejected_bytes(stored_bytes(reject))).collect();
        let keys: Vec<_> = names.iter().map(|name| key![self.stream, name.as_str()]).collect();
        let rows = self.engine.get_many(&REJECTS, &keys).await?;
        Ok(names.into_iter().zip(rows).map(|(name, row)| !self.rejected.insert(name) || row.is_some()).collect())
    }

    /// Returns the records that this run has rejected: of each the first 16 hex digits of the hash of its bytes, sorted.
    #[must_use]
    pub fn run_rejects(&self) -> Vec<String> {
        let digits = |name: &String| name.rsplit('/').next().unwrap_or_default().chars().take(16).collect();
        let mut rejects: Vec<String> = self.rejected.iter().map(digits).collect();
        rejects.sort_unstable();
        rejects
    }

    /// Returns which of some keys are references of rejected records of their streams.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn rejected_keys(&self, keys: &[&str]) -> Result<Vec<bool>, Error> {
        let named = |key: &&str| {
            let (stream, reference) = key.split_once('/').unwrap_or((*key, ""));
            key![stream, rejected_reference(reference)]
        };
        let keys: Vec<_> = keys.iter().map(named).collect();
        Ok(self.engine.get_many(&REJECTS, &keys).await?.into_iter().map(|row| row.is_some()).collect())
    }

    /// Finds the observations of a page that may continue a record that is current under another key. Returns pairs of the old key and the
    /// new key.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn replaced(&self, page: &[Hashed]) -> Result<Vec<(String, String)>, Error> {
        let pairs: Vec<(&String, &String)> =
            page.iter().flat_map(|hashed| hashed.observation.replaces.iter().map(|old| (old, &hashed.observation.key))).collect();
        let rows = self.heads(&pairs.iter().map(|(old, _)| old.as_str()).collect::<Vec<_>>()).await?;
        let current = pairs.into_iter().zip(rows).filter(|(_, row)| row.head.version > 0 && !row.gone);
        Ok(current.map(|((old, new), _)| (old.clone(), new.clone())).collect())
    }

    /// Builds the facts for keys whose record continues under another key.
    ///
    /// # Errors
    /// When the store fails or a fact cannot be encoded.
    pub async fn superseded(&mut self, pairs: &BTreeMap<String, String>, now_ms: i64) -> Result<Vec<Append>, Error> {
        let pairs = pairs.iter().map(|(key, by)| (key.as_str(), by.as_str())).collect::<Vec<_>>();
        self.tombstones(FactKind::Superseded, &pairs, now_ms).await
    }

    /// Builds the facts for keys that are gone from their upstream.
    ///
    /// # Errors
    /// When the store fails or a fact cannot be encoded.
    pub async fn withdrawn(&mut self, keys: &[String], now_ms: i64) -> Result<Vec<Append>, Error> {
        let pairs = keys.iter().map(|key| (key.as_str(), "")).collect::<Vec<_>>();
        self.tombstones(FactKind::Withdrawn, &pairs, now_ms).await
    }

    /// Builds the facts that end keys. Each pair is a key and the key that continues its record, or an empty text. Keys that have already
    /// ended are skipped.
    async fn tombstones(&mut self, kind: FactKind, pairs: &[(&str, &str)], now_ms: i64) -> Result<Vec<Append>, Error> {
        let rows = self.heads(&pairs.iter().map(|(key, _)| *key).collect::<Vec<_>>()).await?;
        let mut out = Vec::with_capacity(pairs.len());
        for ((key, superseded_by), row) in pairs.iter().zip(rows) {
            if row.head.version > 0 && !row.gone {
                let content = FactContent { kind, key, content_hash: content_hash_of(kind, superseded_by), superseded_by };
                out.push(self.fact(content, &row.head, None, None, now_ms)?);
            }
        }
        Ok(out)
    }

    /// Builds a run event that follows the head of the stream's run key. Also returns the head that the event makes.
    ///
    /// # Errors
    /// When the fact cannot be encoded.
    pub fn run_event(&mut self, kind: FactKind, run: &Run, head: &Head, now_ms: i64) -> Result<(Append, Head), Error> {
        let key = run_key(self.stream);
        let content_hash = content_hash_of(kind, &serde_json::to_string(run)?);
        let append = self.fact(FactContent { kind, key: &key, content_hash, superseded_by: "" }, head, None, Some(run.clone()), now_ms)?;
        let version = head.version + 1;
        let id = fact_id(self.topic.name, &key, version, &head.id, &content_hash);
        Ok((append, Head { version, id, content_hash }))
    }

    /// Builds the record of the topic `rejected` for an observation that could not be mapped.
    ///
    /// # Errors
    /// When it cannot be encoded.
    pub fn rejected(&mut self, reject: &Reject, now_ms: i64) -> Result<Append, Error> {
        let raw = stored_bytes(reject);
        let value = self.rejects.encode(&Rejected {
            upstream: self.upstream,
            stream: self.stream,
            reference: &reject.reference,
            reason: &reject.reason,
            rejected_at: now_ms,
            raw,
            truncated: raw.len() < reject.raw.len(),
        })?;
        let key = Bytes::from(format!("{}/{}", self.stream, reject.reference));
        let record = Record { key, value: Bytes::from(value), headers: Headers::default(), at_ms: now_ms };
        Ok(Append { topic: &REJECTED, partition: 0, record })
    }

    fn fact(
        &mut self,
        content: FactContent<'_>,
        head: &Head,
        data: Option<&FactData>,
        run: Option<Run>,
        now_ms: i64,
    ) -> Result<Append, Error> {
        let FactContent { kind, key, content_hash, superseded_by } = content;
        let next = Fact::after(head, self.topic.name, kind, key, content_hash);
        let fact = Fact { upstream: self.upstream, observed_at: now_ms, superseded_by, data, run, ..next };
        let id = fact.id;
        let value = facts::encode(&mut self.encoder, fact)?;
        // All facts of a page have the same time, and formatting it costs as much as the other headers together.
        if self.time.0 != now_ms {
            self.time = (now_ms, rfc3339(now_ms));
        }
        let kind = ["highwater.", self.topic.name, ".", kind.as_str()].concat();
        let headers = Headers::cloud_event(hex(&id.0).as_str(), &kind, &["/", self.stream].concat(), &self.time.1);
        let record = Record { key: Bytes::from(key.to_owned()), value: Bytes::from(value), headers, at_ms: now_ms };
        Ok(Append { topic: self.topic, partition: self.topic.partition_of(key.as_bytes()), record })
    }
}

/// The content of a fact apart from its record.
struct FactContent<'a> {
    kind: FactKind,
    key: &'a str,
    content_hash: Hash32,
    superseded_by: &'a str,
}

fn content_hash_of(kind: FactKind, text: &str) -> Hash32 {
    content_hash(kind, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use schemas::facts::recalls::RecallFact;

    use super::*;

    /// Proves that an observation in another normal form of its texts is the fact that is recorded, in both directions; that a corrected accent or case
    /// is another one; and that a fact has the hash of its own text.
    #[test]
    fn normal_forms_are_no_change() {
        let fact_titled = |title: &str| {
            let data = FactData::Recall(Box::new(RecallFact { title: title.into(), hazard: "it burns".into(), ..RecallFact::default() }));
            let canonical = data.canonical();
            let hashed = Hashed::new(Observation::new("openfda.food/1".to_owned(), data)).unwrap();
            assert_eq!(hashed.content_hash, content_hash(FactKind::Observed, &canonical));
            hashed
        };
        let differs = |recorded: &str, observed: &str| {
            let head = Head { version: 1, id: Hash32::ZERO, content_hash: fact_titled(recorded).content_hash };
            fact_titled(observed).differs_from(&head)
        };
        let (composed, decomposed) = ("Caf\u{e9}", "Cafe\u{301}");
        assert!(!differs(decomposed, composed) && !differs(composed, decomposed) && !differs(composed, composed));
        assert!(differs(composed, "Cafe") && differs("Cafe", composed) && differs(composed, "CAF\u{c9}") && !differs("Cafe", "Cafe"));
    }
}
