//! The reference page of a service, and the page of all errors.

use operation::context::ServiceSettings;
use operation::{Operation, Service};
use pages::{escape, inline, page, words};
use schemas::error_code::ErrorCode;
use serde_json::Value;

use crate::openapi;
use crate::prices::price;

/// `{prefix}/docs`: every operation with its parameters, an example and its errors.
pub(crate) fn reference(service: &Service, settings: &ServiceSettings) -> String {
    let base = escape(&settings.base_url);
    let mut body = format!("<h1>{}</h1>{}", escape(service.title), words(service.about));
    body += &format!(
        "<p>Base URL <code>{base}</code> · <a href=\"{base}/openapi.json\">OpenAPI</a> · <a href=\"{base}/llms.txt\">llms.txt</a> · MCP at \
         <code>{base}/mcp</code> · <a href=\"{base}/docs/errors\">Errors</a></p>\
         <p>A key goes into <code>X-API-Key</code>, <code>Authorization: Bearer</code>, or the parameter <code>api_key</code> or <code>key</code>. \
         Without a key, the limits of the free tier apply per address.</p><h2>Operations</h2><ul>"
    );
    for operation in &service.operations {
        body += &format!("<li><a href=\"#{0}\">{0}</a> {1}</li>", escape(operation.name), inline(operation.summary));
    }
    body += "</ul>";
    for operation in &service.operations {
        body += &section(operation, settings);
    }
    page(service.title, &body)
}

fn section(operation: &Operation, settings: &ServiceSettings) -> String {
    let mut html = format!(
        "<section id=\"{0}\"><h2>{0}</h2><p><code><span class=\"verb\">{1}</span> {2}</code> <span class=\"soft\">{3}</span></p>{4}{5}",
        escape(operation.name),
        operation.method.as_str(),
        escape(operation.path),
        escape(&price(operation, settings)),
        words(operation.summary),
        words(operation.description),
    );
    let properties = operation.input.get("properties").and_then(Value::as_object);
    if properties.is_some_and(|properties| !properties.is_empty()) {
        let required = operation.input.get("required").and_then(Value::as_array);
        html += "<table><tr><th>Parameter</th><th>Type</th><th>Meaning</th></tr>";
        for (name, schema) in properties.into_iter().flatten() {
            let must = required.is_some_and(|names| names.iter().any(|required| required == name));
            let aliases: String = operation
                .aliases
                .iter()
                .filter(|(_, of)| of == name)
                .map(|(alias, _)| format!(" Alias: <code>{}</code>.", escape(alias)))
                .collect();
            html += &format!(
                "<tr><td><code>{}</code>{}</td><td>{}</td><td>{}{aliases}</td></tr>",
                escape(name),
                if must { " <span class=\"soft\">required</span>" } else { "" },
                escape(&kind(schema)),
                inline(schema.get("description").and_then(Value::as_str).unwrap_or_default()),
            );
        }
        html += "</table>";
    }
    html += &format!("<h3>Example</h3><pre><code>{}</code></pre>", escape(&example(operation, settings)));
    let codes: Vec<String> = openapi::errors(operation)
        .values()
        .flatten()
        .map(|code| format!("<a href=\"{0}/docs/errors#{1}\">{1}</a>", escape(&settings.base_url), code.as_str()))
        .collect();
    html += &format!("<p class=\"soft\">Errors: {}</p></section>", codes.join(", "));
    html
}

/// A parameter's type and range in a few words.
fn kind(schema: &Value) -> String {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.iter().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).collect::<Vec<_>>().join(", ");
    }
    let mut text = schema.get("type").and_then(Value::as_str).unwrap_or("any").to_owned();
    if let Some(format) = schema.get("format").and_then(Value::as_str) {
        text = format!("{text} ({format})");
    }
    if let Some(items) = schema.get("items") {
        text = format!("list of {}", kind(items));
    }
    match (schema.get("minimum"), schema.get("maximum")) {
        (Some(min), Some(max)) => format!("{text}, {min} to {max}"),
        (Some(min), None) => format!("{text}, at least {min}"),
        (None, Some(max)) => format!("{text}, at most {max}"),
        (None, None) => text,
    }
}

/// A shell command that calls the operation with the example arguments.
fn example(operation: &Operation, settings: &ServiceSettings) -> String {
    let mut path = operation.path.to_owned();
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in operation.example.as_object().into_iter().flatten() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let place = format!("{{{name}}}");
        if path.contains(&place) {
            path = path.replace(&place, &text);
        } else {
            query.append_pair(name, &text);
        }
    }
    let url = format!("{}{path}", settings.base_url);
    match (operation.method.as_str(), query.finish().as_str()) {
        ("GET", "") => format!("curl '{url}'"),
        ("GET", query) => format!("curl '{url}?{query}'"),
        ("DELETE", _) => format!("curl -X DELETE '{url}'"),
        _ => format!("curl '{url}' -H 'Content-Type: application/json' -d '{}'", operation.example),
    }
}

/// `{prefix}/docs/errors`: the closed table of error codes, each with its own anchor.
pub(crate) fn errors() -> String {
    let mut body = "<h1>Errors</h1><p>Every error is a problem document (RFC 9457, <code>application/problem+json</code>) whose <code>code</code> is one of these. \
                    <code>detail</code> says what is wrong with the request, <code>parameter</code> names the parameter.</p>"
        .to_owned();
    for code in ErrorCode::ALL {
        let again = if code.may_retry() {
            "The same request may succeed later; wait for <code>Retry-After</code> if it is given."
        } else {
            "The same request will fail again."
        };
        body += &format!(
            "<section id=\"{0}\"><h2><code>{0}</code></h2><p>{1}</p><p class=\"soft\">HTTP status {2}. {again}</p></section>",
            escape(code.as_str()),
            inline(code.title().trim()),
            code.status(),
        );
    }
    page("Errors", &body)
}
