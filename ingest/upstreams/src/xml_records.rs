//! Reads the records of an XML document of any length one by one, with bounded memory.
//!
//! A record is an element with a given name. The reader finds where each record begins and ends; the caller parses its bytes. A document type is
//! skipped, and one that declares entities is refused, so nothing can expand. A record that is too large is skipped and named; every other part of
//! the document has limits of its own, beyond which the document is refused.
//!
//! `quick_xml` reads an event of any length into memory and refuses a whole document for one wrong byte, so the boundaries are found here.

use std::io::BufRead;

use memchr::memchr;

/// The longest record, in bytes.
const RECORD_BYTES_MAX: usize = 16 << 20;
/// How many bytes of a longer record are returned.
const RECORD_START_BYTES: usize = 64 << 10;
/// The longest tag, document type or piece of a comment, in bytes.
const MARKUP_BYTES_MAX: usize = 1 << 20;
/// The deepest nesting accepted.
const DEPTH_MAX: usize = 64;

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct XmlRecord<'a> {
    /// Its element with its tags; only the beginning if it is too large.
    pub(crate) bytes: &'a [u8],
    /// Whether it is longer than [`RECORD_BYTES_MAX`].
    pub(crate) is_too_large: bool,
}

/// Reads the records of a document.
pub(crate) struct RecordReader<R> {
    input: R,
    root: &'static str,
    element: &'static str,
    /// The record that is being read.
    record: Vec<u8>,
    is_too_large: bool,
    /// The tag or other markup that is being read, without its first `<`.
    markup: Vec<u8>,
    depth: usize,
    has_root: bool,
}

/// What a piece of markup is.
enum Markup {
    Start {
        is_empty: bool,
    },
    End,
    /// Characters between `<![CDATA[` and `]]>`, which belong to a record.
    Characters,
    /// A comment, an instruction or a document type.
    Other,
}

impl<R: BufRead> RecordReader<R> {
    /// Creates a reader of a document whose root element and records have these names.
    pub(crate) fn new(input: R, root: &'static str, element: &'static str) -> Self {
        Self { input, root, element, record: Vec::new(), is_too_large: false, markup: Vec::new(), depth: 0, has_root: false }
    }

    /// Returns the source of the bytes.
    pub(crate) fn source(&self) -> &R {
        &self.input
    }

    /// Reads the next record; `None` at the end of the document.
    ///
    /// # Errors
    /// Why the document cannot be read further.
    pub(crate) fn next_record(&mut self) -> Result<Option<XmlRecord<'_>>, String> {
        self.record.clear();
        self.is_too_large = false;
        // The depth of the record's parent while a record is read.
        let mut inside: Option<usize> = None;
        loop {
            if !self.text(inside.is_some())? {
                return match (self.depth, self.has_root) {
                    (0, true) => Ok(None),
                    (0, false) => Err("the document has no element".to_owned()),
                    _ => Err("the document is cut off".to_owned()),
                };
            }
            match self.markup(inside.is_some())? {
                Markup::Start { is_empty } => {
                    let is_record = inside.is_none() && name(&self.markup) == self.element.as_bytes();
                    self.begin()?;
                    if is_record {
                        inside = Some(self.depth - 1);
                    }
                    if inside.is_some() {
                        self.keep_markup();
                    }
                    if is_empty {
                        self.depth -= 1;
                    }
                }
                Markup::End => {
                    if self.depth == 0 {
                        return Err("an end tag without its start tag".to_owned());
                    }
                    self.depth -= 1;
                    if inside.is_some() {
                        self.keep_markup();
                    }
                }
                Markup::Characters | Markup::Other => {}
            }
            if inside == Some(self.depth) {
                if self.markup.first() == Some(&b'/') && name(self.markup.get(1..).unwrap_or_default()) != self.element.as_bytes() {
                    return Err(format!("{} is ended by another tag", self.element));
                }
                return Ok(Some(XmlRecord { bytes: &self.record, is_too_large: self.is_too_large }));
            }
        }
    }

    /// Counts the element whose start tag has been read.
    fn begin(&mut self) -> Result<(), String> {
        if self.depth == 0 {
            if self.has_root {
                return Err("more than one root element".to_owned());
            }
            if name(&self.markup) != self.root.as_bytes() {
                return Err(format!("the root element is {} instead of {}", String::from_utf8_lossy(name(&self.markup)), self.root));
            }
            self.has_root = true;
        }
        self.depth += 1;
        if self.depth > DEPTH_MAX { Err(format!("nested deeper than {DEPTH_MAX}")) } else { Ok(()) }
    }

    /// Reads text up to the next `<`, which is consumed. Returns false at the end of the document.
    fn text(&mut self, is_kept: bool) -> Result<bool, String> {
        loop {
            let bytes = self.input.fill_buf().map_err(|error| error.to_string())?;
            if bytes.is_empty() {
                return Ok(false);
            }
            let end = memchr(b'<', bytes);
            let text = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
            if is_kept {
                append(&mut self.record, &mut self.is_too_large, text);
            }
            let consumed = text.len() + usize::from(end.is_some());
            self.input.consume(consumed);
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    /// Reads the markup after a `<`, with its `>`, into `self.markup`.
    fn markup(&mut self, is_in_record: bool) -> Result<Markup, String> {
        self.markup.clear();
        self.until_end_of_piece()?;
        if self.markup.starts_with(b"!--") {
            self.until(b"-->", 3, false)?;
            return Ok(Markup::Other);
        }
        if self.markup.starts_with(b"![CDATA[") {
            if is_in_record {
                append(&mut self.record, &mut self.is_too_large, b"<");
            }
            self.until(b"]]>", 0, is_in_record)?;
            return Ok(Markup::Characters);
        }
        if self.markup.starts_with(b"!DOCTYPE") {
            self.document_type()?;
            return Ok(Markup::Other);
        }
        match self.markup.first() {
            Some(b'?') => self.until(b"?>", 1, false).map(|()| Markup::Other),
            Some(b'!') => Err("a declaration outside of a document type".to_owned()),
            Some(b'/') => Ok(Markup::End),
            _ => {
                while is_in_quotes(&self.markup) {
                    self.until_end_of_piece()?;
                }
                Ok(Markup::Start { is_empty: self.markup.ends_with(b"/>") })
            }
        }
    }

    /// Reads on until the markup ends with `end`, behind its first `skipped` bytes. Pieces before the last are dropped, or kept in the record.
    fn until(&mut self, end: &[u8], skipped: usize, is_kept: bool) -> Result<(), String> {
        let mut skipped = skipped;
        loop {
            if is_kept {
                append(&mut self.record, &mut self.is_too_large, &self.markup);
            }
            if self.markup.get(skipped..).is_some_and(|rest| rest.ends_with(end)) {
                return Ok(());
            }
            self.markup.clear();
            skipped = 0;
            self.until_end_of_piece()?;
        }
    }

    /// Reads a document type to its end. Its first piece is in `self.markup`.
    fn document_type(&mut self) -> Result<(), String> {
        if self.depth > 0 || self.has_root {
            return Err("a document type within the document".to_owned());
        }
        if self.markup.contains(&b'[') {
            while !self.markup.trim_ascii_end().strip_suffix(b">").is_some_and(|rest| rest.trim_ascii_end().ends_with(b"]")) {
                self.until_end_of_piece()?;
            }
        }
        if declares_entities(&self.markup) {
            return Err("the document type declares entities".to_owned());
        }
        Ok(())
    }

    /// Appends the bytes up to and including the next `>` to `self.markup`.
    fn until_end_of_piece(&mut self) -> Result<(), String> {
        loop {
            let bytes = self.input.fill_buf().map_err(|error| error.to_string())?;
            if bytes.is_empty() {
                return Err("the document is cut off".to_owned());
            }
            let end = memchr(b'>', bytes).map(|at| at + 1);
            let piece = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
            if self.markup.len() + piece.len() > MARKUP_BYTES_MAX {
                return Err(format!("a tag, comment or document type is longer than {MARKUP_BYTES_MAX} bytes"));
            }
            self.markup.extend_from_slice(piece);
            let consumed = piece.len();
            self.input.consume(consumed);
            if end.is_some() {
                return Ok(());
            }
        }
    }

    fn keep_markup(&mut self) {
        append(&mut self.record, &mut self.is_too_large, b"<");
        append(&mut self.record, &mut self.is_too_large, &self.markup);
    }
}

/// Appends to a record; of one that becomes too large only the beginning is left.
fn append(record: &mut Vec<u8>, is_too_large: &mut bool, bytes: &[u8]) {
    if *is_too_large {
        return;
    }
    if record.len() + bytes.len() > RECORD_BYTES_MAX {
        *is_too_large = true;
        record.truncate(RECORD_START_BYTES);
        record.shrink_to(RECORD_START_BYTES);
        return;
    }
    record.extend_from_slice(bytes);
}

/// Returns the name at the beginning of a tag.
fn name(tag: &[u8]) -> &[u8] {
    let end = tag.iter().position(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>')).unwrap_or(tag.len());
    tag.get(..end).unwrap_or_default()
}

/// Whether a tag ends within the quotes of an attribute.
fn is_in_quotes(tag: &[u8]) -> bool {
    let mut open = None;
    for byte in tag {
        match (open, byte) {
            (None, b'"' | b'\'') => open = Some(*byte),
            (Some(quote), byte) if quote == *byte => open = None,
            _ => {}
        }
    }
    open.is_some()
}

/// Whether a document type declares an entity outside of its comments.
fn declares_entities(document_type: &[u8]) -> bool {
    let mut rest = document_type;
    loop {
        let comment = find(rest, b"<!--");
        let before = comment.and_then(|at| rest.get(..at)).unwrap_or(rest);
        if find(before, b"<!ENTITY").is_some() {
            return true;
        }
        let Some(comment) = comment.and_then(|at| rest.get(at + 4..)) else { return false };
        let Some(after) = find(comment, b"-->").and_then(|at| comment.get(at + 3..)) else { return false };
        rest = after;
    }
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, wanted)
}

#[cfg(test)]
mod tests {
    use std::io::{self, BufReader, Read};

    use super::*;

    /// Reads all records of a document through a buffer of a few bytes, so that every token is split.
    fn read(document: &[u8]) -> Result<Vec<String>, String> {
        let mut reader = RecordReader::new(BufReader::with_capacity(3, document), "all", "one");
        let mut out = Vec::new();
        while let Some(record) = reader.next_record()? {
            assert!(!record.is_too_large);
            out.push(String::from_utf8(record.bytes.to_vec()).unwrap());
        }
        Ok(out)
    }

    /// Proves that records are found at any depth, with nested elements, attributes, character data and end tags in unexpected places.
    #[test]
    fn reads() {
        let document = "<?xml version='1.0'?><!DOCTYPE all [\n<!-- <!ENTITY x 'y'> -->\n<!ELEMENT all (one*)>\n]>\n<all><h a='>'>t<one/></h>\
            <!-- <one>x</one> > --><one k=\"a>b\"><one>n</one><![CDATA[</one>]]>&amp;<e /></one><one\n>2</one></all>\n";
        let expected = ["<one/>", "<one k=\"a>b\"><one>n</one><![CDATA[</one>]]>&amp;<e /></one>", "<one\n>2</one>"];
        assert_eq!(read(document.as_bytes()).unwrap(), expected);
        assert_eq!(read(b"<all></all>").unwrap(), Vec::<String>::new());
    }

    /// Proves that what is not a whole document of the kind, and what could expand, is refused with the reason.
    #[test]
    fn refuses() {
        let deep = "<all>".to_owned() + &"<d>".repeat(DEPTH_MAX);
        let bomb = "<!DOCTYPE all [<!ENTITY l \"lol\"><!ENTITY m \"&l;&l;\">]><all><one>&m;</one></all>";
        let outside = "<!DOCTYPE all [<!ENTITY % file SYSTEM \"file:///etc/passwd\">]><all/>";
        for (document, reason) in [
            ("", "no element"),
            ("plain text", "no element"),
            ("<!DOCTYPE html><html><body/></html>", "html instead of all"),
            ("<all><one>1</one>", "cut off"),
            ("<all><one>1</on", "cut off"),
            ("<all><one>1</two></all>", "another tag"),
            ("<all/><all/>", "more than one root"),
            ("<all></all></all>", "without its start tag"),
            ("<all><!ENTITY a 'b'></all>", "a declaration outside"),
            ("<all><!DOCTYPE b></all>", "within the document"),
            (bomb, "declares entities"),
            (outside, "declares entities"),
            (&deep, "deeper"),
        ] {
            let error = read(document.as_bytes()).unwrap_err();
            assert!(error.contains(reason), "{document:.40}: {error}");
        }
    }

    /// A document of a given length that is made while it is read.
    fn long(head: &'static str, filler: u8, length: u64, tail: &'static str) -> impl BufRead {
        BufReader::new(head.as_bytes().chain(io::repeat(filler).take(length)).chain(tail.as_bytes()))
    }

    /// Proves that a record that is too large is skipped and named, that the records after it are read, and that no memory is held for it.
    #[test]
    fn skips_a_record_that_is_too_large() {
        let input = long("<all><one><id>7</id>", b'x', 3 * RECORD_BYTES_MAX as u64, "</one><one>2</one></all>");
        let mut reader = RecordReader::new(input, "all", "one");
        let record = reader.next_record().unwrap().unwrap();
        assert!(record.is_too_large && record.bytes.starts_with(b"<one><id>7</id>x") && record.bytes.len() <= RECORD_START_BYTES);
        assert_eq!(reader.next_record().unwrap().unwrap(), XmlRecord { bytes: b"<one>2</one>", is_too_large: false });
        assert!(reader.next_record().unwrap().is_none() && reader.record.capacity() <= RECORD_START_BYTES);
    }

    /// Proves that markup that does not end is refused before it fills the memory.
    #[test]
    fn refuses_endless_markup() {
        for head in ["<all><one ", "<all><!-- ", "<!DOCTYPE all [", "<all><?x ", "<all><one><![CDATA["] {
            let mut reader = RecordReader::new(long(head, b'x', 1 << 32, ""), "all", "one");
            let error = reader.next_record().unwrap_err();
            assert!(error.contains("longer than") && reader.markup.capacity() <= 2 * MARKUP_BYTES_MAX, "{head}: {error}");
        }
    }
}
