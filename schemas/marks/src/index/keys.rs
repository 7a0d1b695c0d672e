//! The keys by which candidates are found: if a rule makes two marks alike, then the mark is stored under a key of that rule that the name asks for.
//! So a candidate is compared only by the rules of the keys that found it.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::near_keys;
use crate::consonants;
use crate::mark::Mark;
use crate::rules::{self, Rule, RuleSet};

/// The kinds of keys. Each is a seed of the hash, so that keys of two kinds do not meet.
#[derive(Clone, Copy)]
enum Kind {
    Compact,
    Spelled,
    Whole,
    Sorted,
    ShortLeftOut,
    FirstHalf,
    LastHalf,
    Piece,
    Key,
    FirstFour,
    Stems,
    Written,
    WrittenBeginning,
    Distinctive,
    DistinctivePart,
    Joined,
    Words,
    WordsPart,
    LongPart,
    WordKey,
    Gram,
    Primary,
    PrimaryBeginning,
    TinyLeftOut,
    WordBeginning,
    Skeleton,
    Ending,
    Beginning,
    Pair,
    ShortWord,
    Meaning,
    Rhyme,
}

impl Kind {
    /// The rules whose marks are found by keys of this kind. `E1`, `S2` and `S3` are tried for every candidate.
    const fn rules(self) -> RuleSet {
        RuleSet::of(match self {
            Self::Compact => &[Rule::E1, Rule::E2],
            Self::Spelled => &[Rule::E1, Rule::S2, Rule::P3],
            Self::Whole => &[Rule::S2],
            Self::Sorted => &[Rule::S1],
            Self::ShortLeftOut | Self::FirstHalf | Self::LastHalf | Self::Piece => &[Rule::S3, Rule::P16],
            Self::Key => &[Rule::S4, Rule::P16],
            Self::FirstFour => &[Rule::S6, Rule::P16],
            Self::Stems => &[Rule::S7],
            Self::Written => &[Rule::S5, Rule::S8],
            Self::WrittenBeginning => &[Rule::S8],
            Self::Distinctive => &[Rule::S5, Rule::S8, Rule::S9, Rule::S11, Rule::P1],
            Self::DistinctivePart => &[Rule::S9],
            Self::Joined => &[Rule::S11],
            Self::Words | Self::WordsPart => &[Rule::P1],
            Self::LongPart => &[Rule::S11, Rule::P1, Rule::P2, Rule::P15],
            Self::WordKey => &[Rule::P4],
            Self::Gram => &[Rule::P3],
            Self::Primary | Self::PrimaryBeginning => &[Rule::P5],
            Self::TinyLeftOut => &[Rule::P6],
            Self::WordBeginning => &[Rule::P7],
            Self::Skeleton => &[Rule::S14, Rule::P8],
            Self::Ending => &[Rule::P9],
            Self::Beginning => &[Rule::P14],
            Self::Pair => &[Rule::P10],
            Self::ShortWord => &[Rule::P1, Rule::P11],
            Self::Meaning => &[Rule::S13, Rule::P12],
            Self::Rhyme => &[Rule::S15, Rule::P13],
        })
    }
}

/// A key, and the rules whose marks it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) hash: u64,
    pub(super) rules: RuleSet,
}

/// The rules of the keys of [`near_keys`].
pub(super) const NEAR: RuleSet = Kind::FirstFour.rules();

/// The rule `P4`, whose marks exact lists have. It finds more marks than any other rule, and to compute the sounds of each would take most of a check.
pub(super) const LISTED: RuleSet = Kind::WordKey.rules();
/// The rule `P5`. The index has first Double Metaphone keys in their order, so that those of the marks that it finds need not be computed.
pub(super) const PRIMARY: RuleSet = Kind::Primary.rules();
/// The sets of rules that are known to hold for the rows of lists.
pub(super) const KNOWN: [RuleSet; 2] = [LISTED, PRIMARY];
/// The letters of the shorter first Double Metaphone key from which on rule `P5` holds.
pub(super) const PRIMARY_LETTERS_MIN: usize = 4;

/// The longest row of words that is stored as a part of a mark; a longer name is found by its first words.
const ROW_WORDS_MAX: usize = 3;
/// The letters of the beginnings of a Double Metaphone key under which a watch finds a mark, for names whose key is one of them or a little longer.
const PRIMARY_BEGINNINGS: [usize; 3] = [4, 5, 6];
/// The letters of a mark from which on it is stored in three pieces, not in halves from which a letter was left out.
const PIECES_LETTERS_MIN: usize = 18;

fn key(kind: Kind, text: &str) -> Key {
    Key { hash: xxh3_64_with_seed(text.as_bytes(), kind as u64), rules: kind.rules() }
}

fn half_key(kind: Kind, length: usize, text: &[char]) -> Key {
    let hash = xxh3_64_with_seed(String::from_iter(text).as_bytes(), kind as u64 + 256 * length as u64);
    Key { hash, rules: kind.rules() }
}

/// The text, and what remains when one character is left out.
fn left_out(text: &[char]) -> impl Iterator<Item = Vec<char>> {
    let without = move |at: usize| text.iter().enumerate().filter(|(index, _)| *index != at).map(|(_, c)| *c).collect();
    std::iter::once(text.to_vec()).chain((0..text.len()).map(without))
}

/// The three pieces of a text with so many letters.
fn pieces(length: usize) -> [std::ops::Range<usize>; 3] {
    let (first, second) = (length / 3, length * 2 / 3);
    [0..first, first..second, second..length]
}

fn piece_key(piece: usize, length: usize, text: &[char]) -> Key {
    half_key(Kind::Piece, length * 3 + piece, text)
}

/// The keys of pieces by which a name finds marks of so many letters.
///
/// Two edits leave one of three pieces as it is, moved by at most two letters, unless an edit swaps the two letters around the end of a piece. Then
/// the first piece is as it is but for its last letter, or the last piece but for its first one: that letter is the one beyond the end.
fn asked_pieces(letters: &[char], length: usize, out: &mut Vec<Key>) {
    for (piece, range) in pieces(length).into_iter().enumerate() {
        for shift in 0..=4 {
            let moved = |at: usize| (at + shift).checked_sub(2);
            let (Some(start), Some(end)) = (moved(range.start), moved(range.end)) else { continue };
            let Some(text) = letters.get(start..end) else { continue };
            out.push(piece_key(piece, length, text));
            let mut swapped = text.to_vec();
            let (place, beyond) = match piece {
                0 => (swapped.last_mut(), letters.get(end)),
                2 => (swapped.first_mut(), start.checked_sub(1).and_then(|before| letters.get(before))),
                _ => (None, None),
            };
            if let (Some(place), Some(beyond)) = (place, beyond) {
                *place = *beyond;
                out.push(piece_key(piece, length, &swapped));
            }
        }
    }
}

/// Rows of words in a list.
fn rows<'a>(words: &'a [&'a str]) -> impl Iterator<Item = &'a [&'a str]> {
    (1..=words.len()).flat_map(|count| words.windows(count))
}

/// Keys that a name asks for and a mark is stored under alike.
fn shared(mark: &Mark, out: &mut Vec<Key>) {
    if mark.tokens().len() > 1 {
        let mut tokens: Vec<&str> = mark.tokens().iter().map(String::as_str).collect();
        tokens.sort_unstable();
        out.push(key(Kind::Sorted, &tokens.join(" ")));
    }
    let letters: Vec<char> = mark.spelled().chars().collect();
    if (5..=9).contains(&letters.len()) {
        out.extend(left_out(&letters).map(|text| key(Kind::ShortLeftOut, &String::from_iter(text))));
    }
    if !mark.is_latin() {
        return;
    }
    out.extend(mark.whole_keys().iter().filter(|text| text.len() >= 2).map(|text| key(Kind::Key, text)));
    if letters.len() >= 7 {
        out.extend(mark.spelled().get(..4).map(|text| key(Kind::FirstFour, text)));
    }
    let stems = mark.stems();
    if stems.len() >= 2 {
        out.push(key(Kind::Stems, &stems.join(" ")));
    }
    skeletons(mark, out);
    out.extend(rules::long_parts(mark).map(|text| key(Kind::LongPart, text)));
    if (3..=4).contains(&letters.len()) {
        out.extend(left_out(&letters).map(|text| key(Kind::TinyLeftOut, &String::from_iter(text))));
    }
    out.extend(rules::word_beginnings(mark).map(|text| key(Kind::WordBeginning, text)));
    out.extend(rules::ending(mark).map(|text| key(Kind::Ending, text)));
    out.extend(mark.spelled().get(..5).map(|text| key(Kind::Beginning, text)));
    let words = rules::first_words(mark);
    for (at, word) in words.iter().enumerate() {
        out.extend(words.iter().skip(at + 1).map(|other| key(Kind::Pair, &format!("{word} {other}"))));
    }
    out.extend(rules::short_words(mark).map(|text| key(Kind::ShortWord, text)));
    out.extend(mark.meanings().iter().map(|text| key(Kind::Meaning, text)));
    out.extend(rules::rhyme(mark).map(|text| key(Kind::Rhyme, &text)));
}

/// The keys of the skeleton, for the consonants of rules `S14` and `P8`.
fn skeletons(mark: &Mark, out: &mut Vec<Key>) {
    let skeleton = mark.skeleton();
    if skeleton.len() >= consonants::EQUAL_CONSONANTS_MIN {
        out.push(key(Kind::Skeleton, skeleton));
    }
    if skeleton.len() > consonants::COMMON_CONSONANTS_MIN {
        out.extend(consonants::one_left_out(skeleton).iter().map(|text| key(Kind::Skeleton, text)));
    }
}

/// The keys of a name or a mark of which the index has exact lists. They are those of the rule [`LISTED`], so that it holds for a name and a mark if
/// and only if they have such a key in common.
pub(super) fn listed(mark: &Mark) -> Vec<u64> {
    let mut keys: Vec<u64> = rules::word_keys(mark).map(|text| key(Kind::WordKey, text).hash).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The keys that a mark is stored under but for those of [`listed`] and [`primary`], each once.
///
/// A key is left out where another one with the same text stands for it: a mark without digits has one key for its letters, a mark of
/// distinctive words has one for all of them, and so on. [`asked`] asks for the keys that are left.
pub(super) fn stored(mark: &Mark) -> Vec<u64> {
    let mut keys = Vec::with_capacity(64);
    stored_keys(mark, &mut keys);
    let mut out: Vec<u64> = keys.into_iter().map(|key| key.hash).collect();
    if mark.is_latin() {
        near_keys::stored(mark, &mut out);
    }
    out.sort_unstable();
    out.dedup();
    out
}

fn stored_keys(mark: &Mark, out: &mut Vec<Key>) {
    shared(mark, out);
    let spelled = mark.spelled();
    out.push(key(Kind::Spelled, spelled));
    if mark.compact() != spelled {
        out.push(key(Kind::Compact, mark.compact()));
    }
    if mark.whole_singular() != spelled {
        out.push(key(Kind::Whole, mark.whole_singular()));
    }
    let letters: Vec<char> = spelled.chars().collect();
    if letters.len() >= PIECES_LETTERS_MIN {
        let pieces = pieces(letters.len()).into_iter().enumerate();
        out.extend(pieces.filter_map(|(piece, range)| Some(piece_key(piece, letters.len(), letters.get(range)?))));
    } else if letters.len() >= 9 {
        let (first, last) = letters.split_at(letters.len() / 2);
        out.extend(left_out(first).map(|text| half_key(Kind::FirstHalf, letters.len(), &text)));
        out.extend(left_out(last).map(|text| half_key(Kind::LastHalf, letters.len(), &text)));
    }
    if mark.is_latin() {
        stored_words(mark, out);
        out.extend((0..spelled.len()).step_by(2).filter_map(|at| spelled.get(at..at + 4)).map(|gram| key(Kind::Gram, gram)));
    }
}

/// The first Double Metaphone key of a mark, if rule `P5` can hold for it.
pub(super) fn primary(mark: &Mark) -> Option<&str> {
    Some(mark.primary_key()).filter(|text| mark.is_latin() && text.len() >= PRIMARY_LETTERS_MIN)
}

/// The keys of rule `P5` by which watched names find a mark. [`primary_asked`] asks for them.
pub(super) fn primary_stored(mark: &Mark) -> Vec<u64> {
    let Some(primary) = primary(mark) else { return Vec::new() };
    let beginnings = PRIMARY_BEGINNINGS.iter().filter_map(|count| primary.get(..*count)).map(|text| key(Kind::PrimaryBeginning, text));
    beginnings.chain([key(Kind::Primary, primary)]).map(|key| key.hash).collect()
}

/// The keys of rule `P5` that a watched name asks for.
pub(super) fn primary_asked(name: &Mark) -> Vec<u64> {
    let Some(primary) = primary(name) else { return Vec::new() };
    // A mark whose key begins with that of the name has the longest of these beginnings that the name has.
    let longest = PRIMARY_BEGINNINGS.iter().rev().find_map(|count| primary.get(..*count)).map(|text| key(Kind::PrimaryBeginning, text));
    let beginnings = (PRIMARY_LETTERS_MIN..=primary.len()).filter_map(|count| primary.get(..count)).map(|text| key(Kind::Primary, text));
    longest.into_iter().chain(beginnings).map(|key| key.hash).collect()
}

fn stored_words(mark: &Mark, out: &mut Vec<Key>) {
    let distinctive: Vec<&str> = mark.distinctive().collect();
    let words: Vec<&str> = mark.singular().iter().map(String::as_str).collect();
    let written: Vec<&str> = mark.written().collect();
    if !distinctive.is_empty() {
        out.push(key(Kind::Distinctive, &distinctive.join(" ")));
        if written != distinctive {
            out.push(key(Kind::Written, &written.join(" ")));
        }
    }
    out.extend((1..written.len()).filter_map(|count| written.get(..count)).map(|row| key(Kind::WrittenBeginning, &row.join(" "))));
    let all: usize = distinctive.iter().map(|word| word.len()).sum();
    let is_most = |row: &&[&str]| row.len() < distinctive.len() && row.iter().map(|word| word.len()).sum::<usize>() * 100 > all * 55;
    out.extend(rows(&distinctive).filter(is_most).map(|row| key(Kind::DistinctivePart, &row.join(" "))));
    if words != distinctive {
        out.push(key(Kind::Words, &words.join(" ")));
    }
    let is_part = |row: &&[&str]| match row {
        // A distinctive word has a key of its own.
        [word] => words.len() > 1 && (word.len() < 2 || !distinctive.contains(word)),
        row => row.len() < words.len() && row.len() <= ROW_WORDS_MAX,
    };
    out.extend(rows(&words).filter(is_part).map(|row| key(Kind::WordsPart, &row.join(" "))));
    if words.len() == 1 {
        out.extend(rules::without_joined(mark).filter(|part| part.len() < 4).map(|text| key(Kind::Joined, text)));
    }
}

/// What a name asks for: keys of which a mark must have one, and groups of keys of which it must have all. [`primary`] is asked for apart.
pub(super) struct WantedKeys {
    /// Keys that are all asked for.
    pub(super) all: Vec<Key>,
    /// Groups of keys. A mark that one key of a group is for has all keys of the group, so that it is enough to ask for some of them.
    pub(super) any: Vec<Vec<Key>>,
    /// Keys of exact lists, see [`listed`].
    pub(super) listed: Vec<u64>,
    /// Keys of marks of which only those count that have nearly the letters of the name, see [`near_keys`].
    pub(super) near: Vec<u64>,
}

/// The keys that a name asks for.
pub(super) fn asked(name: &Mark) -> WantedKeys {
    let mut all = Vec::with_capacity(256);
    let mut any = Vec::new();
    shared(name, &mut all);
    all.push(key(Kind::Compact, name.compact()));
    all.extend([name.spelled(), name.whole_singular()].map(|text| key(Kind::Spelled, text)));
    all.push(key(Kind::Whole, name.whole_singular()));
    let letters: Vec<char> = name.spelled().chars().collect();
    if letters.len() >= 9 {
        for length in (letters.len() - 2).max(9)..=letters.len() + 2 {
            if length >= PIECES_LETTERS_MIN {
                asked_pieces(&letters, length, &mut all);
                continue;
            }
            for at in (length / 2).saturating_sub(2)..=(length / 2 + 2).min(letters.len()) {
                let (first, last) = letters.split_at(at);
                all.extend(left_out(first).map(|text| half_key(Kind::FirstHalf, length, &text)));
                all.extend(left_out(last).map(|text| half_key(Kind::LastHalf, length, &text)));
            }
        }
    }
    if name.is_latin() {
        asked_words(name, &mut all);
        let spelled = name.spelled();
        for start in 0..spelled.len() {
            all.extend((start + 5..=spelled.len()).filter_map(|end| spelled.get(start..end)).map(|text| key(Kind::Spelled, text)));
        }
        if spelled.len() >= 5 {
            // A mark that contains the name has a stored part of four letters at an even or at an odd place of the name.
            for first in [0, 1] {
                let grams = (first..spelled.len()).step_by(2).filter_map(|at| spelled.get(at..at + 4));
                any.push(grams.map(|gram| key(Kind::Gram, gram)).collect());
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    let near = if name.is_latin() { near_keys::asked(name) } else { Vec::new() };
    WantedKeys { all, any, listed: listed(name), near }
}

fn asked_words(name: &Mark, out: &mut Vec<Key>) {
    let written: Vec<&str> = name.written().collect();
    out.push(key(Kind::WrittenBeginning, &written.join(" ")));
    for row in (1..=written.len()).filter_map(|count| written.get(..count)) {
        out.extend([Kind::Written, Kind::Distinctive].map(|kind| key(kind, &row.join(" "))));
    }
    let distinctive: Vec<&str> = name.distinctive().collect();
    out.push(key(Kind::DistinctivePart, &distinctive.join(" ")));
    out.extend(rows(&distinctive).map(|row| key(Kind::Distinctive, &row.join(" "))));
    let words: Vec<&str> = name.singular().iter().map(String::as_str).collect();
    out.extend(words.get(..words.len().min(ROW_WORDS_MAX)).map(|row| key(Kind::WordsPart, &row.join(" "))));
    for row in rows(&words) {
        out.extend([Kind::Words, Kind::Distinctive].map(|kind| key(kind, &row.join(" "))));
    }
    if let [word] = words[..] {
        // A mark that has the word among others.
        out.extend([Kind::LongPart, Kind::ShortWord].map(|kind| key(kind, word)));
        out.extend(name.distinctive().take(1).map(|word| key(Kind::Joined, word)));
        out.extend(rules::without_joined(name).map(|text| key(Kind::Distinctive, text)));
    }
}

/// The key of the letters of a mark.
pub(super) fn compact(mark: &Mark) -> u64 {
    key(Kind::Compact, mark.compact()).hash
}
