//! Pages of a search: at an upstream, or in what is recorded here. An answer says whether it is cut, and gives the value of `after` that continues it.
//!
//! Promise: a search that continues at an upstream does not switch to recorded records, whose order is another one. It fails then and can be repeated.

use std::time::Instant;

use crate::live;
use feed::cursor;
use jiff::Timestamp;
use operation::context::Context;
use operation::problem::Problem;
use schemars::JsonSchema;
use schemas::facts::FactData;
use schemas::position::Seq;
use serde::{Deserialize, Serialize};
use upstreams::live::Question;

/// The most pages of an upstream that one call requests for one question.
const PAGES_MAX: usize = 3;

/// Which part of everything that matches an answer holds.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Extent {
    /// The number of all that match, exact; null if it is unknown.
    pub total: Option<u64>,
    /// Whether there is more than this answer holds.
    pub truncated: bool,
    /// Send it as `after` to get what follows. Left out if nothing follows, or if it cannot be requested; a note says so then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Whether the upstream was asked for this answer; otherwise it holds what is recorded here.
    pub live: bool,
}

/// What a page without items says if another one follows; `None` for any other page.
#[must_use]
pub(super) fn empty_page_note(items: usize, next: Option<&str>) -> Option<&'static str> {
    (items == 0 && next.is_some()).then_some("nothing on this page matches, and more pages follow: send `next` as `after`")
}

/// Where a search continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Next {
    /// At upstreams: for each question the place; none for a question that is answered completely.
    Upstream(Vec<Option<UpstreamPosition>>),
    /// In the recorded records, after so many of them.
    Recorded(usize),
}

/// A place in the pages of an upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamPosition {
    /// The page; empty for the first.
    page: String,
    /// How many records of the page come before the place.
    skip: usize,
}

impl Next {
    /// Encodes the value of `after` for the search with this fingerprint.
    pub(super) fn encode(&self, ctx: &Context, service: &str, seq: Seq, fingerprint: &str) -> String {
        cursor::encode_place(&ctx.secrets, service, seq, fingerprint, self)
    }

    /// Decodes a value of `after`. Returns the position of the recorded records, too.
    ///
    /// # Errors
    /// `cursor-invalid`, naming `after`.
    pub(super) fn decode(ctx: &Context, service: &str, fingerprint: &str, text: &str) -> Result<(Seq, Self), Problem> {
        cursor::read_place(&ctx.secrets, service, fingerprint, text)
    }
}

/// What an upstream gave for one question.
pub struct Collected<T> {
    items: Vec<T>,
    /// The place after each item.
    after: Vec<UpstreamPosition>,
    start: UpstreamPosition,
    /// Where the question continues; `None` if its answer is complete, or cannot be continued.
    end: Option<UpstreamPosition>,
    /// Whether the upstream has more that cannot be requested.
    is_cut: bool,
    /// The number of all matching records, if the upstream gives it.
    pub total: Option<u64>,
    /// Why no further page came, if an upstream failed after the first.
    pub failure: Option<String>,
}

/// The first items of what an upstream gave.
pub struct Taken<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where the question continues.
    pub next: Option<UpstreamPosition>,
    /// Whether there is more.
    pub is_truncated: bool,
    /// Whether there is more that cannot be requested.
    pub is_cut: bool,
}

impl<T> Collected<T> {
    /// Nothing, from a question that is already answered completely.
    #[must_use]
    pub fn nothing() -> Self {
        let (items, after, start) = (Vec::new(), Vec::new(), UpstreamPosition::default());
        Self { items, after, start, end: None, is_cut: false, total: None, failure: None }
    }

    /// How many items came.
    #[must_use]
    pub fn count(&self) -> usize {
        self.items.len()
    }

    /// The first items, at most `limit`. What is left is part of what follows.
    #[must_use]
    pub fn take(mut self, limit: usize) -> Taken<T> {
        if limit >= self.items.len() {
            let is_truncated = self.end.is_some() || self.is_cut;
            return Taken { items: self.items, next: self.end, is_truncated, is_cut: self.is_cut };
        }
        self.items.truncate(limit);
        let next = limit.checked_sub(1).and_then(|last| self.after.get(last)).cloned().unwrap_or(self.start);
        Taken { items: self.items, next: Some(next), is_truncated: true, is_cut: false }
    }
}

/// Asks a question from a place on, and further pages while fewer than `limit` items came that `read` accepts.
///
/// # Errors
/// The reason why the upstream did not answer.
pub async fn collect<T>(
    ctx: &Context,
    question: &Question,
    now: Timestamp,
    start: UpstreamPosition,
    limit: usize,
    read: impl Fn(&FactData) -> Option<T> + Send + Sync,
) -> Result<Collected<T>, String> {
    let began = Instant::now();
    let mut out = Collected { start: start.clone(), ..Collected::nothing() };
    let mut place = start;
    for round in 0..PAGES_MAX {
        let found = match live::look_up(ctx, question.clone().at_page(&place.page), now).await {
            Ok(found) => found,
            Err(reason) if round == 0 => return Err(reason),
            Err(reason) => {
                out.failure = Some(reason);
                break;
            }
        };
        out.total = out.total.or(found.total);
        for fact in found.facts.iter().skip(place.skip) {
            if out.items.len() == limit {
                out.end = Some(place);
                return Ok(out);
            }
            place.skip += 1;
            if let Some(item) = read(fact) {
                out.items.push(item);
                out.after.push(place.clone());
            }
        }
        let Some(next) = &found.next else {
            out.is_cut = found.has_more;
            return Ok(out);
        };
        place = UpstreamPosition { page: next.clone(), skip: 0 };
        if out.items.len() == limit || began.elapsed() > ctx.settings.call_times.paging() {
            break;
        }
    }
    out.end = Some(place);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected(items: usize, end: Option<UpstreamPosition>) -> Collected<usize> {
        let place = |skip| UpstreamPosition { page: "2".to_owned(), skip };
        let after = (1..=items).map(place).collect();
        Collected { items: (0..items).collect(), after, start: place(0), end, ..Collected::nothing() }
    }

    /// Proves that an empty page says that others follow, and that neither the last page nor one with items does.
    #[test]
    fn empty_pages() {
        assert!(empty_page_note(0, Some("t")).is_some_and(|note| note.contains("next")));
        assert_eq!([empty_page_note(0, None), empty_page_note(1, Some("t"))], [None, None]);
    }

    /// Proves that what is not taken follows: the next place is after the last item taken, also if none is taken.
    #[test]
    fn what_is_left_follows() {
        let place = |skip| UpstreamPosition { page: "2".to_owned(), skip };
        let end = UpstreamPosition { page: "3".to_owned(), skip: 0 };
        for (limit, taken, next) in [(5, 3, Some(end.clone())), (3, 3, Some(end.clone())), (2, 2, Some(place(2))), (0, 0, Some(place(0)))] {
            let Taken { items, next: is, is_truncated, .. } = collected(3, Some(end.clone())).take(limit);
            assert_eq!((items.len(), is, is_truncated), (taken, next, true), "{limit}");
        }
        let whole = collected(3, None).take(3);
        assert_eq!((whole.next, whole.is_truncated), (None, false));
    }
}
