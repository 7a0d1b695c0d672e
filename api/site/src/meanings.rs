//! What fields mean, and in which unit they are: those of forms, and those of records as the schemas of the answers say.

use maud::{Markup, html};
use operation::Operation;
use pages::inline;
use serde_json::Value;

use crate::SiteService;
use crate::fields::{is_internal, label};

/// The schemas of a record in the answer of an operation, at a place of its schema: a record with a redacted form has a schema for each form.
fn forms<'a>(operation: &'a Operation, place: &str) -> Vec<&'a Value> {
    let schema = operation.output.pointer(place);
    schema.into_iter().flat_map(|schema| std::iter::once(schema).chain(schema["anyOf"].as_array().into_iter().flatten())).collect()
}

/// The description of the field at a path with dots.
fn description<'a>(forms: &[&'a Value], path: &str) -> Option<&'a str> {
    let field = |form: &'a Value| path.split('.').try_fold(form, |form, name| form["properties"].get(name));
    forms.iter().copied().find_map(|form| field(form)?["description"].as_str())
}

/// What fields mean, behind a summary, since phones show no titles. Fields without a description are left out; nothing if none is left.
pub(crate) fn of_fields<'a>(summary: &str, fields: impl Iterator<Item = (&'a str, &'a str)>) -> Markup {
    let meant: Vec<(&str, &str)> = fields.filter(|(_, meaning)| !meaning.is_empty()).collect();
    html! {
        @if !meant.is_empty() {
            details.about {
                summary { (summary) }
                dl.nested { @for (path, meaning) in &meant { div { dt { (label(path)) } dd { (inline(meaning)) } } } }
            }
        }
    }
}

/// What the fields at some paths mean, as schemas say. Fields that are internal are left out.
fn described<'a>(summary: &str, forms: &[&'a Value], paths: impl Iterator<Item = &'a str>) -> Markup {
    of_fields(summary, paths.filter(|path| !is_internal(path)).filter_map(|path| Some((path, description(forms, path)?))))
}

/// Whether the records of a service have a field, also if no schema says which fields they have.
pub(crate) fn is_field(shown: &SiteService<'_>, name: &str) -> bool {
    let forms = shown.operation("record").map(|operation| forms(operation, "/properties/record")).unwrap_or_default();
    let known = |form: &&Value| form["properties"].is_object();
    !forms.iter().any(known) || forms.iter().any(|form| form["properties"].get(name).is_some())
}

/// What the fields of a record mean.
pub(crate) fn of_record(shown: &SiteService<'_>, record: &Value) -> Markup {
    let forms = shown.operation("record").map(|operation| forms(operation, "/properties/record")).unwrap_or_default();
    let names = record.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    described("What the fields mean", &forms, names)
}

/// What the columns of a table mean. `list` is the operation of a list of records.
pub(crate) fn of_columns(shown: &SiteService<'_>, list: Option<&Operation>, columns: &[&str]) -> Markup {
    let page = shown.service.page;
    let rows = list.into_iter().flat_map(|list| page.rows.iter().flat_map(move |rows| forms(list, &format!("/properties/{rows}/items"))));
    let record = shown.operation("record").into_iter().flat_map(|operation| forms(operation, "/properties/record"));
    let forms: Vec<&Value> = rows.chain(record).collect();
    described("What the columns mean", &forms, columns.iter().copied())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Proves that a field is described by the first form that does it, also within an object, and that others are left out.
    #[test]
    fn descriptions() {
        let whole = json!({ "properties": { "r": { "description": "4 decimals." }, "body": { "properties": { "seq": { "description": "Its number." } } } } });
        let redacted = json!({ "properties": { "r": { "description": "1 decimal." }, "other": { "type": "string" } } });
        let forms = [&redacted, &whole];
        assert_eq!(
            ["r", "body.seq", "other", "none"].map(|path| description(&forms, path)),
            [Some("1 decimal."), Some("Its number."), None, None]
        );
        let shown = described("What", &forms, ["r", "other", "rulesVersion"].into_iter()).into_string();
        assert_eq!(
            shown,
            "<details class=\"about\"><summary>What</summary><dl class=\"nested\"><div><dt>Ratio to peers</dt><dd>1 decimal.</dd></div></dl></details>"
        );
    }
}
