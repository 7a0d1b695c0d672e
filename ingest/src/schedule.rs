//! Runs a cron schedule for each upstream, with tokio-cron-scheduler. A sync that comes due while the last one is still running is skipped.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use croner::Cron;
use croner::parser::{CronParser, Seconds};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemas::clock::{Clock, day_of};
use tokio::sync::mpsc;
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};
use upstreams::Upstream;

/// The most scheduled times that [`intervals`] looks at.
const TIMES_MAX: usize = 1_000;
/// How far [`intervals`] looks ahead at least, in seconds, unless [`TIMES_MAX`] times come earlier: a leap year.
const LOOK_AHEAD_S: i64 = 366 * 86_400;
/// How early a stream may be synced before its minimum interval is over, in seconds.
pub(crate) const DUE_SLACK_S: i64 = 60;

/// Why a schedule cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The setting is not a cron expression.
    #[error("upstreams.{upstream}.schedule: \"{line}\" is not a cron expression (seconds minutes hours day month weekday)")]
    Line {
        /// The upstream.
        upstream: String,
        /// The cron expression.
        line: String,
        /// Why.
        #[source]
        source: JobSchedulerError,
    },
    /// The scheduler itself failed.
    #[error("the scheduler failed")]
    Scheduler(#[from] JobSchedulerError),
}

/// A cron expression, read with the settings with which `Job::new` reads it.
fn cron(line: &str) -> Option<Cron> {
    CronParser::builder().seconds(Seconds::Required).dom_and_dow(true).build().parse(line).ok()
}

/// For each stream of an upstream, the longest time in seconds between two sync runs that the cron expression allows, counted from a time in seconds
/// since 1970. A stream with a minimum interval skips scheduled times. Streams that are not due twice in the years to come are left out, and so are all
/// if `line` is not a cron expression.
#[must_use]
pub fn intervals(upstream: &dyn Upstream, line: &str, from_s: i64) -> Vec<(&'static str, i64)> {
    let (Some(cron), Some(from)) = (cron(line), DateTime::<Utc>::from_timestamp(from_s, 0)) else { return Vec::new() };
    let mut times: Vec<i64> = Vec::new();
    for time in cron.iter_after(from).take(TIMES_MAX) {
        times.push(time.timestamp());
        if times.len() > 2 && time.timestamp() > from_s + LOOK_AHEAD_S {
            break;
        }
    }
    let streams = upstream.manifest().streams.iter();
    streams.filter_map(|stream| Some((stream.name, longest_interval(&times, stream.every)?))).collect()
}

/// The next time, in seconds since 1970, at which a cron expression starts a run of a stream that is synced at most once in `every`, and whose last
/// finished run started at `last_start_s` (0 if none has). `None` if there is none, or if `line` is not a cron expression.
#[must_use]
pub fn next_run(line: &str, every: Duration, last_start_s: i64, now_s: i64) -> Option<i64> {
    let due_s = last_start_s.saturating_add(i64::try_from(every.as_secs()).unwrap_or(i64::MAX)).saturating_sub(DUE_SLACK_S);
    let after = DateTime::<Utc>::from_timestamp(now_s.max(due_s.saturating_sub(1)), 0)?;
    cron(line)?.iter_after(after).next().map(|time| time.timestamp())
}

/// The days from `first` to before `end` on which a stream is synced that is synced at most once in `every`: the first one in any case, and each later one
/// on which the cron expression has a time at which `every` has passed since the run before. Only the first one if `line` is not a cron expression.
#[must_use]
pub fn days(line: &str, every: Duration, first: Date, end: Date) -> BTreeSet<Date> {
    let runs = std::iter::successors(start_of(first).map(|start_s| (first, start_s)), |(day, at_s)| {
        let tomorrow_s = start_of(day.tomorrow().ok()?)?;
        let next_s = next_run(line, every, *at_s, tomorrow_s - 1)?;
        Some((day_of(next_s.saturating_mul(1_000)), next_s))
    });
    runs.map(|(day, _)| day).take_while(|day| *day < end).collect()
}

/// The start of a day in UTC, in seconds since 1970.
fn start_of(day: Date) -> Option<i64> {
    day.to_zoned(TimeZone::UTC).ok().map(|start| start.timestamp().as_second())
}

/// The longest time in seconds between two runs, if runs start at some of `times` and at least `every` apart.
fn longest_interval(times: &[i64], every: Duration) -> Option<i64> {
    let every_s = i64::try_from(every.as_secs()).unwrap_or(i64::MAX);
    let (mut last, mut longest) = (*times.first()?, None);
    for time in times.iter().skip(1) {
        let since = time - last;
        if since.saturating_add(DUE_SLACK_S) >= every_s {
            longest = longest.max(Some(since));
            last = *time;
        }
    }
    longest
}

/// An upstream that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// The upstream's name.
    pub upstream: String,
    /// When it was due by the system's clock, in milliseconds since 1970.
    pub at_ms: i64,
}

/// The running scheduler. It sends a [`Due`] for each upstream whose time has come.
pub struct Schedule {
    scheduler: JobScheduler,
}

impl Schedule {
    /// Starts the scheduler. `lines` are pairs of an upstream and its cron expression in UTC. Due upstreams are sent to `due`; one that
    /// finds the channel full is skipped.
    ///
    /// # Errors
    /// [`ScheduleError::Line`], which names the setting.
    pub async fn start(lines: &[(String, String)], due: mpsc::Sender<Due>) -> Result<Self, ScheduleError> {
        let scheduler = JobScheduler::new().await?;
        for (upstream, line) in lines {
            let (name, sender) = (upstream.clone(), due.clone());
            let job = Job::new(line.as_str(), move |_, _| {
                // Cron expressions have a resolution of one second.
                let at_ms = Clock::System.now_ms() / 1_000 * 1_000;
                if sender.try_send(Due { upstream: name.clone(), at_ms }).is_err() {
                    tracing::debug!(upstream = name, "sync skipped: the previous one is still running");
                }
            })
            .map_err(|source| ScheduleError::Line { upstream: upstream.clone(), line: line.clone(), source })?;
            scheduler.add(job).await?;
        }
        scheduler.start().await?;
        Ok(Self { scheduler })
    }

    /// Stops the scheduler. No upstream becomes due after that.
    pub async fn stop(mut self) {
        if let Err(error) = self.scheduler.shutdown().await {
            tracing::warn!(%error, "the scheduler did not stop cleanly");
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    /// 2026-11-20T12:00:00Z, a Friday.
    const FRIDAY_NOON: i64 = 1_795_176_000;
    const HOUR: i64 = 3_600;

    fn of(name: &str, line: &str) -> Vec<(&'static str, i64)> {
        intervals(upstreams::by_name(name).unwrap(), line, FRIDAY_NOON)
    }

    /// Proves on which days a stream is synced: on the first one, and then as often as its schedule and its minimum interval say.
    #[test]
    fn days_of_a_schedule() {
        // A Friday.
        let (first, end) = (date(2026, 10, 23), date(2026, 11, 20));
        let times_of = |line: &str, every_h: i64| {
            let every = Duration::from_secs(u64::try_from(every_h * HOUR).unwrap());
            days(line, every, first, end).into_iter().map(|day| (day - first).get_days()).collect::<Vec<i32>>()
        };
        let each_day: Vec<i32> = (0..28).collect();
        for (line, every_h) in
            [("0 */10 * * * *", 0), ("0 */10 * * * *", 24), ("0 35 6 * * *", 24), ("0 25 13 * * *", 20), ("0 25 5,11,17,23 * * *", 20)]
        {
            assert_eq!(times_of(line, every_h), each_day, "{line} {every_h}");
        }
        assert_eq!(times_of("0 15 8 * * Sun", 0), [0, 2, 9, 16, 23]);
        assert_eq!(times_of("0 40 12 * * *", 7 * 24), [0, 7, 14, 21]);
        assert_eq!(times_of("0 40 12 * * *", 10 * 24), [0, 10, 20]);
        assert_eq!(times_of("0 25 5 * * *", 14 * 24), [0, 14]);
        assert_eq!(times_of("0 45 16 * * *", 28 * 24), [0]);
        assert_eq!(times_of("0 0 0 29 2 *", 0), [0]);
        assert_eq!(times_of("now and then", 0), [0]);
        assert!(days("0 35 6 * * *", Duration::ZERO, end, end).is_empty());
    }

    /// Proves that a stream's interval is that of its schedule: the longest gap if it has several.
    #[test]
    fn the_longest_gap_counts() {
        for (line, hours) in [
            ("0 5 */6 * * *", 6),
            ("0 45 14 * * *", 24),
            ("0 0 8,20,22 * * *", 12),
            ("0 0 9 * * MON-FRI", 72),
            ("0 0 3 * * SUN", 168),
            ("0 0 0 1 * *", 31 * 24),
            ("0 0 0 29 2 *", 1_461 * 24),
        ] {
            assert_eq!(of("cpsc", line), [("cpsc", hours * HOUR)], "{line}");
        }
    }

    /// Proves that the next run is the next scheduled time at which the minimum interval of the stream is over.
    #[test]
    fn next_runs() {
        let hourly = "0 30 * * * *";
        let next = |every_h: i64, last_start_s| {
            next_run(hourly, Duration::from_secs(u64::try_from(every_h * HOUR).unwrap()), last_start_s, FRIDAY_NOON)
                .map(|at| at - FRIDAY_NOON)
        };
        assert_eq!(next(0, FRIDAY_NOON - 10), Some(HOUR / 2));
        assert_eq!(next(2, FRIDAY_NOON - 2 * HOUR), Some(HOUR / 2));
        assert_eq!(next(2, FRIDAY_NOON - HOUR / 2 + 30), Some(HOUR + HOUR / 2), "a minute of slack");
        assert_eq!(next(6, FRIDAY_NOON), Some(6 * HOUR + HOUR / 2));
        assert_eq!(next(6, 0), Some(HOUR / 2), "a stream without a finished run is due");
        assert_eq!(next_run("each hour", Duration::ZERO, 0, FRIDAY_NOON), None);
    }

    /// Proves that a stream with a minimum interval is expected when the first scheduled time after that comes.
    #[test]
    fn a_minimum_interval_skips_times() {
        let found = of("edgar", "0 */10 * * * *");
        let of_stream = |name: &str| found.iter().find(|(stream, _)| *stream == name).unwrap().1;
        assert_eq!((of_stream("edgar.current"), of_stream("edgar.index")), (600, 2 * HOUR));
        let times: Vec<i64> = (0..100).map(|number| number * 45 * 60).collect();
        assert_eq!(longest_interval(&times, Duration::from_secs(2 * 3_600)), Some(135 * 60));
    }

    /// Proves that there is no interval without a second time, and none for a line that is not a cron expression.
    #[test]
    fn no_interval() {
        assert_eq!((longest_interval(&[], Duration::ZERO), longest_interval(&[7], Duration::ZERO)), (None, None));
        assert_eq!(of("cpsc", "now and then"), []);
    }

    /// Proves that the minimum interval has the same slack here as where the runner skips streams.
    #[test]
    fn slack_is_that_of_the_runner() {
        assert_eq!(longest_interval(&[0, 7_140], Duration::from_secs(7_200)), Some(7_140));
        assert_eq!(longest_interval(&[0, 7_139], Duration::from_secs(7_200)), None);
    }
}
