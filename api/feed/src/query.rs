//! Pages of a filtered feed: from a cursor or a day on, or, after a change of the filter, the difference that the new filter makes.
//!
//! Promises, as those of `changes`: consecutive pages join without a gap, under any filter. A page under a very selective filter may be short, with
//! `hasMore`, and costs no more than any other page. A cursor is bound to its filter: with another filter it is refused, or, with `rebase`, the
//! reader first receives the records that enter and leave the filtered set, as they were at the cursor.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use operation::context::{Context, Part, store_problem, stored};
use operation::metrics;
use operation::problem::Problem;
use operation::{Answer, Body, Call, Event, Form};
use schemas::clock::DAY_MS;
use schemas::details::ChangeRecord;
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::{Datum, Key};
use schemas::views::records::{Record, RecordTables, Row};
use serde::Serialize;
use serde::de::IgnoredAny;
use view_store::feed::block_of;
use view_store::{Range, View};

use super::etag::{etag, matches_etag};
use super::filter::{self, Criteria, Element, Filter};
use super::history::last_recorded;
use super::late_news::late_news_note;
use super::notes::{page_notes, sample};
use super::page::PageInfo;
use super::page_request::FilteredPageRequest;
use super::position::{self, Position, day_text, start_ms};
use super::select::{Direction, Selection};
use super::start::{catch_up, later, start};
use super::unknown::{Recorded, unknown_values};
use super::unseen_versions::hide_unseen;
use super::{Source, cursor};
use crate::Feeds;

/// The most changes that a digest reads.
pub const DIGEST_MAX: usize = 2_000;
/// The most searches of one call of [`newest`].
const ROUNDS_MAX: usize = 5;
/// The most blocks of the feed that are read at the same time.
const BLOCKS_AT_ONCE: usize = 64;
/// Separates the parts of a cursor's filter while a rebase is in progress. This character does not occur in JSON.
const REBASE: char = '\u{1}';
/// Version of the rendering, part of the ETag. Increase it when the same positions are rendered differently.
const RENDERING: &str = "3";

/// A query of a feed.
#[derive(Clone, Debug)]
pub struct Query<F> {
    /// Where to start, how many changes to return, and what to include.
    pub request: FilteredPageRequest,
    /// The filter that changes must match.
    pub filter: F,
    /// What each page says of the query itself.
    pub notes: Vec<String>,
}

/// An item of a page: a change, or a record that a new filter adds or removes.
#[derive(Clone, Debug)]
pub struct Item<R: ChangeRecord> {
    /// The change. Its event is `added` or `removed` if the new filter is the reason.
    pub change: Element<R>,
    /// The record before the change, if it was requested.
    pub before: Option<R>,
}

/// The feed of a service that can be filtered.
pub struct Feed {
    /// The tables and topics of the feed.
    pub source: Source,
    /// The tables of the service's records.
    pub tables: &'static RecordTables,
    /// The field of the answer that holds the items.
    pub list: &'static str,
}

impl Feed {
    /// Answers a query with a page. `show` renders an item.
    ///
    /// # Errors
    /// `parameter-invalid` and others for an invalid query; `unavailable`.
    pub async fn answer<F: Filter, T: Serialize>(
        &self,
        call: &Call,
        mut query: Query<F>,
        show: impl Fn(Item<F::Record>) -> T,
    ) -> Result<Answer, Problem> {
        let (ctx, filter) = (&call.context, query.filter.canonical());
        if let Some(redaction) = self.source.redaction_for(call) {
            // A filter by a field that is not shown would reveal it.
            let needs = "filtered changes show whole records and need a key of tier";
            return Err(ctx.settings.tier_too_low(needs, redaction.whole_from, "`changes` shows all in redacted form"));
        }
        let (mut notes, page_request) = (query.notes.clone(), &query.request.page);
        page_request.check(call)?;
        let limit = page_request.limit_of(call);
        let mut at = position::position(ctx, &self.source, page_request.as_of.as_deref()).await?;
        let given = page_request.cursor.as_ref().map(|text| cursor::read(&ctx.secrets, self.source.service, text)).transpose()?;
        if let Some((seq, _)) = &given
            && *seq > at.last
        {
            at = catch_up(ctx, &self.source, *seq, at, page_request.as_of.is_some()).await?;
        }
        let free_after = sample(call, &self.source, &at, Seq(0), &mut notes).await?;
        let mut note = query.filter.look_up(ctx, &at, free_after).await?;
        // Where a page with the last changes ends.
        let end = match &given {
            Some((seq, _)) => page_request.start.is_some().then_some((*seq).min(at.seq)),
            None => page_request.is_newest(call).then_some(at.seq),
        };
        let mut page = None;
        let after = match (given, end) {
            (given, Some(end)) => {
                if given.is_some_and(|(_, made_under)| made_under != filter) {
                    return Err(cursor::filter_changed(query.request.rebase));
                }
                let (found, cut) = self.newest_page(ctx, &at, &query, (end, free_after), limit).await?;
                if !call.form.has_events() {
                    notes.extend(cut);
                }
                page.insert(found).from.previous()
            }
            (Some((seq, made_under)), None) => {
                if let Some(mut rebase) = Rebase::<F>::of(&made_under, &filter, query.request.rebase)? {
                    if call.form == Form::Events {
                        return Err(Problem::parameter(
                            "rebase",
                            "a stream of server-sent events cannot use `rebase`; request pages instead",
                        ));
                    }
                    notes.extend(note);
                    rebase.old.look_up(ctx, &at, free_after).await?;
                    rebase.at = rebase.at.max(free_after);
                    return self.rebase(call, &at, seq, rebase, &query, limit, notes, show).await;
                }
                seq
            }
            (None, None) => start(ctx, &self.source, page_request.start.as_deref(), &at).await?,
        };
        let after = after.max(free_after);
        let deadline = page_request.deadline();
        let mut page = match page {
            Some(page) => page,
            None => self.page(ctx, &at, &query, (after, free_after), after, limit).await?,
        };
        while page.items.is_empty() && page.to >= at.seq {
            let Some(later) = later(ctx, &self.source, &at, deadline).await? else { break };
            at = later;
            note = query.filter.look_up(ctx, &at, free_after).await?;
            // A search for the last changes may have stopped before it found one. What it did not read is still before the page.
            page = Page { older: page.older, ..self.page(ctx, &at, &query, (after, free_after), page.to, limit).await? };
        }
        notes.extend(note);
        // A reader with a cursor got the note with the first page; each of its polls would search for the nearest values again.
        if page_request.cursor.is_none() {
            let recorded = Recorded { ctx, source: &self.source, tables: self.tables, at: &at };
            notes.extend(unknown_values(call, &recorded, &query.filter, page.items.is_empty()).await?);
            if page.items.is_empty() {
                let after = if end.is_some() { free_after } else { after };
                notes.extend(late_news_note(&recorded, &query.filter, after, page.to).await?);
            }
        }
        let next = cursor::encode(&ctx.secrets, self.source.service, page.to, &filter);
        self.render(call, &at, page, next, &filter, notes, &query, show).await
    }

    /// Returns the records of those changes that are still the latest change of their record at a position.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn still_current<R: Record>(&self, at: &Position, changes: Vec<Element<R>>) -> Result<Vec<R>, Problem> {
        let keys: Vec<Key> = changes.iter().map(|change| key![change.record.id()]).collect();
        let rows = at.view.get_many(self.tables.records, &keys).await.map_err(store_problem)?;
        let mut out = Vec::new();
        for (change, row) in changes.into_iter().zip(rows) {
            let row = row.map(|bytes| stored::<Row<IgnoredAny>>(self.tables.records, &bytes)).transpose()?;
            let row_seq = row.map(|row| row.seq);
            let mut is_current = row_seq == Some(change.seq);
            if !is_current && row_seq.is_some_and(|row| row > at.seq) {
                // The record changed again after the position.
                let row = record_at::<R>(&*at.view, self.tables, change.record.id(), at.seq).await?;
                is_current = row.is_some_and(|row| row.seq == change.seq);
            }
            if is_current {
                out.push(change.record);
            }
        }
        Ok(out)
    }

    /// Returns the records of the changes as they are at a position, each once, in the order of the changes.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn records_at<R: Record>(&self, at: &Position, changes: Vec<Element<R>>) -> Result<Vec<R>, Problem> {
        let mut seen = HashSet::new();
        let ids: Vec<String> =
            changes.into_iter().map(|change| change.record.id().to_owned()).filter(|id| seen.insert(id.clone())).collect();
        Ok(self.records_by_id(at, &ids).await?.into_iter().flatten().collect())
    }

    /// Returns the records with the given ids as they are at a position, in the order of the ids; `None` for an id that is not recorded. All current
    /// rows are read at once. Each record that changed after the position needs one more read.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn records_by_id<R: Record>(&self, at: &Position, ids: &[String]) -> Result<Vec<Option<R>>, Problem> {
        let keys: Vec<Key> = ids.iter().map(|id| key![id.as_str()]).collect();
        let rows = at.view.get_many(self.tables.records, &keys).await.map_err(store_problem)?;
        let mut out = Vec::with_capacity(ids.len());
        for (id, row) in ids.iter().zip(rows) {
            let current: Option<Row<R>> = row.map(|bytes| stored(self.tables.records, &bytes)).transpose()?;
            // A record without a current row has no earlier one.
            let row = match current {
                Some(row) if row.seq > at.seq => earlier_record(&*at.view, self.tables, id, at.seq).await?,
                row => row,
            };
            out.push(row.map(|row| row.record));
        }
        Ok(out)
    }

    /// Returns the seq at which the record with an id was recorded first, given the seq of its current version.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn first_recorded(&self, at: &Position, id: &str, current: Seq) -> Result<Seq, Problem> {
        let range = Range { prefix: key![id], after: None, from: None, limit: 1, reverse: true };
        let rows = at.view.range(self.tables.history, range).await.map_err(store_problem)?;
        let oldest = rows.first().and_then(|(key, _)| match key.get(1) {
            Some(Datum::Int(seq)) => Seq::try_from(*seq).ok(),
            _ => None,
        });
        Ok(oldest.map_or(current, |oldest| oldest.min(current)))
    }

    /// Returns which of some changes are late news, see [`Element::is_backfill`].
    ///
    /// # Errors
    /// When the feed cannot be read.
    pub async fn backfilled<R: Record>(&self, ctx: &Context, at: &Position, mut seqs: Vec<Seq>) -> Result<HashSet<Seq>, Problem> {
        seqs.sort_unstable();
        let reader = Feeds::of(ctx).reader(&self.source, Arc::clone(&at.view));
        let mut late = HashSet::new();
        for some in seqs.chunks(BLOCKS_AT_ONCE) {
            let mut numbers: Vec<u64> = some.iter().map(|seq| block_of(*seq)).collect();
            numbers.dedup();
            let blocks = reader.blocks(&numbers).await.map_err(store_problem)?;
            let blocks: HashMap<u64, _> = numbers.into_iter().zip(blocks).collect();
            for seq in some {
                let element = blocks.get(&block_of(*seq)).and_then(|block| block.element(*seq));
                if element.map(|element| filter::read::<R>(&element)).transpose()?.is_some_and(|change| change.is_backfill()) {
                    late.insert(*seq);
                }
            }
        }
        Ok(late)
    }

    /// Reads the changes after `from_here` into a page whose range starts after `after`. Of records before a change, versions up to `free_after` are not
    /// shown.
    async fn page<F: Filter>(
        &self,
        ctx: &Context,
        at: &Position,
        query: &Query<F>,
        (after, free_after): (Seq, Seq),
        from_here: Seq,
        limit: usize,
    ) -> Result<Page<F::Record>, Problem> {
        let selection = Selection::new(ctx, &self.source, self.tables, at, vec![query.filter.news()]).await?;
        let found = selection.find(from_here, at.seq, limit, Direction::Forwards).await?;
        let (items, without_before) = self.items(at, query, found.changes, free_after).await?;
        Ok(Page { items, from: after.next(), to: found.to.max(from_here), has_more: found.to < at.seq, without_before, older: None })
    }

    /// Reads the last changes up to `end` that the filter selects into a page, and the note if the search for them stopped before the page was full. Changes
    /// up to `free_after` are not shown. It looks for one change more than the page has, so that a full page names one before it only if that has a change.
    async fn newest_page<F: Filter>(
        &self,
        ctx: &Context,
        at: &Position,
        query: &Query<F>,
        (end, free_after): (Seq, Seq),
        limit: usize,
    ) -> Result<(Page<F::Record>, Option<String>), Problem> {
        let until = Position { seq: end, ..at.clone() };
        let mut found = newest(ctx, self, &until, query.filter.news(), free_after, limit + 1).await?;
        let beyond = if found.changes.len() > limit { found.changes.pop() } else { None };
        let unread = (!found.is_complete()).then_some(found.complete_from().previous());
        let older = beyond.map(|change| change.seq).or(unread);
        let note =
            found.list_note().filter(|_| found.changes.len() < limit).map(|note| format!("{note}, and `older` continues the search"));
        let mut changes = found.changes;
        // All that is selected is shown, so the page begins with the first of it.
        let first = || changes.last().map_or(end, |oldest| oldest.seq.previous());
        let after = older.unwrap_or_else(first).max(free_after);
        changes.reverse();
        let (items, without_before) = self.items(at, query, changes, free_after).await?;
        Ok((Page { items, from: after.next(), to: end.max(after), has_more: end < at.seq, without_before, older }, note))
    }

    /// Makes the items of a page from its changes, and counts those that are shown without what they tell of the version before them. Of records before a
    /// change, versions up to `free_after` are not shown.
    async fn items<F: Filter>(
        &self,
        at: &Position,
        query: &Query<F>,
        changes: Vec<Element<F::Record>>,
        free_after: Seq,
    ) -> Result<(Vec<Item<F::Record>>, usize), Problem> {
        let (mut items, mut without_before) = (Vec::with_capacity(changes.len()), 0);
        for mut change in changes {
            let id = change.record.id().to_owned();
            without_before += usize::from(hide_unseen(&self.source, at, &id, &mut change, free_after).await?);
            let before = if query.request.before && change.event == "modified" {
                record_at(&*at.view, self.tables, &id, change.seq.previous())
                    .await?
                    .filter(|row: &Row<F::Record>| row.seq > free_after)
                    .map(|row| row.record)
            } else {
                None
            };
            items.push(Item { change, before });
        }
        Ok((items, without_before))
    }

    /// Reads which records a new filter adds and removes, as they were at the cursor.
    #[expect(clippy::too_many_arguments, reason = "the state of the request so far")]
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
        let criteria = vec![rebase.old.news(), query.filter.news()];
        let selection = Selection::new(ctx, &self.source, self.tables, at, criteria).await?;
        let found = selection.find(rebase.at, seq, limit, Direction::Forwards).await?;
        let mut items = Vec::new();
        for mut change in found.changes {
            // Only the state of the record at the cursor counts, not earlier states.
            let row = record_at::<F::Record>(&*at.view, self.tables, change.record.id(), seq).await?;
            if row.is_none_or(|row| row.seq != change.seq) {
                continue;
            }
            let event = match (rebase.old.selects(&change), query.filter.selects(&change)) {
                (true, false) => "removed",
                (false, true) => "added",
                _ => continue,
            };
            // It compares with a version before the cursor.
            if self.source.sample_days_for(call).is_some() {
                change.hide_compared();
            }
            event.clone_into(&mut change.event);
            items.push(Item { change, before: None });
        }
        let is_over = found.to >= seq;
        let made_under = if is_over { new.clone() } else { format!("{REBASE}{}{REBASE}{}{REBASE}{new}", found.to, rebase.old.canonical()) };
        let next = cursor::encode(&ctx.secrets, self.source.service, seq, &made_under);
        let page = Page { items, from: seq.next(), to: seq, has_more: !is_over || seq < at.seq, without_before: 0, older: None };
        self.render(call, at, page, next, &made_under, notes, query, show).await
    }

    #[expect(clippy::too_many_arguments, reason = "all parts of the answer")]
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
        notes.extend(page_notes(ctx, &self.source, at, query.request.page.limit_note(call, page.has_more)).await?);
        let note = Some(notes.join("; ")).filter(|note| !note.is_empty());
        let (from, to, without_before) = (page.from.to_string(), page.to.to_string(), page.without_before.to_string());
        // A filter may resolve differently later, so the same range can have other items.
        let seqs: Vec<String> = page.items.iter().map(|item| item.change.seq.to_string()).collect();
        let seqs = seqs.join(",");
        let older = page.older.map(|seq| cursor::encode(&ctx.secrets, self.source.service, seq, filter));
        let mut inputs = vec![
            RENDERING,
            self.source.service,
            self.list,
            &from,
            &to,
            filter,
            &cursor,
            if page.has_more { "more" } else { "end" },
            &seqs,
            if query.request.before { "before" } else { "" },
            &without_before,
            note.as_deref().unwrap_or_default(),
            call.caller.tier.as_str(),
            call.form.as_str(),
        ];
        inputs.extend(older.as_deref());
        let etag = etag(&*at.view, &inputs);
        if matches_etag(call.if_none_match.as_deref(), &etag) {
            return Ok(Answer { body: Body::NotModified, etag, next_cursor: cursor, has_more: page.has_more, status: 200 });
        }
        metrics::count_published(self.source.service, page.items.len());
        let completeness = Feeds::of(ctx).completeness(&self.source, at.view.as_ref(), page.to.min(at.last), at.last).await?;
        if call.form.has_events() {
            let event = |item: Item<F::Record>| {
                let id = cursor::encode(&ctx.secrets, self.source.service, item.change.seq, filter);
                Ok(Event { id, data: Bytes::from(to_value(&show(item))?.to_string()) })
            };
            let items = page.items.into_iter().map(event).collect::<Result<_, Problem>>()?;
            let from = cursor::encode(&ctx.secrets, self.source.service, page.from.previous(), filter);
            let updated = last_recorded(call, &self.source, at, page.to).await?;
            let body = Body::Events { from, older, items, updated, note };
            return Ok(Answer { body, etag, next_cursor: cursor, has_more: page.has_more, status: 200 });
        }
        let items: Vec<T> = page.items.into_iter().map(show).collect();
        let info = PageInfo {
            cursor: cursor.clone(),
            older,
            has_more: page.has_more,
            from: page.from,
            to: page.to,
            through_date: completeness.through_date,
            snapshot_count: completeness.snapshot_count,
            note,
        };
        let mut body = to_value(&info)?;
        if let Some(fields) = body.as_object_mut() {
            fields.insert(self.list.to_owned(), to_value(&items)?);
        }
        Ok(Answer { body: Body::Json(body), etag, next_cursor: cursor, has_more: page.has_more, status: 200 })
    }
}

/// The items of a page, and the range that it covers.
struct Page<R: ChangeRecord> {
    items: Vec<Item<R>>,
    from: Seq,
    to: Seq,
    has_more: bool,
    /// How many of the changes are shown without what they tell of the version before them.
    without_before: usize,
    /// Of a page with the last changes: the change up to which the ones before it are read; `None` if the filter selects none of them.
    older: Option<Seq>,
}

/// The progress of a rebase.
struct Rebase<F> {
    old: F,
    at: Seq,
}

impl<F: Filter> Rebase<F> {
    /// The rebase that a cursor's filter requires; `None` if the cursor has the given filter.
    fn of(made_under: &str, given: &str, is_wanted: bool) -> Result<Option<Self>, Problem> {
        let unknown = || cursor::invalid("the cursor's filter cannot be read by this version");
        let mut parts = made_under.split(REBASE);
        let (old, at) = match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(filter), None, ..) if filter == given => return Ok(None),
            (Some(filter), None, ..) => (filter, Seq(0)),
            (Some(""), Some(at), Some(old), Some(new)) if new == given => (old, at.parse().map_err(|_| unknown())?),
            _ => return Err(cursor::filter_changed(is_wanted)),
        };
        // A rebase that was started continues without the parameter.
        if !is_wanted && !made_under.starts_with(REBASE) {
            return Err(cursor::filter_changed(false));
        }
        Ok(Some(Self { old: F::from_canonical(old).ok_or_else(unknown)?, at }))
    }
}

/// The row of a record as of a seq.
async fn record_at<R: Record>(view: &dyn View, tables: &RecordTables, id: &str, seq: Seq) -> Result<Option<Row<R>>, Problem> {
    let read = |bytes: &[u8]| stored::<Row<R>>(tables.records, bytes);
    let now = view.get(tables.records, &key![id]).await.map_err(store_problem)?;
    if let Some(row) = now.map(|bytes| read(&bytes)).transpose()?
        && row.seq <= seq
    {
        return Ok(Some(row));
    }
    earlier_record(view, tables, id, seq).await
}

/// The row of a record as of a seq that is before that of its current row.
pub(crate) async fn earlier_record<R: Record>(
    view: &dyn View,
    tables: &RecordTables,
    id: &str,
    seq: Seq,
) -> Result<Option<Row<R>>, Problem> {
    let from = Some(key![id, seq.stored()]);
    let range = Range { prefix: key![id], after: None, from, limit: 1, reverse: false };
    let rows = view.range(tables.history, range).await.map_err(store_problem)?;
    rows.first().map(|(_, bytes)| stored::<Row<R>>(tables.records, bytes)).transpose()
}

pub(super) fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<serde_json::Value, Problem> {
    serde_json::to_value(value).map_err(|error| {
        tracing::error!(%error, "an answer cannot be written as JSON");
        Problem::new(ErrorCode::Internal, "the answer could not be written")
    })
}

/// The first day of the last `days` before a time, and the last seq that was recorded before it.
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

/// The newest changes that match a filter.
#[derive(Clone, Debug)]
pub struct Newest<R: ChangeRecord> {
    /// The changes, newest first.
    pub changes: Vec<Element<R>>,
    /// Where the search stopped, if it did not reach the end.
    cut: Option<Cut>,
}

/// Why a search stopped before the end.
#[derive(Clone, Copy, Debug)]
enum Cut {
    /// The requested number of changes was found. There may be more before this seq.
    LimitReached(Seq),
    /// The most changes allowed were read. Changes before this seq were not.
    SearchLimitReached(Seq),
}

impl<R: ChangeRecord> Newest<R> {
    /// Whether all changes that the criteria select are there.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.cut.is_none()
    }

    /// Every selected change with a seq from here on is there.
    #[must_use]
    pub fn complete_from(&self) -> Seq {
        self.cut.map_or(Seq(0), |(Cut::LimitReached(seq) | Cut::SearchLimitReached(seq))| seq)
    }

    /// The note for a list: it may be incomplete.
    #[must_use]
    pub fn list_note(&self) -> Option<String> {
        self.cut.and_then(|cut| match cut {
            Cut::LimitReached(_) => None,
            Cut::SearchLimitReached(seq) => Some(partial_note(seq)),
        })
    }

    /// The note for counts and sums: they may be incomplete.
    #[must_use]
    pub fn sums_note(&self) -> Option<String> {
        self.cut.map(|(Cut::LimitReached(seq) | Cut::SearchLimitReached(seq))| partial_note(seq))
    }
}

fn partial_note(seq: Seq) -> String {
    format!("only the changes from seq {seq} on were searched; a narrower query searches further back")
}

/// Finds the newest changes after a seq that the criteria select.
///
/// # Errors
/// When rows cannot be read.
pub async fn newest<R: Record>(
    ctx: &Context,
    feed: &Feed,
    at: &Position,
    criteria: Criteria<'_, R>,
    after: Seq,
    limit: usize,
) -> Result<Newest<R>, Problem> {
    let selection = Selection::new(ctx, &feed.source, feed.tables, at, vec![criteria]).await?;
    let (mut changes, mut upto) = (Vec::new(), at.seq);
    for _ in 0..ROUNDS_MAX {
        let found = selection.find(after, upto, limit - changes.len(), Direction::Backwards).await?;
        changes.extend(found.changes);
        upto = found.to.previous();
        if upto <= after {
            return Ok(Newest { changes, cut: None });
        }
        if changes.len() >= limit {
            return Ok(Newest { changes, cut: Some(Cut::LimitReached(upto.next())) });
        }
    }
    Ok(Newest { changes, cut: Some(Cut::SearchLimitReached(upto.next())) })
}
