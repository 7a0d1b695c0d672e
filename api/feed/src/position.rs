//! The position and the time that a read operation answers for: the latest, or those of `asOf`.

use std::ops::RangeInclusive;
use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use operation::context::Part;
use operation::context::{Context, store_problem};
use operation::problem::Problem;
use proofs::hash::Hash32;
use schemas::avro::decode;
use schemas::change::ChainLink;
use schemas::error_code::ErrorCode;
use schemas::position::{LogOffset, Seq};
use view_store::{Checkpoint, View};

use super::Source;
use super::free::FreeWindow;
use crate::Feeds;

/// The most records of the log that are searched for changes that a view lacks.
const TAIL_RECORDS: usize = 200;
/// The most bytes of such records.
const TAIL_BYTES: usize = 1 << 20;

/// The position that an answer is taken at.
#[derive(Clone)]
pub struct Position {
    /// The generation of the view that is read.
    pub view: Arc<dyn View>,
    /// The last change that the answer covers.
    pub seq: Seq,
    /// The last change that the view holds; at least `seq`.
    pub last: Seq,
    /// The time that the answer takes for "now": that of `asOf`, if it is given.
    pub now: Timestamp,
    /// The time of the clock. What callers below the paid tier see is counted from it, see [`crate::free`].
    pub clock_time: Timestamp,
}

impl Position {
    /// The day of the answer, in UTC. What depends on today is computed from it, and is never stored.
    #[must_use]
    pub fn today(&self) -> Date {
        self.now.to_zoned(TimeZone::UTC).date()
    }

    /// The last `days` days: the day of the answer and those before it.
    #[must_use]
    pub fn last_days(&self, days: i64) -> RangeInclusive<Date> {
        let today = self.today();
        today.saturating_sub((days - 1).max(0).days())..=today
    }

    /// What a caller below the paid tier sees in the answer, by time.
    #[must_use]
    pub fn free_window(&self) -> FreeWindow {
        FreeWindow::new(self.clock_time, self.now)
    }

    /// The next `days` days: from the day of the answer to so many days later.
    #[must_use]
    pub fn next_days(&self, days: i64) -> RangeInclusive<Date> {
        let today = self.today();
        today..=today.saturating_add(days.max(0).days())
    }
}

/// Resolves `asOf` (an RFC 3339 time, or a date for its end in UTC) to a position; without it, the latest position.
///
/// # Errors
/// `as-of-invalid` for a malformed or future time; `unavailable` when the view lags behind the log for too long.
pub async fn position(ctx: &Context, source: &Source, as_of: Option<&str>) -> Result<Position, Problem> {
    let Some(text) = as_of else { return Ok(latest(ctx, source).await?.0) };
    let (now, clock_time) = (parse_as_of(text)?, ctx.clock.now());
    if now > clock_time {
        let detail = words_about_future(text);
        return Err(Problem { parameter: "asOf".to_owned(), ..Problem::new(ErrorCode::AsOfInvalid, detail) });
    }
    let (view, at) = recorded_until(ctx, source, now.as_millisecond()).await?;
    let last = at.seq;
    let seq = Feeds::of(ctx).reader(source, Arc::clone(&view)).seq_at(now.as_millisecond(), last).await.map_err(store_problem)?;
    Ok(Position { view, seq, last, now, clock_time })
}

/// Returns the latest position, and the checkpoint of its view there.
///
/// # Errors
/// `unavailable`.
pub async fn latest(ctx: &Context, source: &Source) -> Result<(Position, Checkpoint), Problem> {
    let view = ctx.live(source.view).await?;
    let checkpoint = view.checkpoint().await.map_err(store_problem)?;
    let (last, now) = (checkpoint.seq, ctx.clock.now());
    Ok((Position { view, seq: last, last, now, clock_time: now }, checkpoint))
}

/// Returns a view that holds every change that was recorded until the given time. A view that lags could give a different answer later, so it is
/// compared with the log.
async fn recorded_until(ctx: &Context, source: &Source, at_ms: i64) -> Result<(Arc<dyn View>, Checkpoint), Problem> {
    let view = ctx.live(source.view).await?;
    let at = view.checkpoint().await.map_err(store_problem)?;
    // Recorded times never decrease, so the view is complete up to that time. The log may be unavailable and is not read.
    if at.recorded_at_ms > at_ms {
        return Ok((view, at));
    }
    let end = log_end(ctx, source).await?;
    let is_caught_up = |at: &Checkpoint| at.offset >= end || at.recorded_at_ms > at_ms;
    if is_caught_up(&at) || !may_have_more(ctx, source, &at).await? {
        return Ok((view, at));
    }
    if let Some(found) = ctx.wait_for(source.view, ctx.settings.call_times.lag(), is_caught_up).await? {
        return Ok(found);
    }
    let view = ctx.live(source.view).await?;
    let at = view.checkpoint().await.map_err(store_problem)?;
    if may_have_more(ctx, source, &at).await? { Err(lagging()) } else { Ok((view, at)) }
}

/// The end of the log of a service's changes.
pub async fn log_end(ctx: &Context, source: &Source) -> Result<LogOffset, Problem> {
    read_log(ctx, ctx.log.end(source.topic, 0)).await
}

/// Whether the log may hold a change that extends the last change of the view. A record that does not extend it is ignored by every view.
async fn may_have_more(ctx: &Context, source: &Source, at: &Checkpoint) -> Result<bool, Problem> {
    let last = Hash32::from_hex(&at.hash).unwrap_or_default();
    let rest = read_log(ctx, ctx.log.read(source.topic, 0, at.offset, TAIL_RECORDS, TAIL_BYTES)).await?;
    let extends = |link: ChainLink| link.extends(at.seq, last);
    let is_long = rest.len() >= TAIL_RECORDS;
    Ok(is_long || rest.iter().any(|stored| decode::<ChainLink>(source.topic.name, &stored.record.value).is_ok_and(extends)))
}

/// Awaits a read of the log; `unavailable` if it fails or takes too long.
async fn read_log<T>(ctx: &Context, read: impl Future<Output = Result<T, event_log::Error>>) -> Result<T, Problem> {
    let unread = |error: &(dyn std::error::Error + 'static)| {
        tracing::error!(error, "the log cannot be read");
        Problem::new(ErrorCode::Unavailable, "the log cannot be read now").retry_after(2)
    };
    match tokio::time::timeout(ctx.settings.call_times.lag(), read).await {
        Ok(result) => result.map_err(|error| unread(&error)),
        Err(late) => Err(unread(&late)),
    }
}

/// The problem of a view that is behind its log.
#[must_use]
pub fn lagging() -> Problem {
    Problem::new(ErrorCode::Unavailable, "the view lags behind the log; try again").retry_after(2)
}

/// What the refusal of a time in the future says. Whoever gives the date of today means the present.
fn words_about_future(text: &str) -> String {
    let is_date = parse_date(text).is_some();
    let hint = if is_date { ": a date is its end in UTC; give a time of the day, or leave `asOf` out for the present" } else { "" };
    format!("{text} is in the future{hint}")
}

/// Parses `asOf`.
fn parse_as_of(text: &str) -> Result<Timestamp, Problem> {
    let wrong = || {
        let detail = format!("{text:?} is neither a date (YYYY-MM-DD) nor an RFC 3339 time (2026-01-31T12:00:00Z)");
        Problem { parameter: "asOf".to_owned(), ..Problem::new(ErrorCode::AsOfInvalid, detail) }
    };
    match parse_date(text) {
        Some(date) => end_of(date).ok_or_else(wrong),
        None => text.parse().map_err(|_| wrong()),
    }
}

/// Parses a date `YYYY-MM-DD`; `None` for anything else.
pub fn parse_date(text: &str) -> Option<Date> {
    let digits = text.bytes().enumerate().all(|(at, byte)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() });
    if text.len() == 10 && digits { text.parse().ok() } else { None }
}

/// Parses the day that an argument names: a date `YYYY-MM-DD`, or an RFC 3339 time, whose day in UTC it is; `None` for anything else.
pub fn parse_day(text: &str) -> Option<Date> {
    parse_date(text).or_else(|| Some(text.parse::<Timestamp>().ok()?.to_zoned(TimeZone::UTC).date()))
}

/// Reads the day that an argument names, as [`parse_day`] does.
///
/// # Errors
/// `parameter-invalid`.
pub fn day_argument(name: &'static str, text: &str) -> Result<Date, Problem> {
    parse_day(text).ok_or_else(|| Problem::parameter(name, format!("{text:?} is neither a date YYYY-MM-DD nor an RFC 3339 time")))
}

/// The last millisecond of a day in UTC.
fn end_of(date: Date) -> Option<Timestamp> {
    let next = date.tomorrow().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp();
    Timestamp::from_millisecond(next.as_millisecond() - 1).ok()
}

/// The first millisecond of a day in UTC, since 1970.
pub fn start_ms(date: Date) -> Option<i64> {
    Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond())
}

/// A time's day in UTC, `YYYY-MM-DD`.
pub fn day_text(at_ms: i64) -> String {
    Timestamp::from_millisecond(at_ms).map_or_else(|_| String::new(), |at| at.to_zoned(TimeZone::UTC).date().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which texts are times, that a date is its end in UTC, and that the refusal of a later date says so.
    #[test]
    fn times() {
        let ms = |text: &str| parse_as_of(text).map(|at| at.as_millisecond());
        assert_eq!(ms("1970-01-01"), Ok(86_399_999));
        assert_eq!(ms("1970-01-01T00:00:01Z"), Ok(1_000));
        assert_eq!(ms("1970-01-01T01:00:00+01:00"), Ok(0));
        for wrong in
            ["", "1970", "19700101", "1970-13-01", "1970-02-30", "1970-1-1", "yesterday", "1970-01-01T00:00:00", "9999-12-31T23:59:61Z"]
        {
            let problem = ms(wrong).unwrap_err();
            assert_eq!((problem.code, problem.parameter.as_str()), (ErrorCode::AsOfInvalid, "asOf"), "{wrong}");
        }
        assert_eq!(day_text(86_400_000), "1970-01-02");
        assert!(words_about_future("2026-11-20").contains("is in the future: a date is its end in UTC"));
        assert_eq!(words_about_future("2026-11-20T13:00:00Z"), "2026-11-20T13:00:00Z is in the future");
    }

    /// Proves that a day is named by its date or by any time in it, in UTC.
    #[test]
    fn days() {
        let day = |text: &str| parse_day(text).map(|day| day.to_string());
        for text in
            ["2026-02-28", "2026-02-28T00:00:00Z", "2026-02-28T23:59:59.999Z", "2026-03-01T01:59:59+02:00", "2026-02-27T23:00:00-01:00"]
        {
            assert_eq!(day(text).as_deref(), Some("2026-02-28"), "{text}");
        }
        for text in
            ["", "2026-02-30", "2026-02-30T00:00:00Z", "2026-2-1", "20260228", "2026-02-28T00:00:00", "2026-02-28T00:00:00 00:00", "today"]
        {
            assert_eq!(day(text), None, "{text}");
        }
    }
}
