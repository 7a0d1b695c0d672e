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

use crate::common::followed::operations;
use crate::common::{checkpoints, health, keys};
use crate::registration::{Bundle, Registration};
use feed::query::Feed;
use feed::{Source, changes};

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
pub fn service() -> Registration {
    Registration::new(
        "research",
        "Research funding",
        "Newly awarded grants (NIH RePORTER) and new clinical trials (ClinicalTrials.gov) in a territory: what is new, what changed since \
            a cursor, digests, watches of an institution, sponsor, investigator or topic, and live search. Every change is kept and has a \
            number; topics name the words that decided them. Without a key: the last 7 days, 25 rows an answer.",
    )
    .with(vec![new_funding::operation(), changes_since::operation(), digest::operation(), entity::operation(), search::operation()])
    .with(operations::<followed::Research>())
    .with(vec![keys::operation(), changes::operation::<Funding>(SOURCE, changes::example())])
    .with(Bundle::checkpoints(vec![checkpoints::operation(SOURCE)], SOURCE))
    .with(vec![health::operation(SOURCE)])
    .with_files(|ctx, path| Box::pin(checkpoints::file(ctx, SOURCE, path)))
}

/// The record of a change of this service.
pub(crate) type Change = feed::filter::Element<Funding>;
