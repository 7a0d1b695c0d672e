//! Grants and trials in answers. The fields of the public contract come first, in its order.

use crate::record::{Funding, Topic};
use schemars::JsonSchema;
use serde::Serialize;

use schemas::details::{GRANT_SITES, url_note};

/// A grant: one award of one fiscal year.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// `grant`.
    pub kind: &'static str,
    /// The contact principal investigator.
    pub pi: String,
    /// The organisation that was funded.
    pub org: String,
    /// The code of the institute or centre that administers the grant.
    pub ic: String,
    /// The dollars of this fiscal year; null if unknown.
    pub amount: Option<i64>,
    /// Day of the notice of award, YYYY-MM-DD.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub notice_date: String,
    /// The URL of the grant's page at the funder.
    pub url: String,
    /// A warning; only if `url` does not lead to a site of the funder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_note: Option<&'static str>,
    /// The id of the record in this service.
    pub id: String,
    /// Title.
    pub title: String,
    /// The project number in the form that people write.
    pub project_number: String,
    /// `R01`, `U54` …
    pub activity_code: String,
    /// The fiscal year.
    pub fiscal_year: Option<i64>,
    /// City of the organisation.
    pub city: String,
    /// State of the organisation, two letters.
    pub state: String,
    /// The day on which the grant was published, YYYY-MM-DD.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub published: String,
    /// The topics of the record.
    pub topics: Vec<Topic>,
    /// Whether the upstream no longer has the record.
    pub withdrawn: bool,
    /// True if fields are hidden on request; only then present.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suppressed: bool,
}

/// A clinical trial.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trial {
    /// `trial`.
    pub kind: &'static str,
    /// The lead sponsor.
    pub sponsor: String,
    /// `PHASE2`; `PHASE1/PHASE2` for both; empty if unknown.
    pub phase: String,
    /// `RECRUITING`, `COMPLETED` …
    pub status: String,
    /// The URL of the trial's page at the registry.
    pub url: String,
    /// The id of the record in this service.
    pub id: String,
    /// Title.
    pub title: String,
    /// `INDUSTRY`, `NIH`, `OTHER_GOV` or `OTHER`.
    pub sponsor_class: String,
    /// States of its sites in the United States, two letters.
    pub states: Vec<String>,
    /// Conditions.
    pub conditions: Vec<String>,
    /// The interventions.
    pub interventions: Vec<String>,
    /// When the trial starts: YYYY-MM-DD or YYYY-MM.
    pub start: String,
    /// When the data for the primary outcome are complete: YYYY-MM-DD or YYYY-MM.
    pub primary_completion: String,
    /// The number of participants; null if unknown.
    pub enrollment: Option<i64>,
    /// The day on which the trial was first posted, YYYY-MM-DD.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub published: String,
    /// The topics of the record.
    pub topics: Vec<Topic>,
    /// Whether the upstream no longer has the record.
    pub withdrawn: bool,
    /// True if fields are hidden on request; only then present.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suppressed: bool,
}

/// A grant or a trial; `kind` says which.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Funding")]
pub enum Either {
    /// A grant.
    Grant(Box<Grant>),
    /// A trial.
    Trial(Box<Trial>),
}

impl From<Funding> for Either {
    fn from(record: Funding) -> Self {
        if record.kind == "grant" {
            Self::Grant(Box::new(Grant {
                kind: "grant",
                pi: record.pi,
                org: record.org,
                ic: record.ic,
                amount: record.amount,
                notice_date: record.notice_date,
                url_note: url_note(&record.url, &GRANT_SITES),
                url: record.url,
                id: record.id,
                title: record.title,
                project_number: record.project_number,
                activity_code: record.activity_code,
                fiscal_year: record.fiscal_year,
                city: record.city,
                state: record.states.into_iter().next().unwrap_or_default(),
                published: record.published,
                topics: record.topics,
                withdrawn: record.withdrawn,
                suppressed: record.suppressed,
            }))
        } else {
            Self::Trial(Box::new(Trial {
                kind: "trial",
                sponsor: record.sponsor,
                phase: record.phase,
                status: record.status,
                url: record.url,
                id: record.id,
                title: record.title,
                sponsor_class: record.sponsor_class,
                states: record.states,
                conditions: record.conditions,
                interventions: record.interventions,
                start: record.start,
                primary_completion: record.primary_completion,
                enrollment: record.enrollment,
                published: record.published,
                topics: record.topics,
                withdrawn: record.withdrawn,
                suppressed: record.suppressed,
            }))
        }
    }
}

/// A change of a grant or a trial.
pub type Changed = feed::answer_changes::Changed<Either>;

#[cfg(test)]
mod tests {
    use schemas::suppressed_keys::SuppressedKeys;
    use schemas::suppression::{KeyKind, PERSON, RECORD};
    use serde_json::{Value, json};

    use super::*;
    use crate::record::TABLES;

    /// Proves that a grant and a trial name nobody when the person or the record is hidden, and say so.
    #[test]
    fn hidden_names() {
        let grant = Funding { id: "nih:1".into(), kind: "grant".into(), pi: "Ann Oak".into(), ..Funding::default() };
        let trial = Funding { id: "ctgov:NCT1".into(), kind: "trial".into(), sponsor: "Ann Oak".into(), ..Funding::default() };
        for record in [grant, trial] {
            let own = format!("research/{}", record.id);
            let kinds: [(&KeyKind, &str); 2] = [(&PERSON, "OAK, ANN"), (&RECORD, own.as_str())];
            for (kind, key) in kinds {
                let keys = SuppressedKeys::new([(KeyKind::from_name(kind.name).unwrap(), kind.normalize(key).unwrap())]);
                let row = keys.hide(TABLES.view, json!({ "record": record }).to_string().as_bytes()).unwrap().unwrap();
                let hidden: Funding = serde_json::from_value(serde_json::from_slice::<Value>(&row).unwrap()["record"].take()).unwrap();
                let shown = serde_json::to_value(Either::from(hidden)).unwrap();
                assert!(shown["suppressed"] == true && !shown.to_string().contains("Oak"), "{key}: {shown}");
            }
            assert_eq!(serde_json::to_value(Either::from(record)).unwrap().get("suppressed"), None);
        }
    }
}
