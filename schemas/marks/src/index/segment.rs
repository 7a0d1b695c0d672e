//! A part of the index. It does not change, except that versions of marks end.

use std::sync::OnceLock;

use super::columns::{Columns, Standing};
use super::keys::{self, Asked};
use super::postings::{Postings, RowKeys};
use super::{Hit, compare};
use crate::Mark;
use crate::mark::spelled;
use crate::near::{NearLetters, are_near};
use crate::rules::{RuleSet, distance_of_normal};

/// A part of the index.
#[derive(Debug, Default)]
pub(super) struct Segment {
    columns: Columns,
    /// The rows by their keys, once somebody asks: a segment that is merged before needs none.
    postings: OnceLock<Postings>,
}

/// A row that keys found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    row: u32,
    /// The rules of these keys: no other rule can hold.
    pub(super) rules: RuleSet,
    /// The rules that are known to hold.
    known: RuleSet,
}

impl Segment {
    /// A segment without keys. They are computed by the first call of [`Segment::postings`].
    pub(super) fn of(mut columns: Columns) -> Self {
        columns.shrink();
        Self { columns, postings: OnceLock::new() }
    }

    /// A segment of a snapshot.
    pub(super) fn of_snapshot(columns: Columns, postings: Postings) -> Self {
        Self { columns, postings: OnceLock::from(postings) }
    }

    pub(super) fn columns(&self) -> &Columns {
        &self.columns
    }

    pub(super) fn postings(&self) -> &Postings {
        self.postings.get_or_init(|| Postings::build(self.columns.len(), |row| keys_of(&self.columns, row)))
    }

    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.columns.bytes() + self.postings.get().map_or(0, Postings::size)
    }

    /// The version of a mark that stands.
    pub(super) fn standing(&self, serial: u32) -> Option<Standing<'_>> {
        self.columns.standing(serial).map(|row| Standing::Stored { columns: &self.columns, row })
    }

    pub(super) fn find(&self, name: &Mark, asked: &Asked, at: u32) -> Vec<Hit> {
        self.candidates(name, asked, at).into_iter().filter_map(|candidate| self.hit(name, candidate)).collect()
    }

    /// The rows that are current at a position and that keys found, each once, with the rules of these keys, in order.
    pub(super) fn candidates(&self, name: &Mark, asked: &Asked, at: u32) -> Vec<Candidate> {
        let postings = self.postings();
        let (mut rows, mut found): (Vec<u32>, Vec<Candidate>) = (Vec::new(), Vec::new());
        let mut take = |rows: &mut Vec<u32>, rules: RuleSet, known: RuleSet| {
            found.extend(rows.drain(..).map(|row| Candidate { row, rules, known }));
        };
        for key in &asked.all {
            postings.add(key.hash, &mut rows);
            take(&mut rows, key.rules, RuleSet::NONE);
        }
        for group in &asked.any {
            if let Some(smallest) = group.iter().min_by_key(|key| postings.cost(key.hash)) {
                postings.add(smallest.hash, &mut rows);
                take(&mut rows, smallest.rules, RuleSet::NONE);
            }
        }
        asked.listed.iter().for_each(|key| postings.lists.add(*key, &mut rows));
        take(&mut rows, keys::LISTED, keys::LISTED);
        take(&mut self.near(name, asked), keys::NEAR, RuleSet::NONE);
        found.sort_unstable_by_key(|candidate| candidate.row);
        found.dedup_by(|next, kept| {
            let is_same = next.row == kept.row;
            if is_same {
                kept.rules = kept.rules.with(next.rules);
                kept.known = kept.known.with(next.known);
            }
            is_same
        });
        found.retain(|candidate| self.columns.stands_at(candidate.row as usize, at));
        found
    }

    /// The rows that only rule `S6` can find. There are many candidates, and the letters alone say which of them count.
    fn near(&self, name: &Mark, asked: &Asked) -> Vec<u32> {
        let (postings, letters) = (self.postings(), NearLetters::of(name.spelled()));
        let mut rows: Vec<u32> = Vec::new();
        asked.near.iter().for_each(|key| postings.add(*key, &mut rows));
        rows.sort_unstable();
        rows.dedup();
        let is_near = |text: &str| letters.may_be_near(text) && are_near(name.spelled(), text);
        rows.retain(|row| self.columns.texts_of(*row as usize).next().is_some_and(|text| is_near(&spelled(text))));
        rows
    }

    pub(super) fn scan(&self, name: &Mark, at: u32) -> Vec<Hit> {
        let rows = (0..self.len()).filter(|row| self.columns.stands_at(*row, at));
        rows.filter_map(|row| self.hit(name, Candidate { row: row as u32, rules: RuleSet::ALL, known: RuleSet::NONE })).collect()
    }

    /// The hit of a candidate by the first of its rules that holds.
    fn hit(&self, name: &Mark, candidate: Candidate) -> Option<Hit> {
        let Candidate { row, rules, known } = candidate;
        let row = row as usize;
        let mut texts = self.columns.texts_of(row);
        let (rule, distance) = if known == keys::LISTED && rules == known {
            // No key of another rule found the mark, so that this one is the first that holds.
            (keys::LISTED_RULE, u32::try_from(distance_of_normal(name, texts.next()?)).unwrap_or(u32::MAX))
        } else {
            compare(name, texts, rules, known)?
        };
        let (classes, is_live) = (self.columns.classes(row), self.columns.is_live(row));
        Some(Hit { serial: self.columns.serial(row), rule, classes, is_live, distance })
    }
}

/// The keys that a version is stored under.
fn keys_of(columns: &Columns, row: usize) -> RowKeys {
    let mut texts = columns.texts_of(row);
    let mark = texts.next().map(Mark::from_normal);
    let mut of_buckets = mark.as_ref().map(keys::stored).unwrap_or_default();
    of_buckets.extend(texts.map(|text| keys::compact(&Mark::from_normal(text))));
    RowKeys { of_buckets, of_lists: mark.as_ref().map(keys::listed).unwrap_or_default() }
}
