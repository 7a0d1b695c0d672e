//! A part of the index. It does not change, except that versions of marks end.

use std::sync::OnceLock;

use super::by_letters::{ByLetters, Compared};
use super::columns::{Columns, Standing, Texts};
use super::hits::{Hit, compare};
use super::keys::{self, WantedKeys};
use super::postings::{Postings, RowKeys};
use super::primary_keys::packed;
use crate::consonants::PackedSkeleton;
use crate::mark::write_spelled;
use crate::near::{NearLetters, are_near};
use crate::rules::{RuleSet, distance_of_normal};
use crate::{Mark, Rule};

/// How many rows are compared after their texts were gathered: the texts of so many fit in the caches of a core.
const BATCH_ROWS: usize = 1_024;

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
        columns.finish();
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

    /// The marks that are similar to a name at a position. `by_letters` is the name, if it is compared by letters.
    pub(super) fn find(&self, name: &Mark, asked: &WantedKeys, at: u32, mut by_letters: Option<&mut ByLetters<'_>>) -> Vec<Hit> {
        let candidates = self.candidates(name, asked, at);
        let (mut found, mut texts) = (Vec::new(), Texts::default());
        for batch in candidates.chunks(BATCH_ROWS) {
            self.columns.gather(batch.iter().map(|candidate| candidate.row as usize), &mut texts);
            for (candidate, texts) in batch.iter().zip(texts.iter()) {
                let skeleton = self.columns.skeleton(candidate.row as usize);
                let compared = compare_row(name, by_letters.as_deref_mut(), *candidate, texts, skeleton);
                found.extend(compared.map(|(rule, distance)| (candidate.row, rule, distance)));
            }
        }
        found.into_iter().map(|(row, rule, distance)| self.hit(row, rule, distance)).collect()
    }

    /// The rows that are current at a position and that keys found, each once, with the rules of these keys, in order.
    pub(super) fn candidates(&self, name: &Mark, asked: &WantedKeys, at: u32) -> Vec<Candidate> {
        let postings = self.postings();
        let (mut rows, mut found): (Vec<u32>, Vec<u64>) = (Vec::new(), Vec::new());
        let mut take = |rows: &mut Vec<u32>, rules: RuleSet, known: RuleSet| {
            found.extend(rows.drain(..).map(|row| Candidate { row, rules, known }.packed()));
        };
        postings.load(asked.all.iter().map(|key| key.hash));
        for key in &asked.all {
            postings.add(key.hash, &mut rows);
            take(&mut rows, key.rules, RuleSet::NONE);
        }
        for group in &asked.any {
            postings.add_common(group.iter().map(|key| key.hash), &mut rows);
            take(&mut rows, group.first().map_or(RuleSet::NONE, |key| key.rules), RuleSet::NONE);
        }
        asked.listed.iter().for_each(|key| postings.lists.add(*key, &mut rows));
        take(&mut rows, keys::LISTED, keys::LISTED);
        if let Some(key) = keys::primary(name) {
            let mut possible = Vec::new();
            postings.primaries.add(key, &mut rows, &mut possible);
            take(&mut rows, keys::PRIMARY, keys::PRIMARY);
            take(&mut possible, keys::PRIMARY, RuleSet::NONE);
        }
        take(&mut self.near(name, asked), keys::NEAR, RuleSet::NONE);
        // Numbers are sorted faster than candidates. The rows of a key are in order, and a stable sort takes long ones as they are.
        found.sort();
        let mut candidates: Vec<Candidate> = Vec::with_capacity(found.len());
        for next in found.into_iter().map(Candidate::unpack) {
            match candidates.last_mut().filter(|last| last.row == next.row) {
                Some(last) => {
                    last.rules = last.rules.with(next.rules);
                    last.known = last.known.with(next.known);
                }
                None => candidates.push(next),
            }
        }
        candidates.retain(|candidate| self.columns.stands_at(candidate.row as usize, at));
        candidates
    }

    /// The rows that only rule `S6` can find. There are many candidates, and the letters alone say which of them count.
    fn near(&self, name: &Mark, asked: &WantedKeys) -> Vec<u32> {
        let (postings, letters) = (self.postings(), NearLetters::of(name.spelled()));
        let mut rows: Vec<u32> = Vec::new();
        postings.load(asked.near.iter().copied());
        asked.near.iter().for_each(|key| postings.add(*key, &mut rows));
        rows.sort_unstable();
        rows.dedup();
        let (mut near, mut texts, mut spelled) = (Vec::new(), Texts::default(), String::new());
        for batch in rows.chunks(BATCH_ROWS) {
            self.columns.gather(batch.iter().map(|row| *row as usize), &mut texts);
            for (row, texts) in batch.iter().zip(texts.iter()) {
                write_spelled(texts.split('\n').next().unwrap_or_default(), &mut spelled);
                if letters.may_be_near(&spelled) && are_near(name.spelled(), &spelled) {
                    near.push(*row);
                }
            }
        }
        near
    }

    /// As [`Segment::find`], by comparing the name with all marks.
    pub(super) fn scan(&self, name: &Mark, at: u32) -> Vec<Hit> {
        let rows = (0..self.len()).filter(|row| self.columns.stands_at(*row, at));
        let hit = |row: usize| {
            let (rule, distance) = compare(name, self.columns.texts_of(row), RuleSet::ALL, RuleSet::NONE)?;
            Some(self.hit(row as u32, rule, distance))
        };
        rows.filter_map(hit).collect()
    }

    fn hit(&self, row: u32, rule: Rule, distance: u32) -> Hit {
        let row = row as usize;
        Hit { serial: self.columns.serial(row), rule, classes: self.columns.classes(row), is_live: self.columns.is_live(row), distance }
    }
}

impl Candidate {
    /// The candidate as a number that is above those of all rows before. Of the rules that are known to hold there is at most one of [`keys::KNOWN`].
    fn packed(self) -> u64 {
        let place = keys::KNOWN.iter().position(|known| *known == self.known).map_or(0, |at| at as u64 + 1);
        // A segment has far fewer rows than 30 bits number.
        u64::from(self.row) << 34 | place << 32 | u64::from(self.rules.bits())
    }

    /// The candidate of a number.
    fn unpack(packed: u64) -> Self {
        let known = (packed >> 32 & 0b11).checked_sub(1).and_then(|at| keys::KNOWN.get(at as usize)).copied().unwrap_or(RuleSet::NONE);
        Self { row: (packed >> 34) as u32, rules: RuleSet::from_bits(packed as u32), known }
    }
}

/// The first rule of a candidate that holds, and the distance, from the texts and the skeleton of its row.
fn compare_row(
    name: &Mark,
    by_letters: Option<&mut ByLetters<'_>>,
    candidate: Candidate,
    texts: &str,
    skeleton: PackedSkeleton,
) -> Option<(Rule, u32)> {
    let Candidate { rules, known, .. } = candidate;
    let (text, pseudo_marks) = texts.split_once('\n').map_or((texts, None), |(text, pseudo_marks)| (text, Some(pseudo_marks)));
    let shown = |distance: usize| u32::try_from(distance).unwrap_or(u32::MAX);
    if let Some(rule) = known.iter().next().filter(|_| rules == known) {
        // No key of another rule found the mark, so that this one is the first that holds.
        let distance = by_letters.and_then(|name| name.distance_to(text)).unwrap_or_else(|| distance_of_normal(name, text));
        return Some((rule, shown(distance)));
    }
    if let Some(by_letters) = by_letters {
        let is_pseudo = |name: &ByLetters<'_>| pseudo_marks.is_some_and(|texts| texts.split('\n').any(|text| name.has_letters_of(text)));
        match by_letters.first_rule(text, skeleton, rules, known) {
            Compared::Alike(Rule::E1) => return Some((Rule::E1, shown(by_letters.distance()))),
            Compared::Alike(rule) => {
                let rule = if is_pseudo(by_letters) { Rule::E2 } else { rule };
                return Some((rule, shown(by_letters.distance())));
            }
            Compared::Different => return is_pseudo(by_letters).then(|| (Rule::E2, shown(by_letters.distance()))),
            Compared::Unknown => {}
        }
    }
    compare(name, texts.split('\n'), rules, known)
}

/// The keys that a version is stored under.
fn keys_of(columns: &Columns, row: usize) -> RowKeys {
    let mut texts = columns.texts_of(row);
    let mark = texts.next().map(Mark::from_normal);
    let mut of_buckets = mark.as_ref().map(keys::stored).unwrap_or_default();
    of_buckets.extend(texts.map(|text| keys::compact(&Mark::from_normal(text))));
    let primary = mark.as_ref().and_then(keys::primary).map(packed);
    RowKeys { of_buckets, of_lists: mark.as_ref().map(keys::listed).unwrap_or_default(), primary }
}
