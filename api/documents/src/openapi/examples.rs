//! Examples of answers, made from their schemas: each field has the example of its type, or else a value that its schema allows.

use operation::schema::REFERENCE;
use serde_json::{Map, Value, json};

/// How deep examples go at most.
const DEPTH_MAX: usize = 16;

/// An example that a schema allows. `types` are the named schemas.
pub(crate) fn example(schema: &Value, types: &Map<String, Value>) -> Value {
    sample(schema, types, 0)
}

fn sample(schema: &Value, types: &Map<String, Value>, depth: usize) -> Value {
    let field = |name: &str| schema.get(name);
    if depth > DEPTH_MAX {
        return Value::Null;
    }
    if let Some(named) = field("$ref").and_then(Value::as_str).and_then(|reference| types.get(reference.strip_prefix(REFERENCE)?)) {
        return sample(named, types, depth + 1);
    }
    let given = field("const").or_else(|| field("examples")?.get(0)).or_else(|| field("enum")?.get(0));
    if let Some(given) = given {
        return given.clone();
    }
    if let Some(first) = ["anyOf", "oneOf"].iter().find_map(|keyword| field(keyword)?.get(0)) {
        let mut of_branch = sample(first, types, depth + 1);
        // Fields next to the branches belong to all of them.
        if let (Some(fields), Value::Object(own)) = (of_branch.as_object_mut(), properties(schema, types, depth)) {
            fields.extend(own);
        }
        return of_branch;
    }
    let kind = match field("type") {
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
        kind => kind.and_then(Value::as_str),
    };
    match kind {
        Some("object") => properties(schema, types, depth),
        Some("array") => {
            let items = field("items").map(|items| sample(items, types, depth + 1));
            let least = field("minItems").and_then(Value::as_u64).and_then(|least| usize::try_from(least).ok()).unwrap_or(1);
            Value::Array(items.map_or_else(Vec::new, |item| vec![item; least]))
        }
        Some("string") => text(schema).into(),
        Some("integer" | "number") => field("minimum").cloned().unwrap_or_else(|| 1.into()),
        Some("boolean") => false.into(),
        Some("null") => Value::Null,
        _ => json!({}),
    }
}

/// An object with all its fields.
fn properties(schema: &Value, types: &Map<String, Value>, depth: usize) -> Value {
    let fields = schema.get("properties").and_then(Value::as_object);
    fields.into_iter().flatten().map(|(name, schema)| (name.clone(), sample(schema, types, depth + 1))).collect()
}

/// A text in the format and of the length that its schema asks for.
fn text(schema: &Value) -> String {
    match schema.get("format").and_then(Value::as_str) {
        Some("date") => return "2026-11-19".to_owned(),
        Some("date-time") => return "2026-11-19T08:30:00.000Z".to_owned(),
        _ => {}
    }
    let bound = |name: &str| schema.get(name).and_then(Value::as_u64).and_then(|bound| usize::try_from(bound).ok());
    let length = "text".len().max(bound("minLength").unwrap_or(0)).min(bound("maxLength").unwrap_or(usize::MAX));
    "text".chars().cycle().take(length).collect()
}
