//! `GET /v1/watchlist/{id}`: a watch with its matches.

use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Watch;
use access::saved_items::SavedItems;
use feed::answer_changes::shown;
use feed::cursor;
use feed::filter::Filter;
use feed::page_request::LIMIT_MAX;
use feed::position::position;
use feed::select::{Direction, Selection};
use feed::watchable::WatchableFeed;
use operation::metrics;
use operation::problem::Problem;
use operation::tiers::SAVED_ITEMS_MIN_TIER;
use operation::{Answer, Call, Definition, Operation, Price};

/// Arguments of `get_watch`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The id of the watch.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// How many matches to return at most.
    #[serde(default = "feed::page_request::limit_default")]
    #[schemars(range(min = 1, max = 200))]
    pub limit: usize,
    /// The `next` of an earlier answer, to get older matches. Without it the answer starts with the newest.
    pub after: Option<String>,
}

/// A watch with its matches.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Matches<N, T> {
    /// The watch.
    #[serde(flatten)]
    pub watch: Watch<N>,
    /// The changes since the watch was created that match it, the last recorded first.
    pub matches: Vec<T>,
    /// Whether there are older changes that this answer does not cover.
    pub has_more: bool,
    /// Send it as `after` to get older matches; null if there are none.
    pub next: Option<String>,
    /// The same as `next`, under its earlier name; left out if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// The operation for one service.
#[must_use]
pub fn operation<S: WatchableFeed>() -> Operation {
    let words = Definition {
        name: "get_watch",
        path: "/v1/watchlist/{id}",
        summary: "A watch with the changes since it was created that match it, newest first.",
        description: "Matches are found in the changes that were recorded after the watch was created. A record that changes again is one more \
            match. A page may be shorter than `limit`, or empty, while `hasMore` is true.",
        price: Price::Tier(SAVED_ITEMS_MIN_TIER),
        list: "matches",
        errors: &[ErrorCode::CursorInvalid],
        example: json!({ "id": "watch_0123456789abcdef01234567", "limit": 10 }),
        aliases: &[("cursor", "after")],
        ..Definition::read()
    };
    Operation::define::<Arguments, Matches<S::WatchedEntity, S::Shown>, _, _>(words, answer::<S>)
}

async fn answer<S: WatchableFeed>(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let ctx = &call.context;
    if arguments.limit == 0 || arguments.limit > LIMIT_MAX {
        return Err(Problem::parameter("limit", format!("{} is not between 1 and {LIMIT_MAX}", arguments.limit)));
    }
    let feed = S::FEED;
    let (service, secrets) = (feed.source.service, &ctx.secrets);
    let saved = SavedItems::watches(&call, service);
    let kept = saved.watch(&arguments.id).await?;
    let at = position(ctx, &feed.source, None).await?;
    let own = format!("watch/{}", kept.id);
    let upto = match &arguments.after {
        None => at.seq,
        Some(text) => match cursor::read(secrets, service, text).map_err(|problem| problem.about("after"))? {
            (seq, made_for) if made_for == own => seq.previous().min(at.seq),
            _ => return Err(cursor::invalid("the cursor does not belong to this watch").about("after")),
        },
    };
    let mut filter = S::Filter::from_canonical(&kept.filter).ok_or_else(|| {
        tracing::error!(id = kept.id, "the filter of a watch cannot be read");
        Problem::new(ErrorCode::Internal, "a stored watch cannot be read")
    })?;
    filter.look_up(ctx, &at, Seq(0)).await?;
    let limit = arguments.limit.min(ctx.settings.tiers.of(call.caller.tier).rows_max);
    let selection = Selection::new(ctx, &feed.source, feed.tables, &at, vec![filter.news()]).await?;
    let found = selection.find(kept.after, upto, limit, Direction::Backwards).await?;
    let has_more = found.to > kept.after.next();
    metrics::count_published(service, found.changes.len());
    let next = has_more.then(|| cursor::encode(secrets, service, found.to, &own));
    Answer::json(&Matches {
        watch: Watch::<S::WatchedEntity>::of(&kept, saved.sealing().await?.as_ref())?.shown::<S>(&call).await?,
        matches: shown::<_, S::Shown>(found.changes),
        has_more,
        next: next.clone(),
        cursor: next,
    })
}
