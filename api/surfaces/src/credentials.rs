//! The API key of a call, from any of its places. Promise: two different keys in one call are refused.

use std::borrow::Cow;

use access::Credentials;
use arguments::ACCESS_PARAMETERS;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use operation::problem::Problem;
use schemas::error_code::ErrorCode;

/// Takes the key from headers and from the pairs of a query, and removes it from the pairs.
///
/// # Errors
/// `parameter-invalid` for an empty key or one given twice as a parameter, `request-invalid` for two different keys, `key-invalid` for an
/// `Authorization` that is not `Bearer`.
pub(crate) fn take<'a>(headers: &HeaderMap, pairs: &mut Vec<(Cow<'a, str>, Cow<'a, str>)>) -> Result<Credentials, Problem> {
    let mut found: Option<String> = None;
    let mut add = |place: &str, key: &str| {
        if key.is_empty() {
            return Err(Problem::parameter(place, format!("{place} is empty; leave it out to call without a key")));
        }
        match &found {
            Some(other) if other != key => Err(Problem::new(ErrorCode::RequestInvalid, "two different keys are given").about(place)),
            Some(_) => Ok(()),
            None => {
                found = Some(key.to_owned());
                Ok(())
            }
        }
    };
    for value in headers.get_all("x-api-key") {
        add("X-API-Key", value.to_str().map_err(|_| unreadable())?.trim())?;
    }
    for value in headers.get_all(AUTHORIZATION) {
        let value = value.to_str().map_err(|_| unreadable())?.trim();
        let (scheme, key) = value.split_once(' ').unwrap_or((value, ""));
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(
                Problem::new(ErrorCode::KeyInvalid, "the authorization does not have the form \"Bearer KEY\"").about("Authorization")
            );
        }
        add("Authorization", key.trim())?;
    }
    for name in ACCESS_PARAMETERS {
        let mut given = pairs.iter().filter(|(given, _)| given == name);
        let Some((_, key)) = given.next() else { continue };
        if given.next().is_some() {
            return Err(Problem::parameter(name, format!("{name} is given twice")));
        }
        add(name, key)?;
        pairs.retain(|(given, _)| given != name);
    }
    Ok(Credentials { key: found })
}

/// The problem of a key that is not ASCII.
fn unreadable() -> Problem {
    Problem::new(ErrorCode::KeyInvalid, "the key is not plain text")
}
