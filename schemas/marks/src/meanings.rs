//! What the words of two marks say, in addition to their letters and sounds: words of their own, other meanings, translations.

use crate::mark::Mark;
use crate::sound;
use crate::words::{is_everyday, is_function_word, meaning};

/// Whether only one of the marks has words that the other lacks. Where each has its own, as in two names of one quarter for two trades, the words in
/// common are no longer most of the impression. Function words are not counted.
pub(crate) fn one_has_all_words(one: &Mark, other: &Mark) -> bool {
    let lacks =
        |mark: &Mark, compared: &Mark| compared.singular().iter().any(|word| !is_function_word(word) && !mark.singular().contains(word));
    !(lacks(one, other) && lacks(other, one))
}

/// The only word of each mark that differs, if both are everyday words that neither mean nor sound the same and are no forms of one word. Then a letter
/// changes what the mark says, as in two phrases of which one has a word in jest.
pub(crate) fn other_meanings<'a>(one: &'a Mark, other: &'a Mark) -> Option<(&'a str, &'a str)> {
    if one.singular().len() != other.singular().len() {
        return None;
    }
    let mut words = one.singular().iter().zip(other.singular()).filter(|(word, its)| word != its);
    let (Some((word, its)), None) = (words.next(), words.next()) else { return None };
    let is_translated = meaning(word).is_some() && meaning(word) == meaning(its);
    if !is_everyday(word) || !is_everyday(its) || is_translated || common_beginning(word, its) >= FORM_LETTERS_MIN {
        return None;
    }
    let keys = sound::keys(its);
    let sounds_same = sound::keys(word).iter().any(|key| keys.contains(key));
    (!sounds_same).then_some((word.as_str(), its.as_str()))
}

/// The letters with which forms of one word begin alike.
const FORM_LETTERS_MIN: usize = 4;

/// Whether the only distinctive word of the mark with fewer words is an everyday word, and the other mark begins with a word that this one lacks: the first
/// word dominates, and many marks have such a word in them.
pub(crate) fn follows_other_words(one: &Mark, other: &Mark) -> bool {
    let (short, long) = if one.tokens().len() <= other.tokens().len() { (one, other) } else { (other, one) };
    let fewer = if short.distinctive().count() <= long.distinctive().count() { short } else { long };
    let mut words = fewer.distinctive();
    let (Some(word), None) = (words.next(), words.next()) else { return false };
    let first = long.singular().first().filter(|first| !is_function_word(first));
    short.tokens().len() < long.tokens().len() && is_everyday(word) && first.is_some_and(|first| Some(first) != short.singular().first())
}

/// Whether both marks begin with the same word and each has words of its own: then that word makes most letters the same.
pub(crate) fn begin_alike_and_differ(one: &Mark, other: &Mark) -> bool {
    let has_words = one.tokens().len() > 1 && other.tokens().len() > 1;
    has_words && one.singular().first() == other.singular().first() && !one_has_all_words(one, other)
}

/// `S13`. The whole marks have one meaning, or their distinctive words do, or all words of which there are at least two, in any order. What the data file
/// of words does not know means itself.
pub(crate) fn same_in_translation(one: &Mark, other: &Mark) -> bool {
    let whole = meaning(one.compact());
    whole.is_some() && whole == meaning(other.compact())
        || are_translated(one.distinctive().collect(), other.distinctive().collect())
        || content_words(one).count() >= 2 && are_translated(content_words(one).collect(), content_words(other).collect())
}

/// Whether words are not the same and have the same meanings.
fn are_translated(mut words: Vec<&str>, mut others: Vec<&str>) -> bool {
    let meanings = |words: &[&str]| {
        // The sign keeps a word apart from a meaning of the same letters.
        let of_word = |word: &&str| meaning(word).map_or_else(|| (*word).to_owned(), |meaning| format!("={meaning}"));
        let mut meanings: Vec<String> = words.iter().map(of_word).collect();
        meanings.sort_unstable();
        meanings
    };
    words.sort_unstable();
    others.sort_unstable();
    words != others && meanings(&words) == meanings(&others)
}

/// The words other than function words, in the singular.
fn content_words(mark: &Mark) -> impl Iterator<Item = &str> {
    mark.singular().iter().map(String::as_str).filter(|word| !is_function_word(word))
}

/// The letters with which two texts begin alike.
pub(crate) fn common_beginning(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count()
}

/// The letters with which two texts end alike.
pub(crate) fn common_end(one: &str, other: &str) -> usize {
    one.bytes().rev().zip(other.bytes().rev()).take_while(|(a, b)| a == b).count()
}
