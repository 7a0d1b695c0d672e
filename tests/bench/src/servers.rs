//! Real servers: addresses given, or those that `ops/engines` starts; and what a run makes there, under a name of its own.

use std::time::Duration;

use event_log::kafka::Options as KafkaOptions;
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use schemas::topics::Topic;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use view_store::scylla::Options as CqlOptions;

use crate::Failure;

/// How long removing topics may take.
const REMOVE_MAX: Duration = Duration::from_secs(30);

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

/// Removes the topics of a run.
pub(crate) async fn remove_topics(options: &KafkaOptions) -> Result<(), Failure> {
    let admin: AdminClient<DefaultClientContext> = options.client().create()?;
    let names: Vec<String> = options.topics.iter().map(|topic| options.name_of(topic)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for removed in admin.delete_topics(&names, &AdminOptions::new().operation_timeout(Some(REMOVE_MAX))).await? {
        removed.map_err(|(name, code)| format!("topic {name} cannot be removed: {code}"))?;
    }
    Ok(())
}

/// The driver alone.
pub(crate) async fn driver(node: &str) -> Result<Session, Failure> {
    Ok(SessionBuilder::new().known_node(node).tcp_nodelay(true).build().await?)
}

/// Removes the keyspace of a run.
pub(crate) async fn remove_keyspace(driver: &Session, keyspace: &str) -> Result<(), Failure> {
    driver.query_unpaged(format!("DROP KEYSPACE IF EXISTS {keyspace}"), ()).await?;
    Ok(())
}
