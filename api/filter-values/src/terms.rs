//! Terms by which changes are found, and the comparisons of values with what a filter gives.

use memchr::{memchr2_iter, memmem};
use schemas::views::records::normal;
use texts::folding::{folded, folded_words};

/// A query for terms. A change that matches the filter has at least one of these terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TermQuery {
    /// One of these values of a dimension.
    Exact(&'static str, Vec<String>),
    /// A value of a dimension that contains this text.
    Part(&'static str, String),
    /// A value of a dimension that starts with one of these texts.
    Prefix(&'static str, Vec<String>),
}

/// A field of a filter whose values are recorded ones.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// The name of the field: a text, or a list of texts.
    pub field: &'static str,
    /// The dimension of terms whose values are proposed.
    pub dimension: &'static str,
    /// The fields of records whose values the dimension has; empty if it is the field of the same name.
    pub fields: &'static [&'static str],
    /// Whether values are codes, which are written in capitals.
    pub is_code: bool,
}

impl Named {
    /// A field with names, or parts of names.
    #[must_use]
    pub const fn name(field: &'static str, dimension: &'static str) -> Self {
        Self { field, dimension, fields: &[], is_code: false }
    }

    /// Whether the dimension has values of a field of records.
    #[must_use]
    pub fn has_values_of(&self, field: &str) -> bool {
        field == self.dimension || self.fields.contains(&field)
    }

    /// A field with codes.
    #[must_use]
    pub const fn code(field: &'static str, dimension: &'static str) -> Self {
        Self { field, dimension, fields: &[], is_code: true }
    }
}

/// Whether a value contains a text, without case and accents. Nothing contains a text without letters, digits and signs.
#[must_use]
pub fn contains(value: &str, part: &str) -> bool {
    let part = folded(&normal(part));
    !part.is_empty() && folded(&normal(value)).contains(&part)
}

/// Whether a value is in a list, under the normalization of terms.
#[must_use]
pub fn is_one_of(value: &str, wanted: &[String]) -> bool {
    let value = normal(value);
    wanted.iter().any(|wanted| normal(wanted) == value)
}

/// Whether every word of `wanted` occurs in one of the texts, as a word or the beginning of a word, without case and accents.
#[must_use]
pub fn has_words(texts: &[&str], wanted: &str) -> bool {
    let words: Vec<String> = texts.iter().flat_map(|text| folded_words(text)).collect();
    folded_words(wanted).iter().all(|wanted| words.iter().any(|word| word.starts_with(wanted)))
}

/// Whether a change can have all of some words in its texts, by its JSON as it is stored: false only if it lacks one of them. The words are as
/// [`folded_words`] returns them. JSON writes letters and digits as they are; what other characters or escapes stand for is not looked at, and may be anything.
#[must_use]
pub fn may_have_words(json: &[u8], words: &[String]) -> bool {
    let has = |word: &String| has_letters(json, word.as_bytes());
    words.iter().all(has) || !json.is_ascii() || memmem::find(json, br"\u").is_some()
}

/// Whether a text contains some letters, in any case.
fn has_letters(text: &[u8], letters: &[u8]) -> bool {
    let Some(first) = letters.first() else { return true };
    let is_here = |at: usize| text.get(at..at + letters.len()).is_some_and(|found| found.eq_ignore_ascii_case(letters));
    memchr2_iter(first.to_ascii_lowercase(), first.to_ascii_uppercase(), text).any(is_here)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves how values are compared with filters.
    #[test]
    fn comparisons() {
        assert!(contains("ACME  Holdings", "me hold") && !contains("ACME", "acme corp"));
        assert!(is_one_of("8-K", &["10-k".into(), "8-k".into()]) && !is_one_of("8-K/A", &["8-K".into()]));
        assert!(has_words(&["Cloud migration", "Phase II"], "PHASE mig") && !has_words(&["Cloud"], "loud"));
        for (value, part) in [("Universit\u{e9} de Montr\u{e9}al", "universite"), ("Wei\u{df} AG", "WEISS"), ("cafe\u{301}", "CAF\u{c9}")] {
            assert!(contains(value, part) && contains(value, value) && has_words(&[value], part), "{value} {part}");
        }
        assert!(!contains("ACME", "\u{301}") && !contains("ACME", " "));
    }

    /// Proves that a change is passed over without decoding it only if no text of it can have a word.
    #[test]
    fn words_of_json() {
        let texts = ["Cloud\tmigration \"Phase II\"", "Caf\u{e9} Runner 2", "Wei\u{df} \u{fb01}ber", "\u{1}Cloud\u{7f}", ""];
        for text in texts {
            let json = serde_json::to_vec(&serde_json::json!({ "title": text, "seq": 7 })).unwrap();
            for wanted in ["cloud", "CLOUD migr", "phase ii", "cafe run", "WEISS", "fiber", "2", "zz", "cloud zz", "\u{e9}", ""] {
                let may_have = may_have_words(&json, &folded_words(wanted));
                assert!(may_have || !has_words(&[text], wanted), "{text} {wanted}");
            }
        }
        let json = br#"{"title":"Cloud migration"}"#;
        let may_have = |wanted: &str| may_have_words(json, &folded_words(wanted));
        assert!(may_have("CLOUD") && may_have("migr cloud") && may_have("") && may_have("loud"));
        assert!(!may_have("zz") && !may_have("cloud zz") && !may_have("migrations") && !may_have("caf\u{e9}"));
        assert!(may_have_words(br#"{"title":"\u0063loud"}"#, &folded_words("cloud")), "an escape may be any letter");
    }
}
