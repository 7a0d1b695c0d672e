//! The expected changes: what a reader of the simulated upstreams should find. Tests compare this list with the engine's feeds.

use serde::Serialize;

/// What happened to a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The fact exists; this is not a change. Only in the list of what a reader should find now.
    Current,
    /// The fact is new.
    New,
    /// The content of the fact changed.
    Modified,
    /// The record is gone from a stream that publishes complete snapshots.
    Withdrawn,
    /// The record continues under another key. The new key has an entry of its own, directly after this one.
    Superseded,
}

/// One change of one fact, with the record after the change. A field is `None` if its mapping is more than a plain copy, so that its exact
/// value cannot be stated; `""` means that it must be empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExpectedChange {
    /// The number of the entry: 1, 2, 3 …
    pub n: u64,
    /// The name of the upstream.
    pub upstream: &'static str,
    /// The stream in which the record is seen.
    pub stream: &'static str,
    /// The key of the fact: the stream, a slash, and the record's identity. An unnumbered openFDA record has `EVT-<event>-<8 hex digits>`;
    /// the digits are from the SHA-256 of its description in lower case with collapsed white space.
    pub key: String,
    /// What happened.
    pub kind: Kind,
    /// `CPSC`, `FDA`, `NHTSA`, `USDA`.
    pub agency: &'static str,
    /// The agency's number; empty when it has none yet.
    pub number: String,
    /// `en` or `es`.
    pub lang: &'static str,
    /// Title.
    pub title: Option<String>,
    /// Brand.
    pub brand: Option<String>,
    /// Hazard.
    pub hazard: Option<String>,
    /// The date as `YYYY-MM-DD`.
    pub date: Option<String>,
    /// Address of the notice.
    pub url: Option<String>,
    /// Remedy.
    pub remedy: Option<String>,
    /// Whether one of the six fields above changed. A change of status alone changes none of them.
    pub visible: bool,
    /// The time of the change, in milliseconds since 1970.
    pub at_ms: i64,
}

/// Formats entries as lines of JSON.
pub fn ndjson(entries: &[ExpectedChange]) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in entries {
        // The fields are strings, numbers and names, so serialization cannot fail; a missing line would change every count.
        if serde_json::to_writer(&mut out, entry).is_ok() {
            out.push(b'\n');
        }
    }
    out
}
