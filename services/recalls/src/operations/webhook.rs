//! `/api/webhook`: webhooks that receive every new recall. Each is a watch with a webhook, stored and delivered like the watches of other services.

use feed::Source;
use feed::filter::Element;
use operation::context::Context;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use schemas::views::accounts::Tier;
use schemas::views::recalls::Recall;
use schemas::views::watches::SavedItem;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::SOURCE;
use super::list::ListedRecall;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Price};
use reads::list_page::ListPage;
use reads::registration::Bundle;
use reads::watchlist::delete::Deleted;
use reads::watchlist::{self, Request, Watch};
use webhooks::matchers::{MatchingChanges, WebhookFeed, matcher, page};
use webhooks::operations::{self as webhook_operations, ById, WebhookAccess, WebhookConfig};
use webhooks::parse::parse_webhook;

/// The lowest tier with webhooks.
const TIER: Tier = Tier::Business;

/// Arguments of `register_webhook`.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Where new recalls are delivered: an https URL without user name or password. It is stored encrypted and never shown again.
    #[schemars(length(min = 1, max = 2000), extend("writeOnly" = true))]
    pub webhook_url: String,
    /// The secret that signs the messages: `whsec_` and 24 to 64 bytes in base64. If none is given, one is generated. The answer to this
    /// request is the only one that shows it.
    #[schemars(length(min = 1, max = 200), extend("writeOnly" = true))]
    pub secret: Option<String>,
}

/// A webhook.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// The id of the webhook.
    pub id: String,
    /// The host of the URL; the rest of the URL is never shown.
    pub webhook_host: String,
    /// The secret that signs the messages, as Standard Webhooks define it. Only the answer that registers the webhook has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// When the webhook was registered, RFC 3339 in UTC.
    #[schemars(with = "proofs::json_type::Time")]
    pub made_at: String,
    /// The last change before the webhook: new recalls with a higher `seq` are delivered.
    pub after: Seq,
    /// That the secret was shown before. Only the answer to a repeated request has a note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The account's webhooks.
#[derive(Clone, Serialize, JsonSchema)]
pub struct Webhooks {
    /// The webhooks, the last registered first.
    pub webhooks: Vec<Webhook>,
    /// Send it as `after` to get the webhooks registered before these; null if there are no more.
    pub next: Option<String>,
}

/// The operations.
#[must_use]
pub fn operations() -> Bundle {
    let words = |name, method, path, summary, description, example| Definition {
        name,
        method,
        path,
        summary,
        description,
        price: Price::Tier(TIER),
        errors: &[ErrorCode::LimitReached, ErrorCode::NotFound],
        example,
        ..Definition::read()
    };
    let registered = words(
        "register_webhook",
        Method::Post,
        "/api/webhook",
        "Registers a webhook that receives every new recall.",
        "Each message is `{\"event\": \"recalls.new\", \"deliveredAt\", \"recall\"}`. `deliveredAt` is when the recall was recorded, the same in each \
            attempt. Messages come in the order of the feed, signed as Standard Webhooks define it (`webhook-id`, `webhook-timestamp`, \
            `webhook-signature`); a failed delivery is retried for three days until the answer is 2xx. With an `Idempotency-Key` a repeated \
            request creates no second webhook; the secret is in the first answer only.",
        json!({ "webhook_url": "https://hooks.example.com/recalls" }),
    );
    let listed = words("list_webhooks", Method::Get, "/api/webhook", "The account's webhooks.", "The last registered first.", json!({}));
    let deleted = words(
        "delete_webhook",
        Method::Delete,
        "/api/webhook/{id}",
        "Deletes a webhook.",
        "Messages that wait for delivery are not sent.",
        json!({ "id": "watch_0123456789abcdef01234567" }),
    );
    let registered = Definition { errors: &[ErrorCode::LimitReached, ErrorCode::IdempotencyMismatch, ErrorCode::NotFound], ..registered };
    let listed = Definition { list: "webhooks", ..listed };
    let config = WebhookConfig {
        service: SOURCE.service,
        access: WebhookAccess::Tier(TIER),
        matcher: matcher::<NewRecalls>,
        paths: [
            "/api/webhook/{id}/deliveries",
            "/api/webhook/{id}/ping",
            "/api/webhook/{id}/replay",
            "/api/webhook/{id}/resend",
            "/api/webhook/{id}",
            "/api/webhook/{id}/messages/{message}",
        ],
    };
    let own = [
        Operation::define::<Arguments, Webhook, _, _>(registered, register),
        Operation::define::<ListPage, Webhooks, _, _>(listed, list),
        Operation::define::<ById, Deleted, _, _>(deleted, delete),
    ];
    Bundle::watches(own.into_iter().map(Operation::managed).chain(webhook_operations::operations(config)).collect(), matcher::<NewRecalls>)
}

async fn register(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let Arguments { webhook_url, secret } = arguments;
    let webhook = parse_webhook(&call.context, "webhook_url", Some(&webhook_url), secret.as_deref()).await?;
    let request = Request { named: EveryRecall {}, filter: String::new(), webhook, secret };
    let watch = watchlist::create(&call, &SOURCE, request).await?;
    Ok(Answer { status: 201, ..Answer::json(&Webhook::from(watch))? })
}

async fn list(call: Call, page: ListPage) -> Result<Answer, Problem> {
    let (watches, next) = watchlist::list(&call, SOURCE.service, &page).await?;
    Answer::json(&Webhooks { webhooks: watches.into_iter().map(Webhook::from).collect(), next })
}

async fn delete(call: Call, by: ById) -> Result<Answer, Problem> {
    Answer::json(&Deleted { deleted: watchlist::delete(&call, SOURCE.service, &by.id).await? })
}

/// What the watch of a webhook names: nothing, because it matches every new recall.
#[derive(Serialize, Deserialize)]
struct EveryRecall {}

impl From<Watch<EveryRecall>> for Webhook {
    fn from(watch: Watch<EveryRecall>) -> Self {
        let Watch { id, named: EveryRecall {}, webhook_host, secret, made_at, after, note } = watch;
        Self { id, webhook_host: webhook_host.unwrap_or_default(), secret, made_at, after, note }
    }
}

/// The changes that the recalls' webhooks receive: each new recall.
pub(crate) struct NewRecalls;

impl WebhookFeed for NewRecalls {
    type Subscription = ();
    type Record = Recall;

    const SOURCE: Source = SOURCE;

    fn subscription(_: &SavedItem) -> Option<()> {
        Some(())
    }

    fn selects((): &(), change: &Element<Recall>) -> bool {
        change.event == "new"
    }

    async fn find(ctx: &Context, every: &(), after: Seq, upto: Seq) -> MatchingChanges<Recall> {
        let view = ctx.live(SOURCE.view).await?;
        let (changes, to) = page::<Recall>(ctx, &SOURCE, view, after, upto).await?;
        let first = changes.into_iter().find(|change| Self::selects(every, change));
        let to = first.as_ref().map_or(to, |first| first.seq);
        Ok((first.into_iter().collect(), to))
    }

    fn message(_: &SavedItem, changes: Vec<Element<Recall>>) -> Option<Value> {
        let change = changes.into_iter().next()?;
        // The time of recording, which is the same in each attempt. The header has the time of the attempt.
        Some(json!({ "event": "recalls.new", "deliveredAt": change.recorded_at, "recall": ListedRecall::from(change.record) }))
    }
}
