//! Decides whether an award starts a laboratory, from the earlier projects of its investigator.

use schemas::facts::grants::GrantFact;
use serde::{Deserialize, Serialize};

/// How many fiscal years before that of a lead must be recorded, so that the absence of earlier projects means something.
const YEARS_MIN: i64 = 3;
/// The most projects of an investigator that are remembered: the earliest ones.
const PROJECTS_MAX: usize = 64;
/// The most leads of an investigator whose signals are decided again.
const LEADS_MAX: usize = 64;
/// Activity codes of awards that only new laboratories get.
const STARTS: [&str; 3] = ["R00", "DP2", "DP5"];
/// Activity codes of research grants that may be the first one of a laboratory.
const MAY_START: [&str; 4] = ["R01", "R21", "R35", "R15"];
/// The activity code of shared instruments.
const INSTRUMENT: &str = "S10";
/// The activity code of a career award for a mentored researcher, who has no laboratory yet.
const MENTORED: &str = "K99";

/// The first fiscal year of which a grant is recorded; 0 before the first grant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct History {
    /// The year.
    pub first_fiscal_year: i64,
}

impl History {
    /// The first fiscal year whose leads have enough recorded years before them.
    #[must_use]
    pub fn first_covered(self) -> i64 {
        self.first_fiscal_year + YEARS_MIN
    }

    /// Whether enough years before that of a lead are recorded.
    #[must_use]
    pub fn covers(self, year: i64) -> bool {
        self.first_fiscal_year > 0 && year >= self.first_covered()
    }
}

/// What is remembered of an investigator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Investigator {
    /// The core projects, by first fiscal year and number.
    pub projects: Vec<Project>,
    /// The leads whose signals depend on the projects, by id.
    pub leads: Vec<OwnLead>,
}

/// A core project of an investigator.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Project {
    /// The first fiscal year of which a grant is recorded.
    pub first_fiscal_year: i64,
    /// The number of the core project.
    pub core_project: String,
}

/// A lead of an investigator, with what its signal depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnLead {
    /// The id of the lead.
    pub id: String,
    /// The core project of the award.
    pub core_project: String,
    /// The fiscal year of the award.
    pub fiscal_year: i64,
    /// The activity code of the award.
    pub activity_code: String,
}

impl Investigator {
    /// Adds a grant of a core project. Returns whether that changes the projects.
    pub fn add_project(&mut self, core_project: &str, year: i64) -> bool {
        if core_project.is_empty() {
            return false;
        }
        let before = self.projects.clone();
        let known = self.projects.iter().position(|project| project.core_project == core_project);
        let known = known.map(|at| self.projects.remove(at));
        let first_fiscal_year = known.map_or(year, |known| known.first_fiscal_year.min(year));
        self.projects.push(Project { first_fiscal_year, core_project: core_project.to_owned() });
        self.projects.sort_unstable();
        self.projects.truncate(PROJECTS_MAX);
        self.projects != before
    }

    /// Adds or replaces a lead.
    pub fn set_lead(&mut self, lead: OwnLead) {
        match self.leads.binary_search_by(|own| own.id.cmp(&lead.id)) {
            Ok(at) => self.leads[at] = lead,
            Err(at) if self.leads.len() < LEADS_MAX => self.leads.insert(at, lead),
            Err(_) => {}
        }
    }

    /// Removes a lead.
    pub fn remove_lead(&mut self, id: &str) {
        self.leads.retain(|own| own.id != id);
    }

    /// The earliest other core project with a fiscal year before `year`.
    fn earlier(&self, core_project: &str, year: i64) -> Option<&Project> {
        self.projects.iter().find(|project| project.core_project != core_project && project.first_fiscal_year < year)
    }
}

/// The funder's number of the contact investigator; `None` if it is unknown.
#[must_use]
pub fn number(grant: &GrantFact) -> Option<&str> {
    Some(grant.pi_number.as_str()).filter(|number| !number.is_empty())
}

/// Whether the signal of an award with this activity code depends on recorded grants.
#[must_use]
pub fn depends_on_history(activity_code: &str) -> bool {
    activity_code != INSTRUMENT && activity_code != MENTORED && !STARTS.contains(&activity_code)
}

/// Returns the signal of a lead and why it has it. `investigator` is `None` if the investigator has no number.
#[must_use]
pub fn signal(
    activity_code: &str,
    core_project: &str,
    year: Option<i64>,
    investigator: Option<&Investigator>,
    history: History,
) -> (String, String) {
    let with_evidence = |signal: &str, evidence: String| (signal.to_owned(), evidence);
    if !depends_on_history(activity_code) {
        let signal = match activity_code {
            INSTRUMENT => "instrument",
            MENTORED => "new_project",
            _ => "new_lab",
        };
        return with_evidence(signal, format!("activity code {activity_code}"));
    }
    let Some(investigator) = investigator else {
        return with_evidence("unknown_pi", "the investigator has no number".to_owned());
    };
    let Some(year) = year.filter(|year| history.covers(*year)) else {
        return with_evidence("unknown_pi", format!("fewer than {YEARS_MIN} fiscal years before it are recorded"));
    };
    match investigator.earlier(core_project, year) {
        Some(earlier) => with_evidence("new_project", format!("earlier core project {}", earlier.core_project)),
        None if MAY_START.contains(&activity_code) => with_evidence("new_lab", format!("no other core project before fiscal year {year}")),
        None => with_evidence("new_project", format!("activity code {activity_code}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves each signal: by activity code, by an earlier project of another number and year, and by what is not known.
    #[test]
    fn signals() {
        let mut known = Investigator::default();
        assert!(known.add_project("R01CA1", 2026) && known.add_project("R21CA290000", 2024) && !known.add_project("R21CA290000", 2025));
        let history = History { first_fiscal_year: 2023 };
        let new = Investigator::default();
        let signal_of =
            |code: &str, year: i64, investigator: Option<&Investigator>| signal(code, "R01CA1", Some(year), investigator, history);
        let text = |signal: &str, evidence: &str| (signal.to_owned(), evidence.to_owned());
        assert_eq!(signal_of("S10", 2026, None), text("instrument", "activity code S10"));
        assert_eq!(signal_of("R00", 2020, None), text("new_lab", "activity code R00"));
        assert_eq!(signal_of("K99", 2026, Some(&new)), text("new_project", "activity code K99"));
        assert_eq!(signal_of("R01", 2026, Some(&new)), text("new_lab", "no other core project before fiscal year 2026"));
        assert_eq!(signal_of("U01", 2026, Some(&new)), text("new_project", "activity code U01"));
        assert_eq!(signal_of("R01", 2026, Some(&known)), text("new_project", "earlier core project R21CA290000"));
        assert_eq!(signal_of("R01", 2026, None), text("unknown_pi", "the investigator has no number"));
        assert_eq!(signal_of("R01", 2025, Some(&known)), text("unknown_pi", "fewer than 3 fiscal years before it are recorded"));
        assert!(!History::default().covers(2026) && history.covers(2026) && !history.covers(2025));
        let same_year =
            signal("R01", "R01CA2", Some(2026), Some(&Investigator { projects: vec![known.projects[1].clone()], ..new }), history);
        assert_eq!(same_year.0, "new_lab", "a project of the same year is not an earlier one");
    }

    /// Proves that projects keep their first year and the earliest 64, whatever the order of arrival.
    #[test]
    fn projects_in_any_order() {
        let grants: Vec<(String, i64)> = (0..100).map(|n| (format!("R01CA{:03}", n % 80), 2000 + n * 7 % 23)).collect();
        let investigator_after = |order: Vec<&(String, i64)>| {
            let mut investigator = Investigator::default();
            for (core, year) in order {
                investigator.add_project(core, *year);
            }
            investigator
        };
        let forwards = investigator_after(grants.iter().collect());
        assert_eq!(forwards, investigator_after(grants.iter().rev().collect()));
        assert_eq!(forwards.projects.len(), PROJECTS_MAX);
    }
}
