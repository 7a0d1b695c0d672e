//! A name or a trademark in its normal form, with everything that the rules compare.

use std::borrow::Cow;
use std::sync::OnceLock;

use texts::company_names::folded;

use crate::sound;
use crate::words::{is_descriptive, is_function_word, is_legal, meaning};

/// The longest text that is read, in characters. The rest of a longer trademark is not compared.
pub const NAME_CHARS_MAX: usize = 100;

/// A name or a trademark in its normal form.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The words in capitals, without accents, signs and legal words.
    tokens: Vec<String>,
    /// The words joined.
    compact: String,
    /// The words joined, with numbers spelled.
    spelled: String,
    /// The words in the singular, without legal words.
    singular: Vec<String>,
    /// The indexes of the words that distinguish the mark: those that describe nothing.
    distinctive: Vec<usize>,
    /// Whether all letters are ASCII, so that rules of sound and of parts apply.
    is_ascii: bool,
    /// Each sound is computed when a rule or a key needs it.
    sounds: Sounds,
}

/// What is compared by sound. All are empty if the mark has other letters than Latin ones.
#[derive(Clone, Debug, Default)]
struct Sounds {
    whole: OnceLock<Vec<String>>,
    primary: OnceLock<String>,
    skeleton: OnceLock<String>,
    syllables: OnceLock<String>,
    words: OnceLock<Vec<Vec<String>>>,
}

impl Mark {
    /// Reads a name or a trademark. `None` if it has no letter or digit.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let mut plain = String::with_capacity(text.len());
        let end = text.char_indices().nth(NAME_CHARS_MAX).map_or(text.len(), |(at, _)| at);
        let folded = folded(text.get(..end).unwrap_or_default());
        let mut chars = folded.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '&' | '+' => plain.push_str(" AND "),
                '\'' | '\u{2019}' | '\u{2018}' | '\u{b4}' if chars.peek() == Some(&'S') => {}
                c if c.is_alphanumeric() => plain.push(c),
                _ => plain.push(' '),
            }
        }
        let all = join_letters(&plain);
        let mut tokens: Vec<String> = all.iter().filter(|word| !is_legal(word)).cloned().collect();
        if tokens.is_empty() {
            tokens = all;
        }
        (!tokens.is_empty()).then(|| Self::of_tokens(tokens))
    }

    /// Reads what [`Mark::normal`] returned.
    #[must_use]
    pub fn from_normal(normal: &str) -> Self {
        Self::of_tokens(normal.split(' ').map(str::to_owned).collect())
    }

    fn of_tokens(tokens: Vec<String>) -> Self {
        let compact = tokens.concat();
        let is_ascii = compact.is_ascii();
        let spelled = spelled_words(tokens.iter().map(String::as_str));
        let singular: Vec<String> = tokens.iter().map(|token| singular(token).to_owned()).collect();
        let distinctive = (0..tokens.len()).filter(|at| !is_descriptive(&tokens[*at]) && !is_descriptive(&singular[*at])).collect();
        Self { tokens, compact, spelled, singular, distinctive, is_ascii, sounds: Sounds::default() }
    }

    /// The normal form: the words, separated by one blank.
    #[must_use]
    pub fn normal(&self) -> String {
        self.tokens.join(" ")
    }

    /// The words joined.
    #[must_use]
    pub fn compact(&self) -> &str {
        &self.compact
    }

    /// Whether the rules of sound and of parts apply: they read Latin letters and digits only.
    #[must_use]
    pub fn is_latin(&self) -> bool {
        self.is_ascii
    }

    pub(crate) fn tokens(&self) -> &[String] {
        &self.tokens
    }

    pub(crate) fn singular(&self) -> &[String] {
        &self.singular
    }

    pub(crate) fn spelled(&self) -> &str {
        &self.spelled
    }

    /// The whole mark with numbers spelled, in the singular.
    pub(crate) fn whole_singular(&self) -> &str {
        singular(&self.spelled)
    }

    /// The words that describe nothing, in the singular.
    pub(crate) fn distinctive(&self) -> impl Iterator<Item = &str> {
        self.distinctive.iter().map(|at| self.singular[*at].as_str())
    }

    /// The words that describe nothing, as they are written.
    pub(crate) fn written(&self) -> impl Iterator<Item = &str> {
        self.distinctive.iter().map(|at| self.tokens[*at].as_str())
    }

    /// The words that describe nothing, as they are written, joined by blanks; empty if all words describe something.
    pub(crate) fn stripped(&self) -> String {
        self.written().collect::<Vec<_>>().join(" ")
    }

    /// The Double Metaphone keys of the whole mark in the singular.
    pub(crate) fn whole_keys(&self) -> &[String] {
        self.sounds.whole.get_or_init(|| sound::keys(self.whole_singular()))
    }

    /// The Double Metaphone key of the whole mark as it is spelled.
    pub(crate) fn primary_key(&self) -> &str {
        self.sounds.primary.get_or_init(|| sound::primary_key(&self.spelled))
    }

    /// The consonants of the whole mark by class.
    pub(crate) fn skeleton(&self) -> &str {
        self.sounds.skeleton.get_or_init(|| sound::skeleton(self.syllables()))
    }

    /// The sounds of the whole mark by class, all vowels alike.
    pub(crate) fn syllables(&self) -> &str {
        self.sounds.syllables.get_or_init(|| if self.is_ascii { sound::syllables(self.whole_singular()) } else { String::new() })
    }

    /// The Double Metaphone keys of each distinctive word of at least four letters.
    pub(crate) fn word_keys(&self) -> &[Vec<String>] {
        // The keys of a mark of one word are those of the word.
        let keys = |word: &str| if word == self.whole_singular() { self.whole_keys().to_vec() } else { sound::keys(word) };
        self.sounds.words.get_or_init(|| self.distinctive().filter(|word| self.is_ascii && word.len() >= 4).map(keys).collect())
    }

    /// The stems of the words other than numbers and function words, sorted.
    pub(crate) fn stems(&self) -> Vec<&str> {
        let is_content = |token: &&String| !is_function_word(token) && !token.bytes().all(|byte| byte.is_ascii_digit());
        let mut stems: Vec<&str> = self.singular.iter().filter(is_content).map(|token| stem(token)).collect();
        stems.sort_unstable();
        stems
    }

    /// The meanings of the words that the data file of words knows, and of the whole mark.
    pub(crate) fn meanings(&self) -> Vec<&'static str> {
        let mut found: Vec<&'static str> = self.singular.iter().chain([&self.compact]).filter_map(|token| meaning(token)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Splits a text into words; single letters in a row are one word: `U.S.A.` is `USA`.
fn join_letters(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_open = false;
    for word in text.split_ascii_whitespace() {
        let is_letter = word.len() == 1 && word.bytes().all(|byte| byte.is_ascii_uppercase());
        match words.last_mut().filter(|_| is_letter && is_open) {
            Some(last) => last.push_str(word),
            None => words.push(word.to_owned()),
        }
        is_open = is_letter;
    }
    words
}

/// Returns a word without its plural S: at least four letters, and not a double S.
pub(crate) fn singular(word: &str) -> &str {
    match word.strip_suffix('S') {
        Some(rest) if word.chars().count() >= 4 && !rest.ends_with('S') => rest,
        _ => word,
    }
}

/// Returns a word without the endings that form agents, activities and origins.
fn stem(word: &str) -> &str {
    let ends = [("ING", 6, 3), ("ER", 6, 2), ("ED", 6, 2), ("AN", 6, 1)];
    ends.iter()
        .find(|(end, length_min, _)| word.len() >= *length_min && word.ends_with(end))
        .and_then(|(_, _, cut)| word.get(..word.len() - cut))
        .unwrap_or(word)
}

/// Returns the letters of what [`Mark::normal`] returned, with numbers spelled.
pub(crate) fn spelled(normal: &str) -> Cow<'_, str> {
    if normal.bytes().any(|byte| byte == b' ' || byte.is_ascii_digit()) {
        return Cow::Owned(spelled_words(normal.split(' ')));
    }
    Cow::Borrowed(normal)
}

/// As [`spelled`], into a text whose memory is used again.
pub(crate) fn write_spelled(normal: &str, out: &mut String) {
    out.clear();
    if normal.bytes().any(|byte| byte.is_ascii_digit()) {
        normal.split(' ').for_each(|word| out.push_str(&spell_digits(word)));
    } else {
        normal.split(' ').for_each(|word| out.push_str(word));
    }
}

fn spelled_words<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.map(spell_digits).collect()
}

/// Spells the digits of a word: `TRUE1` becomes `TRUEONE`. `10` to `12` and `1ST` to `3RD` are spelled as people say them.
fn spell_digits(token: &str) -> String {
    const DIGITS: [&str; 10] = ["ZERO", "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE"];
    match token {
        "10" => return "TEN".to_owned(),
        "11" => return "ELEVEN".to_owned(),
        "12" => return "TWELVE".to_owned(),
        "1ST" => return "FIRST".to_owned(),
        "2ND" => return "SECOND".to_owned(),
        "3RD" => return "THIRD".to_owned(),
        _ => {}
    }
    let mut out = String::with_capacity(token.len());
    for c in token.chars() {
        match c.to_digit(10).filter(|_| c.is_ascii()).and_then(|digit| DIGITS.get(digit as usize)) {
            Some(word) => out.push_str(word),
            None => out.push(c),
        }
    }
    out
}
