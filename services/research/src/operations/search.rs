//! `GET /v1/search_records`: grants and trials by words, from the upstreams as they are now.

use crate::record::Funding;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use upstreams::live::Question;

use super::filter::{Filter, SponsorClass};
use super::new_funding::Fundings;
use super::watchable_feed::Research;
use feed::filter::{Filter as _, has_words};
use operation::Definition;
use operation::problem::Problem;
use reads::read::pages::Taken;
use reads::read::{Extent, Read, Reader};

/// The names of the upstreams in notes.
const NIH_REPORTER: &str = "NIH RePORTER";
const CLINICAL_TRIALS: &str = "ClinicalTrials.gov";
/// How many records of each kind an upstream is asked for at once.
const PAGE_RECORDS: usize = 200;

/// Arguments of `search_records`, besides those of the filter.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Words that must all occur in the title, abstract, terms or conditions; or the number of a trial or project.
    #[schemars(length(min = 1, max = 200))]
    pub keyword: String,
}

/// The grants and trials that match.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Found")]
pub struct FoundFundings {
    /// Grants and trials.
    #[serde(flatten)]
    pub found: Fundings,
    /// Which part of all grants and trials these are.
    #[serde(flatten)]
    pub extent: Extent,
}

impl Read for Arguments {
    type Service = Research;
    type Answer = FoundFundings;

    const FILTER: &'static [&'static str] = &["sponsorClass"];
    const LIMIT: Option<usize> = Some(50);
    const HAS_PAGES: bool = true;

    fn definition() -> Definition {
        Definition {
            name: "search_records",
            path: "/v1/search_records",
            summary: "Searches NIH RePORTER and ClinicalTrials.gov now: grants and trials by words.",
            when: "Use it to find a known project, trial or subject, also one that did not change lately.",
            description: "If there are more grants and trials than `limit`, which counts both together, `truncated` is true, and `next` continues as \
                `after`. `sponsorClass` `NIH` and `OTHER_GOV` match grants and trials, the other classes only trials. Topics are those recorded here, or \
                those that would be recorded. Answers are cached for five minutes. If an upstream does not answer in time, `live` is false, the note \
                names it, and the answer holds what is recorded here. With `asOf` the answer always holds what was recorded at that time.",
            errors: &[ErrorCode::AsOfInvalid, ErrorCode::CursorInvalid, ErrorCode::Unavailable],
            example: json!({ "keyword": "cancer", "limit": 5 }),
            ..Definition::read()
        }
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Research>) -> Result<FoundFundings, Problem> {
        let (limit, class) = (reader.limit(), filter.sponsor_class);
        let keyword = self.keyword.clone();
        // Grants have no sponsors of other classes. Of those that they have, RePORTER's search does not know the class.
        let has_grants = class.is_none_or(|class| matches!(class, SponsorClass::Nih | SponsorClass::OtherGov));
        let trials = Question::Trials {
            keyword: keyword.clone(),
            class: class.map_or("", registry_class),
            limit: PAGE_RECORDS,
            page: String::new(),
        };
        let mut questions = vec![(CLINICAL_TRIALS, trials)];
        if has_grants {
            questions.push((NIH_REPORTER, Question::Grants { keyword, limit: PAGE_RECORDS, page: String::new() }));
        }
        let answers = reader.ask_each(&questions, limit, |record| filter.takes(record)).await?;
        let Some(mut answers) = answers else {
            let criteria = filter.criteria().and(|change| has_words(&texts(&change.record), &self.keyword));
            let found = reader.search_recorded(criteria, limit, |a, b| (&b.published, &a.id).cmp(&(&a.published, &b.id))).await?;
            return Ok(FoundFundings { found: Fundings::of(found.records), extent: found.extent });
        };
        // RePORTER counts grants of every class.
        let is_exact = class.is_none() || !has_grants;
        let total = answers.iter().map(|answer| answer.total).sum::<Option<u64>>().filter(|_| is_exact);
        let grants = if has_grants { answers.pop() } else { None };
        let trials = answers.pop();
        let mut taken: Vec<Taken<Funding>> = match (trials, grants) {
            // If both kinds are many, each gets half of the limit.
            (Some(trials), Some(grants)) => {
                let wanted_trials = trials.count().min(limit);
                let wanted_grants = grants.count().min(limit.saturating_sub(wanted_trials).max(limit.div_ceil(2)));
                vec![trials.take(limit - wanted_grants), grants.take(wanted_grants)]
            }
            (trials, grants) => trials.or(grants).into_iter().map(|only| only.take(limit)).collect(),
        };
        let records: Vec<Funding> = taken.iter_mut().flat_map(|taken| std::mem::take(&mut taken.items)).collect();
        let extent = reader.extent_of_upstreams(&taken, total);
        Ok(FoundFundings { found: Fundings::of(reader.complete(records).await?), extent })
    }
}

/// The texts of a record that are searched for words.
fn texts(record: &Funding) -> Vec<&str> {
    let lists = record.conditions.iter().chain(&record.interventions).chain(record.topics.iter().map(|topic| &topic.evidence));
    let numbers = [&record.id, &record.project_number];
    [&record.title, &record.org, &record.sponsor].into_iter().chain(numbers).chain(lists).map(String::as_str).collect()
}

/// The class as the registry's query names it. Two classes of the contract stand for several classes of the registry.
fn registry_class(class: SponsorClass) -> &'static str {
    match class {
        SponsorClass::Industry => "INDUSTRY",
        SponsorClass::Nih => "NIH",
        SponsorClass::OtherGov => "(FED OR OTHER_GOV)",
        SponsorClass::Other => "(OTHER OR NETWORK OR INDIV OR AMBIG OR UNKNOWN)",
    }
}
