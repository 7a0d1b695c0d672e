//! When a failed message is retried, and when retrying ends.

use std::time::Duration;

use operation::context::RetrySchedule;

/// The longest pause that a receiver may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);

/// Returns the pause after the given number of failed attempts; `None` if there is no further attempt. `random` is between 0 and 1 and varies the
/// pause by up to a tenth in each direction. A receiver may ask for a longer pause with `Retry-After`.
pub(super) fn pause(schedule: &RetrySchedule, attempts: i64, retry_after: Option<Duration>, random: f64) -> Option<Duration> {
    let index = usize::try_from(attempts.max(1) - 1).ok()?;
    let pause = schedule.pauses.get(index)?.mul_f64(0.9 + 0.2 * random.clamp(0.0, 1.0));
    Some(pause.max(retry_after.unwrap_or_default().min(RETRY_AFTER_MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that pauses follow the schedule with some variation, that they end with it, and that a receiver can ask for a pause of up to a day.
    #[test]
    fn pauses_follow_the_schedule() {
        let schedule = RetrySchedule::default();
        let pauses: Vec<u64> = (1..).map_while(|attempts| pause(&schedule, attempts, None, 0.5)).map(|pause| pause.as_secs()).collect();
        assert_eq!((pauses[..4].to_vec(), pauses.len()), (vec![5, 20, 80, 320], 12));
        let days = pauses.iter().sum::<u64>() as f64 / 86_400.0;
        assert!((2.7..3.3).contains(&days), "{days} days of {pauses:?}");
        let pause = |attempts, retry_after, random| pause(&schedule, attempts, retry_after, random);
        assert_eq!(pause(1, None, 0.0), Some(Duration::from_millis(4_500)));
        assert_eq!(pause(1, None, 1.0), Some(Duration::from_millis(5_500)));
        assert_eq!(pause(1, Some(Duration::from_secs(60)), 0.5), Some(Duration::from_secs(60)));
        assert_eq!(pause(3, Some(Duration::from_secs(60)), 0.5), Some(Duration::from_secs(80)));
        assert_eq!(pause(1, Some(Duration::MAX), 0.5), Some(RETRY_AFTER_MAX));
        assert_eq!((pause(13, None, 0.5), pause(i64::MAX, None, 0.5)), (None, None));
    }
}
