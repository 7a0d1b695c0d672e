//! Filters of leads.

use crate::record::Lead;
use crate::record::lexicon::{LEXICON, category};
use schemars::JsonSchema;
use schemas::names::hint;
use serde::{Deserialize, Serialize};
use texts::values::US_STATES;

use feed::filter::{self, Field, Fields};
use feed::text_field;
use operation::problem::Problem;

/// A filter of leads: a lead matches if it matches every given field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Filter {
    /// A category of purchases, a name of `/categories` in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 60))]
    pub category: Option<String>,
    /// State of the organisation, two letters in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 40))]
    pub state: Option<String>,
    /// Part of the organisation's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 200))]
    pub org: Option<String>,
    /// Part of the investigator's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 200))]
    pub pi: Option<String>,
    /// Activity code: R01.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10))]
    pub activity: Option<String>,
    /// Whether to include late news: leads with a notice of award of more than 120 days before they were recorded. By default it is left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub include_backfill: bool,
}

impl filter::Filter for Filter {
    type Record = Lead;

    const FIELDS: Fields<Self> = &[
        text_field!(category).read_by(category_named).same_term_as(|lead| &lead.category).found_by_term(4, "category"),
        text_field!(state).one_of(&US_STATES).same_term_as(|lead| &lead.state).found_by_term(3, "state"),
        text_field!(org).part_of(|lead| &lead.org).found_by_part(2, "org").with_names("org"),
        text_field!(pi).part_of(|lead| &lead.pi).found_by_part(1, "pi").with_names("pi"),
        text_field!(activity).same_term_as(|lead| &lead.activity_code).found_by_term(5, "activity").with_codes("activity"),
        Field::<Self, Lead>::backfill(|filter| filter.include_backfill),
    ];
}

/// The category with a name, as the lexicon spells it.
fn category_named(parameter: &'static str, name: &str) -> Result<String, Problem> {
    let names = || LEXICON.entries.iter().map(|category| category.name.as_str());
    category(name).map(str::to_owned).ok_or_else(|| {
        let known = names().collect::<Vec<_>>().join(", ");
        Problem::parameter(parameter, format!("{name:?} is not a category{}; the categories are: {known}", hint(name, names())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use feed::filter::{Filter as _, TermQuery};
    use feed::testing::filters::{assert_refuses, assert_takes, filter_of};
    use serde_json::json;

    /// Proves that every condition counts, that names are checked and normalized, and how leads are found.
    #[test]
    fn conditions() {
        let lead = Lead {
            category: "Computing".into(),
            state: "OH".into(),
            org: "RIVERTON CHILDRENS HOSPITAL".into(),
            pi: "Ada I Quill".into(),
            activity_code: "R01".into(),
            ..Lead::default()
        };
        let takes = [
            (json!({}), true),
            (json!({"category": "computing", "state": "oh", "org": "children", "pi": "quill", "activity": "r01"}), true),
            (json!({"category": "Electrophysiology"}), false),
            (json!({"state": "CA"}), false),
            (json!({"org": "rice"}), false),
            (json!({"pi": "rice"}), false),
            (json!({"activity": "R21"}), false),
        ];
        assert_takes::<Filter>(&lead, takes);
        assert_refuses::<Filter>([
            (json!({"category": "computer"}), "category", "Computing"),
            (json!({"state": "ZZ"}), "state", "ZZ"),
            (json!({"state": "Ohio"}), "state", "OH"),
        ]);
        let filter: Filter = filter_of(&json!({"state": "oh", "category": "COMPUTING"})).unwrap();
        assert_eq!(filter.canonical(), r#"{"category":"Computing","state":"OH"}"#);
        let of_state = TermQuery::Exact("state", vec!["OH".to_owned()]);
        assert_eq!(filter.term_queries().first(), Some(&of_state));
    }
}
