//! The source of the service's changes, and their feed.

use crate::record::TABLES;

use feed::Source;
use feed::query::Feed;
use schemas::topics::{CHANGES_RESEARCH, GRANTS, TRIALS};

/// The source of the service's changes.
pub const SOURCE: Source = Source::of_records(&TABLES, &CHANGES_RESEARCH, &[GRANTS, TRIALS]);

/// The feed of its changes under a filter.
pub const FEED: Feed = Feed { source: SOURCE, tables: &TABLES, list: "changes" };
