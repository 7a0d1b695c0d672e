//! `/account/webhooks/new`: the form that registers a webhook. Its fields come from the schema of the operation.

use maud::{Markup, html};
use operation::problem::Problem;
use serde_json::{Value, json};

use super::forms::webhook_operations;
use super::{Arguments, Calls, Outcome, REGISTER, Route, Screen, WEBHOOKS};
use crate::Pairs;
use crate::fields::label;
use crate::filters::{control, help, kind};
use crate::url::value;

/// Arguments that have no field in the form: the URL has its own, and the secret is generated.
const NOT_SHOWN: [&str; 4] = ["webhook", "webhook_url", "secret", "token"];

/// A field of the form. Fields of an object have a name with a dot.
struct Field<'a> {
    name: String,
    schema: &'a Value,
    is_required: bool,
}

/// The page. `given` is the query, or a form that was refused.
pub(super) fn screen(calls: &dyn Calls, given: &Pairs, outcome: Outcome) -> Screen {
    let (shown, operations) = match webhook_operations(calls, value(given, "service")) {
        Ok(found) => found,
        Err(problem) => {
            let body = html! { p { a href=(WEBHOOKS) { "All webhooks" } } };
            return super::screen(WEBHOOKS, "Register a webhook", Outcome::refused(problem), &body);
        }
    };
    let fields = fields(&operations.create.input, "");
    let body = html! {
        p { strong { (shown.service.title) } ": " (operations.create.summary) }
        form.stack method="post" action=(REGISTER) {
            input type="hidden" name="service" value=(shown.service.name);
            input type="hidden" name="once" value=(calls.nonce());
            @for field in &fields { (row(field, value(given, &field.name))) }
            div.field {
                label for="url" { "URL" }
                input #url type="url" name="url" required maxlength="2000" autocomplete="off" aria-describedby="url-help";
                p.soft #url-help { "An https URL without user name or password. It is stored encrypted and never shown again." }
            }
            button.primary { "Register" }
        }
        p.soft { "The secret that signs the messages is generated and shown once, on the next page." }
    };
    super::screen(WEBHOOKS, "Register a webhook", outcome, &body)
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

/// Registers a webhook. Returns its page and the outcome, with the secret.
///
/// # Errors
/// Those of the operation.
pub(super) async fn register(calls: &dyn Calls, form: &Pairs) -> Result<(Route, Outcome), Problem> {
    let (shown, operations) = webhook_operations(calls, value(form, "service"))?;
    let url = value(form, "url");
    if url.is_empty() {
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
    arguments.insert(operations.url.to_owned(), json!(url));
    let answer = calls.call(shown.service.name, operations.create.name, arguments, value(form, "once")).await?;
    let id = answer["id"].as_str().unwrap_or_default().to_owned();
    let secret = answer["secret"].as_str().map(|secret| ("The signing secret", secret.to_owned()));
    let mut words = format!("The webhook {id} was registered.");
    if let Some(note) = answer["note"].as_str().filter(|note| !note.is_empty()) {
        words.push_str(&format!(" Note: {note}."));
    }
    let route = Route::Webhook { service: shown.service.name.to_owned(), id };
    Ok((route, Outcome { secret, ..Outcome::done(words) }))
}
