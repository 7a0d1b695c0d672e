//! The exclusions service: who is excluded from federal awards, and which excluded entities have awards nevertheless.

pub mod operations;
pub mod record;
pub mod rules;

use crate::operations::{check, contradiction, entity_watch, followed, permalink, recipients, recompete, sample, scan};
use crate::record::{Exclusion, TABLES};
use schemas::topics::{CHANGES_AWARDS, CHANGES_EXCLUSIONS, EXCLUSIONS};
use serde_json::json;

use feed::Source;
use feed::query::Feed;
use operation::{Definition, RecordPage};
use reads::registration::{Registration, Task, TaskRole};
use reads::{changes_since, followed::operations, history, keys, read};

/// The source of the service's changes. Its completeness is that of the list of exclusions and of the awards; obligations by fiscal year are read monthly,
/// and would make everything else look as old.
pub const SOURCE: Source =
    Source { sample_days: None, ..Source::of_records("exclusions", &TABLES, &CHANGES_EXCLUSIONS, &[EXCLUSIONS, CHANGES_AWARDS]) };

/// The feed of its changes under a filter.
pub const FEED: Feed = Feed { source: SOURCE, tables: &TABLES, list: "changes" };

/// The route of permalinks, and its path with the key.
const ARTIFACT_ROUTE: &str = "/v1/artifact";
const ARTIFACT_PATH: &str = "/v1/artifact/{uei}";
/// The price of an artifact in millionths of a US dollar.
const ENTITY_WATCH_MICROS: u64 = 100_000;
/// The price of a page of the scan.
const SCAN_MICROS: u64 = 20_000;

/// What every answer says.
pub const DISCLAIMER: &str = "Dated public-record evidence, not a compliance determination. Check SAM.gov before acting.";

/// How pages show the records.
const PAGE: RecordPage = RecordPage {
    list: "",
    rows: &[],
    title: &["name", "uei", "id"],
    detail: &[("", "kind"), ("", "excludingAgency")],
    columns: &["kind", "excludingAgency", "exclusionType", "activeDate", "uei"],
    facet: "excludingAgency",
    search: "name",
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
    Registration::new(
        "exclusions",
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
        read::operation::<entity_watch::RouteArguments>(),
        read::operation::<permalink::Arguments>(),
        read::operation::<entity_watch::ToolArguments>(),
        read::operation::<recompete::Arguments>(),
        read::operation::<contradiction::Arguments>(),
        changes_since::operation::<followed::Exclusions>(changes),
    ])
    .with(operations::<followed::Exclusions>())
    .with(keys::operations())
    .with(history::operations::<Exclusion>(SOURCE))
    .with_data(matching::shown_company_forms())
    .with_data(schemas::crosswalk::shown())
    .with_preparation(|ctx| Box::pin(recipients::prepare(ctx)))
    .with_tasks(&[Task { role: TaskRole::Api, run: |given| Box::pin(recipients::keep_names(given)) }])
}

/// A change of this service.
#[cfg(test)]
pub(crate) type Change = feed::filter::Element<Exclusion>;

/// The page of an award.
fn award_url(id: &str) -> String {
    format!("https://www.usaspending.gov/award/{id}")
}

/// Where SAM.gov shows the exclusions of a UEI or name. It has no stable page per exclusion.
#[must_use]
pub fn source_url(query: &str) -> String {
    let encoded: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
    format!("https://sam.gov/search/?index=ex&q={encoded}")
}
