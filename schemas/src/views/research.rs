//! The research service's rows: grants and clinical trials, one record each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::records::{Record, Term};

/// Institutions of a trial by which its changes are found; a trial with more is found by [`MANY`] as well.
const INSTITUTIONS_MAX: usize = 50;
/// The value that stands for all institutions beyond those.
pub const MANY: &str = "+";

/// A grant or a trial as readers see it. `""`, empty lists and `None` stand for unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Funding {
    /// `grant/` and the funder's number, `trial/` and the registry's.
    pub id: String,
    /// `grant` or `trial`.
    pub kind: String,
    /// Title.
    pub title: String,
    /// Page.
    pub url: String,
    /// Day on which it was made public, `YYYY-MM-DD`.
    pub published: String,
    /// `INDUSTRY`, `NIH`, `OTHER_GOV`, `OTHER`.
    pub sponsor_class: String,
    /// Of a grant the organisation's state, of a trial those of its sites; two letters, sorted.
    pub states: Vec<String>,
    /// Topics, sorted by slug.
    pub topics: Vec<Topic>,
    /// Gone from its upstream.
    pub withdrawn: bool,

    /// Grant: the contact principal investigator.
    pub pi: String,
    /// Grant: all of them.
    pub investigators: Vec<String>,
    /// Grant: the organisation that was funded.
    pub org: String,
    /// Grant: its city.
    pub city: String,
    /// Grant: code of the institute that administers it.
    pub ic: String,
    /// Grant: whole dollars of this fiscal year.
    pub amount: Option<i64>,
    /// Grant: day of the notice of award.
    pub notice_date: String,
    /// Grant: `1R15DE032063-01A1`.
    pub project_number: String,
    /// Grant: `R01`.
    pub activity_code: String,
    /// Grant: the fiscal year.
    pub fiscal_year: Option<i64>,
    /// Grant: first day of the project.
    pub project_start: String,
    /// Grant: last day of the project.
    pub project_end: String,

    /// Trial: the lead sponsor.
    pub sponsor: String,
    /// Trial: who else pays.
    pub collaborators: Vec<String>,
    /// Trial: names of its sites.
    pub institutions: Vec<String>,
    /// Trial: `PHASE2`.
    pub phase: String,
    /// Trial: `RECRUITING`.
    pub status: String,
    /// Trial: `INTERVENTIONAL`.
    pub study_type: String,
    /// Trial: conditions.
    pub conditions: Vec<String>,
    /// Trial: what is tried.
    pub interventions: Vec<String>,
    /// Trial: when it starts.
    pub start: String,
    /// Trial: when the data of the primary outcome are taken.
    pub primary_completion: String,
    /// Trial: when it ends.
    pub completion: String,
    /// Trial: how many take part.
    pub enrollment: Option<i64>,
}

/// A topic that a record is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Topic {
    /// `oncology`.
    pub slug: String,
    /// The words that say so, with where they stand: `title: tumour`.
    pub evidence: String,
}

impl Record for Funding {
    const SEARCHED: &'static [&'static str] = &["institution", "sponsor", "pi"];

    fn id(&self) -> &str {
        &self.id
    }

    fn is_listed(&self) -> bool {
        !self.withdrawn
    }

    fn terms(&self) -> Vec<Term> {
        let many = (self.institutions.len() > INSTITUTIONS_MAX).then_some(MANY);
        let institutions = [&self.org, &self.sponsor].into_iter().map(String::as_str);
        let sites = self.institutions.iter().take(INSTITUTIONS_MAX).map(String::as_str).chain(many);
        let of = |dimension: &'static str, value: &str| Term::new(dimension, value);
        institutions
            .chain(sites)
            .map(|name| of("institution", name))
            .chain([of("sponsor", &self.sponsor), of("ic", &self.ic), of("pi", &self.pi)])
            .chain(self.investigators.iter().map(|name| of("pi", name)))
            .chain(self.topics.iter().map(|topic| of("topic", &topic.slug)))
            .chain(self.states.iter().map(|state| of("state", state)))
            .flatten()
            .collect()
    }
}

crate::record_tables!("research");
