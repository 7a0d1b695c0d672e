//! Suppression: operators hide fields of records from all readers, for example the name of a person who asks for it.
//!
//! A view states which fields its records hide for a suppressed key ([`Hides`]). The store that the API reads from
//! (`view_store::suppression`) applies these rules to every row and every change before anything else sees them. The log and the stored
//! rows stay as they are, so hashes and proofs stay valid and a suppression can be taken back.

use serde::{Deserialize, Serialize};

use texts::company_forms::{self, compared_words};
use texts::plain_words::plain_words;
use texts::titles;

/// The most keys that can be suppressed at the same time. They are held in memory.
pub const SUPPRESSIONS_MAX: usize = 50_000;
/// The longest key, in characters.
pub const KEY_CHARS_MAX: usize = 200;
/// The most words of a phrase that hides the longer phrases that contain it.
const RUN_WORDS_MAX: usize = 8;
/// The longest reason, in bytes.
pub const REASON_BYTES_MAX: usize = 500;

/// A kind of keys that can be suppressed.
#[derive(Debug)]
pub struct KeyKind {
    /// The name of the kind, as commands give it.
    pub name: &'static str,
    /// What a key of the kind is, in a few words.
    pub about: &'static str,
    /// Returns the form in which keys and fields are compared; empty if the text is no key.
    pub compared: fn(&str) -> String,
    /// Returns the keys that hide a field, given in that form, in addition to the one that is equal to it.
    pub within: fn(&str) -> Vec<String>,
}

/// The name of a company. Case, accents, signs and the spelling of the legal form do not matter: `X L.L.C.` is `X LLC`. A key without a legal form hides
/// the name with any form.
pub const COMPANY: KeyKind = KeyKind { name: "company", about: "the name of a company", compared: company, within: without_form };
/// The name of a person. Case, accents, punctuation and the order of the words do not matter: `WELLS, SUSANNE I` is `Susanne I Wells`.
pub const PERSON: KeyKind =
    KeyKind { name: "person", about: "the name of a person, as records show it", compared: person, within: nothing };
/// One record, by `SERVICE/ID`: `labs/nih:11223344`.
pub const RECORD: KeyKind =
    KeyKind { name: "record", about: "one record, as SERVICE/ID", compared: |text| text.trim().to_owned(), within: nothing };

/// A shop, by its host name: `shop.example`.
pub const SHOP: KeyKind =
    KeyKind { name: "shop", about: "a shop, by its host name", compared: |text| text.trim().to_lowercase(), within: nothing };

/// A phrase, as the phrases service counts it. Case, signs and repeated blanks do not matter. It also hides the phrases that contain it.
pub const PHRASE: KeyKind =
    KeyKind { name: "phrase", about: "a phrase of titles, such as a private person's name", compared: titles::normal, within: runs_of };

/// THE LIST of kinds.
pub const KINDS: [&KeyKind; 5] = [&COMPANY, &PERSON, &PHRASE, &RECORD, &SHOP];

impl KeyKind {
    /// Returns the kind with a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<&'static Self> {
        KINDS.into_iter().find(|kind| kind.name == name)
    }

    /// Returns the form in which a key is compared and stored; `None` if the text is no key of the kind, or too long.
    #[must_use]
    pub fn normalize(&self, key: &str) -> Option<String> {
        let normal = (self.compared)(key);
        (!normal.is_empty() && key.chars().count() <= KEY_CHARS_MAX).then_some(normal)
    }
}

/// What separates the words of a company's name from its legal form.
const BEFORE_FORM: &str = ", ";

/// The words of a company's name without legal forms, then its legal form by its usual abbreviation: `ACME FREIGHT, LLC`. Forms that do not say which kind
/// of company it is are left out.
fn company(name: &str) -> String {
    let Some(mut words) = compared_words(name) else { return String::new() };
    let forms = company_forms::remove(&mut words);
    let mut forms: Vec<&str> = forms.iter().filter(|form| !form.is_general()).map(|form| form.abbreviation()).collect();
    forms.reverse();
    [words.join(" "), forms.join(" ")].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(BEFORE_FORM)
}

/// The key of a company's name without its legal form.
fn without_form(company: &str) -> Vec<String> {
    company.split_once(BEFORE_FORM).map(|(words, _)| words.to_owned()).into_iter().collect()
}

/// The words of a name in lower case, without accents, sorted.
fn person(name: &str) -> String {
    let mut words = plain_words(name);
    words.sort_unstable();
    words.join(" ")
}

/// No other keys.
fn nothing(_: &str) -> Vec<String> {
    Vec::new()
}

/// The runs of words of a phrase in its normal form, the phrase itself among them. A key hides every phrase that contains it.
fn runs_of(phrase: &str) -> Vec<String> {
    let words: Vec<&str> = phrase.split(' ').collect();
    (0..words.len())
        .flat_map(|from| (from + 1..=words.len().min(from + RUN_WORDS_MAX)).map(move |to| (from, to)))
        .map(|(from, to)| words[from..to].join(" "))
        .collect()
}

/// What the records of a view hide for the suppressed keys of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Hides {
    /// The kind of keys.
    pub kind: &'static KeyKind,
    /// The field of the record that is compared with the keys: a text, or a list of texts, of which any may be the key. `LIST.MEMBER` is a member of
    /// each object of a list.
    pub field: &'static str,
    /// The fields that are hidden: texts become `""`, lists and objects empty, anything else null. If this is the list `field` itself, it
    /// loses the suppressed elements only; if `field` is `LIST.MEMBER` and all of these are, too, they are hidden of the suppressed objects only. The
    /// field `id` loses the suppressed text that it begins with, and a `mergedInto` with an id becomes `hidden`. The record must be readable without the
    /// values of these fields.
    pub hidden: &'static [&'static str],
}

/// A key that is suppressed, or no longer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suppression {
    /// The name of the kind of key.
    pub kind: String,
    /// The key, as it was given.
    pub key: String,
    /// Why, for operators.
    pub reason: String,
}

/// A stored row of the table of suppressed keys, whose key is the kind and the normalized key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SuppressionRow {
    /// The key, as it was given.
    pub key: String,
    /// Why it is suppressed.
    pub reason: String,
    /// Since when: milliseconds since 1970.
    pub since: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that names are compared without case, accents, punctuation and order, and what no key is.
    #[test]
    fn keys_are_normalized() {
        for (given, normal) in
            [("WELLS, SUSANNE  I.", "i susanne wells"), ("Susanne I Wells", "i susanne wells"), ("Łucja Öz-Ünal", "oz unal łucja")]
        {
            assert_eq!(PERSON.normalize(given).as_deref(), Some(normal), "{given}");
        }
        for (given, normal) in [
            (" Jane-Q  Doe ", "jane q doe"),
            ("Jane O'Brien", "jane obrien"),
            ("Jane O´Brien", "jane obrien"),
            ("J. Doe", "j doe"),
            ("\u{201c}Framework\u{201d}", "framework"),
            ("Hardware.", "hardware"),
            ("Node.js & C++!", "node.js c++"),
            // As the phrases service counts them: signs between words, character references, and signs that nobody sees.
            ("a+b", "a b"),
            ("AT&amp;T", "at&t"),
            ("Jane <b>Doe</b>", "jane doe"),
            ("Ja\u{ad}ne\u{200b} Doe", "jane doe"),
        ] {
            assert_eq!(PHRASE.normalize(given).as_deref(), Some(normal), "{given}");
        }
        for (given, normal) in [
            ("X L.L.C.", "X, LLC"),
            ("x Limited Liability Company", "X, LLC"),
            ("X, L L C", "X, LLC"),
            ("The Müller & Söhne Co.", "MULLER SOHNE"),
            ("Smart AG LLC", "SMART AG, LLC"),
            ("Acme Corp. Inc.", "ACME, CORP INC"),
            ("Acme", "ACME"),
        ] {
            assert_eq!(COMPANY.normalize(given).as_deref(), Some(normal), "{given}");
            assert_eq!(COMPANY.normalize(normal).as_deref(), Some(normal), "the normal form is a key of itself");
        }
        assert_eq!(((COMPANY.within)("X, LLC"), (COMPANY.within)("X")), (vec!["X".to_owned()], Vec::new()));
        assert_eq!((COMPANY.normalize(" ., "), COMPANY.normalize(&"x ".repeat(41))), (None, None));
        assert_eq!(PHRASE.normalize("?!"), None);
        assert_eq!(runs_of("a b c"), ["a", "a b", "a b c", "b", "b c", "c"]);
        assert_eq!((PERSON.normalize(" ., "), PERSON.normalize(&"a".repeat(201)), RECORD.normalize("  ")), (None, None, None));
    }
}
