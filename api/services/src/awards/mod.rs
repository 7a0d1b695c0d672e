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

use crate::common::followed::operations;
use crate::common::{checkpoints, health, keys};
use crate::registration::{Bundle, Registration};
use feed::query::Feed;
use feed::{Source, changes};

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
pub fn service() -> Registration {
    Registration::new(
        "awards",
        "Federal contract awards",
        "New and modified federal contract awards (USAspending) since a cursor, digests with the contracts that expire, watches of a \
            competitor, and live search. Awards of the Department of Defense are published 90 days late by law. Without a key: the last 7 \
            days, 25 rows an answer.",
    )
    .with(vec![changes_since::operation(), digest::operation(), competitor::operation(), search::operation()])
    .with(operations::<followed::Awards>())
    .with(vec![keys::operation(), changes::operation::<Award>(SOURCE, changes::example())])
    .with(Bundle::checkpoints(vec![checkpoints::operation(SOURCE)], SOURCE))
    .with(vec![health::operation(SOURCE)])
    .with_files(|ctx, path| Box::pin(checkpoints::file(ctx, SOURCE, path)))
}

/// A change of this service.
pub(crate) type Change = feed::filter::Element<Award>;
