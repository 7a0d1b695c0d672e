//! Rate limiting: one request at a time per host, evenly spaced, in the order of arrival.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

/// Shorter waits are skipped because timers are not that precise. The next request still accounts for them, so the rate holds.
const WAIT_MIN: Duration = Duration::from_millis(1);

/// The rate limits of all hosts of one client.
#[derive(Debug)]
pub(super) struct Pace {
    spacing: Duration,
    /// The earliest time of the next request per host. Holding the lock permits a request; tokio grants it in the order of arrival.
    hosts: Mutex<HashMap<String, Arc<tokio::sync::Mutex<Instant>>>>,
}

/// The permission to send one request to a host, until it is dropped.
#[derive(Debug)]
pub(super) struct Permit {
    next: OwnedMutexGuard<Instant>,
}

impl Pace {
    /// Returns `None` unless the rate is a number above zero.
    pub(super) fn new(requests_per_second: f64) -> Option<Self> {
        let spacing = Duration::try_from_secs_f64(requests_per_second.recip()).ok().filter(|_| requests_per_second > 0.0)?;
        Some(Self { spacing, hosts: Mutex::default() })
    }

    /// Waits for the permission to send a request to a host.
    pub(super) async fn permit(&self, host: &str) -> Permit {
        let slot = {
            let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(hosts.entry(host.to_owned()).or_insert_with(|| Arc::new(tokio::sync::Mutex::new(Instant::now()))))
        };
        let mut next = slot.lock_owned().await;
        if next.saturating_duration_since(Instant::now()) >= WAIT_MIN {
            tokio::time::sleep_until(*next).await;
        }
        *next = (*next).max(Instant::now()) + self.spacing;
        Permit { next }
    }
}

impl Permit {
    /// Blocks all requests to the host for that long from now. A pause that one request was asked for applies to all.
    pub(super) fn pause(&mut self, pause: Duration) {
        *self.next = (*self.next).max(Instant::now() + pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that ten requests at five per second take at least the nine intervals between them, and that two hosts do not wait for each
    /// other.
    #[tokio::test(start_paused = true)]
    async fn requests_are_spaced_per_host() {
        let pace = Arc::new(Pace::new(5.0).unwrap());
        let begun = Instant::now();
        let both = ["a", "b"].map(|host| {
            let pace = Arc::clone(&pace);
            tokio::spawn(async move {
                for _ in 0..10 {
                    drop(pace.permit(host).await);
                }
            })
        });
        for one in both {
            one.await.unwrap();
        }
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(1_790) && took < Duration::from_millis(2_100), "{took:?}");
    }

    /// Proves that a second request waits until the first has released its permission, in the order of arrival.
    #[tokio::test(start_paused = true)]
    async fn one_at_a_time_in_order() {
        let pace = Arc::new(Pace::new(1000.0).unwrap());
        let first = pace.permit("a").await;
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        for number in 0..5 {
            let (pace, sender) = (Arc::clone(&pace), sender.clone());
            tokio::spawn(async move {
                let _permit = pace.permit("a").await;
                sender.send(number).unwrap();
            });
            tokio::task::yield_now().await;
        }
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(receiver.try_recv().is_err(), "the first still holds its permission");
        drop(first);
        for number in 0..5 {
            assert_eq!(receiver.recv().await, Some(number));
        }
    }

    /// Proves that a requested pause applies to all requests to the host.
    #[tokio::test(start_paused = true)]
    async fn holding_off_holds_for_the_next() {
        let pace = Pace::new(1000.0).unwrap();
        let begun = Instant::now();
        pace.permit("a").await.pause(Duration::from_secs(7));
        drop(pace.permit("a").await);
        assert!(begun.elapsed() >= Duration::from_secs(7));
    }

    /// Proves that an invalid rate is refused.
    #[test]
    fn invalid_rates_are_refused() {
        for rate in [0.0, -1.0, f64::NAN] {
            assert!(Pace::new(rate).is_none(), "{rate}");
        }
    }
}
