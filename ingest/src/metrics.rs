//! Metrics of ingestion, in the default Prometheus registry of the process. Labels are streams and outcomes, which are closed sets.

use std::sync::LazyLock;

use prometheus::core::{Collector, Desc};
use prometheus::{IntCounterVec, IntGauge, IntGaugeVec, Opts};
use schemas::key;
use schemas::views::engine::{RUNS, RunRow};
use upstreams::Upstream;
use view_store::View;

use crate::Error;

/// Registers a counter. Returns `None` if the registry refuses it; the sync runs then continue without this metric.
fn counter(name: &str, help: &str, labels: &[&str]) -> Option<IntCounterVec> {
    let counter = IntCounterVec::new(Opts::new(name, help), labels).ok()?;
    prometheus::register(Box::new(counter.clone())).ok()?;
    Some(counter)
}

/// Registers a gauge with the label `stream`. Returns `None` if the registry refuses it.
fn gauge(name: &str, help: &str) -> Option<IntGaugeVec> {
    let gauge = IntGaugeVec::new(Opts::new(name, help), &["stream"]).ok()?;
    prometheus::register(Box::new(gauge.clone())).ok()?;
    Some(gauge)
}

static RUNS_ENDED: LazyLock<Option<IntCounterVec>> =
    LazyLock::new(|| counter("ingest_runs_total", "Sync runs that ended, by stream and outcome", &["stream", "outcome"]));
static RUNNING: LazyLock<Option<IntGauge>> = LazyLock::new(|| {
    let gauge = IntGauge::new("ingest_runs_running", "Sync runs that are running in this process").ok()?;
    prometheus::register(Box::new(gauge.clone())).ok()?;
    Some(gauge)
});
static PAGES: LazyLock<Option<IntCounterVec>> =
    LazyLock::new(|| counter("ingest_pages_fetched_total", "Pages fetched from upstreams, by stream", &["stream"]));
static FETCHED: LazyLock<Option<IntCounterVec>> =
    LazyLock::new(|| counter("ingest_records_fetched_total", "Records fetched from upstreams, by stream", &["stream"]));
static APPENDED: LazyLock<Option<IntCounterVec>> =
    LazyLock::new(|| counter("ingest_facts_appended_total", "Facts appended, by stream", &["stream"]));
static REJECTED: LazyLock<Option<IntCounterVec>> = LazyLock::new(|| {
    counter(
        "ingest_records_rejected_total",
        "Records that could not be mapped and were not rejected before with the same bytes, by stream",
        &["stream"],
    )
});
static FINISHED_AT: LazyLock<Option<IntGaugeVec>> = LazyLock::new(|| {
    gauge(
        "ingest_run_finished_timestamp_seconds",
        "When the last sync run of the stream finished, in any process, in seconds since 1970; 0 for never",
    )
});
static INTERVAL: LazyLock<Option<IntGaugeVec>> =
    LazyLock::new(|| gauge("ingest_run_interval_seconds", "Longest time between two sync runs of the stream by its schedule, in seconds"));
static FAILING: LazyLock<Option<IntGaugeVec>> =
    LazyLock::new(|| gauge("ingest_run_failing", "Whether the newest sync run of the stream failed (1) or not (0)"));

/// Describes every metric of this module, for the generated table of metrics.
#[must_use]
pub fn described() -> Vec<Desc> {
    fn of<C: Collector>(metric: &Option<C>) -> Vec<Desc> {
        metric.iter().flat_map(Collector::desc).cloned().collect()
    }
    let counters = [&RUNS_ENDED, &PAGES, &FETCHED, &APPENDED, &REJECTED].map(|metric| of(metric)).concat();
    [counters, of(&RUNNING), of(&FINISHED_AT), of(&INTERVAL), of(&FAILING)].concat()
}

/// Counts a sync run as running until it is dropped, also when its task is cancelled.
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

/// Counts a fetched page and its records.
pub(crate) fn fetched(stream: &'static str, records: i64) {
    add(&PAGES, stream, 1);
    add(&FETCHED, stream, records);
}

/// How many records of a stream this process has fetched since its start.
#[must_use]
pub fn fetched_records(stream: &str) -> u64 {
    FETCHED.as_ref().map_or(0, |counter| counter.with_label_values(&[stream]).get())
}

/// Counts facts that are durable and chained.
pub(crate) fn appended(stream: &'static str, facts: i64) {
    add(&APPENDED, stream, facts);
}

/// Counts records that were rejected for the first time.
pub(crate) fn rejected(stream: &'static str, records: i64) {
    add(&REJECTED, stream, records);
}

fn add(counter: &LazyLock<Option<IntCounterVec>>, stream: &str, amount: i64) {
    if let Some(counter) = counter.as_ref() {
        counter.with_label_values(&[stream]).inc_by(u64::try_from(amount).unwrap_or(0));
    }
}

/// Counts the end of a sync run by its outcome.
pub(crate) fn run_ended<T>(stream: &'static str, result: &Result<T, Error>) {
    let outcome = match result {
        Ok(_) => "finished",
        Err(Error::Busy { .. }) => "busy",
        Err(Error::BackingOff { .. }) => "backing_off",
        Err(Error::Overtaken { .. }) => "overtaken",
        Err(error) if error.is_stop() => "stopped",
        Err(_) => "failed",
    };
    if let Some(runs) = RUNS_ENDED.as_ref() {
        runs.with_label_values(&[stream, outcome]).inc();
    }
}

/// Reports the intervals of streams, in seconds, as [`schedule::intervals`](crate::schedule::intervals) computes them.
pub fn set_intervals(intervals: &[(&'static str, i64)]) {
    let Some(gauge) = INTERVAL.as_ref() else { return };
    for (stream, seconds) in intervals {
        gauge.with_label_values(&[stream]).set(*seconds);
    }
}

/// Updates the freshness gauges of the upstreams' streams from the stored sync runs. Every process reports the same values, whichever
/// process ran the sync.
///
/// # Errors
/// When the engine's view cannot be read.
pub async fn sample(engine: &dyn View, upstreams: &[&'static dyn Upstream]) -> Result<(), Error> {
    for stream in upstreams.iter().flat_map(|upstream| upstream.manifest().streams) {
        let row: RunRow = match engine.get(&RUNS, &key![stream.name]).await? {
            Some(bytes) => serde_json::from_slice(&bytes)?,
            None => RunRow::default(),
        };
        // Registers the counters with 0, so that rates see the first counted record as an increase.
        for counter in [&PAGES, &FETCHED, &APPENDED, &REJECTED] {
            add(counter, stream.name, 0);
        }
        for (gauge, value) in [(&FINISHED_AT, row.last_finished_at_ms / 1_000), (&FAILING, i64::from(row.kind == "run_failed"))] {
            if let Some(gauge) = gauge.as_ref() {
                gauge.with_label_values(&[stream.name]).set(value);
            }
        }
    }
    Ok(())
}
