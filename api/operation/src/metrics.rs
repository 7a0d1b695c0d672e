//! What the surfaces count, in the default registry of the process. Labels are names of ours and HTTP statuses: closed sets.

use std::sync::LazyLock;
use std::time::Instant;

use http::StatusCode;
use prometheus::core::{Collector, Desc};
use prometheus::{Encoder, Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, TextEncoder};

/// A counter in the default registry; `None` if the registry refused it, which costs the numbers and not the calls.
fn counter(name: &str, help: &str, labels: &[&str]) -> Option<IntCounterVec> {
    let counter = IntCounterVec::new(Opts::new(name, help), labels).ok()?;
    prometheus::register(Box::new(counter.clone())).ok()?;
    Some(counter)
}

/// A gauge, likewise.
fn gauge(name: &str, help: &str) -> Option<IntGauge> {
    let gauge = IntGauge::new(name, help).ok()?;
    prometheus::register(Box::new(gauge.clone())).ok()?;
    Some(gauge)
}

static REQUESTS: LazyLock<Option<IntCounterVec>> = LazyLock::new(|| {
    counter(
        "api_requests_total",
        "Calls of operations answered, by service, operation and HTTP status",
        &["service", "operation", "status"],
    )
});
static SECONDS: LazyLock<Option<HistogramVec>> = LazyLock::new(|| {
    let opts = HistogramOpts::new(
        "api_request_seconds",
        "Seconds from the head of a call to the head of its answer, by service, operation and class of status",
    )
    .buckets(vec![0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0]);
    let histogram = HistogramVec::new(opts, &["service", "operation", "class"]).ok()?;
    prometheus::register(Box::new(histogram.clone())).ok()?;
    Some(histogram)
});
static RESPONSES: LazyLock<Option<IntCounterVec>> =
    LazyLock::new(|| counter("api_responses_total", "Answers of the listener of every kind, by HTTP status", &["status"]));
static PUBLISHED: LazyLock<Option<IntCounterVec>> =
    LazyLock::new(|| counter("api_changes_published_total", "Changes sent to readers in pages of feeds, by service", &["service"]));
static PAYMENTS: LazyLock<Option<IntCounterVec>> = LazyLock::new(|| {
    counter("api_payments_total", "Calls of operations that are sold, by service and what became of the payment", &["service", "outcome"])
});
static REVENUE: LazyLock<Option<IntCounterVec>> =
    LazyLock::new(|| counter("api_payments_settled_micros_total", "Millionths of a US dollar settled, by service", &["service"]));
static UNSETTLED: LazyLock<Option<IntGauge>> = LazyLock::new(|| {
    gauge(
        "api_payments_overdue",
        "Payments whose time is over and of which nobody knows whether they were settled, at the node that looks after them",
    )
});
static SIGNING_REFUSED: LazyLock<Option<IntGauge>> = LazyLock::new(|| {
    gauge(
        "api_checkpoint_signing_refused",
        "Whether this node refuses to sign receipts and checkpoints, because its log does not continue what was signed before (1), or signs (0)",
    )
});
static WITNESS_BEHIND: LazyLock<Option<IntGaugeVec>> = LazyLock::new(|| {
    let opts = Opts::new(
        "api_checkpoint_witness_behind_seconds",
        "For how long a service's newest checkpoint has lacked the cosignature of a witness, at the node that asks; 0 if it has it",
    );
    let gauge = IntGaugeVec::new(opts, &["witness", "service"]).ok()?;
    prometheus::register(Box::new(gauge.clone())).ok()?;
    Some(gauge)
});
static ATTEMPTS: LazyLock<Option<IntCounterVec>> = LazyLock::new(|| {
    counter("api_webhook_attempts_total", "Messages posted to webhooks, by service and what became of them", &["service", "outcome"])
});
static SENDERS: LazyLock<Option<IntGauge>> =
    LazyLock::new(|| gauge("api_webhook_senders", "Whether this node sends to webhooks (1) or another one may (0)"));
static TARGETS_WELL: LazyLock<Option<IntGauge>> =
    LazyLock::new(|| gauge("api_webhook_targets_well", "Webhooks that took their last message, at the node that sends"));
static TARGETS_FAILING: LazyLock<Option<IntGauge>> =
    LazyLock::new(|| gauge("api_webhook_targets_failing", "Webhooks that did not take their last message, at the node that sends"));
static TARGETS_DISABLED: LazyLock<Option<IntGauge>> = LazyLock::new(|| {
    gauge("api_webhook_targets_disabled", "Webhooks to which nothing is sent until they are resumed, at the node that sends")
});
static OLDEST_UNDELIVERED: LazyLock<Option<IntGauge>> = LazyLock::new(|| {
    gauge(
        "api_webhook_oldest_undelivered_seconds",
        "For how long the message has been under way that waits longest, at the node that sends",
    )
});
static ANSWERING: LazyLock<Option<IntGauge>> = LazyLock::new(|| gauge("api_requests_in_flight", "Requests being answered"));
static OPEN: LazyLock<Option<IntGauge>> = LazyLock::new(|| gauge("api_connections_open", "Connections open"));
static OPEN_MAX: LazyLock<Option<IntGauge>> =
    LazyLock::new(|| gauge("api_connections_max", "Connections that may be open at once; more wait in the system's queue"));
static READY: LazyLock<Option<IntGauge>> = LazyLock::new(|| gauge("api_ready", "Whether /readyz says yes (1) or no (0)"));
static TASKS: LazyLock<Option<IntGauge>> = LazyLock::new(|| gauge("runtime_tasks_alive", "Tasks of the process, running or waiting"));
static QUEUED: LazyLock<Option<IntGauge>> =
    LazyLock::new(|| gauge("runtime_tasks_queued", "Tasks that could run and wait for a thread, in the queue that all threads share"));

/// What is counted here, for the table of metrics.
#[must_use]
pub fn described() -> Vec<Desc> {
    fn of<C: Collector>(metric: &Option<C>) -> Vec<Desc> {
        metric.iter().flat_map(Collector::desc).cloned().collect()
    }
    let counters = [&REQUESTS, &RESPONSES, &PUBLISHED, &PAYMENTS, &REVENUE, &ATTEMPTS].map(|metric| of(metric)).concat();
    let targets = [&SENDERS, &TARGETS_WELL, &TARGETS_FAILING, &TARGETS_DISABLED, &OLDEST_UNDELIVERED].map(|metric| of(metric)).concat();
    let gauges = [&UNSETTLED, &SIGNING_REFUSED, &ANSWERING, &OPEN, &OPEN_MAX, &READY, &TASKS, &QUEUED].map(|metric| of(metric)).concat();
    [counters, of(&SECONDS), of(&WITNESS_BEHIND), gauges, targets].concat()
}

fn set(gauge: &LazyLock<Option<IntGauge>>, value: usize) {
    if let Some(gauge) = gauge.as_ref() {
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
    }
}

fn change(gauge: &LazyLock<Option<IntGauge>>, by: i64) {
    if let Some(gauge) = gauge.as_ref() {
        gauge.add(by);
    }
}

/// The classes of HTTP statuses that an answer may have.
const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// The numbers of one operation, with the labels looked up beforehand.
#[derive(Debug)]
pub struct Meter {
    service: &'static str,
    operation: &'static str,
    /// One for each of [`CLASSES`].
    seconds: Option<[Histogram; 4]>,
}

impl Meter {
    /// The meter of an operation.
    #[must_use]
    pub fn new(service: &'static str, operation: &'static str) -> Self {
        let seconds = SECONDS.as_ref().map(|seconds| CLASSES.map(|class| seconds.with_label_values(&[service, operation, class])));
        Self { service, operation, seconds }
    }

    /// Counts one call.
    pub fn count(&self, status: u16, since: Instant) {
        if let (Some(requests), Ok(status)) = (REQUESTS.as_ref(), StatusCode::from_u16(status)) {
            requests.with_label_values(&[self.service, self.operation, status.as_str()]).inc();
        }
        let class = usize::from(status / 100).saturating_sub(2);
        if let Some(seconds) = self.seconds.as_ref().and_then(|seconds| seconds.get(class)) {
            seconds.observe(since.elapsed().as_secs_f64());
        }
    }
}

/// What became of a payment, or of a call without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paid {
    /// No payment came: the terms were told.
    Asked,
    /// The answer was sold, now or by an earlier copy.
    Settled,
    /// The payment was refused.
    Refused,
    /// A copy of it was being settled.
    Busy,
    /// Nobody knows yet.
    Unknown,
}

/// Counts a call of an operation that is sold.
pub fn paid(service: &str, paid: Paid) {
    let outcome = match paid {
        Paid::Asked => "asked",
        Paid::Settled => "settled",
        Paid::Refused => "refused",
        Paid::Busy => "busy",
        Paid::Unknown => "unknown",
    };
    if let Some(payments) = PAYMENTS.as_ref() {
        payments.with_label_values(&[service, outcome]).inc();
    }
}

/// Counts money that was recorded as settled.
pub fn settled(service: &str, micros: i64) {
    if let Some(revenue) = REVENUE.as_ref() {
        revenue.with_label_values(&[service]).inc_by(u64::try_from(micros).unwrap_or(0));
    }
}

/// Counts an attempt to deliver a message, by its outcome.
pub fn posted(service: &str, outcome: &'static str) {
    if let Some(attempts) = ATTEMPTS.as_ref() {
        attempts.with_label_values(&[service, outcome]).inc();
    }
}

/// Shows how the targets of webhooks stand.
pub fn targets(senders: usize, well: usize, failing: usize, disabled: usize, oldest_s: usize) {
    set(&SENDERS, senders);
    set(&TARGETS_WELL, well);
    set(&TARGETS_FAILING, failing);
    set(&TARGETS_DISABLED, disabled);
    set(&OLDEST_UNDELIVERED, oldest_s);
}

/// Shows whether this node refuses to sign.
pub fn signing_refused(is_refused: bool) {
    set(&SIGNING_REFUSED, usize::from(is_refused));
}

/// Shows for how long a witness has not cosigned the newest checkpoint of a service; `None` where another node asks.
pub fn witness_behind(witness: &str, service: &str, seconds: Option<u64>) {
    let Some(gauge) = WITNESS_BEHIND.as_ref() else { return };
    match seconds {
        Some(seconds) => gauge.with_label_values(&[witness, service]).set(i64::try_from(seconds).unwrap_or(i64::MAX)),
        // It may not have been shown at all.
        None => drop(gauge.remove_label_values(&[witness, service])),
    }
}

/// Shows of how many payments nobody knows although their time is over.
pub fn payments_overdue(overdue: usize) {
    set(&UNSETTLED, overdue);
}

/// A request being answered, also one whose caller goes away.
pub struct Answering;

impl Answering {
    /// Counts a request until it is dropped.
    #[must_use]
    pub fn begin() -> Self {
        change(&ANSWERING, 1);
        Self
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        change(&ANSWERING, -1);
    }
}

/// Counts an answer of any kind.
pub fn answered(status: StatusCode) {
    if let Some(responses) = RESPONSES.as_ref() {
        responses.with_label_values(&[status.as_str()]).inc();
    }
}

/// Counts the changes of a page.
pub fn published(service: &str, changes: usize) {
    if let Some(published) = PUBLISHED.as_ref() {
        published.with_label_values(&[service]).inc_by(changes as u64);
    }
}

/// Shows how many connections are open, of how many.
pub fn connections(open: usize, max: usize) {
    set(&OPEN, open);
    set(&OPEN_MAX, max);
}

/// Everything in the default registry as text, and its content type. `is_ready` is what `/readyz` says now.
pub fn text(is_ready: bool) -> (Vec<u8>, String) {
    set(&READY, usize::from(is_ready));
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        let runtime = runtime.metrics();
        set(&TASKS, runtime.num_alive_tasks());
        set(&QUEUED, runtime.global_queue_depth());
    }
    let encoder = TextEncoder::new();
    let mut text = Vec::new();
    if let Err(error) = encoder.encode(&prometheus::gather(), &mut text) {
        tracing::error!(%error, "the metrics cannot be written");
    }
    (text, encoder.format_type().to_owned())
}
