//! What callers below the paid tier learn of hidden values: nothing. Every read operation of every service with hidden fields or a free window is asked
//! the same of two histories that differ only in what such callers must not see, with arguments that follow from its definition: all surfaces render
//! these operations, so a new one is covered without a change here. A new service needs records of its own.

mod histories;
mod questions;

use feed::testing::call;
use operation::{Call, Caller, Form, Method, Price, Stage};
use schemas::views::accounts::Tier;
use schemas::views::awards::Dollars;
use schemas::views::records::{Record, RecordTables, Redact};
use serde_json::{Value, json};

use histories::{Details, Histories, Recorded};
use questions::{answer, questions};
use reads::registration::Registration;

/// Operations that show whole records to everybody, as the contract of the service says.
const FREE_FOR_ALL: [(&str, &str); 2] = [("parcels", "parcel_overassessment"), ("labs", "health")];
/// Operations that have no answer in a history without signed checkpoints.
const UNSIGNED: &str = "prove_consistency";

/// The operation that shows the keys of the caller's account, and no record.
const OWN_KEYS: &str = "list_keys";

/// The forms of a feed. Other operations have the first.
static FORMS: [Form; 4] = [Form::Json, Form::Lines, Form::Events, Form::Atom];

/// How many questions to an operation every caller asks in every form, from the first one: the example, and those for each record. Hundreds follow, which
/// differ in one value of one argument. With [`ALL`], every caller asks all.
const ASKED_BY_ALL: usize = 32;

/// The variable with which `ops/test --all` runs its tests.
const ALL: &str = "HIGHWATER_TEST_ALL";

/// The callers below the paid tier.
fn callers(call: &Call, tiers: &[Tier]) -> Vec<Caller> {
    let key_of = |tier: Tier| if tier == Tier::Anonymous { String::new() } else { "key_test".to_owned() };
    tiers.iter().map(|tier| Caller { tier: *tier, key_id: key_of(*tier), ..call.caller.clone() }).collect()
}

/// Asks every operation the same of both histories. Fails on the first answer that differs.
async fn assert_nothing_is_learned<R: Record>(service: &Registration, histories: &Histories<R>, tiers: &[Tier]) {
    let name = service.service.name;
    let template = call(&histories.contexts[0]);
    let callers = callers(&template, tiers);
    let asked_by_all = if std::env::var_os(ALL).is_some() { usize::MAX } else { ASKED_BY_ALL };
    let mut asked = 0;
    for operation in service.service.operations.iter().filter(|operation| operation.method == Method::Get) {
        if operation.name == OWN_KEYS {
            continue;
        }
        let stage = match operation.price {
            Price::Free => Stage::Whole,
            Price::PerCall { .. } => Stage::Preview,
            // Refused before it runs.
            Price::Tier(least) => {
                assert!(tiers.iter().all(|tier| *tier < least), "{name} {}", operation.name);
                continue;
            }
        };
        if FREE_FOR_ALL.contains(&(name, operation.name)) {
            continue;
        }
        let forms = if operation.is_feed() { &FORMS[..] } else { &FORMS[..1] };
        let mut answered = 0;
        for (number, arguments) in questions(operation, histories).iter().enumerate() {
            let is_asked_by_all = number < asked_by_all;
            // The others take turns: one caller asks, in JSON and in one other form.
            let (turn, other) = (number % callers.len(), 1 + number / callers.len() % (FORMS.len() - 1));
            for (_, caller) in callers.iter().enumerate().filter(|(at, _)| is_asked_by_all || *at == turn) {
                for (_, form) in forms.iter().enumerate().filter(|(at, _)| is_asked_by_all || [0, other].contains(at)) {
                    let ask = async |side: usize| {
                        let (form, stage, caller) = (*form, stage.clone(), caller.clone());
                        answer(Call { form, stage, caller, ..call(&histories.contexts[side]) }, operation, &arguments[side]).await
                    };
                    let [left, right] = [ask(0).await, ask(1).await];
                    asked += 1;
                    answered += usize::from(left.is_ok());
                    let shown = format!("{name} {} {:?} {form:?} {}", operation.name, caller.tier, arguments[0]);
                    assert_eq!(left, right, "{shown}");
                }
            }
        }
        assert!(answered > 0 || operation.name == UNSIGNED, "{name} {} never answered", operation.name);
    }
    assert!(asked > 100, "{name}: {asked}");
}

/// Whether the histories differ for a caller who sees everything: otherwise they would prove nothing.
async fn differ_for_whole_callers<R: Record>(service: &Registration, histories: &Histories<R>) -> bool {
    let arguments = json!({ "start": "earliest", "limit": 200 });
    let changes = service.service.operations.iter().find(|operation| operation.name == "changes").unwrap();
    let ask = async |side: usize| {
        let mut call = call(&histories.contexts[side]);
        (call.caller.tier, call.caller.key_id) = (Tier::FleetPlus, "key_test".to_owned());
        answer(call, changes, &arguments).await.unwrap()
    };
    ask(0).await != ask(1).await
}

/// Compares a service whose records are redacted.
async fn redacted<R: Redact>(service: Registration, tables: &'static RecordTables, records: Vec<Recorded>) {
    let histories = Histories::<R>::redacted(tables, records).await;
    assert!(differ_for_whole_callers(&service, &histories).await, "{}", service.service.name);
    assert_nothing_is_learned(&service, &histories, &[Tier::Anonymous, Tier::Free]).await;
}

/// Compares a service whose last days are free.
async fn sampled<R: Record>(service: Registration, tables: &'static RecordTables, records: Vec<Recorded>, details: Details<R>) {
    let histories = Histories::<R>::sampled(tables, records, details).await;
    assert!(differ_for_whole_callers(&service, &histories).await, "{}", service.service.name);
    assert_nothing_is_learned(&service, &histories, &[Tier::Anonymous]).await;
}

fn recorded(hours_ago: i64, record: Value) -> Recorded {
    Recorded { hours_ago, record }
}

/// Changes the fields of a record.
fn with(record: &Value, fields: Value) -> Value {
    let mut record = record.clone();
    for (name, value) in fields.as_object().unwrap() {
        record[name] = value.clone();
    }
    record
}

/// Proves that no registered service with hidden fields or a free window is left out here.
#[test]
fn every_service_is_compared() {
    let compared = ["awards", "catalysts", "coverage", "filings", "labs", "parcels", "research"];
    for registration in crate::registered() {
        let source = registration.checkpoints.filter(|source| source.redaction.is_some() || source.sample_days.is_some());
        assert!(source.is_none_or(|source| compared.contains(&source.service)), "{}", registration.service.name);
    }
}

/// Proves that a caller below tier pro learns nothing of laboratories but category, state, month and amount band.
#[tokio::test]
async fn labs_are_hidden() {
    let lead = json!({
        "id": "nih:11223344", "pi": "Ada I Quill", "org": "RIVERTON CHILDRENS HOSPITAL", "city": "RIVERTON", "state": "OH", "amount": 612_345,
        "noticeDate": "2026-11-14", "projectNumber": "1R01CA300001-01", "title": "Single-cell RNA sequencing", "activityCode": "R01",
        "category": "Sequencing and genomics", "signal": "new_project", "amountBand": "500k-1M",
        "spendWindow": { "from": "2026-12-01", "to": "2027-11-30", "peakTo": "2027-03-01" }, "url": "https://reporter.nih.gov/x/11223344",
    });
    let other = |id: &str, fields: Value| with(&with(&lead, json!({ "id": id })), fields);
    redacted::<labs::record::Lead>(
        labs::service(),
        &labs::record::TABLES,
        vec![
            recorded(90 * 24, other("nih:1", json!({ "noticeDate": "2026-08-14", "category": "Computing" }))),
            recorded(100, with(&lead, json!({ "amount": 400_000, "amountBand": "250k-500k" }))),
            recorded(90, other("nih:2", json!({ "noticeDate": "2026-11-12", "state": "CA", "amount": 501_000 }))),
            // Recorded before the day of its notice.
            recorded(70, other("nih:5", json!({ "noticeDate": "2026-11-20", "category": "Computing", "state": "NY" }))),
            recorded(
                40,
                other("nih:3", json!({ "noticeDate": "2026-11-17", "category": "Computing", "amount": 90_000, "amountBand": "<100k" })),
            ),
            recorded(30, other("nih:4", json!({ "noticeDate": "2026-11-11", "withdrawn": true }))),
            recorded(2, lead.clone()),
        ],
    )
    .await;
}

/// Proves that a caller without a paid key learns nothing of events but those of the next 30 days, and of no date that they had before.
#[tokio::test]
async fn catalysts_are_hidden() {
    let event = json!({
        "id": "ctgov:NCT00000001", "kind": "readout", "date": "2026-11-28", "window": { "from": "2026-11-28", "to": "2026-11-28" },
        "datePrecision": "day", "company": "Calder Bio", "ticker": "CLDB", "drug": "calderinib", "phase": "PHASE3", "status": "upcoming",
        "trialId": "NCT00000001", "title": "A trial", "verifyHash": "sha256:00",
    });
    let other = |id: &str, from: &str, to: &str| with(&event, json!({ "id": id, "date": "", "window": { "from": from, "to": to } }));
    redacted::<catalysts::record::Catalyst>(
        catalysts::service(),
        &catalysts::record::TABLES,
        vec![
            recorded(95 * 24, other("ctgov:NCT00000002", "2026-08-25", "2026-08-25")),
            recorded(80 * 24, other("ctgov:NCT00000003", "2027-03-01", "2027-03-31")),
            recorded(60 * 24, other("ctgov:NCT00000004", "2026-11-01", "2026-11-30")),
            recorded(30 * 24, event.clone()),
            recorded(20 * 24, other("ctgov:NCT00000005", "2026-11-10", "2026-11-12")),
            recorded(50, other("ctgov:NCT00000006", "2027-02-01", "2027-02-28")),
            recorded(20, other("ctgov:NCT00000007", "2026-12-01", "2026-12-05")),
            recorded(3, other("ctgov:NCT00000003", "2027-04-01", "2027-04-30")),
        ],
    )
    .await;
}

/// Proves that a caller below tier pro learns of leads nothing but their redacted form.
#[tokio::test]
async fn coverage_is_hidden() {
    let lead = json!({
        "id": "fmcsa:4312345:CARGO:new_carrier:2026-11-18", "business": "BLUE MESA FREIGHT LLC", "dba": "MESA XPRESS", "state": "CO", "city": "PUEBLO",
        "zip": "81001", "trigger": "new_carrier", "triggerDate": "2026-11-18", "source": "fmcsa", "sources": ["fmcsa"], "coverageLine": "CARGO",
        "mandate": { "rule": "household goods", "citation": "49 CFR 387.303(c)", "ruleId": "household-goods-cargo", "follows": "from x" },
        "basis": "MANDATED", "ids": { "dot": "4312345", "mc": "MC1234567" }, "url": "https://data.example/4312345",
        "evidence": [{ "field": "classdef", "value": "AUTHORIZED", "dataset": "az4n-8mr2" }],
    });
    let other = |id: &str, fields: Value| with(&with(&lead, json!({ "id": id })), fields);
    redacted::<coverage::record::Lead>(
        coverage::service(),
        &coverage::record::TABLES,
        vec![
            recorded(60 * 24, other("fmcsa:1:CARGO", json!({ "triggerDate": "2026-09-20" }))),
            recorded(60, other("fmcsa:9:CARGO", json!({ "business": "BETTER MOVERS FIRST LINE", "ids": { "dot": "9" } }))),
            recorded(50, other("fmcsa:5:CARGO", json!({ "triggerDate": "2026-11-16", "basis": "LIKELY" }))),
            recorded(40, other("fmcsa:6:CARGO", json!({ "triggerDate": "2026-11-17", "withdrawn": true }))),
            recorded(20, lead.clone()),
            recorded(2, with(&lead, json!({ "city": "DENVER" }))),
        ],
    )
    .await;
}

/// Proves that a caller below tier pro learns of over-assessed parcels nothing but their redacted form.
#[tokio::test]
async fn parcels_are_hidden() {
    let parcel = json!({
        "id": "cook-il/16012160010000", "pin": "16012160010000", "county": "cook-il", "class": "517", "classLabel": "Store", "township": "West Chicago",
        "townshipCode": "77", "neighborhood": "12", "address": "1 MAIN ST", "tier": "high", "r": 1.3072, "ratio": 1.3333, "peerMedian": 1.02,
        "peerN": 41, "peerLevel": "neighborhood", "cod": 13.2, "stage": "board", "assessed": 50_000, "level": 0.25, "impliedMarketValue": 200_000,
        "basis": { "kind": "own_sale", "salePrice": 150_000, "saleDate": "2025-02-01", "docNo": "7" }, "cycle": "2026-board", "tierBefore": "none",
        "url": "https://data.example/16012160010000", "method": "sales",
    });
    let other = |pin: &str, fields: Value| with(&with(&parcel, json!({ "id": format!("cook-il/{pin}"), "pin": pin })), fields);
    let permit = |pin: &str, fields: Value| {
        let permit = json!({
            "number": "101000040", "streams": ["cook.permits"], "status": "OPEN", "cityStatus": "ACTIVE", "assessable": true, "major": true,
            "issued": "2026-03-15", "amount": 1_234_567, "jobCode": "COMMERCIAL PERMIT: NEW BUILDING", "description": "ERECT STORE",
            "municipality": "CITY OF CHICAGO", "parcels": 2, "building": { "year": 2026, "value": 5_000, "latestYear": 2026, "latestValue": 5_000 },
            "remarks": ["none"],
        });
        json!({
            "id": format!("cook-il/{pin}/permit/101000040"), "pin": pin, "county": "cook-il", "class": "517", "classLabel": "Store",
            "township": "West Chicago", "townshipCode": "77", "address": "5 MAIN ST", "permit": with(&permit, fields),
            "url": "https://data.example/101000040",
        })
    };
    redacted::<parcels::record::Parcel>(
        parcels::service(),
        &parcels::record::TABLES,
        vec![
            recorded(60 * 24, other("16012160020000", json!({ "r": 1.1834, "tier": "medium" }))),
            // They leave the window of construction, and become stalled, between two of the moments as of which is asked.
            recorded(300, permit("16012160080000", json!({ "issued": "2025-11-11" }))),
            recorded(290, permit("16012160090000", json!({ "issued": "2024-05-13" }))),
            recorded(200, other("16012160030000", json!({ "r": 1.3401, "address": "3 MAIN ST" }))),
            recorded(100, other("16012160040000", json!({ "tier": "none", "r": 0.98, "tierBefore": "low" }))),
            recorded(90, permit("16012160050000", json!({}))),
            recorded(80, permit("16012160060000", json!({ "issued": "2022-05-15", "status": "RECHECK" }))),
            recorded(70, permit("16012160070000", json!({ "closed": true, "status": "CLOSED" }))),
            recorded(30, parcel.clone()),
            recorded(10, permit("16012160050000", json!({ "description": "ERECT STORES" }))),
            recorded(2, with(&parcel, json!({ "address": "1 MAIN STREET" }))),
        ],
    )
    .await;
}

/// Proves that a caller without a key learns nothing of what the service of research recorded before the last 7 days.
#[tokio::test]
async fn old_research_is_hidden() {
    let grant = json!({
        "id": "nih:1", "kind": "grant", "title": "Aging of lenses", "published": "2026-11-18", "states": ["OH"], "topics": [{ "slug": "aging" }],
        "pi": "Ada Quill", "investigators": ["Ada Quill"], "org": "RIVERTON HOSPITAL", "institutions": ["RIVERTON HOSPITAL"], "ic": "NEI", "amount": 5_000,
        "noticeDate": "2026-11-18", "projectNumber": "1R01", "activityCode": "R01", "sponsorClass": "public",
    });
    let other = |id: &str, fields: Value| with(&with(&grant, json!({ "id": id })), fields);
    sampled::<research::record::Funding>(
        research::service(),
        &research::record::TABLES,
        vec![
            recorded(40 * 24, other("nih:2", json!({ "published": "2026-10-11", "noticeDate": "2026-10-11" }))),
            recorded(9 * 24, grant.clone()),
            recorded(5 * 24, other("nih:3", json!({ "org": "LAKE UNIVERSITY", "topics": [{ "slug": "oncology" }] }))),
            recorded(2, with(&grant, json!({ "amount": 6_000 }))),
        ],
        |_, _| json!({}),
    )
    .await;
}

/// Proves the same of filings.
#[tokio::test]
async fn old_filings_are_hidden() {
    let filing = json!({
        "id": "filing/0000900001-26-000001/0000900001", "kind": "filing", "form": "8-K", "baseForm": "8-K", "filingDate": "2026-11-18",
        "company": "Calder Bio", "cik": "0000900001", "accession": "0000900001-26-000001", "items": ["5.02"], "topItem": "5.02", "eventScore": 70,
    });
    let trade = json!({
        "id": "trade/0000900001-26-000002/1/1", "kind": "trade", "form": "4", "baseForm": "4", "filingDate": "2026-11-18", "company": "Calder Bio",
        "cik": "0000900001", "accession": "0000900001-26-000002", "ticker": "CLDB", "owners": [{ "cik": "0000000007", "name": "Quill Ada" }],
        "tradeDate": "2026-11-17", "code": "P", "acquiredDisposed": "A", "shares": "100", "price": "12.5",
    });
    sampled::<filings::record::Filing>(
        filings::service(),
        &filings::record::TABLES,
        vec![
            recorded(40 * 24, with(&filing, json!({ "id": "filing/2/0000900001", "filingDate": "2026-10-11" }))),
            recorded(20 * 24, with(&trade, json!({ "id": "trade/3/1/1", "filingDate": "2026-10-31", "tradeDate": "2026-10-30" }))),
            recorded(9 * 24, filing.clone()),
            recorded(5 * 24, trade.clone()),
            recorded(2, with(&filing, json!({ "eventScore": 80 }))),
        ],
        |_, _| json!({}),
    )
    .await;
}

/// Proves the same of awards, also of what a change of the last 7 days tells of the amount before it.
#[tokio::test]
async fn old_awards_are_hidden() {
    let award = json!({
        "id": "CONT_AWD_1", "piid": "1", "description": "Repairs", "recipient": "ACME INC", "recipientUei": "ABCDEF123456", "agency": "Agency",
        "naics": "541512", "amountCents": 500_000, "signed": "2026-11-17", "start": "2026-11-17", "end": "2027-01-31", "actionDate": "2026-11-17",
        "actionCents": 500_000, "placeState": "OH",
    });
    let other = |id: &str, fields: Value| with(&with(&award, json!({ "id": id })), fields);
    sampled::<schemas::views::awards::Award>(
        awards::service(),
        &schemas::views::awards::TABLES,
        vec![
            recorded(40 * 24, other("CONT_AWD_2", json!({ "actionDate": "2026-10-11", "signed": "2026-10-11" }))),
            recorded(9 * 24, award.clone()),
            recorded(5 * 24, other("CONT_AWD_3", json!({ "naics": "236220", "recipient": "LAKE CORP" }))),
            recorded(2, with(&award, json!({ "amountCents": 600_000 }))),
        ],
        |before, after| {
            let before = before.map_or(Some(0), |before| before.amount_cents);
            json!({ "amountDelta": after.amount_cents.zip(before).map(|(after, before)| Dollars { cents: after - before }) })
        },
    )
    .await;
}
