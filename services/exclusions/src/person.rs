//! Whether two names are of one person: only if they are the same whole name. Half a name, an initial for a name, a nickname or a similar name
//! never match, since a person who is taken for another is harmed.

use texts::company_names::{NAME_CHARS_MAX, all_words};

/// Titles before a name; they are not compared.
const TITLES: &[&str] = &["CAPT", "DR", "HON", "MISS", "MR", "MRS", "MS", "PROF", "REV", "SIR"];
/// Suffixes after a name: a father and his son differ by them.
const SUFFIXES: &[(&str, &str)] = &[
    ("II", "II"),
    ("III", "III"),
    ("IV", "IV"),
    ("JNR", "JR"),
    ("JR", "JR"),
    ("JUNIOR", "JR"),
    ("SENIOR", "SR"),
    ("SNR", "SR"),
    ("SR", "SR"),
    ("V", "V"),
];
/// The fewest words of a whole name.
const WORDS_MIN: usize = 2;
/// The most words of a name; one with more is none.
const WORDS_MAX: usize = 20;

/// The whole name of a person, as it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PersonName {
    /// Given names and surname in capitals, in this order.
    words: Vec<String>,
    /// `""` or the suffix in its usual abbreviation.
    suffix: &'static str,
}

impl PersonName {
    /// Reads a whole name: `Dr. John A. Smith Jr.`, or with the surname before a comma: `SMITH, JOHN A`. `None` if it is no whole name: fewer than
    /// two words without titles and suffix, more than 300 characters or more than 20 words.
    pub(crate) fn new(name: &str) -> Option<Self> {
        if name.chars().nth(NAME_CHARS_MAX).is_some() {
            return None;
        }
        let (before, after) = name.split_once(',').unwrap_or((name, ""));
        let (before, mut after) = (all_words(before), all_words(after));
        // What is after the comma is a suffix (`John Smith, Jr.`), or the given names.
        if after.iter().all(|word| suffix(word).is_some()) {
            return Self::of_words(before, after);
        }
        let suffixes =
            after.iter().position(|word| suffix(word).is_some() && word != "V").map(|at| after.split_off(at)).unwrap_or_default();
        Self::of_words([after, before].concat(), suffixes)
    }

    /// Reads a name of which the parts are known; each may be empty.
    pub(crate) fn from_parts(first: &str, middle: &str, last: &str, suffix: &str) -> Option<Self> {
        let has_both = !all_words(first).is_empty() && !all_words(last).is_empty();
        let is_short = [first, middle, last, suffix].iter().all(|part| part.chars().nth(NAME_CHARS_MAX).is_none());
        if !has_both || !is_short {
            return None;
        }
        Self::of_words([first, middle, last].iter().flat_map(|part| all_words(part)).collect(), all_words(suffix))
    }

    fn of_words(mut words: Vec<String>, suffixes: Vec<String>) -> Option<Self> {
        let titles = words.iter().take_while(|word| TITLES.contains(&word.as_str())).count();
        words.drain(..titles);
        let mut found: Option<&'static str> = None;
        for word in &suffixes {
            // An unknown suffix is a part of the name that is compared.
            match suffix(word).filter(|_| found.is_none()) {
                Some(known) => found = Some(known),
                None => words.push(word.clone()),
            }
        }
        if found.is_none() && words.len() > WORDS_MIN {
            found = words.last().and_then(|word| suffix(word));
            words.truncate(words.len() - usize::from(found.is_some()));
        }
        (WORDS_MIN..=WORDS_MAX).contains(&words.len()).then(|| Self { words, suffix: found.unwrap_or_default() })
    }

    /// The key by which a whole name is found; two names match if and only if their keys are equal.
    pub(crate) fn key(&self) -> String {
        if self.suffix.is_empty() { self.words.join(" ") } else { format!("{}, {}", self.words.join(" "), self.suffix) }
    }
}

fn suffix(word: &str) -> Option<&'static str> {
    SUFFIXES.iter().find(|(known, _)| *known == word).map(|(_, suffix)| *suffix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Option<String> {
        PersonName::new(name).map(|name| name.key())
    }

    /// Proves that spellings of one whole name match: case, accents, signs, titles, the surname before a comma, the suffix.
    #[test]
    fn same_names() {
        for (one, other) in [
            ("John A. Smith", "JOHN A SMITH"),
            ("Smith, John A", "JOHN A SMITH"),
            ("Dr. José Núñez", "JOSE NUNEZ"),
            ("John Smith, Jr.", "JOHN SMITH JR"),
            ("Smith, John, Jr", "John Smith Junior"),
            ("Mary O'Neill", "MARY ONEILL"),
        ] {
            let (one, other) = (PersonName::new(one).unwrap(), PersonName::new(other).unwrap());
            assert_eq!(one, other);
        }
        assert_eq!(PersonName::from_parts("John", "A", "Smith", "Jr"), PersonName::new("JOHN A. SMITH, JR."));
        assert_eq!(PersonName::from_parts("John", "", "Smith", ""), PersonName::new("Smith, John"));
    }

    /// Proves that other names do not match: half a name, initials, the order of names, a missing middle name, father and son, similar letters.
    #[test]
    fn other_names() {
        for (one, other) in [
            ("John A Smith", "John Smith"),
            ("John Smith", "J Smith"),
            ("James Thomas", "Thomas James"),
            ("John Smith Jr", "John Smith"),
            ("John Smith Jr", "John Smith Sr"),
            ("John Smith", "Jon Smith"),
            ("Henry V Smith", "Henry Smith V"),
        ] {
            assert_ne!(key(one), key(other), "{one} and {other}");
            assert!(key(one).is_some() && key(other).is_some());
        }
        for half in [
            "",
            "Smith",
            "Mr Smith",
            "Smith, Jr",
            "  ,  ",
            "Dr.",
            &"a ".repeat(10_000),
            &"a ".repeat(21),
            &format!("a{} b", "\u{301}".repeat(10_000)),
        ] {
            assert_eq!(key(half), None, "half a name, or none");
        }
        assert_eq!(PersonName::from_parts("", "John", "Smith", ""), None);
        assert_eq!(PersonName::from_parts("John", "", "", "Jr"), None);
    }
}
