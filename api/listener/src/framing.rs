//! Strict parsing of request boundaries: a request that two HTTP parsers could read differently is refused.
//!
//! hyper parses HTTP/1.1 as RFC 9112 allows: it accepts a bare LF as a line end, and ignores a length next to `chunked`. A proxy may parse either of
//! them differently. So the bytes of each connection are parsed here as well, and an ambiguous request is changed so that hyper refuses it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// The longest line that is parsed, in bytes. hyper accepts no longer head.
const LINE_BYTES_MAX: usize = 64 << 10;

/// The read half of a connection, which makes ambiguous requests invalid.
#[derive(Debug)]
pub(super) struct Strict<S> {
    stream: S,
    framing: Framing,
}

impl<S> Strict<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, framing: Framing::default() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Strict<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.framing.at == At::Refused {
            // For hyper, the client has disconnected.
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let read = buffer.filled_mut().get_mut(before..).unwrap_or_default();
        if let Err(at) = self.framing.parse(read) {
            // No line may contain a zero byte: hyper answers 400 and closes the connection.
            read.get_mut(at..).unwrap_or_default().fill(0);
        }
        Poll::Ready(Ok(()))
    }
}

/// What the next byte is part of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    /// A line of a head.
    #[default]
    Head,
    /// A body with the given number of remaining bytes.
    Body(u64),
    /// The line with the size of a chunk.
    Size,
    /// A chunk and its line end, with the given number of remaining bytes.
    Chunk(u64),
    /// A line after the last chunk.
    Trailer,
    /// Not parsed any more, because hyper refuses the request.
    Lost,
    /// Not forwarded any more, because the request is ambiguous.
    Refused,
}

#[derive(Debug, Default)]
struct Framing {
    at: At,
    /// The line so far.
    line: Vec<u8>,
    /// Whether the head has a line already.
    begun: bool,
    /// The last `Content-Length`; `Some(None)` if it is not a number.
    length: Option<Option<u64>>,
    /// How often `Transfer-Encoding` was given.
    encodings: u32,
}

impl Framing {
    /// Parses received bytes.
    ///
    /// # Errors
    /// The start of the ambiguous line.
    fn parse(&mut self, read: &[u8]) -> Result<(), usize> {
        let mut bytes = read;
        while !bytes.is_empty() {
            let at = read.len() - bytes.len();
            match self.at {
                At::Lost | At::Refused => return Ok(()),
                At::Body(left) | At::Chunk(left) => {
                    let taken = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    let left = left - taken as u64;
                    bytes = bytes.get(taken..).unwrap_or_default();
                    self.at = match self.at {
                        At::Chunk(_) if left == 0 => At::Size,
                        At::Chunk(_) => At::Chunk(left),
                        _ if left == 0 => At::Head,
                        _ => At::Body(left),
                    };
                }
                At::Head | At::Size | At::Trailer => {
                    let end = bytes.iter().position(|byte| *byte == b'\n');
                    let (part, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
                    bytes = rest;
                    self.line.extend_from_slice(part);
                    if end.is_none() {
                        if self.line.len() > LINE_BYTES_MAX {
                            self.at = At::Lost;
                        }
                        continue;
                    }
                    let line = std::mem::take(&mut self.line);
                    let is_plain = line.strip_suffix(b"\r\n").is_some_and(|line| self.parse_line(line));
                    if !is_plain {
                        self.at = At::Refused;
                        return Err(at);
                    }
                }
            }
        }
        Ok(())
    }

    /// Parses a line; false if the request is ambiguous.
    fn parse_line(&mut self, line: &[u8]) -> bool {
        match (self.at, line.is_empty()) {
            (At::Size, _) => {
                let mut parts = line.split(|byte| *byte == b';');
                let digits = parts.next().unwrap_or_default();
                // A blank after the size is allowed only before an extension. Another parser may take a size with one for none.
                if parts.next().is_none() && digits.iter().any(u8::is_ascii_whitespace) {
                    return false;
                }
                let size = std::str::from_utf8(digits).ok().and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
                self.at = match size {
                    Some(0) => At::Trailer,
                    Some(size) => At::Chunk(size.saturating_add(2)),
                    None => At::Lost,
                };
                true
            }
            (At::Trailer, is_last) => {
                self.at = if is_last { At::Head } else { At::Trailer };
                true
            }
            // Empty lines may come before a request.
            (_, true) if !self.begun => true,
            (_, true) => {
                let (length, encodings) = (self.length.take(), std::mem::take(&mut self.encodings));
                self.begun = false;
                self.at = match length {
                    _ if encodings > 0 => At::Size,
                    Some(None) => At::Lost,
                    Some(Some(length)) if length > 0 => At::Body(length),
                    _ => At::Head,
                };
                // Two encodings, or an encoding next to a length: another parser may use the other one.
                encodings == 0 || (encodings == 1 && length.is_none())
            }
            (_, false) => {
                let is_request_line = !std::mem::replace(&mut self.begun, true);
                let Some(colon) = line.iter().position(|byte| *byte == b':').filter(|_| !is_request_line) else { return true };
                let (name, value) = line.split_at(colon);
                let value = std::str::from_utf8(value.get(1..).unwrap_or_default()).unwrap_or_default().trim();
                if name.eq_ignore_ascii_case(b"content-length") {
                    // Two equal lengths are still two; hyper refuses different ones where it uses them.
                    self.length = Some(value.parse().ok());
                } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                    self.encodings = self.encodings.saturating_add(1);
                }
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    const BODY: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n\n\n\n\n";
    const CHUNKS: &str = "\r\nPOST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3;x=y\r\n\na\n\r\n1 ;x\r\n\n\r\n0\r\nX: y\r\n\r\n";

    fn holds(text: &str, piece: usize) -> bool {
        let mut framing = Framing::default();
        let holds = text.as_bytes().chunks(piece).all(|bytes| framing.parse(bytes).is_ok());
        assert!(if holds { matches!(framing.at, At::Head | At::Lost) } else { framing.at == At::Refused }, "{text:?}: {framing:?}");
        holds
    }

    /// Proves that consecutive valid requests pass, in pieces of any size, with bare LFs in their bodies.
    #[test]
    fn valid_requests_pass() {
        let all = [PLAIN, BODY, CHUNKS, PLAIN, CHUNKS, BODY, PLAIN].concat();
        assert!((1..=all.len()).all(|piece| holds(&all, piece)));
    }

    /// Proves that an ambiguous request is refused at any place, in pieces of any size.
    #[test]
    fn ambiguous_requests_are_refused() {
        let bad = [
            "GET / HTTP/1.1\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\n",
            "POST / HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nTRANSFER-ENCODING: chunked\r\ncontent-length:4\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 4, 4\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 4x\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length:\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: identity\r\ntransfer-encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;x\n\r\na\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1 \r\na\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\t\r\na\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n 1\r\na\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0 \r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\n\r\n",
        ];
        for bad in bad {
            for before in ["", PLAIN, BODY, CHUNKS] {
                let all = [before, bad].concat();
                assert!((1..=all.len()).all(|piece| !holds(&all, piece)), "{bad:?} after {before:?}");
            }
        }
    }

    /// Proves that invalid requests are left to hyper, however long they are.
    #[test]
    fn invalid_requests_are_left_to_hyper() {
        for broken in ["Content-Length: x\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\nzz\r\n"] {
            assert!(holds(&format!("POST / HTTP/1.1\r\n{broken}\n\n"), 7));
        }
        let mut framing = Framing::default();
        assert!((0..100).all(|_| framing.parse(&[b'a'; 1_000]).is_ok()));
        assert!(framing.at == At::Lost && framing.line.len() <= LINE_BYTES_MAX + 1_000);
    }
}
