//! Reads lists of serial numbers: "serial numbers 28-1 through 28-99 inclusive, 28-101, and 28-200 and subsequent".

use crate::aliases::compact_form;
use crate::designation_words::{NOUNS, is_designation};
use crate::directive::{SerialRange, Serials};
use crate::tokens::Tokens;

/// The most ranges of one list.
const RANGES_MAX: usize = 2_000;
/// The longest serial number, in bytes.
const SERIAL_BYTES_MAX: usize = 24;
/// The most tokens of a list of models that follows serial numbers.
const MODEL_TOKENS_MAX: usize = 12;
/// Words of the label before a list.
const LABELS: &[&str] =
    &["manufacturer", "msn", "msns", "no", "nos", "number", "numbered", "numbers", "s/n", "s/ns", "serial", "serials", "sn", "sns"];
const THROUGH: &[&str] = &["through", "thru", "to"];
const OPEN: &[&str] = &["and subsequent", "and up", "and on", "and higher", "and above", "and after", "and later"];

/// Whether the label of a list of serial numbers begins here.
pub(crate) fn is_label(tokens: &Tokens<'_>, at: usize) -> bool {
    let is_serial = tokens.is_any(at, &["serial", "serials", "manufacturer"]) && tokens.is_any(at + 1, LABELS);
    is_serial || tokens.is_any(at, &["msn", "msns", "s/n", "s/ns", "sn", "sns"])
}

/// Reads the list whose label begins here. Returns it, without its models, and the position after it.
pub(crate) fn read(tokens: &Tokens<'_>, at: usize) -> (Serials, usize) {
    let first = if tokens.is(at.wrapping_sub(1), "all") { at - 1 } else { at };
    let mut serials =
        Serials { ranges: Vec::new(), is_all: first < at, is_complete: true, models: Vec::new(), span: tokens.span(first, at) };
    let mut next = after_label(tokens, at);
    if !serials.is_all {
        next = read_ranges(tokens, next, &mut serials);
        serials.is_complete &= !serials.ranges.is_empty();
    }
    next = after_exception(tokens, next, &mut serials);
    serials.span = tokens.span(first, next.saturating_sub(1).max(at));
    (serials, next)
}

/// Reads serial numbers without a label: a cell of a table.
pub(crate) fn read_cell(tokens: &Tokens<'_>, at: usize) -> (Serials, usize) {
    let is_all = tokens.is(at, "all");
    let mut serials = Serials { ranges: Vec::new(), is_all, is_complete: true, models: Vec::new(), span: tokens.span(at, at) };
    let next = if is_all { at + 1 } else { read_ranges(tokens, after_label(tokens, at), &mut serials) };
    serials.is_complete &= is_all || !serials.ranges.is_empty();
    let next = after_exception(tokens, next, &mut serials);
    serials.span = tokens.span(at, next.saturating_sub(1).max(at));
    (serials, next)
}

fn after_label(tokens: &Tokens<'_>, at: usize) -> usize {
    let mut next = at;
    loop {
        if tokens.text(next) == "(" && tokens.is_any(next + 1, LABELS) && tokens.text(next + 2) == ")" {
            next += 3;
        } else if tokens.is_any(next, LABELS) || (next > at && matches!(tokens.text(next), ":" | "." | ",")) || tokens.is(next, "'s") {
            next += 1;
        } else {
            return next;
        }
    }
}

fn read_ranges(tokens: &Tokens<'_>, at: usize, serials: &mut Serials) -> usize {
    let mut next = at;
    let mut begin = at;
    while let Some(from) = serial(tokens, begin) {
        if serials.ranges.len() >= RANGES_MAX {
            serials.is_complete = false;
            return begin;
        }
        next = begin + 1;
        let mut to = Some(from.clone());
        if tokens.is_any(next, THROUGH) {
            match serial(tokens, next + 1) {
                Some(last) => {
                    to = Some(last);
                    next += 2;
                }
                // "28-1 through the last one": the end is not a number.
                None => {
                    serials.is_complete = false;
                    to = None;
                    next += 1;
                }
            }
        } else if let Some(open) = OPEN.iter().find(|open| tokens.is_phrase(next, open)) {
            to = None;
            next += open.split(' ').count();
        }
        if tokens.text(next) == "," && tokens.is(next + 1, "inclusive") {
            next += 1;
        }
        if tokens.text(next) == "(" && tokens.is(next + 1, "inclusive") {
            next += 3;
        }
        next += usize::from(tokens.is(next, "inclusive"));
        serials.ranges.push(SerialRange { from, to });
        let Some(after) = separator(tokens, next, serials) else { break };
        begin = after;
    }
    next
}

/// Reads the serial numbers that a list excepts: "all serial numbers, except 5 through 9". They are not kept; the list is not complete, so that it decides
/// nothing. Returns the position after them, so that what follows is not part of the exception.
fn after_exception(tokens: &Tokens<'_>, at: usize, serials: &mut Serials) -> usize {
    let word = at + usize::from(tokens.text(at) == ",");
    let first = match () {
        () if tokens.is_any(word, &["except", "excluding"]) => word + 1,
        () if tokens.is_phrase(word, "other than") => word + 2,
        () => return at,
    };
    let first = after_label(tokens, first);
    if serial(tokens, first).is_none() || begins_models(tokens, first) {
        // "all serial numbers, except Model A320-251N airplanes": an exception of models.
        serials.is_complete &= serials.is_all;
        return at;
    }
    (serials.is_all, serials.is_complete) = (false, false);
    let mut excepted = Serials { ranges: Vec::new(), is_all: false, is_complete: true, models: Vec::new(), span: serials.span };
    read_ranges(tokens, first, &mut excepted)
}

/// Whether a list of models and its noun begin here: the "G36 airplanes" of "E-3636 through E-4000, and G36 airplanes".
fn begins_models(tokens: &Tokens<'_>, at: usize) -> bool {
    let is_part = |at: usize| is_designation(tokens.text(at)) || tokens.text(at) == "," || tokens.is_any(at, &["and", "or"]);
    let end = (at..at + MODEL_TOKENS_MAX).find(|at| !is_part(*at)).unwrap_or(at);
    end > at && (tokens.is_any(end, NOUNS) || tokens.is(end, "series"))
}

/// Skips what separates two serial numbers. After a semicolon only a number of the same shape belongs to the list.
fn separator(tokens: &Tokens<'_>, at: usize, serials: &mut Serials) -> Option<usize> {
    let sign = tokens.text(at);
    let mut next = at + usize::from(matches!(sign, "," | ";"));
    next += usize::from(tokens.is_any(next, &["and", "or", "&"]));
    if next == at {
        return None;
    }
    while tokens.is_any(next, LABELS) {
        next += 1;
    }
    let word = serial(tokens, next)?;
    // The "152" of "150, S/N 17001 through 17999, 152, S/N 15279406 and up": a model that has serial numbers of its own.
    let label = next + 1 + usize::from(matches!(tokens.text(next + 1), "," | "("));
    if is_designation(&word) && is_label(tokens, label) {
        serials.is_complete = false;
        return None;
    }
    let first = serials.ranges.first()?;
    let (own, others) = (prefix_of(&word).0, prefix_of(&first.from).0);
    let is_model = own != others && begins_models(tokens, next);
    ((sign != ";" || own.len() == others.len()) && !is_model).then_some(next)
}

/// A word that can be a serial number.
fn serial(tokens: &Tokens<'_>, at: usize) -> Option<String> {
    let word = tokens.text(at);
    let is_plain = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'/' | b'.' | b','));
    let has_lower = word.bytes().filter(u8::is_ascii_lowercase).count() > 1;
    let is_serial =
        tokens.is_word(at) && word.len() <= SERIAL_BYTES_MAX && word.bytes().any(|byte| byte.is_ascii_digit()) && is_plain && !has_lower;
    is_serial.then(|| word.replace(',', ""))
}

/// The compact form of a serial number before its last number, and that number. `("28", 7125001)` for `28-7125001`.
fn prefix_of(serial: &str) -> (String, Option<u64>) {
    let upper = serial.trim().to_uppercase();
    let digits = upper.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (prefix, number) = upper.split_at_checked(upper.len() - digits).unwrap_or((upper.as_str(), ""));
    (compact_form(prefix), number.parse().ok())
}

impl Serials {
    /// Whether a serial number is one of the list. `None` if the list could not be read to its end and does not have it.
    #[must_use]
    pub fn contains(&self, serial: &str) -> Option<bool> {
        if self.is_all {
            return Some(true);
        }
        let wanted = prefix_of(serial);
        let is_listed = self.ranges.iter().any(|range| {
            let from = prefix_of(&range.from);
            let to = range.to.as_deref().map(prefix_of);
            let is_from = compact_form(&range.from) == compact_form(serial);
            let is_within = match (&to, wanted.1, from.1) {
                (_, Some(number), Some(first)) if wanted.0 == from.0 && number >= first => match &to {
                    Some((prefix, Some(last))) => *prefix == from.0 && number <= *last,
                    Some(_) => false,
                    None => true,
                },
                _ => false,
            };
            is_from || is_within
        });
        if is_listed {
            return Some(true);
        }
        self.is_complete.then_some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> (Vec<String>, bool) {
        let tokens = Tokens::of(text, 0..text.len());
        let (serials, _) = read(&tokens, 0);
        let shown = |range: &SerialRange| match &range.to {
            Some(to) if *to == range.from => range.from.clone(),
            Some(to) => format!("{}..{to}", range.from),
            None => format!("{}..", range.from),
        };
        (serials.ranges.iter().map(shown).collect(), serials.is_complete)
    }

    /// Proves which wordings are read, and that a list with exceptions or without numbers is not complete.
    #[test]
    fn wordings() {
        for (text, expected, is_complete) in [
            (
                "serial numbers 28-1 through 28-99 inclusive, 28-101, and 28-200 and subsequent, certificated",
                &["28-1..28-99", "28-101", "28-200.."][..],
                true,
            ),
            (
                "manufacturer serial numbers (MSNs) 3603, 3605, 3615 to 3619 inclusive, and 3705.",
                &["3603", "3605", "3615..3619", "3705"],
                true,
            ),
            ("S/N TH-1 through TH-2124; and TJ-1 through TJ-9;", &["TH-1..TH-2124", "TJ-1..TJ-9"], true),
            ("serial numbers (S/Ns): T18205568 and up", &["T18205568.."], true),
            ("serial numbers 1,001 through 1,050", &["1001..1050"], true),
            ("serial numbers 1 through 50, except 7", &["1..50"], false),
            ("serial numbers 1 through 50, except 7 and 9, and Model X-2 airplanes", &["1..50"], false),
            ("serial numbers E-3630 and E-3636 through E-4000, and G36 airplanes", &["E-3630", "E-3636..E-4000"], true),
            ("serial numbers 402C0001 through 402C1020, and T30300001 and up, airplanes", &["402C0001..402C1020", "T30300001.."], true),
            ("serial numbers identified in the bulletin", &[], false),
            ("serial numbers 5 through the last", &["5.."], false),
        ] {
            let (ranges, complete) = read_text(text);
            assert_eq!((ranges.iter().map(String::as_str).collect::<Vec<_>>(), complete), (expected.to_vec(), is_complete), "{text}");
        }
    }

    /// Proves that a serial number is compared by its last number, and that a list that was not read to its end never excludes one.
    #[test]
    fn membership() {
        let text = "serial numbers 28-1 through 28-99, T18205568 and up, 0007";
        let tokens = Tokens::of(text, 0..text.len());
        let (mut serials, _) = read(&tokens, 0);
        for (serial, expected) in [
            ("28-50", true),
            ("28-100", false),
            ("32-50", false),
            ("T18299999", true),
            ("T18200000", false),
            ("7", true),
            ("28-1", true),
            ("", false),
            ("99999999999999999999999", false),
        ] {
            assert_eq!(serials.contains(serial), Some(expected), "{serial}");
        }
        serials.is_complete = false;
        assert_eq!((serials.contains("28-100"), serials.contains("28-50")), (None, Some(true)));

        // The exception ends with its serial numbers.
        let text = "all serial numbers except 7 through 9, and Model X-2 airplanes";
        let tokens = Tokens::of(text, 0..text.len());
        let (serials, next) = read(&tokens, 1);
        assert_eq!((serials.is_all, serials.contains("8"), serials.contains("5"), tokens.text(next + 2)), (false, None, None, "Model"));
    }
}
