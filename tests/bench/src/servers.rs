//! Real servers, given or started by `ops/engines`, and the unique names of what a run creates on them.

use event_log::kafka::Options as KafkaOptions;
use schemas::topics::Topic;
use scylla_store::Options as CqlOptions;

/// Returns a broker's address: the given one, or `HIGHWATER_TEST_KAFKA`, or one that is started.
pub(crate) fn kafka(given: Option<&String>) -> Result<String, String> {
    given.map_or_else(engines::kafka, |address| Ok(address.clone()))
}

/// Returns a CQL node's address: the given one, or `HIGHWATER_TEST_CQL`, or one that is started.
pub(crate) fn cql(given: Option<&String>) -> Result<String, String> {
    given.map_or_else(engines::cql, |address| Ok(address.clone()))
}

/// Returns the options of a log for this run, with the given replication factor.
pub(crate) fn log_options(brokers: &str, name: &str, topics: &'static [Topic], replication: i32) -> KafkaOptions {
    // As in compose and the defaults: one replica may be missing if there are more than two.
    let in_sync_min = (replication - 1).max(1);
    KafkaOptions { prefix: format!("{name}."), topics, replication, in_sync_min, ..KafkaOptions::new(brokers) }
}

/// Returns the options of a keyspace for this run.
pub(crate) fn store_options(node: &str, keyspace: &str) -> CqlOptions {
    CqlOptions { contact_points: vec![node.to_owned()], keyspace: keyspace.to_owned(), ..CqlOptions::default() }
}
