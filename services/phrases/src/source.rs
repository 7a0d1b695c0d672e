//! The source of the service's changes, and their feed.

use crate::record::TABLES;

use feed::Source;
use feed::query::Feed;
use schemas::topics::{CHANGES_PHRASES, MENTIONS};

/// The source of the service's changes. Labels are free, so everybody sees all changes.
pub const SOURCE: Source = Source { sample_days: None, ..Source::of_records(&TABLES, &CHANGES_PHRASES, &[MENTIONS]) };

/// The feed of its changes under a filter.
pub const FEED: Feed = Feed { source: SOURCE, tables: &TABLES, list: "changes" };
