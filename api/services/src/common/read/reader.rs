//! What a read works with: a service's changes and records at one position, live answers of upstreams, and the notes of the answer.

use std::marker::PhantomData;
use std::sync::Arc;

use feed::Feeds;
use feed::filter::{Criteria, Element};
use feed::notes::{ResponseNotes, notes};
use feed::position::{Position, position};
use feed::query::{DIGEST_MAX, Newest, newest, since_days};
use feed::watchable::WatchableFeed;
use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use operation::Call;
use operation::context::{Context, Part};
use operation::problem::Problem;
use schemars::JsonSchema;
use schemas::facts::FactData;
use schemas::position::Seq;
use serde::Serialize;
use upstreams::live::Question;

use super::RecordOf;
use super::arguments::Shared;

/// A service at one position, for one call.
pub struct Reader<S: WatchableFeed> {
    call: Call,
    /// The position of the answer.
    pub at: Position,
    limit: usize,
    days: i64,
    /// Whether the answer is about now; else it is as of an earlier time.
    is_current: bool,
    notes: ResponseNotes,
    service: PhantomData<fn() -> S>,
}

/// The days that an answer covers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Period {
    /// The first day, YYYY-MM-DD.
    #[schemars(with = "schemas::json_type::Day")]
    pub from: String,
    /// The last day.
    #[schemars(with = "schemas::json_type::Day")]
    pub to: String,
}

/// The window of a digest.
#[derive(Clone, Debug)]
pub struct Window {
    /// Its days.
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
    #[schemars(with = "schemas::json_type::DayOrEmpty")]
    pub through_date: String,
    /// The number of complete sync runs up to then.
    pub snapshot_count: u64,
}

/// Items that an upstream gave just now, or else those that are recorded here.
pub struct Live<T> {
    /// The items.
    pub items: Vec<T>,
    /// Whether the upstream gave them.
    pub is_live: bool,
}

impl<S: WatchableFeed> Reader<S> {
    pub(super) async fn new(call: Call, shared: Shared, limit: Option<usize>) -> Result<Self, Problem> {
        let source = S::FEED.source;
        let at = position(&call.context, &source, shared.as_of.as_deref()).await?;
        let notes = notes(&call, &source, &at).await?;
        let limit = shared.limit.or(limit).unwrap_or_default();
        Ok(Self { call, at, limit, days: shared.days, is_current: shared.as_of.is_none(), notes, service: PhantomData })
    }

    /// The context of the call.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.call.context
    }

    /// Whether the answer is about now; else it is as of an earlier time, and no upstream is asked.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.is_current
    }

    /// The day of the answer, in UTC.
    #[must_use]
    pub fn today(&self) -> Date {
        self.at.now.to_zoned(TimeZone::UTC).date()
    }

    /// How many items the caller gets: the argument `limit`, or fewer if the tier allows fewer. A note says so then.
    pub fn limit(&mut self) -> usize {
        self.rows(self.limit)
    }

    /// How many of so many items the caller gets. A note says so if the tier allows fewer.
    pub fn rows(&mut self, rows: usize) -> usize {
        self.notes.limit(rows)
    }

    /// Adds a note to the answer.
    pub fn note(&mut self, note: impl Into<Option<String>>) {
        self.notes.add(note.into());
    }

    pub(super) fn into_note(self) -> Option<String> {
        self.notes.note()
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
        newest(self.context(), &S::FEED, &self.at, criteria, after.max(self.notes.after), limit).await
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

    /// The newest changes that the criteria select, for a list. A note says so if some were not read that might belong into it.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn list(&mut self, criteria: Criteria<'_, RecordOf<S>>, limit: usize) -> Result<Vec<Element<RecordOf<S>>>, Problem> {
        let found = self.newest(criteria, Seq(0), limit).await?;
        self.note(found.list_note());
        Ok(found.changes)
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

    /// Asks an upstream. `None` if it does not answer, which a note says, or if the answer is as of an earlier time.
    pub async fn ask(&mut self, upstream: &str, question: Question) -> Option<Arc<Vec<FactData>>> {
        if !self.is_current {
            return None;
        }
        self.notes.look_up(&self.call, upstream, question, &self.at).await
    }

    /// Searches at an upstream, whose facts `read` maps to items. If it does not answer, or if the answer is as of an earlier time, the items are
    /// the recorded ones that the criteria select.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn search<T: From<RecordOf<S>>>(
        &mut self,
        upstream: &str,
        question: Question,
        read: impl Fn(&FactData) -> Option<T>,
        criteria: Criteria<'_, RecordOf<S>>,
    ) -> Result<Live<T>, Problem> {
        if let Some(facts) = self.ask(upstream, question).await {
            return Ok(Live { items: facts.iter().filter_map(read).collect(), is_live: true });
        }
        let changes = self.list(criteria, DIGEST_MAX).await?;
        let items = self.unchanged(changes).await?.into_iter().map(T::from).collect();
        Ok(Live { items, is_live: false })
    }

    /// How complete the data is.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub async fn completeness(&self) -> Result<Completeness, Problem> {
        let (at, source) = (&self.at, S::FEED.source);
        let standing = Feeds::of(self.context()).completeness(&source, at.view.as_ref(), at.seq, at.last).await?;
        Ok(Completeness { through_date: standing.through_date, snapshot_count: standing.snapshot_count })
    }
}
