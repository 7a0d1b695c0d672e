//! Where a command's words go: what a script wants to standard output, words for people and progress to standard error.

use std::fs::File;
use std::io::{self, BufWriter, Write, stdout};
use std::sync::{Arc, Mutex};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Takes what a command says. The terminal is one; the control socket of a running process is another.
pub(crate) trait Output: Send + Sync {
    /// A line for scripts, without its end.
    fn line(&self, line: &[u8]);
    /// Bytes for scripts, as they are.
    fn bytes(&self, bytes: &[u8]);
    /// A line for people.
    fn note(&self, words: &str);
    /// Progress: done, in all (0: unknown).
    fn progress(&self, done: u64, total: u64);
    /// Whether what was written could not be taken (a closed pipe): there is no use in going on.
    fn is_closed(&self) -> bool {
        false
    }
}

/// The terminal.
pub(crate) struct Terminal {
    out: Mutex<BufWriter<Box<dyn Write + Send>>>,
    /// The file that stands in for standard output.
    file: Mutex<Option<File>>,
    /// Why it takes no more.
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

    /// Writes to a file what would go to standard output.
    pub(crate) fn write_to(&self, file: File) -> io::Result<()> {
        if let (Ok(mut out), Ok(mut kept)) = (self.out.lock(), self.file.lock()) {
            *kept = Some(file.try_clone()?);
            *out = BufWriter::new(Box::new(file));
        }
        Ok(())
    }

    /// Writes out what is buffered, a file to the disk. A reader that has gone away is no error, a full disk is.
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

    fn note(&self, words: &str) {
        self.bar.suspend(|| {
            let _ = writeln!(std::io::stderr(), "{words}");
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
