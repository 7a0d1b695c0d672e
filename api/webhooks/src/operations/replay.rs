//! `POST …/{id}/replay`: a webhook goes on, from where it stood or from an earlier change.

use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::views::deliveries::{Delivery, DeliveryCommand, REPLAY, RESUME, TABLES};
use schemas::views::watches::SavedItem;
use serde::Deserialize;
use serde_json::json;

use super::{Place, Standing, standing, target};
use access::append::{Once, command};
use feed::cursor;
use operation::context::Context;
use operation::problem::Problem;
use operation::{Answer, Call, Method, Operation, Price, Words};

/// Arguments of `replay_webhook`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
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
    /// The last change that it is told again: a `seq` of the feed. Behind it, it goes on where it stood.
    #[schemars(range(min = 1))]
    pub upto: Option<u64>,
    /// It is told again what comes up to this cursor of the service's feed, and goes on where it stood.
    #[schemars(length(min = 1, max = 4000))]
    pub upto_cursor: Option<String>,
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
            watch lets pass from there on, but nothing from before the watch was made; with `upto` or `uptoCursor`, up to there, and then it goes on where it stood. \
            A message that tells the same changes has the same `webhook-id` as before; one message may tell now what several told then.",
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
    let change = |names: [&'static str; 2], number: Option<u64>, text: Option<&str>| match (number, text) {
        (Some(_), Some(_)) => Err(Problem::parameter(names[1], format!("give `{}` or `{}`, not both", names[0], names[1]))),
        (number, None) => Ok(number),
        (None, Some(text)) => match cursor::read(&ctx.secrets, place.service, text).map_err(|problem| problem.about(names[1]))? {
            // That of a watch runs the other way.
            (_, made_for) if made_for.starts_with("watch/") => Err(cursor::invalid("the cursor is not one of the feed").about(names[1])),
            (seq, _) => Ok(Some(seq.0)),
        },
    };
    let after = change(["after", "cursor"], arguments.after, arguments.cursor.as_deref())?;
    let upto = change(["upto", "uptoCursor"], arguments.upto, arguments.upto_cursor.as_deref())?;
    let stands = go_on(ctx, &kept, after, upto).await.map_err(|problem| match problem.parameter.as_str() {
        "after" if arguments.cursor.is_some() => problem.about("cursor"),
        "upto" if arguments.upto_cursor.is_some() => problem.about("uptoCursor"),
        _ => problem,
    });
    Answer::json(&Standing::from(&stands?))
}

/// Has a webhook go on, from where it stood or behind a change, but not before its watch was made; with `upto` it is told again up to there alone, and
/// goes on where it stood. Answers how it stands then.
///
/// # Errors
/// `parameter-invalid` for a change that it has not been told, or a range that ends before it begins; `unavailable` when the command is not projected in
/// time.
pub(crate) async fn go_on(ctx: &Context, kept: &SavedItem, after: Option<u64>, upto: Option<u64>) -> Result<Delivery, Problem> {
    let told = standing(ctx, kept).await?.delivered_seq();
    let seq = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let (after, upto) = (after.map(seq), upto.map(seq));
    if let Some(after) = after.filter(|after| *after > told) {
        return Err(Problem::parameter("after", format!("{after} is above {told}, the last change that it has been told")));
    }
    // Nothing from before the watch was made.
    let after = after.map(|after| after.max(kept.after));
    if let Some(upto) = upto.filter(|upto| after.is_none_or(|after| *upto <= after)) {
        let detail =
            after.map_or_else(|| "give `after`, too".to_owned(), |after| format!("{upto} is not above {after}, behind which it is told"));
        return Err(Problem::parameter("upto", detail));
    }
    let go_on = DeliveryCommand {
        verb: if after.is_some() { REPLAY } else { RESUME }.to_owned(),
        account: kept.account.clone(),
        service: kept.service.clone(),
        after: after.unwrap_or_default(),
        upto: upto.unwrap_or_default(),
        ..DeliveryCommand::default()
    };
    command(ctx, TABLES.view, &kept.id, Once::No, &go_on).await?;
    standing(ctx, kept).await
}
