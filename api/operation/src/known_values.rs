//! Known values: fields whose values are in a closed list. The list is in the schema of the field as `enum`, so that OpenAPI and MCP clients see it.
//! Callers may write a value in any case; arguments get the spelling of the list before they are validated. A value that is not in the list is
//! refused with the nearest one.

use schemas::names::hint;
use serde_json::{Map, Value};

use crate::problem::Problem;

/// The known value that a text is, ignoring case and surrounding spaces.
#[must_use]
pub fn find_known<'a>(given: &str, mut known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.trim().to_lowercase();
    known.find(|value| value.to_lowercase() == given)
}

/// The known value that a text is, in any case, for a field whose list follows from another field. `field` is the path of the field.
///
/// # Errors
/// `parameter-invalid`, naming the path, with the known values and the nearest one.
pub fn known_value(field: &str, given: &str, known: &[&'static str]) -> Result<&'static str, Problem> {
    find_known(given, known.iter().copied())
        .ok_or_else(|| Problem::parameter(field, format!("{field}: {}", unknown_value(&format!("{given:?}"), given, known))))
}

/// What an error says about an unknown value. `shown` is the value as the error repeats it; no value is suggested for an empty `given`.
#[must_use]
pub fn unknown_value(shown: &str, given: &str, known: &[&str]) -> String {
    let hint = if given.is_empty() { String::new() } else { hint(given, known.iter().copied()) };
    format!("{shown} is not one of {}{hint}", known.join(", "))
}

/// Gives texts the spelling that the `enum` of their schema has, also within lists and objects. Other texts stay as they are.
pub fn spell_known_values(value: &mut Value, schema: &Value) {
    match value {
        Value::String(text) => {
            let known = schema.get("enum").and_then(Value::as_array);
            if let Some(known) = known.and_then(|known| find_known(text, known.iter().filter_map(Value::as_str)))
                && known != text
            {
                known.clone_into(text);
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            items.iter_mut().for_each(|item| spell_known_values(item, schema));
        }
        Value::Object(fields) => spell_known_fields(fields, schema),
        _ => {}
    }
}

/// Gives the texts of an object the spelling of the known values, see [`spell_known_values`].
pub fn spell_known_fields(fields: &mut Map<String, Value>, schema: &Value) {
    let Some(properties) = schema.get("properties") else { return };
    for (name, value) in fields {
        if let Some(schema) = properties.get(name) {
            spell_known_values(value, schema);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Proves that values get the spelling of the list at every depth, and that unknown values and fields stay as they are.
    #[test]
    fn spelling() {
        let schema_of = |known: &[&str]| json!({ "type": "string", "enum": known });
        let schema = json!({ "properties": {
            "state": schema_of(&["TX", "CA"]),
            "list": { "items": schema_of(&["food"]) },
            "filter": { "properties": { "topic": schema_of(&["oncology"]) } },
        } });
        let mut given = json!({ "state": " tx ", "list": ["Food", "toys"], "filter": { "topic": "ONCOLOGY", "name": "X" }, "other": "Y" });
        spell_known_values(&mut given, &schema);
        let spelled = json!({ "state": "TX", "list": ["food", "toys"], "filter": { "topic": "oncology", "name": "X" }, "other": "Y" });
        assert_eq!(given, spelled);
    }

    /// Proves that an unknown value is refused with its field and the nearest known value.
    #[test]
    fn nearest_value() {
        assert_eq!(known_value("agency", "usda", &["FDA", "USDA"]), Ok("USDA"));
        let problem = known_value("entity.value", "oncolgy", &["aging", "oncology"]).unwrap_err();
        assert_eq!(problem.parameter, "entity.value");
        assert_eq!(problem.detail, "entity.value: \"oncolgy\" is not one of aging, oncology, did you mean \"oncology\"?");
    }
}
