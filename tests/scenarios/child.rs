//! Child processes with time limits. A child that is in use when a test fails is killed, and the end of its standard error is printed.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child as Process, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The longest time that a child or a wait may take. It is a guard against hangs only: a busy machine is slow.
pub(crate) const HANG_TIMEOUT: Duration = Duration::from_secs(300);
/// The longest time of a program that may download packages and generate code.
const CHECK_TIMEOUT: Duration = Duration::from_secs(900);
/// The number of last lines of a child's standard error that are printed when a test fails.
const LINES_SHOWN: usize = 60;
/// The interval of polls.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The longest interval of polls of a wait that takes long.
const LONG_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// What a child has printed on one of its outputs so far.
type Printed = Arc<Mutex<Vec<u8>>>;

/// A child process with piped outputs, which are read while it runs.
pub(crate) struct Child {
    /// The program and its arguments.
    command: String,
    process: Process,
    outputs: [Printed; 2],
    readers: Vec<JoinHandle<()>>,
    /// Whether the child has been waited for.
    is_ended: bool,
}

impl Child {
    /// Starts a child. Standard input is that of the command.
    pub(crate) fn start(command: Command) -> Self {
        Self::start_heard(command, |_| {})
    }

    /// Starts a child as [`Self::start`] does; `heard` gets each line of standard error.
    pub(crate) fn start_heard(mut command: Command, mut heard: impl FnMut(&str) + Send + 'static) -> Self {
        let mut process =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let outputs: [Printed; 2] = Default::default();
        let (mut stdout, printed) = (process.stdout.take().unwrap(), Arc::clone(&outputs[0]));
        let reading_stdout = thread::spawn(move || {
            let mut some = [0; 16 << 10];
            while let Ok(count @ 1..) = stdout.read(&mut some) {
                printed.lock().unwrap().extend_from_slice(&some[..count]);
            }
        });
        let (mut stderr, printed) = (BufReader::new(process.stderr.take().unwrap()), Arc::clone(&outputs[1]));
        let reading_stderr = thread::spawn(move || {
            let mut line = Vec::new();
            while let Ok(1..) = stderr.read_until(b'\n', &mut line) {
                printed.lock().unwrap().extend_from_slice(&line);
                heard(String::from_utf8_lossy(&line).trim_end_matches('\n'));
                line.clear();
            }
        });
        let arguments = command.get_args().map(|argument| argument.to_string_lossy());
        let command = [command.get_program().to_string_lossy()].into_iter().chain(arguments).collect::<Vec<_>>().join(" ");
        Self { command, process, outputs, readers: vec![reading_stdout, reading_stderr], is_ended: false }
    }

    /// Returns the process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Takes standard input, which must be piped.
    pub(crate) fn stdin(&mut self) -> ChildStdin {
        self.process.stdin.take().unwrap()
    }

    /// Returns what the child has printed on standard output so far.
    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.outputs[0].lock().unwrap()).into_owned()
    }

    /// Returns what the child has printed on standard error so far.
    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.outputs[1].lock().unwrap()).into_owned()
    }

    /// Whether the child has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.process.try_wait().unwrap().is_some()
    }

    /// Waits until the child has ended and all that it printed is read; `None` after the limit.
    pub(crate) fn try_wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let started = Instant::now();
        loop {
            let ended = self.process.try_wait().unwrap();
            if ended.is_some() && self.readers.iter().all(JoinHandle::is_finished) {
                // A reader that panicked, in `heard`, fails the test.
                self.readers.drain(..).for_each(|reader| reader.join().unwrap());
                self.is_ended = true;
                return ended;
            }
            if started.elapsed() > limit {
                return None;
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits until the child has ended; panics after the limit.
    pub(crate) fn wait_within(&mut self, limit: Duration) -> ExitStatus {
        self.try_wait(limit).unwrap_or_else(|| panic!("`{}` did not end within {limit:?}", self.command))
    }

    /// Waits until the child has ended.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.wait_within(HANG_TIMEOUT)
    }

    /// Kills the child as `kill -9` does, and waits until it has ended.
    pub(crate) fn kill(&mut self) -> ExitStatus {
        self.process.kill().unwrap();
        self.wait()
    }

    /// Waits until the child has ended; returns its status and what it printed. Panics after the limit.
    pub(crate) fn output(mut self, limit: Duration) -> Output {
        let status = self.wait_within(limit);
        let [stdout, stderr] = self.outputs.each_ref().map(|printed| std::mem::take(&mut *printed.lock().unwrap()));
        Output { status, stdout, stderr }
    }
}

impl Drop for Child {
    #[expect(clippy::print_stdout, reason = "the output of a failed test has the log of its children")]
    fn drop(&mut self) {
        // A test that fails must leave no process behind. The process may have ended before.
        if !self.is_ended {
            drop(self.process.kill());
            drop(self.process.wait());
        }
        if thread::panicking() {
            let printed = self.stderr();
            let lines: Vec<&str> = printed.lines().collect();
            let last = &lines[lines.len().saturating_sub(LINES_SHOWN)..];
            println!("`{}` printed on standard error, {} lines, of which the last are:\n{}", self.command, lines.len(), last.join("\n"));
        }
    }
}

/// Runs another program, which may download packages; it must succeed. Returns its standard output.
pub(crate) fn run_check(mut command: Command) -> String {
    command.stdin(Stdio::null());
    let output = Child::start(command).output(CHECK_TIMEOUT);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Polls until there is a result; panics with what it waited for after a time limit.
pub(crate) fn wait_for<T>(what: &str, poll: impl FnMut() -> Option<T>) -> T {
    poll_with_pauses(HANG_TIMEOUT, what, poll, |_| POLL_INTERVAL)
}

/// Polls as [`wait_for`] does, with a time limit and the more rarely the longer it waits: for what takes long at a server, which each poll disturbs. It ends
/// at most a twentieth of its time late.
pub(crate) fn wait_rarely<T>(limit: Duration, what: &str, poll: impl FnMut() -> Option<T>) -> T {
    poll_with_pauses(limit, what, poll, |waited| (waited / 20).clamp(POLL_INTERVAL, LONG_POLL_INTERVAL))
}

/// Polls with the pause that follows from the time waited so far, until there is a result; panics with what it waited for after `limit`.
fn poll_with_pauses<T>(limit: Duration, what: &str, mut poll: impl FnMut() -> Option<T>, pause: impl Fn(Duration) -> Duration) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = poll() {
            return found;
        }
        let waited = started.elapsed();
        assert!(waited < limit, "{what} did not occur within {limit:?}");
        thread::sleep(pause(waited));
    }
}

/// Waits for a future; panics with what it waited for after a time limit.
pub(crate) async fn within<F: Future>(what: &str, future: F) -> F::Output {
    let waited = tokio::time::timeout(HANG_TIMEOUT, future).await;
    waited.unwrap_or_else(|_| panic!("{what} did not occur within {HANG_TIMEOUT:?}"))
}
