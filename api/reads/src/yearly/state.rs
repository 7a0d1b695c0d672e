//! `GET /api/watch/{id}`: one watch.

use operation::problem::Problem;
use operation::{Answer, Call, Definition, Operation, Surface};
use schemas::error_code::ErrorCode;
use serde_json::json;
use webhooks::operations::ById;

use super::{SoldWatches, TimedWatch, owned};

/// The operation for one service.
#[must_use]
pub fn operation<S: SoldWatches>() -> Operation {
    let words = Definition {
        name: "get_watch",
        path: "/api/watch/{id}",
        summary: "A watch: what it names, and until when.",
        description: "Opened by the key of its account, or by its token in the header `X-Watch-Token`. It can be read until 30 days after its end. It is \
            shown as it is now: a watch is no record of an upstream, so that there is no `asOf`. The matches have one.",
        surface: Surface::Route,
        errors: &[ErrorCode::NotFound],
        example: json!({ "id": "watch_0123456789abcdef01234567" }),
        ..Definition::read()
    };
    Operation::define::<ById, TimedWatch<S::WatchedEntity>, _, _>(words, answer::<S>).with_watch_token()
}

async fn answer<S: SoldWatches>(call: Call, by: ById) -> Result<Answer, Problem> {
    let item = owned::<S>(&call, None)?.watch(&by.id).await?;
    Answer::json(&TimedWatch::<S::WatchedEntity>::of(&call.context, S::FEED.source.service, &item).await?)
}
