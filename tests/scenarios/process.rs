//! The real binary as a process, and just enough HTTP to ask it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long anything may take at most, on a machine that does other things as well.
const DEADLINE: Duration = Duration::from_secs(180);
/// How long a start may take: the first one on a busy database makes all its tables.
const STARTED_WITHIN: Duration = Duration::from_secs(240);
/// When upstreams run by themselves: on leap days. A turn that comes due while a test's command runs may hold the lease that the command needs.
const SCHEDULE: &str = "0 0 0 29 2 *";
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The environment variable that names another binary to test than the one built with the tests: a release build, for runs with figures.
const BINARY: &str = "HIGHWATER_BIN";

/// Whether times may be asserted: only of an optimised binary.
pub(crate) fn is_timed() -> bool {
    std::env::var_os(BINARY).is_some() || !cfg!(debug_assertions)
}

/// The binary with a data directory, its upstreams at `base_url`.
pub(crate) fn highwater(data: &Path, base_url: &str, arguments: &[&str]) -> Command {
    let binary = std::env::var_os(BINARY).unwrap_or_else(|| env!("CARGO_BIN_EXE_highwater").into());
    let mut command = Command::new(binary);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("HIGHWATER_")) {
        command.env_remove(name);
    }
    command.env("HIGHWATER_DATA_DIR", data).env("HIGHWATER_LISTEN", "127.0.0.1:0").env("HIGHWATER_LOGGING__FORMAT", "json");
    // Outside the data directories of a test, and in nobody's home.
    command.env("HIGHWATER_CHECKPOINTS__MEMORY", data.parent().unwrap().join("signer-memory"));
    // Nothing is read but what the test gives.
    command.current_dir(data.parent().unwrap());
    for upstream in upstreams::ALL {
        let name = upstream.manifest().name.to_uppercase();
        command.env(format!("HIGHWATER_UPSTREAMS__{name}__BASE_URL"), base_url);
        command.env(format!("HIGHWATER_UPSTREAMS__{name}__REQUESTS_PER_SECOND"), "10000.0");
        command.env(format!("HIGHWATER_UPSTREAMS__{name}__SCHEDULE"), SCHEDULE);
    }
    command
}

/// Runs a command that ends by itself.
pub(crate) fn run(mut command: Command) -> Output {
    command.output().unwrap()
}

/// Runs a command that ends by itself within a time.
pub(crate) fn run_within(mut command: Command, limit: Duration) -> Output {
    let (begun, mut child) = (Instant::now(), command.spawn().unwrap());
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > limit {
            child.kill().unwrap();
            let words = String::from_utf8_lossy(&child.wait_with_output().unwrap().stderr).into_owned();
            panic!("{command:?} does not end within {limit:?}: {words}");
        }
        thread::sleep(LOOK_EVERY);
    }
    child.wait_with_output().unwrap()
}

/// Runs a command that must succeed; answers its standard output.
pub(crate) fn stdout(command: Command) -> String {
    let output = run(command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that must fail with exit code 1; answers its standard error.
pub(crate) fn refusal(command: Command) -> String {
    let output = run(command);
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    words
}

/// Looks again and again until there is an answer, for a while.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < DEADLINE, "{what} does not come");
        thread::sleep(LOOK_EVERY);
    }
}

/// An answer as it came.
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// An answer that was read elsewhere: its head ends with an empty line.
    pub(crate) fn new(status: u16, head: String, body: Vec<u8>) -> Self {
        Self { status, head, body }
    }

    /// Its head, as it came.
    pub(crate) fn head(&self) -> &str {
        &self.head
    }

    /// A header's value, empty for none.
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
    /// Reads what it says.
    listening: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts it and waits until it listens.
    pub(crate) fn start(command: Command) -> Self {
        Self::try_start(command, |_| {}).unwrap_or_else(|words| panic!("it ended: {words}"))
    }

    /// Starts it and waits until it listens; what it said, if it ended instead. `heard` gets each line of its standard error.
    pub(crate) fn try_start(mut command: Command, mut heard: impl FnMut(&str) + Send + 'static) -> Result<Self, String> {
        let mut child = command.spawn().unwrap();
        let (sender, addresses) = mpsc::channel();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let listening = thread::spawn(move || {
            let mut words = Vec::new();
            for line in lines.map_while(Result::ok) {
                heard(&line);
                let fields = serde_json::from_str::<Value>(&line).map(|mut line| line["fields"].take()).unwrap_or_default();
                if fields["message"] == "listening" {
                    drop(sender.send(Ok(fields["address"].as_str().unwrap().parse().unwrap())));
                }
                words.push(line);
            }
            drop(sender.send(Err(words.join("\n"))));
        });
        let mut this = Self { child, address: SocketAddr::from(([127, 0, 0, 1], 0)), listening: Some(listening) };
        this.address = addresses.recv_timeout(STARTED_WITHIN).unwrap_or_else(|_| Err("it does not listen".to_owned()))?;
        Ok(this)
    }

    /// Starts it and waits until it is ready.
    pub(crate) fn ready(command: Command) -> Self {
        let this = Self::start(command);
        wait_for("readiness", || (this.get("/readyz", "")?.0 == 200).then_some(()));
        this
    }

    /// Asks; `None` when no whole answer came. The key may be empty.
    pub(crate) fn get(&self, path: &str, key: &str) -> Option<(u16, Vec<u8>)> {
        get(self.address, path, key)
    }

    /// Sends a request, as [`send`] does.
    pub(crate) fn send(&self, method: &str, path: &str, key: &str, body: &str) -> Answer {
        send(self.address, method, path, &[("x-api-key", key)], body)
    }

    /// Asks for JSON, which must come with status 200.
    pub(crate) fn json(&self, path: &str, key: &str) -> Value {
        let (status, body) = self.get(path, key).unwrap();
        assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap()
    }

    /// Sends it a signal by name: `STOP`, `CONT`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// The resident memory of its process, in bytes; 0 where the system does not say.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0) * 1_024
    }

    /// Kills it as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.hear_out();
    }

    /// Asks it to stop, and answers how it did.
    pub(crate) fn terminate(mut self) -> ExitStatus {
        self.signal("TERM");
        let ended = wait_for("the end", || self.child.try_wait().unwrap());
        self.hear_out();
        ended
    }

    /// Waits for the last of what it said.
    fn hear_out(&mut self) {
        if let Some(listening) = self.listening.take() {
            listening.join().unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A test that fails must leave no process behind; one that ended before is no error here.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Sends a request, with a JSON body if one is given, and reads the whole answer. Headers without a value are left out.
pub(crate) fn send(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    try_send(address, method, path, headers, body).unwrap()
}

/// The same; `None` when no whole answer came.
pub(crate) fn try_send(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Option<Answer> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        head.push_str(&format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len()));
    }
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(DEADLINE)).ok()?;
    stream.write_all(format!("{head}\r\n").as_bytes()).ok()?;
    // A server that refuses a body may close before it has it all; what it said still comes.
    drop(stream.write_all(body.as_bytes()));
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer));
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let body = answer.split_off(head + 4);
    let head = String::from_utf8(answer).ok()?;
    let answer = Answer { status: head.split(' ').nth(1)?.parse().ok()?, head, body };
    // A body cut by a kill is no answer.
    let is_whole = answer.header("content-length").trim().parse::<usize>().is_ok_and(|length| length == answer.body.len());
    (is_whole || answer.header("content-length").is_empty()).then_some(answer)
}

/// One request over a connection of its own: status and body.
pub(crate) fn get(address: SocketAddr, path: &str, key: &str) -> Option<(u16, Vec<u8>)> {
    ask(address, path, key).map(|answer| (answer.status, answer.body))
}

/// One request over a connection of its own; `None` when no whole answer came. The key may be empty.
pub(crate) fn ask(address: SocketAddr, path: &str, key: &str) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(DEADLINE)).ok()?;
    let key = if key.is_empty() { String::new() } else { format!("x-api-key: {key}\r\n") };
    write!(stream, "GET {path} HTTP/1.0\r\nhost: {address}\r\n{key}\r\n").ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let body = answer.split_off(answer.windows(4).position(|four| four == b"\r\n\r\n")? + 4);
    let head = String::from_utf8_lossy(&answer).into_owned();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let announced = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse::<usize>().ok());
    // A body cut by a kill is no answer.
    announced.is_none_or(|length| length == body.len()).then_some(Answer { status, head, body })
}
