//! The awards service's rows: federal contract awards, one record each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::records::{Record, Term};

/// An award as readers see it, with the action that was last taken on it. `""` and `None` stand for unknown; amounts are US cents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Award {
    /// The award's lasting id.
    pub id: String,
    /// The agency's own number.
    pub piid: String,
    /// Number of the vehicle it was ordered under.
    pub parent_piid: String,
    /// The upstream's words for its type.
    pub award_type: String,
    /// Whether it is a vehicle for orders.
    pub vehicle: bool,
    /// What is bought.
    pub description: String,
    /// Legal name of the recipient.
    pub recipient: String,
    /// Its unique entity id.
    pub recipient_uei: String,
    /// Legal name of its parent.
    pub parent_recipient: String,
    /// Unique entity id of its parent.
    pub parent_recipient_uei: String,
    /// Name of the awarding department.
    pub agency: String,
    /// Name of the agency within it.
    pub sub_agency: String,
    /// The awarding office.
    pub office: String,
    /// Industry code.
    pub naics: String,
    /// Its words.
    pub naics_description: String,
    /// Product or service code.
    pub psc: String,
    /// Its words.
    pub psc_description: String,
    /// Obligated in total.
    pub amount_cents: Option<i64>,
    /// Value with all options.
    pub ceiling_cents: Option<i64>,
    /// Day of the base action.
    pub signed: String,
    /// First day of performance.
    pub start: String,
    /// Last day of the periods exercised so far.
    pub end: String,
    /// Last day if all options are used.
    pub potential_end: String,
    /// Two-letter state where the work is done.
    pub place_state: String,
    /// How far it was competed.
    pub extent_competed: String,
    /// How many offers came.
    pub offers: String,
    /// Whom it was set aside for.
    pub set_aside: String,
    /// Page.
    pub url: String,
    /// Day of the last action known.
    pub action_date: String,
    /// Number of that action: `0` for the base.
    pub modification: String,
    /// What that action does, one letter.
    pub action_type: String,
    /// What that action adds to the obligation, or takes from it.
    pub action_cents: Option<i64>,
    /// What that action says it does.
    pub action_description: String,
    /// What all actions that are known add up to: by how much it moves is what a change adds.
    pub actions_cents: i64,
    /// Whether its base action is known.
    pub base_known: bool,
    /// Gone from its upstream.
    pub withdrawn: bool,
}

impl Record for Award {
    const SEARCHED: &'static [&'static str] = &["naics", "agency", "recipient"];

    fn id(&self) -> &str {
        &self.id
    }

    fn is_listed(&self) -> bool {
        !self.withdrawn
    }

    fn terms(&self) -> Vec<Term> {
        [
            Term::new("end", self.end.get(..7).unwrap_or_default()),
            Term::new("naics", &self.naics),
            Term::new("agency", &self.agency),
            Term::new("agency", &self.sub_agency),
            Term::new("recipient", &self.recipient),
            Term::new("recipient", &self.parent_recipient),
            Term::new("uei", &self.recipient_uei),
            Term::new("uei", &self.parent_recipient_uei),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

crate::record_tables!("awards");
