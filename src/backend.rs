//! Which log and which store the configuration names, opened.

use std::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use event_log::EventLog;
use event_log::embedded::EmbeddedLog;
use event_log::kafka::{self, FramedLog, Framing, KafkaLog, registry};
use schemas::topics;
use view_store::embedded::EmbeddedStore;
use view_store::scylla;
use view_store::{ScyllaStore, ViewStore};

use crate::config::Config;

/// Why the servers named by a setting cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the {what} cannot be opened ({what} = \"{address}\")")]
struct Unopened {
    /// The setting.
    what: &'static str,
    /// What it says.
    address: String,
    /// Why, in the backend's words.
    #[source]
    source: Box<dyn StdError + Send + Sync>,
}

/// For how long a store on CQL that could not be opened is opened again.
const OPEN_AGAIN_WITHIN: Duration = Duration::from_secs(8);
/// Before that.
const OPEN_PAUSE: Duration = Duration::from_secs(1);

/// What `log` and `store` begin with when they name servers.
const KAFKA: &str = "kafka://";
const SCYLLA: &str = "scylla://";

/// Whether a log or store is shared with other processes.
pub(crate) fn is_shared(config: &Config, key: &str) -> bool {
    config.text(key) != "embedded"
}

/// The servers that a setting names behind its scheme; `None` if it has another one, or names none.
fn servers<'a>(config: &'a Config, key: &str, scheme: &str) -> Result<Option<&'a str>, crate::config::Error> {
    let servers = config.text(key).strip_prefix(scheme).filter(|servers| !servers.is_empty());
    match servers {
        // Not shown: it may hold a password, and this setting is named in errors.
        Some(servers) if servers.contains('@') => {
            Err(config.wrong(key, "takes host:port,… alone: user name and password have settings of their own, [kafka] and [scylla]"))
        }
        servers => Ok(servers),
    }
}

/// Opens the log.
pub(crate) async fn log(config: &Config, dir: &Path) -> Result<Arc<dyn EventLog>, Box<dyn StdError>> {
    let (framing, registry) = (framing(config)?, registry(config));
    match config.text("log") {
        "embedded" if framing == Framing::Confluent || registry.is_some() => {
            let reason = "a schema registry is for those who read the topics from Kafka: it needs log = \"kafka://host:9092,…\"";
            let key = if registry.is_some() { "avro.registry_url" } else { "avro.framing" };
            Err(config.wrong(key, reason).into())
        }
        "embedded" => Ok(EmbeddedLog::open(&dir.join("log"), event_log::embedded::Options::default())?),
        other => match servers(config, "log", KAFKA)? {
            Some(brokers) => {
                let options = kafka_options(config, brokers)?;
                let prefix = options.prefix.clone();
                let unopened = |source| Unopened { what: "log", address: other.to_owned(), source: Box::new(source) };
                let log = KafkaLog::open(options).await.map_err(unopened)?;
                Ok(match registry {
                    Some(registry) => FramedLog::registered(log, topics::ALL, &prefix, framing, registry).await?,
                    None if framing == Framing::Confluent => {
                        return Err(config
                            .wrong("avro.registry_url", "avro.framing \"confluent\" needs the registry that gives the ids")
                            .into());
                    }
                    None => FramedLog::unregistered(log),
                })
            }
            None => Err(config.wrong("log", &format!("\"{other}\" is neither \"embedded\" nor \"kafka://host:9092,…\"")).into()),
        },
    }
}

/// How values are framed on Kafka.
pub(crate) fn framing(config: &Config) -> Result<Framing, crate::config::Error> {
    match config.text("avro.framing") {
        "single-object" => Ok(Framing::SingleObject),
        "confluent" => Ok(Framing::Confluent),
        other => Err(config.wrong("avro.framing", &format!("\"{other}\" is neither \"single-object\" nor \"confluent\""))),
    }
}

/// The schema registry, if one is named.
fn registry(config: &Config) -> Option<registry::Options> {
    let (url, username) = (config.text("avro.registry_url"), config.text("avro.registry_username"));
    let credentials = (!username.is_empty()).then(|| (username.to_owned(), config.text("avro.registry_password").to_owned()));
    (!url.is_empty()).then(|| registry::Options { url: url.to_owned(), credentials })
}

fn kafka_options(config: &Config, brokers: &str) -> Result<kafka::Options, Box<dyn StdError>> {
    let copies = |key: &str| Ok::<_, crate::config::Error>(i32::try_from(config.count(key)?).unwrap_or(i32::MAX));
    let (replication, in_sync_min) = (copies("kafka.replication")?, copies("kafka.in_sync_min")?);
    if in_sync_min > replication {
        return Err(config
            .wrong("kafka.in_sync_min", &format!("{in_sync_min} copies cannot be in sync of {replication} (kafka.replication)"))
            .into());
    }
    const PROTOCOLS: [&str; 4] = ["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"];
    let protocol = config.text("kafka.security_protocol");
    if !PROTOCOLS.contains(&protocol) {
        return Err(config.wrong("kafka.security_protocol", &format!("\"{protocol}\" is not one of {}", PROTOCOLS.join(", "))).into());
    }
    let mut security = vec![("security.protocol".to_owned(), protocol.to_owned())];
    for (key, property) in [
        ("kafka.sasl_mechanism", "sasl.mechanism"),
        ("kafka.username", "sasl.username"),
        ("kafka.password", "sasl.password"),
        ("kafka.ca_file", "ssl.ca.location"),
    ] {
        if !config.text(key).is_empty() {
            security.push((property.to_owned(), config.text(key).to_owned()));
        }
    }
    let prefix = config.text("kafka.topic_prefix").to_owned();
    Ok(kafka::Options { prefix, replication, in_sync_min, security, ..kafka::Options::new(brokers) })
}

/// Opens the store.
pub(crate) async fn store(config: &Config, dir: &Path) -> Result<Arc<dyn ViewStore>, Box<dyn StdError>> {
    match config.text("store") {
        "embedded" => Ok(EmbeddedStore::open(&dir.join("views"), view_store::embedded::Options::default())?),
        other => match servers(config, "store", SCYLLA)? {
            Some(nodes) => match open_store(scylla_options(config, nodes)?).await {
                Ok(store) => Ok(store),
                Err(error) => Err(Unopened { what: "store", address: other.to_owned(), source: Box::new(error) }.into()),
            },
            None => Err(config.wrong("store", &format!("\"{other}\" is neither \"embedded\" nor \"scylla://host:9042,…\"")).into()),
        },
    }
}

/// Opens a store on CQL. Several nodes that start at once make its tables and rows together, and one of them may have to wait longer than
/// the database lets it: it tries again.
async fn open_store(options: scylla::Options) -> Result<Arc<ScyllaStore>, view_store::Error> {
    let begun = Instant::now();
    loop {
        match ScyllaStore::open(options.clone()).await {
            Err(error @ view_store::Error::Unavailable { .. }) if begun.elapsed() < OPEN_AGAIN_WITHIN => {
                tracing::info!(error = schemas::reason::reason(&error), "the view store is opened again");
                tokio::time::sleep(OPEN_PAUSE).await;
            }
            opened => return opened,
        }
    }
}

fn scylla_options(config: &Config, nodes: &str) -> Result<scylla::Options, crate::config::Error> {
    let (username, ca_file) = (config.text("scylla.username"), config.text("scylla.ca_file"));
    Ok(scylla::Options {
        contact_points: nodes.split(',').map(str::to_owned).collect(),
        keyspace: config.text("scylla.keyspace").to_owned(),
        replication_factor: u32::try_from(config.count("scylla.replication")?).unwrap_or(u32::MAX),
        credentials: (!username.is_empty()).then(|| (username.to_owned(), config.text("scylla.password").to_owned())),
        ca_file: (!ca_file.is_empty()).then(|| PathBuf::from(ca_file)),
        ..scylla::Options::default()
    })
}
