//! `GET …/{id}/deliveries`: how a webhook stands, and what became of its last attempts.

use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::views::deliveries::{Delivery, TABLES};
use serde::Serialize;
use serde_json::json;
use view_store::Range;

use super::{ById, Place, Standing, read, standing, target};
use operation::context::store_problem;
use operation::problem::Problem;
use operation::{Answer, Call, Method, Operation, Price, Words};

/// Rows of the past that are looked at.
const ROWS_MAX: usize = 200;

/// One attempt.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// `webhook-id` of the message.
    pub message: String,
    /// The number of the attempt, from 1.
    pub attempt: u64,
    /// When it ended, RFC 3339 in UTC.
    pub at: String,
    /// HTTP status, 0 for no answer.
    pub status: u16,
    /// Why it failed; empty for one that was taken.
    pub reason: String,
}

/// How a webhook stands.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Deliveries {
    /// How it stands.
    #[serde(flatten)]
    pub standing: Standing,
    /// The last attempts, newest first, 100 at most.
    pub deliveries: Vec<Attempt>,
}

/// The operation.
#[must_use]
pub fn operation(place: Place, path: &'static str) -> Operation {
    let words = Words {
        name: "webhook_deliveries",
        method: Method::Get,
        path,
        summary: "How a webhook stands, and its last attempts with the reasons of those that failed.",
        description: "A message that is not taken (2xx) is sent again after about 5 s, then after pauses that grow to half a day, for three days in \
            all; then it is passed over and the next one goes on. 410, or five days without one that is taken, disable the webhook: `replay_webhook` \
            has it go on.",
        price: Price::Tier(place.tier),
        tool: true,
        counted: true,
        list: "deliveries",
        errors: &[ErrorCode::NotFound],
        example: json!({ "id": "watch_0123456789abcdef01234567" }),
        aliases: &[],
    };
    Operation::define::<ById, Deliveries, _, _>(words, move |call, by| answer(call, by, place))
}

async fn answer(call: Call, by: ById, place: Place) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let kept = target(&call, place, &by.id).await?;
    let now = standing(ctx, &kept).await?;
    let view = ctx.live(TABLES.view).await?;
    let range = Range { prefix: key![kept.id.as_str()], after: None, from: None, limit: ROWS_MAX, reverse: false };
    let past = view.range(TABLES.history, range).await.map_err(store_problem)?;
    let mut states = vec![now.clone()];
    for (_, bytes) in past {
        states.push(read(&bytes)?);
    }
    // A claim has had none yet.
    let mut deliveries: Vec<Attempt> = states.iter().filter(|state| state.attempts > 0).map(attempt).collect();
    deliveries.truncate(100);
    Answer::json(&Deliveries { standing: Standing::from(&now), deliveries })
}

fn attempt(state: &Delivery) -> Attempt {
    let Standing { message, attempts, attempted_at, status, reason, .. } = Standing::from(state);
    Attempt { message, attempt: attempts, at: attempted_at, status, reason }
}
