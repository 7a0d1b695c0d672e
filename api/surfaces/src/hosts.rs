//! Under which names this machine answers, where a page of another site must not reach it (DNS rebinding): a site lets a name of its own lead here, and its
//! scripts then read the answers as those of their own origin.
//!
//! A name that no other site can own is safe: an address, a name without a dot (of a container, or of the machine), and those that end in a domain that is
//! never delegated.

use std::borrow::Cow;
use std::net::IpAddr;

use http::HeaderMap;
use http::header::HOST;
use http::uri::Authority;

/// In `api.allowed_hosts`: any host.
pub(crate) const ANY: &str = "*";
/// Domains of which nobody owns a name in the public DNS.
const LOCAL_DOMAINS: [&str; 5] = [".internal", ".local", ".localhost", ".home.arpa", ".test"];

/// The authority in the header `Host`, without the dot that may end a complete name (`localhost.:8080`); `None` if it is missing or none.
pub(crate) fn host(headers: &HeaderMap) -> Option<Authority> {
    without_final_dot(headers.get(HOST)?.to_str().ok()?).parse().ok()
}

/// The value of a header `Origin`, without the dot that may end a complete name (`http://localhost.:8080`).
pub(crate) fn origin(given: &str) -> Cow<'_, str> {
    let Some((scheme, authority)) = given.split_once("://") else { return Cow::Borrowed(given) };
    match without_final_dot(authority) {
        Cow::Borrowed(same) if same.len() == authority.len() => Cow::Borrowed(given),
        authority => Cow::Owned(format!("{scheme}://{authority}")),
    }
}

/// A name with or without a port, without the dot that may end a complete name.
fn without_final_dot(authority: &str) -> Cow<'_, str> {
    let (name, port) = authority.rsplit_once(':').filter(|(name, _)| name.ends_with('.')).unwrap_or((authority, ""));
    match name.strip_suffix('.') {
        Some(name) if port.is_empty() => Cow::Borrowed(name),
        Some(name) => Cow::Owned(format!("{name}:{port}")),
        None => Cow::Borrowed(authority),
    }
}

/// Whether no other site can own the name.
pub(crate) fn is_local(authority: &Authority) -> bool {
    let name = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    // An address of a link names the link after a percent sign.
    let name = name.split('%').next().unwrap_or_default();
    let is_inside = LOCAL_DOMAINS.iter().any(|domain| name.ends_with(domain));
    name.parse::<IpAddr>().is_ok() || is_inside || (!name.is_empty() && !name.contains(['.', ':']))
}

/// Whether a host is among the configured ones, with its port or without.
pub(crate) fn is_configured(authority: &Authority, configured: &[String]) -> bool {
    let is_it = |name: &String| name == ANY || name.eq_ignore_ascii_case(authority.as_str()) || name.eq_ignore_ascii_case(authority.host());
    configured.iter().any(is_it)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// Proves that the dot at the end of a complete name is left out, with a port and without, and that other hosts stay as they are.
    #[test]
    fn complete_names() {
        for (given, expected) in [
            ("localhost.:8080", Some("localhost:8080")),
            ("localhost.", Some("localhost")),
            ("own.example.", Some("own.example")),
            ("own.example.:443", Some("own.example:443")),
            ("own.example:443", Some("own.example:443")),
            ("[::1]:80", Some("[::1]:80")),
            ("127.0.0.1", Some("127.0.0.1")),
            ("a b", None),
            ("", None),
        ] {
            let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(given))]);
            assert_eq!(host(&headers).as_ref().map(Authority::as_str), expected, "{given}");
        }
        assert_eq!(host(&HeaderMap::new()), None);
        for (given, expected) in [
            ("http://localhost.:8080", "http://localhost:8080"),
            ("https://own.example.", "https://own.example"),
            ("https://own.example:443", "https://own.example:443"),
            ("http://[::1]:80", "http://[::1]:80"),
            ("null", "null"),
            ("", ""),
        ] {
            assert_eq!(origin(given), expected, "{given}");
        }
    }

    /// Proves which names no other site can own, and which are configured.
    #[test]
    fn names() {
        for (host, local, configured) in [
            ("localhost:8080", true, false),
            ("127.0.0.1", true, false),
            ("192.168.1.20:8080", true, false),
            ("[::1]:80", true, false),
            ("[fd00::1]", true, false),
            ("highwater:8080", true, false),
            ("host.docker.internal:8080", true, false),
            ("Machine.LOCAL", true, false),
            ("highwater.default.svc.cluster.local:8080", true, false),
            ("records.test", true, false),
            ("my_service:8080", true, false),
            ("own.example:8080", false, true),
            ("OWN.example", false, true),
            ("port.example:81", false, true),
            ("port.example", false, false),
            ("evil.example", false, false),
            ("localhost.evil.example", false, false),
            ("127.0.0.1.evil.example", false, false),
            ("evil.internal.example", false, false),
        ] {
            let authority = host.parse::<Authority>().unwrap();
            let configuration = ["own.example".to_owned(), "port.example:81".to_owned()];
            assert_eq!((is_local(&authority), is_configured(&authority, &configuration)), (local, configured), "{host}");
            assert!(is_configured(&authority, &[ANY.to_owned()]), "{host}");
        }
    }
}
