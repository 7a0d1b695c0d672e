//! The kinds of facts: one file each, with the record type that upstreams fill and services read.

pub mod recalls;

use crate::avro::{Encoder, Error};
use crate::event::Fact;
use crate::facts::recalls::RecallFact;
use crate::topics::{RECALLS, Topic};

/// The record of an observed fact, of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FactData {
    /// For topic `recalls`.
    Recall(Box<RecallFact>),
}

impl FactData {
    /// The topic of this kind of fact.
    #[must_use]
    pub fn topic(&self) -> &'static Topic {
        match self {
            Self::Recall(_) => &RECALLS,
        }
    }

    /// The canonical form that is hashed.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        match self {
            Self::Recall(data) => data.canonical(),
        }
    }
}

/// Writes a fact of any kind as its topic's value.
///
/// # Errors
/// When the value does not fit its schema.
pub fn encode(encoder: &mut Encoder, fact: Fact<&FactData, &str>) -> Result<Vec<u8>, Error> {
    let Fact { id, kind, key, version, prev_hash, content_hash, upstream, observed_at, superseded_by, data, run } = fact;
    // Without a record its type does not matter: every fact schema has the same envelope.
    let data = data.map(|FactData::Recall(data)| &**data);
    encoder.encode(&Fact { id, kind, key, version, prev_hash, content_hash, upstream, observed_at, superseded_by, data, run })
}
