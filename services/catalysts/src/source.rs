//! The source of the service's changes, and their feed.

use crate::record::{Catalyst, TABLES};
use crate::rules::CatalystsRules;

use feed::Source;
use feed::query::Feed;
use fold::records::Rules;

/// The source of the service's changes.
pub const SOURCE: Source =
    Source::of_records(CatalystsRules::TABLES, CatalystsRules::CHANGES, CatalystsRules::INPUTS).redacted::<Catalyst>();

/// The feed of its changes under a filter.
pub const FEED: Feed = Feed { source: SOURCE, tables: &TABLES, list: "changes" };
