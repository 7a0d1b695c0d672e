//! Where the changes of a service are.

use schemas::tables::{Table, ViewDef};
use schemas::topics::Topic;

/// Where a service's changes are.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The service's name.
    pub service: &'static str,
    /// Its view.
    pub view: &'static ViewDef,
    /// The feed table of it.
    pub feed: &'static Table,
    /// The table of completed runs: (upstream, seq descending).
    pub through: &'static Table,
    /// The topic of its changes.
    pub topic: &'static Topic,
    /// The topics of the facts it is decided from; those topics' upstreams are the ones whose completeness counts.
    pub facts: &'static [Topic],
    /// Without a key only so many days back are shown; `None`: all.
    pub sample_days: Option<i64>,
}
