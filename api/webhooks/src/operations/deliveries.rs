//! `GET …/{id}/deliveries`: the delivery status of a webhook, and its last attempts.

use operation::context::store_problem;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Price, Surface};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::views::deliveries::{Delivery, TABLES};
use serde::Serialize;
use serde_json::json;
use view_store::Range;

use super::{ById, DeliveryStatus, WebhookConfig, delivery_state, read, target};

/// How many rows of history are read.
const ROWS_MAX: usize = 200;

/// A delivery attempt.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// `webhook-id` of the message.
    pub message: String,
    /// Number of the attempt, starting at 1.
    pub attempt: u64,
    /// When the attempt ended, RFC 3339 in UTC.
    #[schemars(with = "schemas::json_type::Time")]
    pub at: String,
    /// HTTP status of the response; 0 if there was none.
    pub status: u16,
    /// Why the attempt failed; empty if the message was accepted.
    pub reason: String,
}

/// The delivery status of a webhook, and its last attempts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Deliveries {
    /// The delivery status.
    #[serde(flatten)]
    pub status: DeliveryStatus,
    /// The last attempts, newest first, at most 100.
    pub deliveries: Vec<Attempt>,
}

/// Defines the operation.
#[must_use]
pub fn operation(config: WebhookConfig, path: &'static str) -> Operation {
    let definition = Definition {
        name: "webhook_deliveries",
        method: Method::Get,
        path,
        summary: "The delivery status of a webhook, and its last attempts with the reasons of failures.",
        description: "A message that the receiver does not accept with a 2xx status is retried after about 5 s, then after pauses that grow to half a day, \
                    for three days in total. Then the message is skipped and delivery continues with the next one. A 410 response, or five days in which no \
                    message is accepted, disables the webhook; `replay_webhook` resumes it.",
        price: Price::Tier(config.tier),
        surface: Surface::Both,
        counted: true,
        list: "deliveries",
        errors: &[ErrorCode::NotFound],
        example: json!({ "id": "watch_0123456789abcdef01234567" }),
        ..Definition::read()
    };
    Operation::define::<ById, Deliveries, _, _>(definition, move |call, by| answer(call, by, config))
}

async fn answer(call: Call, by: ById, config: WebhookConfig) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let watch = target(&call, config, &by.id).await?;
    let now = delivery_state(ctx, &watch).await?;
    let view = ctx.live(TABLES.view).await?;
    let range = Range { prefix: key![watch.id.as_str()], after: None, from: None, limit: ROWS_MAX, reverse: false };
    let history = view.range(TABLES.history, range).await.map_err(store_problem)?;
    let mut states = vec![now.clone()];
    for (_, bytes) in history {
        states.push(read(&bytes)?);
    }
    // A state without attempts is a claim: its message was not sent yet.
    let mut deliveries: Vec<Attempt> = states.iter().filter(|state| state.attempts > 0).map(attempt).collect();
    deliveries.truncate(100);
    Answer::json(&Deliveries { status: DeliveryStatus::from(&now), deliveries })
}

fn attempt(state: &Delivery) -> Attempt {
    let DeliveryStatus { message, attempts, attempted_at, status, reason, .. } = DeliveryStatus::from(state);
    Attempt { message, attempt: attempts, at: attempted_at, status, reason }
}
