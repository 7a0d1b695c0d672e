//! `DELETE /api/watch/{id}`: cancels a watch.

use access::token::WatchToken;
use access::yearly::YearlyWatches;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Surface};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use webhooks::operations::ById;

use super::{SoldWatches, owned};

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
}

/// The answer about a cancelled watch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CancelledWatch {
    /// The id of the watch.
    pub id: String,
    /// Always true.
    pub cancelled: bool,
}

/// The route for one service.
#[must_use]
pub fn route<S: SoldWatches>() -> Operation {
    let words = Definition { name: "delete_watch", path: "/api/watch/{id}", surface: Surface::Route, ..words() };
    let run = |call: Call, by: ById| async move { answer::<S>(call, by.id, None).await };
    Operation::define::<ById, CancelledWatch, _, _>(words, run).with_watch_token()
}

/// The tool for one service.
#[must_use]
pub fn tool<S: SoldWatches>() -> Operation {
    let words = Definition { surface: Surface::Tool, when: "Use it when a name is no longer of interest.", ..words() };
    let run = |call: Call, arguments: ToolArguments| async move { answer::<S>(call, arguments.id, arguments.token).await };
    Operation::define::<ToolArguments, CancelledWatch, _, _>(words, run)
}

fn words() -> Definition {
    Definition {
        name: "cancel_watch",
        method: Method::Delete,
        summary: "Cancels a watch before its end, without a refund.",
        description: "Opened by the key of the watch's account, or by the token of the watch in the header `X-Watch-Token`. Nothing more is delivered to \
            its webhook, and the watch can no longer be read. What was stored for the holder of a token can no longer be decrypted.",
        errors: &[ErrorCode::NotFound],
        example: json!({ "id": "watch_0123456789abcdef01234567" }),
        ..Definition::read()
    }
}

async fn answer<S: SoldWatches>(call: Call, id: String, token: Option<String>) -> Result<Answer, Problem> {
    // The same refusals as for reading it.
    owned::<S>(&call, token.as_deref())?.watch(&id).await?;
    let token = WatchToken::of_call(call.watch_token.as_deref(), token.as_deref())?;
    YearlyWatches::new(&call, S::FEED.source.service, token).cancel(&id).await?;
    Answer::json(&CancelledWatch { id, cancelled: true })
}
