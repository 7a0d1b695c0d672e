//! The keyword index of the recalls: a cache that this process builds from the feed, and that finds candidates by their ids.
//!
//! Promises: candidates are checked against the rows at the position of the answer, so that `asOf` works and nothing outdated is shown. An answer is
//! exact for the whole history up to its position, or is refused with 503 while the index is being built. The start never waits for the index.
//! Damaged files are deleted and built again.
//!
//! There is one document for each version of each record, identified by the record's id and the seq of the change. Both are the same in every
//! generation of the view, because all generations are made of the same changes. After a swap the index remains, if the new generation has the same
//! change where the index ends.

mod follow;
mod index;
mod newest;
pub mod words;

use operation::context::{Context, Part};
use reads::registration::TaskContext;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use schemas::views::recalls::{FEED, Row, VIEW};
use tokio::sync::Semaphore;
use view_store::ViewStore;

use self::index::{Index, IndexSnapshot};
use self::newest::{Hit, NewestHits, Span};
use self::words::{Keyword, days};
use super::rows::{Filter, ListPage, ListPlace, rows_at};
use feed::follower::{Follower, building};
use feed::position::Position;
use operation::problem::Problem;

/// How many searches run at the same time; further ones wait.
const SEARCHES_MAX: usize = 4;
/// How many hits are proposed for each recall that is wanted. Some are earlier versions of a recall, which are not shown; if too many are, the search continues
/// with the days before them.
const HITS_PER_RECALL: usize = 2;
/// By how much each further round of a search proposes more.
const HITS_GROWTH: usize = 4;
/// The segment number of hits in uncommitted documents.
const PENDING: u32 = u32::MAX;

/// The keyword index of the recalls.
pub struct Search {
    follower: Follower<Index>,
    searches: Semaphore,
}

impl Default for Search {
    /// An empty index. Nothing is read or written before [`Search::follow`].
    fn default() -> Self {
        Self { follower: Follower::default(), searches: Semaphore::new(SEARCHES_MAX) }
    }
}

impl Part for Search {}

/// Keeps the index up to date with the feed until the server stops.
pub(crate) async fn keep_index(given: Arc<TaskContext>) {
    let ctx = &given.context;
    tokio::select! {
        () = Search::of(ctx).follow(Arc::clone(&ctx.store), ctx.settings.cache_dir.clone()) => {}
        () = ctx.stopped() => {}
    }
}

impl Search {
    /// Keeps the index up to date with the recalls view until the future is dropped. Failures are logged and retried.
    pub async fn follow(self: Arc<Self>, store: Arc<dyn ViewStore>, dir: Option<PathBuf>) {
        self.follower.follow(store.as_ref(), &VIEW, &FEED, dir).await;
    }

    /// Waits until a change is committed, so that a restart does not lose it.
    pub async fn wait_committed(&self, seq: Seq) {
        self.follower.wait_saved(seq).await;
    }

    /// A page of the recalls at a position that contain all words of a keyword, or have its number, and match the filter: those after a place, if one is given.
    ///
    /// # Errors
    /// `unavailable` while the index does not reach that far.
    pub async fn find(
        &self,
        ctx: &Context,
        at: &Position,
        keyword: Keyword,
        filter: &Filter,
        after: Option<&ListPlace>,
        limit: usize,
    ) -> Result<ListPage, Problem> {
        let (view, seq) = (&*at.view, at.seq);
        let shown = self.reaching(ctx, seq).await?;
        let Ok(_turn) = self.searches.acquire().await else { return Err(building::<Index>()) };
        let by_record = filter.by_record_date();
        let mut rows: HashMap<String, Option<Row>> = HashMap::new();
        let (mut out, wanted) = (Vec::new(), limit.saturating_add(1));
        let (day_first, day_last) = days(&by_record);
        // Later days come before the place.
        let mut last = Some(after.map_or(day_last, |after| day_last.min(after.day())));
        let mut hits_min = wanted.saturating_mul(HITS_PER_RECALL);
        while let Some(day_last) = last.filter(|_| out.len() < wanted) {
            let span = Span { days: (day_first, day_last), seq_last: seq, hits_min };
            let (proposer, keyword, proposed_by) = (shown.clone(), keyword.clone(), by_record.clone());
            let proposing = tokio::task::spawn_blocking(move || proposer.propose(&keyword, &proposed_by, span));
            let (mut hits, older) = proposing.await.map_err(|error| broken(&error))?.map_err(|error| broken(&error))?;
            while out.len() < wanted && !hits.is_empty() {
                let batch = next_days(&mut hits, wanted - out.len());
                let ids = shown.ids(&batch).map_err(|error| broken(&error))?;
                let mut proposed: Vec<(i64, String, Seq)> = batch.into_iter().zip(ids).map(|(hit, id)| (-hit.day, id, hit.seq)).collect();
                proposed.retain(|(newest_first, id, _)| after.is_none_or(|after| after.is_before(-newest_first, id)));
                proposed.sort_unstable();
                let mut unread: Vec<String> = proposed.iter().map(|(_, id, _)| id).filter(|id| !rows.contains_key(*id)).cloned().collect();
                unread.sort_unstable();
                unread.dedup();
                for (id, row) in unread.iter().zip(rows_at(view, &unread, seq).await?) {
                    rows.insert(id.clone(), row);
                }
                for (_, id, proposed_seq) in proposed {
                    let current = rows.get_mut(&id).and_then(|row| row.take_if(|row| row.seq == proposed_seq));
                    if let Some(row) = current
                        && by_record.matches(&row.record)
                    {
                        let place = ListPlace::of(&row.record);
                        out.extend(filter.shown(view, row.record, seq).await?.map(|recall| (place, recall)));
                    }
                }
            }
            last = older;
            hits_min = hits_min.saturating_mul(HITS_GROWTH);
        }
        Ok(ListPage::of(out, filter, limit))
    }

    /// Waits until queries see a change, for as long as a read waits for what lags, and returns what they read.
    async fn reaching(&self, ctx: &Context, seq: Seq) -> Result<IndexSnapshot, Problem> {
        let (index, upto) = self.follower.reach(ctx, seq).await?;
        if upto >= seq { Ok(index.snapshot.clone()) } else { Err(building::<Index>()) }
    }
}

impl IndexSnapshot {
    /// The newest hits in a span of documents that contain the words and match the filter, the newest day last, and the last day that was left out, if one
    /// was. Blocks the thread.
    fn propose(&self, keyword: &Keyword, filter: &Filter, span: Span) -> Result<(Vec<Hit>, Option<i64>), tantivy::TantivyError> {
        let mut newest: NewestHits = index::search(&self.searcher, &self.fields, keyword, filter, span)?;
        for (doc, document) in self.pending.iter().enumerate() {
            if newest.takes_day(document.day) && document.matches(filter) && document.has(keyword) {
                newest.push(Hit { day: document.day, seq: document.seq, segment: PENDING, doc: u32::try_from(doc).unwrap_or(u32::MAX) });
            }
        }
        Ok(newest.finish())
    }

    /// The ids of hits, in their order.
    fn ids(&self, hits: &[Hit]) -> Result<Vec<String>, tantivy::TantivyError> {
        let indexed: Vec<Hit> = hits.iter().copied().filter(|hit| hit.segment != PENDING).collect();
        let mut indexed = index::ids(&self.searcher, &indexed)?.into_iter();
        let id = |hit: &Hit| match hit.segment {
            PENDING => self.pending.get(hit.doc as usize).map(|document| document.id.clone()),
            _ => indexed.next(),
        };
        Ok(hits.iter().map(id).map(Option::unwrap_or_default).collect())
    }
}

/// Removes complete days from hits whose newest day is the last, the newest first, until there are at least `wanted`.
fn next_days(hits: &mut Vec<Hit>, wanted: usize) -> Vec<Hit> {
    let mut out: Vec<Hit> = Vec::new();
    while let Some(hit) = hits.pop_if(|next| out.len() < wanted || out.last().is_some_and(|last| last.day == next.day)) {
        out.push(hit);
    }
    out
}

/// The problem of an index that cannot be used. The cause is logged here.
fn broken(error: &(dyn std::error::Error + 'static)) -> Problem {
    tracing::error!(error, "the keyword index cannot be used");
    Problem::new(ErrorCode::Unavailable, "the keyword index cannot be searched now").retry_after(2)
}
