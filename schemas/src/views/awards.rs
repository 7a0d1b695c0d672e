//! The rows of the awards service: one record per federal contract award.

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::records::{Record, Term};
use crate::details::ChangeRecord;
use crate::news::{AWARD_NEWS_DAYS, News};
pub use texts::dollars::Dollars;
use texts::numbers::compact;

/// An award as readers see it, with its latest action. `""` and `None` mean unknown; amounts are US cents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "RecordedAward")]
pub struct Award {
    /// The award's permanent id.
    pub id: String,
    /// The agency's own number (PIID).
    pub piid: String,
    /// PIID of the vehicle under which it was ordered.
    pub parent_piid: String,
    /// The award type as the upstream words it.
    pub award_type: String,
    /// Whether the award is a vehicle for orders.
    pub vehicle: bool,
    /// What is bought.
    pub description: String,
    /// Legal name of the recipient.
    pub recipient: String,
    /// Unique entity id of the recipient.
    pub recipient_uei: String,
    /// Legal name of the recipient's parent.
    pub parent_recipient: String,
    /// Unique entity id of the recipient's parent.
    pub parent_recipient_uei: String,
    /// Name of the awarding department.
    pub agency: String,
    /// Name of the awarding agency within that department.
    pub sub_agency: String,
    /// The awarding office.
    pub office: String,
    /// Industry code (NAICS).
    pub naics: String,
    /// Description of the industry code.
    pub naics_description: String,
    /// Product or service code (PSC).
    pub psc: String,
    /// Description of the product or service code.
    pub psc_description: String,
    /// The total obligated amount.
    pub amount_cents: Option<i64>,
    /// The total amount paid out, as the upstream last reported it.
    pub outlays_cents: Option<i64>,
    /// Value with all options.
    pub ceiling_cents: Option<i64>,
    /// Day of the base action.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub signed: String,
    /// First day of performance.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub start: String,
    /// Last day of the periods exercised so far.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub end: String,
    /// Last day if all options are used.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub potential_end: String,
    /// Two-letter state where the work is done.
    pub place_state: String,
    /// The extent of competition.
    pub extent_competed: String,
    /// The number of offers received.
    pub offers: String,
    /// The type of set-aside.
    pub set_aside: String,
    /// URL of the award's page.
    pub url: String,
    /// Day of the latest known action.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub action_date: String,
    /// Number of that action: `0` for the base.
    pub modification: String,
    /// What that action does, one letter.
    pub action_type: String,
    /// The amount that the action adds to the obligation, negative if it reduces it.
    pub action_cents: Option<i64>,
    /// Description of that action.
    pub action_description: String,
    /// The sum of all known actions. The difference between two versions is what a change adds.
    pub actions_cents: i64,
    /// Whether the base action is known.
    pub base_known: bool,
    /// Whether the award is gone from its upstream.
    pub withdrawn: bool,
}

impl Award {
    /// Returns the day of the last known action, or else the day when the award was signed.
    #[must_use]
    pub fn last_day(&self) -> &str {
        if self.action_date.is_empty() { &self.signed } else { &self.action_date }
    }
}

impl ChangeRecord for Award {
    type Details = AwardDetails;

    const COMPARED: &'static [&'static str] = &["amountDelta"];

    fn is_in_tables(&self) -> bool {
        self.is_listed()
    }

    /// By the day of the last known action.
    fn news(&self) -> Option<News> {
        News::of_text(self.last_day(), AWARD_NEWS_DAYS)
    }

    /// What changes of awards say since they are marked follows from more than this. Of those that an older version recorded, the day of the action decides.
    fn is_backfill(&self, details: &AwardDetails, _is_new: bool, recorded: Date) -> bool {
        details.action.as_ref().is_some_and(|action| action.is_late(recorded))
    }
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
            Term::new("piid", &compact(&self.piid)),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// The change details of an award's changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AwardDetails {
    /// The change of the award's total obligation, US dollars: of a new record the whole amount. Null if the amount before or after is unknown, or if
    /// the caller is not shown the award as it was before.
    pub amount_delta: Option<Dollars>,
    /// The action that the change was decided from. It need not be the latest one of the award.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionDetails>,
}

/// An action on an award, as its change shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ActionDetails {
    /// Day of the action, `YYYY-MM-DD`.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub date: String,
    /// Number of the action's modification: `0` for the base.
    pub modification: String,
    /// What the action does, one letter.
    #[serde(rename = "type")]
    pub kind: String,
    /// Description of the action.
    pub description: String,
    /// What the action adds to the obligation, US dollars, negative if it reduces it. Left out if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<Dollars>,
}

impl ActionDetails {
    /// Whether the action happened too long before a day to be news if it is recorded first on that day.
    #[must_use]
    pub fn is_late(&self, recorded: Date) -> bool {
        News::of_text(&self.date, AWARD_NEWS_DAYS).is_some_and(|news| news.is_late(recorded))
    }
}

crate::record_tables!("awards");

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that change details that older versions stored can be read.
    #[test]
    fn details_of_older_versions() {
        let old = r#"{"amountDelta":5.25,"action":{"date":"2025-01-02","modification":"0","type":"","description":"x"}}"#;
        let details: AwardDetails = serde_json::from_str(old).unwrap();
        assert_eq!(details.amount_delta, Some(Dollars { cents: 525 }));
        assert_eq!(serde_json::to_string(&details).unwrap(), old);
    }
}
