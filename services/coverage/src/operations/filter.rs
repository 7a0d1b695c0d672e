//! Filters of coverage leads.

use crate::record::Lead;
use matching::mandates::{LINES, TRIGGERS};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use texts::values::US_STATES;

use super::SOURCES;
use feed::filter::{self, Fields, is_one_of};
use feed::text_field;
use operation::problem::Problem;

/// How firmly a line can follow.
const BASES: [&str; 4] = ["MANDATED", "CONDITIONAL", "LIKELY", "POSSIBLE"];

/// A filter of leads: a lead matches if it matches every given field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schemars(rename = "CoverageFilter")]
pub struct Filter {
    /// State of the registration, two letters in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 40))]
    pub state: Option<String>,
    /// Line of insurance: `AUTO_LIABILITY_BIPD`, `CARGO`, `SURETY_BOND`, `WORKERS_COMP`, `GENERAL_LIABILITY`, `LIQUOR_LIABILITY`,
    /// `PROFESSIONAL_LIABILITY` or `DIRECTORS_OFFICERS`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 40))]
    pub coverage_line: Option<String>,
    /// A source, any of those of a merged lead: a name of `/v1/sources`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20))]
    pub source: Option<String>,
    /// How firmly the line follows: `MANDATED`, `CONDITIONAL`, `LIKELY` or `POSSIBLE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20))]
    pub basis: Option<String>,
    /// The trigger: `new_carrier`, `authority_granted`, `insurance_lapse`, `entity_formed` or `foreign_registration`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 40))]
    pub trigger: Option<String>,
    /// Always refused, with the reason: the tier follows from the day on which a lead is read, so no change of a lead shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20))]
    pub tier: Option<String>,
}

impl filter::Filter for Filter {
    type Record = Lead;

    const FIELDS: Fields<Self> = &[
        text_field!(state).one_of(&US_STATES).same_term_as(|lead| &lead.state).found_by_term(1, "state"),
        text_field!("coverageLine", coverage_line).one_of(&LINES).same_term_as(|lead| &lead.coverage_line).found_by_term(2, "line"),
        text_field!(source).one_of(&SOURCES).selecting(|lead, source| is_one_of(source, &lead.sources)).found_by_term(4, "source"),
        text_field!(basis).one_of(&BASES).same_term_as(|lead| &lead.basis).found_by_term(5, "basis"),
        text_field!(trigger).one_of(&TRIGGERS).same_term_as(|lead| &lead.trigger).found_by_term(3, "trigger"),
    ];

    fn normalize(mut self) -> Result<Self, Problem> {
        if self.tier.is_some() {
            let reason = "tier: is no condition of changes, filters and watches, because it follows from the day on which a lead is read and changes without \
                a change of the lead; a lead is usually hot when it is recorded";
            return Err(Problem::parameter("tier", reason));
        }
        self.read_fields()?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feed::filter::{Filter as _, TermQuery};
    use feed::testing::filters::{assert_refuses, assert_takes, filter_of};
    use serde_json::json;

    /// Proves that every condition counts, that any source of a merged lead matches, and that values are checked and normalized.
    #[test]
    fn conditions() {
        let lead = Lead {
            state: "CO".into(),
            coverage_line: "CARGO".into(),
            source: "fmcsa".into(),
            sources: vec!["fmcsa".into(), "sos-co".into()],
            basis: "LIKELY".into(),
            trigger: "new_carrier".into(),
            ..Lead::default()
        };
        let takes = [
            (json!({}), true),
            (json!({"state": "co", "coverageLine": "cargo", "source": "SOS-CO", "basis": "likely", "trigger": "NEW_CARRIER"}), true),
            (json!({"state": "NY"}), false),
            (json!({"coverageLine": "SURETY_BOND"}), false),
            (json!({"source": "sos-ny"}), false),
            (json!({"source": "sos-ia"}), false),
            (json!({"basis": "MANDATED"}), false),
            (json!({"trigger": "insurance_lapse"}), false),
        ];
        assert_takes::<Filter>(&lead, takes);
        assert_refuses::<Filter>([
            (json!({"state": "Colorado"}), "state", "CO"),
            (json!({"coverageLine": "CARG"}), "coverageLine", "did you mean"),
            (json!({"source": "sos"}), "source", "sos-co"),
        ]);
        let filter: Filter = filter_of(&json!({"state": "co", "coverageLine": "cargo"})).unwrap();
        assert_eq!(filter.canonical(), r#"{"state":"CO","coverageLine":"CARGO"}"#);
        assert_eq!(filter.term_queries().first(), Some(&TermQuery::Exact("state", vec!["CO".to_owned()])));
    }
}
