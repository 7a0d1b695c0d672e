//! `GET /api/watch/{id}/matches`: the changes that a watch selects, for callers who poll instead of receiving a webhook.

use feed::cursor;
use feed::filter::Filter;
use feed::page_request::LIMIT_MAX;
use feed::position::position;
use feed::select::{Direction, Selection};
use operation::metrics;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Operation, Surface};
use schemars::JsonSchema;
use schemas::clock::rfc3339;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{SoldWatches, filter, owned};

/// Arguments of the route.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The id of the watch.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// The `cursor` of an earlier answer, to get the matches recorded since. Without it the answer starts with the first match.
    #[schemars(length(min = 1, max = 4000))]
    pub cursor: Option<String>,
    /// How many matches to return at most.
    #[serde(default = "feed::page_request::limit_default")]
    #[schemars(range(min = 1, max = 200))]
    pub limit: usize,
    /// Answer with the matches recorded until this time: a date YYYY-MM-DD (its end in UTC) or an RFC 3339 time, not later than now.
    #[serde(rename = "asOf")]
    pub as_of: Option<String>,
}

/// Arguments of the tool.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolArguments {
    /// The id of the watch.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// The token of the watch, if it was bought without a key.
    #[schemars(length(min = 46, max = 46), extend("writeOnly" = true))]
    pub token: Option<String>,
    /// The `cursor` of an earlier answer, to get the matches recorded since. Without it the answer starts with the first match.
    #[schemars(length(min = 1, max = 4000))]
    pub cursor: Option<String>,
    /// How many matches to return at most.
    #[serde(default = "feed::page_request::limit_default")]
    #[schemars(range(min = 1, max = 200))]
    pub limit: usize,
    /// Answer with the matches recorded until this time: a date YYYY-MM-DD (its end in UTC) or an RFC 3339 time, not later than now.
    #[serde(rename = "asOf")]
    pub as_of: Option<String>,
}

/// Matches of a watch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WatchMatches<M> {
    /// The changes that match, in the order in which they were recorded. A record that changes again is one more match.
    pub matches: Vec<M>,
    /// Send it back to get the matches recorded since.
    pub cursor: String,
    /// Whether there are more changes that this answer does not cover. A page may be empty while it is true.
    pub has_more: bool,
}

/// The route for one service.
#[must_use]
pub fn route<S: SoldWatches>() -> Operation {
    let words = Definition {
        name: "get_watch_matches",
        path: "/api/watch/{id}/matches",
        surface: Surface::Route,
        example: json!({ "id": "watch_0123456789abcdef01234567", "limit": 10 }),
        ..words()
    };
    let run = |call: Call, arguments: Arguments| async move {
        let Arguments { id, cursor, limit, as_of } = arguments;
        answer::<S>(call, &id, None, Part { cursor, limit, as_of }).await
    };
    Operation::define::<Arguments, WatchMatches<S::Match>, _, _>(words, run).with_watch_token()
}

/// The tool for one service.
#[must_use]
pub fn tool<S: SoldWatches>() -> Operation {
    let words = Definition {
        surface: Surface::Tool,
        when: "Use it to poll a watch that has no webhook.",
        example: json!({ "id": "watch_0123456789abcdef01234567", "limit": 10 }),
        ..words()
    };
    let run = |call: Call, arguments: ToolArguments| async move {
        let ToolArguments { id, token, cursor, limit, as_of } = arguments;
        answer::<S>(call, &id, token.as_deref(), Part { cursor, limit, as_of }).await
    };
    Operation::define::<ToolArguments, WatchMatches<S::Match>, _, _>(words, run)
}

fn words() -> Definition {
    Definition {
        name: "watch_matches",
        summary: "The changes since a watch was created that match it, the first recorded first.",
        description: "Opened by the key of the watch's account, or by the token of the watch in the header `X-Watch-Token`. Changes that were recorded \
            after the end of the watch do not match. A webhook is sent the same matches.",
        list: "matches",
        errors: &[ErrorCode::NotFound, ErrorCode::CursorInvalid, ErrorCode::AsOfInvalid],
        ..Definition::read()
    }
}

/// Which part of the matches is asked for.
struct Part {
    cursor: Option<String>,
    limit: usize,
    as_of: Option<String>,
}

async fn answer<S: SoldWatches>(call: Call, id: &str, token: Option<&str>, part: Part) -> Result<Answer, Problem> {
    let Part { cursor, limit, as_of } = part;
    if limit == 0 || limit > LIMIT_MAX {
        return Err(Problem::parameter("limit", format!("{limit} is not between 1 and {LIMIT_MAX}")));
    }
    let (ctx, feed) = (&call.context, S::FEED);
    let service = feed.source.service;
    let item = owned::<S>(&call, token)?.watch(id).await?;
    // No feed and no other watch has cursors of this kind.
    let own = format!("watch/{}/matches", item.id);
    let after = match cursor.as_deref() {
        None => item.after,
        Some(text) => match cursor::read(&ctx.secrets, service, text).map_err(|problem| problem.about("cursor"))? {
            (seq, made_for) if made_for == own => seq.max(item.after),
            _ => return Err(cursor::invalid("the cursor does not belong to this watch").about("cursor")),
        },
    };
    let filter: S::Filter = filter(&item)?;
    let at = position(ctx, &feed.source, as_of.as_deref()).await?;
    let limit = limit.min(ctx.settings.tiers.of(call.caller.tier).rows_max);
    let end = rfc3339(item.until);
    let criteria = filter.news().and(|change| change.recorded_at <= end);
    let found =
        Selection::new(ctx, &feed.source, feed.tables, &at, vec![criteria]).await?.find(after, at.seq, limit, Direction::Forwards).await?;
    metrics::count_published(service, found.changes.len());
    let to = found.to.max(after);
    let prepared = S::prepare(&filter);
    let matches: Vec<S::Match> = found.changes.into_iter().filter_map(|change| S::matched(&prepared, change)).collect();
    Answer::json(&WatchMatches { matches, cursor: cursor::encode(&ctx.secrets, service, to, &own), has_more: to < at.seq })
}
