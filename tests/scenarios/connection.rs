//! A client's connection that stays open between requests: the test chooses its source address and the bytes that it sends.

use std::io::{Error, ErrorKind, Result};
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::process::Answer;

/// An open connection to the server.
pub(crate) struct Connection {
    stream: TcpStream,
    /// Bytes that were received but not yet consumed.
    unread: Vec<u8>,
}

impl Connection {
    /// Connects from a loopback address. `receive_bytes` is the size of the receive buffer; 0 selects the system's default.
    pub(crate) async fn open(from: Ipv4Addr, to: SocketAddr, receive_bytes: u32) -> Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.set_nodelay(true)?;
        if receive_bytes > 0 {
            socket.set_recv_buffer_size(receive_bytes)?;
        }
        socket.bind(SocketAddr::from((from, 0)))?;
        Ok(Self { stream: socket.connect(to).await?, unread: Vec::new() })
    }

    /// Sends bytes unchanged.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Reads up to `bytes_max` bytes; an empty result means the end of the connection.
    pub(crate) async fn read(&mut self, bytes_max: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; bytes_max];
        let read = self.stream.read(&mut bytes).await?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Reads the next complete answer; `None` when the connection is closed before its first byte. The answer to `HEAD` has no body,
    /// whatever its headers say. The body of an event stream is not read, so the connection cannot be used after one.
    pub(crate) async fn answer(&mut self, is_head: bool) -> Result<Option<Answer>> {
        let (status, head) = loop {
            let end = loop {
                if let Some(at) = self.unread.windows(4).position(|four| four == b"\r\n\r\n") {
                    break at + 4;
                }
                match self.more().await {
                    Ok(true) => {}
                    Ok(false) | Err(_) if self.unread.is_empty() => return Ok(None),
                    Ok(false) => return Err(ErrorKind::UnexpectedEof.into()),
                    Err(error) => return Err(error),
                }
            };
            let head: Vec<u8> = self.unread.drain(..end).collect();
            let head = String::from_utf8(head).map_err(|_| Error::new(ErrorKind::InvalidData, "the head is not UTF-8"))?;
            let status = head.split(' ').nth(1).and_then(|text| text.parse::<u16>().ok());
            match status.ok_or_else(|| Error::new(ErrorKind::InvalidData, format!("no status line: {head}")))? {
                // An interim answer comes before the final one.
                100..200 => {}
                status => break (status, head),
            }
        };
        let mut answer = Answer::new(status, head, Vec::new());
        if is_head || matches!(status, 204 | 304) || is_event_stream(&answer) {
            return Ok(Some(answer));
        }
        if answer.header("transfer-encoding").eq_ignore_ascii_case("chunked") {
            loop {
                let size = self.line().await?;
                let size = usize::from_str_radix(size.trim(), 16).map_err(|error| Error::new(ErrorKind::InvalidData, error))?;
                answer.body.extend(self.exactly(size).await?);
                self.line().await?;
                if size == 0 {
                    return Ok(Some(answer));
                }
            }
        }
        match answer.header("content-length").trim().parse() {
            Ok(length) => answer.body = self.exactly(length).await?,
            Err(_) => while self.more().await? {},
        }
        if answer.header("content-length").is_empty() {
            answer.body = std::mem::take(&mut self.unread);
        }
        Ok(Some(answer))
    }

    /// Waits for more bytes; `false` means the end of the connection.
    async fn more(&mut self) -> Result<bool> {
        Ok(self.stream.read_buf(&mut self.unread).await? > 0)
    }

    async fn exactly(&mut self, length: usize) -> Result<Vec<u8>> {
        while self.unread.len() < length {
            if !self.more().await? {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.unread.drain(..length).collect())
    }

    /// Reads the next line, without its line ending.
    async fn line(&mut self) -> Result<String> {
        loop {
            if let Some(at) = self.unread.windows(2).position(|two| two == b"\r\n") {
                let line = self.exactly(at + 2).await?;
                return Ok(String::from_utf8_lossy(&line[..at]).into_owned());
            }
            if !self.more().await? {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// Whether an answer is an event stream, which does not end.
pub(crate) fn is_event_stream(answer: &Answer) -> bool {
    answer.header("content-type").starts_with("text/event-stream")
}
