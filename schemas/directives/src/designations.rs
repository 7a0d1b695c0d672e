//! Reads lists of models: "A319-111, -112, and -115", "F28 Mark 0070 and 0100", "CL-600-2B16 (601-3A and 604 Variants)".

use crate::aliases::{compact_form, is_maker};
use crate::designation_words::{
    ADJECTIVES, NOUNS, SUFFIXES, is_capitals, is_designation, is_letter, is_name, is_no_part, is_roman, is_shorthand,
};
use crate::directive::Span;
use crate::tokens::Tokens;

/// The longest designation in full, in bytes. One that a list would make longer stays as it is written.
const NAME_BYTES_MAX: usize = 80;
/// The most words of one designation.
const ITEM_WORDS_MAX: usize = 6;
/// The most words of a marketing name without quotation marks.
const MARKETING_WORDS_MAX: usize = 3;
/// The most tokens of a marketing name between quotation marks.
const QUOTED_TOKENS_MAX: usize = 6;
/// The most tokens between parentheses after a designation.
const PARENTHESIS_TOKENS_MAX: usize = 40;
/// The most words between the last designation of a list and the noun.
const NOUN_WORDS_MAX: usize = 6;

/// A designation of a list.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// The designation in full.
    pub(crate) name: String,
    /// The text that names it.
    pub(crate) span: Span,
    /// Designations in parentheses after it, in compact form.
    pub(crate) also: Vec<String>,
}

/// A list of designations.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) items: Vec<Item>,
    /// Whether the list names series.
    pub(crate) is_series: bool,
    /// Whether "series", "model" or a noun for products follows.
    pub(crate) has_noun: bool,
    /// The position after the list and its noun.
    pub(crate) next: usize,
}

/// Reads a list of designations that begins here. After "Model" the first may be a name with a number, or capitals.
pub(crate) fn read_list(tokens: &Tokens<'_>, at: usize, is_after_model: bool) -> Option<List> {
    let mut items: Vec<Item> = Vec::new();
    let mut next = at;
    let mut is_free = is_after_model;
    let mut begin = at;
    // How many items, up to which token, are designations even if no noun follows: names without a number need one.
    let mut sure = (0, at);
    while let Some((item, after)) = read_item(tokens, begin, items.last(), is_free) {
        let is_sure = items.is_empty()
            || item.name.bytes().any(|byte| byte.is_ascii_digit())
            || !item.name.bytes().any(|byte| byte.is_ascii_lowercase());
        items.extend(parts_of(item));
        next = after;
        if is_sure {
            sure = (items.len(), next);
        }
        let Some(after) = separator(tokens, next) else { break };
        is_free = is_after_model;
        begin = after;
        if tokens.is_any(begin, &["model", "models"]) && !tokens.is_any(begin + 1, NOUNS) {
            begin += 1;
            is_free = true;
        }
    }
    if items.is_empty() {
        return None;
    }
    let (mut is_series, mut has_noun) = (false, false);
    for _ in 0..NOUN_WORDS_MAX {
        if tokens.is_any(next, NOUNS) {
            has_noun = true;
            next += 1;
            break;
        }
        if !tokens.is_any(next, ADJECTIVES) || (tokens.is_any(next, &["model", "models"]) && is_list_start(tokens, next + 1)) {
            break;
        }
        is_series |= tokens.is(next, "series");
        has_noun |= tokens.is_any(next, &["series", "model", "models"]);
        next += 1;
    }
    if !has_noun && sure.0 < items.len() {
        items.truncate(sure.0);
        next = sure.1;
    }
    Some(List { items, is_series, has_noun, next })
}

fn is_list_start(tokens: &Tokens<'_>, at: usize) -> bool {
    is_designation(tokens.text(at)) || (is_name(tokens.text(at)) && is_designation(tokens.text(at + 1)))
}

/// Whether a text names a product: returns the last noun for one.
pub(crate) fn last_noun(text: &str) -> Option<&'static str> {
    let tokens = Tokens::of(text, 0..text.len());
    (0..tokens.len()).rev().find_map(|at| NOUNS.iter().find(|noun| tokens.is(at, noun)).copied())
}

/// The designations that a slash joins: `707` and `720` of `707/720`. A slash within a designation, `PC-12/47E`, joins parts of other shapes.
fn parts_of(item: Item) -> Vec<Item> {
    let parts: Vec<&str> = item.name.split('/').collect();
    let first = parts.first().copied().unwrap_or_default();
    let is_list = parts.len() > 1 && parts.iter().all(|part| part.len() >= 3 && is_designation(part) && shape(part) == shape(first));
    if !is_list {
        return vec![item];
    }
    parts.into_iter().map(|part| Item { name: part.to_owned(), span: item.span, also: item.also.clone() }).collect()
}

/// Whether a word is one or two capital letters.
fn is_short_capitals(word: &str) -> bool {
    (1..=2).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// The letters in parentheses directly before a designation, which stand for two designations: the `L` of `(L)IO-360`.
pub(crate) fn optional_prefix<'t>(tokens: &Tokens<'t>, at: usize) -> Option<&'t str> {
    let letters = tokens.text(at + 1);
    let is_prefix = tokens.text(at) == "("
        && tokens.text(at + 2) == ")"
        && is_short_capitals(letters)
        && tokens.end(at + 2) == tokens.start(at + 3)
        && is_designation(tokens.text(at + 3));
    is_prefix.then_some(letters)
}

/// Skips what separates two designations.
fn separator(tokens: &Tokens<'_>, at: usize) -> Option<usize> {
    // "A319-100/-200" and "172A through 172S".
    if (tokens.text(at) == "/" || tokens.is_any(at, &["through", "thru"])) && is_designation(tokens.text(at + 1).trim_start_matches('-')) {
        return Some(at + 1);
    }
    // "AEIO-360-, IO-360-, and O-360-series".
    let at = at + usize::from(tokens.text(at) == "-" && tokens.text(at + 1) == ",");
    let comma = usize::from(matches!(tokens.text(at), "," | ";"));
    // A quotation mark after the comma closes a marketing name.
    let after_comma = at + comma + usize::from(comma == 1 && tokens.text(at + 1) == "\"");
    let after = if tokens.is_any(after_comma, &["and", "or", "&"]) { after_comma + 1 } else { after_comma };
    (after > at).then_some(after)
}

fn read_item(tokens: &Tokens<'_>, at: usize, base: Option<&Item>, is_free: bool) -> Option<(Item, usize)> {
    if let Some(prefix) = optional_prefix(tokens, at) {
        let (mut item, next) = read_item(tokens, at + 3, base, is_free)?;
        item.also.push(compact_form(&format!("{prefix}{}", item.name)));
        item.span.start = item.span.start.min(tokens.start(at));
        return Some((item, next));
    }
    let word = tokens.text(at);
    if !tokens.is_word(at) {
        return None;
    }
    if let Some(name) = base.filter(|_| is_letter(word) && ends_item(tokens, at + 1)).and_then(|base| with_letter(&base.name, word)) {
        let span = Span::new(base.map_or(tokens.start(at), |base| base.span.start), tokens.end(at));
        return Some((Item { name, span, also: Vec::new() }, at + 1));
    }
    let mut words = vec![word];
    let mut next = at + 1;
    let mut is_shared = false;
    if base.is_some() && is_shorthand(word) {
        is_shared = true;
    } else if !is_designation(word) || word.starts_with('-') {
        let shares_name = base.is_some_and(|base| base.name.split(' ').next() == Some(word));
        // "146 and Avro 146-RJ series".
        let is_named = base.is_some() && is_list_start(tokens, at) && !is_maker(word);
        if !is_free && !shares_name && !is_named {
            return None;
        }
        // A name of one to three words before the number.
        let is_part = |word: &str| (is_name(word) && !is_roman(word)) || is_letter(word);
        let names = (at..at + 3).take_while(|place| is_part(tokens.text(*place)) || (*place > at && tokens.is(*place, "model"))).count();
        let number = at + names;
        if names > 0 && (is_designation(tokens.text(number)) || is_roman(tokens.text(number))) && !tokens.text(number).starts_with('-') {
            words.extend((at + 1..=number).map(|at| tokens.text(at)).filter(|word| !word.eq_ignore_ascii_case("model")));
            // "Model Airbus SAS Model A318".
            let make: Vec<&str> = (at..number).map(|at| tokens.text(at)).take_while(|word| !word.eq_ignore_ascii_case("model")).collect();
            if make.len() < names && is_maker(&make.join(" ")) {
                words.drain(..make.len());
            }
            next = number + 1;
        } else if names > 0 && is_free && is_whole_name(tokens, at, number, base) {
            words.extend((at + 1..number).map(|at| tokens.text(at)));
            next = number;
        } else if !is_capitals(word) || next_is_name(tokens, next) {
            return None;
        }
    }
    while words.len() < ITEM_WORDS_MAX && is_continuation(tokens, next) {
        words.push(tokens.text(next));
        // The point of an abbreviation: "BN2A MK. III".
        let is_mark = tokens.is(next, "mk") && tokens.text(next + 1) == "." && is_continuation(tokens, next + 2);
        next += if is_mark { 2 } else { 1 };
    }
    let own = words.join(" ");
    let mut also = Vec::new();
    // A marketing name before the next designation: "912 iSc2 Sport, 912 iSc3 Sport", "1125 Westwind Astra, Astra SPX".
    let marketing = (next..next + MARKETING_WORDS_MAX).take_while(|at| is_name(tokens.text(*at))).count();
    if marketing > 0 && ends_item(tokens, next + marketing) {
        let name: Vec<&str> = (next..next + marketing).map(|at| tokens.text(at)).collect();
        also.push(compact_form(&format!("{own} {}", name.join(" "))));
        next += marketing;
    }
    let shared = base.and_then(|base| if is_shared { Some(from_shorthand(&base.name, &own)) } else { with_shared_words(&base.name, &own) });
    let shared = shared.filter(|name| name.len() <= NAME_BYTES_MAX);
    let start = if shared.is_some() { base.map_or(tokens.start(at), |base| base.span.start) } else { tokens.start(at) };
    let mut span = Span::new(start, tokens.span(at, next - 1).end);
    if let Some(close) = quoted(tokens, next) {
        span.end = tokens.span(next, close).end;
        let name: Vec<&str> = (next + 1..close).map(|at| tokens.text(at)).filter(|word| *word != ",").collect();
        also.push(compact_form(&format!("{own} {}", name.join(" "))));
        // A comma before the closing mark separates the designations.
        next = if tokens.before(close, 1) == "," { close - 1 } else { close + 1 };
    }
    // "SA226-T(B)".
    let is_letters = is_short_capitals(tokens.text(next + 1));
    if tokens.text(next) == "(" && tokens.text(next + 2) == ")" && is_letters && tokens.end(next - 1) == tokens.start(next) {
        also.push(compact_form(&format!("{own}{}", tokens.text(next + 1))));
        span.end = tokens.end(next + 2);
        next += 3;
    }
    // "R172E (USAF T-41B) (USAF T-41C and D)".
    while let Some(after) = read_parenthesis(tokens, next, &mut also) {
        span.end = tokens.span(next, after - 1).end;
        next = after;
    }
    Some((Item { name: shared.unwrap_or(own), span, also }, next))
}

/// Whether a name without a number is a designation: "Model Janus gliders", "Models H 301 Libelle, Hornet, and Kestrel gliders". After a designation with a
/// number it must not be the name of a maker.
fn is_whole_name(tokens: &Tokens<'_>, first: usize, next: usize, base: Option<&Item>) -> bool {
    let has_number = base.is_some_and(|base| base.name.bytes().any(|byte| byte.is_ascii_digit()));
    let name = || (first..next).map(|at| tokens.text(at)).collect::<Vec<_>>().join(" ");
    ends_item(tokens, next) && (!has_number || !is_maker(&name()))
}

/// Whether a designation ends before a token.
fn ends_item(tokens: &Tokens<'_>, at: usize) -> bool {
    matches!(tokens.text(at), "," | ";") || tokens.is_any(at, NOUNS) || tokens.is_any(at, &["and", "or", "series"])
}

/// Whether a list of names with numbers can begin here: the word before is no part of the name of a maker.
pub(crate) fn is_named_list(tokens: &Tokens<'_>, at: usize) -> bool {
    let before = tokens.before(at, 1);
    let is_start = matches!(before, ")" | "," | "." | ";" | "\n" | "")
        || before.starts_with(|c: char| c.is_lowercase())
        || tokens.is_any(
            at.wrapping_sub(1),
            &["ag", "all", "co", "company", "corporation", "gmbh", "inc", "kg", "limited", "llc", "ltd", "s.a"],
        );
    let (word, number) = (tokens.text(at), tokens.text(at + 1));
    // "L 23 SUPER BLANIK".
    let is_lettered = is_letter(word) && number.starts_with(|c: char| c.is_ascii_digit());
    is_start && (is_name(word) || is_lettered) && is_designation(number) && !number.starts_with('-')
}

/// Whether the next word continues a name in capitals, so that it is no designation: "BOMBARDIER Inc".
fn next_is_name(tokens: &Tokens<'_>, at: usize) -> bool {
    is_name(tokens.text(at)) && !is_capitals(tokens.text(at))
}

/// Whether a word belongs to the designation before it: a further number, short capitals, or a word such as "Mark".
fn is_continuation(tokens: &Tokens<'_>, at: usize) -> bool {
    let word = tokens.text(at);
    let is_short = word.len() <= 5 && !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-') && word != "-";
    tokens.is_word(at)
        && !word.starts_with('-')
        && !is_no_part(word)
        && (is_designation(word) || is_short || SUFFIXES.iter().any(|suffix| word.eq_ignore_ascii_case(suffix)))
}

/// Where a marketing name between quotation marks ends: the `"Beaver"` of `DHC-2 "Beaver"`.
fn quoted(tokens: &Tokens<'_>, at: usize) -> Option<usize> {
    if tokens.text(at) != "\"" {
        return None;
    }
    (at + 2..at + 2 + QUOTED_TOKENS_MAX).find(|at| tokens.text(*at) == "\"")
}

/// Reads designations in parentheses after a designation. Parentheses with other text are left to the caller.
fn read_parenthesis(tokens: &Tokens<'_>, at: usize, also: &mut Vec<String>) -> Option<usize> {
    let after = tokens.after_parenthesis(at, PARENTHESIS_TOKENS_MAX)?;
    let inner = at + 1..after - 1;
    let is_other = |at: usize| {
        tokens.is_any(
            at,
            &["except", "excluding", "collectively", "serial", "s/n", "s/ns", "sn", "msn", "msns", "type", "previously", "formerly"],
        ) || tokens.text(at) == "("
    };
    let is_reference = after - at == 3
        && tokens.text(at + 1).len() <= 2
        && tokens.text(at + 1).bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase());
    if inner.is_empty() || inner.clone().any(is_other) || is_reference {
        return None;
    }
    also.extend(inner.map(|at| tokens.text(at)).filter(|word| is_designation(word) || is_capitals(word)).map(compact_form));
    Some(after)
}

/// `S-61A` and `D` give `S-61D`.
fn with_letter(base: &str, letter: &str) -> Option<String> {
    let begin = base.strip_suffix(|c: char| c.is_ascii_uppercase())?;
    begin.ends_with(|c: char| c.is_ascii_digit() || c == '-').then(|| format!("{begin}{letter}"))
}

/// `A319-111` and `-112` give `A319-112`; `BN-2A` and `-2A-2` give `BN-2A-2`.
fn from_shorthand(base: &str, shorthand: &str) -> String {
    let hyphens: Vec<usize> = base.match_indices('-').map(|(at, _)| at).collect();
    let own = shorthand.trim_start_matches('-');
    let first = own.split('-').next().unwrap_or_default();
    let has_more = own.contains('-');
    let is_like = |at: &usize| {
        let part = base.get(at + 1..).unwrap_or_default().split('-').next().unwrap_or_default();
        shape(part) == shape(first)
    };
    let cut = if has_more { hyphens.iter().find(|at| is_like(at)).or(hyphens.last()) } else { hyphens.last() };
    let prefix = cut.and_then(|cut| base.get(..*cut)).unwrap_or(base);
    format!("{prefix}{shorthand}")
}

/// `F28 Mark 0070` and `0100` give `F28 Mark 0100`; `A300 B4-600` and `F4-600R` give `A300 F4-600R`; `FALCON 900EX` and `2000` give `FALCON 2000`.
/// `None` if the designation shares no words.
fn with_shared_words(base: &str, own: &str) -> Option<String> {
    let words: Vec<&str> = base.split(' ').collect();
    let own_first = own.split(' ').next()?;
    // The last word with a number is the one that changes.
    let changed = words.iter().rposition(|word| word.bytes().any(|byte| byte.is_ascii_digit()))?;
    let (first, last) = (words.first()?, words.get(changed)?);
    if changed > 0 && shape(last) == shape(own_first) && shape(first) != shape(own_first) {
        return Some(format!("{} {own}", words.get(..changed)?.join(" ")));
    }
    let names = words.iter().take_while(|word| !word.bytes().any(|byte| byte.is_ascii_digit())).count();
    let is_number = !own.contains(' ') && own.starts_with(|c: char| c.is_ascii_digit());
    (names > 0 && is_number).then(|| format!("{} {own}", words.get(..names).unwrap_or_default().join(" ")))
}

/// The letters and runs of digits of a word without letters at its end: `L-D` for `A-3`, `D` for `0070` and `900EX`.
fn shape(word: &str) -> String {
    let mut out = String::new();
    for c in word.trim_end_matches(|c: char| c.is_ascii_alphabetic()).chars() {
        if c.is_ascii_digit() {
            if !out.ends_with('D') {
                out.push('D');
            }
        } else {
            out.push(if c.is_alphabetic() { 'L' } else { '-' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let tokens = Tokens::of(text, 0..text.len());
        read_list(&tokens, 0, true).map(|list| list.items.into_iter().map(|item| item.name).collect()).unwrap_or_default()
    }

    /// Proves how lists are expanded.
    #[test]
    fn lists_are_expanded() {
        for (text, expected) in [
            ("A319-111, -112, -113, and -115 airplanes", &["A319-111", "A319-112", "A319-113", "A319-115"][..]),
            ("737-600, -700, and -800 series", &["737-600", "737-700", "737-800"]),
            ("172R and 172S", &["172R", "172S"]),
            ("A300 B4-600, B4-600R, and F4-600R series", &["A300 B4-600", "A300 B4-600R", "A300 F4-600R"]),
            ("F28 Mark 0070 and 0100 airplanes", &["F28 Mark 0070", "F28 Mark 0100"]),
            ("ERJ 190-100 STD, -100 LR, and -200 IGW airplanes", &["ERJ 190-100 STD", "ERJ 190-100 LR", "ERJ 190-200 IGW"]),
            ("EMB-135BJ, -135ER, -145, and EMB-145XR", &["EMB-135BJ", "EMB-135ER", "EMB-145", "EMB-145XR"]),
            ("FALCON 900EX, 2000 and MYSTERE-FALCON 50", &["FALCON 900EX", "FALCON 2000", "MYSTERE-FALCON 50"]),
            (
                "CL-600-2C10 (Regional Jet Series 700, 701 &702), CL-600-2C11 (550), and CL-600-2D15",
                &["CL-600-2C10", "CL-600-2C11", "CL-600-2D15"],
            ),
            ("AS 365 N3, SA-366G1, EC 155B, and EC155B1 helicopters", &["AS 365 N3", "SA-366G1", "EC 155B", "EC155B1"]),
            ("BO-105 C-2, BO-105 CB-2, and BO-105LS A-3", &["BO-105 C-2", "BO-105 CB-2", "BO-105LS A-3"]),
            ("EC135P2+, EC135T1", &["EC135P2+", "EC135T1"]),
            ("R22, R22 Alpha, R22 Beta, and R22 Mariner", &["R22", "R22 Alpha", "R22 Beta", "R22 Mariner"]),
            ("A300 B4-605R, C4-605R Variant F, and F4-605R", &["A300 B4-605R", "A300 C4-605R Variant F", "A300 F4-605R"]),
            ("Stemme S 12 gliders", &["Stemme S 12"]),
            ("Janus, Mini-Nimbus HS-7, and Standard Cirrus gliders", &["Janus", "Mini-Nimbus HS-7", "Standard Cirrus"]),
            ("H 301 Libelle, Hornet, and Standard Libelle gliders", &["H 301", "Hornet", "Standard Libelle"]),
            ("Discus-2a, Duo Discus, Duo Discus T, and Nimbus-4 gliders", &["Discus-2a", "Duo Discus", "Duo Discus T", "Nimbus-4"]),
            ("172S, Skyhawk and more", &["172S"]),
            ("172S, Piper airplanes", &["172S"]),
            ("707/720, 727, and PC-12/47E airplanes", &["707", "720", "727", "PC-12/47E"]),
            ("A319-100/-200 and 1900/1900C airplanes", &["A319-100", "A319-200", "1900", "1900C"]),
            ("172A through 172S, and T210L airplanes", &["172A", "172S", "T210L"]),
            ("S-61A, D, E, and N helicopters", &["S-61A", "S-61D", "S-61E", "S-61N"]),
            ("415-C, E, and G; and F-1 airplanes", &["415-C", "415-E", "415-G", "F-1"]),
            ("146 and Avro 146-RJ series", &["146", "Avro 146-RJ"]),
            ("(L)O-360, (L)TIO-540, and IO-720 engines", &["O-360", "TIO-540", "IO-720"]),
            ("R172E (USAF T-41B) (USAF T-41C and D), R172K, and 172RG;", &["R172E", "R172K", "172RG"]),
            ("P-Mentor airplanes", &["P-Mentor"]),
            (
                "SF25E, Bergfalke-III, L-Spatz-55, and Zugvogel III B sailplanes",
                &["SF25E", "Bergfalke-III", "L-Spatz-55", "Zugvogel III B"],
            ),
            ("1125 Westwind Astra, Astra SPX, and Galaxy airplanes", &["1125", "Astra SPX", "Galaxy"]),
            ("L 23 SUPER BLANIK and L 33 SOLO sailplanes", &["L 23 SUPER", "L 33 SOLO"]),
            ("G-1159, G-1159A (GIII), and G-IV airplanes", &["G-1159", "G-1159A", "G-IV"]),
            ("P.68, P.68 \"Observer,\" P.68TC \"Observer 2,\" and DHC-2 \"Beaver\" airplanes", &["P.68", "P.68", "P.68TC", "DHC-2"]),
            ("G103A TWIN II and G 103 C TWIN III SL gliders", &["G103A TWIN II", "G 103 C TWIN III SL"]),
            ("Arriel 1B, Arriel 1C, and Astazou XIV B model turboshaft engines", &["Arriel 1B", "Arriel 1C", "Astazou XIV B"]),
            ("BN2A MK. III, BN2A MK. III-2, and BN-2T", &["BN2A MK III", "BN2A MK III-2", "BN-2T"]),
            ("912 iSc2 Sport, 912 iSc3 Sport, and 915 iSc2 C24 engines", &["912 iSc2", "912 iSc3", "915 iSc2 C24"]),
            ("G102 ASTIR CS, G103 TWIN II, and G103A TWIN II ACRO gliders", &["G102 ASTIR CS", "G103 TWIN II", "G103A TWIN II ACRO"]),
            ("GV and GV-SP airplanes", &["GV", "GV-SP"]),
            ("PC-12, PC-12/45, and PC-12/47E", &["PC-12", "PC-12/45", "PC-12/47E"]),
            ("Trent 1000-A, Trent 1000-AE, and Trent 1000-C engines", &["Trent 1000-A", "Trent 1000-AE", "Trent 1000-C"]),
            ("DHC-8-101, -102, and -8-103", &["DHC-8-101", "DHC-8-102", "DHC-8-103"]),
            ("A320-211; Model A321-111", &["A320-211", "A321-111"]),
            ("BN-2A, -2A-2, and -2A-3", &["BN-2A", "BN-2A-2", "BN-2A-3"]),
            ("airplanes 172", &[]),
            ("", &[]),
        ] {
            assert_eq!(names(text), expected, "{text}");
        }
    }

    /// Proves that designations in parentheses are kept, that a span begins at the shared first part, and that the noun is found.
    #[test]
    fn details() {
        let text = "DC-9-81 (MD-81) and -82 (MD-82) series airplanes, serial";
        let tokens = Tokens::of(text, 0..text.len());
        let list = read_list(&tokens, 0, true).unwrap();
        assert_eq!(list.items[1].also, ["MD82"]);
        assert_eq!(list.items[1].span.of(text), "DC-9-81 (MD-81) and -82 (MD-82)");
        assert!(list.is_series && list.has_noun && tokens.text(list.next) == ",");
    }
}
