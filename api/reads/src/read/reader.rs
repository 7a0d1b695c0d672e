//! What a read works with: a service's changes and records at one position, and the notes of the answer.

use std::marker::PhantomData;
use std::sync::Arc;

use feed::Feeds;
use feed::filter::{Criteria, Element, Filter, Named};
use feed::history::history_from;
use feed::names::names_containing;
use feed::notes::{ResponseNotes, notes};
use feed::places::Segment;
use feed::position::{Position, day_text, position};
use feed::query::{DIGEST_MAX, Newest, newest, since_days};
use feed::redaction::Redaction;
use feed::through;
use feed::unknown::{Recorded, nearest_recorded, unknown_values};
use feed::unseen_versions::hide_outside;
use feed::watchable::WatchableFeed;
use jiff::ToSpan;
use jiff::civil::Date;
use operation::context::{Context, Part};
use operation::problem::Problem;
use operation::{Call, Stage, Surface};
use schemars::JsonSchema;
use schemas::position::Seq;
use schemas::views::accounts::Tier;
use schemas::views::records::Record;
use serde::Serialize;

use super::difference::{Difference, renamed};
use super::pages::{Next, empty_page_note};
use super::shared::{RecordOf, Shared};

/// Says that a preview has another time than the answer that is paid for.
const PREVIEW_OF_NOW: &str = "this preview is about now: the answer that is paid for is as of `asOf`, and can be empty";

/// Says that no key shows more than nothing.
const EMPTY_FOR_ALL: &str = "nothing matches, for a caller of any tier";

/// A service at one position, for one call.
pub struct Reader<S: WatchableFeed> {
    call: Call,
    /// The position of the answer.
    pub at: Position,
    limit: usize,
    days: i64,
    /// Whether the answer is about now; else it is as of an earlier time.
    is_current: bool,
    /// Where a search continues; `None` if it begins.
    pub(super) next: Option<Next>,
    /// Identifies the arguments to which a search belongs.
    pub(super) fingerprint: String,
    notes: ResponseNotes,
    /// Whether nothing matches for a caller of any tier, which a note says.
    is_empty_for_all: bool,
    surface: Surface,
    differences: &'static [Difference],
    service: PhantomData<fn() -> S>,
}

/// The days that an answer covers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Period {
    /// The first day, YYYY-MM-DD.
    #[schemars(with = "proofs::json_type::Day")]
    pub from: String,
    /// The last day.
    #[schemars(with = "proofs::json_type::Day")]
    pub to: String,
}

/// The window of a digest.
#[derive(Clone, Debug)]
pub struct Window {
    /// The days of the window.
    pub period: Period,
    /// The last change before the window.
    pub before: Seq,
    /// The first day of what counts in the window although it was published late, YYYY-MM-DD.
    pub earliest: String,
}

/// How complete the data is at the position of an answer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Completeness {
    /// The last day for which every upstream has been read completely; empty before the first complete sync run.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub through_date: String,
    /// The number of complete sync runs up to then.
    pub snapshot_count: u64,
}

impl<S: WatchableFeed> Reader<S> {
    pub(super) async fn new(call: Call, shared: Shared, limit: Option<usize>, fingerprint: &str) -> Result<Self, Problem> {
        let source = S::FEED.source;
        let mut at = position(&call.context, &source, shared.as_of.as_deref()).await?;
        // A preview of a service with hidden fields is about now, whatever is asked.
        let is_preview_of_hidden = call.stage == Stage::Preview && source.redaction.is_some();
        let ignores_as_of = is_preview_of_hidden && shared.as_of.is_some();
        if ignores_as_of {
            at = position(&call.context, &source, None).await?;
        }
        let mut notes = notes(&call, &source, &at).await?;
        notes.add(ignores_as_of.then(|| PREVIEW_OF_NOW.to_owned()));
        if let Some(redaction) = source.redaction_for(&call)
            && at.free_window().is_over(redaction.days)
        {
            let (days, tier) = (redaction.days, redaction.whole_from.as_str());
            notes.add(Some(format!("`asOf` is before the last {days} days: records of then are shown with a key of tier {tier} or above")));
        }
        let limit = shared.limit.or(limit).unwrap_or_default();
        let mut next = None;
        if let Some(after) = &shared.after {
            let (seq, place) = Next::decode(&call.context, source.service, fingerprint, after)?;
            // Recorded records are searched at the position of the first page.
            if matches!(place, Next::Recorded(_)) {
                at.seq = at.seq.min(seq);
            }
            next = Some(place);
        }
        let (is_current, fingerprint) = (shared.as_of.is_none() || is_preview_of_hidden, fingerprint.to_owned());
        let (surface, days) = (Surface::Both, shared.days);
        Ok(Self {
            call,
            at,
            limit,
            days,
            is_current,
            next,
            fingerprint,
            notes,
            is_empty_for_all: false,
            surface,
            differences: &[],
            service: PhantomData,
        })
    }

    /// The reader for an operation of this surface, whose arguments have these differences.
    pub(super) fn on(self, surface: Surface, differences: &'static [Difference]) -> Self {
        Self { surface, differences, ..self }
    }

    /// A reader for an operation that has no further shared arguments than `asOf`.
    ///
    /// # Errors
    /// `as-of-invalid`; when the position cannot be read.
    pub async fn as_of(call: Call, as_of: Option<String>) -> Result<Self, Problem> {
        Self::new(call, Shared { as_of, ..Shared::default() }, None, "").await
    }

    /// The call that is answered.
    #[must_use]
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// Whether the answer is that of a tool which differs from its route.
    #[must_use]
    pub fn is_tool(&self) -> bool {
        self.surface == Surface::Tool
    }

    /// The name of an argument as the caller knows it, given the one that the type of the arguments has for it.
    #[must_use]
    pub fn argument(&self, own: &'static str) -> &'static str {
        renamed(self.differences, own).unwrap_or(own)
    }

    /// The context of the call.
    #[must_use]
    pub fn context(&self) -> &Arc<Context> {
        &self.call.context
    }

    /// Changes up to this one are not shown to the caller.
    #[must_use]
    pub fn after(&self) -> Seq {
        self.notes.after
    }

    /// Whether the answer is about now; else it is as of an earlier time, and no upstream is asked.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.is_current
    }

    /// The day of the answer, in UTC.
    #[must_use]
    pub fn today(&self) -> Date {
        self.at.today()
    }

    /// How many items the caller gets: the argument `limit`, or fewer if the tier allows fewer. A note says so then.
    pub fn limit(&mut self) -> usize {
        self.rows(self.limit)
    }

    /// How many of so many items the caller gets. A note says so if the tier allows fewer.
    pub fn rows(&mut self, rows: usize) -> usize {
        self.notes.limit(rows)
    }

    /// Says that a page without items is not the last one, if another one follows.
    pub fn note_empty_page(&mut self, items: usize, next: Option<&str>) {
        self.note(empty_page_note(items, next).map(str::to_owned));
    }

    /// Adds a note to the answer.
    pub fn note(&mut self, note: impl Into<Option<String>>) {
        self.notes.add(note.into());
    }

    /// Says that nothing matches for a caller of any tier, for an answer whose counts are true for all of them: a note that blames the tier would advise to pay
    /// for nothing.
    pub fn note_empty_for_all(&mut self) {
        self.note(EMPTY_FOR_ALL.to_owned());
        self.is_empty_for_all = true;
    }

    /// Notes the values of a filter that nothing recorded has. `is_empty` says whether the answer shows nothing.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn note_unknown(&mut self, filter: &S::Filter, is_empty: bool) -> Result<(), Problem> {
        if self.is_empty_for_all && self.is_limited() {
            self.note(filter.contradiction());
            return Ok(());
        }
        let recorded = Recorded { ctx: self.context(), source: &S::FEED.source, tables: S::FEED.tables, at: &self.at };
        let notes = unknown_values(&self.call, &recorded, filter, is_empty).await?;
        notes.into_iter().for_each(|note| self.note(note));
        Ok(())
    }

    /// The recorded values that are nearest to one that is not, in lower case, for a read that finds records by more than its filter. None for a caller who
    /// sees a redacted form or a free part only. Those of later changes may be among them.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn nearest_recorded(&self, named: &Named, value: &str) -> Result<Vec<String>, Problem> {
        if self.is_limited() || S::FEED.source.sample_days_for(&self.call).is_some() {
            return Ok(Vec::new());
        }
        let recorded = Recorded { ctx: self.context(), source: &S::FEED.source, tables: S::FEED.tables, at: &self.at };
        nearest_recorded::<RecordOf<S>>(&recorded, named, value).await
    }

    /// The most rows that the caller's tier allows.
    pub(super) fn rows_max(&self) -> usize {
        self.notes.rows_max()
    }

    /// The note of a file that leaves out no rows, as far as notes were added.
    #[must_use]
    pub fn file_note(&self) -> Option<String> {
        self.notes.clone().note(false)
    }

    /// The note of the answer. `is_cut`: it leaves out rows.
    pub(super) fn into_note(self, is_cut: bool) -> Option<String> {
        self.notes.note(is_cut)
    }

    /// The window of the last `days`. What was published up to `late_days` before it counts as well.
    ///
    /// # Errors
    /// When the feed cannot be read.
    pub async fn window(&self, late_days: i64) -> Result<Window, Problem> {
        let (from, before) = since_days(self.context(), &S::FEED.source, &self.at, self.days - 1).await?;
        let (to, earliest) = (self.today(), self.today().saturating_sub((self.days - 1 + late_days).days()));
        Ok(Window { period: Period { from, to: to.to_string() }, before, earliest: earliest.to_string() })
    }

    /// The newest changes above `after` that the criteria select and the caller may see, at most `limit`.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn newest(&self, criteria: Criteria<'_, RecordOf<S>>, after: Seq, limit: usize) -> Result<Newest<RecordOf<S>>, Problem> {
        let mut found = newest(self.context(), &S::FEED, &self.at, criteria, after.max(self.notes.after), limit).await?;
        hide_outside(found.changes.iter_mut(), self.notes.after, Record::id);
        Ok(found)
    }

    /// The changes above `after` that the criteria select, newest first, for counts and sums. A note says so if some were not read.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn count(&mut self, criteria: Criteria<'_, RecordOf<S>>, after: Seq) -> Result<Vec<Element<RecordOf<S>>>, Problem> {
        let found = self.newest(criteria, after, DIGEST_MAX).await?;
        self.note(found.sums_note());
        Ok(found.changes)
    }

    /// The values of a searched dimension that contain a text, in lower case; `None` if there are more than `values_max`.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn names(&self, dimension: &'static str, part: &str, values_max: usize) -> Result<Option<Vec<String>>, Problem> {
        names_containing::<RecordOf<S>>(self.context(), &S::FEED.source, S::FEED.tables, &self.at, dimension, part, values_max).await
    }

    /// The records of the changes that are still the last ones of their record.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn unchanged(&self, changes: Vec<Element<RecordOf<S>>>) -> Result<Vec<RecordOf<S>>, Problem> {
        S::FEED.still_current(&self.at, changes).await
    }

    /// The records of the changes in their current state, each once, in the order of the changes.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn current(&self, changes: Vec<Element<RecordOf<S>>>) -> Result<Vec<RecordOf<S>>, Problem> {
        S::FEED.records_at(&self.at, changes).await
    }

    /// The day, YYYY-MM-DD, on which the first change was recorded; `None` if nothing is recorded.
    ///
    /// # Errors
    /// When the feed cannot be read.
    pub async fn history_from(&self) -> Result<Option<String>, Problem> {
        let from_ms = history_from(self.context(), &S::FEED.source, &self.at.view, self.at.last).await?;
        Ok(from_ms.map(day_text))
    }

    /// How complete the data is.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub async fn completeness(&self) -> Result<Completeness, Problem> {
        let standing = self.standing().await?;
        Ok(Completeness { through_date: standing.through_date, snapshot_count: standing.snapshot_count })
    }

    /// The day of the last refresh, YYYY-MM-DD: that on which the latest complete sync run ended. Empty before the first.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub async fn updated(&self) -> Result<String, Problem> {
        Ok(Some(self.standing().await?.finished_at_ms).filter(|ms| *ms != 0).map_or_else(String::new, day_text))
    }

    async fn standing(&self) -> Result<through::Completeness, Problem> {
        Feeds::of(self.context()).completeness(&S::FEED.source, self.at.view.as_ref(), self.at.seq, self.at.last).await
    }

    /// The caller's tier as answers name it: `free` without a key.
    #[must_use]
    pub fn tier(&self) -> &'static str {
        self.call.caller.tier.max(Tier::Free).as_str()
    }

    /// Whether the call only gets the free preview of a paid read.
    #[must_use]
    pub fn is_preview(&self) -> bool {
        self.call.stage == Stage::Preview
    }

    /// Whether the answer is sold for a payment that is not settled yet. It is recorded, so that nothing else may come of it.
    #[must_use]
    pub fn is_unsettled(&self) -> bool {
        matches!(self.call.stage, Stage::Order { .. })
    }

    /// Whether the caller sees a redacted form or a free part only.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        S::FEED.source.redaction_for(&self.call).is_some()
    }

    /// The redaction that applies to the caller, which a note states; `None` if the caller sees whole records.
    pub fn redaction(&mut self) -> Option<Redaction> {
        let redaction = *S::FEED.source.redaction_for(&self.call)?;
        self.note(redaction.note());
        Some(redaction)
    }

    /// How many records a part of a ranked list holds; `None` if they are more than `most`.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn count_places(&self, list: &str, segment: &Segment, most: usize) -> Result<Option<u64>, Problem> {
        S::FEED.count_places(&self.at, list, segment, most).await
    }
}
