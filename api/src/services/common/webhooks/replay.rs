//! `POST …/{id}/replay`: a webhook goes on, from where it stood or from an earlier change.

use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::views::deliveries::{Delivery, DeliveryCommand, REPLAY, RESUME, TABLES};
use schemas::views::watches::Kept;
use serde::Deserialize;
use serde_json::json;

use super::{Place, Standing, standing, target};
use crate::access::append::{Once, command};
use crate::context::Context;
use crate::feed::cursor;
use crate::operation::{Answer, Call, Method, Operation, Price, Words};
use crate::problem::Problem;

/// Arguments of `replay_webhook`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Its id.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// It is told what comes after this change: a `seq` of the feed, not above the last that it was told.
    #[schemars(range(min = 0))]
    pub after: Option<u64>,
    /// It is told what comes after this cursor of the service's feed.
    #[schemars(length(min = 1, max = 4000))]
    pub cursor: Option<String>,
}

/// The operation.
#[must_use]
pub fn operation(place: Place, path: &'static str) -> Operation {
    let words = Words {
        name: "replay_webhook",
        method: Method::Post,
        path,
        summary: "Has a webhook go on, from where it stood, or told again from an earlier change on.",
        description: "Without `after` and `cursor` a webhook that was disabled goes on where it stood, and another one as before. With one of them it is told again all that its \
            watch lets pass from there on, but nothing from before the watch was made. A message that tells the same changes has the same `webhook-id` as before.",
        price: Price::Tier(place.tier),
        tool: true,
        counted: true,
        list: "",
        errors: &[ErrorCode::NotFound, ErrorCode::CursorInvalid],
        example: json!({ "id": "watch_0123456789abcdef01234567", "after": 0 }),
        aliases: &[],
    };
    Operation::define::<Arguments, Standing, _, _>(words, move |call, arguments| answer(call, arguments, place))
}

async fn answer(call: Call, arguments: Arguments, place: Place) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let kept = target(&call, place, &arguments.id).await?;
    let after = match (&arguments.after, &arguments.cursor) {
        (Some(_), Some(_)) => return Err(Problem::parameter("cursor", "give `after` or `cursor`, not both")),
        (Some(after), None) => Some(*after),
        (None, Some(text)) => match cursor::read(ctx.access.secrets(), place.service, text)? {
            // That of a watch runs the other way.
            (_, made_for) if made_for.starts_with("watch/") => return Err(cursor::invalid("the cursor is not one of the feed")),
            (seq, _) => Some(seq.0),
        },
        (None, None) => None,
    };
    let parameter = if arguments.cursor.is_some() { "cursor" } else { "after" };
    Answer::json(&Standing::from(&go_on(ctx, &kept, after).await.map_err(|problem| problem.about(parameter))?))
}

/// Has a webhook go on, from where it stood or behind a change, but not before its watch was made; answers how it stands then.
///
/// # Errors
/// `parameter-invalid` for a change that it has not been told; `unavailable` when the command is not projected in time.
pub(crate) async fn go_on(ctx: &Context, kept: &Kept, after: Option<u64>) -> Result<Delivery, Problem> {
    let now = standing(ctx, kept).await?;
    let after = after.map(|after| i64::try_from(after).unwrap_or(i64::MAX));
    if let Some(after) = after.filter(|after| *after > now.done) {
        let detail = format!("{after} is above {}, the last change that it has been told", now.done);
        return Err(Problem::new(ErrorCode::ParameterInvalid, detail));
    }
    let go_on = DeliveryCommand {
        verb: if after.is_some() { REPLAY } else { RESUME }.to_owned(),
        account: kept.account.clone(),
        service: kept.service.clone(),
        after: after.map_or(0, |after| after.max(kept.after)),
        ..DeliveryCommand::default()
    };
    command(ctx, TABLES.view, &kept.id, Once::No, &go_on).await?;
    standing(ctx, kept).await
}
