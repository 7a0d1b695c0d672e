//! The source of the service's changes, and their feed.

use crate::record::TABLES;
use crate::rules::ResearchRules;

use feed::Source;
use feed::query::Feed;
use fold::records::Rules;

/// The source of the service's changes.
pub const SOURCE: Source = Source::of_records(ResearchRules::TABLES, ResearchRules::CHANGES, ResearchRules::INPUTS);

/// The feed of its changes under a filter.
pub const FEED: Feed = Feed { source: SOURCE, tables: &TABLES, list: "changes" };
