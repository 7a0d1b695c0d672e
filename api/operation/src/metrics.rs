//! The metrics of the API, in the default registry of the process. Label values are our own names and HTTP statuses: closed sets.

use std::sync::{LazyLock, OnceLock};
use std::time::Instant;

use http::StatusCode;
use prometheus::core::{Collector, Desc};
use prometheus::{Encoder, Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, TextEncoder};

/// Registers a counter; `None` if the registry refuses it: then the metric is missing, but calls work.
fn counter(name: &str, help: &str, labels: &[&str]) -> Option<IntCounterVec> {
    let counter = IntCounterVec::new(Opts::new(name, help), labels).ok()?;
    prometheus::register(Box::new(counter.clone())).ok()?;
    Some(counter)
}

/// Registers a gauge; `None` if the registry refuses it.
fn gauge(name: &str, help: &str) -> Option<IntGauge> {
    let gauge = IntGauge::new(name, help).ok()?;
    prometheus::register(Box::new(gauge.clone())).ok()?;
    Some(gauge)
}

static REQUESTS: LazyLock<Option<IntCounterVec>> = LazyLock::new(|| {
    counter(
        "api_requests_total",
        "Answered calls of operations, by service, operation and HTTP status",
        &["service", "operation", "status"],
    )
});
/// The upper bounds of `api_request_seconds`. A call may wait 30 s for changes before it takes its own time, so the last bound lies beyond both.
const REQUEST_SECONDS: [f64; 16] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

static SECONDS: LazyLock<Option<HistogramVec>> = LazyLock::new(|| {
    let opts = HistogramOpts::new(
        "api_request_seconds",
        "Seconds from the head of a request to the head of its response, by service, operation and status class",
    )
    .buckets(REQUEST_SECONDS.to_vec());
    let histogram = HistogramVec::new(opts, &["service", "operation", "class"]).ok()?;
    prometheus::register(Box::new(histogram.clone())).ok()?;
    Some(histogram)
});
static RESPONSES: LazyLock<Option<IntCounterVec>> =
    LazyLock::new(|| counter("api_responses_total", "All HTTP responses, by status", &["status"]));
static PUBLISHED: LazyLock<Option<IntCounterVec>> =
    LazyLock::new(|| counter("api_changes_published_total", "Changes sent to readers in pages of feeds, by service", &["service"]));
static LOOKUPS: LazyLock<Option<IntCounterVec>> = LazyLock::new(|| {
    counter(
        "api_lookups_total",
        "Live look-ups at upstreams for answers, by upstream and outcome; the share of `cached` is the hit rate of the cache",
        &["upstream", "outcome"],
    )
});
static PAYMENTS: LazyLock<Option<IntCounterVec>> = LazyLock::new(|| {
    counter("api_payments_total", "Calls of paid operations, by service and outcome of the payment", &["service", "outcome"])
});
static REVENUE: LazyLock<Option<IntCounterVec>> = LazyLock::new(|| {
    counter("api_payments_settled_micros_total", "Settled payments in millionths of a US dollar, by service", &["service"])
});
static UNSETTLED: LazyLock<Option<IntGauge>> =
    LazyLock::new(|| gauge("api_payments_overdue", "Expired payments whose settlement status is unknown, at the node that checks them"));
static ROUNDS: LazyLock<Option<IntCounterVec>> = LazyLock::new(|| {
    counter("api_rounds_total", "Rounds of tasks that look for work again and again, by task, also rounds without work", &["task"])
});
static SIGNING_REFUSED: LazyLock<Option<IntGauge>> = LazyLock::new(|| {
    gauge(
        "api_checkpoint_signing_refused",
        "Whether this node refuses to sign receipts and checkpoints because its log does not extend what was signed before (1), or signs them (0)",
    )
});
static WITNESS_BEHIND: LazyLock<Option<IntGaugeVec>> = LazyLock::new(|| {
    let opts = Opts::new(
        "api_checkpoint_witness_behind_seconds",
        "How long a service's newest checkpoint has lacked the cosignature of a witness, at the node that requests it; 0 if it is cosigned",
    );
    let gauge = IntGaugeVec::new(opts, &["witness", "service"]).ok()?;
    prometheus::register(Box::new(gauge.clone())).ok()?;
    Some(gauge)
});
static ATTEMPTS: LazyLock<Option<IntCounterVec>> = LazyLock::new(|| {
    counter("api_webhook_attempts_total", "Delivery attempts to webhooks, by service and outcome", &["service", "outcome"])
});
static SENDERS: LazyLock<Option<IntGauge>> =
    LazyLock::new(|| gauge("api_webhook_senders", "Whether this node sends webhooks (1) or not (0)"));
static TARGETS_HEALTHY: LazyLock<Option<IntGauge>> =
    LazyLock::new(|| gauge("api_webhook_targets_healthy", "Webhooks that accepted their last message, at the node that sends"));
static TARGETS_FAILING: LazyLock<Option<IntGauge>> =
    LazyLock::new(|| gauge("api_webhook_targets_failing", "Webhooks that did not accept their last message, at the node that sends"));
static TARGETS_DISABLED: LazyLock<Option<IntGauge>> = LazyLock::new(|| {
    gauge("api_webhook_targets_disabled", "Disabled webhooks, which get no messages until they are resumed, at the node that sends")
});
static OLDEST_UNDELIVERED: LazyLock<Option<IntGauge>> = LazyLock::new(|| {
    gauge("api_webhook_oldest_undelivered_seconds", "Age of the oldest message that is not delivered yet, at the node that sends")
});
static INDEX_VERSIONS: LazyLock<Option<IntGauge>> =
    LazyLock::new(|| gauge("api_name_index_versions", "Versions of trademarks in the index of names of this node"));
static INDEX_BYTES: LazyLock<Option<IntGauge>> =
    LazyLock::new(|| gauge("api_name_index_bytes", "Bytes of memory that the index of names of this node uses"));
static INDEX_SEQ: LazyLock<Option<IntGauge>> =
    LazyLock::new(|| gauge("api_name_index_seq", "Seq of the last change in the index of names of this node"));
static INDEX_RECORDED: LazyLock<Option<IntGauge>> = LazyLock::new(|| {
    gauge(
        "api_name_index_recorded_timestamp_seconds",
        "When the last change in the index of names of this node was recorded, in seconds since 1970",
    )
});
static IN_FLIGHT: LazyLock<Option<IntGauge>> = LazyLock::new(|| gauge("api_requests_in_flight", "Requests in flight"));
static OPEN: LazyLock<Option<IntGauge>> = LazyLock::new(|| gauge("api_connections_open", "Open connections"));
static OPEN_MAX: LazyLock<Option<IntGauge>> =
    LazyLock::new(|| gauge("api_connections_max", "The most open connections; more wait in the queue of the operating system"));
static READY: LazyLock<Option<IntGauge>> = LazyLock::new(|| gauge("api_ready", "Whether /readyz reports ready (1) or not (0)"));
static TASKS: LazyLock<Option<IntGauge>> = LazyLock::new(|| gauge("runtime_tasks_alive", "Tokio tasks that are alive"));
static QUEUED: LazyLock<Option<IntGauge>> =
    LazyLock::new(|| gauge("runtime_tasks_queued", "Tokio tasks in the global queue that wait for a thread"));

/// The descriptions of all metrics of this module, for the reference documentation.
#[must_use]
pub fn descriptions() -> Vec<Desc> {
    fn of<C: Collector>(metric: &Option<C>) -> Vec<Desc> {
        metric.iter().flat_map(Collector::desc).cloned().collect()
    }
    let counters = [&REQUESTS, &RESPONSES, &PUBLISHED, &LOOKUPS, &PAYMENTS, &REVENUE, &ROUNDS, &ATTEMPTS].map(|metric| of(metric)).concat();
    let targets = [&SENDERS, &TARGETS_HEALTHY, &TARGETS_FAILING, &TARGETS_DISABLED, &OLDEST_UNDELIVERED].map(|metric| of(metric)).concat();
    let index = [&INDEX_VERSIONS, &INDEX_BYTES, &INDEX_SEQ, &INDEX_RECORDED].map(|metric| of(metric)).concat();
    let gauges = [&UNSETTLED, &SIGNING_REFUSED, &IN_FLIGHT, &OPEN, &OPEN_MAX, &READY, &TASKS, &QUEUED].map(|metric| of(metric)).concat();
    [counters, of(&SECONDS), of(&WITNESS_BEHIND), gauges, targets, index].concat()
}

fn set(gauge: &LazyLock<Option<IntGauge>>, value: usize) {
    if let Some(gauge) = gauge.as_ref() {
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
    }
}

/// Sets the gauges of the index of names: its versions of trademarks, its bytes, its last change, and when that was recorded, in milliseconds
/// since 1970.
pub fn set_name_index(versions: usize, bytes: usize, seq: u32, recorded_at_ms: i64) {
    set(&INDEX_VERSIONS, versions);
    set(&INDEX_BYTES, bytes);
    set(&INDEX_SEQ, seq as usize);
    set(&INDEX_RECORDED, usize::try_from(recorded_at_ms / 1_000).unwrap_or_default());
}

fn change(gauge: &LazyLock<Option<IntGauge>>, by: i64) {
    if let Some(gauge) = gauge.as_ref() {
        gauge.add(by);
    }
}

/// The status classes in metrics.
const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// The metrics of one operation, with the labels resolved once. An operation has no series before its first call: most operations of most processes
/// are never called, and each histogram has a line for each bucket.
#[derive(Debug)]
pub struct Meter {
    service: &'static str,
    operation: &'static str,
    /// One for each of [`CLASSES`], made with its first call.
    seconds: [OnceLock<Histogram>; CLASSES.len()],
}

impl Meter {
    /// The meter of an operation.
    #[must_use]
    pub fn new(service: &'static str, operation: &'static str) -> Self {
        Self { service, operation, seconds: Default::default() }
    }

    /// Counts one call.
    pub fn count(&self, status: u16, since: Instant) {
        if let (Some(requests), Ok(status)) = (REQUESTS.as_ref(), StatusCode::from_u16(status)) {
            requests.with_label_values(&[self.service, self.operation, status.as_str()]).inc();
        }
        let class = usize::from(status / 100).saturating_sub(2);
        if let (Some(all), Some(own), Some(name)) = (SECONDS.as_ref(), self.seconds.get(class), CLASSES.get(class)) {
            own.get_or_init(|| all.with_label_values(&[self.service, self.operation, name])).observe(since.elapsed().as_secs_f64());
        }
    }
}

/// The outcome of a live look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupOutcome {
    /// The answer was in the cache, or another call was getting it.
    Cached,
    /// The upstream answered.
    Answered,
    /// There is no answer.
    Failed,
}

/// Counts a live look-up.
pub fn count_lookup(upstream: &str, outcome: LookupOutcome) {
    let label = match outcome {
        LookupOutcome::Cached => "cached",
        LookupOutcome::Answered => "answered",
        LookupOutcome::Failed => "failed",
    };
    if let Some(lookups) = LOOKUPS.as_ref() {
        lookups.with_label_values(&[upstream, label]).inc();
    }
}

/// The outcome of a call of a paid operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaymentOutcome {
    /// The call had no payment and got the payment terms.
    TermsSent,
    /// The payment is settled, and bought the answer.
    Settled,
    /// The payment was settled by an earlier call, whose answer the buyer gets again.
    Repeated,
    /// The payment was refused.
    Refused,
    /// Another copy of the request is being settled.
    Busy,
    /// Whether the payment was settled is not known yet.
    Unknown,
}

/// Counts a call of a paid operation.
pub fn count_payment(service: &str, outcome: PaymentOutcome) {
    let label = match outcome {
        PaymentOutcome::TermsSent => "asked",
        PaymentOutcome::Settled => "settled",
        PaymentOutcome::Repeated => "repeated",
        PaymentOutcome::Refused => "refused",
        PaymentOutcome::Busy => "busy",
        PaymentOutcome::Unknown => "unknown",
    };
    if let Some(payments) = PAYMENTS.as_ref() {
        payments.with_label_values(&[service, label]).inc();
    }
}

/// Counts the amount of a settled payment.
pub fn count_settled(service: &str, micros: i64) {
    if let Some(revenue) = REVENUE.as_ref() {
        revenue.with_label_values(&[service]).inc_by(u64::try_from(micros).unwrap_or(0));
    }
}

/// Counts a delivery attempt, by outcome.
pub fn count_delivery(service: &str, outcome: &'static str) {
    if let Some(attempts) = ATTEMPTS.as_ref() {
        attempts.with_label_values(&[service, outcome]).inc();
    }
}

/// Sets the metrics of webhook delivery.
pub fn set_webhook_targets(senders: usize, healthy: usize, failing: usize, disabled: usize, oldest_s: usize) {
    set(&SENDERS, senders);
    set(&TARGETS_HEALTHY, healthy);
    set(&TARGETS_FAILING, failing);
    set(&TARGETS_DISABLED, disabled);
    set(&OLDEST_UNDELIVERED, oldest_s);
}

/// Sets whether this node refuses to sign.
pub fn set_signing_refused(is_refused: bool) {
    set(&SIGNING_REFUSED, usize::from(is_refused));
}

/// Sets how long a witness has not cosigned the newest checkpoint of a service; `None` if another node requests cosignatures.
pub fn set_witness_behind(witness: &str, service: &str, seconds: Option<u64>) {
    let Some(gauge) = WITNESS_BEHIND.as_ref() else { return };
    match seconds {
        Some(seconds) => gauge.with_label_values(&[witness, service]).set(i64::try_from(seconds).unwrap_or(i64::MAX)),
        // The label values may not exist yet.
        None => drop(gauge.remove_label_values(&[witness, service])),
    }
}

/// Sets how many expired payments have an unknown settlement status.
pub fn set_payments_overdue(overdue: usize) {
    set(&UNSETTLED, overdue);
}

/// A request in flight, even if its client disconnected.
pub struct RequestInFlight;

impl RequestInFlight {
    /// Counts a request as in flight until this value is dropped.
    #[must_use]
    pub fn begin() -> Self {
        change(&IN_FLIGHT, 1);
        Self
    }
}

impl Drop for RequestInFlight {
    fn drop(&mut self) {
        change(&IN_FLIGHT, -1);
    }
}

/// Counts a response.
pub fn count_response(status: StatusCode) {
    if let Some(responses) = RESPONSES.as_ref() {
        responses.with_label_values(&[status.as_str()]).inc();
    }
}

/// Counts the changes of a page.
pub fn count_published(service: &str, changes: usize) {
    if let Some(published) = PUBLISHED.as_ref() {
        published.with_label_values(&[service]).inc_by(changes as u64);
    }
}

/// A task that looks for work in rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundTask {
    /// Follows up payments whose settlement is unknown.
    Payments,
    /// Compares the log with what was signed before.
    Signer,
    /// Signs checkpoints over the changes of each service.
    Checkpoints,
    /// Passes new checkpoints on to witnesses.
    Witnesses,
    /// Reads keys of receipts that were copied to their directory.
    ReceiptKeys,
    /// Checks whether the key of a waiting call still works.
    RevokedKeys,
}

/// Counts a round that ended.
pub fn count_round(task: RoundTask) {
    let label = match task {
        RoundTask::Payments => "payments",
        RoundTask::Signer => "signer",
        RoundTask::Checkpoints => "checkpoints",
        RoundTask::Witnesses => "witnesses",
        RoundTask::ReceiptKeys => "receipt_keys",
        RoundTask::RevokedKeys => "revoked_keys",
    };
    if let Some(rounds) = ROUNDS.as_ref() {
        rounds.with_label_values(&[label]).inc();
    }
}

/// Sets the number of open connections, and the limit.
pub fn set_connections(open: usize, max: usize) {
    set(&OPEN, open);
    set(&OPEN_MAX, max);
}

/// Renders all metrics of the default registry, and returns their content type. `is_ready` is the result of `/readyz`.
pub fn render(is_ready: bool) -> (Vec<u8>, String) {
    set(&READY, usize::from(is_ready));
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        let runtime = runtime.metrics();
        set(&TASKS, runtime.num_alive_tasks());
        set(&QUEUED, runtime.global_queue_depth());
    }
    let encoder = TextEncoder::new();
    let mut text = Vec::new();
    if let Err(error) = encoder.encode(&prometheus::gather(), &mut text) {
        tracing::error!(%error, "the metrics cannot be encoded");
    }
    (text, format!("{}; charset=utf-8", encoder.format_type()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that an operation has no series before its first call, and after it those of the status class that it had.
    #[test]
    fn operations_that_were_not_called_have_no_series() {
        let shown = |needle: &str| String::from_utf8(render(true).0).unwrap().contains(needle);
        let meter = Meter::new("quiet", "rare");
        assert!(!shown("service=\"quiet\""));
        meter.count(429, Instant::now());
        assert!(shown("api_requests_total{operation=\"rare\",service=\"quiet\",status=\"429\"} 1"));
        assert!(shown("api_request_seconds_count{class=\"4xx\",operation=\"rare\",service=\"quiet\"} 1"));
        assert!(!shown("class=\"2xx\",operation=\"rare\",service=\"quiet\""));
    }

    /// Proves that a call that waited as long as one may, and then took its time, is within the bounds of the histogram, as a fast one is.
    #[test]
    fn calls_that_wait_are_within_the_bounds() {
        assert!(REQUEST_SECONDS.is_sorted() && REQUEST_SECONDS[0] < 0.001, "{REQUEST_SECONDS:?}");
        let seconds = SECONDS.as_ref().unwrap().with_label_values(&["bounds", "waits", "2xx"]);
        seconds.observe(30.5);
        seconds.observe(0.0004);
        let text = String::from_utf8(render(true).0).unwrap();
        let bucket =
            |bound: &str| format!("api_request_seconds_bucket{{class=\"2xx\",operation=\"waits\",service=\"bounds\",le=\"{bound}\"}}");
        for (bound, count) in [("0.0005", 1), ("30", 1), ("60", 2)] {
            assert!(text.contains(&format!("{} {count}\n", bucket(bound))), "{bound}: {text}");
        }
    }

    /// Proves that rounds are counted by task.
    #[test]
    fn rounds_are_counted() {
        count_round(RoundTask::Witnesses);
        count_round(RoundTask::Witnesses);
        count_round(RoundTask::ReceiptKeys);
        let text = String::from_utf8(render(true).0).unwrap();
        assert!(
            text.contains("api_rounds_total{task=\"witnesses\"} 2") && text.contains("api_rounds_total{task=\"receipt_keys\"} 1"),
            "{text}"
        );
    }
}
