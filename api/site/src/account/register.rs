//! `/account/webhooks/new` and `/account/watches/new`: the form that registers a webhook, or creates a watch with or without one. Its fields come from the
//! schema of the operation.

use maud::{Markup, html};
use operation::Operation;
use operation::problem::Problem;
use serde_json::{Value, json};

use super::calls::{Arguments, Calls};
use super::forms::{WebhookOperations, webhook_operations};
use super::new_filter;
use super::route::{NEW_WATCH, REGISTER, Route, SAVED, WEBHOOKS};
use super::screen::{Outcome, Screen, frame};
use crate::fields::label;
use crate::filters::{Kind, control, help, kind};
use crate::url::{self, value};
use crate::{Pairs, SiteService};

/// Arguments that have no field in the form: the URL has its own, and the secret is generated.
const NOT_SHOWN: [&str; 4] = ["webhook", "webhook_url", "secret", "token"];

/// What the form creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A watch, with or without a webhook.
    Watch,
    /// A webhook, which needs a URL.
    Webhook,
}

impl Wanted {
    /// The path of the form, the tab that it belongs to, its title and the words of its button.
    fn words(self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self {
            Self::Watch => (NEW_WATCH, SAVED, "New watch", "Watch"),
            Self::Webhook => (REGISTER, WEBHOOKS, "Register a webhook", "Register"),
        }
    }
}

/// A webhook for what a page shows, and how it is registered.
pub(crate) struct Registration<'a> {
    /// The operation that registers it.
    pub(crate) operation: &'a Operation,
    /// The address of the form that registers it, filled in with the same values.
    pub(crate) form: String,
    /// The body of the request.
    pub(crate) body: Value,
    /// The filters of the page that no webhook of the service can have, as labels.
    pub(crate) left_out: Vec<String>,
    /// Whether the body is that of the reference, because the page has no value for what a webhook of the service needs.
    pub(crate) is_example: bool,
}

/// The webhook that receives changes like a record's. `None` if the service has no webhooks.
pub(crate) fn of_record<'a>(shown: &SiteService<'a>, record: &Value) -> Option<Registration<'a>> {
    let operations = WebhookOperations::of(shown)?;
    let text = |name: &str| record[name].as_str().filter(|text| !text.is_empty() && text.len() <= VALUE_BYTES_MAX);
    let (all, mut values) = (fields(&operations.create.input, ""), Pairs::new());
    for field in &all {
        match (field.name.split_once('.'), kind(field.schema)) {
            (None, _) => values.extend(text(&field.name).map(|text| (field.name.clone(), text.to_owned()))),
            // An object names the kind of a thing, and the thing: the first kind that the record has a value for.
            (Some(_), Kind::Choices(kinds)) => {
                let found = kinds.into_iter().find_map(|kind| text(&kind).map(str::to_owned).map(|text| (kind, text)));
                if let (Some((kind, text)), Some(thing)) = (found, thing_of(&all, field)) {
                    values.extend([(field.name.clone(), kind), (thing, text)]);
                }
            }
            (Some(_), _) => {}
        }
    }
    Some(registration(shown, &operations, &values, Vec::new()))
}

/// The webhook that receives changes under the filters of a page, as far as webhooks of the service take them. `None` if the service has no webhooks.
pub(crate) fn of_filters<'a>(shown: &SiteService<'a>, filters: &Pairs) -> Option<Registration<'a>> {
    let operations = WebhookOperations::of(shown)?;
    let all = fields(&operations.create.input, "");
    let (mut values, mut left_out) = (Pairs::new(), Vec::new());
    for (name, text) in filters.iter().filter(|(_, text)| !text.is_empty()) {
        let own = [name.clone(), format!("filter.{name}")].into_iter().find(|own| all.iter().any(|field| field.name == *own));
        let is_kind = |field: &&Field<'_>| kinds_of(field.schema).contains(name);
        let kind_field = all.iter().filter(|field| field.name.contains('.')).find(is_kind);
        match (own, kind_field.and_then(|field| Some((field, thing_of(&all, field)?)))) {
            (Some(own), _) => values.push((own, text.clone())),
            // An object names one thing.
            (None, Some((field, thing))) if value(&values, &thing).is_empty() => {
                values.extend([(field.name.clone(), name.clone()), (thing, text.clone())]);
            }
            (None, _) => left_out.push(label(name)),
        }
    }
    Some(registration(shown, &operations, &values, left_out))
}

/// The kinds that a field names: its choices or, for a field that takes them in any case, what is code in its description.
fn kinds_of(schema: &Value) -> Vec<String> {
    match kind(schema) {
        Kind::Choices(kinds) => kinds,
        Kind::Text => schema["description"].as_str().unwrap_or_default().split('`').skip(1).step_by(2).map(str::to_owned).collect(),
        Kind::Switch | Kind::Number | Kind::Day => Vec::new(),
    }
}

/// The field with the thing, next to a field of the same object that names its kind.
fn thing_of(all: &[Field<'_>], kind_field: &Field<'_>) -> Option<String> {
    let (outer, _) = kind_field.name.split_once('.')?;
    let is_thing = |other: &&Field<'_>| other.name != kind_field.name && other.name.split_once('.').is_some_and(|(own, _)| own == outer);
    all.iter().find(is_thing).map(|other| other.name.clone())
}

/// The registration with the values of some fields.
fn registration<'a>(
    shown: &SiteService<'a>,
    operations: &WebhookOperations<'a>,
    values: &Pairs,
    left_out: Vec<String>,
) -> Registration<'a> {
    let operation = operations.create;
    let all = fields(&operation.input, "");
    let (path, ..) = if needs_url(operations) { Wanted::Webhook } else { Wanted::Watch }.words();
    let mut query = vec![("service".to_owned(), shown.service.name.to_owned())];
    query.extend(values.iter().cloned());
    let is_missing = |field: &Field<'_>| field.is_required && value(values, &field.name).is_empty();
    let is_example = all.iter().any(is_missing) || values.is_empty();
    let mut body = if is_example { operation.example.as_object().cloned().unwrap_or_default() } else { Arguments::new() };
    for (name, text) in values.iter().filter(|_| !is_example) {
        let schema = all.iter().find(|field| field.name == *name).map_or(&Value::Null, |field| field.schema);
        put(&mut body, name, new_filter::typed(schema, text));
    }
    let url = operation.example.get(operations.url).cloned().unwrap_or_else(|| json!("https://hooks.example.com/highwater"));
    body.insert(operations.url.to_owned(), url);
    // A service whose webhooks receive everything has nothing to fill in.
    let is_example = is_example && !all.is_empty();
    Registration { operation, form: format!("{path}{}", url::query(&query)), body: Value::Object(body), left_out, is_example }
}

/// Whether the operation that makes a watch takes none without a webhook.
fn needs_url(operations: &WebhookOperations<'_>) -> bool {
    operations.create.input["required"].as_array().is_some_and(|all| all.iter().any(|name| name == operations.url))
}

/// Puts a value into the field of a body. Fields of an object have a name with a dot.
fn put(body: &mut Arguments, name: &str, value: Value) {
    match name.split_once('.') {
        None => drop(body.insert(name.to_owned(), value)),
        Some((outer, inner)) => {
            let within = body.entry(outer).or_insert_with(|| json!({}));
            within[inner] = value;
        }
    }
}

/// The longest value of a record that a form is filled in with, in bytes.
const VALUE_BYTES_MAX: usize = 200;

/// A field of the form. Fields of an object have a name with a dot.
struct Field<'a> {
    name: String,
    schema: &'a Value,
    is_required: bool,
}

/// The page. `given` is the query, or a form that was refused.
pub(super) fn screen(calls: &dyn Calls, given: &Pairs, outcome: Outcome, wanted: Wanted) -> Screen {
    let (path, tab, title, button) = wanted.words();
    let (shown, operations) = match webhook_operations(calls, value(given, "service")) {
        Ok(found) => found,
        Err(problem) => {
            let body = html! { p { a href=(WEBHOOKS) { "All webhooks" } } };
            return frame(tab, title, Outcome::refused(problem), &body);
        }
    };
    let is_optional = wanted == Wanted::Watch && !needs_url(&operations);
    let fields = fields(&operations.create.input, "");
    let body = html! {
        p { strong { (shown.service.title) } ": " (operations.create.summary) }
        form.stack method="post" action=(path) {
            input type="hidden" name="service" value=(shown.service.name);
            input type="hidden" name="once" value=(calls.nonce());
            @for field in &fields { (row(field, value(given, &field.name))) }
            div.field {
                label for="url" { "URL" @if is_optional { span.soft { " (optional)" } } }
                input #url type="url" name="url" required[!is_optional] maxlength="2000" autocomplete="off" aria-describedby="url-help" value=(value(given, "url"));
                p.soft #url-help {
                    "An https URL without user name or password. It is stored encrypted and never shown again."
                    @if is_optional && !operations.read.is_empty() { " Without it, read what the watch matched with " code { (operations.read) } "." }
                }
            }
            button.primary { (button) }
        }
        p.soft { "The secret that signs the messages is generated and shown once, on the next page." }
    };
    frame(tab, title, outcome, &body)
}

fn fields<'a>(schema: &'a Value, prefix: &str) -> Vec<Field<'a>> {
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut out = Vec::new();
    for (name, own) in schema["properties"].as_object().into_iter().flatten() {
        if prefix.is_empty() && NOT_SHOWN.contains(&name.as_str()) {
            continue;
        }
        let path = format!("{prefix}{name}");
        if prefix.is_empty() && own["properties"].is_object() {
            out.extend(fields(own, &format!("{name}.")));
        } else {
            out.push(Field { name: path, schema: own, is_required: required.iter().any(|required| required == name.as_str()) });
        }
    }
    out.sort_by_key(|field| !field.is_required);
    out
}

fn row(field: &Field<'_>, given: &str) -> Markup {
    let id = format!("w-{}", field.name.replace('.', "-"));
    let help_id = format!("{id}-help");
    let words = help(field.schema);
    html! {
        div.field {
            label for=(id) { (label(&field.name)) @if !field.is_required { span.soft { " (optional)" } } }
            (control(&id, &field.name, &kind(field.schema), given, "not set"))
            @if !words.is_empty() { p.soft id=(help_id) { (words) } }
        }
    }
}

/// Registers a webhook, or creates a watch. Returns the page that shows it and the outcome, with the secret.
///
/// # Errors
/// The errors of the operation that the form calls.
pub(super) async fn register(calls: &dyn Calls, form: &Pairs, wanted: Wanted) -> Result<(Route, Outcome), Problem> {
    let (shown, operations) = webhook_operations(calls, value(form, "service"))?;
    let url = value(form, "url");
    if url.is_empty() && (wanted == Wanted::Webhook || needs_url(&operations)) {
        return Err(Problem::parameter(operations.url, "the URL is missing"));
    }
    let mut arguments = Arguments::new();
    for field in fields(&operations.create.input, "") {
        let given = value(form, &field.name);
        if given.is_empty() {
            continue;
        }
        put(&mut arguments, &field.name, json!(given));
    }
    if !url.is_empty() {
        arguments.insert(operations.url.to_owned(), json!(url));
    }
    let answer = calls.call(shown.service.name, operations.create.name, arguments, value(form, "once")).await?;
    let id = answer["id"].as_str().unwrap_or_default().to_owned();
    let secret = answer["secret"].as_str().map(|secret| ("The signing secret", secret.to_owned()));
    let mut words = if url.is_empty() { format!("The watch {id} was created.") } else { format!("The webhook {id} was registered.") };
    if let Some(note) = answer["note"].as_str().filter(|note| !note.is_empty()) {
        words.push_str(&format!(" Note: {note}."));
    }
    let route = if url.is_empty() { Route::Saved } else { Route::Webhook { service: shown.service.name.to_owned(), id } };
    Ok((route, Outcome { secret, ..Outcome::done(words) }))
}
