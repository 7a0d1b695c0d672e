//! The context that the handlers of all operations share.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use event_log::EventLog;
use schemas::clock::Clock;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use schemas::tables::{Datum, Key, Table, ViewDef};
use schemas::views::accounts::Tier;
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use view_store::suppression::SuppressingStore;
use view_store::{Checkpoint, View, ViewStore};

use crate::call_times::CallTimes;
use crate::problem::Problem;
use crate::secrets::Secrets;
use crate::tiers::Tiers;

/// How long calls may take with [`Settings::new`]. It is a guard against hangs only: a busy machine is slow.
const GENEROUS_CALL_TIME: Duration = Duration::from_secs(300);

/// Settings of one service, `[services.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSettings {
    /// Whether the service is served.
    pub enabled: bool,
    /// The public base URL without a trailing slash; by default the listener's address and `/NAME`.
    pub base_url: String,
    /// The path under which the listener serves it, for example `/recalls`.
    pub prefix: String,
    /// Prices that replace those of the definitions: operation name to millionths of a US dollar.
    pub prices: BTreeMap<String, u64>,
}

impl ServiceSettings {
    /// Settings of an enabled service with the prices of its definitions.
    #[must_use]
    pub fn new(base_url: String, prefix: String) -> Self {
        Self { enabled: true, base_url, prefix, prices: BTreeMap::new() }
    }
}

/// The header in which trusted proxies report the caller's address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedHeader {
    /// `X-Forwarded-For`: addresses, separated by commas.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

impl ForwardedHeader {
    /// THE LIST of supported headers.
    pub const ALL: [Self; 2] = [Self::XForwardedFor, Self::Forwarded];

    /// The name of the header in lower case, as in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => "forwarded",
        }
    }

    /// Finds a header by name, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|header| header.as_str().eq_ignore_ascii_case(name))
    }
}

/// When failed webhook messages are retried, and when a webhook is disabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetrySchedule {
    /// The pauses between the attempts for one message. It is skipped when the attempt after the last pause fails.
    pub pauses: Vec<Duration>,
    /// How long every attempt must have failed before the webhook is disabled.
    pub disable_after: Duration,
}

impl Default for RetrySchedule {
    /// Five seconds, then four times as long each time, up to 12 hours: about three days. Disabled after five days.
    fn default() -> Self {
        let seconds = [5, 20, 80, 320, 1_280, 5_120, 20_480, 43_200, 43_200, 43_200, 43_200, 43_200];
        Self { pauses: seconds.map(Duration::from_secs).to_vec(), disable_after: Duration::from_secs(5 * 86_400) }
    }
}

/// How often tasks look for work again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// The pause between two comparisons of the log with what was signed before, while signing is refused.
    pub signer: Duration,
    /// The shortest time between two checkpoints over the changes of a service.
    pub checkpoints: Duration,
    /// The pause between two checks for checkpoints that witnesses have not seen, and the shortest time between two requests to a witness about a tree.
    pub witnesses: Duration,
    /// How often the directory of receipt keys is read for new ones.
    pub receipt_keys: Duration,
    /// How long the row of an API key is cached: after this time, a process notices that another one revoked the key.
    pub revoked_keys: Duration,
}

impl Default for Rounds {
    fn default() -> Self {
        let [signer, checkpoints, witnesses, receipt_keys, revoked_keys] = [2, 1, 1, 5, 4].map(Duration::from_secs);
        Self { signer, checkpoints, witnesses, receipt_keys, revoked_keys }
    }
}

/// Settings of the API.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The services, by name.
    pub services: BTreeMap<String, ServiceSettings>,
    /// Trusted proxies, whose forwarding headers are used: addresses or networks (`10.0.0.0/8`).
    pub trusted_proxies: Vec<(IpAddr, u8)>,
    /// The most open connections, from all addresses. More wait in the queue of the operating system.
    pub connections_max: usize,
    /// The most open connections from one address, or from one IPv6 /64.
    pub connections_per_address_max: usize,
    /// The header in which trusted proxies report the caller. No other header is used.
    pub forwarded_header: ForwardedHeader,
    /// The address that the listener is bound to, if this process listens.
    pub listening: Option<IpAddr>,
    /// How long a client may take to send the head and body of a request, in seconds.
    pub request_timeout_s: u64,
    /// How long calls may take, `[call_times]`.
    pub call_times: CallTimes,
    /// How often tasks look for work again.
    pub rounds: Rounds,
    /// The largest request body, in bytes.
    pub body_bytes_max: usize,
    /// Host names that the MCP endpoint accepts, in addition to those of the base URLs.
    pub allowed_hosts: Vec<String>,
    /// Kafka brokers as consumers reach them (`host:port`), for the AsyncAPI document; empty if they are not published there.
    pub public_brokers: Vec<String>,
    /// If values are framed by a schema registry: its public URL, empty if it is not published.
    pub registry: Option<String>,
    /// Whether webhooks may use plain http and hosts that are not on the public internet.
    pub private_targets: bool,
    /// The name server that resolves webhook hosts; `None` for the name servers of the system.
    pub nameserver: Option<SocketAddr>,
    /// When failed webhook messages are retried, and when a webhook is disabled.
    pub webhook_retries: RetrySchedule,
    /// The directory for caches, which are rebuilt if they are lost; in memory if `None`.
    pub cache_dir: Option<PathBuf>,
    /// The limits of the tiers.
    pub tiers: Tiers,
    /// Whether callers on this machine that have no key may make any number of calls, as in a demo.
    pub is_loopback_unlimited: bool,
    /// Where somebody gets a key of a paid tier, as the operator says it; may be empty.
    pub keys_contact: String,
}

impl Settings {
    /// Where a key of a tier comes from, as a part of a sentence.
    #[must_use]
    pub fn origin_of_keys(&self, tier: Tier) -> String {
        if tier <= Tier::Free {
            return "a key of that tier is free, from `POST …/api/keys` of any service or from the page `/account`".to_owned();
        }
        let from = "a key of that tier comes from the operator of this server";
        if self.keys_contact.is_empty() { from.to_owned() } else { format!("{from}: {}", self.keys_contact) }
    }

    /// The refusal of what only keys of some tier or above include. `needs` is the beginning of its sentence, up to the name of the tier; `remark`, if it
    /// is not empty, comes before where such a key is from.
    #[must_use]
    pub fn tier_too_low(&self, needs: &str, least: Tier, remark: &str) -> Problem {
        let separator = if remark.is_empty() { "" } else { "; " };
        let detail = format!("{needs} {} or above; {remark}{separator}{}", least.as_str(), self.origin_of_keys(least));
        Problem::new(ErrorCode::TierTooLow, detail)
    }

    /// The public URL of the listener, without a slash at the end: that of a service without its prefix. If every service has another address, that of a
    /// service; empty without services.
    #[must_use]
    pub fn site_url(&self) -> &str {
        let of_listener = self.services.values().find_map(|service| service.base_url.strip_suffix(service.prefix.as_str()));
        of_listener.or_else(|| self.services.values().next().map(|service| service.base_url.as_str())).unwrap_or_default()
    }

    /// Whether a process with these settings serves a service. Those of the engine itself have no settings and are always on.
    #[must_use]
    pub fn serves(&self, service: &str) -> bool {
        self.services.get(service).is_none_or(|settings| settings.enabled)
    }

    /// Settings with defaults for everything but services and tiers: generous limits, no proxies, and no caches on disk.
    #[must_use]
    pub fn new(services: BTreeMap<String, ServiceSettings>, tiers: Tiers) -> Self {
        Self {
            services,
            trusted_proxies: Vec::new(),
            connections_max: 10_000,
            connections_per_address_max: 10_000,
            forwarded_header: ForwardedHeader::default(),
            listening: None,
            request_timeout_s: 10,
            call_times: CallTimes::all(GENEROUS_CALL_TIME),
            rounds: Rounds::default(),
            body_bytes_max: 64 << 10,
            allowed_hosts: Vec::new(),
            public_brokers: Vec::new(),
            registry: None,
            private_targets: false,
            nameserver: None,
            webhook_retries: RetrySchedule::default(),
            cache_dir: None,
            tiers,
            is_loopback_unlimited: false,
            keys_contact: String::new(),
        }
    }
}

/// What the handlers of all operations share: settings, clock, secrets, log and views, and further parts by type.
pub struct Context {
    /// The settings.
    pub settings: Settings,
    /// The clock.
    pub clock: Clock,
    /// The master key, which other keys are derived from.
    pub secrets: Secrets,
    /// The log, to which commands are appended.
    pub log: Arc<dyn EventLog>,
    /// The views as readers see them: without what operators suppressed.
    pub store: Arc<dyn ViewStore>,
    /// Whether the server is shutting down: requests that wait for changes are answered then.
    pub stopping: watch::Sender<bool>,
    /// One value per type, set by the engine or created on first use.
    parts: RwLock<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

/// State that some handlers share and others do not know: a cache, a client, the index of a service. A context has one value of each type. The default
/// is an empty cache or a disabled client.
pub trait Part: Default + Send + Sync + 'static {
    /// The value in this context; the default if the engine set none.
    #[must_use]
    fn of(context: &Context) -> Arc<Self> {
        context.part()
    }
}

impl Context {
    /// Creates a context without parts.
    #[must_use]
    pub fn new(settings: Settings, clock: Clock, secrets: Secrets, log: Arc<dyn EventLog>, store: Arc<dyn ViewStore>) -> Self {
        let store = Arc::new(SuppressingStore::new(store));
        Self { settings, clock, secrets, log, store, stopping: watch::Sender::new(false), parts: RwLock::default() }
    }

    /// Sets a part, replacing the one of the same type.
    #[must_use]
    pub fn with<T: Part>(mut self, part: impl Into<Arc<T>>) -> Self {
        self.parts.get_mut().unwrap_or_else(PoisonError::into_inner).insert(TypeId::of::<T>(), part.into());
        self
    }

    fn part<T: Part>(&self) -> Arc<T> {
        let known = |parts: &HashMap<TypeId, Arc<dyn Any + Send + Sync>>| {
            parts.get(&TypeId::of::<T>()).and_then(|part| Arc::clone(part).downcast::<T>().ok())
        };
        if let Some(part) = known(&self.parts.read().unwrap_or_else(PoisonError::into_inner)) {
            return part;
        }
        let mut parts = self.parts.write().unwrap_or_else(PoisonError::into_inner);
        known(&parts).unwrap_or_else(|| {
            let part = Arc::new(T::default());
            parts.insert(TypeId::of::<T>(), Arc::clone(&part) as Arc<dyn Any + Send + Sync>);
            part
        })
    }

    /// Waits until the server shuts down.
    pub async fn stopped(&self) {
        // The sender is part of the context, so it cannot be dropped.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }

    /// The live generation of a view.
    ///
    /// # Errors
    /// `unavailable`.
    pub async fn live(&self, def: &'static ViewDef) -> Result<Arc<dyn View>, Problem> {
        self.store.live(def).await.map_err(store_problem)
    }

    /// Waits until the checkpoint of the live generation satisfies a condition; `None` if it does not in time. The generation may be swapped meanwhile.
    ///
    /// # Errors
    /// `unavailable`.
    pub async fn wait_for<F>(
        &self,
        def: &'static ViewDef,
        within: Duration,
        fits: F,
    ) -> Result<Option<(Arc<dyn View>, Checkpoint)>, Problem>
    where
        F: Fn(&Checkpoint) -> bool,
    {
        let waiting = async {
            loop {
                let view = self.live(def).await?;
                let mut at = match view.checkpoint().await {
                    Ok(at) => at,
                    Err(view_store::Error::Gone { .. }) => continue,
                    Err(error) => return Err(store_problem(error)),
                };
                while !fits(&at) {
                    match view.wait_past(&at).await {
                        Ok(next) => at = next,
                        Err(view_store::Error::Gone { .. }) => break,
                        Err(error) => return Err(store_problem(error)),
                    }
                }
                if fits(&at) {
                    return Ok((view, at));
                }
            }
        };
        match tokio::time::timeout(within, waiting).await {
            Ok(found) => found.map(Some),
            Err(_) => Ok(None),
        }
    }
}

/// After how many seconds a caller tries again to read a view that is being rebuilt.
const REBUILD_RETRY_S: u64 = 5;

/// The problem of a view that cannot be read. The cause is logged here.
pub fn store_problem(error: view_store::Error) -> Problem {
    let cause: Option<&dyn std::error::Error> = std::error::Error::source(&error);
    match &error {
        view_store::Error::Gone { .. } => tracing::debug!(%error, "a generation was removed while it was read"),
        // The store has logged the damage.
        view_store::Error::Rebuilding { .. } => tracing::debug!(%error, "a view that is being rebuilt was requested"),
        _ => tracing::error!(%error, cause, "a view cannot be read"),
    }
    match error {
        view_store::Error::Damaged { .. } => Problem::new(ErrorCode::Internal, "the stored rows cannot be read"),
        view_store::Error::Rebuilding { view, .. } => {
            let detail = format!("the data of {view} is being completed from the log; try again in a few seconds");
            Problem::new(ErrorCode::Unavailable, detail).retry_after(REBUILD_RETRY_S)
        }
        _ => Problem::new(ErrorCode::Unavailable, "the view cannot be read now").retry_after(1),
    }
}

/// Reads a column of a row's key that is a seq.
///
/// # Errors
/// `internal` if the column is not a seq. The cause is logged.
pub fn seq_column(table: &Table, key: &Key, column: usize) -> Result<Seq, Problem> {
    let seq = match key.get(column) {
        Some(Datum::Int(number)) => Seq::try_from(*number).ok(),
        _ => None,
    };
    seq.ok_or_else(|| {
        tracing::error!(table = table.name, column, "a key has no seq in its column");
        Problem::new(ErrorCode::Internal, "a stored row cannot be read")
    })
}

/// Decodes a stored row.
///
/// # Errors
/// `internal` if the row cannot be decoded. The cause is logged here.
pub fn stored<T: DeserializeOwned>(table: &Table, bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| {
        tracing::error!(%error, table = table.name, "a row cannot be decoded");
        Problem::new(ErrorCode::Internal, "a stored row cannot be read")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tiers::Limits;

    /// Proves that a refusal names the tier, a remark if there is one, and where a key of that tier is from.
    #[test]
    fn refusals_of_tiers() {
        let tiers = Tiers::new(|_| Limits::new(1, 0, 1, 0, 0));
        let settings = Settings { keys_contact: "sales@example.com".to_owned(), ..Settings::new(BTreeMap::new(), tiers) };
        for (remark, expected) in [
            ("", "scans need a key of tier pro or above; a key of that tier comes from the operator of this server: sales@example.com"),
            (
                "this call has no key",
                "scans need a key of tier pro or above; this call has no key; a key of that tier comes from the operator of this server: sales@example.com",
            ),
        ] {
            let problem = settings.tier_too_low("scans need a key of tier", Tier::Pro, remark);
            assert_eq!((problem.code, problem.detail.as_str()), (ErrorCode::TierTooLow, expected));
        }
    }
}
