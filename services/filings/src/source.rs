//! The source of the service's changes, and their feed.

use crate::record::{Filing, TABLES};

use feed::Source;
use feed::query::Feed;
use schemas::topics::{CHANGES_FILINGS, FILINGS, INSIDER_TRADES};

/// The source of the service's changes.
pub const SOURCE: Source = Source::of_records(&TABLES, &CHANGES_FILINGS, &[FILINGS, INSIDER_TRADES]);

/// The feed of its changes under a filter.
pub const FEED: Feed = Feed { source: SOURCE, tables: &TABLES, list: "filings" };

/// A change of this service.
pub(crate) type Change = feed::filter::Element<Filing>;
