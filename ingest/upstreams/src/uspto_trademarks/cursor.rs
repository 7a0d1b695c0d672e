//! What a stream has read, and what it reads next.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::catalogue::{self, Listed};
use crate::{Incomplete, Page, json, text};

/// How long a damaged file is not requested after the first attempt. Each further attempt waits four times as long as the one before, so that a file
/// is requested eight times in its first year.
const FIRST_PAUSE_S: i64 = 3_600;
const PAUSE_FACTOR: i64 = 4;
/// The longest pause, in seconds: 170 days.
const PAUSE_S_MAX: i64 = FIRST_PAUSE_S * PAUSE_FACTOR.pow(6);
const REASON_CHARS_MAX: usize = 200;

/// What is requested next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    /// The list of files.
    #[default]
    List,
    /// The file of the cursor.
    Read,
    /// Nothing; the run ends.
    Rest,
}

/// The position of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Cursor {
    pub(super) step: Step,
    /// Days: the first day that a run may read; `None` for the first one listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first: Option<Date>,
    /// Days: the last day that has been read; it and all days before are complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) day: Option<Date>,
    /// Days: the last day that is listed without a gap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) until: Option<Date>,
    /// Parts: the set, `18840407-20251231`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) set: String,
    /// Parts: the numbers of the set's listed parts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) parts: Vec<u16>,
    /// Parts: the numbers of those that have been read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) done: Vec<u16>,
    /// The file that is read.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) file: String,
    /// How many of its records have been read.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) record: u64,
    /// Files that could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) damaged: Vec<Damaged>,
}

/// A file that could not be read, and is not requested for a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Damaged {
    file: String,
    /// How many times it could not be read.
    attempts: u32,
    /// When it is requested again: seconds since 1970.
    again_at: i64,
    /// The version of the file that the list showed since. A version that differs is requested at once.
    version: String,
    reason: String,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Damaged {
    fn is_paused(&self, at: Timestamp) -> bool {
        at.as_second() < self.again_at
    }

    fn note(&self) -> String {
        let again = Timestamp::from_second(self.again_at).map(|at| at.to_string()).unwrap_or_default();
        format!("{} could not be read ({}); attempt {}, requested again after {again}", self.file, self.reason, self.attempts)
    }
}

impl Cursor {
    /// Chooses the day to read from the listed files.
    pub(super) fn plan_days(mut self, files: &[Listed], at: Timestamp) -> Page {
        let listed: BTreeMap<Date, &Listed> = files.iter().filter_map(|file| Some((catalogue::day_of(&file.name)?, file))).collect();
        self.compare_versions(files);
        let first = || listed.keys().find(|day| self.first.is_none_or(|first| **day >= first)).copied();
        let next = match self.day {
            Some(day) => day.tomorrow().ok(),
            None => first(),
        };
        let Some(next) = next else {
            let today = at.to_zoned(jiff::tz::TimeZone::UTC).date();
            return self.rest(Some(Incomplete { what: "no file of a day is listed".to_owned(), from: Some(today) }));
        };
        let mut until = next;
        while let Some(day) = until.tomorrow().ok().filter(|day| listed.contains_key(day)) {
            until = day;
        }
        if listed.contains_key(&next) {
            (self.first, self.until) = (Some(next), Some(until));
            return self.read_next(at);
        }
        let is_missing = listed.keys().next_back().is_some_and(|last| *last > next);
        let missing =
            || Incomplete { what: format!("{} is not listed; later days wait for it", catalogue::name_of(next)), from: Some(next) };
        self.rest(is_missing.then(missing))
    }

    /// Chooses the part to read from the listed files. Only the newest set is read.
    pub(super) fn plan_parts(mut self, files: &[Listed], at: Timestamp) -> Page {
        let parts = files.iter().filter_map(|file| catalogue::part_of(&file.name));
        // The sets have the same first day, so the newest one is the last by name.
        let Some(set) = parts.clone().map(|(set, _)| set).max() else {
            return self.rest(Some(Incomplete { what: "no yearly set is listed".to_owned(), from: None }));
        };
        if self.set != set {
            self = Self { set: set.to_owned(), ..Self::default() };
        }
        self.parts = parts.filter(|(other, _)| *other == set).map(|(_, number)| number).collect();
        self.parts.sort_unstable();
        self.parts.dedup();
        self.compare_versions(files);
        self.read_next(at)
    }

    /// Forgets the damage of files that have been published again since.
    fn compare_versions(&mut self, files: &[Listed]) {
        self.damaged.retain_mut(|damaged| match files.iter().find(|file| file.name == damaged.file) {
            Some(file) if damaged.version.is_empty() => {
                damaged.version.clone_from(&file.version);
                true
            }
            Some(file) => damaged.version == file.version,
            None => true,
        });
    }

    /// Whether this is the stream of days.
    fn is_of_days(&self) -> bool {
        self.set.is_empty()
    }

    /// Returns the page after which the next file is read, or the run ends.
    fn read_next(mut self, at: Timestamp) -> Page {
        self.record = 0;
        let paused = |file: &str| self.damaged.iter().find(|damaged| damaged.file == file && damaged.is_paused(at));
        if self.is_of_days() {
            let next = self.day.map_or(self.first, |day| day.tomorrow().ok());
            let Some(next) = next.filter(|next| self.until.is_some_and(|until| *next <= until)) else { return self.rest(None) };
            let file = catalogue::name_of(next);
            if let Some(damaged) = paused(&file) {
                let what = format!("{}; later days wait for it", damaged.note());
                return self.rest(Some(Incomplete { what, from: Some(next) }));
            }
            self.file = file;
        } else {
            let set = &self.set;
            let mut files =
                self.parts.iter().filter(|number| !self.done.contains(number)).map(|number| format!("apc{set}-{number:02}.zip"));
            let Some(file) = files.find(|file| paused(file).is_none()) else {
                let missing = self.missing();
                return self.rest(missing);
            };
            self.file = file;
        }
        self.step = Step::Read;
        self.page(None)
    }

    /// Says which parts of a set are not read yet, at the end of a run.
    fn missing(&self) -> Option<Incomplete> {
        let gaps = (1..self.parts.last().copied().unwrap_or_default()).filter(|number| !self.parts.contains(number));
        let gaps: Vec<String> = gaps.map(|number| format!("part {number} is not listed")).take(10).collect();
        let notes: Vec<String> = self.damaged.iter().map(Damaged::note).take(10).chain(gaps).collect();
        (!notes.is_empty()).then(|| Incomplete { what: notes.join("; "), from: None })
    }

    /// Returns the page after which the run ends.
    fn rest(mut self, incomplete: Option<Incomplete>) -> Page {
        self.step = Step::Rest;
        self.file.clear();
        self.record = 0;
        self.page(incomplete)
    }

    fn page(self, incomplete: Option<Incomplete>) -> Page {
        Page { through: self.day, incomplete, next: Some(json::write_cursor(self)), ..Page::default() }
    }

    /// Returns the page after the last record of the file.
    pub(super) fn finished(mut self, at: Timestamp) -> Page {
        self.damaged.retain(|damaged| damaged.file != self.file);
        match catalogue::part_of(&self.file) {
            Some((_, number)) => self.done.push(number),
            None => self.day = catalogue::day_of(&self.file),
        }
        self.read_next(at)
    }

    /// Returns the page after which the run does not request the file for a time.
    pub(super) fn put_off(mut self, reason: &str, at: Timestamp) -> Page {
        let known = self.damaged.iter().position(|damaged| damaged.file == self.file);
        let mut damaged = known.map(|known| self.damaged.remove(known)).unwrap_or_default();
        let pause = FIRST_PAUSE_S.saturating_mul(PAUSE_FACTOR.saturating_pow(damaged.attempts)).min(PAUSE_S_MAX);
        damaged.file.clone_from(&self.file);
        damaged.attempts += 1;
        damaged.again_at = at.as_second().saturating_add(pause);
        damaged.reason = text::cut(reason.to_owned(), REASON_CHARS_MAX);
        self.damaged.push(damaged);
        self.read_next(at)
    }

    /// How many files of the run follow this one.
    pub(super) fn files_left(&self) -> u64 {
        if self.is_of_days() {
            let days = catalogue::day_of(&self.file).zip(self.until).and_then(|(day, until)| day.until(until).ok());
            return days.map_or(0, |days| u64::try_from(days.get_days()).unwrap_or(0));
        }
        (self.parts.len().saturating_sub(self.done.len() + 1)) as u64
    }
}
