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
    let known: Vec<&str> = known.into_iter().filter(|path| path.len() > 1).collect();
    let hint = match (with_escaped_slashes(path, &known), nearest(path, known.iter().copied())) {
        (Some(path), _) => format!(", did you mean \"{prefix}{path}\"? A slash within an id is written %2F"),
        (None, Some(path)) => format!(", did you mean \"{prefix}{path}\"?"),
        (None, None) => String::new(),
    };
    // A path is a text of the caller, so only its beginning is repeated.
    let shown: String = prefix.chars().chain(path.chars()).take(PATH_CHARS_SHOWN).collect();
    Problem::new(ErrorCode::NotFound, format!("there is nothing at \"{shown}\"{hint}"))
}

/// The path that is meant if slashes of a path are those of an id: that of the known path with one parameter which it begins and ends as. `None` if there is
/// none, if the path ends with a misspelled part of a known one, or if it is too long to be repeated.
fn with_escaped_slashes(path: &str, known: &[&str]) -> Option<String> {
    let around_ids: Vec<(&str, &str)> = known
        .iter()
        .filter_map(|known| {
            let (before, rest) = known.split_once('{')?;
            let (_, after) = rest.split_once('}')?;
            (!after.contains('{')).then_some((before, after))
        })
        .collect();
    let ids = around_ids.iter().filter_map(|(before, after)| {
        let id = path.strip_prefix(before)?.strip_suffix(after)?.trim_matches('/');
        id.contains('/').then_some((*before, id, *after))
    });
    let (before, id, after) = ids.max_by_key(|(_, _, after)| after.len())?;
    let (_, last) = path.rsplit_once('/')?;
    if after.is_empty() && nearest(last, around_ids.iter().filter_map(|(_, after)| after.strip_prefix('/'))).is_some() {
        return None;
    }
    Some(format!("{before}{}{after}", id.replace('/', "%2F"))).filter(|path| path.len() <= PATH_CHARS_SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which paths are those of an id with slashes, and that a misspelled part after an id, and an id without slashes, are none.
    #[test]
    fn ids_with_slashes() {
        let known = ["/v1/records/{id}", "/v1/records/{id}/history", "/v1/chains/{agent}/writers/{writer}", "/health"];
        for (path, meant) in [
            ("/v1/records/shop.example/7946", Some("/v1/records/shop.example%2F7946")),
            ("/v1/records/filing/0001/2", Some("/v1/records/filing%2F0001%2F2")),
            ("/v1/records/filing/0001/history", Some("/v1/records/filing%2F0001/history")),
            ("/v1/records/7/histroy", None),
            ("/v1/records/7", None),
            ("/v1/records/7/", None),
            ("/v1/chains/a/b/writers/c", None),
            ("/health/7", None),
        ] {
            assert_eq!(with_escaped_slashes(path, &known).as_deref(), meant, "{path}");
        }
        assert_eq!(with_escaped_slashes(&format!("/v1/records/a/{}", "b".repeat(PATH_CHARS_SHOWN)), &known), None);
    }
}
