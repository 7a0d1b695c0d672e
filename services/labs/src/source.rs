//! The source of the service's changes, their feed, and the price of leads.

use crate::record::{Lead, TABLES};

use feed::Source;
use feed::query::Feed;
use schemas::topics::{CHANGES_LABS, GRANTS};

/// The source of the service's changes. Below tier pro, leads are shown as the samples are.
pub const SOURCE: Source = Source::of_records(&TABLES, &CHANGES_LABS, &[GRANTS]).redacted::<Lead>();

/// The feed of its changes under a filter.
pub const FEED: Feed = Feed { source: SOURCE, tables: &TABLES, list: "changes" };

/// The price of a call of the lead feed in millionths of a US dollar.
pub(super) const LEADS_MICROS: u64 = 20_000;
