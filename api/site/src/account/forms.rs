//! Forms of the portal: what they send, and the words for what they are about.

use maud::{Markup, html};
use operation::problem::Problem;
use operation::{Method, Operation};
use schemas::error_code::ErrorCode;
use serde_json::{Map, Value, json};

use super::calls::{Arguments, Calls};
use crate::fields::{is_empty, label, text};
use crate::url::value;
use crate::{Pairs, SiteService, filters};

/// The longest value of a field in a list, in characters.
const VALUE_CHARS_MAX: usize = 200;
/// Fields of watches and webhooks that do not say what is watched.
const OWN_FIELDS: [&str; 16] = [
    "id",
    "webhookHost",
    "secret",
    "madeAt",
    "changedAt",
    "from",
    "until",
    "active",
    "after",
    "note",
    "url",
    "token",
    "matches",
    "hasMore",
    "next",
    "cursor",
];

/// The fields of a form with these names that have a value, as arguments.
pub(super) fn arguments(form: &Pairs, names: &[&str]) -> Arguments {
    names.iter().map(|name| (*name, value(form, name))).filter(|(_, value)| !value.is_empty()).map(argument).collect()
}

/// A text as an argument. The validator reads it by the schema of the operation.
fn argument((name, text): (&str, &str)) -> (String, Value) {
    (name.to_owned(), json!(text))
}

/// The service that a form or path names.
///
/// # Errors
/// `not-found`.
pub(super) fn service<'a>(all: &[SiteService<'a>], name: &str) -> Result<SiteService<'a>, Problem> {
    let found = all.iter().find(|shown| shown.service.name == name).copied();
    found.ok_or_else(|| Problem::new(ErrorCode::NotFound, "this server has no such service"))
}

/// Paths and names of the operations on the webhooks of a service.
#[derive(Clone, Copy)]
pub(super) struct WebhookOperations<'a> {
    /// The operation that lists webhooks, or watches of which some have one.
    pub(super) list: &'a str,
    /// The field of the list in its answer.
    pub(super) items: &'a str,
    /// The operation that creates one, and the name of the argument with the URL.
    pub(super) create: &'a Operation,
    pub(super) url: &'static str,
    /// The operation that deletes one.
    pub(super) delete: &'a str,
    /// The operation that reads one; empty if there is none.
    pub(super) read: &'a str,
}

impl<'a> WebhookOperations<'a> {
    /// The webhook operations of a service; `None` if it has no webhooks. They are found by their paths: what lists also creates, and one is below.
    pub(super) fn of(shown: &SiteService<'a>) -> Option<Self> {
        let routes = || shown.service.operations.iter().filter(|operation| operation.has_route());
        let (create, url) = routes().find_map(|operation| {
            let url = ["webhook", "webhook_url"].into_iter().find(|name| filters::takes(operation, name))?;
            (operation.method == Method::Post).then_some((operation, url))
        })?;
        let one = format!("{}/{{id}}", create.path);
        let named = |method: Method, path: &str| routes().find(|operation| operation.method == method && operation.path == path);
        let list = named(Method::Get, create.path)?;
        let delete = named(Method::Delete, &one)?;
        let read = named(Method::Get, &one).map_or("", |operation| operation.name);
        Some(Self { list: list.name, items: list.list, create, url, delete: delete.name, read })
    }
}

/// The service that a form or path names, and its operations on webhooks.
///
/// # Errors
/// `not-found`.
pub(super) fn webhook_operations<'a>(calls: &'a dyn Calls, name: &str) -> Result<(SiteService<'a>, WebhookOperations<'a>), Problem> {
    let shown = service(&calls.services(), name)?;
    let operations = WebhookOperations::of(&shown);
    let operations = operations.ok_or_else(|| Problem::new(ErrorCode::NotFound, "this service has no webhooks"))?;
    Ok((shown, operations))
}

/// What a watch or a webhook selects: the fields of its answer that are not about itself.
pub(super) fn watched(item: &Value) -> Map<String, Value> {
    let fields = item.as_object().into_iter().flatten();
    fields
        .filter(|(name, value)| !OWN_FIELDS.contains(&name.as_str()) && !is_empty(value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Whether accounts have watches in a service, each with a page.
pub(super) fn has_watches(shown: &SiteService<'_>) -> bool {
    ["list_watches", "get_watch"].iter().all(|name| shown.operation(name).is_some())
}

/// Since when a watch matches, RFC 3339; empty if its answer does not say so.
pub(super) fn since(item: &Value) -> &str {
    ["madeAt", "from"].into_iter().filter_map(|name| item[name].as_str()).find(|at| !at.is_empty()).unwrap_or_default()
}

/// Fields and their values, in a line.
pub(super) fn fields_in_words(fields: &Map<String, Value>, otherwise: &str) -> Markup {
    let shown: Vec<_> = fields.iter().filter(|(_, value)| !is_empty(value)).collect();
    html! {
        span {
            @if shown.is_empty() { (otherwise) }
            @for (index, (name, value)) in shown.iter().enumerate() {
                @if index > 0 { " · " }
                span.soft { (label(name)) } " " bdi { (text(value, VALUE_CHARS_MAX)) }
            }
        }
    }
}

/// The address of the explorer that shows a filter; `None` if no page takes all of its fields without a key.
pub(super) fn explorer(shown: &SiteService<'_>, filter: &Map<String, Value>) -> Option<String> {
    let takes_all = |operation: &Operation| filter.keys().all(|name| filters::has_filter(operation, name));
    let (kind, _) = shown.free_list(takes_all).filter(|_| !filter.is_empty())?;
    let pairs = filter.iter().map(|(name, value)| Some((name.clone(), in_query(value)?))).collect::<Option<Pairs>>()?;
    Some(shown.explorer_of(kind, pairs))
}

/// A value as a query has it; `None` for an object.
fn in_query(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(items) => {
            let texts = items.iter().map(in_query).collect::<Option<Vec<_>>>()?;
            let is_plain = texts.iter().all(|text| !text.contains([',', '"', '[']));
            Some(if is_plain { texts.join(",") } else { value.to_string() })
        }
        Value::Null | Value::Object(_) => None,
    }
}

/// A button behind a summary, so that one click does not delete anything. `hidden` are the fields that say what is deleted.
pub(super) fn confirmed(action: &str, name: &str, hidden: &[(&str, &str)]) -> Markup {
    behind_summary(action, ("Delete", name), hidden, &html! { button.danger { "Delete for good" } })
}

/// A form behind a summary of what it does to what, so that one click does nothing. `hidden` are the fields that say what is meant.
pub(super) fn behind_summary(action: &str, (verb, name): (&str, &str), hidden: &[(&str, &str)], rest: &Markup) -> Markup {
    html! {
        details.confirm {
            summary { (verb) span.hidden { " " (name) } }
            form method="post" action=(action) {
                @for (name, value) in hidden { input type="hidden" name=(name) value=(value); }
                (rest)
            }
        }
    }
}
