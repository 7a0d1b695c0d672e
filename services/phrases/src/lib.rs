//! The phrases service: how fast a phrase rises in the titles of stories, and whether it is free as a trademark.

pub mod operations;
pub mod record;
pub mod rules;

use crate::operations::{addresses, health, radar, rising, velocity, watchable_feed};
use crate::rules::PhrasesRules;
use feed::RecordFeed;
use serde_json::json;

use operation::{Definition, RecordPage};
use reads::numbers::ids_without_read;
use reads::registration::Registration;
use reads::{changes_since, read, watchable_feed::standard_operations_with_health};

impl RecordFeed for PhrasesRules {
    /// Labels are free, so everybody sees all changes.
    const SAMPLE_DAYS: Option<i64> = None;
}

/// How pages show the records.
const PAGE: RecordPage = RecordPage {
    list: "rising_phrases",
    rows: &["phrases"],
    title: &["phrase", "id"],
    detail: &[("", "label")],
    columns: &["label", "multiple", "count", "baseline", "since"],
    facet: "label",
    searches: &["phrase"],
    ..RecordPage::EMPTY
};

/// The service.
#[must_use]
pub fn service() -> Registration {
    let changes = Definition {
        summary: "Changes of labels since a cursor, oldest first.",
        when: "Use it to follow which phrases begin or cease to rise, without gaps.",
        example: json!({ "start": "earliest", "label": "RISING", "limit": 10 }),
        ..changes_since::definition()
    };
    Registration::of::<watchable_feed::Phrases>(
        "Rising phrases",
        "How fast a phrase rises in the titles of Hacker News, against its own past and the chance of a rare phrase, confirmed by page views of \
            Wikipedia; and whether it is free as a US trademark. Counts are of complete hours. The result is not legal advice.",
    )
    .with_page(PAGE)
    .with(vec![
        read::operation::<rising::Arguments>(),
        read::operation::<velocity::Arguments>(),
        read::operation::<radar::Arguments>(),
        changes_since::operation::<watchable_feed::Phrases>(changes),
    ])
    .with(standard_operations_with_health::<watchable_feed::Phrases, health::Sources>(|_, at, text| {
        ids_without_read(addresses::ids_of(at, text))
    }))
    .with_data(::velocity::words::shown())
}
