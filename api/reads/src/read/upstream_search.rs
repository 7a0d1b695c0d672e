//! Searches at upstreams while a caller waits, and in what is recorded where an upstream does not answer.

use std::cmp::Ordering;

use feed::filter::Criteria;
use feed::query::DIGEST_MAX;
use feed::suppression::without_hidden;
use feed::watchable::WatchableFeed;
use futures_util::future::join_all;
use jiff::civil::Date;
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use schemas::facts::FactData;
use schemas::position::Seq;
use schemas::views::records::Record;
use serde_json::Value;
use upstreams::live::Question;

use super::pages::{Collected, Extent, Next, Taken, UpstreamPosition, collect};
use super::reader::Reader;
use super::shared::RecordOf;

/// When a search may be repeated that an upstream did not answer, in seconds.
const RETRY_AFTER_S: u64 = 15;

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

impl<S: WatchableFeed> Reader<S> {
    /// Asks an upstream from the first page on; `limit` records are wanted. `None` if it does not answer, which a note says, or if the answer is as of an
    /// earlier time.
    pub async fn ask(&mut self, upstream: &str, question: &Question, limit: usize) -> Option<Collected<RecordOf<S>>>
    where
        S: UpstreamRecords,
    {
        if !self.is_current() {
            return None;
        }
        let read = |fact: &FactData| self.record_of(fact);
        match collect(self.context(), question, self.at.now, UpstreamPosition::default(), limit, read).await {
            Ok(mut collected) => {
                self.hide_total(&mut collected);
                self.note(collected.failure.take().map(|reason| format!("{upstream}: {reason}")));
                Some(collected)
            }
            Err(reason) => {
                self.note(format!("{upstream}: {reason}"));
                None
            }
        }
    }

    /// The record of a fact that an upstream returned, as the caller sees it. `None` if it is not within the days that the caller sees.
    pub fn record_of(&self, fact: &FactData) -> Option<RecordOf<S>>
    where
        S: UpstreamRecords,
    {
        let record = without_hidden(&*self.at.view, S::record_of(fact)?)?;
        let days = S::FEED.source.sample_days_for(self.call());
        days.is_none_or(|days| self.at.free_window().shows_live(days, &record)).then_some(record)
    }

    /// The first day of which the caller is shown records of upstreams, none of them before `first`; `last` if those days end before.
    #[must_use]
    pub fn live_from(&self, first: Date, last: Date) -> Date {
        self.free_from().map_or(first, |free| free.max(first)).min(last)
    }

    /// The first day that the caller sees of what upstreams show; `None` if all of it.
    #[must_use]
    pub fn free_from(&self) -> Option<Date> {
        S::FEED.source.sample_days_for(self.call()).map(|days| *self.at.free_window().days(days).start())
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
            None if !self.is_current() => return Ok(None),
            None => vec![Some(UpstreamPosition::default()); questions.len()],
        };
        let (ctx, now, read) = (self.context(), self.at.now, |fact: &FactData| self.record_of(fact).filter(&is_wanted));
        let mut requests = Vec::with_capacity(questions.len());
        for ((_, question), place) in questions.iter().zip(places) {
            let read = &read;
            requests.push(async move {
                match place {
                    Some(place) => collect(ctx, question, now, place, limit, read).await,
                    None => Ok(Collected::nothing()),
                }
            });
        }
        let answers = join_all(requests).await;
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
        let mut answers = answers.ok();
        answers.iter_mut().flatten().for_each(|collected| self.hide_total(collected));
        Ok(answers)
    }

    /// An upstream counts the records of all days.
    pub fn hide_total(&self, collected: &mut Collected<RecordOf<S>>) {
        collected.total = collected.total.filter(|_| self.free_from().is_none());
    }

    /// The extent of an answer of upstreams, given where each question continues.
    pub fn extent_of_upstreams<T>(&mut self, taken: &[Taken<T>], total: Option<u64>) -> Extent {
        if taken.iter().any(|taken| taken.is_cut) {
            self.note("the upstream has more records than it can be asked for; a narrower search finds them".to_owned());
        }
        let places: Vec<Option<UpstreamPosition>> = taken.iter().map(|taken| taken.next.clone()).collect();
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
}
