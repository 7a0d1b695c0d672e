//! Whether a form was sent by a page of this server, and not by a page of another site in the same browser.
//!
//! Browsers say it in `Sec-Fetch-Site` and `Origin`, which scripts cannot set. A request that says neither is no form of a browser, or of one that is too
//! old to be safe, and is refused.

use http::HeaderMap;
use http::header::ORIGIN;

use crate::hosts;

/// The header in which browsers say how the page that sent a request relates to this server.
const SITE: &str = "sec-fetch-site";

/// Whether the request was sent by a page of this server. `site_url` is the public URL of the listener; `is_secure` says whether it is reached by https.
pub(crate) fn is_same_origin(headers: &HeaderMap, site_url: &str, is_secure: bool) -> bool {
    let site: Vec<&[u8]> = headers.get_all(SITE).iter().map(http::HeaderValue::as_bytes).collect();
    let origins: Vec<&[u8]> = headers.get_all(ORIGIN).iter().map(http::HeaderValue::as_bytes).collect();
    let says_something = !site.is_empty() || !origins.is_empty();
    says_something
        && site.iter().all(|site| *site == b"same-origin")
        && origins.iter().all(|origin| std::str::from_utf8(origin).is_ok_and(|origin| is_own(origin, headers, site_url, is_secure)))
}

fn is_own(origin: &str, headers: &HeaderMap, site_url: &str, is_secure: bool) -> bool {
    let origin = hosts::origin(origin);
    if !site_url.is_empty() && origin.eq_ignore_ascii_case(origin_of(site_url)) {
        return true;
    }
    let Some((scheme, authority)) = origin.split_once("://") else { return false };
    let is_right_scheme = scheme == "https" || (scheme == "http" && !is_secure);
    is_right_scheme && hosts::host(headers).is_some_and(|host| host.as_str().eq_ignore_ascii_case(authority))
}

/// The origin of a URL.
fn origin_of(url: &str) -> &str {
    let after = url.find("://").map_or(0, |at| at + 3);
    url[after..].find('/').map_or(url, |end| &url[..after + end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    /// Proves that only what a browser says of its own pages is accepted: another origin, another port, a sandboxed page, a site next to this one, a request
    /// of unknown origin and headers that disagree are refused.
    #[test]
    fn origins() {
        let own = "https://own.example/base";
        for (given, is_accepted) in [
            (&[("sec-fetch-site", "same-origin")][..], true),
            (&[("sec-fetch-site", "same-origin"), ("origin", "https://own.example")], true),
            (&[("origin", "https://own.example")], true),
            (&[("origin", "https://OWN.example")], true),
            (&[("origin", "https://inside.example:8080"), ("host", "inside.example:8080")], true),
            (&[("origin", "https://own.example.")], true),
            (&[("origin", "https://inside.example.:8080"), ("host", "inside.example.:8080")], true),
            (&[("origin", "https://evil.example."), ("host", "own.example.")], false),
            (&[("origin", "http://inside.example:8080"), ("host", "inside.example:8080")], false),
            (&[], false),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("sec-fetch-site", "none")], false),
            (&[("origin", "null")], false),
            (&[("origin", "https://evil.example"), ("host", "own.example")], false),
            (&[("origin", "https://own.example:444"), ("host", "own.example")], false),
            (&[("origin", "https://own.example.evil.example")], false),
            (&[("origin", "http://own.example"), ("host", "own.example")], false),
            (&[("sec-fetch-site", "cross-site"), ("origin", "https://own.example")], false),
            (&[("sec-fetch-site", "same-origin"), ("origin", "https://evil.example")], false),
            (&[("origin", "https://own.example"), ("origin", "https://evil.example")], false),
            (&[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")], false),
        ] {
            assert_eq!(is_same_origin(&headers(given), own, true), is_accepted, "{given:?}");
        }
        let plain = headers(&[("origin", "http://127.0.0.1:8080"), ("host", "127.0.0.1:8080")]);
        assert!(is_same_origin(&plain, "", false) && !is_same_origin(&plain, "", true));
    }

    /// Proves what the origin of a URL is.
    #[test]
    fn origins_of_urls() {
        for (url, origin) in [("https://a.example/b/c", "https://a.example"), ("http://a:81", "http://a:81"), ("", "")] {
            assert_eq!(origin_of(url), origin);
        }
    }
}
