//! Parses payments on threads for blocking work: recovering a signer is the most expensive work that a caller without a key can cause.

use std::sync::Arc;

use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::signed_payment::{self, InvalidPayment, Signed};
use super::terms::{Offer, PaymentTerms};

/// How many payments are parsed at the same time. The others wait; each of them holds a connection, and connections are limited.
const CONCURRENT_READS_MAX: usize = 4;

/// Parses payments on threads for blocking work, a few at a time.
pub(super) struct Readers(Arc<Semaphore>);

impl Default for Readers {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(CONCURRENT_READS_MAX)))
    }
}

impl Readers {
    /// Parses a payload as [`signed_payment::read`] does.
    ///
    /// # Errors
    /// `internal` if the parser panicked. The inner error says what is wrong with the payment.
    pub(super) async fn read(
        &self,
        terms: &PaymentTerms,
        offer: &Offer,
        payload: Value,
        now_s: u64,
    ) -> Result<Result<Signed, InvalidPayment>, Problem> {
        let internal =
            || Problem::new(ErrorCode::Internal, "the payment could not be parsed because of an internal error; nothing was charged");
        let permit = Arc::clone(&self.0).acquire_owned().await.map_err(|_| internal())?;
        let (terms, offer) = (terms.clone(), offer.clone());
        let reading = tokio::task::spawn_blocking(move || {
            let read = signed_payment::read(&terms, &offer, payload, now_s);
            // Held until here even if the caller is gone, because blocking work cannot be stopped.
            drop(permit);
            read
        });
        reading.await.map_err(|error| {
            tracing::error!(%error, "parsing a payment panicked");
            internal()
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use serde_json::json;

    use super::*;
    use crate::terms::{NETWORKS, VALIDITY_DEFAULT_S, Version};

    /// Proves that payments are parsed on a thread for blocking work, and that no more than the limit are parsed at the same time.
    #[test]
    fn a_few_payments_are_read_at_a_time() {
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let readers = Readers::default();
            let (versions, validity_s) = (Version::ALL.to_vec(), VALIDITY_DEFAULT_S);
            let terms = PaymentTerms { network: NETWORKS[0], asset: String::new(), pay_to: String::new(), versions, validity_s };
            let offer = Offer { resource: String::new(), description: String::new(), micros: 1 };
            let read = || readers.read(&terms, &offer, json!({}), 0);
            // The only thread for blocking work is busy until `release` is dropped, so no parsing can finish before.
            let (release, released) = std::sync::mpsc::channel::<()>();
            let busy = tokio::task::spawn_blocking(move || released.recv());
            let mut first = Box::pin(read());
            assert!(first.as_mut().now_or_never().is_none());
            drop(release);
            assert!(busy.await.unwrap().is_err());
            assert!(first.await.unwrap().is_err());

            let mut held = Vec::new();
            for _ in 0..CONCURRENT_READS_MAX {
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
