//! `/account/watches/{service}/{id}`: what a watch selects, and the changes that match it.

use maud::{Markup, html};
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use serde_json::{Value, json};

use super::calls::Calls;
use super::forms;
use super::route::{SAVED, watch_path, webhook_path};
use super::screen::{Outcome, Screen, frame, host_or_unknown, table};
use super::webhook::{MATCHES, by_id, limited, matches};
use crate::fields::time;
use crate::row::{Row, event, named};
use crate::url::{self, value};
use crate::{Pairs, SiteService};

/// The matches of a page.
const SHOWN_MAX: u64 = 50;
/// The operation that reads a watch. Unless there is an operation for the matches, its answer has them, too.
const READ: &str = "get_watch";
/// The operation that deletes a watch.
const DELETE: &str = "delete_watch";

/// The page.
pub(super) async fn screen(calls: &dyn Calls, service: &str, id: &str, query: &Pairs, outcome: Outcome) -> Screen {
    match read(calls, service, id, query).await {
        Ok(watch) => frame(SAVED, "Watch", outcome, &watch.body(id)),
        Err(problem) => {
            let outcome = if outcome.problem.is_some() { outcome } else { Outcome::refused(problem) };
            frame(SAVED, "Watch", outcome, &html! { p { a href=(SAVED) { "All watches" } } })
        }
    }
}

/// A watch with one page of its matches.
struct Watch<'a> {
    shown: SiteService<'a>,
    item: Value,
    rows: Vec<Row>,
    /// The argument that continues and its value; `None` on the last page.
    next: Option<(&'static str, String)>,
    is_newest_first: bool,
    is_continued: bool,
}

async fn read<'a>(calls: &'a dyn Calls, service: &str, id: &str, query: &Pairs) -> Result<Watch<'a>, Problem> {
    let shown = forms::service(&calls.services(), service)?;
    let name = shown.service.name;
    if !forms::has_watches(&shown) {
        return Err(Problem::new(ErrorCode::NotFound, "this service has no watches"));
    }
    // The matches of a watch with an end begin with the first one, and those of the others with the last one.
    let is_newest_first = shown.operation(MATCHES).is_none();
    let argument = if is_newest_first { "after" } else { "cursor" };
    let at = value(query, argument);
    let mut arguments = limited(id, SHOWN_MAX);
    if !at.is_empty() {
        arguments.insert(argument.to_owned(), json!(at));
    }
    let (item, answer) = if is_newest_first {
        let item = calls.call(name, READ, arguments, "").await?;
        (item.clone(), item)
    } else {
        (calls.call(name, READ, by_id(id), "").await?, calls.call(name, MATCHES, arguments, "").await?)
    };
    let next = answer[if is_newest_first { "next" } else { "cursor" }].as_str().filter(|_| answer["hasMore"] == true);
    let next = next.map(|next| (argument, next.to_owned()));
    let rows = matches(answer).into_iter().map(|change| Row::of_change(&shown, change)).collect();
    Ok(Watch { shown, item, rows, next, is_newest_first, is_continued: !at.is_empty() })
}

impl Watch<'_> {
    fn body(&self, id: &str) -> Markup {
        let (shown, path) = (&self.shown, watch_path(self.shown.service.name, id));
        let watched = forms::watched(&self.item);
        let until = self.item["until"].as_str().unwrap_or_default();
        html! {
            p { (shown.service.title) ": " (forms::fields_in_words(&watched, "everything")) " " code.soft { (id) } }
            dl.facts {
                div { dt { "Since" } dd { (time(forms::since(&self.item))) } }
                div { dt { "Until" } dd { @if until.is_empty() { "you delete it" } @else { (time(until)) } } }
                div {
                    dt { "Webhook" }
                    dd {
                        @match self.item["webhookHost"].as_str() {
                            Some(host) => { a href=(webhook_path(shown.service.name, id)) { bdi { (host_or_unknown(host)) } } }
                            None => { "none" }
                        }
                    }
                }
            }
            h2 { "Matches" }
            p.soft {
                "The changes since the watch was created that match it, the " @if self.is_newest_first { "newest" } @else { "oldest" } " first."
                @if let Some(address) = forms::explorer(shown, &watched) { " What matched before is in the " a href=(address) { "explorer" } "." }
            }
            @if self.rows.is_empty() { p.empty { (self.nothing()) } } @else {
                (table("Matches", &["Record", "Change", "Recorded"], &html! { @for row in &self.rows { (change_row(shown, row)) } }))
            }
            nav.pager aria-label="Matches" {
                @if self.is_continued { a href=(path) { "First page" } }
                @if let Some((argument, at)) = &self.next {
                    a.next rel="next" href={ (path) (url::query(&[(argument, at)])) } {
                        @if self.is_newest_first { "Older matches" } @else { "Later matches" }
                    }
                }
            }
            h2 { "Delete" }
            p.soft { "Its matches can then not be read here, and its webhook receives nothing more. The changes remain in the feed." }
            (forms::confirmed(SAVED, "this watch", &[("act", DELETE), ("service", shown.service.name), ("id", id)]))
        }
    }

    /// Why there are no rows.
    fn nothing(&self) -> &'static str {
        match (&self.next, self.is_continued) {
            (Some(_), _) => "No match in this part. The next page continues the search.",
            (None, true) => "There are no further matches.",
            (None, false) => "Nothing matched yet. Changes that are recorded from now on appear here.",
        }
    }
}

/// One match.
fn change_row(shown: &SiteService<'_>, row: &Row) -> Markup {
    html! {
        tr {
            th scope="row" {
                (named(shown, row))
                @if !row.details.is_empty() { span.what { bdi { (row.details) } } }
            }
            td data-label="Change" { (event(&row.event)) }
            td.recorded data-label="Recorded" { (time(&row.recorded_at)) }
        }
    }
}
