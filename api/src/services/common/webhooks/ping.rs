//! `POST …/{id}/ping`: posts a test message to a webhook, now.

use bytes::Bytes;
use schemars::JsonSchema;
use schemas::clock::rfc3339;
use schemas::error_code::ErrorCode;
use schemas::hash::hex;
use serde::Serialize;
use serde_json::json;

use super::{ById, Place, target};
use crate::access::webhook::Sealing;
use crate::operation::{Answer, Call, Method, Operation, Price, Words};
use crate::problem::Problem;
use crate::webhooks::sender::secrets;
use crate::webhooks::{Message, Poster, Said};

/// What became of a test message.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pinged {
    /// Whether it was taken.
    pub taken: bool,
    /// HTTP status, 0 for no answer.
    pub status: u16,
    /// Why it was not taken; empty if it was. Nothing of the answer's body is told.
    pub reason: String,
    /// `webhook-id` that it had.
    pub message: String,
}

/// The operation.
#[must_use]
pub fn operation(place: Place, path: &'static str) -> Operation {
    let words = Words {
        name: "ping_webhook",
        method: Method::Post,
        path,
        summary: "Posts a signed test message to a webhook and says what became of it.",
        description: "The body is `{\"event\": \"ping\", \"sentAt\": …}`. It is sent once, whatever the state of the webhook, and changes nothing of it.",
        price: Price::Tier(place.tier),
        tool: true,
        counted: true,
        list: "",
        errors: &[ErrorCode::NotFound],
        example: json!({ "id": "watch_0123456789abcdef01234567" }),
        aliases: &[],
    };
    Operation::define::<ById, Pinged, _, _>(words, move |call, by| answer(call, by, place))
}

async fn answer(call: Call, by: ById, place: Place) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let kept = target(&call, place, &by.id).await?;
    let message = format!("msg_{}", hex(&rand::random::<[u8; 12]>()));
    let now_ms = ctx.clock.now_ms();
    let opened = Sealing::of(ctx, &kept.account).await?.and_then(|sealing| {
        let to = sealing.open(&kept.id, &kept.webhook)?;
        Some((to, secrets(&sealing, &kept, now_ms)?))
    });
    let said = match opened {
        None => Said::Nothing("its address was sealed with a secret that is not here"),
        Some((to, secrets)) => {
            let poster = Poster::new(ctx.settings.private_targets).map_err(|error| {
                tracing::error!(%error, "TLS cannot be set up");
                Problem::new(ErrorCode::Internal, "nothing can be posted from here")
            })?;
            let body = Bytes::from(json!({ "event": "ping", "sentAt": rfc3339(now_ms) }).to_string());
            poster.post(&to, Message { id: &message, body, secrets: &secrets }, now_ms / 1_000).await
        }
    };
    Answer::json(&Pinged { taken: matches!(said, Said::Taken(_)), status: said.status(), reason: said.reason(), message })
}
