//! Checks of a request's head that come before routes.

use http::{Method, Uri};
use hyper::header::{EXPECT, HOST};
use operation::problem::Problem;
use schemas::error_code::ErrorCode;

/// The largest request head that is accepted, in bytes; a larger one gets 431.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// Marks a request that is refused before routing. It is answered with 400 or 431, and its connection is closed.
#[derive(Clone, Debug)]
pub struct Malformed {
    /// Why the request is refused.
    pub problem: Problem,
}

impl Malformed {
    /// A request with an invalid part.
    fn new(part: &'static str, reason: &'static str) -> Self {
        Self { problem: Problem::new(ErrorCode::RequestInvalid, reason).about(part) }
    }

    /// A request whose head is larger than `bytes_max`.
    fn head_too_large(bytes_max: usize) -> Self {
        let reason = format!("the request line and the headers are larger than {bytes_max} bytes");
        Self { problem: Problem::new(ErrorCode::HeadTooLarge, reason) }
    }
}

/// Checks what routes cannot check: the method, the form of the URL, the size of the head, its expectation, and that there is exactly one valid Host. A request without
/// a path gets one, so that it can be refused with a response.
pub(crate) fn well_formed<B>(request: &mut hyper::Request<B>) -> Result<(), Malformed> {
    if request.method() == Method::CONNECT || request.uri().path().is_empty() {
        *request.uri_mut() = Uri::from_static("/");
        return Err(Malformed::new("method", "CONNECT and URLs without a path are not supported; this server is not a proxy"));
    }
    if head_bytes(request) > HEAD_BYTES_MAX {
        return Err(Malformed::head_too_large(HEAD_BYTES_MAX));
    }
    let is_other = |value: &http::HeaderValue| !value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    if request.headers().get_all(EXPECT).iter().any(is_other) {
        return Err(Malformed::new("Expect", "the expectation is not known; only 100-continue is"));
    }
    let mut values = request.headers().get_all(HOST).iter();
    let is_host = |value: &http::HeaderValue| {
        let authority = http::uri::Authority::try_from(value.as_bytes());
        authority.is_ok_and(|authority| !authority.as_str().contains('@') && !authority.host().is_empty())
    };
    let wrong = |reason| Err(Malformed::new("Host", reason));
    match (values.next(), values.next()) {
        // HTTP/1.0 does not require it.
        (None, _) if request.version() == hyper::Version::HTTP_11 => wrong("the Host header is missing"),
        (_, Some(_)) => wrong("the Host header is given twice"),
        (Some(value), None) if !is_host(value) => wrong("the Host header is not a valid host"),
        (None | Some(_), None) => Ok(()),
    }
}

/// The approximate size of a request's head in bytes.
fn head_bytes<B>(request: &hyper::Request<B>) -> usize {
    let uri = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    let line = request.method().as_str().len() + uri + " HTTP/1.1\r\n ".len();
    line + request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len()).sum::<usize>()
}
