//! The cursor of a run: which hour is read, what was read of it, and which stories recent hours have.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub(super) const HOUR_S: i64 = 3_600;
/// The hours of a day.
pub(super) const DAY_HOURS: i64 = 24;
/// How many requests an hour may need at most. What they did not show is missing from the hour.
const REQUESTS_MAX: u32 = 64;

/// The position of a run. Hours and days are counted from 1970, in UTC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Cursor {
    /// The hour that is read.
    pub(super) hour: i64,
    /// The last hour of the run.
    pub(super) last: i64,
    /// The parts of the hour that are still to be read, in seconds from its start: from the first to before the second.
    pub(super) parts: Vec<(i64, i64)>,
    /// How many requests the hour has needed so far.
    pub(super) requests: u32,
    /// The ids that were shown of the hour so far.
    #[serde(with = "packed", skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) shown: BTreeSet<u64>,
    /// Why the hour is not complete; empty if it is so far.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) gap: String,
    /// What is known from the runs before, and from the hours that this run has read.
    pub(super) memory: Memory,
    /// Whether the cursor is for rejected stories.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_replay: bool,
}

/// What a run leaves to the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Memory {
    /// The first hour that was not yet read when it was old enough; 0 before the first run.
    pub(super) next: i64,
    /// The day on which the last days were read again.
    pub(super) reread_day: i64,
    /// The ids of the stories of recent hours.
    #[serde(with = "pairs")]
    pub(super) ids: BTreeMap<i64, Ids>,
}

/// The ids of an hour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Ids(#[serde(with = "packed")] pub(super) BTreeSet<u64>);

impl Cursor {
    /// The cursor of a run over some hours, both inclusive.
    pub(super) fn over(first: i64, last: i64, memory: Memory) -> Self {
        Self { hour: first, last, parts: vec![(0, HOUR_S)], memory, ..Self::default() }
    }

    /// The seconds that the next request asks for, from the first to before the second; `None` when the run is over.
    pub(super) fn range(&self) -> Option<(i64, i64)> {
        let (from, to) = self.parts.last().filter(|_| self.hour <= self.last)?;
        let start = self.hour.checked_mul(HOUR_S)?;
        Some((start.checked_add(*from)?, start.checked_add(*to)?))
    }

    /// Divides the part that was just asked for into two halves. Returns false if that is not possible.
    pub(super) fn divide(&mut self) -> bool {
        let Some((from, to)) = self.parts.last().copied().filter(|(from, to)| to - from > 1 && self.requests < REQUESTS_MAX) else {
            return false;
        };
        let middle = from + (to - from) / 2;
        self.parts.pop();
        // The earlier half is read first.
        self.parts.extend([(middle, to), (from, middle)]);
        true
    }

    /// The cursor at the next hour, without ids of hours before `ids_from`.
    pub(super) fn at_next_hour(mut self, ids_from: i64) -> Self {
        self.memory.ids = self.memory.ids.split_off(&ids_from);
        Self { hour: self.hour + 1, parts: vec![(0, HOUR_S)], last: self.last, memory: self.memory, ..Self::default() }
    }
}

/// Hours and their ids as a list of pairs, because the names of a JSON object are no numbers.
mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::Ids;

    pub(super) fn serialize<S: Serializer>(ids: &BTreeMap<i64, Ids>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(ids)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<i64, Ids>, D::Error> {
        Ok(Vec::<(i64, Ids)>::deserialize(deserializer)?.into_iter().collect())
    }
}

/// Ids as a short text, because a cursor is stored with every page: each as its distance from the one before, in base 36.
mod packed {
    use std::collections::BTreeSet;

    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

    pub(in super::super) fn serialize<S: Serializer>(ids: &BTreeSet<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        let (mut text, mut before) = (String::with_capacity(ids.len() * 3), 0);
        for id in ids {
            if !text.is_empty() {
                text.push('.');
            }
            push(&mut text, id - before);
            before = *id;
        }
        serializer.serialize_str(&text)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<u64>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let (mut ids, mut before) = (BTreeSet::new(), 0_u64);
        for distance in text.split('.').filter(|distance| !distance.is_empty()) {
            let distance = u64::from_str_radix(distance, 36).map_err(D::Error::custom)?;
            before = before.checked_add(distance).ok_or_else(|| D::Error::custom("an id is too large"))?;
            ids.insert(before);
        }
        Ok(ids)
    }

    fn push(text: &mut String, number: u64) {
        let (rest, digit) = (number / 36, number % 36);
        if rest > 0 {
            push(text, rest);
        }
        text.push(char::from(DIGITS[usize::try_from(digit).unwrap_or(0)]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that ids are read back from their short form, and that a damaged form is refused.
    #[test]
    fn ids_are_packed() {
        let ids = Ids([46_001_234, 46_001_235, 46_001_300, u64::MAX].into_iter().collect());
        let text = serde_json::to_string(&ids).unwrap();
        assert_eq!(text, "\"rdys2.1.1t.3w5e1125dehyj\"");
        assert_eq!(serde_json::from_str::<Ids>(&text).unwrap(), ids);
        assert_eq!(serde_json::from_str::<Ids>("\"\"").unwrap(), Ids::default());
        for bad in ["\"a.!\"", "\"3w5e11264sgsf.1\"", "7"] {
            assert!(serde_json::from_str::<Ids>(bad).is_err(), "{bad}");
        }
    }

    /// Proves that parts are halved until a second remains, the earlier half first, and that an hour has a limit of requests.
    #[test]
    fn parts_are_halved() {
        let mut cursor = Cursor::over(10, 11, Memory::default());
        assert!(cursor.divide());
        assert_eq!((cursor.range(), cursor.parts.clone()), (Some((36_000, 37_800)), vec![(1_800, 3_600), (0, 1_800)]));
        while cursor.divide() {}
        assert_eq!(cursor.range(), Some((36_000, 36_001)));
        let mut busy = Cursor { requests: REQUESTS_MAX, ..Cursor::over(10, 11, Memory::default()) };
        assert!(!busy.divide());
        assert_eq!(Cursor::over(12, 11, Memory::default()).range(), None);
    }
}
