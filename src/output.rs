//! The output of commands: results for scripts on standard output, notes and progress for people on standard error.

use std::fs::File;
use std::io::{self, BufWriter, Write, stdout};
use std::sync::{Arc, Mutex};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Receives the output of a command: the terminal, or the client at the other end of the control socket.
pub(crate) trait Output: Send + Sync {
    /// Writes a line for scripts. `line` has no line end.
    fn line(&self, line: &[u8]);
    /// Writes bytes for scripts, unchanged.
    fn bytes(&self, bytes: &[u8]);
    /// Writes a line for people.
    fn note(&self, text: &str);
    /// Shows progress: `done` of `total` steps; a total of 0 is unknown.
    fn progress(&self, done: u64, total: u64);
    /// Whether the reader is gone (a closed pipe), so that the command can stop.
    fn is_closed(&self) -> bool {
        false
    }
}

/// The terminal.
pub(crate) struct Terminal {
    out: Mutex<BufWriter<Box<dyn Write + Send>>>,
    /// The file that replaces standard output.
    file: Mutex<Option<File>>,
    /// The first error of writing.
    failed: Mutex<Option<io::Error>>,
    bar: ProgressBar,
}

impl Terminal {
    pub(crate) fn new() -> Arc<Self> {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {per_sec} {eta}").unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style);
        Arc::new(Self { out: Mutex::new(BufWriter::new(Box::new(stdout()))), file: Mutex::default(), failed: Mutex::new(None), bar })
    }

    /// Writes to a file instead of standard output.
    ///
    /// # Errors
    /// The file handle cannot be duplicated.
    pub(crate) fn write_to(&self, file: File) -> io::Result<()> {
        if let (Ok(mut out), Ok(mut own)) = (self.out.lock(), self.file.lock()) {
            *own = Some(file.try_clone()?);
            *out = BufWriter::new(Box::new(file));
        }
        Ok(())
    }

    /// Writes out what is buffered, and syncs the file if there is one. A reader that is gone is not an error; a full disk is.
    ///
    /// # Errors
    /// The first error of writing or syncing.
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.bar.finish_and_clear();
        let flushed = self.out.lock().map_or(Ok(()), |mut out| out.flush());
        let synced = || self.file.lock().map_or(Ok(()), |file| file.as_ref().map_or(Ok(()), File::sync_all));
        let flushed = flushed.and_then(|()| synced());
        let failed = self.failed.lock().ok().and_then(|mut failed| failed.take()).map_or(flushed, Err);
        failed.or_else(|error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
    }
}

impl Output for Terminal {
    fn line(&self, line: &[u8]) {
        self.bytes(line);
        self.bytes(b"\n");
    }

    fn bytes(&self, bytes: &[u8]) {
        if let Ok(mut out) = self.out.lock()
            && let Err(error) = out.write_all(bytes)
            && let Ok(mut failed) = self.failed.lock()
        {
            failed.get_or_insert(error);
        }
    }

    fn note(&self, text: &str) {
        self.bar.suspend(|| {
            let _ = writeln!(std::io::stderr(), "{text}");
        });
    }

    fn progress(&self, done: u64, total: u64) {
        self.bar.set_length(total.max(done));
        self.bar.set_position(done);
    }

    fn is_closed(&self) -> bool {
        self.failed.lock().is_ok_and(|failed| failed.is_some())
    }
}
