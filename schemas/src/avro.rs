//! Encodes values as Avro datums, framed as single objects (C3 01 and the Rabin fingerprint of the schema). The Kafka log uses another
//! framing for its readers and converts it to this one for the engine.
//!
//! A value is read with the schema that it was written with. The schema is found by its fingerprint among all versions in this crate and
//! those learned from a schema registry, so that old logs, and values that newer nodes write, remain readable. Fields that a newer schema
//! added take their defaults.

use std::collections::HashMap;
use std::sync::{LazyLock, PoisonError, RwLock};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_avro_fast::Schema;
use serde_avro_fast::ser::SerializerConfig;

use crate::topics;
use proofs::hash::Hash32;

/// One version of one topic's schema.
#[derive(Clone, Copy, Debug)]
pub struct SchemaText {
    /// The topic whose values it describes.
    pub topic: &'static str,
    /// The schema as JSON.
    pub json: &'static str,
}

/// Earlier schema versions, `<topic>.v<n>.avsc`. The current ones follow from the list of topics.
const EARLIER: &[SchemaText] = &[
    SchemaText { topic: "awards", json: include_str!("../avro/awards.v1.avsc") },
    SchemaText { topic: "awards", json: include_str!("../avro/awards.v2.avsc") },
    SchemaText { topic: "filings", json: include_str!("../avro/filings.v1.avsc") },
    SchemaText { topic: "filings", json: include_str!("../avro/filings.v2.avsc") },
    SchemaText { topic: "grants", json: include_str!("../avro/grants.v1.avsc") },
    SchemaText { topic: "grants", json: include_str!("../avro/grants.v2.avsc") },
    SchemaText { topic: "insider_trades", json: include_str!("../avro/insider_trades.v1.avsc") },
    SchemaText { topic: "insider_trades", json: include_str!("../avro/insider_trades.v2.avsc") },
    SchemaText { topic: "recalls", json: include_str!("../avro/recalls.v1.avsc") },
    SchemaText { topic: "recalls", json: include_str!("../avro/recalls.v2.avsc") },
    SchemaText { topic: "trials", json: include_str!("../avro/trials.v1.avsc") },
    SchemaText { topic: "trials", json: include_str!("../avro/trials.v2.avsc") },
    SchemaText { topic: "meetings", json: include_str!("../avro/meetings.v1.avsc") },
    SchemaText { topic: "statements", json: include_str!("../avro/statements.v1.avsc") },
    SchemaText { topic: "stock", json: include_str!("../avro/stock.v1.avsc") },
    SchemaText { topic: "accounts", json: include_str!("../avro/accounts.v1.avsc") },
    SchemaText { topic: "accounts", json: include_str!("../avro/accounts.v2.avsc") },
    SchemaText { topic: "accounts", json: include_str!("../avro/accounts.v3.avsc") },
    SchemaText { topic: "accounts", json: include_str!("../avro/accounts.v4.avsc") },
    SchemaText { topic: "accounts", json: include_str!("../avro/accounts.v5.avsc") },
    SchemaText { topic: "accounts", json: include_str!("../avro/accounts.v6.avsc") },
    SchemaText { topic: "changes.accounts", json: include_str!("../avro/changes.accounts.v1.avsc") },
    SchemaText { topic: "changes.accounts", json: include_str!("../avro/changes.accounts.v2.avsc") },
    SchemaText { topic: "changes.accounts", json: include_str!("../avro/changes.accounts.v3.avsc") },
    SchemaText { topic: "changes.accounts", json: include_str!("../avro/changes.accounts.v4.avsc") },
    SchemaText { topic: "deliveries", json: include_str!("../avro/deliveries.v1.avsc") },
    SchemaText { topic: "changes.deliveries", json: include_str!("../avro/changes.deliveries.v1.avsc") },
    SchemaText { topic: "changes.watches", json: include_str!("../avro/changes.watches.v1.avsc") },
    SchemaText { topic: "changes.watches", json: include_str!("../avro/changes.watches.v2.avsc") },
    SchemaText { topic: "receipts", json: include_str!("../avro/receipts.v1.avsc") },
    SchemaText { topic: "receipts", json: include_str!("../avro/receipts.v2.avsc") },
    SchemaText { topic: "receipts", json: include_str!("../avro/receipts.v3.avsc") },
    SchemaText { topic: "receipts", json: include_str!("../avro/receipts.v4.avsc") },
    SchemaText { topic: "changes.receipts", json: include_str!("../avro/changes.receipts.v1.avsc") },
    SchemaText { topic: "changes.receipts", json: include_str!("../avro/changes.receipts.v2.avsc") },
    SchemaText { topic: "payments", json: include_str!("../avro/payments.v1.avsc") },
    SchemaText { topic: "payments", json: include_str!("../avro/payments.v2.avsc") },
    SchemaText { topic: "changes.payments", json: include_str!("../avro/changes.payments.v1.avsc") },
    SchemaText { topic: "changes.awards", json: include_str!("../avro/changes.awards.v1.avsc") },
    SchemaText { topic: "changes.aviation", json: include_str!("../avro/changes.aviation.v1.avsc") },
    SchemaText { topic: "directives", json: include_str!("../avro/directives.v1.avsc") },
    SchemaText { topic: "changes.parcels", json: include_str!("../avro/changes.parcels.v1.avsc") },
    SchemaText { topic: "changes.exclusions", json: include_str!("../avro/changes.exclusions.v1.avsc") },
    SchemaText { topic: "parcels", json: include_str!("../avro/parcels.v1.avsc") },
    SchemaText { topic: "changes.parcels", json: include_str!("../avro/changes.parcels.v2.avsc") },
    SchemaText { topic: "parcels", json: include_str!("../avro/parcels.v2.avsc") },
    SchemaText { topic: "sales", json: include_str!("../avro/sales.v1.avsc") },
    SchemaText { topic: "changes.parcels", json: include_str!("../avro/changes.parcels.v3.avsc") },
];

/// Every schema version: the current one of each topic first, in the order of the topics, then the earlier ones.
pub static ALL: LazyLock<Vec<SchemaText>> = LazyLock::new(|| {
    let current = topics::SCHEMAS.iter().map(|&(topic, json)| SchemaText { topic, json });
    current.chain(EARLIER.iter().copied()).collect()
});

/// The CRC-64-AVRO of a schema's canonical form, little endian, as framed values contain it.
pub type Fingerprint = [u8; 8];

/// The media type of an Avro single object: `C3 01`, the fingerprint of its schema, then the datum.
pub const SINGLE_OBJECT_TYPE: &str = "application/vnd.apache.avro.single-object";
/// The media type of a value in the frame of a schema registry: `00`, the id of its schema at the registry, then the datum.
pub const REGISTRY_FRAME_TYPE: &str = "application/vnd.confluent.avro";
/// The first bytes of a framed value.
const FRAME: [u8; 2] = [0xc3, 0x01];
/// The most schemas that a process learns. A learned schema is never forgotten.
const MAX_LEARNED_SCHEMAS: usize = 1_000;

impl SchemaText {
    /// Returns the fingerprint of the schema; `None` if the text is not a valid schema.
    #[must_use]
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.json.parse::<Schema>().ok().map(|schema| *schema.rabin_fingerprint())
    }

    /// Returns the CRC-64-AVRO fingerprint as [`fingerprint_hex`] formats it; `None` if the text is not a valid schema.
    #[must_use]
    pub fn fingerprint_hex(&self) -> Option<String> {
        self.json.parse::<Schema>().ok().map(|schema| hex_of(&schema))
    }
}

/// Why bytes could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The topic has no schema.
    #[error("topic {0} has no schema")]
    NoSchema(String),
    /// The value has no known framing.
    #[error("the value of {0} bytes is not framed as Avro")]
    NotFramed(usize),
    /// No known schema has the fingerprint.
    #[error("no schema has the fingerprint {0:016x}")]
    UnknownFingerprint(u64),
    /// The value belongs to another topic.
    #[error("the value is a {found}, not a {expected}")]
    OtherTopic {
        /// The full name of the value's record.
        found: String,
        /// The full name of the record that the topic holds.
        expected: String,
    },
    /// A schema could not be learned: it is not valid, or too many were learned already.
    #[error("{0}")]
    NotLearned(String),
    /// The datum does not fit its schema.
    #[error("the value cannot be read with its schema")]
    Read(#[source] serde_avro_fast::de::DeError),
    /// The value does not fit its schema.
    #[error("the value cannot be written with its schema")]
    Write(#[source] serde_avro_fast::ser::SerError),
}

/// A schema and the full name of its record.
struct Named {
    schema: Schema,
    name: String,
}

impl Named {
    fn parse(json: &str) -> Result<&'static Self, Error> {
        let schema: Schema = json.parse().map_err(|error: serde_avro_fast::schema::SchemaError| Error::NotLearned(error.to_string()))?;
        let words: serde_json::Value = serde_json::from_str(json).map_err(|error| Error::NotLearned(error.to_string()))?;
        let part = |field: &str| words.get(field).and_then(serde_json::Value::as_str).unwrap_or_default();
        let name = format!("{}.{}", part("namespace"), part("name"));
        Ok(Box::leak(Box::new(Self { schema, name })))
    }
}

struct KnownSchemas {
    current: HashMap<&'static str, &'static Named>,
    by_fingerprint: HashMap<Fingerprint, &'static Named>,
}

/// Schemas that other processes wrote with.
static LEARNED: LazyLock<RwLock<HashMap<Fingerprint, &'static Named>>> = LazyLock::new(RwLock::default);

static KNOWN: LazyLock<KnownSchemas> = LazyLock::new(|| {
    let mut known = KnownSchemas { current: HashMap::new(), by_fingerprint: HashMap::new() };
    for text in ALL.iter() {
        // A schema that does not parse is a bug in this crate. A test parses all of them, so that it is found before a release.
        let Ok(named) = Named::parse(text.json) else { continue };
        known.current.entry(text.topic).or_insert(named);
        known.by_fingerprint.insert(*named.schema.rabin_fingerprint(), named);
    }
    known
});

/// Encodes values of one topic.
pub struct Encoder {
    config: SerializerConfig<'static>,
    /// The buffer in which a value is encoded; reused, so that it is allocated once.
    buffer: Vec<u8>,
    fingerprint: Fingerprint,
}

impl Encoder {
    /// Creates an encoder for the current schema of a topic.
    ///
    /// # Errors
    /// [`Error::NoSchema`] if the topic has none.
    pub fn new(topic: &str) -> Result<Self, Error> {
        let Named { schema, .. } = KNOWN.current.get(topic).copied().ok_or_else(|| Error::NoSchema(topic.to_owned()))?;
        Ok(Self { config: SerializerConfig::new(schema), buffer: Vec::new(), fingerprint: *schema.rabin_fingerprint() })
    }

    /// Encodes one value with its frame.
    ///
    /// # Errors
    /// [`Error::Write`] if the value does not fit the schema.
    pub fn encode<T: Serialize>(&mut self, value: &T) -> Result<Vec<u8>, Error> {
        let mut out = std::mem::take(&mut self.buffer);
        out.clear();
        out.extend_from_slice(&FRAME);
        out.extend_from_slice(&self.fingerprint);
        self.buffer = serde_avro_fast::to_datum(value, out, &mut self.config).map_err(Error::Write)?;
        Ok(self.buffer.clone())
    }
}

/// Splits a framed value into fingerprint and datum; `None` if it is not framed.
#[must_use]
pub fn split(value: &[u8]) -> Option<(Fingerprint, &[u8])> {
    let (fingerprint, datum) = value.strip_prefix(&FRAME)?.split_first_chunk::<8>()?;
    Some((*fingerprint, datum))
}

/// Frames a datum.
#[must_use]
pub fn join(fingerprint: &Fingerprint, datum: &[u8]) -> Vec<u8> {
    [&FRAME, &fingerprint[..], datum].concat()
}

/// Stores a schema that another version of this program wrote with, and returns its fingerprint.
///
/// # Errors
/// [`Error::NotLearned`] if the text is not a valid schema, or if too many were learned already.
pub fn learn(json: &str) -> Result<Fingerprint, Error> {
    let parsed: Schema = json.parse().map_err(|error: serde_avro_fast::schema::SchemaError| Error::NotLearned(error.to_string()))?;
    let fingerprint = *parsed.rabin_fingerprint();
    let mut learned = LEARNED.write().unwrap_or_else(PoisonError::into_inner);
    if !KNOWN.by_fingerprint.contains_key(&fingerprint) && !learned.contains_key(&fingerprint) {
        if learned.len() >= MAX_LEARNED_SCHEMAS {
            return Err(Error::NotLearned(format!("{MAX_LEARNED_SCHEMAS} schemas were learned already")));
        }
        learned.insert(fingerprint, Named::parse(json)?);
    }
    Ok(fingerprint)
}

/// Whether a known schema describes values of a topic: whether its record has the same name as that of the topic's current schema.
#[must_use]
pub fn is_of(fingerprint: &Fingerprint, topic: &str) -> bool {
    named(fingerprint).zip(KNOWN.current.get(topic)).is_some_and(|(found, current)| found.name == current.name)
}

fn named(fingerprint: &Fingerprint) -> Option<&'static Named> {
    let learned = || LEARNED.read().unwrap_or_else(PoisonError::into_inner).get(fingerprint).copied();
    KNOWN.by_fingerprint.get(fingerprint).copied().or_else(learned)
}

/// Splits a framed value of `topic` into its schema and its datum.
fn unframe<'a>(topic: &str, value: &'a [u8]) -> Result<(&'static Schema, &'a [u8]), Error> {
    let (fingerprint, datum) = split(value).ok_or(Error::NotFramed(value.len()))?;
    let found = named(&fingerprint).ok_or(Error::UnknownFingerprint(u64::from_le_bytes(fingerprint)))?;
    let current = KNOWN.current.get(topic).ok_or_else(|| Error::NoSchema(topic.to_owned()))?;
    if found.name != current.name {
        return Err(Error::OtherTopic { found: found.name.clone(), expected: current.name.clone() });
    }
    Ok((&found.schema, datum))
}

/// Decodes one framed value of `topic`.
///
/// # Errors
/// When the framing, the fingerprint or the datum cannot be read.
pub fn decode<T: DeserializeOwned>(topic: &str, value: &[u8]) -> Result<T, Error> {
    let (schema, datum) = unframe(topic, value)?;
    serde_avro_fast::from_datum_slice(datum, schema).map_err(Error::Read)
}

/// Like [`decode`], but borrows from the value where the type can.
///
/// # Errors
/// As [`decode`].
pub fn decode_borrowed<'a, T: Deserialize<'a>>(topic: &str, value: &'a [u8]) -> Result<T, Error> {
    let (schema, datum) = unframe(topic, value)?;
    serde_avro_fast::from_datum_slice(datum, schema).map_err(Error::Read)
}

/// Returns the hash of a framed value's datum: the `prevHash` of the next change of a topic.
///
/// # Errors
/// When the framing cannot be read.
pub fn datum_hash(topic: &str, value: &[u8]) -> Result<Hash32, Error> {
    unframe(topic, value).map(|(_, datum)| Hash32::of(datum))
}

/// Returns the fingerprint of a topic's current schema as 16 hex digits (big endian, the usual way to print it).
#[must_use]
pub fn fingerprint_hex(topic: &str) -> Option<String> {
    KNOWN.current.get(topic).map(|named| hex_of(&named.schema))
}

fn hex_of(schema: &Schema) -> String {
    printed(schema.rabin_fingerprint())
}

/// Returns a fingerprint as 16 hex digits (big endian, the usual way to print it).
#[must_use]
pub fn printed(fingerprint: &Fingerprint) -> String {
    format!("{:016x}", u64::from_le_bytes(*fingerprint))
}
