//! Removing what a test made on servers that it shares.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;

/// How long removing may take: a node writes down each of a keyspace's tables.
const REMOVE_MAX: Duration = Duration::from_secs(60);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Removes the topics whose names begin with `prefix`.
///
/// # Errors
/// The broker does not answer, or refuses.
pub async fn remove_topics(brokers: &str, prefix: &str) -> Result<(), Failure> {
    let admin: AdminClient<DefaultClientContext> = ClientConfig::new().set("bootstrap.servers", brokers).create()?;
    let held = admin.inner().fetch_metadata(None, REMOVE_MAX)?;
    let names: Vec<&str> = held.topics().iter().map(|topic| topic.name()).filter(|name| name.starts_with(prefix)).collect();
    for removed in admin.delete_topics(&names, &AdminOptions::new().operation_timeout(Some(REMOVE_MAX))).await? {
        removed.map_err(|(name, code)| format!("topic {name} cannot be removed: {code}"))?;
    }
    Ok(())
}

/// The driver alone, at one node.
///
/// # Errors
/// The node does not answer.
pub async fn driver(node: &str) -> Result<Session, Failure> {
    let profile = ExecutionProfile::builder().request_timeout(Some(REMOVE_MAX)).build();
    Ok(SessionBuilder::new().known_node(node).tcp_nodelay(true).default_execution_profile_handle(profile.into_handle()).build().await?)
}

/// Removes a keyspace, if there is one of this name.
///
/// # Errors
/// The node refuses, or does not answer in time.
pub async fn remove_keyspace(driver: &Session, keyspace: &str) -> Result<(), Failure> {
    driver.query_unpaged(format!("DROP KEYSPACE IF EXISTS {keyspace}"), ()).await?;
    Ok(())
}
