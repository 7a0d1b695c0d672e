//! Tables of typed columns as NDJSON, CSV and Parquet files, row by row, for exports of topics and of records.
//!
//! Promises: memory use does not depend on the number of rows. A file is complete once [`RowWriter::finish`] has returned.

mod columns;
mod csv;
mod ndjson;
mod parquet;
mod row_writer;

pub use self::row_writer::{Error, RowWriter, Sink};
pub use columns::{Column, Kind};
pub use csv::add_field as add_csv_field;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON object per line.
    Ndjson,
    /// RFC 4180 with a header line. Each field of a structure is a column; lists are JSON.
    Csv,
    /// Apache Parquet with Snappy compression and typed columns, lists and structures included.
    Parquet,
}

impl Format {
    /// The names of the formats, which are also the extensions of files.
    pub const NAMES: [&'static str; 3] = ["ndjson", "csv", "parquet"];

    /// Returns the format with a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "ndjson" => Some(Self::Ndjson),
            "csv" => Some(Self::Csv),
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }

    /// The media type of a file.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Ndjson => "application/x-ndjson",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }
}

/// A writer of a file with these columns.
///
/// # Errors
/// When the file cannot be written.
pub fn writer<'a>(format: Format, columns: Vec<Column>, sink: Sink<'a>) -> Result<Box<dyn RowWriter + 'a>, Error> {
    Ok(match format {
        Format::Ndjson => Box::new(ndjson::Ndjson::new(columns, sink)),
        Format::Csv => Box::new(csv::Csv::new(columns, sink)),
        Format::Parquet => Box::new(parquet::Table::new(columns, sink)?),
    })
}
