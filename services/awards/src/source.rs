//! The source of the service's changes, and their feed.

use feed::Source;
use feed::query::Feed;
use fold::records::Rules;
use schemas::views::awards::{Award, TABLES};

use crate::rules::AwardsRules;

/// The source of the service's changes.
pub const SOURCE: Source = Source::of_records(AwardsRules::TABLES, AwardsRules::CHANGES, AwardsRules::INPUTS);

/// The feed of its changes under a filter.
pub const FEED: Feed = Feed { source: SOURCE, tables: &TABLES, list: "changes" };

/// A change of this service.
pub(crate) type Change = feed::filter::Element<Award>;
