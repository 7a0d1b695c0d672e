//! The source of the service's changes, their feed, and what all answers say.

use feed::Source;
use feed::query::Feed;
use fold::records::Rules;
use schemas::views::aviation::{AirworthinessDirective, TABLES};

use crate::rules::AviationRules;

/// The source of the service's changes. The match is free, so everybody sees all changes.
pub const SOURCE: Source =
    Source { sample_days: None, ..Source::of_records(AviationRules::TABLES, AviationRules::CHANGES, AviationRules::INPUTS) };

/// The feed of its changes under a filter.
pub const FEED: Feed = Feed { source: SOURCE, tables: &TABLES, list: "changes" };

/// What every answer about an aircraft says.
pub const DISCLAIMER: &str =
    "Results are informational, not a maintenance record; they do not decide serial-number or installed-appliance applicability.";

/// The rules by which answers are made, as they name them: those that read and compare texts, and the version of the data file of makes and models.
pub(super) fn rule() -> String {
    format!("directives/{}, aircraft_aliases/{}", directives::RULES_VERSION, directives::aliases_version())
}

/// A change of this service.
pub(crate) type Change = feed::filter::Element<AirworthinessDirective>;
