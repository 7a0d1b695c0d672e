//! What ingestion counts, in the default registry of the process. Labels are doors and outcomes: closed sets.

use std::sync::LazyLock;

use prometheus::{IntCounterVec, IntGaugeVec, Opts};

use crate::{Error, Outcome};

/// A counter in the default registry; `None` if the registry refused it, which costs the numbers and not the runs.
fn counter(name: &str, help: &str, labels: &[&str]) -> Option<IntCounterVec> {
    let counter = IntCounterVec::new(Opts::new(name, help), labels).ok()?;
    prometheus::register(Box::new(counter.clone())).ok()?;
    Some(counter)
}

static RUNS: LazyLock<Option<IntCounterVec>> =
    LazyLock::new(|| counter("ingest_runs_total", "Runs ended, by door and outcome", &["door", "outcome"]));
static FETCHED: LazyLock<Option<IntCounterVec>> =
    LazyLock::new(|| counter("ingest_records_fetched_total", "Records read from upstreams, by door", &["door"]));
static APPENDED: LazyLock<Option<IntCounterVec>> =
    LazyLock::new(|| counter("ingest_facts_appended_total", "Facts appended, by door", &["door"]));
static REJECTED: LazyLock<Option<IntCounterVec>> =
    LazyLock::new(|| counter("ingest_records_rejected_total", "Records that no mapping fits, by door", &["door"]));
static FINISHED_AT: LazyLock<Option<IntGaugeVec>> = LazyLock::new(|| {
    let opts = Opts::new("ingest_run_finished_timestamp_seconds", "When a run of the door last finished, in seconds since 1970");
    let gauge = IntGaugeVec::new(opts, &["door"]).ok()?;
    prometheus::register(Box::new(gauge.clone())).ok()?;
    Some(gauge)
});

/// Counts a run's end.
pub(crate) fn run_ended(door: &'static str, result: &Result<Outcome, Error>, now_ms: i64) {
    let outcome = match result {
        Ok(_) => "finished",
        Err(Error::Busy { .. }) => "busy",
        Err(Error::Overtaken { .. }) => "overtaken",
        Err(Error::Stopped { .. }) => "stopped",
        Err(_) => "failed",
    };
    if let Some(runs) = RUNS.as_ref() {
        runs.with_label_values(&[door, outcome]).inc();
    }
    let Ok(Outcome { run, .. }) = result else { return };
    for (counter, amount) in [(&FETCHED, run.seen), (&APPENDED, run.appended), (&REJECTED, run.rejected)] {
        if let Some(counter) = counter.as_ref() {
            counter.with_label_values(&[door]).inc_by(u64::try_from(amount).unwrap_or(0));
        }
    }
    if let Some(gauge) = FINISHED_AT.as_ref() {
        gauge.with_label_values(&[door]).set(now_ms / 1_000);
    }
}
