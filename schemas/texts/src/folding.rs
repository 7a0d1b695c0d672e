//! The one folding of text: what counts as the same letters in searches, filters and watches, and as the same content in the detection of changes.
//!
//! A search ignores case, accents and compatibility forms. A change is more exact: a corrected case or accent is a change, and only the normal form
//! (a letter with its accent as one character or as two) is none.

use std::borrow::Cow;

use serde::Serialize;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Returns a text as searches compare it: in compatibility form, in lower case, without accents, `ß` as `ss`, with single blanks.
#[must_use]
pub fn folded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in letters(text).split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// Returns the words of a text as searches compare them: runs of letters and digits, see [`folded`].
#[must_use]
pub fn folded_words(text: &str) -> Vec<String> {
    letters(text).split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Returns what lists for readers sort a text by: how searches compare it, so that the spellings of one name are next to each other, then the text as it is.
#[must_use]
pub fn reading_order(text: &str) -> (String, &str) {
    (folded(text), text)
}

/// The letters of a text, folded, with all its blanks.
fn letters(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return if text.bytes().any(|byte| byte.is_ascii_uppercase()) { text.to_ascii_lowercase().into() } else { text.into() };
    }
    let mut out = String::with_capacity(text.len());
    for c in text.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase) {
        match c {
            'ß' => out.push_str("ss"),
            'æ' => out.push_str("ae"),
            'œ' => out.push_str("oe"),
            'þ' => out.push_str("th"),
            'ı' => out.push('i'),
            'ς' => out.push('σ'),
            'ø' => out.push('o'),
            'ł' => out.push('l'),
            'đ' | 'ð' => out.push('d'),
            _ => out.push(c),
        }
    }
    out.into()
}

/// Whether a text is in normal form NFC, in which a letter with its accent is one character.
#[must_use]
pub fn is_composed(text: &str) -> bool {
    text.is_ascii() || text.nfc().eq(text.chars())
}

/// Whether a character is not visible, or changes only how its neighbours are shown: two texts that differ in such characters look the same.
#[must_use]
pub fn is_invisible(c: char) -> bool {
    let is_other_blank = c.is_whitespace() && c != ' ';
    is_other_blank
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns the same bytes with their texts in other normal forms (NFC, NFD), as far as they differ. Bytes that occur in no text separate the texts, as in
/// the canonical form of a record.
#[must_use]
pub fn other_normal_forms(bytes: &[u8]) -> Vec<Vec<u8>> {
    let is_separator = |byte: &u8| *byte >= 0xfe;
    if bytes.iter().all(|byte| byte.is_ascii() || is_separator(byte)) {
        return Vec::new();
    }
    let with = |normalize: &dyn Fn(&str) -> String| {
        let texts: Vec<Vec<u8>> = bytes
            .split_inclusive(is_separator)
            .map(|part| {
                let (text, end) = part.split_at(part.len() - usize::from(part.last().is_some_and(is_separator)));
                let text = str::from_utf8(text).map_or_else(|_| text.to_vec(), |text| normalize(text).into_bytes());
                [text.as_slice(), end].concat()
            })
            .collect();
        texts.concat()
    };
    let forms = [with(&|text| text.nfc().collect()), with(&|text| text.nfd().collect())];
    forms.into_iter().filter(|form| form != bytes).collect()
}

/// Whether two records differ in nothing but the normal form of their texts.
#[must_use]
pub fn is_same_content<T: PartialEq + Serialize>(one: &T, other: &T) -> bool {
    let text = |record: &T| serde_json::to_string(record).ok();
    let is_same_in_nfc = |one: &str, other: &str| !(one.is_ascii() && other.is_ascii()) && one.nfc().eq(other.nfc());
    one == other || text(one).zip(text(other)).is_some_and(|(one, other)| is_same_in_nfc(&one, &other))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves what counts as the same text in searches.
    #[test]
    fn texts_are_folded() {
        for (text, expected) in [
            ("H\u{e4}agen-Dazs", "haagen-dazs"),
            ("Ha\u{308}agen-Dazs", "haagen-dazs"),
            ("JALAPE\u{d1}O", "jalapeno"),
            ("\u{130}stanbul", "istanbul"),
            ("ISPARTA \u{131}s", "isparta is"),
            ("Wei\u{df}wurst WEI\u{1e9e}WURST", "weisswurst weisswurst"),
            ("  Universit\u{e9}  de\tMontr\u{e9}al ", "universite de montreal"),
            ("\u{ff21}cme \u{fb01}ne \u{2460}", "acme fine 1"),
            ("\u{141}\u{f3}d\u{17a} S\u{f8}ren \u{c6}gir", "lodz soren aegir"),
            ("ΣΊΣΥΦΟΣ", "σισυφοσ"),
            ("plain ascii", "plain ascii"),
            ("\u{301}", ""),
        ] {
            assert_eq!(folded(text), expected, "{text:?}");
            assert_eq!(folded(&folded(text)), folded(text), "{text:?}");
        }
        assert_eq!(folded_words("\u{201c}Cafe\u{301}\u{201d} d'\u{c9}t\u{e9} 2"), ["cafe", "d", "ete", "2"]);
    }

    /// Proves that spellings of one name in other cases and normal forms are next to each other in a list, in an order that does not depend on the one before.
    #[test]
    fn spellings_of_a_name_are_together() {
        let sorted = ["Caf\u{e9} A", "CAFE\u{301} A", "cafe\u{301} A", "caf\u{e9} a", "cafe b", "Zoo"];
        for mut names in [sorted, ["Zoo", "cafe b", "caf\u{e9} a", "cafe\u{301} A", "CAFE\u{301} A", "Caf\u{e9} A"]] {
            names.sort_by(|a, b| reading_order(a).cmp(&reading_order(b)));
            let keys = names.map(folded);
            assert_eq!(keys, ["cafe a", "cafe a", "cafe a", "cafe a", "cafe b", "zoo"], "{names:?}");
            assert_eq!(names, ["CAFE\u{301} A", "Caf\u{e9} A", "cafe\u{301} A", "caf\u{e9} a", "cafe b", "Zoo"]);
        }
    }

    /// Proves that a record in another normal form is the same content, and that a corrected accent or case is not.
    #[test]
    fn normal_forms_are_no_change() {
        let same = |one: &str, other: &str| is_same_content(&one.to_owned(), &other.to_owned());
        assert!(same("caf\u{e9}", "cafe\u{301}") && same("a", "a") && same("cafe\u{301}", "caf\u{e9}"));
        assert!(!same("caf\u{e9}", "cafe") && !same("caf\u{e9}", "Caf\u{e9}") && !same("A", "a") && !same("\u{fb01}", "fi"));
    }

    /// Proves that the other normal forms of a canonical form keep its separators, and that plain bytes have none.
    #[test]
    fn canonical_forms() {
        assert_eq!(other_normal_forms(b"name\xfeplain\xff"), Vec::<Vec<u8>>::new());
        let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}");
        let form = |text: &str| [b"name\xfe".as_slice(), text.as_bytes(), b"\xff"].concat();
        assert_eq!(other_normal_forms(&form(composed)), [form(decomposed)]);
        assert_eq!(other_normal_forms(&form(decomposed)), [form(composed)]);
        let mixed = [form(composed), form(decomposed)].concat();
        assert_eq!(other_normal_forms(&mixed), [[form(composed), form(composed)].concat(), [form(decomposed), form(decomposed)].concat()]);
    }
}
