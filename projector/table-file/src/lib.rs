//! Tables of typed columns as NDJSON, CSV and Parquet files, row by row, for exports of topics and of records.
//!
//! Promises: memory use does not depend on the number of rows. A file is complete once [`RowWriter::finish`] has returned.

mod columns;
mod csv;
mod ndjson;
mod parquet;

pub use columns::{Column, Kind};
pub use csv::add_field as add_csv_field;
use serde_json::Value;

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

/// A file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("the parquet file cannot be written")]
pub struct Error(#[from] ::parquet::errors::ParquetError);

/// Consumes the bytes of a file; returns false when its reader is gone.
pub type Sink<'a> = &'a mut (dyn FnMut(&[u8]) -> bool + Send);

/// Writes the rows of one file.
pub trait RowWriter: Send {
    /// Writes a row: the values of the columns, in their order; `null` for a missing one. Returns false when the reader of the file is gone.
    ///
    /// # Errors
    /// When the file cannot be written.
    fn row(&mut self, row: Vec<Value>) -> Result<bool, Error>;

    /// Completes the file.
    ///
    /// # Errors
    /// When the file cannot be written.
    fn finish(&mut self) -> Result<(), Error> {
        Ok(())
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
