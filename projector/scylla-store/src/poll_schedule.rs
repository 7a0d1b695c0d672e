//! Decides when the stored checkpoint of a view is polled for commits of other processes: often while one may be in progress, rarely
//! otherwise.

use std::time::{Duration, Instant};

/// The delay of the first poll after a wait started or a commit was announced.
const FIRST_DELAY: Duration = Duration::from_millis(2);
/// The interval of polls while a commit is likely.
const FREQUENT_INTERVAL: Duration = Duration::from_millis(40);
/// The interval of polls when nothing has happened for a long time.
const RARE_INTERVAL: Duration = Duration::from_secs(1);
/// How often to check whether the generation still exists.
const GENERATION_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How long after a commit of this process none of another is expected.
const OWN_COMMIT_QUIET_PERIOD: Duration = Duration::from_secs(2);

/// What to poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Poll {
    Nothing,
    Checkpoint,
    /// The checkpoint, and whether the generation still exists.
    Generation,
}

/// The schedule of polls.
pub(crate) struct PollSchedule {
    announced: Instant,
    next: Instant,
    generation_checked_at: Instant,
}

impl PollSchedule {
    /// Creates the schedule when the first wait starts.
    pub(crate) fn new(now: Instant) -> Self {
        Self { announced: now, next: now + FIRST_DELAY, generation_checked_at: now }
    }

    /// Returns when to poll next.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// Another wait started, or a commit was announced. Frequent calls do not make polls more frequent.
    pub(crate) fn announce(&mut self, now: Instant) {
        if now.saturating_duration_since(self.announced) >= FREQUENT_INTERVAL {
            self.announced = now;
            self.next = self.next.min(now + FIRST_DELAY);
        }
    }

    /// Returns what to poll now and schedules the next poll. `committed` is when this process last committed to the view.
    pub(crate) fn poll(&mut self, now: Instant, committed: Option<Instant>) -> Poll {
        let quiet_period =
            committed.map_or(Duration::ZERO, |committed| OWN_COMMIT_QUIET_PERIOD.saturating_sub(now.saturating_duration_since(committed)));
        let waited = now.saturating_duration_since(self.announced);
        let pause = if quiet_period.is_zero() { (waited / 2).min(FREQUENT_INTERVAL).max(waited / 8) } else { quiet_period };
        self.next = now + pause.clamp(FIRST_DELAY, RARE_INTERVAL);
        if now.saturating_duration_since(self.generation_checked_at) >= GENERATION_CHECK_INTERVAL {
            self.generation_checked_at = now;
            Poll::Generation
        } else if quiet_period.is_zero() {
            Poll::Checkpoint
        } else {
            Poll::Nothing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Polls until a time, and returns how often the checkpoint was read.
    fn count_polls(schedule: &mut PollSchedule, until: Instant, committed: Option<Instant>) -> usize {
        let mut count = 0;
        while schedule.next() < until {
            count += usize::from(schedule.poll(schedule.next(), committed) != Poll::Nothing);
        }
        count
    }

    /// Proves that a commit soon after the start is noticed soon, and that polls become rare until a commit is announced.
    #[test]
    fn frequent_at_first_and_then_rare() {
        let begin = Instant::now();
        let mut schedule = PollSchedule::new(begin);
        assert_eq!(schedule.next(), begin + ms(2));
        assert!((6..12).contains(&count_polls(&mut schedule, begin + ms(40), None)));
        assert!((70..110).contains(&count_polls(&mut schedule, begin + ms(60_000), None)));
        assert!((59..=61).contains(&count_polls(&mut schedule, begin + ms(120_000), None)));
        let start = begin + ms(120_010);
        schedule.announce(start);
        assert_eq!(schedule.next(), start + ms(2));
        assert!(count_polls(&mut schedule, start + ms(100), None) >= 8);
    }

    /// Proves that frequent announcements neither make polls frequent nor prevent them.
    #[test]
    fn hurried_all_the_time() {
        let begin = Instant::now();
        let (mut schedule, mut count) = (PollSchedule::new(begin), 0);
        for start in 0..1_000 {
            count += count_polls(&mut schedule, begin + ms(start), None);
            schedule.announce(begin + ms(start));
        }
        assert!((100..250).contains(&count), "{count} polls per second");
    }

    /// Proves that a process that commits does not poll the checkpoint, but only whether the generation exists; and that it polls again
    /// soon afterwards.
    #[test]
    fn a_committing_process_does_not_poll() {
        let begin = Instant::now();
        let mut schedule = PollSchedule::new(begin);
        for second in 0..10 {
            let committed = begin + ms(second * 1_000);
            schedule.announce(committed);
            assert!(count_polls(&mut schedule, committed + ms(1_000), Some(committed)) <= 1);
        }
        let last = begin + ms(9_000);
        assert!(count_polls(&mut schedule, last + OWN_COMMIT_QUIET_PERIOD + ms(10), Some(last)) <= 3);
        schedule.announce(last + OWN_COMMIT_QUIET_PERIOD + ms(10));
        assert_eq!(schedule.poll(schedule.next(), Some(last)), Poll::Generation);
        assert_eq!(schedule.poll(schedule.next(), Some(last)), Poll::Checkpoint);
    }
}
