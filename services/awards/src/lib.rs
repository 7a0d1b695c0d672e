//! Federal contract awards: a feed of new and modified ones, digests with what expires, watches of a competitor.

pub mod operations;
pub mod rules;

use crate::operations::{addresses, competitor, digest, search, sources, watchable_feed};
use crate::rules::AwardsRules;
use feed::RecordFeed;
use schemas::views::awards::Award;
use serde_json::json;

use operation::{Definition, RecordPage};
use reads::registration::Registration;
use reads::{changes_since, read, watchable_feed::standard_operations};

impl RecordFeed for AwardsRules {}

/// How pages show the records.
const PAGE: RecordPage = RecordPage {
    title: &["recipient", "piid", "id"],
    detail: &[("", "description")],
    columns: &["description", "agency", "amountCents", "amount", "signed", "end"],
    facet: "agency",
    searches: &["recipient"],
    slow_searches: &["keyword"],
    ..RecordPage::EMPTY
};

/// The service.
#[must_use]
pub fn service() -> Registration {
    let changes = Definition {
        summary: "New and modified contract awards since a cursor, oldest first.",
        when: "Use it to follow a market over several calls, without gaps.",
        description: "Keep the `cursor` of each answer and send it with the next call: every matching change comes exactly once. `amount` is the \
            total obligation as last read, `amountDelta` its change, `actionAmount` what the action of this change adds. Changes that report an \
            action of more than 120 days before they were recorded have `backfill: true` and come only with `includeBackfill=true`. A cursor belongs to its filter. With another \
            filter it is refused with `filter-changed`; with `rebase=true` the answers first list what the new filter adds and removes. A page \
            may be shorter than `limit`, or empty, while `hasMore` is true. With `start=newest` a page ends at `cursor`, if it is given: the \
            `older` of the page after it.",
        example: json!({ "start": "earliest", "naics": "54", "limit": 10 }),
        ..changes_since::definition()
    };
    Registration::of::<watchable_feed::Awards>(
        "Federal contract awards",
        "New and modified federal contract awards (USAspending) since a cursor, digests with the contracts that expire, watches of a \
            competitor, and live search. Awards of the Department of Defense are published 90 days late by law. Without a key: the last 7 \
            days, 25 rows an answer.",
    )
    .with_page(PAGE)
    .with(vec![
        changes_since::operation::<watchable_feed::Awards>(changes),
        read::operation::<digest::Arguments>(),
        read::operation::<competitor::Arguments>(),
        read::operation::<search::Arguments>(),
    ])
    .with(standard_operations::<watchable_feed::Awards>(|ctx, at, text| Box::pin(addresses::ids_of(ctx, at, text))))
    .with(vec![reads::records::sources::operation::<Award>(
        AwardsRules::FEED.source,
        sources::RULE,
        |ctx, at, text| Box::pin(addresses::ids_of(ctx, at, text)),
        |at, award| Box::pin(sources::notices_of(at, award)),
    )])
}
