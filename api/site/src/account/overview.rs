//! `/account`: the quota of today, the keys of the account, and new keys.

use maud::{Markup, html};
use operation::problem::Problem;
use pages::ACCOUNT;
use schemas::error_code::ErrorCode;

use super::calls::{Calls, Usage};
use super::route::{KEYS, SAVED, WEBHOOKS};
use super::screen::{Outcome, Screen, frame, page};
use super::{forms, keys};
use crate::fields::grouped;
use crate::{Pairs, guides, url};

/// The operation that creates a free key.
const CREATE: &str = "create_key";

/// The page.
pub(super) async fn screen(calls: &dyn Calls, usage: &Usage, outcome: Outcome) -> Screen {
    let own_keys = keys::section(calls).await;
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
            "reserved for this account count as used."
        }
        ul {
            li { a href=(SAVED) { "Saved filters and watches" } }
            li { a href=(WEBHOOKS) { "Webhooks" } }
        }
        h2 { "This session" }
        dl.facts.small {
            div { dt { "Key" } dd { code { (usage.key_id) } } }
            div { dt { "Account" } dd { code { (usage.account) } } }
        }
        (own_keys)
        (key_form(calls))
    };
    frame(ACCOUNT, "Account", outcome, &body)
}

/// A time in words.
fn duration(seconds: u64) -> String {
    match seconds.div_ceil(60) {
        minutes @ 0..60 => format!("{minutes} min"),
        minutes => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

/// Where keys come from: the form that creates a free key, if a service creates keys, and where to get one of a paid tier.
pub(super) fn key_form(calls: &dyn Calls) -> Markup {
    html! {
        h2 { "A paid tier" }
        p {
            "Paid tiers have higher limits, saved filters, watches and webhooks: " (calls.paid_keys()) ". What is sold by the call needs no key ("
            a href={ (guides::PATH) "/payments" } { "payments" } "); what a tier may do is in the " a href={ (guides::PATH) "/api-keys" } { "guide to API keys" } "."
        }
        @if keys::service_with(calls, CREATE).is_some() {
            h2 { "A new account" }
            p { "A free key needs only an e-mail address, of which a hash is stored. It belongs to a new account of its own." }
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

/// Creates a free key.
///
/// # Errors
/// The errors of the operation that the form calls.
pub(super) async fn create_key(calls: &dyn Calls, form: &Pairs) -> Result<Outcome, Problem> {
    let shown = keys::service_with(calls, CREATE).ok_or_else(|| Problem::new(ErrorCode::NotFound, "this server creates no keys"))?;
    let answer = calls.call(shown.service.name, CREATE, forms::arguments(form, &["email"]), url::value(form, "once")).await?;
    Ok(keys::created(&answer))
}

/// The page after the key of the session was revoked or replaced at once.
pub(super) fn ended(outcome: Outcome) -> Screen {
    let main = html! {
        h1 { "The key of this session has ended" }
        (outcome.render())
        p { a href=(ACCOUNT) { "Sign in with another key" } }
    };
    Screen::of(&page("The key has ended", 200, main), None)
}

/// The page that shows a new key.
pub(super) fn created(is_signed_in: bool, outcome: Outcome) -> Screen {
    let next = html! { p { a href=(ACCOUNT) { @if is_signed_in { "Back to the account" } @else { "Sign in with the key" } } } };
    if is_signed_in {
        return frame(ACCOUNT, "New key", outcome, &next);
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
