//! Whether two names are of one company: the same words or letters without legal forms, accents, case and signs (`exact`), or as many words
//! of which each has a partner within a few edits (`strong`). There is no rule for acronyms, for parts of names or for sound: a wrong match
//! does more harm than a missing one.
//!
//! Both grades say that the names agree, not that the companies are the same: two companies can have one name. Names that agree although
//! their legal forms belong to two kinds of company are marked, see [`NameMatch::has_other_form`].

use std::fmt;

use crate::near_names::{edits_max, lists_near};
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
        Some(Self { letters: words.concat(), words, sorted, all_letters, forms })
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
        Reason::SimilarWords(similar_words(&one.sorted, &other.sorted)?)
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

/// Returns the pairs of words that differ if each word has a partner of its own in the other list; both lists are sorted.
fn similar_words(words: &[String], others: &[String]) -> Option<Vec<(String, String, usize)>> {
    if words.len() != others.len() || !have_same_fixed_words(words, others) {
        return None;
    }
    let (words, others): (Vec<&String>, Vec<&String>) =
        (words.iter().filter(|word| edits_max(word) > 0).collect(), others.iter().filter(|word| edits_max(word) > 0).collect());
    if words.len() != others.len() {
        return None;
    }
    let mut partners: Vec<Vec<(usize, usize)>> = Vec::with_capacity(words.len());
    for word in &words {
        let mut near: Vec<(usize, usize)> =
            others.iter().enumerate().filter_map(|(at, other)| Some((edits_between(word, other)?, at))).collect();
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
    for (other, word) in others.iter().zip(&taken_by) {
        let word = words.get((*word)?)?;
        let edits = edits_between(word, other)?;
        if edits > 0 {
            pairs.push(((*word).clone(), (*other).clone(), edits));
        }
    }
    pairs.sort_unstable();
    Some(pairs)
}

/// Whether the words that admit no edit are the same in both sorted lists.
fn have_same_fixed_words(words: &[String], others: &[String]) -> bool {
    let is_fixed = |word: &&String| edits_max(word) == 0;
    words.iter().filter(is_fixed).eq(others.iter().filter(is_fixed))
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
