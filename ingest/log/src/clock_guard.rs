//! Wraps any log and refuses appends while this machine's clock contradicts the last record: a record under a wrong clock cannot be taken back, and
//! recorded times never go back, so that one start in a wrong year would fix them there.
//!
//! The clock may be a little before the last record (another process, a corrected clock), and long after it (the process was stopped). Outside of these
//! limits an operator accepts the difference by naming the time of the last record.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use schemas::clock::{Clock, rfc3339};
use schemas::position::LogOffset;
use schemas::topics::Topic;

use crate::{Append, Error, EventLog, Stored};

/// How long before the accepted last record other records of the same wrong clock may be, in milliseconds.
const ACCEPTED_SPAN_MS: i64 = 7 * 86_400_000;

/// The limits between which the clock may differ from the last record of the log.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long before the last record the clock may be, in milliseconds.
    pub behind_max_ms: i64,
    /// How long after the last record the clock may be, in milliseconds.
    pub ahead_max_ms: i64,
    /// The time of a last record that an operator accepts, in milliseconds since 1970; `None` for none. While it is the last record, any clock is accepted. A
    /// clock before the last record is also accepted while that is at most [`ACCEPTED_SPAN_MS`] before the accepted time: partitions may end with other
    /// records of the same wrong clock.
    pub accepted_last_ms: Option<i64>,
}

/// Compares the clock with the last record that is known to this process.
#[derive(Debug)]
pub struct ClockGuard {
    clock: Clock,
    limits: Limits,
    /// The latest time of a record, in milliseconds since 1970; 0 in an empty log.
    last_ms: AtomicI64,
}

impl ClockGuard {
    /// Reads the last record of every partition. Wraps the log in one that refuses appends while the clock is outside of the limits.
    ///
    /// # Errors
    /// When the log fails.
    pub async fn wrap(log: Arc<dyn EventLog>, clock: Clock, limits: Limits) -> Result<(Arc<Self>, Arc<dyn EventLog>), Error> {
        let last_ms = log.last_at_ms().await?;
        let guard = Arc::new(Self { clock, limits, last_ms: AtomicI64::new(last_ms) });
        let guarded = Arc::new(Guarded { log, guard: Arc::clone(&guard) });
        Ok((guard, guarded))
    }

    /// Why nothing is appended now; `None` if the clock is within the limits, or the difference was accepted.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        // The clock of a demo first shows its simulated history, also when records of a later hour exist.
        if matches!(self.clock, Clock::Simulated(_)) {
            return None;
        }
        let (last_ms, now_ms) = (self.last_ms.load(Ordering::Relaxed), self.clock.now_ms());
        let ahead_ms = now_ms.saturating_sub(last_ms);
        let Limits { behind_max_ms, ahead_max_ms, accepted_last_ms } = self.limits;
        let is_accepted = accepted_last_ms.is_some_and(|accepted_ms| {
            accepted_ms == last_ms || ahead_ms < 0 && (last_ms..=last_ms.saturating_add(ACCEPTED_SPAN_MS)).contains(&accepted_ms)
        });
        if last_ms == 0 || (-behind_max_ms..=ahead_max_ms).contains(&ahead_ms) || is_accepted {
            return None;
        }
        let direction = if ahead_ms < 0 { "before" } else { "after" };
        let (last, distance) = (rfc3339(last_ms), distance(ahead_ms.saturating_abs()));
        // Without the time of now: a text that changes every second would be logged every second.
        Some(format!(
            "this machine's clock is {distance} {direction} the last record of the log ({last}); nothing is appended until it is set right. If the clock \
             is right, accept the difference: set clock.accepted_last_record = \"{last}\" and start again \
             (ops/docs/operations/runbooks/wrong-clock.md)"
        ))
    }

    /// How many milliseconds the clock is before the last record, and that record's time in milliseconds since 1970. Recorded times do not advance until
    /// the clock has passed it. `None` if it has.
    #[must_use]
    pub fn behind_ms(&self) -> Option<(i64, i64)> {
        if matches!(self.clock, Clock::Simulated(_)) {
            return None;
        }
        let last_ms = self.last_ms.load(Ordering::Relaxed);
        Some(last_ms.saturating_sub(self.clock.now_ms())).filter(|behind_ms| *behind_ms > 0).map(|behind_ms| (behind_ms, last_ms))
    }
}

/// Formats a time span in the largest unit of which there are at least two.
fn distance(ms: i64) -> String {
    let units = [(86_400_000, "days"), (3_600_000, "hours"), (60_000, "minutes"), (1_000, "seconds")];
    let unit = units.into_iter().find(|(unit_ms, _)| ms >= 2 * unit_ms);
    unit.map_or_else(|| format!("{ms} ms"), |(unit_ms, name)| format!("{} {name}", ms / unit_ms))
}

/// A log that appends only while the clock is within its limits. Reads always work.
struct Guarded {
    log: Arc<dyn EventLog>,
    guard: Arc<ClockGuard>,
}

impl Guarded {
    fn check(&self) -> Result<(), Error> {
        self.guard.refusal().map_or(Ok(()), |what| Err(Error::Unavailable { what, source: None }))
    }
}

#[async_trait]
impl EventLog for Guarded {
    async fn append(&self, batch: Vec<Append>) -> Result<Vec<LogOffset>, Error> {
        self.check()?;
        let last_ms = batch.iter().map(|append| append.record.at_ms).max();
        let offsets = self.log.append(batch).await?;
        if let Some(last_ms) = last_ms {
            self.guard.last_ms.fetch_max(last_ms, Ordering::Relaxed);
        }
        Ok(offsets)
    }

    async fn read(
        &self,
        topic: &'static Topic,
        partition: u32,
        from: LogOffset,
        records_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Stored>, Error> {
        self.log.read(topic, partition, from, records_max, bytes_max).await
    }

    async fn end(&self, topic: &'static Topic, partition: u32) -> Result<LogOffset, Error> {
        self.log.end(topic, partition).await
    }

    async fn last_at_ms(&self) -> Result<i64, Error> {
        self.log.last_at_ms().await
    }

    async fn ends(&self, topics: &[&'static Topic]) -> Result<Vec<Vec<LogOffset>>, Error> {
        self.log.ends(topics).await
    }

    async fn wait_past(&self, topic: &'static Topic, partition: u32, end: LogOffset) -> Result<(), Error> {
        self.log.wait_past(topic, partition, end).await
    }

    async fn ready(&self) -> Result<(), Error> {
        self.log.ready().await?;
        self.check()
    }

    async fn close(&self) -> Result<(), Error> {
        self.log.close().await
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use schemas::clock::SimulatedClock;
    use schemas::topics::ACCOUNTS;

    use super::*;
    use crate::Record;
    use crate::embedded::{EmbeddedLog, Options};

    const MINUTE_MS: i64 = 60_000;
    const DAY_MS: i64 = 24 * 60 * MINUTE_MS;
    const LIMITS: Limits = Limits { behind_max_ms: 5 * MINUTE_MS, ahead_max_ms: 400 * DAY_MS, accepted_last_ms: None };
    /// 2026-11-25T00:00:00Z
    const LAST_MS: i64 = 1_795_564_800_000;

    fn record(at_ms: i64) -> Vec<Append> {
        vec![Append { topic: &ACCOUNTS, partition: 0, record: Record { at_ms, ..Record::default() } }]
    }

    fn fixed(at_ms: i64) -> Clock {
        Clock::Fixed(Timestamp::from_millisecond(at_ms).unwrap())
    }

    /// Proves that appends are refused at more than 5 minutes before and 400 days after the last record, at the boundary not, with a message that says
    /// how to accept it; that reads work meanwhile, and that accepting that record's time permits the append.
    #[tokio::test]
    async fn appends_are_refused_under_a_wrong_clock() {
        let dir = tempfile::tempdir().unwrap();
        let log: Arc<dyn EventLog> = EmbeddedLog::open(dir.path(), Options::default()).unwrap();
        let (guard, empty) = ClockGuard::wrap(Arc::clone(&log), fixed(1), LIMITS).await.unwrap();
        assert_eq!(guard.refusal(), None, "an empty log has no last record");
        drop(empty);
        log.append(record(LAST_MS)).await.unwrap();
        for (offset_ms, direction) in [(-5 * MINUTE_MS - 1, "5 minutes before"), (400 * DAY_MS + 1, "400 days after")] {
            let (_, guarded) = ClockGuard::wrap(Arc::clone(&log), fixed(LAST_MS + offset_ms), LIMITS).await.unwrap();
            for error in [guarded.append(record(LAST_MS + offset_ms)).await.unwrap_err(), guarded.ready().await.unwrap_err()] {
                let message = error.to_string();
                let word = r#"clock.accepted_last_record = "2026-11-25T00:00:00.000Z""#;
                assert!(message.contains(direction) && message.contains(word), "{message}");
            }
            assert_eq!(guarded.read(&ACCOUNTS, 0, LogOffset(0), 9, 9).await.unwrap().len(), 1);
        }
        for offset_ms in [-5 * MINUTE_MS, 0, 400 * DAY_MS] {
            let (guard, _) = ClockGuard::wrap(Arc::clone(&log), fixed(LAST_MS + offset_ms), LIMITS).await.unwrap();
            assert_eq!(guard.refusal(), None, "{offset_ms}");
        }
        // The word names one record: it does not accept the clock after another one.
        let accepted = Limits { accepted_last_ms: Some(LAST_MS), ..LIMITS };
        let (guard, guarded) = ClockGuard::wrap(Arc::clone(&log), fixed(LAST_MS + 500 * DAY_MS), accepted).await.unwrap();
        guarded.append(record(LAST_MS + 500 * DAY_MS)).await.unwrap();
        assert_eq!(guard.refusal(), None);
        let (guard, _) = ClockGuard::wrap(Arc::clone(&log), fixed(LAST_MS), accepted).await.unwrap();
        assert!(guard.refusal().unwrap().contains("500 days before"), "{:?}", guard.refusal());
        assert_eq!(guard.behind_ms(), Some((500 * DAY_MS, LAST_MS + 500 * DAY_MS)));
        // Another partition may end with an earlier record of the same wrong clock, but not with one of another year.
        for (days, is_refused) in [(501, false), (507, false), (508, true)] {
            let accepted = Limits { accepted_last_ms: Some(LAST_MS + days * DAY_MS), ..LIMITS };
            let (guard, _) = ClockGuard::wrap(Arc::clone(&log), fixed(LAST_MS), accepted).await.unwrap();
            assert_eq!(guard.refusal().is_some(), is_refused, "{days}");
        }
    }

    /// Proves that a clock which is set back while the process runs is noticed at the next append, that the append succeeds as soon as it is right again,
    /// and that it is said while recorded times do not advance.
    #[tokio::test]
    async fn clocks_that_are_set_while_running() {
        let dir = tempfile::tempdir().unwrap();
        let log: Arc<dyn EventLog> = EmbeddedLog::open(dir.path(), Options::default()).unwrap();
        let (guard, guarded) = ClockGuard::wrap(log, fixed(LAST_MS), LIMITS).await.unwrap();
        guarded.append(record(LAST_MS + 10 * MINUTE_MS)).await.unwrap();
        assert!(guarded.append(record(LAST_MS)).await.unwrap_err().to_string().contains("10 minutes before"));
        assert_eq!(guard.behind_ms(), Some((10 * MINUTE_MS, LAST_MS + 10 * MINUTE_MS)));
        guard.last_ms.store(LAST_MS - 1, Ordering::Relaxed);
        guarded.append(record(LAST_MS)).await.unwrap();
        assert_eq!(guard.behind_ms(), None);
    }

    /// Proves that the clock of a demo is not compared: its history ends before the records of its last hours.
    #[tokio::test]
    async fn simulated_clocks_are_accepted() {
        let dir = tempfile::tempdir().unwrap();
        let log: Arc<dyn EventLog> = EmbeddedLog::open(dir.path(), Options::default()).unwrap();
        let clock = Clock::Simulated(SimulatedClock::new(Timestamp::from_millisecond(LAST_MS).unwrap(), Clock::System));
        let (guard, guarded) = ClockGuard::wrap(log, clock, LIMITS).await.unwrap();
        guarded.append(record(LAST_MS + DAY_MS)).await.unwrap();
        assert_eq!(guard.refusal(), None);
    }
}
