//! The form of an explorer: one field for each filter that its operation takes, from the schema of the arguments.

use maud::{Markup, html};
use operation::Operation;
use serde_json::Value;

use crate::fields::label;
use crate::{Pairs, meanings, url};

/// Arguments that are not filters: the pages set them, or have their own controls for them.
const CONTROLS: [&str; 10] = ["asOf", "limit", "after", "cursor", "start", "wait", "before", "rebase", "filter", "day"];
/// The most choices that a field offers as a list.
const CHOICES_MAX: usize = 80;

/// How many filters are in sight. The others are behind a summary, so that the rows are near the top of a small screen.
const IN_SIGHT_MAX: usize = 5;
/// What the fields that are no arguments of an operation mean.
const AS_OF_HELP: &str = "Shows everything as it was at the end of this day in UTC.";
const START_HELP: &str = "Begins with the changes that were recorded on this day in UTC, the oldest first.";
/// The length of a day, `YYYY-MM-DD`.
const DAY_CHARS: usize = 10;

/// What a field takes.
pub(crate) enum Kind {
    Choices(Vec<String>),
    Switch,
    Number,
    Day,
    Text,
}

/// A field of the form.
struct Field<'a> {
    name: &'a str,
    help: &'a str,
    kind: Kind,
}

/// Whether an argument is no filter: it says where a list begins and ends, or which time it shows.
pub(crate) fn is_control(name: &str) -> bool {
    CONTROLS.contains(&name)
}

/// Whether a query selects what an explorer lists. What is listed and in which order selects nothing.
pub(crate) fn selects(pairs: &Pairs) -> bool {
    pairs.iter().any(|(name, _)| !["view", "sort"].contains(&name.as_str()))
}

/// Whether an operation takes this argument as a filter.
pub(crate) fn has_filter(operation: &Operation, name: &str) -> bool {
    !is_control(name) && takes(operation, name)
}

/// Whether an operation takes this argument.
pub(crate) fn takes(operation: &Operation, name: &str) -> bool {
    operation.input.pointer("/properties").is_some_and(|properties| properties.get(name).is_some())
}

/// The argument with which a feed under a filter includes late news.
const LATE_NEWS: &str = "includeBackfill";

/// The pair with which an operation includes late news, which is all that the first sync of a register finds; `None` if it leaves nothing out.
pub(crate) fn late_news(operation: &Operation) -> Option<(String, String)> {
    takes(operation, LATE_NEWS).then(|| (LATE_NEWS.to_owned(), "true".to_owned()))
}

/// The pairs that are filters of an operation.
pub(crate) fn given<'a>(operation: &Operation, pairs: &'a Pairs) -> Vec<&'a (String, String)> {
    pairs.iter().filter(|(name, _)| has_filter(operation, name)).collect()
}

fn fields<'a>(operation: &'a Operation, first: &[&str]) -> Vec<Field<'a>> {
    let properties = operation.input.get("properties").and_then(Value::as_object);
    let fields = properties.into_iter().flatten().filter(|(name, _)| has_filter(operation, name));
    let mut fields: Vec<Field<'_>> = fields.map(|(name, schema)| Field { name, help: help(schema), kind: kind(schema) }).collect();
    // The words of a search come first, switches last.
    let place = |name: &str| first.iter().position(|one| *one == name).unwrap_or(first.len());
    fields.sort_by_key(|field| (place(field.name), matches!(field.kind, Kind::Switch)));
    fields
}

/// The first sentence of a description.
pub(crate) fn help(schema: &Value) -> &str {
    let text = schema["description"].as_str().unwrap_or_default();
    text.split_inclusive(". ").next().unwrap_or(text).trim()
}

pub(crate) fn kind(schema: &Value) -> Kind {
    let choices = choices(schema);
    if !choices.is_empty() && choices.len() <= CHOICES_MAX {
        return Kind::Choices(choices);
    }
    let is = |name: &str| match &schema["type"] {
        Value::String(own) => own == name,
        Value::Array(all) => all.iter().any(|own| own == name),
        _ => false,
    };
    if is("boolean") {
        Kind::Switch
    } else if is("integer") || is("number") {
        Kind::Number
    } else if is("string") && schema["description"].as_str().is_some_and(|text| text.contains("YYYY-MM-DD")) {
        Kind::Day
    } else {
        Kind::Text
    }
}

/// The texts that a schema allows, if it lists them.
fn choices(schema: &Value) -> Vec<String> {
    let of_list = schema["enum"].as_array().into_iter().flatten().chain(schema.get("const"));
    let mut all: Vec<String> = of_list.filter_map(Value::as_str).map(str::to_owned).collect();
    for name in ["anyOf", "oneOf"] {
        all.extend(schema[name].as_array().into_iter().flatten().flat_map(choices));
    }
    all
}

/// What a field for a day shows: the day of a day or of a time, and nothing for words, because browsers complain about them.
pub(crate) fn day(value: &str) -> &str {
    value.get(..DAY_CHARS).filter(|day| day.parse::<jiff::civil::Date>().is_ok()).unwrap_or_default()
}

/// What a field for a number shows: nothing for words.
fn number(value: &str) -> &str {
    if value.parse::<f64>().is_ok_and(f64::is_finite) { value } else { "" }
}

/// The control of a field. `unset` is the words of a choice that is not made.
pub(crate) fn control(id: &str, name: &str, kind: &Kind, value: &str, unset: &str) -> Markup {
    html! {
        @match kind {
            Kind::Choices(choices) => {
                select id=(id) name=(name) {
                    option value="" { (unset) }
                    @for choice in choices { option value=(choice) selected[choice == value] { (choice) } }
                }
            }
            Kind::Day => { input id=(id) type="date" name=(name) value=(day(value)); }
            Kind::Number => { input id=(id) type="number" step="any" name=(name) value=(number(value)); }
            Kind::Switch => { input id=(id) type="checkbox" name=(name) value="true" checked[value == "true"]; }
            Kind::Text => { input id=(id) type="text" name=(name) value=(value) maxlength="300"; }
        }
    }
}

/// A field of the form with its label.
fn row(field: &Field<'_>, value: &str) -> Markup {
    let id = format!("f-{}", field.name);
    html! {
        @if matches!(field.kind, Kind::Switch) {
            label.switch title=(field.help) {
                input type="checkbox" name=(field.name) value="true" checked[value == "true"];
                (label(field.name))
            }
        } @else {
            div.field {
                label for=(id) title=(field.help) { (label(field.name)) }
                (control(&id, field.name, &field.kind, value, "any"))
            }
        }
    }
}

/// The form. `operation` is `None` for a list that takes no filters; `first` names the fields that come first.
pub(crate) fn form(action: &str, view: &str, operation: Option<&Operation>, first: &[&str], has_start: bool, pairs: &Pairs) -> Markup {
    let value = |name: &str| url::value(pairs, name);
    let fields = operation.map(|operation| fields(operation, first)).unwrap_or_default();
    // One field takes no more room than the summary.
    let in_sight = if fields.len() > IN_SIGHT_MAX + 1 { IN_SIGHT_MAX } else { fields.len() };
    let own = [("recordedSince", START_HELP), ("asOf", AS_OF_HELP)].into_iter().filter(|(name, _)| has_start || *name == "asOf");
    let meant = meanings::of_fields("What the filters mean", fields.iter().map(|field| (field.name, field.help)).chain(own));
    let (in_sight, more) = fields.split_at(in_sight);
    let has_more_set = more.iter().any(|field| !value(field.name).is_empty());
    let is_set = selects(pairs);
    html! {
        form.filters method="get" action=(action) aria-label="Filters" {
            input type="hidden" name="view" value=(view);
            @for field in in_sight { (row(field, value(field.name))) }
            @if has_start {
                div.field { label for="f-start" { "Recorded since" } input #f-start type="date" name="start" value=(day(value("start"))); }
            }
            div.field {
                label for="f-asOf" title=(AS_OF_HELP) { "As of" }
                input #f-asOf type="date" name="asOf" value=(day(value("asOf")));
            }
            @if !more.is_empty() {
                details.more open[has_more_set] {
                    summary { (more.len()) " more filters" }
                    div { @for field in more { (row(field, value(field.name))) } }
                }
            }
            div.actions {
                button.primary { "Show" }
                @if is_set { a href={ (action) "?view=" (view) } { "Reset" } }
            }
        }
        (meant)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    /// Proves that fields for days and numbers show only what a browser takes there.
    #[test]
    fn values_of_fields() {
        for (value, shown) in [
            ("2026-11-28", "2026-11-28"),
            ("2026-11-28T12:00:00Z", "2026-11-28"),
            ("none", ""),
            ("", ""),
            ("2026-13-28", ""),
            ("ééééééé", ""),
        ] {
            assert_eq!(day(value), shown, "{value}");
        }
        for (value, shown) in [("3", "3"), ("-2.5", "-2.5"), ("three", ""), ("", ""), ("inf", ""), ("NaN", "")] {
            assert_eq!(number(value), shown, "{value}");
        }
    }

    /// Proves that a form with many filters has the first ones in sight and the others behind a summary, which is open if one of them is set; and that a
    /// form with few has no summary.
    #[test]
    fn many_filters() {
        let operation = |filters: usize| {
            let properties: Map<String, Value> = (0..filters).map(|at| (format!("filter{at}"), json!({ "type": "string" }))).collect();
            crate::testing::operation("list", "/v1/list", "items", Value::Object(properties))
        };
        let shown = |filters: usize, pairs: &[(&str, &str)]| {
            let pairs: Pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            form("/explore/x", "records", Some(&operation(filters)), &["filter3", "filter2"], false, &pairs).into_string()
        };
        assert!(!shown(6, &[]).contains("class=\"more\""));
        let many = shown(9, &[("filter3", "x")]);
        assert!(many.contains("<details class=\"more\"><summary>4 more filters</summary>"), "{many}");
        assert_eq!(many.matches("name=\"filter").count(), 9);
        let places = ["filter3", "filter2", "filter0"].map(|name| many.find(&format!("name=\"{name}\"")).unwrap());
        assert!(places.is_sorted(), "{many}");
        assert!(shown(9, &[("filter8", "x")]).contains("<details class=\"more\" open>"));
    }

    /// Proves that a form says in the page, with inert texts, what its fields mean, and says nothing of fields without a description.
    #[test]
    fn visible_help() {
        let properties =
            json!({ "agency": { "type": "string", "description": "Code of the `agency` <b>. More." }, "other": { "type": "string" } });
        let operation = crate::testing::operation("list", "/v1/list", "items", properties);
        let shown = |has_start: bool| form("/explore/x", "records", Some(&operation), &[], has_start, &Pairs::new()).into_string();
        let html = shown(false);
        assert!(html.contains("What the filters mean</summary>"), "{html}");
        assert!(
            html.contains("<dt>Agency</dt><dd>Code of the <code>agency</code> &lt;b&gt;.</dd>") && html.contains("<dt>As of</dt>"),
            "{html}"
        );
        assert!(!html.contains("<dt>Other</dt>") && !html.contains("<dt>Recorded since</dt>"), "{html}");
        assert!(shown(true).contains("<dt>Recorded since</dt>"));
    }

    /// Proves which control an argument gets from its schema.
    #[test]
    fn kinds() {
        assert!(matches!(kind(&json!({"type": ["string", "null"], "enum": ["a", "b", null]})), Kind::Choices(all) if all == ["a", "b"]));
        assert!(
            matches!(kind(&json!({"anyOf": [{"oneOf": [{"const": "x"}, {"const": "y"}]}, {"type": "null"}]})), Kind::Choices(all) if all == ["x", "y"])
        );
        assert!(matches!(kind(&json!({"type": "boolean"})), Kind::Switch));
        assert!(matches!(kind(&json!({"type": ["number", "null"]})), Kind::Number));
        assert!(matches!(kind(&json!({"type": "string", "description": "The first day, YYYY-MM-DD."})), Kind::Day));
        assert!(matches!(kind(&json!({"type": "array", "items": {"type": "string"}})), Kind::Text));
        assert_eq!(help(&json!({"description": "One. Two."})), "One.");
    }
}
