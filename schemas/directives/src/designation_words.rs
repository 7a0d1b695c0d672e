//! Which words are designations of models, parts of them, or words between them.

/// The longest word that is part of a designation, in bytes.
const WORD_BYTES_MAX: usize = 32;

/// Nouns for products.
pub(crate) const NOUNS: &[&str] = &[
    "aeroplanes",
    "aircraft",
    "airplane",
    "airplanes",
    "airship",
    "airships",
    "balloon",
    "balloons",
    "engine",
    "engines",
    "glider",
    "gliders",
    "gyroplanes",
    "helicopter",
    "helicopters",
    "powerplants",
    "propeller",
    "propellers",
    "rotorcraft",
    "sailplane",
    "sailplanes",
];
/// Words between a list of models and its noun.
pub(crate) const ADJECTIVES: &[&str] = &[
    "auxiliary",
    "constant",
    "diesel",
    "gas",
    "model",
    "models",
    "piston",
    "pitch",
    "power",
    "powered",
    "reciprocating",
    "rotary",
    "series",
    "speed",
    "turbine",
    "turbofan",
    "turbojet",
    "turboprop",
    "turboshaft",
    "type",
    "unit",
    "variable",
];
/// Capitalised words that are no part of a designation.
const NO_PARTS: &[&str] = &[
    "a",
    "ad",
    "ads",
    "aerodrome",
    "all",
    "an",
    "any",
    "appendix",
    "cat",
    "company",
    "configuration",
    "corporation",
    "figure",
    "gmbh",
    "group",
    "groups",
    "inc",
    "line",
    "ltd",
    "msn",
    "msns",
    "no",
    "none",
    "note",
    "p/n",
    "p/ns",
    "part",
    "pn",
    "pns",
    "s/n",
    "s/ns",
    "sb",
    "serial",
    "serials",
    "sn",
    "sns",
    "stc",
    "table",
    "the",
    "this",
    "us",
    "usa",
    "variable",
    "with",
];
/// Words after a designation that belong to it.
pub(crate) const SUFFIXES: &[&str] = &["alpha", "astro", "beta", "cadet", "freighter", "mariner", "mark", "mk", "plus", "variant"];

/// Whether a word looks like a designation or the number of one: it has a digit, and no long part in lower case.
pub(crate) fn is_designation(word: &str) -> bool {
    let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
    if !has_digit || word.len() > WORD_BYTES_MAX || word.contains(',') || is_dated_number(word) {
        return false;
    }
    let is_plain = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'/' | b'.' | b'+'));
    let runs = word.split(|c: char| !c.is_ascii_lowercase()).map(str::len).max().unwrap_or_default();
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let is_number = digits == word.len();
    is_plain && (runs < 3 || word.contains("Trent") || is_named_number(word)) && !is_ordinal(word) && (!is_number || word.len() <= 4)
}

/// Names with a number: `Nimbus-2`, `Ventus-2a`, `L-Spatz-55`.
fn is_named_number(word: &str) -> bool {
    let name = word.find(|c: char| c.is_ascii_digit()).and_then(|digit| word.get(..digit)?.strip_suffix('-'));
    let Some(name) = name else { return false };
    let is_capitalised =
        |part: &str| part.starts_with(|c: char| c.is_ascii_uppercase()) && part.bytes().skip(1).all(|byte| byte.is_ascii_lowercase());
    let is_other = ["Block", "Class", "Item", "Issue", "Level", "Mode", "Phase", "Rev", "Revision", "Stage", "Step", "Task", "Type"];
    name.split('-').all(is_capitalised) && !is_no_part(name) && !is_other.contains(&name)
}

/// Dates and numbers of directives: `2026-15-05`.
fn is_dated_number(word: &str) -> bool {
    let mut parts = word.split('-').map(|part| part.bytes().all(|byte| byte.is_ascii_digit()).then_some(part.len()));
    let lengths = [parts.next().flatten(), parts.next().flatten(), parts.next().flatten()];
    parts.next().is_none() && matches!(lengths, [Some(2 | 4), Some(2), Some(2)])
}

fn is_ordinal(word: &str) -> bool {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && matches!(word.get(digits..), Some("st" | "nd" | "rd" | "th"))
}

/// Whether a word is the second part of a designation whose first part is shared: `-112`, `-900ER`.
pub(crate) fn is_shorthand(word: &str) -> bool {
    word.strip_prefix('-')
        .is_some_and(|rest| is_designation(rest) || (rest.len() <= 4 && rest.bytes().all(|byte| byte.is_ascii_uppercase())))
}

/// Whether a word in capitals can be a whole designation: `GV-SP`, `GIV`.
pub(crate) fn is_capitals(word: &str) -> bool {
    let letters = word.bytes().filter(u8::is_ascii_uppercase).count();
    (2..=10).contains(&word.len())
        && letters >= 2
        && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-')
        && !is_no_part(word)
}

pub(crate) fn is_no_part(word: &str) -> bool {
    NO_PARTS.iter().chain(NOUNS).chain(ADJECTIVES).any(|known| word.eq_ignore_ascii_case(known))
}

/// Whether a word can be the name before a number: `FALCON 900EX`, `Trent 1000-A`.
pub(crate) fn is_name(word: &str) -> bool {
    let is_capitalised = word.starts_with(|c: char| c.is_uppercase());
    is_capitalised && word.len() >= 2 && word.chars().all(|c| c.is_alphabetic() || c == '-') && !is_no_part(word)
}

/// Whether a word is one capital letter: the `S` of `S 12`.
pub(crate) fn is_letter(word: &str) -> bool {
    word.len() == 1 && word.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// Whether a word is a roman number from two on: the `XIV` of `Astazou XIV`.
pub(crate) fn is_roman(word: &str) -> bool {
    (2..=5).contains(&word.len()) && word.bytes().all(|byte| matches!(byte, b'I' | b'V' | b'X'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which words look like designations.
    #[test]
    fn words() {
        for good in ["A319-111", "172R", "EC135P2+", "PC-12/47E", "BR700-710A1-10", "GEnx-1B64", "1900D", "45"] {
            assert!(is_designation(good), "{good}");
        }
        for bad in ["100-hour", "2026-15-05", "11-20-26", "1,500", "12345", "1st", "airplanes", "", "time-in-service1"] {
            assert!(!is_designation(bad), "{bad}");
        }
    }
}
