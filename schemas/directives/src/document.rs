//! Finds the directives of a document: the header `2026-15-05 Textron Aviation Inc.: Amendment 39-…`, and where the text of each one ends.

use std::error::Error;
use std::fmt;

use crate::directive::Span;
use crate::tokens::Tokens;

/// The most directives that one document holds.
const DIRECTIVES_MAX: usize = 20;
/// The most tokens between the number and the colon after the name of the holder.
const HOLDER_TOKENS_MAX: usize = 160;
/// Words that follow the colon of a header.
const HEADER_WORDS: &[&str] = &["amendment", "directorate", "docket", "product", "project"];

/// The text of one directive in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectiveText {
    /// The number: `2026-15-05`, `87-20-03 R2`.
    pub number: String,
    /// Where the number is.
    pub number_span: Span,
    /// Where the name of the holder is.
    pub holder_span: Span,
    /// The text of the directive, from its number on.
    pub span: Span,
}

/// A document that holds no directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The text is empty.
    Empty,
    /// No header with a directive's number was found: a correction that only changes words, or no directive at all.
    NoNumber,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the text is empty",
            Self::NoNumber => "no header with the number of a directive",
        })
    }
}

impl Error for ReadError {}

/// Finds the directives of a cleaned document, in its order.
///
/// # Errors
/// When the document holds none.
pub fn split(text: &str) -> Result<Vec<DirectiveText>, ReadError> {
    if text.trim().is_empty() {
        return Err(ReadError::Empty);
    }
    let tokens = Tokens::of(text, 0..text.len());
    let mut found: Vec<DirectiveText> = Vec::new();
    let mut at = 0;
    while at < tokens.len() && found.len() < DIRECTIVES_MAX {
        match header(&tokens, at) {
            Some((directive, next)) => {
                if let Some(last) = found.last_mut() {
                    last.span.end = directive.span.start;
                }
                found.push(directive);
                at = next;
            }
            None => at += 1,
        }
    }
    let end = end_of(&tokens, found.last().map_or(0, |last| last.span.start)).unwrap_or(text.len());
    if let Some(last) = found.last_mut() {
        last.span.end = end;
    }
    if found.is_empty() { Err(ReadError::NoNumber) } else { Ok(found) }
}

fn header(tokens: &Tokens<'_>, at: usize) -> Option<(DirectiveText, usize)> {
    let (number, used) = directive_number(tokens, at)?;
    let mut first = at + used;
    while tokens.text(first) == "-" {
        first += 1;
    }
    let colon = (first..first + HOLDER_TOKENS_MAX).take_while(|at| *at < tokens.len()).find(|at| tokens.text(*at) == ":")?;
    let after = if tokens.is_break(colon + 1) { colon + 2 } else { colon + 1 };
    // A second number before the colon: a list of numbers and no header.
    let is_header = colon > first && tokens.is_any(after, HEADER_WORDS) && (first..colon).all(|at| directive_number(tokens, at).is_none());
    is_header.then(|| {
        let number_span = tokens.span(at, at + used - 1);
        let directive = DirectiveText {
            number,
            number_span,
            holder_span: tokens.span(first, colon - 1),
            span: Span::new(number_span.start, number_span.end),
        };
        (directive, after)
    })
}

/// Where the text after the last directive begins: "Issued on …" in a paragraph of its own, or the document's number.
fn end_of(tokens: &Tokens<'_>, from: usize) -> Option<usize> {
    let begins =
        |at: usize| tokens.is_break(at.wrapping_sub(1)) && (tokens.is_phrase(at, "Issued in") || tokens.is_phrase(at, "Issued on"));
    let is_number = |at: usize| tokens.text(at) == "[" && tokens.is_phrase(at + 1, "FR Doc");
    (0..tokens.len()).find(|at| tokens.start(*at) > from && (begins(*at) || is_number(*at))).map(|at| tokens.start(at))
}

/// Reads the number of a directive: `2026-15-05`, `87-20-03 R2`. Returns it with the number of its tokens.
pub(crate) fn directive_number(tokens: &Tokens<'_>, at: usize) -> Option<(String, usize)> {
    let word = tokens.text(at);
    let mut parts = word.split('-');
    let (year, cycle, order) = (parts.next()?, parts.next()?, parts.next()?);
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (order, revision) = order.split_at_checked(2)?;
    let is_number =
        matches!(year.len(), 2 | 4) && cycle.len() == 2 && digits(year) && digits(cycle) && digits(order) && parts.next().is_none();
    let is_year = year.len() == 2 || year.starts_with("19") || year.starts_with("20");
    let revised = |word: &str| word.strip_prefix('R').is_some_and(|number| (1..=2).contains(&number.len()) && digits(number));
    if !is_number || !is_year || !(revision.is_empty() || revised(revision)) {
        return None;
    }
    let plain = format!("{year}-{cycle}-{order}");
    if !revision.is_empty() {
        return Some((format!("{plain} {revision}"), 1));
    }
    if revised(tokens.text(at + 1)) {
        return Some((format!("{plain} {}", tokens.text(at + 1)), 2));
    }
    Some((plain, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> Vec<String> {
        split(text)
            .map(|found| found.into_iter().map(|one| format!("{} {}", one.number, one.holder_span.of(text))).collect())
            .unwrap_or_default()
    }

    /// Proves which headers are found, with a blank or dashes after the number, and that a mention of a number is no header.
    #[test]
    fn headers() {
        for (text, expected) in [
            ("2026-15-05 Acme Aviation Inc.: Amendment 39-1; Docket No. 2.", &["2026-15-05 Acme Aviation Inc."][..]),
            ("2026-15-05--Acme: Amendment 39-1", &["2026-15-05 Acme"]),
            ("87-20-03 R2 Acme (Formerly Other; Third): Amendment 39-1", &["87-20-03 R2 Acme (Formerly Other; Third)"]),
            ("2025-23-53 Acme GmbH: Project Identifier MCAI-1", &["2025-23-53 Acme GmbH"]),
            ("2026-15-05 Acme: Amendment 39-1.\n\n(a) x\n\n2026-15-06 Other: Amendment 39-2.", &["2026-15-05 Acme", "2026-15-06 Other"]),
            ("This AD replaces AD 2021-07-13, Amendment 39-2: it", &[]),
            ("2021-07-13 and 2021-07-14: Amendment", &[]),
            ("39-23417 Acme: Amendment", &[]),
            ("", &[]),
        ] {
            assert_eq!(numbers(text), expected, "{text}");
        }
        assert_eq!(split("  "), Err(ReadError::Empty));
        assert_eq!(split("words"), Err(ReadError::NoNumber));
    }

    /// Proves that a directive's text ends before the next one and before the signature.
    #[test]
    fn ends() {
        let text = "2026-15-05 Acme: Amendment 39-1. One.\n\n2026-15-06 Other: Amendment 39-2. Two.\n\nIssued on July 1, 2026.";
        let found = split(text).unwrap();
        assert!(found[0].span.of(text).trim_end().ends_with("One."));
        assert!(found[1].span.of(text).trim_end().ends_with("Two."));
    }
}
