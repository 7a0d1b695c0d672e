//! The reference page of a service, in three panes: the list of operations, what each one takes and answers, and how it is called.
//!
//! Promises: everything follows from the definitions of the operations, as in the OpenAPI document, and the page needs no JavaScript to be read. The forms that
//! call an operation appear with JavaScript only, call this server only, and keep a key in the open page only.

use std::collections::BTreeMap;

use maud::{Markup, html};
use operation::context::ServiceSettings;
use operation::{Method, Operation, Service};
use pages::{Page, inline, layout, paragraphs, table};
use serde_json::{Map, Value};
use texts::data_file::ShownFile;

use super::code;
use crate::openapi::{self, examples};
use crate::plain_text::plain_text;
use crate::prices::price;

/// The longest example of an answer that is shown, in bytes.
const EXAMPLE_BYTES_MAX: usize = 6_000;
/// The most fields of an answer that are listed.
const FIELDS_MAX: usize = 80;
/// How deep the fields of an answer are listed.
const FIELD_DEPTH_MAX: usize = 2;

/// `{prefix}/docs`: every operation with its parameters, its answer, how to call it, and its errors.
#[must_use]
pub fn page(service: &Service, settings: &ServiceSettings) -> String {
    let base = &settings.base_url;
    let main = html! {
        div.reference {
            nav.contents aria-label="Operations" {
                p { a href="/" { "All services" } " · " a href={ (pages::EXPLORE) "/" (service.name) } { "Records" } " · " a href="/guides" { "Guides" } }
                p { strong { (service.title) } }
                @for (name, operations) in groups(service) {
                    p.soft { (name) }
                    ul.plain {
                        @for operation in operations { li { a href={ "#" (anchor(operation)) } { (operation.name) } } }
                    }
                }
                @if !service.data.is_empty() {
                    p.soft { "Data files" }
                    ul.plain { @for file in &service.data { li { a href={ "#data-" (file.name) } { (file.name) } } } }
                }
            }
            div {
                h1 { (service.title) }
                (paragraphs(service.about))
                p {
                    "Base URL " code { (base) } " · "
                    a href={ (base) "/openapi.json" } { "OpenAPI" } " · "
                    a href={ (base) "/llms.txt" } { "llms.txt" } " · MCP at "
                    code { (base) "/mcp" } " · "
                    a href={ (base) "/limits.json" } { "Limits" } " · "
                    a href={ (base) "/docs/errors" } { "Errors" } " · "
                    a href={ (base) "/docs.md" } { "This page as Markdown" }
                }
                p {
                    "A key goes into " code { "X-API-Key" } ", " code { "Authorization: Bearer" } ", or the parameter " code { "api_key" } " or " code { "key" }
                    ". Without a key, the limits of the free tier apply per address. "
                    a href=(pages::ACCOUNT) { "Get a key" } "."
                }
                @for operation in &service.operations { (section(operation, settings)) }
                @for file in &service.data { (data_file(file)) }
            }
        }
    };
    let canonical = format!("{base}/docs");
    let title = format!("{}: reference", service.title);
    layout(&Page { title, description: service.about.to_owned(), canonical, main, ..Page::default() })
}

/// The operations by what they are about, as the tags of the OpenAPI document group them. Tools without a route come last.
fn groups(service: &Service) -> Vec<(&str, Vec<&Operation>)> {
    let tags = openapi::tags(service);
    let (routes, tools): (Vec<&Operation>, Vec<&Operation>) = service.operations.iter().partition(|operation| operation.has_route());
    let mut by_tag: BTreeMap<&str, Vec<&Operation>> = BTreeMap::new();
    for operation in routes {
        by_tag.entry(openapi::tag(service, operation, &tags)).or_default().push(operation);
    }
    let mut all: Vec<(&str, Vec<&Operation>)> = by_tag.into_iter().collect();
    all.sort_by_key(|(name, _)| *name != service.name);
    if !tools.is_empty() {
        all.push(("MCP only", tools));
    }
    all
}

fn section(operation: &Operation, settings: &ServiceSettings) -> Markup {
    let errors = openapi::errors(operation);
    html! {
        section.operation id=(anchor(operation)) {
            div {
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
                (answer_fields(operation))
                p.soft {
                    "Errors: "
                    @for (index, code) in errors.values().flatten().enumerate() {
                        @if index > 0 { ", " }
                        a href={ (settings.base_url) "/docs/errors#" (code.as_str()) } { (code.as_str()) }
                    }
                }
            }
            div.ways {
                h3 { "Call it" }
                @for (index, (name, text)) in code::samples(operation, settings).iter().enumerate() {
                    details open[index == 0] {
                        summary { (name) }
                        pre.copy tabindex="0" role="region" aria-label={ (name) " of " (anchor(operation)) } { code { (text) } }
                    }
                }
                (answer_example(operation))
                (try_form(operation, settings))
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

/// The properties of an object.
fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// Whether an object requires a property.
fn requires(schema: &Value, name: &str) -> bool {
    schema.get("required").and_then(Value::as_array).is_some_and(|names| names.iter().any(|required| required == name))
}

/// The table of an operation's parameters, if it has any.
fn parameters(operation: &Operation) -> Markup {
    html! {
        @if properties(&operation.input).next().is_some() {
            h3 { "Parameters" }
            (table(&format!("Parameters of {}", anchor(operation)), &["Parameter", "Type", "Meaning"], &html! {
                @for (name, schema) in properties(&operation.input) {
                    tr {
                        th scope="row" { code { (name) } @if requires(&operation.input, name) { " " span.soft { "required" } } }
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

/// The table of the fields of an operation's answer.
fn answer_fields(operation: &Operation) -> Markup {
    let mut fields = Vec::new();
    if operation.files.is_empty() {
        collect_fields("", &operation.output, 0, &mut fields);
    }
    html! {
        @if !fields.is_empty() {
            details {
                summary { "Fields of the answer" }
                (table(&format!("Answer of {}", anchor(operation)), &["Field", "Type", "Meaning"], &html! {
                    @for (path, schema) in fields.iter().take(FIELDS_MAX) {
                        tr {
                            th scope="row" { code { (path) } }
                            td { (kind(schema)) }
                            td { (inline(schema.get("description").and_then(Value::as_str).unwrap_or_default())) }
                        }
                    }
                }))
                @if fields.len() > FIELDS_MAX { p.soft { "The OpenAPI document has the other fields." } }
            }
        }
    }
}

/// The fields of an object with their paths: `changes[].seq`.
fn collect_fields<'a>(prefix: &str, schema: &'a Value, depth: usize, out: &mut Vec<(String, &'a Value)>) {
    for (name, own) in properties(schema) {
        if out.len() > FIELDS_MAX {
            return;
        }
        let path = format!("{prefix}{name}");
        out.push((path.clone(), own));
        if depth < FIELD_DEPTH_MAX {
            match own.get("items") {
                Some(items) => collect_fields(&format!("{path}[]."), items, depth + 1, out),
                None => collect_fields(&format!("{path}."), own, depth + 1, out),
            }
        }
    }
}

/// An example of an answer, made from its schema.
fn answer_example(operation: &Operation) -> Markup {
    let name = anchor(operation);
    html! {
        h3 { "Answer" }
        @if operation.files.is_empty() {
            @let text = shortened(&examples::example(&operation.output, &Map::new()));
            pre.answer tabindex="0" role="region" aria-label={ "Example answer of " (name) } { code { (text) } }
        } @else {
            p.soft { "A file: " (operation.files.iter().map(|(media_type, _)| *media_type).collect::<Vec<_>>().join(", ")) "." }
        }
    }
}

/// JSON in lines, cut where it is long.
fn shortened(value: &Value) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    if text.len() > EXAMPLE_BYTES_MAX {
        text.truncate(text.floor_char_boundary(EXAMPLE_BYTES_MAX));
        text.push_str("\n… the example is cut here");
    }
    text
}

/// The form that calls the operation. It is hidden until the script of the pages shows it, because it does nothing without.
fn try_form(operation: &Operation, settings: &ServiceSettings) -> Markup {
    let name = anchor(operation);
    let id = |field: &str| format!("try-{name}-{field}");
    let in_path = |field: &str| operation.path.contains(&format!("{{{field}}}"));
    let has_body = operation.method.has_body();
    let example = |field: &str| operation.example.get(field).map(plain_text).unwrap_or_default();
    html! {
        @if operation.has_route() {
            details.try hidden {
                summary { "Try it" span.hidden { " " (name) } }
                form.stack data-method=(operation.method.as_str()) data-path={ (settings.prefix) (operation.path) } {
                    @for (field, _) in properties(&operation.input).filter(|(field, _)| !has_body || in_path(field)) {
                        @let is_required = requires(&operation.input, field);
                        div.field {
                            label for=(id(field)) { (field) @if !is_required { span.soft { " (optional)" } } }
                            input id=(id(field)) type="text" name=(field) required[is_required] value=(if is_required { example(field) } else { String::new() })
                                placeholder=(example(field)) autocomplete="off" spellcheck="false";
                        }
                    }
                    @if has_body {
                        div.field {
                            label for=(id("body")) { "Body, JSON" }
                            textarea id=(id("body")) name="body" rows="6" spellcheck="false" { (serde_json::to_string_pretty(&code::outside_path(operation)).unwrap_or_default()) }
                        }
                    }
                    div.field {
                        label for=(id("key")) { "API key" span.soft { " (optional)" } }
                        input.key id=(id("key")) type="password" autocomplete="off" spellcheck="false";
                    }
                    button { (if operation.method == Method::Get { "Call" } else { "Call, with its effect" }) }
                    p role="status" {}
                    pre.answer tabindex="0" role="region" aria-label={ "Response of " (name) } hidden { code {} }
                }
            }
        }
    }
}

/// The type and range of a value in a few words.
fn kind(schema: &Value) -> String {
    let choices = choices(schema);
    if !choices.is_empty() {
        return choices.join(", ");
    }
    let branches = ["anyOf", "oneOf"].iter().find_map(|keyword| schema.get(keyword)?.as_array());
    if let (None, Some(branches)) = (schema.get("type"), branches) {
        let mut kinds: Vec<String> = branches.iter().filter(|branch| branch.get("const").is_none()).map(kind).collect();
        kinds.dedup();
        return kinds.join(" or ");
    }
    let mut text = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        Some(Value::String(kind)) => kind.clone(),
        _ => "any".to_owned(),
    };
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

/// The values that a schema lists; none if it allows others.
fn choices(schema: &Value) -> Vec<String> {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.iter().map(plain_text).collect();
    }
    let branches = ["oneOf", "anyOf"].iter().find_map(|keyword| schema.get(keyword)?.as_array());
    let values = branches.into_iter().flatten().map(|branch| branch.get("const").map(plain_text));
    values.collect::<Option<Vec<String>>>().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Proves that the fields of an answer are listed with their paths, to some depth.
    #[test]
    fn paths_of_fields() {
        let text = json!({ "type": "string" });
        let row =
            json!({ "type": "object", "properties": { "seq": text, "record": { "type": "object", "properties": { "deep": text } } } });
        let answer = json!({ "type": "object", "properties": { "rows": { "type": "array", "items": row }, "next": text } });
        let mut fields = Vec::new();
        collect_fields("", &answer, 0, &mut fields);
        let mut paths: Vec<&str> = fields.iter().map(|(path, _)| path.as_str()).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["next", "rows", "rows[].record", "rows[].record.deep", "rows[].seq"]);
    }

    /// Proves what a page says of the type of a value.
    #[test]
    fn kinds_of_values() {
        for (schema, words) in [
            (json!({ "enum": ["a", 1] }), "a, 1"),
            (json!({ "oneOf": [{ "const": "x" }, { "const": "y" }] }), "x, y"),
            (json!({ "anyOf": [{ "type": "string", "format": "date" }, { "type": "string", "const": "" }] }), "string (date)"),
            (json!({ "type": ["integer", "null"], "minimum": 1 }), "integer or null, at least 1"),
            (json!({ "type": "array", "items": { "type": "string" } }), "list of string"),
            (json!({ "type": "integer", "minimum": 1, "maximum": 9 }), "integer, 1 to 9"),
            (json!({}), "any"),
        ] {
            assert_eq!(kind(&schema), words, "{schema}");
        }
    }

    /// Proves that a long example is cut between characters, and that the page says so.
    #[test]
    fn long_examples_are_cut() {
        let text = shortened(&json!(["é".repeat(EXAMPLE_BYTES_MAX)]));
        assert!(text.len() < EXAMPLE_BYTES_MAX + 40 && text.ends_with("the example is cut here"), "{}", text.len());
        assert_eq!(shortened(&json!([1])), "[\n  1\n]");
    }
}
