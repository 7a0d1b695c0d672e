//! Words that are no phrase by themselves: a data file (`data/words.json`).

use std::collections::HashSet;
use std::sync::LazyLock;

use texts::data_file::{DataFile, ShownFile, WordGroup};

/// The words of this version of the program.
pub static WORDS: LazyLock<DataFile<WordGroup>> = LazyLock::new(|| {
    // A file that does not parse is a bug in this crate. A test parses it, so that it is found before a release.
    DataFile::parse(include_str!("../data/words.json")).unwrap_or_default()
});

static STOP: LazyLock<HashSet<&'static str>> = LazyLock::new(|| of_groups(|name| name == "stop words"));
static BLOCKED: LazyLock<HashSet<&'static str>> = LazyLock::new(|| of_groups(|_| true));
/// The most words of an entry of the file.
static LONGEST: LazyLock<usize> = LazyLock::new(|| BLOCKED.iter().map(|entry| entry.split(' ').count()).max().unwrap_or(1));

fn of_groups(is_wanted: impl Fn(&str) -> bool) -> HashSet<&'static str> {
    WORDS.entries.iter().filter(|group| is_wanted(&group.name)).flat_map(|group| group.words.iter().map(String::as_str)).collect()
}

/// The data file as documents show it.
#[must_use]
pub fn shown() -> ShownFile {
    WORDS.shown("phrase_words")
}

/// Whether a word carries no meaning by itself.
#[must_use]
pub fn is_stop_word(word: &str) -> bool {
    STOP.contains(word)
}

/// Whether a phrase in its normal form consists of blocked entries and numbers alone. Such a phrase is counted, but has no label in the feed
/// and is never shown as rising.
#[must_use]
pub fn is_blocked(phrase: &str) -> bool {
    let words: Vec<&str> = phrase.split(' ').collect();
    let mut at = 0;
    while at < words.len() {
        let longest = (1..=(*LONGEST).min(words.len() - at)).rev();
        let covered = longest.into_iter().find(|length| BLOCKED.contains(words[at..at + length].join(" ").as_str()));
        match covered {
            Some(length) => at += length,
            None if is_number(words[at]) => at += 1,
            None => return false,
        }
    }
    true
}

/// Whether a word is a number, such as a year or `3.5`. One with more points is a name: an address (`1.1.1.1`) or a version.
fn is_number(word: &str) -> bool {
    let (whole, decimals) = word.split_once('.').unwrap_or((word, "0"));
    [whole, decimals].iter().all(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grams::normal;

    /// Proves that the data file keeps the rules of data files, and that every entry is in its normal form.
    #[test]
    fn the_file_is_valid() {
        let file: DataFile<WordGroup> = DataFile::parse(include_str!("../data/words.json")).unwrap();
        file.check().unwrap();
        for word in file.entries.iter().flat_map(|group| &group.words) {
            assert_eq!(&normal(word), word);
        }
    }

    /// Proves which phrases are no phrase by themselves.
    #[test]
    fn blocked_phrases() {
        for phrase in ["the", "of the", "show hn", "show hn the", "2026", "november 2026", "may 2026", "3.5", "who is hiring", "hn", "show"]
        {
            assert!(is_blocked(phrase), "{phrase}");
        }
        for phrase in ["agent", "show hn agent", "gpt 4", "the who band", "launch", "3d", "1.1.1.1", "17.4.1"] {
            assert!(!is_blocked(phrase), "{phrase}");
        }
        assert!(is_stop_word("the") && !is_stop_word("agent") && !is_stop_word("may"));
    }
}
