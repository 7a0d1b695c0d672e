//! A request as every surface sees it, and answers that do not depend on the surface.

use std::net::IpAddr;
use std::sync::Arc;

use http::header::IF_NONE_MATCH;
use http::{HeaderMap, Method};
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use schemas::names::nearest;
use warp::reply::Response;

use crate::reply;

const READ_ONLY: &str = "GET, HEAD, OPTIONS";

/// The most characters of a path that an error repeats.
pub(super) const PATH_CHARS_SHOWN: usize = 100;

pub(super) const MCP_ONLY: &str = "POST, OPTIONS";

/// Returns whether the engine is ready to answer, or the reason why it is not.
pub type Readiness = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// The head of a request.
pub(crate) struct Request<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    /// The path below the service's prefix.
    pub(crate) below: &'a str,
    pub(crate) query: &'a str,
    pub(crate) headers: HeaderMap,
    pub(crate) address: IpAddr,
}

/// The ETags of all lines of `If-None-Match`, which mean the same as one line with commas.
pub(super) fn if_none_match(headers: &HeaderMap) -> Option<String> {
    let lines: Vec<&str> = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok()).collect();
    (!lines.is_empty()).then(|| lines.join(", "))
}

/// The response to a read, or the refusal of another method.
pub(super) fn read_only(method: &Method, base_url: &str, response: Response) -> Response {
    match *method {
        Method::GET | Method::HEAD => response,
        Method::OPTIONS => reply::options(READ_ONLY),
        _ => reply::problem(base_url, &not_allowed(method, READ_ONLY)),
    }
}

pub(super) fn not_allowed(method: &Method, allow: &str) -> Problem {
    Problem::new(ErrorCode::MethodNotAllowed, format!("this URL does not support {method}; it supports {allow}")).header("allow", allow)
}

/// The problem of an unknown path below a prefix, which is empty or that of a service. The known paths are below the same prefix.
pub(super) fn unknown<'a>(prefix: &str, path: &str, known: impl IntoIterator<Item = &'a str>) -> Problem {
    let nearest = nearest(path, known.into_iter().filter(|path| path.len() > 1));
    let hint = nearest.map_or_else(String::new, |path| format!(", did you mean \"{prefix}{path}\"?"));
    // A path is a text of the caller, so only its beginning is repeated.
    let shown: String = prefix.chars().chain(path.chars()).take(PATH_CHARS_SHOWN).collect();
    Problem::new(ErrorCode::NotFound, format!("there is nothing at \"{shown}\"{hint}"))
}
