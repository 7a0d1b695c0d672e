//! Words of street addresses and their standard abbreviations: a data file (`data/street_words.json`).

use std::collections::HashMap;
use std::sync::LazyLock;

use texts::data_file::{DataFile, ShownFile, WordGroup};

static WORDS: LazyLock<DataFile<WordGroup>> = LazyLock::new(|| {
    // A file that does not parse is a bug in this crate. A test parses it, so that it is found before a release.
    DataFile::parse(include_str!("../data/street_words.json")).unwrap_or_default()
});

/// What a word is in an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// The end of a street's name (`STREET`).
    Suffix,
    /// A direction (`EAST`).
    Direction,
    /// A part of a building that has a number (`SUITE`).
    NumberedUnit,
    /// A part of a building without a number (`BASEMENT`).
    Unit,
    /// A house number that is spelled (`ONE`).
    HouseNumber,
    /// An ordinal number in a street's name (`FIFTH`).
    Ordinal,
    /// Another word of streets' names (`SAINT`).
    StreetName,
}

static BY_WORD: LazyLock<HashMap<(Kind, &'static str), &'static str>> = LazyLock::new(|| {
    let entries = WORDS.entries.iter().filter_map(|group| Some((kind(group)?, group)));
    entries.flat_map(|((kind, short), group)| group.words.iter().map(move |word| ((kind, word.as_str()), short))).collect()
});

/// The kind and the abbreviation that the name of a group gives: `suffix: ST`.
fn kind(group: &'static WordGroup) -> Option<(Kind, &'static str)> {
    let (kind, short) = group.name.split_once(": ")?;
    let kind = match kind {
        "suffix" => Kind::Suffix,
        "direction" => Kind::Direction,
        "unit with number" => Kind::NumberedUnit,
        "unit without number" => Kind::Unit,
        "house number" => Kind::HouseNumber,
        "ordinal" => Kind::Ordinal,
        "street name" => Kind::StreetName,
        _ => return None,
    };
    Some((kind, short))
}

/// Returns the version of the data file of street words.
pub(crate) fn version() -> u32 {
    WORDS.version
}

/// Returns the data file of street words as documents show it.
#[must_use]
pub fn shown() -> ShownFile {
    WORDS.shown("street_words.json")
}

/// Returns the standard abbreviation of a word in capitals, if it can be of that kind.
pub(crate) fn standard(kind: Kind, word: &str) -> Option<&'static str> {
    BY_WORD.get(&(kind, word)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the file obeys the rules of data files, that each group has a known kind, and that no word has two abbreviations in one kind.
    #[test]
    fn the_file_is_sound() {
        assert_eq!(WORDS.check(), Ok(()));
        assert!(version() > 0);
        assert!(WORDS.entries.iter().all(|group| kind(group).is_some() && !group.words.is_empty()));
        assert_eq!(
            WORDS.entries.iter().map(|group| group.words.len()).sum::<usize>(),
            BY_WORD.len(),
            "a word has one abbreviation of a kind"
        );
        assert!(
            WORDS
                .entries
                .iter()
                .flat_map(|group| &group.words)
                .all(|word| word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit()))
        );
        let suffixes = WORDS.entries.iter().filter(|group| group.name.starts_with("suffix: ")).count();
        assert!(suffixes > 190, "{suffixes} suffixes");
        assert_eq!(
            [standard(Kind::Suffix, "STREET"), standard(Kind::Direction, "NORTHEAST"), standard(Kind::Suffix, "CARTER")],
            [Some("ST"), Some("NE"), None]
        );
    }
}
