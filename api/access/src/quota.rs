//! Quotas, leased in blocks from counters that all nodes share.
//!
//! Promises: never more calls than the quota, over many nodes and across a kill, because a block is taken before any of it is used;
//! on one node exactly the quota, and what is left reads 0 at exactly the limit; a kill forfeits at most one block a subject, a clean
//! stop ([`Quotas::release_all`]) nothing. Memory is bounded: subjects that were not seen for longest give their block back.
//!
//! ```text
//! counter    0 ....... used ....... quota          used  = given out to all nodes, blocks not yet spent included
//!                      floor                       floor = where the counter stood after this node's last take
//! ```
//! A take names the next floor as its bound, so what it answers tells where the counter stands; no call reads it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex as Turn, OwnedMutexGuard};
use view_store::ViewStore;
use view_store::store::Error;

use operation::tiers::Window;

/// Subjects whose blocks are held at a time.
const SUBJECTS_MAX: usize = 50_000;
/// The largest block taken at once, in calls.
const BLOCK_CALLS_MAX: i64 = 500;
/// How long a refusal stands before the counter is asked again: another node may have given some back.
const REFUSED_FOR: Duration = Duration::from_secs(1);
/// Counters are kept this long after their window, so that clocks that differ a little agree on them.
const KEPT_MS: i64 = 600_000;

/// The outcome of spending one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    /// Whether there was one left.
    pub allowed: bool,
    /// Calls left in the window.
    pub remaining: i64,
    /// Seconds until the next window begins.
    pub reset_s: u64,
}

/// What one node holds of one subject's quota.
#[derive(Debug, Default)]
struct Lease {
    /// Which window, counted from 1970.
    number: i64,
    /// Where the counter stood after the last take.
    floor: i64,
    /// Calls taken from the counter and not yet spent.
    left: i64,
    refused_until: Option<Instant>,
    /// Given back and out of the map: whoever still holds it looks again.
    is_closed: bool,
}

#[derive(Debug, Default)]
struct Subject {
    /// When it was last used, in uses of the whole map.
    used: AtomicU64,
    lease: Arc<Turn<Lease>>,
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
    /// Quotas that hold at most so many subjects' blocks.
    #[must_use]
    pub fn new(subjects_max: usize) -> Self {
        Self { subjects: Mutex::default(), subjects_max: subjects_max.max(1), uses: AtomicU64::new(0) }
    }

    /// Spends one call of a subject's window.
    ///
    /// # Errors
    /// When the counter cannot be reached; nothing is spent then.
    pub async fn spend(&self, store: &Arc<dyn ViewStore>, subject: &str, window: Window, now_ms: i64) -> Result<Spent, Error> {
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
            // On a task of its own, so that a caller who hangs up does not lose what the counter gave.
            lease = match tokio::spawn(refill).await {
                Ok(refilled) => refilled?,
                Err(stopped) => {
                    return Err(Error::Unavailable { what: "a quota was not refilled".to_owned(), source: Some(Box::new(stopped)) });
                }
            };
        }
        let allowed = lease.left > 0;
        lease.left -= i64::from(allowed);
        Ok(Spent { allowed, remaining: (window.calls_max - lease.floor + lease.left).max(0), reset_s })
    }

    /// Gives back one call that [`Self::spend`] allowed at a time (milliseconds since 1970). Nothing is given back once the window, or this node's
    /// share of it, is over.
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

    /// Gives back what was taken and not spent, for a clean stop. Quotas may be used afterwards.
    ///
    /// # Errors
    /// When the counters cannot be reached; what was not given back is forfeited.
    pub async fn release_all(&self, store: &Arc<dyn ViewStore>, now_ms: i64) -> Result<(), Error> {
        let all: Vec<_> = self.subjects.lock().unwrap_or_else(PoisonError::into_inner).drain().collect();
        for ((subject, _), (window, entry)) in all {
            give_back(store, &subject, window, &entry, now_ms).await?;
        }
        Ok(())
    }

    /// Subjects whose blocks are held.
    #[must_use]
    pub fn subjects_held(&self) -> usize {
        self.subjects.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The subject's lease, locked.
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
                            tracing::warn!(%error, "an idle caller's block of calls could not be given back");
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

/// Takes the tenth of the subjects that was used longest ago out of the map.
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

/// Which window a time (milliseconds since 1970) is in, counted from 1970.
fn window_number(window: Window, at_ms: i64) -> i64 {
    at_ms.div_euclid(window.length_s.max(1) * 1_000)
}

/// A window's counter: its name and when it is forgotten.
fn counter(subject: &str, window: Window, number: i64) -> (String, i64) {
    let name = if window.name == "day" { format!("quota/{subject}/{number}") } else { format!("quota/{subject}/{}/{number}", window.name) };
    (name, (number + 1) * window.length_s.max(1) * 1_000 + KEPT_MS)
}

/// Takes the next block. Leaves the lease without calls, refused for a while, if there is none.
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
        // The last calls one by one, so that nodes do not hold what another one's caller is refused.
        let step = if quota - lease.floor > block { block } else { 1 };
        let got = take(step, lease.floor + step).await?;
        lease.floor += step;
        lease.left += got;
        misses = if got == 0 { misses + 1 } else { 0 };
        if misses == 2 && quota - lease.floor > 4 {
            // Far behind: halve the range in which the counter stands. A probe that gets a call keeps it.
            let mut above = quota;
            while above - lease.floor > step {
                let middle = lease.floor + (above - lease.floor) / 2;
                let got = take(1, middle).await?;
                lease.left += got;
                if got == 0 { lease.floor = middle } else { above = middle }
            }
            // An ordinary take after it tells exactly where the counter stands.
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
        // Others may have given some back below the floor.
        lease.left = take(1, quota).await?;
    }
    lease.refused_until = (lease.left == 0).then(|| Instant::now() + REFUSED_FOR);
    Ok(lease)
}

/// The subject that an address counts as: IPv4 addresses one by one, IPv6 by /64, since a caller has all of that.
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

/// The subject that an address mints keys as: IPv4 addresses one by one, IPv6 by /48, the size that one customer of a provider is given.
#[must_use]
pub fn minting_subject(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(v4) => format!("ip/{v4}"),
        IpAddr::V6(v6) => {
            let [a, b, c, ..] = v6.segments();
            format!("ip/{a:x}:{b:x}:{c:x}::/48")
        }
    }
}

#[cfg(test)]
#[path = "quota_tests.rs"]
mod tests;
