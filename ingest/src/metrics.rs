//! What ingestion counts, in the default registry of the process. Labels are doors and outcomes: closed sets.

use std::sync::LazyLock;

use prometheus::core::{Collector, Desc};
use prometheus::{IntCounterVec, IntGauge, IntGaugeVec, Opts};
use schemas::key;
use schemas::views::engine::{RUNS, RunRow};
use upstreams::Upstream;
use view_store::View;

use crate::{Error, Outcome};

/// A counter in the default registry; `None` if the registry refused it, which costs the numbers and not the runs.
fn counter(name: &str, help: &str, labels: &[&str]) -> Option<IntCounterVec> {
    let counter = IntCounterVec::new(Opts::new(name, help), labels).ok()?;
    prometheus::register(Box::new(counter.clone())).ok()?;
    Some(counter)
}

/// A gauge by door, likewise.
fn gauge(name: &str, help: &str) -> Option<IntGaugeVec> {
    let gauge = IntGaugeVec::new(Opts::new(name, help), &["door"]).ok()?;
    prometheus::register(Box::new(gauge.clone())).ok()?;
    Some(gauge)
}

static RUNS_ENDED: LazyLock<Option<IntCounterVec>> =
    LazyLock::new(|| counter("ingest_runs_total", "Runs ended, by door and outcome", &["door", "outcome"]));
static RUNNING: LazyLock<Option<IntGauge>> = LazyLock::new(|| {
    let gauge = IntGauge::new("ingest_runs_running", "Runs under way in this process").ok()?;
    prometheus::register(Box::new(gauge.clone())).ok()?;
    Some(gauge)
});
static PAGES: LazyLock<Option<IntCounterVec>> =
    LazyLock::new(|| counter("ingest_pages_fetched_total", "Pages read from upstreams, by door", &["door"]));
static FETCHED: LazyLock<Option<IntCounterVec>> =
    LazyLock::new(|| counter("ingest_records_fetched_total", "Records read from upstreams, by door", &["door"]));
static APPENDED: LazyLock<Option<IntCounterVec>> =
    LazyLock::new(|| counter("ingest_facts_appended_total", "Facts appended, by door", &["door"]));
static REJECTED: LazyLock<Option<IntCounterVec>> =
    LazyLock::new(|| counter("ingest_records_rejected_total", "Records that no mapping fits, by door", &["door"]));
static FINISHED_AT: LazyLock<Option<IntGaugeVec>> = LazyLock::new(|| {
    gauge("ingest_run_finished_timestamp_seconds", "When a run of the door last finished, anywhere, in seconds since 1970; 0 for never")
});
static FAILING: LazyLock<Option<IntGaugeVec>> =
    LazyLock::new(|| gauge("ingest_run_failing", "Whether the newest run of the door failed (1) or not (0)"));

/// What is counted here, for the table of metrics.
#[must_use]
pub fn described() -> Vec<Desc> {
    fn of<C: Collector>(metric: &Option<C>) -> Vec<Desc> {
        metric.iter().flat_map(Collector::desc).cloned().collect()
    }
    let counters = [&RUNS_ENDED, &PAGES, &FETCHED, &APPENDED, &REJECTED].map(|metric| of(metric)).concat();
    [counters, of(&RUNNING), of(&FINISHED_AT), of(&FAILING)].concat()
}

/// A run under way, also one whose task goes away.
pub(crate) struct Running;

impl Running {
    pub(crate) fn begin() -> Self {
        if let Some(running) = RUNNING.as_ref() {
            running.inc();
        }
        Self
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(running) = RUNNING.as_ref() {
            running.dec();
        }
    }
}

/// Counts a page and its records.
pub(crate) fn fetched(door: &'static str, records: i64) {
    add(&PAGES, door, 1);
    add(&FETCHED, door, records);
}

/// Counts facts that are durable and chain.
pub(crate) fn appended(door: &'static str, facts: i64) {
    add(&APPENDED, door, facts);
}

/// Counts records kept aside.
pub(crate) fn rejected(door: &'static str, records: i64) {
    add(&REJECTED, door, records);
}

fn add(counter: &LazyLock<Option<IntCounterVec>>, door: &str, amount: i64) {
    if let Some(counter) = counter.as_ref() {
        counter.with_label_values(&[door]).inc_by(u64::try_from(amount).unwrap_or(0));
    }
}

/// Counts a run's end.
pub(crate) fn run_ended(door: &'static str, result: &Result<Outcome, Error>) {
    let outcome = match result {
        Ok(_) => "finished",
        Err(Error::Busy { .. }) => "busy",
        Err(Error::HeldOff { .. }) => "held_off",
        Err(Error::Overtaken { .. }) => "overtaken",
        Err(Error::Stopped { .. } | Error::Unprojected { .. }) => "stopped",
        Err(_) => "failed",
    };
    if let Some(runs) = RUNS_ENDED.as_ref() {
        runs.with_label_values(&[door, outcome]).inc();
    }
}

/// Shows how fresh the upstreams' doors are, from what the log says of their runs: the same in every process, whoever ran them.
///
/// # Errors
/// When the engine's view cannot be read.
pub async fn sample(engine: &dyn View, upstreams: &[&'static dyn Upstream]) -> Result<(), Error> {
    for door in upstreams.iter().flat_map(|upstream| upstream.manifest().doors) {
        let row: RunRow = match engine.get(&RUNS, &key![door.name]).await? {
            Some(bytes) => serde_json::from_slice(&bytes)?,
            None => RunRow::default(),
        };
        // So that the first record counted is a rise from 0, which rates see.
        for counter in [&PAGES, &FETCHED, &APPENDED, &REJECTED] {
            add(counter, door.name, 0);
        }
        for (gauge, value) in [(&FINISHED_AT, row.last_finished_at_ms / 1_000), (&FAILING, i64::from(row.kind == "run_failed"))] {
            if let Some(gauge) = gauge.as_ref() {
                gauge.with_label_values(&[door.name]).set(value);
            }
        }
    }
    Ok(())
}
