//! Limits how many payments are verified at the same time. Each address has few slots, so that somebody who sends forged payments does not delay
//! buyers at other addresses.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use access::quota::address_subject;
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many payments of one address are verified at the same time.
const PER_ADDRESS_MAX: usize = 4;
/// How many callers of one address may verify or wait.
const CALLERS_PER_ADDRESS_MAX: usize = 64;
/// How many payments of all addresses are verified at the same time.
const TOTAL_MAX: usize = 128;
/// After how many seconds a caller that got no slot may retry.
const RETRY_AFTER_S: u64 = 5;

/// The verifications in progress.
pub(super) struct Verifications {
    total: Arc<Semaphore>,
    addresses: Arc<Mutex<HashMap<String, Address>>>,
}

/// The verifications of one address.
struct Address {
    slots: Arc<Semaphore>,
    callers: usize,
}

/// A caller that verifies or waits; removed when dropped.
struct Caller {
    address: String,
    addresses: Arc<Mutex<HashMap<String, Address>>>,
}

/// The permission to verify one payment; returned when dropped.
pub(super) struct Slot {
    _own: OwnedSemaphorePermit,
    _total: OwnedSemaphorePermit,
    _caller: Caller,
}

impl Default for Verifications {
    fn default() -> Self {
        Self { total: Arc::new(Semaphore::new(TOTAL_MAX)), addresses: Arc::default() }
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(address) = addresses.get_mut(&self.address) {
            address.callers -= 1;
            if address.callers == 0 {
                addresses.remove(&self.address);
            }
        }
    }
}

impl Verifications {
    /// Waits for a slot to verify a payment from an address, for as long as `wait_max`.
    ///
    /// # Errors
    /// `rate-limited` when too many callers of the address wait, or when it takes too long.
    pub(super) async fn enter(&self, address: IpAddr, wait_max: Duration) -> Result<Slot, Problem> {
        let (caller, slots) = self.register(address_subject(address)).ok_or_else(busy)?;
        let both = async {
            let own = slots.acquire_owned().await.ok()?;
            let total = Arc::clone(&self.total).acquire_owned().await.ok()?;
            Some(Slot { _own: own, _total: total, _caller: caller })
        };
        tokio::time::timeout(wait_max, both).await.ok().flatten().ok_or_else(busy)
    }

    fn register(&self, address: String) -> Option<(Caller, Arc<Semaphore>)> {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let entry =
            addresses.entry(address.clone()).or_insert_with(|| Address { slots: Arc::new(Semaphore::new(PER_ADDRESS_MAX)), callers: 0 });
        if entry.callers >= CALLERS_PER_ADDRESS_MAX {
            return None;
        }
        entry.callers += 1;
        Some((Caller { address, addresses: Arc::clone(&self.addresses) }, Arc::clone(&entry.slots)))
    }
}

fn busy() -> Problem {
    let detail = "too many payments from this address are being verified; send the same payment again, do not sign another one";
    Problem::new(ErrorCode::RateLimited, detail).retry_after(RETRY_AFTER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    /// Proves that an address verifies a limited number of payments at the same time, that further callers wait and those beyond are refused immediately,
    /// that other addresses do not wait, and that an address without callers is forgotten.
    #[tokio::test]
    async fn addresses_do_not_wait_for_each_other() {
        let (verifications, wait_max) = (Arc::new(Verifications::default()), Duration::from_secs(600));
        let mut held = Vec::new();
        for _ in 0..PER_ADDRESS_MAX {
            held.push(verifications.enter(address(1), wait_max).await.unwrap());
        }
        let waiting: Vec<_> = (PER_ADDRESS_MAX..CALLERS_PER_ADDRESS_MAX)
            .map(|_| {
                let verifications = Arc::clone(&verifications);
                tokio::spawn(async move { verifications.enter(address(1), wait_max).await.map(|_| ()) })
            })
            .collect();
        tokio::task::yield_now().await;
        let refused = verifications.enter(address(1), wait_max).await.map(|_| ()).unwrap_err();
        assert_eq!((refused.code, refused.retry_after_s), (ErrorCode::RateLimited, RETRY_AFTER_S));
        drop(verifications.enter(address(2), wait_max).await.unwrap());
        assert!(waiting.iter().all(|waiting| !waiting.is_finished()));
        // One slot is free again: waiting callers take turns.
        drop(held.pop());
        for waited in waiting {
            waited.await.unwrap().unwrap();
        }
        drop(held);
        assert!(verifications.addresses.lock().unwrap().is_empty());
    }

    /// Proves that a caller who waits too long is refused, and holds no slot.
    #[tokio::test]
    async fn waiting_is_bounded() {
        let (verifications, wait_max) = (Verifications::default(), Duration::from_millis(1));
        let mut held = Vec::new();
        for _ in 0..PER_ADDRESS_MAX {
            held.push(verifications.enter(address(1), wait_max).await.unwrap());
        }
        assert_eq!(verifications.enter(address(1), wait_max).await.map(|_| ()).unwrap_err().code, ErrorCode::RateLimited);
        drop(held);
        assert!(verifications.addresses.lock().unwrap().is_empty());
        drop(verifications.enter(address(1), wait_max).await.unwrap());
    }
}
