//! The watch that an operation is about, the state of its deliveries, and messages that are sent at once.

use bytes::Bytes;
use operation::Call;
use operation::context::{Context, store_problem, stored};
use operation::problem::Problem;
use schemars::JsonSchema;
use schemas::clock::rfc3339_or_empty;
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::position::Seq;
use schemas::views::deliveries::{Delivery, State, TABLES};
use schemas::views::records::Row;
use schemas::views::watches::SavedItem;
use serde::{Deserialize, Serialize};
use view_store::View;

use super::config::WebhookConfig;
use crate::DeliveryOutcome;
use crate::post::poster;

/// The delivery status of a webhook.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryStatus {
    /// `idle`: all changes found so far were delivered; `claimed`: a message is being sent for the first time; `waiting`: the last attempt to send the
    /// message failed, and it is sent again at `dueAt`; `disabled`: nothing is sent until delivery is resumed.
    pub state: &'static str,
    /// `seq` of the last change that was delivered, skipped, or not selected by the watch. Later changes are still to be delivered.
    pub delivered_seq: Seq,
    /// `webhook-id` of the message in flight, or of the last message; empty before the first.
    pub message: String,
    /// How many attempts this message has had.
    pub attempts: u64,
    /// When the last attempt ended, RFC 3339 in UTC; empty before the first.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub attempted_at: String,
    /// HTTP status of the last response; 0 if there was none.
    pub status: u16,
    /// Why the last attempt failed, or why the webhook is disabled; empty otherwise.
    pub reason: String,
    /// When the message is sent or retried next, RFC 3339 in UTC; empty if there is none.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub due_at: String,
    /// When the first of the current series of failures happened, RFC 3339 in UTC; empty if the last attempt did not fail.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub failing_since: String,
    /// How many messages were accepted.
    pub delivered: u64,
    /// How many messages were skipped after three days of failures.
    pub skipped: u64,
    /// During the replay of a range: the last change of the range. After it, delivery continues where it was before the replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range_end: Option<Seq>,
}

impl From<&Delivery> for DeliveryStatus {
    fn from(at: &Delivery) -> Self {
        let count = |count: i64| u64::try_from(count).unwrap_or(0);
        Self {
            state: match at.state {
                State::Idle => "idle",
                State::Claimed if at.attempts > 0 => "waiting",
                State::Claimed => "claimed",
                State::Disabled => "disabled",
            },
            delivered_seq: at.delivered_seq(),
            message: at.message.clone(),
            attempts: count(at.attempts),
            attempted_at: rfc3339_or_empty(at.attempted_at),
            status: u16::try_from(at.status).unwrap_or(0),
            reason: at.reason.clone(),
            due_at: rfc3339_or_empty(at.due_at),
            failing_since: rfc3339_or_empty(at.failing_since),
            delivered: count(at.delivered),
            skipped: count(at.skipped),
            range_end: Some(at.range_end).filter(|end| *end != Seq(0)),
        }
    }
}

/// The outcome of a message that was sent on request.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Posted {
    /// Whether the receiver accepted the message.
    pub accepted: bool,
    /// HTTP status of the response; 0 if there was none.
    pub status: u16,
    /// Why the message was not accepted; empty if it was. The body of the response is never quoted.
    pub reason: String,
    /// `webhook-id` of the message.
    pub message: String,
}

/// Posts a message now, once, independently of the message in flight.
pub(crate) async fn post_now(ctx: &Context, watch: &SavedItem, message: String, body: Bytes) -> Result<Posted, Problem> {
    let poster = poster(ctx).await?;
    let sent = tokio::time::timeout(ctx.settings.call_times.receiver(), poster.send(ctx, watch, &message, body)).await;
    let outcome = sent.unwrap_or(Ok(DeliveryOutcome::NoResponse("the receiver did not answer in time")))?;
    Ok(Posted { accepted: matches!(outcome, DeliveryOutcome::Accepted(_)), status: outcome.status(), reason: outcome.reason(), message })
}

/// Arguments of an operation on one webhook or watch.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ById {
    /// The id, as the answer that created it and the list show it.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
}

/// Finds a watch of the caller by id. The watch must have a webhook.
pub(crate) async fn target(call: &Call, config: WebhookConfig, id: &str) -> Result<SavedItem, Problem> {
    let watch = config.owned(call)?.watch(id).await?;
    if watch.webhook.is_empty() {
        return Err(Problem::new(ErrorCode::NotFound, "this watch has no webhook").about("id"));
    }
    Ok(watch)
}

/// Reads the delivery state of a watch.
pub(crate) async fn delivery_state(ctx: &Context, watch: &SavedItem) -> Result<Delivery, Problem> {
    Ok(state_row(&*ctx.live(TABLES.view).await?, watch).await?.record)
}

/// Reads the delivery state of a watch, and the seq of the change that made it; 0 before the first.
pub(crate) async fn state_row(view: &dyn View, watch: &SavedItem) -> Result<Row<Delivery>, Problem> {
    let row = view.get(TABLES.records, &key![watch.id.as_str()]).await.map_err(store_problem)?;
    let initial = || Row { record: Delivery { done: watch.after, ..Delivery::default() }, ..Row::default() };
    row.map_or_else(|| Ok(initial()), |bytes| stored(TABLES.records, &bytes))
}

/// Decodes a stored row.
pub(crate) fn read(bytes: &[u8]) -> Result<Delivery, Problem> {
    stored(TABLES.records, bytes).map(|row: Row<Delivery>| row.record)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a message that is sent for the first time differs from one that waits for its retry.
    #[test]
    fn states() {
        let shown = |state: State, attempts: i64| DeliveryStatus::from(&Delivery { state, attempts, ..Delivery::default() }).state;
        assert_eq!([shown(State::Claimed, 0), shown(State::Claimed, 1)], ["claimed", "waiting"]);
        // The attempts of the last message remain.
        assert_eq!([shown(State::Idle, 1), shown(State::Disabled, 1)], ["idle", "disabled"]);
    }
}
