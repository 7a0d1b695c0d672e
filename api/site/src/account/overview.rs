//! `/account`: the key, its quota of today, and new keys.

use maud::{Markup, html};
use operation::problem::Problem;
use schemas::error_code::ErrorCode;

use super::{ACCOUNT, Calls, KEYS, Outcome, SAVED, Screen, Usage, WEBHOOKS, forms, page};
use crate::fields::grouped;
use crate::{Pairs, url};

/// The operation that creates a free key.
const CREATE: &str = "create_key";

/// The page.
pub(super) fn screen(calls: &dyn Calls, usage: &Usage, outcome: Outcome) -> Screen {
    let used = usage.calls_max.saturating_sub(usage.remaining).max(0);
    let body = html! {
        dl.facts {
            div { dt { "Tier" } dd { (usage.tier) } }
            div { dt { "Calls today" } dd { (grouped(used)) " of " (grouped(usage.calls_max)) } }
            div { dt { "Left today" } dd { (grouped(usage.remaining)) } }
            div { dt { "Starts again in" } dd { (duration(usage.reset_s)) } }
        }
        progress max=(usage.calls_max.max(1)) value=(used.min(usage.calls_max)) aria-label="Calls used today" {}
        p.soft {
            "A day begins at 00:00 UTC. These pages cost no calls; what their forms do costs what it costs over the API. Calls that other servers have "
            "reserved for this key count as used."
        }
        ul {
            li { a href=(SAVED) { "Saved filters and watches" } }
            li { a href=(WEBHOOKS) { "Webhooks" } }
        }
        h2 { "This key" }
        dl.facts.small {
            div { dt { "Key" } dd { code { (usage.key_id) } } }
            div { dt { "Account" } dd { code { (usage.account) } } }
        }
        p {
            "The API has no call to rotate or revoke a key. The operator of this server does it with " code { "highwater keys rotate" } " or "
            code { "highwater keys revoke" } " and the id of the key. A rotated key works for one more day."
        }
        (key_form(calls))
    };
    super::screen(ACCOUNT, "Account", outcome, &body)
}

/// A time in words.
fn duration(seconds: u64) -> String {
    match seconds.div_ceil(60) {
        minutes @ 0..60 => format!("{minutes} min"),
        minutes => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

/// The form that creates a free key; empty if no service creates keys.
pub(super) fn key_form(calls: &dyn Calls) -> Markup {
    html! {
        @if creator(calls).is_some() {
            h2 { "A new key" }
            p { "A free key needs only an e-mail address, of which a hash is stored. It belongs to an account of its own." }
            form.stack method="post" action=(KEYS) {
                input type="hidden" name="once" value=(calls.nonce());
                div.field {
                    label for="email" { "E-mail address" }
                    input #email type="email" name="email" required autocomplete="email" maxlength="254";
                }
                button { "Create a free key" }
            }
        }
    }
}

/// The first service that creates keys: they are the same in all services.
fn creator(calls: &dyn Calls) -> Option<&'static str> {
    calls.services().iter().find(|shown| shown.operation(CREATE).is_some()).map(|shown| shown.service.name)
}

/// Creates a free key.
///
/// # Errors
/// Those of the operation.
pub(super) async fn create_key(calls: &dyn Calls, form: &Pairs) -> Result<Outcome, Problem> {
    let service = creator(calls).ok_or_else(|| Problem::new(ErrorCode::NotFound, "this server creates no keys"))?;
    let answer = calls.call(service, CREATE, forms::arguments(form, &["email"]), url::value(form, "once")).await?;
    let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
    let key = text("api_key");
    if key.is_empty() {
        return Ok(Outcome::done("This form was sent before. The key was shown then, and cannot be shown again: create another one."));
    }
    Ok(Outcome {
        secret: Some(("Your new key", key)),
        ..Outcome::done(format!("The key {} of tier {} works now.", text("key_id"), text("tier")))
    })
}

/// The page that shows a new key.
pub(super) fn created(is_signed_in: bool, outcome: Outcome) -> Screen {
    let next = html! { p { a href=(ACCOUNT) { @if is_signed_in { "Back to the account" } @else { "Sign in with the key" } } } };
    if is_signed_in {
        return super::screen(ACCOUNT, "New key", outcome, &next);
    }
    let main = html! { h1 { "New key" } (outcome.render()) (next) };
    Screen::of(&page("New key", 200, main), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the time to the next day is in hours and minutes, rounded up.
    #[test]
    fn durations() {
        assert_eq!([0, 1, 59 * 60, 3_600, 86_400].map(duration), ["0 min", "1 min", "59 min", "1 h 0 min", "24 h 0 min"]);
    }
}
