//! The addresses of records by the numbers that people know.

use bytes::Bytes;
use feed::testing::{HOUR_MS, START_MS, World, ask, call, value};
use operation::Operation;
use research::record::Funding;
use schemas::clock::rfc3339;
use schemas::tables::Write;
use schemas::views::accounts::Tier;
use schemas::views::aviation::AirworthinessDirective;
use schemas::views::awards::{self, Award};
use schemas::views::records::Record;
use serde_json::{Value, json};
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
    let put = |(key, value): &(String, serde_json::Value)| Write::put(tables.state, key![key.as_str()], Bytes::from(value.to_string()));
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
    let funding_with = |id: &str| Funding { id: id.into(), kind: "trial".into(), ..Funding::default() };
    let world = filled(
        &research::record::TABLES,
        &[funding_with("trial/NCT00000001"), funding_with("grant/11223344"), funding_with("trial/NCT00000002")],
    )
    .await;
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
    let award_with = |id: &str, piid: &str| Award { id: id.into(), piid: piid.into(), ..Award::default() };
    let all =
        [award_with("CONT_AWD_W912DR20C0001_9700", "W912DR20C0001"), award_with("CONT_AWD_A", "0001X"), award_with("CONT_AWD_B", "0001X")];
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

/// Proves that an award with more changes than are read at a time hides no other one with its number, and is found if it is the only one.
#[tokio::test]
async fn awards_with_many_changes() {
    let award_with =
        |id: &str, piid: &str, cents: i64| Award { id: id.into(), piid: piid.into(), amount_cents: Some(cents), ..Award::default() };
    let many = (1..=60).flat_map(|cents| [award_with("CONT_AWD_A", "0001X", cents), award_with("CONT_AWD_C", "0002X", cents)]);
    let all: Vec<Award> = std::iter::once(award_with("CONT_AWD_B", "0001X", 1)).chain(many).collect();
    let world = filled(&awards::TABLES, &all).await;
    let ctx = world.context(START_MS + 130 * HOUR_MS);
    for operation in operations("awards") {
        let mut keyed = call(&ctx);
        (keyed.caller.tier, keyed.caller.key_id) = (Tier::Free, "key_1".to_owned());
        let problem = (operation.run)(keyed, json!({ "id": "0001x" })).await.unwrap_err();
        assert!(problem.detail.contains("CONT_AWD_A, CONT_AWD_B"), "{}", problem.detail);
        assert_eq!(value(&ctx, operation, json!({ "id": "0002x" })).await["id"], "CONT_AWD_C", "{}", operation.name);
    }
}

/// Asks both operations of a service about its only record by each text, now and as of an earlier time, and about an unknown number.
async fn check<R: Record>(service: &str, tables: &'static RecordTables, record: R, texts: &[&str], unknown: &str) {
    let id = record.id().to_owned();
    let world = filled(tables, &[record]).await;
    let ctx = world.context(START_MS + 24 * HOUR_MS);
    let paid = || {
        let mut paid = call(&ctx);
        (paid.caller.tier, paid.caller.key_id) = (Tier::FleetPlus, "key_test".to_owned());
        paid
    };
    for operation in operations(service) {
        for text in texts.iter().copied().chain([id.as_str()]) {
            for as_of in [None, Some(rfc3339(START_MS + 12 * HOUR_MS))] {
                let answer = (operation.run)(paid(), json!({ "id": text, "asOf": as_of })).await;
                let answer = answer.unwrap_or_else(|problem| panic!("{service} {} {text:?}: {problem:?}", operation.name));
                let found: Value = serde_json::from_str(&feed::testing::text(answer)).unwrap();
                assert_eq!(found["id"], id, "{service} {} {text:?}", operation.name);
            }
        }
        let problem = (operation.run)(paid(), json!({ "id": unknown })).await.unwrap_err();
        assert_eq!(problem.code, ErrorCode::NotFound, "{service} {} {unknown:?}", operation.name);
    }
}

/// Proves that marks, phrases, items, leads, meetings and receipts are found by their number in every spelling of people and lists, and by their id in any
/// case.
#[tokio::test]
async fn numbers_as_people_write_them() {
    let mark = names::record::Trademark { id: "98123456".into(), serial: "98123456".into(), ..Default::default() };
    let texts = ["98/123,456", "SN 98123456", "sn98123456", "Serial No. 98-123456", " 98123456 "];
    check("names", &names::record::TABLES, mark, &texts, "98123457").await;
    let phrase = phrases::record::Phrase { id: "00ff00ff00ff00ff".into(), phrase: "agent mesh".into(), ..Default::default() };
    check("phrases", &phrases::record::TABLES, phrase, &["00FF00FF00FF00FF"], "agent net").await;
    let item = cadence::record::Item { id: "shop.example/7".into(), store: "shop.example".into(), ..Default::default() };
    check("cadence", &cadence::record::TABLES, item, &["Shop.Example/7", " shop.example/7 "], "shop.example/8").await;
    let lead = labs::record::Lead { id: "nih:11223344".into(), ..Default::default() };
    check("labs", &labs::record::TABLES, lead, &["NIH:11223344", "11223344", "grant/11223344"], "11223345").await;
    let id = "fmcsa:4312345:AUTO_LIABILITY_BIPD:new_carrier:2026-11-18";
    let lead = coverage::record::Lead { id: id.into(), ..Default::default() };
    check("coverage", &coverage::record::TABLES, lead, &[&id.to_uppercase(), &id.to_lowercase()], "4312345").await;
    let meeting = catalysts::record::Catalyst { id: "adcom:FDA-2026-N-4321".into(), ..Default::default() };
    let texts = ["fda-2026-n-4321", "ADCOM:FDA-2026-N-4321", "adcom:fda-2026-n-4321"];
    check("catalysts", &catalysts::record::TABLES, meeting, &texts, "FDA-2026-N-4322").await;
    let receipt = proofs::receipt::Receipt { id: "rcpt_00ff".into(), ..Default::default() };
    check("receipts", &schemas::views::receipts::TABLES, receipt, &["RCPT_00FF"], "rcpt_00fe").await;
}

/// Proves that parcels, permits, liens, flags, filings, trades and directives are found by their number in every spelling of people and lists, and by their id
/// in any case.
#[tokio::test]
async fn numbers_with_parts() {
    for (id, texts) in [
        ("cook-il/16012160010000", &["16-01-216-001-0000", "16012160010000", "COOK-IL/16-01-216-001-0000"][..]),
        ("allegheny-pa/0028F00194000000", &["0028f00194000000", "0028-F-00194-0000-00", "Allegheny-PA/0028F00194000000"]),
        ("cook-il/16012160010000/permit/B100", &["cook-il/16-01-216-001-0000/permit/b100", "COOK-IL/16012160010000/PERMIT/B100"]),
        ("cook-il/16012160010000/permit/b-2", &["COOK-IL/16-01-216-001-0000/permit/b-2"]),
        ("flag/0028F00194000000/X1", &["flag/0028f00194000000/x1", "FLAG/0028F00194000000/X1"]),
        ("lien/0123456789abcdef01234567", &["LIEN/0123456789ABCDEF01234567"]),
    ] {
        let parcel = parcels::record::Parcel { id: id.into(), ..Default::default() };
        check("parcels", &parcels::record::TABLES, parcel, texts, "16-01-216-001-0001").await;
    }
    for (id, texts) in [
        ("filing/0000900001-26-000001/0000900001", &["0000900001-26-000001", "000090000126000001", "FILING/0000900001-26-000001"][..]),
        ("filing/0000900001-26-000001/0000000007", &["0000900001-26-000001/7", "filing/000090000126000001/0000000007"]),
        ("trade/0000900001-26-000001/nonDerivative/1", &["TRADE/000090000126000001/nonderivative/1"]),
    ] {
        let filing = filings::record::Filing { id: id.into(), ..Default::default() };
        check("filings", &filings::record::TABLES, filing, texts, "0000900001-26-000002").await;
    }
    for (id, texts) in [
        ("2026-15-05", &["AD 2026-15-05", "ad2026-15-05", "20261505", "AD-2026-15-05"][..]),
        ("87-20-03 R2", &["87-20-03R2", "1987-20-03R2", "ad 87-20-03 r2"]),
        ("1987-20-03", &["87-20-03"]),
    ] {
        let directive = AirworthinessDirective { id: id.into(), ad_number: id.into(), ..Default::default() };
        check("aviation", &schemas::views::aviation::TABLES, directive, texts, "2026-15-06").await;
    }
}

/// Proves that an entity that is excluded is found by its UEI: by its hit, else by its only record, and that several records are named. A contract is found by
/// the id of its award.
#[tokio::test]
async fn entities() {
    use exclusions::record::{Exclusion, TABLES};

    let exclusion_with = |id: &str| Exclusion { id: id.into(), uei: "ABCDEF123456".into(), ..Exclusion::default() };
    let unknown = "ABCDEF999999";
    check("exclusions", &TABLES, exclusion_with("sam:01ab"), &["SAM:01AB", "abcdef123456", " ABCDEF123456 "], unknown).await;
    check("exclusions", &TABLES, exclusion_with("hit:ABCDEF123456"), &["abcdef123456", "hit:abcdef123456"], unknown).await;
    check("exclusions", &TABLES, exclusion_with("contract:CONT_AWD_1"), &["cont_awd_1", "CONTRACT:cont_awd_1"], "CONT_AWD_2").await;
    check("exclusions", &TABLES, exclusion_with("annual:0000000007:2025"), &["ANNUAL:0000000007:2025"], unknown).await;
    let several = filled(&TABLES, &[exclusion_with("sam:01ab"), exclusion_with("hit:ABCDEF123456"), exclusion_with("sam:02cd")]).await;
    let ctx = several.context(START_MS + 24 * HOUR_MS);
    for operation in operations("exclusions") {
        assert_eq!(value(&ctx, operation, json!({ "id": "abcdef123456" })).await["id"], "hit:ABCDEF123456");
    }
    let without_hit = filled(&TABLES, &[exclusion_with("sam:01ab"), exclusion_with("sam:02cd")]).await;
    let ctx = without_hit.context(START_MS + 24 * HOUR_MS);
    for operation in operations("exclusions") {
        let problem = ask(&ctx, operation, json!({ "id": "abcdef123456" })).await.unwrap_err();
        assert_eq!(problem.code, ErrorCode::NotFound);
        assert!(problem.detail.contains("sam:01ab, sam:02cd"), "{}", problem.detail);
    }
}
