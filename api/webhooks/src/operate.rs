//! What operators do with webhooks, whosever they are.

use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::views::deliveries::{Delivery, State};
use schemas::views::watches::{SavedItem, TABLES};

use crate::Matchers;
use crate::operations::{Posted, Standing, replay, resend};
use crate::targets::Targets;
use access::kept::read;
use operation::context::{Context, store_problem};
use operation::problem::Problem;

/// All webhooks as they stand, those that fail or are disabled first, then by id.
///
/// # Errors
/// When the rows cannot be read.
pub async fn list(ctx: &Context) -> Result<Vec<Delivery>, Problem> {
    let targets = Targets::read(ctx).await?;
    let mut all: Vec<Delivery> = targets.all.into_values().map(|target| target.at).collect();
    all.sort_unstable_by(|a, b| {
        let is_well = |at: &Delivery| at.state != State::Disabled && at.failing_since == 0;
        (is_well(a), &a.id).cmp(&(is_well(b), &b.id))
    });
    Ok(all)
}

/// Posts a message of the past again.
///
/// # Errors
/// `not-found` for a webhook or message that is not there.
pub async fn resend_message(ctx: &Context, matchers: &Matchers, id: &str, message: &str) -> Result<Posted, Problem> {
    resend::again(ctx, matchers, &target(ctx, id).await?, message.to_owned()).await
}

/// Has a webhook go on, from where it stood or from an earlier change; with `upto` it is told that range again.
///
/// # Errors
/// `not-found` for a webhook that is not there; `parameter-invalid` for a change that it has not been told, or a range of none.
pub async fn replay_from(ctx: &Context, id: &str, after: Option<u64>, upto: Option<u64>) -> Result<Standing, Problem> {
    Ok(Standing::from(&replay::go_on(ctx, &target(ctx, id).await?, after, upto).await?))
}

async fn target(ctx: &Context, id: &str) -> Result<SavedItem, Problem> {
    let view = ctx.live(TABLES.view).await?;
    let row = view.get(TABLES.records, &key![id]).await.map_err(store_problem)?;
    let kept = row.map(|bytes| read(&bytes)).transpose()?.filter(|kept| !kept.gone && !kept.webhook.is_empty());
    kept.ok_or_else(|| Problem::new(ErrorCode::NotFound, format!("there is no webhook {id}")))
}
