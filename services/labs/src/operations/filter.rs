//! Filters of leads.

use crate::record::Lead;
use crate::record::lexicon::{LEXICON, category};
use schemars::JsonSchema;
use schemas::names::hint;
use schemas::values::US_STATES;
use schemas::views::records::normal;
use serde::{Deserialize, Serialize};

use crate::Change;
use feed::filter::{self, Named, TermQuery, contains, is_one_of};
use operation::known::known_value;
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
    #[schemars(length(min = 2, max = 2))]
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
    /// Whether changes match that record something only now that happened long ago: a lead with a notice of award of more than 120 days before. By default they do not,
    /// because they are no news.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub include_backfill: bool,
}

impl Filter {
    /// Whether a lead matches the filter.
    #[must_use]
    pub fn takes(&self, lead: &Lead) -> bool {
        let is = |wanted: &Option<String>, fits: &dyn Fn(&String) -> bool| wanted.as_ref().is_none_or(fits);
        let exact = |own: &str, wanted: &String| is_one_of(own, std::slice::from_ref(wanted));
        is(&self.category, &|category| exact(&lead.category, category))
            && is(&self.state, &|state| exact(&lead.state, state))
            && is(&self.activity, &|code| exact(&lead.activity_code, code))
            && is(&self.org, &|part| contains(&lead.org, part))
            && is(&self.pi, &|part| contains(&lead.pi, part))
    }
}

impl filter::Filter for Filter {
    type Record = Lead;

    const NAMED: &'static [Named] = &[Named::name("org", "org"), Named::name("pi", "pi"), Named::code("activity", "activity")];

    fn normalize(mut self) -> Result<Self, Problem> {
        self.category = self.category.as_deref().map(category_named).transpose()?;
        self.state = self.state.as_deref().map(state_named).transpose()?;
        for text in [&mut self.org, &mut self.pi, &mut self.activity] {
            *text = text.as_deref().map(normal).filter(|text| !text.is_empty());
        }
        Ok(self)
    }

    fn matches(&self, change: &Change) -> bool {
        self.takes(&change.record)
    }

    fn includes_backfill(&self) -> bool {
        self.include_backfill
    }

    fn term_queries(&self) -> Vec<TermQuery> {
        let part = |dimension: &'static str, value: &Option<String>| value.clone().map(|part| TermQuery::Part(dimension, part));
        let exact = |dimension: &'static str, value: &Option<String>| value.clone().map(|value| TermQuery::Exact(dimension, vec![value]));
        // The most selective search first.
        let queries = [
            part("pi", &self.pi),
            part("org", &self.org),
            exact("state", &self.state),
            exact("category", &self.category),
            exact("activity", &self.activity),
        ];
        queries.into_iter().flatten().collect()
    }
}

/// The category with a name, as the lexicon spells it.
fn category_named(name: &str) -> Result<String, Problem> {
    let names = || LEXICON.entries.iter().map(|category| category.name.as_str());
    category(name).map(str::to_owned).ok_or_else(|| {
        let known = names().collect::<Vec<_>>().join(", ");
        Problem::parameter("category", format!("{name:?} is no category{}; the categories are: {known}", hint(name, names())))
    })
}

/// The two letters of a state or territory of the United States, in capitals.
fn state_named(text: &str) -> Result<String, Problem> {
    known_value("state", "state", text, &US_STATES).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use feed::filter::Filter as _;
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
        let of = |json: serde_json::Value| serde_json::from_value::<Filter>(json).unwrap().normalize();
        for (filter, fits) in [
            (json!({}), true),
            (json!({"category": "computing", "state": "oh", "org": "children", "pi": "quill", "activity": "r01"}), true),
            (json!({"category": "Electrophysiology"}), false),
            (json!({"state": "CA"}), false),
            (json!({"org": "rice"}), false),
            (json!({"pi": "rice"}), false),
            (json!({"activity": "R21"}), false),
        ] {
            assert_eq!(of(filter.clone()).unwrap().takes(&lead), fits, "{filter}");
        }
        for (filter, parameter, part) in [
            (json!({"category": "computer"}), "category", "Computing"),
            (json!({"state": "ZZ"}), "state", "ZZ"),
            (json!({"state": "Ohio"}), "state", "OH"),
        ] {
            let problem = of(filter).unwrap_err();
            assert_eq!(problem.parameter, parameter);
            assert!(problem.detail.contains(part), "{}", problem.detail);
        }
        let filter = of(json!({"state": "oh", "category": "COMPUTING"})).unwrap();
        assert_eq!(filter.canonical(), r#"{"category":"Computing","state":"OH"}"#);
        let of_state = TermQuery::Exact("state", vec!["OH".to_owned()]);
        assert_eq!(filter.term_queries().first(), Some(&of_state));
    }
}
