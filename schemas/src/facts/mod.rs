//! The kinds of facts: one file each, with the record type that upstreams fill and services read.

pub mod awards;
mod canonical;
pub mod filings;
pub mod grants;
pub mod insider_trades;
pub mod recalls;
pub mod trials;

use serde::Serialize;

use crate::avro::{Encoder, Error};
use crate::event::Fact;
use crate::facts::awards::AwardFact;
use crate::facts::filings::FilingFact;
use crate::facts::grants::GrantFact;
use crate::facts::insider_trades::InsiderTradeFact;
use crate::facts::recalls::RecallFact;
use crate::facts::trials::TrialFact;
use crate::topics::{AWARDS, FILINGS, GRANTS, INSIDER_TRADES, RECALLS, TRIALS, Topic};

/// The record of an observed fact, of any kind; written as the record alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum FactData {
    /// For topic `awards`.
    Award(Box<AwardFact>),
    /// For topic `filings`.
    Filing(Box<FilingFact>),
    /// For topic `grants`.
    Grant(Box<GrantFact>),
    /// For topic `insider_trades`.
    InsiderTrade(Box<InsiderTradeFact>),
    /// For topic `recalls`.
    Recall(Box<RecallFact>),
    /// For topic `trials`.
    Trial(Box<TrialFact>),
}

impl FactData {
    /// The topic of this kind of fact.
    #[must_use]
    pub fn topic(&self) -> &'static Topic {
        match self {
            Self::Award(_) => &AWARDS,
            Self::Filing(_) => &FILINGS,
            Self::Grant(_) => &GRANTS,
            Self::InsiderTrade(_) => &INSIDER_TRADES,
            Self::Recall(_) => &RECALLS,
            Self::Trial(_) => &TRIALS,
        }
    }

    /// The canonical form that is hashed.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        match self {
            Self::Award(data) => data.canonical(),
            Self::Filing(data) => data.canonical(),
            Self::Grant(data) => data.canonical(),
            Self::InsiderTrade(data) => data.canonical(),
            Self::Recall(data) => data.canonical(),
            Self::Trial(data) => data.canonical(),
        }
    }
}

/// Writes a fact of any kind as its topic's value.
///
/// # Errors
/// When the value does not fit its schema.
pub fn encode(encoder: &mut Encoder, fact: Fact<&FactData, &str>) -> Result<Vec<u8>, Error> {
    encoder.encode(&fact)
}
