//! The caller's address behind proxies.
//!
//! Promise: only the configured forwarding header is used, and only as far as trusted proxies report it; a proxy forwards any other header unchanged
//! from the caller. Each proxy appends the address it saw, so the entries are read from the right. The first address that is not a trusted proxy is
//! the caller, whatever is left of it.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use http::HeaderMap;
use operation::context::ForwardedHeader;

/// The caller's address, stored in the extensions of each request by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerAddress(pub IpAddr);

/// Determines the caller's address: the peer's, or, if the peer is a trusted proxy, the right-most entry of the header that is not one.
#[must_use]
pub fn caller(peer: IpAddr, headers: &HeaderMap, trusted: &[(IpAddr, u8)], header: ForwardedHeader) -> IpAddr {
    let mut caller = peer.to_canonical();
    if trusted.is_empty() || !is_trusted(caller, trusted) {
        return caller;
    }
    for entry in entries(headers, header).into_iter().rev() {
        // A malformed or obfuscated entry ends the chain: the proxy that wrote it is the last known address.
        let Some(address) = entry else { return caller };
        caller = address;
        if !is_trusted(caller, trusted) {
            return caller;
        }
    }
    caller
}

/// The entries of a header, left to right; `None` for an entry that is not an address.
fn entries(headers: &HeaderMap, header: ForwardedHeader) -> Vec<Option<IpAddr>> {
    let read: fn(&str) -> Option<IpAddr> = match header {
        ForwardedHeader::XForwardedFor => address,
        ForwardedHeader::Forwarded => element,
    };
    let all = |text: &str| text.split(',').map(read).collect::<Vec<_>>();
    headers.get_all(header.as_str()).iter().flat_map(|value| value.to_str().map_or_else(|_| vec![None], all)).collect()
}

/// Parses one element of `Forwarded`: its `for`.
fn element(text: &str) -> Option<IpAddr> {
    text.split(';').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then(|| address(value))?
    })
}

/// Parses one entry: an address, with or without port, brackets and quotes.
fn address(entry: &str) -> Option<IpAddr> {
    let entry = entry.trim().trim_matches('"');
    let bare = entry.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(entry);
    let parsed = bare.parse::<IpAddr>().or_else(|_| entry.parse::<SocketAddr>().map(|socket| socket.ip()));
    parsed.ok().map(|address| address.to_canonical())
}

/// The network that counts as one caller: a single IPv4 address, or an IPv6 /64, because a caller usually has a whole /64.
#[must_use]
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => IpAddr::V4(v4),
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
    }
}

/// The IPv6 /48 of an address, the size that a provider's customer usually has; `None` for IPv4.
pub(crate) fn site_of(address: IpAddr) -> Option<IpAddr> {
    match address.to_canonical() {
        IpAddr::V4(_) => None,
        IpAddr::V6(v6) => Some(IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !(u128::MAX >> 48)))),
    }
}

/// Whether an address is in one of the networks.
pub(crate) fn is_trusted(address: IpAddr, trusted: &[(IpAddr, u8)]) -> bool {
    trusted.iter().any(|(network, bits)| match (address, network.to_canonical()) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let shift = 32_u32.saturating_sub(u32::from(*bits));
            address.to_bits().checked_shr(shift).unwrap_or(0) == network.to_bits().checked_shr(shift).unwrap_or(0)
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let shift = 128_u32.saturating_sub(u32::from(*bits));
            address.to_bits().checked_shr(shift).unwrap_or(0) == network.to_bits().checked_shr(shift).unwrap_or(0)
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(peer: &str, name: &'static str, values: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, value.parse().unwrap());
        }
        let trusted = [("10.0.0.0".parse().unwrap(), 8), ("2001:db8::1".parse().unwrap(), 128)];
        caller(peer.parse().unwrap(), &headers, &trusted, ForwardedHeader::from_name(name).unwrap()).to_string()
    }

    /// Proves that a header of a peer that is not a trusted proxy is ignored.
    #[test]
    fn untrusted_peer() {
        assert_eq!(seen("203.0.113.9", "x-forwarded-for", &["198.51.100.1"]), "203.0.113.9");
        assert_eq!(seen("203.0.113.9", "forwarded", &["for=198.51.100.1"]), "203.0.113.9");
    }

    /// Proves that only the configured forwarding header is used, whatever other headers contain and whether it is present.
    #[test]
    fn one_header_counts() {
        let trusted = [("10.0.0.0".parse().unwrap(), 8)];
        let peer = "10.1.2.3".parse().unwrap();
        let mut headers = HeaderMap::new();
        headers.append("x-forwarded-for", "198.51.100.1".parse().unwrap());
        headers.append("x-real-ip", "198.51.100.3".parse().unwrap());
        let seen = |headers: &HeaderMap, header| caller(peer, headers, &trusted, header).to_string();
        assert_eq!(seen(&headers, ForwardedHeader::Forwarded), "10.1.2.3");
        headers.append("forwarded", "for=198.51.100.2".parse().unwrap());
        assert_eq!(seen(&headers, ForwardedHeader::XForwardedFor), "198.51.100.1");
        assert_eq!(seen(&headers, ForwardedHeader::Forwarded), "198.51.100.2");
        headers.remove("x-forwarded-for");
        assert_eq!(seen(&headers, ForwardedHeader::XForwardedFor), "10.1.2.3");
        assert_eq!(caller(peer, &headers, &[], ForwardedHeader::Forwarded), peer, "no proxy is trusted");
        assert_eq!(ForwardedHeader::from_name("x-real-ip"), None);
    }

    /// Proves that entries written by the caller, left of those that proxies appended, are ignored.
    #[test]
    fn spoofed_entries() {
        assert_eq!(seen("10.1.2.3", "x-forwarded-for", &["1.1.1.1, 10.0.0.7, 198.51.100.1, 10.9.9.9"]), "198.51.100.1");
        assert_eq!(seen("10.1.2.3", "x-forwarded-for", &["1.1.1.1", "198.51.100.1"]), "198.51.100.1", "headers given twice are one list");
        assert_eq!(seen("10.1.2.3", "x-forwarded-for", &["10.0.0.8"]), "10.0.0.8", "all of them proxies: the left-most");
    }

    /// Proves that ports, brackets, quotes and IPv4 inside IPv6 are read.
    #[test]
    fn forms() {
        assert_eq!(seen("10.1.2.3", "x-forwarded-for", &["198.51.100.1:4711"]), "198.51.100.1");
        assert_eq!(seen("10.1.2.3", "x-forwarded-for", &["[2001:db8::7]:4711"]), "2001:db8::7");
        assert_eq!(seen("10.1.2.3", "forwarded", &["for=1.1.1.1, For=\"[2001:db8::7]\";proto=https"]), "2001:db8::7");
        assert_eq!(seen("::ffff:10.1.2.3", "x-forwarded-for", &["::ffff:198.51.100.1"]), "198.51.100.1");
        assert_eq!(seen("2001:db8::1", "x-forwarded-for", &["198.51.100.1"]), "198.51.100.1");
    }

    /// Proves that a malformed entry ends the chain at the proxy that forwarded it.
    #[test]
    fn junk() {
        for junk in ["", "unknown", "198.51.100.1, _hidden", "198.51.100.1, 300.1.1.1", "198.51.100.1,", "::::"] {
            assert_eq!(seen("10.1.2.3", "x-forwarded-for", &[junk]), "10.1.2.3", "{junk:?}");
        }
        assert_eq!(seen("10.1.2.3", "x-forwarded-for", &["198.51.100.1, junk, 10.0.0.5"]), "10.0.0.5");
        assert_eq!(seen("10.1.2.3", "forwarded", &["for=198.51.100.1, by=10.0.0.1"]), "10.1.2.3");
    }
}
