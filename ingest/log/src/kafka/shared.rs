//! What the clients of a log share: the connection's settings and the state of each partition.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::consumer::BaseConsumer;
use schemas::position::LogOffset;
use schemas::topics::Topic;
use tokio::sync::watch;

use super::settings::{ConnectionState, Options, failed};
use crate::Error;

/// How long a call waits for a broker that does not respond.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(30);

/// How long the readiness check waits for a broker.
pub(super) const READY_MAX: Duration = Duration::from_secs(2);

/// The pause before a client that was created recently is replaced, and before its subscriptions are assigned again.
pub(super) const RECONNECT_PAUSE: Duration = Duration::from_secs(1);

/// The state of one partition.
pub(super) struct PartitionState {
    pub(super) topic: &'static Topic,
    pub(super) partition: u32,
    /// The topic's name on the broker.
    pub(super) name: Arc<str>,
    /// The highest known end offset: acknowledged, read or requested.
    pub(super) end: watch::Sender<LogOffset>,
}

impl PartitionState {
    /// Records that the partition's end is `end` or higher.
    pub(super) fn raise_end(&self, end: LogOffset) {
        self.end.send_if_modified(|known| {
            let is_higher = end > *known;
            *known = (*known).max(end);
            is_higher
        });
    }

    pub(super) fn partition_i32(&self) -> i32 {
        i32::try_from(self.partition).unwrap_or(i32::MAX)
    }
}

/// State that all parts of the log share.
pub(super) struct Shared {
    pub(super) options: Options,
    /// All partitions of all topics, in the order of `options.topics`.
    pub(super) partitions: Vec<PartitionState>,
    pub(super) closed: watch::Sender<bool>,
}

impl Shared {
    pub(super) fn partition_index(&self, topic: &'static Topic, partition: u32) -> Result<usize, Error> {
        let found = self.partitions.iter().position(|state| state.topic.name == topic.name && state.partition == partition);
        found.ok_or(Error::NoPartition { topic: topic.name, partition })
    }

    /// Creates a consumer client.
    pub(super) fn consumer(&self) -> Result<BaseConsumer<ConnectionState>, Error> {
        let made = self.options.consumer().create_with_context(ConnectionState::default());
        made.map_err(|error| failed(&self.options, "the consumer cannot be made", Some(error)))
    }

    pub(super) fn closed(&self) -> Error {
        Error::Unavailable { what: format!("the log on kafka at {} is closed", self.options.brokers), source: None }
    }
}
