//! The control socket: a command is sent over it to the process that holds the data directory.
//!
//! It is a Unix socket in the data directory that only its owner can use. Each connection carries one command: the client sends one line of JSON, and
//! the server answers with lines of JSON (`{"line": …}`, `{"bytes": base64}`, `{"note": …}`, `{"progress": [task, done, total]}`), of which the last is
//! `{"end": null}` or `{"end": "reason"}`.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::commands::Command;
use crate::config::Config;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::output::Output;

/// Frames that wait to be written to a slow client.
const FRAMES_MAX: usize = 1_024;
/// The longest command, which may contain a file. Only the owner of the process can connect.
const COMMAND_BYTES_MAX: u64 = 16 << 20;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Frame {
    Line(String),
    /// Base64.
    Bytes(String),
    Note(String),
    Progress(String, u64, u64),
    End(Option<String>),
}

fn path(config: &Config) -> PathBuf {
    config.sections.data_dir.join("control.sock")
}

/// What goes wrong on the socket.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The socket cannot be created.
    #[error("control socket {path} cannot be created (its path may have about 100 bytes)")]
    Bind {
        /// The path of the socket.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The serving process closed the connection before its answer was complete.
    #[error("the serving process ended before its answer was complete")]
    Ended,
    /// The socket cannot be read or written.
    #[error("the control socket failed")]
    Io(#[from] io::Error),
    /// A line of the answer is not a frame.
    #[error("unexpected answer of the serving process; is it another version?")]
    Frame(#[from] serde_json::Error),
}

/// Sends a command to the process that serves from the data directory and writes out its answer. `None` if there is no such process.
///
/// # Errors
/// The connection fails before the answer is complete.
pub(crate) async fn send_command(config: &Config, command: &Command, output: &dyn Output) -> Result<Option<Result<(), Failure>>, Error> {
    let Ok(stream) = UnixStream::connect(path(config)).await else { return Ok(None) };
    let (read, mut write) = stream.into_split();
    let mut line = serde_json::to_vec(command)?;
    line.push(b'\n');
    write.write_all(&line).await?;
    let mut frames = BufReader::new(read).lines();
    while let Some(line) = frames.next_line().await? {
        match serde_json::from_str(&line)? {
            Frame::Line(line) => output.line(line.as_bytes()),
            Frame::Bytes(text) => output.bytes(&BASE64.decode(text).map_err(|error| io::Error::other(error.to_string()))?),
            Frame::Note(text) => output.note(&text),
            Frame::Progress(task, done, total) => output.progress(&task, done, total),
            Frame::End(None) => return Ok(Some(Ok(()))),
            Frame::End(Some(reason)) => return Ok(Some(Err(Failure::new(reason)))),
        }
        if output.is_closed() {
            return Ok(Some(Ok(())));
        }
    }
    Err(Error::Ended)
}

/// The socket of a serving process.
pub(crate) struct Listener {
    listener: UnixListener,
    path: PathBuf,
}

impl Listener {
    /// Creates the socket. An existing one is replaced: this process holds the lock of the directory, so the socket belongs to a process that ended.
    ///
    /// # Errors
    /// The socket cannot be created.
    pub(crate) fn bind(config: &Config) -> Result<Self, Error> {
        let path = path(config);
        let error = |source| Error::Bind { path: path.clone(), source };
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(error(source)),
            _ => {}
        }
        let listener = UnixListener::bind(&path).map_err(error)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(error)?;
        Ok(Self { listener, path })
    }

    /// Answers commands until the engine stops.
    pub(crate) async fn run(self, engine: Arc<Engine>) {
        let mut stop = engine.stopping();
        let mut commands = JoinSet::new();
        loop {
            tokio::select! {
                _ = stop.changed() => break,
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        commands.spawn(answer(stream, Arc::clone(&engine)));
                    }
                    Err(error) => tracing::warn!(%error, "accepting a command failed"),
                },
                Some(_) = commands.join_next() => {}
            }
        }
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, "removing the control socket failed");
        }
        commands.shutdown().await;
    }
}

async fn answer(stream: UnixStream, engine: Arc<Engine>) {
    let (read, write) = stream.into_split();
    let mut line = String::new();
    let mut read = BufReader::new(tokio::io::AsyncReadExt::take(read, COMMAND_BYTES_MAX));
    if read.read_line(&mut line).await.is_err() {
        return;
    }
    let (frames, queue) = mpsc::channel(FRAMES_MAX);
    let writer = tokio::spawn(write_frames(write, queue));
    let remote = Remote { frames: frames.clone() };
    let result = match serde_json::from_str::<Command>(&line) {
        Ok(command) => command.run(&engine, &remote).await,
        Err(error) => Err(Failure::new(format!("unknown command: {error}"))),
    };
    let _ = frames.send(Frame::End(result.err().map(|failure| failure.to_string()))).await;
    drop((frames, remote));
    let _ = writer.await;
}

async fn write_frames(mut write: OwnedWriteHalf, mut queue: mpsc::Receiver<Frame>) {
    let mut frames = Vec::with_capacity(256);
    let mut out = Vec::new();
    while queue.recv_many(&mut frames, 256).await > 0 {
        out.clear();
        for frame in frames.drain(..) {
            if serde_json::to_writer(&mut out, &frame).is_ok() {
                out.push(b'\n');
            }
        }
        if write.write_all(&out).await.is_err() {
            return;
        }
    }
}

/// The client at the other end of the socket.
struct Remote {
    frames: mpsc::Sender<Frame>,
}

impl Remote {
    fn send(&self, frame: Frame) {
        // A slow client slows the command down; this thread may block.
        tokio::task::block_in_place(|| {
            let _ = self.frames.blocking_send(frame);
        });
    }
}

impl Output for Remote {
    fn line(&self, line: &[u8]) {
        self.send(Frame::Line(String::from_utf8_lossy(line).into_owned()));
    }

    fn bytes(&self, bytes: &[u8]) {
        self.send(Frame::Bytes(BASE64.encode(bytes)));
    }

    fn note(&self, text: &str) {
        self.send(Frame::Note(text.to_owned()));
    }

    fn progress(&self, task: &str, done: u64, total: u64) {
        let _ = self.frames.try_send(Frame::Progress(task.to_owned(), done, total));
    }

    fn is_closed(&self) -> bool {
        self.frames.is_closed()
    }
}
