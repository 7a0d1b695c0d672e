//! Removal of what a test created on shared servers.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;

/// The time limit for a removal: a node flushes each table of a keyspace.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(60);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Removes the topics whose names begin with `prefix`.
///
/// # Errors
/// When the broker does not answer, or refuses.
pub async fn remove_topics(brokers: &str, prefix: &str) -> Result<(), Failure> {
    let admin: AdminClient<DefaultClientContext> = ClientConfig::new().set("bootstrap.servers", brokers).create()?;
    let held = admin.inner().fetch_metadata(None, REMOVE_TIMEOUT)?;
    let names: Vec<&str> = held.topics().iter().map(|topic| topic.name()).filter(|name| name.starts_with(prefix)).collect();
    for removed in admin.delete_topics(&names, &AdminOptions::new().operation_timeout(Some(REMOVE_TIMEOUT))).await? {
        removed.map_err(|(name, code)| format!("topic {name} cannot be removed: {code}"))?;
    }
    Ok(())
}

/// Connects the driver to one node.
///
/// # Errors
/// When the node does not answer.
pub async fn driver(node: &str) -> Result<Session, Failure> {
    let profile = ExecutionProfile::builder().request_timeout(Some(REMOVE_TIMEOUT)).build();
    Ok(SessionBuilder::new().known_node(node).tcp_nodelay(true).default_execution_profile_handle(profile.into_handle()).build().await?)
}

/// Removes a keyspace, if there is one of this name.
///
/// # Errors
/// When the node refuses, or does not answer in time.
pub async fn remove_keyspace(driver: &Session, keyspace: &str) -> Result<(), Failure> {
    driver.query_unpaged(format!("DROP KEYSPACE IF EXISTS {keyspace}"), ()).await?;
    Ok(())
}
