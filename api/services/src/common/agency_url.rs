//! Marks links of records that lead elsewhere than to the agency that published them: an upstream's data may hold any link.
//!
//! The mark is computed when a record is shown, and is in no stored record: a new host in the list publishes no change.

use url::{Host, Url};

/// Sites of the agencies whose recalls are served.
pub const RECALL_SITES: [&str; 7] = ["cpsc.gov", "fda.gov", "nhtsa.dot.gov", "nhtsa.gov", "safercar.gov", "saferproducts.gov", "usda.gov"];
/// Sites of the funder whose grants are served.
pub const GRANT_SITES: [&str; 1] = ["nih.gov"];

/// What is said of a link that leads elsewhere.
const ELSEWHERE: &str = "not on the agency's own site";

/// What is to be said of a record's link; `None` for one to one of these sites or below, and for no link.
#[must_use]
pub fn url_note(url: &str, sites: &[&str]) -> Option<&'static str> {
    if url.is_empty() {
        return None;
    }
    let parsed = Url::parse(url).ok();
    let is_own = match parsed.as_ref().and_then(Url::host) {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            sites.iter().any(|site| name.strip_suffix(site).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
        }
        _ => false,
    };
    (!is_own).then_some(ELSEWHERE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which links are marked: those to a site or below it are not, look-alikes, addresses and what is no URL are.
    #[test]
    fn links_elsewhere_are_marked() {
        let own =
            ["", "https://www.cpsc.gov/Recalls/1", "https://cpsc.gov", "https://WWW.FSIS.USDA.GOV./x", "https://static.nhtsa.gov/a?b#c"];
        let elsewhere = [
            "https://evil.example/www.cpsc.gov",
            "https://notcpsc.gov/",
            "https://cpsc.gov.evil.example/",
            "https://www.cpsc.gov@evil.example/",
            "https://192.0.2.1/",
            "https://gov/",
            "cpsc.gov",
        ];
        for url in own {
            assert_eq!(url_note(url, &RECALL_SITES), None, "{url}");
        }
        for url in elsewhere {
            assert_eq!(url_note(url, &RECALL_SITES), Some(ELSEWHERE), "{url}");
        }
        assert_eq!(url_note("https://www.cpsc.gov/", &GRANT_SITES), Some(ELSEWHERE));
    }
}
