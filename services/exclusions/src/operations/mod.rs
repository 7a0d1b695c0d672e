//! The operations of the service, one file each, and what they share.

pub(crate) mod addresses;
pub mod artifact;
pub mod calibration;
pub mod check;
pub mod contradiction;
pub mod entity_watch;
pub mod filter;
pub mod findings;
pub mod permalink;
pub(crate) mod recipients;
pub mod recompete;
pub mod sample;
pub mod scan;
mod scan_rows;
pub(crate) mod unrecorded_contracts;
pub mod watchable_feed;

/// What every answer says.
pub(crate) const DISCLAIMER: &str = "Dated public-record evidence, not a compliance determination. Check SAM.gov before acting.";

/// The route of permalinks.
pub(crate) const ARTIFACT_ROUTE: &str = "/v1/artifact";

/// The path of a permalink, with the key.
pub(crate) const ARTIFACT_PATH: &str = "/v1/artifact/{uei}";

/// The page of an award.
pub(crate) fn award_url(id: &str) -> String {
    format!("https://www.usaspending.gov/award/{id}")
}

/// Where SAM.gov shows the exclusions of a UEI or name. It has no stable page per exclusion.
pub(crate) fn source_url(query: &str) -> String {
    let encoded: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
    format!("https://sam.gov/search/?index=ex&q={encoded}")
}
