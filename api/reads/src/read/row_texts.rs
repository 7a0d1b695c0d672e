//! The rows of an answer as JSON text, for answers of many rows: to make a value of each row takes many times as long and as much memory as to write it.

use bytes::Bytes;
use operation::problem::Problem;
use operation::{Body, Form};
use schemas::error_code::ErrorCode;
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// How long a part is when the next one begins, in bytes.
const PART_BYTES: usize = 256 << 10;

/// The rows of an answer's list as JSON text. A field of this type needs the schema of the list: `#[schemars(with = "Vec<Row>")]`. The answer hands the rows
/// over in `Read::take_rows`.
#[derive(Clone, Debug, Default)]
pub struct RowTexts {
    /// The full parts, commas included.
    parts: Vec<Bytes>,
    /// The part that is being written.
    last: Vec<u8>,
    count: usize,
}

impl RowTexts {
    /// Begins a row. Its JSON must be added to the returned text.
    pub fn row(&mut self) -> &mut Vec<u8> {
        if self.last.len() >= PART_BYTES {
            self.begin_part(PART_BYTES + PART_BYTES / 4);
        }
        self.begin()
    }

    /// Begins a row of about so many bytes, which may be many: the part that it is written to has room for it, so that no text is copied while the part
    /// grows. Its JSON must be added to the returned text.
    pub fn row_of(&mut self, bytes: usize) -> &mut Vec<u8> {
        // One more for the comma.
        let room = bytes + 1;
        if self.last.len() >= PART_BYTES || self.last.len() + room > self.last.capacity() {
            // A long row has a part of its own.
            self.begin_part(if room > PART_BYTES / 4 { room } else { PART_BYTES });
        }
        self.begin()
    }

    /// Ends the part that is being written, if it has a row, and begins one with room for so many bytes.
    fn begin_part(&mut self, bytes: usize) {
        let full = std::mem::replace(&mut self.last, Vec::with_capacity(bytes));
        if !full.is_empty() {
            self.parts.push(Bytes::from(full));
        }
    }

    fn begin(&mut self) -> &mut Vec<u8> {
        if self.count > 0 {
            self.last.push(b',');
        }
        self.count += 1;
        &mut self.last
    }

    /// The number of rows.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The body of an answer with these fields, of which `list` gets the rows: its text, or for other forms its value.
    ///
    /// # Errors
    /// `internal` when the rows are no JSON.
    pub(super) fn body(self, mut fields: Map<String, Value>, list: &str, form: Form) -> Result<Body, Problem> {
        if form == Form::Json {
            let (before, after) = text_around(&fields, list);
            let mut parts = vec![Bytes::from(before + "[")];
            parts.extend(self.parts);
            parts.extend(Some(self.last).filter(|last| !last.is_empty()).map(Bytes::from));
            parts.push(Bytes::from(format!("]{after}")));
            return Ok(Body::Parts(parts));
        }
        let rows = self.values().map_err(|error| {
            tracing::error!(%error, list, "the rows of an answer are no JSON");
            Problem::new(ErrorCode::Internal, "the answer could not be encoded")
        })?;
        fields.insert(list.to_owned(), Value::Array(rows));
        Ok(Body::Json(Value::Object(fields)))
    }

    /// The values of the rows.
    fn values(&self) -> Result<Vec<Value>, serde_json::Error> {
        let text = [b"[".as_slice(), &self.parts.concat(), &self.last, b"]"].concat();
        serde_json::from_slice(&text)
    }
}

impl Serialize for RowTexts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.values().map_err(S::Error::custom)?.serialize(serializer)
    }
}

/// The JSON text of an object before and after the value of one of its fields.
#[must_use]
pub fn text_around(fields: &Map<String, Value>, field: &str) -> (String, String) {
    let (mut before, mut after, mut is_past) = ("{".to_owned(), String::new(), false);
    for (at, (name, value)) in fields.iter().enumerate() {
        let text = if is_past { &mut after } else { &mut before };
        if at > 0 {
            text.push(',');
        }
        text.push_str(&Value::from(name.as_str()).to_string());
        text.push(':');
        if name == field {
            is_past = true;
        } else {
            text.push_str(&value.to_string());
        }
    }
    after.push('}');
    (before, after)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rows_of(count: usize) -> (RowTexts, Vec<Value>) {
        let values: Vec<Value> = (0..count).map(|n| json!({ "n": n, "text": "\"\u{e9}\n".repeat(n % 900) })).collect();
        let mut rows = RowTexts::default();
        values.iter().for_each(|value| rows.row().extend_from_slice(value.to_string().as_bytes()));
        (rows, values)
    }

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    /// Proves that the text of an answer with rows is that of its value, byte for byte, with the list as any of its fields and in any number of parts, and that
    /// another form of the answer has the value.
    #[test]
    fn texts_are_those_of_values() {
        for (list, count) in [("a", 2), ("list", 0), ("list", 1), ("list", 2_000), ("z", 3), ("only", 3)] {
            let other = if list == "only" { json!({}) } else { json!({ "be\"fore": "x,\"list\":", "count": count, "y": [1, null] }) };
            let (rows, values) = rows_of(count);
            let mut fields = object(other);
            fields.insert(list.to_owned(), json!([]));
            let mut expected = fields.clone();
            expected.insert(list.to_owned(), json!(values));
            let expected = Value::Object(expected);
            assert_eq!((rows.count(), json!(rows)), (count, json!(values)));
            let Body::Json(value) = rows.clone().body(fields.clone(), list, Form::Lines).unwrap() else { panic!() };
            assert_eq!(value, expected, "{list}");
            let Body::Parts(parts) = rows.body(fields, list, Form::Json).unwrap() else { panic!() };
            assert!(parts.iter().all(|part| part.len() < 2 * PART_BYTES) && (count < 2_000 || parts.len() > 4));
            assert_eq!(String::from_utf8(parts.concat()).unwrap(), expected.to_string(), "{list}");
        }
    }

    /// Proves that rows that say how long they are give the same text, in parts that do not grow while they are written, also if a row is longer than it said.
    #[test]
    fn rows_of_a_length() {
        let (_, values) = rows_of(2_000);
        let mut rows = RowTexts::default();
        for (n, value) in values.iter().enumerate() {
            let text = value.to_string();
            let row = rows.row_of(if n % 100 == 7 { 1 } else { text.len() });
            row.extend_from_slice(text.as_bytes());
        }
        let lengths: Vec<usize> = rows.parts.iter().map(Bytes::len).collect();
        assert!(lengths.len() > 4 && lengths.iter().all(|bytes| *bytes < 2 * PART_BYTES), "{lengths:?}");
        assert_eq!((rows.count(), json!(rows)), (2_000, json!(values)));
        let row = rows.row_of(3 * PART_BYTES);
        assert!(row.capacity() - row.len() >= 3 * PART_BYTES);
    }

    /// Proves that rows that are no JSON are an error.
    #[test]
    fn rows_that_are_no_json() {
        let mut rows = RowTexts::default();
        rows.row().extend_from_slice(b"{");
        assert!(rows.body(object(json!({ "list": [] })), "list", Form::Lines).is_err());
    }
}
