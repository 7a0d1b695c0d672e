//! Webhook commands for operators. They work on the webhooks of all accounts.

use access::saved_items::read;
use operation::context::{Context, store_problem};
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::position::Seq;
use schemas::views::deliveries::{Delivery, State};
use schemas::views::watches::{SavedItem, TABLES};

use crate::Matchers;
use crate::operations::{DeliveryStatus, Posted, replay, resend};
use crate::targets::Targets;

/// Lists all webhooks. Failing and disabled webhooks come first; within each group they are sorted by id.
///
/// # Errors
/// When the rows cannot be read.
pub async fn list(ctx: &Context) -> Result<Vec<Delivery>, Problem> {
    let targets = Targets::read(ctx).await?;
    let mut all: Vec<Delivery> = targets.all.into_values().map(|target| target.at).collect();
    all.sort_unstable_by(|a, b| {
        let is_healthy = |at: &Delivery| at.state != State::Disabled && at.failing_since == 0;
        (is_healthy(a), &a.id).cmp(&(is_healthy(b), &b.id))
    });
    Ok(all)
}

/// Resends a message that was sent before.
///
/// # Errors
/// `not-found` if the webhook or the message does not exist.
pub async fn resend_message(ctx: &Context, matchers: &Matchers, id: &str, message: &str) -> Result<Posted, Problem> {
    let watch = target(ctx, id).await?;
    resend::resend(ctx, &*matchers.matcher_of(&watch)?, &watch, message.to_owned()).await
}

/// Resumes delivery to a webhook from its current position, or replays it from an earlier change; with `upto`, replays only the changes up to there.
///
/// # Errors
/// `not-found` if the webhook does not exist; `parameter-invalid` if a change was not delivered yet, or if the range is empty.
pub async fn replay_from(ctx: &Context, id: &str, after: Option<Seq>, upto: Option<Seq>) -> Result<DeliveryStatus, Problem> {
    Ok(DeliveryStatus::from(&replay::resume(ctx, &target(ctx, id).await?, after, upto).await?))
}

async fn target(ctx: &Context, id: &str) -> Result<SavedItem, Problem> {
    let view = ctx.live(TABLES.view).await?;
    let row = view.get(TABLES.records, &key![id]).await.map_err(store_problem)?;
    let watch = row.map(|bytes| read(&bytes)).transpose()?.filter(|watch| !watch.gone && !watch.webhook.is_empty());
    watch.ok_or_else(|| Problem::new(ErrorCode::NotFound, format!("there is no webhook {id}")))
}
