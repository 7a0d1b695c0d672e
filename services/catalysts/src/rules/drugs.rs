//! Names of drugs in sentences: names with the stems of international nonproprietary names, research codes, and brand names in capitals.
//! A name is never guessed: a capitalised word counts only where the words around it say that it is a drug.

use std::collections::BTreeSet;

/// Ends of international nonproprietary names, in lower case.
const STEMS: &[&str] = &[
    "mab",
    "nib",
    "ciclib",
    "lisib",
    "parib",
    "degib",
    "clax",
    "rafenib",
    "cept",
    "tide",
    "cel",
    "vir",
    "statin",
    "vec",
    "ersen",
    "siran",
    "gepant",
    "orexant",
    "gliptin",
    "gliflozin",
    "caftor",
    "prazole",
    "setron",
    "conazole",
    "mycin",
    "cillin",
    "olol",
    "pril",
    "sartan",
    "dipine",
    "azine",
    "apine",
    "idone",
    "barb",
    "lukast",
    "parin",
    "grel",
    "xaban",
    "gatran",
    "trigine",
    "oxetine",
    "afil",
    "fenacin",
    "tropium",
    "solone",
    "lutamide",
    "oxifene",
    "estrant",
    "bactam",
    "penem",
    "fungin",
    "floxacin",
    "cycline",
    "triptan",
    "imod",
    "zolid",
    "relix",
    "begron",
    "vaptan",
    "ketamine",
];
/// Words of the language with such an end.
const NOT_DRUGS: &[&str] = &[
    "excel",
    "cancel",
    "parcel",
    "accept",
    "concept",
    "except",
    "intercept",
    "precept",
    "percept",
    "riptide",
    "nucleotide",
    "peptide",
    "polypeptide",
    "oligopeptide",
    "oligonucleotide",
    "neuropeptide",
    "glycopeptide",
    "lipopeptide",
    "magazine",
    "statin",
];
/// Capitalised words that are no drug, in capitals.
const NOT_BRANDS: &[&str] = &[
    "PDUFA",
    "NDA",
    "SNDA",
    "BLA",
    "SBLA",
    "FDA",
    "EMA",
    "CHMP",
    "MAA",
    "CRL",
    "IND",
    "COVID",
    "USA",
    "NASDAQ",
    "NYSE",
    "SEC",
    "LLC",
    "INC",
    "AND",
    "THE",
    "FOR",
    "FORM",
    "NEW",
    "PRESS",
    "RELEASE",
    "PHASE",
    "CMC",
    "REMS",
    "ADCOMM",
    "ADCOM",
    "PRIORITY",
    "REVIEW",
    "EXHIBIT",
    "ITEM",
    "RARE",
    "DRUG",
    "USER",
    "FEE",
    "ACT",
    "PRV",
    "EBITDA",
    "GAAP",
    "ESG",
    "CEO",
    "CFO",
    "CMO",
    "RMAT",
    "BTD",
    "HIV",
    "AIDS",
    "NSCLC",
    "COPD",
    "IPF",
    "ALS",
    "DMD",
    "SMA",
    "AML",
    "CLL",
    "DLBCL",
    "MDS",
    "NASH",
    "MASH",
    "ADHD",
    "PTSD",
    "MDD",
    "US",
    "EU",
    "UK",
    "LICENSE",
    "APPLICATION",
    "BIOLOGICS",
    "OUTLOOK",
    "CAUTION",
    "RECENT",
    "KEY",
    "UPDATE",
    "PIPELINE",
    "CORPORATE",
    "COMMERCIAL",
    "CLINICAL",
    "REGULATORY",
    "UPCOMING",
    "MILESTONES",
    "HIGHLIGHTS",
    "TARGET",
    "ACTION",
    "DATE",
    "GOAL",
    "THIRD",
    "QUARTER",
    "FIRST",
    "SECOND",
    "FOURTH",
    "RESULTS",
    "FINANCIAL",
    "ABOUT",
    "FORWARD",
    "LOOKING",
    "STATEMENTS",
    "COMPLETE",
    "RESPONSE",
    "LETTER",
    "APPROVAL",
    "APPROVED",
    "ANNOUNCES",
    "ACCEPTANCE",
    "SUBMISSION",
    "SUPPLEMENTAL",
    "EUROPEAN",
    "UNITED",
    "STATES",
    "FOOD",
    "ADMINISTRATION",
    "COMPANY",
];
/// Words two before a capitalised name, with "for" between them, that say that the name is a drug: "the NDA for X".
const APPLICATIONS: &[&str] = &["nda", "bla", "snda", "sbla", "application", "applications", "date", "dates", "submission", "filing"];
/// A shorter name without a mark is no drug.
const LETTERS_MIN: usize = 5;

/// Returns the drug that is named nearest before a position of a sentence, else nearest after it, else last in the text before the sentence.
/// Empty if none is named.
#[must_use]
pub fn nearest(sentence: &str, before: &str, company: &str, at: usize) -> String {
    let own = named(sentence, company);
    let preceding = own.iter().rev().find(|(start, _)| *start < at);
    let name = preceding.or_else(|| own.first()).map(|(_, name)| name.clone());
    name.or_else(|| named(before, company).pop().map(|(_, name)| name)).unwrap_or_default()
}

/// Finds the drugs that a text names, each once, with the position of the first mention. A nonproprietary name in lower case; of a brand
/// name with its nonproprietary name in parentheses, or the other way round, the nonproprietary one.
#[must_use]
pub fn named(text: &str, company: &str) -> Vec<(usize, String)> {
    let words = words(text);
    let own: BTreeSet<String> = company.split(|c: char| !c.is_alphanumeric()).map(str::to_uppercase).collect();
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut skipped = None;
    for (at, word) in words.iter().enumerate() {
        if skipped == Some(at) {
            continue;
        }
        let Some(name) = name_at(&words, at, &own) else { continue };
        // ACMEVY (acmezumab): the name in parentheses is the same drug.
        let inner = words.get(at + 1).filter(|next| text.get(word.end..next.start).is_some_and(is_opening));
        let other = inner.and_then(|_| name_at(&words, at + 1, &own));
        let name = match other {
            Some(other) if is_stem(&other) && !is_stem(&name) => other,
            _ => name,
        };
        if inner.is_some() {
            skipped = Some(at + 1);
        }
        if !found.iter().any(|(_, known)| *known == name) {
            found.push((word.start, name));
        }
    }
    found
}

/// Whether only marks and an opening parenthesis are between two words.
fn is_opening(between: &str) -> bool {
    between.contains(['(', '[']) && between.chars().all(|c| matches!(c, ' ' | '(' | '[' | '®' | '™' | '\u{a0}'))
}

struct Word<'a> {
    text: &'a str,
    start: usize,
    end: usize,
    /// Whether a registered mark or trade mark follows.
    is_marked: bool,
    /// Whether it begins the text or a sentence.
    is_first: bool,
}

/// Splits a text into words: letters, digits and hyphens between them.
fn words(text: &str) -> Vec<Word<'_>> {
    let mut out: Vec<Word<'_>> = Vec::new();
    let mut begin: Option<usize> = None;
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '\u{2011}');
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        if is_part(c) && at < text.len() {
            begin.get_or_insert(at);
            continue;
        }
        if let Some(start) = begin.take() {
            let word = text.get(start..at).unwrap_or_default().trim_end_matches(['-', '\u{2011}']);
            let end = start + word.len();
            let is_marked = text
                .get(at..)
                .is_some_and(|rest| rest.trim_start().starts_with(['®', '™']) || rest.starts_with("(R)") || rest.starts_with("(TM)"));
            let is_first = text.get(..start).is_none_or(|before| {
                before.trim_end().is_empty() || before.trim_end().ends_with(['.', '!', '?', '•', ':', '"', '\u{201c}'])
            });
            if !word.is_empty() {
                out.push(Word { text: word, start, end, is_marked, is_first });
            }
        }
    }
    out
}

/// Returns the name of the drug that a word is, if it is one.
fn name_at(words: &[Word<'_>], at: usize, company: &BTreeSet<String>) -> Option<String> {
    let word = words.get(at)?;
    let upper = word.text.to_uppercase();
    if company.contains(&upper) || NOT_BRANDS.contains(&upper.as_str()) || upper.split('-').all(|part| NOT_BRANDS.contains(&part)) {
        return None;
    }
    if is_stem(word.text) {
        return Some(word.text.to_lowercase());
    }
    if is_code(word.text) {
        return Some(upper);
    }
    let letters = word.text.chars().filter(|c| c.is_alphabetic()).count();
    let is_capitals = letters == word.text.chars().count() && letters >= LETTERS_MIN && word.text == upper;
    let is_capitalised =
        word.text.chars().next().is_some_and(char::is_uppercase) && letters >= LETTERS_MIN && letters == word.text.chars().count();
    if word.is_marked && letters >= 3 {
        return Some(if is_capitals { upper } else { word.text.to_owned() });
    }
    let word_before = |back: usize| at.checked_sub(back).and_then(|before| words.get(before)).map(|word| word.text.to_lowercase());
    let next_is_plain = words.get(at + 1).is_none_or(|next| !next.text.chars().next().is_some_and(char::is_uppercase));
    let is_led =
        word_before(1).is_some_and(|word| word == "for") && word_before(2).is_some_and(|word| APPLICATIONS.contains(&word.as_str()));
    let is_month = texts::dates::scan(&format!("{} 1, 2026", word.text), None).len() == 1;
    if is_capitals && !word.is_first && !is_month {
        return Some(upper);
    }
    (is_capitalised && is_led && next_is_plain && !is_month && !word.is_first).then(|| word.text.to_owned())
}

/// Whether a word ends with the stem of a nonproprietary name.
fn is_stem(word: &str) -> bool {
    let lower = word.to_lowercase();
    let plain = lower.split('-').next().unwrap_or_default();
    let has_end = STEMS.iter().any(|stem| plain.ends_with(stem) && plain.len() >= stem.len() + 3);
    plain.len() >= 7 && plain.bytes().all(|byte| byte.is_ascii_lowercase()) && has_end && !NOT_DRUGS.contains(&plain)
}

/// Whether a word is a research code: letters and a number, `ACM-101`, `AB1234`.
fn is_code(word: &str) -> bool {
    let plain: String = word.chars().map(|c| if c == '\u{2011}' { '-' } else { c }).collect();
    let letters: String = plain.chars().take_while(char::is_ascii_uppercase).collect();
    let rest = plain.get(letters.len()..).unwrap_or_default();
    let digits = rest.strip_prefix('-').unwrap_or(rest);
    let is_number = digits.chars().take_while(char::is_ascii_digit).count() >= 2 && digits.chars().all(|c| c.is_ascii_alphanumeric());
    let is_form = matches!(
        letters.as_str(),
        "COVID" | "EX" | "FORM" | "CY" | "FY" | "Q" | "H" | "ITEM" | "SEC" | "NCT" | "IL" | "PD" | "HER" | "CD" | "TNF"
    );
    (2..=5).contains(&letters.len()) && is_number && digits.len() <= 6 && !is_form
}

/// Returns the identity of a drug within its company: lower case letters and digits, hyphens between them; at most 60 characters.
#[must_use]
pub fn slug(drug: &str) -> String {
    let words: Vec<String> = crate::record::words(drug).collect();
    words.join("-").chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        named(text, "Acme Bio, Inc.").into_iter().map(|(_, name)| name).collect()
    }

    /// Proves which words are drugs and which are not.
    #[test]
    fn drugs() {
        for (text, expected) in [
            ("The BLA for acmezumab is under review.", &["acmezumab"][..]),
            ("LUMINARA (bolunib) tablets", &["bolunib"]),
            ("bolunib (LUMINARA\u{ae}) tablets", &["bolunib"]),
            ("the NDA for ACM-101 in COPD", &["ACM-101"]),
            ("the FDA accepted the BLA for Deramiocel in patients", &["deramiocel"]),
            ("Acme Bio announced that its Biologics License Application was accepted in November", &[]),
            ("the Prescription Drug User Fee Act (PDUFA) target action date", &[]),
            ("the sNDA for Zepvia was filed", &["Zepvia"]),
            ("for the treatment of Duchenne muscular dystrophy, a participant", &[]),
            ("ZEPVIA and ORLENTO are reviewed", &["ORLENTO"]),
            ("We will examine the concept in April", &[]),
            ("", &[]),
        ] {
            assert_eq!(names(text), expected, "{text}");
        }
        assert_eq!((slug("ACM-101"), slug("Acme Zumab é"), slug("")), ("acm-101".into(), "acme-zumab-é".into(), String::new()));
    }
}
