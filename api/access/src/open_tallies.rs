//! Counters of the answers that need no key: how many each address got in the current minute.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::subjects::Subject;

/// The most subjects of each kind, callers and networks in sites, that are counted at a time.
const SUBJECTS_MAX: usize = 100_000;
pub(crate) const MINUTE_MS: i64 = 60_000;

/// The answers of the current minute.
#[derive(Default)]
pub(crate) struct OpenTallies(Mutex<Minute>);

#[derive(Default)]
struct Minute {
    /// The number of the minute since 1970.
    number: i64,
    /// How many answers each caller got that shares no wider limit: IPv4 addresses and IPv6 /48s.
    widest: HashMap<String, i64>,
    /// How many answers each IPv6 /64 got. Apart, because one /48 has enough of them to fill a map.
    narrower: HashMap<String, i64>,
}

impl OpenTallies {
    /// Counts an answer for each of the subjects, the narrowest first, if all of them may have it; returns whether they may.
    pub(crate) fn count(&self, subjects: &[Subject], each_max: i64, now_ms: i64) -> bool {
        let Some((widest, narrower)) = subjects.split_last() else { return true };
        let mut minute = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = now_ms.div_euclid(MINUTE_MS);
        if minute.number != number {
            *minute = Minute { number, ..Minute::default() };
        }
        let is_within = |counts: &HashMap<String, i64>, (name, factor): &Subject| {
            counts.get(name).copied().unwrap_or(0) < each_max.saturating_mul(*factor)
        };
        // What is refused adds no subject.
        if !is_within(&minute.widest, widest) || !narrower.iter().all(|subject| is_within(&minute.narrower, subject)) {
            return false;
        }
        add(&mut minute.widest, widest);
        narrower.iter().for_each(|subject| add(&mut minute.narrower, subject));
        true
    }
}

/// Counts an answer for a subject.
fn add(counts: &mut HashMap<String, i64>, (name, _): &Subject) {
    // Who has so many addresses has as many limits anyway.
    if counts.len() >= SUBJECTS_MAX && !counts.contains_key(name) {
        counts.clear();
    }
    *counts.entry(name.clone()).or_default() += 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the limit is there again in the next minute, and that the number of subjects in memory is limited.
    #[test]
    fn minutes() {
        let tallies = OpenTallies::default();
        let count = |name: &str, now_ms| tallies.count(&[(name.to_owned(), 1)], 1, now_ms);
        assert!(count("a", 59_999) && !count("a", 59_999) && count("b", 59_999));
        assert!(count("a", 60_000) && !count("a", 119_999));
        for number in 0..2 * SUBJECTS_MAX {
            count(&number.to_string(), 60_000);
        }
        assert!(tallies.0.lock().unwrap().widest.len() <= SUBJECTS_MAX);
    }

    /// Proves that the networks of one site, however many, end no limit of others nor their own, and that refused answers need no memory.
    #[test]
    fn sites_are_counted_apart() {
        let tallies = OpenTallies::default();
        let now_ms = 60_000;
        let other = [("other".to_owned(), 1)];
        let sites_max = i64::try_from(SUBJECTS_MAX).unwrap() + 10;
        let of_site = |number: i64| tallies.count(&[(number.to_string(), 1), ("site".to_owned(), sites_max)], 1, now_ms);
        assert!(tallies.count(&other, 1, now_ms) && !tallies.count(&other, 1, now_ms));
        for number in 0..sites_max {
            assert!(of_site(number), "{number}");
        }
        let held = || {
            let minute = tallies.0.lock().unwrap();
            (minute.widest.len(), minute.narrower.len())
        };
        let before = held();
        assert!(before.1 <= SUBJECTS_MAX, "{before:?}");
        for number in sites_max..2 * sites_max {
            assert!(!of_site(number), "{number}");
        }
        assert_eq!(held(), before);
        assert!(!tallies.count(&other, 1, now_ms), "the limit of the other caller is still used up");
    }
}
