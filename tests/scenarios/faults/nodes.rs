//! The nodes of a cluster, which are restarted when they die, as a process supervisor does.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::process::{Server, get, wait_for};

/// Names and roles.
pub(crate) const NODES: [(&str, &str); 6] =
    [("i1", "ingest"), ("i2", "ingest"), ("p1", "project"), ("p2", "project"), ("a1", "api"), ("a2", "api")];
/// How long a node may take to start, over all attempts.
const START_TIMEOUT: Duration = Duration::from_secs(180);
/// The pause between two attempts.
const START_RETRY_PAUSE: Duration = Duration::from_millis(200);

/// The current process of a node.
#[derive(Default)]
struct NodeProcess {
    server: Option<Server>,
    /// How often the node was started.
    starts: u64,
}

/// All nodes of [`NODES`].
pub(crate) struct Nodes {
    pub(crate) cluster: Cluster,
    lives: [Mutex<NodeProcess>; NODES.len()],
    /// The directory of the nodes' standard error.
    logs: PathBuf,
    panicked: (Mutex<Sender<String>>, Mutex<Receiver<String>>),
}

impl Nodes {
    /// Starts all nodes at the same time and stores their standard error in `logs`.
    pub(crate) fn start(cluster: Cluster, logs: PathBuf) -> Self {
        drop(fs::remove_dir_all(&logs));
        fs::create_dir_all(&logs).unwrap();
        let (sender, panicked) = mpsc::channel();
        let this = Self { cluster, lives: Default::default(), logs, panicked: (Mutex::new(sender), Mutex::new(panicked)) };
        thread::scope(|scope| {
            for at in 0..NODES.len() {
                let this = &this;
                scope.spawn(move || this.start_again(at));
            }
        });
        this
    }

    /// Restarts a dead node, with as many attempts as it takes while a server is unavailable.
    pub(crate) fn start_again(&self, at: usize) {
        let (name, role) = NODES[at];
        let started = Instant::now();
        loop {
            let path = self.logs.join(format!("{name}.log"));
            let mut log = OpenOptions::new().create(true).append(true).open(path).unwrap();
            let panicked = self.panicked.0.lock().unwrap().clone();
            let heard = move |line: &str| {
                writeln!(log, "{line}").unwrap();
                if line.contains("panicked at") {
                    drop(panicked.send(format!("{name}: {line}")));
                }
            };
            match Server::try_start(self.cluster.command(name, &["serve", "--role", role]), heard) {
                Ok(server) => {
                    let mut life = self.lives[at].lock().unwrap();
                    life.server = Some(server);
                    life.starts += 1;
                    return;
                }
                Err(message) => assert!(started.elapsed() < START_TIMEOUT, "{name} does not start: {message}"),
            }
            thread::sleep(START_RETRY_PAUSE);
        }
    }

    /// Kills a node as `kill -9` does.
    pub(crate) fn kill(&self, at: usize) {
        let server = self.lives[at].lock().unwrap().server.take();
        server.unwrap().kill();
    }

    /// Sends a node a signal by name.
    pub(crate) fn signal(&self, at: usize, name: &str) {
        self.lives[at].lock().unwrap().server.as_ref().unwrap().signal(name);
    }

    /// Returns a node's address if it runs, and how often it was started.
    pub(crate) fn address(&self, at: usize) -> (Option<SocketAddr>, u64) {
        let life = self.lives[at].lock().unwrap();
        (life.server.as_ref().map(|server| server.address), life.starts)
    }

    /// Returns the indexes of the nodes of a role.
    pub(crate) fn with_role(role: &str) -> Vec<usize> {
        (0..NODES.len()).filter(|at| NODES[*at].1 == role).collect()
    }

    /// Waits until all nodes are ready.
    pub(crate) fn wait_ready(&self) {
        for (at, (name, _)) in NODES.iter().enumerate() {
            let address = self.address(at).0.unwrap();
            let mut last = None;
            let mut is_ready = || {
                last = get(address, "/readyz", "");
                last.as_ref().is_some_and(|(status, _)| *status == 200).then_some(())
            };
            wait_for(&format!("readiness of {name}"), &mut is_ready);
        }
    }

    /// Panics if a process panicked.
    pub(crate) fn assert_none_panicked(&self) {
        let message: Vec<String> = self.panicked.1.lock().unwrap().try_iter().collect();
        assert!(message.is_empty(), "{message:?}");
    }

    /// Stops all nodes, which must exit without error.
    pub(crate) fn terminate(self) {
        for (at, (name, _)) in NODES.iter().enumerate() {
            let server = self.lives[at].lock().unwrap().server.take();
            assert_eq!(server.unwrap().terminate().code(), Some(0), "{name}");
        }
        self.assert_none_panicked();
    }
}
