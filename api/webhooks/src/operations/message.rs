//! `GET …/{id}/messages/{message}`: the body of one earlier message.

use operation::problem::Problem;
use operation::{Answer, Call, Definition, Operation, Surface};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::Serialize;
use serde_json::{Value, json};

use super::resend::{Arguments, body_of};
use super::{WebhookConfig, target};

/// A message as its receiver gets it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "WebhookMessage")]
pub struct Message {
    /// `webhook-id` of the message.
    pub message: String,
    /// The body, which is signed as it is sent: this JSON without white space between its parts.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub body: Value,
}

/// Defines the operation.
#[must_use]
pub fn operation(config: WebhookConfig, path: &'static str) -> Operation {
    let definition = Definition {
        name: "webhook_message",
        path,
        summary: "The body of one earlier message of a webhook.",
        description: "The body is made from the changes again, as `resend_message` does it, without what was suppressed since. Messages are found in the last \
                    20,000 state changes of the webhook; a test message has no body here.",
        price: config.price(),
        surface: Surface::Route,
        errors: &[ErrorCode::NotFound],
        example: json!({ "id": "watch_0123456789abcdef01234567", "message": "msg_0123456789abcdef01234567" }),
        ..Definition::read()
    };
    Operation::define::<Arguments, Message, _, _>(definition, move |call, arguments| answer(call, arguments, config))
}

async fn answer(call: Call, arguments: Arguments, config: WebhookConfig) -> Result<Answer, Problem> {
    let watch = target(&call, config, &arguments.id).await?;
    let body = body_of(&call.context, &*(config.matcher)(), &watch, &arguments.message).await?;
    let body = serde_json::from_slice(&body).map_err(|error| {
        tracing::error!(%error, id = watch.id, "the body of the message is not JSON");
        Problem::new(ErrorCode::Internal, "the body of the message cannot be read")
    })?;
    Answer::json(&Message { message: arguments.message, body })
}
