//! The source of the service's changes, and their feed.

use crate::record::TABLES;
use crate::rules::PhrasesRules;

use feed::Source;
use feed::query::Feed;
use fold::records::Rules;

/// The source of the service's changes. Labels are free, so everybody sees all changes.
pub const SOURCE: Source =
    Source { sample_days: None, ..Source::of_records(PhrasesRules::TABLES, PhrasesRules::CHANGES, PhrasesRules::INPUTS) };

/// The feed of its changes under a filter.
pub const FEED: Feed = Feed { source: SOURCE, tables: &TABLES, list: "changes" };
