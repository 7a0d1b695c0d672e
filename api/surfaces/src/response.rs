//! Parts of HTTP responses: bodies and headers.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue};
use warp::reply::Response;

/// A body in one piece.
pub(crate) fn full_body(body: Bytes) -> Response {
    Response::new(body.into())
}

/// Sets a content type.
pub(crate) fn with_content_type(mut response: Response, content_type: &'static str) -> Response {
    set(&mut response, CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Sets a header whose value is computed. An invalid value is logged and left out.
pub(crate) fn set_text(response: &mut Response, name: HeaderName, value: &str) {
    match HeaderValue::from_str(value) {
        Ok(value) => set(response, name, value),
        Err(error) => tracing::error!(%error, %name, "a header value cannot be sent"),
    }
}

/// Sets a header.
pub(crate) fn set(response: &mut Response, name: HeaderName, value: HeaderValue) {
    response.headers_mut().insert(name, value);
}
