//! How many connections are open, from where, and which one gives way when there is no room for another.
//!
//! Promises: no address (IPv6: no /64) holds more than its share, so that one client cannot keep out the others; when an address or the whole
//! listener is full, the connection that has waited longest for its caller's next request is closed for the new one. A connection whose
//! request is being answered is never closed for another.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::Instant;

use crate::forwarded::network_of;

/// Marks a connection whose request is being answered.
const ANSWERING: u64 = u64::MAX;

/// The connections of a listener.
#[derive(Debug)]
pub(super) struct Connections {
    max: usize,
    per_address_max: usize,
    begun: Instant,
    open: Mutex<Open>,
    /// Notified when a connection ends.
    freed: Notify,
}

#[derive(Debug, Default)]
struct Open {
    total: usize,
    last_id: u64,
    by_network: HashMap<IpAddr, BTreeMap<u64, Arc<State>>>,
}

/// One connection, as far as others need to know it.
#[derive(Debug)]
struct State {
    /// Microseconds since the listener began at which it began to wait for a request; [`ANSWERING`] while one is being answered.
    waiting_since: AtomicU64,
    give_way: Notify,
}

/// Why a connection is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// Its address has its share, and all of them are being answered.
    Address,
    /// The listener is full, and all are being answered.
    Listener,
}

/// An open connection's room; given back when dropped.
#[derive(Debug)]
pub(super) struct Room {
    connections: Arc<Connections>,
    network: IpAddr,
    id: u64,
    state: Arc<State>,
}

/// A request that is being answered; over when dropped.
#[derive(Debug)]
pub(super) struct Answering {
    connections: Arc<Connections>,
    state: Arc<State>,
}

impl Connections {
    /// At most `max` connections, and `per_address_max` from one address; both at least 1.
    pub(super) fn new(max: usize, per_address_max: usize) -> Arc<Self> {
        let (max, per_address_max) = (max.max(1), per_address_max.max(1));
        Arc::new(Self { max, per_address_max, begun: Instant::now(), open: Mutex::default(), freed: Notify::new() })
    }

    /// Takes a connection. `is_shared` says that many callers stand behind the address (a trusted proxy): it has no share of its own.
    ///
    /// # Errors
    /// There is no room, and no connection that could give way.
    pub(super) fn take(self: &Arc<Self>, address: IpAddr, is_shared: bool) -> Result<Room, Full> {
        let network = network_of(address);
        let mut open = self.open();
        let own = open.by_network.get(&network).map_or(0, BTreeMap::len);
        if own >= self.per_address_max && !is_shared {
            open.close_longest_waiting(network).then_some(()).ok_or(Full::Address)?;
        } else if open.total >= self.max {
            open.close_of_largest().then_some(()).ok_or(Full::Listener)?;
        }
        open.last_id += 1;
        open.total += 1;
        let (id, state) = (open.last_id, Arc::new(State { waiting_since: AtomicU64::new(self.now_micros()), give_way: Notify::new() }));
        open.by_network.entry(network).or_default().insert(id, Arc::clone(&state));
        Ok(Room { connections: Arc::clone(self), network, id, state })
    }

    /// Ready once a connection has ended after this call.
    pub(super) fn freed(&self) -> Notified<'_> {
        self.freed.notified()
    }

    /// Waits until no connection is open.
    pub(super) async fn all_ended(&self) {
        loop {
            let freed = self.freed.notified();
            if self.count() == 0 {
                return;
            }
            freed.await;
        }
    }

    /// Connections open.
    pub(super) fn count(&self) -> usize {
        self.open().total
    }

    /// Connections that may be open.
    pub(super) fn max(&self) -> usize {
        self.max
    }

    /// How long a client may take for a request's head: shorter the fewer places are left, down to a quarter.
    pub(super) fn head_timeout(&self, longest: Duration) -> Duration {
        match self.open().total * 4 / self.max {
            0 | 1 => longest,
            2 => longest / 2,
            _ => longest / 4,
        }
    }

    fn now_micros(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(ANSWERING - 1)
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Closes a waiting connection of the network that has most, or of the next one that has any; false if all are being answered.
    fn close_of_largest(&mut self) -> bool {
        let mut networks: Vec<(usize, IpAddr)> =
            self.by_network.iter().map(|(network, connections)| (connections.len(), *network)).collect();
        networks.sort_unstable_by(|a, b| b.cmp(a));
        networks.into_iter().any(|(_, network)| self.close_longest_waiting(network))
    }

    /// Closes the connection of a network that has waited longest for a request; false if all are being answered. It no longer counts.
    fn close_longest_waiting(&mut self, network: IpAddr) -> bool {
        let Some(connections) = self.by_network.get_mut(&network) else { return false };
        let waiting = connections.iter().map(|(id, state)| (state.waiting_since.load(Ordering::Relaxed), *id));
        let Some((_, id)) = waiting.filter(|(since, _)| *since != ANSWERING).min() else { return false };
        if let Some(state) = connections.remove(&id) {
            self.total -= 1;
            state.give_way.notify_one();
        }
        true
    }
}

impl Room {
    /// Waits until this connection has to give way to another.
    pub(super) async fn gives_way(&self) {
        self.state.give_way.notified().await;
    }

    /// A request's head has arrived. The connection is not closed for another until the answer has been sent.
    pub(super) fn answering(&self) -> Answering {
        self.state.waiting_since.store(ANSWERING, Ordering::Relaxed);
        Answering { connections: Arc::clone(&self.connections), state: Arc::clone(&self.state) }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut open = self.connections.open();
        if let Some(connections) = open.by_network.get_mut(&self.network) {
            let was_counted = connections.remove(&self.id).is_some();
            if connections.is_empty() {
                open.by_network.remove(&self.network);
            }
            open.total -= usize::from(was_counted);
        }
        drop(open);
        self.connections.freed.notify_waiters();
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.state.waiting_since.store(self.connections.now_micros(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Whether a connection has been asked to give way.
    async fn has_given_way(room: &Room) -> bool {
        tokio::time::timeout(Duration::from_millis(1), room.gives_way()).await.is_ok()
    }

    /// Proves that an address that has its share loses the connection that waits longest, keeps those being answered, and keeps nobody else out.
    #[tokio::test]
    async fn one_address_has_its_share() {
        let connections = Connections::new(100, 3);
        let mut own = Vec::new();
        for _ in 0..3 {
            own.push(connections.take(address("192.0.2.1"), false).unwrap());
        }
        let answering = own[0].answering();
        let fourth = connections.take(address("192.0.2.1"), false).unwrap();
        assert!(!has_given_way(&own[0]).await, "its request is being answered");
        assert!(has_given_way(&own[1]).await && !has_given_way(&own[2]).await);
        assert_eq!(connections.count(), 3);
        // A connection that has answered waits from then on, not from its beginning.
        drop(answering);
        let fifth = connections.take(address("192.0.2.1"), false).unwrap();
        assert!(has_given_way(&own[2]).await && !has_given_way(&own[0]).await);
        let all: Vec<Answering> = [&own[0], &fourth, &fifth].map(Room::answering).into();
        assert_eq!(connections.take(address("192.0.2.1"), false).unwrap_err(), Full::Address);
        assert!(connections.take(address("192.0.2.2"), false).is_ok());
        assert!(connections.take(address("192.0.2.1"), true).is_ok(), "a trusted proxy has no share of its own");
        drop((all, own, fourth, fifth));
        assert_eq!(connections.count(), 0);
        connections.all_ended().await;
    }

    /// Proves that the addresses of one IPv6 /64 have one share, since whoever has one has all of them.
    #[test]
    fn one_network_has_one_share() {
        let connections = Connections::new(100, 1);
        let first = connections.take(address("2001:db8::1"), false).unwrap();
        let _answering = first.answering();
        assert_eq!(connections.take(address("2001:db8::ffff:2"), false).unwrap_err(), Full::Address);
        assert!(connections.take(address("2001:db8:0:1::1"), false).is_ok());
        let mapped = connections.take(address("::ffff:192.0.2.1"), false).unwrap();
        let _answering = mapped.answering();
        assert_eq!(connections.take(address("192.0.2.1"), false).unwrap_err(), Full::Address);
    }

    /// Proves that a full listener takes room from the address that has most, that one that only answers is full, and that time for a head runs short.
    #[tokio::test]
    async fn the_whole_listener() {
        let connections = Connections::new(4, 4);
        let second = Duration::from_secs(1);
        assert_eq!(connections.head_timeout(second), second);
        let many: Vec<Room> = (0..3).map(|_| connections.take(address("192.0.2.1"), false).unwrap()).collect();
        let few = connections.take(address("192.0.2.2"), false).unwrap();
        assert_eq!(connections.head_timeout(second), second / 4);
        let newcomer = connections.take(address("192.0.2.3"), false).unwrap();
        assert!(has_given_way(&many[0]).await && !has_given_way(&few).await);
        let mut answering: Vec<Answering> = many[1..].iter().chain([&newcomer]).map(Room::answering).collect();
        let last = connections.take(address("192.0.2.4"), false).unwrap();
        assert!(has_given_way(&few).await, "where the largest network only answers, another one gives way");
        answering.push(last.answering());
        assert_eq!(connections.take(address("192.0.2.5"), false).unwrap_err(), Full::Listener);
    }
}
