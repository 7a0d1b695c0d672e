//! A directive that may apply, as answers show it.

use directives::Verdict;
use schemars::JsonSchema;
use schemas::views::aviation::{AirworthinessDirective, DirectiveLimit, DirectiveModel};
use serde::Serialize;

/// A directive that may apply.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DirectiveMatch {
    /// The number of the directive.
    pub ad_number: String,
    /// Title of the document.
    pub title: String,
    /// The holder of the type certificate as the text names it.
    pub make: String,
    /// The models that the text names.
    pub models: Vec<String>,
    /// `MATCH`: the text names the model or its series. `POSSIBLE`: it may mean the model, or could not be read.
    #[serde(rename = "match")]
    pub verdict: Verdict,
    /// Why the directive may apply.
    pub reasons: Vec<directives::Reason>,
    /// The text that names the model, or the text that could not be read.
    pub span: String,
    /// What the text cannot decide.
    pub cannot_decide: Vec<directives::CannotDecide>,
    /// `all` aircraft of the models, `certain` ones, or `unknown`.
    pub scope: String,
    /// `aircraft`, `engine`, `propeller` or `appliance`.
    pub product: String,
    /// Effective date, YYYY-MM-DD; empty if unknown.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub effective_date: String,
    /// `current`, `corrected` or `superseded`.
    pub status: String,
    /// Numbers of the directives that this one replaces.
    pub supersedes: Vec<String>,
    /// Number of the directive that replaces this one; empty if none does.
    pub superseded_by: String,
    /// Whether the actions recur: `yes`, `no` or `unknown`.
    pub recurring: String,
    /// The limits that the text states.
    pub limits: Vec<DirectiveLimit>,
    /// The paragraph on the unsafe condition.
    pub unsafe_condition: String,
    /// URL of the document.
    pub url: String,
    /// Number of the document.
    pub document_number: String,
}

impl DirectiveMatch {
    /// What is shown of a directive, without what depends on an aircraft: verdict, reasons, span and what the text cannot decide.
    #[must_use]
    pub fn of(record: AirworthinessDirective) -> Self {
        let name = |model: DirectiveModel| (model.role == "applies").then_some(model.name);
        Self {
            ad_number: record.ad_number,
            title: record.title,
            make: record.make,
            models: record.models.into_iter().filter_map(name).collect(),
            verdict: Verdict::None,
            reasons: Vec::new(),
            span: String::new(),
            cannot_decide: Vec::new(),
            scope: record.scope,
            product: record.product,
            effective_date: record.effective_date,
            status: record.status,
            supersedes: record.supersedes,
            superseded_by: record.superseded_by,
            recurring: record.recurring,
            limits: record.limits,
            unsafe_condition: record.unsafe_condition,
            url: record.url,
            document_number: record.document_number,
        }
    }
}
