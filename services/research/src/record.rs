//! The rows of the research service: one record per grant or clinical trial.

mod funding;
pub mod topic_lexicon;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use schemas::details::{ChangeRecord, LinkDetails};
use schemas::news::{FUNDING_NEWS_DAYS, News};
use schemas::suppression::{Hides, PERSON, RECORD};
use schemas::views::records::{Record, Term};

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
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
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
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
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

    /// True if fields are hidden on request; only then present.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suppressed: bool,
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

impl ChangeRecord for Funding {
    type Details = LinkDetails;

    fn is_in_tables(&self) -> bool {
        self.is_listed()
    }

    /// By the day of publication, or by that of the notice of award if it is earlier: funders add old grants, too.
    fn news(&self) -> Option<News> {
        let days = [&self.published, &self.notice_date].into_iter().filter_map(|day| News::of_text(day, FUNDING_NEWS_DAYS));
        days.min()
    }
}

impl Record for Funding {
    const SEARCHED: &'static [&'static str] = &["institution", "sponsor", "pi", "ic"];

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
        let term = |dimension: &'static str, value: &str| Term::new(dimension, value);
        institutions
            .chain(sites)
            .map(|name| term("institution", name))
            .chain([term("sponsor", &self.sponsor), term("ic", &self.ic), term("pi", &self.pi)])
            .chain(self.investigators.iter().map(|name| term("pi", name)))
            .chain(self.topics.iter().map(|topic| term("topic", &topic.slug)))
            .chain(self.states.iter().map(|state| term("state", state)))
            .flatten()
            .collect()
    }
}

/// What is hidden of the grant or trial of a suppressed person: the name alone. Of a suppressed record all names are hidden.
const HIDES: &[Hides] = &[
    Hides { kind: &PERSON, field: "pi", hidden: &["pi"] },
    Hides { kind: &PERSON, field: "investigators", hidden: &["investigators"] },
    // A person can sponsor a trial.
    Hides { kind: &PERSON, field: "sponsor", hidden: &["sponsor"] },
    Hides { kind: &PERSON, field: "collaborators", hidden: &["collaborators"] },
    Hides { kind: &RECORD, field: "id", hidden: &["pi", "investigators", "sponsor", "collaborators"] },
];

schemas::record_tables!("research", hides: HIDES);

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    /// Proves that a grant is late by the day on which it was published or awarded, the earlier one; and that a trial is by the day of its first posting.
    #[test]
    fn late_records() {
        for (published, notice, is_late) in [
            ("2001-03-01", "", true),
            ("2026-11-20", "2019-06-01", true),
            ("", "2026-07-26", true),
            ("2026-11-20", "2026-07-27", false),
            ("2026-11-20", "", false),
            ("", "", false),
        ] {
            let record = Funding { published: published.into(), notice_date: notice.into(), ..Funding::default() };
            assert_eq!(record.is_backfill(&LinkDetails::default(), true, date(2026, 11, 24)), is_late, "{published} {notice}");
        }
    }
}
