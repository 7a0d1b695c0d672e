//! Newly funded research laboratories as leads for suppliers: who has new money, for what kind of equipment, and in which months it will be
//! spent.

pub mod operations;
pub mod record;
pub mod rules;

use crate::operations::{addresses, categories, health, leads, sample, watchable_feed};
use crate::record::Lead;
use crate::record::lexicon::LEXICON;
use crate::rules::LabsRules;
use feed::RecordFeed;
use feed::redaction::Redaction;
use serde_json::json;

use operation::tiers::SAVED_ITEMS_MIN_TIER;
use operation::{Definition, Price, RecordPage};
use reads::numbers::ids_without_read;
use reads::registration::Registration;
use reads::{changes_since, read, watchable_feed::standard_operations_with_health};

impl RecordFeed for LabsRules {
    /// Below tier pro, leads are shown as the samples are.
    const REDACTION: Option<Redaction> = Some(Redaction::of::<Lead>());
}

/// How pages show the records.
const PAGE: RecordPage = RecordPage {
    list: "sample",
    rows: &["leads"],
    title: &["title", "category"],
    detail: &[("", "org"), ("", "state")],
    columns: &["category", "state", "month", "amountBand", "signal"],
    ..RecordPage::EMPTY
};

/// The service.
#[must_use]
pub fn service() -> Registration {
    let changes = Definition {
        summary: "New and modified leads since a cursor, oldest first, under a filter.",
        when: "Use it to follow leads over several calls, without gaps.",
        price: Price::Tier(SAVED_ITEMS_MIN_TIER),
        example: json!({ "start": "earliest", "state": "CA", "limit": 10 }),
        ..changes_since::definition()
    };
    Registration::of::<watchable_feed::Labs>(
        "Lab leads",
        "Newly funded research laboratories in the United States, from the awards of NIH RePORTER: the likely category of purchases with the \
            phrases that decided it, a spend window, and whether the award starts a laboratory. A lead is our reading of a public award, not a \
            statement that somebody will buy. Without a paid key: category, state, month and amount band of the last 14 days. With a key of tier \
            pro or above, or 0.02 USD per call: whole leads of up to a year.",
    )
    .with_page(PAGE)
    .with(vec![
        read::operation::<sample::Arguments>(),
        read::operation::<leads::Arguments>(),
        read::operation::<categories::Arguments>(),
        read::tool::<sample::Arguments>(),
        changes_since::operation::<watchable_feed::Labs>(changes),
    ])
    .with(standard_operations_with_health::<watchable_feed::Labs, health::Leads>(|_, _, text| ids_without_read(addresses::ids_of(text))))
    .with_data(LEXICON.shown("lexicon"))
}
