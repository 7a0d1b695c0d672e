//! What the owner of a webhook asks of it, the same in every service: how it stands, a ping, another address or secret, to go on or to be told again.

pub mod deliveries;
pub mod ping;
pub mod replay;
pub mod resend;
pub mod update;

use crate::post::poster;
use std::time::Duration;

use bytes::Bytes;
use schemars::JsonSchema;
use schemas::clock::rfc3339;
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::views::accounts::Tier;
use schemas::views::deliveries::{Delivery, State, TABLES};
use schemas::views::records::Row;
use schemas::views::watches::SavedItem;
use serde::{Deserialize, Serialize};

use crate::NewMatcher;
use crate::Said;
use access::kept::Shelf;
use operation::context::{Context, store_problem, stored};
use operation::problem::Problem;
use operation::{Call, Operation};

/// How long somebody waits for what a target says.
const POSTED_WITHIN: Duration = Duration::from_secs(10);

/// Where a service has its webhooks.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The service.
    pub service: &'static str,
    /// From which tier on.
    pub tier: Tier,
    /// Makes the matcher of the service, which also writes the bodies of its messages.
    pub matcher: NewMatcher,
    /// The paths of the operations, in the order of [`operations`].
    pub paths: [&'static str; 5],
}

/// The operations of one service.
#[must_use]
pub fn operations(place: Place) -> Vec<Operation> {
    let [deliveries, ping, replay, resend, update] = place.paths;
    vec![
        deliveries::operation(place, deliveries),
        ping::operation(place, ping),
        replay::operation(place, replay),
        resend::operation(place, resend),
        update::operation(place, update),
    ]
}

/// How a webhook stands.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    /// `idle`: it has been told what was found for it so far; `claimed`: a message is under way, for the first time or again; `disabled`: nothing more is sent until it
    /// is resumed.
    pub state: &'static str,
    /// The last change that it needs not be told any more: it was, it was passed over, or it is not for it.
    pub told: u64,
    /// `webhook-id` of the message under way, or of the last one; empty before the first.
    pub message: String,
    /// Attempts that this message has had.
    pub attempts: u64,
    /// When the last attempt ended, RFC 3339 in UTC; empty before the first.
    pub attempted_at: String,
    /// HTTP status that it was answered with, 0 for no answer.
    pub status: u16,
    /// Why it failed, or why nothing more is sent; empty otherwise.
    pub reason: String,
    /// When the message is due again; empty if none is.
    pub due_at: String,
    /// Since when every attempt has failed; empty if the last one did not.
    pub failing_since: String,
    /// Messages that were taken.
    pub delivered: u64,
    /// Messages that were not taken for three days and were passed over.
    pub skipped: u64,
    /// While a range is told again: its last change, behind which it goes on where it stood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range_end: Option<u64>,
}

impl From<&Delivery> for Standing {
    fn from(at: &Delivery) -> Self {
        let time = |at_ms: i64| if at_ms == 0 { String::new() } else { rfc3339(at_ms) };
        let count = |count: i64| u64::try_from(count).unwrap_or(0);
        Self {
            state: match at.state {
                State::Idle => "idle",
                State::Claimed => "claimed",
                State::Disabled => "disabled",
            },
            told: count(at.delivered_seq()),
            message: at.message.clone(),
            attempts: count(at.attempts),
            attempted_at: time(at.attempted_at),
            status: u16::try_from(at.status).unwrap_or(0),
            reason: at.reason.clone(),
            due_at: time(at.due_at),
            failing_since: time(at.failing_since),
            delivered: count(at.delivered),
            skipped: count(at.skipped),
            range_end: Some(count(at.range_end)).filter(|end| *end != 0),
        }
    }
}

/// What became of a message that was posted for somebody who waits for it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Posted {
    /// Whether it was taken.
    pub taken: bool,
    /// HTTP status, 0 for no answer.
    pub status: u16,
    /// Why it was not taken; empty if it was. Nothing of the answer's body is told.
    pub reason: String,
    /// `webhook-id` that it had.
    pub message: String,
}

/// Posts a message now, once, beside what is under way.
pub(crate) async fn post_now(ctx: &Context, kept: &SavedItem, message: String, body: Bytes) -> Result<Posted, Problem> {
    let sent = tokio::time::timeout(POSTED_WITHIN, poster(ctx).await?.send(ctx, kept, &message, body)).await;
    let said = sent.unwrap_or(Ok(Said::Nothing("it does not answer in time")))?;
    Ok(Posted { taken: matches!(said, Said::Taken(_)), status: said.status(), reason: said.reason(), message })
}

/// An id, and nothing else.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ById {
    /// Its id.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
}

/// The caller's watch of an id, which must have a webhook.
pub(crate) async fn target(call: &Call, place: Place, id: &str) -> Result<SavedItem, Problem> {
    let kept = Shelf::watches(call, place.service).watch(id).await?;
    if kept.webhook.is_empty() {
        return Err(Problem::new(ErrorCode::NotFound, "this watch has no webhook").about("id"));
    }
    Ok(kept)
}

/// How far a target has been told.
pub(crate) async fn standing(ctx: &Context, kept: &SavedItem) -> Result<Delivery, Problem> {
    let view = ctx.live(TABLES.view).await?;
    let row = view.get(TABLES.records, &key![kept.id.as_str()]).await.map_err(store_problem)?;
    row.map_or_else(|| Ok(Delivery { done: kept.after, ..Delivery::default() }), |bytes| read(&bytes))
}

/// A stored row.
pub(crate) fn read(bytes: &[u8]) -> Result<Delivery, Problem> {
    stored(TABLES.records, bytes).map(|row: Row<Delivery>| row.record)
}
