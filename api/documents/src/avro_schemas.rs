//! The Avro schemas of the public topics: `/schemas/` lists them, `/schemas/{fingerprint}` is one of them, exactly as in our source.
//!
//! Promise: the schema of a fingerprint never changes, so a reader can cache it for ever. Schemas of private topics are not served.

use schemas::avro::{self, SchemaText};
use schemas::topics;
use serde_json::{Value, json};

/// The path of the schemas.
pub const PATH: &str = "/schemas/";

/// Every version of every public topic's schema with its fingerprint, in the order of THE LIST.
pub fn public() -> impl Iterator<Item = (String, &'static SchemaText)> {
    let is_public = |text: &&SchemaText| topics::by_name(text.topic).is_some_and(|topic| !topic.private);
    avro::ALL.iter().filter(is_public).filter_map(|text| Some((text.fingerprint_hex()?, text)))
}

/// The path of one schema.
#[must_use]
pub fn path(fingerprint: &str) -> String {
    format!("{PATH}{fingerprint}")
}

/// The list of the schemas, each with its topic, its name and its path.
#[must_use]
pub fn list() -> Value {
    let mut listed = Vec::new();
    for (fingerprint, text) in public() {
        let current = avro::fingerprint_hex(text.topic).as_deref() == Some(&fingerprint);
        listed.push(
            json!({"topic": text.topic, "fingerprint": fingerprint, "name": name(text), "current": current, "path": path(&fingerprint)}),
        );
    }
    json!({"schemas": listed})
}

/// The full name of a schema's record, `highwater.facts.RecallEvent`.
fn name(text: &SchemaText) -> String {
    let schema: Value = serde_json::from_str(text.json).unwrap_or_default();
    let part = |field: &str| schema.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    [part("namespace"), part("name")].join(".")
}
