//! `POST /v1/watchlist`: creates a watch.

use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::Deserialize;
use serde_json::json;
use webhooks::parse::parse_webhook;

use super::{Request, Watch, create};
use crate::unknown::note_of;
use feed::filter::Filter;
use feed::watchable::WatchableFeed;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Price};

/// Arguments of `watch`.
#[derive(Clone, Deserialize, JsonSchema)]
pub struct Arguments<N> {
    /// What is watched.
    #[serde(flatten)]
    pub named: N,
    /// Where matches are delivered: an https URL without user name or password. It is stored encrypted and never shown again. Without a
    /// webhook, get the matches with `get_watch`.
    #[schemars(length(min = 1, max = 2000), extend("writeOnly" = true))]
    pub webhook: Option<String>,
    /// The secret that signs the messages: `whsec_` and 24 to 64 bytes in base64. If none is given, one is generated. The answer to this
    /// request is the only one that shows it.
    #[schemars(length(min = 1, max = 200), extend("writeOnly" = true))]
    pub secret: Option<String>,
}

/// The operation for one service.
#[must_use]
pub fn operation<S: WatchableFeed>() -> Operation {
    let mut example = S::example_entity();
    if let Some(fields) = example.as_object_mut() {
        fields.insert("webhook".to_owned(), json!("https://hooks.example.com/highwater"));
    }
    let words = Definition {
        name: "watch",
        method: Method::Post,
        path: "/v1/watchlist",
        summary: "Creates a watch: it matches every change from now on of what is named.",
        description: "Get the matches with `get_watch`. The webhook receives the same matches in order, signed as Standard Webhooks define it \
            (`webhook-id`, `webhook-timestamp`, `webhook-signature`); a failed delivery is retried for three days until the answer is 2xx. With an \
            `Idempotency-Key` a repeated request creates no second watch; the secret is in the first answer only.",
        price: Price::Tier(S::WATCH_MIN_TIER),
        errors: &[ErrorCode::LimitReached, ErrorCode::IdempotencyMismatch, ErrorCode::NotFound],
        example,
        ..Definition::read()
    };
    Operation::define::<Arguments<S::WatchedEntity>, Watch<S::WatchedEntity>, _, _>(words, answer::<S>)
}

async fn answer<S: WatchableFeed>(call: Call, arguments: Arguments<S::WatchedEntity>) -> Result<Answer, Problem> {
    let Arguments { named, webhook, secret } = arguments;
    let (named, filter) = S::parse_entity(named)?;
    S::check(&call.context, &filter).await?;
    let webhook = parse_webhook(&call.context, "webhook", webhook.as_deref(), secret.as_deref()).await?;
    let filter = S::resolve(&call.context, filter).await?;
    let (named, filter) = S::bind(&call, named, filter).await?;
    let note = note_of::<S>(&call, &filter).await?;
    let watch = create(&call, &S::FEED.source, Request { named, filter: filter.canonical(), webhook, secret }).await?;
    let watch = watch.shown::<S>(&call).await?;
    Ok(Answer { status: 201, ..Answer::json(&Watch { note: watch.note.or(note), ..watch })? })
}
