//! The new records of a service: those that match a filter, by the time when they were recorded first.

use std::cmp::Reverse;
use std::collections::HashMap;

use feed::filter::{Filter, includes_backfill};
use feed::query::DIGEST_MAX;
use feed::watchable::WatchableFeed;
use operation::problem::Problem;
use schemas::details::ChangeRecord as _;
use schemas::position::Seq;
use schemas::views::records::Record;

use super::reader::Reader;
use super::shared::{FilterOf, RecordOf};

/// The fewest changes that a search of new records reads.
const CHANGES_MIN: usize = 100;

/// Records by the time when they were recorded first.
pub struct NewRecords<R> {
    /// The records in their current state, the last recorded first.
    pub records: Vec<R>,
    /// Whether all that match are there.
    pub is_complete: bool,
    /// How many of the searched records are left out because they were late news when they were recorded first.
    pub backfill: usize,
}

impl<S: WatchableFeed> Reader<S> {
    /// The records that match a filter as they are now, by the time when they were first recorded, the last first. Those that were late news then are left
    /// out, unless the filter includes them. The filter's criteria select changes by the record after the change; so the last change of every record that
    /// matches now is selected.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn new_records(&mut self, filter: &FilterOf<S>, after: Seq, limit: usize) -> Result<NewRecords<RecordOf<S>>, Problem> {
        let after = after.max(self.after());
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
            if !includes_backfill(filter) {
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

    /// Notes that changes are left out because they are late news, if any are.
    pub fn note_backfill(&mut self, left_out: usize) {
        self.note((left_out > 0).then(|| {
            format!("{left_out} left out because they were recorded long after their own day; `includeBackfill=true` includes them")
        }));
    }
}
