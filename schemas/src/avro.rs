//! Values as bytes: Avro datums, framed as single objects (C3 01 and the schema's Rabin fingerprint) or, when a registry is
//! set, the Confluent way (0x00 and a 4-byte big-endian schema id).
//!
//! Promise: a value is read with the schema it was written with, found by its fingerprint among all versions kept here, so
//! that old logs stay readable; fields that a newer schema added take their defaults.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_avro_fast::Schema;
use serde_avro_fast::ser::SerializerConfig;

use crate::hash::Hash32;

/// One version of one topic's schema.
#[derive(Clone, Copy, Debug)]
pub struct SchemaText {
    /// The topic whose values it describes.
    pub topic: &'static str,
    /// The schema as JSON.
    pub json: &'static str,
}

/// Every schema version, the current one of each topic first; older ones (`<topic>.v<n>.avsc`) follow.
pub const ALL: &[SchemaText] = &[
    SchemaText { topic: "recalls", json: include_str!("../avro/recalls.avsc") },
    SchemaText { topic: "accounts", json: include_str!("../avro/accounts.avsc") },
    SchemaText { topic: "rejected", json: include_str!("../avro/rejected.avsc") },
    SchemaText { topic: "changes.recalls", json: include_str!("../avro/changes.recalls.avsc") },
    SchemaText { topic: "changes.accounts", json: include_str!("../avro/changes.accounts.avsc") },
    SchemaText { topic: "imports", json: include_str!("../avro/imports.avsc") },
];

impl SchemaText {
    /// Its CRC-64-AVRO fingerprint, as [`fingerprint_hex`] prints it; `None` if the text is no schema.
    #[must_use]
    pub fn fingerprint_hex(&self) -> Option<String> {
        self.json.parse::<Schema>().ok().map(|schema| hex_of(&schema))
    }
}

/// How values are framed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// C3 01, then the 8-byte little-endian CRC-64-AVRO fingerprint.
    #[default]
    SingleObject,
    /// 0x00, then the 4-byte big-endian id that a schema registry gave.
    Confluent(u32),
}

/// Why bytes could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The topic has no schema.
    #[error("topic {0} has no schema")]
    NoSchema(String),
    /// The bytes begin with no framing known here.
    #[error("the value of {0} bytes is not framed as Avro")]
    NotFramed(usize),
    /// The fingerprint belongs to no schema kept here.
    #[error("no schema has the fingerprint {0:016x}")]
    UnknownFingerprint(u64),
    /// The datum does not fit its schema.
    #[error("the value cannot be read with its schema")]
    Read(#[source] serde_avro_fast::de::DeError),
    /// The value does not fit its schema.
    #[error("the value cannot be written with its schema")]
    Write(#[source] serde_avro_fast::ser::SerError),
}

struct Known {
    current: HashMap<&'static str, &'static Schema>,
    by_fingerprint: HashMap<[u8; 8], &'static Schema>,
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let mut known = Known { current: HashMap::new(), by_fingerprint: HashMap::new() };
    for text in ALL {
        // A schema that does not parse is a bug in this crate; a test reads them all, so that it cannot ship.
        let Ok(schema) = text.json.parse::<Schema>() else { continue };
        let schema: &'static Schema = Box::leak(Box::new(schema));
        known.current.entry(text.topic).or_insert(schema);
        known.by_fingerprint.insert(*schema.rabin_fingerprint(), schema);
    }
    known
});

/// Writes values of one topic.
pub struct Encoder {
    config: SerializerConfig<'static>,
    /// Where a value grows before its length is known.
    buffer: Vec<u8>,
    framing: Framing,
    fingerprint: [u8; 8],
}

impl Encoder {
    /// An encoder for a topic's current schema.
    ///
    /// # Errors
    /// [`Error::NoSchema`].
    pub fn new(topic: &str, framing: Framing) -> Result<Self, Error> {
        let schema = KNOWN.current.get(topic).copied().ok_or_else(|| Error::NoSchema(topic.to_owned()))?;
        Ok(Self { config: SerializerConfig::new(schema), buffer: Vec::new(), framing, fingerprint: *schema.rabin_fingerprint() })
    }

    /// One framed value.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn encode<T: Serialize>(&mut self, value: &T) -> Result<Vec<u8>, Error> {
        let mut out = std::mem::take(&mut self.buffer);
        out.clear();
        match self.framing {
            Framing::SingleObject => {
                out.extend_from_slice(&[0xc3, 0x01]);
                out.extend_from_slice(&self.fingerprint);
            }
            Framing::Confluent(id) => {
                out.push(0);
                out.extend_from_slice(&id.to_be_bytes());
            }
        }
        self.buffer = serde_avro_fast::to_datum(value, out, &mut self.config).map_err(Error::Write)?;
        Ok(self.buffer.clone())
    }
}

/// The schema and the datum of a framed value of `topic`.
fn unframe<'a>(topic: &str, value: &'a [u8]) -> Result<(&'static Schema, &'a [u8]), Error> {
    if let Some((fingerprint, datum)) = value.strip_prefix(&[0xc3, 0x01]).and_then(|rest| rest.split_first_chunk::<8>()) {
        let schema = KNOWN.by_fingerprint.get(fingerprint).copied();
        return schema.map(|schema| (schema, datum)).ok_or(Error::UnknownFingerprint(u64::from_le_bytes(*fingerprint)));
    }
    if let Some((_id, datum)) = value.strip_prefix(&[0x00]).and_then(|rest| rest.split_first_chunk::<4>()) {
        let schema = KNOWN.current.get(topic).copied();
        return schema.map(|schema| (schema, datum)).ok_or_else(|| Error::NoSchema(topic.to_owned()));
    }
    Err(Error::NotFramed(value.len()))
}

/// Reads one framed value of `topic`.
///
/// # Errors
/// When the framing, the fingerprint or the datum cannot be read.
pub fn decode<T: DeserializeOwned>(topic: &str, value: &[u8]) -> Result<T, Error> {
    let (schema, datum) = unframe(topic, value)?;
    serde_avro_fast::from_datum_slice(datum, schema).map_err(Error::Read)
}

/// Like [`decode`], borrowing from the value where the type can.
///
/// # Errors
/// As [`decode`].
pub fn decode_borrowed<'a, T: Deserialize<'a>>(topic: &str, value: &'a [u8]) -> Result<T, Error> {
    let (schema, datum) = unframe(topic, value)?;
    serde_avro_fast::from_datum_slice(datum, schema).map_err(Error::Read)
}

/// The hash of a framed value's datum: the link that the next change of a topic names.
///
/// # Errors
/// When the framing cannot be read.
pub fn datum_hash(topic: &str, value: &[u8]) -> Result<Hash32, Error> {
    unframe(topic, value).map(|(_, datum)| Hash32::of(datum))
}

/// The fingerprint of a topic's current schema, as 16 hex digits (big endian, the usual way to print it).
#[must_use]
pub fn fingerprint_hex(topic: &str) -> Option<String> {
    KNOWN.current.get(topic).map(|schema| hex_of(schema))
}

fn hex_of(schema: &Schema) -> String {
    format!("{:016x}", u64::from_le_bytes(*schema.rabin_fingerprint()))
}
