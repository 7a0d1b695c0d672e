//! When a failed message is retried, and when retrying ends.

use std::time::Duration;

/// The pause before the first retry. Each later pause is four times as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const GROWTH: u32 = 4;
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(12 * 3600);
/// The most attempts for a message. With the pauses between them they take about three days.
const ATTEMPTS_MAX: i64 = 13;
/// The longest pause that a receiver may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);
/// How long every attempt may fail before the webhook is disabled, in milliseconds.
pub(super) const FAILING_MAX_MS: i64 = 5 * 24 * 3600 * 1000;

/// Returns the pause after the given number of failed attempts; `None` if there is no further attempt. `random` is between 0 and 1 and varies the
/// pause by up to a tenth in each direction. A receiver may ask for a longer pause with `Retry-After`.
pub(super) fn pause(attempts: i64, retry_after: Option<Duration>, random: f64) -> Option<Duration> {
    if attempts >= ATTEMPTS_MAX {
        return None;
    }
    let before = u32::try_from(attempts.max(1) - 1).unwrap_or(u32::MAX);
    let pause = FIRST_PAUSE.saturating_mul(GROWTH.saturating_pow(before)).min(PAUSE_MAX).mul_f64(0.9 + 0.2 * random.clamp(0.0, 1.0));
    Some(pause.max(retry_after.unwrap_or_default().min(RETRY_AFTER_MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the schedule: five seconds, then longer and longer, three days in all; and that a target is obeyed within a day.
    #[test]
    fn three_days() {
        let pauses: Vec<u64> = (1..).map_while(|attempts| pause(attempts, None, 0.5)).map(|pause| pause.as_secs()).collect();
        assert_eq!(pauses[..4], [5, 20, 80, 320]);
        let days = pauses.iter().sum::<u64>() as f64 / 86_400.0;
        assert!((2.7..3.3).contains(&days), "{days} days of {pauses:?}");
        assert_eq!(pause(1, None, 0.0), Some(Duration::from_millis(4_500)));
        assert_eq!(pause(1, None, 1.0), Some(Duration::from_millis(5_500)));
        assert_eq!(pause(1, Some(Duration::from_secs(60)), 0.5), Some(Duration::from_secs(60)));
        assert_eq!(pause(3, Some(Duration::from_secs(60)), 0.5), Some(Duration::from_secs(80)));
        assert_eq!(pause(1, Some(Duration::MAX), 0.5), Some(RETRY_AFTER_MAX));
        assert_eq!(pause(i64::MAX, None, 0.5), None);
    }
}
