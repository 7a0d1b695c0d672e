//! `/account/saved`: the saved filters and watches of the account in all services.

use futures_util::future::{join, join_all};
use maud::{Markup, html};
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use serde_json::{Map, Value};

use super::calls::Calls;
use super::forms;
use super::route::{SAVED, WEBHOOKS, watch_path, webhook_path};
use super::screen::{Outcome, Screen, frame, host_or_unknown, table};
use crate::fields::time;
use crate::layout::notice;
use crate::url::value;
use crate::{Pairs, SiteService};

/// A kind of saved items: the operations that list and delete them, the field of the list, and the argument that names one.
struct Kind {
    list: &'static str,
    items: &'static str,
    delete: &'static str,
    name: &'static str,
}

const FILTERS: Kind = Kind { list: "list_filters", items: "filters", delete: "delete_filter", name: "name" };
const WATCHES: Kind = Kind { list: "list_watches", items: "watches", delete: "delete_watch", name: "id" };

/// The items of one kind, and what could not be shown.
struct Listing<'a> {
    items: Vec<(SiteService<'a>, Value)>,
    /// Services with more items than a page of the API has.
    cut: Vec<&'static str>,
    refusals: Vec<Problem>,
}

/// The page.
pub(super) async fn screen(calls: &dyn Calls, outcome: Outcome) -> Screen {
    let (filters, watches) = join(listing(calls, &FILTERS), listing(calls, &WATCHES)).await;
    let body = html! {
        h2 { "Saved filters" }
        p { "A feed takes the name of a saved filter as " code { "filter" } ". Save one with " code { "POST /v1/filters" } " of a service, or from its explorer." }
        (refusal(&filters))
        @if !filters.items.is_empty() {
            (table("Saved filters", &["Name", "Service", "Filter", "Changed", ""], &html! { @for (shown, item) in &filters.items { (filter_row(shown, item)) } }))
        }
        (empty(&filters, "This account has no saved filters."))
        h2 { "Watches" }
        p {
            "A watch matches every later change of what it names; its page shows the matches. Create one with “Watch this” on the page of a record. Those with a "
            "webhook are also on the page of " a href=(WEBHOOKS) { "webhooks" } "."
        }
        (refusal(&watches))
        @if !watches.items.is_empty() {
            (table("Watches", &["Watched", "Service", "Since", "Until", "Webhook", ""], &html! { @for (shown, item) in &watches.items { (watch_row(shown, item)) } }))
        }
        (empty(&watches, "This account has no watches."))
    };
    frame(SAVED, "Saved filters and watches", outcome, &body)
}

/// Deletes a saved filter or a watch.
///
/// # Errors
/// The errors of the operation that the form calls.
pub(super) async fn delete(calls: &dyn Calls, form: &Pairs) -> Result<Outcome, Problem> {
    let act = value(form, "act");
    let kind = [FILTERS, WATCHES].into_iter().find(|kind| kind.delete == act);
    let kind = kind.ok_or_else(|| Problem::new(ErrorCode::RequestInvalid, "this page has no such form"))?;
    let shown = forms::service(&calls.services(), value(form, "service"))?;
    calls.call(shown.service.name, kind.delete, forms::arguments(form, &[kind.name]), "").await?;
    Ok(Outcome::done(format!("Deleted {} in {}.", value(form, kind.name), shown.service.title)))
}

async fn listing<'a>(calls: &'a dyn Calls, kind: &Kind) -> Listing<'a> {
    let services: Vec<SiteService<'a>> = calls.services().into_iter().filter(|shown| shown.operation(kind.list).is_some()).collect();
    let name = kind.list;
    let answers = join_all(services.iter().map(|shown| calls.call(shown.service.name, name, Map::new(), ""))).await;
    let mut listing = Listing { items: Vec::new(), cut: Vec::new(), refusals: Vec::new() };
    for (shown, answer) in services.into_iter().zip(answers) {
        match answer {
            Ok(mut answer) => {
                if !answer["next"].is_null() {
                    listing.cut.push(shown.service.title);
                }
                if let Value::Array(items) = answer[kind.items].take() {
                    listing.items.extend(items.into_iter().map(|item| (shown, item)));
                }
            }
            Err(problem) => listing.refusals.push(problem),
        }
    }
    listing
}

/// Why some services are not shown: the first reason.
fn refusal(listing: &Listing<'_>) -> Markup {
    html! {
        @if let Some(problem) = listing.refusals.first() { (notice(&problem.detail, problem.code)) }
        @if !listing.cut.is_empty() { p.soft { "Of " (listing.cut.join(", ")) " only the first page is shown." } }
    }
}

fn empty(listing: &Listing<'_>, words: &str) -> Markup {
    html! { @if listing.items.is_empty() && listing.refusals.is_empty() { p.empty { (words) } } }
}

fn text<'a>(item: &'a Value, name: &str) -> &'a str {
    item[name].as_str().unwrap_or_default()
}

fn filter_row(shown: &SiteService<'_>, item: &Value) -> Markup {
    let name = text(item, "name");
    let nothing = Map::new();
    let filter = item["filter"].as_object().unwrap_or(&nothing);
    let hidden = [("act", FILTERS.delete), ("service", shown.service.name), ("name", name)];
    html! {
        tr {
            th scope="row" { bdi { (name) } }
            td data-label="Service" { (shown.service.title) }
            td data-label="Filter" { (forms::fields_in_words(filter, "everything")) }
            td data-label="Changed" { (time(text(item, "changedAt"))) }
            td.act {
                @if let Some(address) = forms::explorer(shown, filter) { a href=(address) { "Open" span.hidden { " " (name) " in the explorer" } } }
                (forms::confirmed(SAVED, name, &hidden))
            }
        }
    }
}

fn watch_row(shown: &SiteService<'_>, item: &Value) -> Markup {
    let (id, host) = (text(item, "id"), text(item, "webhookHost"));
    let watched = forms::watched(item);
    let since = forms::since(item);
    let until = text(item, "until");
    let hidden = [("act", WATCHES.delete), ("service", shown.service.name), ("id", id)];
    html! {
        tr {
            th scope="row" { a href=(watch_path(shown.service.name, id)) { (forms::fields_in_words(&watched, "Everything")) } }
            td data-label="Service" { (shown.service.title) }
            td data-label="Since" { (time(since)) }
            td data-label="Until" { @if until.is_empty() { "you delete it" } @else { (time(until)) } }
            td data-label="Webhook" {
                @if item["webhookHost"].is_string() { a href=(webhook_path(shown.service.name, id)) { bdi { (host_or_unknown(host)) } } } @else { "none" }
            }
            td.act {
                @if let Some(address) = forms::explorer(shown, &watched) { a href=(address) { "Open" span.hidden { " in the explorer" } } }
                (forms::confirmed(SAVED, id, &hidden))
            }
        }
    }
}
