//! `GET /v1/search_filings`: filings by form and filing date, from EDGAR as it is now.

use std::cmp::Ordering;

use crate::record::Filing;
use jiff::ToSpan;
use jiff::civil::Date;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use upstreams::live::Question;

use super::filter::Filter;
use super::records::Filed;
use super::watchable_feed::Filings;
use feed::filter::Filter as _;
use feed::position::day_argument;
use operation::Definition;
use operation::problem::Problem;
use reads::read::{Extent, Read, Reader, Search};

/// How many days before the end a search starts by default.
const DAYS_DEFAULT: i64 = 30;
/// The name of the upstream in notes.
pub(crate) const EDGAR: &str = "EDGAR";

/// Arguments of `search_filings`, besides those of the filter.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The first filing date, YYYY-MM-DD, inclusive. By default 30 days before `end`.
    pub start: Option<String>,
    /// The last filing date, YYYY-MM-DD, inclusive. By default today.
    pub end: Option<String>,
}

/// The filings that match.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Found")]
pub struct FoundFilings {
    /// Filings, the last filed first.
    pub filings: Vec<Filed>,
    /// How many filings are in this answer.
    pub count: usize,
    /// The first filing date that was searched.
    pub start: String,
    /// The last filing date that was searched.
    pub end: String,
    /// Which part of all filings these are.
    #[serde(flatten)]
    pub extent: Extent,
}

impl Read for Arguments {
    type Service = Filings;
    type Answer = FoundFilings;

    const FILTER: &'static [&'static str] = &["form"];
    const LIMIT: Option<usize> = Some(50);
    const HAS_PAGES: bool = true;

    fn definition() -> Definition {
        Definition {
            name: "search_filings",
            path: "/v1/search_filings",
            summary: "Searches EDGAR now: filings by form and days.",
            when: "Use it to find filings of a form or period, also old ones.",
            description: "EDGAR's full-text search finds documents; a filing with several documents is listed once, or again if a later page begins with \
                them. If there are more filings than `limit`, `truncated` is true, and `next` continues as `after`. `total` is unknown, because EDGAR \
                counts documents. Each answer has its last filed first; fields that the search does not have are those recorded here. Answers are \
                cached for five minutes. If EDGAR does not answer in time, `live` is false, the note says why, and the answer holds what is \
                recorded here. With `asOf` the answer always holds what was recorded at that time.",
            list: "filings",
            errors: &[ErrorCode::AsOfInvalid, ErrorCode::CursorInvalid, ErrorCode::Unavailable],
            example: json!({ "form": "8-K", "limit": 5 }),
            ..Definition::read()
        }
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Filings>) -> Result<FoundFilings, Problem> {
        let limit = reader.limit();
        let last = day("end", self.end.as_deref())?.unwrap_or_else(|| reader.today());
        let first = day("start", self.start.as_deref())?.unwrap_or_else(|| last.saturating_sub(DAYS_DEFAULT.days()));
        if first > last {
            return Err(Problem::parameter("start", format!("{first} is after {last}, which is the end")));
        }
        let (start, end) = (first.to_string(), last.to_string());
        let is_within = |date: &str| start.as_str() <= date && date <= end.as_str();
        let mut filter = filter;
        let note = filter.look_up(reader.context(), &reader.at, reader.after()).await?;
        reader.note(note);
        let live_from = reader.live_from(first, last);
        let question = Question::Filings { forms: filter.form.clone(), start: live_from, end: last, page: String::new() };
        let found = reader
            .search(Search {
                upstream: EDGAR,
                question,
                is_wanted: &|filing| is_within(&filing.filing_date),
                limit,
                recorded: filter.criteria().and(|change| is_within(&change.record.filing_date)),
                order: last_filed_first,
            })
            .await?;
        let mut filings = found.records;
        filings.sort_by(last_filed_first);
        let filings: Vec<Filed> = filings.into_iter().map(Filed::from).collect();
        let start = if found.extent.live { live_from.to_string() } else { start };
        Ok(FoundFilings { count: filings.len(), filings, start, end, extent: found.extent })
    }
}

/// The order of lists: the last filed first.
pub(crate) fn last_filed_first(a: &Filing, b: &Filing) -> Ordering {
    (&b.filing_date, &b.id).cmp(&(&a.filing_date, &a.id))
}

/// Reads the day of a parameter.
fn day(name: &'static str, text: Option<&str>) -> Result<Option<Date>, Problem> {
    text.map(|text| day_argument(name, text)).transpose()
}

#[cfg(test)]
mod tests {
    use feed::testing::{START_MS, World, ask};

    use super::*;
    use reads::read::operation;

    /// Proves that a read has the shared arguments that it asks for, the filter fields that it names and its own arguments, and no others.
    #[test]
    fn arguments_of_a_read() {
        let input = operation::<Arguments>().input;
        let properties = input["properties"].as_object().unwrap();
        assert_eq!(properties.keys().collect::<Vec<_>>(), ["after", "asOf", "end", "form", "limit", "start"]);
        assert_eq!((&properties["limit"]["default"], &properties["form"]["type"]), (&json!(50), &json!(["string", "array"])));
        assert_eq!(input.get("required"), None);
    }

    /// Proves that the own arguments, the shared ones and those of the filter all reach a read: an error of each names its parameter.
    #[tokio::test]
    async fn arguments_reach_a_read() {
        let world = World::new().await;
        let (ctx, operation) = (world.context(START_MS), operation::<Arguments>());
        for (arguments, parameter) in [
            (json!({ "start": "2026-11-02", "end": "2026-11-01", "form": "8-K, 4" }), "start"),
            (json!({ "end": "soon", "limit": 5 }), "end"),
            (json!({ "asOf": "2099-01-01" }), "asOf"),
        ] {
            let problem = ask(&ctx, &operation, arguments).await.unwrap_err();
            assert_eq!(problem.parameter, parameter, "{}", problem.detail);
        }
        let found = ask(&ctx, &operation, json!({ "form": "8-K,4", "start": "2026-10-01", "limit": 5 })).await;
        assert!(found.is_ok(), "{:?}", found.err());
    }
}
