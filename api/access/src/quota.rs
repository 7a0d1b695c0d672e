//! Quotas, leased in blocks from counters that all nodes share.
//!
//! Promises: there are never more calls than the quota, over many nodes and across a kill, because a block is leased before any of it is used. One
//! node allows exactly the quota, and the remaining calls read 0 exactly at the limit. A kill loses at most one block per subject, a clean
//! shutdown ([`Quotas::release_all`]) none. Memory is bounded: the least recently used subjects return their blocks.
//!
//! ```text
//! counter    0 ....... used ....... quota          used  = leased to all nodes, including blocks that are not used up
//!                      floor                       floor = the counter after this node's last lease
//! ```
//! A request for a block names the next floor as its bound, so its result shows the value of the counter; no call reads the counter separately.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use operation::tiers::Window;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use view_store::ViewStore;
use view_store::store::Error;

/// The most subjects whose blocks are held at a time.
const SUBJECTS_MAX: usize = 50_000;
/// The largest block that is leased, in calls.
const BLOCK_CALLS_MAX: i64 = 500;
/// How long a refusal is cached. After that the counter is read again, because another node may have returned calls.
const REFUSED_FOR: Duration = Duration::from_secs(1);
/// How long counters are kept after their window, so that nodes whose clocks differ a little agree on them.
const KEPT_MS: i64 = 600_000;

/// The result of using one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    /// Whether the call is within the quota.
    pub allowed: bool,
    /// Calls left in the window.
    pub remaining: i64,
    /// Seconds until the next window begins.
    pub reset_s: u64,
}

/// The calls of one subject that this node has leased.
#[derive(Debug, Default)]
struct Lease {
    /// The number of the window since 1970.
    number: i64,
    /// The value of the counter after the last lease.
    floor: i64,
    /// Calls that are leased and not used yet.
    left: i64,
    refused_until: Option<Instant>,
    /// The lease was returned and removed from the map; a task that still holds it must get a new one.
    is_closed: bool,
}

#[derive(Debug, Default)]
struct Subject {
    /// When it was last used, in uses of the whole map.
    used: AtomicU64,
    lease: Arc<AsyncMutex<Lease>>,
}

type Name = (String, &'static str);

/// The quotas of all callers that this node serves.
#[derive(Debug)]
pub struct Quotas {
    subjects: Mutex<HashMap<Name, (Window, Arc<Subject>)>>,
    subjects_max: usize,
    uses: AtomicU64,
}

impl Default for Quotas {
    fn default() -> Self {
        Self::new(SUBJECTS_MAX)
    }
}

impl Quotas {
    /// Creates quotas that hold the blocks of at most the given number of subjects.
    #[must_use]
    pub fn new(subjects_max: usize) -> Self {
        Self { subjects: Mutex::default(), subjects_max: subjects_max.max(1), uses: AtomicU64::new(0) }
    }

    /// Uses one call of a subject's window.
    ///
    /// # Errors
    /// When the counter cannot be reached; no call is used then.
    pub async fn spend(&self, store: &Arc<dyn ViewStore>, subject: &str, window: Window, now_ms: i64) -> Result<Spent, Error> {
        self.take(store, subject, window, now_ms, 1).await
    }

    /// What is left of a subject's window, and whether one more call is within it. Uses no call.
    ///
    /// # Errors
    /// As those of [`Self::spend`].
    pub async fn look(&self, store: &Arc<dyn ViewStore>, subject: &str, window: Window, now_ms: i64) -> Result<Spent, Error> {
        self.take(store, subject, window, now_ms, 0).await
    }

    /// Uses so many calls, one or none.
    async fn take(&self, store: &Arc<dyn ViewStore>, subject: &str, window: Window, now_ms: i64, calls: i64) -> Result<Spent, Error> {
        let length_ms = window.length_s.max(1) * 1_000;
        let number = window_number(window, now_ms);
        let rest_ms = (number + 1) * length_ms - now_ms;
        let reset_s = u64::try_from(rest_ms.div_euclid(1_000) + i64::from(rest_ms.rem_euclid(1_000) > 0)).unwrap_or(1);
        let mut lease = self.lease(store, subject, window, now_ms).await;
        if lease.number != number {
            *lease = Lease { number, ..Lease::default() };
        }
        if lease.left == 0 && lease.refused_until.is_none_or(|until| until <= Instant::now()) {
            let refill = refill(lease, Arc::clone(store), counter(subject, window, number), window, now_ms);
            // In a task of its own, so that a caller that disconnects does not lose the calls that were leased.
            lease = match tokio::spawn(refill).await {
                Ok(refilled) => refilled?,
                Err(stopped) => {
                    return Err(Error::Unavailable { what: "a quota was not refilled".to_owned(), source: Some(Box::new(stopped)) });
                }
            };
        }
        let allowed = lease.left > 0;
        lease.left -= if allowed { calls } else { 0 };
        Ok(Spent { allowed, remaining: (window.calls_max - lease.floor + lease.left).max(0), reset_s })
    }

    /// Returns one call that [`Self::spend`] allowed at the given time (milliseconds since 1970). Nothing is returned once the window, or this node's
    /// lease, is over.
    pub async fn unspend(&self, subject: &str, window: Window, spent_at_ms: i64) {
        let name = (subject.to_owned(), window.name);
        let entry = {
            let subjects = self.subjects.lock().unwrap_or_else(PoisonError::into_inner);
            subjects.get(&name).map(|(_, entry)| Arc::clone(entry))
        };
        let Some(entry) = entry else { return };
        let mut lease = entry.lease.lock().await;
        if !lease.is_closed && lease.number == window_number(window, spent_at_ms) {
            lease.left += 1;
        }
    }

    /// Returns all calls that are leased and not used, for a clean shutdown. The quotas can be used afterwards.
    ///
    /// # Errors
    /// When the counters cannot be reached; calls that were not returned are lost.
    pub async fn release_all(&self, store: &Arc<dyn ViewStore>, now_ms: i64) -> Result<(), Error> {
        let all: Vec<_> = self.subjects.lock().unwrap_or_else(PoisonError::into_inner).drain().collect();
        for ((subject, _), (window, entry)) in all {
            give_back(store, &subject, window, &entry, now_ms).await?;
        }
        Ok(())
    }

    /// The number of subjects whose blocks are held.
    #[must_use]
    pub fn subjects_held(&self) -> usize {
        self.subjects.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The lease of a subject, locked.
    async fn lease(&self, store: &Arc<dyn ViewStore>, subject: &str, window: Window, now_ms: i64) -> OwnedMutexGuard<Lease> {
        loop {
            let use_number = self.uses.fetch_add(1, Ordering::Relaxed);
            let (entry, idle) = {
                let mut subjects = self.subjects.lock().unwrap_or_else(PoisonError::into_inner);
                let name = (subject.to_owned(), window.name);
                let idle = if subjects.len() >= self.subjects_max && !subjects.contains_key(&name) {
                    take_idle(&mut subjects)
                } else {
                    Vec::new()
                };
                let (_, entry) = subjects.entry(name).or_insert_with(|| (window, Arc::default()));
                entry.used.store(use_number, Ordering::Relaxed);
                (Arc::clone(entry), idle)
            };
            if !idle.is_empty() {
                let store = Arc::clone(store);
                tokio::spawn(async move {
                    for ((subject, _), (window, entry)) in idle {
                        if let Err(error) = give_back(&store, &subject, window, &entry, now_ms).await {
                            tracing::warn!(%error, "leased calls of an idle caller could not be returned");
                        }
                    }
                });
            }
            let lease = Arc::clone(&entry.lease).lock_owned().await;
            if !lease.is_closed {
                return lease;
            }
        }
    }
}

/// Removes the least recently used tenth of the subjects from the map.
fn take_idle(subjects: &mut HashMap<Name, (Window, Arc<Subject>)>) -> Vec<(Name, (Window, Arc<Subject>))> {
    let mut uses: Vec<u64> = subjects.values().map(|(_, entry)| entry.used.load(Ordering::Relaxed)).collect();
    let tenth = uses.len() / 10;
    let (_, bound, _) = uses.select_nth_unstable(tenth);
    let bound = *bound;
    subjects.extract_if(|_, (_, entry)| entry.used.load(Ordering::Relaxed) <= bound).collect()
}

async fn give_back(store: &Arc<dyn ViewStore>, subject: &str, window: Window, entry: &Subject, now_ms: i64) -> Result<(), Error> {
    let mut lease = entry.lease.lock().await;
    lease.is_closed = true;
    let left = std::mem::take(&mut lease.left);
    if left > 0 {
        let (name, expires_ms) = counter(subject, window, lease.number);
        store.coordination().add_to_counter(&name, -left, window.calls_max, now_ms, expires_ms).await?;
    }
    Ok(())
}

/// The number of the window that a time (milliseconds since 1970) is in, since 1970.
fn window_number(window: Window, at_ms: i64) -> i64 {
    at_ms.div_euclid(window.length_s.max(1) * 1_000)
}

/// A window's counter: its name, and when it expires.
fn counter(subject: &str, window: Window, number: i64) -> (String, i64) {
    let name = if window.name == "day" { format!("quota/{subject}/{number}") } else { format!("quota/{subject}/{}/{number}", window.name) };
    (name, (number + 1) * window.length_s.max(1) * 1_000 + KEPT_MS)
}

/// Leases the next block. If there is none, leaves the lease without calls and caches the refusal.
async fn refill(
    mut lease: OwnedMutexGuard<Lease>,
    store: Arc<dyn ViewStore>,
    (name, expires_ms): (String, i64),
    window: Window,
    now_ms: i64,
) -> Result<OwnedMutexGuard<Lease>, Error> {
    let quota = window.calls_max;
    let block = (quota / 10).clamp(1, BLOCK_CALLS_MAX);
    let take = async |amount: i64, bound: i64| store.coordination().add_to_counter(&name, amount, bound, now_ms, expires_ms).await;
    let mut misses = 0;
    while lease.left == 0 && lease.floor < quota {
        // The last calls are leased one by one, so that a node does not hold calls that another node needs.
        let step = if quota - lease.floor > block { block } else { 1 };
        let got = take(step, lease.floor + step).await?;
        lease.floor += step;
        lease.left += got;
        misses = if got == 0 { misses + 1 } else { 0 };
        if misses == 2 && quota - lease.floor > 4 {
            // Far from the counter: halve the range that the counter is in. A probe that gets a call keeps it.
            let mut above = quota;
            while above - lease.floor > step {
                let middle = lease.floor + (above - lease.floor) / 2;
                let got = take(1, middle).await?;
                lease.left += got;
                if got == 0 { lease.floor = middle } else { above = middle }
            }
            // The next lease shows exactly where the counter is.
            if lease.left > 0 && lease.floor < quota {
                let step = step.min(quota - lease.floor);
                let got = take(step, lease.floor + step).await?;
                lease.floor += step;
                lease.left += got;
            }
            misses = 0;
        }
    }
    if lease.left == 0 {
        // Other nodes may have returned calls below the floor.
        lease.left = take(1, quota).await?;
    }
    lease.refused_until = (lease.left == 0).then(|| Instant::now() + REFUSED_FOR);
    Ok(lease)
}

/// The quota subject of an address: single IPv4 addresses, and IPv6 by /64, because a caller usually has a whole /64.
#[must_use]
pub fn address_subject(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(v4) => format!("ip/{v4}"),
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            format!("ip/{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

/// The subject for minting keys of an address: single IPv4 addresses, and IPv6 by /48, the size that a provider's customer usually has.
#[must_use]
pub fn minting_subject(address: IpAddr) -> String {
    site_subject(address).unwrap_or_else(|| address_subject(address))
}

/// The quota subject of the IPv6 /48 of an address; `None` for IPv4. Who has a /48 has 65,536 subjects of addresses.
#[must_use]
pub fn site_subject(address: IpAddr) -> Option<String> {
    match address.to_canonical() {
        IpAddr::V4(_) => None,
        IpAddr::V6(v6) => {
            let [a, b, c, ..] = v6.segments();
            Some(format!("ip/{a:x}:{b:x}:{c:x}::/48"))
        }
    }
}

#[cfg(test)]
#[path = "quota_tests.rs"]
mod tests;
