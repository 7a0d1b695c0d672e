//! What a complete snapshot lacks: the two-run rule and the breaker.
//!
//! A record is withdrawn only when two complete runs in a row lack it, and never when a run lacks more than a set share of what
//! is known: then the answer is doubted, not the records.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use schemas::key;
use schemas::tables::Datum;
use schemas::topics::Topic;
use schemas::views::engine::{HEADS, HeadRow};
use view_store::View;
use view_store::store::Span;

use crate::Error;

/// A run that lacks more than this share of the known records, in percent, withdraws none.
pub const LOST_PERCENT_MAX: usize = 10;
/// So few records may always be missing.
pub const LOST_ALWAYS: usize = 3;
/// Heads read at once.
const SCAN_ROWS: usize = 2_000;

/// The keys a run has seen, as hashes of 16 bytes: small also for a million keys.
#[derive(Default)]
pub struct Seen(HashSet<(u64, u64)>);

impl Seen {
    /// Takes in a key; answers whether it is new.
    pub fn insert(&mut self, key: &str) -> bool {
        self.0.insert(Self::hash(key))
    }

    /// Whether a key has been seen.
    #[must_use]
    pub fn contains(&self, key: &str) -> bool {
        self.0.contains(&Self::hash(key))
    }

    fn hash(key: &str) -> (u64, u64) {
        let mut first = DefaultHasher::new();
        key.hash(&mut first);
        let mut second = DefaultHasher::new();
        (key, 1_u8).hash(&mut second);
        (first.finish(), second.finish())
    }
}

/// What a complete run lacks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Lacking {
    /// Keys that are known, not gone, and were not seen.
    pub missing: Vec<String>,
    /// How many keys are known and not gone.
    pub known: usize,
    /// So many are missing that the answer itself is doubted.
    pub doubted: bool,
}

/// Compares what a complete run has seen with the heads of its door.
///
/// # Errors
/// When the store fails.
pub async fn lacking(engine: &dyn View, topic: &Topic, door: &str, seen: &Seen) -> Result<Lacking, Error> {
    let mut out = Lacking::default();
    // What begins with `door/`: `0` is the character after `/`.
    let span = Span { from: Some(key![topic.name, format!("{door}/")]), to: Some(key![topic.name, format!("{door}0")]) };
    let mut scan = engine.scan(&HEADS, span);
    loop {
        let rows = scan.next(SCAN_ROWS).await?;
        if rows.is_empty() {
            break;
        }
        for (key, value) in rows {
            let [_, Datum::Text(name)] = key.as_slice() else { continue };
            if HeadRow::from_bytes(&value).is_some_and(|row| !row.gone) {
                out.known += 1;
                if !seen.contains(name) {
                    out.missing.push(name.clone());
                }
            }
        }
    }
    let most = LOST_ALWAYS.max(out.known * LOST_PERCENT_MAX / 100);
    out.doubted = out.missing.len() > most || (out.known > 0 && out.missing.len() == out.known);
    Ok(out)
}
