//! The output of commands: results for scripts on standard output, notes and progress for people on standard error.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Receives the output of a command: the terminal, or the client at the other end of the control socket.
pub(crate) trait Output: Send + Sync {
    /// Writes a line for scripts. `line` has no line end.
    fn line(&self, line: &[u8]);
    /// Writes bytes for scripts, unchanged.
    fn bytes(&self, bytes: &[u8]);
    /// Writes a line for people.
    fn note(&self, text: &str);
    /// Shows the progress of a task: `done` of `total` records; a total of 0 is unknown.
    fn progress(&self, task: &str, done: u64, total: u64);
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
    /// Whether standard output is a terminal.
    is_terminal: bool,
    bar: TaskBar,
}

/// The template of a bar whose total is known.
const BAR: &str = "{msg} {wide_bar} {human_pos}/{human_len} {rate} {eta}";
/// The template of a bar whose total is not known.
const COUNT: &str = "{msg} {human_pos} {rate}";

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.with_key("rate", |state: &ProgressState, out: &mut dyn fmt::Write| {
        // A rate that cannot be written is left out.
        let _ = write!(out, "{:.0}/s", state.per_sec());
    })
}

/// A progress bar with the name of the task, the rate and the total. It draws nothing if standard error is not a terminal.
struct TaskBar {
    bar: ProgressBar,
    /// Where the bar is drawn, until the first task is shown: an empty bar is not drawn.
    target: Mutex<Option<ProgressDrawTarget>>,
    task: Mutex<String>,
    /// Whether lines on the same terminal have ended it.
    is_ended: AtomicBool,
}

impl TaskBar {
    fn new(target: ProgressDrawTarget) -> Self {
        Self {
            bar: ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden()),
            target: Mutex::new(Some(target)),
            task: Mutex::default(),
            is_ended: AtomicBool::new(false),
        }
    }

    fn show(&self, task: &str, done: u64, total: u64) {
        if self.is_ended.load(Ordering::Relaxed) {
            return;
        }
        if let Ok(mut shown) = self.task.lock()
            && *shown != task
        {
            task.clone_into(&mut shown);
            // Rate and remaining time are those of the new task.
            self.bar.reset();
            self.bar.set_style(style(if total == 0 { COUNT } else { BAR }));
            self.bar.set_length(total.max(done));
            self.bar.set_message(task.to_owned());
            if let Some(target) = self.target.lock().ok().and_then(|mut target| target.take()) {
                self.bar.set_draw_target(target);
            }
        }
        self.bar.set_length(total.max(done));
        self.bar.set_position(done);
    }

    /// Whether a task was shown.
    fn has_task(&self) -> bool {
        self.task.lock().is_ok_and(|task| !task.is_empty())
    }

    /// Writes something to the terminal without disturbing the bar.
    fn suspend(&self, write: impl FnOnce()) {
        // A bar that was never shown would be drawn afterwards.
        if self.has_task() { self.bar.suspend(write) } else { write() }
    }

    /// Removes the bar, and shows none any more.
    fn end(&self) {
        if !self.is_ended.swap(true, Ordering::Relaxed) && self.has_task() {
            self.bar.finish_and_clear();
        }
    }
}

impl Terminal {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            out: Mutex::new(BufWriter::new(Box::new(stdout()))),
            file: Mutex::default(),
            failed: Mutex::new(None),
            is_terminal: stdout().is_terminal(),
            bar: TaskBar::new(ProgressDrawTarget::stderr()),
        })
    }

    /// Whether standard output is a terminal, where people read it.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
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
        self.bar.end();
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
        if self.is_terminal && self.file.lock().is_ok_and(|file| file.is_none()) {
            // A bar between the lines would make both unreadable.
            self.bar.end();
        }
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

    fn progress(&self, task: &str, done: u64, total: u64) {
        self.bar.show(task, done, total);
    }

    fn is_closed(&self) -> bool {
        self.failed.lock().is_ok_and(|failed| failed.is_some())
    }
}

#[cfg(test)]
mod tests {
    use indicatif::TermLike;

    use super::*;

    /// A terminal of 100 columns that keeps what is drawn.
    #[derive(Clone, Debug, Default)]
    struct Screen(Arc<Mutex<String>>);

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            100
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What a bar draws.
    fn drawn(show: impl FnOnce(&TaskBar)) -> String {
        let screen = Screen::default();
        show(&TaskBar::new(ProgressDrawTarget::term_like_with_hz(Box::new(screen.clone()), 255)));
        screen.0.lock().unwrap().clone()
    }

    /// Proves that a bar has the name of its task, the rate and the total, that a task without a known total shows no total, and that the next task
    /// begins with its own name.
    #[test]
    fn bars_have_a_name_a_rate_and_a_total() {
        let known = drawn(|bar| bar.show("replay recalls", 1_500, 4_000));
        assert!(known.contains("replay recalls") && known.contains("1,500/4,000") && known.contains("/s"), "{known:?}");
        assert!(!known.contains("0/0"), "{known:?}");
        let unknown = drawn(|bar| bar.show("ingest cpsc", 1_500, 0));
        assert!(unknown.contains("ingest cpsc 1,500 ") && !unknown.contains("1,500/"), "{unknown:?}");
        let both = drawn(|bar| {
            bar.show("replay recalls", 4_000, 4_000);
            bar.show("replay awards", 10, 70);
        });
        assert!(both.contains("replay awards") && both.contains("10/70"), "{both:?}");
    }

    /// Proves that a bar that has ended draws nothing any more, and that notes and the end draw none before the first task.
    #[test]
    fn no_bar_without_a_task() {
        let empty = drawn(|bar| {
            bar.suspend(|| ());
            bar.end();
        });
        assert_eq!(empty, "");
        let after = drawn(|bar| {
            bar.end();
            bar.show("export recalls", 1, 2);
        });
        assert!(!after.contains("export recalls"), "{after:?}");
    }
}
