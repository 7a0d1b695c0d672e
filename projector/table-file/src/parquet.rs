//! Apache Parquet, in row groups, so that memory use does not depend on the number of rows.
//!
//! A column of structures or lists has a Parquet column for each of its leaves. For every row, and every item of a list in it, a leaf has a
//! definition level (how much of the path to the value is present) and a repetition level (which list of the path continues).

use std::io::{self, Write};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::{Date, date};
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use serde_json::Value;

use crate::{Column, Error, Kind, RowWriter, Sink};

/// The number of rows in a row group.
const GROUP_ROWS: usize = 10_000;
/// The most bytes of texts in a row group, before compression.
const GROUP_BYTES: usize = 32 << 20;

/// Writes to a sink that the reader may close.
struct Out<'a>(Sink<'a>);

impl Write for Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if (self.0)(bytes) { Ok(bytes.len()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A Parquet file that is being written.
pub(crate) struct Table<'a> {
    columns: Vec<Column>,
    /// The leaves of the columns, in their order.
    leaves: Vec<Leaf>,
    rows: usize,
    bytes: usize,
    file: SerializedFileWriter<Out<'a>>,
}

/// The values of one Parquet column in the current row group.
struct Leaf {
    is_repeated: bool,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
    values: Values,
}

/// The values that are present.
enum Values {
    Text(Vec<ByteArray>),
    Int(Vec<i64>),
    Float(Vec<f64>),
    Bool(Vec<bool>),
    Day(Vec<i32>),
    Time(Vec<i64>),
}

impl<'a> Table<'a> {
    pub(crate) fn new(columns: Vec<Column>, sink: Sink<'a>) -> Result<Self, Error> {
        let fields = columns.iter().map(|column| field(&column.name, &column.kind)).collect::<Result<_, _>>()?;
        let schema = Type::group_type_builder("export").with_fields(fields).build()?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let file = SerializedFileWriter::new(Out(sink), Arc::new(schema), Arc::new(properties))?;
        let mut leaves = Vec::new();
        columns.iter().for_each(|column| add_leaves(&column.kind, false, &mut leaves));
        Ok(Self { columns, leaves, rows: 0, bytes: 0, file })
    }

    /// Writes the rows that were collected as a row group.
    fn group(&mut self) -> Result<(), ParquetError> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for leaf in &mut self.leaves {
            let Some(mut column) = group.next_column()? else { break };
            leaf.write(&mut column)?;
            column.close()?;
        }
        group.close()?;
        // Otherwise it would be noticed late that the reader is gone.
        self.file.flush()?;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }
}

impl RowWriter for Table<'_> {
    fn row(&mut self, row: Vec<Value>) -> Result<bool, Error> {
        let mut leaves = self.leaves.as_mut_slice();
        for (column, value) in self.columns.iter().zip(&row) {
            let (own, rest) = leaves.split_at_mut(column.kind.leaves().min(leaves.len()));
            self.bytes += add(&column.kind, value, Level::default(), own);
            leaves = rest;
        }
        self.rows += 1;
        if self.rows >= GROUP_ROWS || self.bytes >= GROUP_BYTES {
            match self.group() {
                Err(ParquetError::External(cause)) if is_closed(&*cause) => return Ok(false),
                written => written?,
            }
        }
        Ok(true)
    }

    fn finish(&mut self) -> Result<(), Error> {
        match self.group().and_then(|()| self.file.finish().map(|_| ())) {
            Err(ParquetError::External(cause)) if is_closed(&*cause) => Ok(()),
            written => Ok(written?),
        }
    }
}

/// Whether an error says that the reader of the file is gone.
fn is_closed(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The Parquet type of a column.
fn field(name: &str, kind: &Kind) -> Result<TypePtr, ParquetError> {
    let primitive = |physical, logical| {
        Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL).with_logical_type(logical).build()
    };
    let column = match kind {
        Kind::Text | Kind::Json => primitive(Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Int => primitive(Physical::INT64, None),
        Kind::Float => primitive(Physical::DOUBLE, None),
        Kind::Bool => primitive(Physical::BOOLEAN, None),
        Kind::Day => primitive(Physical::INT32, Some(LogicalType::Date)),
        Kind::Time => primitive(Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MILLIS))),
        Kind::Struct(fields) => {
            let fields = fields.iter().map(|inner| field(&inner.name, &inner.kind)).collect::<Result<_, _>>()?;
            Type::group_type_builder(name).with_repetition(Repetition::OPTIONAL).with_fields(fields).build()
        }
        Kind::List(items) => {
            let element = field("element", items)?;
            let list = Type::group_type_builder("list").with_repetition(Repetition::REPEATED).with_fields(vec![element]).build()?;
            let list = Type::group_type_builder(name).with_repetition(Repetition::OPTIONAL).with_fields(vec![Arc::new(list)]);
            list.with_logical_type(Some(LogicalType::List)).build()
        }
    };
    column.map(Arc::new)
}

impl Kind {
    /// The number of leaves.
    fn leaves(&self) -> usize {
        match self {
            Self::Struct(fields) => fields.iter().map(|field| field.kind.leaves()).sum(),
            Self::List(items) => items.leaves(),
            _ => 1,
        }
    }
}

/// Adds the leaves of a type.
fn add_leaves(kind: &Kind, is_repeated: bool, leaves: &mut Vec<Leaf>) {
    let values = match kind {
        Kind::Struct(fields) => return fields.iter().for_each(|field| add_leaves(&field.kind, is_repeated, leaves)),
        Kind::List(items) => return add_leaves(items, true, leaves),
        Kind::Text | Kind::Json => Values::Text(Vec::new()),
        Kind::Int => Values::Int(Vec::new()),
        Kind::Float => Values::Float(Vec::new()),
        Kind::Bool => Values::Bool(Vec::new()),
        Kind::Day => Values::Day(Vec::new()),
        Kind::Time => Values::Time(Vec::new()),
    };
    leaves.push(Leaf { is_repeated, definitions: Vec::new(), repetitions: Vec::new(), values });
}

/// Where a value is.
#[derive(Clone, Copy, Default)]
struct Level {
    /// How much of the path to the value is present.
    definition: i16,
    /// Which list of the path continues with the value; 0 for a new row.
    repetition: i16,
    /// How many lists the path has.
    lists: i16,
}

/// Adds a value to the leaves of its type. Returns the bytes of its texts.
fn add(kind: &Kind, value: &Value, at: Level, leaves: &mut [Leaf]) -> usize {
    match (kind, value) {
        (Kind::Struct(fields), Value::Object(values)) => {
            let (inner, mut rest, mut bytes) = (Level { definition: at.definition + 1, ..at }, leaves, 0);
            for field in fields {
                let (own, others) = rest.split_at_mut(field.kind.leaves().min(rest.len()));
                bytes += add(&field.kind, values.get(&field.name).unwrap_or(&Value::Null), inner, own);
                rest = others;
            }
            bytes
        }
        (Kind::List(items), Value::Array(values)) => {
            if values.is_empty() {
                add_missing(Level { definition: at.definition + 1, ..at }, leaves);
            }
            let lists = at.lists + 1;
            let inner = |i: usize| Level { definition: at.definition + 2, repetition: if i == 0 { at.repetition } else { lists }, lists };
            values.iter().enumerate().map(|(i, value)| add(items, value, inner(i), leaves)).sum()
        }
        (Kind::Struct(_) | Kind::List(_), _) => {
            add_missing(at, leaves);
            0
        }
        _ => leaves.first_mut().map_or(0, |leaf| leaf.push(value, kind == &Kind::Json, at)),
    }
}

/// Adds to each leaf that there is no value.
fn add_missing(at: Level, leaves: &mut [Leaf]) {
    for leaf in leaves {
        leaf.definitions.push(at.definition);
        leaf.repetitions.push(at.repetition);
    }
}

impl Leaf {
    /// Adds a value. One that is not of the leaf's type is missing. Returns the bytes of a text.
    fn push(&mut self, value: &Value, is_json: bool, at: Level) -> usize {
        let mut bytes = 0;
        let is_present = match &mut self.values {
            Values::Text(values) => {
                let text = match value {
                    Value::Null => None,
                    Value::String(text) if !is_json => Some(text.clone()),
                    other => Some(other.to_string()),
                };
                bytes = text.as_ref().map_or(0, String::len);
                push(values, text.map(|text| ByteArray::from(text.into_bytes())))
            }
            Values::Int(values) => push(values, value.as_i64()),
            Values::Float(values) => push(values, value.as_f64()),
            Values::Bool(values) => push(values, value.as_bool()),
            Values::Day(values) => push(values, value.as_str().and_then(day)),
            Values::Time(values) => push(values, value.as_str().and_then(|text| Some(text.parse::<Timestamp>().ok()?.as_millisecond()))),
        };
        self.definitions.push(at.definition + i16::from(is_present));
        self.repetitions.push(at.repetition);
        bytes
    }

    /// Writes the values and forgets them.
    fn write(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let definitions = Some(self.definitions.as_slice());
        let repetitions = self.is_repeated.then_some(self.repetitions.as_slice());
        match &self.values {
            Values::Text(values) => column.typed::<ByteArrayType>().write_batch(values, definitions, repetitions)?,
            Values::Int(values) | Values::Time(values) => column.typed::<Int64Type>().write_batch(values, definitions, repetitions)?,
            Values::Float(values) => column.typed::<DoubleType>().write_batch(values, definitions, repetitions)?,
            Values::Bool(values) => column.typed::<BoolType>().write_batch(values, definitions, repetitions)?,
            Values::Day(values) => column.typed::<Int32Type>().write_batch(values, definitions, repetitions)?,
        };
        self.definitions.clear();
        self.repetitions.clear();
        match &mut self.values {
            Values::Text(values) => values.clear(),
            Values::Int(values) | Values::Time(values) => values.clear(),
            Values::Float(values) => values.clear(),
            Values::Bool(values) => values.clear(),
            Values::Day(values) => values.clear(),
        }
        Ok(())
    }
}

/// Adds a value if there is one, and returns whether there is.
fn push<T>(values: &mut Vec<T>, value: Option<T>) -> bool {
    let is_present = value.is_some();
    values.extend(value);
    is_present
}

/// The days of a date since 1970.
fn day(text: &str) -> Option<i32> {
    let day: Date = text.parse().ok()?;
    (text.len() == 10).then(|| day.since(date(1970, 1, 1)).ok().map(|span| span.get_days()))?
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::{Field, Row};
    use serde_json::json;

    use super::*;
    use crate::{Format, writer};

    fn json_of(row: &Row) -> Value {
        row.get_column_iter().map(|(name, field)| (name.clone(), json_of_field(field))).collect()
    }

    fn json_of_field(field: &Field) -> Value {
        match field {
            Field::Null => Value::Null,
            Field::Bool(value) => json!(value),
            Field::Date(days) => json!({ "days": days }),
            Field::TimestampMillis(ms) => json!({ "ms": ms }),
            Field::Long(value) => json!(value),
            Field::Double(value) => json!(value),
            Field::Str(text) => json!(text),
            Field::Group(row) => json_of(row),
            Field::ListInternal(list) => list.elements().iter().map(json_of_field).collect(),
            other => panic!("{other} is of an unexpected type"),
        }
    }

    fn read(columns: Vec<Column>, rows: Vec<Vec<Value>>) -> (usize, Vec<Value>) {
        let mut bytes = Vec::new();
        let mut sink = |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            true
        };
        let mut writer = writer(Format::Parquet, columns, &mut sink).unwrap();
        for row in rows {
            assert!(writer.row(row).unwrap());
        }
        writer.finish().unwrap();
        drop(writer);
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        (reader.metadata().num_row_groups(), reader.get_row_iter(None).unwrap().map(|row| json_of(&row.unwrap())).collect())
    }

    /// Proves that rows in several row groups read back, and that values that are missing or of another type are nulls.
    #[test]
    fn row_groups() {
        let columns = vec![Column::new("n", Kind::Int), Column::new("data", Kind::Json), Column::new("none", Kind::Text)];
        let rows = (0..GROUP_ROWS + 5).map(|i| vec![json!(i), json!({"title": "x"}), Value::Null]).collect();
        let (groups, rows) = read(columns, rows);
        assert_eq!((groups, rows.len()), (2, GROUP_ROWS + 5));
        assert_eq!(rows[GROUP_ROWS + 4], json!({"n": GROUP_ROWS + 4, "data": "{\"title\":\"x\"}", "none": null}));
    }

    /// Proves that every type reads back: dates, times, numbers, and structures and lists in one another, with missing and empty ones.
    #[test]
    fn nested_types() {
        let owner = Kind::Struct(vec![
            Column::new("cik", Kind::Text),
            Column::new("shares", Kind::Float),
            Column::new("roles", Kind::List(Box::new(Kind::Text))),
        ]);
        let columns = || {
            vec![
                Column::new("day", Kind::Day),
                Column::new("at", Kind::Time),
                Column::new("ok", Kind::Bool),
                Column::new("owners", Kind::List(Box::new(owner.clone()))),
                Column::new("place", Kind::Struct(vec![Column::new("zip", Kind::Int)])),
            ]
        };
        let owners = json!([{"cik": "1", "shares": 1.5, "roles": ["a", "b"]}, {"cik": "2", "shares": null, "roles": []}, null]);
        let rows = vec![
            vec![json!("2026-11-19"), json!("2026-11-19T08:30:00.5Z"), json!(true), owners.clone(), json!({"zip": 20500})],
            vec![json!(""), json!("soon"), Value::Null, json!([]), json!({"zip": null})],
            vec![json!("1969-12-31"), json!("1969-12-31T23:59:59Z"), json!(false), Value::Null, Value::Null],
        ];
        let (_, read) = read(columns(), rows);
        assert_eq!((&read[0]["owners"], &read[0]["ok"], &read[0]["place"]), (&owners, &json!(true), &json!({"zip": 20500})));
        assert_eq!((&read[0]["day"], &read[0]["at"]), (&json!({"days": 20_776}), &json!({"ms": 1_795_077_000_500_i64})));
        assert_eq!(read[1], json!({"day": null, "at": null, "ok": null, "owners": [], "place": {"zip": null}}));
        assert_eq!((&read[2]["day"], &read[2]["at"]), (&json!({"days": -1}), &json!({"ms": -1_000})));
        assert_eq!((&read[2]["owners"], &read[2]["place"]), (&Value::Null, &Value::Null));
    }

    /// Proves that a reader who goes away ends the file without an error.
    #[test]
    fn closed_reader() {
        let mut sink = |_: &[u8]| false;
        let mut table = Table::new(vec![Column::new("n", Kind::Int)], &mut sink).unwrap();
        let wanted: Vec<bool> = (0..GROUP_ROWS).map(|i| table.row(vec![json!(i)]).unwrap()).collect();
        assert_eq!((wanted.first(), wanted.last()), (Some(&true), Some(&false)));
    }
}
