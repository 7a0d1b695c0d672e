//! The recorded values that are nearest to a value that nothing has: names by their words, codes by their letters.
//!
//! Values and texts are compared in lower case. The work is bounded: at most [`VALUES_MAX`] values are compared, each word of them once.

use std::cmp::Reverse;
use std::collections::HashMap;

use schemas::names::MAX_COMPARED_CHARS;

use crate::sorted_values::SortedValues;

/// The most values that are compared with a text.
pub const VALUES_MAX: usize = 50_000;
/// The most words of a text that are compared.
const WORDS_MAX: usize = 8;
/// The shortest word for which a misspelled one is taken, in characters.
const MISSPELLED_CHARS_MIN: usize = 3;

/// Returns the values nearest to a text, the nearest first: those that have most of its words, spelled alike. Without one, those that begin as the
/// text does. `max` limits their number. None for a text of more than [`MAX_COMPARED_CHARS`].
#[must_use]
pub fn nearest_values<'a>(given: &str, known: &'a SortedValues, max: usize) -> Vec<&'a str> {
    if given.len() > 4 * MAX_COMPARED_CHARS || given.chars().count() > MAX_COMPARED_CHARS {
        return Vec::new();
    }
    let given = given.trim().to_lowercase();
    let wanted: Vec<&str> = words(&given).take(WORDS_MAX).collect();
    let first = given.get(..given.chars().next().map_or(0, char::len_utf8)).unwrap_or_default();
    let mut distances = HashMap::new();
    // Values that begin like the text come first, so that they are compared whatever the number of values.
    let in_order = known.at_or_after(first).chain(known.before(first));
    let mut found: Vec<_> = in_order
        .take(VALUES_MAX)
        .filter_map(|value| {
            let (matched, distance) = likeness(&wanted, value, &mut distances)?;
            Some((Reverse(matched), distance, value.chars().count(), value))
        })
        .collect();
    found.sort_unstable();
    found.truncate(max);
    if found.is_empty() { same_beginning(&given, known, max) } else { found.into_iter().map(|(.., value)| value).collect() }
}

/// Returns the values before and after a text in their order.
#[must_use]
pub fn neighbours<'a>(given: &str, known: &'a SortedValues) -> Vec<&'a str> {
    let given = given.trim().to_lowercase();
    known.before(&given).next_back().into_iter().chain(known.at_or_after(&given).next()).collect()
}

/// How many characters of the wanted words a value has, and how far their spelling differs; `None` if it has none of them.
fn likeness<'a>(wanted: &[&str], value: &'a str, distances: &mut HashMap<&'a str, Vec<Option<usize>>>) -> Option<(usize, usize)> {
    let mut best: Vec<Option<usize>> = vec![None; wanted.len()];
    for word in words(value) {
        let of_word = distances.entry(word).or_insert_with(|| wanted.iter().map(|wanted| distance(wanted, word)).collect());
        for (best, distance) in best.iter_mut().zip(of_word) {
            *best = match (*best, *distance) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
    }
    let found = wanted.iter().zip(best).filter_map(|(word, distance)| Some((word.chars().count(), distance?)));
    let (matched, distance, longest) =
        found.fold((0, 0, 0), |(matched, sum, longest), (chars, distance)| (matched + chars, sum + distance, longest.max(chars)));
    (longest >= MISSPELLED_CHARS_MIN).then_some((matched, distance))
}

/// The edit distance of two words, 0 if the second begins with the first; `None` if they differ too much. A word whose first two letters both
/// differ is not compared.
fn distance(wanted: &str, word: &str) -> Option<usize> {
    if word.starts_with(wanted) {
        return Some(0);
    }
    let (wanted_chars, word_chars) = (wanted.chars().count(), word.chars().count());
    let max = if wanted_chars < MISSPELLED_CHARS_MIN { 0 } else { (wanted_chars / 3).max(1) };
    let mut letters = word.chars();
    let begins_alike = wanted.chars().next().is_some_and(|first| letters.next() == Some(first) || letters.next() == Some(first));
    if !begins_alike || wanted_chars.abs_diff(word_chars) > max {
        return None;
    }
    Some(strsim::damerau_levenshtein(wanted, word)).filter(|distance| *distance <= max)
}

/// The values that share the longest beginning with a text, at least half of it.
fn same_beginning<'a>(given: &str, known: &'a SortedValues, max: usize) -> Vec<&'a str> {
    let ends: Vec<usize> = given.char_indices().map(|(at, c)| at + c.len_utf8()).collect();
    let least = ends.len().div_ceil(2).max(1);
    for end in ends.iter().skip(least - 1).rev() {
        let beginning = given.get(..*end).unwrap_or_default();
        let found: Vec<&str> = known.at_or_after(beginning).take_while(|value| value.starts_with(beginning)).take(max).collect();
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

/// The words of a text: runs of letters and digits.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(values: &[&str]) -> SortedValues {
        values.iter().map(|value| (*value).to_owned()).collect()
    }

    /// Proves that misspelled, incomplete and reordered names find the intended one first, and that an unrelated text finds none.
    #[test]
    fn names() {
        let known = set(&["university of texas austin", "university of utah", "rice university", "pfizer inc", "lockheed martin corp"]);
        for (given, first) in [
            ("Univeristy of Texas", Some("university of texas austin")),
            ("texas university", Some("university of texas austin")),
            ("University of Atlantis Utah", Some("university of utah")),
            ("pfzier", Some("pfizer inc")),
            ("lokheed", Some("lockheed martin corp")),
            ("qqqqx", None),
            ("of", None),
            ("", None),
        ] {
            assert_eq!(nearest_values(given, &known, 3).first().copied(), first, "{given}");
        }
        assert_eq!(nearest_values("univrsity", &known, 2).len(), 2);
        assert_eq!(nearest_values(&"univrsity ".repeat(7), &known, 2), Vec::<&str>::new(), "too long to be compared");
    }

    /// Proves that codes find codes that differ in a letter or begin alike, and else those before and after them.
    #[test]
    fn codes() {
        let known = set(&["541511", "541512", "928110", "aapl", "nci", "nei", "r01"]);
        assert_eq!(nearest_values("AAPLE", &known, 3), ["aapl"]);
        assert_eq!(nearest_values("5499", &known, 3), ["541511", "541512"]);
        assert_eq!(nearest_values("nc", &known, 3), ["nci"]);
        assert_eq!(nearest_values("zz", &known, 3), Vec::<&str>::new());
        assert_eq!((neighbours("99", &known), neighbours("zz", &known)), (vec!["928110", "aapl"], vec!["r01"]));
    }

    /// Proves that a value that begins like the text is compared, however many values there are.
    #[test]
    fn many_values() {
        let known: SortedValues = (0..VALUES_MAX + 10).map(|n| format!("a{n}")).chain(["zebra holdings".to_owned()]).collect();
        assert_eq!(nearest_values("zebar", &known, 3), ["zebra holdings"]);
    }
}
