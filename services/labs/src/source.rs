//! The source of the service's changes, their feed, and the price of leads.

use crate::record::{Lead, TABLES};
use crate::rules::LabsRules;

use feed::Source;
use feed::query::Feed;
use fold::records::Rules;

/// The source of the service's changes. Below tier pro, leads are shown as the samples are.
pub const SOURCE: Source = Source::of_records(LabsRules::TABLES, LabsRules::CHANGES, LabsRules::INPUTS).redacted::<Lead>();

/// The feed of its changes under a filter.
pub const FEED: Feed = Feed { source: SOURCE, tables: &TABLES, list: "changes" };

/// The price of a call of the lead feed in millionths of a US dollar.
pub(super) const LEADS_MICROS: u64 = 20_000;
