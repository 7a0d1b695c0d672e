//! Splits a text into words and signs with their positions.

use std::ops::Range;

use crate::directive::Span;

/// The most tokens that are read of one text.
pub(crate) const TOKENS_MAX: usize = 60_000;
/// The longest word that is read, in bytes. A longer one is split.
const WORD_BYTES_MAX: usize = 60;
/// What is read as a word of its own after a word with a digit.
const SERIES: &str = "-series";

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Letters and digits, with hyphens, slashes, points and plus signs within.
    Word,
    /// One other character.
    Sign,
    /// The end of a paragraph or of a row.
    Break,
}

/// A token of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'t> {
    pub(crate) text: &'t str,
    pub(crate) kind: Kind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The tokens of a part of a text.
#[derive(Clone, Debug)]
pub(crate) struct Tokens<'t> {
    all: Vec<Token<'t>>,
    /// Whether the text has more tokens than are read.
    pub(crate) is_cut: bool,
}

impl<'t> Tokens<'t> {
    /// Reads the tokens of a range of a text. Positions are those of the whole text.
    pub(crate) fn of(text: &'t str, range: Range<usize>) -> Self {
        let part = text.get(range.clone()).unwrap_or_default();
        let bytes = part.as_bytes();
        let mut all = Vec::with_capacity(part.len() / 5);
        let mut at = 0;
        while let Some(c) = part.get(at..).and_then(|rest| rest.chars().next()) {
            if all.len() >= TOKENS_MAX {
                return Self { all, is_cut: true };
            }
            if c == '\n' {
                let is_open = all.last().is_some_and(|token: &Token<'_>| token.kind != Kind::Break);
                if is_open {
                    all.push(Token { text: "\n", kind: Kind::Break, start: range.start + at, end: range.start + at + 1 });
                }
                at += 1;
                continue;
            }
            if c.is_whitespace() {
                at += c.len_utf8();
                continue;
            }
            let is_shorthand = c == '-'
                && byte(bytes, at + 1).is_ascii_alphanumeric()
                && at.checked_sub(1).is_none_or(|before| !is_part(byte(bytes, before)) && byte(bytes, before) != b'-');
            let (kind, end) =
                if c.is_alphanumeric() || is_shorthand { (Kind::Word, word_end(part, at)) } else { (Kind::Sign, at + c.len_utf8()) };
            let word = part.get(at..end).unwrap_or_default();
            // "A321-series" is two words.
            let (word, joint) = match word.len().checked_sub(SERIES.len()).and_then(|cut| word.split_at_checked(cut)) {
                Some((model, SERIES)) if model.bytes().any(|byte| byte.is_ascii_digit()) => (model, 1),
                _ => (word, 0),
            };
            let end = at + word.len();
            all.push(Token { text: word, kind, start: range.start + at, end: range.start + end });
            at = end + joint;
        }
        Self { all, is_cut: false }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// The text of a token; empty after the last one.
    pub(crate) fn text(&self, at: usize) -> &'t str {
        self.all.get(at).map_or("", |token| token.text)
    }

    /// The text of a token some places before another one; empty before the first.
    pub(crate) fn before(&self, at: usize, count: usize) -> &'t str {
        at.checked_sub(count).map_or("", |at| self.text(at))
    }

    pub(crate) fn is_word(&self, at: usize) -> bool {
        self.all.get(at).is_some_and(|token| token.kind == Kind::Word)
    }

    pub(crate) fn is_break(&self, at: usize) -> bool {
        self.all.get(at).is_none_or(|token| token.kind == Kind::Break)
    }

    /// Whether a token is this word in any case.
    pub(crate) fn is(&self, at: usize, word: &str) -> bool {
        self.text(at).eq_ignore_ascii_case(word)
    }

    /// Whether a token is one of these words in any case.
    pub(crate) fn is_any(&self, at: usize, words: &[&str]) -> bool {
        let text = self.text(at);
        !text.is_empty() && words.iter().any(|word| text.eq_ignore_ascii_case(word))
    }

    /// Whether the words of a phrase begin here, in any case.
    pub(crate) fn is_phrase(&self, at: usize, phrase: &str) -> bool {
        phrase.split(' ').enumerate().all(|(offset, word)| self.is(at + offset, word))
    }

    /// The span from one token to another, both included.
    pub(crate) fn span(&self, first: usize, last: usize) -> Span {
        let start = self.all.get(first).map_or(0, |token| token.start);
        Span::new(start, self.all.get(last).map_or(start, |token| token.end).max(start))
    }

    pub(crate) fn start(&self, at: usize) -> usize {
        self.all.get(at).map_or_else(|| self.all.last().map_or(0, |token| token.end), |token| token.start)
    }

    /// The offset after a token.
    pub(crate) fn end(&self, at: usize) -> usize {
        self.all.get(at).map_or_else(|| self.start(at), |token| token.end)
    }

    /// The position after the sign that closes a parenthesis; at most `limit` tokens are looked at.
    pub(crate) fn after_parenthesis(&self, open: usize, limit: usize) -> Option<usize> {
        if self.text(open) != "(" {
            return None;
        }
        let mut depth = 0_usize;
        for at in open..self.len().min(open + limit) {
            match self.text(at) {
                "(" => depth += 1,
                ")" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(at + 1);
            }
        }
        None
    }
}

fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(b' ')
}

fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80
}

/// Where the word that begins here ends.
fn word_end(text: &str, start: usize) -> usize {
    let mut end = start;
    let mut chars = text.get(start..).unwrap_or_default().chars().peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        if end - start >= WORD_BYTES_MAX {
            break;
        }
        let next = chars.peek().copied().unwrap_or(' ');
        let is_inner = match c {
            '-' => next.is_alphanumeric(),
            '/' | '\'' => next.is_alphanumeric() && before.is_alphanumeric(),
            // Points within abbreviations and numbers: `S.p.A`, `0.5`, but not the end of a sentence.
            '.' => next.is_alphanumeric() && before.is_alphanumeric(),
            '+' => before.is_alphanumeric() || before == '+',
            // The comma of a number: `1,500`, but not of a list.
            ',' => {
                before.is_ascii_digit() && is_thousands(text.get(start..end).unwrap_or_default(), text.get(end + 1..).unwrap_or_default())
            }
            c => c.is_alphanumeric(),
        };
        if !is_inner {
            break;
        }
        end += c.len_utf8();
        before = c;
    }
    // A word has at least its first character.
    end.max(start + text.get(start..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8))
}

/// Whether a comma between these texts groups the digits of a number.
fn is_thousands(before: &str, after: &str) -> bool {
    let lead = before.rsplit(',').next().unwrap_or_default();
    let is_number = before.bytes().all(|byte| byte.is_ascii_digit() || byte == b',') && (1..=3).contains(&lead.len());
    let group = after.bytes().take(4).take_while(u8::is_ascii_digit).count();
    is_number && group == 3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        let tokens = Tokens::of(text, 0..text.len());
        (0..tokens.len()).map(|at| tokens.text(at)).collect()
    }

    /// Proves what is one word, and that positions are those of the text.
    #[test]
    fn words_and_signs() {
        for (text, expected) in [
            ("Model A319-111, -112, and -115", &["Model", "A319-111", ",", "-112", ",", "and", "-115"][..]),
            ("PC-12/47E EC135P2+ S.p.A. 1,500 150, 152", &["PC-12/47E", "EC135P2+", "S.p.A", ".", "1,500", "150", ",", "152"]),
            ("ATR--GIE", &["ATR", "-", "-", "GIE"]),
            ("(g)(1) Do it.\n\n(2)", &["(", "g", ")", "(", "1", ")", "Do", "it", ".", "\n", "(", "2", ")"]),
            ("701 &702 100-hour 1,0000", &["701", "&", "702", "100-hour", "1", ",", "0000"]),
            ("", &[]),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
        let text = "é Model 45";
        let tokens = Tokens::of(text, 3..text.len());
        assert_eq!(tokens.span(0, 1).of(text), "Model 45");
    }
}
