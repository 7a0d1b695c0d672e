//! Which rows are stored under which keys.
//!
//! Keys are hashes. The higher bits choose a bucket, the lowest byte is kept with each row of the bucket, so that most rows of other keys are left
//! out. A row is written as that byte and the distance from the row before, in seven bits a byte.

use std::ops::Range;

use super::lists::Lists;
use super::numbers::{read_number, write_number};
use super::primary_keys::PrimaryKeys;

/// The most buckets.
const BUCKETS_MAX: usize = 1 << 24;
/// The most groups of buckets. A group has at most 65,536 buckets, so that two bytes name one of them.
const GROUPS_MAX: usize = BUCKETS_MAX >> 16;

/// Of how many keys of a group the rows are read. Few rows have two keys of four letters and not the letters in between.
const COMMON_KEYS: usize = 2;

/// Rows by key.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Postings {
    /// Where each bucket ends. The number of buckets is a power of two.
    pub(super) ends: Vec<u32>,
    /// The rows of all buckets.
    pub(super) bytes: Vec<u8>,
    /// The rows of keys that have exact lists.
    pub(super) lists: Lists,
    /// The rows by their first Double Metaphone key.
    pub(super) primaries: PrimaryKeys,
}

/// The keys that a row is stored under.
pub(super) struct RowKeys {
    /// Keys of buckets, which also give a few rows of other keys.
    pub(super) of_buckets: Vec<u64>,
    /// Keys of exact lists.
    pub(super) of_lists: Vec<u64>,
    /// The first Double Metaphone key, packed, if the row is found by it.
    pub(super) primary: Option<u64>,
}

/// How buckets are divided into groups.
#[derive(Clone, Copy)]
struct Division {
    buckets: usize,
    groups: usize,
}

impl Division {
    fn of(rows: usize) -> Self {
        let buckets = (rows * 2).next_power_of_two().clamp(16, BUCKETS_MAX);
        Self { buckets, groups: buckets.min(GROUPS_MAX) }
    }

    /// The number of buckets in a group. Both numbers are powers of two.
    fn width(self) -> usize {
        self.buckets / self.groups
    }
}

/// What one thread found for its rows.
struct Gathered {
    /// The rows of each group of buckets: two bytes of the bucket, the lowest byte of the key, and the distance from the row before.
    groups: Vec<Vec<u8>>,
    /// The rows of exact lists.
    of_lists: Vec<(u64, u32)>,
    /// The rows with a first Double Metaphone key.
    primaries: Vec<(u64, u32)>,
}

impl Postings {
    /// Stores `count` rows under their keys, on all cores. The keys of a row are computed once: first each thread divides its rows by groups of buckets,
    /// then each group is sorted in memory of its own.
    pub(super) fn build(count: usize, keys_of: impl Fn(usize) -> RowKeys + Sync) -> Self {
        let division = Division::of(count);
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let share = count.div_ceil(threads).max(1);
        let keys_of = &keys_of;
        let starts = (0..count).step_by(share);
        let gathered = in_parallel(starts.map(|start| move || gather(start..(start + share).min(count), division, keys_of)));
        let mut groups: Vec<Vec<Vec<u8>>> = (0..division.groups).map(|_| Vec::with_capacity(threads)).collect();
        let (mut of_lists, mut primaries) = (Vec::new(), Vec::new());
        for of_thread in gathered {
            groups.iter_mut().zip(of_thread.groups).for_each(|(pieces, piece)| pieces.push(piece));
            of_lists.extend(of_thread.of_lists);
            primaries.extend(of_thread.primaries);
        }
        let share = groups.len().div_ceil(threads).max(1);
        let mut shares = Vec::with_capacity(threads);
        while !groups.is_empty() {
            let rest = groups.split_off(share.min(groups.len()));
            shares.push(std::mem::replace(&mut groups, rest));
        }
        let written = in_parallel(shares.into_iter().map(|groups| {
            move || {
                let mut out = Self::default();
                // What was gathered for a group is freed when the group is written.
                groups.into_iter().for_each(|pieces| out.write_group(&pieces, division.width()));
                out
            }
        }));
        let mut out = Self { lists: Lists::build(of_lists), primaries: PrimaryKeys::build(primaries), ..Self::default() };
        out.ends.reserve_exact(division.buckets);
        out.bytes.reserve_exact(written.iter().map(|part| part.bytes.len()).sum());
        for part in written {
            let start = out.bytes.len() as u32;
            out.ends.extend(part.ends.iter().map(|end| start + end));
            out.bytes.extend_from_slice(&part.bytes);
        }
        out
    }

    /// Writes the buckets of a group, in their order. The pieces are in the order of their rows.
    fn write_group(&mut self, pieces: &[Vec<u8>], width: usize) {
        let mut places = vec![0_u32; width];
        each_entry(pieces, |bucket, _, _| places[bucket] += 1);
        let mut total = 0;
        for place in &mut places {
            total += std::mem::replace(place, total);
        }
        let mut rows = vec![(0_u32, 0_u8); total as usize];
        each_entry(pieces, |bucket, print, row| {
            rows[places[bucket] as usize] = (row, print);
            places[bucket] += 1;
        });
        let mut start = 0;
        for end in places {
            self.write(&rows[start as usize..end as usize]);
            start = end;
        }
    }

    fn write(&mut self, rows: &[(u32, u8)]) {
        let mut before = 0;
        for (row, print) in rows {
            self.bytes.push(*print);
            write_number(&mut self.bytes, row - before);
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

    /// Reads the beginnings of the buckets of keys, so that they are in the caches of the core. Buckets are far from each other in memory; in short loops
    /// of which no step needs another one, the processor waits for many of them at the same time.
    pub(super) fn load(&self, keys: impl Iterator<Item = u64>) {
        let places: Vec<usize> = keys.map(|key| self.bucket(key).start).collect();
        let first_bytes = places.iter().map(|place| self.bytes.get(*place).copied().unwrap_or_default());
        std::hint::black_box(first_bytes.fold(0_u8, |all, byte| all ^ byte));
    }

    /// Adds the rows that are stored under all keys of a group, and a few others, to an empty list. Only the keys with the smallest buckets are read.
    pub(super) fn add_common(&self, group: impl Iterator<Item = u64>, out: &mut Vec<u32>) {
        let mut keys: Vec<(usize, u64)> = group.map(|key| (self.cost(key), key)).collect();
        keys.sort_unstable();
        let mut others = Vec::new();
        for (at, (_, key)) in keys.into_iter().take(COMMON_KEYS).enumerate() {
            if at == 0 {
                self.add(key, out);
                continue;
            }
            others.clear();
            self.add(key, &mut others);
            retain_common(out, &others);
        }
    }

    /// Adds the rows that are stored under a key, and a few others, to a list.
    pub(super) fn add(&self, key: u64, out: &mut Vec<u32>) {
        let mut bytes = self.bytes.get(self.bucket(key)).unwrap_or_default().iter();
        let mut row = 0_u32;
        while let Some(print) = bytes.next() {
            row = row.wrapping_add(read_number(&mut bytes).unwrap_or_default());
            if *print == key as u8 {
                out.push(row);
            }
        }
    }

    pub(super) fn size(&self) -> usize {
        self.ends.capacity() * 4 + self.bytes.capacity() + self.lists.size() + self.primaries.size()
    }
}

/// Leaves the rows that the other list has, too. Both are in order.
fn retain_common(rows: &mut Vec<u32>, others: &[u32]) {
    let mut others = others.iter().peekable();
    rows.retain(|row| {
        while others.next_if(|other| *other < row).is_some() {}
        others.peek() == Some(&row)
    });
}

/// Runs tasks at the same time, and returns their results in their order.
fn in_parallel<T: Send, F: FnOnce() -> T + Send>(tasks: impl Iterator<Item = F>) -> Vec<T> {
    std::thread::scope(|scope| {
        let running: Vec<_> = tasks.map(|task| scope.spawn(task)).collect();
        running.into_iter().map(|task| task.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// Divides rows by the groups of their buckets.
fn gather(rows: Range<usize>, division: Division, keys_of: &impl Fn(usize) -> RowKeys) -> Gathered {
    let mut groups: Vec<(Vec<u8>, u32)> = vec![(Vec::new(), 0); division.groups];
    let (mut of_lists, mut primaries) = (Vec::new(), Vec::new());
    for row in rows {
        let keys = keys_of(row);
        let row = row as u32;
        for key in keys.of_buckets {
            let bucket = bucket(key, division.buckets);
            let (bytes, before) = &mut groups[bucket / division.width()];
            bytes.extend_from_slice(&((bucket % division.width()) as u16).to_le_bytes());
            bytes.push(key as u8);
            write_number(bytes, row - *before);
            *before = row;
        }
        of_lists.extend(keys.of_lists.into_iter().map(|key| (key, row)));
        primaries.extend(keys.primary.map(|key| (key, row)));
    }
    Gathered { groups: groups.into_iter().map(|(bytes, _)| bytes).collect(), of_lists, primaries }
}

/// Calls a function with the bucket within its group, the lowest byte of the key, and the row of each entry.
fn each_entry(pieces: &[Vec<u8>], mut act: impl FnMut(usize, u8, u32)) {
    for piece in pieces {
        let (mut bytes, mut row) = (piece.iter(), 0_u32);
        while let (Some(low), Some(high), Some(print)) = (bytes.next(), bytes.next(), bytes.next()) {
            row = row.wrapping_add(read_number(&mut bytes).unwrap_or_default());
            act(usize::from(u16::from_le_bytes([*low, *high])), *print, row);
        }
    }
}

/// The bucket of a key. The number of buckets is a power of two.
fn bucket(key: u64, buckets: usize) -> usize {
    (key >> 8) as usize & (buckets - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that only the rows of both lists remain, also where a list has a row twice.
    #[test]
    fn rows_of_both_lists_remain() {
        for (rows, others, expected) in [
            (&[1, 3, 3, 7, 9][..], &[0, 3, 4, 9, 9][..], &[3, 3, 9][..]),
            (&[1, 2][..], &[][..], &[][..]),
            (&[][..], &[5][..], &[][..]),
            (&[5, 6][..], &[5, 6][..], &[5, 6][..]),
        ] {
            let mut remaining = rows.to_vec();
            retain_common(&mut remaining, others);
            assert_eq!(remaining, expected);
        }
    }

    /// Proves for numbers of rows with few groups of buckets and with many that a row is found under each of its keys, that rows are in order, and that few
    /// others are found; and that lists have the rows of their keys and no others.
    #[test]
    fn rows_are_found_under_their_keys() {
        const COMMON: usize = 2_000_000;
        let key = |number: usize| (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let keys_of = |row: usize| RowKeys {
            of_buckets: vec![key(row / 5), key(1_000_000 + row), key(COMMON)],
            of_lists: vec![key(row / 3)],
            primary: None,
        };
        for count in [0, 1, 9, 5_000, 70_000] {
            let postings = Postings::build(count, keys_of);
            let rows_of = |key: u64| {
                let mut rows = Vec::new();
                postings.add(key, &mut rows);
                assert!(rows.is_sorted() && postings.cost(key) >= 2 * rows.len());
                rows
            };
            let (mut asked, mut found) = (0, 0);
            for row in (0..count).step_by(7) {
                for rows in [rows_of(key(row / 5)), rows_of(key(1_000_000 + row))] {
                    assert!(rows.contains(&(row as u32)), "{row} of {count}");
                    (asked, found) = (asked + 1, found + rows.len());
                }
                let mut rows = Vec::new();
                postings.lists.add(key(row / 3), &mut rows);
                let first = row as u32 / 3 * 3;
                assert_eq!(rows, (first..(first + 3).min(count as u32)).collect::<Vec<_>>());
            }
            for row in (0..count).step_by(5) {
                let mut rows = Vec::new();
                postings.load([key(row / 5)].into_iter());
                postings.add_common([key(COMMON), key(row / 5), key(1_000_000 + row)].into_iter(), &mut rows);
                assert!(rows.contains(&(row as u32)) && rows.len() <= 6, "{row} of {count}: {rows:?}");
            }
            assert!(found <= asked * 6, "{found} rows for {asked} keys of {count} rows");
            assert!(rows_of(key(COMMON)).len() >= count, "every row has this key");
        }
    }
}
