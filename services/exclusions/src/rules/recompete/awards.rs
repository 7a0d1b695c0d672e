//! What the decision state remembers of awards and of the awards of a need.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::record::Contract;

/// A year in days, for rates.
pub(super) const YEAR_DAYS: i32 = 365;

/// What is remembered of an award.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct KnownAward {
    /// The key of its need; empty without one.
    pub(super) need: String,
    pub(super) recipient: String,
    pub(super) parent_uei: String,
    /// The day since which the recipient has another parent.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) parent_changed: String,
    /// The newest actions of the award, in the order of day and number.
    pub(super) actions: Vec<Action>,
    /// The contract, if it can be a candidate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) contract: Option<Contract>,
    /// The day on which its candidate was decided as it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) decided: String,
    /// The score that it had before its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) outlook: Option<Outlook>,
    /// Where its outcome is counted: the month of its end, and the cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) counted: Option<(String, String)>,
}

/// The score of a contract 180 days before its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Outlook {
    /// The end. If it moves, the score is no longer that of 180 days before.
    pub(super) end: String,
    pub(super) score: i32,
}

/// An action on an award.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Action {
    pub(super) date: String,
    pub(super) number: String,
    pub(super) kind: String,
    pub(super) cents: i64,
    /// The end of the award when the action was seen.
    pub(super) end: String,
}

/// What is remembered of an award among those of its need.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct NeedAward {
    pub(super) signed: String,
    pub(super) uei: String,
    pub(super) parent_uei: String,
    /// Whether it can be a candidate, which changes with the others.
    pub(super) is_contract: bool,
    /// What is obligated for a year, in cents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rate: Option<i64>,
    /// The end of a contract with all options.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) end: String,
}

/// The awards of a need by id.
pub(super) type Need = BTreeMap<String, NeedAward>;

pub(super) fn award_key(id: &str) -> String {
    format!("award/{id}")
}

/// Whether the recipient of an award is that of a contract, or of the same parent.
pub(super) fn is_same(contract: &Contract, other: &NeedAward) -> bool {
    other.uei == contract.recipient_uei || !contract.parent_uei.is_empty() && other.parent_uei == contract.parent_uei
}

pub(super) fn day(text: &str) -> Option<Date> {
    text.parse().ok()
}

/// The days from one day to another; `None` if one of them is unknown.
pub(super) fn days_between(from: &str, to: &str) -> Option<i32> {
    Some((day(to)? - day(from)?).get_days())
}
