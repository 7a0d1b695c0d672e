//! A part of the index that does not change, except that marks are removed.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use super::keys::{self, Asked};
use super::{Entry, Hit, compare};
use crate::{Classes, Mark};

/// The bit of a row's classes that says that its status is live.
const LIVE: u64 = 1 << 63;
/// The bit of a row's classes that says that it was removed.
const REMOVED: u64 = 1 << 62;

/// A part of the index.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Segment {
    /// Serial numbers, ascending.
    pub(super) serials: Vec<u32>,
    /// Classes as bits, with `LIVE` and `REMOVED`.
    pub(super) classes: Vec<u64>,
    /// Where the texts of each row end.
    pub(super) ends: Vec<u32>,
    /// The texts in the normal form: of a row the mark and its pseudo marks, separated by line feeds.
    pub(super) texts: String,
    /// Where each bucket of keys ends.
    pub(super) buckets: Vec<u32>,
    /// The rows in the buckets.
    pub(super) rows: Vec<u32>,
    /// A byte of the key of each of them.
    pub(super) prints: Vec<u8>,
}

impl Segment {
    pub(super) fn build(mut entries: Vec<Entry>) -> Self {
        // Stable, so that of equal serial numbers the last one is the last.
        entries.sort_by_key(|entry| entry.serial);
        let mut out = Self::default();
        let mut entries = entries.into_iter().peekable();
        while let Some(entry) = entries.next() {
            let is_last = entries.peek().is_none_or(|next| next.serial != entry.serial);
            let Some(mark) = Mark::new(&entry.text).filter(|_| is_last) else { continue };
            out.texts.push_str(&mark.normal());
            for pseudo in entry.pseudo_marks.iter().filter_map(|text| Mark::new(text)) {
                out.texts.push('\n');
                out.texts.push_str(&pseudo.normal());
            }
            // Texts of 4 GB are more than the whole register.
            let Ok(end) = u32::try_from(out.texts.len()) else { break };
            out.serials.push(entry.serial);
            out.classes.push(entry.classes.bits() | if entry.is_live { LIVE } else { 0 });
            out.ends.push(end);
        }
        out.fill();
        out
    }

    /// Makes the buckets, in two passes over the rows on all cores: one counts, one stores.
    fn fill(&mut self) {
        let count = self.serials.len();
        let bucket_count = (count * 8).next_power_of_two().clamp(16, 1 << 26);
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let share = count.div_ceil(threads).max(1);
        let counts: Vec<AtomicU32> = (0..=bucket_count).map(|_| AtomicU32::new(0)).collect();
        let in_parallel = |act: &(dyn Fn(u32, u64) + Sync)| {
            std::thread::scope(|scope| {
                for start in (0..count).step_by(share) {
                    let this = &*self;
                    scope.spawn(move || {
                        for row in start..(start + share).min(count) {
                            this.keys(row).into_iter().for_each(|key| act(row as u32, key));
                        }
                    });
                }
            });
        };
        in_parallel(&|_, key| {
            counts[bucket(key, bucket_count)].fetch_add(1, Ordering::Relaxed);
        });
        let mut total = 0;
        let mut ends: Vec<u32> = Vec::with_capacity(bucket_count);
        for count in counts.iter().take(bucket_count) {
            let bucket_len = count.swap(total, Ordering::Relaxed);
            total += bucket_len;
            ends.push(total);
        }
        let rows: Vec<AtomicU32> = (0..total).map(|_| AtomicU32::new(0)).collect();
        let prints: Vec<AtomicU8> = (0..total).map(|_| AtomicU8::new(0)).collect();
        in_parallel(&|row, key| {
            let place = counts[bucket(key, bucket_count)].fetch_add(1, Ordering::Relaxed) as usize;
            rows[place].store(row, Ordering::Relaxed);
            prints[place].store(key as u8, Ordering::Relaxed);
        });
        self.buckets = ends;
        self.rows = rows.into_iter().map(AtomicU32::into_inner).collect();
        self.prints = prints.into_iter().map(AtomicU8::into_inner).collect();
    }

    /// The keys that a row is stored under.
    fn keys(&self, row: usize) -> Vec<u64> {
        let mut texts = self.texts_of(row);
        let mut keys = texts.next().map(|text| keys::stored(&Mark::from_normal(text))).unwrap_or_default();
        keys.extend(texts.map(|text| keys::compact(&Mark::from_normal(text))));
        keys
    }

    fn texts_of(&self, row: usize) -> impl Iterator<Item = &str> {
        let start = row.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |end| *end as usize);
        let end = self.ends.get(row).map_or(0, |end| *end as usize);
        self.texts.get(start..end).unwrap_or_default().split('\n')
    }

    /// How many marks are stored, removed ones included.
    pub(super) fn rows_stored(&self) -> usize {
        self.serials.len()
    }

    /// How many marks are in the segment. Looks at each.
    pub(super) fn len(&self) -> usize {
        self.classes.iter().filter(|bits| *bits & REMOVED == 0).count()
    }

    pub(super) fn bytes(&self) -> usize {
        let words = self.serials.capacity() + self.ends.capacity() + self.buckets.capacity() + self.rows.capacity();
        words * 4 + self.classes.capacity() * 8 + self.texts.capacity() + self.prints.capacity()
    }

    pub(super) fn remove(&mut self, serial: u32) {
        if let Some(bits) = self.serials.binary_search(&serial).ok().and_then(|row| self.classes.get_mut(row)) {
            *bits |= REMOVED;
        }
    }

    /// The marks of the segment as entries whose texts are in the normal form.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let rows = self.serials.iter().zip(&self.classes).enumerate().filter(|(_, (_, bits))| *bits & REMOVED == 0);
        rows.map(|(row, (serial, bits))| {
            let mut texts = self.texts_of(row).map(str::to_owned);
            let text = texts.next().unwrap_or_default();
            Entry { serial: *serial, text, pseudo_marks: texts.collect(), classes: Classes::from_bits(*bits), is_live: bits & LIVE != 0 }
        })
        .collect()
    }

    pub(super) fn find(&self, name: &Mark, asked: &Asked) -> Vec<Hit> {
        let mut rows: Vec<u32> = asked.all.iter().flat_map(|key| self.stored_under(*key)).collect();
        for group in &asked.any {
            let smallest = group.iter().min_by_key(|key| self.bucket(**key).len());
            rows.extend(smallest.into_iter().flat_map(|key| self.stored_under(*key)));
        }
        rows.sort_unstable();
        rows.dedup();
        rows.into_iter().filter_map(|row| self.hit(name, row as usize)).collect()
    }

    pub(super) fn scan(&self, name: &Mark) -> Vec<Hit> {
        (0..self.serials.len()).filter_map(|row| self.hit(name, row)).collect()
    }

    fn hit(&self, name: &Mark, row: usize) -> Option<Hit> {
        let (serial, bits) = (*self.serials.get(row)?, *self.classes.get(row)?);
        if bits & REMOVED != 0 {
            return None;
        }
        let rule = compare(name, self.texts_of(row))?;
        Some(Hit { serial, rule, classes: Classes::from_bits(bits), is_live: bits & LIVE != 0 })
    }

    fn bucket(&self, key: u64) -> std::ops::Range<usize> {
        if self.buckets.is_empty() {
            return 0..0;
        }
        let at = bucket(key, self.buckets.len());
        let start = at.checked_sub(1).and_then(|before| self.buckets.get(before)).map_or(0, |end| *end as usize);
        start..self.buckets.get(at).map_or(0, |end| *end as usize)
    }

    fn stored_under(&self, key: u64) -> impl Iterator<Item = u32> {
        let range = self.bucket(key);
        let rows = self.rows.get(range.clone()).unwrap_or_default();
        let prints = self.prints.get(range).unwrap_or_default();
        rows.iter().zip(prints).filter(move |(_, print)| **print == key as u8).map(|(row, _)| *row)
    }
}

/// The bucket of a key. The number of buckets is a power of two.
fn bucket(key: u64, buckets: usize) -> usize {
    (key >> 8) as usize & (buckets - 1)
}
