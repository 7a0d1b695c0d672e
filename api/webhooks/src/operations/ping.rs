//! `POST …/{id}/ping`: posts a test message to a webhook, now.

use bytes::Bytes;
use schemas::clock::rfc3339;
use schemas::error_code::ErrorCode;
use schemas::hash::hex;
use serde_json::json;

use super::{ById, Place, Posted, post_now, target};
use operation::problem::Problem;
use operation::{Answer, Call, Method, Operation, Price, Words};

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
    Operation::define::<ById, Posted, _, _>(words, move |call, by| answer(call, by, place))
}

async fn answer(call: Call, by: ById, place: Place) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let kept = target(&call, place, &by.id).await?;
    let message = format!("msg_{}", hex(&rand::random::<[u8; 12]>()));
    let body = Bytes::from(json!({ "event": "ping", "sentAt": rfc3339(ctx.clock.now_ms()) }).to_string());
    Answer::json(&post_now(ctx, &kept, message, body).await?)
}
