//! What goes wrong, with whom, when and for how long: drawn by chance, then done and healed.

use std::fmt;
use std::thread;
use std::time::Duration;

use engines::own::{Own, Server};

use super::nodes::{NODES, Nodes};
use super::proxy::{Mode, Proxy};
use crate::chance::Chance;

/// Who is struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Server(Server),
    /// By its place in [`NODES`].
    Node(usize),
}

/// In which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    /// `kill -9`; started again when the time is over.
    Killed,
    /// SIGSTOP, and SIGCONT when the time is over.
    Paused,
    /// All connections are cut.
    Cut,
    /// Nothing passes for a while.
    Stalled,
    /// All connections are cut, and new ones for a while.
    Refused,
    /// Requests arrive and are not answered; then all connections are cut: nobody knows what was done.
    Unanswered,
}

/// When it strikes: what must have happened since the round began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The upstreams were asked so often.
    Requests(u64),
    /// The topics of facts and changes have so many more records.
    Appended(u64),
}

/// One fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) target: Target,
    pub(crate) harm: Harm,
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
        write!(f, "{target} {:?} for {} ms after {after}", self.harm, self.lasts.as_millis())
    }
}

impl Fault {
    /// One or two faults of different targets, in a round that asks the upstreams so often and appends so many records when left alone.
    pub(crate) fn draw(chance: &mut Chance, requests: u64, appended: u64) -> Vec<Self> {
        let mut out: Vec<Self> = Vec::new();
        let count = 1 + usize::try_from(chance.below(2)).unwrap();
        while out.len() < count {
            // Every other one strikes a server.
            let target = match chance.below(4) {
                0 => Target::Server(Server::Kafka),
                1 => Target::Server(Server::Cql),
                _ => Target::Node(usize::try_from(chance.below(NODES.len() as u64)).unwrap()),
            };
            if out.iter().any(|fault| fault.target == target) {
                continue;
            }
            let harm = match target {
                Target::Server(_) => {
                    chance.of(&[Harm::Killed, Harm::Killed, Harm::Paused, Harm::Cut, Harm::Stalled, Harm::Refused, Harm::Unanswered])
                }
                Target::Node(_) => chance.of(&[Harm::Killed, Harm::Paused]),
            };
            let lasts_ms_max = match (harm, target) {
                (Harm::Killed, _) => 2_000,
                // Longer than an append waits, at times: it has failed, and is made all the same when the broker goes on.
                (Harm::Paused, Target::Server(Server::Kafka)) => 26_000,
                // Longer than a request to the database waits.
                (Harm::Paused, Target::Server(Server::Cql)) => 12_000,
                // Longer than a lease.
                (Harm::Paused, Target::Node(at)) if NODES[at].1 != "api" => 20_000,
                (Harm::Paused | Harm::Stalled, _) => 7_000,
                (Harm::Refused, _) => 5_000,
                (Harm::Unanswered, _) => 2_000,
                (Harm::Cut, _) => 1,
            };
            // In the first part, so that it strikes while the runs go on.
            let early = |all: u64| (all * 2 / 3).max(1);
            let after = match chance.below(3) {
                0 => After::Requests(chance.below(early(requests))),
                _ => After::Appended(chance.below(early(appended))),
            };
            out.push(Self { target, harm, after, lasts: Duration::from_millis(chance.below(lasts_ms_max)) });
        }
        out
    }

    /// Strikes, waits and heals.
    pub(crate) fn strike(&self, servers: &Own, proxies: &[(Server, Proxy)], nodes: &Nodes) {
        match self.target {
            Target::Server(server) => {
                let proxy = proxies.iter().find_map(|(of, proxy)| (*of == server).then_some(proxy)).unwrap();
                self.strike_server(servers, server, proxy);
            }
            Target::Node(at) if self.harm == Harm::Killed => {
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

    fn strike_server(&self, servers: &Own, server: Server, proxy: &Proxy) {
        match self.harm {
            Harm::Killed => {
                servers.signal(server, "KILL").unwrap();
                thread::sleep(self.lasts);
                servers.up(server).unwrap();
            }
            Harm::Paused => {
                servers.signal(server, "STOP").unwrap();
                thread::sleep(self.lasts);
                servers.signal(server, "CONT").unwrap();
            }
            Harm::Cut => proxy.cut(),
            Harm::Stalled => {
                proxy.set(Mode::Stalled);
                thread::sleep(self.lasts);
                proxy.set(Mode::Forwarding);
            }
            Harm::Refused => {
                proxy.set(Mode::Refusing);
                proxy.cut();
                thread::sleep(self.lasts);
                proxy.set(Mode::Forwarding);
            }
            Harm::Unanswered => {
                proxy.set(Mode::Unanswered);
                thread::sleep(self.lasts);
                proxy.cut();
                proxy.set(Mode::Forwarding);
            }
        }
    }
}
