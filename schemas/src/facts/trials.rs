//! A clinical trial as a registry published it.

use serde::{Deserialize, Serialize};

use crate::canonical::{Kind, Order, canonical};

/// A clinical trial as a registry published it. Strings are trimmed, white space collapsed, the registry's markup removed; `""`, empty
/// lists and `None` mean unknown. Lists without a meaningful order are sorted. Values of the registry's enumerations (status, phase, class)
/// are passed through, also new ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TrialFact {
    /// The stream: `clinical_trials`.
    #[serde(rename = "door")]
    pub stream: String,
    /// The registry's number: `NCT04207047`.
    pub number: String,
    /// Earlier numbers of a merged trial, sorted.
    pub aliases: Vec<String>,
    /// The brief title.
    pub title: String,
    /// The official title, where it differs.
    pub official_title: String,
    /// The acronym.
    pub acronym: String,
    /// Name of the lead sponsor.
    pub sponsor: String,
    /// Class of the lead sponsor: `INDUSTRY`, `NIH`, `FED`, `OTHER_GOV`, `INDIV`, `NETWORK`, `AMBIG`, `OTHER`, `UNKNOWN`.
    pub sponsor_class: String,
    /// Names of the collaborators, sorted; at most 50.
    pub collaborators: Vec<String>,
    /// Phase: `PHASE2`, `PHASE1/PHASE2`, `EARLY_PHASE1`, `N/A` if phases do not apply; `""` if the registry gives none.
    pub phase: String,
    /// Status: `RECRUITING`, `COMPLETED`, `UNKNOWN` …
    pub status: String,
    /// The last status before `UNKNOWN`.
    pub last_known_status: String,
    /// Why the trial was stopped.
    pub why_stopped: String,
    /// Study type: `INTERVENTIONAL`, `OBSERVATIONAL`, `EXPANDED_ACCESS`.
    pub study_type: String,
    /// Start date: `YYYY-MM-DD` or `YYYY-MM`, as precise as the registry gives it.
    pub start: String,
    /// `ACTUAL` or `ESTIMATED`, for `start`.
    pub start_type: String,
    /// Primary completion date, when the last data of the primary outcome are collected: `YYYY-MM-DD` or `YYYY-MM`.
    pub primary_completion: String,
    /// `ACTUAL` or `ESTIMATED`, for `primary_completion`.
    pub primary_completion_type: String,
    /// Completion date: `YYYY-MM-DD` or `YYYY-MM`.
    pub completion: String,
    /// `ACTUAL` or `ESTIMATED`, for `completion`.
    pub completion_type: String,
    /// Day on which the registry first posted the trial.
    pub first_posted: String,
    /// Day on which the registry posted the results.
    pub results_posted: String,
    /// Day of the registry's last posting when the trial was read. It changes without any other change; therefore it is not hashed and may
    /// be older than the registry's.
    pub updated: String,
    /// Number of participants.
    pub enrollment: Option<i64>,
    /// `ACTUAL` or `ESTIMATED`, for `enrollment`.
    pub enrollment_type: String,
    /// Conditions, sorted; at most 100.
    pub conditions: Vec<String>,
    /// Keywords, sorted; at most 100.
    pub keywords: Vec<String>,
    /// Interventions that are studied, sorted by name; at most 100.
    pub interventions: Vec<Intervention>,
    /// States of the sites in the United States, two letters where the name is known, sorted.
    pub states: Vec<String>,
    /// Countries of the sites, sorted; at most 250.
    pub countries: Vec<String>,
    /// Names of the sites, sorted; at most 400, those in the United States first.
    pub institutions: Vec<String>,
    /// Number of sites that the registry lists.
    pub sites: Option<i64>,
    /// The beginning of the brief summary; at most 1,000 characters.
    pub summary: String,
    /// Absolute https URL of the trial's page.
    pub url: String,
}

/// An intervention that a trial studies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Intervention {
    /// Type of the intervention: `DRUG`, `BIOLOGICAL`, `DEVICE` …
    #[serde(rename = "type")]
    pub kind: String,
    /// Name of the intervention, without the type.
    pub name: String,
}

impl TrialFact {
    /// Returns the canonical form that is hashed: every field but `updated`.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        // The day of the last edit changes without a change of content.
        canonical(self, Order::ByKind([Kind::Text, Kind::Number, Kind::List, Kind::Flag]), &["updated"])
    }
}

/// Maps the registry's sponsor classes to the four that the API has.
#[must_use]
pub fn sponsor_class(class: &str) -> &'static str {
    match class {
        "INDUSTRY" => "INDUSTRY",
        "NIH" => "NIH",
        "FED" | "OTHER_GOV" => "OTHER_GOV",
        _ => "OTHER",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Proves that every field but `updated` is hashed.
    #[test]
    fn every_field_but_one_is_hashed() {
        let empty = serde_json::to_value(TrialFact::default()).unwrap();
        for (name, value) in empty.as_object().unwrap() {
            let mut changed = empty.clone();
            changed[name] = match value {
                Value::String(_) => json!("x"),
                Value::Array(_) if name == "interventions" => json!([{"type": "DRUG", "name": ""}]),
                Value::Array(_) => json!(["x"]),
                _ => json!(0),
            };
            let fact: TrialFact = serde_json::from_value(changed).unwrap();
            assert_eq!(fact.canonical() == TrialFact::default().canonical(), name == "updated", "{name}");
        }
    }
}
