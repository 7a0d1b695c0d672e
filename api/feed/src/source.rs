//! The tables and topics that hold the changes of a service.

use schemas::tables::{Table, ViewDef};
use schemas::topics::Topic;

/// The tables and topics that hold the changes of a service.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The name of the service.
    pub service: &'static str,
    /// The view of the service.
    pub view: &'static ViewDef,
    /// The feed table of the view.
    pub feed: &'static Table,
    /// The table of completed sync runs: (upstream, seq descending).
    pub through: &'static Table,
    /// The topic of the service's changes.
    pub topic: &'static Topic,
    /// The topics of the facts that the service is decided from. The upstreams of these topics determine its completeness.
    pub facts: &'static [Topic],
    /// How many days back callers without a key see; `None`: everything.
    pub sample_days: Option<i64>,
}
