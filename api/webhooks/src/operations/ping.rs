//! `POST …/{id}/ping`: posts a test message to a webhook, now.

use bytes::Bytes;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation};
use proofs::hash::hex;
use schemas::clock::rfc3339;
use schemas::error_code::ErrorCode;
use serde_json::json;

use super::{ById, Posted, WebhookConfig, post_now, target};

/// Defines the operation.
#[must_use]
pub fn operation(config: WebhookConfig, path: &'static str) -> Operation {
    let definition = Definition {
        name: "ping_webhook",
        method: Method::Post,
        path,
        summary: "Sends a signed test message to a webhook and returns the outcome.",
        description: "The body is `{\"event\": \"ping\", \"sentAt\": …}`. It is sent once, even if the webhook is disabled, and does not change the delivery status.",
        price: config.price(),
        errors: &[ErrorCode::NotFound],
        example: json!({ "id": "watch_0123456789abcdef01234567" }),
        ..Definition::read()
    };
    Operation::define::<ById, Posted, _, _>(definition, move |call, by| answer(call, by, config))
}

async fn answer(call: Call, by: ById, config: WebhookConfig) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let watch = target(&call, config, &by.id).await?;
    let message = format!("msg_{}", hex(&rand::random::<[u8; 12]>()));
    let body = Bytes::from(json!({ "event": "ping", "sentAt": rfc3339(ctx.clock.now_ms()) }).to_string());
    Answer::json(&post_now(ctx, &watch, message, body).await?)
}
