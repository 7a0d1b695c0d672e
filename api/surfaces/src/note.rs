//! The note of an answer that has no field for it. Over REST it is a header of the response, and over MCP a further text of the result.
//!
//! An answer that states its own hash (`proofs::evidence`) hashes all other fields, so its note is not one of them. A list that is sent as lines, as a table,
//! as a file, as an Atom document or as events has the items alone.

use http::HeaderName;
use operation::Body;
use proofs::evidence::ARTIFACT_HASH;
use serde_json::Value;
use warp::reply::Response;

use crate::response::set_text;

/// The field with the note in the answer of an operation.
const NOTE: &str = "note";

/// Takes the note out of an answer that states its own hash. `None` if there is none; the note of any other answer stays in it.
pub(crate) fn take(body: &mut Body) -> Option<String> {
    let Body::Json(Value::Object(fields)) = body else { return None };
    if !fields.contains_key(ARTIFACT_HASH) {
        return None;
    }
    let note = fields.remove(NOTE)?;
    note.as_str().map(str::to_owned)
}

/// The note of a list whose items alone are sent; `None` if there is none.
pub(crate) fn of_list(answer: &Value) -> Option<String> {
    answer.get(NOTE)?.as_str().filter(|note| !note.is_empty()).map(str::to_owned)
}

/// The most characters of a note in a header: proxies refuse answers whose headers have more than a few thousand bytes.
const HEADER_CHARS_MAX: usize = 2_000;

/// Adds the note of an answer to the headers of its response.
pub(crate) fn set_header(response: &mut Response, note: &str) {
    set_text(response, HeaderName::from_static("answer-note"), &header_value(note));
}

/// A note as the value of a header, which has printable ASCII only. A longer one is cut.
fn header_value(note: &str) -> String {
    let mut value = String::with_capacity(note.len().min(HEADER_CHARS_MAX));
    for letter in note.chars().take(HEADER_CHARS_MAX) {
        match letter {
            ' '..='~' => value.push(letter),
            '…' => value.push_str("..."),
            _ => value.push('?'),
        }
    }
    if note.chars().nth(HEADER_CHARS_MAX).is_some() {
        value.push_str("...");
    }
    value
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;

    /// Proves that the note is taken out of an answer with a hash of its own, and out of no other one.
    #[test]
    fn notes_next_to_answers() {
        let mut hashed = Body::Json(json!({ "artifactHash": "sha256:00", "note": "short", "signal": "NO_SIGNAL" }));
        assert_eq!((take(&mut hashed).as_deref(), take(&mut hashed)), (Some("short"), None));
        assert_eq!(hashed.into_value(), Some(json!({ "artifactHash": "sha256:00", "signal": "NO_SIGNAL" })));
        let mut other = Body::Json(json!({ "items": [], "note": "short" }));
        assert_eq!((take(&mut other), take(&mut Body::Parts(vec![Bytes::from_static(b"{}")]))), (None, None));
        assert_eq!(other.into_value(), Some(json!({ "items": [], "note": "short" })));
    }

    /// Proves that the note of a list is read, and that one without a note, or with an empty one, has none.
    #[test]
    fn notes_of_lists() {
        let note_of = |answer: Value| of_list(&answer);
        assert_eq!(note_of(json!({ "items": [], "note": "short" })).as_deref(), Some("short"));
        assert_eq!([note_of(json!({ "items": [] })), note_of(json!({ "note": "" })), note_of(json!({ "note": null }))], [None, None, None]);
    }

    /// Proves that a note of any letters is a valid value of a header.
    #[test]
    fn notes_as_headers() {
        assert_eq!(header_value("2 contracts (B, …); a \"ß\"\n"), "2 contracts (B, ...); a \"?\"?");
        assert_eq!(header_value(&"a".repeat(2_001)).len(), 2_003);
    }
}
