//! Compares a name with many marks by their letters and sounds, without reading the words of each mark: of most candidates this says which rule is the
//! first that holds, at a small part of the cost. What a name needs for it is computed once, and no memory is allocated for a mark.

use crate::consonants::{PackedSkeleton, are_near_skeletons};
use crate::edits::EditPattern;
use crate::mark::{Mark, singular, write_spelled};
use crate::meanings::{common_beginning, common_end};
use crate::near::{NearLetters, are_near, edits_max};
use crate::rules::{self, Rule, RuleSet, Tier};
use crate::sound::{self, WeightedText};
use crate::words::is_everyday;

/// The letters of a name up to which it is compared by letters.
const LETTERS_MAX: usize = 64;
/// The rules that are tried for every candidate.
const ALWAYS: RuleSet = RuleSet::of(&[Rule::E1, Rule::S2, Rule::S3]);

/// What letters and sounds say of a name and a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    /// No rule holds.
    Different,
    /// The first rule that holds.
    Alike(Rule),
    /// The words must be compared.
    Unknown,
}

/// A name that is compared with many marks, and the mark that was read last.
pub(super) struct ByLetters<'a> {
    name: &'a Mark,
    spelled: &'a str,
    whole_singular: &'a str,
    words: usize,
    has_everyday_word: bool,
    has_meanings: bool,
    /// Whether the keys of the only word are those of the whole name.
    is_one_plain_word: bool,
    edits: EditPattern<'a>,
    singular_edits: EditPattern<'a>,
    near: NearLetters<'a>,
    weighted: WeightedText,
    skeleton: PackedSkeleton,
    rhyme: Option<String>,
    from_first_vowel: String,
    mark: ReadMark,
}

/// A mark that was read. What a rule needs is computed once for each mark.
#[derive(Debug, Default)]
struct ReadMark {
    /// The words joined, with numbers spelled.
    letters: String,
    /// The letters of the whole mark in the singular.
    singular_letters: usize,
    words: usize,
    has_digits: bool,
    /// The skeleton, if the caller knows it.
    packed_skeleton: PackedSkeleton,
    /// What [`crate::sound`] makes of the mark, if it was computed.
    has_syllables: bool,
    syllables: String,
    has_skeleton: bool,
    skeleton: String,
    edits: Option<usize>,
    /// Bounds of the weighted distance of the spelled texts, both inclusive, if they were computed.
    weighted: Option<(u32, u32)>,
}

impl ReadMark {
    /// Reads a mark in the normal form, with its skeleton if it is known. Returns whether it has Latin letters and digits only.
    fn read(&mut self, text: &str, skeleton: PackedSkeleton) -> bool {
        let (mut blanks, mut capitals) = (0_usize, 0_usize);
        for byte in text.bytes() {
            blanks += usize::from(byte == b' ');
            capitals += usize::from(byte.is_ascii_uppercase());
        }
        // Most marks have capitals and blanks only: then nothing is spelled, and the letters need not be looked at again.
        let has_capitals_only = capitals + blanks == text.len();
        if has_capitals_only {
            self.letters.clear();
            text.split(' ').for_each(|word| self.letters.push_str(word));
        } else {
            write_spelled(text, &mut self.letters);
        }
        self.singular_letters = singular(&self.letters).len();
        self.words = blanks + 1;
        self.has_digits = !has_capitals_only && text.bytes().any(|byte| byte.is_ascii_digit());
        self.packed_skeleton = skeleton;
        (self.has_syllables, self.has_skeleton, self.edits, self.weighted) = (false, false, None, None);
        has_capitals_only || is_plain(&self.letters)
    }

    fn whole_singular(&self) -> &str {
        self.letters.get(..self.singular_letters).unwrap_or_default()
    }

    /// The sounds of the mark.
    fn syllables(&mut self) -> &str {
        if !self.has_syllables {
            let text = self.letters.get(..self.singular_letters).unwrap_or_default();
            sound::write_syllables(text, &mut self.syllables);
            self.has_syllables = true;
        }
        &self.syllables
    }

    /// The consonants of the mark.
    fn skeleton(&mut self) -> &str {
        if !self.has_skeleton {
            self.syllables();
            sound::write_skeleton(&self.syllables, &mut self.skeleton);
            self.has_skeleton = true;
        }
        &self.skeleton
    }
}

impl<'a> ByLetters<'a> {
    /// Prepares a name. `None` if it is not compared by letters, because it is very long or has other letters than Latin ones.
    pub(super) fn of(name: &'a Mark) -> Option<Self> {
        let (spelled, whole_singular) = (name.spelled(), name.whole_singular());
        if !(1..=LETTERS_MAX).contains(&spelled.len()) || !is_plain(spelled) {
            return None;
        }
        Some(Self {
            name,
            spelled,
            whole_singular,
            words: name.tokens().len(),
            has_everyday_word: name.singular().iter().any(|word| is_everyday(word)),
            has_meanings: !name.meanings().is_empty(),
            is_one_plain_word: name.singular() == [whole_singular],
            edits: EditPattern::of(spelled),
            singular_edits: EditPattern::of(whole_singular),
            near: NearLetters::of(spelled),
            weighted: WeightedText::of(spelled),
            skeleton: PackedSkeleton::of(name.skeleton()),
            rhyme: rules::rhyme(name),
            from_first_vowel: rules::doubled_once(rules::from_vowel(whole_singular)),
            mark: ReadMark::default(),
        })
    }

    /// The first rule by which the name and a mark in the normal form are alike, as [`rules::similar_by`] finds it. The skeleton is that of the mark,
    /// or unknown.
    pub(super) fn first_rule(&mut self, text: &str, skeleton: PackedSkeleton, rules: RuleSet, known: RuleSet) -> Compared {
        if !self.mark.read(text, skeleton) {
            return Compared::Unknown;
        }
        for rule in rules.with(ALWAYS).iter() {
            match self.holds(rule, text, known) {
                Some(false) => {}
                Some(true) => return Compared::Alike(rule),
                None => return Compared::Unknown,
            }
        }
        Compared::Different
    }

    /// The distance in letters of the name and a mark in the normal form. `None` if the mark has other letters than Latin ones.
    pub(super) fn distance_to(&mut self, text: &str) -> Option<usize> {
        self.mark.read(text, PackedSkeleton::UNKNOWN).then(|| self.distance())
    }

    /// The distance in letters of the name and the mark that was read last.
    pub(super) fn distance(&mut self) -> usize {
        let letters = &self.mark.letters;
        *self.mark.edits.get_or_insert_with(|| self.edits.edits(letters))
    }

    /// Whether a text in the normal form has the letters of the name.
    pub(super) fn has_letters_of(&self, text: &str) -> bool {
        text.bytes().filter(|byte| *byte != b' ').eq(self.name.compact().bytes())
    }

    /// Whether a rule holds, if no rule before it does. `None` if the words must be compared.
    fn holds(&mut self, rule: Rule, text: &str, known: RuleSet) -> Option<bool> {
        if rule.tier() == Tier::Partial && known.has(rule) {
            return Some(true);
        }
        let (own, has_one_word_each) = (self.spelled, self.words == 1 && self.mark.words == 1);
        let (min, max) = ordered(own.len(), self.mark.letters.len());
        match rule {
            // Without digits, the letters that were read are those of the text.
            Rule::E1 => Some(if self.mark.has_digits { self.has_letters_of(text) } else { self.mark.letters == self.name.compact() }),
            // The caller compares pseudo marks.
            Rule::E2 => Some(false),
            // The only words of two marks are the same if the marks have the same letters.
            Rule::S1 => unless(true, self.words == self.mark.words && !has_one_word_each),
            Rule::S2 => Some(self.whole_singular == self.mark.whole_singular()),
            Rule::S3 => {
                let limit = edits_max(min);
                let is_near = limit > 0 && max - min <= limit && self.distance() <= limit;
                self.unless_other_meanings(is_near)
            }
            Rule::S4 => {
                let has_same_key = self.has_same_key(known);
                self.unless_other_meanings(has_same_key)
            }
            // Marks of one word each have no word in common, unless they have the same letters.
            Rule::S5 | Rule::S8 | Rule::S9 => unless(true, !has_one_word_each),
            Rule::S6 => unless(self.may_have_other_meanings() || self.may_begin_alike_and_differ(), self.is_near()),
            Rule::S7 => unless(true, self.words > 1 && self.mark.words > 1),
            Rule::S11 => unless(true, has_one_word_each),
            // A name without a word that is translated is the translation of no other.
            Rule::S13 | Rule::P12 => unless(true, self.has_meanings),
            Rule::S14 => {
                let is_long_enough = has_one_word_each && min >= rules::NEAR_CONSONANTS_LETTERS_MIN;
                let is_near = is_long_enough
                    && rules::begin_alike(own, &self.mark.letters)
                    && self.has_near_skeleton()
                    && self.is_weighted_within(max * rules::NEAR_CONSONANTS_LIMIT / 10);
                self.unless_other_meanings(is_near)
            }
            Rule::S15 => {
                let is_rhyme = has_one_word_each && min >= rules::RHYMING_LETTERS_MIN && self.rhymes_by_letters();
                unless(self.has_everyday_word, is_rhyme)
            }
            Rule::P1 if has_one_word_each => Some(self.name.singular() == [singular(text)]),
            Rule::P1 | Rule::P2 | Rule::P4 | Rule::P15 => None,
            Rule::P3 => {
                let its = self.mark.letters.as_str();
                Some(min >= 5 && if own.len() <= its.len() { its.contains(own) } else { own.contains(its) })
            }
            Rule::P5 => {
                let (key, its) = (self.name.primary_key(), sound::primary_key(&self.mark.letters));
                Some(key.len().min(its.len()) >= 4 && (key.starts_with(&its) || its.starts_with(key)))
            }
            Rule::P6 => Some(min >= 3 && max <= 4 && self.distance() <= 1),
            Rule::P7 => {
                let has_beginning = |word: &str| rules::word_beginnings(self.name).any(|beginning| word.starts_with(beginning));
                unless(true, text.split(' ').any(has_beginning))
            }
            Rule::P8 => Some(self.has_near_skeleton() && self.is_weighted_within(max * rules::CONSONANTS_LIMIT / 10)),
            Rule::P9 => {
                let end = common_end(own, &self.mark.letters);
                Some(end >= 5 && end * 2 >= min)
            }
            Rule::P10 => unless(true, self.words > 1),
            Rule::P11 => unless(true, rules::short_words(self.name).next().is_some()),
            Rule::P13 => Some(self.rhymes()),
            Rule::P14 => {
                let beginning = common_beginning(own, &self.mark.letters);
                Some(beginning >= 5 && beginning * 2 >= min)
            }
            Rule::P16 => {
                let may_hold = self.may_have_other_meanings() || self.may_begin_alike_and_differ();
                unless(true, may_hold && self.has_near_letters(known))
            }
        }
    }

    /// The result of a rule that does not hold for words of other meanings: `None` if there may be such words.
    fn unless_other_meanings(&self, holds: bool) -> Option<bool> {
        unless(self.may_have_other_meanings(), holds)
    }

    /// Whether name and mark may differ in words of other meanings: both have as many words, and that of the name is an everyday word.
    fn may_have_other_meanings(&self) -> bool {
        self.has_everyday_word && self.words == self.mark.words
    }

    /// Whether name and mark may begin with the same word and have words of their own.
    fn may_begin_alike_and_differ(&self) -> bool {
        self.words > 1 && self.mark.words > 1
    }

    /// The letters and the key of rule `S4`.
    fn has_same_key(&mut self, known: RuleSet) -> bool {
        let (own, its) = (self.whole_singular.len(), self.mark.singular_letters);
        let (min, max) = ordered(own, its);
        if min < 4 || min * 10 < max * 7 || self.singular_distance() > max * 4 / 10 {
            return false;
        }
        // Of two marks of one word without digits, the keys of the words are those of the marks. By rule P4 one of at least three letters is the same.
        if known.has(Rule::P4) && self.is_one_plain_word && self.mark.words == 1 && !self.mark.has_digits {
            return true;
        }
        let keys = sound::keys(self.mark.whole_singular());
        keys.iter().any(|key| key.len() >= 2 && self.name.whole_keys().contains(key))
    }

    /// The distance in letters of the name and the mark in the singular.
    fn singular_distance(&mut self) -> usize {
        if self.has_plural() { self.singular_edits.edits(self.mark.whole_singular()) } else { self.distance() }
    }

    /// Whether the name or the mark is not in the singular.
    fn has_plural(&self) -> bool {
        self.whole_singular.len() < self.spelled.len() || self.mark.singular_letters < self.mark.letters.len()
    }

    /// The letters of rule `S6`.
    fn is_near(&self) -> bool {
        self.near.may_be_near(&self.mark.letters) && are_near(self.spelled, &self.mark.letters)
    }

    /// The consonants of rules `S14` and `P8`.
    fn has_near_skeleton(&mut self) -> bool {
        if let Some(is_near) = self.skeleton.near(self.mark.packed_skeleton) {
            return is_near;
        }
        are_near_skeletons(self.name.skeleton(), self.mark.skeleton())
    }

    /// Whether the weighted distance of the spelled texts is at most `limit`. It is computed once, and only if its bounds do not decide.
    fn is_weighted_within(&mut self, limit: usize) -> bool {
        let Self { spelled, weighted, mark, .. } = self;
        let (limit, letters) = (limit as u32, mark.letters.as_str());
        let (least, most) = mark.weighted.get_or_insert_with(|| (0, weighted.distance_max(letters)));
        if *least <= limit && limit < *most {
            // Rule `P8`, whose limit is the largest, is tried after the others, so that its limit is used unless the bounds already decide it.
            let of_last_rule = (spelled.len().max(letters.len()) * rules::CONSONANTS_LIMIT / 10) as u32;
            let stop = if *most <= of_last_rule { limit } else { limit.max(of_last_rule) };
            (*least, *most) = match weighted.distance_within(letters, stop) {
                Some(distance) => (distance, distance),
                None => (stop + 1, *most),
            };
        }
        *most <= limit
    }

    /// Rule `P13`.
    fn rhymes(&mut self) -> bool {
        let Some(own) = &self.rhyme else { return false };
        self.mark.syllables();
        let Some(end) = self.mark.syllables.find('a').and_then(|at| self.mark.syllables.get(at..)) else { return false };
        match end.len() {
            0..3 => false,
            3 => {
                let letters = rules::after_vowels(self.mark.whole_singular());
                own.strip_prefix(end).and_then(|rest| rest.strip_prefix(' ')).is_some_and(|own| is_doubled_once(letters, own))
            }
            _ => own == end,
        }
    }

    /// Rule `S15` for marks of one word each, whatever the words mean.
    fn rhymes_by_letters(&mut self) -> bool {
        self.from_first_vowel.len() >= rules::RHYME_LETTERS_MIN
            && self.rhymes()
            && is_doubled_once(rules::from_vowel(self.mark.whole_singular()), &self.from_first_vowel)
    }

    /// The letters and sounds of rule `P16`.
    fn has_near_letters(&mut self, known: RuleSet) -> bool {
        let limit = edits_max(self.spelled.len().min(self.mark.letters.len()));
        let has_few_edits = limit > 0 && self.distance() <= limit;
        has_few_edits || self.has_same_key(known) || self.is_near()
    }
}

/// Whether a rule holds that holds by letters; `None` if it does and words may say otherwise.
fn unless(words_may_differ: bool, holds: bool) -> Option<bool> {
    (!(words_may_differ && holds)).then_some(holds)
}

/// The smaller number, then the larger one.
fn ordered(one: usize, other: usize) -> (usize, usize) {
    (one.min(other), one.max(other))
}

/// Whether a text has Latin capitals only.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// Whether a text is as expected when doubled letters are written once.
fn is_doubled_once(text: &str, expected: &str) -> bool {
    rules::once(text).eq(expected.chars())
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::super::keys;
    use super::super::tests::random_text;
    use super::*;
    use crate::rules::{distance, similar_by};

    /// Coined words, of which many are alike by letters and sounds.
    fn coined(random: &mut StdRng) -> String {
        const SYLLABLES: [&str; 12] = ["BA", "PA", "DO", "TO", "KE", "CE", "LIN", "LEN", "RAX", "SO", "ZO", "NI"];
        let count = random.random_range(2..5);
        let mut word: String = (0..count).map(|_| SYLLABLES[random.random_range(0..SYLLABLES.len())]).collect();
        if random.random_bool(0.2) {
            word.push_str([" STAR", "S", " HOTEL", "4", " LUNO"][random.random_range(0..5)]);
        }
        word
    }

    /// A text that was changed a little.
    fn changed(random: &mut StdRng, text: &str) -> String {
        let mut letters: Vec<char> = text.chars().collect();
        for _ in 0..random.random_range(1..4) {
            let at = random.random_range(0..letters.len());
            match random.random_range(0..6) {
                0 => letters[at] = char::from(b"AEIOUKCSZTD"[random.random_range(0..11)]),
                1 => letters.insert(at, letters[at]),
                2 if letters.len() > 4 => drop(letters.remove(at)),
                3 if at > 0 => letters.swap(at, at - 1),
                4 => letters.extend(["S", "LUNO", "KEN"][random.random_range(0..3)].chars()),
                _ => letters.splice(0..1, ["STR", "B", "PH"][random.random_range(0..3)].chars()).for_each(drop),
            }
        }
        letters.into_iter().collect()
    }

    /// Proves that each rule of letters and sounds is found without the words, also if it is the only one that is tried.
    #[test]
    fn rules_are_found_by_letters() {
        for (name, mark, rule) in [
            ("Acme", "ACME", Rule::E1),
            ("Newports", "NEWPORT", Rule::S2),
            ("Turcool", "TRUCOOL", Rule::S3),
            ("Seiko", "SEYCOS", Rule::S4),
            ("Commcash", "COMMUNICASH", Rule::S6),
            ("Mictine", "MICTURIN", Rule::S14),
            ("Exxon", "TEXON", Rule::S15),
            ("Lutexal", "LUTEX", Rule::P3),
            ("Lutexal", "OLD LUTEXALS", Rule::P3),
            ("Neltar", "NELTARIDO", Rule::P5),
            ("Maya", "MAYO", Rule::P6),
            ("Domari", "DENURO", Rule::P8),
            ("Advicor", "ALTOCOR", Rule::P8),
            ("Baltorin", "KESTORIN", Rule::P9),
            ("Nikon", "IKON", Rule::P13),
            ("Dabo", "NUBO", Rule::P13),
            ("Lutexal", "LUTEXORI", Rule::P14),
        ] {
            let (name, mark) = (Mark::new(name).unwrap(), Mark::new(mark).unwrap());
            let alone = RuleSet::of(&[rule]);
            assert_eq!(similar_by(&name, &mark, alone, RuleSet::NONE), Some(rule), "{} and {}", name.normal(), mark.normal());
            let found = ByLetters::of(&name).unwrap().first_rule(&mark.normal(), PackedSkeleton::of(mark.skeleton()), alone, RuleSet::NONE);
            assert_eq!(found, Compared::Alike(rule), "{} and {}", name.normal(), mark.normal());
        }
    }

    /// Proves for pairs of marks of all kinds, each rule alone and random sets of rules that what letters and sounds say is the first rule that
    /// holds, and that the distance is the same.
    #[test]
    fn letters_say_what_the_rules_say() {
        let mut random = StdRng::seed_from_u64(46);
        let (mut alike, mut different, mut unknown) = (0, 0, 0);
        for round in 0..300 {
            let of_round = |random: &mut StdRng| if round % 3 == 0 { random_text(random) } else { coined(random) };
            let first = of_round(&mut random);
            let Some(name) = Mark::new(&first) else { continue };
            let Some(mut by_letters) = ByLetters::of(&name) else { continue };
            for _ in 0..30 {
                let other = if random.random_bool(0.5) { changed(&mut random, &first) } else { of_round(&mut random) };
                let Some(mark) = Mark::new(&other) else { continue };
                let text = mark.normal();
                let own = keys::listed(&name);
                let mut known = if keys::listed(&mark).iter().any(|key| own.contains(key)) { keys::LISTED } else { RuleSet::NONE };
                let primary = keys::primary(&name).zip(keys::primary(&mark));
                if primary.is_some_and(|(key, its)| key.starts_with(its) || its.starts_with(key)) {
                    known = known.with(keys::PRIMARY);
                }
                let some: Vec<Rule> = Rule::ALL.iter().copied().filter(|_| random.random_bool(0.4)).collect();
                let one_rule = Rule::ALL.iter().map(|rule| RuleSet::of(&[*rule]));
                for rules in one_rule.chain([RuleSet::of(&some), RuleSet::ALL]) {
                    let expected = similar_by(&name, &mark, rules, known);
                    let found = by_letters.first_rule(&text, PackedSkeleton::of(mark.skeleton()), rules, known);
                    assert_eq!(by_letters.first_rule(&text, PackedSkeleton::UNKNOWN, rules, known), found, "{} and {text}", name.normal());
                    match found {
                        Compared::Unknown => unknown += 1,
                        Compared::Different => {
                            different += 1;
                            assert_eq!(expected, None, "{} and {text} by {rules:?}", name.normal());
                        }
                        Compared::Alike(rule) => {
                            alike += 1;
                            assert_eq!(expected, Some(rule), "{} and {text} by {rules:?}", name.normal());
                            assert_eq!(by_letters.distance(), distance(&name, &mark), "{} and {text}", name.normal());
                        }
                    }
                }
                assert_eq!(by_letters.distance_to(&text), mark.is_latin().then(|| distance(&name, &mark)), "{} and {text}", name.normal());
                assert_eq!(by_letters.has_letters_of(&text), name.compact() == mark.compact(), "{} and {text}", name.normal());
            }
        }
        assert!(alike > 5_000 && different > 20_000 && unknown > 100, "{alike} alike, {different} different, {unknown} unknown");
    }

    /// Proves that coined words need no comparison of words by any rule of letters and sounds.
    #[test]
    fn coined_words_are_compared_by_letters_alone() {
        let mut random = StdRng::seed_from_u64(47);
        let by_letters = RuleSet::of(&[Rule::S4, Rule::S6, Rule::S14, Rule::S15, Rule::P8, Rule::P13, Rule::P16]);
        let name = Mark::new("Kelinraxo").unwrap();
        let mut prepared = ByLetters::of(&name).unwrap();
        for _ in 0..500 {
            let mark = Mark::new(&coined(&mut random)).unwrap().normal();
            assert_ne!(prepared.first_rule(&mark, PackedSkeleton::UNKNOWN, by_letters, RuleSet::NONE), Compared::Unknown, "{mark}");
        }
    }

    /// Proves that a name with other letters than Latin ones, or a very long one, is not compared by letters, and that a mark with other letters is not.
    #[test]
    fn other_letters_are_not_compared() {
        for text in ["КОШКА", "CAFÉ КОШКА", "LONG".repeat(20).as_str()] {
            assert!(ByLetters::of(&Mark::new(text).unwrap()).is_none(), "{text}");
        }
        let name = Mark::new("KOSHKA").unwrap();
        let mut prepared = ByLetters::of(&name).unwrap();
        assert_eq!(prepared.first_rule("КОШКА", PackedSkeleton::UNKNOWN, RuleSet::ALL, RuleSet::NONE), Compared::Unknown);
        assert_eq!(prepared.distance_to("КОШКА"), None);
    }
}
