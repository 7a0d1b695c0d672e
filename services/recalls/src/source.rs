//! The source of the service's changes.

use feed::Source;
use fold::service::Service;
use schemas::views::recalls::{HISTORY, THROUGH};

use crate::rules::Recalls;

/// The source of the service's changes.
pub const SOURCE: Source = Source {
    service: Recalls::NAME,
    view: Recalls::VIEW,
    records: Recalls::RECORDS,
    history: &HISTORY,
    feed: Recalls::FEED,
    through: &THROUGH,
    parked: Recalls::PARKED,
    topic: Recalls::CHANGES,
    facts: Recalls::INPUTS,
    sample_days: None,
    redaction: None,
};
