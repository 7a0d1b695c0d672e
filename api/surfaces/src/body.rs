//! Reads the bodies of requests. Promises: never more than the size limit is held, and never longer than the time limit is waited.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use http::HeaderMap;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE};
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::{Map, Value};

/// Reads a body.
///
/// # Errors
/// `body-too-large` beyond `bytes_max`; `request-timeout` when the body is not complete in time; `request-invalid` when the client disconnects. All
/// of them close the connection, because the rest of the body would be read as the next request.
pub(crate) async fn read<S, B>(stream: S, headers: &HeaderMap, bytes_max: usize, time_max: Duration) -> Result<Bytes, Problem>
where
    S: Stream<Item = Result<B, warp::Error>> + Send,
    B: Buf,
{
    let too_large =
        || Problem::new(ErrorCode::BodyTooLarge, format!("the body is larger than {bytes_max} bytes")).header(CONNECTION.as_str(), "close");
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

/// Whether the content type is JSON.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let essence = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).and_then(|value| value.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

/// The problem of a body with another content type.
pub(crate) fn not_json() -> Problem {
    Problem::new(ErrorCode::MediaTypeUnsupported, "the body must be application/json").header("accept", "application/json")
}

/// Parses a body as the fields of an object. An empty body without a content type is an object without fields.
///
/// # Errors
/// `media-type-unsupported`, or `body-invalid` with the line and column.
pub(crate) fn fields(body: &Bytes, headers: &HeaderMap) -> Result<Map<String, Value>, Problem> {
    if body.is_empty() && !headers.contains_key(CONTENT_TYPE) {
        return Ok(Map::new());
    }
    if !is_json(headers) {
        return Err(not_json());
    }
    let fields: Fields = serde_json::from_slice(body)
        .map_err(|error| Problem::new(ErrorCode::BodyInvalid, format!("the body cannot be parsed: {error}")))?;
    Ok(fields.0)
}

/// An object in which no field occurs twice.
struct Fields(Map<String, Value>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields;
            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Fields, A::Error> {
                let mut fields = Map::new();
                while let Some((name, value)) = access.next_entry::<String, Value>()? {
                    if fields.contains_key(&name) {
                        return Err(A::Error::custom(format_args!("field \"{name}\" is given twice")));
                    }
                    fields.insert(name, value);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}
