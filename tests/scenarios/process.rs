//! The binary as a process, and a minimal HTTP client.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) use crate::child::wait_for;
use crate::child::{Child, HANG_TIMEOUT, POLL_INTERVAL, wait_rarely};
use crate::engine::moving_clock;

/// An address where nothing listens.
pub(crate) const NOWHERE: &str = "http://127.0.0.1:9";
/// The longest time until an answer comes, on a machine that is busy with other work.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(180);
/// The settings of how long calls may take.
const CALL_TIMES: [&str; 5] = ["READ_S", "LIVE_READ_S", "FILE_S", "COMMAND_S", "SALE_S"];
/// How long calls may take, in seconds: so long that a machine that is busy with other work makes none late, and shorter than [`ANSWER_TIMEOUT`], so that a
/// call that hangs is answered with the reason.
const CALL_TIME_S: &str = "150";
/// The schedule of upstreams: on leap days only. A scheduled sync could hold the lease that a test's command needs. A demo runs no schedule, and its history
/// follows the default ones.
const SCHEDULE: &str = "0 0 0 29 2 *";

/// The environment variable with the path of another binary to test, usually a release build for measurements.
const BINARY: &str = "HIGHWATER_BIN";

/// Whether times may be asserted: only with an optimised binary.
pub(crate) fn is_timed() -> bool {
    std::env::var_os(BINARY).is_some() || !cfg!(debug_assertions)
}

/// Returns the path of the binary under test.
pub(crate) fn binary() -> OsString {
    std::env::var_os(BINARY).unwrap_or_else(|| env!("CARGO_BIN_EXE_highwater").into())
}

/// Returns a command of the binary with a data directory, with all upstreams at `base_url`, with the moving clock of this test, and with times of calls that
/// only a hang exceeds.
pub(crate) fn highwater(data: &Path, base_url: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("HIGHWATER_")) {
        command.env_remove(name);
    }
    command.env("HIGHWATER_DATA_DIR", data).env("HIGHWATER_LISTEN", "127.0.0.1:0").env("HIGHWATER_LOGGING__FORMAT", "json");
    // Outside the data directories of a test and outside the user's home.
    command.env("HIGHWATER_CHECKPOINTS__MEMORY", data.parent().unwrap().join("signer-memory"));
    // A directory without configuration files.
    command.current_dir(data.parent().unwrap());
    command.env("HIGHWATER_UPSTREAMS_BASE_URL", base_url);
    command.env("HIGHWATER_CLOCK__START", moving_clock().now().to_string());
    for key in CALL_TIMES {
        command.env(format!("HIGHWATER_CALL_TIMES__{key}"), CALL_TIME_S);
    }
    for upstream in upstreams::ALL {
        let name = upstream.manifest().name.to_uppercase();
        command.env(format!("HIGHWATER_UPSTREAMS__{name}__REQUESTS_PER_SECOND"), "10000.0");
        if arguments.first() != Some(&"demo") {
            command.env(format!("HIGHWATER_UPSTREAMS__{name}__SCHEDULE"), SCHEDULE);
        }
    }
    // Each hour of stories is a request, and a month of them more than all other records of a test.
    for name in ["HACKER_NEWS", "WIKIMEDIA"] {
        command.env(format!("HIGHWATER_UPSTREAMS__{name}__BACKFILL_DAYS"), "1");
    }
    for name in simulator::UPSTREAMS_WITH_KEY {
        let name = name.to_uppercase();
        command.env(format!("HIGHWATER_UPSTREAMS__{name}__API_KEY"), simulator::KEY);
    }
    command
}

/// Disables all services but some: the process opens, projects and serves nothing else, so that it starts sooner.
pub(crate) fn with_services<'c>(command: &'c mut Command, served: &[&str]) -> &'c mut Command {
    for name in services::names().filter(|name| !served.contains(name)) {
        command.env(format!("HIGHWATER_SERVICES__{}__ENABLED", name.to_uppercase()), "false");
    }
    command
}

/// Fixes the clock of a command, which otherwise moves ([`moving_clock`]).
pub(crate) fn fix_clock<'c>(command: &'c mut Command, at: &str) -> &'c mut Command {
    command.env("HIGHWATER_CLOCK__START", "").env("HIGHWATER_CLOCK__FIXED", at)
}

/// Gives a command the system's clock, for programs that compare our times with theirs.
pub(crate) fn use_system_clock(command: &mut Command) -> &mut Command {
    command.env("HIGHWATER_CLOCK__START", "")
}

/// Gives a command the default times of calls, for scenarios about servers that hang.
pub(crate) fn with_default_call_times(command: &mut Command) -> &mut Command {
    for key in CALL_TIMES {
        command.env_remove(format!("HIGHWATER_CALL_TIMES__{key}"));
    }
    command
}

/// Shortens the rounds of the signer, of checkpoints and of witnesses, for scenarios that wait for several of them.
pub(crate) fn with_short_rounds(mut command: Command) -> Command {
    for key in ["ROUND_S", "SIGNER_ROUND_S", "WITNESS_ROUND_S"] {
        command.env(format!("HIGHWATER_CHECKPOINTS__{key}"), "0.2");
    }
    command
}

/// Runs a command to its end.
pub(crate) fn run(command: Command) -> Output {
    run_within(command, HANG_TIMEOUT)
}

/// Runs a command that must end within a time.
pub(crate) fn run_within(command: Command, limit: Duration) -> Output {
    Child::start(command).output(limit)
}

/// Runs a command that must succeed; returns its standard output.
pub(crate) fn stdout(command: Command) -> String {
    let output = run(command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Copies a directory, with its holes, into another one that exists, or to a path that does not.
pub(crate) fn copy_dir(from: &Path, to: &Path) {
    let copied = Command::new("cp").args(["-a", "--sparse=always"]).arg(from).arg(to).status().unwrap();
    assert!(copied.success());
}

/// Runs `status`, which fails while something is stopped or parked; returns its standard output.
pub(crate) fn status_output(command: Command) -> String {
    let output = run(command);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() || message.contains("needs attention: "), "{message}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that must fail with exit code 1; returns its standard error.
pub(crate) fn stderr_of_failure(command: Command) -> String {
    let output = run(command);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    message
}

/// An HTTP answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Builds an answer from parts; `head` ends with an empty line.
    pub(crate) fn new(status: u16, head: String, body: Vec<u8>) -> Self {
        Self { status, head, body }
    }

    /// Returns the status line and headers, unchanged.
    pub(crate) fn head(&self) -> &str {
        &self.head
    }

    /// Returns a header's value, or an empty text.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.head
            .lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(own, _)| own.eq_ignore_ascii_case(name))
            .map_or("", |(_, value)| value)
    }
}

/// A running server.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    /// The listener for operators.
    operators: SocketAddr,
}

impl Server {
    /// Starts a server and waits until it listens.
    pub(crate) fn start(command: Command) -> Self {
        Self::try_start(command, |_| {}).unwrap_or_else(|message| panic!("the server ended: {message}"))
    }

    /// Starts a server and waits until it listens; the error is its standard error if it ended instead. `heard` gets each line of standard
    /// error.
    pub(crate) fn try_start(command: Command, mut heard: impl FnMut(&str) + Send + 'static) -> Result<Self, String> {
        let (sender, addresses) = mpsc::channel();
        let mut child = Child::start_heard(command, move |line| {
            heard(line);
            let fields = serde_json::from_str::<Value>(line).map(|mut line| line["fields"].take()).unwrap_or_default();
            if fields["message"] == "listening" {
                let _ = sender.send(["address", "operators"].map(|name| fields[name].as_str().unwrap().parse().unwrap()));
            }
        });
        match addresses.recv_timeout(HANG_TIMEOUT) {
            Ok([address, operators]) => Ok(Self { child, address, operators }),
            // The end of standard error is the end of the process.
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                child.wait();
                Err(child.stderr())
            }
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("the server did not listen within {HANG_TIMEOUT:?}"),
        }
    }

    /// Starts a server and waits until it is ready.
    pub(crate) fn ready(command: Command) -> Self {
        let this = Self::start(command);
        this.wait_until_ready();
        this
    }

    /// Waits until the server is ready.
    pub(crate) fn wait_until_ready(&self) {
        wait_rarely(HANG_TIMEOUT, "readiness", || (self.get("/readyz", "")?.0 == 200).then_some(()));
    }

    /// Starts a server and waits until it is ready and signs receipts, which a server that has just started may not do yet.
    pub(crate) fn signing(command: Command) -> Self {
        let this = Self::start(command);
        this.wait_until_it_signs();
        this
    }

    /// Waits until the server is ready and has compared its log with what was signed before, until when it issues no receipts.
    pub(crate) fn wait_until_it_signs(&self) {
        wait_rarely(HANG_TIMEOUT, "readiness to sign receipts", || self.signs().then_some(()));
    }

    /// Whether the server is ready and signs receipts.
    pub(crate) fn signs(&self) -> bool {
        self.get("/readyz", "").is_some_and(|(status, notices)| {
            status == 200 && !String::from_utf8_lossy(&notices).contains("receipts and checkpoints are not signed")
        })
    }

    /// Returns the id of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Makes a GET request; `None` without a complete answer. The key may be empty.
    pub(crate) fn get(&self, path: &str, key: &str) -> Option<(u16, Vec<u8>)> {
        get(self.address, path, key)
    }

    /// Reads the metrics at the listener for operators; `None` without a complete answer.
    pub(crate) fn metrics(&self) -> Option<String> {
        let answer = ask(self.operators, "/metrics", "")?;
        assert_eq!(answer.status, 200, "the metrics cannot be read");
        assert!(answer.header("content-type").contains("charset=utf-8"), "{}", answer.head());
        String::from_utf8(answer.body).ok()
    }

    /// Returns how many rounds of a task have ended.
    pub(crate) fn rounds(&self, task: &str) -> u64 {
        let series = format!("api_rounds_total{{task=\"{task}\"}} ");
        let metrics = wait_for("the metrics", || self.metrics());
        metrics.lines().find_map(|line| line.strip_prefix(series.as_str())).map_or(0, |count| count.parse().unwrap())
    }

    /// Makes a request, as [`send`] does.
    pub(crate) fn send(&self, method: &str, path: &str, key: &str, body: &str) -> Answer {
        send(self.address, method, path, &[("x-api-key", key)], body)
    }

    /// Reads JSON, which must come with status 200. 503 comes while views and indexes are being built, and the read is repeated.
    pub(crate) fn json(&self, path: &str, key: &str) -> Value {
        let started = Instant::now();
        loop {
            let (status, body) = self.get(path, key).unwrap_or_else(|| panic!("{path}: no complete answer"));
            if status != 503 || started.elapsed() > HANG_TIMEOUT {
                assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
                return serde_json::from_slice(&body).unwrap();
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Sends the process a signal by name, such as `STOP` or `CONT`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Returns the resident memory of the process in bytes; 0 if the system does not report it.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0) * 1_024
    }

    /// Kills the process as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.child.kill();
    }

    /// Stops the process with SIGTERM; returns its exit status.
    pub(crate) fn terminate(mut self) -> ExitStatus {
        self.signal("TERM");
        self.child.wait()
    }
}

/// Sends a request, with a JSON body if one is given, unless a header names another type, and reads the whole answer. Headers without a value are left
/// out.
pub(crate) fn send(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    try_send(address, method, path, headers, body).unwrap_or_else(|| panic!("{method} {path}: no complete answer"))
}

/// Sends a request as [`send`] does; `None` without a complete answer.
pub(crate) fn try_send(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Option<Answer> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        let is_typed = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        head.push_str(if is_typed { "" } else { "content-type: application/json\r\n" });
        head.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).ok()?;
    stream.write_all(format!("{head}\r\n").as_bytes()).ok()?;
    // A server that refuses a body may close before it has read all of it; its answer can still be read.
    drop(stream.write_all(body.as_bytes()));
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer));
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let body = answer.split_off(head + 4);
    let head = String::from_utf8(answer).ok()?;
    let mut answer = Answer { status: head.split(' ').nth(1)?.parse().ok()?, head, body };
    if answer.header("transfer-encoding").eq_ignore_ascii_case("chunked")
        && let Some(data) = data_of_chunks(&answer.body)
    {
        answer.body = data;
    }
    // A body that was cut off by a kill is not an answer.
    let is_whole = answer.header("content-length").trim().parse::<usize>().is_ok_and(|length| length == answer.body.len());
    (is_whole || answer.header("content-length").is_empty()).then_some(answer)
}

/// The data of a body in chunks; `None` without its last chunk.
fn data_of_chunks(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut data = Vec::new();
    loop {
        let start = rest.windows(2).position(|two| two == b"\r\n")? + 2;
        let size = usize::from_str_radix(std::str::from_utf8(rest.get(..start)?).ok()?.trim(), 16).ok()?;
        if size == 0 {
            return Some(data);
        }
        data.extend_from_slice(rest.get(start..start + size)?);
        rest = rest.get(start + size + 2..)?;
    }
}

/// Makes a GET request over a new connection; returns status and body.
pub(crate) fn get(address: SocketAddr, path: &str, key: &str) -> Option<(u16, Vec<u8>)> {
    ask(address, path, key).map(|answer| (answer.status, answer.body))
}

/// Makes a GET request over a new connection; `None` without a complete answer. The key may be empty.
pub(crate) fn ask(address: SocketAddr, path: &str, key: &str) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).ok()?;
    let key = if key.is_empty() { String::new() } else { format!("x-api-key: {key}\r\n") };
    write!(stream, "GET {path} HTTP/1.0\r\nhost: {address}\r\n{key}\r\n").ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let body = answer.split_off(answer.windows(4).position(|four| four == b"\r\n\r\n")? + 4);
    let head = String::from_utf8_lossy(&answer).into_owned();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let announced = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse::<usize>().ok());
    // A body that was cut off by a kill is not an answer.
    announced.is_none_or(|length| length == body.len()).then_some(Answer { status, head, body })
}
