//! Free texts of public records in which the name of a person can stand: what a permit is for, and an entry of a docket. Words that are not usual in such texts
//! are shown as their initials, so that no name has to be recognised: `REMODEL KITCHEN FOR J. S.`.
//!
//! A word that is usual and also a family name, such as `WOOD`, is shown as its initial next to one that is not usual, and after a word for a person.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::data_file::{DataFile, ShownFile, WordGroup};

/// The most letters next to digits that are shown: `2ND`, `100AMP`.
const LETTERS_WITH_DIGITS_MAX: usize = 4;

/// The words of this version of the program.
static WORDS: LazyLock<DataFile<WordGroup>> = LazyLock::new(|| {
    // A file that does not parse is a bug in this crate. A test parses it, so that it is found before a release.
    DataFile::parse(include_str!("../data/usual_words.json")).unwrap_or_default()
});
static WORK: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let verbs = group("work verbs").iter().flat_map(|verb| {
        let stem = verb.strip_suffix('e').unwrap_or(verb);
        [verb.clone(), format!("{verb}s"), format!("{stem}ed"), format!("{stem}ing")]
    });
    let nouns = group("work nouns").iter().flat_map(|noun| [noun.clone(), format!("{noun}s")]);
    verbs.chain(nouns).chain(group("common").iter().cloned()).collect()
});
static ENTRY: LazyLock<HashSet<String>> = LazyLock::new(|| group("common").iter().chain(group("docket")).cloned().collect());
static NAMES_TOO: LazyLock<HashSet<String>> = LazyLock::new(|| group("names too").iter().cloned().collect());
static PERSONS: LazyLock<HashSet<String>> = LazyLock::new(|| group("persons").iter().cloned().collect());

/// The data file of usual words as documents show it.
#[must_use]
pub fn shown_words() -> ShownFile {
    WORDS.shown("usual_words")
}

/// The words of a group; none if the file has no such group.
fn group(name: &str) -> &'static [String] {
    WORDS.entries.iter().find(|group| group.name == name).map_or(&[][..], |group| group.words.as_slice())
}

/// A part of a text: a word, or the characters between two words.
struct Part<'t> {
    text: &'t str,
    is_word: bool,
    is_hidden: bool,
}

/// What a permit is for, without names of persons.
#[must_use]
pub fn masked_work(text: &str) -> String {
    masked(text, &WORK)
}

/// An entry of a docket, without names of persons.
#[must_use]
pub fn masked_entry(text: &str) -> String {
    masked(text, &ENTRY)
}

fn masked(text: &str, usual: &HashSet<String>) -> String {
    let mut parts = parts(text);
    for part in parts.iter_mut().filter(|part| part.is_word) {
        part.is_hidden = !is_shown(part.text, usual);
    }
    // The words and whether they are hidden by themselves: one that is hidden next to another hides no third one.
    let words: Vec<(usize, bool)> = (0..parts.len()).filter(|at| parts[*at].is_word).map(|at| (at, parts[at].is_hidden)).collect();
    let mut is_name_of_person = false;
    for (place, (at, _)) in words.iter().enumerate() {
        let before = place.checked_sub(1).and_then(|place| words.get(place));
        let is_next_to_name = [before, words.get(place + 1)].into_iter().flatten().any(|(_, is_hidden)| *is_hidden);
        // A name of several usual words after a word for a person is hidden as a whole, up to the next sign: `OWNER WOOD HALL`.
        let is_same_name = is_name_of_person && parts.get(at - 1).is_some_and(|between| between.text.trim().is_empty());
        is_name_of_person = is_same_name || before.is_some_and(|(before, _)| is_one_of(&PERSONS, parts[*before].text));
        is_name_of_person &= is_one_of(&NAMES_TOO, parts[*at].text);
        if is_name_of_person || (is_next_to_name && is_one_of(&NAMES_TOO, parts[*at].text)) {
            parts[*at].is_hidden = true;
        }
    }
    let mut out = String::with_capacity(text.len());
    for (at, part) in parts.iter().enumerate() {
        match part.text.chars().next().filter(|_| part.is_hidden) {
            Some(initial) => {
                out.extend(initial.to_uppercase());
                let has_point = parts.get(at + 1).is_some_and(|next| next.text.starts_with('.'));
                out.push_str(if has_point { "" } else { "." });
            }
            None => out.push_str(part.text),
        }
    }
    out
}

/// Splits a text into words and the characters between them.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    let mut start = 0;
    for (at, letter) in text.char_indices() {
        let (end, is_word) = (at + letter.len_utf8(), letter.is_alphanumeric());
        if parts.last().is_none_or(|last| last.is_word != is_word) {
            start = at;
            parts.push(Part { text: "", is_word, is_hidden: false });
        }
        if let Some(last) = parts.last_mut() {
            last.text = text.get(start..end).unwrap_or_default();
        }
    }
    parts
}

/// Whether a word is shown: it is usual, one letter, or has digits and few letters.
fn is_shown(word: &str, usual: &HashSet<String>) -> bool {
    let letters = word.chars().filter(|letter| !letter.is_ascii_digit()).count();
    let has_digit = letters < word.chars().count();
    letters <= 1 || (has_digit && letters <= LETTERS_WITH_DIGITS_MAX) || usual.contains(&word.to_lowercase())
}

/// Whether a group has a word, or the word without a plural `s`.
fn is_one_of(group: &HashSet<String>, word: &str) -> bool {
    let word = word.to_lowercase();
    group.contains(&word) || word.strip_suffix('s').is_some_and(|singular| group.contains(singular))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the file obeys the rules of data files, and has every group.
    #[test]
    fn the_file_is_sound() {
        assert_eq!(WORDS.check(), Ok(()));
        for name in ["common", "docket", "names too", "persons", "work nouns", "work verbs"] {
            assert!(!group(name).is_empty(), "{name}");
        }
        assert!(WORDS.entries.iter().flat_map(|group| &group.words).all(|word| *word == word.to_lowercase()));
    }

    /// Proves that texts without names stay as they are, and that names are shown as initials wherever they stand.
    #[test]
    fn works() {
        for text in [
            "ERECT 3 STORY BUILDING",
            "ERECT 4 STORY MIXED USE BUILDING CONTACT",
            "CALL FOR ACCESS",
            "Interior remodeling of existing 2nd floor apartment, per plans; no structural changes.",
            "25 X 100 LOT, 2026 CODE, PERMIT 100987654",
            "Replace 100amp panel & wiring; install new HVAC (RTU-1)",
            "REAR WOOD PORCH REPAIR",
            "",
        ] {
            assert_eq!(masked_work(text), text);
        }
        for (text, expected) in [
            ("REMODEL KITCHEN FOR JOHN SMITH", "REMODEL KITCHEN FOR J. S."),
            ("OWNER: Mary-Ann O'Neil. New deck", "OWNER: M.-A. O'N. New deck"),
            ("SMITH RESIDENCE - NEW PORCH", "S. RESIDENCE - NEW PORCH"),
            ("NGUYEN, THI; GARAGE", "N., T.; GARAGE"),
            ("HOMEOWNER PATRICIA WOOD, WOOD DECK", "HOMEOWNER P. W., WOOD DECK"),
            ("OWNER HALL", "OWNER H."),
            ("OWNER WOOD HALL, WALL REPAIR", "OWNER W. H., WALL REPAIR"),
            ("TENANT: WEST STONE GREEN - NEW ROOF", "TENANT: W. S. G. - NEW ROOF"),
            ("JOHN NORTH GARAGE", "J. N. GARAGE"),
            ("R\u{c9}MY DAY, LOUISE CRANE", "R. D., L. C."),
            ("Zo\u{eb} basement", "Z. basement"),
        ] {
            assert_eq!(masked_work(text), expected);
            assert_eq!(masked_work(expected), expected, "what is masked stays as it is");
        }
    }

    /// Proves that the entries of dockets that decide stay as they are, and that names in others are shown as initials.
    #[test]
    fn entries() {
        for text in [
            "Satisfied as to School ONLY",
            "Partial Exoneration - Tax Lien",
            "Lien Entered in Error by Filer",
            "Tax Lien Strike-off",
            "Suggestion of Bankruptcy",
            "Correction to Judgment Index",
            "Motion & Order",
            "Mail Returned",
            "Praecipe to Satisfy",
            "Satisfaction of Lien",
        ] {
            assert_eq!(masked_entry(text), text);
        }
        assert_eq!(masked_entry("Suggestion of Bankruptcy - John Kowalski"), "Suggestion of Bankruptcy - J. K.");
        assert_eq!(masked_entry("Mail Returned: SMITH, JOHN Q."), "Mail Returned: S., J. Q.");
    }
}
