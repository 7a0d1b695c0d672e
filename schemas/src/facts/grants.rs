//! A grant as a funder published it: one award of one fiscal year.

use serde::{Deserialize, Serialize};

use crate::canonical::{Kind, Order, canonical};

/// One award of one fiscal year of a project, as a funder published it. Strings are trimmed, white space collapsed; `""`, empty lists and
/// `None` mean unknown. Days are `YYYY-MM-DD`. Lists without a meaningful order are sorted, so that a reordered answer is not a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GrantFact {
    /// The stream: `nih_reporter`.
    #[serde(rename = "door")]
    pub stream: String,
    /// The funder's number of this award: RePORTER's application id, digits.
    pub number: String,
    /// The project number: `1R15DE032063-01A1`.
    pub project_number: String,
    /// The core project number, which all yearly awards of a project share: `R15DE032063`.
    pub core_project: String,
    /// Title, as the funder spells it.
    pub title: String,
    /// The contact principal investigator, as `First Middle Last` where the funder gives it so.
    pub pi: String,
    /// The funder's number of the principal investigator, digits.
    pub pi_number: String,
    /// All principal investigators, sorted; at most 50.
    pub investigators: Vec<String>,
    /// The funded organisation, as the funder spells it (mostly capitals).
    pub org: String,
    /// The type of the organisation: `SCHOOLS OF PHARMACY`, `Domestic For-Profits`.
    pub org_type: String,
    /// The department of the organisation, where one is given: `PHARMACOLOGY`.
    pub department: String,
    /// City of the organisation.
    pub city: String,
    /// State of the organisation, two letters; `""` abroad and for the funder's own laboratories.
    pub state: String,
    /// Country of the organisation: `UNITED STATES`.
    pub country: String,
    /// Unique entity identifier of the organisation.
    pub uei: String,
    /// The institute or centre that administers the award: `NIDCR`.
    pub ic: String,
    /// The name of that institute.
    pub ic_name: String,
    /// Amount of this fiscal year in whole dollars.
    pub amount: Option<i64>,
    /// The fiscal year (October to September).
    pub fiscal_year: Option<i64>,
    /// Type of the award: `1` new, `2` renewal, `3` supplement, `5` continuation, `4N`, `7` …
    pub award_type: String,
    /// Activity code: `R01`, `R21`, `K99`, `S10`, `ZIA` …
    pub activity_code: String,
    /// Funding mechanism: `Non-SBIR/STTR`, `SBIR/STTR`, `INTRAMURAL RESEARCH` …
    pub mechanism: String,
    /// The funding announcement: `PAR-19-134`.
    pub opportunity: String,
    /// Day of the notice of award; the first day of the budget if the funder gives no notice date.
    pub notice_date: String,
    /// Whether `notice_date` is the first day of the budget because there is no notice date.
    pub notice_from_budget: bool,
    /// First day of the budget of this award.
    pub budget_start: String,
    /// Last day of the budget of this award.
    pub budget_end: String,
    /// First day of the project.
    pub project_start: String,
    /// Last day of the project.
    pub project_end: String,
    /// Day on which the funder made the award public.
    pub added: String,
    /// The funder's preferred terms, sorted; at most 200.
    pub terms: Vec<String>,
    /// The funder's spending categories, sorted; at most 50.
    pub categories: Vec<String>,
    /// The beginning of the abstract; at most 1,000 characters.
    pub summary: String,
    /// Absolute https URL of the award's page.
    pub url: String,
}

/// Agencies other than NIH whose grants NIH's database contains.
const OTHER_AGENCIES: &[&str] = &["ACF", "AHRQ", "CDC", "FDA", "HRSA", "NIOSH", "SAMHSA", "VA"];

/// Returns the class of a grant's sponsor, by the code of the administering institute.
#[must_use]
pub fn grant_class(ic: &str) -> &'static str {
    if OTHER_AGENCIES.contains(&ic) { "OTHER_GOV" } else { "NIH" }
}

impl GrantFact {
    /// Returns the canonical form that is hashed: all fields.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        canonical(self, Order::ByKind([Kind::Text, Kind::Number, Kind::Flag, Kind::List]), &[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::testing;

    /// Proves that every field is hashed: changing it changes the canonical form.
    #[test]
    fn every_field_is_hashed() {
        testing::assert_all_fields_are_hashed(GrantFact::canonical, &[]);
    }
}
