//! Where a command's words go: what a script wants to standard output, words for people and progress to standard error.

use std::io::{BufWriter, Write, stdout};
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
    out: Mutex<BufWriter<std::io::Stdout>>,
    closed: std::sync::atomic::AtomicBool,
    bar: ProgressBar,
}

impl Terminal {
    pub(crate) fn new() -> Arc<Self> {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {per_sec} {eta}").unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style);
        Arc::new(Self { out: Mutex::new(BufWriter::new(stdout())), closed: false.into(), bar })
    }

    /// Writes out what is buffered.
    pub(crate) fn flush(&self) {
        self.bar.finish_and_clear();
        if let Ok(mut out) = self.out.lock() {
            let _ = out.flush();
        }
    }
}

impl Output for Terminal {
    fn line(&self, line: &[u8]) {
        self.bytes(line);
        self.bytes(b"\n");
    }

    fn bytes(&self, bytes: &[u8]) {
        if let Ok(mut out) = self.out.lock()
            && out.write_all(bytes).is_err()
        {
            self.closed.store(true, std::sync::atomic::Ordering::Relaxed);
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
        self.closed.load(std::sync::atomic::Ordering::Relaxed)
    }
}
