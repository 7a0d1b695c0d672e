//! A page of a feed under a filter: from a cursor on, from a day on, or, when the filter was changed, what that adds and removes.
//!
//! Promises, as those of `changes`: pages join without a gap, also under a filter; a page whose filter lets little pass may be short, with
//! `hasMore`, and costs no more than another. A cursor holds its filter; under another one it is refused, or, with `rebase`, the reader is
//! first told which records come in and which go out, as they stood where the cursor stands.

use crate::Feeds;
use operation::context::Part;
use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use schemas::details::ChangeRecord;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::Key;
use schemas::views::records::{Record, RecordTables, Row};
use serde::Serialize;
use serde::de::IgnoredAny;
use view_store::{Range, View};

use super::etag::{etag, has_it};
use super::filter::{Element, Filter};
use super::history::{history_from, shallow_note};
use super::notes::sample;
use super::page::Place;
use super::position::{self, DAY_MS, Position, day_text, start_ms};
use super::reading::Filtered;
use super::select::{Selection, Way};
use super::start::{catch_up, later, start};
use super::{Source, cursor};
use operation::context::{Context, store_problem, stored};
use operation::metrics;
use operation::problem::Problem;
use operation::{Answer, Body, Call, Event, Form};

/// Changes that a digest looks at, at most.
pub const DIGEST_MAX: usize = 2_000;
/// How often [`newest`] reads on.
const ROUNDS_MAX: usize = 5;
/// Stands before each part of a cursor's filter while the reader is told what a new filter changes; it is in no JSON text.
const REBASE: char = '\u{1}';
/// Changes whenever the same positions are answered with other bytes.
const RENDERING: &str = "1";

/// What is asked of a feed.
#[derive(Clone, Debug)]
pub struct Query<F> {
    /// Where it goes on or starts, how much of it, and what comes with it.
    pub asked: Filtered,
    /// What is shown.
    pub filter: F,
}

/// One item of a page: a change, or what a new filter adds or removes.
#[derive(Clone, Debug)]
pub struct Item<R: ChangeRecord> {
    /// The change; its event is `added` or `removed` where the filter did it.
    pub change: Element<R>,
    /// The record before it, where that was asked for.
    pub before: Option<R>,
}

/// A feed of one service that is filtered by `F`.
pub struct Feed {
    /// Where the changes are.
    pub source: Source,
    /// The service's tables.
    pub tables: &'static RecordTables,
    /// The field that holds the items.
    pub list: &'static str,
}

impl Feed {
    /// Answers a query with a page, whose items `show` renders.
    ///
    /// # Errors
    /// What is wrong with the query, or `unavailable`.
    pub async fn answer<F: Filter, T: Serialize>(
        &self,
        call: &Call,
        mut query: Query<F>,
        show: impl Fn(Item<F::Record>) -> T,
    ) -> Result<Answer, Problem> {
        let (ctx, filter) = (&call.context, query.filter.canonical());
        let (mut notes, reading) = (Vec::new(), &query.asked.reading);
        reading.check(call)?;
        let limit = reading.limit_of(call, &mut notes);
        let mut at = position::position(ctx, &self.source, reading.as_of.as_deref()).await?;
        let mut meant = query.filter.look_up(ctx, &at).await?;
        let mut after = match &reading.cursor {
            Some(text) => {
                let (seq, made_under) = cursor::read(&ctx.secrets, self.source.service, text)?;
                if seq > at.last {
                    at = catch_up(ctx, &self.source, seq, at, reading.as_of.is_some()).await?;
                    meant = query.filter.look_up(ctx, &at).await?;
                }
                if let Some(mut rebase) = Rebase::<F>::of(&made_under, &filter, query.asked.rebase)? {
                    if call.form == Form::Events {
                        return Err(Problem::parameter("rebase", "what a new filter changes is told in pages, not in a stream"));
                    }
                    notes.extend(meant);
                    rebase.old.look_up(ctx, &at).await?;
                    rebase.at = sample(call, &self.source, &at, rebase.at, &mut notes).await?;
                    return self.rebase(call, &at, seq, rebase, &query, limit, notes, show).await;
                }
                seq
            }
            None => start(ctx, &self.source, reading.start.as_deref(), &at).await?,
        };
        after = sample(call, &self.source, &at, after, &mut notes).await?;
        let deadline = reading.deadline();
        let mut page = self.page(ctx, &at, &query, after, after, limit).await?;
        while page.items.is_empty() && page.to >= at.seq.0 {
            let Some(later) = later(ctx, &self.source, &at, deadline).await? else { break };
            at = later;
            meant = query.filter.look_up(ctx, &at).await?;
            page = self.page(ctx, &at, &query, after, Seq(page.to), limit).await?;
        }
        notes.extend(meant);
        let next = cursor::encode(&ctx.secrets, self.source.service, Seq(page.to), &filter);
        self.render(call, &at, page, next, &filter, notes, &query, show).await
    }

    /// Of some changes, the newest first, the records as they stand at a position: a record that has changed to what was not looked for is
    /// left out.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn standing<R: Record>(&self, at: &Position, changes: Vec<Element<R>>) -> Result<Vec<R>, Problem> {
        let keys: Vec<Key> = changes.iter().map(|change| key![change.record.id()]).collect();
        let rows = at.view.get_many(self.tables.records, &keys).await.map_err(store_problem)?;
        let mut out = Vec::new();
        for (change, row) in changes.into_iter().zip(rows) {
            let row = row.map(|bytes| stored::<Row<IgnoredAny>>(self.tables.records, &bytes)).transpose()?;
            let row_seq = row.and_then(|row| u64::try_from(row.seq).ok());
            let mut stands = row_seq == Some(change.seq);
            if !stands && row_seq.is_some_and(|row| row > at.seq.0) {
                // It has changed after the position.
                let row = record_at::<R>(&*at.view, self.tables, change.record.id(), at.seq.0).await?;
                stands = row.is_some_and(|row| u64::try_from(row.seq).ok() == Some(change.seq));
            }
            if stands {
                out.push(change.record);
            }
        }
        Ok(out)
    }

    /// Records as they stand at a position, in the order of some changes of them, each once.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn as_they_stand<R: Record>(&self, at: &Position, changes: Vec<Element<R>>) -> Result<Vec<R>, Problem> {
        let mut seen = HashSet::new();
        let ids: Vec<String> =
            changes.into_iter().map(|change| change.record.id().to_owned()).filter(|id| seen.insert(id.clone())).collect();
        let keys: Vec<Key> = ids.iter().map(|id| key![id.as_str()]).collect();
        let mut out = Vec::with_capacity(ids.len());
        for (id, row) in ids.iter().zip(at.view.get_many(self.tables.records, &keys).await.map_err(store_problem)?) {
            let row = row.map(|bytes| stored::<Row<R>>(self.tables.records, &bytes)).transpose()?;
            let row = match row.filter(|row| u64::try_from(row.seq).is_ok_and(|since| since <= at.seq.0)) {
                None => record_at(&*at.view, self.tables, id, at.seq.0).await?,
                row => row,
            };
            out.extend(row.map(|row| row.record));
        }
        Ok(out)
    }

    /// The changes after `from_here`; the page is said to begin after `after`.
    async fn page<F: Filter>(
        &self,
        ctx: &Context,
        at: &Position,
        query: &Query<F>,
        after: Seq,
        from_here: Seq,
        limit: usize,
    ) -> Result<Page<F::Record>, Problem> {
        let filters = [query.filter.clone()];
        let selection = Selection::new(ctx, &self.source, self.tables, at, &filters).await?;
        let found = selection.find(from_here, at.seq, limit, Way::Forwards).await?;
        let mut items = Vec::with_capacity(found.changes.len());
        for change in found.changes {
            let before = if query.asked.before && change.event == "modified" {
                record_at(&*at.view, self.tables, change.record.id(), change.seq.saturating_sub(1)).await?.map(|row| row.record)
            } else {
                None
            };
            items.push(Item { change, before });
        }
        Ok(Page { items, from: after.0 + 1, to: found.to.max(from_here.0), has_more: found.to < at.seq.0 })
    }

    /// Tells which records a new filter adds and removes, as they stood where the cursor stands.
    #[expect(clippy::too_many_arguments, reason = "what is known of the call so far")]
    async fn rebase<F: Filter, T: Serialize>(
        &self,
        call: &Call,
        at: &Position,
        seq: Seq,
        rebase: Rebase<F>,
        query: &Query<F>,
        limit: usize,
        notes: Vec<String>,
        show: impl Fn(Item<F::Record>) -> T,
    ) -> Result<Answer, Problem> {
        let (ctx, new) = (&call.context, query.filter.canonical());
        let filters = [rebase.old.clone(), query.filter.clone()];
        let selection = Selection::new(ctx, &self.source, self.tables, at, &filters).await?;
        let found = selection.find(rebase.at, seq, limit, Way::Forwards).await?;
        let mut items = Vec::new();
        for mut change in found.changes {
            // Only what the record was then counts, not what it had been before.
            let stood = record_at::<F::Record>(&*at.view, self.tables, change.record.id(), seq.0).await?;
            if stood.is_none_or(|row| u64::try_from(row.seq).ok() != Some(change.seq)) {
                continue;
            }
            let event = match (rebase.old.fits(&change), query.filter.fits(&change)) {
                (true, false) => "removed",
                (false, true) => "added",
                _ => continue,
            };
            event.clone_into(&mut change.event);
            items.push(Item { change, before: None });
        }
        let is_over = found.to >= seq.0;
        let made_under = if is_over { new.clone() } else { format!("{REBASE}{}{REBASE}{}{REBASE}{new}", found.to, rebase.old.canonical()) };
        let next = cursor::encode(&ctx.secrets, self.source.service, seq, &made_under);
        let page = Page { items, from: seq.0 + 1, to: seq.0, has_more: !is_over || seq.0 < at.seq.0 };
        self.render(call, at, page, next, &made_under, notes, query, show).await
    }

    #[expect(clippy::too_many_arguments, reason = "all that an answer says")]
    async fn render<F: Filter, T: Serialize>(
        &self,
        call: &Call,
        at: &Position,
        page: Page<F::Record>,
        cursor: String,
        filter: &str,
        mut notes: Vec<String>,
        query: &Query<F>,
        show: impl Fn(Item<F::Record>) -> T,
    ) -> Result<Answer, Problem> {
        let ctx = &call.context;
        let from_ms = history_from(ctx, &self.source, &at.view, at.last.0).await?.filter(|_| at.seq.0 > 0);
        notes.extend(shallow_note(from_ms, at.now.as_millisecond()).map(str::to_owned));
        let note = Some(notes.join("; ")).filter(|note| !note.is_empty());
        let (from, to) = (page.from.to_string(), page.to.to_string());
        // What a filter means may be learnt: the same stretch then has other items.
        let seqs: Vec<String> = page.items.iter().map(|item| item.change.seq.to_string()).collect();
        let etag = etag(&[
            RENDERING,
            self.source.service,
            self.list,
            &from,
            &to,
            filter,
            &cursor,
            if page.has_more { "more" } else { "end" },
            &seqs.join(","),
            if query.asked.before { "before" } else { "" },
            note.as_deref().unwrap_or_default(),
            call.caller.tier.as_str(),
            call.form.as_str(),
        ]);
        if has_it(call.if_none_match.as_deref(), &etag) {
            return Ok(Answer { body: Body::NotModified, etag, next_cursor: cursor, status: 200 });
        }
        metrics::published(self.source.service, page.items.len());
        let standing = Feeds::of(ctx).standing(&self.source, at.view.as_ref(), Seq(page.to.min(at.last.0)), at.last).await?;
        if call.form == Form::Events {
            let event = |item: Item<F::Record>| {
                let id = cursor::encode(&ctx.secrets, self.source.service, Seq(item.change.seq), filter);
                Ok(Event { id, data: Bytes::from(to_value(&show(item))?.to_string()) })
            };
            let items = page.items.into_iter().map(event).collect::<Result<_, Problem>>()?;
            return Ok(Answer { body: Body::Events(items), etag: String::new(), next_cursor: cursor, status: 200 });
        }
        let items: Vec<T> = page.items.into_iter().map(show).collect();
        let place = Place {
            cursor: cursor.clone(),
            has_more: page.has_more,
            from: page.from,
            to: page.to,
            through_date: standing.through_date,
            snapshot_count: standing.snapshot_count,
            note,
        };
        let mut body = to_value(&place)?;
        if let Some(fields) = body.as_object_mut() {
            fields.insert(self.list.to_owned(), to_value(&items)?);
        }
        Ok(Answer { body: Body::Json(body), etag, next_cursor: cursor, status: 200 })
    }
}

/// Items and the stretch that they cover.
struct Page<R: ChangeRecord> {
    items: Vec<Item<R>>,
    from: u64,
    to: u64,
    has_more: bool,
}

/// Where telling what a new filter changes has come.
struct Rebase<F> {
    old: F,
    at: Seq,
}

impl<F: Filter> Rebase<F> {
    /// What a cursor's filter asks for, beside the one that is given; `None` where they are one.
    fn of(made_under: &str, given: &str, is_wanted: bool) -> Result<Option<Self>, Problem> {
        let unknown = || cursor::invalid("the cursor's filter is not known to this version");
        let mut parts = made_under.split(REBASE);
        let (old, at) = match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(filter), None, ..) if filter == given => return Ok(None),
            (Some(filter), None, ..) => (filter, 0),
            (Some(""), Some(at), Some(old), Some(new)) if new == given => (old, at.parse().map_err(|_| unknown())?),
            _ => return Err(cursor::filter_changed()),
        };
        // Telling goes on by itself, once it was begun.
        if !is_wanted && !made_under.starts_with(REBASE) {
            return Err(cursor::filter_changed());
        }
        Ok(Some(Self { old: F::of_canonical(old).ok_or_else(unknown)?, at: Seq(at) }))
    }
}

/// The row of a record as it stood at a seq.
async fn record_at<R: Record>(view: &dyn View, tables: &RecordTables, id: &str, seq: u64) -> Result<Option<Row<R>>, Problem> {
    let read = |bytes: &[u8]| stored::<Row<R>>(tables.records, bytes);
    let now = view.get(tables.records, &key![id]).await.map_err(store_problem)?;
    if let Some(row) = now.map(|bytes| read(&bytes)).transpose()?
        && u64::try_from(row.seq).is_ok_and(|since| since <= seq)
    {
        return Ok(Some(row));
    }
    let from = Some(key![id, i64::try_from(seq).unwrap_or(i64::MAX)]);
    let range = Range { prefix: key![id], after: None, from, limit: 1, reverse: false };
    let rows = view.range(tables.history, range).await.map_err(store_problem)?;
    rows.first().map(|(_, bytes)| read(bytes)).transpose()
}

fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<serde_json::Value, Problem> {
    serde_json::to_value(value).map_err(|error| {
        tracing::error!(%error, "an answer cannot be written as JSON");
        Problem::new(schemas::error_code::ErrorCode::Internal, "the answer could not be written")
    })
}

/// The first day of the last `days` before a time, and the seq before everything recorded since its beginning.
///
/// # Errors
/// When the feed cannot be read.
pub async fn since_days(ctx: &Context, source: &Source, at: &Position, days: i64) -> Result<(String, Seq), Problem> {
    let day = day_text(at.now.as_millisecond() - days * DAY_MS);
    let begin_ms = position::parse_date(&day).and_then(start_ms).unwrap_or(0);
    let reader = Feeds::of(ctx).reader(source, Arc::clone(&at.view));
    let before = reader.seq_at(begin_ms - 1, at.seq).await.map_err(store_problem)?;
    Ok((day, before))
}

/// The newest changes that fit a filter.
#[derive(Clone, Debug)]
pub struct Newest<R: ChangeRecord> {
    /// The changes, the last first.
    pub changes: Vec<Element<R>>,
    /// Where reading stopped, if it did before the end.
    cut: Option<Cut>,
}

/// Why reading stopped before the end.
#[derive(Clone, Copy, Debug)]
enum Cut {
    /// There are as many as were asked for, and perhaps more before this seq.
    Enough(u64),
    /// So many changes were looked at; those before this seq were not.
    Tired(u64),
}

impl<R: ChangeRecord> Newest<R> {
    /// What to know of a list: that it may lack some that would have fitted into it.
    #[must_use]
    pub fn of_list(&self) -> Option<String> {
        self.cut.and_then(|cut| match cut {
            Cut::Enough(_) => None,
            Cut::Tired(seq) => Some(not_looked_at(seq)),
        })
    }

    /// What to know of counts and sums: that there may be more.
    #[must_use]
    pub fn of_sums(&self) -> Option<String> {
        self.cut.map(|(Cut::Enough(seq) | Cut::Tired(seq))| not_looked_at(seq))
    }
}

fn not_looked_at(seq: u64) -> String {
    format!("only the changes from number {seq} on were looked at; a narrower question looks further back")
}

/// The newest changes that fit a filter, above a seq.
///
/// # Errors
/// When rows cannot be read.
pub async fn newest<F: Filter>(
    ctx: &Context,
    feed: &Feed,
    at: &Position,
    filter: &F,
    after: Seq,
    limit: usize,
) -> Result<Newest<F::Record>, Problem> {
    let filters = std::slice::from_ref(filter);
    let selection = Selection::new(ctx, &feed.source, feed.tables, at, filters).await?;
    let (mut changes, mut upto) = (Vec::new(), at.seq);
    for _ in 0..ROUNDS_MAX {
        let found = selection.find(after, upto, limit - changes.len(), Way::Backwards).await?;
        changes.extend(found.changes);
        upto = Seq(found.to.saturating_sub(1));
        if upto <= after {
            return Ok(Newest { changes, cut: None });
        }
        if changes.len() >= limit {
            return Ok(Newest { changes, cut: Some(Cut::Enough(upto.0 + 1)) });
        }
    }
    Ok(Newest { changes, cut: Some(Cut::Tired(upto.0 + 1)) })
}
