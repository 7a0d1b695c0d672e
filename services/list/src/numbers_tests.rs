//! The addresses of records by the numbers that people know.

use bytes::Bytes;
use feed::testing::{HOUR_MS, START_MS, World, ask, call, value};
use operation::{Call, Caller, Operation};
use research::record::Funding;
use schemas::clock::rfc3339;
use schemas::tables::Write;
use schemas::views::accounts::Tier;
use schemas::views::aviation::AirworthinessDirective;
use schemas::views::awards::{self, Award};
use schemas::views::records::Record;
use serde_json::json;
use view_store::ViewStore;

use crate::registered;
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::views::records::{RecordTables, alias_key, former_key};

/// The operations that show a record and its versions.
fn operations(service: &str) -> Vec<&'static Operation> {
    let registration = registered().iter().find(|registration| registration.service.name == service).unwrap();
    let is_record = |operation: &&Operation| matches!(operation.name, "record" | "record_history");
    registration.service.operations.iter().filter(is_record).collect()
}

/// Writes decision state.
pub(super) async fn put_sources(world: &World, tables: &'static RecordTables, rows: &[(String, serde_json::Value)]) {
    let view = world.store.live(tables.view).await.unwrap();
    let checkpoint = view.checkpoint().await.unwrap();
    let put = |(key, value): &(String, serde_json::Value)| Write::put(tables.sources, key![key.as_str()], Bytes::from(value.to_string()));
    view.commit(rows.iter().map(put).collect(), &checkpoint).await.unwrap();
}

pub(super) async fn filled<R: Record>(tables: &'static RecordTables, records: &[R]) -> World {
    let world = World::new().await;
    world.fill_records(tables, records).await;
    world
}

/// Proves that a trial is found by its number in any form, by its older numbers, and as of a time at which it had an older number; that a grant is
/// found by its number; and that an unknown number is not found.
#[tokio::test]
async fn trials() {
    let of = |id: &str| Funding { id: id.into(), kind: "trial".into(), ..Funding::default() };
    let world = filled(&research::record::TABLES, &[of("trial/NCT00000001"), of("grant/11223344"), of("trial/NCT00000002")]).await;
    let (old, older, current) = ("NCT00000001", "NCT00000003", "NCT00000002");
    let rows = [(alias_key(old), json!(current)), (alias_key(older), json!(current)), (former_key(current), json!([old, older]))];
    put_sources(&world, &research::record::TABLES, &rows).await;
    let (ctx, early) = (world.context(START_MS + 24 * HOUR_MS), rfc3339(START_MS + HOUR_MS / 2));
    for operation in operations("research") {
        for (given, as_of, id) in [
            ("trial/NCT00000002", None, "trial/NCT00000002"),
            ("nct00000002", None, "trial/NCT00000002"),
            ("TRIAL/nct00000002", None, "trial/NCT00000002"),
            ("trial/NCT00000003", None, "trial/NCT00000002"),
            ("nct00000003", None, "trial/NCT00000002"),
            ("NCT00000002", Some(&early), "trial/NCT00000001"),
            ("nct00000003", Some(&early), "trial/NCT00000001"),
            ("11223344", None, "grant/11223344"),
        ] {
            let found = value(&ctx, operation, json!({ "id": given, "asOf": as_of })).await;
            assert_eq!(found["id"], id, "{} {given}", operation.name);
        }
        let problem = ask(&ctx, operation, json!({ "id": "NCT99999999" })).await.unwrap_err();
        assert_eq!(problem.code, ErrorCode::NotFound);
    }
}

/// Proves that an award is found by its agency's number in any form, and that a number of several awards names them to a caller with a key.
#[tokio::test]
async fn awards() {
    let of = |id: &str, piid: &str| Award { id: id.into(), piid: piid.into(), ..Award::default() };
    let all = [of("CONT_AWD_W912DR20C0001_9700", "W912DR20C0001"), of("CONT_AWD_A", "0001X"), of("CONT_AWD_B", "0001X")];
    let world = filled(&awards::TABLES, &all).await;
    let ctx = world.context(START_MS + 24 * HOUR_MS);
    for operation in operations("awards") {
        for given in ["W912DR20C0001", "w912dr-20-c-0001", "cont_awd_w912dr20c0001_9700"] {
            let found = value(&ctx, operation, json!({ "id": given })).await;
            assert_eq!(found["id"], "CONT_AWD_W912DR20C0001_9700", "{} {given}", operation.name);
        }
        let problem = ask(&ctx, operation, json!({ "id": "0001x" })).await.unwrap_err();
        assert_eq!(problem.code, ErrorCode::NotFound);
        assert!(problem.detail.contains("several") && !problem.detail.contains("CONT_AWD"), "{}", problem.detail);
        let mut keyed = call(&ctx);
        (keyed.caller.tier, keyed.caller.key_id) = (Tier::Free, "key_1".to_owned());
        let problem = (operation.run)(keyed, json!({ "id": "0001x" })).await.unwrap_err();
        assert!(problem.detail.contains("CONT_AWD_A, CONT_AWD_B"), "{}", problem.detail);
        assert_eq!(ask(&ctx, operation, json!({ "id": "W912DR20C0009" })).await.unwrap_err().code, ErrorCode::NotFound);
    }
}

/// Proves that records of the other services are found by the numbers that people know in the forms in which people write them, with their versions, and that
/// an unknown number is not found.
#[tokio::test]
async fn numbers_of_other_services() {
    let exclusion = exclusions::record::Exclusion { id: "hit:ABCDEF123456".into(), kind: "hit".into(), ..Default::default() };
    let directive = AirworthinessDirective { id: "2026-15-05".into(), ..Default::default() };
    let parcel = parcels::record::Parcel { id: "cook-il/16012160010000".into(), pin: "16012160010000".into(), ..Default::default() };
    let mark = names::record::Trademark { id: "97000001".into(), serial: "97000001".into(), ..Default::default() };
    for (service, world, id, texts, unknown) in [
        (
            "exclusions",
            filled(&exclusions::record::TABLES, &[exclusion]).await,
            "hit:ABCDEF123456",
            ["abcdef123456", "hit:abcdef123456"],
            "ABCDEF999999",
        ),
        (
            "aviation",
            filled(&schemas::views::aviation::TABLES, &[directive]).await,
            "2026-15-05",
            ["AD 2026-15-05", "20261505"],
            "2026-15-06",
        ),
        (
            "parcels",
            filled(&parcels::record::TABLES, &[parcel]).await,
            "cook-il/16012160010000",
            ["16-01-216-001-0000", "16012160010000"],
            "16-01-216-001-0001",
        ),
        ("names", filled(&names::record::TABLES, &[mark]).await, "97000001", ["97/000,001", "Serial No. 97000001"], "97000002"),
    ] {
        let context = world.context(START_MS + 24 * HOUR_MS);
        let keyed = || {
            let call = call(&context);
            Call { caller: Caller { tier: Tier::Pro, key_id: "key_1".to_owned(), ..call.caller.clone() }, ..call }
        };
        for operation in operations(service) {
            for text in [id, texts[0], texts[1]] {
                for as_of in [None, Some(rfc3339(START_MS + 12 * HOUR_MS))] {
                    let found = (operation.run)(keyed(), json!({ "id": text, "asOf": as_of })).await.unwrap();
                    let found: serde_json::Value = serde_json::from_str(&feed::testing::text(found)).unwrap();
                    assert_eq!(found["id"], id, "{service} {} {text}", operation.name);
                }
            }
            let problem = (operation.run)(keyed(), json!({ "id": unknown })).await.unwrap_err();
            assert_eq!(problem.code, ErrorCode::NotFound, "{service}");
        }
    }
}
