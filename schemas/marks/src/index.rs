//! The index of names: finds every mark that a rule makes similar to a name, without comparing the name with all marks.
//!
//! A mark is stored under keys (`keys.rs`); a name asks for keys, and each candidate is compared by the rule itself. So the index finds what a
//! comparison with all marks finds. It consists of segments, like a log-structured merge tree: new marks form a small segment, and small
//! segments are merged. [`Index::write`] and [`Index::read`] are its snapshot; a damaged or outdated one is refused and must be built again.

mod keys;
mod segment;
mod snapshot;

use crate::{Classes, Mark, Rule, similar};
use segment::Segment;

/// Marks of a segment up to which it is merged with the one before, whatever the size of that one.
const SMALL_SEGMENT_MARKS: usize = 4_096;

/// A mark of the register to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The serial number.
    pub serial: u32,
    /// The text of the mark.
    pub text: String,
    /// The register's own spellings of the mark.
    pub pseudo_marks: Vec<String>,
    /// Its classes.
    pub classes: Classes,
    /// Whether its status is known to be live; otherwise it is unknown.
    pub is_live: bool,
}

/// A mark that is similar to a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The serial number.
    pub serial: u32,
    /// The rule.
    pub rule: Rule,
    /// Its classes.
    pub classes: Classes,
    /// Whether its status is known to be live; otherwise the hit counts one tier lower.
    pub is_live: bool,
}

/// The index of names.
#[derive(Debug, Default)]
pub struct Index {
    segments: Vec<Segment>,
    seq: u64,
}

impl Index {
    /// Builds the index of marks as of a position. Of entries with the same serial number the last one counts. Entries without a word are
    /// left out.
    #[must_use]
    pub fn build(entries: Vec<Entry>, seq: u64) -> Self {
        Self { segments: vec![Segment::build(entries)], seq }
    }

    /// The position up to which changes are in the index.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The number of marks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.segments.iter().map(Segment::len).sum()
    }

    /// Whether the index has no mark.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes that the index uses.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.segments.iter().map(Segment::bytes).sum()
    }

    /// Applies changes up to a position: removes marks by their serial numbers, then adds or replaces marks.
    pub fn update(&mut self, added: Vec<Entry>, removed: &[u32], seq: u64) {
        for serial in removed.iter().copied().chain(added.iter().map(|entry| entry.serial)) {
            self.segments.iter_mut().for_each(|segment| segment.remove(serial));
        }
        self.seq = seq;
        if added.is_empty() {
            return;
        }
        let mut entries = added;
        // A segment is merged if it is small, or not larger than what it is merged with.
        while let Some(last) = self.segments.pop_if(|last| last.rows_stored() <= SMALL_SEGMENT_MARKS.max(entries.len())) {
            let mut merged = last.entries();
            merged.append(&mut entries);
            entries = merged;
        }
        self.segments.push(Segment::build(entries));
    }

    /// Every mark that is similar to a name, by serial number.
    #[must_use]
    pub fn find(&self, name: &Mark) -> Vec<Hit> {
        let asked = keys::asked(name);
        let mut hits: Vec<Hit> = self.segments.iter().flat_map(|segment| segment.find(name, &asked)).collect();
        hits.sort_unstable_by_key(|hit| hit.serial);
        hits
    }

    /// As [`Index::find`], by comparing the name with all marks: for tests and measurements.
    #[must_use]
    pub fn find_by_scan(&self, name: &Mark) -> Vec<Hit> {
        let mut hits: Vec<Hit> = self.segments.iter().flat_map(|segment| segment.scan(name)).collect();
        hits.sort_unstable_by_key(|hit| hit.serial);
        hits
    }
}

/// The rule by which a name and a mark with its pseudo marks are alike. Each text is in the normal form.
fn compare<'a>(name: &Mark, mut texts: impl Iterator<Item = &'a str>) -> Option<Rule> {
    let mark = Mark::from_normal(texts.next()?);
    let rule = similar(name, &mark);
    if rule == Some(Rule::E1) {
        return rule;
    }
    let has_pseudo = texts.any(|text| Mark::from_normal(text).compact() == name.compact());
    if has_pseudo { Some(Rule::E2) } else { rule }
}

#[cfg(test)]
mod tests;
