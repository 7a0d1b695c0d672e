//! The source of the service's changes, their feed and its price, and what all operations say.

use crate::record::{Lead, TABLES};
use crate::rules::CoverageRules;

use feed::Source;
use feed::query::Feed;
use fold::records::Rules;

/// The source of the service's changes. Below tier pro, leads are shown in their redacted form.
pub const SOURCE: Source = Source::of_records(CoverageRules::TABLES, CoverageRules::CHANGES, CoverageRules::INPUTS).redacted::<Lead>();

/// The feed of its changes under a filter.
pub const FEED: Feed = Feed { source: SOURCE, tables: &TABLES, list: "changes" };

/// The price of a call of the lead feed in millionths of a US dollar.
pub(super) const FEED_MICROS: u64 = 20_000;

/// What every answer with leads says about them.
pub(super) const DISCLAIMER: &str = "Leads from public records. No legal or insurance advice.";

/// The sources of leads.
pub(super) const SOURCES: [&str; 6] = ["fmcsa", "sos-co", "sos-ct", "sos-ia", "sos-ny", "sos-or"];
