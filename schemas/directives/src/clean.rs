//! Removes what printing adds to the text of a document: page breaks, hyphens at the end of a line, entities, typographic signs.
//!
//! The cleaned text has single blanks within a paragraph, an empty line between paragraphs, and one line for each row of a table, whose cells
//! are separated by ` | `. Cleaning a cleaned text changes nothing.

use std::fmt::Write as _;

/// The longest text that is cleaned, in bytes. The rest is cut.
pub(crate) const TEXT_BYTES_MAX: usize = 1 << 20;
/// The longest entity or bracketed name, in bytes.
const NAME_BYTES_MAX: usize = 12;
/// How often entities within entities are replaced.
const NESTED_MAX: usize = 8;
/// From so many dots on, they lead to the next cell of a table.
const LEADER_MIN: usize = 3;

/// Cleans the raw text of a document. At most the first mebibyte is read.
#[must_use]
pub fn clean(raw: &str) -> String {
    let mut plain = plain_signs(raw.get(..raw.floor_char_boundary(TEXT_BYTES_MAX)).unwrap_or_default());
    for _ in 1..NESTED_MAX {
        let again = plain_signs(&plain);
        if again == plain {
            break;
        }
        plain = again;
    }
    let mut out = String::with_capacity(plain.len());
    let mut is_paragraph_end = false;
    for line in plain.lines().map(str::trim) {
        if line.is_empty() || is_rule(line) {
            is_paragraph_end = true;
            continue;
        }
        let row = cells(line);
        if row.is_empty() {
            continue;
        }
        if !out.is_empty() {
            out.push_str(match (is_paragraph_end, row.split_whitespace().any(|word| word == "|")) {
                (true, _) => "\n\n",
                (false, true) => "\n",
                (false, false) => " ",
            });
        }
        push_words(&mut out, &row);
        is_paragraph_end = false;
    }
    without_broken_hyphens(&out)
}

/// Adds the words of a line with single blanks.
fn push_words(out: &mut String, line: &str) {
    for (at, word) in line.split_whitespace().enumerate() {
        if at > 0 {
            out.push(' ');
        }
        out.push_str(word);
    }
}

/// Whether a line only consists of signs that draw a table.
fn is_rule(line: &str) -> bool {
    line.bytes().all(|byte| matches!(byte, b'-' | b'_' | b'=' | b' '))
}

/// Replaces the dots that lead to the next cell of a row.
fn cells(line: &str) -> String {
    let bytes = line.as_bytes();
    let mut out = String::with_capacity(line.len());
    let mut at = 0;
    while let Some(rest) = line.get(at..).filter(|rest| !rest.is_empty()) {
        let dots = bytes.get(at..).map_or(0, |rest| rest.iter().take_while(|byte| **byte == b'.').count());
        if dots >= LEADER_MIN {
            out.push_str(" | ");
            at += dots;
        } else if let Some(c) = rest.chars().next() {
            out.push(c);
            at += c.len_utf8();
        }
    }
    // A leader without a cell after it only fills the line.
    out.trim_end_matches(['|', ' ']).to_owned()
}

/// Replaces entities, bracketed letters, page breaks and typographic signs.
fn plain_signs(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(c) = rest.chars().next() {
        let used = match c {
            '&' => entity(rest, &mut out),
            '[' => bracketed(rest, &mut out),
            '<' => tag(rest),
            _ => 0,
        };
        if used > 0 {
            rest = rest.get(used..).unwrap_or_default();
            continue;
        }
        match c {
            '\0' | '\u{ad}' | '\u{feff}' | '\u{200b}' => {}
            '\r' => {}
            '\u{2010}'..='\u{2013}' | '\u{2212}' => out.push('-'),
            '\u{2014}' | '\u{2015}' => out.push_str("--"),
            '\u{2018}' | '\u{2019}' => out.push('\''),
            '\u{201c}' | '\u{201d}' => out.push('"'),
            '\n' => out.push('\n'),
            c if c.is_whitespace() || c.is_control() => out.push(' '),
            c => out.push(c),
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    out
}

/// Reads an entity. Returns its length, or 0.
fn entity(rest: &str, out: &mut String) -> usize {
    let Some(end) = rest.bytes().take(NAME_BYTES_MAX).position(|byte| byte == b';') else { return 0 };
    let name = rest.get(1..end).unwrap_or_default();
    let replacement = match name {
        "nbsp" | "#160" | "#xA0" | "#xa0" => ' ',
        "amp" | "#38" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "ndash" | "#8211" | "#8209" => '-',
        _ => return 0,
    };
    out.push(replacement);
    end + 1
}

/// Reads `[[Page 8664]]`, or a letter with an accent: `[eacute]`. Returns the length, or 0.
fn bracketed(rest: &str, out: &mut String) -> usize {
    if let Some(page) = rest.strip_prefix("[[Page ") {
        let digits = page.bytes().take(NAME_BYTES_MAX).take_while(u8::is_ascii_alphanumeric).count();
        if page.get(digits..).is_some_and(|end| end.starts_with("]]")) {
            out.push(' ');
            return "[[Page ".len() + digits + 2;
        }
    }
    let Some(end) = rest.bytes().take(NAME_BYTES_MAX).position(|byte| byte == b']') else { return 0 };
    let name = rest.get(1..end).unwrap_or_default();
    let Some((letter, accent)) = name.split_at_checked(1) else { return 0 };
    let mark = match accent {
        "acute" => '\u{301}',
        "grave" => '\u{300}',
        "circ" => '\u{302}',
        "uml" => '\u{308}',
        "tilde" => '\u{303}',
        "cedil" => '\u{327}',
        "ring" => '\u{30a}',
        "caron" => '\u{30c}',
        _ => return 0,
    };
    // The composed letter, if there is one of common use; else the letter with a combining mark.
    match composed(letter, mark) {
        Some(c) => out.push(c),
        None => {
            let _ = write!(out, "{letter}{mark}");
        }
    }
    end + 1
}

fn composed(letter: &str, mark: char) -> Option<char> {
    let table: &[(&str, char, char)] = &[
        ("e", '\u{301}', 'é'),
        ("e", '\u{300}', 'è'),
        ("e", '\u{302}', 'ê'),
        ("a", '\u{301}', 'á'),
        ("a", '\u{300}', 'à'),
        ("a", '\u{308}', 'ä'),
        ("o", '\u{301}', 'ó'),
        ("o", '\u{308}', 'ö'),
        ("u", '\u{301}', 'ú'),
        ("u", '\u{308}', 'ü'),
        ("i", '\u{301}', 'í'),
        ("c", '\u{327}', 'ç'),
        ("n", '\u{303}', 'ñ'),
        ("a", '\u{303}', 'ã'),
        ("E", '\u{301}', 'É'),
        ("O", '\u{308}', 'Ö'),
        ("U", '\u{308}', 'Ü'),
    ];
    table.iter().find(|(base, sign, _)| *base == letter && *sign == mark).map(|(_, _, c)| *c)
}

/// Reads a tag of the wrapper: `<html>`, `<pre>`, `</a>`. Returns its length, or 0.
fn tag(rest: &str) -> usize {
    let name = rest.get(1..).unwrap_or_default().trim_start_matches('/');
    let is_known = ["html", "head", "title", "body", "pre", "a ", "a>"].iter().any(|known| name.starts_with(known));
    if !is_known {
        return 0;
    }
    rest.bytes().take(400).position(|byte| byte == b'>').map_or(0, |end| end + 1)
}

/// Joins words that a line break after a hyphen separated: `A321- 111`, `time- in-service`, `, - 271NX`.
fn without_broken_hyphens(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut before = '\n';
    while let Some(c) = chars.next() {
        out.push(c);
        if c == '-' && chars.peek() == Some(&' ') {
            let mut ahead = chars.clone();
            ahead.next();
            let next = ahead.next().unwrap_or(' ');
            let is_within_word = before.is_alphanumeric() && next.is_alphanumeric();
            let follows_list = [", -", " and -", " or -"].iter().any(|ending| out.ends_with(ending));
            let is_shorthand = follows_list && (next.is_ascii_digit() || next.is_ascii_uppercase());
            let is_conjunction = is_within_word && follows_conjunction(&mut ahead, next);
            if (is_within_word && !is_conjunction) || is_shorthand {
                chars.next();
            }
        }
        before = c;
    }
    out
}

/// Whether "and", "or", "to" or "series" follows: "short- and long-range" and "146- series" are no broken words.
fn follows_conjunction(ahead: &mut std::iter::Peekable<std::str::Chars<'_>>, first: char) -> bool {
    let mut word = String::from(first);
    while let Some(c) = ahead.next_if(|c| c.is_alphabetic()) {
        word.push(c);
        if word.len() > 6 {
            return false;
        }
    }
    matches!(word.as_str(), "and" | "or" | "series" | "to") && ahead.peek() != Some(&'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves what is removed, and that cleaning again changes nothing.
    #[test]
    fn noise_is_removed() {
        for (raw, expected) in [
            ("Model A321-\n111 and A321- 112", "Model A321-111 and A321-112"),
            ("AD 2016-17- 12", "AD 2016-17-12"),
            ("hours time- in-service (TIS)", "hours time-in-service (TIS)"),
            ("A321-271N, - 271NX, and -272N", "A321-271N, -271NX, and -272N"),
            ("A350-941 and - 1041", "A350-941 and -1041"),
            ("short- and long-range", "short- and long-range"),
            ("Model BAe 146- series", "Model BAe 146- series"),
            ("one\n[[Page 8664]]\ntwo", "one\n\ntwo"),
            ("Avions de Transport R[eacute]gional [Reserved] [Amended]", "Avions de Transport Régional [Reserved] [Amended]"),
            ("a\0b &#160;c&nbsp;d &amp; e", "ab c d & e"),
            ("<html><body><pre>\nText\n</pre></body></html>", "Text"),
            ("A319\u{2013}111\u{2014}x \u{201c}y\u{201d}", "A319-111--x \"y\""),
            ("one\ntwo\n\n\nthree", "one two\n\nthree"),
            (
                "Model            Serial\n----------------\nPA-28-140.......  28-1 through\n   28-9\nPA-28-150.......  28-10",
                "Model Serial\n\nPA-28-140 | 28-1 through 28-9\nPA-28-150 | 28-10",
            ),
            ("", ""),
            ("\0\0", ""),
        ] {
            let cleaned = clean(raw);
            assert_eq!(cleaned, expected, "{raw:?}");
            assert_eq!(clean(&cleaned), cleaned, "{raw:?}");
        }
    }

    /// Proves that a text of any length is cut at a character.
    #[test]
    fn long_texts_are_cut() {
        let long = "é".repeat(TEXT_BYTES_MAX);
        let cleaned = clean(&long);
        assert!(cleaned.len() <= TEXT_BYTES_MAX && cleaned.len() > TEXT_BYTES_MAX - 4);
    }
}
