//! The kinds of facts, one file each: the record types that upstreams fill and services read.

pub mod awards;
pub mod businesses;
pub mod carriers;
pub mod company_facts;
pub mod directives;
pub mod exclusions;
pub mod filings;
pub mod grants;
pub mod insider_trades;
pub mod liens;
pub mod marks;
pub mod meetings;
pub mod mentions;
pub mod parcels;
pub mod permits;
pub mod recalls;
pub mod sales;
pub mod statements;
pub mod stock;
#[cfg(test)]
mod testing;
pub mod trials;

use serde::Serialize;

use crate::avro::{Encoder, Error};
use crate::event::Fact;
use crate::topics::{self, Topic};

/// Defines [`FactData`] from one line per kind: its name, its record, its topic. A module has the name of its topic.
macro_rules! kinds {
    ($($kind:ident($module:ident::$record:ident) = $topic:ident;)+) => {
        /// The record of an observed fact of any kind. It serializes as the record alone.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
        #[serde(untagged)]
        pub enum FactData {
            $(
                #[doc = concat!("A record of the topic `", stringify!($module), "`.")]
                $kind(Box<$module::$record>),
            )+
        }

        impl FactData {
            /// Returns the topic of this kind of fact.
            #[must_use]
            pub fn topic(&self) -> &'static Topic {
                match self {
                    $(Self::$kind(_) => &topics::$topic,)+
                }
            }

            /// Returns the canonical form that is hashed.
            #[must_use]
            pub fn canonical(&self) -> Vec<u8> {
                match self {
                    $(Self::$kind(data) => data.canonical(),)+
                }
            }
        }
    };
}

kinds! {
    Award(awards::AwardFact) = AWARDS;
    Business(businesses::BusinessFact) = BUSINESSES;
    Carrier(carriers::CarrierFact) = CARRIERS;
    CompanyFact(company_facts::CompanyFact) = COMPANY_FACTS;
    Directive(directives::DirectiveFact) = DIRECTIVES;
    Exclusion(exclusions::ExclusionFact) = EXCLUSIONS;
    Filing(filings::FilingFact) = FILINGS;
    Grant(grants::GrantFact) = GRANTS;
    InsiderTrade(insider_trades::InsiderTradeFact) = INSIDER_TRADES;
    Lien(liens::LienFact) = LIENS;
    Mark(marks::MarkFact) = MARKS;
    Meeting(meetings::MeetingFact) = MEETINGS;
    Mention(mentions::MentionFact) = MENTIONS;
    Parcel(parcels::ParcelFact) = PARCELS;
    Permit(permits::PermitFact) = PERMITS;
    Recall(recalls::RecallFact) = RECALLS;
    Sale(sales::SaleFact) = SALES;
    Statement(statements::StatementFact) = STATEMENTS;
    Stock(stock::StockFact) = STOCK;
    Trial(trials::TrialFact) = TRIALS;
}

/// Encodes a fact of any kind for its topic.
///
/// # Errors
/// When the value does not fit its schema.
pub fn encode(encoder: &mut Encoder, fact: Fact<&FactData, &str>) -> Result<Vec<u8>, Error> {
    encoder.encode(&fact)
}
