//! The text of a document of a filing: HTML or plain text, in paragraphs and sentences.
//!
//! The documents are made by many programs. Every tag is removed, whatever its name; blocks end a paragraph, other tags do not separate
//! words. Entities are resolved once, and white space (also `&nbsp;` and line breaks within a paragraph) becomes one blank.

use crate::text;

/// A longer tag is text.
const TAG_BYTES_MAX: usize = 64 << 10;
/// Tags that end a paragraph.
const BLOCKS: &str = "address article aside blockquote body br caption center dd div dl document dt figure footer form h1 h2 h3 h4 h5 h6 head \
    header hr html li main nav ol p page pre section table tbody text tfoot thead title tr type ul";
/// Tags between which there is a blank.
const CELLS: &str = "td th img";
/// Elements whose content is not shown.
const HIDDEN: &str = "script style ix:header noscript";
/// Words that end with a full stop within a sentence, in lower case.
const ABBREVIATIONS: &str = "inc corp ltd co llc plc dr mr mrs ms prof no nos vs e.g i.e approx jan feb mar apr jun jul aug sep sept oct nov dec p.m a.m st jr sr \
    u.s u.k e.u s.a n.v l.p ph.d m.d fig sec art vol al dept est";

/// Splits a document into paragraphs without white space around them.
pub(super) fn paragraphs(source: &str) -> Vec<String> {
    let is_html = source.contains("</") || source.contains("<P>") || source.contains("<p>");
    let raw = if is_html { blocks(source) } else { plain_blocks(source) };
    raw.iter().map(|block| text::clean(block)).filter(|block| !block.is_empty()).collect()
}

/// Splits plain text at blank lines.
fn plain_blocks(source: &str) -> Vec<String> {
    let mut blocks: Vec<String> = vec![String::new()];
    for line in source.lines() {
        if line.trim().is_empty() {
            blocks.push(String::new());
        } else if let Some(block) = blocks.last_mut() {
            block.push_str(line);
            block.push(' ');
        }
    }
    blocks
}

/// Removes tags, and splits at those that end a paragraph.
fn blocks(source: &str) -> Vec<String> {
    let has = |list: &str, name: &str| list.split_ascii_whitespace().any(|known| known.eq_ignore_ascii_case(name));
    let (mut blocks, mut block, mut rest) = (Vec::new(), String::new(), source);
    while let Some(open) = rest.find('<') {
        let (before, tagged) = rest.split_at(open);
        block.push_str(before);
        let Some((length, name)) = tag(tagged) else {
            // Not a tag. The entity is resolved to the same sign with all others.
            block.push_str("&lt;");
            rest = tagged.get(1..).unwrap_or_default();
            continue;
        };
        rest = tagged.get(length..).unwrap_or_default();
        if has(HIDDEN, name) {
            let close = format!("</{}", name.to_ascii_lowercase());
            rest = after_close(rest, &close);
        }
        let name = name.trim_start_matches('/');
        if has(BLOCKS, name) {
            blocks.push(std::mem::take(&mut block));
        } else if has(CELLS, name) {
            block.push(' ');
        }
    }
    block.push_str(rest);
    blocks.push(block);
    blocks
}

/// Returns the text after a closing tag, or nothing if it is not closed.
fn after_close<'a>(text: &'a str, close: &str) -> &'a str {
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find("</")) {
        let start = from + at;
        let is_close = text.get(start..start + close.len()).is_some_and(|tag| tag.eq_ignore_ascii_case(close));
        if is_close {
            let end = text.get(start..).and_then(|rest| rest.find('>')).map_or(text.len(), |end| start + end + 1);
            return text.get(end..).unwrap_or_default();
        }
        from = start + 2;
    }
    ""
}

/// Returns the length and the name of the tag at the start of a text; the name of a closing tag begins with a slash. A comment has no name.
fn tag(text: &str) -> Option<(usize, &str)> {
    if let Some(comment) = text.strip_prefix("<!--") {
        return Some((comment.find("-->").map_or(text.len(), |end| 4 + end + 3), ""));
    }
    let first = text.as_bytes().get(1)?;
    if !(first.is_ascii_alphabetic() || matches!(first, b'/' | b'!' | b'?')) {
        return None;
    }
    let end = text.bytes().take(TAG_BYTES_MAX).position(|byte| byte == b'>')?;
    let inner = text.get(1..end)?;
    let name = inner.split([' ', '\t', '\r', '\n', '>']).next().unwrap_or_default();
    let name = if name.len() > 1 { name.trim_end_matches('/') } else { name };
    Some((end + 1, name))
}

/// Splits a paragraph into sentences: positions of their first and after their last byte.
pub(super) fn sentences(paragraph: &str) -> Vec<(usize, usize)> {
    let (mut out, mut start) = (Vec::new(), 0);
    for (at, sign) in paragraph.char_indices().filter(|(_, c)| matches!(c, '.' | '!' | '?' | '•' | ';')) {
        let after = at + sign.len_utf8();
        let behind = paragraph.get(after..).unwrap_or_default();
        // A closing quotation mark or parenthesis belongs to the sentence.
        let closing = behind.chars().next().filter(|c| matches!(c, '"' | '\u{201d}' | ')')).map_or(0, char::len_utf8);
        let rest = behind.get(closing..).unwrap_or_default();
        let Some(next) = rest.strip_prefix(' ').and_then(|rest| rest.chars().next()) else { continue };
        let ends = match sign {
            '.' => !next.is_lowercase() && !is_abbreviation(paragraph.get(start..at).unwrap_or_default()),
            ';' => false,
            _ => true,
        };
        if ends {
            out.push((start, after + closing));
            start = after + closing + 1;
        }
    }
    if start < paragraph.len() {
        out.push((start, paragraph.len()));
    }
    out.retain(|(from, to)| from < to);
    out
}

/// Whether a text ends with an abbreviation or an initial, before its full stop.
fn is_abbreviation(text: &str) -> bool {
    let word = text.rsplit([' ', '(', '\u{201c}', '"']).next().unwrap_or_default();
    let is_initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase);
    is_initial || ABBREVIATIONS.split_ascii_whitespace().any(|known| known.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(paragraph: &str) -> Vec<&str> {
        sentences(paragraph).into_iter().map(|(from, to)| &paragraph[from..to]).collect()
    }

    /// Proves that HTML of any maker becomes paragraphs, and that a date keeps its words together.
    #[test]
    fn html() {
        let page = "<HTML><head><style>p { color: red }</style><TITLE>8-K</TITLE></head><body><p style='a>b'>The FDA set a <b>PDUFA</b> date of \
            November&nbsp;27,\n 2026.</p><ix:header><p>hidden</p></ix:header><ix:nonNumeric name=\"x\">One &amp; two</ix:nonNumeric><div>3 &lt; 4</div>\
            <table><tr><td>A</td><td>B</td></tr></table><!-- no --><p>a < b</p></body></html>";
        assert_eq!(paragraphs(page), ["8-K", "b'>The FDA set a PDUFA date of November 27, 2026.", "One & two", "3 < 4", "A B", "a < b"]);
        assert_eq!(paragraphs("one\ntwo\n\nthree"), ["one two", "three"]);
        assert_eq!(paragraphs(""), [""; 0]);
    }

    /// Proves where sentences end, and that abbreviations do not end them.
    #[test]
    fn sentence_ends() {
        assert_eq!(
            split("Acme Bio, Inc. said so. The U.S. PDUFA date is Sept. 1, 2026. It is (new.) \"Yes.\" Then? no 3.5 mg"),
            ["Acme Bio, Inc. said so.", "The U.S. PDUFA date is Sept. 1, 2026.", "It is (new.)", "\"Yes.\"", "Then?", "no 3.5 mg"]
        );
        assert_eq!(split(""), [""; 0]);
        assert_eq!(split("é. É. x"), ["é.", "É. x"]);
    }
}
