//! Files that are sent while they are written: tables of typed rows, as CSV, NDJSON or Parquet.
//!
//! Promise: memory use does not depend on the length of a file. An error ends a file before its end, which its reader notices.

use std::io;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use operation::FileBody;
use serde_json::Value;
use table_file::{Column, Format};
use tokio::sync::{SemaphorePermit, mpsc};

/// A piece of a file is sent when it has this size, in bytes.
const PIECE_BYTES: usize = 64 << 10;
/// How many pieces may wait for a slow reader.
const PIECES_WAITING_MAX: usize = 4;

/// The rows of a file, read part by part.
pub trait FileRows: Send + 'static {
    /// The next rows, each with the values of the columns in their order; none at the end.
    ///
    /// # Errors
    /// When they cannot be read.
    fn next(&mut self) -> impl Future<Output = io::Result<Vec<Vec<Value>>>> + Send;
}

/// A file that is written from now on, at the pace of its reader. The permit is held until it is written.
#[must_use]
pub fn file(name: String, format: Format, columns: Vec<Column>, rows: impl FileRows, permit: SemaphorePermit<'static>) -> FileBody {
    let (sender, pieces) = mpsc::channel(PIECES_WAITING_MAX);
    tokio::spawn(send(rows, columns, format, sender, permit));
    FileBody::new(format.media_type(), name, pieces)
}

/// Writes a file piece by piece.
async fn send(
    mut rows: impl FileRows,
    columns: Vec<Column>,
    format: Format,
    sender: mpsc::Sender<io::Result<Bytes>>,
    _permit: SemaphorePermit<'static>,
) {
    let written = Mutex::new(Vec::with_capacity(2 * PIECE_BYTES));
    let take = || std::mem::take(&mut *written.lock().unwrap_or_else(PoisonError::into_inner));
    let mut sink = |bytes: &[u8]| {
        written.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        true
    };
    let sent = async {
        let mut writer = table_file::writer(format, columns, &mut sink).map_err(io::Error::other)?;
        loop {
            let batch = rows.next().await?;
            if batch.is_empty() {
                break;
            }
            for row in batch {
                writer.row(row).map_err(io::Error::other)?;
            }
            let is_full = written.lock().unwrap_or_else(PoisonError::into_inner).len() >= PIECE_BYTES;
            if is_full && sender.send(Ok(take().into())).await.is_err() {
                return Ok(());
            }
        }
        writer.finish().map_err(io::Error::other)?;
        drop(writer);
        let _closed = sender.send(Ok(take().into())).await;
        Ok(())
    };
    let sent: io::Result<()> = sent.await;
    if let Err(error) = sent {
        tracing::error!(%error, "a file could not be written");
        let _closed = sender.send(Err(error)).await;
    }
}

#[cfg(test)]
mod tests {
    use table_file::Kind;
    use tokio::sync::Semaphore;

    use super::*;

    static PERMITS: Semaphore = Semaphore::const_new(1);

    /// So many parts of one row each, then an error if there is one.
    struct Parts {
        left: usize,
        text: String,
        error: Option<io::Error>,
    }

    impl FileRows for Parts {
        async fn next(&mut self) -> io::Result<Vec<Vec<Value>>> {
            if self.left == 0 {
                return self.error.take().map_or(Ok(Vec::new()), Err);
            }
            self.left -= 1;
            Ok(vec![vec![self.text.as_str().into()]])
        }
    }

    /// Proves that a large file comes in several pieces which join to the whole, that an error is passed to the reader, and that the permit is free again
    /// when the file is written or its reader is gone.
    #[tokio::test]
    async fn pieces_join() {
        let begin = async |left: usize, error: Option<io::Error>| {
            let permit = PERMITS.acquire().await.unwrap();
            let rows = Parts { left, text: format!("={}", "x".repeat(1_000)), error };
            file("a.csv".to_owned(), Format::Csv, vec![Column::new("text", Kind::Text)], rows, permit).take().unwrap()
        };
        let (mut pieces, mut whole, mut count) = (begin(200, None).await, Vec::new(), 0);
        while let Some(piece) = pieces.recv().await {
            whole.extend_from_slice(&piece.unwrap());
            count += 1;
        }
        assert_eq!(String::from_utf8(whole).unwrap(), format!("text\r\n{}", format!("'={}\r\n", "x".repeat(1_000)).repeat(200)));
        assert_eq!(count, 4);
        let mut failing = begin(1, Some(io::Error::other("gone"))).await;
        assert!(failing.recv().await.unwrap().is_err() && failing.recv().await.is_none());
        drop(begin(1_000, None).await);
        assert!(PERMITS.acquire().await.is_ok());
    }
}
