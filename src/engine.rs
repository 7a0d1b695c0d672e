//! Wiring: opens the log, the store and the views, starts the roles, and stops them in order.

use std::error::Error as StdError;
use std::fs::{self, File, TryLockError};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use access::{Access, USE_RECORDING_INTERVAL};
use async_trait::async_trait;
use event_log::EventLog;
use event_log::metered::Metered;
use feed::live::Live;
use ingest::Runner;
use ingest::schedule::Schedule;
use operation::context::Context;
use operation::context::{Part, Settings};
use operation::secrets::{self, Secrets};
use operation::signing_state::SigningState;
use projector::follow;
use projector::rebuild::Parts;
use projector::runtime::{Projector, decider_lease};
use projector::service::SigningCheck;
use schemas::receipt::SigningKeys;
use schemas::topics::Topic;
use schemas::views::SERVICES;
use schemas::views::engine::VIEW as ENGINE_VIEW;
use schemas::views::receipts::TABLES as RECEIPTS;
use services::common::witness::RecordPlace;
use services::receipts::memory::Memory;
use services::receipts::shared_refusals::Participant;
use services::receipts::signer::Signer;
use services::registration::{TaskContext, TaskRole};
use surfaces::server::Server;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use upstreams::{Settings as UpstreamSettings, Upstream};
use view_store::ViewStore;

use crate::api_settings::{api_settings, payments, payments_wrong};
use crate::backend;
use crate::cli::{Role, address};
use crate::commands::Command;
use crate::config::Config;
use crate::control;
use crate::hardening;
use crate::health::Health;
use crate::output::Output;
use crate::turns;
use crate::witnesses;

/// The pause before the views are waited for again, when the log or the store failed meanwhile.
const WAIT_AGAIN: Duration = Duration::from_secs(1);
/// How long giving back unused quota may hold up a stop.
const GIVE_BACK_MAX: Duration = Duration::from_secs(5);
/// Between two looks at how far everything is behind.
const OBSERVE_EVERY: Duration = Duration::from_secs(5);

/// What goes wrong before anything runs.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The directory cannot be made or written.
    #[error("data directory {path} cannot be written")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It cannot be made readable by its owner alone.
    #[error(transparent)]
    Exposed(#[from] hardening::Error),
    /// Another process has it.
    #[error("data directory {path} is in use by another process")]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// Simulated records must not mix with real ones.
    #[error("data directory {path} holds {held} records; choose another one for {wanted} ones (data_dir)")]
    Mixed {
        /// The directory.
        path: PathBuf,
        /// What it holds.
        held: &'static str,
        /// What is wanted.
        wanted: &'static str,
    },
    /// Keys and cursors were made with a key that is gone.
    #[error(
        "{path} is missing beside an existing log: with another one, every key and cursor given out would be refused; restore it from the backup"
    )]
    MasterKey {
        /// Where it should be.
        path: PathBuf,
    },
    /// Changes without the facts that they name, or the other way round, must not be gone by.
    #[error(
        "records of another log are being imported into this one, or were until something stopped it: run `highwater import` with the same files to its end, it goes on where it is"
    )]
    HalfImported,
}

/// Everything opened.
pub(crate) struct Engine {
    pub(crate) config: Config,
    pub(crate) log: Arc<dyn EventLog>,
    pub(crate) store: Arc<dyn ViewStore>,
    pub(crate) parts: Parts,
    pub(crate) projector: Arc<Projector>,
    pub(crate) runner: Runner,
    pub(crate) context: Arc<Context>,
    /// Says whether this process may sign.
    pub(crate) signer: Arc<Signer>,
    /// Whether this process decides, and so signs.
    pub(crate) is_signer: bool,
    holder: String,
    stop: watch::Sender<bool>,
    /// The projector stops after everything that waits for it.
    stop_projector: watch::Sender<bool>,
    /// Held open: its lock says that the directory is taken.
    _lock: File,
}

impl Engine {
    /// Opens all. `simulated` says what kind of records the directory is for.
    pub(crate) async fn open(
        config: Config,
        listening: Option<SocketAddr>,
        simulated: Option<bool>,
        role: Role,
    ) -> Result<Arc<Self>, Box<dyn StdError>> {
        let dir = PathBuf::from(config.text("data_dir"));
        let lock = take_directory(&dir)?;
        mark_directory(&dir, simulated)?;
        let master_key = master_key(&config, &dir);
        if dir.join("log").exists() && !master_key.exists() {
            return Err(Error::MasterKey { path: master_key }.into());
        }
        let secrets = Secrets::load_or_create(&master_key)?;
        let clock = config.clock()?;
        let log = Metered::wrap(backend::log(&config, &dir).await?);
        if event_log::transfer::unfinished(&*log).await?.is_some() {
            return Err(Error::HalfImported.into());
        }
        let store = backend::store(&config, &dir).await?;
        let engine = store.live(&ENGINE_VIEW).await?;
        let (keys, keys_dir) = (SigningKeys::default(), receipt_keys_dir(&config));
        let receipt_key = keys.add(&secrets::seed(&keys_dir.join("first.key"))?);
        read_receipt_keys(&keys_dir, &keys).map_err(|error| error as Box<dyn StdError>)?;
        let keys = Arc::new(keys);
        let memory = signer_memory(&config, &dir, &store)?;
        let record = match &memory {
            Memory::Directory(path) if !store.is_shared() => RecordPlace::Directory(path.clone()),
            _ => RecordPlace::Store,
        };
        let (stop, stopping) = watch::channel(false);
        let (stop_projector, _) = watch::channel(false);
        let holder = format!("{}-{}", std::process::id(), clock.now_ms());
        let runner = Runner::new(Arc::clone(&log), Arc::clone(&store), Arc::clone(&engine), clock, holder.clone(), stopping);
        let settings = Settings { cache_dir: Some(dir.join("cache")), ..api_settings(&config, listening)? };
        let enabled =
            upstreams::ALL.iter().map(|upstream| upstream.manifest().name).filter(|name| config.flag(&format!("upstreams.{name}.enabled")));
        let asked: Result<Vec<_>, crate::config::Error> = enabled.map(|name| Ok((name, upstream_settings(&config, name)?))).collect();
        let context = Context::new(settings, clock, secrets, Arc::clone(&log), Arc::clone(&store)).with(Live::new(asked?)?);
        let mut payments = payments(&config)?;
        if listening.is_some() && role.is(Role::Api) {
            payments.load_supported_versions().await.map_err(|error| payments_wrong(&config, &error))?;
        }
        let context =
            Arc::new(context.with(payments).with(SigningState::new(Arc::clone(&keys))).with(witnesses::witnessing(&config, &dir, record)?));
        let signer = Arc::new(Signer::new(Arc::clone(&context), memory, receipt_key));
        let signing_check: Arc<dyn SigningCheck> = Arc::new(CheckBySigner(Arc::clone(&signer)));
        let (own_log, own_store) = (Arc::clone(&log), Arc::clone(&store));
        let parts = Parts { log: own_log, store: own_store, engine, clock, keys, signing_check: Some(signing_check) };
        let projector = Arc::new(Projector::open(parts.clone()).await?);
        Ok(Arc::new(Self {
            config,
            log,
            store,
            parts,
            projector,
            runner,
            context,
            signer,
            is_signer: role.is(Role::Project),
            holder,
            stop,
            stop_projector,
            _lock: lock,
        }))
    }

    /// What becomes true when the engine stops.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// Some work, until the engine stops.
    fn until_stopped<W: Future<Output = ()>>(&self, work: W) -> impl Future<Output = ()> + use<W> {
        let mut stop = self.stopping();
        async move {
            tokio::select! {
                () = work => {}
                _ = stop.changed() => {}
            }
        }
    }

    /// Tells everything to stop.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Settings of one upstream.
    pub(crate) fn upstream_settings(&self, name: &str) -> Result<UpstreamSettings, crate::config::Error> {
        upstream_settings(&self.config, name)
    }

    /// Starts what always runs while a directory is open: heads and deciders, and the signer. Nothing is signed until the signer has compared the
    /// log with its memory; all else does not wait for that.
    pub(crate) fn start_projector(&self) -> JoinHandle<()> {
        self.signer.start();
        let projecting = Arc::clone(&self.projector).run(self.holder.clone(), self.stop_projector.subscribe());
        let signer = Arc::clone(&self.signer);
        tokio::spawn(async move {
            tokio::select! {
                () = projecting => {}
                () = signer.watch() => {}
            }
        })
    }

    /// This process among those that tell each other which signatures are refused.
    pub(crate) fn participant(&self) -> Participant {
        Participant { holder: self.holder.clone(), decider_lease: decider_lease(RECEIPTS.view.name), is_signer: self.is_signer }
    }

    /// Waits until every service that reads a topic has passed its present end.
    pub(crate) async fn wait_projected(&self, topic: &'static Topic) -> Result<(), Box<dyn StdError + Send + Sync>> {
        for service in SERVICES.iter().filter(|view| projector::services::reads(view.name, topic)) {
            for partition in 0..topic.partitions {
                let end = self.log.end(topic, partition).await?;
                loop {
                    let view = self.store.live(service).await?;
                    match view_store::engine::wait_past(&*view, topic, partition, end).await {
                        Err(view_store::Error::Gone { .. }) => {}
                        other => {
                            other?;
                            break;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Stops all tasks, gives back what is held, and closes the stores.
    pub(crate) async fn close(&self, mut tasks: JoinSet<()>, projecting: JoinHandle<()>) -> Result<(), Box<dyn StdError>> {
        self.stop();
        // First what may be waiting for the projector, then the projector.
        while tasks.join_next().await.is_some() {}
        self.stop_projector.send_replace(true);
        projecting.await?;
        // A store that is lost keeps no process from stopping: it forfeits a block of calls a caller at most.
        match tokio::time::timeout(GIVE_BACK_MAX, Access::of(&self.context).release_all(&self.context)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(error = ingest::reason(&error), "unused quota could not be given back"),
            Err(_) => tracing::warn!("unused quota could not be given back in time"),
        }
        self.store.close().await?;
        self.log.close().await?;
        Ok(())
    }
}

/// The settings of an upstream.
fn upstream_settings(config: &Config, name: &str) -> Result<UpstreamSettings, crate::config::Error> {
    let key = |key: &str| format!("upstreams.{name}.{key}");
    let some = |path: String| Some(config.text(&path).to_owned()).filter(|text| !text.is_empty());
    Ok(UpstreamSettings {
        base_url: some(key("base_url")).map(|url| url.trim_end_matches('/').to_owned()),
        api_key: some(key("api_key")),
        user_agent: config.text(&key("user_agent")).to_owned(),
        requests_per_second: config.rate(&key("requests_per_second"))?,
        window_days: u32::try_from(config.count(&key("window_days"))?).unwrap_or(u32::MAX),
    })
}

/// Where the master key is.
pub(crate) fn master_key(config: &Config, dir: &Path) -> PathBuf {
    match config.text("master_key_file") {
        "" => dir.join("master.key"),
        path => PathBuf::from(path),
    }
}

/// Where the keys of receipts are: `*.key`, one a file.
pub(crate) fn receipt_keys_dir(config: &Config) -> PathBuf {
    match config.text("receipt_keys_dir") {
        "" => Path::new(config.text("data_dir")).join("receipt-keys"),
        path => PathBuf::from(path),
    }
}

/// Has the signer asked before receipts are signed.
struct CheckBySigner(Arc<Signer>);

#[async_trait]
impl SigningCheck for CheckBySigner {
    async fn check(&self) {
        self.0.check_before_batch().await;
    }
}

/// Where the signer remembers what it signed: outside the data directory, which a backup may put back.
fn signer_memory(config: &Config, dir: &Path, store: &Arc<dyn ViewStore>) -> Result<Memory, crate::config::Error> {
    const KEY: &str = "checkpoints.memory";
    let path = match config.text(KEY) {
        "" if backend::is_shared(config, "store") => return Ok(Memory::Store(Arc::clone(store))),
        "" => state_dir(|name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)).join("signer"),
        path => PathBuf::from(path),
    };
    // As far as the directories exist: one that does not cannot be a link into the other.
    let whole = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned());
    if whole(&path).starts_with(whole(dir)) {
        let reason = format!(
            "{} is inside data_dir, but must be outside: a backup of that directory must not put back what was signed; name another \
             directory, for example \"/var/lib/highwater-signer\"",
            path.display()
        );
        return Err(config.wrong(KEY, &reason));
    }
    Ok(Memory::Directory(path))
}

/// The directory of state that belongs to the user, by the environment (XDG base directories).
fn state_dir(variable: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    let below_home = || variable("HOME").map(|home| home.join(".local/state"));
    match variable("XDG_STATE_HOME").filter(|path| path.is_absolute()).or_else(below_home) {
        Some(state) => state.join("highwater"),
        None => PathBuf::from("/var/lib/highwater"),
    }
}

/// Reads the keys of receipts that are there.
pub(crate) fn read_receipt_keys(dir: &Path, keys: &SigningKeys) -> Result<(), Box<dyn StdError + Send + Sync>> {
    let unreadable = |source| Error::Directory { path: dir.to_owned(), source };
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "key") {
            keys.add(&secrets::seed(&path)?);
        }
    }
    Ok(())
}

/// Takes in keys of receipts that were copied here while the process runs.
async fn follow_receipt_keys(engine: Arc<Engine>) {
    let (mut stop, dir) = (engine.stopping(), receipt_keys_dir(&engine.config));
    while !*stop.borrow() {
        if let Err(error) = read_receipt_keys(&dir, &engine.parts.keys) {
            tracing::warn!(error = ingest::reason(&*error), "the keys of receipts cannot be read");
        }
        tokio::select! {
            _ = stop.changed() => {}
            () = tokio::time::sleep(OBSERVE_EVERY) => {}
        }
    }
}

/// Records now and then which keys were used.
async fn record_uses(engine: Arc<Engine>) {
    let mut stop = engine.stopping();
    loop {
        // Once more when it stops, if that can be done soon.
        let is_last = *stop.borrow();
        let access = Access::of(&engine.context);
        let recorded = access.record_uses(&engine.context);
        match tokio::time::timeout(if is_last { GIVE_BACK_MAX } else { USE_RECORDING_INTERVAL }, recorded).await {
            Ok(Ok(())) => {}
            Ok(Err(problem)) => tracing::warn!(reason = problem.detail, "the use of keys is not recorded"),
            Err(_) => tracing::warn!("the use of keys is not recorded in time"),
        }
        if is_last {
            return;
        }
        tokio::select! {
            _ = stop.changed() => {}
            () = tokio::time::sleep(USE_RECORDING_INTERVAL) => {}
        }
    }
}

/// Takes a data directory for this process alone.
pub(crate) fn take_directory(dir: &Path) -> Result<File, Error> {
    let wrong = |source| Error::Directory { path: dir.to_owned(), source };
    hardening::private_directory(dir)?;
    let lock = File::options().create(true).truncate(false).write(true).open(dir.join("lock")).map_err(wrong)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(Error::Locked { path: dir.to_owned() }),
        Err(TryLockError::Error(source)) => Err(wrong(source)),
    }
}

/// Marks what kind of records a directory is for, once, and refuses the other kind; `None` asks and marks nothing.
fn mark_directory(dir: &Path, simulated: Option<bool>) -> Result<(), Error> {
    let Some(simulated) = simulated else { return Ok(()) };
    let name = |simulated| if simulated { "simulated" } else { "real" };
    let (mark, wanted, other) = (dir.join(name(simulated)), name(simulated), name(!simulated));
    if dir.join(other).exists() {
        return Err(Error::Mixed { path: dir.to_owned(), held: other, wanted });
    }
    fs::write(mark, b"what kind of records this directory holds\n").map_err(|source| Error::Directory { path: dir.to_owned(), source })
}

/// `highwater serve`.
pub(crate) async fn serve(config: Config, role: Role) -> Result<(), Box<dyn StdError>> {
    let server = bind(&config)?;
    let engine = Engine::open(config, Some(server.address()), Some(false), role).await?;
    let lines = schedule_lines(&engine.config);
    run(engine, server, lines, role, None).await
}

/// Takes the listener's address.
pub(crate) fn bind(config: &Config) -> Result<Server, Box<dyn StdError>> {
    hardening::raise_descriptor_limit();
    let listen = address(config.text("listen")).map_err(|reason| config.wrong("listen", &reason))?;
    Ok(Server::bind(listen)?)
}

fn schedule_lines(config: &Config) -> Vec<(String, String)> {
    let names = upstreams::ALL.iter().map(|upstream| upstream.manifest().name);
    names
        .filter(|name| config.flag(&format!("upstreams.{name}.enabled")))
        .map(|name| (name.to_owned(), config.text(&format!("upstreams.{name}.schedule")).to_owned()))
        .collect()
}

/// What a demo does beside serving; ready once it says so.
pub(crate) type Beside = Box<dyn FnOnce(Arc<Engine>, Arc<AtomicBool>) -> futures_util::future::BoxFuture<'static, ()> + Send>;

/// Serves until a signal comes, then stops in order.
pub(crate) async fn run(
    engine: Arc<Engine>,
    server: Server,
    lines: Vec<(String, String)>,
    role: Role,
    beside: Option<Beside>,
) -> Result<(), Box<dyn StdError>> {
    let mut tasks = JoinSet::new();
    let ready = Arc::new(AtomicBool::new(false));
    let control = control::Listener::bind(&engine.config)?;
    let projecting = if role.is(Role::Project) { engine.start_projector() } else { tokio::spawn(async {}) };
    tasks.spawn(control.run(Arc::clone(&engine)));
    {
        let parts = engine.parts.clone();
        // Callers wait at all services, and whoever seals the tree at the receipts.
        let views: &[_] = match role {
            Role::Ingest => &[],
            Role::Project => &[RECEIPTS.view],
            _ => SERVICES,
        };
        tasks.spawn(engine.until_stopped(async move { follow::wake_readers(&parts, views).await }));
    }
    {
        let (own, ready) = (Arc::clone(&engine), Arc::clone(&ready));
        tasks.spawn(engine.until_stopped(async move {
            match beside {
                Some(beside) => beside(own, ready).await,
                // Ready once everything that was in the log at the start is projected.
                None => {
                    while let Err(error) = wait_all(&own).await {
                        tracing::warn!(error = ingest::reason(&*error), "the views do not catch up yet");
                        tokio::time::sleep(WAIT_AGAIN).await;
                    }
                    ready.store(true, Ordering::Relaxed);
                }
            }
        }));
    }
    if role.is(Role::Project) || role.is(Role::Api) {
        tasks.spawn(engine.participant().run(Arc::clone(&engine.context)));
    }
    if role.is(Role::Project) {
        tasks.spawn(follow_receipt_keys(Arc::clone(&engine)));
    }
    let given =
        Arc::new(TaskContext { context: Arc::clone(&engine.context), signer: Arc::clone(&engine.signer), holder: engine.holder.clone() });
    for (own, of) in [(Role::Project, TaskRole::Project), (Role::Api, TaskRole::Api)] {
        if role.is(own) {
            services::tasks(of, &given).into_iter().for_each(|task| drop(tasks.spawn(task)));
        }
    }
    if role.is(Role::Api) {
        tasks.spawn(record_uses(Arc::clone(&engine)));
        // Also where nothing is sold: what was claimed before must still be resolved.
        tasks.spawn(payments::watch::run(Arc::clone(&engine.context), engine.holder.clone()));
    }
    tasks.spawn(observe(Arc::clone(&engine)));
    let (due, queue) = mpsc::channel(upstreams::ALL.len());
    let lines = if role.is(Role::Ingest) { lines } else { Vec::new() };
    let schedule = Schedule::start(&lines, due).await?;
    let upstreams = lines.iter().filter_map(|(name, _)| upstreams::by_name(name)).collect();
    tasks.spawn(turns::run(Arc::clone(&engine), queue, upstreams));
    let health = Arc::new(Health::default());
    tasks.spawn(Arc::clone(&health).watch(Arc::clone(&engine)));
    let readiness: surfaces::Readiness = Arc::new(move || {
        if let Some(reason) = health.trouble() {
            return Err(reason);
        }
        if ready.load(Ordering::Relaxed) { Ok(()) } else { Err("the views are catching up with the log".to_owned()) }
    });
    let services = if role.is(Role::Api) { services::all() } else { Vec::new() };
    tracing::info!(address = %server.address(), "listening");
    let served = server.run(Arc::clone(&engine.context), services, readiness, signal()).await;
    tracing::info!("stopping");
    schedule.stop().await;
    engine.close(tasks, projecting).await?;
    served?;
    Ok(())
}

/// Shows, again and again, how far everything is behind.
async fn observe(engine: Arc<Engine>) {
    let mut stop = engine.stopping();
    let upstreams: Vec<&'static dyn Upstream> =
        schedule_lines(&engine.config).iter().filter_map(|(name, _)| upstreams::by_name(name)).collect();
    while !*stop.borrow() {
        projector::metrics::sample(&engine.parts).await;
        if let Err(error) = ingest::metrics::sample(&*engine.parts.engine, &upstreams).await {
            tracing::warn!(error = ingest::reason(&error), "the upstreams' freshness cannot be told");
        }
        tokio::select! {
            _ = stop.changed() => {}
            () = tokio::time::sleep(OBSERVE_EVERY) => {}
        }
    }
}

async fn wait_all(engine: &Engine) -> Result<(), Box<dyn StdError + Send + Sync>> {
    for topic in schemas::topics::fact_topics() {
        engine.wait_projected(topic).await?;
    }
    Ok(())
}

async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
}

/// Runs one command in a process of its own, with the directory to itself.
pub(crate) async fn run_command(config: Config, command: Command, output: Arc<dyn Output>) -> Result<(), Box<dyn StdError>> {
    // Asking an upstream by name brings real records.
    let simulated = matches!(command, Command::Ingest { .. }).then_some(false);
    let engine = Engine::open(config, None, simulated, Role::All).await?;
    let projecting = engine.start_projector();
    let result = command.run(&engine, &*output).await;
    engine.close(JoinSet::new(), projecting).await?;
    Ok(result?)
}
