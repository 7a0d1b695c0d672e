//! The source of the service's changes.

use feed::Source;
use schemas::topics;
use schemas::views::recalls::{FEED, HISTORY, PARKED, RECALLS, THROUGH, VIEW};

/// The source of the service's changes.
pub const SOURCE: Source = Source {
    service: "recalls",
    view: &VIEW,
    records: &RECALLS,
    history: &HISTORY,
    feed: &FEED,
    through: &THROUGH,
    parked: &PARKED,
    topic: &topics::CHANGES_RECALLS,
    facts: &[topics::RECALLS],
    sample_days: None,
    redaction: None,
};
