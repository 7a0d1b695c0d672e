//! `/api/webhook`: every new recall posted to a URL.

use feed::Source;
use feed::filter::Element;
use operation::context::Context;
use schemars::JsonSchema;
use schemas::clock::rfc3339;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use schemas::views::accounts::Tier;
use schemas::views::recalls::Recall;
use schemas::views::watches::SavedItem;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::SOURCE;
use super::list::Record;
use crate::common::watchlist::{end, list};
use crate::registration::Bundle;
use access::saved::{NewWatch, SavedItems};
use access::webhook::Sealing;
use feed::position::position;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Price};
use webhooks::matchers::{Found, WebhookFeed, matcher, page};
use webhooks::operations::{self as webhook_operations, ById, WebhookConfig};
use webhooks::parse::parse_webhook;

/// From which tier on.
const TIER: Tier = Tier::Business;

/// Arguments of `register_webhook`.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Where new recalls are posted: an https URL without user name or password. It is kept encrypted and never shown again.
    #[schemars(length(min = 1, max = 2000), extend("writeOnly" = true))]
    pub webhook_url: String,
    /// What to sign with: `whsec_` and 24 to 64 bytes in base64. One is made where none is given; either is answered this once.
    #[schemars(length(min = 1, max = 200), extend("writeOnly" = true))]
    pub secret: Option<String>,
}

/// A webhook.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// Its id.
    pub id: String,
    /// The host of its URL; of the rest nothing is shown.
    pub webhook_host: String,
    /// What its messages are signed with, as Standard Webhooks have it; in the answer that makes the webhook, and in no other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// When it was made, RFC 3339 in UTC.
    pub made_at: String,
    /// The last change before it: new recalls with a higher `seq` are posted.
    pub after: u64,
}

/// The account's webhooks.
#[derive(Clone, Serialize, JsonSchema)]
pub struct Webhooks {
    /// The last made first.
    pub webhooks: Vec<Webhook>,
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
        tool: true,
        counted: true,
        list: "",
        errors: &[ErrorCode::LimitReached, ErrorCode::NotFound],
        example,
        aliases: &[],
    };
    let begin = words(
        "register_webhook",
        Method::Post,
        "/api/webhook",
        "Has every new recall posted to a URL.",
        "Each is `{\"event\": \"recalls.new\", \"deliveredAt\", \"recall\"}` (`deliveredAt` is when it was recorded, the same each time it is sent), in the order of the feed, signed as Standard Webhooks have it \
            (`webhook-id`, `webhook-timestamp`, `webhook-signature`), and sent again for three days until it is answered with 2xx. With an \
            `Idempotency-Key` a repeated request makes no second webhook.",
        json!({ "webhook_url": "https://hooks.example.com/recalls" }),
    );
    let list = words("list_webhooks", Method::Get, "/api/webhook", "The account's webhooks.", "The last made first.", json!({}));
    let end = words(
        "delete_webhook",
        Method::Delete,
        "/api/webhook/{id}",
        "Ends a webhook.",
        "What waits to be posted to it is not.",
        json!({ "id": "watch_0123456789abcdef01234567" }),
    );
    let list = Definition { list: "webhooks", ..list };
    let config = WebhookConfig {
        service: SOURCE.service,
        tier: TIER,
        matcher: matcher::<NewRecalls>,
        paths: [
            "/api/webhook/{id}/deliveries",
            "/api/webhook/{id}/ping",
            "/api/webhook/{id}/replay",
            "/api/webhook/{id}/resend",
            "/api/webhook/{id}",
        ],
    };
    let own = [
        Operation::define::<Arguments, Webhook, _, _>(begin, register),
        Operation::define::<list::Arguments, Webhooks, _, _>(list, listed),
        Operation::define::<ById, end::Deleted, _, _>(end, delete),
    ];
    Bundle::watches(own.into_iter().chain(webhook_operations::operations(config)).collect(), matcher::<NewRecalls>)
}

async fn register(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let webhook = parse_webhook(&call.context, "webhook_url", Some(&arguments.webhook_url), arguments.secret.as_deref()).await?;
    let after = position(&call.context, &SOURCE, None).await?.last.0;
    let shelf = SavedItems::watches(&call, SOURCE.service);
    let kept = shelf
        .create(NewWatch {
            entity: "{}".to_owned(),
            filter: String::new(),
            webhook,
            given_secret: arguments.secret.unwrap_or_default(),
            after,
        })
        .await?;
    let sealing = shelf.sealing().await?;
    let secret = sealing.as_ref().and_then(|sealing| sealing.first_secret(&kept));
    Ok(Answer { status: 201, ..Answer::json(&Webhook { secret, ..shown(&kept, sealing.as_ref()) })? })
}

async fn listed(call: Call, _: list::Arguments) -> Result<Answer, Problem> {
    let shelf = SavedItems::watches(&call, SOURCE.service);
    let (all, sealing) = (shelf.list().await?, shelf.sealing().await?);
    Answer::json(&Webhooks { webhooks: all.iter().rev().map(|kept| shown(kept, sealing.as_ref())).collect() })
}

async fn delete(call: Call, by: ById) -> Result<Answer, Problem> {
    end::delete(&call, SOURCE.service, &by.id).await
}

fn shown(kept: &SavedItem, sealing: Option<&Sealing>) -> Webhook {
    Webhook {
        id: kept.id.clone(),
        webhook_host: sealing.map_or_else(String::new, |sealing| sealing.host(kept)),
        secret: None,
        made_at: rfc3339(kept.made_at),
        after: kept.after.0,
    }
}

/// The changes that a webhook of the recalls gets: each new recall.
pub(super) struct NewRecalls;

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

    async fn find(ctx: &Context, every: &(), after: Seq, upto: Seq) -> Found<Recall> {
        let view = ctx.live(SOURCE.view).await?;
        let (changes, to) = page::<Recall>(ctx, &SOURCE, view, after, upto).await?;
        let first = changes.into_iter().find(|change| Self::selects(every, change));
        let to = first.as_ref().map_or(to, |first| Seq(first.seq));
        Ok((first.into_iter().collect(), to))
    }

    fn message(_: &SavedItem, changes: Vec<Element<Recall>>) -> Option<Value> {
        let change = changes.into_iter().next()?;
        // A time that is the same each time it is sent; that of the attempt is in its head.
        Some(json!({ "event": "recalls.new", "deliveredAt": change.recorded_at, "recall": Record::from(change.record) }))
    }
}
