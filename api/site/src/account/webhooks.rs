//! `/account/webhooks`: all webhooks of the account, the failing ones first.

use futures_util::future::join_all;
use maud::{Markup, html};
use operation::problem::Problem;
use serde_json::{Map, Value, json};

use super::calls::Calls;
use super::forms::{self, WebhookOperations};
use super::route::{REGISTER, WEBHOOKS, webhook_path};
use super::screen::{Outcome, Screen, frame, host_or_unknown, table};
use crate::fields::time;
use crate::layout::notice;
use crate::{SiteService, url};

/// The most webhooks of one service that are shown.
const SHOWN_MAX: usize = 50;
/// The operation with the delivery status of a webhook.
pub(super) const DELIVERIES: &str = "webhook_deliveries";

/// A webhook with its delivery status.
struct Target<'a> {
    shown: SiteService<'a>,
    item: Value,
    status: Value,
}

/// How a webhook does, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Health {
    /// Nothing is sent until it is resumed.
    Disabled,
    /// The last attempt failed.
    Failing,
    /// The status of the webhook cannot be read.
    Unknown,
    /// A message is in flight.
    Sending,
    /// Everything was delivered.
    UpToDate,
}

impl Health {
    /// The health that a delivery status says.
    pub(super) fn of(status: &Value) -> Self {
        let is_failing = status["failingSince"].as_str().is_some_and(|since| !since.is_empty());
        match status["state"].as_str() {
            Some("disabled") => Self::Disabled,
            Some(_) if is_failing => Self::Failing,
            Some("claimed" | "waiting") => Self::Sending,
            Some(_) => Self::UpToDate,
            None => Self::Unknown,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Failing => "failing",
            Self::Unknown => "unknown",
            Self::Sending => "sending",
            Self::UpToDate => "up to date",
        }
    }

    /// The health as a mark in a table.
    pub(super) fn mark(self) -> Markup {
        let class = if self <= Self::Failing {
            "event bad"
        } else if self == Self::UpToDate {
            "event new"
        } else {
            "event"
        };
        html! { span class=(class) { (self.words()) } }
    }
}

/// The page.
pub(super) async fn screen(calls: &dyn Calls, outcome: Outcome) -> Screen {
    let services = calls.services();
    let with_webhooks: Vec<(SiteService<'_>, WebhookOperations<'_>)> =
        services.iter().filter_map(|shown| Some((*shown, WebhookOperations::of(shown)?))).collect();
    let found = join_all(with_webhooks.iter().map(|(shown, operations)| of_service(calls, *shown, *operations))).await;
    let (mut targets, mut cut, mut refusals) = (Vec::new(), Vec::new(), Vec::new());
    for ((shown, _), found) in with_webhooks.iter().zip(found) {
        match found {
            Ok((own, is_cut)) => {
                targets.extend(own);
                cut.extend(is_cut.then_some(shown.service.title));
            }
            Err(problem) => refusals.push(problem),
        }
    }
    targets.sort_by(|one, other| place(one).cmp(&place(other)));
    let body = html! {
        @if let Some(problem) = refusals.first() { (notice(&problem.detail, problem.code)) }
        @if !targets.is_empty() {
            @let headings = ["Host", "Service", "What it receives", "State", "Failing since", "Last status", "Delivered", "Skipped"];
            (table("Webhooks, the failing ones first", &headings, &html! { @for target in &targets { (row(target)) } }))
        } @else if refusals.is_empty() {
            p.empty { "This account has no webhooks." }
        }
        @if !cut.is_empty() { p.soft { "Of " (cut.join(", ")) " only the last " (SHOWN_MAX) " are shown." } }
        @if !with_webhooks.is_empty() {
            h2 { "Register a webhook" }
            ul.choices.plain {
                @for (shown, _) in &with_webhooks {
                    li { a href={ (REGISTER) (url::query(&[("service", shown.service.name)])) } { (shown.service.title) } }
                }
            }
        }
    };
    frame(WEBHOOKS, "Webhooks", outcome, &body)
}

/// What the table is sorted by.
fn place<'a>(target: &'a Target<'_>) -> (Health, &'a str, &'a str, &'a str) {
    let text = |value: &'a Value| value.as_str().unwrap_or_default();
    (Health::of(&target.status), text(&target.status["failingSince"]), target.shown.service.name, text(&target.item["id"]))
}

/// The webhooks of a service, and whether it has more than are shown.
async fn of_service<'a>(
    calls: &'a dyn Calls,
    shown: SiteService<'a>,
    operations: WebhookOperations<'a>,
) -> Result<(Vec<Target<'a>>, bool), Problem> {
    let service = shown.service.name;
    let mut answer = calls.call(service, operations.list, Map::new(), "").await?;
    let Value::Array(items) = answer[operations.items].take() else { return Ok((Vec::new(), false)) };
    let mut items: Vec<Value> = items.into_iter().filter(|item| item["webhookHost"].is_string()).collect();
    let is_cut = items.len() > SHOWN_MAX || !answer["next"].is_null();
    items.truncate(SHOWN_MAX);
    let with_status = items.into_iter().map(|item| async move {
        let mut arguments = Map::new();
        arguments.insert("id".to_owned(), item["id"].clone());
        arguments.insert("limit".to_owned(), json!(1));
        // A webhook that was deleted meanwhile has no status.
        let status = calls.call(service, DELIVERIES, arguments, "").await.unwrap_or_default();
        Target { shown, item, status }
    });
    Ok((join_all(with_status).await, is_cut))
}

fn row(target: &Target<'_>) -> Markup {
    let Target { shown, item, status } = target;
    let id = item["id"].as_str().unwrap_or_default();
    let since = status["failingSince"].as_str().unwrap_or_default();
    html! {
        tr {
            th scope="row" {
                a href=(webhook_path(shown.service.name, id)) { bdi { (host_or_unknown(item["webhookHost"].as_str().unwrap_or_default())) } }
                " " code.soft { (id) }
            }
            td data-label="Service" { (shown.service.title) }
            td data-label="What it receives" { (forms::fields_in_words(&forms::watched(item), "everything new")) }
            td data-label="State" { (Health::of(status).mark()) }
            td data-label="Failing since" { @if since.is_empty() { "–" } @else { (time(since)) } }
            td.number data-label="Last status" { (response(&status["status"])) }
            td.number data-label="Delivered" { (count(&status["delivered"])) }
            td.number data-label="Skipped" { (count(&status["skipped"])) }
        }
    }
}

/// The HTTP status of a response; 0 means that there was none.
pub(super) fn response(status: &Value) -> String {
    status.as_u64().filter(|status| *status > 0).map_or_else(|| "–".to_owned(), |status| status.to_string())
}

pub(super) fn count(number: &Value) -> String {
    number.as_i64().map_or_else(|| "–".to_owned(), crate::fields::grouped)
}
