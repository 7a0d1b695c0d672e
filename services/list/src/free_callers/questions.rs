//! Arguments for an operation that follow from its definition, and what its answers show.

use operation::{Answer, Body, Call, Operation};
use schemas::views::records::Record;
use serde_json::{Map, Value, json};

use super::histories::{Histories, leaves};

/// The most values of the records that a parameter is asked with.
const VALUES_MAX: usize = 24;
/// Parameters that hold a place that an earlier answer gave.
const PLACES: [&str; 2] = ["cursor", "after"];

/// An operation that needs one of several arguments, and the one of them with which others are asked. Its schema says so in words only: providers of models
/// refuse every request that offers a tool whose `inputSchema` has `anyOf`, `oneOf` or `allOf` at its top level, and OpenAPI has no such rule for the
/// parameters of a query.
const ONE_OF_SEVERAL: (&str, &str) = ("company", "ticker");

/// Where a feed can start: at its ends, and before the free windows.
const STARTS: [&str; 4] = ["earliest", "newest", "latest", "2026-08-20"];

/// Values of `asOf`: within the free windows, at their ends and long before.
pub(super) fn moments() -> [&'static str; 7] {
    ["2026-11-19", "2026-11-20T11:30:00Z", "2026-11-17T00:00:00Z", "2026-11-13", "2026-11-11T13:00:00Z", "2026-10-31", "2026-08-20"]
}

/// The arguments to ask both histories with: those of the example, and for each parameter some values, with and without `asOf`. They are the same for
/// both, but for the id of a record.
pub(super) fn questions<R: Record>(operation: &Operation, histories: &Histories<R>) -> Vec<[Value; 2]> {
    let properties = operation.input["properties"].as_object().cloned().unwrap_or_default();
    let one_of = Some(ONE_OF_SEVERAL.1).filter(|_| operation.name == ONE_OF_SEVERAL.0);
    let required = operation.input["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let required: Vec<&str> = required.chain(one_of).collect();
    let (texts, numbers) = values_of(histories);
    let mut bases = vec![[operation.example.clone(), operation.example.clone()]];
    let least: Map<String, Value> =
        operation.example.as_object().unwrap().clone().into_iter().filter(|(name, _)| required.contains(&name.as_str())).collect();
    bases.push([json!(least), json!(least)]);
    if properties.contains_key("id") {
        let of_id = |pair: &[R; 2]| [0, 1].map(|side| with("id", json!(pair[side].id()), &json!(least)));
        let of_records: Vec<[Value; 2]> = histories.pairs.iter().map(of_id).collect();
        if properties.contains_key("history") {
            bases.extend(of_records.iter().map(|question| [0, 1].map(|side| with("history", json!(true), &question[side]))));
        }
        bases.extend(of_records);
    }
    let base = bases.last().unwrap().clone();
    let mut all = bases;
    for (name, schema) in &properties {
        if !PLACES.contains(&name.as_str()) && !["wait", "asOf", "id"].contains(&name.as_str()) {
            let chosen = if name == "start" { STARTS.map(|start| json!(start)).to_vec() } else { values(schema, &texts, &numbers) };
            all.extend(chosen.into_iter().map(|value| [0, 1].map(|side| with(name, value.clone(), &base[side]))));
        }
    }
    if properties.contains_key("asOf") {
        let now = all.clone();
        // Each question is asked as of some of the moments, which take turns, and the first ones as of each.
        for (at, question) in now.iter().enumerate() {
            let each = if at < 12 { 0..moments().len() } else { at % moments().len()..at % moments().len() + 1 };
            all.extend(each.map(|at| [0, 1].map(|side| with("asOf", json!(moments()[at]), &question[side]))));
        }
    }
    all
}

fn with(name: &str, value: Value, arguments: &Value) -> Value {
    let mut arguments = arguments.clone();
    arguments[name] = value;
    arguments
}

/// Texts and numbers that occur in the records of either history.
fn values_of<R: Record>(histories: &Histories<R>) -> (Vec<Value>, Vec<Value>) {
    let mut all: Vec<Value> = Vec::new();
    // The oldest come first: the number of values is limited, and those of the free window are shown anyway.
    for record in histories.pairs.iter().flatten() {
        let (json, mut paths) = (json!(record), Vec::new());
        leaves(&json, String::new(), &mut paths);
        all.extend(paths.iter().filter_map(|path| json.pointer(path).cloned()));
    }
    let mut seen = std::collections::HashSet::new();
    all.retain(|value| seen.insert(value.to_string()));
    all.into_iter().filter(|value| !value.is_boolean()).partition(Value::is_string)
}

/// Values for a parameter.
fn values(schema: &Value, texts: &[Value], numbers: &[Value]) -> Vec<Value> {
    if let Some(named) = schema["enum"].as_array() {
        return named.clone();
    }
    let is = |kind: &str| schema["type"] == kind || schema["type"].as_array().is_some_and(|kinds| kinds.iter().any(|own| own == kind));
    if is("boolean") {
        return vec![json!(true), json!(false)];
    }
    if is("integer") || is("number") {
        let (least, most) = (schema["minimum"].as_f64().unwrap_or(0.0), schema["maximum"].as_f64().unwrap_or(1e12));
        let within =
            |value: &&Value| value.as_f64().is_some_and(|number| (least..=most).contains(&number)) && (is("number") || value.is_i64());
        let ends = [schema["minimum"].clone(), schema["maximum"].clone(), json!(7)].into_iter().filter(Value::is_number);
        return ends.chain(numbers.iter().filter(within).take(VALUES_MAX).cloned()).collect();
    }
    let is_short = |value: &&Value| schema["maxLength"].as_u64().is_none_or(|most| value.as_str().unwrap_or_default().len() as u64 <= most);
    let texts = texts.iter().filter(is_short).take(VALUES_MAX);
    if is("array") { texts.map(|text| json!([text])).collect() } else { texts.cloned().collect() }
}

/// What an answer shows: its body, its ETag and its cursors; of an error everything that the caller reads.
pub(super) async fn answer(call: Call, operation: &Operation, arguments: &Value) -> Result<String, String> {
    let answer = (operation.run)(call, arguments.clone()).await;
    let Answer { body, etag, next_cursor, has_more, status } =
        answer.map_err(|problem| format!("{:?} {} {}", problem.code, problem.parameter, problem.detail))?;
    let bytes = match body {
        Body::Json(value) => value.to_string().into_bytes(),
        Body::Parts(parts) => parts.concat(),
        Body::Lines { items, older, note } => {
            [items.join(&b'\n'), older.unwrap_or_default().into_bytes(), note.unwrap_or_default().into_bytes()].concat()
        }
        Body::Events { from, older, items, updated, note } => {
            let items = items.into_iter().map(|event| format!("\n{} {}", event.id, String::from_utf8_lossy(&event.data)));
            std::iter::once(from).chain(older).chain(updated).chain(note).chain(items).collect::<String>().into_bytes()
        }
        other => format!("{other:?}").into_bytes(),
    };
    Ok(format!("{status} {etag} {next_cursor} {has_more} {}", String::from_utf8_lossy(&bytes)))
}
