//! `GET /v1/search_records`: grants and trials by words, from the upstreams as they are now.

use feed::live;
use schemars::JsonSchema;
use schemas::facts::FactData;
use schemas::facts::grants::grant_class;
use schemas::views::research::Funding;
use serde::{Deserialize, Serialize};
use serde_json::json;
use upstreams::live::Question;

use super::filter::{Filter, SponsorClass};
use super::followed::Research;
use super::new_funding::Fundings;
use super::records::{Grant, Trial};
use crate::common::read::{Read, Reader};
use feed::filter::{Filter as _, has_words};
use feed::query::DIGEST_MAX;
use operation::Definition;
use operation::problem::Problem;

/// Arguments of `search_records`, besides those of the filter.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Definition that must all occur in the title, abstract, terms or conditions.
    #[schemars(length(min = 1, max = 200))]
    pub keyword: String,
}

/// The grants and trials that match.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Found {
    /// Grants and trials.
    #[serde(flatten)]
    pub found: Fundings,
    /// Whether the upstreams were asked for this answer; otherwise it holds what is recorded here.
    pub live: bool,
}

impl Read for Arguments {
    type Service = Research;
    type Answer = Found;

    const FILTER: &'static [&'static str] = &["sponsorClass"];
    const LIMIT: Option<usize> = Some(50);

    fn definition() -> Definition {
        Definition {
            name: "search_records",
            path: "/v1/search_records",
            summary: "Searches NIH RePORTER and ClinicalTrials.gov now: grants and trials by words.",
            when: "Use it to find a known project, trial or subject, also one that did not change lately.",
            description: "Answers are cached for five minutes. `sponsorClass` `NIH` and `OTHER_GOV` match grants and trials, the other classes only \
                trials. `limit` counts grants and trials together. If an upstream does not answer in time, `live` is false, the note names it, and \
                the answer holds what is recorded here. With `asOf` the answer always holds what was recorded at that time.",
            example: json!({ "keyword": "cancer", "limit": 5 }),
            ..Definition::read()
        }
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Research>) -> Result<Found, Problem> {
        let limit = reader.limit();
        if reader.is_current()
            && let Some(found) = ask(&self.keyword, filter.sponsor_class, limit, reader).await
        {
            return Ok(Found { found, live: true });
        }
        let criteria = filter.criteria().and(|change| has_words(&texts(&change.record), &self.keyword));
        let changes = reader.list(criteria, DIGEST_MAX).await?;
        let records = reader.unchanged(changes).await?;
        Ok(Found { found: Fundings::of(records.into_iter().take(limit)), live: false })
    }
}

/// Asks both upstreams. `None` if one of them does not answer, which a note says.
async fn ask(keyword: &str, class: Option<SponsorClass>, limit: usize, reader: &mut Reader<Research>) -> Option<Fundings> {
    let (ctx, now) = (reader.context(), reader.at.now);
    let grants = Question::Grants { keyword: keyword.to_owned(), limit };
    let trials = Question::Trials { keyword: keyword.to_owned(), class: class.map_or("", registry_class), limit };
    let has_grants = class.is_none_or(|class| matches!(class, SponsorClass::Nih | SponsorClass::OtherGov));
    let (grants, trials) = tokio::join!(
        async { if has_grants { Some(live::look_up(ctx, grants, now).await) } else { None } },
        live::look_up(ctx, trials, now)
    );
    let (grants, trials) = match (grants.transpose(), trials) {
        (Ok(grants), Ok(trials)) => (grants, trials),
        (grants, trials) => {
            for (name, reason) in [("NIH RePORTER", grants.err()), ("ClinicalTrials.gov", trials.err())] {
                reader.note(reason.map(|reason| format!("{name}: {reason}")));
            }
            return None;
        }
    };
    let grants = grants.iter().flat_map(|grants| grants.iter()).filter_map(|fact| match fact {
        FactData::Grant(grant) if class.is_none_or(|class| class.as_str() == grant_class(&grant.ic)) => Some(Grant::from(&**grant)),
        _ => None,
    });
    let trials = trials.iter().filter_map(|fact| match fact {
        FactData::Trial(trial) => Some(Trial::from(&**trial)),
        _ => None,
    });
    // If both kinds are many, each gets half of the limit.
    let trials: Vec<Trial> = trials.take(limit).collect();
    let grants: Vec<Grant> = grants.take(limit.saturating_sub(trials.len()).max(limit.div_ceil(2))).collect();
    let trials: Vec<Trial> = trials.into_iter().take(limit - grants.len()).collect();
    Some(Fundings::new(grants, trials))
}

/// The texts of a record that are searched for words.
fn texts(record: &Funding) -> Vec<&str> {
    let lists = record.conditions.iter().chain(&record.interventions).chain(record.topics.iter().map(|topic| &topic.evidence));
    [&record.title, &record.org, &record.sponsor].into_iter().chain(lists).map(String::as_str).collect()
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
