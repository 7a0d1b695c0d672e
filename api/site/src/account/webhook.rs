//! The page of one webhook: its status, what it receives, its attempts by message, and what can be done with it.

use maud::{Markup, html};
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use serde_json::{Map, Value, json};

use super::calls::{Arguments, Calls};
use super::forms;
use super::route::{WEBHOOKS, watch_path, webhook_path};
use super::screen::{Outcome, Screen, frame, host_or_unknown, table};
use super::webhooks::{DELIVERIES, Health, count, response};
use crate::fields::time;
use crate::layout::notice;
use crate::url::value;
use crate::{Pairs, SiteService, page_id, url};

/// The attempts of a page.
const ATTEMPTS: u64 = 50;
/// The payloads that are shown.
const PAYLOADS: u64 = 5;
/// The longest payload that is shown, in bytes.
const PAYLOAD_BYTES_MAX: usize = 20_000;
/// The action that deletes a webhook.
pub(super) const DELETE: &str = "delete";
/// The operation with the body of a message.
const MESSAGE: &str = "webhook_message";
/// The operation with the matches of a watch, where reading the watch does not answer them.
pub(super) const MATCHES: &str = "get_watch_matches";

/// The page.
pub(super) async fn screen(calls: &dyn Calls, service: &str, id: &str, query: &Pairs, outcome: Outcome) -> Screen {
    match read(calls, service, id, query).await {
        Ok(webhook) => frame(WEBHOOKS, &webhook.title(), outcome, &webhook.body(calls, id)),
        // What a form did is said first.
        Err(problem) if outcome.problem.is_some() || outcome.secret.is_some() => {
            frame(WEBHOOKS, "Webhook", outcome, &notice(&problem.detail, problem.code))
        }
        Err(problem) => frame(WEBHOOKS, "Webhook", Outcome::refused(problem), &html! {}),
    }
}

/// A webhook with what its page shows.
struct Webhook<'a> {
    shown: SiteService<'a>,
    item: Value,
    deliveries: Value,
    payloads: Result<Vec<Value>, Problem>,
    /// The message that is asked for, and its body.
    message: Option<(String, Result<Value, Problem>)>,
}

/// The arguments that name a watch or a webhook.
pub(super) fn by_id(id: &str) -> Arguments {
    Map::from_iter([("id".to_owned(), json!(id))])
}

/// The arguments that name a watch or a webhook, and how much of it is asked for.
pub(super) fn limited(id: &str, limit: u64) -> Arguments {
    Map::from_iter([("id".to_owned(), json!(id)), ("limit".to_owned(), json!(limit))])
}

async fn read<'a>(calls: &'a dyn Calls, service: &str, id: &str, query: &Pairs) -> Result<Webhook<'a>, Problem> {
    let (shown, operations) = forms::webhook_operations(calls, service)?;
    let name = shown.service.name;
    let mut arguments = limited(id, ATTEMPTS);
    if let Some((_, after)) = query.iter().find(|(given, _)| given == "after") {
        arguments.insert("after".to_owned(), json!(after));
    }
    let deliveries = calls.call(name, DELIVERIES, arguments, "").await?;
    let (mut item, mut payloads) = (json!({}), Ok(Vec::new()));
    if operations.read.is_empty() {
        let mut all = calls.call(name, operations.list, Map::new(), "").await?;
        let items = all[operations.items].as_array_mut().into_iter().flatten();
        // One that is not on the first page of the list still has its deliveries.
        item = items.filter(|item| item["id"] == id).map(Value::take).next().unwrap_or(item);
    } else if shown.operation(MATCHES).is_some() {
        item = calls.call(name, operations.read, by_id(id), "").await?;
        payloads = calls.call(name, MATCHES, limited(id, PAYLOADS), "").await.map(matches);
    } else {
        item = calls.call(name, operations.read, limited(id, PAYLOADS), "").await?;
        payloads = Ok(matches(item.clone()));
    }
    let asked = value(query, "message");
    let message = if asked.is_empty() || shown.operation(MESSAGE).is_none() {
        None
    } else {
        let mut arguments = by_id(id);
        arguments.insert("message".to_owned(), json!(asked));
        let answer = calls.call(name, MESSAGE, arguments, "").await;
        Some((asked.to_owned(), answer.map(|mut answer| answer["body"].take())))
    };
    Ok(Webhook { shown, item, deliveries, payloads, message })
}

/// The matches in an answer.
pub(super) fn matches(mut answer: Value) -> Vec<Value> {
    match answer["matches"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}

/// Does what a form of the page asks for.
///
/// # Errors
/// Those of the operation; `request-invalid` for a form that the page does not have.
pub(super) async fn act(calls: &dyn Calls, service: &str, id: &str, form: &Pairs) -> Result<Outcome, Problem> {
    let (shown, operations) = forms::webhook_operations(calls, service)?;
    let name = shown.service.name;
    let once = value(form, "once");
    let with = |names: &[&str]| {
        let mut arguments = forms::arguments(form, names);
        arguments.insert("id".to_owned(), json!(id));
        arguments
    };
    match value(form, "act") {
        "ping" => calls.call(name, "ping_webhook", with(&[]), "").await.map(|answer| posted("test message", &answer)),
        "resend" => calls.call(name, "resend_message", with(&["message"]), "").await.map(|answer| posted("message", &answer)),
        "resume" => calls.call(name, "replay_webhook", with(&[]), "").await.map(|answer| continued(&answer)),
        "replay" if value(form, "after").is_empty() => {
            Err(Problem::parameter("after", "after: name the change after which the changes are delivered again"))
        }
        "replay" => calls.call(name, "replay_webhook", with(&["after", "upto"]), "").await.map(|answer| continued(&answer)),
        "rotate" => {
            let mut arguments = by_id(id);
            arguments.insert("rotateSecret".to_owned(), json!(true));
            let answer = calls.call(name, "update_webhook", arguments, once).await?;
            Ok(updated(&answer, "The secret was replaced. For a day, messages are signed with the previous secret, too."))
        }
        "url" => {
            let mut arguments = by_id(id);
            arguments.insert("webhook".to_owned(), json!(value(form, "webhook")));
            let answer = calls.call(name, "update_webhook", arguments, once).await?;
            Ok(updated(&answer, "The URL was changed. A message in flight is sent to it at the next attempt."))
        }
        DELETE => calls.call(name, operations.delete, by_id(id), "").await.map(|_| Outcome::done(format!("The webhook {id} was deleted."))),
        _ => Err(Problem::new(ErrorCode::RequestInvalid, "this page has no such form")),
    }
}

/// The outcome of a message that was sent now.
fn posted(what: &str, answer: &Value) -> Outcome {
    if answer["accepted"] == true {
        return Outcome::done(format!("The {what} was accepted with status {}.", answer["status"]));
    }
    Outcome::done(format!("The {what} was not accepted: {}.", answer["reason"].as_str().unwrap_or("no reason is known")))
}

fn continued(answer: &Value) -> Outcome {
    Outcome::done(format!("Delivery continues after change {}.", answer["deliveredSeq"]))
}

fn updated(answer: &Value, words: &str) -> Outcome {
    let secret = answer["secret"].as_str().map(|secret| ("The new signing secret", secret.to_owned()));
    Outcome { secret, ..Outcome::done(words) }
}

/// A form with one button.
fn action(path: &str, act: &str, words: &str, fields: &Markup) -> Markup {
    html! {
        form.inline method="post" action=(path) {
            input type="hidden" name="act" value=(act);
            (fields)
            button { (words) }
        }
    }
}

impl Webhook<'_> {
    fn title(&self) -> String {
        format!("Webhook to {}", host_or_unknown(self.item["webhookHost"].as_str().unwrap_or_default()))
    }

    fn body(&self, calls: &dyn Calls, id: &str) -> Markup {
        let path = webhook_path(self.shown.service.name, id);
        let status = &self.deliveries;
        html! {
            p {
                (self.shown.service.title) ": " (forms::fields_in_words(&forms::watched(&self.item), "everything new"))
                " " code.soft { (id) }
            }
            (facts(status))
            (self.delivery(&path))
            @if let Some((message, body)) = &self.message {
                h2 #message { "Message " bdi { (message) } }
                @match body {
                    Ok(body) => {
                        p.soft { "The body as the receiver gets it, made from the changes again." }
                        pre tabindex="0" role="region" aria-label="Body of the message" { code { (shortened(body)) } }
                    }
                    Err(problem) => { (notice(&problem.detail, problem.code)) }
                }
            }
            h2 { "Attempts" }
            (attempts(&path, status, self.shown.operation(MESSAGE).is_some()))
            h2 { "Payloads" }
            @match &self.payloads {
                Ok(payloads) if payloads.is_empty() => {
                    p { "There are no changes to show." }
                }
                Ok(payloads) => {
                    p { "Changes that this webhook receives, as its messages carry them." }
                    @for payload in payloads { (payload_of(&self.shown, payload)) }
                    @if forms::has_watches(&self.shown) {
                        p { a href=(watch_path(self.shown.service.name, id)) { "All matches of this watch" } }
                    }
                }
                Err(problem) => { (notice(&problem.detail, problem.code)) }
            }
            (settings(calls, &path, id))
        }
    }

    fn delivery(&self, path: &str) -> Markup {
        let delivered = count(&self.deliveries["deliveredSeq"]);
        // Messages contain only changes after this one; 0 if the answer does not name it.
        let made_at = self.item["after"].as_u64().unwrap_or(0);
        html! {
            h2 { "Delivery" }
            div.forms {
                (action(path, "ping", "Send a test message", &html! {}))
                @if Health::of(&self.deliveries) == Health::Disabled { (action(path, "resume", "Resume delivery", &html! {})) }
            }
            h3 { "Replay" }
            p.soft { "Delivers the changes after a change again, with the same message ids; without an end, all that follow. Delivered so far: up to change " (delivered) "." }
            @if made_at > 0 { p.soft { "Changes up to " (count(&self.item["after"])) " were recorded before the webhook was made and are not delivered." } }
            (action(path, "replay", "Replay", &html! {
                div.field { label for="after" { "After change" } input #after type="number" name="after" min=(made_at) required; }
                div.field { label for="upto" { "Up to change" } input #upto type="number" name="upto" min="1"; }
            }))
        }
    }
}

/// The forms that change or delete the webhook.
fn settings(calls: &dyn Calls, path: &str, id: &str) -> Markup {
    html! {
        h2 { "Settings" }
        h3 { "Signing secret" }
        p.soft { "A new secret is shown once. For a day, messages are signed with both." }
        (action(path, "rotate", "Replace the secret", &html! { input type="hidden" name="once" value=(calls.nonce()); }))
        h3 { "URL" }
        p.soft { "The URL is stored encrypted and never shown again." }
        (action(path, "url", "Change the URL", &html! {
            input type="hidden" name="once" value=(calls.nonce());
            div.field { label for="webhook" { "New URL" } input #webhook type="url" name="webhook" required maxlength="2000" autocomplete="off"; }
        }))
        h3 { "Delete" }
        p.soft { "Messages that wait for delivery are not sent." }
        (forms::confirmed(path, "this webhook", &[("act", DELETE), ("id", id)]))
    }
}

/// The delivery status.
fn facts(status: &Value) -> Markup {
    let text = |name: &str| status[name].as_str().unwrap_or_default();
    html! {
        dl.facts {
            div { dt { "State" } dd { (Health::of(status).mark()) } }
            div { dt { "Delivered" } dd { (count(&status["delivered"])) } }
            div { dt { "Skipped" } dd { (count(&status["skipped"])) } }
            div { dt { "Up to change" } dd { (count(&status["deliveredSeq"])) } }
            @if !text("failingSince").is_empty() { div { dt { "Failing since" } dd { (time(text("failingSince"))) } } }
            @if !text("dueAt").is_empty() { div { dt { "Next attempt" } dd { (time(text("dueAt"))) } } }
        }
        @if !text("reason").is_empty() { p.notice { bdi { (text("reason")) } } }
    }
}

/// The attempts, newest first. The button is at the newest attempt of each message.
fn attempts(path: &str, status: &Value, has_bodies: bool) -> Markup {
    let all = status["deliveries"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |attempt: &'_ Value, name: &str| attempt[name].as_str().unwrap_or_default().to_owned();
    html! {
        @if all.is_empty() { p.empty { "No message was sent yet." } } @else {
            (table("Attempts, the newest first", &["Message", "Attempt", "At", "Response", "Reason", ""], &html! {
                @for (index, attempt) in all.iter().enumerate() {
                    @let message = text(attempt, "message");
                    @let is_newest = index == 0 || all[index - 1]["message"] != attempt["message"];
                    tr {
                        th scope="row" {
                            @if has_bodies && is_newest {
                                a href={ (path) (url::query(&[("message", &message)])) "#message" } { code { (message) } }
                            } @else { code { (message) } }
                        }
                        td.number data-label="Attempt" { (count(&attempt["attempt"])) }
                        td data-label="At" { (time(&text(attempt, "at"))) }
                        td.number data-label="Response" { (response(&attempt["status"])) }
                        td data-label="Reason" {
                            @if text(attempt, "reason").is_empty() { "accepted" } @else { bdi { (text(attempt, "reason")) } }
                        }
                        td.act {
                            @if is_newest {
                                form.inline method="post" action=(path) {
                                    input type="hidden" name="act" value="resend";
                                    input type="hidden" name="message" value=(message);
                                    button { "Send again" span.hidden { " " (message) } }
                                }
                            }
                        }
                    }
                }
            }))
        }
        @if let Some(next) = status["next"].as_u64() {
            nav.pager aria-label="Attempts" { a.next href={ (path) (url::query(&[("after", next.to_string())])) } { "Earlier attempts" } }
        }
    }
}

/// JSON in lines, cut where it is long.
fn shortened(value: &Value) -> String {
    let mut json = serde_json::to_string_pretty(value).unwrap_or_default();
    if json.len() > PAYLOAD_BYTES_MAX {
        json.truncate(json.floor_char_boundary(PAYLOAD_BYTES_MAX));
        json.push('…');
    }
    json
}

/// One change that a webhook receives.
fn payload_of(shown: &SiteService<'_>, payload: &Value) -> Markup {
    let json = shortened(payload);
    let record = payload["record"]["id"].as_str().or_else(|| payload["id"].as_str());
    html! {
        details.payload {
            summary {
                @match payload["seq"].as_u64() { Some(seq) => { "Change " (seq) } None => { "Change" } }
                " " bdi.soft { (record.unwrap_or_default()) }
            }
            pre tabindex="0" role="region" aria-label="Payload" { code { (json) } }
            @if let Some(record) = page_id(&payload["record"]) { p { a href=(shown.record(record)) { "The record" } } }
        }
    }
}
