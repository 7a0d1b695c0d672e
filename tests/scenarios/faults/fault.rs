//! A fault: its target, kind, time and duration. Faults are drawn at random, injected and removed again.

use std::fmt;
use std::thread;
use std::time::Duration;

use engines::own::{Own, Server};

use super::nodes::{NODES, Nodes};
use super::proxy::{Mode, Proxy};
use crate::random::Random;

/// What a fault affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Server(Server),
    /// A node, by its index in [`NODES`].
    Node(usize),
}

/// How a target fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// `kill -9`; the target is started again at the end of the fault.
    Killed,
    /// SIGSTOP, and SIGCONT at the end of the fault.
    Paused,
    /// All connections are closed.
    Cut,
    /// No bytes pass for a while.
    Stalled,
    /// All connections are closed, and new ones are refused for a while.
    Refused,
    /// Requests arrive and are not answered; then all connections are closed, so that the client does not know what was done.
    Unanswered,
}

/// When a fault begins, counted from the start of the round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// After this many requests to the upstreams.
    Requests(u64),
    /// After this many records were appended to the topics of facts and changes.
    Appended(u64),
}

/// One fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) target: Target,
    pub(crate) kind: FaultKind,
    pub(crate) after: After,
    pub(crate) lasts: Duration,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = match self.target {
            Target::Server(server) => server.name(),
            Target::Node(at) => NODES[at].0,
        };
        let after = match self.after {
            After::Requests(n) => format!("{n} requests"),
            After::Appended(n) => format!("{n} records"),
        };
        write!(f, "{target} {:?} for {} ms after {after}", self.kind, self.lasts.as_millis())
    }
}

impl Fault {
    /// Draws one or two faults of different targets, for a round that makes `requests` requests and appends `appended` records without
    /// faults.
    pub(crate) fn draw(random: &mut Random, requests: u64, appended: u64) -> Vec<Self> {
        let mut out: Vec<Self> = Vec::new();
        let count = 1 + usize::try_from(random.below(2)).unwrap();
        while out.len() < count {
            // Every other fault affects a server.
            let target = match random.below(4) {
                0 => Target::Server(Server::Kafka),
                1 => Target::Server(Server::Cql),
                _ => Target::Node(usize::try_from(random.below(NODES.len() as u64)).unwrap()),
            };
            if out.iter().any(|fault| fault.target == target) {
                continue;
            }
            let kind = match target {
                Target::Server(_) => random.pick(&[
                    FaultKind::Killed,
                    FaultKind::Killed,
                    FaultKind::Paused,
                    FaultKind::Cut,
                    FaultKind::Stalled,
                    FaultKind::Refused,
                    FaultKind::Unanswered,
                ]),
                Target::Node(_) => random.pick(&[FaultKind::Killed, FaultKind::Paused]),
            };
            let lasts_ms_max = match (kind, target) {
                (FaultKind::Killed, _) => 2_000,
                // Sometimes longer than the timeout of an append, which then fails for the caller although the broker completes it later.
                (FaultKind::Paused, Target::Server(Server::Kafka)) => 26_000,
                // Longer than the timeout of a database request.
                (FaultKind::Paused, Target::Server(Server::Cql)) => 12_000,
                // Longer than a lease.
                (FaultKind::Paused, Target::Node(at)) if NODES[at].1 != "api" => 20_000,
                (FaultKind::Paused | FaultKind::Stalled, _) => 7_000,
                (FaultKind::Refused, _) => 5_000,
                (FaultKind::Unanswered, _) => 2_000,
                (FaultKind::Cut, _) => 1,
            };
            // In the first two thirds, so that the fault begins during the syncs.
            let early = |all: u64| (all * 2 / 3).max(1);
            let after = match random.below(3) {
                0 => After::Requests(random.below(early(requests))),
                _ => After::Appended(random.below(early(appended))),
            };
            out.push(Self { target, kind, after, lasts: Duration::from_millis(random.below(lasts_ms_max)) });
        }
        out
    }

    /// Injects the fault, waits for its duration and removes it.
    pub(crate) fn inject(&self, servers: &Own, proxies: &[(Server, Proxy)], nodes: &Nodes) {
        match self.target {
            Target::Server(server) => {
                let proxy = proxies.iter().find_map(|(of, proxy)| (*of == server).then_some(proxy)).unwrap();
                self.inject_into_server(servers, server, proxy);
            }
            Target::Node(at) if self.kind == FaultKind::Killed => {
                nodes.kill(at);
                thread::sleep(self.lasts);
                nodes.start_again(at);
            }
            Target::Node(at) => {
                nodes.signal(at, "STOP");
                thread::sleep(self.lasts);
                nodes.signal(at, "CONT");
            }
        }
    }

    fn inject_into_server(&self, servers: &Own, server: Server, proxy: &Proxy) {
        match self.kind {
            FaultKind::Killed => {
                servers.signal(server, "KILL").unwrap();
                thread::sleep(self.lasts);
                servers.up(server).unwrap();
            }
            FaultKind::Paused => {
                servers.signal(server, "STOP").unwrap();
                thread::sleep(self.lasts);
                servers.signal(server, "CONT").unwrap();
            }
            FaultKind::Cut => proxy.cut(),
            FaultKind::Stalled => {
                proxy.set(Mode::Stalled);
                thread::sleep(self.lasts);
                proxy.set(Mode::Forwarding);
            }
            FaultKind::Refused => {
                proxy.set(Mode::RefusingFacilitator);
                proxy.cut();
                thread::sleep(self.lasts);
                proxy.set(Mode::Forwarding);
            }
            FaultKind::Unanswered => {
                proxy.set(Mode::Unanswered);
                thread::sleep(self.lasts);
                proxy.cut();
                proxy.set(Mode::Forwarding);
            }
        }
    }
}
