//! "This view as": how programs get what a page shows.

use maud::{Markup, html};
use operation::{Operation, Price};
use serde_json::{Map, Value, json};

use crate::{Pairs, Shown, url};

/// What a page shows: the answer of an operation.
pub(crate) struct View<'a> {
    pub(crate) operation: &'a Operation,
    /// The arguments, those in the path included.
    pub(crate) arguments: Pairs,
}

/// The address of a view over REST.
pub(crate) fn address(shown: &Shown<'_>, view: &View<'_>) -> String {
    let mut query = view.arguments.clone();
    let part = |part: &str| match part.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        Some(name) => {
            let at = query.iter().position(|(given, _)| given == name);
            at.map(|at| url::segment(&query.remove(at).1)).unwrap_or_default()
        }
        None => part.to_owned(),
    };
    let path = view.operation.path.split('/').map(part).collect::<Vec<_>>().join("/");
    format!("{}{path}{}", shown.settings.base_url, url::query(&query))
}

/// A text in single quotes, for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
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

/// The ways in which programs get a view. `day` is the day of the files of all records, if the service has them.
pub(crate) fn this_view(shown: &Shown<'_>, view: &View<'_>, day: &str) -> Markup {
    let base = &shown.settings.base_url;
    let address = address(shown, view);
    let call =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": view.operation.name, "arguments": typed(view) } });
    let mut ways = vec![("curl", format!("curl {}", quoted(&address)))];
    if view.operation.has_tool() {
        let headers = "-H 'content-type: application/json' -H 'accept: application/json, text/event-stream'";
        ways.push(("MCP call", format!("curl {} {headers} -d {}", quoted(&format!("{base}/mcp")), quoted(&call.to_string()))));
    }
    if !view.operation.list.is_empty() {
        ways.push(("NDJSON", format!("curl -H 'accept: application/x-ndjson' {}", quoted(&address))));
    }
    if view.operation.is_feed() {
        ways.push(("Server-sent events", format!("curl -N -H 'accept: text/event-stream' {}", quoted(&address))));
    }
    if let Some(export) = shown.operation("export").filter(|_| !day.is_empty()) {
        let path = export.path.replace("{file}", day);
        for (name, extension) in [("CSV", "csv"), ("Parquet", "parquet")] {
            ways.push((name, format!("curl -OH \"x-api-key: $KEY\" {}", quoted(&format!("{base}{path}.{extension}")))));
        }
    }
    let webhook = shown
        .service
        .operations
        .iter()
        .find(|operation| operation.method == operation::Method::Post && ["/v1/watchlist", "/api/webhook"].contains(&operation.path));
    if let Some(webhook) = webhook {
        let fields = webhook.example.to_string();
        let headers = "-H \"x-api-key: $KEY\" -H 'content-type: application/json'";
        ways.push(("Webhook", format!("curl {} {headers} -d {}", quoted(&format!("{base}{}", webhook.path)), quoted(&fields))));
    }
    html! {
        section.ways aria-labelledby="ways" {
            h2 #ways { "This view as" }
            @for (index, (name, command)) in ways.iter().enumerate() {
                details open[index == 0] {
                    summary { (name) @if command.contains("$KEY") { span.soft { " with a key" } } }
                    (copyable(command))
                }
            }
            p.soft {
                @if view.operation.price == Price::Free { "Free" } @else { "With a key" } ", operation "
                a href={ (base) "/docs#" (view.operation.name) } { code { (view.operation.name) } }
                " in the " a href={ (base) "/docs" } { "reference" } "."
            }
        }
    }
}

/// A command that the script gives a button to copy.
pub(crate) fn copyable(command: &str) -> Markup {
    html! { pre.copy tabindex="0" role="region" aria-label="Command" { code { (command) } } }
}
