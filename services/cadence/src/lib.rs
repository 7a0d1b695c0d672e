//! The cadence service: how often the items of stores are restocked, and when the next restock is likely.

pub mod forecast;
pub mod operations;
pub mod record;
pub mod rules;
pub mod scores;

use crate::operations::{addresses, board, calibration, health, list_niches, list_stores, predict, watchable_feed};
use crate::rules::CadenceRules;
use feed::RecordFeed;
use serde_json::json;

use operation::{Definition, RecordPage};
use reads::numbers::ids_without_read;
use reads::registration::Registration;
use reads::{changes_since, read, watchable_feed::standard_operations_with_health};

impl RecordFeed for CadenceRules {
    /// The board is free, so everybody sees all changes.
    const SAMPLE_DAYS: Option<i64> = None;
}

/// How pages show the records.
const PAGE: RecordPage = RecordPage {
    title: &["item", "id"],
    detail: &[("", "store")],
    columns: &["store", "niche", "inStock", "variantsInStock", "lastSoldOut"],
    facet: "niche",
    slow_searches: &["query"],
    ..RecordPage::EMPTY
};

/// The service.
#[must_use]
pub fn service() -> Registration {
    let changes = Definition {
        when: "Use it to follow restocks over several calls, without gaps.",
        summary: "Changes of items since a cursor, oldest first; with `restocks=true` restocks only.",
        example: json!({ "start": "earliest", "restocks": true, "limit": 10 }),
        ..changes_since::definition()
    };
    Registration::of::<watchable_feed::Cadence>(
        "Restock cadence",
        "How often the items of configured Shopify storefronts are restocked, and the window in which the next restock is likely, from an \
            archive of availability observations. The archive grows: a new item has no prediction, and answers say how sure they are. An \
            estimate from past observations; no promise of availability.",
    )
    .with_page(PAGE)
    .with(vec![
        read::operation::<list_niches::Arguments>(),
        read::operation::<list_stores::Arguments>(),
        read::operation::<board::Arguments>(),
        read::operation::<predict::Arguments>(),
        read::operation::<calibration::Arguments>(),
        changes_since::operation::<watchable_feed::Cadence>(changes),
    ])
    .with(standard_operations_with_health::<watchable_feed::Cadence, health::Depth>(|_, _, text| ids_without_read(addresses::ids_of(text))))
}
