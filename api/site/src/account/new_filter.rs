//! `/account/filters/new`: saves the filter that an explorer shows under a name.

use maud::html;
use operation::Operation;
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use serde_json::{Map, Value, json};

use super::calls::Calls;
use super::forms;
use super::route::{NEW_FILTER, SAVED};
use super::screen::{Outcome, Screen, frame};
use crate::url::value;
use crate::{Pairs, SiteService, url};

/// The operation that saves a filter.
const SAVE: &str = "save_filter";
/// Fields of the form that are no filters.
const OWN_FIELDS: [&str; 3] = ["service", "name", "once"];

/// The address of the form for the filters of a query; `None` if a service saves none of them.
pub(crate) fn address(shown: &SiteService<'_>, pairs: &Pairs) -> Option<String> {
    let save = shown.operation(SAVE)?;
    let mut own: Pairs = pairs.iter().filter(|(name, value)| !value.is_empty() && field(save, name).is_some()).cloned().collect();
    (!own.is_empty()).then(|| {
        own.insert(0, ("service".to_owned(), shown.service.name.to_owned()));
        format!("{NEW_FILTER}{}", url::query(&own))
    })
}

/// The schema of a field of the filter.
fn field<'a>(save: &'a Operation, name: &str) -> Option<&'a Value> {
    save.input.pointer("/properties/filter/properties").and_then(|fields| fields.get(name))
}

/// The filter that a form or a query has.
fn filter(save: &Operation, given: &Pairs) -> Map<String, Value> {
    let fields = given.iter().filter(|(name, value)| !value.is_empty() && !OWN_FIELDS.contains(&name.as_str()));
    fields.filter_map(|(name, value)| Some((name.clone(), typed(field(save, name)?, value)))).collect()
}

/// A text of a query in the type of a field. A text that is none of that type stays as it is, so that the operation says what is wrong with it.
pub(super) fn typed(schema: &Value, text: &str) -> Value {
    let is = |wanted: &str| schema["type"] == wanted || schema["type"].as_array().is_some_and(|all| all.iter().any(|own| own == wanted));
    if is("array") {
        return text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(|item| typed(&schema["items"], item)).collect();
    }
    if is("integer") || is("number") || is("boolean") {
        return text.parse().unwrap_or_else(|_| json!(text));
    }
    json!(text)
}

/// The page. `given` is the query, or a form that was refused.
pub(super) fn screen(calls: &dyn Calls, given: &Pairs, outcome: Outcome) -> Screen {
    let services = calls.services();
    let found = forms::service(&services, value(given, "service"));
    let found = found.and_then(|shown| Ok((shown, shown.operation(SAVE).ok_or_else(no_filters)?)));
    let (shown, save) = match found {
        Ok(found) => found,
        Err(problem) => {
            return frame(SAVED, "Save a filter", Outcome::refused(problem), &html! { p { a href=(SAVED) { "All saved filters" } } });
        }
    };
    let fields = filter(save, given);
    let kept: Vec<&(String, String)> = given.iter().filter(|(name, _)| fields.contains_key(name)).collect();
    let body = html! {
        p { strong { (shown.service.title) } ": " (forms::fields_in_words(&fields, "everything")) }
        form.stack method="post" action=(NEW_FILTER) {
            input type="hidden" name="service" value=(shown.service.name);
            input type="hidden" name="once" value=(calls.nonce());
            @for (name, value) in kept { input type="hidden" name=(name) value=(value); }
            div.field {
                label for="name" { "Name" }
                input #name type="text" name="name" required maxlength="100" value=(value(given, "name")) autocomplete="off" aria-describedby="name-help";
                p.soft #name-help { "A filter that has this name already is replaced. The filtered feed takes the name as " code { "filter" } "." }
            }
            button.primary { "Save" }
        }
    };
    frame(SAVED, "Save a filter", outcome, &body)
}

/// Saves the filter of a form.
///
/// # Errors
/// The errors of the operation that the form calls.
pub(super) async fn save(calls: &dyn Calls, form: &Pairs) -> Result<Outcome, Problem> {
    let shown = forms::service(&calls.services(), value(form, "service"))?;
    let operation = shown.operation(SAVE).ok_or_else(no_filters)?;
    let mut arguments = forms::arguments(form, &["name"]);
    arguments.insert("filter".to_owned(), Value::Object(filter(operation, form)));
    let answer = calls.call(shown.service.name, SAVE, arguments, value(form, "once")).await?;
    let note = answer["note"].as_str().unwrap_or_default();
    let words = format!("The filter {} of {} was saved. {note}", value(form, "name"), shown.service.title);
    Ok(Outcome::done(words.trim_end()))
}

fn no_filters() -> Problem {
    Problem::new(ErrorCode::NotFound, "this service saves no filters")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that texts of a query become the type of their field, and that one that is none of the type stays as it is.
    #[test]
    fn texts_are_typed() {
        for (schema, text, typed_value) in [
            (json!({"type": "array", "items": {"type": "string"}}), "8-K, 4,,", json!(["8-K", "4"])),
            (json!({"type": ["array", "null"], "items": {"type": "integer"}}), "9,x", json!([9, "x"])),
            (json!({"type": "integer"}), "12", json!(12)),
            (json!({"type": ["boolean", "null"]}), "true", json!(true)),
            (json!({"type": "integer"}), "many", json!("many")),
            (json!({"type": "string"}), "12", json!("12")),
            (json!({}), "a,b", json!("a,b")),
        ] {
            assert_eq!(typed(&schema, text), typed_value, "{schema} {text}");
        }
    }
}
