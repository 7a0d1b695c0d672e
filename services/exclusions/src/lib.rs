//! The exclusions service: who is excluded from federal awards, and which excluded entities have awards nevertheless.

pub mod operations;
mod person;
pub mod record;
pub mod rules;

use crate::operations::{addresses, check, contradiction, entity_watch, permalink, recipients, recompete, sample, scan, watchable_feed};
use crate::rules::ExclusionsRules;
use feed::RecordFeed;
use schemas::topics::{CHANGES_AWARDS, EXCLUSIONS, Topic};
use serde_json::json;

use operation::{Definition, RecordPage};
use reads::registration::{Registration, Task, TaskRole};
use reads::{changes_since, read, watchable_feed::standard_operations};

impl RecordFeed for ExclusionsRules {
    /// Completeness is that of the list of exclusions and of the awards: obligations by fiscal year, read monthly, would make everything else look as old.
    const FACTS: &'static [Topic] = &[EXCLUSIONS, CHANGES_AWARDS];
    /// Everybody sees all changes.
    const SAMPLE_DAYS: Option<i64> = None;
}

/// How pages show the records.
const PAGE: RecordPage = RecordPage {
    title: &["name", "uei", "id"],
    detail: &[("", "kind"), ("", "excludingAgency")],
    columns: &["kind", "excludingAgency", "exclusionType", "activeDate", "terminationDate", "uei"],
    facet: "excludingAgency",
    searches: &["name"],
    ..RecordPage::EMPTY
};

/// The service.
#[must_use]
pub fn service() -> Registration {
    let changes = Definition {
        summary: "New and modified exclusions, hits, ending contracts and compared annual reports since a cursor, oldest first, under a filter.",
        when: "Use it to follow exclusions, or one entity by its UEI, over several calls, without gaps.",
        example: json!({ "start": "earliest", "kind": "hit", "limit": 10 }),
        ..changes_since::definition()
    };
    Registration::of::<watchable_feed::Exclusions>(
        "Excluded contractors",
        "Parties that are excluded from federal awards (SAM.gov), and which of them have federal awards (USAspending) under the same UEI. Dated \
            evidence from public records, not a compliance determination. An award that began before an exclusion may lawfully continue. Without a \
            key: 25 rows an answer.",
    )
    .with_page(PAGE)
    .with(vec![
        read::operation::<check::Arguments>(),
        read::operation::<sample::Arguments>(),
        read::operation::<scan::Arguments>(),
        read::operation::<entity_watch::Arguments>(),
        read::operation::<permalink::Arguments>(),
        read::tool::<entity_watch::Arguments>(),
        read::operation::<recompete::Arguments>(),
        read::operation::<contradiction::Arguments>(),
        changes_since::operation::<watchable_feed::Exclusions>(changes),
    ])
    .with(standard_operations::<watchable_feed::Exclusions>(|ctx, at, text| Box::pin(addresses::ids_of(ctx, at, text))))
    .with_data(matching::shown_company_forms())
    .with_data(texts::crosswalk::shown())
    .with_preparation(|ctx| Box::pin(recipients::prepare(ctx)))
    .with_tasks(&[Task { role: TaskRole::Api, run: |given| Box::pin(recipients::keep_names(given)) }])
}
