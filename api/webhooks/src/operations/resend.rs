//! `POST …/{id}/resend`: posts one message of the past again, now.

use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::views::deliveries::{Delivery, State, TABLES};
use schemas::views::watches::SavedItem;
use serde::Deserialize;
use serde_json::json;
use view_store::Range;

use super::{Place, Posted, post_now, read, standing, target};
use crate::Matchers;
use operation::context::{Context, store_problem};
use operation::problem::Problem;
use operation::{Answer, Call, Method, Operation, Price, Words};

/// States of the past read at once, and in all.
const PAGE: usize = 500;
const STATES_MAX: usize = 20_000;

/// Arguments of `resend_message`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The webhook's id.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// `webhook-id` of the message.
    #[schemars(length(min = 1, max = 64))]
    pub message: String,
}

/// The operation.
#[must_use]
pub fn operation(place: Place, path: &'static str) -> Operation {
    let words = Words {
        name: "resend_message",
        method: Method::Post,
        path,
        summary: "Posts one message of the past to its webhook again, and says what became of it.",
        description: "With the id and the body that it had, signed anew. It is sent once, whatever the state of the webhook, and changes nothing of it: to be \
            told everything from a change on, use `replay_webhook`. The last 20,000 moves of a webhook are looked at.",
        price: Price::Tier(place.tier),
        tool: true,
        counted: true,
        list: "",
        errors: &[ErrorCode::NotFound],
        example: json!({ "id": "watch_0123456789abcdef01234567", "message": "msg_0123456789abcdef01234567" }),
        aliases: &[],
    };
    Operation::define::<Arguments, Posted, _, _>(words, move |call, arguments| answer(call, arguments, place))
}

async fn answer(call: Call, arguments: Arguments, place: Place) -> Result<Answer, Problem> {
    let kept = target(&call, place, &arguments.id).await?;
    Answer::json(&again(&call.context, &Matchers::new(vec![place.matcher]), &kept, arguments.message).await?)
}

/// Posts a message of the past again.
///
/// # Errors
/// `not-found` for one that this webhook never had.
pub(crate) async fn again(ctx: &Context, matchers: &Matchers, kept: &SavedItem, message: String) -> Result<Posted, Problem> {
    let body = matchers.body(ctx, kept, &claimed(ctx, kept, &message).await?).await?;
    post_now(ctx, kept, message, body).await
}

/// The webhook as it stood while a message was under way.
async fn claimed(ctx: &Context, kept: &SavedItem, message: &str) -> Result<Delivery, Problem> {
    let is_it = |state: &Delivery| state.state == State::Claimed && state.message == message;
    let now = standing(ctx, kept).await?;
    if is_it(&now) {
        return Ok(now);
    }
    let view = ctx.live(TABLES.view).await?;
    let (mut after, mut read_so_far) = (None, 0);
    while read_so_far < STATES_MAX {
        let range = Range { prefix: key![kept.id.as_str()], after, from: None, limit: PAGE, reverse: false };
        let rows = view.range(TABLES.history, range).await.map_err(store_problem)?;
        for (_, bytes) in &rows {
            let state = read(bytes)?;
            if is_it(&state) {
                return Ok(state);
            }
        }
        read_so_far += rows.len();
        let Some((last, _)) = rows.into_iter().next_back() else { break };
        after = Some(last);
    }
    Err(Problem::new(ErrorCode::NotFound, "this webhook was never sent such a message, or long ago").about("message"))
}
