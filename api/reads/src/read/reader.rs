//! What a read works with: a service's changes and records at one position, live answers of upstreams, and the notes of the answer.

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;
use std::marker::PhantomData;

use feed::Feeds;
use feed::filter::{Criteria, Element, Filter};
use feed::history::history_from;
use feed::names::names_containing;
use feed::notes::{ResponseNotes, notes};
use feed::places::Segment;
use feed::position::{Position, day_text, position};
use feed::query::{DIGEST_MAX, Newest, newest, since_days};
use feed::redaction::Redaction;
use feed::suppression::without_hidden;
use feed::through;
use feed::unknown::{Recorded, unknown_values};
use feed::watchable::WatchableFeed;
use futures_util::future::join_all;
use jiff::ToSpan;
use jiff::civil::Date;
use operation::context::{Context, Part};
use operation::problem::Problem;
use operation::{Call, Stage};
use schemars::JsonSchema;
use schemas::details::ChangeRecord as _;
use schemas::error_code::ErrorCode;
use schemas::facts::FactData;
use schemas::position::Seq;
use schemas::views::accounts::Tier;
use schemas::views::records::Record;
use serde::Serialize;
use serde_json::Value;
use upstreams::live::Question;

use super::arguments::Shared;
use super::pages::{Collected, Extent, Next, Place, Taken, collect, empty_page_note};
use super::{FilterOf, RecordOf};

/// The fewest changes that a search of new records reads.
const CHANGES_MIN: usize = 100;
/// When a search may be repeated that an upstream did not answer, in seconds.
const RETRY_AFTER_S: u64 = 15;

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
    next: Option<Next>,
    /// Identifies the arguments to which a search belongs.
    fingerprint: String,
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

/// A search at an upstream.
pub struct Search<'a, S: WatchableFeed> {
    /// The name of the upstream in notes.
    pub upstream: &'static str,
    /// What it is asked.
    pub question: Question,
    /// Whether a record of the upstream is wanted.
    pub is_wanted: &'a (dyn Fn(&RecordOf<S>) -> bool + Send + Sync),
    /// How many records are wanted at most.
    pub limit: usize,
    /// The recorded records that match, for an answer without the upstream.
    pub recorded: Criteria<'a, RecordOf<S>>,
    /// The order of the recorded records.
    pub order: fn(&RecordOf<S>, &RecordOf<S>) -> Ordering,
}

/// The records that a search found.
pub struct Searched<R> {
    /// The records.
    pub records: Vec<R>,
    /// Which part of all they are.
    pub extent: Extent,
}

/// A service whose upstreams can be asked while a caller waits.
pub trait UpstreamRecords: WatchableFeed {
    /// The record of an upstream's fact as it would be recorded; `None` for a fact of another kind.
    fn record_of(fact: &FactData) -> Option<RecordOf<Self>>;

    /// A record as the upstream shows it now, completed by what is recorded: fields that this answer of the upstream does not have, and what is decided
    /// when a record is recorded.
    fn complete(now: RecordOf<Self>, recorded: &RecordOf<Self>) -> RecordOf<Self> {
        filled(now, recorded)
    }
}

/// Fills the empty fields of a record (empty texts, empty lists, unknown numbers) from another version of it.
#[must_use]
pub fn filled<R: Record>(now: R, recorded: &R) -> R {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    let (Ok(Value::Object(mut fields)), Ok(Value::Object(recorded))) = (serde_json::to_value(&now), serde_json::to_value(recorded)) else {
        return now;
    };
    for (name, value) in recorded {
        if fields.get(&name).is_none_or(is_empty) {
            fields.insert(name, value);
        }
    }
    serde_json::from_value(Value::Object(fields)).unwrap_or(now)
}

/// Records by the time when they were recorded first.
pub struct NewRecords<R> {
    /// The records in their current state, the last recorded first.
    pub records: Vec<R>,
    /// Whether all that match are there.
    pub is_complete: bool,
    /// How many of those that were searched are left out because they were no news when they were recorded first.
    pub backfill: usize,
}

impl<S: WatchableFeed> Reader<S> {
    pub(super) async fn new(call: Call, shared: Shared, limit: Option<usize>, fingerprint: &str) -> Result<Self, Problem> {
        let source = S::FEED.source;
        let mut at = position(&call.context, &source, shared.as_of.as_deref()).await?;
        // A preview of a service with hidden fields is about now, whatever is asked.
        let is_preview_of_hidden = call.stage == Stage::Preview && source.redaction.is_some();
        if is_preview_of_hidden && shared.as_of.is_some() {
            at = position(&call.context, &source, None).await?;
        }
        let mut notes = notes(&call, &source, &at).await?;
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
        Ok(Self { call, at, limit, days: shared.days, is_current, next, fingerprint, notes, service: PhantomData })
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

    /// The context of the call.
    #[must_use]
    pub fn context(&self) -> &Context {
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

    /// Notes the values of a filter that nothing recorded has. `is_empty` says whether the answer shows nothing.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn note_unknown(&mut self, filter: &S::Filter, is_empty: bool) -> Result<(), Problem> {
        let recorded = Recorded { ctx: self.context(), source: &S::FEED.source, tables: S::FEED.tables, at: &self.at };
        let notes = unknown_values(&self.call, &recorded, filter, is_empty).await?;
        notes.into_iter().for_each(|note| self.note(note));
        Ok(())
    }

    /// The most rows that the caller's tier allows.
    pub(super) fn rows_max(&self) -> usize {
        self.notes.rows_max()
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

    /// The records that match a filter as they are now, by the time when they were first recorded, the last first. Those that were late news then are left
    /// out, unless the filter includes them. The filter's criteria select changes by the record after the change; so the last change of every record that
    /// matches now is selected.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn new_records(&mut self, filter: &FilterOf<S>, after: Seq, limit: usize) -> Result<NewRecords<RecordOf<S>>, Problem> {
        let after = after.max(self.notes.after);
        let mut wanted = limit.saturating_mul(2).clamp(CHANGES_MIN, DIGEST_MAX);
        loop {
            let found = self.newest(filter.criteria(), after, wanted).await?;
            let (is_complete, complete_from) = (found.is_complete(), found.complete_from());
            let mut changes: HashMap<String, (Seq, bool)> = HashMap::new();
            for change in &found.changes {
                // The changes come newest first, and only the newest of a record can be its last one.
                changes.entry(change.record.id().to_owned()).or_insert((change.seq, change.event == "new"));
            }
            let mut new = Vec::new();
            for record in self.unchanged(found.changes).await? {
                let Some((seq, is_first)) = changes.get(record.id()).copied() else { continue };
                let first = if is_first { seq } else { S::FEED.first_recorded(&self.at, record.id(), seq).await? };
                if first > after {
                    new.push((first, record));
                }
            }
            let all = new.len();
            if !filter.includes_backfill() {
                new = self.without_backfill(new).await?;
            }
            let backfill = all - new.len();
            new.sort_by_key(|(first, _)| Reverse(*first));
            // Every record that was first recorded from `complete_from` on is there.
            let reached = new.iter().take_while(|(first, _)| *first >= complete_from).count();
            if is_complete || reached >= limit || wanted >= DIGEST_MAX {
                let is_complete = is_complete && new.len() <= limit;
                let records: Vec<_> = new.into_iter().take(limit).map(|(_, record)| record).collect();
                if !is_complete && reached < records.len().min(limit) {
                    self.note(format!(
                        "only the changes from seq {complete_from} on were searched; a narrower query searches further back"
                    ));
                }
                return Ok(NewRecords { records, is_complete, backfill });
            }
            wanted = wanted.saturating_mul(4).min(DIGEST_MAX);
        }
    }

    /// Leaves out the records that were late news when they were recorded first, each with the seq of its first change.
    async fn without_backfill(&self, records: Vec<(Seq, RecordOf<S>)>) -> Result<Vec<(Seq, RecordOf<S>)>, Problem> {
        let today = self.today();
        // A record that would be news today was news when it was recorded.
        let doubtful = |record: &RecordOf<S>| record.news().is_some_and(|news| news.is_late(today));
        let seqs = records.iter().filter(|(_, record)| doubtful(record)).map(|(first, _)| *first);
        let late = S::FEED.backfilled::<RecordOf<S>>(self.context(), &self.at, seqs.collect()).await?;
        Ok(records.into_iter().filter(|(first, _)| !late.contains(first)).collect())
    }

    /// Notes that changes are left out because they are no news, if any are.
    pub fn note_backfill(&mut self, left_out: usize) {
        self.note((left_out > 0).then(|| {
            format!("{left_out} left out because they were recorded long after their own day; `includeBackfill=true` includes them")
        }));
    }

    /// Asks an upstream from the first page on; `limit` records are wanted. `None` if it does not answer, which a note says, or if the answer is as of an
    /// earlier time.
    pub async fn ask(&mut self, upstream: &str, question: &Question, limit: usize) -> Option<Collected<RecordOf<S>>>
    where
        S: UpstreamRecords,
    {
        if !self.is_current {
            return None;
        }
        let read = |fact: &FactData| self.record_of(fact);
        match collect(self.context(), question, self.at.now, Place::default(), limit, read).await {
            Ok(mut collected) => {
                self.note(collected.failure.take().map(|reason| format!("{upstream}: {reason}")));
                Some(collected)
            }
            Err(reason) => {
                self.note(format!("{upstream}: {reason}"));
                None
            }
        }
    }

    /// The record of a fact that an upstream returned, as readers see it.
    fn record_of(&self, fact: &FactData) -> Option<RecordOf<S>>
    where
        S: UpstreamRecords,
    {
        without_hidden(&*self.at.view, S::record_of(fact)?)
    }

    /// Asks questions of several upstreams, each from the place where the search continues. `None` if an upstream is not asked, or does not answer the
    /// beginning of the search; notes say why.
    ///
    /// # Errors
    /// `unavailable` if an upstream does not answer a search that continues there.
    pub async fn ask_each(
        &mut self,
        questions: &[(&'static str, Question)],
        limit: usize,
        is_wanted: impl Fn(&RecordOf<S>) -> bool + Send + Sync,
    ) -> Result<Option<Vec<Collected<RecordOf<S>>>>, Problem>
    where
        S: UpstreamRecords,
    {
        let places = match &self.next {
            Some(Next::Recorded(_)) => return Ok(None),
            Some(Next::Upstream(places)) => places.clone(),
            None if !self.is_current => return Ok(None),
            None => vec![Some(Place::default()); questions.len()],
        };
        let (ctx, now, read) = (self.context(), self.at.now, |fact: &FactData| self.record_of(fact).filter(&is_wanted));
        let mut asked = Vec::with_capacity(questions.len());
        for ((_, question), place) in questions.iter().zip(places) {
            let read = &read;
            asked.push(async move {
                match place {
                    Some(place) => collect(ctx, question, now, place, limit, read).await,
                    None => Ok(Collected::nothing()),
                }
            });
        }
        let answers = join_all(asked).await;
        let reasons = questions.iter().zip(&answers).filter_map(|((name, _), answer)| match answer {
            Ok(collected) => collected.failure.as_ref().map(|reason| format!("{name}: {reason}")),
            Err(reason) => Some(format!("{name}: {reason}")),
        });
        let reasons: Vec<String> = reasons.collect();
        let answers: Result<Vec<_>, _> = answers.into_iter().collect();
        if answers.is_err() && self.next.is_some() {
            let detail = format!("{}; repeat the request, or start again without `after`", reasons.join("; "));
            return Err(Problem::new(ErrorCode::Unavailable, detail).retry_after(RETRY_AFTER_S));
        }
        for reason in reasons {
            self.note(reason);
        }
        Ok(answers.ok())
    }

    /// The extent of an answer of upstreams, given where each question continues.
    pub fn extent_of_upstreams<T>(&mut self, taken: &[Taken<T>], total: Option<u64>) -> Extent {
        if taken.iter().any(|taken| taken.is_cut) {
            self.note("the upstream has more records than it can be asked for; a narrower search finds them".to_owned());
        }
        let places: Vec<Option<Place>> = taken.iter().map(|taken| taken.next.clone()).collect();
        let next = places.iter().any(Option::is_some).then(|| self.encode(&Next::Upstream(places)));
        Extent { total, truncated: taken.iter().any(|taken| taken.is_truncated), next, live: true }
    }

    /// Completes records of upstreams by what is recorded of them.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn complete(&self, records: Vec<RecordOf<S>>) -> Result<Vec<RecordOf<S>>, Problem>
    where
        S: UpstreamRecords,
    {
        let ids: Vec<String> = records.iter().map(|record| record.id().to_owned()).collect();
        let recorded = S::FEED.records_by_id::<RecordOf<S>>(&self.at, &ids).await?;
        let complete = |(now, recorded): (RecordOf<S>, Option<RecordOf<S>>)| match recorded {
            Some(recorded) => S::complete(now, &recorded),
            None => now,
        };
        Ok(records.into_iter().zip(recorded).map(complete).collect())
    }

    /// Searches at an upstream. If it does not answer, or if the answer is as of an earlier time, the records are the recorded ones.
    ///
    /// # Errors
    /// When rows cannot be read; `unavailable` if the upstream does not answer a search that continues there.
    pub async fn search(&mut self, search: Search<'_, S>) -> Result<Searched<RecordOf<S>>, Problem>
    where
        S: UpstreamRecords,
    {
        let Search { upstream, question, is_wanted, limit, recorded, order } = search;
        let is_first = self.next.is_none();
        let Some(mut collected) = self.ask_each(&[(upstream, question)], limit, is_wanted).await? else {
            return self.search_recorded(recorded, limit, order).await;
        };
        let Some(collected) = collected.pop() else { return Ok(Searched { records: Vec::new(), extent: Extent::default() }) };
        let total = collected.total;
        let mut taken = collected.take(limit);
        let records = std::mem::take(&mut taken.items);
        // Without the upstream's number, the total is known only if this answer is all.
        let total = total.or_else(|| (is_first && !taken.is_truncated).then_some(records.len() as u64));
        let extent = self.extent_of_upstreams(&[taken], total);
        Ok(Searched { records: self.complete(records).await?, extent })
    }

    /// Searches in what is recorded here.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn search_recorded(
        &mut self,
        criteria: Criteria<'_, RecordOf<S>>,
        limit: usize,
        order: fn(&RecordOf<S>, &RecordOf<S>) -> Ordering,
    ) -> Result<Searched<RecordOf<S>>, Problem> {
        let skip = if let Some(Next::Recorded(skip)) = self.next { skip } else { 0 };
        let found = self.newest(criteria, Seq(0), DIGEST_MAX).await?;
        let is_complete = found.is_complete();
        self.note(found.sums_note());
        let mut records = self.unchanged(found.changes).await?;
        records.sort_by(order);
        let (all, end) = (records.len(), skip.saturating_add(limit));
        let next = (end < all).then(|| self.encode(&Next::Recorded(end)));
        let total = is_complete.then_some(all as u64);
        let extent = Extent { total, truncated: end < all || !is_complete, next, live: false };
        Ok(Searched { records: records.into_iter().skip(skip).take(limit).collect(), extent })
    }

    fn encode(&self, next: &Next) -> String {
        next.encode(self.context(), S::FEED.source.service, self.at.seq, &self.fingerprint)
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
