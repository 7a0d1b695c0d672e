//! Files as answers, on disk or in memory. They are sent whole or in part.

use std::any::Any;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::Bytes;

/// A file that is complete and does not change.
#[derive(Clone)]
pub struct FileBody {
    /// The media type.
    pub media_type: &'static str,
    /// The name under which clients save it.
    pub name: String,
    /// The length in bytes.
    pub length: u64,
    /// What to know about the file; `None` if there is nothing.
    pub note: Option<String>,
    content: Content,
    /// What the file holds until it is sent.
    _held: Arc<dyn Any + Send + Sync>,
}

/// Where the bytes of a file are.
#[derive(Clone)]
enum Content {
    Disk(Arc<File>),
    Memory(Bytes),
}

impl fmt::Debug for FileBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileBody").field("name", &self.name).field("length", &self.length).finish_non_exhaustive()
    }
}

impl FileBody {
    /// An open file. `held` is dropped when the file is sent.
    ///
    /// # Errors
    /// When its length cannot be read.
    pub fn new(media_type: &'static str, name: String, file: Arc<File>, held: impl Any + Send + Sync) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { media_type, name, length, note: None, content: Content::Disk(file), _held: Arc::new(held) })
    }

    /// A small file that is made for the answer.
    #[must_use]
    pub fn of_bytes(media_type: &'static str, name: String, bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { media_type, name, length: bytes.len() as u64, note: None, content: Content::Memory(bytes), _held: Arc::new(()) }
    }

    /// Reads bytes from a position, at most `bytes_max`.
    ///
    /// # Errors
    /// When the file cannot be read, or ends before its length.
    pub async fn read(&self, at: u64, bytes_max: usize) -> io::Result<Bytes> {
        let file = match &self.content {
            Content::Disk(file) => Arc::clone(file),
            Content::Memory(bytes) => {
                let at = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                let piece = bytes.slice(at..at.saturating_add(bytes_max).min(bytes.len()));
                return if piece.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(piece) };
            }
        };
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = vec![0; bytes_max];
            let count = file.read_at(&mut bytes, at)?;
            bytes.truncate(count);
            if count == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(Bytes::from(bytes)) }
        });
        read.await.map_err(io::Error::other)?
    }
}
