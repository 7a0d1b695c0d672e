//! Lists of over-assessed parcels, and what a cycle changed, as callers meet them: over records and counts that a test writes.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::record::{Parcel, TABLES, current_cycle, delta_counts, township_counts};
use bytes::Bytes;
use feed::testing::records::RecordView;
use feed::testing::{HOUR_MS, START_MS, World, call, text, value};
use operation::context::Context;
use operation::{Call, Caller, Stage};
use reads::read::{operation, tool};
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::Write;
use schemas::views::accounts::Tier;
use serde_json::{Value, json};

use super::{delta, leads};

/// 2026-11-20T00:00:00Z.
const NOW_MS: i64 = START_MS + 19 * 24 * HOUR_MS;
/// The parcels of Cook County of the tier `high`.
const HIGH: u32 = 12;

/// A parcel of Cook County with an `r` in ten-thousandths.
fn parcel(number: u32, tier: &str, r: u32) -> Parcel {
    let pin = format!("16012160{number:02}0000");
    Parcel {
        id: format!("cook-il/{pin}"),
        pin,
        county: "cook-il".into(),
        class: "517".into(),
        township: "West Chicago".into(),
        township_code: "77".into(),
        address: format!("{number} N CARTER ST"),
        tier: tier.into(),
        r: Some(f64::from(r) / 10_000.0),
        cycle: "2026-board".into(),
        tier_before: tier.into(),
        url: format!("https://example.com/{number}"),
        ..Parcel::default()
    }
}

/// The same parcel in Allegheny County.
fn of_allegheny(number: u32) -> Parcel {
    let pin = format!("0028F{number:05}000000");
    Parcel {
        id: format!("allegheny-pa/{pin}"),
        pin,
        county: "allegheny-pa".into(),
        class: "C411".into(),
        township: "4th Ward - PITTSBURGH".into(),
        township_code: "104".into(),
        cycle: "2025-certified".into(),
        ..parcel(number, "high", 12_600)
    }
}

/// Writes counts into the index, as decisions keep them.
pub(super) async fn keep_counts(world: &World, rows: &[(String, Value)]) {
    let view = RecordView::<Parcel>::new(&*world.store, &TABLES).await.view;
    let checkpoint = view.checkpoint().await.unwrap();
    let write =
        |(name, counts): &(String, Value)| Write::put(TABLES.terms, key![name.as_str(), 0_i64, Seq(1)], Bytes::from(counts.to_string()));
    view.commit(rows.iter().map(write).collect(), &checkpoint).await.unwrap();
}

/// Twelve high and three medium parcels of Cook County and two high ones of the other, with their counts and cycles as decisions keep them.
async fn counties() -> (World, Arc<Context>) {
    let world = World::new().await;
    let high = (1..=HIGH).map(|number| parcel(number, "high", 12_500 + 111 * number));
    let medium = (21..=23).map(|number| parcel(number, "medium", 11_000 + number));
    let records: Vec<Parcel> = high.chain(medium).chain([31, 32].map(of_allegheny)).collect();
    world.fill_records(&TABLES, &records).await;
    let cells = json!({ "C411/high": 2 });
    let rows = [
        (township_counts("cook-il", "77"), json!({ "517/high": HIGH, "517/medium": 3 })),
        (township_counts("allegheny-pa", "104"), cells.clone()),
        (township_counts("allegheny-pa", ""), cells),
        (current_cycle("cook-il"), json!({ "cycle": "2026-board", "since": "2026-11-01" })),
        (current_cycle("allegheny-pa"), json!({ "cycle": "2025-certified", "since": "2026-11-01" })),
    ];
    keep_counts(&world, &rows).await;
    let context = world.context(NOW_MS);
    (world, context)
}

/// Proves that an answer about a township or class of Allegheny County has the cycle of that county, and where the same rows can be bought, also without
/// `county`; and that one about both counties says whose cycle it has.
#[tokio::test]
async fn the_county_follows_from_the_place() {
    let (_world, context) = counties().await;
    let route = operation::<leads::Arguments>();
    for (arguments, county, fields, cycle, total) in [
        (json!({}), "cook-il", "", "2026-board", 17),
        (json!({ "township": "104" }), "allegheny-pa", "&township=104", "2025-certified", 2),
        (json!({ "class": "c411" }), "allegheny-pa", "&class=C411", "2025-certified", 2),
        (json!({ "county": "allegheny-pa" }), "allegheny-pa", "", "2025-certified", 2),
        (json!({ "township": "West Chicago" }), "cook-il", "&township=77", "2026-board", 15),
        (json!({ "class": "517", "minTier": "high" }), "cook-il", "&class=517&minTier=high", "2026-board", 12),
    ] {
        let found = value(&context, &route, arguments.clone()).await;
        assert_eq!((&found["cycle"], &found["total"]), (&json!(cycle), &json!(total)), "{arguments}");
        assert!(found["payUrl"].as_str().unwrap().ends_with(&format!("/x402/pay?county={county}{fields}")), "{arguments}: {found}");
        let note = found["note"].as_str().unwrap_or_default();
        assert_eq!(
            note.contains("`payUrl` are those of cook-il; parcels of allegheny-pa match as well"),
            arguments == json!({}),
            "{arguments}: {note}"
        );
        let has_its_rows = found["leads"].as_array().unwrap().iter().all(|lead| arguments == json!({}) || lead["county"] == county);
        assert!(has_its_rows && found["count"] != 0, "{arguments}: {found}");
    }
}

/// Proves that an answer, and the preview of the paid tool, say so if no parcel can match since the fields are those of two counties.
#[tokio::test]
async fn fields_of_two_counties_are_noted() {
    const NOTE: &str = "`township` 104 is of allegheny-pa, so no parcel of cook-il matches";
    let (_world, context) = counties().await;
    let (route, tool) = (operation::<leads::Arguments>(), tool::<leads::Arguments>());
    for (township, is_noted) in [("104", true), ("77", false)] {
        let arguments = json!({ "county": "cook-il", "township": township });
        let unpaid = Call { stage: Stage::Preview, ..call(&context) };
        let preview = text((tool.run)(unpaid, arguments.clone()).await.unwrap());
        let (free, paid) = (value(&context, &route, arguments.clone()).await, value(&context, &tool, arguments).await);
        assert_eq!([preview, free.to_string(), paid.to_string()].map(|shown| shown.contains(NOTE)), [is_noted; 3], "{free} {paid}");
        assert_eq!(free["total"] == 0, is_noted, "{free}");
    }
}

/// Proves that the tool has the arguments of the route, but requires the county; and that its answer has the county, and not where whole rows are sold.
#[test]
fn route_and_tool() {
    let (route, tool) = (operation::<leads::Arguments>(), tool::<leads::Arguments>());
    let names = |schema: &Value| schema["properties"].as_object().unwrap().keys().cloned().collect::<BTreeSet<String>>();
    assert_eq!(names(&route.input), names(&tool.input));
    assert_eq!((route.input.get("required"), &tool.input["required"]), (None, &json!(["county"])));
    assert_eq!(tool.input["properties"]["county"], route.input["properties"]["county"]);
    let (of_route, of_tool) = (names(&route.output), names(&tool.output));
    assert_eq!(of_route.difference(&of_tool).collect::<Vec<_>>(), ["payUrl"]);
    assert_eq!(of_tool.difference(&of_route).collect::<Vec<_>>(), ["county"]);
}

/// Proves that an answer without a match does not blame the tier and advises nobody to pay: it is as empty for a key of tier pro. One with matches says what a
/// key shows.
#[tokio::test]
async fn no_key_is_advised_for_nothing() {
    let (_world, context) = counties().await;
    let route = operation::<leads::Arguments>();
    for (arguments, is_empty) in [(json!({ "class": "211A" }), true), (json!({ "class": "517" }), false)] {
        let free = value(&context, &route, arguments.clone()).await;
        let note = free["note"].as_str().unwrap_or_default();
        assert_eq!((free["total"] == 0, note.contains("nothing matches, for a caller of any tier")), (is_empty, is_empty), "{free}");
        assert_eq!((note.contains("tier pro"), note.contains("this tier")), (!is_empty, false), "{note}");
        let caller = Caller { tier: Tier::Pro, key_id: "k".into(), account: "a".into(), ..call(&context).caller };
        let whole = text((route.run)(Call { caller, ..call(&context) }, arguments).await.unwrap());
        let whole: Value = serde_json::from_str(&whole).unwrap();
        assert_eq!(whole["total"], free["total"], "{whole}");
        assert!(!whole["note"].as_str().unwrap_or_default().contains("tier"), "{whole}");
    }
}

/// Proves that a caller without a key gets true counts and at most ten masked rows, and that one of tier pro gets all of them whole, the largest `r` first.
#[tokio::test]
async fn rows_are_masked_without_a_paid_key() {
    let (_world, context) = counties().await;
    let route = operation::<leads::Arguments>();
    let arguments = json!({ "minTier": "high", "county": "cook-il", "limit": 200 });
    let free = value(&context, &route, arguments.clone()).await;
    assert_eq!(
        (&free["counts"]["byTier"], &free["counts"]["byCounty"], &free["total"], &free["count"], &free["next"], &free["tier"]),
        (
            &json!({ "high": HIGH, "medium": 0, "low": 0 }),
            &json!({ "cook-il": HIGH, "allegheny-pa": 0 }),
            &json!(HIGH),
            &json!(10),
            &Value::Null,
            &json!("free")
        )
    );
    let shown = free["leads"].to_string();
    for lead in free["leads"].as_array().unwrap() {
        assert_eq!((&lead["pin"], &lead["tier"]), (&json!("16012*********"), &json!("high")));
        assert!((lead["r"].as_f64().unwrap() * 10.0).fract().abs() < 1e-9, "{lead}");
    }
    assert!(!shown.contains("1601216") && !shown.contains("CARTER") && !shown.contains("example.com"), "{shown}");
    let caller = Caller { tier: Tier::Pro, key_id: "k".into(), account: "a".into(), ..call(&context).caller };
    let whole = text((route.run)(Call { caller, ..call(&context) }, arguments).await.unwrap());
    let whole: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!((&whole["counts"], &whole["count"], &whole["tier"]), (&free["counts"], &json!(HIGH), &json!("pro")));
    let leads = whole["leads"].as_array().unwrap();
    let ranks: Vec<f64> = leads.iter().map(|lead| lead["r"].as_f64().unwrap()).collect();
    assert!(ranks.windows(2).all(|pair| pair[0] >= pair[1]) && leads.iter().all(|lead| lead["tier"] == "high"), "{ranks:?}");
    assert_eq!((&leads[0]["pin"], &leads[0]["address"]), (&json!("16012160120000"), &json!("12 N CARTER ST")));
}

/// Proves that below tier pro the id of a permit, a lien or a flag that there is gets the same answer as one that there is not, since ids name public PINs and
/// what is recorded of them, and that a parcel is shown in redacted form.
#[tokio::test]
async fn ids_of_permits_liens_and_flags_confirm_nothing() {
    let world = World::new().await;
    let parcel_with = |id: &str| Parcel { id: id.into(), pin: "16012160020000".into(), county: "cook-il".into(), ..Parcel::default() };
    let hidden = ["cook-il/16012160020000/permit/P1", "lien/0123456789abcdef01234567", "flag/16012160020000/X6"];
    let permit = Parcel { permit: Some(Box::default()), ..parcel_with(hidden[0]) };
    let lien = Parcel { lien: Some(Box::default()), ..parcel_with(hidden[1]) };
    let flag = Parcel { flag: Some(Box::default()), ..parcel_with(hidden[2]) };
    world.fill_records(&TABLES, &[permit, lien, flag, parcel(1, "high", 13_000)]).await;
    let context = world.context(NOW_MS);
    let operations = crate::service().service.operations;
    for operation in operations.iter().filter(|operation| ["record", "record_history"].contains(&operation.name)) {
        let ask = async |tier: Tier, id: &str| {
            let call = call(&context);
            let caller = Caller { tier, key_id: "key_1".to_owned(), ..call.caller.clone() };
            (operation.run)(Call { caller, ..call }, json!({ "id": id })).await
        };
        let unknown = ask(Tier::Free, "flag/16012160030000/X6").await.unwrap_err();
        for id in hidden {
            let refused = ask(Tier::Free, id).await.unwrap_err();
            assert_eq!((refused.code, &refused.detail), (unknown.code, &unknown.detail), "{} {id}", operation.name);
            assert!(ask(Tier::Pro, id).await.is_ok(), "{} {id}", operation.name);
        }
        assert!(ask(Tier::Free, "cook-il/16012160010000").await.is_ok(), "{}", operation.name);
    }
}

/// Proves that a caller without a key gets true counts and at most 25 masked PINs of each list of the delta, and that the pages of one of tier pro have all PINs
/// whole, each of them once and in one list only.
#[tokio::test]
async fn the_delta_is_masked_without_a_paid_key() {
    const NEW: u32 = 30;
    const ALL: u32 = 58;
    let world = World::new().await;
    let new = (1..=NEW).map(|number| Parcel { tier_before: "none".into(), ..parcel(number, "low", 10_600) });
    let resolved = (NEW + 1..=ALL).map(|number| Parcel { tier_before: "low".into(), r: None, ..parcel(number, "none", 0) });
    world.fill_records(&TABLES, &new.chain(resolved).collect::<Vec<Parcel>>()).await;
    let rows = [
        (current_cycle("cook-il"), json!({ "cycle": "2026-board", "since": "2026-11-01" })),
        (delta_counts("cook-il", "2026-board"), json!({ "new": NEW, "resolved": ALL - NEW })),
    ];
    keep_counts(&world, &rows).await;
    let context = world.context(NOW_MS);
    let route = operation::<delta::Arguments>();
    let pins = |page: &Value, list: &str| {
        page[list].as_array().unwrap().iter().map(|row| row["pin"].as_str().unwrap().to_owned()).collect::<Vec<String>>()
    };
    let free = value(&context, &route, json!({ "limit": 200 })).await;
    assert_eq!((&free["counts"], &free["next"]), (&rows[1].1, &Value::Null), "{free}");
    for list in ["new", "resolved"] {
        assert_eq!(pins(&free, list), vec!["16012*********"; 25], "{list}");
    }
    let (mut new, mut resolved, mut arguments) = (Vec::new(), Vec::new(), json!({ "limit": 20 }));
    loop {
        let caller = Caller { tier: Tier::Pro, key_id: "k".into(), account: "a".into(), ..call(&context).caller };
        let page = text((route.run)(Call { caller, ..call(&context) }, arguments.clone()).await.unwrap());
        let page: Value = serde_json::from_str(&page).unwrap();
        assert_eq!(page["counts"], free["counts"]);
        new.extend(pins(&page, "new"));
        resolved.extend(pins(&page, "resolved"));
        match page["next"].as_str() {
            Some(next) => arguments["after"] = json!(next),
            None => break,
        }
    }
    assert_eq!((new.len(), resolved.len()), (30, 28));
    let (last, forged) = (arguments["after"].as_str().unwrap(), ["xx", "new.xx", "resolved.xx"]);
    for after in forged {
        let refused = (route.run)(call(&context), json!({ "after": after })).await.unwrap_err();
        assert_eq!((refused.code, refused.parameter.as_str()), (ErrorCode::CursorInvalid, "after"), "{after}");
    }
    for after in [last, "resolved."] {
        let first = value(&context, &route, json!({ "limit": 200, "after": after })).await;
        assert_eq!((&first["new"], &first["resolved"], &first["next"]), (&free["new"], &free["resolved"], &Value::Null), "{after}");
        assert!(first["note"].as_str().unwrap().contains("the first page again"), "{first}");
    }
    let whole: BTreeSet<String> = new.into_iter().chain(resolved).collect();
    assert_eq!(whole, (1..=ALL).map(|number| parcel(number, "low", 0).pin).collect::<BTreeSet<String>>());
}
