//! `GET /v1/search_records`: grants and trials by words, asked of the upstreams now.

use feed::live;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::facts::FactData;
use schemas::facts::grants::grant_class;
use schemas::views::research::Funding;
use serde::{Deserialize, Serialize};
use serde_json::json;
use upstreams::live::Question;

use super::filter::{Filter, SponsorClass};
use super::new_funding::{Counts, split};
use super::records::{Grant, Trial};
use super::{Change, FEED, SOURCE};
use feed::filter::{self, TermQuery, has_words};
use feed::notes::notes;
use feed::position::position;
use feed::query::{DIGEST_MAX, newest};
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Price};

/// Arguments of `search_records`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    /// Words that must all occur in the title, abstract, terms or conditions.
    #[schemars(length(min = 1, max = 200))]
    pub keyword: String,
    /// Class of the sponsor. `NIH` and `OTHER_GOV` have grants and trials, the others trials alone.
    pub sponsor_class: Option<SponsorClass>,
    /// How many grants and trials to give at most, together.
    #[serde(default = "feed::page_request::limit_default")]
    #[schemars(range(min = 1, max = 200))]
    pub limit: usize,
    /// Answer as of this time, from what was recorded then: a date YYYY-MM-DD (its end in UTC) or an RFC 3339 time, not later than now.
    pub as_of: Option<String>,
}

/// What was found.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// Grants, the latest first.
    pub grants: Vec<Grant>,
    /// Trials, the latest first.
    pub trials: Vec<Trial>,
    /// How many are in this answer.
    pub counts: Counts,
    /// Whether the upstreams were asked for this answer; else it is what is recorded here.
    pub live: bool,
    /// What to know about the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Records that have words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Worded {
    keyword: String,
    filter: Filter,
}

impl filter::Filter for Worded {
    type Record = Funding;

    fn matches(&self, change: &Change) -> bool {
        let record = &change.record;
        let lists = [&record.conditions, &record.interventions].map(|list| list.join(" "));
        let topics: Vec<&str> = record.topics.iter().map(|topic| topic.evidence.as_str()).collect();
        let texts = [record.title.as_str(), &record.org, &record.sponsor, &lists[0], &lists[1]];
        let texts: Vec<&str> = texts.into_iter().chain(topics).collect();
        has_words(&texts, &self.keyword) && self.filter.takes(record)
    }

    fn term_queries(&self) -> Vec<TermQuery> {
        Vec::new()
    }
}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "search_records",
        method: Method::Get,
        path: "/v1/search_records",
        summary: "Grants and trials by words, asked of NIH RePORTER and ClinicalTrials.gov now.",
        description: "Answers are kept for five minutes. Where an upstream does not answer in time, `live` is false, the note says which, and the \
            answer holds what is recorded here. With `asOf` it is always of what was recorded then.",
        price: Price::Free,
        tool: true,
        counted: true,
        list: "",
        errors: &[ErrorCode::AsOfInvalid],
        example: json!({ "keyword": "cancer", "limit": 5 }),
        aliases: &[],
    };
    Operation::define::<Arguments, Found, _, _>(words, answer)
}

async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let at = position(ctx, &SOURCE, arguments.as_of.as_deref()).await?;
    let mut told = notes(&call, &SOURCE, &at).await?;
    let limit = told.limit(arguments.limit);
    let class = arguments.sponsor_class;
    if arguments.as_of.is_none() {
        let keyword = arguments.keyword.clone();
        let grants = Question::Grants { keyword: keyword.clone(), limit };
        let trials = Question::Trials { keyword, class: class.map_or("", registry_class), limit };
        let wants_grants = class.is_none_or(|class| matches!(class, SponsorClass::Nih | SponsorClass::OtherGov));
        let (grants, trials) = tokio::join!(
            async { if wants_grants { Some(live::look_up(ctx, grants, at.now).await) } else { None } },
            live::look_up(ctx, trials, at.now)
        );
        match (grants.transpose(), trials) {
            (Ok(grants), Ok(trials)) => {
                let grants = grants.iter().flat_map(|grants| grants.iter()).filter_map(|fact| match fact {
                    FactData::Grant(grant) if class.is_none_or(|class| class.as_str() == grant_class(&grant.ic)) => {
                        Some(Grant::from(&**grant))
                    }
                    _ => None,
                });
                let trials = trials.iter().filter_map(|fact| match fact {
                    FactData::Trial(trial) => Some(Trial::from(&**trial)),
                    _ => None,
                });
                let trials: Vec<Trial> = trials.take(limit).collect();
                let grants: Vec<Grant> = grants.take(limit.saturating_sub(trials.len()).max(limit.div_ceil(2))).collect();
                let trials: Vec<Trial> = trials.into_iter().take(limit - grants.len()).collect();
                let counts = Counts { grants: grants.len(), trials: trials.len() };
                return Answer::json(&Found { grants, trials, counts, live: true, note: told.note() });
            }
            (grants, trials) => {
                for (name, said) in [("NIH RePORTER", grants.err()), ("ClinicalTrials.gov", trials.err())] {
                    told.add(said.map(|why| format!("{name}: {why}")));
                }
            }
        }
    }
    let filter = Worded { keyword: arguments.keyword, filter: Filter { sponsor_class: class, ..Filter::default() } };
    let found = newest(ctx, &FEED, &at, &filter, told.after, DIGEST_MAX).await?;
    told.add(found.list_note());
    let (grants, trials) = split(FEED.still_current(&at, found.changes).await?.into_iter().take(limit));
    let counts = Counts { grants: grants.len(), trials: trials.len() };
    Answer::json(&Found { grants, trials, counts, live: false, note: told.note() })
}

/// What is asked of the registry: of the contract's four classes two stand for several of its own.
fn registry_class(class: SponsorClass) -> &'static str {
    match class {
        SponsorClass::Industry => "INDUSTRY",
        SponsorClass::Nih => "NIH",
        SponsorClass::OtherGov => "(FED OR OTHER_GOV)",
        SponsorClass::Other => "(OTHER OR NETWORK OR INDIV OR AMBIG OR UNKNOWN)",
    }
}
