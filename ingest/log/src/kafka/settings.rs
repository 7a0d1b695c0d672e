//! Settings of the Kafka connection, and the client properties that the log's guarantees need.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rdkafka::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaErrorCode;
use schemas::topics::{self, Topic};

use crate::Error;

const MIB: usize = 1024 * 1024;
/// The bytes that a batch may need in addition to its single record.
const BATCH_OVERHEAD_BYTES: usize = 64 * 1024;

/// The brokers, how to connect to them, and how topics are created.
#[derive(Clone)]
pub struct Options {
    /// Some of the brokers, `host:port,…`.
    pub brokers: String,
    /// The topics; [`topics::ALL`] except in tests.
    pub topics: &'static [Topic],
    /// A prefix of all topic names on the broker, so that several engines can share a cluster; usually empty.
    pub prefix: String,
    /// The replication factor of new topics.
    pub replication: i32,
    /// How many replicas must have a record before it is acknowledged (`min.insync.replicas`).
    pub in_sync_min: i32,
    /// The largest record accepted, in bytes of its key, value and headers.
    pub record_bytes_max: usize,
    /// How many bytes of records may be in flight to the brokers; further appends wait. At most 4 GiB.
    pub queue_bytes_max: usize,
    /// How many bytes of the newest records are cached in memory for readers that keep up, over all partitions.
    pub tail_bytes_max: usize,
    /// Client properties for TLS and SASL with librdkafka's names (`security.protocol`, `sasl.mechanism`, `sasl.username`, `sasl.password`,
    /// `ssl.ca.location` …). Never shown.
    pub security: Vec<(String, String)>,
}

impl Options {
    /// Settings without TLS and SASL, and with a replication factor of 1.
    #[must_use]
    pub fn new(brokers: &str) -> Self {
        Self {
            brokers: brokers.to_owned(),
            topics: topics::ALL,
            prefix: String::new(),
            replication: 1,
            in_sync_min: 1,
            record_bytes_max: MIB,
            queue_bytes_max: 32 * MIB,
            tail_bytes_max: 64 * MIB,
            security: Vec::new(),
        }
    }

    /// Returns the name of a topic on the broker.
    #[must_use]
    pub fn name_of(&self, topic: &Topic) -> String {
        format!("{}{}", self.prefix, topic.name)
    }

    /// Returns the largest batch that the broker must accept, in bytes.
    pub(super) fn batch_bytes_max(&self) -> usize {
        self.record_bytes_max + BATCH_OVERHEAD_BYTES
    }

    /// Returns the properties of every client. They are sufficient for creating and checking topics.
    #[must_use]
    pub fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set_log_level(RDKafkaLogLevel::Warning);
        config
            .set("bootstrap.servers", &self.brokers)
            .set("client.id", "highwater")
            .set("allow.auto.create.topics", "false")
            // Reconnects quickly to a broker that returns.
            .set("reconnect.backoff.ms", "50")
            .set("reconnect.backoff.max.ms", "1000")
            .set("socket.keepalive.enable", "true")
            .set("socket.timeout.ms", "10000");
        for (name, value) in &self.security {
            config.set(name, value);
        }
        config
    }

    /// Returns the producer properties. The producer is idempotent, so a retry neither duplicates nor reorders records.
    #[must_use]
    pub fn producer(&self) -> ClientConfig {
        let mut config = self.client();
        config
            .set("enable.idempotence", "true")
            .set("acks", "all")
            .set("compression.type", "lz4")
            // Records arrive as batches already; waiting for more would only delay them.
            .set("linger.ms", "1")
            .set("batch.num.messages", "10000")
            .set("message.max.bytes", self.batch_bytes_max().to_string())
            // The queue is limited by `queue_bytes_max` before records reach the client.
            .set("queue.buffering.max.messages", "0")
            .set("queue.buffering.max.kbytes", "2097151")
            // After this time the result is unknown and the append fails.
            .set("delivery.timeout.ms", "20000");
        config
    }

    /// Returns the consumer properties: no consumer group, no committed offsets, and an error for an offset that does not exist.
    #[must_use]
    pub fn consumer(&self) -> ClientConfig {
        let mut config = self.client();
        config
            .set("group.id", "highwater-none")
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("auto.offset.reset", "error")
            .set("fetch.wait.max.ms", "100")
            .set("fetch.error.backoff.ms", "50")
            .set("fetch.queue.backoff.ms", "5")
            .set("queued.min.messages", "2000")
            .set("queued.max.messages.kbytes", "4096")
            .set("fetch.message.max.bytes", (2 * MIB).to_string())
            .set("check.crcs", "true");
        config
    }
}

/// Logs the reports of a client, and remembers whether it lost all its brokers.
///
/// Such a client may never recover: a broker that was unreachable for longer than its session may return an empty broker list, and
/// librdkafka then forgets its configured brokers too (its issue 5301). The owner of the client then creates a new one.
#[derive(Clone, Default)]
pub(super) struct ConnectionState {
    is_lost: Arc<AtomicBool>,
}

impl ConnectionState {
    /// Whether the client has lost all its brokers at some time.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }
}

impl ClientContext for ConnectionState {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        match level {
            RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical | RDKafkaLogLevel::Error => {
                tracing::warn!(facility, message, "kafka client");
            }
            _ => tracing::debug!(facility, message, "kafka client"),
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::warn!(%error, reason, "kafka client");
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::AllBrokersDown) {
            self.is_lost.store(true, Ordering::Relaxed);
        }
    }
}

impl ConsumerContext for ConnectionState {}

/// Builds the error of a failed client call; `what` describes the call.
pub(super) fn failed(options: &Options, what: &str, source: Option<KafkaError>) -> Error {
    let what = format!("kafka at {}: {what}", options.brokers);
    Error::Unavailable { what, source: source.map(|source| Box::new(source) as Box<dyn std::error::Error + Send + Sync>) }
}
