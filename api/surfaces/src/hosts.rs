//! Under which names this machine answers, where a page of another site must not reach it (DNS rebinding): a site lets a name of its own lead here, and its
//! scripts then read the answers as those of their own origin.
//!
//! A name that no other site can own is safe: an address, a name without a dot (of a container, or of the machine), and those that end in a domain that is
//! never delegated.

use std::net::IpAddr;

use http::header::HOST;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue};

/// In `api.allowed_hosts`: any host.
pub(crate) const ANY: &str = "*";
/// Domains of which nobody owns a name in the public DNS.
const LOCAL_DOMAINS: [&str; 4] = [".internal", ".local", ".localhost", ".home.arpa"];

/// The authority in the header `Host`; `None` if it is missing or none.
pub(crate) fn host(headers: &HeaderMap) -> Option<Authority> {
    headers.get(HOST).map(HeaderValue::as_bytes).and_then(|host| Authority::try_from(host).ok())
}

/// Whether no other site can own the name.
pub(crate) fn is_local(authority: &Authority) -> bool {
    let name = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
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
    use super::*;

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
