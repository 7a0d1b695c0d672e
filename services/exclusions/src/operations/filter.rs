//! Filters of exclusions, hits, candidates and contradictions.

use crate::person::PersonName;
use crate::record::{CANDIDATE, CONTRADICTION, Exclusion, KINDS};
use matching::company::CompanyName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use feed::filter::{self, Field, Fields, TermQuery};
use feed::text_field;
use operation::problem::Problem;

/// The letters and digits of a unique entity id.
const UEI_CHARS: usize = 12;

/// A filter: a record matches if it matches every given field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Filter {
    /// `exclusion` (a row of the list), `hit` (an excluded entity that has federal awards), `candidate` (a contract that ends and can be bid again) or
    /// `contradiction` (an annual report that is compared with federal awards).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20))]
    pub kind: Option<String>,
    /// Unique entity id, 12 letters and digits in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 12, max = 12))]
    pub uei: Option<String>,
    /// The excluding agency, a short code in any case: EPA.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 60))]
    pub agency: Option<String>,
    /// The whole name of a company or person. Legal forms, case, accents and signs do not matter. A part of a name finds nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 300))]
    pub name: Option<String>,
    /// Whether to include late news: exclusions that were entered more than 30 days before they were recorded. By default it is left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub include_backfill: bool,
}

/// The keys by which records with a name are found.
#[must_use]
pub fn keys_of(name: &str) -> Vec<String> {
    let person = PersonName::new(name).map(|name| format!("person/{}", name.key()));
    CompanyName::new(name).map(|name| name.exact_keys()).unwrap_or_default().into_iter().chain(person).collect()
}

/// A unique entity id in capitals.
///
/// # Errors
/// `parameter-invalid`, naming the parameter.
pub fn uei(parameter: &str, text: &str) -> Result<String, Problem> {
    let uei = text.trim().to_ascii_uppercase();
    if uei.len() == UEI_CHARS && uei.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(uei);
    }
    Err(Problem::parameter(parameter, format!("{text:?} is not a unique entity id, which has {UEI_CHARS} letters and digits")))
}

/// A name that can be searched for.
///
/// # Errors
/// `parameter-invalid`, naming the parameter.
pub fn name(parameter: &str, text: &str) -> Result<String, Problem> {
    let name = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if keys_of(&name).is_empty() {
        return Err(Problem::parameter(parameter, format!("{text:?} is not a name: it has no letter or digit, or too many words")));
    }
    Ok(name)
}

impl filter::Filter for Filter {
    type Record = Exclusion;

    const FIELDS: Fields<Self> = &[
        text_field!(kind).one_of(&KINDS).equal_to(|record| &record.kind).found_by_term(4, "kind"),
        text_field!(uei).read_by(uei).equal_to(|record| &record.uei).found_by_term(1, "uei").with_codes("uei"),
        text_field!(agency).same_term_as(|record| &record.excluding_agency).found_by_term(3, "agency").with_codes("agency"),
        text_field!(name)
            .read_by(name)
            .selecting(|record, name| keys_of(name).iter().any(|key| record.name_keys.contains(key)))
            .found_by(2, |filter| filter.name.as_deref().map(|name| TermQuery::Exact("name", keys_of(name))))
            .with_names("name"),
        Field::<Self, Exclusion>::backfill(|filter| filter.include_backfill),
    ];

    fn contradiction(&self) -> Option<String> {
        let kind = self.kind.as_deref().filter(|kind| [CANDIDATE, CONTRADICTION].contains(kind))?;
        let given = [("uei", self.uei.is_some()), ("agency", self.agency.is_some()), ("name", self.name.is_some())];
        let field = filter::first_given(&given)?;
        Some(format!("no record can match: `{field}` matches exclusions and hits only, `kind` {kind} none of them"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feed::filter::{Element, Filter as _};
    use feed::testing::filters::filter_of;
    use serde_json::json;

    /// Proves that every condition counts, that values are checked and normalized, and how changes are found.
    #[test]
    fn conditions() {
        let change = json!({"event": "new", "seq": 1, "recordedAt": "", "record": {
            "id": "sam:1", "kind": "exclusion", "name": "Acme Freight, LLC", "uei": "ABCDEF123456", "excludingAgency": "EPA",
            "nameKeys": keys_of("Acme Freight, LLC"),
        }});
        let change: Element<Exclusion> = serde_json::from_value(change).unwrap();
        for (filter, fits) in [
            (json!({}), true),
            (json!({"kind": "Exclusion", "uei": "abcdef123456", "agency": "epa", "name": "ACME FREIGHT INC"}), true),
            (json!({"kind": "hit"}), false),
            (json!({"uei": "ABCDEF123457"}), false),
            (json!({"agency": "HHS"}), false),
            (json!({"name": "Acme"}), false),
            (json!({"name": "Acme Frieght"}), false),
        ] {
            assert_eq!(filter_of::<Filter>(&filter).unwrap().matches(&change), fits, "{filter}");
        }
        for (filter, is_noted) in [
            (json!({"kind": "Candidate", "uei": "ABCDEF123456"}), true),
            (json!({"kind": "contradiction", "agency": "EPA"}), true),
            (json!({"kind": "contradiction", "name": "Acme Freight"}), true),
            (json!({"kind": "hit", "uei": "ABCDEF123456", "agency": "EPA", "name": "Acme Freight"}), false),
            (json!({"kind": "candidate"}), false),
        ] {
            assert_eq!(filter_of::<Filter>(&filter).unwrap().contradiction().is_some(), is_noted, "{filter}");
        }
        for (filter, parameter) in [
            (json!({"kind": "hits"}), "kind"),
            (json!({"uei": "ABCDEF12345"}), "uei"),
            (json!({"uei": "ABCDEF-12345"}), "uei"),
            (json!({"name": "--"}), "name"),
        ] {
            assert_eq!(filter_of::<Filter>(&filter).unwrap_err().parameter, parameter);
        }
        let filter: Filter = filter_of(&json!({"name": "Ann  B Lee", "uei": "abcdef123456"})).unwrap();
        assert_eq!(filter.canonical(), r#"{"uei":"ABCDEF123456","name":"Ann B Lee"}"#);
        assert_eq!(filter.term_queries().first(), Some(&TermQuery::Exact("uei", vec!["ABCDEF123456".to_owned()])));
        assert!(keys_of("Ann B Lee").contains(&"person/ANN B LEE".to_owned()));
    }
}
