//! Legal forms of companies in all their spellings: a data file (`data/company_forms.json`), and the words of a name without them.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::company_names::{NAME_CHARS_MAX, all_words};
use crate::data_file::{DataEntry, DataFile, ShownFile};

/// The most words of a name of a company. A name with more is none: it would not be compared as a whole.
pub const WORDS_MAX: usize = 40;
/// Words that join others. They are not compared, except at the beginning of a name.
const JOINING_WORDS: &[&str] = &["AND", "ET", "UND"];
/// The most words that a spelling has.
const SPELLING_WORDS_MAX: usize = 6;

/// A legal form.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Form {
    /// The usual abbreviation.
    name: String,
    /// The country whose law has the form, and its kind there: `US limited`. Two forms of one law and different kinds are those of two
    /// companies. `""` for words that do not say which kind of company it is (`COMPANY`).
    law: String,
    /// Whether it can begin a name (`OOO ROMASHKA`).
    #[serde(default)]
    is_first: bool,
    /// Whether it can be before another form at the end (`CO LTD`).
    #[serde(default)]
    is_before_other: bool,
    /// The spellings as words in capitals, sorted.
    spellings: Vec<String>,
}

impl DataEntry for Form {
    fn name(&self) -> &str {
        &self.name
    }

    fn values(&self) -> &[String] {
        &self.spellings
    }
}

impl Form {
    /// The usual abbreviation.
    #[must_use]
    pub fn abbreviation(&self) -> &str {
        &self.name
    }

    /// Whether the form says nothing about the kind of company.
    #[must_use]
    pub fn is_general(&self) -> bool {
        self.law.is_empty()
    }

    /// Whether no company can have both forms.
    #[must_use]
    pub fn is_other_than(&self, other: &Self) -> bool {
        match (self.law.split_once(' '), other.law.split_once(' ')) {
            (Some((country, kind)), Some((other_country, other_kind))) => country == other_country && kind != other_kind,
            _ => false,
        }
    }
}

static FORMS: LazyLock<DataFile<Form>> = LazyLock::new(|| {
    // A file that does not parse is a bug in this crate. A test parses it, so that it is found before a release.
    DataFile::parse(include_str!("../data/company_forms.json")).unwrap_or_default()
});

/// Each spelling with its form.
static BY_SPELLING: LazyLock<HashMap<&'static str, &'static Form>> =
    LazyLock::new(|| FORMS.entries.iter().flat_map(|form| form.spellings.iter().map(move |spelling| (spelling.as_str(), form))).collect());

/// Returns the version of the data file of legal forms.
#[must_use]
pub fn version() -> u32 {
    FORMS.version
}

/// Returns the data file of legal forms as documents show it.
#[must_use]
pub fn shown() -> ShownFile {
    FORMS.shown("company_forms.json")
}

/// Returns the words of a name that are compared, with its legal forms: in capitals, without signs, accents, articles and words that join others. `None`
/// if it has no letter or digit, more than [`NAME_CHARS_MAX`] characters or more than [`WORDS_MAX`] words: such a name is compared with none.
#[must_use]
pub fn compared_words(name: &str) -> Option<Vec<String>> {
    if name.chars().nth(NAME_CHARS_MAX).is_some() {
        return None;
    }
    let all = all_words(name);
    let last = all.len().saturating_sub(1);
    let is_compared = |at: usize, word: &str| !(word == "THE" || (at > 0 && at < last && JOINING_WORDS.contains(&word)));
    let words: Vec<String> = all.iter().enumerate().filter(|(at, word)| is_compared(*at, word)).map(|(_, word)| word.clone()).collect();
    Some(if words.is_empty() { all } else { words }).filter(|words| (1..=WORDS_MAX).contains(&words.len()))
}

/// Removes the legal forms at the end and at the beginning of the words of a name, and returns them, the last first. At least one word remains.
pub fn remove(words: &mut Vec<String>) -> Vec<&'static Form> {
    let mut forms: Vec<&'static Form> = Vec::new();
    while let Some((count, form)) = last_form(words).filter(|(_, form)| forms.is_empty() || form.is_before_other) {
        words.truncate(words.len() - count);
        forms.push(form);
    }
    if let Some((count, form)) = first_form(words) {
        words.drain(..count);
        forms.push(form);
    }
    forms
}

fn last_form(words: &[String]) -> Option<(usize, &'static Form)> {
    counts(words).find_map(|count| Some((count, form(words.get(words.len() - count..)?)?)))
}

fn first_form(words: &[String]) -> Option<(usize, &'static Form)> {
    counts(words).find_map(|count| Some((count, form(words.get(..count)?)?))).filter(|(_, form)| form.is_first)
}

/// The numbers of words that can be a form, the longest first, so that at least one word remains.
fn counts(words: &[String]) -> impl Iterator<Item = usize> + use<> {
    (1..=SPELLING_WORDS_MAX.min(words.len().saturating_sub(1))).rev()
}

/// Returns the form that words are: in one of its spellings, or the letters of one as single words (`L L C`).
fn form(words: &[String]) -> Option<&'static Form> {
    let known = |spelling: &str| BY_SPELLING.get(spelling).copied();
    let are_letters = words.len() > 1 && words.iter().all(|word| word.chars().count() == 1);
    known(&words.join(" ")).or_else(|| known(&words.concat()).filter(|_| are_letters))
}

#[cfg(test)]
mod tests {
    use crate::company_names::shown_legal_forms;

    use super::*;

    /// Words that another list drops from the end of a name although they are no legal form: two companies may differ by them, or they name
    /// a kind of security.
    const NO_FORMS: &[&str] = &["ADR", "ADS", "COMPANIES", "HOLDING", "HOLDINGS", "KABUSHIKI", "KAISHA", "UNLIMITED", "VOF", "ZOO"];

    /// Proves that the file obeys the rules of data files, that each spelling is in the form in which names are compared and is one form's,
    /// and that it has every legal form that the normal form of names drops.
    #[test]
    fn the_file_is_sound() {
        assert_eq!(FORMS.check(), Ok(()));
        assert!(version() > 0 && FORMS.entries.len() > 50);
        let all: Vec<&String> = FORMS.entries.iter().flat_map(|form| &form.spellings).collect();
        assert_eq!(all.len(), BY_SPELLING.len(), "each spelling is one form's");
        for spelling in all {
            let words = all_words(spelling);
            assert!(words.join(" ") == *spelling && words.len() <= SPELLING_WORDS_MAX, "{spelling}");
        }
        assert!(FORMS.entries.iter().all(|form| form.law.is_empty() || form.law.split(' ').count() == 2));
        let (_, trailing) = &shown_legal_forms().entries[0];
        let is_known = |word: &&String| BY_SPELLING.contains_key(word.as_str()) || NO_FORMS.contains(&word.as_str());
        assert_eq!(trailing.iter().filter(|word| !is_known(word)).collect::<Vec<_>>(), Vec::<&String>::new());
    }

    /// Proves which forms are removed: at the end, before another form only words that are used so, at the beginning only forms that are
    /// written there, and never the last word of a name.
    #[test]
    fn removed_forms() {
        for (name, rest, forms) in [
            ("SIEMENS AKTIENGESELLSCHAFT", "SIEMENS", "AG"),
            ("SAMSUNG ELECTRONICS CO LTD", "SAMSUNG ELECTRONICS", "LTD CO"),
            ("SMART AG LLC", "SMART AG", "LLC"),
            ("ACME L L C", "ACME", "LLC"),
            ("FABERLIC EUROPE SP Z OO", "FABERLIC EUROPE", "SP Z OO"),
            ("BOWNE SA DE CV", "BOWNE", "SA DE CV"),
            ("OPEN JOINT STOCK COMPANY GAZPROM", "GAZPROM", "OJSC"),
            ("LLC CONSTRUCTION DREDGING COMPANY", "CONSTRUCTION DREDGING", "CO LLC"),
            ("TACTICAL MISSILES CORPORATION JOINT STOCK COMPANY", "TACTICAL MISSILES", "JSC CORP"),
            ("SA RECYCLING LLC", "SA RECYCLING", "LLC"),
            ("BREWERS GMBH CO KG", "BREWERS", "GMBH CO KG"),
            ("LIMITED", "LIMITED", ""),
            ("LLC INC", "LLC", "INC"),
            ("ACME HOLDINGS", "ACME HOLDINGS", ""),
        ] {
            let mut words: Vec<String> = name.split(' ').map(str::to_owned).collect();
            let removed: Vec<&str> = remove(&mut words).iter().map(|form| form.abbreviation()).collect();
            assert_eq!((words.join(" ").as_str(), removed.join(" ").as_str()), (rest, forms), "{name}");
        }
    }

    /// Proves that forms are different only within one law: a translation is none.
    #[test]
    fn different_forms() {
        let is_other = |one: &str, other: &str| BY_SPELLING[one].is_other_than(BY_SPELLING[other]);
        assert!(is_other("AG", "GMBH") && is_other("INC", "LLC") && is_other("LTD", "PLC"));
        assert!(!is_other("INC", "CORPORATION") && !is_other("AG", "LTD") && !is_other("CO", "LLC") && !is_other("OAO", "PAO"));
    }
}
