//! The notices of upstreams of which a record is made, for the services that merge notices: which of its values each of them gave, and by which rule.

use std::collections::HashMap;

use maud::{Markup, html};
use pages::{inline, table};
use serde_json::Value;

use crate::STATUS;
use crate::fields::{label, link_words};
use crate::url::followed_host;

/// The operation whose answer says it.
pub(crate) const OPERATION: &str = "record_sources";

/// The notices in the answer of the operation.
fn notices(answer: &Value) -> &[Value] {
    answer["notices"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Whether an answer of the operation has notices: one about an earlier version of the record has none.
pub(crate) fn has_notices(answer: &Value) -> bool {
    !notices(answer).is_empty()
}

/// The notices that gave the value of each field, each with its place among them and its number. Empty if there is only one notice.
pub(crate) fn by_field(answer: &Value) -> HashMap<&str, Vec<(usize, &str)>> {
    let notices = notices(answer);
    let mut found: HashMap<&str, Vec<(usize, &str)>> = HashMap::new();
    for (at, notice) in notices.iter().enumerate().filter(|_| notices.len() > 1) {
        for field in notice["fields"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            found.entry(field).or_default().push((at, notice["number"].as_str().unwrap_or_default()));
        }
    }
    found
}

/// The id of a notice on the page.
pub(crate) fn anchor(at: usize) -> String {
    format!("notice-{at}")
}

/// The notices and the rule. Nothing without an answer, or if it has no notices.
pub(crate) fn section(answer: &Value) -> Markup {
    let notices = notices(answer);
    let rows = html! {
        @for (at, notice) in notices.iter().enumerate() {
            @let text = |name: &str| notice[name].as_str().unwrap_or_default();
            @let fields: Vec<String> = notice["fields"].as_array().into_iter().flatten().filter_map(Value::as_str).map(|name| label(name).to_lowercase()).collect();
            tr id=(anchor(at)) {
                th scope="row" {
                    @if followed_host(text("url")).is_some() {
                        a href=(text("url")) rel="noopener noreferrer nofollow ugc" title=(link_words(text("url"))) { bdi { (text("number")) } }
                    } @else {
                        bdi { (text("number")) }
                    }
                }
                td { a href={ (STATUS) "#stream-" (text("stream")) } { code { bdi { (text("stream")) } } } }
                td { @if fields.is_empty() { span.soft { "what other notices state, too" } } @else { (fields.join(", ")) } }
            }
        }
    };
    html! {
        @if !notices.is_empty() {
            h2 #notices { "Sources" }
            p {
                @if notices.len() == 1 { "This record is made of one notice. " } @else { "This record is merged from " (notices.len()) " notices. " }
                (inline(answer["rule"].as_str().unwrap_or_default()))
            }
            (table("Notices", &["Notice", "Stream", "Gave"], &rows))
        }
    }
}
