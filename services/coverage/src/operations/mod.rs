//! The operations of the service, one file each, and what they share.

pub(crate) mod addresses;
pub(crate) mod counts;
pub mod feed_page;
pub mod filter;
mod hidden_leads;
pub mod pulse;
pub mod sample;
pub mod sources;
pub mod watchable_feed;

/// What every answer with leads says about them.
pub(crate) const DISCLAIMER: &str = "Leads from public records. No legal or insurance advice.";

/// The sources of leads.
pub(crate) const SOURCES: [&str; 6] = ["fmcsa", "sos-co", "sos-ct", "sos-ia", "sos-ny", "sos-or"];
