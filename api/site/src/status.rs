//! The status page: which services answer, and how the streams that they read do. It shows what `health` of each service says.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use maud::{Markup, html};
use operation::problem::Problem;
use pages::{Page, table};
use serde_json::Value;

use crate::fields::{ago, cell, grouped, time};
use crate::{Reads, Shown, guides};

/// A stream, with the services that read it.
struct Stream<'a> {
    state: &'a Value,
    services: Vec<Shown<'a>>,
}

/// The page.
///
/// # Errors
/// None: a service that does not answer is shown as such.
pub(crate) async fn page(reads: &dyn Reads) -> Result<Page<'_>, Problem> {
    let arguments = || vec![("streams".to_owned(), "true".to_owned())];
    let services = reads.services();
    let answering = services.iter().map(|shown| async move { (*shown, reads.read(shown.service.name, "health", arguments()).await) });
    let states: Vec<(Shown<'_>, Result<Value, Problem>)> = join_all(answering).await;
    let streams = streams(&states);
    let silent = states.iter().filter(|(_, state)| state.is_err()).count();
    let failed: Vec<&str> = streams.iter().filter(|(_, stream)| stream.state["state"] == "failed").map(|(name, _)| *name).collect();
    let now_ms = reads.now_ms();
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
        h2 { "Services" }
        (table("Services", &["Service", "State", "Last complete sync", "Complete through", "Changes"], &html! {
            @for (shown, state) in &states { (service(shown, state.as_ref(), now_ms)) }
        }))
        h2 { "Streams" }
        p {
            "A stream is one dataset or endpoint of an upstream. “Complete through” is the last day that was read completely. Records that could not be read are kept for the "
            "operator of this server; the others of the same sync run are recorded. When the next sync run begins is in the configuration of the operator and is not known here."
        }
        @if streams.is_empty() { p.empty { "No stream is known." } } @else {
            (table("Streams", &["Stream", "Newest sync run", "Last complete sync", "Complete through", "Records seen", "Not read", "Read by"], &html! {
                @for (name, stream) in &streams { (row(name, stream, now_ms)) }
            }))
        }
        p.soft {
            "The same over the API: " code { "GET /{service}/health?streams=true" } ". A feed that seems to be silent: see "
            a href={ (guides::PATH) "/troubleshooting" } { "troubleshooting" } "."
        }
    };
    Ok(Page {
        title: "Status".to_owned(),
        description: "Which services answer, and when each stream of public records was last read completely.".to_owned(),
        canonical: crate::STATUS.to_owned(),
        main,
        ..Page::default()
    })
}

/// The streams of all services by their names, each once.
fn streams<'a>(states: &'a [(Shown<'a>, Result<Value, Problem>)]) -> BTreeMap<&'a str, Stream<'a>> {
    let mut streams: BTreeMap<&str, Stream<'_>> = BTreeMap::new();
    for (shown, health) in states {
        for state in health.iter().flat_map(|health| health["streams"].as_array().into_iter().flatten()) {
            let Some(name) = state["stream"].as_str() else { continue };
            streams.entry(name).or_insert_with(|| Stream { state, services: Vec::new() }).services.push(*shown);
        }
    }
    streams
}

fn service(shown: &Shown<'_>, state: Result<&Value, &Problem>, now_ms: i64) -> Markup {
    let text = |health: &Value, name: &str| health[name].as_str().unwrap_or_default().to_owned();
    html! {
        tr {
            th scope="row" { a href=(shown.explorer()) { (shown.service.title) } }
            @match state {
                Ok(health) => {
                    td { "Answers" }
                    td { (ago(&text(health, "lastSnapshot"), now_ms)) }
                    td { (cell("", &health["throughDate"])) }
                    td.number { (grouped(health["changes"].as_i64().unwrap_or(0))) }
                }
                Err(problem) => {
                    td colspan="4" { "Does not answer: " (problem.detail) }
                }
            }
        }
    }
}

fn row(name: &str, stream: &Stream<'_>, now_ms: i64) -> Markup {
    let text = |field: &str| stream.state[field].as_str().unwrap_or_default();
    let count = |field: &str| grouped(stream.state[field].as_i64().unwrap_or(0));
    let words = match text("state") {
        "failed" => "Failed",
        "finished" => "Finished",
        "running" => "Running",
        _ => "None yet",
    };
    html! {
        tr {
            th scope="row" { code { (name) } }
            td { @if words == "Failed" { strong { (words) } } @else { (words) } @if !text("at").is_empty() { " " span.soft { (time(text("at"))) } } }
            td { (ago(text("lastFinished"), now_ms)) }
            td { (cell("", &stream.state["throughDate"])) }
            td.number { (count("seen")) }
            td.number { (count("rejected")) }
            td {
                @for (index, shown) in stream.services.iter().enumerate() {
                    @if index > 0 { ", " }
                    a href=(shown.explorer()) { (shown.service.name) }
                }
            }
        }
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
                    "seen": 1_234, "rejected": 5 })
        };
        made.answers.get_mut("health").unwrap()["streams"] = json!([stream("cpsc", "finished"), stream("<b>fsis", "failed")]);
        let html = made.page("/status").html;
        assert!(html.contains("The newest sync run failed: &lt;b&gt;fsis.") && html.contains("1 of 1 services answer"), "{html}");
        assert!(html.contains("<code>cpsc</code>") && html.contains("2 h ago") && html.contains("1,234"), "{html}");
        made.answers.get_mut("health").unwrap()["streams"] = json!([stream("cpsc", "finished")]);
        assert!(made.page("/status").html.contains("All 1 services answer, and no stream fails."));
        made.answers.remove("health");
        let page = made.page("/status");
        assert_eq!(page.status, 200);
        assert!(page.html.contains("0 of 1 services answer") && page.html.contains("Does not answer: no &lt;record&gt;"), "{}", page.html);
    }
}
