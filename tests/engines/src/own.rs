//! Servers that only one test uses, so that it may kill and pause them.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{engines, made_for, prerequisites};

/// The range in which ports are searched: below the system's ephemeral ports, which could otherwise occupy a port while its server is down.
const PORTS: std::ops::Range<u16> = 20_000..30_000;
/// The distance between two sets of ports.
const PORTS_PER_SET: u16 = 110;
/// The ports of a set, counted from the broker's: the broker, its secure listeners, the one for proxies, the CQL node's three, the
/// controller.
const USED: [u16; 9] = [0, 10, 20, 30, 50, 60, 61, 62, 101];

/// One of the two servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// The Kafka broker.
    Kafka,
    /// The CQL node.
    Cql,
}

impl Server {
    /// Returns the name for ops/engines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kafka => "kafka",
            Self::Cql => "cql",
        }
    }
}

/// A broker and a CQL node with their own directory and ports. Dropping it stops them and deletes their data; if the process was killed,
/// the next start of any servers stops them, and the next start in the same directory deletes their data.
pub struct Own {
    dir: PathBuf,
    port: u16,
    /// A lock on the directory, held while this exists.
    _lock: File,
}

impl Own {
    /// Starts both servers. The broker advertises `kafka_proxy_port` to clients that connect through [`Own::behind_proxy`].
    ///
    /// # Errors
    /// The reason why they cannot run.
    pub fn start(dir: &Path, kafka_proxy_port: u16) -> Result<Self, String> {
        Self::start_with(dir, &["--kafka-proxy", &kafka_proxy_port.to_string()])
    }

    /// Starts both servers; the broker also listens with SASL and TLS, the CQL node requires a password. See ops/engines, `--secure`.
    ///
    /// # Errors
    /// The reason why they cannot run.
    pub fn start_secure(dir: &Path) -> Result<Self, String> {
        Self::start_with(dir, &["--secure"])
    }

    fn start_with(dir: &Path, options: &[&str]) -> Result<Self, String> {
        prerequisites()?;
        let said = |error: std::io::Error| format!("{}: {error}", dir.display());
        fs::create_dir_all(dir).map_err(said)?;
        let lock = File::create(dir.join("taken")).map_err(said)?;
        lock.lock().map_err(said)?;
        engines(&["wipe", "--dir", &dir.to_string_lossy()])?;
        // A free port may be taken before it is used, so the sets of all test processes start one after another.
        let starting = File::create(std::env::temp_dir().join("highwater-engines-starting")).map_err(said)?;
        starting.lock().map_err(said)?;
        let this = Self { dir: dir.to_owned(), port: free_ports()?, _lock: lock };
        let (kafka, cql, run) = (this.port.to_string(), (this.port + 60).to_string(), std::process::id().to_string());
        this.engines(&[&["up", "--run", &run, "--kafka-port", &kafka, "--cql-port", &cql], options, &made_for("kills")].concat())?;
        drop(starting);
        Ok(this)
    }

    /// Returns `host:port` of the broker, for clients without a proxy.
    #[must_use]
    pub fn kafka(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns `host:port` of the broker's listener with a security protocol, given by Kafka's name in lower case.
    ///
    /// # Panics
    /// With a protocol that Kafka does not have.
    #[must_use]
    pub fn kafka_by(&self, protocol: &str) -> String {
        let further =
            ["plaintext", "sasl_plaintext", "ssl", "sasl_ssl"].iter().position(|name| *name == protocol).expect("a protocol of Kafka");
        format!("127.0.0.1:{}", usize::from(self.port) + further * 10)
    }

    /// Returns `host:port` of the CQL node.
    #[must_use]
    pub fn cql(&self) -> String {
        self.behind_proxy(Server::Cql)
    }

    /// Returns the file of the authority that signed the servers' certificates, or of another one.
    #[must_use]
    pub fn authority(&self, is_theirs: bool) -> PathBuf {
        self.dir.join("tls").join(if is_theirs { "ca.pem" } else { "other-ca.pem" })
    }

    /// Returns the `host:port` to which a proxy of that server forwards.
    #[must_use]
    pub fn behind_proxy(&self, server: Server) -> String {
        let port = match server {
            Server::Kafka => self.port + 50,
            Server::Cql => self.port + 60,
        };
        format!("127.0.0.1:{port}")
    }

    /// Restarts a server if it is dead; returns when it answers.
    ///
    /// # Errors
    /// The reason why it does not answer.
    pub fn up(&self, server: Server) -> Result<(), String> {
        self.engines(&["up", "--only", server.name()]).map(|_| ())
    }

    /// Sends a server a signal by name: `KILL`, `STOP`, `CONT`.
    ///
    /// # Errors
    /// When the server does not run.
    pub fn signal(&self, server: Server, name: &str) -> Result<(), String> {
        let folder = match server {
            Server::Kafka => "kafka-1",
            Server::Cql => "cql",
        };
        let process = self.dir.join(folder).join("process");
        let text = fs::read_to_string(&process).map_err(|error| format!("{}: {error}", process.display()))?;
        let id = text.split(' ').next().unwrap_or_default();
        let sent = Command::new("kill").args([&format!("-{name}"), id]).status().map_err(|error| format!("kill: {error}"))?;
        if sent.success() { Ok(()) } else { Err(format!("{folder} does not run as {id}")) }
    }

    fn engines(&self, arguments: &[&str]) -> Result<String, String> {
        engines(&[arguments, &["--dir", &self.dir.to_string_lossy()]].concat())
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // A test that fails must leave no process behind, but may leave the servers' logs. If this fails, the next start tries again.
        let command = if std::thread::panicking() { "down" } else { "wipe" };
        drop(self.engines(&[command]));
    }
}

/// Returns the first port of a set whose ports are all free.
fn free_ports() -> Result<u16, String> {
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    // Sets that start at the same time search from different ports.
    let from = u16::try_from(std::process::id() % 80).unwrap_or_default();
    let sets = (0..80).map(|n| PORTS.start + (from + n) % 80 * PORTS_PER_SET);
    sets.filter(|port| PORTS.contains(port))
        .find(|port| USED.iter().all(|used| is_free(port + used)))
        .ok_or_else(|| format!("no free ports from {} to {}", PORTS.start, PORTS.end))
}
