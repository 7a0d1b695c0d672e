//! The operations of the service, one file each, and what they share.

pub(crate) mod addresses;
pub mod list;
pub(crate) mod notice;
pub mod rows;
pub mod search;
pub(crate) mod sources;
pub mod webhook;

use feed::Source;
use fold::service::Service;
use schemas::views::recalls::{HISTORY, THROUGH};

use crate::rules::Recalls;

/// The source of the service's changes. The service implements [`Service`] itself, so the tables that only readers know are named here.
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
