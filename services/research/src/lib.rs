//! Research funding: grants and clinical trials, as feeds, digests and watches.

pub mod operations;
pub mod record;
pub mod rules;

use crate::operations::{addresses, digest, entity, new_funding, search, watchable_feed};
use crate::rules::ResearchRules;
use feed::RecordFeed;
use serde_json::json;

use operation::{Definition, RecordPage};
use reads::registration::Registration;
use reads::{changes_since, read, watchable_feed::standard_operations};

impl RecordFeed for ResearchRules {}

/// How pages show the records.
const PAGE: RecordPage = RecordPage {
    list: "new_funding",
    rows: &["grants", "trials"],
    title: &["title", "id"],
    detail: &[("", "org"), ("", "sponsor")],
    columns: &["kind", "org", "sponsor", "phase", "amount", "published"],
    facet: "kind",
    searches: &["institution", "pi"],
    ..RecordPage::EMPTY
};

/// The service.
#[must_use]
pub fn service() -> Registration {
    let changes = Definition {
        summary: "New and modified grants and trials since a cursor, oldest first.",
        when: "Use it to follow a territory over several calls, without gaps.",
        example: json!({ "start": "earliest", "topic": "oncology", "limit": 10 }),
        ..changes_since::definition()
    };
    Registration::of::<watchable_feed::Research>(
        "Research funding",
        "Newly awarded grants (NIH RePORTER) and new clinical trials (ClinicalTrials.gov) in a territory: what is new, what changed since \
            a cursor, digests, watches of an institution, sponsor, investigator or topic, and live search. Every change is recorded and has a \
            number. Each topic of a record names the words that decided it. Without a key: the last 7 days, 25 rows an answer.",
    )
    .with_page(PAGE)
    .with(vec![
        read::operation::<new_funding::Arguments>(),
        changes_since::operation::<watchable_feed::Research>(changes),
        read::operation::<digest::Arguments>(),
        read::operation::<entity::Arguments>(),
        read::operation::<search::Arguments>(),
    ])
    .with(standard_operations::<watchable_feed::Research>(|_, at, text| Box::pin(addresses::ids_of(at, text))))
}
