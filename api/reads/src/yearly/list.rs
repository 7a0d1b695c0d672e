//! `GET /api/watch`: the watches of an account.

use access::saved_items::SavedItems;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Operation};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::views::watches::SavedItem;
use serde::Serialize;
use serde_json::json;

use super::{SoldWatches, TimedWatch};
use crate::list_page::ListPage;

/// The watches of an account.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TimedWatches<N> {
    /// How many watches the account has, those that ended less than 30 days ago included.
    pub count: usize,
    /// The watches, the last created first.
    pub watches: Vec<TimedWatch<N>>,
    /// Send it as `after` to get the watches created before these; null if there are no more.
    pub next: Option<String>,
}

/// The operation for one service.
#[must_use]
pub fn operation<S: SoldWatches>() -> Operation {
    let words = Definition {
        name: "list_watches",
        path: "/api/watch",
        summary: "The watches of the key's account, the last created first.",
        when: "Use it to see what is watched and until when.",
        description: "Needs a key of any tier. A watch that was bought without a key belongs to no account: read it with its token. The list is that of now: \
            a watch is no record of an upstream, so that there is no `asOf`.",
        list: "watches",
        errors: &[],
        example: json!({}),
        ..Definition::read()
    };
    Operation::define::<ListPage, TimedWatches<S::WatchedEntity>, _, _>(words, answer::<S>)
}

async fn answer<S: SoldWatches>(call: Call, page: ListPage) -> Result<Answer, Problem> {
    if call.caller.account.is_empty() {
        return Err(Problem::new(ErrorCode::KeyInvalid, "the watches are those of the account of an API key, and this call has none"));
    }
    let service = S::FEED.source.service;
    let all = SavedItems::watches(&call, service).list().await?;
    let count = all.len();
    let (items, next) = page.newest_first(all, place)?;
    let mut watches = Vec::with_capacity(items.len());
    for item in &items {
        watches.push(TimedWatch::<S::WatchedEntity>::of(&call.context, service, item).await?);
    }
    Answer::json(&TimedWatches { count, watches, next })
}

/// The place of a watch in the order of creation.
fn place(item: &SavedItem) -> (i64, &str) {
    (item.made_at, &item.id)
}
