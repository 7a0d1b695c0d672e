//! What callers below the paid tier get of a service's ranked lists: which days, which records, and in which order.

use std::ops::RangeInclusive;

use feed::free::FreeWindow;
use feed::places::{Ranked, Segment, Selects, Total, Walk};
use feed::redaction::Redaction;
use feed::watchable::WatchableFeed;
use jiff::civil::Date;
use operation::problem::Problem;
use schemas::views::records::{Record, Redact};

use super::reader::Reader;
use super::shared::RecordOf;

/// The first records of a ranked list, for callers below the paid tier.
pub struct FreeRows<R> {
    /// The records, which are to be shown in their redacted form.
    pub records: Vec<R>,
    /// How many records the caller could see of the list; `None` if they are too many to count.
    pub total: Option<u64>,
}

/// Orders records by what their redacted form shows.
pub fn order_by_shown<R: Redact>(records: &mut Vec<R>) {
    let shown = |record: R| {
        let form = record.redacted();
        let text = serde_json::to_string(&form).unwrap_or_default();
        (form, text, record)
    };
    let mut all: Vec<_> = records.drain(..).map(shown).collect();
    all.sort_by(|(one, one_text, _), (other, other_text, _)| R::order(one, other).then_with(|| one_text.cmp(other_text)));
    records.extend(all.into_iter().map(|(.., record)| record));
}

/// Whether callers who see the redacted form of a record see it in a free window.
fn is_shown<R: Record>(redaction: &Redaction, record: &R, window: FreeWindow) -> bool {
    let is_free = |json: Vec<u8>| redaction.record(&json, window).is_ok_and(|shown| shown.is_some());
    serde_json::to_vec(record).is_ok_and(is_free)
}

impl<S: WatchableFeed> Reader<S> {
    /// The last `days` days, the day of the answer included. For callers below the paid tier they are counted from the clock and only cut by `asOf`, so
    /// that none may be left.
    #[must_use]
    pub fn last_days(&self, days: i64) -> RangeInclusive<Date> {
        if self.is_limited() { self.at.free_window().days(days) } else { self.at.last_days(days) }
    }

    /// The days of [`Self::last_days`] for reads of records whose day callers below the paid tier do not see: for them `asOf` does not cut the days.
    #[must_use]
    pub fn hidden_days(&self, days: i64) -> RangeInclusive<Date> {
        if self.is_limited() { self.at.free_window().hidden_days(days) } else { self.at.last_days(days) }
    }

    /// A page of a ranked list. Without `selects` every record of the list matches, and only the records of the page are read. With `asOf`, callers below
    /// the paid tier get only records that are free now and were then.
    ///
    /// # Errors
    /// `cursor-invalid` for an `after` that is not one of this list and filter; `unavailable`.
    pub async fn ranked(&self, walk: Walk<'_>, selects: Option<Selects<'_, RecordOf<S>>>) -> Result<Ranked<RecordOf<S>>, Problem> {
        let Some(redaction) = self.free_then() else {
            return S::FEED.ranked(self.context(), &self.at, walk, selects, Total::Counted).await;
        };
        let window = self.at.free_window();
        if window.is_over(redaction.days) {
            return Ok(Ranked { items: Vec::new(), total: Some(0), next: None });
        }
        let is_free = |record: &RecordOf<S>| selects.is_none_or(|selects| selects(record)) && is_shown(&redaction, record, window);
        S::FEED.ranked(self.context(), &self.at, walk, Some(&is_free), Total::Counted).await
    }

    /// The records with these ids as they were at the position of the answer, in the order of the ids. Callers below the paid tier get those that
    /// [`Self::ranked`] would give them of a list.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn records_by_id(&self, ids: &[String]) -> Result<Vec<RecordOf<S>>, Problem> {
        let (redaction, window) = (self.free_then(), self.at.free_window());
        if redaction.is_some_and(|redaction| window.is_over(redaction.days)) {
            return Ok(Vec::new());
        }
        let records = S::FEED.records_by_id::<RecordOf<S>>(&self.at, ids).await?;
        let is_free = |record: &RecordOf<S>| redaction.is_none_or(|redaction| is_shown(&redaction, record, window));
        Ok(records.into_iter().flatten().filter(is_free).collect())
    }

    /// The redaction that decides which records of an earlier time are shown; `None` if it is now, or if the caller sees whole records.
    fn free_then(&self) -> Option<Redaction> {
        S::FEED.source.redaction_for(self.call()).copied().filter(|_| !self.is_current())
    }

    /// A page as [`Self::ranked`] gives it, for answers that do not show its total: the walk ends when the page is full.
    ///
    /// # Errors
    /// As [`Self::ranked`].
    pub async fn ranked_page(&self, walk: Walk<'_>, selects: Option<Selects<'_, RecordOf<S>>>) -> Result<Ranked<RecordOf<S>>, Problem> {
        if self.is_limited() && !self.is_current() {
            return self.ranked(walk, selects).await;
        }
        S::FEED.ranked(self.context(), &self.at, walk, selects, Total::Omitted).await
    }

    /// Checks the `after` of an unpaid call, whose preview has the first rows whatever is asked: what the paid call would refuse has no preview.
    ///
    /// # Errors
    /// `cursor-invalid` for an `after` that is not one of this list and filter.
    pub fn check_after(&self, list: &str, filter: &str, after: Option<&str>) -> Result<(), Problem> {
        after.map_or(Ok(()), |after| S::FEED.check_after(self.context(), list, filter, after))
    }

    /// Says that an answer has the first page, to a caller below the paid tier who gets no other and asks for one with `after`.
    pub fn note_first_page(&mut self, after: Option<&str>) {
        let Some((redaction, _)) = S::FEED.source.redaction_for(self.call()).zip(after) else { return };
        let tier = redaction.whole_from.as_str();
        self.note(format!("this is the first page again: the page that `after` asks for needs a key of tier {tier} or above"));
    }

    /// Rows of a ranked list for callers below the paid tier: always of the first page, in an order that follows from the redacted form alone, so that
    /// neither order nor `next` tells a hidden field. Every `limit` gives the beginning of the same rows: the order of the list is not learned by asking
    /// for one more.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn free_rows(
        &self,
        (list, part): (&str, Segment),
        limit: usize,
        selects: Option<Selects<'_, RecordOf<S>>>,
    ) -> Result<FreeRows<RecordOf<S>>, Problem>
    where
        RecordOf<S>: Redact,
    {
        let rows_max = self.rows_max().max(limit);
        let Ranked { mut items, total, .. } = self.ranked(Walk { list, part, filter: "", limit: rows_max, after: None }, selects).await?;
        order_by_shown(&mut items);
        items.truncate(limit);
        Ok(FreeRows { records: items, total })
    }
}
