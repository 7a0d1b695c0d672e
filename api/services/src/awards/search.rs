//! `GET /v1/search_awards`: contract awards, from USAspending as it is now.

use jiff::ToSpan;
use jiff::civil::Date;
use schemars::JsonSchema;
use schemas::facts::FactData;
use serde::{Deserialize, Serialize};
use serde_json::json;
use upstreams::live::{AwardOrder, Question};

use super::filter::Filter;
use super::followed::Awards;
use super::records::{Shown, date_of};
use crate::common::read::{Live, Read, Reader};
use feed::filter::{Filter as _, contains};
use feed::position::parse_date;
use operation::Definition;
use operation::problem::Problem;

/// The name of the upstream in notes.
pub(super) const USASPENDING: &str = "USAspending";
/// How many days ago a search starts by default.
const DAYS_DEFAULT: i64 = 30;

/// Arguments of `search_awards`, besides those of the filter.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The first day of an action, YYYY-MM-DD, inclusive. By default 30 days ago.
    pub start: Option<String>,
}

/// The awards that match.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Found {
    /// Awards, the last modified first.
    pub awards: Vec<Shown>,
    /// How many awards are in this answer.
    pub count: usize,
    /// The first day of an action that was searched.
    pub start: String,
    /// Whether USAspending was asked for this answer; otherwise it holds what is recorded here.
    pub live: bool,
}

impl Read for Arguments {
    type Service = Awards;
    type Answer = Found;

    const FILTER: &'static [&'static str] = &["naics", "agency"];
    const LIMIT: Option<usize> = Some(50);

    fn definition() -> Definition {
        Definition {
            name: "search_awards",
            path: "/v1/search_awards",
            summary: "Searches USAspending now: contract awards by industry code, agency and day.",
            when: "Use it to find contracts, also ones that did not change lately.",
            description: "One page of USAspending's search: the 100 contracts modified last. `agency` filters these. Answers are cached for five \
                minutes. If USAspending does not answer in time, `live` is false, the note says why, and the answer holds what is recorded here. \
                With `asOf` the answer always holds what was recorded at that time.",
            list: "awards",
            example: json!({ "naics": "54", "limit": 5 }),
            ..Definition::read()
        }
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Awards>) -> Result<Found, Problem> {
        let limit = reader.limit();
        let today = reader.today();
        let first = match self.start.as_deref() {
            Some(text) => parse_date(text)
                .filter(|start| *start <= today)
                .ok_or_else(|| Problem::parameter("start", format!("{text:?} is not a date of the form YYYY-MM-DD up to today")))?,
            None => today.saturating_sub(DAYS_DEFAULT.days()),
        };
        let start = first.to_string();
        let question = question(&filter.naics, "", first, today, AwardOrder::Newest);
        let agency = filter.agency.as_deref();
        let is_of = |award: &Shown| agency.is_none_or(|part| contains(&award.agency, part) || contains(&award.more.sub_agency, part));
        let read = |fact: &FactData| listed(fact).filter(is_of);
        let criteria = filter.criteria().and(|change| date_of(&change.record) >= start.as_str());
        let Live { items: mut awards, is_live: live } = reader.search(USASPENDING, question, read, criteria).await?;
        awards.truncate(limit);
        Ok(Found { count: awards.len(), awards, start, live })
    }
}

/// A search at the upstream.
pub(super) fn question(naics: &[String], recipient: &str, start: Date, end: Date, order: AwardOrder) -> Question {
    Question::Awards { naics: naics.to_vec(), recipient: recipient.to_owned(), start, end, order }
}

/// The award of a fact; `None` for another fact.
pub(super) fn listed(fact: &FactData) -> Option<Shown> {
    if let FactData::Award(award) = fact { Some(Shown::from(&**award)) } else { None }
}
