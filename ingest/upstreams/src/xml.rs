//! A small XML tree parser without the dangerous parts of XML. Document types are refused, only character references are expanded, and
//! depth and number of elements are limited. Namespace prefixes are dropped from names.

use std::borrow::Cow;
use std::ops::Range;

use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use crate::text;

/// The deepest nesting accepted.
const DEPTH_MAX: usize = 32;
/// The most elements in a document.
const ELEMENTS_MAX: usize = 500_000;
/// The most attributes of an element; further ones are ignored.
const ATTRIBUTES_MAX: usize = 16;

/// One element.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Element {
    /// The element's name without a prefix.
    pub(crate) name: String,
    /// The child elements, in order.
    pub(crate) children: Vec<Element>,
    /// The element's byte range in the text.
    pub(crate) span: Range<usize>,
    attributes: Vec<(String, String)>,
    text: String,
}

impl Element {
    /// Parses a document.
    ///
    /// # Errors
    /// Why it is not well formed, or which limit it exceeds.
    pub(crate) fn parse(source: &str) -> Result<Self, String> {
        let mut reader = Reader::from_str(source);
        reader.config_mut().allow_dangling_amp = true;
        let (mut open, mut root, mut count): (Vec<Self>, Option<Self>, usize) = (Vec::new(), None, 0);
        loop {
            let begun = position(&reader);
            let event = reader.read_event().map_err(|error| format!("not well formed at byte {begun}: {error}"))?;
            let closed = match event {
                Event::Start(start) => {
                    count += 1;
                    open.push(Self::begin(&start, begun));
                    None
                }
                Event::Empty(start) => {
                    count += 1;
                    Some(Self::begin(&start, begun))
                }
                Event::End(_) => open.pop(),
                Event::Text(part) => {
                    put(&mut open, &part.xml10_content());
                    None
                }
                Event::CData(part) => {
                    put(&mut open, &part.xml10_content());
                    None
                }
                Event::GeneralRef(reference) => {
                    put(&mut open, &resolved(&reference.xml10_content()));
                    None
                }
                Event::DocType(_) => return Err("a document type is declared".to_owned()),
                Event::Eof => break,
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => None,
            };
            if open.len() > DEPTH_MAX || count > ELEMENTS_MAX {
                return Err(format!("deeper than {DEPTH_MAX} or more than {ELEMENTS_MAX} elements"));
            }
            let Some(mut element) = closed else { continue };
            element.span.end = position(&reader);
            match open.last_mut() {
                Some(parent) => parent.children.push(element),
                None if root.is_none() => root = Some(element),
                None => return Err("more than one root".to_owned()),
            }
        }
        if let Some(unclosed) = open.first() {
            return Err(format!("cut off: {} does not end", unclosed.name));
        }
        root.ok_or_else(|| "the document has no element".to_owned())
    }

    fn begin(start: &BytesStart<'_>, at: usize) -> Self {
        let mut attributes = start.attributes();
        let attributes = attributes.with_checks(false).take(ATTRIBUTES_MAX).filter_map(Result::ok);
        let attributes = attributes.map(|one| (one.key.local_name().as_ref().to_owned(), unescaped(&one.value))).collect();
        Self { name: start.local_name().as_ref().to_owned(), span: at..at, attributes, ..Self::default() }
    }

    /// Returns the first child element with a name.
    pub(crate) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// Returns the child elements with a name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// Returns the element at a path of names separated by slashes.
    pub(crate) fn at(&self, path: &str) -> Option<&Self> {
        path.split('/').try_fold(self, |element, name| element.child(name))
    }

    /// Returns the cleaned text of the element at a path; empty when there is none.
    pub(crate) fn text(&self, path: &str) -> String {
        self.at(path).map(|element| text::clean(&element.text)).unwrap_or_default()
    }

    /// Returns the element's own text, uncleaned.
    pub(crate) fn raw_text(&self) -> &str {
        &self.text
    }

    /// Returns an attribute; empty when it is missing.
    pub(crate) fn attribute(&self, name: &str) -> &str {
        self.attributes.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

/// Decodes a body as UTF-8 or, if that fails, as ISO-8859-1.
pub(crate) fn decoded(body: &[u8]) -> Cow<'_, str> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    match std::str::from_utf8(body) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(body.iter().map(|byte| char::from(*byte)).collect()),
    }
}

fn position(reader: &Reader<&[u8]>) -> usize {
    usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX)
}

fn put(open: &mut [Element], part: &str) {
    if let Some(element) = open.last_mut() {
        element.text.push_str(part);
    }
}

/// Returns the replacement of a reference; an unknown one is returned unchanged.
pub(crate) fn resolved(name: &str) -> Cow<'static, str> {
    let number = match name.strip_prefix('#') {
        Some(number) => match number.strip_prefix('x') {
            Some(hex) => u32::from_str_radix(hex, 16).ok(),
            None => number.parse().ok(),
        },
        None => None,
    };
    match (name, number.and_then(char::from_u32)) {
        (_, Some(c)) => Cow::Owned(c.to_string()),
        ("amp", _) => Cow::Borrowed("&"),
        ("lt", _) => Cow::Borrowed("<"),
        ("gt", _) => Cow::Borrowed(">"),
        ("quot", _) => Cow::Borrowed("\""),
        ("apos", _) => Cow::Borrowed("'"),
        _ => Cow::Owned(format!("&{name};")),
    }
}

fn unescaped(value: &str) -> String {
    quick_xml::escape::unescape(value).map_or_else(|_| value.to_owned(), Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that texts, references, character data, attributes and byte ranges are read.
    #[test]
    fn reads() {
        let source = "<?xml version=\"1.0\"?><!-- x --><a:r xmlns:a=\"u\"><c k='1 &amp; 2'>x &lt;b&gt; R&amp;D &#233;&#xe9; &nbsp; & y<![CDATA[<z>]]></c><e/></a:r>";
        let root = Element::parse(source).unwrap();
        assert_eq!((&*root.name, root.children.len()), ("r", 2));
        let child = root.child("c").unwrap();
        assert_eq!(child.raw_text(), "x <b> R&D éé &nbsp; & y<z>");
        assert_eq!((child.attribute("k"), child.attribute("none")), ("1 & 2", ""));
        assert!(source[child.span.clone()].starts_with("<c k") && source[child.span.clone()].ends_with("</c>"));
        assert_eq!(&source[root.children[1].span.clone()], "<e/>");
        assert!(root.at("c/d").is_none());
    }

    /// Proves that truncated, endlessly nested and other invalid documents, and entity declarations, are refused with a reason.
    #[test]
    fn refuses() {
        let deep = "<a>".repeat(100) + &"</a>".repeat(100);
        let bomb = "<!DOCTYPE a [<!ENTITY l \"lol\"><!ENTITY m \"&l;&l;\">]><a>&m;</a>";
        for (source, reason) in [
            ("<a><b></a>", "not well formed"),
            ("<a><b>", "cut off"),
            ("", "no element"),
            ("plain", "no element"),
            ("<a/><b/>", "more than one root"),
            (&deep, "deeper"),
            (bomb, "document type"),
            ("<a", "not well formed"),
        ] {
            let error = Element::parse(source).unwrap_err();
            assert!(error.contains(reason), "{source:.40}: {error}");
        }
    }

    /// Proves that a real case file of another format, with two namespaces, is read completely.
    #[test]
    fn reads_a_real_document() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/upstreams/samples/uspto-trademarks");
        if !folder.exists() {
            return;
        }
        let body = std::fs::read(folder.join("tsdr.st66.sn76044902.xml")).unwrap();
        let root = Element::parse(&decoded(&body)).unwrap();
        let content = root.at("TradeMarkTransactionBody/TransactionContentDetails/TransactionData").unwrap();
        let mark = content.at("TradeMarkDetails/TradeMark").unwrap();
        for (path, expected) in [
            ("ApplicationNumber", "76044902"),
            ("RegistrationNumber", "2824281"),
            ("MarkCurrentStatusCode", "702"),
            ("WordMarkSpecification/MarkVerbalElementText", "PYTHON"),
            ("GoodsServicesDetails/GoodsServices/ClassDescriptionDetails/ClassDescription/ClassNumber", "009"),
            ("GoodsServicesDetails/GoodsServices/ClassDescriptionDetails/ClassDescription/ClassDescriptionExt/PrimeClassText", "009"),
            ("TradeMarkExt/MarkFeatureCode", "1"),
        ] {
            assert_eq!(mark.text(path), expected, "{path}");
        }
        let stages: Vec<String> =
            content.child("ApplicantDetails").unwrap().all("Applicant").map(|owner| owner.text("ApplicantExt/PartyTypeCode")).collect();
        assert_eq!(stages, ["30", "20", "10"]);
        assert!(mark.child("MarkEventDetails").unwrap().all("MarkEvent").count() > 10);
    }

    /// Proves that bytes that are not UTF-8 are decoded as ISO-8859-1.
    #[test]
    fn decodes() {
        assert_eq!(decoded(b"\xef\xbb\xbfCaf\xc3\xa9"), "Café");
        assert_eq!(decoded(b"Caf\xe9"), "Café");
    }
}
