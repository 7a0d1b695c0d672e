//! The part of `/account` about keys: the keys of the account, and the forms that create, rotate and revoke them.

use maud::{Markup, html};
use operation::problem::Problem;
use pages::ACCOUNT;
use schemas::error_code::ErrorCode;
use serde_json::{Map, Value};

use super::calls::Calls;
use super::forms;
use super::screen::{Outcome, table};
use crate::fields::{cell, label, time};
use crate::layout::notice;
use crate::url::value;
use crate::{Pairs, SiteService};

/// The operations on the keys of an account.
const LIST: &str = "list_keys";
const CREATE: &str = "create_another_key";
const ROTATE: &str = "rotate_key";
const REVOKE: &str = "revoke_key";
/// The choices for how long a replaced key still works: hours, and words.
const OVERLAPS: [(&str, &str); 4] = [("24", "for a day"), ("1", "for an hour"), ("168", "for a week"), ("0", "not at all")];

/// What came of a form about keys.
pub(super) struct Done {
    /// The outcome.
    pub(super) outcome: Outcome,
    /// Whether the key of the session does not work any more.
    pub(super) has_ended_session: bool,
}

/// The first service with an operation on keys: they are the same in all services.
pub(super) fn service_with<'a>(calls: &'a dyn Calls, operation: &str) -> Option<SiteService<'a>> {
    calls.services().into_iter().find(|shown| shown.operation(operation).is_some())
}

/// The list and the forms; empty if no service has keys of accounts.
pub(super) async fn section(calls: &dyn Calls) -> Markup {
    let Some(shown) = service_with(calls, LIST) else { return html! {} };
    let answer = calls.call(shown.service.name, LIST, Map::new(), "").await;
    html! {
        h2 { "Keys of this account" }
        @match &answer {
            Ok(answer) => {
                (list(calls, answer))
                p { "All keys share the tier, the quota, the saved filters, the watches and the webhooks of the account." }
                form.inline method="post" action=(ACCOUNT) {
                    input type="hidden" name="act" value=(CREATE);
                    input type="hidden" name="once" value=(calls.nonce());
                    button { "Create another key" }
                }
            }
            Err(problem) => { (notice(&problem.detail, problem.code)) }
        }
    }
}

fn list(calls: &dyn Calls, answer: &Value) -> Markup {
    let keys = answer["keys"].as_array().map(Vec::as_slice).unwrap_or_default();
    let working = answer["working"].as_u64().unwrap_or_default();
    html! {
        (table("Keys of this account", &["Key", "State", "Created", "Last used on", "Works until", ""], &html! {
            @for key in keys { (row(calls, key, working)) }
        }))
        @if !answer["next"].is_null() { p.soft { "Only the newest keys are shown; " code { "GET /api/account/keys" } " lists all." } }
    }
}

fn row(calls: &dyn Calls, key: &Value, working: u64) -> Markup {
    let text = |name: &str| key[name].as_str().unwrap_or_default();
    let (id, state, end) = (text("keyId"), text("state"), text("endsWith"));
    let has_others = working > u64::from(state == "working");
    html! {
        tr {
            th scope="row" {
                code { (id) }
                @if !end.is_empty() { " " span.soft { "ends with " code { (end) } } }
                @if key["isOwn"] == true { " " span.soft { "(this session)" } }
            }
            td data-label="State" { span.event.new[state == "working"] { (label(state)) } }
            td data-label="Created" { (time(text("createdAt"))) }
            td data-label="Last used on" { @if text("lastUsedOn").is_empty() { "never" } @else { (cell("", &key["lastUsedOn"])) } }
            td data-label="Works until" { @if text("endsAt").is_empty() { "–" } @else { (time(text("endsAt"))) } }
            td.act {
                @if state == "working" { (rotation(calls, id)) }
                @if ["working", "ending"].contains(&state) { (revocation(id, has_others)) }
            }
        }
    }
}

fn rotation(calls: &dyn Calls, id: &str) -> Markup {
    let field = format!("overlap-{id}");
    let once = calls.nonce();
    let hidden = [("act", ROTATE), ("id", id), ("once", &once)];
    forms::behind_summary(
        ACCOUNT,
        ("Rotate", id),
        &hidden,
        &html! {
            div.field {
                label for=(field) { "The old key still works" }
                select id=(field) name="overlapHours" { @for (hours, words) in OVERLAPS { option value=(hours) { (words) } } }
            }
            button { "Replace the key" }
        },
    )
}

/// The form that revokes a key. That of the last key says what it means and asks for it.
fn revocation(id: &str, has_others: bool) -> Markup {
    let field = format!("last-{id}");
    forms::behind_summary(
        ACCOUNT,
        ("Revoke", id),
        &[("act", REVOKE), ("id", id)],
        &html! {
            @if !has_others {
                p.notice { "No other key of this account works without an end. Without a key nobody reaches its saved filters, watches and webhooks." }
                div.field {
                    label for=(field) { "Revoke it although it is the last key" }
                    input id=(field) type="checkbox" name="last" value="true" required;
                }
            }
            button.danger { "Revoke for good" }
        },
    )
}

/// Does what a form about keys asks for.
///
/// # Errors
/// The errors of the operation that the form calls.
pub(super) async fn act(calls: &dyn Calls, form: &Pairs) -> Result<Done, Problem> {
    let act = value(form, "act");
    let names: &[&str] = match act {
        CREATE => &[],
        ROTATE => &["id", "overlapHours"],
        REVOKE => &["id", "last"],
        _ => return Err(Problem::new(ErrorCode::RequestInvalid, "this page has no such form")),
    };
    let shown = service_with(calls, act).ok_or_else(|| Problem::new(ErrorCode::NotFound, "this server has no keys of accounts"))?;
    let answer = calls.call(shown.service.name, act, forms::arguments(form, names), value(form, "once")).await?;
    let is_over = |key: &Value| key["isOwn"] == true && key["state"] == "ended";
    if act == REVOKE {
        let note = answer["note"].as_str().unwrap_or_default();
        let words = format!("The key {} was revoked. {note}", value(form, "id"));
        return Ok(Done { outcome: Outcome::done(words.trim_end()), has_ended_session: is_over(&answer["revoked"]) });
    }
    Ok(Done { outcome: created(&answer), has_ended_session: is_over(&answer["replaced"]) })
}

/// The outcome of a form that created a key, which is shown once.
pub(super) fn created(answer: &Value) -> Outcome {
    let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
    let key = text("api_key");
    if key.is_empty() {
        return Outcome::done("This form was sent before. The key was shown then, and cannot be shown again: create another one.");
    }
    let until = answer["replaced"]["endsAt"].as_str().filter(|until| !until.is_empty());
    let old = until.map(|until| format!(" The old key works until {until}.")).unwrap_or_default();
    Outcome {
        secret: Some(("Your new key", key)),
        ..Outcome::done(format!("The key {} of tier {} works now.{old}", text("key_id"), text("tier")))
    }
}
