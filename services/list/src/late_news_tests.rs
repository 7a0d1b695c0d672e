//! Late news: which services have it, and that the feed of each leaves it out by one rule.

use catalysts::record::{Catalyst, Window};
use exclusions::record::{EXCLUSION, Exclusion};
use feed::testing::{HOUR_MS, START_MS, call};
use filings::record::Filing;
use labs::record::Lead;
use names::record::Trademark;
use operation::Operation;
use research::record::Funding;
use schemas::views::accounts::Tier;
use schemas::views::aviation::{AirworthinessDirective, DirectiveDocument};
use schemas::views::records::{Record, RecordTables};
use serde_json::{Value, json};

use crate::numbers_tests::filled;
use crate::registered;

/// The services with late news and a filter that asks for it. The only feed of recalls is that of all changes, in which late news is marked; coverage makes no
/// lead of what is old; cadence and phrases record what they observe, and parcels the state of rolls.
const LATE: [&str; 8] = ["aviation", "awards", "catalysts", "exclusions", "filings", "labs", "names", "research"];
/// A day of long ago, and the day before the records are recorded.
const DAYS: [&str; 2] = ["2001-01-31", "2026-10-31"];

/// The field of a filter that asks for late news.
fn has_field(operation: &Operation) -> bool {
    !operation.input["properties"]["includeBackfill"].is_null()
}

/// Proves that the feeds of all services with late news have the field that asks for it.
#[test]
fn feeds_have_the_field() {
    for name in LATE {
        let registration = registered().iter().find(|registration| registration.service.name == name).unwrap();
        assert!(registration.service.operations.iter().any(|operation| operation.is_feed() && has_field(operation)), "{name}");
    }
}

/// Records one record for each of the days, and reads the filtered feed of the service without late news and with it.
async fn check<R: Record>(service: &str, tables: &'static RecordTables, record: impl Fn(&str, &str) -> R) {
    let world = filled(tables, &[record("1", DAYS[0]), record("2", DAYS[1])]).await;
    let ctx = world.context(START_MS + 24 * HOUR_MS);
    let registration = registered().iter().find(|registration| registration.service.name == service).unwrap();
    let feed = registration.service.operations.iter().find(|operation| operation.is_feed() && has_field(operation)).unwrap();
    let read = async |arguments: Value| {
        let mut paid = call(&ctx);
        (paid.caller.tier, paid.caller.key_id) = (Tier::FleetPlus, "key_test".to_owned());
        let page = (feed.run)(paid, arguments.clone()).await.unwrap().body.into_value().unwrap();
        page[feed.list].as_array().unwrap_or_else(|| panic!("{service} {arguments}: {page}")).len()
    };
    assert_eq!(read(json!({ "start": "earliest" })).await, 1, "{service}");
    assert_eq!(read(json!({ "start": "earliest", "includeBackfill": true })).await, 2, "{service}");
}

/// Proves for each service with late news and a filter, but awards, that a record of long ago which is recorded now is in its feed only on request, and that
/// one of the day before is in it anyway.
#[tokio::test]
async fn feeds_leave_late_news_out() {
    let window = |day: &str| Window { from: day.into(), to: day.into() };
    check("aviation", &schemas::views::aviation::TABLES, |id, day| {
        let documents = vec![DirectiveDocument { published: day.into(), ..DirectiveDocument::default() }];
        AirworthinessDirective { id: format!("2026-15-0{id}"), documents, ..AirworthinessDirective::default() }
    })
    .await;
    check("catalysts", &catalysts::record::TABLES, |id, day| Catalyst {
        id: format!("ctgov:NCT0000000{id}"),
        kind: "readout".into(),
        status: "upcoming".into(),
        window: window(day),
        ..Catalyst::default()
    })
    .await;
    check("exclusions", &exclusions::record::TABLES, |id, day| Exclusion {
        id: format!("sam:0{id}"),
        kind: EXCLUSION.into(),
        creation_date: day.into(),
        ..Exclusion::default()
    })
    .await;
    check("filings", &filings::record::TABLES, |id, day| Filing {
        id: format!("filing/0000900001-26-00000{id}/0000900001"),
        kind: "filing".into(),
        filing_date: day.into(),
        ..Filing::default()
    })
    .await;
    check("labs", &labs::record::TABLES, |id, day| Lead { id: format!("nih:{id}"), notice_date: day.into(), ..Lead::default() }).await;
    check("names", &names::record::TABLES, |id, day| Trademark {
        id: format!("9812345{id}"),
        serial: format!("9812345{id}"),
        filing_date: day.into(),
        ..Trademark::default()
    })
    .await;
    check("research", &research::record::TABLES, |id, day| Funding {
        id: format!("grant/{id}"),
        kind: "grant".into(),
        published: day.into(),
        ..Funding::default()
    })
    .await;
}
