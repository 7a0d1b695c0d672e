//! Builds the record of a grant or a trial from its fact: to record it, and to show a fact that an upstream gave just now.

use super::topic_lexicon::LEXICON;
use crate::record::Funding;
use schemas::facts::grants::{GrantFact, grant_class};
use schemas::facts::trials::{TrialFact, sponsor_class};

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
