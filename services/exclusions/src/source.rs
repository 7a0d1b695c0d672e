//! The source of the service's changes, their feed, prices and paths, and what all answers say.

use feed::Source;
use feed::query::Feed;
use fold::records::Rules;
use schemas::topics::{CHANGES_AWARDS, EXCLUSIONS};

use crate::record::TABLES;
use crate::rules::ExclusionsRules;

/// The source of the service's changes. Its completeness is that of the list of exclusions and of the awards; obligations by fiscal year are read monthly,
/// and would make everything else look as old.
pub const SOURCE: Source = Source {
    facts: &[EXCLUSIONS, CHANGES_AWARDS],
    sample_days: None,
    ..Source::of_records(ExclusionsRules::TABLES, ExclusionsRules::CHANGES, ExclusionsRules::INPUTS)
};

/// The feed of its changes under a filter.
pub const FEED: Feed = Feed { source: SOURCE, tables: &TABLES, list: "changes" };

/// The route of permalinks, and its path with the key.
pub(super) const ARTIFACT_ROUTE: &str = "/v1/artifact";

pub(super) const ARTIFACT_PATH: &str = "/v1/artifact/{uei}";

/// The price of an artifact in millionths of a US dollar.
pub(super) const ENTITY_WATCH_MICROS: u64 = 100_000;

/// The price of a page of the scan.
pub(super) const SCAN_MICROS: u64 = 20_000;

/// What every answer says.
pub const DISCLAIMER: &str = "Dated public-record evidence, not a compliance determination. Check SAM.gov before acting.";

/// The page of an award.
pub(super) fn award_url(id: &str) -> String {
    format!("https://www.usaspending.gov/award/{id}")
}

/// Where SAM.gov shows the exclusions of a UEI or name. It has no stable page per exclusion.
#[must_use]
pub fn source_url(query: &str) -> String {
    let encoded: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
    format!("https://sam.gov/search/?index=ex&q={encoded}")
}
