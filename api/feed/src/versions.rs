//! The versions of one record: the one that was current at a position, and those before it.
//!
//! A version is the change that made it, as the feed shows it. Promise: a call reads a bounded number of rows and blocks.

use std::sync::Arc;

use jiff::civil::Date;
use operation::context::{Context, Part, store_problem};
use operation::problem::Problem;
use schemas::details::ChangeRecord;
use schemas::position::Seq;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use view_store::feed::{FeedReader, block_of};

use crate::filter::Element;
use crate::position::Position;
use crate::version_seqs::seqs_of;
use crate::{Feeds, Source};

/// A version of a record.
#[derive(Clone, Debug)]
pub struct Version<R: ChangeRecord> {
    /// The change that made the version.
    pub change: Element<R>,
    /// The fields of the record whose values differ from the version before, sorted; none for the first version.
    pub changed: Vec<String>,
    /// The record before the change; `None` for the first version.
    pub before: Option<R>,
}

/// Versions of one record, newest first.
#[derive(Clone, Debug)]
pub struct Versions<R: ChangeRecord> {
    /// The versions.
    pub versions: Vec<Version<R>>,
    /// The `seq` of the last of them, if there are earlier ones.
    pub next: Option<Seq>,
}

impl<R: ChangeRecord + Serialize> Versions<R> {
    /// The versions as they are read on a day.
    ///
    /// # Errors
    /// `internal` if a version cannot be written as JSON.
    pub fn on_day(self, day: Date) -> Result<Self, Problem> {
        if R::ON_DAY.is_none() {
            return Ok(self);
        }
        let read = |version: Version<R>| {
            let change = Element { record: version.change.record.on_day(day), ..version.change };
            let before = version.before.map(|before| before.on_day(day));
            let changed = before.as_ref().map_or_else(|| Ok(Vec::new()), |before| changed_fields(before, &change.record))?;
            Ok(Version { change, changed, before })
        };
        Ok(Self { versions: self.versions.into_iter().map(read).collect::<Result<_, Problem>>()?, next: self.next })
    }
}

/// The change that made the version of a record that is current at a position; `None` if there is no such record.
///
/// # Errors
/// When rows cannot be read.
pub async fn version_at<R: ChangeRecord + DeserializeOwned>(
    ctx: &Context,
    source: &Source,
    at: &Position,
    id: &str,
) -> Result<Option<Element<R>>, Problem> {
    let found = seqs_of(source, at, id, at.seq, 1).await?;
    let reader = Feeds::of(ctx).reader(source, Arc::clone(&at.view));
    Ok(changes_at(&reader, source, id, &found).await?.pop())
}

/// The versions of a record up to a position, newest first, at most `limit`: those made by a change above `after`, and, if `before` is given, below
/// it.
///
/// # Errors
/// When rows cannot be read.
pub async fn versions_of<R: ChangeRecord + Serialize + DeserializeOwned + Clone>(
    ctx: &Context,
    source: &Source,
    at: &Position,
    id: &str,
    after: Seq,
    before: Option<Seq>,
    limit: usize,
) -> Result<Versions<R>, Problem> {
    let upto = before.map_or(at.seq, |before| before.previous().min(at.seq));
    // One more than wanted: the version before the last one says what the last one changed.
    let seqs = seqs_of(source, at, id, upto, limit + 1).await?;
    let reader = Feeds::of(ctx).reader(source, Arc::clone(&at.view));
    let changes = changes_at::<R>(&reader, source, id, &seqs).await?;
    let mut changes = changes.into_iter().peekable();
    let mut versions = Vec::new();
    while versions.len() < limit
        && let Some(mut change) = changes.next_if(|change| change.seq > after)
    {
        // A version that the caller does not see is not compared with.
        let before = changes.peek().filter(|earlier| earlier.seq > after).map(|earlier| earlier.record.clone());
        if before.is_none() && after > Seq(0) {
            change.hide_compared();
        }
        let changed = before.as_ref().map_or_else(|| Ok(Vec::new()), |before| changed_fields(before, &change.record))?;
        versions.push(Version { change, changed, before });
    }
    let has_more = changes.peek().is_some_and(|earlier| earlier.seq > after);
    let next = versions.last().filter(|_| has_more).map(|last| last.change.seq);
    Ok(Versions { versions, next })
}

/// The changes with these numbers, in their order.
async fn changes_at<R: ChangeRecord + DeserializeOwned>(
    reader: &FeedReader,
    source: &Source,
    id: &str,
    seqs: &[Seq],
) -> Result<Vec<Element<R>>, Problem> {
    let mut numbers: Vec<u64> = seqs.iter().map(|seq| block_of(*seq)).collect();
    numbers.dedup();
    let blocks = reader.blocks(&numbers).await.map_err(store_problem)?;
    let mut blocks = numbers.into_iter().zip(blocks).peekable();
    let mut out = Vec::with_capacity(seqs.len());
    for seq in seqs {
        while blocks.next_if(|(number, _)| *number != block_of(*seq)).is_some() {}
        let Some((_, block)) = blocks.peek() else { break };
        match block.element(*seq) {
            Some(element) => out.push(super::filter::read(&element)?),
            None => tracing::error!(service = source.service, id, seq = seq.0, "a version of a record is not in the feed"),
        }
    }
    Ok(out)
}

/// The names of the fields in which two versions of a record differ, sorted.
///
/// # Errors
/// `internal` if a version cannot be written as JSON.
pub fn changed_fields<R: Serialize>(before: &R, after: &R) -> Result<Vec<String>, Problem> {
    let [before, after] = [super::query::to_value(before)?, super::query::to_value(after)?];
    let (Value::Object(before), Value::Object(after)) = (before, after) else { return Ok(Vec::new()) };
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    let differs = after.iter().filter(|(name, value)| before.get(*name) != Some(value)).map(|(name, _)| name);
    let mut names: Vec<String> = gone.chain(differs).cloned().collect();
    names.sort_unstable();
    Ok(names)
}
