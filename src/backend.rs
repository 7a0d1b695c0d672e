//! Opens the log and the store that the configuration names.

use std::error::Error as StdError;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use disk_files::space::SpaceWatch;
use event_log::EventLog;
use event_log::embedded::EmbeddedLog;
use event_log::kafka::{self, FramedLog, Framing, KafkaLog, registry};
use schemas::topics;
use schemas::views::engine;
use scylla_store::ScyllaStore;
use view_store::ViewStore;
use view_store::embedded::EmbeddedStore;

use crate::api_settings::public_url;
use crate::config::{Config, KAFKA_SCHEME, Kafka, LogBackend, SCYLLA_SCHEME, Scylla, StoreBackend};

/// Why the servers of the log or the store cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot connect to the {what} ({key} = \"{address}\")")]
struct Unreachable {
    /// What the servers hold.
    what: &'static str,
    /// The setting.
    key: &'static str,
    /// The value of the setting.
    address: String,
    /// The client's reason.
    #[source]
    source: Box<dyn StdError + Send + Sync>,
}

/// How long connecting to a CQL store is retried at most. A database that is too slow for one attempt, which takes ten seconds then, gets another one.
const STORE_RETRY_TIME_MAX: Duration = Duration::from_secs(15);
/// The pause before each retry.
const STORE_RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Watches the free space of the data directory, which must exist; `None` if neither the log nor the store is in it.
pub(crate) fn watch_space(config: &Config) -> Option<Arc<SpaceWatch>> {
    let sections = &config.sections;
    let is_used = sections.log == LogBackend::Embedded || sections.store == StoreBackend::Embedded;
    is_used.then(|| Arc::new(SpaceWatch::open(&sections.data_dir, sections.disk.limits())))
}

/// Opens the log.
///
/// # Errors
/// The log cannot be opened, or the settings of its schema registry contradict each other.
pub(crate) async fn open_log(config: &Config, space: Option<Arc<SpaceWatch>>) -> Result<Arc<dyn EventLog>, Box<dyn StdError>> {
    let sections = &config.sections;
    let (framing, registry) = (Framing::from(sections.avro.framing), registry(config));
    match &sections.log {
        LogBackend::Embedded => {
            let key = match (&registry, framing) {
                (Some(_), _) => Some("avro.registry_url"),
                (None, Framing::Confluent) => Some("avro.framing"),
                (None, Framing::SingleObject) => None,
            };
            if let Some(key) = key {
                return Err(config
                    .invalid(key, "a schema registry is for readers of Kafka topics: it needs log = \"kafka://host:9092,…\"")
                    .into());
            }
            let options = event_log::embedded::Options { space, ..event_log::embedded::Options::default() };
            Ok(EmbeddedLog::open(&sections.data_dir.join("log"), options)?)
        }
        LogBackend::Kafka(brokers) => {
            let options = kafka_options(config, brokers)?;
            let prefix = options.prefix.clone();
            let unreachable =
                |source| Unreachable { what: "log", key: "log", address: format!("{KAFKA_SCHEME}{brokers}"), source: Box::new(source) };
            let log = KafkaLog::open(options).await.map_err(unreachable)?;
            let schemas_url = format!("{}{}", public_url(config, None), surfaces::SCHEMAS_PATH);
            match registry {
                Some(registry) => Ok(FramedLog::registered(log, schemas_url, topics::ALL, &prefix, framing, registry).await?),
                None if framing == Framing::Confluent => {
                    Err(config.invalid("avro.registry_url", "avro.framing \"confluent\" needs the registry that assigns the ids").into())
                }
                None => Ok(FramedLog::unregistered(log, schemas_url)),
            }
        }
    }
}

/// The schema registry, if one is configured.
fn registry(config: &Config) -> Option<registry::Options> {
    let avro = &config.sections.avro;
    let credentials = avro.registry_username.as_ref().map(|username| (username.clone(), avro.registry_password.clone()));
    avro.registry_url.clone().map(|url| registry::Options { url, credentials })
}

fn kafka_options(config: &Config, brokers: &str) -> Result<kafka::Options, crate::config::Error> {
    let Kafka { topic_prefix, replication, in_sync_min, security_protocol, sasl_mechanism, username, password, ca_file } =
        &config.sections.kafka;
    if in_sync_min > replication {
        let reason = format!("{in_sync_min} replicas cannot be in sync, because kafka.replication is {replication}");
        return Err(config.invalid("kafka.in_sync_min", reason));
    }
    let optional =
        [("sasl.mechanism", sasl_mechanism), ("sasl.username", username), ("sasl.password", password), ("ssl.ca.location", ca_file)];
    let set = optional.into_iter().filter_map(|(property, value)| Some((property.to_owned(), value.clone()?)));
    let security = std::iter::once(("security.protocol".to_owned(), security_protocol.as_str().to_owned())).chain(set).collect();
    let copies = |count: &NonZeroU32| i32::try_from(count.get()).unwrap_or(i32::MAX);
    Ok(kafka::Options {
        prefix: topic_prefix.clone(),
        replication: copies(replication),
        in_sync_min: copies(in_sync_min),
        security,
        ..kafka::Options::new(brokers)
    })
}

/// Opens the store. Views that it does not know are served when they have everything that is in the log; if the process serves readers, the other views as
/// well: the end of their journal may be lost. A single command reads them as they are.
///
/// # Errors
/// The store cannot be opened, or the log cannot be read.
pub(crate) async fn open_store(
    config: &Config,
    log: &dyn EventLog,
    is_serving: bool,
    space: Option<Arc<SpaceWatch>>,
) -> Result<Arc<dyn ViewStore>, Box<dyn StdError>> {
    let sections = &config.sections;
    match &sections.store {
        StoreBackend::Embedded => {
            let is_new = is_empty(log).await?;
            let projected = config.selection().projected.into_iter().map(|service| service.def.view.name);
            let projected = std::iter::once(engine::VIEW.name).chain(projected);
            let options = view_store::embedded::Options {
                values_dir: Some(sections.data_dir.join("secrets")),
                new_views_are_complete: is_new,
                caught_up_first: if is_serving && !is_new { projected.collect() } else { Vec::new() },
                space,
                ..view_store::embedded::Options::default()
            };
            Ok(EmbeddedStore::open(&sections.data_dir.join("views"), options)?)
        }
        StoreBackend::Cql(nodes) => {
            let unreachable = |source| Unreachable {
                what: "view store",
                key: "store",
                address: format!("{SCYLLA_SCHEME}{}", nodes.join(",")),
                source: Box::new(source),
            };
            Ok(open_cql(scylla_options(&sections.scylla, nodes)).await.map_err(unreachable)?)
        }
    }
}

/// Whether a log has no records.
async fn is_empty(log: &dyn EventLog) -> Result<bool, event_log::Error> {
    for topic in topics::ALL {
        for partition in 0..topic.partitions {
            if log.end(topic, partition).await?.0 > 0 {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Opens a CQL store, with retries: when several nodes start together and create the tables, one of them may wait longer than the database's
/// timeout.
async fn open_cql(options: scylla_store::Options) -> Result<Arc<ScyllaStore>, view_store::Error> {
    let started = Instant::now();
    loop {
        match ScyllaStore::open(options.clone()).await {
            Err(error @ view_store::Error::Unavailable { .. }) if started.elapsed() < STORE_RETRY_TIME_MAX => {
                tracing::info!(error = schemas::reason::reason(&error), "opening the view store failed, will retry");
                tokio::time::sleep(STORE_RETRY_PAUSE).await;
            }
            result => return result,
        }
    }
}

fn scylla_options(scylla: &Scylla, nodes: &[String]) -> scylla_store::Options {
    scylla_store::Options {
        contact_points: nodes.to_vec(),
        keyspace: scylla.keyspace.clone(),
        replication_factor: scylla.replication.get(),
        credentials: scylla.username.as_ref().map(|username| (username.clone(), scylla.password.clone())),
        ca_file: scylla.ca_file.clone(),
        lease_length: Duration::from_secs(scylla.lease_s),
        ..scylla_store::Options::default()
    }
}
