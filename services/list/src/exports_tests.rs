//! What the files of every service hold: a Parquet type for each type that the schemas of the records state.

use std::collections::BTreeMap;

use bytes::Bytes;
use catalysts::record::{Catalyst, Window};
use jiff::civil::{Date, date};
use labs::record::Lead;
use parquet::basic::{LogicalType, Type as Physical};
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde::Serialize;
use serde_json::{Map, Value};
use table_file::{Column, Format};

use reads::registration::Registration;

/// The fields that hold a date or a word instead of it.
const DATES_OR_WORDS: [&str; 1] = ["terminationDate"];

/// The schema of a service's records, as its answers state it.
fn record_schema(service: &Registration) -> Value {
    let record = service.service.operations.iter().find(|operation| operation.name == "record").unwrap();
    let schema = &record.output["properties"]["record"];
    // Below some tier a redacted form is shown.
    schema["anyOf"].get(0).unwrap_or(schema).clone()
}

/// The branch of a schema that describes values: not null, not the empty text.
fn of_values(schema: &Value) -> Option<&Value> {
    let Some(branches) = schema["anyOf"].as_array() else { return Some(schema) };
    let mut values = branches.iter().filter(|branch| branch["type"] != "null" && branch.get("const").is_none_or(|text| text != ""));
    values.next().filter(|_| values.next().is_none())
}

/// The type of a schema without null.
fn type_of(schema: &Value) -> &str {
    let types = schema["type"].as_array();
    let kind = types.and_then(|types| types.iter().find(|kind| **kind != "null")).unwrap_or(&schema["type"]);
    kind.as_str().unwrap_or_default()
}

/// Adds the Parquet type that each leaf of a schema must have, by its path.
fn expect(path: &str, schema: &Value, out: &mut BTreeMap<String, &'static str>) {
    let schema = of_values(schema).unwrap_or(&Value::Null);
    let kind = match (type_of(schema), schema["format"].as_str()) {
        ("string", Some("date")) => "DATE",
        ("string", Some("date-time")) => "TIMESTAMP",
        ("integer", _) => "INT64",
        ("number", _) => "DOUBLE",
        ("boolean", _) => "BOOLEAN",
        ("array", _) => return expect(&format!("{path}.list.element"), &schema["items"], out),
        ("object", _) if schema["properties"].as_object().is_some_and(|fields| !fields.is_empty()) => {
            return schema["properties"]
                .as_object()
                .unwrap()
                .iter()
                .for_each(|(name, field)| expect(&format!("{path}.{name}"), field, out));
        }
        _ => "STRING",
    };
    out.insert(path.to_owned(), kind);
}

/// The types of the columns of a Parquet file, by their path.
fn written(columns: Vec<Column>) -> BTreeMap<String, &'static str> {
    let mut bytes = Vec::new();
    let mut sink = |piece: &[u8]| {
        bytes.extend_from_slice(piece);
        true
    };
    let mut writer = table_file::writer(Format::Parquet, columns, &mut sink).unwrap();
    writer.finish().unwrap();
    drop(writer);
    let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
    let leaves = reader.metadata().file_metadata().schema_descr().columns();
    let kind = |logical: Option<&LogicalType>, physical| match (logical, physical) {
        (Some(LogicalType::String), Physical::BYTE_ARRAY) => "STRING",
        (Some(LogicalType::Date), Physical::INT32) => "DATE",
        (Some(LogicalType::Timestamp { .. }), Physical::INT64) => "TIMESTAMP",
        (None, Physical::INT64) => "INT64",
        (None, Physical::DOUBLE) => "DOUBLE",
        (None, Physical::BOOLEAN) => "BOOLEAN",
        other => panic!("{other:?} is of an unexpected type"),
    };
    leaves.iter().map(|leaf| (leaf.path().string(), kind(leaf.logical_type_ref(), leaf.physical_type()))).collect()
}

/// Adds the fields of a schema that hold dates or times by their name or description, but do not say so in their schema.
fn unstated(path: &str, schema: &Value, out: &mut Vec<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let about = field["description"].as_str().unwrap_or_default();
        let is_named = name == "date" || ["Date", "At", "AsOf", "Seen"].iter().any(|end| name.ends_with(end));
        let is_described = ["YYYY-MM-DD", "RFC 3339"].iter().any(|form| about.contains(form)) || about.starts_with("Day ");
        let values = of_values(field).unwrap_or(&Value::Null);
        let is_stated = values["format"].as_str().is_some_and(|format| format.starts_with("date"));
        // A text that is hashed can be of any form, and names its standard.
        let is_text = type_of(values) == "string" && !about.contains("hash") && !about.contains("SHA-256");
        if is_text && (is_named || is_described) && !is_stated && !DATES_OR_WORDS.contains(&name.as_str()) {
            out.push(path.clone());
        }
        unstated(&path, values, out);
        unstated(&path, &values["items"], out);
    }
}

/// Proves for every service that each field of its records has the Parquet type for the type that its schema states, and that every field with dates or
/// times says so.
#[test]
fn parquet_types_are_those_of_the_schemas() {
    let (mut tables, mut dated) = (0, Vec::new());
    for service in crate::registered() {
        let Some(table) = &service.table else { continue };
        let name = service.service.name;
        let schema = record_schema(service);
        let mut expected = BTreeMap::new();
        for (field, schema) in schema["properties"].as_object().unwrap() {
            expect(field, schema, &mut expected);
        }
        expected.extend([("id".to_owned(), "STRING"), ("seq".to_owned(), "INT64"), ("recordedAt".to_owned(), "TIMESTAMP")]);
        let written = written(table.columns());
        assert_eq!(written, expected, "{name}");
        if written.iter().any(|(path, kind)| matches!(*kind, "DATE" | "TIMESTAMP") && path != "recordedAt") {
            dated.push(name);
        }
        let mut missing = Vec::new();
        unstated(name, &schema, &mut missing);
        assert!(missing.is_empty(), "fields with dates or times that do not say so: {missing:?}");
        tables += 1;
    }
    println!("{tables} tables, with dates or times: {dated:?}");
    assert!(["labs", "catalysts", "cadence"].iter().all(|name| dated.contains(name)), "{dated:?}");
}

fn fields<R: Serialize>(record: &R) -> Map<String, Value> {
    serde_json::to_value(record).unwrap().as_object().unwrap().clone()
}

/// Proves that a file shows a record as it is read on the day of the file, and leaves out what lists leave out.
#[test]
fn records_of_a_day() {
    let window = Window { from: "2026-12-01".into(), to: "2026-12-31".into() };
    let upcoming = Catalyst { id: "a".into(), status: "upcoming".into(), window, ..Catalyst::default() };
    let on = |day: Date| reads::exports::listed::<Catalyst>(fields(&upcoming), day).unwrap();
    assert_eq!(on(date(2026, 12, 31)), fields(&upcoming));
    assert_eq!(on(date(2027, 1, 1)), fields(&Catalyst { status: "passed".into(), ..upcoming.clone() }));
    let met = Catalyst { status: "met".into(), ..upcoming };
    assert_eq!(reads::exports::listed::<Catalyst>(fields(&met), date(2027, 1, 1)), Some(fields(&met)));
    let lead = Lead { id: "b".into(), ..Lead::default() };
    assert_eq!(reads::exports::listed::<Lead>(fields(&lead), date(2027, 1, 1)), Some(fields(&lead)));
    assert_eq!(reads::exports::listed::<Lead>(fields(&Lead { withdrawn: true, ..lead }), date(2027, 1, 1)), None);
}
