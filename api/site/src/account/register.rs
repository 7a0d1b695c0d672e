//! `/account/webhooks/new` and `/account/watches/new`: the form that registers a webhook, or creates a watch with or without one. Its fields come from the
//! schema of the operation.

use maud::{Markup, html};
use operation::Operation;
use operation::problem::Problem;
use serde_json::{Value, json};

use super::forms::{WebhookOperations, webhook_operations};
use super::{Arguments, Calls, NEW_WATCH, Outcome, REGISTER, Route, SAVED, Screen, WEBHOOKS};
use crate::fields::label;
use crate::filters::{Kind, control, help, kind};
use crate::url::{self, value};
use crate::{Pairs, Shown};

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

/// The address of the form that watches changes like a record's: its fields have the values of the record. `None` if the service has no watches.
pub(crate) fn address(shown: &Shown<'_>, record: &Value) -> Option<String> {
    let operations = WebhookOperations::of(shown)?;
    let schema = &operations.create.input;
    let needs_url = schema["required"].as_array().is_some_and(|all| all.iter().any(|name| name == operations.url));
    let text = |name: &str| record[name].as_str().filter(|text| !text.is_empty() && text.len() <= VALUE_BYTES_MAX);
    let mut pairs = vec![("service", shown.service.name.to_owned())];
    let all = fields(schema, "");
    for field in &all {
        match (field.name.split_once('.'), kind(field.schema)) {
            (None, _) => pairs.extend(text(&field.name).map(|text| (field.name.as_str(), text.to_owned()))),
            // An object names the kind of a thing, and the thing: the first kind that the record has a value for.
            (Some((outer, _)), Kind::Choices(kinds)) => {
                let is_value =
                    |other: &&Field<'_>| other.name != field.name && other.name.split_once('.').is_some_and(|(own, _)| own == outer);
                let found = kinds.into_iter().find_map(|kind| text(&kind).map(str::to_owned).map(|text| (kind, text)));
                if let (Some((kind, text)), Some(value)) = (found, all.iter().find(is_value)) {
                    pairs.extend([(field.name.as_str(), kind), (value.name.as_str(), text)]);
                }
            }
            (Some(_), _) => {}
        }
    }
    let (path, ..) = if needs_url { Wanted::Webhook } else { Wanted::Watch }.words();
    Some(format!("{path}{}", url::query(&pairs)))
}

/// The operation of a service that registers a webhook, or creates a watch with one; `None` if it has no webhooks.
pub(crate) fn operation<'a>(shown: &Shown<'a>) -> Option<&'a Operation> {
    WebhookOperations::of(shown).map(|operations| operations.create)
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
    let is_optional = wanted == Wanted::Watch;
    let (shown, operations) = match webhook_operations(calls, value(given, "service")) {
        Ok(found) => found,
        Err(problem) => {
            let body = html! { p { a href=(WEBHOOKS) { "All webhooks" } } };
            return super::screen(tab, title, Outcome::refused(problem), &body);
        }
    };
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
    super::screen(tab, title, outcome, &body)
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
/// Those of the operation.
pub(super) async fn register(calls: &dyn Calls, form: &Pairs, wanted: Wanted) -> Result<(Route, Outcome), Problem> {
    let (shown, operations) = webhook_operations(calls, value(form, "service"))?;
    let url = value(form, "url");
    if url.is_empty() && wanted == Wanted::Webhook {
        return Err(Problem::parameter(operations.url, "the URL is missing"));
    }
    let mut arguments = Arguments::new();
    for field in fields(&operations.create.input, "") {
        let given = value(form, &field.name);
        if given.is_empty() {
            continue;
        }
        match field.name.split_once('.') {
            None => drop(arguments.insert(field.name, json!(given))),
            Some((outer, inner)) => {
                let within = arguments.entry(outer).or_insert_with(|| json!({}));
                within[inner] = json!(given);
            }
        }
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
