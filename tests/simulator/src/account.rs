//! What a reader of the upstreams should find: the account that a test holds against the engine's feeds.

use serde::Serialize;

/// What happened to a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// It stands there; not a change. Only in [`crate::Simulator::current`].
    Current,
    /// It came.
    New,
    /// Its content changed.
    Modified,
    /// It is gone from a door that publishes everything.
    Withdrawn,
    /// It stands under another key from now on; the new key has an entry of its own, right after this one.
    Superseded,
}

/// One change of one fact, with the record as it is afterwards. A field is `None` where the mapping is more than a plain copy,
/// so that nothing exact can be said; `""` says that it must be empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// 1, 2, 3 …
    pub n: u64,
    /// Name of the upstream.
    pub upstream: &'static str,
    /// The door by which it is seen.
    pub door: &'static str,
    /// Key of the fact: the door, a slash, and its identity there. Of an unnumbered openFDA record that is `EVT-<event>-<8 hex digits>`,
    /// the digits from the SHA-256 of its description in lower case, white space collapsed.
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
    /// `YYYY-MM-DD`.
    pub date: Option<String>,
    /// Address of the notice.
    pub url: Option<String>,
    /// Remedy.
    pub remedy: Option<String>,
    /// Whether one of the six fields above changed; a change of status alone shows in none of them.
    pub visible: bool,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
}

/// Entries as lines of JSON.
pub(crate) fn ndjson(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in entries {
        // Strings, numbers and names only: this cannot fail, and a line left out would be seen by any count.
        if serde_json::to_writer(&mut out, entry).is_ok() {
            out.push(b'\n');
        }
    }
    out
}
