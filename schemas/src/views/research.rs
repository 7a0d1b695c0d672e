//! The rows of the research service: one record per grant or clinical trial.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::records::{Record, Term};
use crate::details::{ChangeRecord, LinkDetails};
use crate::facts::grants::{GrantFact, grant_class};
use crate::facts::trials::{TrialFact, sponsor_class};
use crate::topic_lexicon::LEXICON;

/// The most institutions of a trial that are indexed. A trial with more is also indexed under [`MORE_INSTITUTIONS`].
const INSTITUTIONS_MAX: usize = 50;
/// The term value that represents all institutions beyond the indexed ones.
pub const MORE_INSTITUTIONS: &str = "+";

/// A grant or a trial as readers see it. `""`, empty lists and `None` mean unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "RecordedFunding")]
pub struct Funding {
    /// Id of the record: `grant/` and the funder's number, or `trial/` and the registry's number.
    pub id: String,
    /// `grant` or `trial`.
    pub kind: String,
    /// Title.
    pub title: String,
    /// URL of the grant's or trial's page.
    pub url: String,
    /// Day of publication, `YYYY-MM-DD`.
    #[schemars(with = "crate::json_type::DayOrEmpty")]
    pub published: String,
    /// Class of the sponsor: `INDUSTRY`, `NIH`, `OTHER_GOV`, `OTHER`.
    pub sponsor_class: String,
    /// States of a grant's organisation or of a trial's sites; two letters, sorted.
    pub states: Vec<String>,
    /// Topics, sorted by slug.
    pub topics: Vec<Topic>,
    /// Whether the record is gone from its upstream.
    pub withdrawn: bool,

    /// Grant: the contact principal investigator.
    pub pi: String,
    /// Grant: all principal investigators.
    pub investigators: Vec<String>,
    /// Grant: the funded organisation.
    pub org: String,
    /// Grant: city of the organisation.
    pub city: String,
    /// Grant: code of the administering institute.
    pub ic: String,
    /// Grant: amount of this fiscal year in whole dollars.
    pub amount: Option<i64>,
    /// Grant: day of the notice of award.
    #[schemars(with = "crate::json_type::DayOrEmpty")]
    pub notice_date: String,
    /// Grant: project number, `1R15DE032063-01A1`.
    pub project_number: String,
    /// Grant: activity code, `R01`.
    pub activity_code: String,
    /// Grant: the fiscal year.
    pub fiscal_year: Option<i64>,
    /// Grant: first day of the project.
    pub project_start: String,
    /// Grant: last day of the project.
    pub project_end: String,

    /// Trial: the lead sponsor.
    pub sponsor: String,
    /// Trial: the collaborators.
    pub collaborators: Vec<String>,
    /// Trial: names of the sites.
    pub institutions: Vec<String>,
    /// Trial: phase, `PHASE2`.
    pub phase: String,
    /// Trial: status, `RECRUITING`.
    pub status: String,
    /// Trial: study type, `INTERVENTIONAL`.
    pub study_type: String,
    /// Trial: conditions.
    pub conditions: Vec<String>,
    /// Trial: the studied interventions.
    pub interventions: Vec<String>,
    /// Trial: start date.
    pub start: String,
    /// Trial: primary completion date, when the last data of the primary outcome are collected.
    pub primary_completion: String,
    /// Trial: completion date.
    pub completion: String,
    /// Trial: number of participants.
    pub enrollment: Option<i64>,
}

/// A topic of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Topic {
    /// Identifier of the topic: `oncology`.
    pub slug: String,
    /// The phrases that decided the topic, with the field in which they occur: `title: tumour`.
    pub evidence: String,
}

impl Funding {
    /// Returns the record of a grant, with the topics that the lexicon of this version decides.
    #[must_use]
    pub fn of_grant(grant: &GrantFact) -> Self {
        let terms = grant.terms.join("; ");
        let texts = [("title", grant.title.as_str()), ("terms", &terms), ("abstract", &grant.summary)];
        Self {
            id: format!("grant/{}", grant.number),
            kind: "grant".to_owned(),
            title: grant.title.clone(),
            url: grant.url.clone(),
            published: first_non_empty(&[&grant.added, &grant.notice_date]),
            sponsor_class: grant_class(&grant.ic).to_owned(),
            states: Some(grant.state.clone()).filter(|state| !state.is_empty()).into_iter().collect(),
            topics: LEXICON.topics(&texts),
            pi: grant.pi.clone(),
            investigators: grant.investigators.clone(),
            org: grant.org.clone(),
            city: grant.city.clone(),
            ic: grant.ic.clone(),
            amount: grant.amount,
            notice_date: grant.notice_date.clone(),
            project_number: grant.project_number.clone(),
            activity_code: grant.activity_code.clone(),
            fiscal_year: grant.fiscal_year,
            project_start: grant.project_start.clone(),
            project_end: grant.project_end.clone(),
            ..Self::default()
        }
    }

    /// Returns the record of a trial, with the topics that the lexicon of this version decides. Its lists have the order of the fact.
    #[must_use]
    pub fn of_trial(trial: &TrialFact) -> Self {
        let (conditions, keywords) = (trial.conditions.join("; "), trial.keywords.join("; "));
        let texts = [
            ("title", trial.title.as_str()),
            ("official title", &trial.official_title),
            ("conditions", &conditions),
            ("keywords", &keywords),
            ("summary", &trial.summary),
        ];
        Self {
            id: format!("trial/{}", trial.number),
            kind: "trial".to_owned(),
            title: trial.title.clone(),
            url: trial.url.clone(),
            published: trial.first_posted.clone(),
            sponsor_class: sponsor_class(&trial.sponsor_class).to_owned(),
            states: trial.states.clone(),
            topics: LEXICON.topics(&texts),
            sponsor: trial.sponsor.clone(),
            collaborators: trial.collaborators.clone(),
            institutions: trial.institutions.clone(),
            phase: trial.phase.clone(),
            status: trial.status.clone(),
            study_type: trial.study_type.clone(),
            conditions: trial.conditions.clone(),
            interventions: trial.interventions.iter().map(|one| one.name.clone()).collect(),
            start: trial.start.clone(),
            primary_completion: trial.primary_completion.clone(),
            completion: trial.completion.clone(),
            enrollment: trial.enrollment,
            ..Self::default()
        }
    }
}

/// Returns the first text that is not empty.
fn first_non_empty(texts: &[&String]) -> String {
    texts.iter().find(|text| !text.is_empty()).map(|text| (*text).clone()).unwrap_or_default()
}

impl ChangeRecord for Funding {
    type Details = LinkDetails;
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
        let many = (self.institutions.len() > INSTITUTIONS_MAX).then_some(MORE_INSTITUTIONS);
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
