//! Reading a service's changes: cursors, positions in time, completeness, and the operation `changes` that every service has.
//!
//! Promise: what an answer says is taken at one position (a seq), so that it reads the same whatever is written meanwhile.

pub mod changes;
pub mod cursor;
pub mod filter;
#[cfg(test)]
mod filtered;
pub mod names;
pub mod position;
pub(crate) mod private;
pub mod query;
pub mod reading;
pub mod select;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod things;
pub mod through;
pub mod told;

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use schemas::tables::{Table, ViewDef};
use schemas::topics::Topic;
use schemas::views::records::{Record, RecordTables};
use view_store::View;
use view_store::feed::{FeedCache, FeedReader};

use self::names::Names;
use self::through::Completeness;
use crate::context::{Context, store_problem};
use crate::problem::Problem;

/// Where a service's changes are.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The service's name.
    pub service: &'static str,
    /// Its view.
    pub view: &'static ViewDef,
    /// The feed table of it.
    pub feed: &'static Table,
    /// The table of completed runs: (upstream, seq descending).
    pub through: &'static Table,
    /// The topic of its changes.
    pub topic: &'static Topic,
    /// The topics of the facts it is decided from; those topics' upstreams are the ones whose completeness counts.
    pub facts: &'static [Topic],
    /// Without a key only so many days back are shown; `None`: all.
    pub sample_days: Option<i64>,
}

/// What is cached of all services' feeds.
#[derive(Default)]
pub struct Feeds {
    blocks: Arc<FeedCache>,
    completeness: Mutex<HashMap<&'static str, Arc<Completeness>>>,
    /// [`Names`] of each service's records.
    names: Mutex<HashMap<&'static str, Arc<dyn Any + Send + Sync>>>,
}

impl Feeds {
    /// A reader of a service's feed, through the cache.
    #[must_use]
    pub fn reader(&self, source: &Source, view: Arc<dyn View>) -> FeedReader {
        FeedReader::new(view, source.feed, Arc::clone(&self.blocks))
    }

    /// How complete a service's data is, followed through one generation of its view.
    fn completeness(&self, source: &Source, generation: u64) -> Arc<Completeness> {
        let mut all = self.completeness.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.entry(source.service).or_insert_with(|| Arc::new(Completeness::new(*source, generation)));
        if known.generation() != generation {
            *known = Arc::new(Completeness::new(*source, generation));
        }
        Arc::clone(known)
    }
}

impl Feeds {
    /// The names that a service's records have, followed through one generation of its view.
    pub(crate) fn names<R: Record>(&self, source: &Source, tables: &'static RecordTables, generation: u64) -> Arc<Names<R>> {
        let mut all = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.get(source.service).and_then(|known| Arc::clone(known).downcast::<Names<R>>().ok());
        if let Some(known) = known.filter(|known| known.generation() == generation) {
            return known;
        }
        let fresh = Arc::new(Names::new(tables, generation));
        all.insert(source.service, Arc::clone(&fresh) as Arc<dyn Any + Send + Sync>);
        fresh
    }
}

/// The first change's recorded time in milliseconds since 1970; `None` before the first.
///
/// # Errors
/// When the feed cannot be read.
pub async fn history_from(ctx: &Context, source: &Source, view: &Arc<dyn View>, last: u64) -> Result<Option<i64>, Problem> {
    if last == 0 {
        return Ok(None);
    }
    let known = ctx.feeds.completeness(source, view.generation());
    if let Some(first_ms) = known.first_ms.get() {
        return Ok(Some(*first_ms));
    }
    let block = ctx.feeds.reader(source, Arc::clone(view)).block(schemas::position::Seq(1)).await.map_err(store_problem)?;
    Ok(Some(*known.first_ms.get_or_init(|| block.recorded_at(0))))
}

/// What is said while a service's history is shorter than a week; `None` once it is not.
#[must_use]
pub fn shallow_note(history_from_ms: Option<i64>, now_ms: i64) -> Option<&'static str> {
    const WEEK_MS: i64 = 7 * 86_400_000;
    match history_from_ms {
        None => Some("nothing is recorded yet"),
        Some(from) if now_ms - from < WEEK_MS => Some(
            "history is shallow: changes are recorded since less than 7 days, and records older than that were taken over as they stood",
        ),
        Some(_) => None,
    }
}

/// A strong ETag from what an answer follows from.
pub(crate) fn etag(parts: &[&str]) -> String {
    let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
    let hash = schemas::hash::Hash32::of_parts(&parts);
    format!("\"{}\"", schemas::hash::hex(&hash.0[..12]))
}

/// Whether `If-None-Match` names the ETag.
pub(crate) fn has_it(if_none_match: Option<&str>, etag: &str) -> bool {
    if_none_match
        .is_some_and(|given| given.trim() == "*" || given.split(',').any(|one| one.trim().strip_prefix("W/").unwrap_or(one.trim()) == etag))
}
