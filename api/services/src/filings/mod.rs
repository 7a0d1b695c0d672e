//! Securities filings: a feed of fresh ones, digests of material events, insider trades with clusters, watches of a company.

pub mod clusters;
pub mod company;
pub mod digest;
pub mod filter;
pub mod followed;
pub mod insiders;
pub mod new_since;
pub mod records;
pub mod search;

use schemas::topics::{CHANGES_FILINGS, FILINGS, INSIDER_TRADES};
use schemas::views::filings::{Filing, TABLES};

use crate::common::followed::operations;
use crate::common::{checkpoints, health, keys};
use crate::registration::{Bundle, Registration};
use feed::query::Feed;
use feed::{Source, changes};

/// Where the service's changes are.
pub const SOURCE: Source = Source {
    service: "filings",
    view: TABLES.view,
    feed: TABLES.feed,
    through: TABLES.through,
    topic: &CHANGES_FILINGS,
    facts: &[FILINGS, INSIDER_TRADES],
    sample_days: Some(7),
};

/// The feed of its changes under a filter.
pub const FEED: Feed = Feed { source: SOURCE, tables: &TABLES, list: "filings" };

/// The service.
#[must_use]
pub fn service() -> Registration {
    Registration::new(
        "filings",
        "Securities filings",
        "Filings with the Securities and Exchange Commission (EDGAR): fresh ones since a cursor, digests of material events, insider \
            trades with clusters of several insiders at one issuer, and watches of a company. A tool for monitoring and research, not \
            investment advice. EDGAR is asked within its fair-access limits, under a declared User-Agent. Without a key: the last 7 days, 25 \
            rows an answer.",
    )
    .with(vec![new_since::operation(), digest::operation(), company::operation(), insiders::operation(), search::operation()])
    .with(operations::<followed::Filings>())
    .with(vec![keys::operation(), changes::operation::<Filing>(SOURCE, changes::example())])
    .with(Bundle::checkpoints(vec![checkpoints::operation(SOURCE)], SOURCE))
    .with(vec![health::operation(SOURCE)])
    .with_files(|ctx, path| Box::pin(checkpoints::file(ctx, SOURCE, path)))
}

/// A change of this service.
pub(crate) type Change = feed::filter::Element<Filing>;
