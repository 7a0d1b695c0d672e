//! A part of the index. It does not change, except that versions of marks end.

use super::columns::{Columns, Standing};
use super::keys::{self, Asked};
use super::postings::Postings;
use super::{Hit, compare};
use crate::Mark;
use crate::mark::spelled;
use crate::near::are_near;

/// A part of the index.
#[derive(Debug, Default)]
pub(super) struct Segment {
    columns: Columns,
    postings: Postings,
}

impl Segment {
    pub(super) fn build(mut columns: Columns) -> Self {
        columns.shrink();
        let postings = Postings::build(columns.len(), |row| keys_of(&columns, row));
        Self { columns, postings }
    }

    /// A segment of a snapshot.
    pub(super) fn of_snapshot(columns: Columns, postings: Postings) -> Self {
        Self { columns, postings }
    }

    pub(super) fn columns(&self) -> &Columns {
        &self.columns
    }

    pub(super) fn postings(&self) -> &Postings {
        &self.postings
    }

    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.columns.bytes() + self.postings.size()
    }

    /// The version of a mark that stands.
    pub(super) fn standing(&self, serial: u32) -> Option<Standing<'_>> {
        self.columns.standing(serial).map(|row| Standing::Stored { columns: &self.columns, row })
    }

    pub(super) fn find(&self, name: &Mark, asked: &Asked, at: u32) -> Vec<Hit> {
        let mut rows: Vec<u32> = Vec::new();
        asked.all.iter().for_each(|key| self.postings.add(*key, &mut rows));
        for group in &asked.any {
            let smallest = group.iter().min_by_key(|key| self.postings.cost(**key));
            smallest.into_iter().for_each(|key| self.postings.add(*key, &mut rows));
        }
        rows.sort_unstable();
        rows.dedup();
        rows.extend(self.near(name, asked, at, &rows));
        rows.into_iter().filter_map(|row| self.hit(name, row as usize, at)).collect()
    }

    /// The rows that only rule `S6` can find. There are many candidates, and the letters alone say which of them count.
    fn near(&self, name: &Mark, asked: &Asked, at: u32, known: &[u32]) -> Vec<u32> {
        let mut rows: Vec<u32> = Vec::new();
        asked.near.iter().for_each(|key| self.postings.add(*key, &mut rows));
        rows.sort_unstable();
        rows.dedup();
        let has_near_letters = |row: usize| self.columns.texts_of(row).next().is_some_and(|text| are_near(name.spelled(), &spelled(text)));
        rows.retain(|row| {
            known.binary_search(row).is_err() && self.columns.stands_at(*row as usize, at) && has_near_letters(*row as usize)
        });
        rows
    }

    pub(super) fn scan(&self, name: &Mark, at: u32) -> Vec<Hit> {
        (0..self.len()).filter_map(|row| self.hit(name, row, at)).collect()
    }

    fn hit(&self, name: &Mark, row: usize, at: u32) -> Option<Hit> {
        if !self.columns.stands_at(row, at) {
            return None;
        }
        let (rule, distance) = compare(name, self.columns.texts_of(row))?;
        let (classes, is_live) = (self.columns.classes(row), self.columns.is_live(row));
        Some(Hit { serial: self.columns.serial(row), rule, classes, is_live, distance })
    }
}

/// The keys that a version is stored under.
fn keys_of(columns: &Columns, row: usize) -> Vec<u64> {
    let mut texts = columns.texts_of(row);
    let mut keys = texts.next().map(|text| keys::stored(&Mark::from_normal(text))).unwrap_or_default();
    keys.extend(texts.map(|text| keys::compact(&Mark::from_normal(text))));
    keys
}
