//! Finds the records that a complete snapshot no longer has, and decides whether to believe it.
//!
//! A record is withdrawn only when two consecutive complete runs lack it. If a run lacks more than a set share of the known records, the
//! snapshot is considered broken and no record is withdrawn.
//!
//! A record that cannot be mapped is at the upstream, but its key may not be known. When a run rejects a record that the last finished run
//! did not reject with the same bytes, every key that goes missing in that run may be that record: it is **withheld**, and is not withdrawn
//! while the stream has rejected records. Records that are rejected in every run withhold nothing more, so other keys are withdrawn as usual.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use schemas::key;
use schemas::tables::Datum;
use schemas::topics::Topic;
use schemas::views::engine::{HEADS, HeadRow};
use view_store::View;
use view_store::store::Span;

use crate::Error;

/// If a run lacks more than this percentage of the known records, none is withdrawn.
pub const MISSING_PERCENT_MAX: usize = 10;
/// If a complete reading of a part lacks more than this percentage of its known records, none is withdrawn. Parts are small, so that one
/// product of a store is a larger share than one record of a whole upstream.
pub const PART_MISSING_PERCENT_MAX: usize = 50;
/// This many records may always be missing, however few are known.
pub const MISSING_ALWAYS_ALLOWED: usize = 3;
/// How many heads one scan step reads.
const HEADS_PER_SCAN: usize = 2_000;

/// The keys that a run has seen, as 16-byte hashes to save memory: a million keys take some 24 MB.
#[derive(Default)]
pub struct Seen {
    /// The keys of all records that answers had.
    keys: HashSet<(u64, u64)>,
    /// The seen keys of which answers have only said that they are present.
    unobserved: HashSet<(u64, u64)>,
}

impl Seen {
    /// Adds the key of an observation. Returns whether it is the first one of the key.
    pub fn insert(&mut self, key: &str) -> bool {
        let hash = Self::hash(key);
        self.keys.insert(hash) || self.unobserved.remove(&hash)
    }

    /// Adds the key of a record of which an answer only says that it is present.
    pub fn insert_present(&mut self, key: &str) {
        let hash = Self::hash(key);
        if self.keys.insert(hash) {
            self.unobserved.insert(hash);
        }
    }

    /// Whether a key has been seen.
    #[must_use]
    pub fn contains(&self, key: &str) -> bool {
        self.keys.contains(&Self::hash(key))
    }

    fn hash(key: &str) -> (u64, u64) {
        let mut first = DefaultHasher::new();
        key.hash(&mut first);
        let mut second = DefaultHasher::new();
        (key, 1_u8).hash(&mut second);
        (first.finish(), second.finish())
    }
}

/// The keys that a complete run lacks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MissingKeys {
    /// Keys that are known and current, were not seen and are not withheld.
    pub missing: Vec<String>,
    /// Keys that were withheld before and are still missing.
    pub withheld: Vec<String>,
    /// How many keys are known and current.
    pub known: usize,
}

/// Compares the keys that a run has seen with the heads of a part of which it has shown every record: the keys that begin with `part`
/// and a slash. A stream is such a part by its name. `withheld` are the keys that the last run withheld.
///
/// # Errors
/// When the store fails.
pub async fn find_missing(
    engine: &dyn View,
    topic: &Topic,
    part: &str,
    seen: &Seen,
    withheld: &HashSet<&String>,
) -> Result<MissingKeys, Error> {
    let mut out = MissingKeys::default();
    // `0` is the character after `/`.
    let span = Span { from: Some(key![topic.name, format!("{part}/")]), to: Some(key![topic.name, format!("{part}0")]) };
    let mut scan = engine.scan(&HEADS, span);
    loop {
        let rows = scan.next(HEADS_PER_SCAN).await?;
        if rows.is_empty() {
            break;
        }
        for (key, value) in rows {
            let [_, Datum::Text(name)] = key.as_slice() else { continue };
            if HeadRow::from_bytes(&value).is_some_and(|row| !row.gone) {
                out.known += 1;
                if !seen.contains(name) {
                    let list = if withheld.contains(name) { &mut out.withheld } else { &mut out.missing };
                    list.push(name.clone());
                }
            }
        }
    }
    Ok(out)
}

impl MissingKeys {
    /// Withholds all missing keys, because they may be among records that were rejected for the first time.
    pub fn withhold_all(&mut self) {
        self.withheld.append(&mut self.missing);
    }

    /// Whether so many keys are missing that the snapshot itself is probably broken. Withheld keys do not count.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        self.exceeds(MISSING_PERCENT_MAX)
    }

    /// Whether so many keys of a part are missing that its reading itself is probably broken.
    #[must_use]
    pub fn is_doubtful_part(&self) -> bool {
        self.exceeds(PART_MISSING_PERCENT_MAX)
    }

    fn exceeds(&self, percent: usize) -> bool {
        let most = MISSING_ALWAYS_ALLOWED.max(self.known * percent / 100);
        self.missing.len() > most || (self.known > 0 && self.missing.len() == self.known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the first observation of a key counts, also if an answer said before that its record is present, and that no other does.
    #[test]
    fn first_observations() {
        let mut seen = Seen::default();
        seen.insert_present("a");
        assert!(seen.contains("a") && seen.insert("a") && !seen.insert("a"));
        assert!(seen.insert("b") && !seen.insert("b"));
        seen.insert_present("b");
        assert!(!seen.insert("b") && !seen.contains("c"));
    }
}
