//! What differs between two versions of a value: the items that a list lost and got, the part of a long text that is another one, and the fields of an
//! object whose values differ.

use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::fields::{cell, is_empty, text};

/// Longer texts are shown as the part that differs, in characters.
const WHOLE_CHARS_MAX: usize = 160;
/// How many characters are shown before and after the part that differs.
const AROUND_CHARS: usize = 60;
/// The longest part of a text, or text of an object, that is shown, in characters.
const PART_CHARS_MAX: usize = 400;
/// The most items that are named of those that a list lost, and of those that it got.
const ITEMS_MAX: usize = 20;
/// The most pairs of items that are compared. Longer lists are shown from their beginning.
const COMPARED_MAX: usize = 250_000;

/// The value before and after a change. `before` is `None` if the version before is not known.
pub(crate) fn difference(name: &str, before: Option<&Value>, after: &Value) -> Markup {
    match (before, after) {
        (Some(Value::Array(before)), Value::Array(after)) if before.len().saturating_mul(after.len()) <= COMPARED_MAX => {
            items(name, before, after)
        }
        (Some(Value::String(before)), Value::String(after)) if is_long(before) || is_long(after) => {
            let [before, after] = parts(before, after);
            replaced(Some(&html! { bdi { (before) } }), &html! { bdi { (after) } })
        }
        (Some(Value::Object(before)), Value::Object(after)) => {
            let [old, new] = [(before, after), (after, before)].map(|(own, other)| short(name, &differing(own, other)));
            replaced(Some(&old), &new)
        }
        _ => replaced(before.map(|before| short(name, before)).as_ref(), &short(name, after)),
    }
}

fn replaced(before: Option<&Markup>, after: &Markup) -> Markup {
    html! {
        @if let Some(before) = before { del { span.hidden { "was " } (before) } }
        ins { span.hidden { "is " } (after) }
    }
}

fn is_long(text: &str) -> bool {
    text.chars().nth(WHOLE_CHARS_MAX).is_some()
}

/// A value that is shown whole, or from its beginning.
fn short(name: &str, value: &Value) -> Markup {
    let is_whole = match value {
        Value::String(given) => !is_long(given),
        Value::Array(_) | Value::Object(_) => is_empty(value),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    };
    html! { @if is_whole { (cell(name, value)) } @else { bdi { (text(value, PART_CHARS_MAX)) } } }
}

/// The items that a list lost, and those that it got. Lists with the same items in another order are shown from their beginning.
fn items(name: &str, before: &[Value], after: &[Value]) -> Markup {
    let lost: Vec<&Value> = before.iter().filter(|item| !after.contains(item)).collect();
    let got: Vec<&Value> = after.iter().filter(|item| !before.contains(item)).collect();
    if lost.is_empty() && got.is_empty() {
        let [before, after] = [before, after].map(|items| short(name, &Value::Array(items.to_vec())));
        return replaced(Some(&before), &after);
    }
    let remaining = after.len() - got.len();
    html! {
        @if !lost.is_empty() { del { span.hidden { "without " } (named(&lost)) } }
        @if !got.is_empty() { ins { span.hidden { "with " } (named(&got)) } }
        @if remaining > 0 { span.soft { (remaining) @if remaining == 1 { " other remains" } @else { " others remain" } } }
    }
}

fn named(items: &[&Value]) -> Markup {
    html! {
        @for (index, item) in items.iter().take(ITEMS_MAX).enumerate() {
            @if index > 0 { @if item.is_object() { "; " } @else { ", " } }
            bdi { (text(item, PART_CHARS_MAX / 2)) }
        }
        @if items.len() > ITEMS_MAX { " and " (items.len() - ITEMS_MAX) " more" }
    }
}

/// The fields of an object that another one does not have with the same value.
fn differing(own: &Map<String, Value>, other: &Map<String, Value>) -> Value {
    own.iter().filter(|(name, value)| other.get(*name) != Some(*value)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The part of each of two texts from a little before the first character that differs until a little after the last one.
fn parts(before: &str, after: &str) -> [String; 2] {
    let [before, after] = [before, after].map(|text| text.chars().collect::<Vec<char>>());
    let same_start = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
    let most = before.len().min(after.len()) - same_start;
    let same_end = before.iter().rev().zip(after.iter().rev()).take(most).take_while(|(one, other)| one == other).count();
    let start = same_start.saturating_sub(AROUND_CHARS);
    [before, after].map(|chars| {
        let end = (chars.len() - same_end + AROUND_CHARS).min(chars.len()).min(start + PART_CHARS_MAX);
        let part: String = chars.get(start..end).unwrap_or_default().iter().collect();
        let (begin, rest) = (if start > 0 { "…" } else { "" }, if end < chars.len() { "…" } else { "" });
        format!("{begin}{part}{rest}")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(before: &Value, after: &Value) -> String {
        difference("x", Some(before), after).into_string()
    }

    /// Proves that of a long text the part that differs is shown, wherever it is, and that it is escaped.
    #[test]
    fn long_texts() {
        let long = |middle: &str| json!(format!("{}{middle}{}", "a".repeat(5_000), "z".repeat(5_000)));
        let html = shown(&long("<old>"), &long("new"));
        assert!(html.contains("…") && html.contains("a&lt;old&gt;z") && html.contains("anewz"), "{html}");
        assert!(html.len() < 600, "{html}");
        // Nothing is lost where one text is the beginning of the other one, and where characters repeat.
        let html = shown(&json!("b".repeat(200)), &json!("b".repeat(203)));
        assert!(html.contains("<del>") && html.contains("<ins>"), "{html}");
        let html = shown(&json!("é".repeat(10_000)), &json!("😀".repeat(10_000)));
        assert_eq!((html.matches('é').count(), html.matches('😀').count()), (PART_CHARS_MAX, PART_CHARS_MAX));
        assert!(shown(&json!("short"), &json!("other")).contains("<bdi>short</bdi></del><ins>"));
    }

    /// Proves that of lists those items are shown that were lost or added, that the others are counted, and that another order is a difference, too.
    #[test]
    fn lists() {
        let html = shown(&json!(["a", "<b>", "c"]), &json!(["a", "c", "d"]));
        assert!(html.contains("<del><span class=\"hidden\">without </span><bdi>&lt;b&gt;</bdi></del>"), "{html}");
        assert!(html.contains("<bdi>d</bdi></ins>") && html.contains("2 others remain") && !html.contains("<bdi>a</bdi>"), "{html}");
        let html = shown(&json!([1]), &json!([]));
        assert!(html.contains("<del>") && !html.contains("<ins>") && !html.contains("remain"), "{html}");
        let html = shown(&json!(["a", "b"]), &json!(["b", "a"]));
        assert!(html.contains("<bdi>a, b</bdi></del>") && html.contains("<bdi>b, a</bdi></ins>"), "{html}");
        let many: Vec<usize> = (0..100).collect();
        assert!(shown(&json!([]), &json!(many)).contains(" and 80 more"));
    }

    /// Proves that of objects the fields are shown that differ, and that a value whose version before is not known has none.
    #[test]
    fn objects_and_unknown_versions() {
        let html = shown(&json!({ "name": "Acme", "state": "MD" }), &json!({ "name": "Acme", "state": "VA" }));
        assert!(html.contains("State MD") && html.contains("State VA") && !html.contains("Acme"), "{html}");
        let html = shown(&json!({ "name": "Acme" }), &json!({ "name": "Acme", "state": "VA" }));
        assert!(html.contains("was </span><span class=\"soft\">–</span></del>") && html.contains("State VA"), "{html}");
        assert!(!difference("x", None, &json!("a")).into_string().contains("<del>"));
        assert!(shown(&Value::Null, &json!(["a"])).contains("<bdi>a</bdi></ins>"));
        assert!(shown(&json!(1_000), &json!(2_000)).contains("1,000"));
    }
}
