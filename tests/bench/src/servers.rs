//! Real servers: addresses given, or those that `ops/engines` starts; and what a run makes there, under a name of its own.

use event_log::kafka::Options as KafkaOptions;
use schemas::topics::Topic;
use view_store::scylla::Options as CqlOptions;

/// A broker's address: the one given, or `HIGHWATER_TEST_KAFKA`, or one that is started.
pub(crate) fn kafka(given: Option<&String>) -> Result<String, String> {
    given.map_or_else(engines::kafka, |address| Ok(address.clone()))
}

/// A CQL node's address: the one given, or `HIGHWATER_TEST_CQL`, or one that is started.
pub(crate) fn cql(given: Option<&String>) -> Result<String, String> {
    given.map_or_else(engines::cql, |address| Ok(address.clone()))
}

/// A log of this run's own, with so many copies of each topic.
pub(crate) fn log_options(brokers: &str, name: &str, topics: &'static [Topic], replication: i32) -> KafkaOptions {
    // What compose and the defaults ask for: one copy may be missing, if there are more than two.
    let in_sync_min = (replication - 1).max(1);
    KafkaOptions { prefix: format!("{name}."), topics, replication, in_sync_min, ..KafkaOptions::new(brokers) }
}

/// A keyspace of this run's own.
pub(crate) fn store_options(node: &str, keyspace: &str) -> CqlOptions {
    CqlOptions { contact_points: vec![node.to_owned()], keyspace: keyspace.to_owned(), ..CqlOptions::default() }
}
