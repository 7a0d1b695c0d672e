//! A JSON writer into bytes. It adds commas itself, so callers only name fields. Records whose fields are chosen by the request are built
//! as values instead, with the helpers below.

use std::cmp::Ordering;

use serde_json::{Value, json};

/// The effect of a schema fault on every record: a missing field, or one of another type.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// The name of the field that is missing.
    pub missing: Option<String>,
    /// The name of the field that has another type.
    pub retyped: Option<String>,
}

impl Schema {
    /// Applies the fault to a record, at any depth.
    pub fn apply(&self, record: &mut Value) {
        if self.missing.is_none() && self.retyped.is_none() {
            return;
        }
        match record {
            Value::Object(fields) => {
                if let Some(name) = &self.missing {
                    fields.remove(name);
                }
                for (name, field) in fields {
                    if self.retyped.as_ref() == Some(name) {
                        *field = json!({"type": "changed"});
                    } else {
                        self.apply(field);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.apply(item)),
            _ => {}
        }
    }
}

/// Merges the fields of two objects.
pub fn joined(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Object(mut one), Value::Object(other)) => {
            one.extend(other);
            Value::Object(one)
        }
        (one, _) => one,
    }
}

/// Compares two fields for sorting: numbers by value, texts alphabetically, other values last.
pub fn order(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64().partial_cmp(&other.as_f64()).unwrap_or(Ordering::Equal),
        (Value::String(one), Value::String(other)) => one.cmp(other),
        _ => rank(one).cmp(&rank(other)),
    }
}

fn rank(field: &Value) -> u8 {
    match field {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        _ => 2,
    }
}

/// A JSON text that is being written.
pub struct Json<'a> {
    out: Vec<u8>,
    schema: &'a Schema,
}

impl<'a> Json<'a> {
    /// Begins a text of about `capacity` bytes.
    #[must_use]
    pub fn new(schema: &'a Schema, capacity: usize) -> Self {
        Self { out: Vec::with_capacity(capacity), schema }
    }

    /// Returns the bytes of the text.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.out
    }

    fn separate(&mut self) {
        if !matches!(self.out.last(), None | Some(b'{' | b'[' | b':')) {
            self.out.push(b',');
        }
    }

    /// Writes an object, as an array element or as the whole text.
    pub fn object(&mut self, fill: impl FnOnce(&mut Self)) {
        self.separate();
        self.out.push(b'{');
        fill(self);
        self.out.push(b'}');
    }

    /// Writes an array as the whole text.
    pub fn array(&mut self, fill: impl FnOnce(&mut Self)) {
        self.separate();
        self.out.push(b'[');
        fill(self);
        self.out.push(b']');
    }

    /// Writes a string element.
    pub fn item(&mut self, value: &str) {
        self.separate();
        self.quoted(value);
    }

    /// Writes the name of a field. Returns false if its value must not follow.
    fn name(&mut self, name: &str) -> bool {
        if self.schema.missing.as_deref() == Some(name) {
            return false;
        }
        self.separate();
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        if self.schema.retyped.as_deref() == Some(name) {
            self.out.extend_from_slice(b"{\"type\":\"changed\"}");
            return false;
        }
        true
    }

    /// Writes a field with a string.
    pub fn text(&mut self, name: &str, value: &str) {
        if self.name(name) {
            self.quoted(value);
        }
    }

    /// Writes a field whose value is given as JSON: a number, `null`, `{}`.
    pub fn raw(&mut self, name: &str, value: &str) {
        if self.name(name) {
            self.out.extend_from_slice(value.as_bytes());
        }
    }

    /// Writes a field with an array.
    pub fn list(&mut self, name: &str, fill: impl FnOnce(&mut Self)) {
        if self.name(name) {
            self.array(fill);
        }
    }

    /// Writes a field with an object.
    pub fn nested(&mut self, name: &str, fill: impl FnOnce(&mut Self)) {
        if self.name(name) {
            self.object(fill);
        }
    }

    fn quoted(&mut self, value: &str) {
        self.out.push(b'"');
        let mut rest = value.as_bytes();
        while let Some(at) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)) {
            self.out.extend_from_slice(&rest[..at]);
            match rest[at] {
                b'\n' => self.out.extend_from_slice(b"\\n"),
                byte @ (b'"' | b'\\') => self.out.extend_from_slice(&[b'\\', byte]),
                byte => self.out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            }
            rest = &rest[at + 1..];
        }
        self.out.extend_from_slice(rest);
        self.out.push(b'"');
    }
}
