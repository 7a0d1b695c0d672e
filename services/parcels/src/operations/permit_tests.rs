//! The tools about permits as callers meet them: over records that a test writes, as of several days.

use std::sync::Arc;

use crate::record::permit::{Building, Permit};
use crate::record::{Parcel, TABLES};
use bytes::Bytes;
use feed::testing::{HOUR_MS, START_MS, World, ask, call, text, value};
use operation::context::Context;
use operation::{Call, Operation, Stage};
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::suppression::{RECORD, SuppressionRow};
use schemas::tables::Write;
use schemas::views::accounts::{SUPPRESSIONS, VIEW as ACCOUNTS};
use serde_json::{Value, json};

use super::{construction, stalled};
use reads::read::operation;

/// 2026-11-20T00:00:00Z, 19 days after the first record.
const NOW_MS: i64 = START_MS + 19 * 24 * HOUR_MS;

/// A permit for new construction on a parcel of its own, in the township with an even or an odd code.
fn permit(number: usize, issued: &str, change: impl FnOnce(&mut Permit)) -> Parcel {
    let mut permit = Permit {
        number: format!("P{number}"),
        status: "OPEN".into(),
        assessable: true,
        major: true,
        issued: issued.into(),
        amount: Some(100_000 * i64::try_from(number).unwrap()),
        job_code: "COMMERCIAL PERMIT: NEW BUILDING".into(),
        building: Building { year: Some(2024), value: Some(5), ..Building::default() },
        ..Permit::default()
    };
    change(&mut permit);
    let pin = format!("16012160{number:02}0000");
    Parcel {
        id: format!("cook-il/{pin}/permit/P{number}"),
        pin,
        county: "cook-il".into(),
        township: "West Chicago".into(),
        township_code: "77".into(),
        permit: Some(Box::new(permit)),
        ..Parcel::default()
    }
}

async fn county(records: &[Parcel]) -> (World, Arc<Context>) {
    let world = World::new().await;
    world.fill_records(&TABLES, records).await;
    let context = world.context(NOW_MS);
    (world, context)
}

/// Hides records on request.
pub(super) async fn hide(context: &Context, records: &[Parcel]) {
    let row = Bytes::from(serde_json::to_vec(&SuppressionRow::default()).unwrap());
    let key = |record: &Parcel| key![RECORD.name, RECORD.normalize(&format!("parcels/{}", record.id)).unwrap()];
    let writes = records.iter().map(|record| Write::put(&SUPPRESSIONS, key(record), row.clone())).collect();
    let accounts = context.store.live(&ACCOUNTS).await.unwrap();
    let mut checkpoint = accounts.checkpoint().await.unwrap();
    checkpoint.seq = checkpoint.seq.next();
    accounts.commit(writes, &checkpoint).await.unwrap();
}

fn numbers(answer: &Value) -> Vec<&str> {
    answer["leads"].as_array().unwrap().iter().map(|lead| lead["number"].as_str().unwrap()).collect()
}

/// Proves which permits are in the list of the window, in which order, with which window; what `days`, `minAmount`, `township`, pages and `asOf` do; and that a
/// window without a median says so.
#[tokio::test]
async fn permits_in_their_window() {
    let records = [
        permit(1, "2026-11-20", |_| ()),
        permit(2, "2025-11-20", |_| ()),
        permit(3, "2025-11-19", |_| ()),
        permit(4, "2026-03-01", |permit| permit.amount = None),
        permit(5, "2026-06-30", |_| ()),
        permit(6, "2026-06-30", |permit| permit.closed = true),
        permit(7, "2026-06-30", |permit| permit.major = false),
        permit(8, "2026-12-24", |_| ()),
    ];
    let (_world, context) = county(&records).await;
    let tool = operation::<construction::Arguments>();
    let found = value(&context, &tool, json!({})).await;
    assert_eq!((numbers(&found), &found["total"], &found["next"]), (vec!["P1", "P5", "P4", "P2"], &json!(4), &Value::Null));
    let first = &found["leads"][0];
    assert_eq!(
        (&first["pin"], &first["status"], &first["amount"], &first["issued"]),
        (&json!("16012160010000"), &json!("OPEN"), &json!(100_000), &json!("2026-11-20"))
    );
    assert_eq!(first["window"], json!({ "from": "2026-11-20", "to": "2028-11-20", "months": 24, "basis": "default", "cases": 0 }));
    assert_eq!(found["rule"], "construction-window/1");
    assert!(found["note"].as_str().unwrap().contains("24 months"), "{found}");
    for (arguments, expected) in [
        (json!({ "days": 730 }), vec!["P1", "P5", "P4", "P2", "P3"]),
        (json!({ "days": 366 }), vec!["P1", "P5", "P4", "P2", "P3"]),
        (json!({ "days": 1 }), vec!["P1"]),
        (json!({ "minAmount": 200_000 }), vec!["P5", "P2"]),
        (json!({ "minAmount": 0 }), vec!["P1", "P5", "P4", "P2"]),
        (json!({ "township": "west chicago" }), vec!["P1", "P5", "P4", "P2"]),
        (json!({ "township": "70" }), vec![]),
        // On 1 November the records of the first hours were there; the first of them was not issued yet.
        (json!({ "asOf": "2026-11-01T06:30:00Z" }), vec!["P5", "P4", "P2", "P3"]),
    ] {
        let found = value(&context, &tool, arguments.clone()).await;
        assert_eq!(numbers(&found), expected, "{arguments}");
    }
    let page = value(&context, &tool, json!({ "limit": 3 })).await;
    let rest = value(&context, &tool, json!({ "limit": 3, "after": page["next"] })).await;
    assert_eq!((numbers(&page), numbers(&rest)), (vec!["P1", "P5", "P4"], vec!["P2"]));
    let other = ask(&context, &tool, json!({ "days": 30, "after": page["next"] })).await.unwrap_err();
    assert_eq!(other.code, ErrorCode::CursorInvalid);
    let unpaid = async |arguments: Value| (tool.run)(Call { stage: Stage::Preview, ..call(&context) }, arguments).await;
    assert!(unpaid(json!({ "after": page["next"] })).await.is_ok(), "the place of a page of the same query");
    assert_eq!(unpaid(json!({ "days": 30, "after": page["next"] })).await.unwrap_err().code, ErrorCode::CursorInvalid);
    for tool in [tool, operation::<stalled::Arguments>()] {
        // A ward of the other county, of which no permit is listed.
        let refused = ask(&context, &tool, json!({ "township": "104" })).await.unwrap_err();
        assert_eq!((refused.code, refused.parameter.as_str()), (ErrorCode::ParameterInvalid, "township"));
    }
}

/// Proves that a permit is stalled from the day after its window and six months on, that only large ones are listed by default, and that each row says that it is an
/// inference.
#[tokio::test]
async fn stalled_permits() {
    let records = [
        permit(3, "2024-05-19", |_| ()),
        permit(4, "2024-05-20", |_| ()),
        permit(2, "2022-01-01", |_| ()),
        permit(5, "2023-01-01", |permit| permit.status = "LEGACY".into()),
        permit(6, "2023-01-01", |permit| permit.closed = true),
        permit(7, "2023-01-01", |permit| permit.building.risen_in = Some(2025)),
        permit(8, "2023-01-01", |permit| permit.assessable = false),
        permit(9, "2023-06-01", |permit| permit.major = false),
    ];
    let (_world, context) = county(&records).await;
    let tool = operation::<stalled::Arguments>();
    let found = value(&context, &tool, json!({})).await;
    assert_eq!((numbers(&found), &found["total"]), (vec!["P5", "P9", "P3"], &json!(3)));
    for lead in found["leads"].as_array().unwrap() {
        assert_eq!(lead["statement"], "an inference from status and recency, not a verified work stoppage");
    }
    assert_eq!((&found["leads"][2]["window"]["to"], &found["leads"][2]["pastSince"]), (&json!("2026-05-19"), &json!("2026-11-19")));
    for (arguments, expected) in [
        (json!({ "minAmount": 100_000 }), vec!["P2", "P5", "P9", "P3"]),
        (json!({ "minAmount": 500_000 }), vec!["P5", "P9"]),
        (json!({ "township": "77" }), vec!["P5", "P9", "P3"]),
        (json!({ "township": "70" }), vec![]),
        (json!({ "asOf": "2026-11-19" }), vec!["P5", "P9"]),
    ] {
        let found = value(&context, &tool, arguments.clone()).await;
        assert_eq!(numbers(&found), expected, "{arguments}");
    }
}

/// Proves that an unpaid call gets true numbers and three masked rows, the same whatever days and amounts it asks for, and a note that says what is counted.
#[tokio::test]
async fn previews() {
    let records: Vec<Parcel> = (1..=9).map(|number| permit(number, &format!("2026-0{number}-11"), |_| ())).collect();
    let old: Vec<Parcel> = (11..=19).map(|number| permit(number, &format!("2022-0{}-11", number - 10), |_| ())).collect();
    let (_world, context) = county(&[records, old].concat()).await;
    let preview = async |tool: &Operation, arguments: Value| {
        let asked = Call { stage: Stage::Preview, ..call(&context) };
        text((tool.run)(asked, arguments).await.unwrap())
    };
    let (window, past) = (operation::<construction::Arguments>(), operation::<stalled::Arguments>());
    for (tool, usual, others) in [
        (&window, json!({}), [json!({ "days": 30 }), json!({ "minAmount": 900_000 }), json!({ "limit": 50 })]),
        (&past, json!({}), [json!({ "minAmount": 1_900_000 }), json!({ "minAmount": 0 }), json!({ "limit": 1 })]),
    ] {
        let shown = preview(tool, usual).await;
        let read: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!((&read["total"], read["leads"].as_array().unwrap().len()), (&json!(9), 3), "{shown}");
        assert_eq!(read["leads"][0]["pin"], "16012*********");
        assert!(!shown.contains("-11") && !shown.contains("1601216"), "{shown}");
        assert!(read["note"].as_str().unwrap().contains("this preview counts"), "{shown}");
        for other in others {
            assert_eq!(preview(tool, other.clone()).await, shown, "{other}");
        }
    }
}

/// Proves that the numbers of previews do not change on the day on which a permit leaves its window, or becomes stalled, but with the year that rows show.
#[tokio::test]
async fn previews_tell_no_day() {
    let records = [permit(4, "2025-11-11", |_| ()), permit(5, "2024-05-13", |_| ()), permit(6, "2023-05-13", |_| ())];
    let (_world, context) = county(&records).await;
    for (tool, total) in [(operation::<construction::Arguments>(), 1), (operation::<stalled::Arguments>(), 1)] {
        for as_of in ["2026-11-10", "2026-11-11", "2026-11-12", "2026-11-13", "2026-11-14"] {
            let asked = Call { stage: Stage::Preview, ..call(&context) };
            let shown = text((tool.run)(asked, json!({ "asOf": as_of })).await.unwrap());
            let read: Value = serde_json::from_str(&shown).unwrap();
            assert_eq!(read["total"], total, "{} {as_of}", tool.name);
        }
    }
}

/// Proves that a permit that operators hide is in no list, so that neither `days` nor `minAmount` tells its day and amount, and that answers say how many are hidden,
/// the same whatever they are asked for.
#[tokio::test]
async fn hidden_permits_are_left_out() {
    let records = [
        permit(1, "2026-11-10", |_| ()),
        permit(4, "2026-11-09", |_| ()),
        permit(5, "2023-01-01", |_| ()),
        permit(6, "2023-01-02", |_| ()),
    ];
    let (_world, context) = county(&records).await;
    let (window, past) = (operation::<construction::Arguments>(), operation::<stalled::Arguments>());
    assert_eq!(numbers(&value(&context, &window, json!({})).await), ["P1", "P4"]);
    assert_eq!(numbers(&value(&context, &past, json!({})).await), ["P5", "P6"]);
    hide(&context, &[records[1].clone(), records[3].clone()]).await;
    for (tool, arguments, expected, total) in [
        (&window, json!({}), vec!["P1"], 1),
        (&window, json!({ "days": 10 }), vec!["P1"], 1),
        (&window, json!({ "days": 730 }), vec!["P1"], 1),
        (&window, json!({ "minAmount": 400_000 }), vec![], 0),
        (&past, json!({}), vec!["P5"], 1),
        (&past, json!({ "minAmount": 0 }), vec!["P5"], 1),
        (&past, json!({ "minAmount": 600_000 }), vec![], 0),
    ] {
        let found = value(&context, tool, arguments.clone()).await;
        assert_eq!((numbers(&found), &found["total"]), (expected, &json!(total)), "{arguments}");
        let hidden = if std::ptr::eq(tool, &window) { 1 } else { 2 };
        let note = found["note"].as_str().unwrap();
        assert!(note.contains(&format!("of any day and amount that are hidden on request and left out: {hidden}")), "{note}");
    }
}
