//! Columns and their types.

use serde_json::Value;

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name.
    pub name: String,
    /// The type.
    pub kind: Kind,
}

/// The type of a column. Every value may be null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A text.
    Text,
    /// A whole number of 64 bits.
    Int,
    /// A floating-point number of 64 bits.
    Float,
    /// True or false.
    Bool,
    /// A date, in JSON a text such as `2026-11-19`. Another text is null.
    Day,
    /// A point in time in milliseconds, in JSON a text in RFC 3339. Another text is null.
    Time,
    /// A list.
    List(Box<Kind>),
    /// A structure with these fields.
    Struct(Vec<Column>),
    /// Any JSON value, as text.
    Json,
}

impl Column {
    /// A column.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self { name: name.into(), kind }
    }

    /// The columns for the fields of an object's JSON Schema, which has no references, sorted by name.
    #[must_use]
    pub fn of_schema(schema: &Value) -> Vec<Self> {
        let fields = schema.get("properties").and_then(Value::as_object);
        let mut columns: Vec<Self> = fields.into_iter().flatten().map(|(name, field)| Self::new(name, Kind::of_schema(field))).collect();
        columns.sort_by(|a, b| a.name.cmp(&b.name));
        columns
    }
}

impl Kind {
    /// The type of the values that a JSON Schema without references describes.
    #[must_use]
    pub fn of_schema(schema: &Value) -> Self {
        if let Some(branches) = schema.get("anyOf").and_then(Value::as_array) {
            // Null and the empty text mean that there is no value.
            let is_value = |branch: &&Value| !is_of_type(branch, "null") && branch.get("const") != Some(&Value::from(""));
            let mut of_values = branches.iter().filter(is_value);
            return match (of_values.next(), of_values.next()) {
                (Some(only), None) => Self::of_schema(only),
                _ => Self::Json,
            };
        }
        let format = schema.get("format").and_then(Value::as_str);
        let has_fields = schema.get("properties").and_then(Value::as_object).is_some_and(|fields| !fields.is_empty());
        match schema.get("items") {
            _ if is_of_type(schema, "string") && format == Some("date") => Self::Day,
            _ if is_of_type(schema, "string") && format == Some("date-time") => Self::Time,
            _ if is_of_type(schema, "string") => Self::Text,
            _ if is_of_type(schema, "integer") => Self::Int,
            _ if is_of_type(schema, "number") => Self::Float,
            _ if is_of_type(schema, "boolean") => Self::Bool,
            Some(items) if is_of_type(schema, "array") => Self::List(Box::new(Self::of_schema(items))),
            _ if is_of_type(schema, "object") && has_fields => Self::Struct(Column::of_schema(schema)),
            _ => Self::Json,
        }
    }
}

/// Whether a schema has this type, alone or next to null.
fn is_of_type(schema: &Value, wanted: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == wanted,
        Some(Value::Array(kinds)) => {
            let mut others = kinds.iter().filter(|kind| *kind != "null");
            others.next().is_some_and(|kind| kind == wanted) && others.next().is_none()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Proves that each form of a schema has its type of column.
    #[test]
    fn types_of_schemas() {
        let schema = json!({ "type": "object", "properties": {
            "b": { "type": ["integer", "null"] },
            "a": { "anyOf": [{ "type": "string", "format": "date" }, { "type": "string", "const": "" }] },
            "c": { "type": "array", "items": { "type": "object", "properties": { "x": { "type": "number" }, "at": { "type": "string", "format": "date-time" } } } },
            "d": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
            "e": { "anyOf": [{ "type": "string" }, { "type": "number" }] },
            "f": { "type": "object" },
            "g": { "type": "boolean" },
        } });
        let columns: Vec<(String, Kind)> = Column::of_schema(&schema).into_iter().map(|column| (column.name, column.kind)).collect();
        let inner = Kind::Struct(vec![Column::new("at", Kind::Time), Column::new("x", Kind::Float)]);
        let expected = [
            ("a", Kind::Day),
            ("b", Kind::Int),
            ("c", Kind::List(Box::new(inner))),
            ("d", Kind::Text),
            ("e", Kind::Json),
            ("f", Kind::Json),
            ("g", Kind::Bool),
        ];
        assert_eq!(columns, expected.map(|(name, kind)| (name.to_owned(), kind)));
    }
}
