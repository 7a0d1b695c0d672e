//! JSON values as text of queries, paths and headers.

use serde_json::Value;

/// A JSON string without quotes, anything else as JSON.
#[must_use]
pub fn plain_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
