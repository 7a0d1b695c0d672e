//! Answers about the current state of records, from facts that a test writes: which changes are news, which records a filter finds, and how long lists
//! continue.

use std::collections::BTreeSet;

use jiff::Timestamp;
use schemas::clock::Clock;
use schemas::error_code::ErrorCode;
use schemas::facts::FactData;
use schemas::facts::awards::{AwardFact, kind};
use schemas::facts::filings::FilingFact;
use schemas::facts::grants::GrantFact;
use schemas::facts::trials::TrialFact;
use schemas::views::accounts::Tier;
use serde_json::{Value, json};

use crate::api::{LocalApi, Writer};

const NOW: &str = "2026-11-24T12:00:00Z";

/// An engine in which a test writes facts.
struct Written {
    api: LocalApi,
    writer: Writer,
    at_ms: i64,
    _dir: tempfile::TempDir,
}

impl Written {
    async fn begin() -> Self {
        let (dir, now) = (tempfile::tempdir().unwrap(), NOW.parse::<Timestamp>().unwrap());
        let api = LocalApi::open(&dir.path().join("data"), Clock::Fixed(now), None).await;
        Self { api, writer: Writer::default(), at_ms: now.as_millisecond(), _dir: dir }
    }

    /// Appends facts by key, and decides them one after another.
    async fn write(&mut self, facts: Vec<(String, FactData)>) {
        for (key, fact) in facts {
            let append = self.writer.observe(&key, &fact, self.at_ms);
            self.api.append(vec![append]).await;
            self.api.decide().await;
        }
    }

    async fn ask(&self, service: &str, operation: &str, arguments: Value) -> Value {
        self.api.ask(service, operation, &arguments, Tier::Pro).await.unwrap_or_else(|problem| panic!("{arguments}: {problem:?}"))
    }
}

/// The texts of a field of all items of a list.
fn texts(answer: &Value, list: &str, field: &str) -> Vec<String> {
    answer[list].as_array().unwrap().iter().map(|item| item[field].as_str().unwrap().to_owned()).collect()
}

fn award(id: &str, dollars: i64) -> (String, FactData) {
    let fact = AwardFact {
        stream: "usaspending.awards".to_owned(),
        kind: kind::AWARD.to_owned(),
        award_id: id.to_owned(),
        recipient: "ACME LLC".to_owned(),
        naics: "541512".to_owned(),
        amount_cents: Some(dollars * 100),
        signed: "2026-11-01".to_owned(),
        ..AwardFact::default()
    };
    (format!("usaspending.awards/{id}"), FactData::Award(Box::new(fact)))
}

fn action(id: &str, number: &str, day: &str, dollars: i64) -> (String, FactData) {
    let fact = AwardFact {
        stream: "usaspending.transactions".to_owned(),
        kind: kind::ACTION.to_owned(),
        award_id: id.to_owned(),
        recipient: "ACME LLC".to_owned(),
        naics: "541512".to_owned(),
        modification: number.to_owned(),
        action_date: day.to_owned(),
        action_cents: Some(dollars * 100),
        ..AwardFact::default()
    };
    (format!("usaspending.transactions/{id}/{number}"), FactData::Award(Box::new(fact)))
}

/// Proves that an action of long ago that is recorded now has its own date and is no news: the feed and the digest have it only on request, and the
/// digest counts it; that the delta of a change is the change of the amount; and that the award counts for its contractor in any case.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_actions_are_no_news() {
    let mut written = Written::begin().await;
    written
        .write(vec![
            award("one", 500),
            action("one", "P00009", "2026-11-20", 40),
            award("one", 540),
            // Published late, as actions of the Department of Defense are.
            action("one", "P00008", "2026-08-20", 20),
            award("two", 100),
            action("two", "0", "2025-01-05", 100),
            action("one", "P00002", "2025-03-01", 30),
        ])
        .await;
    let changes = async |arguments: Value| -> Vec<Value> {
        let page = written.ask("awards", "whats_changed_since", arguments).await;
        let shown = |change: &Value| {
            let [delta, amount] = ["amountDelta", "actionAmount"].map(|name| change[name].as_f64());
            json!([change["id"], change["modification"], change["date"], delta, amount, change["backfill"]])
        };
        page["changes"].as_array().unwrap().iter().map(shown).collect()
    };
    let all = [
        json!(["one", "", "2026-11-01", 500.0, null, false]),
        json!(["one", "P00009", "2026-11-20", 0.0, 40.0, false]),
        json!(["one", "P00009", "2026-11-20", 40.0, null, false]),
        json!(["one", "P00008", "2026-08-20", 0.0, 20.0, false]),
        json!(["two", "", "2026-11-01", 100.0, null, false]),
        json!(["two", "0", "2025-01-05", 0.0, 100.0, true]),
        json!(["one", "P00002", "2025-03-01", 0.0, 30.0, true]),
    ];
    let news: Vec<Value> = all.iter().filter(|change| change[5] == false).cloned().collect();
    assert_eq!(changes(json!({ "start": "earliest" })).await, news);
    assert_eq!(changes(json!({ "start": "earliest", "includeBackfill": true })).await, all);

    let digest = written.ask("awards", "delta_digest", json!({ "naics": "54" })).await;
    assert_eq!((&digest["counts"]["backfill"], digest["amountDelta"].as_f64()), (&json!(2), Some(640.0)));
    assert!(!texts(&digest, "modified", "date").iter().any(|day| day.starts_with("2025")), "{digest}");
    let digest = written.ask("awards", "delta_digest", json!({ "naics": "54", "includeBackfill": true })).await;
    assert_eq!(texts(&digest, "modified", "date").iter().filter(|day| day.starts_with("2025")).count(), 2, "{digest}");

    let contractor = written.ask("awards", "competitor_watch", json!({ "contractor": "acme" })).await;
    assert_eq!((&contractor["awardsCount"], contractor["amount"].as_f64()), (&json!(2), Some(640.0)), "{contractor}");
    assert_eq!(contractor["changes"].as_array().unwrap().len(), news.len());
    let found = written.ask("awards", "search_awards", json!({ "naics": "54" })).await;
    // The last action of the other award is of long ago.
    assert_eq!(texts(&found, "awards", "id"), ["one"]);

    written.api.close().await;
}

fn grant(number: &str, state: &str) -> (String, FactData) {
    let fact = GrantFact {
        number: number.to_owned(),
        title: format!("Study {number}"),
        org: "RICE UNIVERSITY".to_owned(),
        state: state.to_owned(),
        ic: "NCI".to_owned(),
        amount: Some(1_000),
        added: "2026-11-20".to_owned(),
        ..GrantFact::default()
    };
    (format!("nih_reporter/{number}"), FactData::Grant(Box::new(fact)))
}

fn trial(number: &str, phase: &str) -> (String, FactData) {
    let fact =
        TrialFact { number: number.to_owned(), phase: phase.to_owned(), first_posted: "2026-11-20".to_owned(), ..TrialFact::default() };
    (format!("clinical_trials/{number}"), FactData::Trial(Box::new(fact)))
}

/// Proves that new records are filtered by what is shown: a record that came to match is found, one that no longer matches is not, and each has the place
/// of its first recording.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_records_are_filtered_as_they_are_shown() {
    let mut written = Written::begin().await;
    written
        .write(vec![grant("1", "TX"), grant("2", "CA"), grant("3", "TX"), grant("2", "TX"), grant("3", "CA"), trial("4", "PHASE1/PHASE2")])
        .await;
    let found = async |arguments: Value| texts(&written.ask("research", "new_funding", arguments).await, "grants", "id");
    assert_eq!(found(json!({ "state": "TX" })).await, ["grant/2", "grant/1"]);
    assert_eq!(found(json!({ "state": "ca" })).await, ["grant/3"]);
    assert_eq!(found(json!({ "limit": 3 })).await, ["grant/3", "grant/2"]);
    let cut = written.ask("research", "new_funding", json!({ "state": "TX", "limit": 1 })).await;
    assert_eq!((texts(&cut, "grants", "id"), &cut["truncated"]), (vec!["grant/2".to_owned()], &json!(true)));
    let digest = written.ask("research", "delta_digest", json!({ "institution": "rice" })).await;
    assert_eq!((&digest["counts"]["grants"], &digest["older"]), (&json!(3), &json!(0)));
    for phase in ["PHASE1/PHASE2", "phase1", "Phase2"] {
        let found = written.ask("research", "new_funding", json!({ "phase": phase })).await;
        assert_eq!(texts(&found, "trials", "id"), ["trial/4"], "{phase}");
    }
    written.api.close().await;
}

/// Proves that a grant or trial of long ago that is recorded now is in the feed with a mark, and in no list of news, digest or filtered feed unless it is
/// asked for; that a note says so; and that a later change of it is news, while it stays out of the lists of new records.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_funding_is_no_news() {
    let mut written = Written::begin().await;
    let of_day = |(key, fact): (String, FactData), day: &str| match fact {
        FactData::Grant(fact) => (key, FactData::Grant(Box::new(GrantFact { notice_date: day.to_owned(), ..*fact }))),
        FactData::Trial(fact) => (key, FactData::Trial(Box::new(TrialFact { first_posted: day.to_owned(), ..*fact }))),
        other => (key, other),
    };
    let all = ["grant/1", "grant/2", "trial/3", "trial/4"];
    written.write(vec![grant("1", "TX"), of_day(grant("2", "TX"), "2019-06-01"), of_day(trial("3", "PHASE1"), "2001-03-01")]).await;
    written.write(vec![trial("4", "PHASE1")]).await;
    let changes = written.ask("research", "changes", json!({ "start": "earliest" })).await;
    let marks = changes["changes"].as_array().unwrap().iter().map(|change| json!([change["record"]["id"], change["backfill"]]));
    assert_eq!(
        marks.collect::<Vec<_>>(),
        [json!(["grant/1", null]), json!(["grant/2", true]), json!(["trial/3", true]), json!(["trial/4", null])]
    );
    let feed = async |arguments: Value| texts(&written.ask("research", "whats_changed_since", arguments).await, "changes", "id");
    assert_eq!(feed(json!({ "start": "earliest" })).await, ["grant/1", "trial/4"]);
    assert_eq!(feed(json!({ "start": "earliest", "includeBackfill": true })).await, all);

    written.write(vec![of_day(trial("3", "PHASE2"), "2001-03-01"), of_day(grant("2", "CA"), "2019-06-01"), trial("4", "PHASE2")]).await;
    let found = async |arguments: Value| {
        let found = written.ask("research", "new_funding", arguments).await;
        let mut ids = [texts(&found, "grants", "id"), texts(&found, "trials", "id")].concat();
        ids.sort_unstable();
        (ids, found["note"].as_str().unwrap_or_default().contains("2 left out"))
    };
    assert_eq!(found(json!({})).await, (vec!["grant/1".to_owned(), "trial/4".to_owned()], true));
    assert_eq!(found(json!({ "includeBackfill": true })).await, (all.map(str::to_owned).to_vec(), false));
    let digest = written.ask("research", "delta_digest", json!({})).await;
    assert_eq!((&digest["counts"], &digest["older"]), (&json!({ "grants": 1, "trials": 1 }), &json!(2)));
    let watch = async |arguments: Value| written.ask("research", "entity_watch", arguments).await["activity"].clone();
    let rice = json!({ "type": "institution", "value": "rice" });
    assert_eq!(watch(rice.clone()).await, json!({ "newGrants": 1, "newAmount": 1_000, "newTrials": 0, "modified": 1 }));
    let with_late = json!({ "type": "institution", "value": "rice", "includeBackfill": true });
    assert_eq!(watch(with_late).await["newGrants"], 2);
    let later = written.ask("research", "whats_changed_since", json!({ "start": "earliest" })).await;
    assert_eq!(texts(&later, "changes", "event"), ["new", "new", "modified", "modified", "modified"], "{later}");
    written.api.close().await;
}

/// Proves that a filing that is recorded long after its filing date is in no digest of its days and in no filtered feed unless it is asked for, and that a
/// note says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_filings_are_no_news() {
    let mut written = Written::begin().await;
    let filing = |number: usize, day: &str| {
        let fact = FilingFact {
            stream: "edgar.index".to_owned(),
            accession: format!("0000320193-26-{number:06}"),
            cik: "0000320193".to_owned(),
            form: "8-K".to_owned(),
            base_form: "8-K".to_owned(),
            filing_date: day.to_owned(),
            ..FilingFact::default()
        };
        (format!("edgar.index/{}", fact.identity()), FactData::Filing(Box::new(fact)))
    };
    written.write(vec![filing(1, "2026-11-20"), filing(2, "2026-09-20"), filing(3, "2026-10-25"), filing(4, "2001-01-02")]).await;
    for (include, events, left_out, in_feed) in [(false, 2, true, 2), (true, 3, false, 4)] {
        let digest = written.ask("filings", "filing_digest", json!({ "days": 90, "includeBackfill": include })).await;
        assert_eq!(digest["counts"]["materialEvents"], events, "{digest}");
        assert_eq!(digest["note"].as_str().unwrap_or_default().contains("1 left out"), left_out, "{digest}");
        let feed = written.ask("filings", "whats_new_since", json!({ "start": "earliest", "includeBackfill": include })).await;
        let marked = feed["filings"].as_array().unwrap().iter().filter(|filing| filing["backfill"] == true).count();
        assert_eq!((feed["filings"].as_array().unwrap().len(), marked), (in_feed, in_feed - 2), "{feed}");
    }
    written.api.close().await;
}

/// Proves that unknown values are refused with the nearest known value, on reads, saved filters and watches, and that known ones may be written in any
/// case.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_values_are_refused() {
    let mut written = Written::begin().await;
    written.write(vec![grant("1", "TX")]).await;
    for (operation, arguments, parameter, hint) in [
        ("new_funding", json!({ "topic": "oncolgy" }), "topic", "did you mean \"oncology\"?"),
        ("whats_changed_since", json!({ "topic": "oncolgy" }), "topic", "did you mean \"oncology\"?"),
        ("new_funding", json!({ "state": "XX" }), "state", "\"XX\" is not one of AK"),
        ("new_funding", json!({ "phase": "PHASE9" }), "phase", "did you mean \"PHASE1\"?"),
        ("new_funding", json!({ "sponsorClass": "INDUSTRI" }), "sponsorClass", "did you mean \"INDUSTRY\"?"),
        ("entity_watch", json!({ "type": "topic", "value": "oncolgy" }), "value", "did you mean \"oncology\"?"),
        ("entity_watch", json!({ "type": "sponsr", "value": "rice" }), "type", "did you mean \"sponsor\"?"),
        ("save_filter", json!({ "name": "a", "filter": { "topic": "oncolgy" } }), "filter.topic", "did you mean \"oncology\"?"),
        ("watch", json!({ "entity": { "type": "topic", "value": "oncolgy" } }), "entity.value", "did you mean \"oncology\"?"),
    ] {
        let problem = written.api.ask("research", operation, &arguments, Tier::Pro).await.unwrap_err();
        assert_eq!((problem.code, problem.parameter.as_str()), (ErrorCode::ParameterInvalid, parameter), "{arguments}: {}", problem.detail);
        assert!(problem.detail.contains(hint), "{arguments}: {}", problem.detail);
    }
    let item = written.api.ask("filings", "whats_new_since", &json!({ "item": "5.20" }), Tier::Pro).await.unwrap_err();
    assert!(item.detail.contains("did you mean \"5.02\"?"), "{}", item.detail);
    let form = written.ask("filings", "whats_new_since", json!({ "form": "8K" })).await;
    assert!(form["note"].as_str().unwrap().contains("did you mean \"8-K\"?"), "{form}");
    let found = written.ask("research", "new_funding", json!({ "state": "tx", "sponsorClass": "nih" })).await;
    assert_eq!(texts(&found, "grants", "id"), ["grant/1"]);
    written.ask("research", "entity_watch", json!({ "type": "Topic", "value": "Oncology" })).await;
    written.ask("recalls", "search_recalls", json!({ "category": "FOOD", "agency": "usda" })).await;
    written.ask("research", "whats_changed_since", json!({ "start": "Latest" })).await;
    written.api.close().await;
}

/// Proves that a search in recorded records that is cut says so and continues: all pages together have each record once, and the total is exact.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_searches_continue() {
    let mut written = Written::begin().await;
    let filing = |number: usize| {
        let fact = FilingFact {
            stream: "edgar.index".to_owned(),
            accession: format!("0000320193-26-{number:06}"),
            cik: "0000320193".to_owned(),
            form: "8-K".to_owned(),
            base_form: "8-K".to_owned(),
            filing_date: format!("2026-11-{:02}", 1 + number % 20),
            ..FilingFact::default()
        };
        (format!("edgar.index/{}", fact.identity()), FactData::Filing(Box::new(fact)))
    };
    written.write((0..25).map(filing).collect()).await;
    let (mut seen, mut pages, mut after) = (BTreeSet::new(), 0, Value::Null);
    loop {
        let page = written.ask("filings", "search_filings", json!({ "form": "8-K", "limit": 10, "after": after })).await;
        assert_eq!((&page["total"], &page["live"]), (&json!(25), &json!(false)), "{page}");
        seen.extend(texts(&page, "filings", "accession"));
        pages += 1;
        after = page["next"].clone();
        assert_eq!(page["truncated"], !after.is_null(), "{page}");
        if after.is_null() {
            break;
        }
        // More filings do not move the pages.
        written.write(vec![filing(25 + pages)]).await;
    }
    assert_eq!((seen.len(), pages), (25, 3));
    let first = written.ask("filings", "search_filings", json!({ "form": "8-K", "limit": 10 })).await;
    let other = json!({ "form": "10-K", "limit": 10, "after": first["next"] });
    let problem = written.api.ask("filings", "search_filings", &other, Tier::Pro).await.unwrap_err();
    assert_eq!((problem.code, problem.parameter.as_str()), (ErrorCode::CursorInvalid, "after"), "{}", problem.detail);
    written.api.close().await;
}
