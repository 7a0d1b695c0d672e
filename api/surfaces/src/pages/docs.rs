//! The reference page of a service, and the page of all errors.

use maud::{Markup, html};
use operation::context::ServiceSettings;
use operation::{Operation, Service};
use pages::{Page, inline, layout, paragraphs, table};
use schemas::data_file::ShownFile;
use schemas::error_code::ErrorCode;
use serde_json::Value;

use crate::discovery::example_path;
use crate::mcp::tool_call;
use crate::openapi;
use crate::plain_text::plain_text;
use crate::prices::price;

/// `{prefix}/docs`: every operation with its parameters, an example and its errors.
pub(crate) fn reference(service: &Service, settings: &ServiceSettings) -> String {
    let base = &settings.base_url;
    let main = html! {
        h1 { (service.title) }
        (paragraphs(service.about))
        p {
            "Base URL " code { (base) } " · "
            a href={ (base) "/openapi.json" } { "OpenAPI" } " · "
            a href={ (base) "/llms.txt" } { "llms.txt" } " · MCP at "
            code { (base) "/mcp" } " · "
            a href={ (base) "/docs/errors" } { "Errors" }
        }
        p {
            "A key goes into " code { "X-API-Key" } ", " code { "Authorization: Bearer" } ", or the parameter " code { "api_key" } " or " code { "key" }
            ". Without a key, the limits of the free tier apply per address."
        }
        h2 { "Operations" }
        ul {
            @for operation in &service.operations {
                li { a href={ "#" (anchor(operation)) } { (operation.name) } " " (inline(operation.summary)) }
            }
        }
        @for operation in &service.operations { (section(operation, settings)) }
        @for file in &service.data { (data_file(file)) }
    };
    let canonical = format!("{}/docs", settings.prefix);
    let title = format!("{}: reference", service.title);
    layout(&Page { title, description: service.about.to_owned(), canonical, main, ..Page::default() })
}

fn section(operation: &Operation, settings: &ServiceSettings) -> Markup {
    let errors = openapi::errors(operation);
    html! {
        section id=(anchor(operation)) {
            h2 { (operation.name) }
            p {
                @if operation.has_route() {
                    code { span.verb { (operation.method.as_str()) } " " (operation.path) } " "
                } @else {
                    "MCP tool, without a route. "
                }
                span.soft { (price(operation, settings)) }
            }
            (paragraphs(operation.summary))
            (paragraphs(operation.description))
            @if let Some(path) = operation.atom_path() {
                p { "The same changes as an Atom feed, for feed readers: " code { "GET " (path) } }
            }
            (parameters(operation))
            h3 { "Example" }
            pre tabindex="0" role="region" aria-label={ "Example of " (anchor(operation)) } { code { (example(operation, settings)) } }
            p.soft {
                "Errors: "
                @for (index, code) in errors.values().flatten().enumerate() {
                    @if index > 0 { ", " }
                    a href={ (settings.base_url) "/docs/errors#" (code.as_str()) } { (code.as_str()) }
                }
            }
        }
    }
}

/// A data file: its version, its sources and its entries.
fn data_file(file: &ShownFile) -> Markup {
    html! {
        section id={ "data-" (file.name) } {
            h2 { (file.name) ", version " (file.version) }
            p { (file.about) }
            @for source in &file.sources { p.soft { "Source: " (source) } }
            (table(file.name, &["Entry", "Values"], &html! {
                @for (name, values) in &file.entries {
                    tr { th scope="row" { (name) } td { (values.join(", ")) } }
                }
            }))
        }
    }
}

/// The anchor of an operation. A route and a tool may have the same name.
fn anchor(operation: &Operation) -> String {
    if operation.has_route() { operation.name.to_owned() } else { format!("tool-{}", operation.name) }
}

/// The table of an operation's parameters, if it has any.
fn parameters(operation: &Operation) -> Markup {
    let properties = operation.input.get("properties").and_then(Value::as_object).filter(|properties| !properties.is_empty());
    let required = operation.input.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|required| required == name));
    html! {
        @if let Some(properties) = properties {
            (table(&format!("Parameters of {}", anchor(operation)), &["Parameter", "Type", "Meaning"], &html! {
                @for (name, schema) in properties {
                    tr {
                        th scope="row" { code { (name) } @if is_required(name) { " " span.soft { "required" } } }
                        td { (kind(schema)) }
                        td {
                            (inline(schema.get("description").and_then(Value::as_str).unwrap_or_default()))
                            @for (alias, _) in operation.aliases.iter().filter(|(_, of)| of == name) { " Alias: " code { (alias) } "." }
                        }
                    }
                }
            }))
        }
    }
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
    if !operation.has_route() {
        let accept = "-H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream'";
        return format!("curl '{}/mcp' {accept} -d '{}'", settings.base_url, tool_call(operation));
    }
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in operation.example.as_object().into_iter().flatten() {
        if !operation.path.contains(&format!("{{{name}}}")) {
            query.append_pair(name, &plain_text(value));
        }
    }
    let path = example_path(operation);
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
    let main = html! {
        h1 { "Errors" }
        p {
            "Every error is a problem document (RFC 9457, " code { "application/problem+json" } ") whose " code { "code" } " is one of these. "
            code { "detail" } " says what is wrong with the request, " code { "parameter" } " names the parameter."
        }
        @for error in ErrorCode::ALL {
            section id=(error.as_str()) {
                h2 { code { (error.as_str()) } }
                p { (inline(error.title().trim())) }
                p { "What to do: " (inline(error.advice())) }
                p.soft {
                    "HTTP status " (error.status()) ". "
                    @if error.may_retry() {
                        "The same request may succeed later; wait for " code { "Retry-After" } " if it is given."
                    } @else {
                        "The same request will fail again."
                    }
                }
            }
        }
    };
    let description = "What each error code of the API means, and what to do.".to_owned();
    layout(&Page { title: "Errors".to_owned(), description, canonical: "/docs/errors".to_owned(), main, ..Page::default() })
}
