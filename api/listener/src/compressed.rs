//! Compression of answers, for clients that accept gzip: documents and pages of records of more than a few kilobytes.
//!
//! Not compressed are event streams, whose events must not wait in a buffer, and files that clients can get in parts, whose bytes have their places.

use http::header::{ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_TYPE, ETAG};
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
    (is_text || media_type.ends_with("json") || media_type.ends_with("xml")) && !headers.contains_key(ACCEPT_RANGES)
}

/// Makes the ETag of a compressed answer a weak one: a strong one would say that the bytes are those of the answer that is not compressed.
pub(super) fn weaken_etag<B>(mut response: http::Response<B>) -> http::Response<B> {
    if response.headers().contains_key(CONTENT_ENCODING)
        && let Some(strong) = response.headers().get(ETAG).filter(|etag| etag.as_bytes().starts_with(b"\""))
        && let Ok(weak) = HeaderValue::from_bytes(&[b"W/", strong.as_bytes()].concat())
    {
        response.headers_mut().insert(ETAG, weak);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which media types are compressed, and that files that can be had in parts are not.
    #[test]
    fn media_types() {
        let is_suitable = |media_type: &'static str, parts: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
            if parts {
                headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
            }
            is_text(StatusCode::OK, Version::HTTP_11, &headers, &Extensions::new())
        };
        for media_type in [
            "application/json",
            "application/problem+json; charset=utf-8",
            "application/x-ndjson",
            "text/html; charset=utf-8",
            "text/markdown",
        ] {
            assert!(is_suitable(media_type, false), "{media_type}");
            assert!(!is_suitable(media_type, true), "{media_type} in parts");
        }
        for media_type in ["text/event-stream", "text/event-stream; charset=utf-8", "application/vnd.apache.parquet", "image/png", ""] {
            assert!(!is_suitable(media_type, false), "{media_type}");
        }
    }

    /// Proves that only the strong ETag of a compressed answer changes.
    #[test]
    fn etags() {
        for (encoding, etag, expected) in [("gzip", "\"a\"", "W/\"a\""), ("gzip", "W/\"a\"", "W/\"a\""), ("", "\"a\"", "\"a\"")] {
            let mut response = http::Response::new(());
            response.headers_mut().insert(ETAG, HeaderValue::from_static(etag));
            if !encoding.is_empty() {
                response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
            }
            assert_eq!(weaken_etag(response).headers()[ETAG], expected, "{encoding} {etag}");
        }
    }
}
