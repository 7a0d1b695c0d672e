//! The headers of a record, held as the log writes them, so that neither writing nor reading takes them apart.
//!
//! ```text
//! header: name length | value length | name | value                  (lengths are LEB128)
//! ```

use bytes::Bytes;

/// The headers of a record, in order. One piece of memory however many they are; cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    count: usize,
    bytes: Bytes,
}

impl Headers {
    /// Headers of these names and values.
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

    /// The attributes of a CloudEvent, as its binding to Kafka names them; `time` in RFC 3339.
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

    /// Whether they are a CloudEvent's, as those of every record of ours are.
    #[must_use]
    pub fn is_event(&self) -> bool {
        self.iter().any(|(name, _)| name == "ce_id")
    }

    /// Headers as they stand in a packed value; `None` unless they are `count` whole ones.
    pub(crate) fn cut(count: usize, bytes: Bytes) -> Option<Self> {
        let mut rest = &*bytes;
        for _ in 0..count {
            (_, rest) = first(rest)?;
        }
        rest.is_empty().then_some(Self { count, bytes })
    }

    /// Their names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let mut rest = &*self.bytes;
        std::iter::from_fn(move || {
            let (header, behind) = first(rest)?;
            rest = behind;
            Some(header)
        })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// As they stand in a packed value.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

type Header<'a> = (&'a str, &'a [u8]);

/// The header that the bytes begin with, and what stands behind it.
fn first(bytes: &[u8]) -> Option<(Header<'_>, &[u8])> {
    let (name_bytes, rest) = length(bytes)?;
    let (value_bytes, rest) = length(rest)?;
    let (name, rest) = rest.split_at_checked(name_bytes)?;
    let (value, rest) = rest.split_at_checked(value_bytes)?;
    Some(((std::str::from_utf8(name).ok()?, value), rest))
}

/// The length that the bytes begin with, and what stands behind it.
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

/// Writes a length.
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

    /// Proves that headers read back in order, and that half a header, one too many or too few and a name that is no text are refused.
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
