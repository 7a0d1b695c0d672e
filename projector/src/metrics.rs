//! What projection shows of itself, in the default registry of the process. Labels are services: a closed set.

use std::sync::LazyLock;

use prometheus::{IntGaugeVec, Opts};
use view_store::Checkpoint;

/// A gauge in the default registry; `None` if the registry refused it, which costs the numbers and not the work.
fn gauge(name: &str, help: &str) -> Option<IntGaugeVec> {
    let gauge = IntGaugeVec::new(Opts::new(name, help), &["service"]).ok()?;
    prometheus::register(Box::new(gauge.clone())).ok()?;
    Some(gauge)
}

static SEQ: LazyLock<Option<IntGaugeVec>> = LazyLock::new(|| gauge("projector_change_seq", "Seq of the last change projected, by service"));
static RECORDED_AT: LazyLock<Option<IntGaugeVec>> =
    LazyLock::new(|| gauge("projector_change_recorded_timestamp_seconds", "When that change was recorded, in seconds since 1970"));

/// Shows how far a service has come.
pub(crate) fn projected(service: &'static str, checkpoint: &Checkpoint) {
    let seq = i64::try_from(checkpoint.seq).unwrap_or(i64::MAX);
    for (gauge, value) in [(&SEQ, seq), (&RECORDED_AT, checkpoint.recorded_at_ms / 1_000)] {
        if let Some(gauge) = gauge.as_ref() {
            gauge.with_label_values(&[service]).set(value);
        }
    }
}
