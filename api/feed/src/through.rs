//! How complete a service's data is at any position: up to which day all its upstreams have been read, and after how many sync runs.
//!
//! The `through` rows of a view are read once per generation and then updated, so that requests do not read them.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use operation::context::{seq_column, store_problem};
use operation::problem::Problem;
use schemas::change::Through;
use schemas::clock::DAY_MS;
use schemas::key;
use schemas::position::Seq;
use schemas::views::recalls::day_of;
use tokio::sync::Mutex as AsyncMutex;
use upstreams::{Stream, Upstream};
use view_store::{Range, View};

use super::position::day_text;
use super::{Feeds, Source};

const PAGE_ROWS: usize = 500;

/// How complete the data is at a position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completeness {
    /// The last day up to which every upstream has been read, `YYYY-MM-DD`; empty before the first completed run.
    pub through_date: String,
    /// How many sync runs of all upstreams were completed and decided.
    pub snapshot_count: u64,
    /// When the latest of these runs finished: milliseconds since 1970; 0 before the first.
    pub finished_at_ms: i64,
}

/// The completeness after one completed sync run.
#[derive(Clone, Copy, Debug)]
struct CompletedRun {
    seq: Seq,
    /// The earliest of the upstreams' days, among upstreams that have one.
    through_day: i64,
    /// The latest finish time of a run.
    finished_at_ms: i64,
}

#[derive(Debug, Default)]
struct CompletedRuns {
    /// All rows with a seq up to this one are in `entries`.
    upto: Seq,
    entries: Vec<CompletedRun>,
    /// The latest day of each upstream, in the order of `upstreams`.
    days: Vec<Option<i64>>,
}

/// The completed sync runs of one service in one generation of its view.
#[derive(Debug)]
pub struct CompletenessCache {
    source: Source,
    /// Names under which runs are recorded: upstreams, and streams that every server reads.
    upstreams: Vec<&'static str>,
    completed: Mutex<CompletedRuns>,
    /// Held while rows are read, so that they are read only once.
    load_lock: AsyncMutex<()>,
    /// When the first change was recorded, once that is known. It never changes.
    pub(super) first_ms: OnceLock<i64>,
}

/// The streams of an upstream that every server reads: those of a file of the operator make data neither complete nor late.
fn read_by_all(upstream: &'static dyn Upstream) -> impl Iterator<Item = &'static Stream> {
    upstream.manifest().streams.iter().filter(|stream| !upstream.is_of_local_file(stream))
}

impl CompletenessCache {
    fn new(source: Source) -> Self {
        let mut upstreams = Vec::new();
        for upstream in upstreams::ALL.iter().copied() {
            let streams: Vec<_> = read_by_all(upstream).filter(|stream| source.reads(stream.topic)).map(|stream| stream.name).collect();
            if !streams.is_empty() {
                upstreams.push(upstream.manifest().name);
                upstreams.extend(streams);
            }
        }
        upstreams.sort_unstable();
        upstreams.dedup();
        let completed = CompletedRuns { days: vec![None; upstreams.len()], ..CompletedRuns::default() };
        Self { source, upstreams, completed: Mutex::new(completed), load_lock: AsyncMutex::default(), first_ms: OnceLock::new() }
    }

    /// How complete the data is at a position. `last` is the last change in the view.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub async fn at(&self, view: &dyn View, seq: Seq, last: Seq) -> Result<Completeness, Problem> {
        if let Some(completeness) = self.known(seq) {
            return Ok(completeness);
        }
        let _loading = self.load_lock.lock().await;
        if let Some(completeness) = self.known(seq) {
            return Ok(completeness);
        }
        self.read_new_rows(view, last.max(seq)).await?;
        Ok(self.known(seq).unwrap_or_default())
    }

    fn known(&self, seq: Seq) -> Option<Completeness> {
        let completed = self.completed.lock().unwrap_or_else(PoisonError::into_inner);
        if seq > completed.upto {
            return None;
        }
        let count = completed.entries.partition_point(|entry| entry.seq <= seq);
        let Some(entry) = count.checked_sub(1).and_then(|last| completed.entries.get(last)) else { return Some(Completeness::default()) };
        let through_date = if entry.through_day == i64::MAX { String::new() } else { day_text(entry.through_day * DAY_MS) };
        Some(Completeness { through_date, snapshot_count: count as u64, finished_at_ms: entry.finished_at_ms })
    }

    /// Reads the rows between the last known seq and `last`.
    async fn read_new_rows(&self, view: &dyn View, last: Seq) -> Result<(), Problem> {
        let known = self.completed.lock().unwrap_or_else(PoisonError::into_inner).upto;
        let mut found: Vec<(Seq, usize, Through)> = Vec::new();
        for (number, upstream) in self.upstreams.iter().enumerate() {
            let from = Some(key![*upstream, last.stored()]);
            let mut range = Range { prefix: key![*upstream], after: None, from, limit: PAGE_ROWS, reverse: false };
            loop {
                let rows = view.range(self.source.through, range.clone()).await.map_err(store_problem)?;
                let is_last = rows.len() < PAGE_ROWS;
                range.after = rows.last().map(|(key, _)| key.clone());
                let mut is_known = false;
                for (key, value) in rows {
                    let seq = seq_column(self.source.through, &key, 1)?;
                    is_known = seq <= known;
                    if is_known {
                        break;
                    }
                    match serde_json::from_slice(&value) {
                        Ok(through) => found.push((seq, number, through)),
                        Err(error) => tracing::error!(%error, table = self.source.through.name, seq = seq.0, "a row cannot be read"),
                    }
                }
                if is_last || is_known {
                    break;
                }
            }
        }
        found.sort_unstable_by_key(|(seq, number, _)| (*seq, *number));
        let mut completed = self.completed.lock().unwrap_or_else(PoisonError::into_inner);
        for (seq, number, through) in found {
            let day = if through.through_date.is_empty() { None } else { Some(day_of(&through.through_date)) };
            if let (Some(day), Some(latest)) = (day, completed.days.get_mut(number)) {
                *latest = Some(latest.map_or(day, |before| before.max(day)));
            }
            let through_day = completed.days.iter().flatten().copied().min().unwrap_or(i64::MAX);
            let finished_at_ms = completed.entries.last().map_or(0, |before| before.finished_at_ms).max(through.finished_at);
            completed.entries.push(CompletedRun { seq, through_day, finished_at_ms });
        }
        completed.upto = completed.upto.max(last);
        Ok(())
    }
}

impl Feeds {
    /// The cache of a service's completeness for one generation of its view.
    pub(crate) fn completeness_cache(&self, source: &Source, view: &dyn View) -> Arc<CompletenessCache> {
        self.cached_for(source, view, || CompletenessCache::new(*source))
    }

    /// How complete a service's data is at a position.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub async fn completeness(&self, source: &Source, view: &dyn View, seq: Seq, last: Seq) -> Result<Completeness, Problem> {
        self.completeness_cache(source, view).at(view, seq, last).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which streams do not count: that of the file PTAXSIM, which few operators have.
    #[test]
    fn files_of_the_operator_do_not_count() {
        let all = upstreams::ALL.iter().copied();
        let counted: Vec<&str> = all.clone().flat_map(read_by_all).map(|stream| stream.name).collect();
        let left_out: Vec<&str> =
            all.flat_map(|upstream| upstream.manifest().streams).map(|stream| stream.name).filter(|name| !counted.contains(name)).collect();
        assert_eq!(left_out, ["cook.ptaxsim"]);
    }
}
