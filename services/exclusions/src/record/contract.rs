//! The contract of a candidate: what is stored of a contract that ends and may be bid again. What depends on the day, such as the days that are left,
//! is computed when it is read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kinds of signals that the fold finds.
pub mod signal {
    /// Two or more modifications in a row moved the end by at most six months each.
    pub const BRIDGE: &str = "BRIDGE_EXTENSIONS";
    /// Another recipient got a new award of the same office, industry and service.
    pub const RIVAL: &str = "RIVAL_MOMENTUM";
    /// The parent of the recipient changed.
    pub const PARENT_CHANGED: &str = "PARENT_CHANGED";
    /// At least 95 % of the value with all options is obligated.
    pub const CEILING: &str = "CEILING_REACHED";
    /// An action took obligated money back.
    pub const DEOBLIGATION: &str = "DEOBLIGATION";
    /// There was one offer, without competition.
    pub const SOLE_SOURCE: &str = "SOLE_SOURCE";
    /// The recipient had an earlier award of the same office, industry and service.
    pub const RENEWED: &str = "RENEWED_BEFORE";
    /// The last year brought at least half as much again as the years before did on average.
    pub const GROWTH: &str = "GROWTH";
    /// THE LIST.
    pub const ALL: [&str; 8] = [BRIDGE, RIVAL, PARENT_CHANGED, CEILING, DEOBLIGATION, SOLE_SOURCE, RENEWED, GROWTH];
}

/// A contract that can be bid again when it ends. `""` and `None` mean unknown; amounts are US cents, days `YYYY-MM-DD`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "EndingContract")]
pub struct Contract {
    /// The award's permanent id.
    pub award_id: String,
    /// Unique entity id of the recipient.
    pub recipient_uei: String,
    /// Unique entity id of the recipient's parent.
    pub parent_uei: String,
    /// Name of the awarding department.
    pub agency: String,
    /// The awarding office, or the agency within the department if the office is unknown.
    pub office: String,
    /// Industry code (NAICS).
    pub naics: String,
    /// Product or service code (PSC).
    pub psc: String,
    /// Day of the base action.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub signed: String,
    /// First day of performance.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub start: String,
    /// Last day of the periods exercised so far.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub current_end: String,
    /// Last day if all options are used.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub potential_end: String,
    /// The obligated amount.
    pub obligated_cents: i64,
    /// Value with all options.
    pub ceiling_cents: Option<i64>,
    /// Day of the latest action that exercised an option.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub last_option: String,
    /// Day of the latest action.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub last_action: String,
    /// What its data shows, one of each kind at most, in the order of kinds.
    pub signals: Vec<ContractSignal>,
}

/// What the data of awards shows about a contract that ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ContractSignal {
    /// The kind, see [`signal`].
    pub kind: String,
    /// The award that shows it, which can be another one.
    pub award_id: String,
    /// The day on which the signal began to hold.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub date: String,
    /// What the data says.
    pub detail: String,
}

impl Contract {
    /// The end with all options: the later one of the current and the potential end. A potential end before the current one occurs.
    #[must_use]
    pub fn end(&self) -> &str {
        // Days in this form are in the order of their texts.
        (&self.current_end).max(&self.potential_end)
    }
}
