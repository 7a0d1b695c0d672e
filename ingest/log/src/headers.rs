//! The headers of a record, kept in their encoded form, so that neither writing nor reading a record decodes them.
//!
//! ```text
//! header: name length | value length | name | value                  (lengths are LEB128)
//! ```

use bytes::Bytes;

/// The header with the media type of the value of a CloudEvent.
const CONTENT_TYPE: &str = "content-type";
/// The header with the URL of the schema of the value of a CloudEvent.
const DATA_SCHEMA: &str = "ce_dataschema";

/// The headers of a record, in order. They share one allocation and are cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    count: usize,
    bytes: Bytes,
}

impl Headers {
    /// Encodes headers from names and values.
    #[must_use]
    pub fn new(pairs: &[(&str, &[u8])]) -> Self {
        let mut bytes = Vec::with_capacity(pairs.iter().map(|(name, value)| 6 + name.len() + value.len()).sum());
        for (name, value) in pairs {
            put_length(&mut bytes, name.len());
            put_length(&mut bytes, value.len());
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(value);
        }
        Self { count: pairs.len(), bytes: Bytes::from(bytes) }
    }

    /// Builds the attributes of a CloudEvent with the names of the Kafka binding; `time` is in RFC 3339.
    #[must_use]
    pub fn cloud_event(id: &str, kind: &str, source: &str, time: &str) -> Self {
        Self::new(&[
            ("ce_specversion", b"1.0"),
            ("ce_id", id.as_bytes()),
            ("ce_type", kind.as_bytes()),
            ("ce_source", source.as_bytes()),
            ("ce_time", time.as_bytes()),
        ])
    }

    /// Returns the headers with two more at the end that describe the value of a CloudEvent, as the binary mode of the Kafka binding has them: its media type
    /// and the URL of its schema.
    pub(crate) fn with_schema(&self, media_type: &str, url: &str) -> Self {
        let added = Self::new(&[(CONTENT_TYPE, media_type.as_bytes()), (DATA_SCHEMA, url.as_bytes())]);
        Self { count: self.count + added.count, bytes: [&*self.bytes, &*added.bytes].concat().into() }
    }

    /// Returns the headers without those that [`with_schema`](Self::with_schema) added.
    pub(crate) fn without_schema(&self) -> Self {
        let end = self.bytes.len();
        let mut rest = &*self.bytes;
        for _ in 2..self.count {
            let Some((_, behind)) = first(rest) else { return self.clone() };
            rest = behind;
        }
        let is_described = self.count >= 2
            && first(rest)
                .is_some_and(|((name, _), behind)| name == CONTENT_TYPE && first(behind).is_some_and(|((name, _), _)| name == DATA_SCHEMA));
        if is_described { Self { count: self.count - 2, bytes: self.bytes.slice(..end - rest.len()) } } else { self.clone() }
    }

    /// The bytes of the names and values that count towards the limit of a record: all but those that describe the value.
    #[must_use]
    pub fn size(&self) -> usize {
        self.iter().filter(|(name, _)| !matches!(*name, CONTENT_TYPE | DATA_SCHEMA)).map(|(name, value)| name.len() + value.len()).sum()
    }

    /// Whether these are the headers of a CloudEvent. All records that this program writes have such headers.
    #[must_use]
    pub fn is_event(&self) -> bool {
        self.iter().any(|(name, _)| name == "ce_id")
    }

    /// Reads headers from the bytes of a packed value; `None` unless the bytes are exactly `count` whole headers.
    pub(crate) fn cut(count: usize, bytes: Bytes) -> Option<Self> {
        let mut rest = &*bytes;
        for _ in 0..count {
            (_, rest) = first(rest)?;
        }
        rest.is_empty().then_some(Self { count, bytes })
    }

    /// Iterates over the names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let mut rest = &*self.bytes;
        std::iter::from_fn(move || {
            let (header, behind) = first(rest)?;
            rest = behind;
            Some(header)
        })
    }

    /// Returns the number of headers.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns the encoded bytes for a packed value.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

type Header<'a> = (&'a str, &'a [u8]);

/// Splits the first header from the bytes after it.
fn first(bytes: &[u8]) -> Option<(Header<'_>, &[u8])> {
    let (name_bytes, rest) = length(bytes)?;
    let (value_bytes, rest) = length(rest)?;
    let (name, rest) = rest.split_at_checked(name_bytes)?;
    let (value, rest) = rest.split_at_checked(value_bytes)?;
    Some(((std::str::from_utf8(name).ok()?, value), rest))
}

/// Splits a LEB128 length from the bytes after it.
pub(crate) fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut out = 0_usize;
    for (at, byte) in bytes.iter().take(5).enumerate() {
        out |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((out, &bytes[at + 1..]));
        }
    }
    None
}

/// Writes a length as LEB128.
pub(crate) fn put_length(out: &mut Vec<u8>, mut length: usize) {
    while length > 0x7f {
        out.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.push((length & 0x7f) as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that what describes a value is added at the end and removed again, counts towards no limit, and that other headers stay.
    #[test]
    fn descriptions_of_values() {
        let event = Headers::cloud_event("1", "k", "/s", "t");
        for headers in [
            event.clone(),
            Headers::default(),
            Headers::new(&[("content-type", b"x")]),
            Headers::new(&[("ce_dataschema", b"x"), ("a", b"b")]),
        ] {
            assert_eq!(headers.without_schema(), headers);
            let described = headers.with_schema("application/x", "https://a.example/schemas/1");
            assert_eq!(
                (described.without_schema(), described.size(), described.count()),
                (headers.clone(), headers.size(), headers.count() + 2)
            );
            let added: Vec<_> = described.iter().skip(headers.count()).collect();
            assert_eq!(added, [("content-type", &b"application/x"[..]), ("ce_dataschema", &b"https://a.example/schemas/1"[..])]);
        }
        assert_eq!(event.size(), event.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>());
    }

    /// Proves that headers read back in order, and that a truncated header, a wrong count and a name that is not UTF-8 are refused.
    #[test]
    fn only_whole_headers_are_taken() {
        let long = vec![7; 300];
        let pairs: [(&str, &[u8]); 3] = [("a", b"1"), ("größe", b""), ("a", &long)];
        let headers = Headers::new(&pairs);
        assert_eq!(headers.iter().collect::<Vec<_>>(), pairs);
        let bytes = headers.bytes.clone();
        assert_eq!(Headers::cut(3, bytes.clone()), Some(headers));
        for (count, bytes) in
            [(2, bytes.clone()), (4, bytes.clone()), (3, bytes.slice(..bytes.len() - 1)), (1, Bytes::from_static(b"\x01\0\xff"))]
        {
            assert_eq!(Headers::cut(count, bytes), None);
        }
    }
}
