//! What facts of the register become, in any order.

use schemas::change::ChangeKind;
use schemas::facts::marks::MarkClass;

use super::*;
use fold::testing::{self, Folded};

type Engine = Folded<Names>;

/// What the tests ask of the service in memory.
trait TestMethods {
    fn observe(&mut self, data: MarkFact);
    fn record(&self, serial: &str) -> Trademark;
    fn kinds(&self) -> Vec<ChangeKind>;
}

impl TestMethods for Engine {
    fn observe(&mut self, data: MarkFact) {
        let key = format!("uspto_trademarks/{}", data.serial);
        let fact = Fact { upstream: "uspto_trademarks".to_owned(), ..testing::fact(key, FactKind::Observed, 0, Some(data)) };
        self.decide(&fact);
    }

    fn record(&self, serial: &str) -> Trademark {
        self.records().remove(serial).unwrap()
    }

    fn kinds(&self) -> Vec<ChangeKind> {
        self.changes.iter().map(|change| change.event).collect()
    }
}

fn fact(status_code: &str, classes: &[&str]) -> MarkFact {
    let class = |code: &&str| MarkClass { code: (*code).to_owned(), status_code: "6".to_owned(), ..MarkClass::default() };
    MarkFact {
        serial: "97000001".into(),
        mark: "TRUCOOL".into(),
        owners: vec!["Hill Foods LLC".into(), "Bo Hill".into()],
        status_code: status_code.into(),
        filing_date: "2021-08-26".into(),
        classes: classes.iter().map(class).collect(),
        ..MarkFact::default()
    }
}

/// Proves which record a full fact becomes, and that a later full fact replaces all of it, also a class that it omits.
#[test]
fn full_records() {
    let first = record_of("97000001", &fact("700", &["043", "041", "043", "A"]), None);
    assert_eq!((first.status.as_str(), first.owner.as_str()), ("live", "Hill Foods LLC; Bo Hill"));
    assert_eq!((&first.intl_class[..], &first.other_classes[..]), (&[41, 43][..], &["A".to_owned()][..]));
    let renamed = MarkFact { mark: "TRUCOLD".into(), owners: vec!["Bo Hill".into()], ..fact("602", &["041"]) };
    let second = record_of("97000001", &renamed, Some(first));
    assert_eq!((second.mark.as_str(), second.status.as_str(), second.owner.as_str()), ("TRUCOLD", "dead", "Bo Hill"));
    assert_eq!((&second.intl_class[..], second.other_classes.len()), (&[41][..], 0));
}

/// Proves that a sparse fact changes the status, and leaves mark, owner and classes as they are.
#[test]
fn sparse_records() {
    let first = record_of("97000001", &fact("630", &["009"]), None);
    let sparse = MarkFact { status_code: "602".into(), registration: "7000001".into(), sparse: true, ..MarkFact::default() };
    let second = record_of("97000001", &sparse, Some(first.clone()));
    let expected = Trademark { status: "dead".into(), status_code: "602".into(), registration: "7000001".into(), ..first };
    assert_eq!(second, expected);
    let alone = record_of("97000001", &sparse, None);
    assert_eq!((alone.mark.as_str(), alone.status.as_str()), ("", "dead"));
}

/// Proves that facts in any order give the record of the latest transaction, and that a fact with an earlier one changes nothing.
#[test]
fn the_latest_transaction_wins_in_any_order() {
    let on = |day: &str, status_code: &str| MarkFact { transaction_date: day.into(), ..fact(status_code, &["009"]) };
    let facts = [on("2026-07-14", "630"), on("2026-07-15", "602"), on("2026-07-26", "616")];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut engine = Engine::default();
        order.into_iter().for_each(|at| engine.observe(facts[at].clone()));
        assert_eq!(engine.record("97000001").status_code, "616", "{order:?}");
        assert!(order != [2, 1, 0] || engine.kinds() == [ChangeKind::New], "{:?}", engine.kinds());
    }
}

/// Proves that a sparse record leaves the words of the latest full record in any order of reading, also if it is read first.
#[test]
fn a_sparse_record_keeps_the_words_in_any_order() {
    let renamed = MarkFact { mark: "TRUCOLD".into(), transaction_date: "2026-07-15".into(), ..fact("630", &["009", "A"]) };
    let first = MarkFact { transaction_date: "2026-07-14".into(), registration: "7000001".into(), ..fact("630", &["009"]) };
    let sparse = MarkFact {
        serial: first.serial.clone(),
        status_code: "602".into(),
        transaction_date: "2026-07-26".into(),
        sparse: true,
        ..MarkFact::default()
    };
    let facts = [first, renamed, sparse];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut engine = Engine::default();
        order.into_iter().for_each(|at| engine.observe(facts[at].clone()));
        let record = engine.record("97000001");
        assert_eq!((record.mark.as_str(), record.status_code.as_str()), ("TRUCOLD", "602"), "{order:?}");
        assert_eq!((record.owner.as_str(), record.other_classes.len()), ("Hill Foods LLC; Bo Hill", 1), "{order:?}");
        engine.observe(MarkFact { transaction_date: "2026-07-20".into(), ..fact("616", &["025"]) });
        let record = engine.record("97000001");
        assert_eq!((record.mark.as_str(), record.status_code.as_str(), &record.intl_class[..]), ("TRUCOOL", "602", &[25][..]), "{order:?}");
        engine.assert_rebuilds();
    }
}

/// Proves that days which an earlier version remembered as one text are read, and that a record without words takes those of an older full record.
#[test]
fn days_of_an_earlier_version() {
    let read = |text: &str| serde_json::from_str::<Days>(text).unwrap();
    assert_eq!(read("\"2026-07-14\""), Days::new("2026-07-14", Some("2026-07-14")));
    let later = Days::new("2026-07-26", Some("2026-07-14"));
    assert_eq!(read(&serde_json::to_string(&later).unwrap()), later);
    assert!(is_described(&described("1", &fact("630", &[]))) && !is_described(&Trademark::default()));
}

/// Proves that a later day of the last transaction alone is no change for readers and is remembered all the same, and that a dead mark which
/// revives is a change that says so.
#[test]
fn what_readers_see() {
    let on = |day: &str, status_code: &str| MarkFact { transaction_date: day.into(), ..fact(status_code, &["009"]) };
    let mut engine = Engine::default();
    engine.observe(on("2026-07-14", "602"));
    engine.observe(on("2026-07-16", "602"));
    engine.observe(on("2026-07-15", "630"));
    assert_eq!((engine.kinds(), engine.record("97000001").status.as_str()), (vec![ChangeKind::New, ChangeKind::Noted], "dead"));
    engine.observe(on("2026-07-26", "616"));
    let change = engine.changes.last().unwrap();
    let details = NamesRules::change_details(change.after.as_ref().unwrap(), change);
    assert_eq!((change.event, details.status_before.as_deref()), (ChangeKind::Modified, Some("dead")));
    engine.observe(MarkFact { transaction_date: String::new(), ..fact("606", &["009"]) });
    engine.observe(on("2026-07-20", "630"));
    assert_eq!(engine.record("97000001").status_code, "606", "a record without a day counts, and the day is remembered");
}

/// Proves that the serial number is the last part of a fact's key.
#[test]
fn serials() {
    assert_eq!((serial_of("uspto_trademarks/97000001"), serial_of("97000001")), ("97000001", "97000001"));
}
