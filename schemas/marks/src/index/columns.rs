//! Versions of marks: the numbers of each row, and the texts of all rows.
//!
//! Rows are in the order of the consonants of their marks. Most marks that a check compares have the consonants of the name, so that their rows and
//! their texts are next to each other in memory. Answers do not depend on the order.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};

use super::changes::ComparedMark;
use super::primary_keys::packed;
use crate::consonants::PackedSkeleton;
use crate::{Classes, Mark};

/// The end of a version that stands.
pub(super) const STANDS: u32 = u32::MAX;
/// The bit of a set of classes that says that the status is live.
const LIVE: u64 = 1 << 63;

/// What is compared of a version of a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    /// The mark and its pseudo marks in the normal form, separated by line feeds.
    texts: String,
    /// Classes as bits, with `LIVE`.
    bits: u64,
    /// The skeleton of the mark, which follows from its text.
    skeleton: PackedSkeleton,
}

impl Version {
    /// `None` for a mark without a word.
    pub(super) fn of(entry: &ComparedMark) -> Option<Self> {
        let mark = Mark::new(&entry.text)?;
        let (mut texts, skeleton) = (mark.normal(), PackedSkeleton::of(mark.skeleton()));
        for pseudo in entry.pseudo_marks.iter().filter_map(|text| Mark::new(text)) {
            texts.push('\n');
            texts.push_str(&pseudo.normal());
        }
        Some(Self { texts, bits: entry.classes.bits() | if entry.is_live { LIVE } else { 0 }, skeleton })
    }
}

/// The version of a mark that stands while changes are applied.
pub(super) enum Standing<'a> {
    /// A row of a segment.
    Stored { columns: &'a Columns, row: usize },
    /// The last row that was added.
    Added { version: Version },
}

impl Standing<'_> {
    /// Whether it is compared as another version is.
    pub(super) fn is(&self, other: &Version) -> bool {
        match self {
            Self::Stored { columns, row } => columns.bits(*row) == other.bits && columns.text(*row) == other.texts,
            Self::Added { version } => version == other,
        }
    }
}

/// What versions are sorted by: the skeleton of the mark, the first letters of its text, the serial number and the position of the change.
type SortKey = (u32, u64, u32, u32);

/// The numbers of a version. They are next to each other in memory, because a check reads most of them of each row that it finds, and many rows that it
/// finds are far from each other.
#[derive(Debug)]
pub(super) struct Row {
    /// The serial number.
    pub(super) serial: u32,
    /// The position of the change that made the version.
    pub(super) since: u32,
    /// The position of the change that ended it, or `STANDS`. A version may be ended while the segment is read: at a position that nobody reads
    /// yet.
    pub(super) until: AtomicU32,
    /// Which of the sets of the columns has its classes.
    pub(super) classes: u32,
    /// Where its texts end.
    pub(super) end: u32,
    /// The skeleton of the mark.
    pub(super) skeleton: PackedSkeleton,
}

/// Versions of marks.
#[derive(Debug, Default)]
pub(super) struct Columns {
    /// The versions. [`Columns::ordered`] puts them in order.
    pub(super) rows: Vec<Row>,
    /// Sets of classes as bits, with `LIVE`, each once.
    pub(super) sets: Vec<u64>,
    /// The texts of all versions.
    pub(super) texts: String,
    /// The indexes of the sets, while versions are added.
    known_sets: HashMap<u64, u32>,
    /// The rows in the order of their serial numbers, once no more versions are added.
    by_serial: Vec<u32>,
}

impl Columns {
    /// The columns of a snapshot; `None` if they have different lengths, or refer to what is not there.
    pub(super) fn of_snapshot(parts: Parts) -> Option<Self> {
        let Parts { serials, sinces, untils, classes, sets, ends, skeletons, texts } = parts;
        let count = serials.len();
        let is_sound = [sinces.len(), untils.len(), classes.len(), ends.len(), skeletons.len()].iter().all(|len| *len == count)
            && classes.iter().all(|set| (*set as usize) < sets.len())
            && ends.is_sorted()
            && ends.last().map_or(0, |end| *end as usize) == texts.len()
            && ends.iter().all(|end| texts.is_char_boundary(*end as usize));
        let numbers = serials.into_iter().zip(sinces).zip(untils).zip(classes).zip(ends).zip(skeletons);
        let row = |(((((serial, since), until), classes), end), skeleton)| {
            let skeleton = PackedSkeleton::from_bits(skeleton);
            Row { serial, since, until: AtomicU32::new(until), classes, end, skeleton }
        };
        is_sound.then(|| {
            let rows: Vec<Row> = numbers.map(row).collect();
            Self { by_serial: by_serial(&rows), rows, sets, texts, known_sets: HashMap::new() }
        })
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<Row>() + self.sets.capacity() * 8 + self.texts.capacity() + self.by_serial.capacity() * 4
    }

    /// Adds a version that stands.
    pub(super) fn push(&mut self, serial: u32, since: u32, version: &Version) {
        self.push_row(serial, since, STANDS, version.bits, &version.texts, version.skeleton);
    }

    fn push_row(&mut self, serial: u32, since: u32, until: u32, bits: u64, texts: &str, skeleton: PackedSkeleton) {
        // Texts of 4 GB are more than the whole register, and a segment has a part of it.
        let Ok(end) = u32::try_from(self.texts.len() + texts.len()) else { return };
        let next = self.sets.len() as u32;
        let set = *self.known_sets.entry(bits).or_insert(next);
        if set == next {
            self.sets.push(bits);
        }
        self.texts.push_str(texts);
        self.rows.push(Row { serial, since, until: AtomicU32::new(until), classes: set, end, skeleton });
    }

    /// Ends the last version.
    pub(super) fn end_last(&self, at: u32) {
        self.end(self.len().saturating_sub(1), at);
    }

    /// Ends a version at a position that nobody reads yet.
    pub(super) fn end(&self, row: usize, at: u32) {
        if let Some(row) = self.rows.get(row) {
            row.until.fetch_min(at, Ordering::Relaxed);
        }
    }

    /// What the version in a row is sorted by.
    fn sort_key(&self, row: usize) -> Option<SortKey> {
        let Row { serial, since, skeleton, .. } = self.rows.get(row)?;
        Some((skeleton.bits(), packed(self.text(row)), *serial, *since))
    }

    /// The same versions in order.
    pub(super) fn ordered(&self) -> Self {
        let mut keys: Vec<(SortKey, usize)> = (0..self.len()).filter_map(|row| Some((self.sort_key(row)?, row))).collect();
        keys.sort_unstable();
        let mut out = Self::default();
        keys.into_iter().for_each(|(_, row)| out.copy(self, row));
        out
    }

    /// The versions of both, in order if both are.
    pub(super) fn merged(one: &Self, other: &Self) -> Self {
        let mut out = Self::default();
        let (mut row, mut its) = (0, 0);
        let (mut key, mut its_key) = (one.sort_key(row), other.sort_key(its));
        loop {
            match (key, its_key) {
                (None, None) => return out,
                (Some(a), b) if b.is_none_or(|b| a <= b) => {
                    out.copy(one, row);
                    row += 1;
                    key = one.sort_key(row);
                }
                _ => {
                    out.copy(other, its);
                    its += 1;
                    its_key = other.sort_key(its);
                }
            }
        }
    }

    fn copy(&mut self, from: &Self, row: usize) {
        if let Some(Row { serial, since, skeleton, .. }) = from.rows.get(row) {
            self.push_row(*serial, *since, from.until(row), from.bits(row), from.text(row), *skeleton);
        }
    }

    /// The versions in parts of at most so many versions.
    pub(super) fn split(self, versions_max: usize) -> Vec<Self> {
        if self.len() <= versions_max {
            return vec![self];
        }
        let starts = (0..self.len()).step_by(versions_max.max(1));
        starts
            .map(|start| {
                let mut part = Self::default();
                (start..(start + versions_max).min(self.len())).for_each(|row| part.copy(&self, row));
                part
            })
            .collect()
    }

    /// Finds the order of the serial numbers, and frees what only adding needs: no more versions are added.
    pub(super) fn finish(&mut self) {
        self.known_sets = HashMap::new();
        self.by_serial = by_serial(&self.rows);
        self.rows.shrink_to_fit();
        self.sets.shrink_to_fit();
        self.texts.shrink_to_fit();
    }

    /// The row of the version of a mark that stands: at most one of the versions of a mark does.
    pub(super) fn standing(&self, serial: u32) -> Option<usize> {
        let first = self.by_serial.partition_point(|row| self.serial(*row as usize) < serial);
        let rows = self.by_serial.get(first..).unwrap_or_default().iter().map(|row| *row as usize);
        rows.take_while(|row| self.serial(*row) == serial).find(|row| self.until(*row) == STANDS)
    }

    pub(super) fn serial(&self, row: usize) -> u32 {
        self.rows.get(row).map_or(0, |row| row.serial)
    }

    /// Whether a version stands at a position.
    pub(super) fn stands_at(&self, row: usize, at: u32) -> bool {
        self.rows.get(row).is_some_and(|row| row.since <= at && at < row.until.load(Ordering::Relaxed))
    }

    fn until(&self, row: usize) -> u32 {
        self.rows.get(row).map_or(0, |row| row.until.load(Ordering::Relaxed))
    }

    fn bits(&self, row: usize) -> u64 {
        self.rows.get(row).and_then(|row| self.sets.get(row.classes as usize)).copied().unwrap_or_default()
    }

    pub(super) fn classes(&self, row: usize) -> Classes {
        Classes::from_bits(self.bits(row))
    }

    pub(super) fn is_live(&self, row: usize) -> bool {
        self.bits(row) & LIVE != 0
    }

    /// The skeleton of the text in a row.
    pub(super) fn skeleton(&self, row: usize) -> PackedSkeleton {
        self.rows.get(row).map_or(PackedSkeleton::UNKNOWN, |row| row.skeleton)
    }

    fn text(&self, row: usize) -> &str {
        let (start, end) = self.bounds(row);
        self.texts.get(start..end).unwrap_or_default()
    }

    /// Copies the texts of rows next to each other.
    ///
    /// Many rows are far from each other in memory. In short loops of which no step needs another one, the processor waits for many of them at the same
    /// time.
    pub(super) fn gather(&self, rows: impl Iterator<Item = usize>, out: &mut Texts) {
        out.ends.clear();
        out.texts.clear();
        out.bounds.clear();
        out.bounds.extend(rows.map(|row| self.bounds(row)));
        let first_bytes = out.bounds.iter().map(|(start, _)| self.texts.as_bytes().get(*start).copied().unwrap_or_default());
        std::hint::black_box(first_bytes.fold(0_u8, |all, byte| all ^ byte));
        for (start, end) in &out.bounds {
            out.texts.push_str(self.texts.get(*start..*end).unwrap_or_default());
            out.ends.push(out.texts.len());
        }
    }

    /// Where the texts of a row begin and end.
    fn bounds(&self, row: usize) -> (usize, usize) {
        let start = row.checked_sub(1).and_then(|before| self.rows.get(before)).map_or(0, |before| before.end as usize);
        (start, self.rows.get(row).map_or(0, |row| row.end as usize))
    }

    /// The mark, then its pseudo marks.
    pub(super) fn texts_of(&self, row: usize) -> impl Iterator<Item = &str> {
        self.text(row).split('\n')
    }
}

/// The rows in the order of their serial numbers.
fn by_serial(rows: &[Row]) -> Vec<u32> {
    // A number of both is sorted faster than a row by its serial number, which is in another place of memory.
    let mut numbers: Vec<u64> = (0_u64..).zip(rows).map(|(row, numbers)| u64::from(numbers.serial) << 32 | row).collect();
    numbers.sort_unstable();
    numbers.iter().map(|number| *number as u32).collect()
}

/// Texts of a few rows next to each other.
#[derive(Debug, Default)]
pub(super) struct Texts {
    texts: String,
    ends: Vec<usize>,
    /// Where the texts begin and end in the columns.
    bounds: Vec<(usize, usize)>,
}

impl Texts {
    /// The texts in the order of the rows: of each row the mark and its pseudo marks, separated by line feeds.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(move |(start, end)| self.texts.get(start..*end).unwrap_or_default())
    }
}

/// The columns as a snapshot has them.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) serials: Vec<u32>,
    pub(super) sinces: Vec<u32>,
    pub(super) untils: Vec<u32>,
    pub(super) classes: Vec<u32>,
    pub(super) sets: Vec<u64>,
    pub(super) ends: Vec<u32>,
    pub(super) skeletons: Vec<u32>,
    pub(super) texts: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that texts of rows are gathered in the order of the rows, with their pseudo marks, and that a row that is not there has none.
    #[test]
    fn texts_are_gathered_in_the_order_of_rows() {
        let mut columns = Columns::default();
        for (serial, text) in (0..).zip(["ACME", "DELTA CAFE", "КОШКА"]) {
            let pseudo_marks = if serial == 1 { vec!["DELTACAFFE".to_owned()] } else { Vec::new() };
            let entry = ComparedMark { text: text.to_owned(), pseudo_marks, classes: Classes::NONE, is_live: true };
            columns.push(serial, 1, &Version::of(&entry).unwrap());
        }
        let mut texts = Texts::default();
        for _ in 0..2 {
            columns.gather([2, 0, 1, 1, 3].into_iter(), &mut texts);
            assert_eq!(texts.iter().collect::<Vec<_>>(), ["КОШКА", "ACME", "DELTA CAFE\nDELTACAFFE", "DELTA CAFE\nDELTACAFFE", ""]);
        }
        columns.gather(std::iter::empty(), &mut texts);
        assert_eq!(texts.iter().next(), None);
    }

    /// Proves that marks of the same consonants are next to each other after versions were ordered and merged, those that begin alike first, and that the
    /// version of a mark that stands is found by its serial number.
    #[test]
    fn rows_are_in_the_order_of_consonants() {
        let columns_of = |versions: &[(u32, u32, &str)]| {
            let mut columns = Columns::default();
            for (serial, since, text) in versions {
                let entry = ComparedMark { text: (*text).to_owned(), pseudo_marks: Vec::new(), classes: Classes::NONE, is_live: true };
                columns.push(*serial, *since, &Version::of(&entry).unwrap());
            }
            let mut ordered = columns.ordered();
            ordered.finish();
            ordered
        };
        let one = columns_of(&[(1, 1, "NALEX"), (2, 2, "BORTU"), (3, 3, "NOLIX"), (9, 4, "BORTU")]);
        one.end(one.standing(2).unwrap(), 7);
        assert_eq!(one.standing(2), None);
        let mut all = Columns::merged(&one, &columns_of(&[(2, 7, "NALEX"), (4, 5, "BARTO")]));
        all.finish();
        let rows: Vec<(u32, &str)> = (0..all.len()).map(|row| (all.serial(row), all.text(row))).collect();
        assert_eq!(rows, [(4, "BARTO"), (2, "BORTU"), (9, "BORTU"), (1, "NALEX"), (2, "NALEX"), (3, "NOLIX")]);
        assert_eq!([1, 2, 3, 4, 9].map(|serial| all.standing(serial)), [Some(3), Some(4), Some(5), Some(0), Some(2)]);
        assert_eq!([0, 5, 10].map(|serial| all.standing(serial)), [None; 3]);
    }
}
