//! The source of the service's changes, and their feed.

use crate::record::{Filing, TABLES};
use crate::rules::FilingsRules;

use feed::Source;
use feed::query::Feed;
use fold::records::Rules;

/// The source of the service's changes.
pub const SOURCE: Source = Source::of_records(FilingsRules::TABLES, FilingsRules::CHANGES, FilingsRules::INPUTS);

/// The feed of its changes under a filter.
pub const FEED: Feed = Feed { source: SOURCE, tables: &TABLES, list: "filings" };

/// A change of this service.
pub(crate) type Change = feed::filter::Element<Filing>;
