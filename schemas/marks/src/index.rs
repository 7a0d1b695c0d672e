//! The index of names: finds every mark that a rule makes similar to a name, without comparing the name with all marks.
//!
//! The index holds versions of marks: each was made by one change and stands until another. So one index answers as of every position that it
//! covers, and a mark that died is found as of the time when it lived. A version is stored under keys (`keys.rs`); a name asks for keys, and each
//! candidate is compared by the rule itself. So the index finds what a comparison with all marks finds.
//!
//! It consists of segments, like a log-structured merge tree: new versions form a small segment, and small segments are merged. An index never
//! changes for who reads it: [`Index::apply`] returns the next one, which shares what is the same. [`Index::write`] and [`Index::read`] are its
//! snapshot; a damaged or outdated one is refused and must be built again.

mod by_letters;
mod changes;
mod columns;
mod hits;
mod keys;
mod lists;
mod near_keys;
mod numbers;
mod postings;
mod primary_keys;
mod segment;
mod snapshot;
mod timeline;

use std::sync::Arc;

pub use self::changes::{Change, ComparedMark, Corpus};
pub use self::hits::{Hit, RuleWork, Work};
use crate::rules::RuleSet;
use crate::{Mark, Rule};
use by_letters::ByLetters;
use columns::Columns;
use segment::Segment;
use timeline::Timeline;

/// Versions of a segment up to which it is merged with the one before, whatever the size of that one.
const SMALL_SEGMENT_VERSIONS: usize = 256;
/// Versions of the largest segment. It bounds the memory that building one takes.
const SEGMENT_VERSIONS_MAX: usize = 1 << 21;

/// The index of names.
#[derive(Clone, Debug, Default)]
pub struct Index {
    segments: Vec<Arc<Segment>>,
    timeline: Timeline,
    seq: u32,
    origin: u64,
}

impl Index {
    /// The position up to which changes are in the index.
    #[must_use]
    pub fn seq(&self) -> u32 {
        self.seq
    }

    /// The number that the last [`Index::apply`] was given.
    #[must_use]
    pub fn origin(&self) -> u64 {
        self.origin
    }

    /// The number of versions of marks, those that ended included.
    #[must_use]
    pub fn versions(&self) -> usize {
        self.segments.iter().map(|segment| segment.len()).sum()
    }

    /// How many marks the register had at a position.
    #[must_use]
    pub fn corpus(&self, at: u32) -> Corpus {
        self.timeline.corpus(at)
    }

    /// The bytes that the index uses.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.segments.iter().map(|segment| segment.bytes()).sum::<usize>() + self.timeline.bytes()
    }

    /// Returns the index after changes, all of which are above its position, in their order. The next position is `seq`; positions in between
    /// have no change of a mark. `origin` is any number by which the caller recognises the log that the changes are from.
    ///
    /// Who reads this index at its position, or before it, is not disturbed.
    #[must_use]
    pub fn apply(&self, changes: Vec<Change>, seq: u32, origin: u64) -> Self {
        let next = self.extend(changes, seq, origin);
        next.store_keys();
        next
    }

    /// As [`Index::apply`], but the marks that changed are not stored under their keys before somebody asks, or calls [`Index::store_keys`]. Who reads many
    /// changes in parts before anybody asks computes the keys of a mark once, and not again for each part.
    #[must_use]
    pub fn extend(&self, changes: Vec<Change>, seq: u32, origin: u64) -> Self {
        let mut timeline = self.timeline.clone();
        timeline.extend(&changes, seq);
        let mut added = Columns::default();
        let mut changes = changes;
        // Stable, so that the changes of a mark stay in their order.
        changes.sort_by_key(|change| change.serial);
        for of_mark in changes.chunk_by(|one, next| one.serial == next.serial) {
            self.apply_to_mark(of_mark, &mut added);
        }
        let mut segments = self.segments.clone();
        if added.len() > 0 {
            added = added.ordered();
            // A segment is merged if it is small, or not larger than what it is merged with.
            while let Some(last) = segments.pop_if(|last| {
                let len = last.len();
                len <= SMALL_SEGMENT_VERSIONS.max(added.len()) && len + added.len() <= SEGMENT_VERSIONS_MAX
            }) {
                added = Columns::merged(last.columns(), &added);
            }
            segments.extend(added.split(SEGMENT_VERSIONS_MAX).into_iter().map(Segment::of).map(Arc::new));
        }
        Self { segments, timeline, seq: seq.max(self.seq), origin }
    }

    /// Stores all marks under their keys, on all cores, unless they are.
    pub fn store_keys(&self) {
        for segment in &self.segments {
            segment.postings();
        }
    }

    /// Ends the version of a mark that stands, and adds those that changes make of it. A change of nothing that is compared makes no version.
    fn apply_to_mark(&self, changes: &[Change], added: &mut Columns) {
        let Some(first) = changes.first() else { return };
        let mut standing = if first.is_new { None } else { self.segments.iter().rev().find_map(|segment| segment.standing(first.serial)) };
        for change in changes {
            let version = change.after.as_ref().and_then(columns::Version::of);
            let is_same = match (&standing, &version) {
                (None, None) => true,
                (Some(standing), Some(version)) => standing.is(version),
                _ => false,
            };
            if is_same {
                continue;
            }
            match standing.take() {
                Some(columns::Standing::Stored { columns, row }) => columns.end(row, change.seq),
                Some(columns::Standing::Added { .. }) => added.end_last(change.seq),
                None => {}
            }
            if let Some(version) = version {
                added.push(change.serial, change.seq, &version);
                standing = Some(columns::Standing::Added { version });
            }
        }
    }

    /// Every mark that is similar to a name at a position, by serial number. The position is not above that of the index.
    #[must_use]
    pub fn find(&self, name: &Mark, at: u32) -> Vec<Hit> {
        let (asked, mut by_letters) = (keys::asked(name), ByLetters::of(name));
        self.collect(|segment| segment.find(name, &asked, at, by_letters.as_mut()))
    }

    /// Counts what [`Index::find`] compares.
    #[must_use]
    pub fn work(&self, name: &Mark, at: u32) -> Work {
        let asked = keys::asked(name);
        let candidates: Vec<RuleSet> =
            self.segments.iter().flat_map(|segment| segment.candidates(name, &asked, at)).map(|found| found.rules).collect();
        let hits = self.find(name, at);
        let of_rule = |rule: Rule| RuleWork {
            rule,
            candidates: candidates.iter().filter(|rules| rules.has(rule)).count(),
            hits: hits.iter().filter(|hit| hit.rule == rule).count(),
        };
        Work { candidates: candidates.len(), by_rule: Rule::ALL.iter().copied().map(of_rule).collect() }
    }

    /// As [`Index::find`], by comparing the name with all marks: for tests and measurements.
    #[must_use]
    pub fn find_by_scan(&self, name: &Mark, at: u32) -> Vec<Hit> {
        self.collect(|segment| segment.scan(name, at))
    }

    fn collect(&self, mut find: impl FnMut(&Segment) -> Vec<Hit>) -> Vec<Hit> {
        let mut hits: Vec<Hit> = self.segments.iter().flat_map(|segment| find(segment)).collect();
        // A mark has one version at a position, so that no serial number occurs twice.
        hits.sort_unstable_by_key(|hit| hit.serial);
        hits
    }
}

/// The keys of a watched name: every mark that a rule makes similar to the name has one of them among its [`mark_keys`].
#[must_use]
pub fn watched_keys(name: &Mark) -> Vec<u64> {
    let keys::WantedKeys { all, any, listed, near } = keys::asked(name);
    let mut keys: Vec<u64> = all.into_iter().map(|key| key.hash).collect();
    // A mark that one of the groups finds has all keys of the group.
    keys.extend(any.iter().filter_map(|group| group.first()).map(|key| key.hash));
    keys.extend(listed);
    keys.extend(near);
    keys.extend(keys::primary_asked(name));
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The keys by which the watched names that may be similar to a mark are found; none for a mark without words.
#[must_use]
pub fn mark_keys(text: &str, pseudo_marks: &[String]) -> Vec<u64> {
    let Some(mark) = Mark::new(text) else { return Vec::new() };
    let mut keys = keys::stored(&mark);
    keys.extend(keys::listed(&mark));
    keys.extend(keys::primary_stored(&mark));
    keys.extend(pseudo_marks.iter().filter_map(|text| Mark::new(text)).map(|pseudo| keys::compact(&pseudo)));
    keys
}

#[cfg(test)]
mod tests;
