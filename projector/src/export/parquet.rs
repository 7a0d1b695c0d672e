//! Writes rows as an Apache Parquet file, in row groups, so that memory use does not depend on the size of the topic.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use schemas::topics::{Topic, TopicKind};
use serde_json::Value;

use super::{Row, RowWriter, Sink};
use crate::Error;

/// The number of rows in a row group.
const GROUP_ROWS: usize = 10_000;

/// The columns that hold integers.
const INTS: [&str; 4] = ["partition", "offset", "version", "seq"];

/// The columns of a topic's export, in their order. `run` is empty unless run events are exported.
fn columns(topic: &Topic) -> &'static [&'static str] {
    match topic.kind {
        TopicKind::Facts | TopicKind::Commands => &[
            "topic",
            "partition",
            "offset",
            "id",
            "kind",
            "key",
            "version",
            "observedAt",
            "upstream",
            "contentHash",
            "prevHash",
            "supersededBy",
            "data",
            "run",
        ],
        TopicKind::Changes => {
            &["topic", "partition", "offset", "seq", "hash", "prevHash", "event", "id", "recordedAt", "input", "record", "before", "reason"]
        }
        TopicKind::Rejects => &["topic", "partition", "offset", "upstream", "stream", "reference", "reason", "rejectedAt", "truncated"],
        TopicKind::Imports => &[],
    }
}

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
pub(super) struct Table<'a> {
    columns: &'static [&'static str],
    rows: Vec<Row>,
    file: SerializedFileWriter<Out<'a>>,
}

impl<'a> Table<'a> {
    pub(super) fn new(topic: &Topic, sink: Sink<'a>) -> Result<Self, Error> {
        let columns = columns(topic);
        let file = schema(columns).and_then(|schema| {
            let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
            SerializedFileWriter::new(Out(sink), Arc::new(schema), Arc::new(properties))
        });
        Ok(Self { columns, rows: Vec::with_capacity(GROUP_ROWS), file: file.map_err(failed)? })
    }

    fn group(&mut self) -> Result<(), ParquetError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for name in self.columns {
            let value = |row: &Row| row.iter().find(|(column, _)| column == name).map(|(_, value)| value.clone()).unwrap_or(Value::Null);
            let Some(mut column) = group.next_column()? else { break };
            let values: Vec<Value> = self.rows.iter().map(value).collect();
            let present: Vec<i16> = values.iter().map(|value| i16::from(!value.is_null())).collect();
            if INTS.contains(name) {
                let ints: Vec<i64> = values.iter().filter_map(Value::as_i64).collect();
                column.typed::<Int64Type>().write_batch(&ints, Some(&present), None)?;
            } else {
                let texts: Vec<ByteArray> = values.into_iter().filter_map(text).collect();
                column.typed::<ByteArrayType>().write_batch(&texts, Some(&present), None)?;
            }
            column.close()?;
        }
        group.close()?;
        self.rows.clear();
        Ok(())
    }
}

impl RowWriter for Table<'_> {
    fn row(&mut self, row: Row) -> Result<bool, Error> {
        self.rows.push(row);
        if self.rows.len() < GROUP_ROWS {
            return Ok(true);
        }
        self.group().map(|()| true).map_err(failed)
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.group().map_err(failed)?;
        self.file.finish().map(|_| ()).map_err(failed)
    }
}

fn schema(columns: &[&str]) -> Result<Type, ParquetError> {
    let mut fields = Vec::with_capacity(columns.len());
    for name in columns {
        let field = if INTS.contains(name) {
            Type::primitive_type_builder(name, Physical::INT64)
        } else {
            Type::primitive_type_builder(name, Physical::BYTE_ARRAY).with_logical_type(Some(LogicalType::String))
        };
        fields.push(Arc::new(field.with_repetition(Repetition::OPTIONAL).build()?));
    }
    Type::group_type_builder("export").with_fields(fields).build()
}

fn text(value: Value) -> Option<ByteArray> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(ByteArray::from(text.into_bytes())),
        other => Some(ByteArray::from(other.to_string().into_bytes())),
    }
}

fn failed(error: ParquetError) -> Error {
    Error::Refused(format!("the parquet file cannot be written: {error}"))
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;
    use schemas::topics::RECALLS;
    use serde_json::json;

    use super::*;

    /// Proves that rows in several row groups read back, and that absent values are nulls.
    #[test]
    fn rows_read_back() {
        let mut bytes = Vec::new();
        let mut sink = |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            true
        };
        let mut table = Table::new(&RECALLS, &mut sink).unwrap();
        for i in 0..GROUP_ROWS + 5 {
            assert!(table.row(vec![("topic", json!("recalls")), ("offset", json!(i)), ("data", json!({"title": "x"}))]).unwrap());
        }
        table.finish().unwrap();
        drop(table);
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        assert_eq!(reader.metadata().num_row_groups(), 2);
        let last = reader.get_row_iter(None).unwrap().last().unwrap().unwrap();
        assert_eq!(last.get_long(2).unwrap(), i64::try_from(GROUP_ROWS + 4).unwrap());
        assert_eq!(last.get_string(12).unwrap(), r#"{"title":"x"}"#);
        assert!(last.is_null(13).unwrap());
    }
}
