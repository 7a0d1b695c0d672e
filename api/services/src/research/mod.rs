//! Research funding: grants and clinical trials, as feeds, digests and watches.

pub mod changes_since;
pub mod digest;
pub mod entity;
pub mod filter;
pub mod followed;
pub mod new_funding;
pub mod records;
pub mod search;

use schemas::topics::{CHANGES_RESEARCH, GRANTS, TRIALS};
use schemas::views::research::{Funding, TABLES};

use crate::feed::query::Feed;
use crate::feed::{Source, changes};
use crate::operation::Service;
use crate::services::common::followed::operations;
use crate::services::common::{checkpoints, health, keys};

/// Where the service's changes are.
pub const SOURCE: Source = Source {
    service: "research",
    view: TABLES.view,
    feed: TABLES.feed,
    through: TABLES.through,
    topic: &CHANGES_RESEARCH,
    facts: &[GRANTS, TRIALS],
    sample_days: Some(7),
};

/// The feed of its changes under a filter.
pub const FEED: Feed = Feed { source: SOURCE, tables: &TABLES, list: "changes" };

/// The service.
#[must_use]
pub fn service() -> Service {
    Service {
        name: "research",
        title: "Research funding",
        about: "Newly awarded grants (NIH RePORTER) and new clinical trials (ClinicalTrials.gov) in a territory: what is new, what changed since \
            a cursor, digests, watches of an institution, sponsor, investigator or topic, and live search. Every change is kept and has a \
            number; topics name the words that decided them. Without a key: the last 7 days, 25 rows an answer.",
        operations: [
            vec![new_funding::operation(), changes_since::operation(), digest::operation(), entity::operation(), search::operation()],
            operations::<followed::Research>(),
            vec![
                keys::operation(),
                changes::operation::<Funding>(SOURCE, changes::example()),
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

/// The record of a change of this service.
pub(crate) type Change = crate::feed::filter::Element<Funding>;
