//! Compression of answers, for clients that accept gzip: documents and pages of records of more than a few kilobytes.
//!
//! Not compressed are event streams, whose events must not wait in a buffer, and files that clients can get in parts, whose bytes have their places.

use http::header::{ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_TYPE, ETAG, VARY};
use http::{Extensions, HeaderMap, HeaderValue, StatusCode, Version};
use tower_http::CompressionLevel;
use tower_http::compression::Compression;
use tower_http::compression::predicate::{And, Predicate, SizeAbove};

/// Shorter answers are not compressed: they fit into a few packets anyway.
const BYTES_MIN: u16 = 4 << 10;

/// Which answers are compressed.
pub type Suitable = And<SizeAbove, fn(StatusCode, Version, &HeaderMap, &Extensions) -> bool>;

/// A service whose answers are compressed if they are suitable and the client accepts it. The fastest level, because a page is compressed for one reader.
pub fn compressed<S>(service: S) -> Compression<S, Suitable> {
    let suitable: Suitable = SizeAbove::new(BYTES_MIN).and(is_text as fn(StatusCode, Version, &HeaderMap, &Extensions) -> bool);
    Compression::new(service).quality(CompressionLevel::Fastest).compress_when(suitable)
}

/// Whether an answer is text that is sent whole.
fn is_text(_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    let is_text = media_type.starts_with("text/") && media_type != "text/event-stream";
    let has_parts = headers.get(ACCEPT_RANGES).is_some_and(|unit| unit != "none");
    (is_text || media_type.ends_with("json") || media_type.ends_with("xml")) && !has_parts
}

/// Completes an answer for caches that keep its compressed form. `known` is the `If-None-Match` of the request, line by line.
///
/// The ETag of a compressed answer is a weak one: a strong one would say that the bytes are those of the answer that is not compressed. A 304 has the ETag by
/// which the cache knows its copy, since a strong one would select no copy with a weak one. It also varies by `Accept-Encoding`: its headers replace those
/// of the copy, which would then be given to clients that accept no compression.
pub(super) fn completed_for_caches<B>(known: &[HeaderValue], mut response: http::Response<B>) -> http::Response<B> {
    let is_revalidation = response.status() == StatusCode::NOT_MODIFIED;
    let Some(strong) = response.headers().get(ETAG).cloned() else { return response };
    if is_revalidation && !has_accept_encoding(response.headers()) {
        response.headers_mut().append(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    if strong.as_bytes().starts_with(b"\"")
        && let Ok(weak) = HeaderValue::from_bytes(&[b"W/", strong.as_bytes()].concat())
        && (response.headers().contains_key(CONTENT_ENCODING) || (is_revalidation && names(known, &weak)))
    {
        response.headers_mut().insert(ETAG, weak);
    }
    response
}

/// Whether `Vary` has `Accept-Encoding`.
fn has_accept_encoding(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(VARY).iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|name| name.trim().eq_ignore_ascii_case(ACCEPT_ENCODING.as_str()))
}

/// Whether one of the lines has this ETag.
fn names(lines: &[HeaderValue], etag: &HeaderValue) -> bool {
    lines.iter().any(|line| line.as_bytes().split(|byte| *byte == b',').any(|tag| tag.trim_ascii() == etag.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which media types are compressed, and that files that can be had in parts are not.
    #[test]
    fn media_types() {
        let is_suitable = |media_type: &'static str, parts: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
            if !parts.is_empty() {
                headers.insert(ACCEPT_RANGES, HeaderValue::from_static(parts));
            }
            is_text(StatusCode::OK, Version::HTTP_11, &headers, &Extensions::new())
        };
        for media_type in [
            "application/json",
            "application/problem+json; charset=utf-8",
            "application/x-ndjson",
            "text/html; charset=utf-8",
            "text/markdown",
            "text/csv; charset=utf-8",
            "application/atom+xml",
        ] {
            assert!(is_suitable(media_type, "") && is_suitable(media_type, "none"), "{media_type}");
            assert!(!is_suitable(media_type, "bytes"), "{media_type} in parts");
        }
        for media_type in ["text/event-stream", "text/event-stream; charset=utf-8", "application/vnd.apache.parquet", "image/png", ""] {
            assert!(!is_suitable(media_type, ""), "{media_type}");
        }
    }

    /// Proves that the strong ETag of a compressed answer becomes weak, that of a 304 only if the cache knows it as a weak one, and that of no other answer.
    #[test]
    fn etags() {
        for (status, encoding, known, etag, expected) in [
            (200, "gzip", "", "\"a\"", "W/\"a\""),
            (200, "gzip", "", "W/\"a\"", "W/\"a\""),
            (200, "", "W/\"a\"", "\"a\"", "\"a\""),
            (304, "", "W/\"a\"", "\"a\"", "W/\"a\""),
            (304, "", "\"b\" ,W/\"a\"", "\"a\"", "W/\"a\""),
            (304, "", "\"a\"", "\"a\"", "\"a\""),
            (304, "", "*", "\"a\"", "\"a\""),
        ] {
            let mut response = http::Response::new(());
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            response.headers_mut().insert(ETAG, HeaderValue::from_static(etag));
            if !encoding.is_empty() {
                response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
            }
            let completed = completed_for_caches(&[HeaderValue::from_static("\"c\""), HeaderValue::from_static(known)], response);
            assert_eq!(completed.headers()[ETAG], expected, "{status} {encoding} {known} {etag}");
        }
    }

    /// Proves that a 304 varies by the encoding, once, and that other answers are left as they are.
    #[test]
    fn revalidations_vary_by_encoding() {
        for (status, vary, expected) in [
            (304, "Accept, Authorization", vec!["Accept, Authorization", "Accept-Encoding"]),
            (304, "Accept, accept-encoding", vec!["Accept, accept-encoding"]),
            (200, "Accept", vec!["Accept"]),
        ] {
            let mut response = http::Response::new(());
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            response.headers_mut().insert(ETAG, HeaderValue::from_static("\"a\""));
            response.headers_mut().insert(VARY, HeaderValue::from_static(vary));
            let completed = completed_for_caches(&[], response);
            assert_eq!(completed.headers().get_all(VARY).iter().collect::<Vec<_>>(), expected, "{status} {vary}");
        }
    }
}
