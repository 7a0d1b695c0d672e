//! The check as callers meet it: over changes of marks that a test records, with the index that follows them.

use std::sync::Arc;

use crate::record::{TABLES, Trademark};
use feed::testing::records::RecordView;
use feed::testing::{HOUR_MS, START_MS, World, ask, value};
use operation::Operation;
use operation::context::{Context, Part};
use serde_json::{Value, json};

use crate::operations::check::Arguments;
use crate::operations::register::Register;
use reads::read;

/// A register with the check. One change is recorded an hour from 2026-11-01T00:00:00Z on, and now is long after all of them.
struct Office {
    view: RecordView<Trademark>,
    context: Arc<Context>,
    check: Operation,
    changes: i64,
    _world: World,
}

impl Office {
    async fn new() -> Self {
        let world = World::new().await;
        let (view, context) = (RecordView::new(&*world.store, &TABLES).await, world.context(START_MS + 1_000 * HOUR_MS));
        tokio::spawn(Register::of(&context).follow(Arc::clone(&context.store), None));
        Self { view, context, check: read::operation::<Arguments>(), changes: 0, _world: world }
    }

    /// Records a version of a mark.
    async fn record(&mut self, serial: u32, mark: &str, class: i64, status: &str) {
        let (mark, status) = (mark.to_owned(), status.to_owned());
        self.record_all(
            serial,
            Trademark { mark, status, owner: "HILL FOODS LLC".into(), intl_class: vec![class], ..Trademark::default() },
        )
        .await;
    }

    /// Records a version of a mark with all its fields but the serial number.
    async fn record_all(&mut self, serial: u32, record: Trademark) {
        let serial = format!("{serial:08}");
        self.view.change(START_MS + self.changes * HOUR_MS, &Trademark { id: serial.clone(), serial, ..record });
        self.changes += 1;
        self.view.commit().await;
    }

    async fn check(&self, arguments: Value) -> Value {
        value(&self.context, &self.check, arguments).await
    }
}

/// The serial numbers of the marks that an answer shows.
fn serials(answer: &Value) -> Vec<&str> {
    answer["similarMarks"].as_array().unwrap().iter().filter_map(|mark| mark["serial"].as_str()).collect()
}

/// Proves the answers about a free name, a taken one, and one of which a letter is swapped, in all classes, in that of the mark and in another one.
#[tokio::test]
async fn verdicts() {
    let mut office = Office::new().await;
    office.record(97_000_101, "VELTRAXON", 9, "live").await;
    office.record(97_000_102, "MORVANDA", 30, "live").await;
    let free = office.check(json!({ "name": "Quillbrisk" })).await;
    assert_eq!((&free["verdict"], &free["available"]), (&json!("LIKELY_AVAILABLE"), &json!(true)));
    assert_eq!((&free["counts"], &free["similarMarks"]), (&json!({ "exact": 0, "strong": 0, "partial": 0 }), &json!([])));
    assert!(free["disclaimer"].as_str().unwrap().starts_with("Not legal advice."));
    assert_eq!((&free["corpus"]["marks"], &free["corpus"]["liveMarks"], &free["classes"]), (&json!(2), &json!(2), &json!([])));
    assert!(free.get("otherClassCounts").is_none() && free.get("note").is_none(), "{free}");
    let taken = office.check(json!({ "name": "Veltraxon, Inc." })).await;
    assert_eq!((&taken["verdict"], &taken["available"], &taken["counts"]["exact"]), (&json!("LIKELY_TAKEN"), &json!(false), &json!(1)));
    let mark = &taken["similarMarks"][0];
    assert_eq!((&mark["rule"], &mark["tier"], &mark["intlClass"]), (&json!("E1"), &json!("exact"), &json!([9])));
    assert_eq!((&mark["mark"], &mark["owner"], &mark["registration"]), (&json!("VELTRAXON"), &json!("HILL FOODS LLC"), &json!("")));
    assert_eq!((&taken["name"], &taken["normalized"]), (&json!("Veltraxon, Inc."), &json!("VELTRAXON")));
    let swapped = office.check(json!({ "name": "Vetlraxon", "class": [9] })).await;
    assert_eq!((&swapped["verdict"], &swapped["similarMarks"][0]["rule"]), (&json!("CAUTION"), &json!("S3")));
    assert_eq!(swapped["otherClassCounts"], json!({ "exact": 0, "strong": 0 }));
    let other = office.check(json!({ "name": "Vetlraxon", "class": [25, 30] })).await;
    assert_eq!(
        (&other["verdict"], &other["counts"]["strong"], &other["classes"]),
        (&json!("LIKELY_AVAILABLE"), &json!(0), &json!([25, 30]))
    );
    assert_eq!((serials(&other).len(), &other["otherClassCounts"]), (0, &json!({ "exact": 0, "strong": 1 })));
}

/// Proves the worked examples of the contract as answers: each name in the class of its mark, with the rule, the tier and the verdict.
#[tokio::test]
async fn worked_examples() {
    let examples = [
        ("Turcool", "TRUCOOL", "live", "S3", "strong", "CAUTION"),
        ("Seiko", "SEYCOS", "live", "S4", "strong", "CAUTION"),
        ("Kressco", "CRESCO", "live", "S4", "strong", "CAUTION"),
        ("Commcash", "COMMUNICASH", "live", "S6", "strong", "CAUTION"),
        ("TRUE1", "TRUONE", "live", "S3", "strong", "CAUTION"),
        ("Lutexal", "LUTEX", "live", "P3", "partial", "LIKELY_AVAILABLE"),
        ("Maya", "MAYARI", "live", "", "", "LIKELY_AVAILABLE"),
        ("Delta Cafe", "DELTA", "live", "S5", "strong", "CAUTION"),
        ("Acme", "ACME", "dead", "", "", "LIKELY_AVAILABLE"),
        ("Acme", "ACME", "unknown", "E1", "strong", "CAUTION"),
    ];
    let mut office = Office::new().await;
    for (number, (_, mark, status, ..)) in (1_u32..).zip(examples) {
        office.record(97_000_200 + number, mark, i64::from(number), status).await;
    }
    for (number, (name, mark, status, rule, tier, verdict)) in (1_u32..).zip(examples) {
        let answer = office.check(json!({ "name": name, "class": [number] })).await;
        let shown: Vec<(&str, &str)> = answer["similarMarks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|similar| (similar["rule"].as_str().unwrap(), similar["tier"].as_str().unwrap()))
            .collect();
        let expected = if rule.is_empty() { vec![] } else { vec![(rule, tier)] };
        assert_eq!(shown, expected, "{name} and {mark}, {status}");
        let counts = ["exact", "strong", "partial"].map(|of| answer["counts"][of] == json!(u64::from(of == tier)));
        assert_eq!(counts, [true; 3], "{answer}");
        assert_eq!(
            (&answer["verdict"], &answer["available"]),
            (&json!(verdict), &json!(verdict == "LIKELY_AVAILABLE")),
            "{name} and {mark}, {status}"
        );
    }
}

/// Proves that an answer has every field of the contract, and that a similar mark is shown with all of its own.
#[tokio::test]
async fn fields_of_an_answer() {
    let mut office = Office::new().await;
    let record = Trademark {
        registration: "7000301".into(),
        mark: "VELTRAXON".into(),
        owner: "HILL FOODS LLC; BO HILL".into(),
        intl_class: vec![9, 200],
        other_classes: vec!["A".into()],
        status: "live".into(),
        status_code: "700".into(),
        filing_date: "2021-08-26".into(),
        ..Trademark::default()
    };
    office.record_all(97_000_301, record).await;
    let answer = office.check(json!({ "name": "Vetlraxon", "class": [9] })).await;
    let mark = json!({
        "mark": "VELTRAXON",
        "owner": "HILL FOODS LLC; BO HILL",
        "tier": "strong",
        "rule": "S3",
        "why": "one letter differs of 9 letters",
        "intlClass": [9, 200],
        "otherClasses": ["A"],
        "serial": "97000301",
        "registration": "7000301",
        "status": "live",
        "statusCode": "700",
        "filingDate": "2021-08-26",
        "url": "https://tsdr.uspto.gov/#caseNumber=97000301&caseType=SERIAL_NO&searchType=statusSearch",
    });
    assert_eq!(answer["similarMarks"], json!([mark]));
    for field in [
        "verdict",
        "available",
        "counts",
        "similarMarks",
        "disclaimer",
        "name",
        "normalized",
        "classes",
        "otherClassCounts",
        "corpus",
        "rulesVersion",
        "wordsVersion",
    ] {
        assert!(answer.get(field).is_some(), "{field} of {answer}");
    }
    for field in ["marks", "liveMarks", "throughDate"] {
        assert!(answer["corpus"].get(field).is_some(), "{field} of {answer}");
    }
}

/// Proves that a dead mark does not count, that it counts when it revives, that one of unknown status counts one tier lower, and that an answer as of
/// an earlier time has what was recorded then.
#[tokio::test]
async fn marks_that_die_and_revive() {
    let mut office = Office::new().await;
    for status in ["live", "dead", "live", "unknown"] {
        office.record(97_000_102, "MORVANDA", 30, status).await;
        let now = office.check(json!({ "name": "Morvanda" })).await;
        let (verdict, tier) = match status {
            "live" => ("LIKELY_TAKEN", json!("exact")),
            "unknown" => ("CAUTION", json!("strong")),
            _ => ("LIKELY_AVAILABLE", Value::Null),
        };
        assert_eq!((&now["verdict"], &now["similarMarks"][0]["tier"]), (&json!(verdict), &tier), "{status}");
    }
    for (hour, verdict) in [(0, "LIKELY_TAKEN"), (1, "LIKELY_AVAILABLE"), (2, "LIKELY_TAKEN"), (3, "CAUTION")] {
        let then = office.check(json!({ "name": "Morvanda", "asOf": format!("2026-11-01T{hour:02}:30:00Z") })).await;
        assert_eq!(then["verdict"], json!(verdict), "{hour}");
    }
}

/// Proves that a caller without a key gets at most 25 marks, that a note says so if and only if marks are left out, and that the counts have all.
#[tokio::test]
async fn limits() {
    let mut office = Office::new().await;
    office.record(97_000_000, "NIMBARRO", 42, "live").await;
    let one = office.check(json!({ "name": "Nimbarro", "limit": 100 })).await;
    assert!(serials(&one) == ["97000000"] && one.get("note").is_none(), "{one}");
    for serial in 1..30 {
        office.record(97_000_000 + serial, "NIMBARRO", 42, "live").await;
    }
    let all = office.check(json!({ "name": "Nimbarro", "limit": 100 })).await;
    assert_eq!((serials(&all).len(), &all["counts"]["exact"]), (25, &json!(30)));
    assert!(all["note"].as_str().unwrap().contains("limited to 25 rows"), "{all}");
    let some = office.check(json!({ "name": "Nimbarro", "limit": 3 })).await;
    assert_eq!(serials(&some), ["97000000", "97000001", "97000002"]);
    assert!(some.get("note").is_none() && some["counts"]["exact"] == 30, "{some}");
}

/// Proves that an answer says so if no marks are recorded or if the name is not in Latin letters, and that a name without letters is refused.
#[tokio::test]
async fn notes_and_refusals() {
    let mut office = Office::new().await;
    let empty = office.check(json!({ "name": "Quillbrisk" })).await;
    assert!(empty["note"].as_str().unwrap().contains("no marks are recorded yet"), "{empty}");
    assert!(empty["disclaimer"].as_str().unwrap().contains("that are recorded so far"), "{empty}");
    office.record(97_000_103, "КОШКА", 25, "live").await;
    let cyrillic = office.check(json!({ "name": "Кошки" })).await;
    assert_eq!((&cyrillic["verdict"], &cyrillic["similarMarks"][0]["rule"]), (&json!("CAUTION"), &json!("S3")));
    assert!(cyrillic["note"].as_str().unwrap().contains("not written in Latin letters"), "{cyrillic}");
    let refused = ask(&office.context, &office.check, json!({ "name": "?!" })).await.unwrap_err();
    assert_eq!((refused.code.as_str(), refused.parameter.as_str()), ("parameter-invalid", "name"));
}
