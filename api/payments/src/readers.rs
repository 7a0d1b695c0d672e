//! Reading payments off the threads that serve connections: recovering a signer is the most work that a caller without a key can ask for.

use std::sync::Arc;

use schemas::error_code::ErrorCode;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::signed::{self, Signed, Wrong};
use super::terms::{Offer, Till};
use operation::problem::Problem;

/// Payments that are read at a time. The others wait; each of them is a connection, and those are limited.
const READ_AT_ONCE_MAX: usize = 4;

/// Reads payments on threads for blocking work, a few at a time.
pub(super) struct Readers(Arc<Semaphore>);

impl Default for Readers {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(READ_AT_ONCE_MAX)))
    }
}

impl Readers {
    /// Reads a payload as [`signed::read`] does.
    ///
    /// # Errors
    /// `internal` if the reading panicked. What is wrong with the payment is in the answer.
    pub(super) async fn read(&self, till: &Till, offer: &Offer, payload: Value, now_s: u64) -> Result<Result<Signed, Wrong>, Problem> {
        let internal = || Problem::new(ErrorCode::Internal, "the payment could not be read; the fault is ours, and nothing was charged");
        let permit = Arc::clone(&self.0).acquire_owned().await.map_err(|_| internal())?;
        let (till, offer) = (till.clone(), offer.clone());
        let reading = tokio::task::spawn_blocking(move || {
            let read = signed::read(&till, &offer, payload, now_s);
            // Held until here, also when the caller is gone: what was begun is not stopped.
            drop(permit);
            read
        });
        reading.await.map_err(|error| {
            tracing::error!(%error, "reading a payment panicked");
            internal()
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use serde_json::json;

    use super::*;
    use crate::terms::{NETWORKS, Version};

    /// Proves that payments are read on a thread for blocking work, and that no more than the limit are read at a time.
    #[test]
    fn a_few_payments_are_read_at_a_time() {
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let readers = Readers::default();
            let till = Till { network: NETWORKS[0], asset: String::new(), pay_to: String::new(), versions: Version::ALL.to_vec() };
            let offer = Offer { resource: String::new(), description: String::new(), micros: 1 };
            let read = || readers.read(&till, &offer, json!({}), 0);
            // The only thread for blocking work is busy until `release` is dropped, so that a reading there cannot be done before.
            let (release, released) = std::sync::mpsc::channel::<()>();
            let busy = tokio::task::spawn_blocking(move || released.recv());
            let mut first = Box::pin(read());
            assert!(first.as_mut().now_or_never().is_none());
            drop(release);
            assert!(busy.await.unwrap().is_err());
            assert!(first.await.unwrap().is_err());

            let mut held = Vec::new();
            for _ in 0..READ_AT_ONCE_MAX {
                held.push(Arc::clone(&readers.0).acquire_owned().await.unwrap());
            }
            let mut waiting = Box::pin(read());
            for _ in 0..100 {
                assert!(waiting.as_mut().now_or_never().is_none());
                tokio::task::yield_now().await;
            }
            held.pop();
            assert!(waiting.await.unwrap().is_err());
            assert_eq!(readers.0.available_permits(), 1, "the permit is released");
        });
    }
}
