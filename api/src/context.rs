//! What every handler is given: the stores, the clock, the settings, the secrets.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use event_log::EventLog;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemas::clock::Clock;
use schemas::error_code::ErrorCode;
use schemas::receipt::SigningKeys;
use schemas::tables::{Table, ViewDef};
use serde::de::DeserializeOwned;
use tokio::sync::{OnceCell, watch};
use upstreams::live::Question;
use view_store::{Checkpoint, View, ViewStore};

use crate::access::Access;
use crate::access::tiers::Tiers;
use crate::feed::Feeds;
use crate::live::{Live, Said};
use crate::operation::{Operation, Price};
use crate::payments::Payments;
use crate::problem::Problem;
use crate::services::common::witness::Witnessing;
use crate::services::recalls::search::Search;
use crate::webhooks::Poster;
use crate::webhooks::guard::TargetRules;

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
    /// What a call of an operation costs, in millionths of a US dollar; `None` for one that is not paid for by the call.
    #[must_use]
    pub fn price_of(&self, operation: &Operation) -> Option<u64> {
        let Price::PerCall { micros, .. } = operation.price else { return None };
        Some(self.prices.get(operation.name).copied().unwrap_or(micros))
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
    /// What each tier may do.
    pub tiers: Tiers,
}

/// What every handler is given. Cheap to share behind an `Arc`.
pub struct Context {
    /// The settings.
    pub settings: Settings,
    /// The clock.
    pub clock: Clock,
    /// The log, to append commands.
    pub log: Arc<dyn EventLog>,
    /// The views.
    pub store: Arc<dyn ViewStore>,
    /// Keys, tiers, quotas, and the secrets behind cursors.
    pub access: Access,
    /// What is cached of the services' feeds.
    pub feeds: Feeds,
    /// The keyword index of the recalls.
    pub search: Arc<Search>,
    /// The upstreams that may be asked for an answer.
    pub live: Live,
    /// What payments go through.
    pub payments: Payments,
    /// What posts to webhooks, once something is posted.
    pub(crate) posts: OnceCell<Poster>,
    /// The keys that receipts are signed with, where this process signs; they say why nothing is signed at present.
    pub signing: Option<Arc<SigningKeys>>,
    /// The witnesses that cosign our checkpoints, and the one that this process is for other logs.
    pub witnessing: Witnessing,
    /// Whether the server stops: who waits for something new is answered at once then.
    pub stopping: watch::Sender<bool>,
}

impl Context {
    /// A context with empty caches.
    #[must_use]
    pub fn new(
        settings: Settings,
        clock: Clock,
        log: Arc<dyn EventLog>,
        store: Arc<dyn ViewStore>,
        access: Access,
        search: Arc<Search>,
    ) -> Self {
        Self {
            settings,
            clock,
            log,
            store,
            access,
            feeds: Feeds::default(),
            search,
            live: Live::default(),
            payments: Payments::default(),
            posts: OnceCell::new(),
            signing: None,
            witnessing: Witnessing::default(),
            stopping: watch::Sender::new(false),
        }
    }

    /// The same with upstreams that may be asked.
    #[must_use]
    pub fn with_live(self, live: Live) -> Self {
        Self { live, ..self }
    }

    /// The same with the keys that this process signs receipts with.
    #[must_use]
    pub fn with_signing(self, keys: Arc<SigningKeys>) -> Self {
        Self { signing: Some(keys), ..self }
    }

    /// The same with witnesses.
    #[must_use]
    pub fn with_witnessing(self, witnessing: Witnessing) -> Self {
        Self { witnessing, ..self }
    }

    /// The same with a till.
    #[must_use]
    pub fn with_payments(self, payments: Payments) -> Self {
        Self { payments, ..self }
    }

    /// Asks an upstream, at the time of an answer.
    pub async fn ask(&self, question: Question, now: Timestamp) -> Said {
        self.live.ask(&*self.store, question, now.to_zoned(TimeZone::UTC).date()).await
    }

    /// What posts to webhooks.
    ///
    /// # Errors
    /// `internal` when TLS or the resolver of names cannot be set up.
    pub(crate) async fn poster(&self) -> Result<&Poster, Problem> {
        let made = async || Poster::new(TargetRules::of(&self.settings), self.settings.nameserver);
        self.posts.get_or_try_init(made).await.map_err(|error| {
            tracing::error!(error, "nothing can be posted to webhooks");
            Problem::new(ErrorCode::Internal, "nothing can be posted from here")
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
pub(crate) fn store_problem(error: view_store::Error) -> Problem {
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
pub(crate) fn stored<T: DeserializeOwned>(table: &Table, bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| {
        tracing::error!(%error, table = table.name, "a row cannot be read");
        Problem::new(ErrorCode::Internal, "a stored row cannot be read")
    })
}
