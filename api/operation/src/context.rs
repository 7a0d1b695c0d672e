//! What the handlers of all operations share.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use event_log::EventLog;
use schemas::clock::Clock;
use schemas::error_code::ErrorCode;
use schemas::tables::{Table, ViewDef};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use view_store::{Checkpoint, View, ViewStore};

use crate::problem::Problem;
use crate::secrets::Secrets;
use crate::tiers::Tiers;

/// Settings of one service, `[services.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSettings {
    /// Whether it is served.
    pub enabled: bool,
    /// Its public base address without a slash at the end; by default the listener's address and `/NAME`.
    pub base_url: String,
    /// The path under which the listener serves it, `/recalls`.
    pub prefix: String,
    /// Prices that are not those of the definitions: operation to millionths of a US dollar.
    pub prices: BTreeMap<String, u64>,
}

impl ServiceSettings {
    /// What a call of an operation costs in millionths of a US dollar, given what its definition says.
    #[must_use]
    pub fn price(&self, operation: &str, micros: u64) -> u64 {
        self.prices.get(operation).copied().unwrap_or(micros)
    }
}

/// The header in which trusted proxies name the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedHeader {
    /// `X-Forwarded-For`: addresses, separated by commas.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

impl ForwardedHeader {
    /// THE LIST of headers.
    pub const ALL: [Self; 2] = [Self::XForwardedFor, Self::Forwarded];

    /// The header's name, in lower case, as configuration has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => "forwarded",
        }
    }

    /// The header of that name, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|header| header.as_str().eq_ignore_ascii_case(name))
    }
}

/// Settings of the API.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The services by name.
    pub services: BTreeMap<String, ServiceSettings>,
    /// Proxies whose forwarding headers are believed: addresses or networks (`10.0.0.0/8`).
    pub trusted_proxies: Vec<(IpAddr, u8)>,
    /// Connections open at once, from all addresses. More wait in the system's queue.
    pub connections_max: usize,
    /// Connections open at once from one address, or from one IPv6 /64.
    pub connections_per_address_max: usize,
    /// The header in which those proxies name the caller; no other one is read.
    pub forwarded_header: ForwardedHeader,
    /// The address that the listener is bound to, if it is one of this process.
    pub listening: Option<IpAddr>,
    /// Seconds a client may take to send a request's head and body.
    pub request_timeout_s: u64,
    /// The largest body taken, in bytes.
    pub body_bytes_max: usize,
    /// Host names the MCP endpoint answers to, beside those of the base addresses.
    pub allowed_hosts: Vec<String>,
    /// Kafka brokers as readers reach them (`host:port`), named in the AsyncAPI document; none if they are told otherwise.
    pub public_brokers: Vec<String>,
    /// Where values are framed by a schema registry: its address as readers reach it, empty if they are told otherwise.
    pub registry: Option<String>,
    /// Whether webhooks may be plain http and name hosts that are not on the public internet.
    pub private_targets: bool,
    /// Who is asked for the addresses of webhooks' hosts; the system's name servers if `None`.
    pub nameserver: Option<SocketAddr>,
    /// A directory for caches that are built anew when they are lost; in memory if `None`.
    pub cache_dir: Option<PathBuf>,
    /// What each tier may do.
    pub tiers: Tiers,
}

/// What the handlers of all operations share: settings, clock, secrets, log and views, and by its type what else one of them needs.
pub struct Context {
    /// The settings.
    pub settings: Settings,
    /// The clock.
    pub clock: Clock,
    /// The keys that cursors, lookups and webhooks are derived from.
    pub secrets: Secrets,
    /// The log, to append commands.
    pub log: Arc<dyn EventLog>,
    /// The views.
    pub store: Arc<dyn ViewStore>,
    /// Whether the server stops: whoever waits for a new change is answered at once then.
    pub stopping: watch::Sender<bool>,
    /// One value of each type that a handler asked for or the engine set.
    parts: RwLock<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

/// State that some handlers share and others do not know of: a cache, a client, the index of a service. There is one of each type in a
/// context. Its default is an empty cache or a switched-off client.
pub trait Part: Default + Send + Sync + 'static {
    /// The one of this context; the default where the engine set none.
    #[must_use]
    fn of(context: &Context) -> Arc<Self> {
        context.part()
    }
}

impl Context {
    /// A context with no parts set.
    #[must_use]
    pub fn new(settings: Settings, clock: Clock, secrets: Secrets, log: Arc<dyn EventLog>, store: Arc<dyn ViewStore>) -> Self {
        Self { settings, clock, secrets, log, store, stopping: watch::Sender::new(false), parts: RwLock::default() }
    }

    /// The same under another clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Sets a part, in place of the one of its type.
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

    /// Waits until the server stops.
    pub async fn stopped(&self) {
        // The sender is held here: it cannot be gone.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }

    /// The live generation of a view.
    ///
    /// # Errors
    /// `unavailable`.
    pub async fn live(&self, def: &'static ViewDef) -> Result<Arc<dyn View>, Problem> {
        self.store.live(def).await.map_err(store_problem)
    }

    /// Waits until the live generation's checkpoint fits; `None` if it does not in time. A swap meanwhile does no harm.
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

/// What a caller is told when a view cannot be read. The cause is logged here.
pub fn store_problem(error: view_store::Error) -> Problem {
    let cause: Option<&dyn std::error::Error> = std::error::Error::source(&error);
    match &error {
        view_store::Error::Gone { .. } => tracing::debug!(%error, "a reader was overtaken by a swap"),
        _ => tracing::error!(%error, cause, "a view cannot be read"),
    }
    match error {
        view_store::Error::Damaged { .. } => Problem::new(ErrorCode::Internal, "the stored rows cannot be read"),
        _ => Problem::new(ErrorCode::Unavailable, "the view cannot be read now").retry_after(1),
    }
}

/// A stored row.
///
/// # Errors
/// `internal` for one that cannot be read. The cause is logged here.
pub fn stored<T: DeserializeOwned>(table: &Table, bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| {
        tracing::error!(%error, table = table.name, "a row cannot be read");
        Problem::new(ErrorCode::Internal, "a stored row cannot be read")
    })
}
