//! The operation `changes`, the same for every service: the feed of what changed, from a cursor on.
//!
//! A page is spliced from stored bytes. Everything else in the answer follows from the positions it names, so that its ETag is known
//! before its body.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;
use view_store::feed::{FeedReader, Page};

use super::position::{self, LAG_WITHIN, Position, lagging, log_end, parse_date, start_ms};
use super::query::{WAIT_S_MAX, later, no_stream_of_the_past, sample};
use super::{Source, cursor, etag, has_it, history_from, shallow_note};
use crate::access::tiers;
use crate::context::{Context, store_problem};
use crate::operation::{Answer, Body, Call, Event, Form, Method, Operation, Price, Words};
use crate::problem::Problem;
use crate::surfaces::metrics;

const LIMIT_MAX: usize = 200;
const RECENT_MS: i64 = 7 * 86_400_000;
/// Changes whenever the same positions are answered with other bytes.
const RENDERING: &str = "1";

/// Arguments of `changes`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    /// Where to go on: the `cursor` of an earlier answer. It never expires. Without it the feed starts at `start`.
    pub cursor: Option<String>,
    /// Where to start without a cursor: `earliest`, `latest` (only what comes from now on), or a date YYYY-MM-DD (changes recorded
    /// from that day on, in UTC). By default the last 7 days.
    pub start: Option<String>,
    /// How many changes to give at most.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = 200))]
    pub limit: usize,
    /// Seconds to wait for something new when there is nothing.
    #[serde(default)]
    #[schemars(range(min = 0, max = 30))]
    pub wait: u64,
    /// Answer as of this time: a date YYYY-MM-DD (its end in UTC) or an RFC 3339 time, not later than now.
    pub as_of: Option<String>,
}

fn limit_default() -> usize {
    50
}

/// One change.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Change<R> {
    /// What happened: `new`, or `modified`.
    pub event: String,
    /// Number of the change within the service: rises by 1 or more from change to change.
    pub seq: u64,
    /// When it was recorded, RFC 3339 in UTC. Never goes back.
    pub recorded_at: String,
    /// The record after the change.
    pub record: R,
}

/// A page of changes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Changes<R> {
    /// The changes, oldest first.
    pub changes: Vec<Change<R>>,
    /// Stands after the last change of this page: give it back as `cursor` to go on.
    pub cursor: String,
    /// Whether more is recorded after this page.
    pub has_more: bool,
    /// The first `seq` that this page covers. The next page's `from` is this one's `to` plus 1.
    pub from: u64,
    /// The last `seq` that this page covers, shown or not; `from` minus 1 for a page that covers none.
    pub to: u64,
    /// The last day up to which every upstream has been read completely, as of `to`; empty before the first complete reading.
    pub through_date: String,
    /// How many complete readings of upstreams stand behind that, as of `to`.
    pub snapshot_count: u64,
    /// What to know about the data while its history is shallow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The operation for one service, whose records are `R`.
pub fn operation<R: JsonSchema + 'static>(source: Source, example: Value) -> Operation {
    let words = Words {
        name: "changes",
        method: Method::Get,
        path: "/v1/changes",
        summary: "What changed since a cursor, oldest first: new and modified records.",
        description: "Poll it with the cursor of the last answer to see every change exactly once. `hasMore` says whether to ask again at \
            once. `from` and `to` name the range of `seq` that a page covers; ranges join, so that you can prove that nothing was skipped \
            (changes that concern no reader have a `seq` too and are left out). Cursors survive restarts, rebuilds and upgrades. A page \
            may be shorter than `limit` while `hasMore` is true. As NDJSON, one change a line, the next cursor is in the header \
            `Next-Cursor`.",
        price: Price::Free,
        tool: true,
        counted: true,
        list: "changes",
        errors: &[ErrorCode::CursorInvalid, ErrorCode::FilterChanged, ErrorCode::AsOfInvalid],
        example,
        aliases: &[],
    };
    Operation::define::<Arguments, Changes<R>, _, _>(words, move |call, arguments| answer(source, call, arguments))
}

/// An example that gives an answer for every service.
#[must_use]
pub fn example() -> Value {
    json!({ "start": "earliest", "limit": 10 })
}

async fn answer(source: Source, call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let limit = arguments.limit;
    if limit == 0 || limit > LIMIT_MAX {
        return Err(Problem::parameter("limit", format!("{limit} is not between 1 and {LIMIT_MAX}")));
    }
    if arguments.wait > WAIT_S_MAX {
        return Err(Problem::parameter("wait", format!("{} is not between 0 and {WAIT_S_MAX}", arguments.wait)));
    }
    if arguments.as_of.is_some() && call.form == Form::Events {
        return Err(no_stream_of_the_past());
    }
    if arguments.cursor.is_some() && arguments.start.is_some() {
        return Err(Problem::parameter("start", "give either a cursor or a start"));
    }
    let rows_max = tiers::limits(call.caller.tier).rows_max;
    let short = limit > rows_max;
    let limit = limit.min(rows_max);
    let mut at = position::position(ctx, &source, arguments.as_of.as_deref()).await?;
    let after = match &arguments.cursor {
        Some(text) => {
            let seq = cursor::decode(ctx.access.secrets(), source.service, "", text)?;
            if seq > at.last {
                at = catch_up(ctx, &source, seq, at, arguments.as_of.is_some()).await?;
            }
            seq
        }
        None => start(ctx, &source, arguments.start.as_deref(), &at).await?,
    };
    let mut sampled = Vec::new();
    let after = sample(&call, &source, &at, after, &mut sampled).await?;
    let deadline = Instant::now() + Duration::from_secs(if arguments.as_of.is_some() { 0 } else { arguments.wait });
    let (reader, page) = loop {
        let reader = ctx.feeds.reader(&source, Arc::clone(&at.view));
        let page = reader.page(after, at.seq, limit).await.map_err(store_problem)?;
        // What concerns no reader is passed over, and the page covers it.
        if page.shown > 0 || page.to < at.seq.0 {
            break (reader, page);
        }
        match later(ctx, &source, &at, deadline).await? {
            Some(later) => at = later,
            None => break (reader, page),
        }
    };
    let has_more = page.to < at.seq.0;
    let from_ms = history_from(ctx, &source, &at.view, at.last.0).await?;
    let mut notes: Vec<String> =
        shallow_note(from_ms.filter(|_| at.seq.0 > 0), at.now.as_millisecond()).map(str::to_owned).into_iter().collect();
    notes.extend(sampled);
    if short {
        notes.push(format!("this tier gets at most {rows_max} changes a page; a paid key gets up to {LIMIT_MAX}"));
    }
    let note = Some(notes.join("; ")).filter(|note| !note.is_empty());
    let etag = etag(&[
        RENDERING,
        source.service,
        &page.from.to_string(),
        &page.to.to_string(),
        if has_more { "more" } else { "end" },
        note.as_deref().unwrap_or_default(),
        call.caller.tier.as_str(),
        call.form.as_str(),
    ]);
    let next_cursor = cursor::encode(ctx.access.secrets(), source.service, Seq(page.to), "");
    let body = if has_it(call.if_none_match.as_deref(), &etag) {
        Body::NotModified
    } else if call.form == Form::Lines {
        metrics::published(source.service, page.shown);
        Body::Lines(lines(&reader, &page).await?.into_iter().map(|(_, line)| line).collect())
    } else if call.form == Form::Events {
        metrics::published(source.service, page.shown);
        let event = |(seq, data)| Event { id: cursor::encode(ctx.access.secrets(), source.service, Seq(seq), ""), data };
        Body::Events(lines(&reader, &page).await?.into_iter().map(event).collect())
    } else {
        metrics::published(source.service, page.shown);
        // A cursor may stand ahead of what is asked for with `asOf`.
        let standing = ctx.feeds.standing(&source, at.view.as_ref(), Seq(page.to.min(at.last.0)), at.last).await?;
        let tail = Tail {
            cursor: &next_cursor,
            has_more,
            from: page.from,
            to: page.to,
            through_date: &standing.through_date,
            snapshot_count: standing.snapshot_count,
            note: note.as_deref(),
        };
        Body::Parts(splice(page, &tail)?)
    };
    Ok(Answer { body, etag, next_cursor, status: 200 })
}

/// Waits for a view that may lag behind a cursor of ours.
pub(super) async fn catch_up(ctx: &Context, source: &Source, seq: Seq, at: Position, as_of: bool) -> Result<Position, Problem> {
    if seq.0 > log_end(ctx, source).await?.0 {
        return Err(cursor::invalid("the cursor stands beyond the end of the log: it was made for another one"));
    }
    let (view, checkpoint) = ctx.wait_for(source.view, LAG_WITHIN, |at| at.seq >= seq.0).await?.ok_or_else(lagging)?;
    let last = Seq(checkpoint.seq);
    // With `asOf`, what counts does not move with the view.
    let counts = if as_of { at.seq } else { last };
    Ok(Position { view, seq: counts, last, now: at.now })
}

/// After which change a feed without a cursor begins.
pub(super) async fn start(ctx: &Context, source: &Source, start: Option<&str>, at: &Position) -> Result<Seq, Problem> {
    let from_ms = match start {
        Some("earliest") => return Ok(Seq(0)),
        Some("latest") => return Ok(at.seq),
        None => at.now.as_millisecond() - RECENT_MS,
        Some(text) => parse_date(text)
            .and_then(start_ms)
            .ok_or_else(|| Problem::parameter("start", format!("{text:?} is neither earliest, latest nor a date YYYY-MM-DD")))?,
    };
    let reader = ctx.feeds.reader(source, Arc::clone(&at.view));
    reader.seq_at(from_ms - 1, at.seq).await.map_err(store_problem)
}

/// What follows the array.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tail<'a> {
    cursor: &'a str,
    has_more: bool,
    from: u64,
    to: u64,
    through_date: &'a str,
    snapshot_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
}

/// The answer in pieces: the stored bytes of the page between what frames them.
fn splice(page: Page, tail: &Tail<'_>) -> Result<Vec<Bytes>, Problem> {
    let mut parts = Vec::with_capacity(page.parts.len() * 2 + 2);
    parts.push(Bytes::from_static(b"{\"changes\":["));
    for (i, part) in page.parts.into_iter().enumerate() {
        if i > 0 {
            parts.push(Bytes::from_static(b","));
        }
        parts.push(part);
    }
    let mut rest = vec![b']', b','];
    let written = serde_json::to_vec(tail).map_err(|error| {
        tracing::error!(%error, "an answer cannot be written as JSON");
        Problem::new(ErrorCode::Internal, "the answer could not be written")
    })?;
    // The object's opening brace was written before the array.
    rest.extend_from_slice(written.get(1..).unwrap_or_default());
    parts.push(Bytes::from(rest));
    Ok(parts)
}

/// The changes of a page one by one, with their seq.
async fn lines(reader: &FeedReader, page: &Page) -> Result<Vec<(u64, Bytes)>, Problem> {
    let mut lines = Vec::with_capacity(page.shown);
    let mut seq = page.from;
    while seq <= page.to {
        let block = reader.block(Seq(seq)).await.map_err(store_problem)?;
        let last = (block.first_seq() + block.len() as u64 - 1).min(page.to);
        for seq in seq..=last {
            let at = usize::try_from(seq - block.first_seq()).unwrap_or(usize::MAX);
            if block.shown(at) {
                lines.push((seq, block.elements(at, at + 1)));
            }
        }
        seq = last + 1;
    }
    Ok(lines)
}
