//! `POST …/{id}/resend`: sends one earlier message again, now.

use bytes::Bytes;
use operation::context::{Context, store_problem};
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::views::deliveries::{Delivery, State, TABLES};
use schemas::views::watches::SavedItem;
use serde::Deserialize;
use serde_json::json;
use view_store::Range;

use super::{Posted, WebhookConfig, delivery_state, post_now, read, target};
use crate::matchers::WatchMatcher;

/// How many states of the history are read per page, and in total.
const PAGE: usize = 500;
const STATES_MAX: usize = 20_000;

/// Arguments of `resend_message`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Id of the webhook.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// `webhook-id` of the message.
    #[schemars(length(min = 1, max = 64))]
    pub message: String,
}

/// Defines the operation.
#[must_use]
pub fn operation(config: WebhookConfig, path: &'static str) -> Operation {
    let definition = Definition {
        name: "resend_message",
        method: Method::Post,
        path,
        summary: "Sends one earlier message to its webhook again and returns the outcome.",
        description: "The message has its original id and body, and a new signature. It is sent once, even if the webhook is disabled, and does not change \
                    the delivery status. To receive all changes after some change again, use `replay_webhook`. Messages are found in the last 20,000 state \
                    changes of the webhook.",
        price: config.price(),
        errors: &[ErrorCode::NotFound],
        example: json!({ "id": "watch_0123456789abcdef01234567", "message": "msg_0123456789abcdef01234567" }),
        ..Definition::read()
    };
    Operation::define::<Arguments, Posted, _, _>(definition, move |call, arguments| answer(call, arguments, config))
}

async fn answer(call: Call, arguments: Arguments, config: WebhookConfig) -> Result<Answer, Problem> {
    let watch = target(&call, config, &arguments.id).await?;
    Answer::json(&resend(&call.context, &*(config.matcher)(), &watch, arguments.message).await?)
}

/// Sends an earlier message again.
///
/// # Errors
/// `not-found` if this webhook never had the message.
pub(crate) async fn resend(ctx: &Context, matcher: &dyn WatchMatcher, watch: &SavedItem, message: String) -> Result<Posted, Problem> {
    let body = body_of(ctx, matcher, watch, &message).await?;
    post_now(ctx, watch, message, body).await
}

/// The body of an earlier message.
///
/// # Errors
/// `not-found` if this webhook never had the message, or if all of its changes were suppressed.
pub(super) async fn body_of(ctx: &Context, matcher: &dyn WatchMatcher, watch: &SavedItem, message: &str) -> Result<Bytes, Problem> {
    let body = matcher.body(ctx, watch, &find_claim(ctx, watch, message).await?).await?;
    body.ok_or_else(|| Problem::new(ErrorCode::NotFound, "the watch no longer selects any change of the message").about("message"))
}

/// Finds the state that a webhook had while a message was in flight.
async fn find_claim(ctx: &Context, watch: &SavedItem, message: &str) -> Result<Delivery, Problem> {
    let is_claim = |state: &Delivery| state.state == State::Claimed && state.message == message;
    let now = delivery_state(ctx, watch).await?;
    if is_claim(&now) {
        return Ok(now);
    }
    let view = ctx.live(TABLES.view).await?;
    let (mut after, mut read_so_far) = (None, 0);
    while read_so_far < STATES_MAX {
        let range = Range { prefix: key![watch.id.as_str()], after, from: None, limit: PAGE, reverse: false };
        let rows = view.range(TABLES.history, range).await.map_err(store_problem)?;
        for (_, bytes) in &rows {
            let state = read(bytes)?;
            if is_claim(&state) {
                return Ok(state);
            }
        }
        read_so_far += rows.len();
        let Some((last, _)) = rows.into_iter().next_back() else { break };
        after = Some(last);
    }
    Err(Problem::new(ErrorCode::NotFound, "this webhook has no such message, or it is too old").about("message"))
}
