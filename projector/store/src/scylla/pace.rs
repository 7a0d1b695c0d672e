//! When the stored checkpoint of a view is looked at for what other processes commit: often while that may be under way, seldom otherwise.

use std::time::{Duration, Instant};

/// How soon it is looked at after somebody has begun to wait, or was told that something comes.
const FIRST: Duration = Duration::from_millis(2);
/// How often while it may well be under way.
const SOON: Duration = Duration::from_millis(40);
/// How often when nothing has come for long.
const LAST: Duration = Duration::from_secs(1);
/// How often it is looked at whether the generation is still there.
const ENDED_EVERY: Duration = Duration::from_secs(1);
/// For how long after a commit of this process none of another is expected.
const OURS_FOR: Duration = Duration::from_secs(2);

/// What to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Nothing,
    Checkpoint,
    /// The checkpoint, and whether the generation is still there.
    Generation,
}

/// When to look next.
pub(super) struct Pace {
    hurried: Instant,
    next: Instant,
    ended_looked_for: Instant,
}

impl Pace {
    /// Somebody has begun to wait.
    pub(super) fn new(now: Instant) -> Self {
        Self { hurried: now, next: now + FIRST, ended_looked_for: now }
    }

    /// When.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Somebody else has begun to wait, or something comes. Often repeated it does not make the looks more frequent.
    pub(super) fn hurry(&mut self, now: Instant) {
        if now.saturating_duration_since(self.hurried) >= SOON {
            self.hurried = now;
            self.next = self.next.min(now + FIRST);
        }
    }

    /// It is time. `committed`: when this process last committed to the view.
    pub(super) fn look(&mut self, now: Instant, committed: Option<Instant>) -> Look {
        let ours_for = committed.map_or(Duration::ZERO, |committed| OURS_FOR.saturating_sub(now.saturating_duration_since(committed)));
        let waited = now.saturating_duration_since(self.hurried);
        let pause = if ours_for.is_zero() { (waited / 2).min(SOON).max(waited / 8) } else { ours_for };
        self.next = now + pause.clamp(FIRST, LAST);
        if now.saturating_duration_since(self.ended_looked_for) >= ENDED_EVERY {
            self.ended_looked_for = now;
            Look::Generation
        } else if ours_for.is_zero() {
            Look::Checkpoint
        } else {
            Look::Nothing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Looks on until a time, and answers how often the checkpoint was looked at.
    fn looks(pace: &mut Pace, until: Instant, committed: Option<Instant>) -> usize {
        let mut count = 0;
        while pace.next() < until {
            count += usize::from(pace.look(pace.next(), committed) != Look::Nothing);
        }
        count
    }

    /// Proves that what comes soon is known soon, and that nobody asks often for what does not come, until it is told that something does.
    #[test]
    fn often_at_first_and_then_seldom() {
        let begin = Instant::now();
        let mut pace = Pace::new(begin);
        assert_eq!(pace.next(), begin + ms(2));
        assert!((6..12).contains(&looks(&mut pace, begin + ms(40), None)));
        assert!((70..110).contains(&looks(&mut pace, begin + ms(60_000), None)));
        assert!((59..=61).contains(&looks(&mut pace, begin + ms(120_000), None)));
        let told = begin + ms(120_010);
        pace.hurry(told);
        assert_eq!(pace.next(), told + ms(2));
        assert!(looks(&mut pace, told + ms(100), None) >= 8);
    }

    /// Proves that being told all the time makes nobody ask all the time, and keeps nobody from asking.
    #[test]
    fn hurried_all_the_time() {
        let begin = Instant::now();
        let (mut pace, mut count) = (Pace::new(begin), 0);
        for told in 0..1_000 {
            count += looks(&mut pace, begin + ms(told), None);
            pace.hurry(begin + ms(told));
        }
        assert!((100..250).contains(&count), "{count} looks a second");
    }

    /// Proves that a process that commits by itself does not ask, but whether the generation is there; and that it asks again soon after.
    #[test]
    fn who_commits_does_not_ask() {
        let begin = Instant::now();
        let mut pace = Pace::new(begin);
        for second in 0..10 {
            let committed = begin + ms(second * 1_000);
            pace.hurry(committed);
            assert!(looks(&mut pace, committed + ms(1_000), Some(committed)) <= 1);
        }
        let last = begin + ms(9_000);
        assert!(looks(&mut pace, last + OURS_FOR + ms(10), Some(last)) <= 3);
        pace.hurry(last + OURS_FOR + ms(10));
        assert_eq!(pace.look(pace.next(), Some(last)), Look::Generation);
        assert_eq!(pace.look(pace.next(), Some(last)), Look::Checkpoint);
    }
}
