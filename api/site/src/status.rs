//! The status page: which services answer, how the streams that they read do, and what is assumed of the upstreams. It shows what `health` of each
//! service says.

mod bars;
pub(crate) mod outages;

use std::collections::BTreeMap;

use futures_util::future::join_all;
use jiff::civil::Date;
use maud::{Markup, html};
use operation::problem::Problem;
use pages::{Page, table};
use serde_json::Value;

use self::bars::{bars, last_days};
use crate::chart::COUNTED;
use crate::fields::{ago, cell, grouped, time, today};
use crate::last_sync::last_sync;
use crate::{Pairs, Reads, STATUS, STATUS_FEED, SiteService, guides};

/// The most fields of an upstream that are listed.
const FIELDS_MAX: usize = 60;
/// The bytes of a megabyte, as answers are limited.
const MEGABYTE: u64 = 1 << 20;

/// A service, and what its `health` answers.
type ServiceState<'a> = (SiteService<'a>, Result<Value, Problem>);

/// A stream, with the services that read it.
struct Stream<'a> {
    state: &'a Value,
    services: Vec<SiteService<'a>>,
}

impl Stream<'_> {
    fn has_failed(&self) -> bool {
        self.state["state"] == "failed"
    }

    fn text(&self, name: &str) -> &str {
        self.state[name].as_str().unwrap_or_default()
    }
}

/// The argument with which `health` lists streams.
pub(crate) fn with_streams() -> Pairs {
    vec![("streams".to_owned(), "true".to_owned())]
}

/// Asks each service for its state.
async fn read_states(reads: &dyn Reads) -> Vec<ServiceState<'_>> {
    let answering = reads.services().into_iter();
    join_all(answering.map(|shown| async move { (shown, reads.read(shown.service.name, "health", with_streams()).await) })).await
}

/// The page.
///
/// # Errors
/// None: a service that does not answer is shown as such.
pub(crate) async fn page(reads: &dyn Reads) -> Result<Page<'_>, Problem> {
    let states = read_states(reads).await;
    let streams = streams(answered(&states));
    let silent = states.iter().filter(|(_, state)| state.is_err()).count();
    let failed: Vec<&str> = streams.iter().filter(|(_, stream)| stream.has_failed()).map(|(name, _)| *name).collect();
    let now_ms = reads.now_ms();
    let days = last_days(today(now_ms));
    let main = html! {
        h1 { "Status" }
        @if silent == 0 && failed.is_empty() {
            p.lead { "All " (states.len()) " services answer, and no stream fails." }
        } @else {
            p.lead { (states.len() - silent) " of " (states.len()) " services answer. Streams whose newest sync run failed: " (failed.len()) "." }
        }
        @if !failed.is_empty() {
            p.notice role="status" {
                "The newest sync run failed: " (failed.join(", ")) ". It is tried again by itself. Until then the services that read these streams show what was "
                "recorded before; nothing is lost."
            }
        }
        p { a href=(STATUS_FEED) type="application/atom+xml" { "Outages as an Atom feed" } }
        h2 { "Services" }
        (table("Services", &["Service", "State", "Last complete sync", "Complete through", "Changes", "Parked inputs"], &html! {
            @for (shown, state) in &states { (service(shown, state.as_ref(), now_ms)) }
        }))
        p.soft {
            "A parked input is a record that was read and that the rules of the service could not decide. It waits for the operator, with later records of its key; "
            "all others are shown. " (COUNTED)
        }
        h2 #streams { "Streams" }
        p {
            "A stream is one dataset or endpoint of an upstream. “Complete through” is the last day that was read completely. Records that could not be read are kept for the "
            "operator of this server; the others of the same sync run are recorded. A low bar is a day on which all sync runs finished, a high one a day on which some or "
            "all failed."
        }
        @if streams.is_empty() { p.empty { "No stream is known." } } @else {
            ul.plain { @for (name, stream) in failing_first(&streams) { (card(name, stream, now_ms, &days)) } }
        }
        p.soft {
            "The same over the API: " code { "GET /{service}/health?streams=true" } ". A feed that seems to be silent: see "
            a href={ (guides::PATH) "/troubleshooting" } { "troubleshooting" } "."
        }
    };
    Ok(Page {
        title: "Status".to_owned(),
        description: "Which services answer, when each stream of public records was last read completely, and when it failed.".to_owned(),
        canonical: STATUS.to_owned(),
        feed: STATUS_FEED.to_owned(),
        main,
        ..Page::default()
    })
}

/// The services that answered, with their answers.
fn answered<'a>(states: &'a [ServiceState<'a>]) -> impl Iterator<Item = (SiteService<'a>, &'a Value)> {
    states.iter().filter_map(|(shown, health)| Some((*shown, health.as_ref().ok()?)))
}

/// The streams in the answers of services, by their names, each once.
fn streams<'a>(answers: impl Iterator<Item = (SiteService<'a>, &'a Value)>) -> BTreeMap<&'a str, Stream<'a>> {
    let mut streams: BTreeMap<&str, Stream<'_>> = BTreeMap::new();
    for (shown, health) in answers {
        for state in health["streams"].as_array().into_iter().flatten() {
            let Some(name) = state["stream"].as_str() else { continue };
            streams.entry(name).or_insert_with(|| Stream { state, services: Vec::new() }).services.push(shown);
        }
    }
    streams
}

/// The streams, those first whose newest sync run failed.
fn failing_first<'a>(streams: &'a BTreeMap<&'a str, Stream<'a>>) -> Vec<(&'a str, &'a Stream<'a>)> {
    let mut all: Vec<_> = streams.iter().map(|(name, stream)| (*name, stream)).collect();
    all.sort_by_key(|(_, stream)| !stream.has_failed());
    all
}

/// When each stream in the answers of services was last read completely, in a few words.
pub(crate) fn freshness<'a>(answers: impl Iterator<Item = (SiteService<'a>, &'a Value)>, now_ms: i64) -> Markup {
    let streams = streams(answers);
    html! {
        @if streams.is_empty() { p.soft { "No stream is known." } }
        ul.plain.streams {
            @for (name, stream) in failing_first(&streams) {
                li {
                    a href={ (STATUS) "#stream-" (name) } { code { (name) } } " "
                    @if stream.has_failed() { span.event.bad { "Failed" } " " }
                    span.soft { (ago(stream.text("lastFinished"), now_ms)) }
                }
            }
        }
    }
}

fn service(shown: &SiteService<'_>, state: Result<&Value, &Problem>, now_ms: i64) -> Markup {
    html! {
        tr {
            th scope="row" { a href=(shown.explorer()) { (shown.service.title) } }
            @match state {
                Ok(health) => {
                    td { "Answers" }
                    td { (last_sync(shown, health, now_ms)) }
                    td { (cell("", &health["throughDate"])) }
                    td.number { (grouped(health["changes"].as_i64().unwrap_or(0))) }
                    td.number { (grouped(health["parkedInputs"].as_i64().unwrap_or(0))) }
                }
                Err(problem) => {
                    td colspan="5" { "Does not answer: " (problem.detail) }
                }
            }
        }
    }
}

/// A stream: its newest sync run, the last days, and what is assumed of the upstream.
fn card(name: &str, stream: &Stream<'_>, now_ms: i64, days: &[(Date, String)]) -> Markup {
    let count = |field: &str| grouped(stream.state[field].as_i64().unwrap_or(0));
    let words = match stream.text("state") {
        "failed" => "Failed",
        "finished" => "Finished",
        "running" => "Running",
        _ => "None yet",
    };
    let class = if stream.has_failed() { "event bad" } else { "event" };
    html! {
        li.panel id={ "stream-" (name) } {
            h3.row { code { (name) } span class=(class) { (words) } }
            dl.facts.small {
                div { dt { "Newest sync run" } dd { @if stream.text("at").is_empty() { "none yet" } @else { (time(stream.text("at"))) } } }
                div { dt { "Last success" } dd { (ago(stream.text("lastFinished"), now_ms)) } }
                div { dt { "Next run" } dd { (next_run(stream.text("nextRun"), now_ms)) } }
                div { dt { "Complete through" } dd { (cell("", &stream.state["throughDate"])) (lag(stream.text("throughDate"), now_ms)) } }
                div { dt { "Records seen" } dd { (count("seen")) } }
                div { dt { "Not read" } dd { (count("rejected")) } }
                div {
                    dt { "Read by" }
                    dd {
                        @for (index, shown) in stream.services.iter().enumerate() {
                            @if index > 0 { ", " }
                            a href=(shown.explorer()) { (shown.service.name) }
                        }
                    }
                }
            }
            (bars(stream.state, days))
            (assumptions(&stream.state["assumptions"]))
        }
    }
}

/// When the next sync run begins.
fn next_run(at: &str, now_ms: i64) -> Markup {
    html! {
        @if at.is_empty() {
            span.soft { "not by a schedule of this server" }
        } @else if at.parse::<jiff::Timestamp>().is_ok_and(|at| at.as_millisecond() <= now_ms) {
            "due now"
        } @else {
            (time(at))
        }
    }
}

/// How many days the last complete day is behind today.
fn lag(through: &str, now_ms: i64) -> Markup {
    let days = through.parse().ok().and_then(|day: Date| day.until(today(now_ms)).ok()).map(|span| span.get_days());
    html! {
        @match days {
            Some(1) => { span.soft { ", 1 day behind" } }
            Some(days) if days > 1 => { span.soft { ", " (days) " days behind" } }
            _ => {}
        }
    }
}

/// What sync runs of a stream assume of the upstream, and when it was last checked.
fn assumptions(assumed: &Value) -> Markup {
    let fields: Vec<&Value> = assumed["fields"].as_array().into_iter().flatten().collect();
    let checked_at = assumed["checkedAt"].as_str().unwrap_or_default();
    let megabytes = assumed["answerBytesMax"].as_u64().unwrap_or(0).div_ceil(MEGABYTE);
    html! {
        details {
            summary {
                "What is assumed of the upstream, "
                @if checked_at.is_empty() { "not checked yet" } @else { "last checked " (time(checked_at)) }
            }
            ul {
                @if megabytes > 0 { li { "An answer has at most " (megabytes) " MB." } }
                @if assumed["isSnapshot"] == true {
                    li { "One sync run reads all records. A record that is missing from two of them is withdrawn." }
                } @else {
                    li { "A sync run reads a window of recent records. A record that is missing from one is not withdrawn for that." }
                }
                @if fields.is_empty() {
                    li { "No complete sync run has counted the fields of its records yet." }
                } @else {
                    li {
                        "Most records have these fields. A sync run stops if none of its records has one of them: "
                        @for (index, field) in fields.iter().take(FIELDS_MAX).enumerate() {
                            @if index > 0 { ", " }
                            code { bdi { (field["name"].as_str().unwrap_or_default()) } }
                            span.soft { " " (share(field)) }
                        }
                        @if fields.len() > FIELDS_MAX { " and " (fields.len() - FIELDS_MAX) " more" }
                        "."
                    }
                }
            }
        }
    }
}

/// In which part of the records a field had a value.
fn share(field: &Value) -> String {
    let count = |name: &str| field[name].as_u64().unwrap_or(0);
    match count("records") {
        0 => String::new(),
        records => format!("{} %", count("filled").saturating_mul(100) / records),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::Made;

    /// Proves that the page names streams whose newest run failed, with their last complete run, and services that do not answer.
    #[test]
    fn failures_are_named() {
        let mut made = Made::new();
        let stream = |name: &str, state: &str| {
            json!({ "stream": name, "state": state, "at": "2026-11-28T11:00:00Z", "lastFinished": "2026-11-28T10:00:00Z", "throughDate": "2026-11-27",
                    "seen": 1_234, "rejected": 5, "nextRun": "2026-11-28T13:00:00Z", "runsByDay": [{ "day": "2026-11-28", "finished": 2, "failed": 1 }],
                    "assumptions": { "isSnapshot": true, "answerBytesMax": 3_000_000, "checkedAt": "2026-11-28T10:00:00Z",
                                     "fields": [{ "name": "<i>Title", "filled": 99, "records": 100 }] } })
        };
        made.answers.get_mut("health").unwrap()["streams"] = json!([stream("cpsc", "finished"), stream("<b>fsis", "failed")]);
        let html = made.page("/status").html;
        assert!(html.contains("The newest sync run failed: &lt;b&gt;fsis.") && html.contains("1 of 1 services answer"), "{html}");
        assert!(html.contains("<code>cpsc</code>") && html.contains("2 h ago") && html.contains("1,234"), "{html}");
        // Those that fail come first.
        assert!(html.find("&lt;b&gt;fsis</code>").unwrap() < html.find("<code>cpsc</code>").unwrap());
        assert!(html.contains("28 Nov 2026, 13:00 UTC") && html.contains(", 1 day behind") && html.contains("some failed on 1"), "{html}");
        assert!(html.contains("at most 3 MB") && html.contains("<bdi>&lt;i&gt;Title</bdi></code><span class=\"soft\"> 99 %"), "{html}");
        assert!(html.contains("href=\"/status.atom\""));
        made.answers.get_mut("health").unwrap()["parkedInputs"] = json!(9);
        assert!(made.page("/status").html.contains("<td class=\"number\">9</td>"));
        made.answers.get_mut("health").unwrap()["streams"] = json!([stream("cpsc", "finished")]);
        assert!(made.page("/status").html.contains("All 1 services answer, and no stream fails."));
        made.answers.remove("health");
        let page = made.page("/status");
        assert_eq!(page.status, 200);
        assert!(page.html.contains("0 of 1 services answer") && page.html.contains("Does not answer: no &lt;record&gt;"), "{}", page.html);
    }
}
