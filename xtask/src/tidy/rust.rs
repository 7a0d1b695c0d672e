//! A Rust source with its comments and the content of its literals blanked, so that rules search only the code. It also works on sources that
//! do not parse.

use std::ops::Range;

/// A source whose comments and literals are blanked.
#[derive(Debug, Default)]
pub(super) struct Code {
    /// The code, with the same length and lines as the source. Quotation marks remain.
    pub(super) text: String,
    /// The byte ranges of the contents of string literals, in order.
    pub(super) strings: Vec<Range<usize>>,
}

impl Code {
    /// Reads a source.
    pub(super) fn of(source: &str) -> Self {
        let mut reader = Reader { bytes: source.as_bytes(), out: source.as_bytes().to_vec(), strings: Vec::new() };
        let mut at = 0;
        while at < reader.bytes.len() {
            at = reader.step(at);
        }
        // Literals are blanked as a whole, so the result is valid UTF-8.
        Self { text: String::from_utf8(reader.out).unwrap_or_default(), strings: reader.strings }
    }

    /// Returns the first string literal that begins at or after a byte offset.
    pub(super) fn string_after(&self, at: usize) -> Option<&Range<usize>> {
        self.strings.get(self.strings.partition_point(|range| range.start < at))
    }

    /// Returns the byte offset of every whole word in the code.
    pub(super) fn words<'a>(&'a self, word: &'a str) -> impl Iterator<Item = usize> + 'a {
        let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        let bytes = self.text.as_bytes();
        self.text
            .match_indices(word)
            .map(|(at, _)| at)
            .filter(move |at| !is_part(at.checked_sub(1).and_then(|before| bytes.get(before))) && !is_part(bytes.get(at + word.len())))
    }

    /// Returns the offset of the bracket that closes the one just before `after`.
    pub(super) fn close(&self, after: usize) -> usize {
        let mut depth = 1;
        let rest = self.text.get(after..).unwrap_or_default();
        let end = rest.find(|c| {
            depth += i32::from(matches!(c, '(' | '[' | '{')) - i32::from(matches!(c, ')' | ']' | '}'));
            depth == 0
        });
        after + end.unwrap_or(rest.len())
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    out: Vec<u8>,
    strings: Vec<Range<usize>>,
}

impl Reader<'_> {
    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or_default()
    }

    fn rest(&self, at: usize) -> &[u8] {
        self.bytes.get(at..).unwrap_or_default()
    }

    /// Reads the token at an offset. Returns the offset after it.
    fn step(&mut self, at: usize) -> usize {
        match self.byte(at) {
            b'/' if self.byte(at + 1) == b'/' => {
                let end = at + self.rest(at).iter().position(|byte| *byte == b'\n').unwrap_or(self.rest(at).len());
                self.blank(at..end)
            }
            b'/' if self.byte(at + 1) == b'*' => self.block_comment(at),
            b'"' => self.string(at + 1),
            b'\'' => self.character(at),
            byte if byte.is_ascii_alphabetic() || byte == b'_' => {
                let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
                let end = at + self.rest(at).iter().take_while(|byte| is_word(byte)).count();
                let hashes = self.rest(end).iter().take_while(|byte| **byte == b'#').count();
                let is_raw = matches!(self.bytes.get(at..end), Some(b"r" | b"br" | b"cr"));
                if is_raw && self.byte(end + hashes) == b'"' { self.raw_string(end + hashes + 1, hashes) } else { end }
            }
            _ => at + 1,
        }
    }

    fn blank(&mut self, range: Range<usize>) -> usize {
        let end = range.end;
        if let Some(bytes) = self.out.get_mut(range) {
            bytes.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        }
        end
    }

    fn block_comment(&mut self, at: usize) -> usize {
        let (mut end, mut depth) = (at + 2, 1);
        while depth > 0 && end < self.bytes.len() {
            match (self.byte(end), self.byte(end + 1)) {
                (b'/', b'*') => (depth, end) = (depth + 1, end + 2),
                (b'*', b'/') => (depth, end) = (depth - 1, end + 2),
                _ => end += 1,
            }
        }
        self.blank(at..end.min(self.bytes.len()))
    }

    /// Reads a string whose content begins at an offset.
    fn string(&mut self, at: usize) -> usize {
        let mut end = at;
        while end < self.bytes.len() && self.byte(end) != b'"' {
            end += if self.byte(end) == b'\\' { 2 } else { 1 };
        }
        self.blank_string(at, end.min(self.bytes.len()), 1)
    }

    fn raw_string(&mut self, at: usize, hashes: usize) -> usize {
        let is_end = |at: usize| self.byte(at) == b'"' && (1..=hashes).all(|more| self.byte(at + more) == b'#');
        let end = (at..self.bytes.len()).find(|at| is_end(*at)).unwrap_or(self.bytes.len());
        self.blank_string(at, end, 1 + hashes)
    }

    fn blank_string(&mut self, at: usize, end: usize, closing_bytes: usize) -> usize {
        self.strings.push(at..end);
        self.blank(at..end) + closing_bytes
    }

    /// Reads a character literal, or the quote of a lifetime or label.
    fn character(&mut self, at: usize) -> usize {
        if self.byte(at + 1) == b'\\' {
            let end = at + 3 + self.rest(at + 3).iter().position(|byte| *byte == b'\'').unwrap_or(0);
            return self.blank(at + 1..end) + 1;
        }
        // One character of any length, followed by a quote.
        let length = 1 + self.rest(at + 2).iter().take_while(|byte| **byte & 0xc0 == 0x80).count();
        if self.byte(at + 1 + length) == b'\'' { self.blank(at + 1..at + 1 + length) + 1 } else { at + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that only code remains, at the same offsets, and that the content of every literal is known.
    #[test]
    fn code_alone() {
        let source = "a /* x /* \" */ y */ b // c\n\"d\\\"e\" r#\"f \"g\" \"# br\"h\" 'i' '\\'' '\\u{e9}' 'é' &'l m b'\"' r#n 'o: loop";
        let code = Code::of(source);
        assert_eq!(code.text.len(), source.len());
        let remaining: Vec<&str> = code.text.split_whitespace().collect();
        let wanted = [
            "a", "b", "\"", "\"", "r#\"", "\"#", "br\"", "\"", "'", "'", "'", "'", "'", "'", "'", "'", "&'l", "m", "b'", "'", "r#n", "'o:",
        ];
        assert_eq!(remaining, [&wanted[..], &["loop"]].concat());
        let strings: Vec<&str> = code.strings.iter().map(|range| &source[range.clone()]).collect();
        assert_eq!(strings, ["d\\\"e", "f \"g\" ", "h"]);
        assert_eq!(code.string_after(code.strings[0].start + 1), Some(&code.strings[1]));
    }

    /// Proves that only whole words are found, and the closing bracket after nested ones.
    #[test]
    fn words_and_brackets() {
        let code = Code::of("sleep(a(b), [c]) asleep sleeper sleep");
        assert_eq!(code.words("sleep").collect::<Vec<_>>(), [0, 32]);
        assert_eq!(code.close(6), 15);
        assert_eq!(Code::of("(").close(1), 1);
    }

    /// Proves that a truncated source is read to its end.
    #[test]
    fn cut_sources() {
        let source = "fn x() { \"a\\\"\" r##\"b\"## 'c' '\\n' /* d */ } // é";
        for (end, _) in source.char_indices() {
            assert_eq!(Code::of(&source[..end]).text.len(), end, "{end}");
        }
    }
}
