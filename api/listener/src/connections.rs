//! Limits the number of open connections, in total and per address, and selects which connection is closed to make room.
//!
//! Promises: no address (IPv6: no /64) holds more than its share, and no IPv6 /48 more than [`SHARES_PER_SITE`] shares, so one client cannot lock out the
//! others. If an address or the whole listener is
//! full, the connection that has been idle longest is closed for the new one. A connection with a request in flight is never closed for another
//! one.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::Instant;

use crate::caller_address::{network_of, site_of};

/// Marks a connection with a request in flight.
const IN_FLIGHT: u64 = u64::MAX;

/// How many times the share of one IPv6 /64 all addresses of a /48 have together: half of a listener, where an address has an eighth.
const SHARES_PER_SITE: usize = 4;

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
    /// The number of connections of each IPv6 /48.
    by_site: HashMap<IpAddr, usize>,
}

/// The state of one connection.
#[derive(Debug)]
struct State {
    /// Since when the connection is idle, in microseconds since the listener started; [`IN_FLIGHT`] while a request is in flight.
    waiting_since: AtomicU64,
    give_way: Notify,
}

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// The address has its share of connections, all with requests in flight.
    Address,
    /// The listener is full, and all connections have requests in flight.
    Listener,
}

/// The slot of an open connection; returned when dropped.
#[derive(Debug)]
pub(super) struct Room {
    connections: Arc<Connections>,
    network: IpAddr,
    id: u64,
    state: Arc<State>,
}

/// A request in flight; ends when dropped.
#[derive(Debug)]
pub(super) struct ActiveRequest {
    connections: Arc<Connections>,
    state: Arc<State>,
}

impl Connections {
    /// Creates a limit of `max` connections, and `per_address_max` from one address; both at least 1.
    pub(super) fn new(max: usize, per_address_max: usize) -> Arc<Self> {
        let (max, per_address_max) = (max.max(1), per_address_max.max(1));
        Arc::new(Self { max, per_address_max, begun: Instant::now(), open: Mutex::default(), freed: Notify::new() })
    }

    /// Takes a slot. `is_shared` means that many callers share the address (a trusted proxy), so it has no limit of its own.
    ///
    /// # Errors
    /// When there is no slot, and no idle connection to close.
    pub(super) fn take(self: &Arc<Self>, address: IpAddr, is_shared: bool) -> Result<Room, Full> {
        let network = network_of(address);
        let mut open = self.open();
        let own = open.by_network.get(&network).map_or(0, BTreeMap::len);
        let site = site_of(network);
        let of_site = site.and_then(|site| open.by_site.get(&site).copied()).unwrap_or(0);
        if own >= self.per_address_max && !is_shared {
            open.close_longest_waiting(network).then_some(()).ok_or(Full::Address)?;
        } else if of_site >= self.per_address_max.saturating_mul(SHARES_PER_SITE) && !is_shared {
            open.close_of_largest(|other| site_of(other) == site).then_some(()).ok_or(Full::Address)?;
        } else if open.total >= self.max {
            open.close_of_largest(|_| true).then_some(()).ok_or(Full::Listener)?;
        }
        open.last_id += 1;
        open.total += 1;
        if let Some(site) = site {
            *open.by_site.entry(site).or_default() += 1;
        }
        let (id, state) = (open.last_id, Arc::new(State { waiting_since: AtomicU64::new(self.now_micros()), give_way: Notify::new() }));
        open.by_network.entry(network).or_default().insert(id, Arc::clone(&state));
        Ok(Room { connections: Arc::clone(self), network, id, state })
    }

    /// Completes when a connection ends after this call.
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

    /// The number of open connections.
    pub(super) fn count(&self) -> usize {
        self.open().total
    }

    /// The most open connections.
    pub(super) fn max(&self) -> usize {
        self.max
    }

    /// How long a client may take to send the head of a request. With few free slots the time is shorter, down to a quarter.
    pub(super) fn head_timeout(&self, longest: Duration) -> Duration {
        match self.open().total * 4 / self.max {
            0 | 1 => longest,
            2 => longest / 2,
            _ => longest / 4,
        }
    }

    fn now_micros(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(IN_FLIGHT - 1)
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Counts a connection of a network as ended.
    fn uncount(&mut self, network: IpAddr) {
        self.total -= 1;
        let Some(site) = site_of(network) else { return };
        if let Some(count) = self.by_site.get_mut(&site) {
            *count -= 1;
            if *count == 0 {
                self.by_site.remove(&site);
            }
        }
    }

    /// Closes an idle connection of the network with the most connections, or of the next one that has any; false if there is none. Only networks that
    /// are asked for lose one.
    fn close_of_largest(&mut self, is_asked_for: impl Fn(IpAddr) -> bool) -> bool {
        let all = self.by_network.iter().map(|(network, connections)| (connections.len(), *network));
        let mut networks: Vec<(usize, IpAddr)> = all.filter(|(_, network)| is_asked_for(*network)).collect();
        networks.sort_unstable_by(|a, b| b.cmp(a));
        networks.into_iter().any(|(_, network)| self.close_longest_waiting(network))
    }

    /// Closes the longest idle connection of a network; false if there is none. The connection does not count any more.
    fn close_longest_waiting(&mut self, network: IpAddr) -> bool {
        let Some(connections) = self.by_network.get_mut(&network) else { return false };
        let waiting = connections.iter().map(|(id, state)| (state.waiting_since.load(Ordering::Relaxed), *id));
        let Some((_, id)) = waiting.filter(|(since, _)| *since != IN_FLIGHT).min() else { return false };
        if let Some(state) = connections.remove(&id) {
            self.uncount(network);
            state.give_way.notify_one();
        }
        true
    }
}

impl Room {
    /// Waits until this connection has to be closed for another one.
    pub(super) async fn close_requested(&self) {
        self.state.give_way.notified().await;
    }

    /// Whether a request is in flight: its head has arrived, and its response has not been sent.
    pub(super) fn has_request(&self) -> bool {
        self.state.waiting_since.load(Ordering::Relaxed) == IN_FLIGHT
    }

    /// A request's head has arrived. The connection is not closed for another one until the response has been sent.
    pub(super) fn begin_request(&self) -> ActiveRequest {
        self.state.waiting_since.store(IN_FLIGHT, Ordering::Relaxed);
        ActiveRequest { connections: Arc::clone(&self.connections), state: Arc::clone(&self.state) }
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
            if was_counted {
                open.uncount(self.network);
            }
        }
        drop(open);
        self.connections.freed.notify_waiters();
    }
}

impl Drop for ActiveRequest {
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

    /// Whether a connection has been asked to close.
    async fn is_asked_to_close(room: &Room) -> bool {
        tokio::time::timeout(Duration::from_millis(1), room.close_requested()).await.is_ok()
    }

    /// Proves that an address at its limit loses its longest idle connection, keeps those with requests in flight, and does not affect other addresses.
    #[tokio::test]
    async fn one_address_has_its_share() {
        let connections = Connections::new(100, 3);
        let mut own = Vec::new();
        for _ in 0..3 {
            own.push(connections.take(address("192.0.2.1"), false).unwrap());
        }
        let active = own[0].begin_request();
        let fourth = connections.take(address("192.0.2.1"), false).unwrap();
        assert!(!is_asked_to_close(&own[0]).await, "its request is being answered");
        assert!(is_asked_to_close(&own[1]).await && !is_asked_to_close(&own[2]).await);
        assert_eq!(connections.count(), 3);
        // A connection is idle since its last response, not since it was opened.
        drop(active);
        let fifth = connections.take(address("192.0.2.1"), false).unwrap();
        assert!(is_asked_to_close(&own[2]).await && !is_asked_to_close(&own[0]).await);
        let all: Vec<ActiveRequest> = [&own[0], &fourth, &fifth].map(Room::begin_request).into();
        assert_eq!(connections.take(address("192.0.2.1"), false).unwrap_err(), Full::Address);
        assert!(connections.take(address("192.0.2.2"), false).is_ok());
        assert!(connections.take(address("192.0.2.1"), true).is_ok(), "a trusted proxy has no share of its own");
        drop((all, own, fourth, fifth));
        assert_eq!(connections.count(), 0);
        connections.all_ended().await;
    }

    /// Proves that the addresses of one IPv6 /64 share one limit.
    #[test]
    fn one_network_has_one_share() {
        let connections = Connections::new(100, 1);
        let first = connections.take(address("2001:db8::1"), false).unwrap();
        let _answering = first.begin_request();
        assert_eq!(connections.take(address("2001:db8::ffff:2"), false).unwrap_err(), Full::Address);
        assert!(connections.take(address("2001:db8:0:1::1"), false).is_ok());
        let mapped = connections.take(address("::ffff:192.0.2.1"), false).unwrap();
        let _answering = mapped.begin_request();
        assert_eq!(connections.take(address("192.0.2.1"), false).unwrap_err(), Full::Address);
    }

    /// Proves that an IPv6 /48 has some shares and no more, however many /64 it has, and gives them back.
    #[tokio::test]
    async fn one_site_has_some_shares() {
        let connections = Connections::new(100, 2);
        let take = |network: usize| connections.take(address(&format!("2001:db8:0:{network:x}::1")), false);
        let rooms: Vec<Room> = (0..2 * SHARES_PER_SITE).map(|network| take(network).unwrap()).collect();
        let mut active: Vec<ActiveRequest> = rooms.iter().skip(1).map(Room::begin_request).collect();
        let one_more = take(100).unwrap();
        assert!(is_asked_to_close(&rooms[0]).await && !is_asked_to_close(&rooms[1]).await);
        active.push(one_more.begin_request());
        assert_eq!(take(101).unwrap_err(), Full::Address);
        assert!(connections.take(address("2001:db8:0:65::1"), true).is_ok(), "a trusted proxy has no share of its own");
        assert!(connections.take(address("2001:db8:1::1"), false).is_ok() && connections.take(address("192.0.2.1"), false).is_ok());
        drop((active, rooms, one_more));
        assert_eq!((connections.count(), connections.open().by_site.len()), (0, 0));
    }

    /// Proves that a full listener closes connections of the address with the most, that it is full when all have requests in flight, and that the time for
    /// a head becomes shorter.
    #[tokio::test]
    async fn the_whole_listener() {
        let connections = Connections::new(4, 4);
        let second = Duration::from_secs(1);
        assert_eq!(connections.head_timeout(second), second);
        let many: Vec<Room> = (0..3).map(|_| connections.take(address("192.0.2.1"), false).unwrap()).collect();
        let few = connections.take(address("192.0.2.2"), false).unwrap();
        assert_eq!(connections.head_timeout(second), second / 4);
        let newcomer = connections.take(address("192.0.2.3"), false).unwrap();
        assert!(is_asked_to_close(&many[0]).await && !is_asked_to_close(&few).await);
        let mut active: Vec<ActiveRequest> = many[1..].iter().chain([&newcomer]).map(Room::begin_request).collect();
        let last = connections.take(address("192.0.2.4"), false).unwrap();
        assert!(is_asked_to_close(&few).await, "if the largest network has no idle connection, another network loses one");
        active.push(last.begin_request());
        assert_eq!(connections.take(address("192.0.2.5"), false).unwrap_err(), Full::Listener);
    }
}
