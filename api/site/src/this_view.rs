//! "This view as": how programs get what a page shows.

use maud::{Markup, html};
use operation::{Operation, Price};
use pages::shell_quoted;
use serde_json::{Map, Value, json};

use crate::account::register::Registration;
use crate::layout::copyable;
use crate::{Pairs, SiteService, filters, url};

/// What a page shows: the answer of an operation.
pub(crate) struct View<'a> {
    pub(crate) operation: &'a Operation,
    /// The arguments, those in the path included.
    pub(crate) arguments: Pairs,
}

/// The address of a view over REST.
pub(crate) fn address(shown: &SiteService<'_>, view: &View<'_>) -> String {
    address_at(shown, view.operation.path, view.arguments.clone())
}

/// The address of a path of a service, with arguments in the path and in the query.
fn address_at(shown: &SiteService<'_>, path: &str, mut query: Pairs) -> String {
    let part = |part: &str| match part.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        Some(name) => {
            let at = query.iter().position(|(given, _)| given == name);
            at.map(|at| url::segment(&query.remove(at).1)).unwrap_or_default()
        }
        None => part.to_owned(),
    };
    let path = path.split('/').map(part).collect::<Vec<_>>().join("/");
    format!("{}{path}{}", shown.settings.base_url, url::query(&query))
}

/// The feed for feed readers that has the changes of a list or feed under the same filters, and its address. `None` for the view of one record, and if no
/// feed takes all of the filters.
pub(crate) fn atom<'a>(shown: &SiteService<'a>, view: &View<'_>) -> Option<(&'a Operation, String)> {
    if view.operation.list.is_empty() {
        return None;
    }
    let given: Pairs = view.arguments.iter().filter(|(name, _)| !filters::is_control(name)).cloned().collect();
    let takes_all = |feed: &&Operation| given.iter().all(|(name, _)| filters::has_filter(feed, name));
    let unfiltered = shown.operation("changes").filter(|_| given.is_empty());
    let feed = unfiltered.or_else(|| shown.filtered_feed().filter(takes_all))?;
    let path = feed.atom_path()?;
    Some((feed, address_at(shown, &path, given)))
}

/// The arguments as JSON, typed as the schema of the operation says.
fn typed(view: &View<'_>) -> Value {
    let mut out = Map::new();
    for (name, text) in &view.arguments {
        let kind = view.operation.input.pointer(&format!("/properties/{name}/type"));
        let is = |wanted: &str| {
            kind.is_some_and(|kind| kind == wanted || kind.as_array().is_some_and(|all| all.iter().any(|own| own == wanted)))
        };
        let value = if is("integer") || is("number") || is("boolean") { text.parse().unwrap_or_else(|_| json!(text)) } else { json!(text) };
        out.insert(name.clone(), value);
    }
    Value::Object(out)
}

/// The words of a command that sends a key.
const KEY: &str = "-H \"x-api-key: $KEY\" ";

/// The ways in which programs get a view. `webhook` registers a webhook for it. `day` is the day of the file of all records; empty for none.
pub(crate) fn this_view(shown: &SiteService<'_>, view: &View<'_>, webhook: Option<&Registration<'_>>, day: &str) -> Markup {
    let base = &shown.settings.base_url;
    let address = shell_quoted(&address(shown, view));
    let is_free = view.operation.price == Price::Free;
    let key = if is_free { "" } else { KEY };
    let call =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": view.operation.name, "arguments": typed(view) } });
    let mut ways = vec![("curl", format!("curl {key}{address}"))];
    if view.operation.has_tool() {
        let headers = "-H 'content-type: application/json' -H 'accept: application/json, text/event-stream'";
        ways.push((
            "MCP call",
            format!("curl {key}{} {headers} -d {}", shell_quoted(&format!("{base}/mcp")), shell_quoted(&call.to_string())),
        ));
    }
    if !view.operation.list.is_empty() {
        ways.push(("NDJSON", format!("curl {key}-H 'accept: application/x-ndjson' {address}")));
        if !view.operation.is_durable_stream {
            ways.push(("CSV", format!("curl {key}-H 'accept: text/csv' {address}")));
            let file = format!("{}.parquet", shown.service.name);
            ways.push(("Parquet", format!("curl {key}-o {file} -H 'accept: application/vnd.apache.parquet' {address}")));
        }
    }
    // A stream of events neither shows an earlier time nor ends at a cursor.
    let has = |name: &str| !url::value(&view.arguments, name).is_empty();
    if view.operation.is_feed() && !has("asOf") && !(has("cursor") && has("start")) {
        ways.push(("Server-sent events", format!("curl {key}-N -H 'accept: text/event-stream' {address}")));
    }
    if let Some((feed, address)) = atom(shown, view) {
        let key = if feed.price == Price::Free { "" } else { KEY };
        ways.push(("Atom", format!("curl {key}{}", shell_quoted(&address))));
    }
    if let Some(export) = shown.operation("export").filter(|_| !day.is_empty()) {
        let path = export.path.replace("{file}", day);
        ways.push(("All records as a Parquet file", format!("curl {KEY}-O {}", shell_quoted(&format!("{base}{path}.parquet")))));
    }
    html! {
        section.ways aria-labelledby="ways" {
            h2 #ways { "This view as" }
            @for (index, (name, command)) in ways.iter().enumerate() {
                details open[index == 0] {
                    summary { (name) @if command.contains(KEY) { span.soft { " with a key" } } }
                    (copyable(command))
                }
            }
            @if let Some(webhook) = webhook { (registering(base, webhook)) }
            p.soft {
                @if is_free { "Free" } @else { "With a key" } ", operation "
                a href={ (base) "/docs#" (view.operation.name) } { code { (view.operation.name) } }
                " in the " a href={ (base) "/docs" } { "reference" } "."
            }
        }
    }
}

/// How a webhook is registered that receives what a page shows, and in what it differs from the page.
fn registering(base: &str, webhook: &Registration<'_>) -> Markup {
    let headers = "-H 'content-type: application/json'";
    let command = format!(
        "curl {KEY}{headers} {} -d {}",
        shell_quoted(&format!("{base}{}", webhook.operation.path)),
        shell_quoted(&webhook.body.to_string())
    );
    html! {
        details {
            summary { "Webhook" span.soft { " with a key" } }
            p.soft { (webhook.operation.summary) }
            @if !webhook.left_out.is_empty() {
                p { "Filters of this page that one webhook of this service cannot have, and that are left out: " (webhook.left_out.join(", ").to_lowercase()) "." }
            }
            @if webhook.is_example {
                p { "This page does not say what the webhook is about, so this is the example of the reference." }
            }
            (copyable(&command))
            p { a href=(webhook.form) { "Register it with a form" } }
        }
    }
}
