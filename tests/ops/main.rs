//! Checks what operators and readers get against the code: docs, metrics, alerts, dashboards, the files of docker compose, and scripts.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod command_line;
mod compose;
mod engines;
mod examples;
mod left_out;
mod links;
mod metrics;
mod prometheus;
mod topics;

use std::path::PathBuf;

/// Returns the text of a file of the repository.
fn text(path: &str) -> String {
    let path = file(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the path of a file of the repository.
fn file(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns the contents of a YAML file of the repository.
fn yaml(path: &str) -> serde_json::Value {
    let mut value: serde_norway::Value = serde_norway::from_str(&text(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    value.apply_merge().unwrap();
    serde_json::to_value(value).unwrap()
}
