//! What the surfaces count, in the default registry of the process.

use std::sync::LazyLock;
use std::time::Instant;

use prometheus::{Encoder, Histogram, HistogramOpts, HistogramVec, IntCounterVec, Opts, TextEncoder};

/// Calls by service, operation and HTTP status; `None` if the registry refused it, which costs the numbers and not the calls.
static REQUESTS: LazyLock<Option<IntCounterVec>> = LazyLock::new(|| {
    let opts = Opts::new("api_requests_total", "Calls answered, by service, operation and HTTP status");
    let counter = IntCounterVec::new(opts, &["service", "operation", "status"]).ok()?;
    prometheus::register(Box::new(counter.clone())).ok()?;
    Some(counter)
});

/// How long calls took, in seconds.
static SECONDS: LazyLock<Option<HistogramVec>> = LazyLock::new(|| {
    let opts = HistogramOpts::new("api_request_seconds", "Seconds from the head of a request to the head of its answer")
        .buckets(vec![0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0]);
    let histogram = HistogramVec::new(opts, &["service", "operation"]).ok()?;
    prometheus::register(Box::new(histogram.clone())).ok()?;
    Some(histogram)
});

/// The numbers of one operation, with the labels looked up beforehand.
#[derive(Debug)]
pub(crate) struct Meter {
    service: &'static str,
    operation: &'static str,
    seconds: Option<Histogram>,
}

impl Meter {
    pub(crate) fn new(service: &'static str, operation: &'static str) -> Self {
        let seconds = SECONDS.as_ref().map(|seconds| seconds.with_label_values(&[service, operation]));
        Self { service, operation, seconds }
    }

    /// Counts one call.
    pub(crate) fn count(&self, status: u16, since: Instant) {
        if let (Some(requests), Ok(status)) = (REQUESTS.as_ref(), http::StatusCode::from_u16(status)) {
            requests.with_label_values(&[self.service, self.operation, status.as_str()]).inc();
        }
        if let Some(seconds) = &self.seconds {
            seconds.observe(since.elapsed().as_secs_f64());
        }
    }
}

/// Everything in the default registry as text, and its content type.
pub(crate) fn text() -> (Vec<u8>, String) {
    let encoder = TextEncoder::new();
    let mut text = Vec::new();
    if let Err(error) = encoder.encode(&prometheus::gather(), &mut text) {
        tracing::error!(%error, "the metrics cannot be written");
    }
    (text, encoder.format_type().to_owned())
}
