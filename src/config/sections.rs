//! The sections of the configuration as types. `default.toml` explains each key; here are its type and the values that it may have.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use disk_files::space;
use event_log::clock_guard;
use event_log::kafka::Framing;
use feed::page_request::LIMIT_MAX;
use jiff::Timestamp;
use operation::context::ForwardedHeader;
use operation::tiers::Limits;
use payments::terms::VALIDITY_S;
use schemas::names;
use schemas::views::accounts::Tier;
use serde::{Deserialize, Deserializer};
use tracing_subscriber::EnvFilter;

use super::call_times::CallTimesSection;
use super::durations::{revoked_keys_round, round};

/// The longest text that says where keys of paid tiers come from.
const CONTACT_CHARS_MAX: usize = 200;

/// All settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sections {
    pub(crate) data_dir: PathBuf,
    #[serde(deserialize_with = "address")]
    pub(crate) listen: SocketAddr,
    #[serde(deserialize_with = "optional_address")]
    pub(crate) operator_listen: Option<SocketAddr>,
    #[serde(deserialize_with = "optional_url")]
    pub(crate) public_url: Option<String>,
    #[serde(deserialize_with = "contact")]
    pub(crate) keys_contact: String,
    #[serde(deserialize_with = "optional_url")]
    pub(crate) upstreams_base_url: Option<String>,
    pub(crate) user_agent: String,
    pub(crate) log: LogBackend,
    pub(crate) store: StoreBackend,
    #[serde(deserialize_with = "optional_path")]
    pub(crate) master_key_file: Option<PathBuf>,
    #[serde(deserialize_with = "optional_path")]
    pub(crate) receipt_keys_dir: Option<PathBuf>,
    #[serde(deserialize_with = "round")]
    pub(crate) receipt_keys_round_s: Duration,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) kafka: Kafka,
    pub(crate) scylla: Scylla,
    pub(crate) logging: Logging,
    pub(crate) avro: Avro,
    pub(crate) api: Api,
    pub(crate) call_times: CallTimesSection,
    pub(crate) services: BTreeMap<String, ServiceSection>,
    pub(crate) upstreams: BTreeMap<String, UpstreamSection>,
    pub(crate) tiers: Tiers,
    pub(crate) payments: Payments,
    /// Prices by service and operation.
    pub(crate) prices: BTreeMap<String, BTreeMap<String, Price>>,
    pub(crate) webhooks: Webhooks,
    pub(crate) clock: ClockSection,
    pub(crate) disk: Disk,
}

/// `[checkpoints]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Checkpoints {
    #[serde(deserialize_with = "optional_path")]
    pub(crate) memory: Option<PathBuf>,
    #[serde(deserialize_with = "round")]
    pub(crate) round_s: Duration,
    #[serde(deserialize_with = "round")]
    pub(crate) signer_round_s: Duration,
    #[serde(deserialize_with = "round")]
    pub(crate) witness_round_s: Duration,
    pub(crate) witnesses: Vec<WitnessEntry>,
    pub(crate) witness_for: Vec<KnownLogEntry>,
    pub(crate) witness_name: String,
    #[serde(deserialize_with = "optional_path")]
    pub(crate) witness_key_file: Option<PathBuf>,
}

/// A witness that is asked to cosign checkpoints.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WitnessEntry {
    pub(crate) vkey: String,
    pub(crate) url: String,
}

/// A log whose checkpoints this server cosigns.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KnownLogEntry {
    pub(crate) origin: String,
    pub(crate) vkey: String,
}

/// `[kafka]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kafka {
    pub(crate) topic_prefix: String,
    pub(crate) replication: NonZeroU32,
    pub(crate) in_sync_min: NonZeroU32,
    pub(crate) security_protocol: SecurityProtocol,
    #[serde(deserialize_with = "optional_text")]
    pub(crate) sasl_mechanism: Option<String>,
    #[serde(deserialize_with = "optional_text")]
    pub(crate) username: Option<String>,
    #[serde(deserialize_with = "optional_text")]
    pub(crate) password: Option<String>,
    #[serde(deserialize_with = "optional_text")]
    pub(crate) ca_file: Option<String>,
}

/// The protocol of connections to the brokers, as `librdkafka` names it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SecurityProtocol {
    Plaintext,
    Ssl,
    SaslPlaintext,
    SaslSsl,
}

impl SecurityProtocol {
    /// The value of `security.protocol`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Plaintext => "plaintext",
            Self::Ssl => "ssl",
            Self::SaslPlaintext => "sasl_plaintext",
            Self::SaslSsl => "sasl_ssl",
        }
    }
}

/// `[scylla]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scylla {
    pub(crate) keyspace: String,
    pub(crate) replication: NonZeroU32,
    #[serde(deserialize_with = "lease_s")]
    pub(crate) lease_s: u64,
    #[serde(deserialize_with = "optional_text")]
    pub(crate) username: Option<String>,
    pub(crate) password: String,
    #[serde(deserialize_with = "optional_path")]
    pub(crate) ca_file: Option<PathBuf>,
}

/// `[logging]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Logging {
    #[serde(deserialize_with = "filter")]
    pub(crate) level: String,
    pub(crate) format: LogFormat,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// Time, level, target, message and fields, for people.
    Text,
    /// One JSON object with the members `timestamp`, `level`, `fields` and `target`.
    Json,
}

/// `[avro]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Avro {
    pub(crate) framing: AvroFraming,
    #[serde(deserialize_with = "optional_text")]
    pub(crate) registry_url: Option<String>,
    #[serde(deserialize_with = "optional_text")]
    pub(crate) registry_username: Option<String>,
    pub(crate) registry_password: String,
}

/// The frame of values in topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AvroFraming {
    SingleObject,
    Confluent,
}

impl From<AvroFraming> for Framing {
    fn from(framing: AvroFraming) -> Self {
        match framing {
            AvroFraming::SingleObject => Self::SingleObject,
            AvroFraming::Confluent => Self::Confluent,
        }
    }
}

/// `[api]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Api {
    pub(crate) connections_max: NonZeroUsize,
    pub(crate) connections_per_address_max: NonZeroUsize,
    pub(crate) request_timeout_s: NonZeroU64,
    pub(crate) body_bytes_max: NonZeroUsize,
    pub(crate) trusted_proxies: Vec<Network>,
    #[serde(deserialize_with = "forwarded_header")]
    pub(crate) forwarded_header: ForwardedHeader,
    pub(crate) allowed_hosts: Vec<String>,
    #[serde(deserialize_with = "revoked_keys_round")]
    pub(crate) revoked_keys_round_s: Duration,
    pub(crate) public_brokers: Vec<String>,
    pub(crate) public_registry: String,
}

/// An IP address, or a network of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Network {
    pub(crate) address: IpAddr,
    /// Length of the network's prefix in bits; that of the whole address if it is only one.
    pub(crate) prefix_bits: u8,
}

impl TryFrom<String> for Network {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (address, bits) = text.split_once('/').map_or((text.as_str(), None), |(address, bits)| (address, Some(bits)));
        let parsed = address.parse::<IpAddr>().ok().and_then(|address| {
            let bits_max = if address.is_ipv4() { 32 } else { 128 };
            let prefix_bits = bits.map_or(Some(bits_max), |bits| bits.parse().ok().filter(|bits| *bits <= bits_max))?;
            Some(Self { address, prefix_bits })
        });
        parsed.ok_or_else(|| format!("\"{text}\" is neither an IP address nor a network such as 10.0.0.0/8"))
    }
}

/// `[services.NAME]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServiceSection {
    pub(crate) enabled: bool,
    #[serde(deserialize_with = "optional_url")]
    pub(crate) base_url: Option<String>,
}

/// `[upstreams.NAME]`, without the keys that only one upstream has.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpstreamSection {
    pub(crate) enabled: bool,
    #[serde(deserialize_with = "optional_url")]
    pub(crate) base_url: Option<String>,
    pub(crate) schedule: String,
    #[serde(deserialize_with = "optional_text")]
    pub(crate) api_key: Option<String>,
    #[serde(deserialize_with = "optional_text")]
    pub(crate) user_agent: Option<String>,
    #[serde(deserialize_with = "positive")]
    pub(crate) requests_per_second: f64,
    pub(crate) window_days: NonZeroU32,
    #[serde(default)]
    pub(crate) backfill_days: u32,
    /// The copy of the database file PTAXSIM of upstream `cook`. The defaults have this key for that upstream only.
    #[serde(default, deserialize_with = "optional_path")]
    pub(crate) ptaxsim_path: Option<PathBuf>,
}

/// `[tiers]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tiers {
    free: TierLimits,
    pro: TierLimits,
    business: TierLimits,
    fleet: TierLimits,
    fleet_plus: TierLimits,
}

impl Tiers {
    /// The limits of a tier. Callers without a key have those of the tier free.
    pub(crate) fn limits(&self, tier: Tier) -> Limits {
        match tier {
            Tier::Anonymous | Tier::Free => self.free,
            Tier::Pro => self.pro,
            Tier::Business => self.business,
            Tier::Fleet => self.fleet,
            Tier::FleetPlus => self.fleet_plus,
        }
        .limits()
    }
}

/// `[tiers.NAME]`
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TierLimits {
    #[serde(deserialize_with = "calls")]
    calls_per_day: i64,
    #[serde(deserialize_with = "calls")]
    calls_per_minute: i64,
    #[serde(deserialize_with = "rows")]
    rows_max: usize,
    filters_max: usize,
    watches_max: usize,
    fleets_max: usize,
}

impl TierLimits {
    fn limits(self) -> Limits {
        let limits = Limits::new(self.calls_per_day, self.calls_per_minute, self.rows_max, self.filters_max, self.watches_max);
        limits.with_fleets(self.fleets_max)
    }
}

/// `[payments]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Payments {
    pub(crate) pay_to: String,
    pub(crate) network: String,
    pub(crate) asset: String,
    pub(crate) facilitator_url: String,
    pub(crate) rpc_url: String,
    #[serde(deserialize_with = "validity")]
    pub(crate) validity_s: u64,
    #[serde(deserialize_with = "round")]
    pub(crate) round_s: Duration,
}

/// A price per call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "f64")]
pub(crate) struct Price {
    /// Millionths of a US dollar.
    pub(crate) micros: u64,
}

impl TryFrom<f64> for Price {
    type Error = &'static str;

    fn try_from(dollars: f64) -> Result<Self, &'static str> {
        let micros = (dollars * 1e6).round();
        if !(1.0..=1e12).contains(&micros) {
            return Err("must be between a millionth of a dollar and a million dollars");
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was just checked")]
        Ok(Self { micros: micros as u64 })
    }
}

/// `[webhooks]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Webhooks {
    pub(crate) allow_private_targets: bool,
    #[serde(deserialize_with = "retry_pauses")]
    pub(crate) retry_pauses_s: Vec<u64>,
    #[serde(deserialize_with = "disable_after")]
    pub(crate) disable_after_h: u64,
    #[serde(deserialize_with = "optional_address")]
    pub(crate) nameserver: Option<SocketAddr>,
}

/// `[disk]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Disk {
    reserve_mib: NonZeroU32,
    low_mib: NonZeroU32,
}

impl Disk {
    /// The limits of the free space.
    pub(crate) fn limits(&self) -> space::Limits {
        let bytes = |mib: NonZeroU32| u64::from(mib.get()) * 1024 * 1024;
        space::Limits { reserve_bytes: bytes(self.reserve_mib), low_bytes: bytes(self.low_mib) }
    }
}

/// `[clock]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClockSection {
    #[serde(deserialize_with = "optional_time")]
    pub(crate) fixed: Option<Timestamp>,
    #[serde(deserialize_with = "optional_time")]
    pub(crate) start: Option<Timestamp>,
    behind_max_s: NonZeroU32,
    ahead_max_days: NonZeroU32,
    #[serde(deserialize_with = "optional_time")]
    accepted_last_record: Option<Timestamp>,
}

impl ClockSection {
    /// Between which limits the clock may differ from the last record of the log.
    pub(crate) fn limits(&self) -> clock_guard::Limits {
        clock_guard::Limits {
            behind_max_ms: i64::from(self.behind_max_s.get()) * 1_000,
            ahead_max_ms: i64::from(self.ahead_max_days.get()) * 86_400_000,
            accepted_last_ms: self.accepted_last_record.map(Timestamp::as_millisecond),
        }
    }
}

/// Where the event log is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum LogBackend {
    /// In the data directory, for one process.
    Embedded,
    /// On Kafka: a list of brokers as `host:port,…`.
    Kafka(String),
}

impl TryFrom<String> for LogBackend {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == EMBEDDED {
            return Ok(Self::Embedded);
        }
        servers(&text, KAFKA_SCHEME, "host:9092,…").map(|brokers| Self::Kafka(brokers.to_owned()))
    }
}

/// Where the view store is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum StoreBackend {
    /// In the data directory, for one process.
    Embedded,
    /// On ScyllaDB or another CQL database: the contact points as `host:port`.
    Cql(Vec<String>),
}

impl TryFrom<String> for StoreBackend {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == EMBEDDED {
            return Ok(Self::Embedded);
        }
        servers(&text, SCYLLA_SCHEME, "host:9042,…").map(|nodes| Self::Cql(nodes.split(',').map(str::to_owned).collect()))
    }
}

const EMBEDDED: &str = "embedded";
pub(crate) const KAFKA_SCHEME: &str = "kafka://";
pub(crate) const SCYLLA_SCHEME: &str = "scylla://";

/// The servers after a scheme.
fn servers<'a>(text: &'a str, scheme: &str, example: &str) -> Result<&'a str, String> {
    // The text may hold a password then, so the error does not repeat it.
    if text.contains('@') {
        return Err("must be host:port,… only: user name and password have settings of their own in [kafka] and [scylla]".to_owned());
    }
    let servers = text.strip_prefix(scheme).filter(|servers| !servers.is_empty());
    servers.ok_or_else(|| format!("\"{text}\" is neither \"{EMBEDDED}\" nor \"{scheme}{example}\""))
}

/// Parses an address and port.
///
/// # Errors
/// The text is no IP address with a port.
pub(crate) fn socket_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("\"{text}\" is not an address with a port, such as 127.0.0.1:8080"))
}

fn address<'de, D: Deserializer<'de>>(value: D) -> Result<SocketAddr, D::Error> {
    parsed(&String::deserialize(value)?, socket_address)
}

fn optional_address<'de, D: Deserializer<'de>>(value: D) -> Result<Option<SocketAddr>, D::Error> {
    optional_text(value)?.map(|text| parsed(&text, socket_address)).transpose()
}

fn optional_time<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Timestamp>, D::Error> {
    optional_text(value)?.map(|text| parsed(&text, time)).transpose()
}

fn time(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|error: jiff::Error| format!("\"{text}\" is not an RFC 3339 time: {error}"))
}

fn forwarded_header<'de, D: Deserializer<'de>>(value: D) -> Result<ForwardedHeader, D::Error> {
    parsed(&String::deserialize(value)?, |name| {
        ForwardedHeader::from_name(name).ok_or_else(|| {
            let hint = names::hint(name, ForwardedHeader::ALL.into_iter().map(ForwardedHeader::as_str));
            let known = ForwardedHeader::ALL.map(|header| format!("\"{}\"", header.as_str())).join(" or ");
            format!("\"{name}\" is not {known}{hint}")
        })
    })
}

fn filter<'de, D: Deserializer<'de>>(value: D) -> Result<String, D::Error> {
    let text = String::deserialize(value)?;
    parsed(&text, |text| EnvFilter::try_new(text).map_err(|error| error.to_string()))?;
    Ok(text)
}

fn positive<'de, D: Deserializer<'de>>(value: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(value)?;
    let is_positive = number.is_finite() && number > 0.0;
    if is_positive { Ok(number) } else { Err(serde::de::Error::custom("must be a number above 0")) }
}

/// The pauses between attempts that can be configured: how many, and their lengths in seconds.
const RETRY_PAUSES: RangeInclusive<usize> = 1..=100;
const RETRY_PAUSE_S: RangeInclusive<u64> = 1..=86_400;

fn retry_pauses<'de, D: Deserializer<'de>>(value: D) -> Result<Vec<u64>, D::Error> {
    let pauses = Vec::<u64>::deserialize(value)?;
    let is_allowed = RETRY_PAUSES.contains(&pauses.len()) && pauses.iter().all(|pause| RETRY_PAUSE_S.contains(pause));
    if is_allowed { Ok(pauses) } else { Err(serde::de::Error::custom("must be 1 to 100 pauses of 1 to 86400 seconds")) }
}

/// The hours of failures until a webhook is disabled that can be configured.
const DISABLE_AFTER_H: RangeInclusive<u64> = 1..=8_760;

fn disable_after<'de, D: Deserializer<'de>>(value: D) -> Result<u64, D::Error> {
    let hours = u64::deserialize(value)?;
    if DISABLE_AFTER_H.contains(&hours) { Ok(hours) } else { Err(serde::de::Error::custom("must be 1 to 8760")) }
}

fn validity<'de, D: Deserializer<'de>>(value: D) -> Result<u64, D::Error> {
    let seconds = u64::deserialize(value)?;
    if VALIDITY_S.contains(&seconds) { Ok(seconds) } else { Err(serde::de::Error::custom("must be 60 to 604800")) }
}

/// The lengths of leases that can be configured, in seconds. A shorter lease could be lost while the store answers slowly.
const LEASE_S: RangeInclusive<u64> = 6..=300;

fn lease_s<'de, D: Deserializer<'de>>(value: D) -> Result<u64, D::Error> {
    let seconds = u64::deserialize(value)?;
    let reason = || serde::de::Error::custom(format_args!("must be {} to {}", LEASE_S.start(), LEASE_S.end()));
    if LEASE_S.contains(&seconds) { Ok(seconds) } else { Err(reason()) }
}

fn calls<'de, D: Deserializer<'de>>(value: D) -> Result<i64, D::Error> {
    let calls = i64::deserialize(value)?;
    if calls >= 0 { Ok(calls) } else { Err(serde::de::Error::custom("must be a whole number, not below 0")) }
}

fn rows<'de, D: Deserializer<'de>>(value: D) -> Result<usize, D::Error> {
    let rows = usize::deserialize(value)?;
    let is_allowed = (1..=LIMIT_MAX).contains(&rows);
    if is_allowed { Ok(rows) } else { Err(serde::de::Error::custom(format_args!("must be 1 to {LIMIT_MAX}"))) }
}

/// A text; `None` if it is empty.
fn optional_text<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    String::deserialize(value).map(|text| Some(text).filter(|text| !text.is_empty()))
}

/// A path; `None` if it is empty.
fn optional_path<'de, D: Deserializer<'de>>(value: D) -> Result<Option<PathBuf>, D::Error> {
    optional_text(value).map(|text| text.map(PathBuf::from))
}

/// A text for callers, of one line.
fn contact<'de, D: Deserializer<'de>>(value: D) -> Result<String, D::Error> {
    let text = String::deserialize(value)?.trim().to_owned();
    if text.chars().count() > CONTACT_CHARS_MAX || text.contains(char::is_control) {
        return Err(serde::de::Error::custom(format!("must be one line of at most {CONTACT_CHARS_MAX} characters")));
    }
    Ok(text)
}

/// An http or https URL without slashes at its end; `None` if it is empty.
fn optional_url<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    optional_text(value)?.map(|text| parsed(&text, url)).transpose()
}

fn url(text: &str) -> Result<String, String> {
    let has_scheme = text.starts_with("http://") || text.starts_with("https://");
    if !has_scheme {
        return Err(format!("\"{text}\" does not begin with http:// or https://"));
    }
    Ok(text.trim_end_matches('/').to_owned())
}

fn parsed<T, E: serde::de::Error>(text: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, E> {
    parse(text).map_err(E::custom)
}
