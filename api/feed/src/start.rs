//! Where a page of a feed starts, and how long a request waits for it.

use std::sync::Arc;

use jiff::Timestamp;
use operation::context::{Context, Part, store_problem};
use operation::feed_start::{EARLIEST, LATEST, is_start};
use operation::problem::Problem;
use schemas::clock::DAY_MS;
use schemas::position::Seq;
use tokio::time::Instant;
use view_store::feed::{EMPTY_BLOCKS_MAX, FEED_BLOCK_LEN, FeedReader, Page};

use crate::position::{Position, lagging, log_end, parse_date, start_ms};
use crate::{Feeds, Source, cursor};

/// How long before now a feed without a cursor starts.
const RECENT_MS: i64 = 7 * DAY_MS;

/// Waits for a view that lags behind a valid cursor.
pub(crate) async fn catch_up(ctx: &Context, source: &Source, seq: Seq, at: Position, as_of: bool) -> Result<Position, Problem> {
    if seq.0 > log_end(ctx, source).await?.0 {
        return Err(cursor::invalid("the cursor is beyond the end of the log; it was issued for another log"));
    }
    let within = ctx.settings.call_times.lag();
    let (view, checkpoint) = ctx.wait_for(source.view, within, |at| at.seq >= seq).await?.ok_or_else(lagging)?;
    let last = checkpoint.seq;
    // With `asOf`, the position of the answer does not move with the view.
    let seq = if as_of { at.seq } else { last };
    Ok(Position { view, seq, last, ..at })
}

/// The seq after which a feed without a cursor starts.
pub(crate) async fn start(ctx: &Context, source: &Source, start: Option<&str>, at: &Position) -> Result<Seq, Problem> {
    let from_ms = match start {
        Some(text) if is_start(text, EARLIEST) => return Ok(Seq(0)),
        Some(text) if is_start(text, LATEST) => return Ok(at.seq),
        None => at.now.as_millisecond() - RECENT_MS,
        Some(text) => match parse_date(text) {
            Some(date) => start_ms(date),
            None => text.parse().ok().map(first_ms),
        }
        .ok_or_else(|| {
            let words = "is neither earliest, newest, latest, a date YYYY-MM-DD nor an RFC 3339 time (2026-01-31T12:00:00Z)";
            Problem::parameter("start", format!("{text:?} {words}"))
        })?,
    };
    let reader = Feeds::of(ctx).reader(source, Arc::clone(&at.view));
    reader.seq_at(from_ms - 1, at.seq).await.map_err(store_problem)
}

/// The first whole millisecond at or after a time.
fn first_ms(time: Timestamp) -> i64 {
    let ms = time.as_millisecond();
    ms + i64::from(Timestamp::from_millisecond(ms).is_ok_and(|whole| whole < time))
}

/// The seq after which the newest changes that are shown begin, up to `limit` of them. It reads as many blocks as a page does, so that a page from there on
/// reaches the end.
pub(crate) async fn newest(reader: &FeedReader, upto: Seq, limit: usize) -> Result<Seq, Problem> {
    let (mut first, mut found) = (upto.next(), 0);
    let blocks_max = limit.div_ceil(FEED_BLOCK_LEN) + 1;
    for read in 0..blocks_max.max(EMPTY_BLOCKS_MAX) {
        if first <= Seq(1) || found >= limit || (found > 0 && read >= blocks_max) {
            break;
        }
        let block = reader.block(first.previous()).await.map_err(store_problem)?;
        for seq in block.first_seq().up_to(first.previous()).rev() {
            if found >= limit {
                break;
            }
            found += usize::from(block.element(seq).is_some());
            first = seq;
        }
    }
    Ok(first.previous())
}

/// A page that begins where [`newest`] says. It also covers the changes up to `end` that no reader sees, so that it joins the page after it.
pub(crate) async fn newest_page(reader: &FeedReader, after: Seq, end: Seq, limit: usize) -> Result<Page, Problem> {
    let mut page = reader.page(after, end, limit).await.map_err(store_problem)?;
    while page.to < end {
        let rest = reader.page(page.to, end, 1).await.map_err(store_problem)?;
        if rest.shown > 0 {
            break;
        }
        (page.to, page.last_recorded_at_ms) = (rest.to, rest.last_recorded_at_ms);
    }
    Ok(page)
}

/// Waits for a later position; `None` if there is none before the deadline, or if the server stops.
pub(crate) async fn later(ctx: &Context, source: &Source, at: &Position, deadline: Instant) -> Result<Option<Position>, Problem> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Ok(None);
    }
    let seen = at.last;
    let waiting = ctx.wait_for(source.view, left, |now| now.seq > seen);
    let found = tokio::select! {
        found = waiting => found?,
        () = ctx.stopped() => None,
    };
    let now = ctx.clock.now();
    Ok(found.map(|(view, found)| Position { view, seq: found.seq, last: found.seq, now, clock_time: now }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a time between two milliseconds begins with the later one.
    #[test]
    fn first_milliseconds() {
        for (text, ms) in [
            ("1970-01-01T00:00:00.001Z", 1),
            ("1970-01-01T00:00:00.0010001Z", 2),
            ("1970-01-01T00:00:00.001999999Z", 2),
            ("1969-12-31T23:59:59.9985Z", -1),
            ("1969-12-31T23:59:59.999Z", -1),
        ] {
            assert_eq!(first_ms(text.parse().unwrap()), ms, "{text}");
        }
    }
}
