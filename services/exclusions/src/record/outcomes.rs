//! What became of contracts that ended, as it is counted: for each month how many contracts ended, by the score that they had 180 days before their end
//! and by their outcome.

use std::collections::BTreeMap;

use jiff::civil::Date;

/// The next award of the need went to the recipient of the contract, or to its parent's group.
pub const KEPT: &str = "kept";
/// The next awards of the need went to others.
pub const FLIP: &str = "flip";
/// THE LIST of the bands of scores: the first and the last score of each.
pub const BANDS: [(i32, i32); 5] = [(0, 19), (20, 39), (40, 59), (60, 79), (80, 100)];
/// A contract is scored so many days before its end.
pub const SCORED_DAYS: i64 = 180;
/// What the keys of counts begin with. The rest is the month.
const KEY: &str = "outcomes/";

/// The contracts of a month: a cell (see [`cell`]) to a number.
pub type Counts = BTreeMap<String, i64>;

/// The term of the index of counts. Its buckets are months.
#[must_use]
pub fn term() -> String {
    format!("{KEY}month")
}

/// The key of the counts of a month, `YYYY-MM`.
#[must_use]
pub fn key(month: &str) -> String {
    format!("{KEY}{month}")
}

/// The first day of the month of which a key has the counts; `None` for other keys.
#[must_use]
pub fn month_of(key: &str) -> Option<Date> {
    format!("{}-01", key.strip_prefix(KEY)?).parse().ok()
}

/// The cell of a score and an outcome: the first score of the band, and the outcome.
#[must_use]
pub fn cell(score: i32, outcome: &str) -> String {
    let band = BANDS.iter().rfind(|(first, _)| score >= *first).map_or(0, |(first, _)| *first);
    format!("{band}/{outcome}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the bands hold every score once, and how counts are found again.
    #[test]
    fn bands_and_keys() {
        assert_eq!(BANDS.iter().flat_map(|(first, last)| *first..=*last).collect::<Vec<_>>(), (0..=100).collect::<Vec<_>>());
        assert_eq!([0, 19, 20, 79, 100].map(|score| cell(score, FLIP)), ["0/flip", "0/flip", "20/flip", "60/flip", "80/flip"]);
        assert_eq!(month_of(&key("2025-03")), Some(Date::constant(2025, 3, 1)));
        assert_eq!((month_of("award/A1"), month_of("outcomes/x")), (None, None));
    }
}
