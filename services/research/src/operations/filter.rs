//! The filter of grants and trials. Feeds, lists, digests, saved filters and watches use its fields.

use crate::record::{Funding, MORE_INSTITUTIONS};
use schemars::JsonSchema;
use schemas::views::records::normal;
use serde::{Deserialize, Serialize};
use texts::values::{TOPICS, TRIAL_PHASES, US_STATES};

use feed::filter::{self, Field, Fields, contains};
use feed::text_field;

/// Classes of sponsors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SponsorClass {
    /// A company.
    Industry,
    /// The National Institutes of Health. All grants have this class.
    Nih,
    /// Another government agency.
    OtherGov,
    /// Any other sponsor.
    Other,
}

impl SponsorClass {
    /// The class as records write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Industry => "INDUSTRY",
            Self::Nih => "NIH",
            Self::OtherGov => "OTHER_GOV",
            Self::Other => "OTHER",
        }
    }
}

/// A filter of grants and trials: a record matches if it matches every given field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Filter {
    /// Topic, by its slug.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = TOPICS))]
    pub topic: Option<String>,
    /// Two-letter state: of a grant's organisation, or of a trial's sites.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = US_STATES.as_slice()))]
    pub state: Option<String>,
    /// Part of the name of a grant's organisation, a trial's sponsor or one of its sites.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 200))]
    pub institution: Option<String>,
    /// Class of the sponsor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sponsor_class: Option<SponsorClass>,
    /// Part of the name of a trial's lead sponsor.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 200))]
    pub sponsor: Option<String>,
    /// Part of the name of a grant's investigator. Trials, which have none, do not match.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 200))]
    pub pi: Option<String>,
    /// Code of the institute or centre that administers a grant: NCI. Trials, which have none, do not match.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20))]
    pub ic: Option<String>,
    /// Phase of a trial. A trial of PHASE1/PHASE2 has both, and is found by either and by PHASE1/PHASE2. Grants, which have none, do not match.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = TRIAL_PHASES))]
    pub phase: Option<String>,
    /// The smallest amount in dollars. Trials, which have no amount, do not match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_amount: Option<f64>,
    /// The largest amount in dollars. Trials, which have no amount, do not match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_amount: Option<f64>,
    /// Whether to include late news: grants and trials of more than 120 days before they were recorded. By default it is left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub include_backfill: bool,
}

/// The amount of a record in dollars.
#[expect(clippy::cast_precision_loss, reason = "dollars of one award are far below 2^53")]
fn dollars(record: &Funding) -> Option<f64> {
    record.amount.map(|amount| amount as f64)
}

/// Whether a trial's phase contains all wanted phases. Slashes separate the phases of both.
fn has_phases(phase: &str, wanted: &str) -> bool {
    wanted.split('/').all(|wanted| phase.split('/').any(|one| one.eq_ignore_ascii_case(wanted.trim())))
}

impl filter::Filter for Filter {
    type Record = Funding;

    const FIELDS: Fields<Self> = &[
        text_field!(topic).selecting(|record, topic| record.topics.iter().any(|one| one.slug == normal(topic))).found_by_term(6, "topic"),
        text_field!(state)
            .selecting(|record, state| record.states.iter().any(|one| one.eq_ignore_ascii_case(state)))
            .found_by_term(5, "state"),
        text_field!(institution)
            .selecting(|record, part| {
                [&record.org, &record.sponsor].into_iter().chain(&record.institutions).any(|name| contains(name, part))
            })
            .found_by_part(3, "institution")
            .with_names_of("institution", &["org", "sponsor", "institutions"]),
        Field::<Self, Funding>::new("sponsorClass")
            .selecting_by(|filter, record| filter.sponsor_class.is_none_or(|class| record.sponsor_class == class.as_str())),
        text_field!(sponsor).part_of(|record| &record.sponsor).found_by_part(2, "sponsor").with_names("sponsor"),
        text_field!(pi)
            .selecting(|record, part| [&record.pi].into_iter().chain(&record.investigators).any(|name| contains(name, part)))
            .found_by_part(1, "pi")
            .with_names("pi"),
        text_field!(ic).selecting(|record, ic| record.ic.eq_ignore_ascii_case(ic.trim())).found_by_term(4, "ic").with_codes("ic"),
        text_field!(phase).selecting(|record, phase| has_phases(&record.phase, phase)),
        Field::<Self, Funding>::range("minAmount", "maxAmount", |filter| (filter.min_amount, filter.max_amount), dollars),
        Field::<Self, Funding>::backfill(|filter| filter.include_backfill),
    ];

    fn contradiction(&self) -> Option<String> {
        let dollars = self.min_amount.is_some() || self.max_amount.is_some();
        let of_grants = [("pi", self.pi.is_some()), ("ic", self.ic.is_some()), ("minAmount or maxAmount", dollars)];
        let of_trials = [("sponsor", self.sponsor.is_some()), ("phase", self.phase.is_some())];
        let (grants, trials) = (filter::first_given(&of_grants)?, filter::first_given(&of_trials)?);
        Some(format!("no record can match: {grants} matches grants only, {trials} trials only"))
    }

    fn wildcard(&self, dimension: &str) -> Option<&'static str> {
        // Trials with more institutions than an index entry holds are indexed under this value.
        (dimension == "institution").then_some(MORE_INSTITUTIONS)
    }
}

#[cfg(test)]
mod tests {
    use crate::record::Topic;

    use super::*;
    use feed::filter::Filter as _;

    /// Proves that a filter replaces the fields of another one by one.
    #[test]
    fn over_another() {
        let filter_from = |json: serde_json::Value| -> Filter { serde_json::from_value(json).unwrap() };
        let base = filter_from(serde_json::json!({"topic": "oncology", "state": "TX", "minAmount": 5}));
        let over = filter_from(serde_json::json!({"state": "CA", "pi": "ada"}));
        assert_eq!(
            over.with_defaults_from(&base),
            Ok(filter_from(serde_json::json!({"topic": "oncology", "state": "CA", "pi": "ada", "minAmount": 5})))
        );
        assert_eq!(
            (Filter::default().with_defaults_from(&base), base.with_defaults_from(&Filter::default())),
            (Ok(base.clone()), Ok(base.clone()))
        );
    }

    /// Proves that every condition counts, and that the canonical form holds only the given ones.
    #[test]
    fn conditions() {
        let grant = Funding {
            topics: vec![Topic { slug: "oncology".into(), ..Topic::default() }],
            states: vec!["TX".into()],
            org: "RICE UNIVERSITY".into(),
            sponsor_class: "NIH".into(),
            pi: "Ada B".into(),
            ic: "NCI".into(),
            amount: Some(100),
            ..Funding::default()
        };
        let filter_from = |json: serde_json::Value| -> Filter { serde_json::from_value(json).unwrap() };
        for (filter, fits) in [
            (serde_json::json!({}), true),
            (serde_json::json!({"topic": "Oncology", "state": "tx", "institution": "rice", "ic": "nci", "pi": "ada"}), true),
            (serde_json::json!({"topic": "aging"}), false),
            (serde_json::json!({"state": "CA"}), false),
            (serde_json::json!({"sponsorClass": "INDUSTRY"}), false),
            (serde_json::json!({"sponsor": "rice"}), false),
            (serde_json::json!({"phase": "PHASE1"}), false),
            (serde_json::json!({"minAmount": 100, "maxAmount": 100.0}), true),
            (serde_json::json!({"minAmount": 100.5}), false),
        ] {
            assert_eq!(filter_from(filter.clone()).takes(&grant), fits, "{filter}");
        }
        let trial = Funding { phase: "PHASE1/PHASE2".into(), ..Funding::default() };
        let has = |phase: &str, trial: &Funding| filter_from(serde_json::json!({ "phase": phase })).takes(trial);
        assert!(["phase2", "PHASE1", "PHASE1/PHASE2"].iter().all(|phase| has(phase, &trial)));
        assert!(!["PHASE2/PHASE3", "PHASE3", "N/A"].iter().any(|phase| has(phase, &trial)));
        let (single, none) =
            (Funding { phase: "PHASE2".into(), ..Funding::default() }, Funding { phase: "N/A".into(), ..Funding::default() });
        assert!(has("PHASE2", &single) && !has("PHASE1/PHASE2", &single) && has("N/A", &none) && !has("PHASE1", &none));
        assert!(!filter_from(serde_json::json!({"maxAmount": 5})).takes(&trial));
        assert_eq!(Filter::default().canonical(), "");
        let canonical = filter_from(serde_json::json!({"state": "TX", "topic": "aging"})).canonical();
        assert_eq!(canonical, r#"{"topic":"aging","state":"TX"}"#);
        assert_eq!(Filter::from_canonical(&canonical).unwrap().canonical(), canonical);
    }
}
