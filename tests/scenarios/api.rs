//! The engine and the API in this process. Operations are called without HTTP ([`LocalApi`]) or over HTTP on their own port ([`HttpApi`]).

use access::Access;
use operation::context::Part;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ::payments::Payments;
use arguments::Checker;
use bytes::Bytes;
use event_log::{Append, Record};
use operation::call_times::CallTimes;
use operation::context::{Context, Rounds, ServiceSettings, Settings};
use operation::problem::Problem;
use operation::secrets::Secrets;
use operation::tiers::{Limits, Tiers};
use operation::{Body, Call, Caller, Form, Service, Stage};
use reads::live::Live;
use recalls::operations::search::Search;
use schemas::avro::Encoder;
use schemas::clock::Clock;
use schemas::error_code::ErrorCode;
use schemas::event::{Fact, FactKind, Head, content_hash};
use schemas::facts::{self, FactData};
use schemas::views::accounts::Tier;
use serde_json::Value;
use surfaces::server::Server;
use tokio::task::JoinHandle;

use crate::child::HANG_TIMEOUT;
use crate::engine::{Engine, settings, upstream_names};
use crate::payments::PAY_TO;
use crate::payments::backend::PaymentBackend;

/// Writes facts as ingestors do, each linked to the latest fact of its key.
#[derive(Default)]
pub(crate) struct Writer {
    encoders: HashMap<&'static str, Encoder>,
    heads: HashMap<String, Head>,
}

impl Writer {
    /// Makes the next fact of a key: the record as the upstream shows it.
    pub(crate) fn observe(&mut self, key: &str, data: &FactData, at_ms: i64) -> Append {
        let topic = data.topic();
        let head = self.heads.get(key).copied().unwrap_or_default();
        let kind = FactKind::Observed;
        let next = Fact::after(&head, topic.name, kind, key, content_hash(kind, &data.canonical()));
        let fact = Fact { upstream: "test", observed_at: at_ms, data: Some(data), ..next };
        self.heads.insert(key.to_owned(), fact.head());
        let encoder = self.encoders.entry(topic.name).or_insert_with(|| Encoder::new(topic.name).unwrap());
        let record = Record {
            key: Bytes::from(key.to_owned()),
            value: Bytes::from(facts::encode(encoder, fact).unwrap()),
            at_ms,
            ..Record::default()
        };
        Append { topic, partition: topic.partition_of(key.as_bytes()), record }
    }
}

/// The API over an engine that decides on request, without HTTP.
pub(crate) struct LocalApi {
    pub(crate) engine: Engine,
    pub(crate) context: Arc<Context>,
    services: Vec<(Service, Vec<Checker>)>,
}

impl LocalApi {
    /// Opens a directory. With `base_url`, operations can query the upstreams at that address.
    pub(crate) async fn open(dir: &Path, clock: Clock, base_url: Option<&str>) -> Self {
        Self::over_engine(Engine::open_without_projector(dir, clock).await, clock, base_url)
    }

    /// Opens a directory whose engine decides only some services; see [`Engine::idle_with`].
    pub(crate) async fn open_with(dir: &Path, clock: Clock, served: &[&str]) -> Self {
        Self::over_engine(Engine::idle_with(dir, clock, served).await, clock, None)
    }

    /// Opens the API over any engine without a running projector.
    pub(crate) fn over_engine(engine: Engine, clock: Clock, base_url: Option<&str>) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], 8080));
        let context = context(services::all, &engine, clock, live(base_url), address, Payments::default(), false);
        let mounted = |service: Service| {
            let checkers = service.operations.iter().map(|operation| Checker::new(operation).unwrap()).collect();
            (service, checkers)
        };
        Self { engine, context, services: services::all().into_iter().map(mounted).collect() }
    }

    /// Appends facts without deciding them.
    pub(crate) async fn append(&self, facts: Vec<Append>) {
        self.engine.log.append(facts).await.unwrap();
    }

    /// Decides all facts in the log.
    pub(crate) async fn decide(&self) {
        self.engine.projector.catch_up().await.unwrap();
    }

    /// Returns the services.
    pub(crate) fn services(&self) -> impl Iterator<Item = &Service> {
        self.services.iter().map(|(service, _)| service)
    }

    /// Calls an operation as MCP does for a caller of a tier: validates JSON arguments, then runs the handler.
    pub(crate) async fn ask(&self, service: &str, operation: &str, arguments: &Value, tier: Tier) -> Result<Value, Problem> {
        let (service, checkers) = self.services.iter().find(|(own, _)| own.name == service).unwrap();
        let at = service.operations.iter().position(|own| own.name == operation).unwrap();
        let members = arguments.as_object().unwrap().clone();
        let arguments = checkers[at].json(members, ErrorCode::ParameterInvalid)?;
        self.run(service, at, arguments, tier).await
    }

    /// Calls an operation as REST does: with the pairs of a query.
    pub(crate) async fn query(&self, service: &str, operation: &str, pairs: &[(String, String)], tier: Tier) -> Result<Value, Problem> {
        let (service, checkers) = self.services.iter().find(|(own, _)| own.name == service).unwrap();
        let at = service.operations.iter().position(|own| own.name == operation).unwrap();
        let arguments = checkers[at].strings(pairs.iter().map(|(name, value)| (name.into(), value.into())))?;
        self.run(service, at, arguments, tier).await
    }

    async fn run(&self, service: &Service, at: usize, arguments: Value, tier: Tier) -> Result<Value, Problem> {
        let key_id = if tier == Tier::Anonymous { String::new() } else { "key_test".to_owned() };
        let caller = Caller { tier, key_id, account: String::new(), address: IpAddr::V4(Ipv4Addr::LOCALHOST) };
        let call = Call {
            context: Arc::clone(&self.context),
            caller,
            form: Form::Json,
            idempotency_key: None,
            watch_token: None,
            stage: Stage::Whole,
            if_none_match: None,
        };
        match (service.operations[at].run)(call, arguments).await?.body {
            Body::Json(value) => Ok(value),
            Body::Parts(parts) => Ok(serde_json::from_slice(&parts.concat()).unwrap()),
            body => panic!("{body:?}"),
        }
    }

    pub(crate) async fn close(self) {
        self.engine.close().await;
    }
}

/// The live look-ups at the upstreams at an address, if there is one. A busy machine delays them and fails none.
fn live(base_url: Option<&str>) -> Live {
    let upstreams = base_url.map(|base_url| upstream_names().into_iter().map(|name| (name, settings(base_url))).collect::<Vec<_>>());
    Live::new(upstreams.unwrap_or_default()).unwrap().with_deadline(HANG_TIMEOUT)
}

/// Returns a context over an engine whose links use the given address. No call is refused because it takes long, and rounds are short.
fn context(
    services: fn() -> Vec<Service>,
    engine: &Engine,
    clock: Clock,
    live: Live,
    address: SocketAddr,
    payments: Payments,
    private_targets: bool,
) -> Arc<Context> {
    let service = |service: Service| {
        let prefix = format!("/{}", service.name);
        (service.name.to_owned(), ServiceSettings::new(format!("http://{address}{prefix}"), prefix))
    };
    let tiers = Tiers::of_two(Limits::new(100, 0, 25, 0, 0), Limits::new(10_000, 0, 200, 20, 50).with_fleets(2));
    let cache_dir = Some(std::env::temp_dir().join(format!("highwater-cache-{}-{}", std::process::id(), address.port())));
    let short = Duration::from_millis(200);
    let rounds = Rounds { signer: short, checkpoints: short, witnesses: short, receipt_keys: short, revoked_keys: short };
    let services = services().into_iter().map(service).collect();
    let own = Settings { private_targets, cache_dir, rounds, ..Settings::new(services, tiers) };
    let secrets = Secrets::from_master(&[7; 32]).unwrap();
    let (log, store) = (Arc::clone(&engine.log), Arc::clone(&engine.store));
    Arc::new(services::with_parts(Context::new(own, clock, secrets, log, store).with(live).with(payments)))
}

/// The API over an engine, served over HTTP on its own port.
pub(crate) struct HttpApi {
    pub(crate) address: SocketAddr,
    pub(crate) context: Arc<Context>,
    stop: tokio::sync::oneshot::Sender<()>,
    tasks: [JoinHandle<()>; 2],
}

impl HttpApi {
    pub(crate) fn start(engine: &Engine, clock: Clock, base_url: Option<&str>) -> Self {
        Self::with_services(services::all, engine, clock, base_url)
    }

    /// Serves other services than the usual ones.
    pub(crate) fn with_services(services: fn() -> Vec<Service>, engine: &Engine, clock: Clock, base_url: Option<&str>) -> Self {
        Self::serve(services, engine, clock, live(base_url), Payments::default(), false)
    }

    /// Serves all services, with live look-ups that end after a time.
    pub(crate) fn with_lookup_deadline(engine: &Engine, clock: Clock, base_url: &str, deadline: Duration) -> Self {
        Self::serve(services::all, engine, clock, live(Some(base_url)).with_deadline(deadline), Payments::default(), false)
    }

    /// Serves services whose operations are sold through a payment backend. Webhooks may be on this machine.
    pub(crate) fn with_payments(services: fn() -> Vec<Service>, engine: &Engine, clock: Clock, backend: &PaymentBackend) -> Self {
        let own = format!("http://{}", backend.address());
        let settings = ::payments::Settings {
            network: "base".to_owned(),
            pay_to: PAY_TO.to_owned(),
            rpc_url: format!("{own}/rpc"),
            facilitator_url: own,
            call_times: CallTimes::all(HANG_TIMEOUT),
            ..::payments::Settings::default()
        };
        Self::serve(services, engine, clock, Live::default(), Payments::new(&settings).unwrap(), true)
    }

    /// Offers payment terms to callers who have to pay. Nothing can be settled.
    pub(crate) fn with_terms(engine: &Engine, clock: Clock) -> Self {
        let settings = ::payments::Settings { network: "base".to_owned(), pay_to: PAY_TO.to_owned(), ..::payments::Settings::default() };
        Self::serve(services::all, engine, clock, Live::default(), Payments::new(&settings).unwrap(), false)
    }

    fn serve(services: fn() -> Vec<Service>, engine: &Engine, clock: Clock, live: Live, payments: Payments, private_targets: bool) -> Self {
        let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = server.address();
        let context = context(services, engine, clock, live, address, payments, private_targets);
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let own = Arc::clone(&context);
        let serving = tokio::spawn(async move {
            let stopped = async move { drop(stopped.await) };
            server.run(own, services(), Arc::new(|| Ok(())), stopped).await.unwrap();
        });
        let indexing = tokio::spawn(Search::of(&context).follow(Arc::clone(&engine.store), None));
        Self { address, context, stop, tasks: [serving, indexing] }
    }

    /// Mints a key of a tier.
    pub(crate) async fn key(&self, tier: Tier) -> String {
        Access::of(&self.context).mint(&self.context, tier, "test@example.com").await.unwrap().key.reveal().to_owned()
    }

    /// Stops the server and waits for its end.
    pub(crate) async fn stop(self) {
        let [serving, indexing] = self.tasks;
        self.context.stopping.send_replace(true);
        self.stop.send(()).unwrap();
        serving.await.unwrap();
        indexing.abort();
        drop(indexing.await);
    }
}
