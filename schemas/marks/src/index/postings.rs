//! Which rows are stored under which keys.
//!
//! Keys are hashes. The higher bits choose a bucket, the lowest byte is kept with each row of the bucket, so that most rows of other keys are left
//! out. A row is written as that byte and the distance from the row before, in seven bits a byte.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// The most buckets.
const BUCKETS_MAX: usize = 1 << 24;

/// Rows by key.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Postings {
    /// Where each bucket ends. The number of buckets is a power of two.
    pub(super) ends: Vec<u32>,
    /// The rows of all buckets.
    pub(super) bytes: Vec<u8>,
}

impl Postings {
    /// Stores `count` rows under their keys, in two passes over the rows on all cores: one counts, one stores.
    pub(super) fn build(count: usize, keys_of: impl Fn(usize) -> Vec<u64> + Sync) -> Self {
        let bucket_count = (count * 2).next_power_of_two().clamp(16, BUCKETS_MAX);
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let share = count.div_ceil(threads).max(1);
        let counts: Vec<AtomicU32> = (0..bucket_count).map(|_| AtomicU32::new(0)).collect();
        let in_parallel = |act: &(dyn Fn(u32, u64) + Sync)| {
            let keys_of = &keys_of;
            std::thread::scope(|scope| {
                for start in (0..count).step_by(share) {
                    scope.spawn(move || {
                        for row in start..(start + share).min(count) {
                            keys_of(row).into_iter().for_each(|key| act(row as u32, key));
                        }
                    });
                }
            });
        };
        in_parallel(&|_, key| {
            counts[bucket(key, bucket_count)].fetch_add(1, Ordering::Relaxed);
        });
        let mut total = 0;
        let mut places: Vec<u32> = Vec::with_capacity(bucket_count);
        for count in &counts {
            let len = count.swap(total, Ordering::Relaxed);
            total += len;
            places.push(total);
        }
        let rows: Vec<AtomicU32> = (0..total).map(|_| AtomicU32::new(0)).collect();
        let prints: Vec<AtomicU8> = (0..total).map(|_| AtomicU8::new(0)).collect();
        in_parallel(&|row, key| {
            let place = counts[bucket(key, bucket_count)].fetch_add(1, Ordering::Relaxed) as usize;
            rows[place].store(row, Ordering::Relaxed);
            prints[place].store(key as u8, Ordering::Relaxed);
        });
        let mut out = Self { ends: Vec::with_capacity(bucket_count), bytes: Vec::with_capacity(total as usize * 4) };
        let (mut start, mut in_bucket) = (0, Vec::new());
        for end in places {
            in_bucket.clear();
            let of_bucket = (start as usize..end as usize).map(|at| (rows[at].load(Ordering::Relaxed), prints[at].load(Ordering::Relaxed)));
            in_bucket.extend(of_bucket);
            in_bucket.sort_unstable();
            out.write(&in_bucket);
            start = end;
        }
        out.bytes.shrink_to_fit();
        out
    }

    fn write(&mut self, rows: &[(u32, u8)]) {
        let mut before = 0;
        for (row, print) in rows {
            self.bytes.push(*print);
            let mut rest = row - before;
            while rest >= 1 << 7 {
                self.bytes.push(rest as u8 | 1 << 7);
                rest >>= 7;
            }
            self.bytes.push(rest as u8);
            before = *row;
        }
        self.ends.push(self.bytes.len() as u32);
    }

    /// The bytes of the key's bucket.
    fn bucket(&self, key: u64) -> Range<usize> {
        if self.ends.is_empty() {
            return 0..0;
        }
        let at = bucket(key, self.ends.len());
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |end| *end as usize);
        start..self.ends.get(at).map_or(0, |end| *end as usize)
    }

    /// The size of the key's bucket.
    pub(super) fn cost(&self, key: u64) -> usize {
        self.bucket(key).len()
    }

    /// Adds the rows that are stored under a key, and a few others, to a list.
    pub(super) fn add(&self, key: u64, out: &mut Vec<u32>) {
        let mut bytes = self.bytes.get(self.bucket(key)).unwrap_or_default().iter();
        let mut row = 0_u32;
        while let Some(print) = bytes.next() {
            let (mut delta, mut shift) = (0_u32, 0);
            for byte in bytes.by_ref() {
                delta |= u32::from(byte & 0x7f).checked_shl(shift).unwrap_or_default();
                shift += 7;
                if byte >> 7 == 0 {
                    break;
                }
            }
            row = row.wrapping_add(delta);
            if *print == key as u8 {
                out.push(row);
            }
        }
    }

    pub(super) fn size(&self) -> usize {
        self.ends.capacity() * 4 + self.bytes.capacity()
    }
}

/// The bucket of a key. The number of buckets is a power of two.
fn bucket(key: u64, buckets: usize) -> usize {
    (key >> 8) as usize & (buckets - 1)
}
