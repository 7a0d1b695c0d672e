//! The metrics of the projector, in the default registry of the process. Labels are names of services and views: closed sets.

use std::sync::LazyLock;
use std::time::Duration;

use prometheus::core::{Collector, Desc};
use prometheus::{Gauge, IntCounterVec, IntGauge, IntGaugeVec, Opts};
use schemas::reason::reason;
use schemas::topics;
use view_store::Checkpoint;

use crate::Error;
use crate::lag;
use crate::rebuild::Parts;

/// How long a sample waits for the log and the store. Without an answer by then they count as down.
const SAMPLE_TIME_MAX: Duration = Duration::from_secs(5);

/// Registers a gauge with one label; `None` if the registry refuses it, which loses the metric but nothing else.
fn gauge(name: &str, help: &str, label: &str) -> Option<IntGaugeVec> {
    let gauge = IntGaugeVec::new(Opts::new(name, help), &[label]).ok()?;
    prometheus::register(Box::new(gauge.clone())).ok()?;
    Some(gauge)
}

/// Registers a counter by service; `None` if the registry refuses it.
fn counter(name: &str, help: &str) -> Option<IntCounterVec> {
    let counter = IntCounterVec::new(Opts::new(name, help), &["service"]).ok()?;
    prometheus::register(Box::new(counter.clone())).ok()?;
    Some(counter)
}

/// Registers a gauge without labels; `None` if the registry refuses it.
fn single(name: &str, help: &str) -> Option<IntGauge> {
    let gauge = IntGauge::new(name, help).ok()?;
    prometheus::register(Box::new(gauge.clone())).ok()?;
    Some(gauge)
}

static DECIDED: LazyLock<Option<IntCounterVec>> =
    LazyLock::new(|| counter("projector_facts_decided_total", "Facts decided by this process, by service"));
static FAILURES: LazyLock<Option<IntCounterVec>> = LazyLock::new(|| {
    counter("projector_failures_total", "Failed attempts to advance a view, by service; engine for the latest-version index")
});
static SEQ: LazyLock<Option<IntGaugeVec>> =
    LazyLock::new(|| gauge("projector_change_seq", "Seq of the last change projected, by service", "service"));
static RECORDED_AT: LazyLock<Option<IntGaugeVec>> = LazyLock::new(|| {
    gauge(
        "projector_change_recorded_timestamp_seconds",
        "When the last projected change was recorded, by service, in seconds since 1970",
        "service",
    )
});
static PARKED: LazyLock<Option<IntGaugeVec>> =
    LazyLock::new(|| gauge("projector_parked_keys", "Keys with an input that could not be decided, by service", "service"));
static LAG_EVENTS: LazyLock<Option<IntGaugeVec>> =
    LazyLock::new(|| gauge("projector_lag_events", "Records in a view's input topics that it has not passed, by view", "view"));
static LAG_SECONDS: LazyLock<Option<IntGaugeVec>> = LazyLock::new(|| {
    gauge(
        "projector_lag_seconds",
        "Seconds since the oldest record that a view has not passed was appended, by view; 0 without lag",
        "view",
    )
});
static LOG_UP: LazyLock<Option<IntGauge>> =
    LazyLock::new(|| single("engine_log_up", "Whether the log answered the last query and accepts records (1) or not (0)"));
static STORE_UP: LazyLock<Option<IntGauge>> =
    LazyLock::new(|| single("engine_store_up", "Whether the view store answered the last query and accepts rows (1) or not (0)"));
static CLOCK_SKEW: LazyLock<Option<Gauge>> = LazyLock::new(|| {
    let gauge = Gauge::new(
        "engine_clock_skew_seconds",
        "Seconds by which this node's clock is ahead of the view store's; negative if it is behind",
    )
    .ok()?;
    prometheus::register(Box::new(gauge.clone())).ok()?;
    Some(gauge)
});

static CLOCK_BEHIND_LOG: LazyLock<Option<Gauge>> = LazyLock::new(|| {
    let gauge = Gauge::new(
        "engine_clock_behind_log_seconds",
        "Seconds by which this node's clock is before the last record that it knows; recorded times do not advance meanwhile; 0 if it is not",
    )
    .ok()?;
    prometheus::register(Box::new(gauge.clone())).ok()?;
    Some(gauge)
});

static DISK_FREE: LazyLock<Option<IntGauge>> = LazyLock::new(|| {
    single("engine_disk_free_bytes", "Free bytes of the disk of the data directory; 0 if neither log nor store is embedded")
});
static DISK_LOW: LazyLock<Option<IntGauge>> =
    LazyLock::new(|| single("engine_disk_low_bytes", "Free bytes below which space is low; 0 if neither log nor store is embedded"));

/// Returns the descriptions of all metrics in this module, for the table of metrics.
#[must_use]
pub fn descriptions() -> Vec<Desc> {
    fn of<C: Collector>(metric: &Option<C>) -> Vec<Desc> {
        metric.iter().flat_map(Collector::desc).cloned().collect()
    }
    let gauges = [&SEQ, &RECORDED_AT, &PARKED, &LAG_EVENTS, &LAG_SECONDS].map(|metric| of(metric)).concat();
    [of(&DECIDED), of(&FAILURES), gauges, of(&LOG_UP), of(&STORE_UP), of(&CLOCK_SKEW), of(&CLOCK_BEHIND_LOG), of(&DISK_FREE), of(&DISK_LOW)]
        .concat()
}

fn set(gauge: &LazyLock<Option<IntGaugeVec>>, label: &str, value: i64) {
    if let Some(gauge) = gauge.as_ref() {
        gauge.with_label_values(&[label]).set(value);
    }
}

fn i64_of(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Records a service's position and the number of facts decided since the last call.
pub(crate) fn record_progress(service: &'static str, checkpoint: &Checkpoint, decided: u64, parked: usize) {
    set(&SEQ, service, checkpoint.seq.stored());
    set(&RECORDED_AT, service, checkpoint.recorded_at_ms / 1_000);
    set(&PARKED, service, i64_of(parked as u64));
    if let Some(counter) = DECIDED.as_ref() {
        counter.with_label_values(&[service]).inc_by(decided);
    }
}

/// Clears the metrics that only the process which decides for a service maintains.
pub(crate) fn clear_parked(service: &'static str) {
    set(&PARKED, service, 0);
}

/// Records how far this node's clock is ahead of the view store's clock, in milliseconds.
pub fn set_clock_skew(skew_ms: i64) {
    if let Some(gauge) = CLOCK_SKEW.as_ref() {
        gauge.set(skew_ms as f64 / 1_000.0);
    }
}

/// Records how far this node's clock is before the last record of the log, in milliseconds.
pub fn set_clock_behind_log(behind_ms: i64) {
    if let Some(gauge) = CLOCK_BEHIND_LOG.as_ref() {
        gauge.set(behind_ms as f64 / 1_000.0);
    }
}

/// Records the free bytes of the disk of the data directory, and below how many space is low.
pub fn set_disk_space(free_bytes: u64, low_bytes: u64) {
    for (gauge, bytes) in [(&DISK_FREE, free_bytes), (&DISK_LOW, low_bytes)] {
        if let Some(gauge) = gauge.as_ref() {
            gauge.set(i64_of(bytes));
        }
    }
}

/// Counts a failed attempt to advance a view.
pub(crate) fn count_failure(service: &str) {
    if let Some(counter) = FAILURES.as_ref() {
        counter.with_label_values(&[service]).inc();
    }
}

/// Queries the log and the store, and records whether they answer and how far the views lag.
pub async fn sample(parts: &Parts) {
    let log = tokio::time::timeout(SAMPLE_TIME_MAX, async {
        for topic in topics::ALL {
            parts.log.end(topic, 0).await?;
        }
        parts.log.ready().await
    });
    let store = tokio::time::timeout(SAMPLE_TIME_MAX, async {
        parts.engine.checkpoint().await?;
        parts.store.ready().await
    });
    let (log, store) = tokio::join!(log, store);
    let (log, store) = (matches!(log, Ok(Ok(()))), matches!(store, Ok(Ok(()))));
    for (gauge, up) in [(&LOG_UP, log), (&STORE_UP, store)] {
        if let Some(gauge) = gauge.as_ref() {
            gauge.set(i64::from(up));
        }
    }
    if !(log && store) {
        return;
    }
    match tokio::time::timeout(SAMPLE_TIME_MAX, lag::measure(parts)).await {
        Ok(Ok(lags)) => {
            for lag in lags {
                set(&LAG_EVENTS, lag.view, i64_of(lag.events));
                set(&LAG_SECONDS, lag.view, i64_of(lag.seconds));
            }
        }
        // The view was replaced by a rebuild during the query; the next sample includes it.
        Ok(Err(Error::Store(view_store::Error::Gone { .. }))) => {}
        Ok(Err(error)) => tracing::warn!(error = reason(&error), "cannot measure the lag"),
        Err(_) => tracing::warn!("measuring the lag timed out"),
    }
}
