//! The source of the service's changes, and their feed.

use feed::Source;
use feed::query::Feed;
use fold::records::Rules;

use crate::record::{TABLES, Trademark};
use crate::rules::NamesRules;

/// The source of the service's changes. The check is free, so everybody sees all changes.
pub const SOURCE: Source = Source { sample_days: None, ..Source::of_records(NamesRules::TABLES, NamesRules::CHANGES, NamesRules::INPUTS) };

/// The feed of its changes under a filter.
pub const FEED: Feed = Feed { source: SOURCE, tables: &TABLES, list: "changes" };

/// A change of this service.
pub(crate) type Change = feed::filter::Element<Trademark>;
