//! Flags of exemptions in the records of the service.

use super::counts::COUNTS;
use schemars::JsonSchema;
use schemas::views::records::Place;
use serde::{Deserialize, Serialize};

/// The rules by which exemptions are flagged, and what each is about.
pub const RULES: [(&str, &str); 6] = [
    ("X1", "the mailing address is in another city or state than the parcel"),
    ("X2", "several parcels with a homestead exclusion have the same mailing address"),
    ("X3", "the owner is a company"),
    ("X4", "the use is vacant land, or more than 4 units"),
    ("X5", "the parcel of a company was sold after the first tax year with the homestead exclusion"),
    ("X6", "the tax code says that the parcel is exempt, and the use is not that of an institution"),
];

/// What the record of a parcel shows about its exemption. No conclusion about a person or a right.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "RecordedFlag")]
pub struct Flag {
    /// The rule: `X1` to `X6`.
    pub rule: String,
    /// What the record shows, as a sentence.
    pub statement: String,
    /// The fields of the record that it follows from.
    pub evidence: Vec<String>,
    /// The kind of the owner, as published: `CORPORATION`. No name is published. Empty in Cook County.
    pub owner: String,
    /// The city and state of the mailing address; empty if no rule is about them.
    pub mailing: String,
    /// The first day on which the homestead exclusion, or in Cook County the exemption, was read; empty without one.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub exempt_since: String,
    /// Whether the rule no longer flags the parcel.
    pub is_over: bool,
}

/// The name of the list of the flags of a county, of one rule or of all.
#[must_use]
pub fn flag_list(county: &str, rule: Option<&str>) -> String {
    rule.map_or_else(|| format!("flag/{county}"), |rule| format!("flag/{county}/{rule}"))
}

/// The name of the newest tax year of which exemptions of a county were read, see [`ExemptionYear`].
#[must_use]
pub fn exemption_year(county: &str) -> String {
    format!("{COUNTS}exemptions/{county}")
}

/// The newest tax year of which exemptions of a county were read; 0 before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExemptionYear {
    /// The tax year.
    pub tax_year: i64,
}

/// The name of the counts of the flags of a county: a map from the rule to how many parcels it flags, as JSON.
#[must_use]
pub fn flag_counts(county: &str) -> String {
    format!("{COUNTS}flags/{county}")
}

impl Flag {
    /// The places of the flag in lists, which are in the order of ids: by PIN.
    #[must_use]
    pub fn places(&self, county: &str) -> Vec<Place> {
        let lists = [flag_list(county, None), flag_list(county, Some(&self.rule))];
        lists.into_iter().map(|list| Place { list, bucket: 0, rank: 0 }).collect()
    }
}
