//! The kinds of facts: one file each, with the record type that upstreams fill and services read.

mod canonical;
pub mod filings;
pub mod insider_trades;
pub mod recalls;

use crate::avro::{Encoder, Error};
use crate::event::Fact;
use crate::facts::filings::FilingFact;
use crate::facts::insider_trades::InsiderTradeFact;
use crate::facts::recalls::RecallFact;
use crate::topics::{FILINGS, INSIDER_TRADES, RECALLS, Topic};

/// The record of an observed fact, of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FactData {
    /// For topic `filings`.
    Filing(Box<FilingFact>),
    /// For topic `insider_trades`.
    InsiderTrade(Box<InsiderTradeFact>),
    /// For topic `recalls`.
    Recall(Box<RecallFact>),
}

impl FactData {
    /// The topic of this kind of fact.
    #[must_use]
    pub fn topic(&self) -> &'static Topic {
        match self {
            Self::Filing(_) => &FILINGS,
            Self::InsiderTrade(_) => &INSIDER_TRADES,
            Self::Recall(_) => &RECALLS,
        }
    }

    /// The canonical form that is hashed.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        match self {
            Self::Filing(data) => data.canonical(),
            Self::InsiderTrade(data) => data.canonical(),
            Self::Recall(data) => data.canonical(),
        }
    }
}

/// Writes a fact of any kind as its topic's value.
///
/// # Errors
/// When the value does not fit its schema.
pub fn encode<'a>(encoder: &mut Encoder, fact: Fact<&'a FactData, &'a str>) -> Result<Vec<u8>, Error> {
    match fact.data {
        Some(FactData::Filing(data)) => encoder.encode(&with(fact, Some(&**data))),
        Some(FactData::InsiderTrade(data)) => encoder.encode(&with(fact, Some(&**data))),
        Some(FactData::Recall(data)) => encoder.encode(&with(fact, Some(&**data))),
        // Without a record its type does not matter: every fact schema has the same envelope.
        None => encoder.encode(&with::<RecallFact>(fact, None)),
    }
}

/// The same envelope around a record of its own type.
fn with<'a, D>(fact: Fact<&'a FactData, &'a str>, data: Option<&'a D>) -> Fact<&'a D, &'a str> {
    let Fact { id, kind, key, version, prev_hash, content_hash, upstream, observed_at, superseded_by, data: _, run } = fact;
    Fact { id, kind, key, version, prev_hash, content_hash, upstream, observed_at, superseded_by, data, run }
}
