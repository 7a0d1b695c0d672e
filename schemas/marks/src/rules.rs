//! The rules, in the order in which they are tried. The first one that holds is named.
//!
//! Rules `E1` to `S6` and `P1` to `P6` are version 1, and version 2 added the others. With version 3, `S6` needs no
//! common beginning, `™`, `℠` and `®` are ignored, and a syllable of Hangul is one letter. With version 4, `S5` and `S9` do not hold where each mark has
//! words of its own, `S13` finds translations, and `S12` (the same first word) is gone. With version 5, `P8` needs at least four consonants in common,
//! or three that are all, and `P13` the same letters where only three sounds rhyme: fewer are in common by chance.
//!
//! With version 6, fewer marks are strong, for what decisions that held such marks different say: `S6` and `S8` do not hold where each mark has words of
//! its own, `S5` and `S9` not where an everyday word follows other words, and rules of letters and sound not where the words that differ are everyday
//! words of other meanings (`P16` lists these). `S13` needs a word that is translated, and finds two words or more of which some describe. `S14` and
//! `S15` find coined words that sound alike.
//!
//! With version 7, coined names have fewer strong marks by chance: `S10` (the same consonants, whatever the vowels) is gone, which found no pair that was held
//! similar and that no other rule finds, and `S14` needs the same beginning.
//!
//! The rules follow what examiners and the Board weigh: sight, sound, the word that dominates (usually the first), and what remains when descriptive
//! matter carries little weight. Every rule is symmetric.

use crate::consonants::are_near_skeletons;
use crate::edits::edits;
use crate::mark::{Mark, singular, spelled};
use crate::meanings::{
    begin_alike_and_differ, common_beginning, common_end, follows_other_words, one_has_all_words, other_meanings, same_in_translation,
};
use crate::near::{are_near, edits_max};
use crate::sound::weighted_distance;
use crate::words::{is_descriptive, is_everyday};

/// The version of the rules.
pub const RULES_VERSION: u32 = 7;

/// How alike a name and a mark are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// The same letters.
    Exact,
    /// Likely to be held similar.
    Strong,
    /// A part in common.
    Partial,
}

impl Tier {
    /// The tier as answers name it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Strong => "strong",
            Self::Partial => "partial",
        }
    }

    /// The tier that a mark of a status counts in: one lower if the status is unknown. `None` if it does not count.
    #[must_use]
    pub fn counted(self, status: crate::Status) -> Option<Self> {
        match (status, self) {
            (crate::Status::Live, tier) => Some(tier),
            (crate::Status::Unknown, Self::Exact) => Some(Self::Strong),
            (crate::Status::Unknown, Self::Strong) => Some(Self::Partial),
            (crate::Status::Unknown, Self::Partial) | (crate::Status::Dead, _) => None,
        }
    }
}

/// What the marks that count mean for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No exact and no strong mark.
    LikelyAvailable,
    /// A strong mark.
    Caution,
    /// An exact mark.
    LikelyTaken,
}

impl Verdict {
    /// The verdict for the numbers of marks that count; `contained` is the number of partial marks by rule `P1`, which count if classes are given.
    #[must_use]
    pub fn of(exact: u64, strong: u64, contained: u64, has_classes: bool) -> Self {
        match () {
            () if exact > 0 => Self::LikelyTaken,
            () if strong > 0 || contained > 0 && has_classes => Self::Caution,
            () => Self::LikelyAvailable,
        }
    }

    /// The verdict as answers name it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LikelyAvailable => "LIKELY_AVAILABLE",
            Self::Caution => "CAUTION",
            Self::LikelyTaken => "LIKELY_TAKEN",
        }
    }
}

macro_rules! rules {
    ($($(#[$doc:meta])* $id:ident $tier:ident),+ $(,)?) => {
        /// A rule by which a name and a mark are alike.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $($(#[$doc])* $id),+
        }

        impl Rule {
            /// Every rule, in the order in which they are tried.
            pub const ALL: &[Self] = &[$(Self::$id),+];

            /// The id as answers name it.
            #[must_use]
            pub fn id(self) -> &'static str {
                match self {
                    $(Self::$id => stringify!($id)),+
                }
            }

            /// The tier of the rule.
            #[must_use]
            pub fn tier(self) -> Tier {
                match self {
                    $(Self::$id => Tier::$tier),+
                }
            }
        }
    };
}

rules! {
    /// The same letters.
    E1 Exact,
    /// The same letters as a pseudo mark of the register.
    E2 Exact,
    /// The same words in another order.
    S1 Strong,
    /// The same but for a plural, or a number that is spelled.
    S2 Strong,
    /// One letter differs (5 to 8 letters), or two (9 and more).
    S3 Strong,
    /// The same Double Metaphone key, and few letters differ.
    S4 Strong,
    /// The same words when descriptive words are ignored.
    S5 Strong,
    /// Nearly the same letters in nearly the same order.
    S6 Strong,
    /// The same words in other forms, in any order.
    S7 Strong,
    /// One begins with all distinctive words of the other: the first word dominates.
    S8 Strong,
    /// One contains all distinctive words of the other, and they are most of it.
    S9 Strong,
    /// One is the other joined with a descriptive word.
    S11 Strong,
    /// The same words, of which some are translated.
    S13 Strong,
    /// Long words that begin with the same letters, of nearly the same consonants to the ear, and few letters that sound different.
    S14 Strong,
    /// Words that rhyme letter by letter: only the consonants before the first vowel differ.
    S15 Strong,
    /// All words of one stand in a row in the other.
    P1 Partial,
    /// A distinctive word in common.
    P2 Partial,
    /// A distinctive word of one sounds like one of the other.
    P4 Partial,
    /// The letters of one are inside the other.
    P3 Partial,
    /// The Double Metaphone key of one begins that of the other.
    P5 Partial,
    /// Three or four letters of which one differs.
    P6 Partial,
    /// Distinctive words that begin with the same five letters.
    P7 Partial,
    /// Consonants that sound alike, at least four up to one of them or three that are all, and most letters.
    P8 Partial,
    /// The same ending of at least five letters, half of the shorter one.
    P9 Partial,
    /// Two of the first six words in common.
    P10 Partial,
    /// A short distinctive word or number in common.
    P11 Partial,
    /// A word of the same meaning, also in another language.
    P12 Partial,
    /// They rhyme: only the first consonants differ to the ear.
    P13 Partial,
    /// The same beginning of at least five letters, half of the shorter one.
    P14 Partial,
    /// A distinctive word of one is part of the other, joined with a descriptive word.
    P15 Partial,
    /// Letters or sounds as for a strong rule, but the words that differ have other meanings, or each mark has words of its own.
    P16 Partial,
}

/// A set of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RuleSet(u32);

/// Each rule has a bit.
const _: () = assert!(Rule::ALL.len() <= u32::BITS as usize);

impl RuleSet {
    /// Every rule.
    pub(crate) const ALL: Self = Self(u32::MAX);
    /// No rule.
    pub(crate) const NONE: Self = Self(0);

    /// The set of the given rules.
    pub(crate) const fn of(rules: &[Rule]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < rules.len() {
            bits |= 1 << rules[at] as u32;
            at += 1;
        }
        Self(bits)
    }

    /// The rules of both sets.
    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The set as bits.
    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    /// The set of bits.
    pub(crate) fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The rules of the set, in their order.
    pub(crate) fn iter(self) -> impl Iterator<Item = Rule> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let rule = Rule::ALL.get(left.trailing_zeros() as usize).copied();
            left &= left.wrapping_sub(1);
            rule
        })
    }

    /// Whether a rule is in the set.
    pub(crate) fn has(self, rule: Rule) -> bool {
        self.0 >> rule as u32 & 1 == 1
    }
}

/// The optimal string alignment distance of two marks, in letters: similar marks are listed by it.
#[must_use]
pub fn distance(name: &Mark, mark: &Mark) -> usize {
    edits(name.spelled(), mark.spelled())
}

/// As [`distance`], for a mark in the normal form.
pub(crate) fn distance_of_normal(name: &Mark, mark: &str) -> usize {
    edits(name.spelled(), &spelled(mark))
}

/// Returns the first rule by which a name and a mark are alike. Its tier is that of a live mark; see [`Tier::counted`]. Rule `E2` is not tried:
/// compare the name with each pseudo mark, too.
#[must_use]
pub fn similar(name: &Mark, mark: &Mark) -> Option<Rule> {
    similar_by(name, mark, RuleSet::ALL, RuleSet::NONE)
}

/// As [`similar`], but tries only the given rules; `E1`, `S2` and `S3`, which cost little, are always tried. Partial rules that are `known` to hold are
/// not tried.
pub(crate) fn similar_by(name: &Mark, mark: &Mark, rules: RuleSet, known: RuleSet) -> Option<Rule> {
    if name.compact() == mark.compact() {
        return Some(Rule::E1);
    }
    // The smaller text comes first, so that every comparison is symmetric.
    let pair = if (name.spelled().len(), name.spelled()) <= (mark.spelled().len(), mark.spelled()) { (name, mark) } else { (mark, name) };
    strong(pair.0, pair.1, rules).or_else(|| partial(pair.0, pair.1, rules, known))
}

fn strong(one: &Mark, other: &Mark, rules: RuleSet) -> Option<Rule> {
    let (text, longer) = (one.spelled(), other.spelled());
    let (count, its) = (text.chars().count(), longer.chars().count());
    let (min, max) = (count.min(its), count.max(its));
    if rules.has(Rule::S1) && min > 0 && one.tokens().len() == other.tokens().len() && sorted(one.tokens()) == sorted(other.tokens()) {
        return Some(Rule::S1);
    }
    if one.whole_singular() == other.whole_singular() {
        return Some(Rule::S2);
    }
    let limit = edits_max(min);
    if limit > 0 && max - min <= limit && edits(text, longer) <= limit && other_meanings(one, other).is_none() {
        return Some(Rule::S3);
    }
    if !one.is_latin() || !other.is_latin() {
        return None;
    }
    let holds = |rule: Rule| match rule {
        Rule::S4 => same_key(one, other) && other_meanings(one, other).is_none(),
        Rule::S5 => {
            let is_same = !one.stripped().is_empty() && one.stripped() == other.stripped();
            is_same && one_has_all_words(one, other) && !follows_other_words(one, other)
        }
        Rule::S6 => are_near(text, longer) && other_meanings(one, other).is_none() && !begin_alike_and_differ(one, other),
        Rule::S7 => one.stems().len() >= 2 && one.stems() == other.stems(),
        Rule::S8 => (begins_with_all(one, other) || begins_with_all(other, one)) && one_has_all_words(one, other),
        Rule::S9 => {
            let is_most = contains_most(one, other) || contains_most(other, one);
            is_most && one_has_all_words(one, other) && !follows_other_words(one, other)
        }
        Rule::S11 => joined(one, other),
        Rule::S13 => same_in_translation(one, other),
        Rule::S14 => near_consonants(one, other) && other_meanings(one, other).is_none(),
        Rule::S15 => rhyme_by_letters(one, other),
        _ => false,
    };
    Rule::ALL.iter().copied().find(|rule| rule.tier() == Tier::Strong && rules.has(*rule) && holds(*rule))
}

fn partial(one: &Mark, other: &Mark, rules: RuleSet, known: RuleSet) -> Option<Rule> {
    if !one.is_latin() || !other.is_latin() {
        return None;
    }
    let (text, longer) = (one.spelled(), other.spelled());
    let (min, max) = (text.len(), longer.len());
    let holds = |rule: Rule| match rule {
        Rule::P1 => in_a_row(one.singular(), other.singular()) || in_a_row(other.singular(), one.singular()),
        Rule::P2 => one.distinctive().any(|word| word.len() >= 4 && other.distinctive().any(|its| its == word)),
        Rule::P4 => word_keys(one).any(|key| word_keys(other).any(|its| its == key)),
        Rule::P3 => min >= 5 && longer.contains(text),
        Rule::P5 => {
            let (key, longer) = (one.primary_key(), other.primary_key());
            key.len().min(longer.len()) >= 4 && (key.starts_with(longer) || longer.starts_with(key))
        }
        Rule::P6 => min >= 3 && max <= 4 && edits(text, longer) <= 1,
        Rule::P7 => word_beginnings(one).any(|beginning| word_beginnings(other).any(|its| its == beginning)),
        Rule::P8 => {
            are_near_skeletons(one.skeleton(), other.skeleton()) && weighted_distance(text, longer) as usize <= max * CONSONANTS_LIMIT / 10
        }
        Rule::P9 => ending(one).is_some_and(|end| Some(end) == ending(other)) && common_end(text, longer) * 2 >= min,
        Rule::P10 => {
            let words = first_words(other);
            first_words(one).iter().filter(|word| words.contains(word)).count() >= 2
        }
        Rule::P11 => short_words(one).any(|word| short_words(other).any(|its| its == word)),
        Rule::P12 => one.meanings().iter().any(|meaning| other.meanings().contains(meaning)),
        Rule::P13 => rhyme(one).is_some_and(|end| Some(end) == rhyme(other)),
        Rule::P14 => min >= 5 && text.get(..5) == longer.get(..5) && common_beginning(text, longer) * 2 >= min,
        Rule::P15 => long_parts(one).any(|part| long_parts(other).any(|its| its == part)),
        Rule::P16 => (other_meanings(one, other).is_some() || begin_alike_and_differ(one, other)) && near_letters(one, other),
        _ => false,
    };
    Rule::ALL.iter().copied().find(|rule| rule.tier() == Tier::Partial && rules.has(*rule) && (known.has(*rule) || holds(*rule)))
}

fn sorted(tokens: &[String]) -> Vec<&String> {
    let mut tokens: Vec<&String> = tokens.iter().collect();
    tokens.sort_unstable();
    tokens
}

fn in_a_row(words: &[String], of: &[String]) -> bool {
    words.len() <= of.len() && of.windows(words.len().max(1)).any(|window| window == words)
}

/// `S4`.
fn same_key(one: &Mark, other: &Mark) -> bool {
    let (text, longer) = (one.whole_singular(), other.whole_singular());
    let (min, max) = (text.len().min(longer.len()), text.len().max(longer.len()));
    let has_key = |key: &String| key.len() >= 2 && other.whole_keys().contains(key);
    // In integers: the shorter one has at least 0.7 of the letters, and at most 0.4 of the longer one differ.
    min >= 4 && min * 10 >= max * 7 && edits(text, longer) <= max * 4 / 10 && one.whole_keys().iter().any(has_key)
}

/// Whether the distinctive words of one, as they are written, begin those of the other and have at least five letters together.
fn begins_with_all(one: &Mark, other: &Mark) -> bool {
    let letters: usize = one.written().map(str::len).sum();
    letters >= 5 && one.written().count() < other.written().count() && one.written().zip(other.written()).all(|(a, b)| a == b)
}

/// Whether the distinctive words of one stand in a row in the other and are more than 55 % of its letters.
fn contains_most(one: &Mark, other: &Mark) -> bool {
    let (words, others): (Vec<&str>, Vec<&str>) = (one.distinctive().collect(), other.distinctive().collect());
    let (letters, all): (usize, usize) = (words.iter().map(|word| word.len()).sum(), others.iter().map(|word| word.len()).sum());
    !words.is_empty()
        && words.len() < others.len()
        && letters >= 5
        && letters * 100 > all * 55
        && others.windows(words.len()).any(|window| window == words)
}

/// `P16`. The letters of `S3` and `S6`, or the sounds of `S4`, whatever the words mean.
fn near_letters(one: &Mark, other: &Mark) -> bool {
    let (text, longer) = (one.spelled(), other.spelled());
    let limit = edits_max(text.len().min(longer.len()));
    let has_few_edits = limit > 0 && edits(text, longer) <= limit;
    has_few_edits || same_key(one, other) || are_near(text, longer)
}

/// `S14`.
fn near_consonants(one: &Mark, other: &Mark) -> bool {
    let (text, longer) = (one.spelled(), other.spelled());
    let (min, max) = (text.len().min(longer.len()), text.len().max(longer.len()));
    one.tokens().len() == 1
        && other.tokens().len() == 1
        && min >= NEAR_CONSONANTS_LETTERS_MIN
        && begin_alike(text, longer)
        && are_near_skeletons(one.skeleton(), other.skeleton())
        && weighted_distance(text, longer) as usize * 10 <= max * NEAR_CONSONANTS_LIMIT
}

/// The letters of the shorter mark from which on `S14` holds: of shorter words few consonants are in common by chance.
pub(crate) const NEAR_CONSONANTS_LETTERS_MIN: usize = 7;
/// The weighted distance up to which `S14` holds, in hundredths of the letters of the longer mark.
pub(crate) const NEAR_CONSONANTS_LIMIT: usize = 26;

/// `S15`. A rhyme of everyday words is no likeness, since their meanings are plain.
fn rhyme_by_letters(one: &Mark, other: &Mark) -> bool {
    let ([word], [its]) = (one.singular(), other.singular()) else { return false };
    let end = doubled_once(from_vowel(one.whole_singular()));
    one.spelled().len().min(other.spelled().len()) >= RHYMING_LETTERS_MIN
        && end.len() >= RHYME_LETTERS_MIN
        && end == doubled_once(from_vowel(other.whole_singular()))
        && rhyme(one).is_some_and(|sounds| Some(sounds) == rhyme(other))
        && !(is_everyday(word) && is_everyday(its))
}

/// The letters of the shorter mark from which on `S15` holds.
pub(crate) const RHYMING_LETTERS_MIN: usize = 5;
/// The letters from the first vowel on from which on `S15` holds.
pub(crate) const RHYME_LETTERS_MIN: usize = 4;

/// Whether two texts begin with the same letters when doubled letters are written once: the beginning of a mark is what most remember.
pub(crate) fn begin_alike(one: &str, other: &str) -> bool {
    once(one).zip(once(other)).take_while(|(a, b)| a == b).count() >= ALIKE_BEGINNING_LETTERS
}

/// The letters that two beginnings have in common at least, when doubled letters are written once.
const ALIKE_BEGINNING_LETTERS: usize = 4;

/// The weighted distance up to which `P8` holds, in hundredths of the letters of the longer mark.
pub(crate) const CONSONANTS_LIMIT: usize = 45;

/// `S11`.
fn joined(one: &Mark, other: &Mark) -> bool {
    let is_base = |base: &Mark, joined: &Mark| {
        base.tokens().len() == 1
            && base.distinctive().count() == 1
            && joined.tokens().len() == 1
            && without_joined(joined).any(|part| part == singular(base.compact()))
    };
    is_base(one, other) || is_base(other, one)
}

/// What remains of a mark of one word without a descriptive word of at least three letters at its beginning or end: at least three letters.
pub(crate) fn without_joined(mark: &Mark) -> impl Iterator<Item = &str> {
    let text = mark.whole_singular();
    let is_joined = |word: &str| is_descriptive(word) && word.len() >= 3 || is_descriptive(singular(word)) && word.len() >= 4;
    let splits = (3..text.len().saturating_sub(2)).filter_map(|at| text.split_at_checked(at));
    splits.flat_map(move |(start, end)| [is_joined(end).then_some(start), is_joined(start).then_some(end)]).flatten()
}

/// Distinctive words of at least four letters, and what remains of a mark without a joined descriptive word.
pub(crate) fn long_parts(mark: &Mark) -> impl Iterator<Item = &str> {
    let one_word = (mark.tokens().len() == 1).then(|| without_joined(mark)).into_iter().flatten();
    mark.distinctive().chain(one_word).filter(|part| part.len() >= 4)
}

pub(crate) fn word_keys(mark: &Mark) -> impl Iterator<Item = &String> {
    mark.word_keys().iter().flatten().filter(|key| key.len() >= 3)
}

pub(crate) fn word_beginnings(mark: &Mark) -> impl Iterator<Item = &str> {
    mark.distinctive().filter(|word| word.len() >= 6).filter_map(|word| word.get(..5))
}

/// Distinctive words of two or three letters, and numbers.
pub(crate) fn short_words(mark: &Mark) -> impl Iterator<Item = &str> {
    mark.distinctive().filter(|word| (2..=3).contains(&word.len()))
}

pub(crate) fn ending(mark: &Mark) -> Option<&str> {
    mark.spelled().len().checked_sub(5).and_then(|at| mark.spelled().get(at..))
}

/// The first six words of at least two letters, sorted, each once.
pub(crate) fn first_words(mark: &Mark) -> Vec<&str> {
    let mut words: Vec<&str> = mark.singular().iter().map(String::as_str).filter(|word| word.len() >= 2).take(6).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// The sounds from the first vowel on, at least three. Three are followed by the letters after the first vowels, because so few rhyme by chance.
pub(crate) fn rhyme(mark: &Mark) -> Option<String> {
    let sounds = mark.syllables();
    let end = sounds.find('a').and_then(|at| sounds.get(at..))?;
    match end.len() {
        0..3 => None,
        3 => Some(format!("{end} {}", doubled_once(after_vowels(mark.whole_singular())))),
        _ => Some(end.to_owned()),
    }
}

/// The letters from the first vowel on: `EXXON` of `TEXXON`.
pub(crate) fn from_vowel(text: &str) -> &str {
    text.trim_start_matches(|c| !is_vowel(c))
}

/// The letters after the first vowels: `GGIE` of `HUGGIE`.
pub(crate) fn after_vowels(text: &str) -> &str {
    from_vowel(text).trim_start_matches(is_vowel)
}

fn is_vowel(c: char) -> bool {
    "AEIOUY".contains(c)
}

/// A text with doubled letters written once.
pub(crate) fn doubled_once(text: &str) -> String {
    once(text).collect()
}

/// The letters of a text, doubled ones once.
pub(crate) fn once(text: &str) -> impl Iterator<Item = char> {
    let mut last = None;
    text.chars().filter(move |c| last.replace(*c) != Some(*c))
}

/// Explains a rule for a name and a mark in a sentence without a full stop.
#[must_use]
pub fn why(rule: Rule, name: &Mark, mark: &Mark) -> String {
    let (text, its) = (name.compact(), mark.compact());
    let (short, long) = if (text.len(), text) <= (its.len(), its) { (name, mark) } else { (mark, name) };
    let shared = |words: &mut dyn Iterator<Item = &str>| words.map(str::to_owned).next().unwrap_or_default();
    let letters = |count: usize| if count == 1 { "one letter differs".to_owned() } else { format!("{count} letters differ") };
    match rule {
        Rule::E1 => "the same letters".to_owned(),
        Rule::E2 => format!("the register lists {text} as another spelling of the mark"),
        Rule::S1 => "the same words in another order".to_owned(),
        Rule::S2 => "only a plural or the spelling of a number differs".to_owned(),
        Rule::S3 => {
            format!("{} of {} letters", letters(distance(name, mark)), name.spelled().chars().count().max(mark.spelled().chars().count()))
        }
        Rule::S4 => format!("both sound like {}; {}", shared_key(name, mark), letters(distance(name, mark))),
        Rule::S5 => format!("both are {} when descriptive words are ignored", name.distinctive().collect::<Vec<_>>().join(" ")),
        Rule::S6 => "nearly the same letters in nearly the same order".to_owned(),
        Rule::S7 => "the same words in other forms or another order".to_owned(),
        Rule::S8 => format!("{} begins with the distinctive words of {}", long.normal(), short.normal()),
        Rule::S9 => format!("the distinctive words of {} are most of {}", short.normal(), long.normal()),
        Rule::S11 => format!("{} is {} joined with a descriptive word", long.normal(), short.normal()),
        Rule::S13 => "the same words in translation".to_owned(),
        Rule::S14 => "the same beginning, nearly all consonants sound alike, and few letters differ".to_owned(),
        Rule::S15 => "only the consonants before the first vowel differ".to_owned(),
        Rule::P1 => format!("all words of {} are in {}", short.normal(), long.normal()),
        Rule::P2 => {
            format!("both have the word {}", shared(&mut name.distinctive().filter(|word| mark.distinctive().any(|its| its == *word))))
        }
        Rule::P3 => format!("{} is inside {}", short.compact(), long.compact()),
        Rule::P4 => "a distinctive word of each sounds alike".to_owned(),
        Rule::P5 => "one begins with the sounds of the other".to_owned(),
        Rule::P6 => "one of three or four letters differs".to_owned(),
        Rule::P7 => "distinctive words have the same beginning".to_owned(),
        Rule::P8 => "most consonants sound alike, and most letters are the same".to_owned(),
        Rule::P9 => "the same ending".to_owned(),
        Rule::P10 => "two words in common".to_owned(),
        Rule::P11 => "a short word in common".to_owned(),
        Rule::P12 => {
            let meanings = mark.meanings();
            format!("both mean {}", shared(&mut name.meanings().into_iter().filter(|meaning| meanings.contains(meaning))))
        }
        Rule::P13 => "only the first consonants differ to the ear".to_owned(),
        Rule::P14 => "the same beginning".to_owned(),
        Rule::P15 => "a distinctive word in common, joined with a descriptive word".to_owned(),
        Rule::P16 => match other_meanings(name, mark) {
            Some((word, its)) => format!("few letters differ, but {word} and {its} have other meanings"),
            None => "most letters are the same, but each has words of its own".to_owned(),
        },
    }
}

fn shared_key(name: &Mark, mark: &Mark) -> String {
    name.whole_keys().iter().find(|key| key.len() >= 2 && mark.whole_keys().contains(key)).cloned().unwrap_or_default()
}

#[cfg(test)]
#[path = "rules_tests.rs"]
pub(crate) mod tests;
