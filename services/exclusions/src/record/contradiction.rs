//! The comparison of an annual report with the federal awards of the company's group.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The verdicts of a comparison.
pub mod verdict {
    /// One side is missing, or the two sides are not about the same.
    pub const NOT_COMPARABLE: &str = "not_comparable";
    /// The known gaps between revenue and obligations explain the ratio.
    pub const CONSISTENT: &str = "consistent";
    /// They do not. That is a lead, not proof.
    pub const DIFFERS: &str = "differs";
    /// THE LIST.
    pub const ALL: [&str; 3] = [NOT_COMPARABLE, CONSISTENT, DIFFERS];
}

/// The reasons of a verdict.
pub mod reason {
    /// The report states no revenue from the government that a program can read.
    pub const NO_GOVERNMENT_REVENUE: &str = "NO_GOVERNMENT_REVENUE";
    /// No obligations of the fiscal year are recorded.
    pub const NO_OBLIGATIONS: &str = "NO_OBLIGATIONS";
    /// It is not sure enough that the recipients are the company's.
    pub const CROSSWALK_CONFIDENCE: &str = "CROSSWALK_CONFIDENCE";
    /// The revenue from the government is below 50 million dollars.
    pub const BELOW_50_MILLION: &str = "BELOW_50_MILLION";
    /// Obligations were read less than 120 days after the end of the year, when those of the Department of Defense are missing.
    pub const YEAR_END_RECENT: &str = "YEAR_END_RECENT";
    /// The group changed within the years.
    pub const MERGER: &str = "MERGER";
    /// Obligations are 0.4 to 2.5 times the revenue.
    pub const RATIO_IN_BAND: &str = "RATIO_IN_BAND";
    /// The ratio is within 35 % of that of the year before.
    pub const NEAR_OWN_RATIO: &str = "NEAR_OWN_RATIO";
    /// Neither.
    pub const RATIO_OUT_OF_BAND: &str = "RATIO_OUT_OF_BAND";
}

/// What an annual report says about revenue from the government, and what was obligated to the company's group in the same years. Amounts are US cents,
/// days `YYYY-MM-DD`; `""` and `None` mean unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "ReportComparison")]
pub struct Contradiction {
    /// The company's number with the securities regulator, 10 digits.
    pub cik: String,
    /// The fiscal year, as the report names it.
    pub fiscal_year: i64,
    /// Last day of the fiscal year.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub period_end: String,
    /// Accession number of the report.
    pub accession: String,
    /// Form type of the report.
    pub form: String,
    /// Day on which the report was filed.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub filed: String,
    /// File name of the report's instance; empty if it has none.
    pub file: String,
    /// Revenue of the year.
    pub revenue_cents: Option<i64>,
    /// Tag of the revenue.
    pub revenue_tag: String,
    /// Revenue of the year from the government.
    pub government_cents: Option<i64>,
    /// The share of the revenue that comes from the government, as the report states it, in millionths.
    pub share_millionths: Option<i64>,
    /// The customer that is the government, as the report tags it. A report that tags no customer can tag a risk by government contracts instead.
    pub member: String,
    /// The labels of the customer.
    pub label: String,
    /// Tag of the fact about the government.
    pub tag: String,
    /// Context of that fact in the instance.
    pub context: String,
    /// Further facts about the government as a customer, each with its amount: parts, or other shares.
    pub parts: Vec<CustomerPart>,
    /// Unique entity ids of the parents of the group's recipients.
    pub parent_ueis: Vec<String>,
    /// Obligations of the fiscal year.
    pub obligated_cents: Option<i64>,
    /// Payments of the fiscal year.
    pub outlays_cents: Option<i64>,
    /// The day since which the obligations of the year are recorded as they are.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub obligated_since: String,
    /// First day of the years that are compared.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub window_start: String,
    /// Last day of the years that are compared.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub window_end: String,
    /// How many years are compared: up to three, those of which both sides are known.
    pub years: i64,
    /// Revenue from the government in these years.
    pub government_sum_cents: Option<i64>,
    /// Obligations in these years.
    pub obligated_sum_cents: Option<i64>,
    /// Obligations as a percentage of the revenue, over these years.
    pub ratio_percent: Option<i64>,
    /// That percentage as it is for the fiscal year before; `None` if that year is not comparable.
    pub ratio_before_percent: Option<i64>,
    /// The verdict, see [`verdict`].
    pub verdict: String,
    /// Why, see [`reason`].
    pub reasons: Vec<String>,
    /// How sure it is that the recipients are the company's: `low`, `medium` or `high`.
    pub confidence: String,
}

/// A fact about the government as a customer.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CustomerPart {
    /// The customer as the report tags it.
    pub member: String,
    /// The labels of the customer in the report.
    pub label: String,
    /// The revenue from the customer.
    pub cents: i64,
}
