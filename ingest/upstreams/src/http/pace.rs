//! Whose turn it is: one request at a time to a host, spaced evenly, first come first served.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

/// Shorter waits are skipped: a timer cannot keep them. The next slot still counts them, so the rate holds.
const WAIT_MIN: Duration = Duration::from_millis(1);

/// The turns of every host of one client.
#[derive(Debug)]
pub(super) struct Pace {
    spacing: Duration,
    /// When each host may be asked next; the lock is the turn, and tokio gives it in the order of asking.
    hosts: Mutex<HashMap<String, Arc<tokio::sync::Mutex<Instant>>>>,
}

/// The right to send one request to a host, until dropped.
#[derive(Debug)]
pub(super) struct Turn {
    next: OwnedMutexGuard<Instant>,
}

impl Pace {
    /// `None` unless the rate is a number above zero.
    pub(super) fn new(requests_per_second: f64) -> Option<Self> {
        let spacing = Duration::try_from_secs_f64(requests_per_second.recip()).ok().filter(|_| requests_per_second > 0.0)?;
        Some(Self { spacing, hosts: Mutex::default() })
    }

    /// Waits for the turn at a host.
    pub(super) async fn turn(&self, host: &str) -> Turn {
        let slot = {
            let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(hosts.entry(host.to_owned()).or_insert_with(|| Arc::new(tokio::sync::Mutex::new(Instant::now()))))
        };
        let mut next = slot.lock_owned().await;
        if next.saturating_duration_since(Instant::now()) >= WAIT_MIN {
            tokio::time::sleep_until(*next).await;
        }
        *next = (*next).max(Instant::now()) + self.spacing;
        Turn { next }
    }
}

impl Turn {
    /// Leaves the host alone for that long from now: what one request was told holds for all.
    pub(super) fn hold_off(&mut self, pause: Duration) {
        *self.next = (*self.next).max(Instant::now() + pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that ten requests at five a second take at least the nine spaces between them, and that two hosts do not wait for each other.
    #[tokio::test(start_paused = true)]
    async fn requests_are_spaced_per_host() {
        let pace = Arc::new(Pace::new(5.0).unwrap());
        let begun = Instant::now();
        let both = ["a", "b"].map(|host| {
            let pace = Arc::clone(&pace);
            tokio::spawn(async move {
                for _ in 0..10 {
                    drop(pace.turn(host).await);
                }
            })
        });
        for one in both {
            one.await.unwrap();
        }
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(1_790) && took < Duration::from_millis(2_100), "{took:?}");
    }

    /// Proves that a second request waits until the first has given up its turn, and in the order of asking.
    #[tokio::test(start_paused = true)]
    async fn one_at_a_time_in_order() {
        let pace = Arc::new(Pace::new(1000.0).unwrap());
        let first = pace.turn("a").await;
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        for number in 0..5 {
            let (pace, tell) = (Arc::clone(&pace), tell.clone());
            tokio::spawn(async move {
                let _turn = pace.turn("a").await;
                tell.send(number).unwrap();
            });
            tokio::task::yield_now().await;
        }
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(told.try_recv().is_err(), "the first still holds its turn");
        drop(first);
        for number in 0..5 {
            assert_eq!(told.recv().await, Some(number));
        }
    }

    /// Proves that a host is left alone for all when it asked for that.
    #[tokio::test(start_paused = true)]
    async fn holding_off_holds_for_the_next() {
        let pace = Pace::new(1000.0).unwrap();
        let begun = Instant::now();
        pace.turn("a").await.hold_off(Duration::from_secs(7));
        drop(pace.turn("a").await);
        assert!(begun.elapsed() >= Duration::from_secs(7));
    }

    /// Proves that a rate that makes no sense is refused.
    #[test]
    fn odd_rates_are_refused() {
        for rate in [0.0, -1.0, f64::NAN] {
            assert!(Pace::new(rate).is_none(), "{rate}");
        }
    }
}
