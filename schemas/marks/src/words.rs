//! Words that carry little of a mark's impression, and words of equal meaning: a data file (`data/words.json`).

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use texts::data_file::{DataFile, ShownFile, WordGroup};

/// The words of this version of the program.
pub static WORDS: LazyLock<DataFile<WordGroup>> = LazyLock::new(|| {
    // A file that does not parse is a bug in this crate. A test parses it, so that it is found before a release.
    DataFile::parse(include_str!("../data/words.json")).unwrap_or_default()
});

static DESCRIPTIVE: LazyLock<HashSet<&'static str>> = LazyLock::new(|| of_kind("descriptive: ").chain(of_kind("function words")).collect());
static FUNCTION: LazyLock<HashSet<&'static str>> = LazyLock::new(|| of_kind("function words").collect());
static EVERYDAY: LazyLock<HashSet<&'static str>> = LazyLock::new(|| of_kind("everyday words").collect());
static LEGAL: LazyLock<HashSet<&'static str>> = LazyLock::new(|| of_kind("legal words").collect());
static MEANINGS: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let groups = WORDS.entries.iter().filter_map(|group| Some((group.name.strip_prefix("meaning: ")?, group)));
    groups.flat_map(|(meaning, group)| group.words.iter().map(move |word| (word.as_str(), meaning))).collect()
});

fn of_kind(kind: &'static str) -> impl Iterator<Item = &'static str> {
    let groups = WORDS.entries.iter().filter(move |group| group.name.starts_with(kind));
    groups.flat_map(|group| group.words.iter().map(String::as_str))
}

/// The version of the data file of words.
#[must_use]
pub fn version() -> u32 {
    WORDS.version
}

/// The data file of words as documents show it.
#[must_use]
pub fn shown() -> ShownFile {
    WORDS.shown("words.json")
}

/// Whether a word in capitals describes goods, services or their quality, or has no meaning of its own.
pub(crate) fn is_descriptive(word: &str) -> bool {
    DESCRIPTIVE.contains(word)
}

/// Whether a word in capitals is one of everyday language, which many marks have and whose meaning is plain.
pub(crate) fn is_everyday(word: &str) -> bool {
    EVERYDAY.contains(word) || is_descriptive(word) || meaning(word).is_some()
}

/// Whether a word in capitals only joins others.
pub(crate) fn is_function_word(word: &str) -> bool {
    FUNCTION.contains(word)
}

/// Whether a word in capitals is the form of a company, or an article.
pub(crate) fn is_legal(word: &str) -> bool {
    LEGAL.contains(word)
}

/// The meaning of a word in capitals that the file knows.
pub(crate) fn meaning(word: &str) -> Option<&'static str> {
    MEANINGS.get(word).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the file obeys the rules of data files, that it has at least 400 descriptive words, each in one group, and that no word has
    /// two meanings.
    #[test]
    fn the_file_is_sound() {
        assert_eq!(WORDS.check(), Ok(()));
        let descriptive: Vec<&str> = of_kind("descriptive: ").collect();
        assert!(descriptive.len() >= 400 && descriptive.iter().collect::<HashSet<_>>().len() == descriptive.len());
        let meanings: Vec<&str> = of_kind("meaning: ").collect();
        assert!(meanings.len() == MEANINGS.len() && meanings.len() > 200);
        let everyday: Vec<&str> = of_kind("everyday words").collect();
        assert!(everyday.len() >= 400 && everyday.iter().all(|word| !is_descriptive(word)), "a word is in one of the groups");
        let is_plain = |word: &String| word.bytes().all(|byte| byte.is_ascii_uppercase());
        assert!(WORDS.entries.iter().flat_map(|group| &group.words).all(is_plain));
        let legal: Vec<&str> = of_kind("legal words").collect();
        assert_eq!(legal, ["CO", "COMPANY", "CORP", "CORPORATION", "INC", "LIMITED", "LLC", "LLP", "LTD", "PLC", "THE"]);
    }
}
