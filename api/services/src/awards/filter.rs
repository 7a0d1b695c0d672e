//! Which awards a feed, a list or a watch shows.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use schemas::views::awards::Award;
use schemas::views::records::normal;
use serde::{Deserialize, Serialize};

use super::Change;
use super::records::dollars;
use feed::filter::{self, TermQuery, contains, has_words};
use operation::problem::Problem;

/// Prefixes of industry codes that may be given.
const NAICS_MAX: usize = 50;

/// Awards that fit all of what is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Filter {
    /// Beginnings of industry codes, two to six digits: `5415` takes all of computer systems design.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub naics: Vec<String>,
    /// Part of the name of the awarding department, or of the agency within it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 200))]
    pub agency: Option<String>,
    /// Part of the name of the recipient, or of its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 200))]
    pub recipient: Option<String>,
    /// Words that must all occur in what is bought, what the action says or the words of its codes, each as a word or the beginning of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub keyword: Option<String>,
    /// At least so many dollars obligated in total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_amount: Option<f64>,
    /// At most so many dollars obligated in total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_amount: Option<f64>,
}

impl Filter {
    /// The filter with its codes in order.
    ///
    /// # Errors
    /// When a code is none.
    pub fn checked(mut self) -> Result<Self, Problem> {
        for code in &mut self.naics {
            *code = code.trim().to_owned();
            if !(2..=6).contains(&code.len()) || !code.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(Problem::parameter(
                    "naics",
                    format!("naics: {code:?} is not the beginning of an industry code, two to six digits"),
                ));
            }
        }
        if self.naics.len() > NAICS_MAX {
            return Err(Problem::parameter("naics", format!("naics: more than {NAICS_MAX} codes")));
        }
        for text in [&mut self.agency, &mut self.recipient, &mut self.keyword] {
            *text = text.as_deref().map(normal).filter(|text| !text.is_empty());
        }
        self.naics.sort_unstable();
        self.naics.dedup();
        Ok(self)
    }

    /// Whether an award fits.
    #[must_use]
    pub fn takes(&self, award: &Award) -> bool {
        let amount = award.amount_cents.map(dollars);
        (self.naics.is_empty() || self.naics.iter().any(|prefix| award.naics.starts_with(prefix)))
            && self.agency.as_deref().is_none_or(|part| [&award.agency, &award.sub_agency].iter().any(|name| contains(name, part)))
            && self
                .recipient
                .as_deref()
                .is_none_or(|part| [&award.recipient, &award.parent_recipient].iter().any(|name| contains(name, part)))
            && self.keyword.as_deref().is_none_or(|words| {
                has_words(&[&award.description, &award.action_description, &award.naics_description, &award.psc_description], words)
            })
            && self.min_amount.is_none_or(|least| amount.is_some_and(|amount| amount >= least))
            && self.max_amount.is_none_or(|most| amount.is_some_and(|amount| amount <= most))
    }
}

impl filter::Filter for Filter {
    type Record = Award;

    fn matches(&self, change: &Change) -> bool {
        self.takes(&change.record)
    }

    fn term_queries(&self) -> Vec<TermQuery> {
        let part = |dimension: &'static str, value: &Option<String>| value.clone().map(|part| TermQuery::Part(dimension, part));
        let naics = (!self.naics.is_empty()).then(|| TermQuery::Prefix("naics", self.naics.clone()));
        [part("recipient", &self.recipient), naics, part("agency", &self.agency)].into_iter().flatten().collect()
    }
}

/// Codes as a parameter: a text in which commas separate them, or an array of texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Given")]
pub struct Codes(pub Vec<String>);

/// Codes as they are given.
#[derive(Deserialize)]
#[serde(untagged)]
enum Given {
    One(String),
    Many(Vec<String>),
}

impl From<Given> for Codes {
    fn from(given: Given) -> Self {
        let given = match given {
            Given::One(codes) => vec![codes],
            Given::Many(codes) => codes,
        };
        Self(given.iter().flat_map(|codes| codes.split(',')).map(str::trim).filter(|code| !code.is_empty()).map(str::to_owned).collect())
    }
}

impl JsonSchema for Codes {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Codes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "array"],
            "minLength": 2,
            "maxLength": 400,
            "pattern": "[0-9]",
            "items": {"type": "string", "pattern": "[0-9]"},
            "maxItems": NAICS_MAX
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feed::filter::Filter as _;

    /// Proves which awards fit which conditions.
    #[test]
    fn conditions() {
        let award = Award {
            naics: "541512".into(),
            agency: "Department of Energy".into(),
            sub_agency: "Office of Science".into(),
            recipient: "ACME FEDERAL LLC".into(),
            parent_recipient: "ACME HOLDINGS INC".into(),
            description: "Cloud migration support".into(),
            amount_cents: Some(1_250_000),
            ..Award::default()
        };
        let of = |json: serde_json::Value| -> Filter { serde_json::from_value::<Filter>(json).unwrap().checked().unwrap() };
        for (json, fits) in [
            (serde_json::json!({}), true),
            (
                serde_json::json!({"naics": ["61", "5415"], "agency": "science", "recipient": "acme holdings", "keyword": "CLOUD migr"}),
                true,
            ),
            (serde_json::json!({"naics": ["5416"]}), false),
            (serde_json::json!({"agency": "defense"}), false),
            (serde_json::json!({"keyword": "loud"}), false),
            (serde_json::json!({"minAmount": 12500, "maxAmount": 12500}), true),
            (serde_json::json!({"maxAmount": 12499.99}), false),
        ] {
            assert_eq!(of(json.clone()).takes(&award), fits, "{json}");
        }
        for wrong in ["5", "5415123", "54x"] {
            let filter = Filter { naics: vec![wrong.into()], ..Filter::default() };
            assert_eq!(filter.checked().unwrap_err().parameter, "naics", "{wrong}");
        }
        assert_eq!(of(serde_json::json!({"naics": ["61", "54", "61"]})).canonical(), r#"{"naics":["54","61"]}"#);
        for given in [serde_json::json!("54,61, 23 "), serde_json::json!(["54,61", " 23 "]), serde_json::json!(["54", "61", "23"])] {
            assert_eq!(serde_json::from_value::<Codes>(given).unwrap().0, ["54", "61", "23"]);
        }
    }
}
