//! A part of the index. It does not change, except that versions of marks end.

use super::columns::{Columns, Standing};
use super::keys::{self, Asked};
use super::postings::Postings;
use super::{Hit, compare};
use crate::Mark;
use crate::mark::spelled;
use crate::near::are_near;
use crate::rules::RuleSet;

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
        self.candidates(name, asked, at).into_iter().filter_map(|(row, rules)| self.hit(name, row as usize, rules)).collect()
    }

    /// The rows that are current at a position and that keys found, each once, with the rules of these keys, in order.
    pub(super) fn candidates(&self, name: &Mark, asked: &Asked, at: u32) -> Vec<(u32, RuleSet)> {
        let (mut rows, mut found): (Vec<u32>, Vec<(u32, RuleSet)>) = (Vec::new(), Vec::new());
        let mut add = |key: u64, rules: RuleSet| {
            rows.clear();
            self.postings.add(key, &mut rows);
            found.extend(rows.iter().map(|row| (*row, rules)));
        };
        asked.all.iter().for_each(|key| add(key.hash, key.rules));
        for group in &asked.any {
            let smallest = group.iter().min_by_key(|key| self.postings.cost(key.hash));
            smallest.into_iter().for_each(|key| add(key.hash, key.rules));
        }
        found.extend(self.near(name, asked).into_iter().map(|row| (row, keys::NEAR)));
        found.sort_unstable_by_key(|(row, _)| *row);
        found.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                kept.1 = kept.1.with(next.1);
            }
            is_same
        });
        found.retain(|(row, _)| self.columns.stands_at(*row as usize, at));
        found
    }

    /// The rows that only rule `S6` can find. There are many candidates, and the letters alone say which of them count.
    fn near(&self, name: &Mark, asked: &Asked) -> Vec<u32> {
        let mut rows: Vec<u32> = Vec::new();
        asked.near.iter().for_each(|key| self.postings.add(*key, &mut rows));
        rows.sort_unstable();
        rows.dedup();
        let has_near_letters = |row: usize| self.columns.texts_of(row).next().is_some_and(|text| are_near(name.spelled(), &spelled(text)));
        rows.retain(|row| has_near_letters(*row as usize));
        rows
    }

    pub(super) fn scan(&self, name: &Mark, at: u32) -> Vec<Hit> {
        let rows = (0..self.len()).filter(|row| self.columns.stands_at(*row, at));
        rows.filter_map(|row| self.hit(name, row, RuleSet::ALL)).collect()
    }

    /// The hit of a version by the first of the given rules that holds.
    fn hit(&self, name: &Mark, row: usize, rules: RuleSet) -> Option<Hit> {
        let (rule, distance) = compare(name, self.columns.texts_of(row), rules)?;
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
