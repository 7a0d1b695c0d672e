//! The engine in this process with the API over it: fed fact by fact or from the simulated upstreams, and asked with no HTTP between, or
//! served on a port of its own.

use access::Access;
use operation::context::Part;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use event_log::{Append, Record};
use feed::live::Live;
use operation::context::{Context, ForwardedHeader, ServiceSettings, Settings};
use operation::problem::Problem;
use operation::secrets::Secrets;
use operation::tiers::{Limits, Tiers};
use operation::{Body, Call, Caller, Form, Service, Stage};
use schemas::avro::Encoder;
use schemas::clock::Clock;
use schemas::error_code::ErrorCode;
use schemas::event::{Fact, FactKind, Head, content_hash, fact_id};
use schemas::facts::{self, FactData};
use schemas::views::accounts::Tier;
use serde_json::Value;
use services::recalls::search::Search;
use surfaces::arguments::Checker;
use surfaces::server::Server;
use tokio::task::JoinHandle;

use crate::engine::{Engine, settings, upstream_names};

/// Writes facts as ingestors do, each behind the head of its key.
#[derive(Default)]
pub(crate) struct Writer {
    encoders: HashMap<&'static str, Encoder>,
    heads: HashMap<String, Head>,
}

impl Writer {
    /// The next fact of a key: that an upstream shows a record so.
    pub(crate) fn observe(&mut self, key: &str, data: &FactData, at_ms: i64) -> Append {
        let topic = data.topic();
        let head = self.heads.get(key).copied().unwrap_or_default();
        let (kind, version) = (FactKind::Observed, head.version + 1);
        let content_hash = content_hash(kind, &data.canonical());
        let id = fact_id(topic.name, key, version, &head.id, &content_hash);
        let fact = Fact {
            id,
            kind,
            key,
            version,
            prev_hash: head.id,
            content_hash,
            upstream: "test",
            observed_at: at_ms,
            superseded_by: "",
            data: Some(data),
            run: None,
        };
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

/// An engine that decides when it is told to, and the API over it.
pub(crate) struct Fed {
    pub(crate) engine: Engine,
    pub(crate) context: Arc<Context>,
    services: Vec<(Service, Vec<Checker>)>,
}

impl Fed {
    /// Opens a directory. Where an address of upstreams is given, these can be asked for an answer.
    pub(crate) async fn open(dir: &Path, clock: Clock, base_url: Option<&str>) -> Self {
        Self::over(Engine::open_still(dir, clock).await, clock, base_url)
    }

    /// The same over any engine on which no projector runs.
    pub(crate) fn over(engine: Engine, clock: Clock, base_url: Option<&str>) -> Self {
        let context = context(services::all, &engine, clock, base_url, SocketAddr::from(([127, 0, 0, 1], 8080)));
        let mounted = |service: Service| {
            let checkers = service.operations.iter().map(|operation| Checker::new(operation).unwrap()).collect();
            (service, checkers)
        };
        Self { engine, context, services: services::all().into_iter().map(mounted).collect() }
    }

    /// Appends facts; nobody decides them yet.
    pub(crate) async fn append(&self, facts: Vec<Append>) {
        self.engine.log.append(facts).await.unwrap();
    }

    /// Decides all that is there.
    pub(crate) async fn decide(&self) {
        self.engine.projector.catch_up().await.unwrap();
    }

    /// The services, each with the checks of its operations.
    pub(crate) fn services(&self) -> impl Iterator<Item = &Service> {
        self.services.iter().map(|(service, _)| service)
    }

    /// Asks an operation as a caller of a tier does over MCP: arguments as JSON, checked, then the handler.
    pub(crate) async fn ask(&self, service: &str, operation: &str, arguments: &Value, tier: Tier) -> Result<Value, Problem> {
        let (service, checkers) = self.services.iter().find(|(own, _)| own.name == service).unwrap();
        let at = service.operations.iter().position(|own| own.name == operation).unwrap();
        let given = arguments.as_object().unwrap().clone();
        let arguments = checkers[at].json(given, ErrorCode::ParameterInvalid)?;
        self.run(service, at, arguments, tier).await
    }

    /// Asks an operation as a caller does over REST: by the pairs of a query.
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

/// A context over an engine, that answers as from an address.
fn context(services: fn() -> Vec<Service>, engine: &Engine, clock: Clock, base_url: Option<&str>, address: SocketAddr) -> Arc<Context> {
    let service = |service: Service| {
        let prefix = format!("/{}", service.name);
        (
            service.name.to_owned(),
            ServiceSettings { enabled: true, base_url: format!("http://{address}{prefix}"), prefix, prices: BTreeMap::new() },
        )
    };
    let own = Settings {
        services: services().into_iter().map(service).collect::<BTreeMap<_, _>>(),
        trusted_proxies: Vec::new(),
        connections_max: 10_000,
        connections_per_address_max: 10_000,
        forwarded_header: ForwardedHeader::default(),
        listening: None,
        request_timeout_s: 10,
        body_bytes_max: 64 << 10,
        allowed_hosts: Vec::new(),
        public_brokers: Vec::new(),
        registry: None,
        private_targets: false,
        nameserver: None,
        cache_dir: None,
        tiers: Tiers::of_two(Limits::new(100, 0, 25, 0, 0), Limits::new(10_000, 0, 200, 20, 50)),
    };
    let secrets = Secrets::from_master(&[7; 32]).unwrap();
    let (log, store) = (Arc::clone(&engine.log), Arc::clone(&engine.store));
    let asked = base_url.map(|base_url| upstream_names().into_iter().map(|name| (name, settings(base_url))).collect::<Vec<_>>());
    let live = Live::new(asked.unwrap_or_default()).unwrap();
    Arc::new(Context::new(own, clock, secrets, log, store).with(live))
}

/// The API over an engine, on a port of its own.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) context: Arc<Context>,
    stop: tokio::sync::oneshot::Sender<()>,
    tasks: [JoinHandle<()>; 2],
}

impl Served {
    pub(crate) fn start(engine: &Engine, clock: Clock, base_url: Option<&str>) -> Self {
        Self::of(services::all, engine, clock, base_url)
    }

    /// The same with other services.
    pub(crate) fn of(services: fn() -> Vec<Service>, engine: &Engine, clock: Clock, base_url: Option<&str>) -> Self {
        let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = server.address();
        let context = context(services, engine, clock, base_url, address);
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let own = Arc::clone(&context);
        let serving = tokio::spawn(async move {
            let stopped = async move { drop(stopped.await) };
            server.run(own, services(), Arc::new(|| Ok(())), stopped).await.unwrap();
        });
        let indexing = tokio::spawn(Search::of(&context).follow(Arc::clone(&engine.store), None));
        Self { address, context, stop, tasks: [serving, indexing] }
    }

    /// A key of a tier.
    pub(crate) async fn key(&self, tier: Tier) -> String {
        Access::of(&self.context).mint(&self.context, tier, "test@example.com").await.unwrap().key.reveal().to_owned()
    }

    /// Stops serving, and waits until it has.
    pub(crate) async fn stop(self) {
        let [serving, indexing] = self.tasks;
        self.context.stopping.send_replace(true);
        self.stop.send(()).unwrap();
        serving.await.unwrap();
        indexing.abort();
        drop(indexing.await);
    }
}
