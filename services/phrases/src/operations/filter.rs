//! The filter of the phrases service's feeds.

use crate::record::Phrase;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use velocity::label::Label;

use super::question::normal_phrase;
use feed::filter::{self, Field, Fields, TermQuery};
use feed::text_field;

/// A filter: changes match if they match every given field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Filter {
    /// One phrase, in any case; hyphens are blanks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub phrase: Option<String>,
    /// The label that a phrase has now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
}

impl filter::Filter for Filter {
    type Record = Phrase;

    const FIELDS: Fields<Self> = &[
        text_field!(phrase)
            .read_by(|_, phrase| normal_phrase(phrase))
            .equal_to(|record| &record.phrase)
            .found_by_term(1, "phrase")
            .with_names("phrase"),
        Field::<Self, Phrase>::new("label")
            .selecting_by(|filter, record| filter.label.is_none_or(|label| label.as_str() == record.label))
            .found_by(2, |filter| filter.label.map(|label| TermQuery::Exact("label", vec![label.as_str().to_owned()]))),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use feed::filter::{Element, Filter as _};

    /// Proves which changes match which filters, and how they are found.
    #[test]
    fn conditions() {
        let change = serde_json::json!({
            "event": "new", "seq": 1, "recordedAt": "", "previousLabel": "FLAT",
            "record": { "id": "1", "phrase": "agent mesh", "label": "RISING" }
        });
        let change: Element<Phrase> = serde_json::from_value(change).unwrap();
        let filter_from = |json: serde_json::Value| serde_json::from_value::<Filter>(json).unwrap().normalize().unwrap();
        for (filter, expected) in [
            (serde_json::json!({}), true),
            (serde_json::json!({ "phrase": "Agent-Mesh", "label": "RISING" }), true),
            (serde_json::json!({ "phrase": "agent" }), false),
            (serde_json::json!({ "label": "FLAT" }), false),
        ] {
            assert_eq!(filter_from(filter.clone()).matches(&change), expected, "{filter}");
        }
        let queries = filter_from(serde_json::json!({ "phrase": "Agent-Mesh" })).term_queries();
        assert_eq!(queries, [TermQuery::Exact("phrase", vec!["agent mesh".to_owned()])]);
        let wrong = Filter { phrase: Some("?!".to_owned()), label: None };
        assert_eq!(wrong.normalize().unwrap_err().parameter, "phrase");
    }
}
