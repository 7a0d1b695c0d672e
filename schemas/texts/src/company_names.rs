//! Names of companies, normalised so that two spellings of one name are equal: compatibility forms unified, accents, signs and legal forms
//! removed. Two names are the same only if the normal forms are equal. There is no rule for acronyms and none for likeness: a wrong match
//! is worse than none.
//!
//! Legal forms are a data file (`data/legal_forms.json`). Its version, and the version of the aliases, change when the result of any name
//! can change; then the services that store results must be decided again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::data_file::ShownFile;

/// The longest name that is read, in characters.
pub const NAME_CHARS_MAX: usize = 300;

/// The data file of legal forms.
#[derive(Default, Deserialize)]
struct LegalForms {
    version: u32,
    about: String,
    sources: Vec<String>,
    /// Words that are dropped from the end of a name.
    trailing: BTreeSet<String>,
    /// Texts from which on a name is about another company (", a subsidiary of").
    tails: Vec<String>,
}

/// The data file of aliases.
#[derive(Default, Deserialize)]
struct Aliases {
    version: u32,
    about: String,
    sources: Vec<String>,
    /// Normal form of a name to a ticker; `""` if the company has no ticker of its own.
    tickers: BTreeMap<String, String>,
}

// Files that do not parse are a bug in this crate. A test parses them, so that it is found before a release.
static LEGAL_FORMS: LazyLock<LegalForms> =
    LazyLock::new(|| serde_json::from_str(include_str!("../data/legal_forms.json")).unwrap_or_default());
static ALIASES: LazyLock<Aliases> =
    LazyLock::new(|| serde_json::from_str(include_str!("../data/company_aliases.json")).unwrap_or_default());

/// Returns the version of the data file of legal forms.
#[must_use]
pub fn legal_forms_version() -> u32 {
    LEGAL_FORMS.version
}

/// Returns the version of the data file of aliases.
#[must_use]
pub fn aliases_version() -> u32 {
    ALIASES.version
}

/// Returns the data file of legal forms as documents show it.
#[must_use]
pub fn shown_legal_forms() -> ShownFile {
    let LegalForms { version, about, sources, trailing, tails } = &*LEGAL_FORMS;
    let entries = vec![("trailing".to_owned(), trailing.iter().cloned().collect()), ("tails".to_owned(), tails.clone())];
    ShownFile { name: "legal_forms.json", version: *version, about: about.clone(), sources: sources.clone(), entries }
}

/// Returns the data file of aliases as documents show it.
#[must_use]
pub fn shown_aliases() -> ShownFile {
    let Aliases { version, about, sources, tickers } = &*ALIASES;
    let shown = |ticker: &String| if ticker.is_empty() { "no ticker".to_owned() } else { ticker.clone() };
    let entries = tickers.iter().map(|(name, ticker)| (name.clone(), vec![shown(ticker)])).collect();
    ShownFile { name: "company_aliases.json", version: *version, about: about.clone(), sources: sources.clone(), entries }
}

/// Why two names are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameMatch {
    /// The same characters.
    Identical,
    /// The same words; case, accents, signs or blanks differ.
    SameWords,
    /// The same words without their legal forms.
    WithoutLegalForm,
}

impl NameMatch {
    /// Returns the reason as answers name it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Identical => "identical",
            Self::SameWords => "same words",
            Self::WithoutLegalForm => "same words without the legal form",
        }
    }
}

/// Compares two names. `None` if they are not the same, or if one of them has no word.
#[must_use]
pub fn compare(one: &str, other: &str) -> Option<NameMatch> {
    let (words, others) = (words(one), words(other));
    if words.is_empty() || others.is_empty() {
        None
    } else if one == other {
        Some(NameMatch::Identical)
    } else if words == others {
        Some(NameMatch::SameWords)
    } else {
        (without_forms(words) == without_forms(others)).then_some(NameMatch::WithoutLegalForm)
    }
}

/// Returns the normal form of a name: its words in capitals without signs, accents and legal forms, separated by one blank. A name that
/// consists of legal forms only keeps them. Empty if the name has no letter or digit.
#[must_use]
pub fn normal_form(name: &str) -> String {
    without_forms(words(name)).join(" ")
}

/// Returns the ticker that the data file of aliases gives a name: `Some("")` if it says that the company has none, `None` if it does not
/// know the name.
#[must_use]
pub fn alias_ticker(name: &str) -> Option<&'static str> {
    ALIASES.tickers.get(&normal_form(name)).map(String::as_str)
}

/// Whether a character claims a trademark (`™`, `℠`, `®`). It is no part of a name; NFKC would make letters of some (`TM`, `SM`).
fn is_trademark_sign(c: char) -> bool {
    matches!(c, '\u{2122}' | '\u{2120}' | '\u{ae}')
}

/// Returns a text in capitals without accents and signs that claim a trademark: compatibility forms are unified (NFKC), and combining marks removed.
/// A syllable of Hangul is one character.
#[must_use]
pub fn folded(text: &str) -> String {
    let plain = text.chars().take(NAME_CHARS_MAX).filter(|c| !is_trademark_sign(*c)).nfkc().collect::<String>();
    let mut out = String::with_capacity(plain.len());
    for c in plain.nfd().filter(|c| !is_combining_mark(*c)) {
        match c {
            'ß' => out.push_str("SS"),
            'ø' | 'Ø' => out.push('O'),
            'æ' | 'Æ' => out.push_str("AE"),
            'œ' | 'Œ' => out.push_str("OE"),
            'ł' | 'Ł' => out.push('L'),
            'đ' | 'Đ' => out.push('D'),
            c => out.extend(c.to_uppercase()),
        }
    }
    // The decomposition that separates accents also splits the syllables of Hangul into their letters.
    if out.is_ascii() { out } else { out.nfc().collect() }
}

/// Returns all words of a name in the order in which it has them, in capitals without signs and accents: with its legal forms, with what it says in
/// parentheses and about other companies. Signs within an abbreviation join (`S.A.`, `A/S`, `L'Oréal`), others separate.
#[must_use]
pub fn all_words(name: &str) -> Vec<String> {
    split(&folded(name))
}

/// Splits a name into the words that are compared.
fn words(name: &str) -> Vec<String> {
    let folded = folded(name);
    let mut words = split(without_note(without_tail(&folded)));
    words.retain(|word| word != "AND");
    words
}

fn split(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut open = String::new();
    for c in text.chars() {
        match c {
            c if c.is_alphanumeric() => open.push(c),
            '.' | '\'' | '\u{2019}' | '/' => {}
            _ => words.extend(Some(std::mem::take(&mut open))),
        }
    }
    words.push(open);
    words.retain(|word| !word.is_empty());
    words
}

/// Cuts a name before what it says about another company: `X, a subsidiary of Y`.
fn without_tail(name: &str) -> &str {
    let end = LEGAL_FORMS.tails.iter().filter_map(|tail| name.find(tail.as_str())).filter(|at| *at > 0).min();
    end.and_then(|end| name.get(..end)).unwrap_or(name)
}

/// Removes notes: text in parentheses at the end, and the register's state at the end (`/DE/`, `/NEW/`).
fn without_note(name: &str) -> &str {
    let mut name = name.trim_end_matches([' ', ',']);
    loop {
        let shorter = match name.strip_suffix(')').and_then(|rest| rest.rfind('(')).filter(|at| *at > 0) {
            Some(at) => name.get(..at),
            None => {
                let bare = name.trim_end_matches('/');
                bare.rfind(" /").filter(|at| *at > 0 && bare.len() - at <= 7).and_then(|at| name.get(..at))
            }
        };
        match shorter {
            Some(shorter) => name = shorter.trim_end_matches([' ', ',']),
            None => return name,
        }
    }
}

fn without_forms(mut words: Vec<String>) -> Vec<String> {
    while let Some(count) = trailing_form(&words) {
        words.truncate(words.len() - count);
    }
    if words.len() > 1 && words.first().is_some_and(|first| first == "THE") {
        words.remove(0);
    }
    words
}

/// Returns how many words at the end are a legal form: one, or its letters as single words (`A S`). `None` if there is none, or if no word
/// would remain.
fn trailing_form(words: &[String]) -> Option<usize> {
    (1..=3).filter(|count| *count < words.len()).find(|count| {
        let end = words.get(words.len() - count..).unwrap_or_default();
        (*count == 1 || end.iter().all(|word| word.chars().count() == 1)) && LEGAL_FORMS.trailing.contains(&end.concat())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the normal forms of names as registries and regulators spell them.
    #[test]
    fn normal_forms() {
        for (name, expected) in [
            ("Acme Bio, Inc.", "ACME BIO"),
            ("ACME BIO INC", "ACME BIO"),
            ("Acme  Bio  Holdings, Ltd.", "ACME BIO"),
            ("LUTRONIC Corporation", "LUTRONIC"),
            ("ELI LILLY & Co", "ELI LILLY"),
            ("Eli Lilly and Company", "ELI LILLY"),
            ("Novo Nordisk A/S", "NOVO NORDISK"),
            ("NOVO NORDISK A S", "NOVO NORDISK"),
            ("Ipsen S.A.", "IPSEN"),
            ("argenx SE", "ARGENX"),
            ("Pharming Group N.V.", "PHARMING GROUP"),
            ("F. Hoffmann-La Roche AG", "F HOFFMANN LA ROCHE"),
            ("L\u{2019}Or\u{e9}al", "LOREAL"),
            ("Ｆｕｌｌ Width Co., Ltd.", "FULL WIDTH"),
            ("Acme\u{2122} Bio\u{ae} Care\u{2120}, Inc.", "ACME BIO CARE"),
            ("\u{c0bc}\u{c131} Bio", "\u{c0bc}\u{c131} BIO"),
            ("\u{1109}\u{1161}\u{11b7} Bio", "\u{c0bc} BIO"),
            ("CYTOKINETICS INC /DE/", "CYTOKINETICS"),
            ("Acme (Suzhou) Biotech (China)", "ACME SUZHOU BIOTECH"),
            ("Prom Biosciences, Inc., a subsidiary of Merck & Co., Inc. (Rahway, New Jersey USA)", "PROM BIOSCIENCES"),
            ("Allergan, an AbbVie company", "ALLERGAN"),
            ("The Medicines Company", "MEDICINES"),
            ("Limited", "LIMITED"),
            ("Merck KGaA, Darmstadt, Germany", "MERCK KGAA DARMSTADT GERMANY"),
            ("  ", ""),
            ("--", ""),
        ] {
            assert_eq!(normal_form(name), expected, "{name}");
        }
    }

    /// Proves that all words are those of the name, with legal forms, notes and what it says about other companies.
    #[test]
    fn whole_names() {
        assert_eq!(all_words("Deutsche Bank (Schweiz) A.G."), ["DEUTSCHE", "BANK", "SCHWEIZ", "AG"]);
        assert_eq!(all_words("Smith & Sons and Co., a subsidiary of X"), ["SMITH", "SONS", "AND", "CO", "A", "SUBSIDIARY", "OF", "X"]);
        assert!(all_words(" - ").is_empty());
    }

    /// Proves that names are the same for a stated reason only: neither acronyms nor likeness match.
    #[test]
    fn reasons() {
        for (one, other, expected) in [
            ("Acme Bio", "Acme Bio", Some(NameMatch::Identical)),
            ("Acme Bio", "ACME  BIO", Some(NameMatch::SameWords)),
            ("Acme Bio Inc", "Acme Bio, Ltd.", Some(NameMatch::WithoutLegalForm)),
            ("International Business Machines", "IBM", None),
            ("Acme Bio", "Acme Bios", None),
            ("Acme", "Acme Bio", None),
            ("", "", None),
        ] {
            assert_eq!(compare(one, other), expected, "{one} and {other}");
        }
    }

    /// Proves that the data files parse, that their entries are in normal form, and that known subsidiaries have the ticker of their parent,
    /// or none.
    #[test]
    fn data_files() {
        assert!(legal_forms_version() > 0 && LEGAL_FORMS.trailing.len() > 40 && LEGAL_FORMS.tails.len() > 3);
        assert!(aliases_version() > 0);
        for word in &LEGAL_FORMS.trailing {
            assert_eq!(words(word), [word.as_str()], "one word in capitals");
        }
        for (name, ticker) in &ALIASES.tickers {
            assert_eq!(&normal_form(name), name, "in normal form");
            assert!(ticker.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-'), "{ticker}");
        }
        for (file, key) in [("legal_forms.json", "trailing"), ("company_aliases.json", "tickers")] {
            let text = std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(file)).unwrap();
            let entries = text.lines().skip_while(|line| !line.contains(key)).skip(1).take_while(|line| line.trim_start().starts_with('"'));
            let entries: Vec<&str> = entries.map(|line| line.split('"').nth(1).unwrap()).collect();
            assert!(entries.windows(2).all(|pair| pair[0] < pair[1]), "{file} is sorted and has no entry twice");
        }
        assert_eq!((alias_ticker("Janssen Research & Development, LLC"), alias_ticker("Genentech, Inc.")), (Some("JNJ"), Some("")));
        assert_eq!(alias_ticker("Acme Bio, Inc."), None);
    }

    /// Proves that the normal form of a normal form is the same, whatever the name.
    #[test]
    fn stable() {
        for name in ["É.A.", "( )", "/DE/", "X /DE/ /DE/", ", a subsidiary of X", "Co Co Co", "\u{1f600} Bio", "&", "a\u{301}", "ﬁn"] {
            let form = normal_form(name);
            assert_eq!(normal_form(&form), form, "{name}");
        }
    }
}
