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
    let mut wanted: Vec<Wanted<'_, 'a>> = words(&given).take(WORDS_MAX).filter_map(Wanted::new).collect();
    let first = given.get(..given.chars().next().map_or(0, char::len_utf8)).unwrap_or_default();
    // Values that begin like the text come first, so that they are compared whatever the number of values.
    let in_order = known.at_or_after(first).chain(known.before(first));
    let mut found: Vec<_> = in_order
        .take(VALUES_MAX)
        .filter_map(|value| {
            let (matched, distance) = likeness(&mut wanted, value)?;
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
fn likeness<'a>(wanted: &mut [Wanted<'_, 'a>], value: &'a str) -> Option<(usize, usize)> {
    let found = wanted.iter_mut().filter_map(|word| Some((word.chars, word.distance_in(value)?)));
    let (matched, distance, longest) =
        found.fold((0, 0, 0), |(matched, sum, longest), (chars, distance)| (matched + chars, sum + distance, longest.max(chars)));
    (longest >= MISSPELLED_CHARS_MIN).then_some((matched, distance))
}

/// A word of a text, and how far the spelling of others differs from it.
struct Wanted<'w, 'a> {
    word: &'w str,
    first: char,
    chars: usize,
    distances: HashMap<&'a str, Option<usize>>,
}

impl<'w, 'a> Wanted<'w, 'a> {
    fn new(word: &'w str) -> Option<Self> {
        Some(Self { word, first: word.chars().next()?, chars: word.chars().count(), distances: HashMap::new() })
    }

    /// How far the nearest word of a value differs; `None` if all differ too much.
    fn distance_in(&mut self, value: &'a str) -> Option<usize> {
        // To look for one letter takes much less time than to look at all words.
        let places = value.match_indices(self.first);
        places.filter_map(|(at, _)| word_with(value, at)).filter_map(|word| self.distance(word)).min()
    }

    /// The edit distance of a word, 0 if it begins with the wanted one; `None` if they differ too much.
    fn distance(&mut self, word: &'a str) -> Option<usize> {
        if word.starts_with(self.word) {
            return Some(0);
        }
        let max = if self.chars < MISSPELLED_CHARS_MIN { 0 } else { (self.chars / 3).max(1) };
        if self.chars.abs_diff(word.chars().count()) > max {
            return None;
        }
        let wanted = self.word;
        let compare = || Some(strsim::damerau_levenshtein(wanted, word)).filter(|distance| *distance <= max);
        *self.distances.entry(word).or_insert_with(compare)
    }
}

/// The word of a value whose first or second letter is at a place; `None` if the letter is behind those, so that the word is not compared.
fn word_with(value: &str, at: usize) -> Option<&str> {
    let mut before = value.get(..at)?.chars().rev().map_while(|c| c.is_alphanumeric().then_some(c.len_utf8())).fuse();
    let begin = at - before.next().unwrap_or(0);
    if before.next().is_some() { None } else { value.get(begin..).and_then(|rest| words(rest).next()) }
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

    /// Proves that a word is compared if its first or second letter begins the text, whatever is before the word, and no other word is.
    #[test]
    fn compared_words() {
        let known = set(&["l'\u{e9}cole nationale", "acmle corp", "macro acorn"]);
        for (given, found) in [("\u{e9}cole", &["l'\u{e9}cole nationale"][..]), ("camle", &["acmle corp"]), ("cro", &[]), ("zcamle", &[])] {
            assert_eq!(nearest_values(given, &known, 3), found, "{given}");
        }
        let places = [0, 1, 2, 4, 5].map(|at| word_with("abc de", at));
        assert_eq!(places, [Some("abc"), Some("abc"), None, Some("de"), Some("de")]);
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
