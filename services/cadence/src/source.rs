//! The source of the service's changes, and their feed.

use crate::record::{Item, TABLES};
use crate::rules::CadenceRules;

use feed::Source;
use feed::query::Feed;
use fold::records::Rules;

/// The source of the service's changes. The board is free, so everybody sees all changes.
pub const SOURCE: Source =
    Source { sample_days: None, ..Source::of_records(CadenceRules::TABLES, CadenceRules::CHANGES, CadenceRules::INPUTS) };

/// The feed of its changes under a filter.
pub const FEED: Feed = Feed { source: SOURCE, tables: &TABLES, list: "changes" };

/// A change of this service.
pub(crate) type Change = feed::filter::Element<Item>;
