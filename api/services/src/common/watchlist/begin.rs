//! `POST /v1/watchlist`: begins a watch.

use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::Deserialize;
use serde_json::json;
use webhooks::parse::parse_webhook;

use super::Watch;
use access::saved::{NewWatch, SavedItems};
use feed::filter::Filter;
use feed::position::position;
use feed::watchable::WatchableFeed;
use operation::problem::Problem;
use operation::tiers::SAVED_ITEMS_MIN_TIER;
use operation::{Answer, Call, Definition, Method, Operation, Price};

/// Arguments of `watch`.
#[derive(Clone, Deserialize, JsonSchema)]
pub struct Arguments<N> {
    /// What is watched.
    #[serde(flatten)]
    pub named: N,
    /// Where to deliver what it matches: an https URL without user name or password. It is kept encrypted and never shown again. Without one
    /// the watch is asked for its matches.
    #[schemars(length(min = 1, max = 2000), extend("writeOnly" = true))]
    pub webhook: Option<String>,
    /// What to sign with: `whsec_` and 24 to 64 bytes in base64. One is made where none is given; either is answered this once.
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
        summary: "Begins a watch: every change from now on that concerns what is named.",
        description: "Ask for what it matched with `get_watch`. The same is posted to its webhook, in order, signed as Standard Webhooks have it \
            (`webhook-id`, `webhook-timestamp`, `webhook-signature`), and sent again for three days until it is answered with 2xx. With an \
            `Idempotency-Key` a repeated request makes no second watch.",
        price: Price::Tier(SAVED_ITEMS_MIN_TIER),
        tool: true,
        counted: true,
        list: "",
        errors: &[ErrorCode::LimitReached, ErrorCode::NotFound],
        example,
        aliases: &[],
    };
    Operation::define::<Arguments<S::WatchedEntity>, Watch<S::WatchedEntity>, _, _>(words, answer::<S>)
}

async fn answer<S: WatchableFeed>(call: Call, arguments: Arguments<S::WatchedEntity>) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let (named, filter) = S::parse_entity(arguments.named)?;
    let webhook = parse_webhook(ctx, "webhook", arguments.webhook.as_deref(), arguments.secret.as_deref()).await?;
    let entity = serde_json::to_string(&named).map_err(|error| {
        tracing::error!(%error, "a watch cannot be written");
        Problem::new(ErrorCode::Internal, "the watch could not be kept")
    })?;
    let source = S::FEED.source;
    // What readers could see until now does not count, whatever the log holds beyond it.
    let after = position(ctx, &source, None).await?.last.0;
    let shelf = SavedItems::watches(&call, source.service);
    let kept = shelf
        .create(NewWatch { entity, filter: filter.canonical(), webhook, given_secret: arguments.secret.unwrap_or_default(), after })
        .await?;
    let sealing = shelf.sealing().await?;
    let secret = sealing.as_ref().and_then(|sealing| sealing.first_secret(&kept));
    Ok(Answer { status: 201, ..Answer::json(&Watch::<S::WatchedEntity> { secret, ..Watch::of(&kept, sealing.as_ref())? })? })
}
