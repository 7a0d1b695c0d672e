//! Pages of lists as tables, in CSV or Parquet, for callers who prefer them. The columns follow from the schema of the answer.

use bytes::Bytes;
use operation::Operation;
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use serde_json::{Map, Value, json};
use table_file::{Column, Format, Kind, Sink, writer};

/// The media type of CSV, without its parameter.
pub(crate) const CSV: &str = "text/csv";
/// The media type of Parquet.
pub(crate) const PARQUET: &str = "application/vnd.apache.parquet";
/// The column of a list whose items are no objects.
const ONLY_COLUMN: &str = "value";

/// The table of the items of an operation's list.
pub(crate) struct Table {
    format: Format,
    /// Empty if the schema names no fields: then each item is the value of one column.
    columns: Vec<Column>,
}

impl Table {
    /// The table of an operation's list. Every media type but that of Parquet makes it CSV.
    pub(crate) fn new(operation: &Operation, media_type: &str) -> Self {
        let format = if media_type == PARQUET { Format::Parquet } else { Format::Csv };
        let items = operation.output.pointer(&format!("/properties/{}/items", operation.list));
        Self { format, columns: items.map(|items| Column::of_schema(&in_one_form(items))).unwrap_or_default() }
    }

    /// The content type of the file.
    pub(crate) fn content_type(&self) -> &'static str {
        self.format.media_type()
    }

    /// The ETag of the file, from that of the same page as lines.
    pub(crate) fn etag(&self, of_lines: &str) -> String {
        let extension = if self.format == Format::Parquet { "parquet" } else { "csv" };
        format!("{}-{extension}\"", of_lines.trim_end_matches('"'))
    }

    /// The file with these items.
    ///
    /// # Errors
    /// `internal` if an item has no fields though the schema names some, or if the file cannot be written.
    pub(crate) fn file(&self, items: Vec<Value>) -> Result<Bytes, Problem> {
        let rows = items.into_iter().map(|item| self.row(item)).collect::<Result<Vec<_>, _>>()?;
        let mut out = Vec::new();
        let mut sink = |piece: &[u8]| {
            out.extend_from_slice(piece);
            true
        };
        self.write(rows, &mut sink).map_err(|error| {
            tracing::error!(%error, "a page cannot be written as a table");
            not_written()
        })?;
        Ok(Bytes::from(out))
    }

    /// The values of an item, in the order of the columns.
    fn row(&self, item: Value) -> Result<Vec<Value>, Problem> {
        if self.columns.is_empty() {
            return Ok(vec![item]);
        }
        let Value::Object(mut fields) = item else {
            tracing::error!("an item of a list is not an object, so it cannot be a row of a table");
            return Err(not_written());
        };
        Ok(self.columns.iter().map(|column| fields.remove(&column.name).unwrap_or_default()).collect())
    }

    fn write(&self, rows: Vec<Vec<Value>>, sink: Sink<'_>) -> Result<(), table_file::Error> {
        let columns = if self.columns.is_empty() { vec![Column::new(ONLY_COLUMN, Kind::Json)] } else { self.columns.clone() };
        let mut writer = writer(self.format, columns, sink)?;
        for row in rows {
            writer.row(row)?;
        }
        writer.finish()
    }
}

/// The items of lines of JSON.
///
/// # Errors
/// `internal` if a line is no JSON: an empty row in its place would look like a record without values.
pub(crate) fn items_of_lines(lines: &[Bytes]) -> Result<Vec<Value>, Problem> {
    let items: Result<Vec<Value>, serde_json::Error> = lines.iter().map(|line| serde_json::from_slice(line)).collect();
    items.map_err(|error| {
        tracing::error!(%error, "a line of a page is not JSON, so the page cannot be a table");
        not_written()
    })
}

fn not_written() -> Problem {
    Problem::new(ErrorCode::Internal, "the answer could not be written as a table")
}

/// The schema with one object in place of several forms of an object: callers below some tier see records in a redacted form, with other fields, and a
/// change may be one of several kinds of records next to fields that all have. A field with different types in them is any JSON value.
fn in_one_form(schema: &Value) -> Value {
    let forms: Vec<Value> = schema["anyOf"].as_array().into_iter().flatten().map(in_one_form).collect();
    let objects: Vec<&Map<String, Value>> = forms.iter().filter_map(|form| form["properties"].as_object()).collect();
    let common = schema["properties"].as_object();
    if objects.len() + usize::from(common.is_some()) > 1 {
        let mut properties: Map<String, Value> = Map::new();
        for (name, own) in common.into_iter().chain(objects).flatten() {
            let own = in_one_form(own);
            let own = match properties.get(name) {
                Some(known) if Kind::of_schema(known) == Kind::of_schema(&own) => continue,
                Some(_) => json!({}),
                None => own,
            };
            properties.insert(name.clone(), own);
        }
        return json!({ "type": "object", "properties": properties });
    }
    let mut schema = schema.clone();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for own in properties.values_mut() {
            *own = in_one_form(own);
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(items: &Value, format: Format) -> Table {
        Table { format, columns: Column::of_schema(&in_one_form(items)) }
    }

    /// Proves that a line that is no JSON is an error, not an empty row.
    #[test]
    fn lines_that_are_no_json() {
        let items_of =
            |lines: &[&'static str]| items_of_lines(&lines.iter().map(|line| Bytes::from_static(line.as_bytes())).collect::<Vec<_>>());
        assert_eq!(items_of(&["{\"seq\":1}", "2"]).unwrap(), [json!({ "seq": 1 }), json!(2)]);
        assert_eq!(items_of(&["{\"seq\":1}", "{\"seq\":"]).unwrap_err().code, ErrorCode::Internal);
    }

    /// Proves that the fields of every form of a record are columns, that a field with two types keeps both, and that a table is complete in both formats,
    /// also without rows.
    #[test]
    fn forms_of_a_record() {
        let whole = json!({ "type": "object", "properties": { "id": { "type": "string" }, "amount": { "type": "integer" } } });
        let redacted = json!({ "type": "object", "properties": { "amount": { "type": "string" }, "state": { "type": "string" } } });
        let items = json!({ "type": "object", "properties": {
            "seq": { "type": "integer" }, "record": { "anyOf": [whole, redacted] }, "day": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
        } });
        let rows = || {
            vec![
                json!({ "seq": 1, "record": { "id": "=a", "amount": 5 }, "day": null }),
                json!({ "seq": 2, "record": { "amount": "5 to 9", "state": "MD" }, "other": 1 }),
            ]
        };
        let csv = table(&items, Format::Csv).file(rows()).unwrap();
        assert_eq!(csv, "day,record.amount,record.id,record.state,seq\r\n,5,'=a,,1\r\n,5 to 9,,MD,2\r\n");
        for rows in [rows(), Vec::new()] {
            let parquet = table(&items, Format::Parquet).file(rows).unwrap();
            assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
        }
    }

    /// Proves that the fields that all kinds of items have are columns next to those of each kind, at any depth.
    #[test]
    fn common_fields_of_several_forms() {
        let kinds = json!([
            { "type": "object", "properties": { "amount": { "type": "integer" } } },
            { "type": "object", "properties": { "phase": { "type": "string" }, "seq": { "type": "integer" } } },
        ]);
        let schema_with = |kinds: &Value| json!({ "type": "object", "properties": { "seq": { "type": "integer" } }, "anyOf": kinds });
        let rows = || vec![json!({ "seq": 1, "amount": 5 }), json!({ "seq": 2, "phase": "2" })];
        assert_eq!(table(&schema_with(&kinds), Format::Csv).file(rows()).unwrap(), "amount,phase,seq\r\n5,,1\r\n,2,2\r\n");
        let one = schema_with(&json!([kinds[0], { "type": "null" }]));
        assert_eq!(table(&one, Format::Csv).file(rows()).unwrap(), "amount,seq\r\n5,1\r\n,2\r\n");
        // Each form may have several forms itself.
        let redacted = json!({ "type": "object", "properties": { "amount": { "type": "integer" } } });
        let nested = json!({ "type": "object", "properties": { "record": { "anyOf": [schema_with(&kinds), redacted] } } });
        let rows = vec![json!({ "record": { "seq": 3, "phase": "1" } })];
        assert_eq!(table(&nested, Format::Csv).file(rows).unwrap(), "record.amount,record.phase,record.seq\r\n,1,3\r\n");
    }

    /// Proves that items that are no objects have one column, and that each form of a page has its own ETag.
    #[test]
    fn items_without_fields() {
        let table = table(&json!({ "type": "string" }), Format::Csv);
        assert_eq!(table.file(vec![json!("a"), json!(7), json!("-1"), Value::Null]).unwrap(), "value\r\na\r\n7\r\n'-1\r\n\r\n");
        assert_eq!(table.file(Vec::new()).unwrap(), "value\r\n");
        assert_eq!((table.etag("\"x-lines\"").as_str(), table.content_type()), ("\"x-lines-csv\"", "text/csv; charset=utf-8"));
    }

    /// Proves that lists of objects, objects without named fields, and missing and null values are fields of their own, and that the header is the same
    /// with and without rows.
    #[test]
    fn nested_values() {
        let owner = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
        let items = json!({ "type": "object", "properties": {
            "id": { "type": "string" },
            "owners": { "type": "array", "items": owner },
            "place": { "anyOf": [owner, { "type": "null" }] },
            "data": { "type": "object" },
        } });
        let rows = vec![
            json!({ "id": "a", "owners": [{ "name": "=1" }, null], "place": { "name": "@b" }, "data": { "x": 1 } }),
            json!({ "id": null, "owners": null, "place": null }),
            json!({ "owners": [] }),
        ];
        let header = "data,id,owners,place.name\r\n";
        let first = "\"{\"\"x\"\":1}\",a,\"[{\"\"name\"\":\"\"=1\"\"},null]\",'@b\r\n";
        let table = table(&items, Format::Csv);
        assert_eq!(table.file(rows).unwrap(), format!("{header}{first},,,\r\n,,[],\r\n"));
        assert_eq!(table.file(Vec::new()).unwrap(), header);
    }

    /// Proves that an item that is no row is an error, and not an empty row.
    #[test]
    fn no_rows() {
        for line in ["", "{\"seq\":", "nul", "{} {}"] {
            let refusal = items_of_lines(&[Bytes::from_static(b"{}"), Bytes::from(line)]).unwrap_err();
            assert_eq!(refusal.code, ErrorCode::Internal, "{line}");
        }
        let items = json!({ "type": "object", "properties": { "seq": { "type": "integer" } } });
        for format in [Format::Csv, Format::Parquet] {
            for item in [Value::Null, json!([]), json!("a"), json!(1)] {
                assert_eq!(table(&items, format).file(vec![json!({}), item]).unwrap_err().code, ErrorCode::Internal);
            }
        }
    }
}
