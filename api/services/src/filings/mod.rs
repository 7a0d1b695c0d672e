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

use crate::feed::query::Feed;
use crate::feed::{Source, changes};
use crate::operation::Service;
use crate::services::common::followed::operations;
use crate::services::common::{checkpoints, health, keys};

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
pub fn service() -> Service {
    Service {
        name: "filings",
        title: "Securities filings",
        about: "Filings with the Securities and Exchange Commission (EDGAR): fresh ones since a cursor, digests of material events, insider \
            trades with clusters of several insiders at one issuer, and watches of a company. A tool for monitoring and research, not \
            investment advice. EDGAR is asked within its fair-access limits, under a declared User-Agent. Without a key: the last 7 days, 25 \
            rows an answer.",
        operations: [
            vec![new_since::operation(), digest::operation(), company::operation(), insiders::operation(), search::operation()],
            operations::<followed::Filings>(),
            vec![
                keys::operation(),
                changes::operation::<Filing>(SOURCE, changes::example()),
                checkpoints::operation(SOURCE),
                health::operation(SOURCE),
            ],
        ]
        .into_iter()
        .flatten()
        .collect(),
        checkpoints: Some(SOURCE),
        files: Some(|ctx, path| Box::pin(checkpoints::file(ctx, SOURCE, path))),
    }
}

/// A change of this service.
pub(crate) type Change = crate::feed::filter::Element<Filing>;
