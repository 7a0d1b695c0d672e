//! Parts of URLs: queries, path segments, and which links of records are followed.

use form_urlencoded::Serializer;
use operation::tracking::counts_visitors;

/// The names and values of a query.
pub type Pairs = Vec<(String, String)>;

/// The longest link that is shown as one, in bytes.
const LINK_BYTES_MAX: usize = 2_000;

/// The pairs of a query with a value: a form sends empty fields, too. Parameters that count visitors are left out.
#[must_use]
pub fn pairs(query: &str) -> Pairs {
    let all = form_urlencoded::parse(query.as_bytes()).map(|(name, value)| (name.into_owned(), value.trim().to_owned()));
    all.filter(|(name, value)| !value.is_empty() && !counts_visitors(name)).collect()
}

/// The value of a field of a query or form; empty if it has none.
#[must_use]
pub fn value<'a>(pairs: &'a Pairs, name: &str) -> &'a str {
    pairs.iter().find(|(given, _)| given == name).map_or("", |(_, value)| value)
}

/// A query of pairs, with `?`; empty without pairs.
pub(crate) fn query<N: AsRef<str>, V: AsRef<str>>(pairs: &[(N, V)]) -> String {
    if pairs.is_empty() {
        return String::new();
    }
    format!("?{}", Serializer::new(String::new()).extend_pairs(pairs).finish())
}

/// A text as one segment of a path. Dots alone are encoded, because clients resolve `.` and `..`.
#[must_use]
pub fn segment(text: &str) -> String {
    let is_of_dots = text.bytes().all(|byte| byte == b'.');
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_~:".contains(&byte) || (byte == b'.' && !is_of_dots);
    text.bytes().map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The text of a path segment; `None` if it is not UTF-8.
pub(crate) fn decoded(segment: &str) -> Option<String> {
    let (source, mut bytes, mut at) = (segment.as_bytes(), Vec::with_capacity(segment.len()), 0);
    let hex = |at: usize| source.get(at).and_then(|byte| char::from(*byte).to_digit(16)).and_then(|digit| u8::try_from(digit).ok());
    while let Some(byte) = source.get(at) {
        match (byte, hex(at + 1), hex(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(high * 16 + low);
                at += 3;
            }
            _ => {
                bytes.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// The host of a link that may be followed: http or https, without spaces, control characters and a user. `None` for any other text.
#[must_use]
pub fn followed_host(text: &str) -> Option<&str> {
    let has_scheme = |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    let rest = ["https://", "http://"].into_iter().find(|scheme| has_scheme(scheme)).and_then(|scheme| text.get(scheme.len()..))?;
    let is_plain = text.len() <= LINK_BYTES_MAX && !text.chars().any(|c| c.is_whitespace() || c.is_control());
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.strip_prefix("www.").unwrap_or(host);
    (is_plain && !host.is_empty() && !host.contains('@')).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that ids with any character come back from a path, and that queries leave empty fields out.
    #[test]
    fn segments_and_queries() {
        for id in ["CPSC:82010", "a/b c?d#e%2F", ".", "..", "é😀", "%", "2026-11-20.csv"] {
            assert_eq!(decoded(&segment(id)).as_deref(), Some(id));
            assert!(!segment(id).contains(['/', '?', '#', ' ']), "{id}");
        }
        assert_eq!([".", "..", "a.b"].map(segment), ["%2E", "%2E%2E", "a.b"]);
        assert_eq!(decoded("%ff"), None);
        assert_eq!(pairs("a=1&b=&c=+&d=x+y"), [("a".to_owned(), "1".to_owned()), ("d".to_owned(), "x y".to_owned())]);
        assert_eq!(pairs("utm_source=x&a=1&fbclid=y&gclid=z&utm_campaign=w&srsltid=v&_ga=u"), [("a".to_owned(), "1".to_owned())]);
        assert_eq!(query(&[("a", "x&y")]), "?a=x%26y");
        assert_eq!(query::<&str, &str>(&[]), "");
    }

    /// Proves that only plain http and https links are followed.
    #[test]
    fn links() {
        for (link, host) in [
            ("https://www.cpsc.gov/Recalls/1", Some("cpsc.gov")),
            ("HTTP://example.org?x", Some("example.org")),
            ("javascript:alert(1)", None),
            (" https://example.org", None),
            ("https://a\nb", None),
            ("https://", None),
            ("https://user@example.org/", None),
            ("data:text/html,x", None),
            ("//example.org", None),
            ("é", None),
        ] {
            assert_eq!(followed_host(link), host, "{link}");
        }
    }
}
