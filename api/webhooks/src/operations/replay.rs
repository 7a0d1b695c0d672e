//! `POST …/{id}/replay`: resumes delivery to a webhook, from its current position or from an earlier change.

use access::append::{CommandPolicy, append_command};
use feed::cursor;
use operation::context::Context;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use schemas::views::deliveries::{Delivery, DeliveryCommand, DeliveryRequest, TABLES};
use schemas::views::watches::SavedItem;
use serde::Deserialize;
use serde_json::json;

use super::{DeliveryStatus, WebhookConfig, delivery_state, target};

/// Arguments of `replay_webhook`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Arguments {
    /// Id of the webhook.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// Deliver the changes after this one again: a `seq` of the feed, not above the last change that was delivered (`deliveredSeq`), and not below the
    /// change after which the watch was made (`after` of its registration).
    #[schemars(range(min = 0))]
    pub after: Option<Seq>,
    /// Deliver the changes after this cursor of the service's feed again.
    #[schemars(length(min = 1, max = 4000))]
    pub cursor: Option<String>,
    /// The last change to deliver again: a `seq` of the feed. After it, delivery continues where it was before the replay.
    #[schemars(range(min = 1))]
    pub upto: Option<Seq>,
    /// Deliver the changes up to this cursor of the service's feed again. After it, delivery continues where it was before the replay.
    #[schemars(length(min = 1, max = 4000))]
    pub upto_cursor: Option<String>,
}

/// Defines the operation.
#[must_use]
pub fn operation(config: WebhookConfig, path: &'static str) -> Operation {
    let definition = Definition {
        name: "replay_webhook",
        method: Method::Post,
        path,
        summary: "Resumes delivery to a webhook, from its current position or again from an earlier change.",
        description: "Without `after` and `cursor`, a disabled webhook is enabled and continues at its current position; a webhook that is enabled is not \
                    changed. With one of them, all changes that the watch selects after that position are delivered again. A position from before the \
                    watch was made is refused, because messages contain only later changes. With `upto` or `uptoCursor`, only the changes up to that \
                    position are delivered again, and then delivery continues where it was. A message that carries the same changes as before has the \
                    same `webhook-id`. The changes may be grouped into fewer messages than before.",
        price: config.price(),
        errors: &[ErrorCode::NotFound, ErrorCode::CursorInvalid],
        example: json!({ "id": "watch_0123456789abcdef01234567", "after": 1200 }),
        ..Definition::read()
    };
    Operation::define::<Arguments, DeliveryStatus, _, _>(definition, move |call, arguments| answer(call, arguments, config))
}

async fn answer(call: Call, arguments: Arguments, config: WebhookConfig) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let watch = target(&call, config, &arguments.id).await?;
    let change = |names: [&'static str; 2], number: Option<Seq>, text: Option<&str>| match (number, text) {
        (Some(_), Some(_)) => Err(Problem::parameter(names[1], format!("give `{}` or `{}`, not both", names[0], names[1]))),
        (number, None) => Ok(number),
        (None, Some(text)) => match cursor::read(&ctx.secrets, config.service, text).map_err(|problem| problem.about(names[1]))? {
            // A cursor of a watch counts in the other direction.
            (_, made_for) if made_for.starts_with("watch/") => {
                Err(cursor::invalid("the cursor does not belong to this feed").about(names[1]))
            }
            (seq, _) => Ok(Some(seq)),
        },
    };
    let after = change(["after", "cursor"], arguments.after, arguments.cursor.as_deref())?;
    let upto = change(["upto", "uptoCursor"], arguments.upto, arguments.upto_cursor.as_deref())?;
    let resumed = resume(ctx, &watch, after, upto).await.map_err(|problem| match problem.parameter.as_str() {
        "after" if arguments.cursor.is_some() => problem.about("cursor"),
        "upto" if arguments.upto_cursor.is_some() => problem.about("uptoCursor"),
        _ => problem,
    });
    Answer::json(&DeliveryStatus::from(&resumed?))
}

/// Resumes delivery to a webhook, from its current position or after an earlier change, which is not from before its watch was made. With `upto` only the
/// changes up to there are replayed, and then delivery continues where it was. Returns the new delivery state.
///
/// # Errors
/// `parameter-invalid` for a change that was not delivered yet or is from before the watch was made, or a range that ends before it begins;
/// `unavailable` when the command is not projected in time.
pub(crate) async fn resume(ctx: &Context, watch: &SavedItem, after: Option<Seq>, upto: Option<Seq>) -> Result<Delivery, Problem> {
    let delivered_seq = delivery_state(ctx, watch).await?.delivered_seq();
    if let Some(after) = after.filter(|after| *after > delivered_seq) {
        let detail = format!("{after} is above {delivered_seq}, the last change that was delivered");
        return Err(Problem::parameter("after", detail));
    }
    // Changes from before the watch was made are never delivered. To begin later than asked would hide that from the caller.
    if let Some(after) = after.filter(|after| *after < watch.after) {
        let made_at = watch.after;
        let detail = format!(
            "{after} is below {made_at}, after which the watch was made: messages contain only later changes; give {made_at} for all of them"
        );
        return Err(Problem::parameter("after", detail));
    }
    if let Some(upto) = upto.filter(|upto| after.is_none_or(|after| *upto <= after)) {
        let detail = after.map_or_else(
            || "`upto` needs `after` or `cursor`".to_owned(),
            |after| format!("{upto} is not above {after}, after which changes are delivered again"),
        );
        return Err(Problem::parameter("upto", detail));
    }
    let request = after.map_or(DeliveryRequest::Resume, |after| DeliveryRequest::Replay { after, upto });
    let resume = DeliveryCommand { account: watch.account.clone(), service: watch.service.clone(), request };
    append_command(ctx, TABLES.view, &watch.id, CommandPolicy::Always, &resume).await?;
    delivery_state(ctx, watch).await
}
