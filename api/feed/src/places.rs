//! Pages of ranked lists, as of any position.
//!
//! A service's records name their places in lists (`Record::places`), and the fold stores from which seq until which seq each holds. A list
//! is walked in the order of bucket, rank and id: buckets are read several at a time and joined in order.
//!
//! Promises: a call walks at most [`PLACES_MAX`] places, however long the list and whatever the filter is, and one page more if entries
//! were added in front of the page while a reader paged. Following `next` to its end gives every matching record of the list once, except
//! those that change their place meanwhile; with `asOf` none does. `total` is exact, or `None` if the list is longer than one walk.
//!
//! What a walk without a condition found is remembered for the position: further pages of the same part read their own places only.

mod reading;
mod segment;

use std::sync::Arc;
use std::vec;

use futures_util::future::try_join;
use operation::context::{Context, Part as _};
use operation::problem::Problem;
use quick_cache::sync::Cache;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use schemas::tables::Table;
use schemas::views::records::Record;
use serde::{Deserialize, Serialize};

use self::reading::{ROWS_MAX, ROWS_PER_READ, Reading};
pub use self::segment::Segment;
use self::segment::Spot;
use crate::position::Position;
use crate::query::Feed;
use crate::{Feeds, cursor};

/// The most places that one call walks.
pub const PLACES_MAX: usize = 2_000;
/// The most rows of a bucket that are read at a time once the page is full, to count the other places: with the first read, all that a call walks.
const ROWS_PER_COUNT: usize = PLACES_MAX - ROWS_PER_READ;
/// The fewest rows of a bucket that are read at a time for one page, so that places that are no longer held do not cost many reads.
const ROWS_PER_PAGE_MIN: usize = 64;
/// How many parts of lists of a service are remembered, each at one position, with about 500 bytes.
const EXTENTS_MAX: usize = 4_096;
/// Starts the text of a place, which is sealed. No filter of a feed starts like this.
const PLACE: &str = "place/";

/// A question for a page of a ranked list.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    /// The name of the list.
    pub list: &'a str,
    /// The part of the list.
    pub part: Segment,
    /// What else selects the records, in one canonical text. `after` belongs to it and to the list.
    pub filter: &'a str,
    /// The most records of the page.
    pub limit: usize,
    /// Where to continue: the `next` of an earlier page.
    pub after: Option<&'a str>,
}

/// A page of a ranked list.
#[derive(Clone, Debug)]
pub struct Ranked<R> {
    /// The records, in the order of the list.
    pub items: Vec<R>,
    /// How many records of the part of the list match, over all pages; `None` if the walk did not reach its end.
    pub total: Option<u64>,
    /// Send it as `after` to continue; `None` at the end.
    pub next: Option<String>,
}

/// Whether a page says how many records of the list match, see [`Ranked::total`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Total {
    /// It does: the walk continues after the page.
    Counted,
    /// It does not: the walk ends when the page is full.
    Omitted,
}

/// A condition that a record must meet to be in a page.
pub type Selects<'a, R> = &'a (dyn Fn(&R) -> bool + Send + Sync);

/// What a walk from the start of a part of a list found, if every place matches. It never changes, since it is of one position.
#[derive(Debug)]
struct Extent {
    /// The first place; `None` if the walk found none.
    first: Option<Spot>,
    /// The last place that was walked.
    last: Option<Spot>,
    /// See [`Walked::read_to`].
    read_to: Option<Spot>,
    places: usize,
    /// Whether the walk reached the end of the part.
    is_whole: bool,
}

/// The extents of parts of lists in one generation of a service's view, by list, part and position.
struct Extents(Cache<(String, Segment, Seq), Arc<Extent>>);

impl Extents {
    fn new() -> Self {
        Self(Cache::new(EXTENTS_MAX))
    }
}

/// What `after` holds.
#[derive(Serialize, Deserialize)]
struct Token {
    list: String,
    filter: String,
    spot: Spot,
    /// Whether the place is so far from the start that a walk from there does not reach it. Pages after it have no total.
    is_far: bool,
}

impl Feed {
    /// A page of a ranked list at a position. Without `selects` every record of the list matches, and only the records of the page are read.
    ///
    /// # Errors
    /// `cursor-invalid` for an `after` that is not one of this list and filter; `unavailable`.
    pub async fn ranked<R: Record>(
        &self,
        ctx: &Context,
        at: &Position,
        walk: Walk<'_>,
        selects: Option<Selects<'_, R>>,
        total: Total,
    ) -> Result<Ranked<R>, Problem> {
        let page = self.walked(ctx, at, &walk, selects, total, true).await?;
        self.answer_of(ctx, at, &walk, page).await
    }

    /// The ids of the records of a page of a ranked list at a position. The records are not read.
    ///
    /// # Errors
    /// `cursor-invalid` for an `after` that is not one of this list and filter; `unavailable`.
    pub async fn ranked_ids<R: Record>(
        &self,
        ctx: &Context,
        at: &Position,
        walk: Walk<'_>,
        total: Total,
    ) -> Result<Ranked<String>, Problem> {
        let page = self.walked::<R>(ctx, at, &walk, None, total, false).await?;
        let (total, next) = self.end_of(ctx, &walk, &page);
        Ok(Ranked { items: page.items.into_iter().map(|(spot, _)| spot.id).collect(), total, next })
    }

    /// The walk to a page, which is empty if the service has no lists. `is_for_records`: the records of the page are wanted, too.
    async fn walked<R: Record>(
        &self,
        ctx: &Context,
        at: &Position,
        walk: &Walk<'_>,
        selects: Option<Selects<'_, R>>,
        total: Total,
        is_for_records: bool,
    ) -> Result<Walked<R>, Problem> {
        let reach = Reach { is_counted: total == Total::Counted, ..Reach::default() };
        let Some(table) = self.tables.places else { return Ok(Walked { is_whole: true, reach, ..Walked::default() }) };
        let after = walk.after.map(|text| self.place_of(ctx, (walk.list, walk.filter), text)).transpose()?;
        let (after, is_far) = after.map_or((None, false), |token| (Some(token.spot), token.is_far));
        let after = after.as_ref();
        if total == Total::Omitted {
            return self.walk(at, table, walk, after, Reach { is_far: after.is_some(), ..reach }, selects).await;
        }
        if !is_far {
            let page = match selects {
                None => self.walk_of_all(ctx, at, table, walk, after, is_for_records).await?,
                Some(_) => self.walk(at, table, walk, after, reach, selects).await?,
            };
            // Entries that were added in front can move a place out of the reach of a walk from the start.
            if page.is_past(after) {
                return Ok(page);
            }
        }
        self.walk(at, table, walk, after, Reach { is_far: true, ..reach }, selects).await
    }

    /// The walk from the start of a part to a page, if every place matches. Only the first one at a position walks: the next ones read the page alone.
    async fn walk_of_all<R: Record>(
        &self,
        ctx: &Context,
        at: &Position,
        table: &'static Table,
        walk: &Walk<'_>,
        after: Option<&Spot>,
        is_for_records: bool,
    ) -> Result<Walked<R>, Problem> {
        let extents = Feeds::of(ctx).cached_for(&self.source, &*at.view, Extents::new);
        let key = (walk.list.to_owned(), walk.part.clone(), at.seq);
        if let Some(extent) = extents.0.get(&key) {
            return page_within(at, table, walk, after, &extent).await;
        }
        let page = self.walk(at, table, walk, after, Reach { is_for_records, ..Reach::default() }, None).await?;
        extents.0.insert(key, Arc::new(page.extent()));
        Ok(page)
    }

    /// How many places a part of a list holds at a position; `None` if they are more than `most`.
    ///
    /// # Errors
    /// `unavailable`.
    pub async fn count_places(&self, at: &Position, list: &str, part: &Segment, most: usize) -> Result<Option<u64>, Problem> {
        let Some(table) = self.tables.places else { return Ok(Some(0)) };
        let mut reading = Reading::new(at, table, list, part, None);
        let mut count = 0;
        while let Some(spots) = reading.next_spots().await? {
            count += spots.len();
            if count > most || reading.rows_read > 3 * most.max(ROWS_PER_READ) {
                return Ok(None);
            }
        }
        Ok(Some(count as u64))
    }

    async fn walk<R: Record>(
        &self,
        at: &Position,
        table: &'static Table,
        walk: &Walk<'_>,
        after: Option<&Spot>,
        reach: Reach,
        selects: Option<Selects<'_, R>>,
    ) -> Result<Walked<R>, Problem> {
        let start = after.filter(|_| reach.is_far).cloned();
        let rows_at_once = if reach.is_counted { ROWS_PER_READ } else { rows_of_page(walk.limit) };
        // Records that a condition reads are in memory together, so their places are read in smaller parts.
        let rows_at_once_max = if reach.is_counted && selects.is_none() { ROWS_PER_COUNT } else { ROWS_PER_READ };
        let mut reading = Reading::new(at, table, walk.list, &walk.part, start).with_rows_at_once(rows_at_once, rows_at_once_max);
        let mut page = Walked { reach, ..Walked::default() };
        let is_for_records = reach.is_for_records && selects.is_none();
        if self.walk_on(at, (&mut reading, &mut page), walk, after, selects, is_for_records).await? {
            return Ok(page);
        }
        // The page is full. Its records are read while the places after it are counted.
        let ids: Vec<String> = page.items.iter().map(|(spot, _)| spot.id.clone()).collect();
        let rest = self.walk_on(at, (&mut reading, &mut page), walk, after, selects, false);
        let (_, records) = try_join(rest, self.records_by_id::<R>(at, &ids)).await?;
        for ((_, item), record) in page.items.iter_mut().zip(records) {
            *item = record;
        }
        Ok(page)
    }

    /// Walks on. Returns true at the end of the walk, and false if it stops before because the page is full, which it does if `stops_after_page` is set.
    async fn walk_on<R: Record>(
        &self,
        at: &Position,
        (reading, page): (&mut Reading<'_>, &mut Walked<R>),
        walk: &Walk<'_>,
        after: Option<&Spot>,
        selects: Option<Selects<'_, R>>,
        stops_after_page: bool,
    ) -> Result<bool, Problem> {
        loop {
            let Some(mut spots) = reading.next_spots().await? else {
                page.is_whole = true;
                return Ok(true);
            };
            spots.truncate(PLACES_MAX - page.places);
            let records = match selects {
                Some(_) => {
                    let ids: Vec<String> = spots.iter().map(|spot| spot.id.clone()).collect();
                    self.records_by_id::<R>(at, &ids).await?
                }
                None => spots.iter().map(|_| None).collect(),
            };
            for (spot, record) in spots.into_iter().zip(records) {
                page.places += 1;
                let is_selected = selects.is_none_or(|selects| record.as_ref().is_some_and(selects));
                page.take(spot, record, is_selected, after, walk.limit);
            }
            if page.is_done(reading.rows_read) {
                let is_cut = page.places >= PLACES_MAX;
                page.read_to = page.last.clone().max(reading.passed.take().filter(|_| !is_cut));
                return Ok(true);
            }
            if stops_after_page && page.has_more {
                return Ok(false);
            }
        }
    }

    /// The total of a walk, and the text that continues it.
    fn end_of<R>(&self, ctx: &Context, walk: &Walk<'_>, page: &Walked<R>) -> (Option<u64>, Option<String>) {
        let total = (page.is_whole && page.reach.is_counted && !page.reach.is_far).then_some(page.total);
        let next = page.next().map(|spot| {
            // A walk from the start ends there again.
            let is_far = page.reach.is_far || !page.has_more;
            let token = Token { list: walk.list.to_owned(), filter: walk.filter.to_owned(), spot, is_far };
            // The fields are texts and numbers, so serialization cannot fail.
            let text = format!("{PLACE}{}", serde_json::to_string(&token).unwrap_or_default());
            // A walk can end at a record that is hidden, whose id nobody may read.
            cursor::encode_sealed(&ctx.secrets, self.source.service, &text)
        });
        (total, next)
    }

    /// The answer of a walk. Reads the records that were not needed for the walk.
    async fn answer_of<R: Record>(&self, ctx: &Context, at: &Position, walk: &Walk<'_>, page: Walked<R>) -> Result<Ranked<R>, Problem> {
        let (total, next) = self.end_of(ctx, walk, &page);
        let unread: Vec<String> = page.items.iter().filter(|(_, record)| record.is_none()).map(|(spot, _)| spot.id.clone()).collect();
        let mut read: vec::IntoIter<Option<R>> = self.records_by_id(at, &unread).await?.into_iter();
        let mut items = Vec::with_capacity(page.items.len());
        for (spot, record) in page.items {
            match record.or_else(|| read.next().flatten()) {
                Some(record) => items.push(record),
                None => tracing::error!(spot.id, seq = at.seq.0, "a list names a record that does not exist"),
            }
        }
        Ok(Ranked { items, total, next })
    }

    /// Checks the `after` of a call whose page is not read, as that of a preview.
    ///
    /// # Errors
    /// `cursor-invalid` for an `after` that is not one of this list and filter.
    pub fn check_after(&self, ctx: &Context, list: &str, filter: &str, after: &str) -> Result<(), Problem> {
        self.place_of(ctx, (list, filter), after).map(drop)
    }

    /// The place that `after` names in a list under a filter.
    fn place_of(&self, ctx: &Context, (list, filter): (&str, &str), text: &str) -> Result<Token, Problem> {
        let text = cursor::read_sealed(&ctx.secrets, self.source.service, text).map_err(|problem| problem.about("after"))?;
        let token: Option<Token> = text.strip_prefix(PLACE).and_then(|text| serde_json::from_str(text).ok());
        token.filter(|token| token.list == list && token.filter == filter).ok_or_else(|| {
            let detail = "`after` belongs to another query; use the same arguments with it, or leave it out to start again";
            Problem::new(ErrorCode::CursorInvalid, detail).about("after")
        })
    }
}

/// Where a walk begins and ends.
#[derive(Clone, Copy)]
struct Reach {
    /// Whether it begins at `after` and not at the start.
    is_far: bool,
    /// Whether it continues after the page to count what matches.
    is_counted: bool,
    /// Whether the records of the page are wanted as well, which are read while it continues.
    is_for_records: bool,
}

impl Default for Reach {
    /// From the start, with the total.
    fn default() -> Self {
        Self { is_far: false, is_counted: true, is_for_records: false }
    }
}

/// How many rows of a bucket are read at a time for one page: its records and one more.
fn rows_of_page(limit: usize) -> usize {
    limit.saturating_add(1).clamp(ROWS_PER_PAGE_MIN, ROWS_PER_READ)
}

/// The progress of a walk.
struct Walked<R> {
    /// The page so far. Records that the walk did not need are not read yet.
    items: Vec<(Spot, Option<R>)>,
    /// How many places matched.
    total: u64,
    /// How many places were walked.
    places: usize,
    /// The first and the last place that were walked.
    first: Option<Spot>,
    last: Option<Spot>,
    /// Where a walk ended that did not reach the end of the part: no place up to there is left. Behind `last` it has read rows of places that no record has.
    read_to: Option<Spot>,
    /// Whether a match after the page was found.
    has_more: bool,
    /// Whether the walk reached the end of the part.
    is_whole: bool,
    reach: Reach,
}

impl<R> Default for Walked<R> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            total: 0,
            places: 0,
            first: None,
            last: None,
            read_to: None,
            has_more: false,
            is_whole: false,
            reach: Reach::default(),
        }
    }
}

impl<R> Walked<R> {
    /// What a walk from the start, of which every place matched, found of the part.
    fn extent(&self) -> Extent {
        let (first, last, read_to) = (self.first.clone(), self.last.clone(), self.read_to.clone());
        Extent { first, last, read_to, places: self.places, is_whole: self.is_whole }
    }

    fn take(&mut self, spot: Spot, record: Option<R>, is_selected: bool, after: Option<&Spot>, limit: usize) {
        if is_selected {
            self.total += 1;
            if after.is_none_or(|after| spot > *after) {
                if self.items.len() < limit {
                    self.items.push((spot.clone(), record));
                } else {
                    self.has_more = true;
                }
            }
        }
        if self.first.is_none() {
            self.first = Some(spot.clone());
        }
        self.last = Some(spot);
    }

    /// Whether the walk may end: its bounds are reached, or a page after which nothing is counted is full.
    fn is_done(&self, rows_read: usize) -> bool {
        let is_page_alone = self.reach.is_far || !self.reach.is_counted;
        self.places >= PLACES_MAX || rows_read >= ROWS_MAX || is_page_alone && self.has_more
    }

    /// Whether the walk says something about the places after `after`.
    fn is_past(&self, after: Option<&Spot>) -> bool {
        self.is_whole || after.is_none_or(|after| self.read_to.as_ref().is_some_and(|read_to| read_to > after))
    }

    /// The place after which the next page starts; `None` at the end.
    fn next(&self) -> Option<Spot> {
        if self.has_more {
            return self.items.last().map(|(spot, _)| spot.clone());
        }
        if self.is_whole { None } else { self.read_to.clone() }
    }
}

/// The page that a walk from the start would give, if every place matches. Only the places of the page are read.
async fn page_within<R>(
    at: &Position,
    table: &'static Table,
    walk: &Walk<'_>,
    after: Option<&Spot>,
    extent: &Extent,
) -> Result<Walked<R>, Problem> {
    let mut page = Walked {
        total: extent.places as u64,
        places: extent.places,
        first: extent.first.clone(),
        last: extent.last.clone(),
        read_to: extent.read_to.clone(),
        is_whole: extent.is_whole,
        ..Walked::default()
    };
    let (Some(first), Some(last)) = (&extent.first, &extent.last) else { return Ok(page) };
    if after.is_some_and(|after| after >= last) {
        return Ok(page);
    }
    let part = Segment { buckets: first.bucket..=last.bucket, ranks: walk.part.ranks.clone() };
    let reading = Reading::new(at, table, walk.list, &part, after.cloned());
    let mut reading = reading.with_rows_at_once(rows_of_page(walk.limit), ROWS_PER_READ);
    while let Some(spots) = reading.next_spots().await? {
        for spot in spots {
            if spot > *last {
                return Ok(page);
            }
            if page.items.len() >= walk.limit {
                page.has_more = true;
                return Ok(page);
            }
            page.items.push((spot, None));
        }
        // What follows are rows of places that no record has any more.
        if reading.passed.as_ref().is_some_and(|passed| passed >= last) {
            return Ok(page);
        }
    }
    Ok(page)
}
