//! Damaged answers of the upstreams of the services labs and catalysts: truncated, empty, repeated, a page of the server instead of data,
//! and renamed or retyped fields. They publish nothing false, and withdraw nothing that is still there.

use std::collections::BTreeMap;

use jiff::ToSpan;
use jiff::civil::{Date, date};
use schemas::clock::{Clock, SimulatedClock};
use serde_json::Value;
use tokio::sync::watch;

use crate::concurrent_processes::run_heads_only;
use crate::engine::{Engine, SimulatedUpstreams, noon};

const FIRST: Date = date(2026, 11, 20);
/// After as many days all records of an upstream are read again.
const FULL_READ_DAYS: i64 = 8;
const SERVICES: [&str; 2] = ["labs", "catalysts"];

/// Damage to the answers of one endpoint of the simulator.
#[derive(Clone, Debug)]
struct Damage {
    endpoint: &'static str,
    fault: &'static str,
    /// The field that is renamed or retyped; empty for other faults.
    field: &'static str,
}

/// All damage to an endpoint whose records have these fields.
fn damages(endpoint: &'static str, faults: &[&'static str], fields: &[&'static str]) -> Vec<Damage> {
    let plain = faults.iter().map(|fault| Damage { endpoint, fault, field: "" });
    let schema = fields.iter().flat_map(|field| ["schema_missing", "schema_retyped"].map(|fault| Damage { endpoint, fault, field }));
    plain.chain(schema).collect()
}

/// An engine under a clock that the test moves, with the upstream that the test syncs.
struct Fixture {
    engine: Engine,
    clock: &'static SimulatedClock,
    stop: watch::Sender<bool>,
    _dir: tempfile::TempDir,
}

impl Fixture {
    async fn begin() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = SimulatedClock::new(noon(FIRST), Clock::Fixed(noon(FIRST)));
        let engine = Engine::idle_with(dir.path(), Clock::Simulated(clock), &SERVICES).await;
        let stop = run_heads_only(&engine).await;
        Self { engine, clock, stop, _dir: dir }
    }

    /// Syncs an upstream some days after the first day, with or without damage, and decides its facts.
    async fn sync(&self, simulated: &SimulatedUpstreams, upstream: &'static str, days: i64, damage: Option<&Damage>) {
        self.clock.move_to(noon(FIRST.saturating_add(days.days())));
        let mut faults = simulator::Faults::default();
        if let Some(Damage { endpoint, fault, field }) = damage {
            faults.set(fault, 1.0).unwrap();
            faults.set_text("only", endpoint).unwrap();
            faults.set_text("schema_field", field).unwrap();
        }
        simulated.sim.replace_faults(faults);
        let mut settings = simulated.settings();
        settings.window_days = 60;
        settings.backfill_days = 60;
        let failed = self.engine.run(upstream, &settings).await.into_iter().filter(Result::is_err).count();
        assert!(damage.is_some() || failed == 0, "a sync without damage failed");
        self.engine.projector.catch_up().await.unwrap();
    }

    /// The changes that readers see, of both services.
    async fn changes(&self) -> Vec<Value> {
        let mut all = Vec::new();
        for service in SERVICES {
            all.extend(self.engine.export(&format!("changes.{service}"), false).await);
        }
        all
    }

    /// The newest state of each record, as shown in changes.
    async fn records(&self) -> BTreeMap<String, Value> {
        let changes = self.changes().await.into_iter();
        changes.map(|mut change| (change["record"]["id"].as_str().unwrap().to_owned(), change["record"].take())).collect()
    }

    async fn end(self) {
        self.stop.send_replace(true);
        self.engine.close().await;
    }
}

/// Removes what depends on when a record was read, and on records that were not read yet.
fn content(records: &BTreeMap<String, Value>, is_partly_read: bool) -> BTreeMap<String, Value> {
    let context: &[&str] = if is_partly_read { &["signal", "signalEvidence", "ticker", "cik"] } else { &[] };
    let mut records = records.clone();
    for record in records.values_mut() {
        for field in ["firstSeen", "verifiedAsOf"].iter().chain(context) {
            record.as_object_mut().unwrap().remove(*field);
        }
    }
    records
}

/// Syncs an upstream with each damage, first into an empty engine and then over its complete records. `full_reads` is how many full reads,
/// after an ordinary one, have the damage.
async fn damage_changes_nothing(upstream: &'static str, damages: &[Damage], full_reads: i64) {
    let simulated = SimulatedUpstreams::start(71, 20, Clock::Fixed(noon(FIRST))).await;
    let reference = Fixture::begin().await;
    reference.sync(&simulated, upstream, 0, None).await;
    let known = reference.records().await;
    assert!(known.len() > 2, "{upstream}: {} records", known.len());
    reference.end().await;
    for damage in damages {
        let fixture = Fixture::begin().await;
        // That a field is absent is known at once only where pages have many records. Elsewhere it is known from the runs before.
        if damage.field.is_empty() || upstream == "nih_reporter" {
            fixture.sync(&simulated, upstream, 0, Some(damage)).await;
        }
        let expected = content(&known, true);
        for (id, record) in content(&fixture.records().await, true) {
            assert_eq!(Some(&record), expected.get(&id), "{damage:?}");
        }
        // Whatever could not be read is read by the next sync, at the latest by a full one.
        fixture.sync(&simulated, upstream, 0, None).await;
        fixture.sync(&simulated, upstream, FULL_READ_DAYS, None).await;
        assert_eq!(content(&fixture.records().await, false), content(&known, false), "{damage:?}");

        let before = fixture.changes().await;
        for read in 1..=1 + full_reads {
            fixture.sync(&simulated, upstream, read * FULL_READ_DAYS, Some(damage)).await;
            let after = fixture.changes().await;
            assert_eq!(after.len(), before.len(), "{damage:?} changed {:?}", &after[before.len()..]);
        }
        fixture.sync(&simulated, upstream, (2 + full_reads) * FULL_READ_DAYS, None).await;
        assert_eq!(fixture.changes().await.len(), before.len(), "{damage:?}");
        fixture.end().await;
    }
}

/// Proves that damaged pages of grants publish no false lead and withdraw none, even if two full reads in a row are damaged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_pages_of_grants() {
    let faults = ["html", "truncated", "truncated_length", "outage", "duplicated_page", "shifted_page"];
    let fields = ["project_title", "award_amount", "award_type", "activity_code", "award_notice_date", "organization", "appl_id"];
    damage_changes_nothing("nih_reporter", &damages("nih_reporter", &faults, &fields), 2).await;
}

/// Proves that damaged pages of notices publish no false meeting and withdraw none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_pages_of_notices() {
    let faults = ["html", "truncated", "truncated_length", "outage", "duplicated_page", "shifted_page"];
    let fields = ["title", "dates", "document_number", "publication_date", "docket_ids"];
    damage_changes_nothing("federal_register", &damages("federal_register.fda", &faults, &fields), 1).await;
}

/// Proves that damaged answers of the full-text search, of documents and of the list of tickers publish no false date or ticker and withdraw
/// none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_pages_of_filings() {
    let search = ["html", "truncated", "truncated_length", "outage", "duplicated_page"];
    let all = [
        damages("edgar.search", &search, &["_source", "_id", "file_date", "ciks", "hits"]),
        damages("edgar.pdufa", &["html", "truncated", "truncated_length"], &[]),
        damages("edgar.tickers", &["html", "truncated", "truncated_length", "outage"], &["ticker", "cik_str", "title"]),
    ];
    damage_changes_nothing("edgar", &all.concat(), 1).await;
}
