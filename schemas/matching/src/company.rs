//! Whether two names are of one company: the same words or letters without legal forms, accents, case and signs (`exact`), or as many words
//! of which each has a partner within a few edits (`strong`). There is no rule for acronyms, for parts of names or for sound: a wrong match
//! does more harm than a missing one.
//!
//! Both grades say that the names agree, not that the companies are the same: two companies can have one name. Names that agree although
//! their legal forms belong to two kinds of company are marked, see [`NameMatch::has_other_form`].

use std::fmt;

use crate::near_names::{edits_max, lists_near};
use crate::word_shape::WordShape;
use serde::{Deserialize, Serialize};
use texts::company_forms::{self, Form, compared_words};

/// Returns the version of the data file of legal forms.
#[must_use]
pub fn forms_version() -> u32 {
    company_forms::version()
}

/// A name of a company, as it is compared.
#[derive(Clone, Debug)]
pub struct CompanyName {
    /// The words in capitals without legal forms, in their order.
    words: Vec<String>,
    /// The words in capitals without legal forms, sorted.
    sorted: Vec<String>,
    /// The shapes of the sorted words.
    shapes: Vec<WordShape>,
    /// The words without legal forms, joined without blanks.
    letters: String,
    /// All words with legal forms, without blanks.
    all_letters: String,
    forms: Vec<&'static Form>,
}

impl CompanyName {
    /// Reads a name. `None` if it is compared with none, see [`compared_words`]: such a name matches none.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let mut words = compared_words(name)?;
        let all_letters = words.concat();
        let forms = company_forms::remove(&mut words);
        let mut sorted = words.clone();
        sorted.sort_unstable();
        let shapes = sorted.iter().map(|word| WordShape::of(word)).collect();
        Some(Self { letters: words.concat(), words, sorted, shapes, all_letters, forms })
    }

    /// The normal form: the words in capitals without signs, accents and legal forms, separated by one blank.
    #[must_use]
    pub fn normal(&self) -> String {
        self.words.join(" ")
    }

    /// The usual abbreviations of the legal forms of the name, the last first.
    pub fn forms(&self) -> impl Iterator<Item = &'static str> {
        self.forms.iter().map(|form| form.abbreviation())
    }

    /// Keys of which two names have one in common if, and only if, they match exactly.
    #[must_use]
    pub fn exact_keys(&self) -> Vec<String> {
        vec![format!("words/{}", self.sorted.join(" ")), format!("letters/{}", self.letters), format!("all/{}", self.all_letters)]
    }

    /// The lists of records in which the names are that match one strongly, see [`lists_near`].
    #[must_use]
    pub fn near_lists(&self) -> Vec<Vec<String>> {
        lists_near(&self.sorted.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The words without legal forms, sorted.
    pub(crate) fn sorted_words(&self) -> &[String] {
        &self.sorted
    }

    /// The sorted words that admit edits, with their shapes.
    fn varied_words(&self) -> impl Iterator<Item = (&String, WordShape)> {
        self.sorted.iter().zip(self.shapes.iter().copied()).filter(|(_, shape)| !shape.is_fixed())
    }

    /// The sorted words that admit no edit.
    fn fixed_words(&self) -> impl Iterator<Item = &String> {
        self.sorted.iter().zip(&self.shapes).filter(|(_, shape)| shape.is_fixed()).map(|(word, _)| word)
    }

    /// Whether each word may have a partner in another name. Most names that do not match differ here, before anything of them is copied.
    fn may_be_similar(&self, other: &Self) -> bool {
        self.sorted.len() == other.sorted.len()
            && self.fixed_words().eq(other.fixed_words())
            && self.varied_words().all(|(_, shape)| other.varied_words().any(|(_, of_other)| shape.may_be_near(of_other)))
    }
}

/// How well two names agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// The same letters, or the same words.
    Exact,
    /// As many words, each with a partner within a few edits.
    Strong,
}

impl Grade {
    /// The grade as answers name it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Strong => "strong",
        }
    }
}

/// Why two names match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The same words in the same order.
    SameWords,
    /// The same words in another order.
    OtherOrder,
    /// The same letters, divided into words in another way.
    SameLetters,
    /// Each word has a partner; these are the pairs that differ, with their number of edits.
    SimilarWords(Vec<(String, String, usize)>),
}

/// A match of two names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameMatch {
    /// How well they agree.
    pub grade: Grade,
    /// Why.
    pub reason: Reason,
    /// Whether each has a legal form of its own, of two kinds that one law distinguishes: `X AG` and `X GMBH` are two companies.
    pub has_other_form: bool,
}

impl fmt::Display for NameMatch {
    /// The reason as answers show it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Reason::SameWords => f.write_str("the same words")?,
            Reason::OtherOrder => f.write_str("the same words in another order")?,
            Reason::SameLetters => f.write_str("the same letters")?,
            Reason::SimilarWords(pairs) => {
                f.write_str("similar words:")?;
                for (at, (one, other, edits)) in pairs.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    let noun = if *edits == 1 { "edit" } else { "edits" };
                    write!(f, "{comma} {one} and {other} ({edits} {noun})")?;
                }
            }
        }
        f.write_str(if self.has_other_form { "; their legal forms are of two kinds" } else { "" })
    }
}

/// Compares two names. The result is the same in both directions, except for the order of the words in its reason. `None` if they do not match.
#[must_use]
pub fn compare(one: &CompanyName, other: &CompanyName) -> Option<NameMatch> {
    let reason = if one.sorted == other.sorted {
        if one.words == other.words { Reason::SameWords } else { Reason::OtherOrder }
    } else if one.letters == other.letters || one.all_letters == other.all_letters {
        Reason::SameLetters
    } else {
        Reason::SimilarWords(similar_words(one, other)?)
    };
    let grade = if matches!(reason, Reason::SimilarWords(_)) { Grade::Strong } else { Grade::Exact };
    Some(NameMatch { grade, reason, has_other_form: have_other_forms(one, other) })
}

/// Whether no form of one name can be that of the other, and one law distinguishes them.
fn have_other_forms(one: &CompanyName, other: &CompanyName) -> bool {
    let is_other = |form: &&Form| other.forms.iter().any(|o| form.is_other_than(o));
    let is_shared = |form: &&Form| other.forms.iter().any(|o| o.abbreviation() == form.abbreviation());
    one.forms.iter().copied().any(|form| is_other(&form)) && !one.forms.iter().copied().any(|form| is_shared(&form) && !form.is_general())
}

/// Returns the number of edits between two words, if they may differ by as many.
pub(crate) fn edits_between(one: &str, other: &str) -> Option<usize> {
    if one == other {
        return Some(0);
    }
    let limit = edits_max(one).min(edits_max(other));
    if limit == 0 || one.chars().count().abs_diff(other.chars().count()) > limit {
        return None;
    }
    let edits = strsim::osa_distance(one, other);
    (edits <= limit).then_some(edits)
}

/// Returns the pairs of words that differ if each word has a partner of its own in the other name.
fn similar_words(one: &CompanyName, other: &CompanyName) -> Option<Vec<(String, String, usize)>> {
    if !one.may_be_similar(other) {
        return None;
    }
    // Both have as many, since the names have as many words and the same fixed ones.
    let (words, others): (Vec<_>, Vec<_>) = (one.varied_words().collect(), other.varied_words().collect());
    let mut partners: Vec<Vec<(usize, usize)>> = Vec::with_capacity(words.len());
    for (word, shape) in &words {
        let candidates = others.iter().enumerate().filter(|(_, (_, of_other))| shape.may_be_near(*of_other));
        let mut near: Vec<(usize, usize)> = candidates.filter_map(|(at, (other, _))| Some((edits_between(word, other)?, at))).collect();
        if near.is_empty() {
            return None;
        }
        near.sort_unstable();
        partners.push(near);
    }
    // An assignment along augmenting paths, so that the result does not depend on the order of the words.
    let mut taken_by: Vec<Option<usize>> = vec![None; others.len()];
    for at in 0..words.len() {
        if !assign(at, &partners, &mut taken_by, &mut vec![false; others.len()]) {
            return None;
        }
    }
    let mut pairs = Vec::new();
    for ((other, _), word) in others.iter().zip(&taken_by) {
        let (word, _) = words.get((*word)?)?;
        let edits = edits_between(word, other)?;
        if edits > 0 {
            pairs.push(((*word).clone(), (*other).clone(), edits));
        }
    }
    pairs.sort_unstable();
    Some(pairs)
}

/// Assigns a partner to a word, if need be by assigning another one to the word that has it. The depth is at most the number of words.
fn assign(word: usize, partners: &[Vec<(usize, usize)>], taken_by: &mut [Option<usize>], seen: &mut [bool]) -> bool {
    for (_, other) in partners.get(word).into_iter().flatten() {
        if std::mem::replace(&mut seen[*other], true) {
            continue;
        }
        let is_free = match taken_by[*other] {
            None => true,
            Some(holder) => assign(holder, partners, taken_by, seen),
        };
        if is_free {
            taken_by[*other] = Some(word);
            return true;
        }
    }
    false
}

#[cfg(test)]
#[path = "company_tests.rs"]
mod tests;
