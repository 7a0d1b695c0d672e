//! Files that are sent while they are made, at the pace of their reader.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::mpsc;

/// How many pieces wait for the reader.
const PIECES_WAITING_MAX: usize = 1;

/// A file that is made while it is sent. Its length is not known, so it is sent whole. A file that could not be made to its end ends with an error, so that
/// nobody takes it for a complete one.
#[derive(Clone)]
pub struct StreamBody {
    /// The media type.
    pub media_type: &'static str,
    /// The name under which clients save it.
    pub name: String,
    /// What to know about the file, which is no part of it.
    pub note: Option<String>,
    /// They are read once.
    pieces: Arc<Mutex<Option<StreamPieces>>>,
}

/// The pieces of a file, in their order.
pub struct StreamPieces {
    /// `None` stands for the end of the file: a channel also closes when what makes the file fails.
    received: mpsc::Receiver<io::Result<Option<Bytes>>>,
    is_over: bool,
}

/// Sends the pieces of a file to its reader.
pub struct PieceSender(mpsc::Sender<io::Result<Option<Bytes>>>);

impl fmt::Debug for StreamBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamBody").field("name", &self.name).finish_non_exhaustive()
    }
}

impl StreamBody {
    /// A file whose pieces are those that are sent.
    #[must_use]
    pub fn new(media_type: &'static str, name: String) -> (Self, PieceSender) {
        let (sender, received) = mpsc::channel(PIECES_WAITING_MAX);
        let pieces = StreamPieces { received, is_over: false };
        (Self { media_type, name, note: None, pieces: Arc::new(Mutex::new(Some(pieces))) }, PieceSender(sender))
    }

    /// Takes the pieces, to read them. Whoever takes them again gets an error instead of a file.
    #[must_use]
    pub fn take(&self) -> StreamPieces {
        let pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner).take();
        pieces.unwrap_or_else(|| StreamPieces { received: mpsc::channel(PIECES_WAITING_MAX).1, is_over: false })
    }
}

impl StreamPieces {
    /// The next piece, as soon as it is made; `None` at the end of the file. After an error nothing follows.
    pub async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if self.is_over {
            return None;
        }
        let next = match self.received.recv().await {
            Some(Ok(Some(piece))) => return Some(Ok(piece)),
            Some(Ok(None)) => None,
            Some(Err(error)) => Some(Err(error)),
            None => Some(Err(io::ErrorKind::UnexpectedEof.into())),
        };
        self.is_over = true;
        next
    }
}

impl PieceSender {
    /// Sends a piece as soon as the reader has taken the pieces before it. Returns false when the reader is gone.
    pub async fn send(&self, piece: Bytes) -> bool {
        self.0.send(Ok(Some(piece))).await.is_ok()
    }

    /// Ends the file: it is complete, or could not be made to its end.
    pub async fn end(self, result: io::Result<()>) {
        // A reader who is gone needs no end.
        drop(self.0.send(result.map(|()| None)).await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(body: &StreamBody) -> (Vec<u8>, bool) {
        let (mut pieces, mut bytes) = (body.take(), Vec::new());
        while let Some(piece) = pieces.next().await {
            match piece {
                Ok(piece) => bytes.extend_from_slice(&piece),
                Err(_) => return (bytes, pieces.next().await.is_none()),
            }
        }
        assert!(pieces.next().await.is_none());
        (bytes, false)
    }

    /// Proves that a file has all its pieces in their order, and that one that fails, is left unfinished or is read again ends with an error.
    #[tokio::test]
    async fn only_complete_files_end_well() {
        for (end, is_error) in [(Some(Ok(())), false), (Some(Err(io::Error::other("gone"))), true), (None, true)] {
            let (body, sender) = StreamBody::new("text/csv", "a.csv".to_owned());
            let making = async {
                for piece in ["a", "b", "c"] {
                    assert!(sender.send(Bytes::from(piece)).await);
                }
                match end {
                    Some(end) => sender.end(end).await,
                    None => drop(sender),
                }
            };
            let ((), found) = tokio::join!(making, read(&body));
            assert_eq!(found, (b"abc".to_vec(), is_error));
            assert_eq!(read(&body).await, (Vec::new(), true), "it is read once");
        }
    }

    /// Proves that a piece waits until the reader has taken the ones before it, and that the maker learns that the reader is gone.
    #[tokio::test]
    async fn pieces_wait_for_the_reader() {
        let (body, sender) = StreamBody::new("text/csv", "a.csv".to_owned());
        let mut pieces = body.take();
        let sent = tokio::spawn(async move {
            let mut sent = 0;
            while sender.send(Bytes::from_static(b"x")).await {
                sent += 1;
            }
            sent
        });
        assert!(pieces.next().await.unwrap().is_ok());
        drop(pieces);
        let sent = sent.await.unwrap();
        assert!((1..=2 + PIECES_WAITING_MAX).contains(&sent), "{sent}");
    }
}
