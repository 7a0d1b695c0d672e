//! What a writer of rows does in every format.

use serde_json::Value;

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
