//! Queries of the list, and the address of the next page.

use url::Url;

use super::document::short_hash;
use crate::json::Field;

pub(super) const ORIGIN: &str = "https://www.federalregister.gov";

pub(super) const HOST: &str = "www.federalregister.gov";

pub(super) const PATH: &str = "/api/v1/documents.json";

/// The path of documents as the API writes it in the address of the next page.
const PATH_OF_NEXT: &str = "/api/v1/documents";

/// A search with more pages than this is not followed further.
pub(super) const PAGES_MAX: usize = 100;

/// A longer address of a next page is refused.
const ADDRESS_BYTES_MAX: usize = 4_000;

/// The query of the next page after some queries, given by the beginnings of their hashes, that showed so many documents; `None` after the last
/// page. The error says why the search is not followed to its end.
pub(super) fn next_query(
    visited: &[String],
    pages_max: usize,
    seen: usize,
    count: Option<usize>,
    address: &Field<'_>,
) -> Result<Option<String>, String> {
    let address = match address.text().trim() {
        "" => {
            return match count.filter(|count| *count > seen) {
                Some(count) => Err(format!("the upstream counts {count} documents but sent {seen}")),
                None => Ok(None),
            };
        }
        address => address,
    };
    match query_of(address) {
        None => Err("the address of the next page leads elsewhere".to_owned()),
        Some(query) if visited.contains(&short_hash(&query)) => Err("the next page is one that was read already".to_owned()),
        Some(_) if visited.len() >= pages_max => Err(format!("more than {pages_max} pages")),
        Some(query) => Ok(Some(query)),
    }
}

/// Returns the query of an address, if the address is one of the search: on https, its host and its path.
fn query_of(address: &str) -> Option<String> {
    let url = Url::parse(address).ok().filter(|_| address.len() <= ADDRESS_BYTES_MAX)?;
    let is_own = url.scheme() == "https"
        && url.host_str() == Some(HOST)
        && url.port().is_none()
        && url.username().is_empty()
        && url.password().is_none()
        && [PATH, PATH_OF_NEXT].contains(&url.path());
    url.query().filter(|query| is_own && !query.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that only addresses of the search itself are followed.
    #[test]
    fn addresses() {
        let query = "conditions%5Bterm%5D=x&format=json&page=2";
        for path in [PATH, PATH_OF_NEXT] {
            assert_eq!(query_of(&format!("https://www.federalregister.gov{path}?{query}")).as_deref(), Some(query));
        }
        for bad in [
            "http://www.federalregister.gov/api/v1/documents?page=2",
            "https://federalregister.gov.example/api/v1/documents?page=2",
            "https://www.federalregister.gov:8443/api/v1/documents?page=2",
            "https://a@www.federalregister.gov/api/v1/documents?page=2",
            "https://www.federalregister.gov/api/v1/agencies?page=2",
            "https://www.federalregister.gov/api/v1/documents",
            "/api/v1/documents?page=2",
        ] {
            assert_eq!(query_of(bad), None, "{bad}");
        }
    }
}
