//! Reads the bodies of requests. Promises: never more than the size limit is held, and never longer than the time limit is waited.

use std::time::Duration;

use arguments::echo;
use bytes::{Buf, Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use http::header::{ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use operation::problem::Problem;
use proofs::i_json::{self, Rule};
use schemas::error_code::ErrorCode;
use serde_json::{Map, Value};

/// Reads a body.
///
/// # Errors
/// `media-type-unsupported` for a compressed body; `body-too-large` beyond `bytes_max`; `request-timeout` when the body is not complete in time;
/// `request-invalid` when the client disconnects. All of them close the connection, because the rest of the body would be read as the next request.
pub(crate) async fn read<S, B>(stream: S, headers: &HeaderMap, bytes_max: usize, time_max: Duration) -> Result<Bytes, Problem>
where
    S: Stream<Item = Result<B, warp::Error>> + Send,
    B: Buf,
{
    let too_large =
        || Problem::new(ErrorCode::BodyTooLarge, format!("the body is larger than {bytes_max} bytes")).header(CONNECTION.as_str(), "close");
    let is_encoded = |value: &HeaderValue| !value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity");
    if headers.get_all(CONTENT_ENCODING).iter().any(is_encoded) {
        let problem = Problem::new(ErrorCode::MediaTypeUnsupported, "the body must not be compressed: leave out Content-Encoding");
        return Err(problem.header(ACCEPT_ENCODING.as_str(), "identity").header(CONNECTION.as_str(), "close"));
    }
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()).and_then(|value| value.parse::<u64>().ok());
    if announced.is_some_and(|length| usize::try_from(length).map_or(true, |length| length > bytes_max)) {
        return Err(too_large());
    }
    let collecting = async {
        let mut stream = std::pin::pin!(stream);
        let mut whole = BytesMut::new();
        while let Some(piece) = stream.next().await {
            let piece = piece.map_err(|error| {
                tracing::debug!(%error, "the client disconnected before the body was complete");
                Problem::new(ErrorCode::RequestInvalid, "the body is incomplete").header(CONNECTION.as_str(), "close")
            })?;
            if whole.len() + piece.remaining() > bytes_max {
                return Err(too_large());
            }
            bytes::BufMut::put(&mut whole, piece);
        }
        Ok(whole.freeze())
    };
    tokio::time::timeout(time_max, collecting).await.unwrap_or_else(|_| {
        let words = format!("the body was not complete within {} s", time_max.as_secs());
        Err(Problem::new(ErrorCode::RequestTimeout, words).header(CONNECTION.as_str(), "close"))
    })
}

/// The byte order mark that some programs write before a text in UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A text without its byte order mark, which JSON does not have.
pub(crate) fn without_mark(body: Bytes) -> Bytes {
    if body.starts_with(MARK) { body.slice(MARK.len()..) } else { body }
}

/// Why a JSON text cannot be read if that is its encoding.
pub(crate) fn encoding_problem(body: &[u8]) -> Option<&'static str> {
    // A JSON text begins with two ASCII characters, or with one alone.
    let is_wide = matches!(body, [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, ..] | [_, 0, ..]);
    is_wide.then_some("it is UTF-16 or UTF-32; JSON is sent as UTF-8")
}

/// Whether the content type is JSON.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let essence = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).and_then(|value| value.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

/// The problem of a body with another content type.
pub(crate) fn not_json() -> Problem {
    Problem::new(ErrorCode::MediaTypeUnsupported, "the body must be application/json").header("accept", "application/json")
}

/// Parses a body as the fields of an object. An empty body, and the empty list that clients of some languages write for an empty object, are an object
/// without fields.
///
/// # Errors
/// `media-type-unsupported`, or `body-invalid` with the line and column, or with the path of a field that is not I-JSON.
pub(crate) fn fields(body: &Bytes, headers: &HeaderMap) -> Result<Map<String, Value>, Problem> {
    if body.is_empty() && (is_json(headers) || !headers.contains_key(CONTENT_TYPE)) {
        return Ok(Map::new());
    }
    if !is_json(headers) {
        return Err(not_json());
    }
    let body = &without_mark(body.clone());
    let unreadable = |reason: &dyn std::fmt::Display| Problem::new(ErrorCode::BodyInvalid, format!("the body cannot be parsed: {reason}"));
    let value = match i_json::read(body, |_, _| true) {
        Ok(Some(value)) => value,
        Ok(None) => {
            let read = serde_json::from_slice(body);
            read.map_err(|error| encoding_problem(body).map_or_else(|| unreadable(&error), |words| unreadable(&words)))?
        }
        Err(violation) => return Err(Problem { code: ErrorCode::BodyInvalid, ..not_i_json(&violation.path, violation.rule) }),
    };
    match value {
        Value::Object(fields) => Ok(fields),
        Value::Array(items) if items.is_empty() => Ok(Map::new()),
        _ => Err(unreadable(&"it is not a JSON object")),
    }
}

/// The problem of a field that is not I-JSON.
pub(crate) fn not_i_json(path: &[String], rule: Rule) -> Problem {
    let path = path.join(".");
    let path = echo(&path);
    Problem::parameter(&*path, format!("{path}: {rule}"))
}
