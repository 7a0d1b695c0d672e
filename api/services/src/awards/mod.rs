//! Federal contract awards: a feed of new and modified ones, digests with what expires, watches of a competitor.

pub mod changes_since;
pub mod competitor;
pub mod digest;
pub mod filter;
pub mod followed;
pub mod records;
pub mod search;

use schemas::topics::{AWARDS, CHANGES_AWARDS};
use schemas::views::awards::{Award, TABLES};

use crate::feed::query::Feed;
use crate::feed::{Source, changes};
use crate::operation::Service;
use crate::services::common::followed::operations;
use crate::services::common::{checkpoints, health, keys};

/// Where the service's changes are.
pub const SOURCE: Source = Source {
    service: "awards",
    view: TABLES.view,
    feed: TABLES.feed,
    through: TABLES.through,
    topic: &CHANGES_AWARDS,
    facts: &[AWARDS],
    sample_days: Some(7),
};

/// The feed of its changes under a filter.
pub const FEED: Feed = Feed { source: SOURCE, tables: &TABLES, list: "changes" };

/// The service.
#[must_use]
pub fn service() -> Service {
    Service {
        name: "awards",
        title: "Federal contract awards",
        about: "New and modified federal contract awards (USAspending) since a cursor, digests with the contracts that expire, watches of a \
            competitor, and live search. Awards of the Department of Defense are published 90 days late by law. Without a key: the last 7 \
            days, 25 rows an answer.",
        operations: [
            vec![changes_since::operation(), digest::operation(), competitor::operation(), search::operation()],
            operations::<followed::Awards>(),
            vec![
                keys::operation(),
                changes::operation::<Award>(SOURCE, changes::example()),
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
pub(crate) type Change = crate::feed::filter::Element<Award>;
