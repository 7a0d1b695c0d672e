//! What the log is told about the brokers, and the client settings that its promises need.

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
/// What a batch may have beside its one record.
const BATCH_OVERHEAD_BYTES: usize = 64 * 1024;

/// Where the brokers are, how they are spoken to, and how topics are made.
#[derive(Clone)]
pub struct Options {
    /// `host:port,…` of some brokers.
    pub brokers: String,
    /// The topics; [`topics::ALL`] but in tests.
    pub topics: &'static [Topic],
    /// What the topics' names on the broker begin with, so that several engines share a cluster; mostly nothing.
    pub prefix: String,
    /// Copies of each partition that a new topic gets.
    pub replication: i32,
    /// Copies that must have a record before it is acknowledged.
    pub in_sync_min: i32,
    /// The largest record taken, in bytes of its key, value and headers.
    pub record_bytes_max: usize,
    /// Records on their way to the brokers, in bytes; appends beyond wait their turn. At most 4 GiB.
    pub queue_bytes_max: usize,
    /// The newest records kept in memory for readers that follow, over all partitions, in bytes.
    pub tail_bytes_max: usize,
    /// Client properties for TLS and SASL, by librdkafka's names (`security.protocol`, `sasl.mechanism`, `sasl.username`,
    /// `sasl.password`, `ssl.ca.location` …). Never shown.
    pub security: Vec<(String, String)>,
}

impl Options {
    /// Brokers without TLS or SASL, one copy of each topic.
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

    /// The name of a topic on the broker.
    #[must_use]
    pub fn name_of(&self, topic: &Topic) -> String {
        format!("{}{}", self.prefix, topic.name)
    }

    /// The largest batch that the broker must take.
    pub(super) fn batch_bytes_max(&self) -> usize {
        self.record_bytes_max + BATCH_OVERHEAD_BYTES
    }

    /// What every client is told; enough for making and checking topics.
    #[must_use]
    pub fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set_log_level(RDKafkaLogLevel::Warning);
        config
            .set("bootstrap.servers", &self.brokers)
            .set("client.id", "highwater")
            .set("allow.auto.create.topics", "false")
            // A broker that comes back is soon found again.
            .set("reconnect.backoff.ms", "50")
            .set("reconnect.backoff.max.ms", "1000")
            .set("socket.keepalive.enable", "true")
            .set("socket.timeout.ms", "10000");
        for (name, value) in &self.security {
            config.set(name, value);
        }
        config
    }

    /// For appending: idempotent, so that a retry neither repeats nor reorders.
    #[must_use]
    pub fn producer(&self) -> ClientConfig {
        let mut config = self.client();
        config
            .set("enable.idempotence", "true")
            .set("acks", "all")
            .set("compression.type", "lz4")
            // The batches are ours: waiting for more would only delay them.
            .set("linger.ms", "1")
            .set("batch.num.messages", "10000")
            .set("message.max.bytes", self.batch_bytes_max().to_string())
            // The queue is bounded by `queue_bytes_max`, before records reach it.
            .set("queue.buffering.max.messages", "0")
            .set("queue.buffering.max.kbytes", "2097151")
            // Beyond, the answer is unknown and the append fails.
            .set("delivery.timeout.ms", "20000");
        config
    }

    /// For reading: no group, positions are ours, a position that is gone is an error.
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

/// What the client says of itself goes to our log; that it lost all its brokers is kept.
///
/// Such a client may stay so for good: a broker that was away for longer than its session may name no brokers at all, at which librdkafka
/// forgets even those of its settings (its issue 5301). So its owner makes a new one.
#[derive(Clone, Default)]
pub(super) struct Told {
    is_lost: Arc<AtomicBool>,
}

impl Told {
    /// Whether the client has once lost all its brokers.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }
}

impl ClientContext for Told {
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

impl ConsumerContext for Told {}

/// An error of the client, with what was tried.
pub(super) fn failed(options: &Options, what: &str, source: Option<KafkaError>) -> Error {
    let what = format!("kafka at {}: {what}", options.brokers);
    Error::Unavailable { what, source: source.map(|source| Box::new(source) as Box<dyn std::error::Error + Send + Sync>) }
}
