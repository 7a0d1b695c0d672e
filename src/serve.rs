//! `highwater serve`: starts the tasks of a role, serves until a signal arrives, and stops in order. Also runs single commands.

use std::error::Error as StdError;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use access::{Access, USE_RECORDING_INTERVAL};
use futures_util::future::BoxFuture;
use ingest::schedule::Schedule;
use operation::context::Part;
use operation::metrics::{self, RoundTask};
use projector::follow;
use reads::registration::{TaskContext, TaskRole};
use receipts::operations::signer::Signer;
use schemas::views::receipts::TABLES as RECEIPTS;
use surfaces::server::Server;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use upstreams::Upstream;

use crate::api_settings::public_url;
use crate::commands::Command;
use crate::config::Config;
use crate::data_dir::{self, Records};
use crate::engine::{Engine, check_user_agent, enabled_upstreams};
use crate::health::Health;
use crate::key_checks::KeyChecks;
use crate::output::Output;
use crate::role::Role;
use crate::{control, hardening, sync_supervisor};

/// How far the default port of the listener for operators is from that of the one for readers.
const OPERATOR_PORT_DISTANCE: u16 = 1_000;
/// The pause before waiting for the views again, after the log or the store failed.
const CATCH_UP_RETRY_PAUSE: Duration = Duration::from_secs(1);
/// The pause before looking again whether the first key of receipts is recorded.
const FIRST_KEY_POLL_PAUSE: Duration = Duration::from_millis(50);
/// The time limit of recording the use of keys while the process stops.
const LAST_USES_TIME_MAX: Duration = Duration::from_secs(5);
/// How often lag and freshness are measured for metrics.
const LAG_SAMPLE_INTERVAL: Duration = Duration::from_secs(5);

/// What a demo does while the server runs. It sets the flag when the server is ready.
pub(crate) type DemoTask = Box<dyn FnOnce(Arc<Engine>, Arc<AtomicBool>) -> BoxFuture<'static, ()> + Send>;

/// Runs `highwater serve`.
///
/// # Errors
/// The process cannot start, or fails while it stops.
pub(crate) async fn serve(config: Config, role: Role) -> Result<(), Box<dyn StdError>> {
    if role.includes(Role::Ingest) {
        check_user_agent(&config)?;
    }
    let Listeners { readers: server, operators } = bind(&config)?;
    if role.includes(Role::Api) && server.address().ip().to_canonical().is_unspecified() && config.sections.public_url.is_none() {
        tracing::warn!(
            url = public_url(&config, Some(server.address())),
            "links lead to this machine only; set public_url for other readers"
        );
    }
    let engine = Engine::open(config, Some(server.address()), Some(Records::Real), role).await?;
    let upstreams = if role.includes(Role::Ingest) { enabled_upstreams(&engine.config).collect() } else { Vec::new() };
    run(engine, Listeners { readers: server, operators }, upstreams, role, None).await
}

/// The HTTP listeners of a process.
pub(crate) struct Listeners {
    pub(crate) readers: Server,
    pub(crate) operators: Server,
}

/// Binds the HTTP listeners.
///
/// # Errors
/// An address is not available.
pub(crate) fn bind(config: &Config) -> Result<Listeners, Box<dyn StdError>> {
    hardening::raise_descriptor_limit()?;
    let readers = Server::bind(config.sections.listen)?;
    let (address, otherwise) = operator_addresses(config);
    let operators = Server::bind(address).or_else(|error| otherwise.map_or(Err(error), Server::bind))?;
    Ok(Listeners { readers, operators })
}

/// The address of the listener for operators, and another one if that is taken. A configured address has no other one.
fn operator_addresses(config: &Config) -> (SocketAddr, Option<SocketAddr>) {
    let on_loopback = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let port = config.sections.listen.port();
    match (config.sections.operator_listen, port.checked_add(OPERATOR_PORT_DISTANCE)) {
        (Some(address), _) => (address, None),
        (None, Some(next)) if port > 0 => (on_loopback(next), Some(on_loopback(0))),
        (None, _) => (on_loopback(0), None),
    }
}

/// Serves until a signal arrives, then stops in order. `upstreams` are polled by their schedules.
///
/// # Errors
/// Signals cannot be received, a schedule or the control socket cannot be used, the server fails, or the log or the store cannot be closed.
pub(crate) async fn run(
    engine: Arc<Engine>,
    Listeners { readers: server, operators }: Listeners,
    upstreams: Vec<&'static dyn Upstream>,
    role: Role,
    demo: Option<DemoTask>,
) -> Result<(), Box<dyn StdError>> {
    // Before anything runs that a signal must stop in order.
    let stop = signals()?;
    let mut tasks = JoinSet::new();
    let control = control::Listener::bind(&engine.config)?;
    let projecting = if role.includes(Role::Project) { engine.start_projector() } else { tokio::spawn(async {}) };
    tasks.spawn(control.run(Arc::clone(&engine)));
    let is_ready = Arc::new(AtomicBool::new(false));
    spawn_readers(&mut tasks, &engine, role, demo, &is_ready);
    spawn_background_tasks(&mut tasks, &engine, role);
    let schedules = schedules(&engine.config, &upstreams);
    let (due, queue) = mpsc::channel(schedules.len().max(1));
    let schedule = Schedule::start(&schedules, due).await?;
    tasks.spawn(sync_supervisor::run(Arc::clone(&engine), queue, upstreams));

    let health = Arc::new(Health::default());
    tasks.spawn(Arc::clone(&health).watch(Arc::clone(&engine)));
    let readiness: surfaces::Readiness = Arc::new(move || {
        if let Some(reason) = health.problems() {
            return Err(reason);
        }
        if is_ready.load(Ordering::Relaxed) {
            Ok(())
        } else {
            Err("the views are catching up with the log, services read what their first calls need, or the signer of receipts is starting"
                .to_owned())
        }
    });
    let services = if role.includes(Role::Api) { services::all() } else { Vec::new() };
    tracing::info!(address = %server.address(), operators = %operators.address(), "listening");
    // Until the process has stopped, so that a stop that takes long can be watched.
    let operators = tokio::spawn(operators.run_for_operators(Arc::clone(&engine.context), Arc::clone(&readiness)));
    let served = server.run(Arc::clone(&engine.context), services, readiness, stop).await;
    tracing::info!("stopping");
    schedule.stop().await;
    let closed = engine.close(tasks, projecting).await;
    operators.abort();
    closed?;
    served?;
    Ok(())
}

/// Starts the task that wakes waiting readers, and the one that decides when the process is ready.
fn spawn_readers(tasks: &mut JoinSet<()>, engine: &Arc<Engine>, role: Role, demo: Option<DemoTask>, is_ready: &Arc<AtomicBool>) {
    let parts = engine.parts.clone();
    // Callers of the API wait for changes of any service; the signer of checkpoints waits for receipts.
    let views: Vec<_> = match role {
        Role::Ingest => Vec::new(),
        Role::Project => vec![RECEIPTS.view],
        Role::Api | Role::All => parts.projected.iter().map(|service| service.view).collect(),
    };
    tasks.spawn(engine.until_stopped(async move { follow::wake_readers(&parts, &views).await }));
    let (own, is_ready) = (Arc::clone(engine), Arc::clone(is_ready));
    tasks.spawn(engine.until_stopped(async move {
        match demo {
            Some(demo) => demo(own, is_ready).await,
            // Ready when everything that was in the log at the start is projected, what the first calls need is read, the first key of receipts is
            // recorded, and the log is compared with what was signed before: the first receipt is signed. A refusal is no reason to answer no reads.
            None => {
                while let Err(error) = own.wait_all_projected().await {
                    tracing::warn!(error = ingest::reason(&*error), "waiting for the views failed, will retry");
                    tokio::time::sleep(CATCH_UP_RETRY_PAUSE).await;
                }
                if role.includes(Role::Api) {
                    services::prepare(&own.context).await;
                }
                while own.is_signer && !own.has_signing_key().await {
                    tokio::time::sleep(FIRST_KEY_POLL_PAUSE).await;
                }
                if own.is_signer {
                    own.signer.compare_if_needed().await;
                }
                is_ready.store(true, Ordering::Relaxed);
            }
        }
    }));
}

/// Starts the background tasks of a role.
pub(crate) fn spawn_background_tasks(tasks: &mut JoinSet<()>, engine: &Arc<Engine>, role: Role) {
    let (is_projector, is_api) = (role.includes(Role::Project), role.includes(Role::Api));
    if is_projector || is_api {
        tasks.spawn(engine.participant().run(Arc::clone(&engine.context)));
    }
    let context = Arc::new(TaskContext {
        context: Arc::clone(&engine.context),
        signer: Arc::<Signer>::clone(&engine.signer),
        holder: engine.holder.clone(),
    });
    let roles = [(is_projector, TaskRole::Project), (is_api, TaskRole::Api)];
    for (_, role) in roles.into_iter().filter(|(is_own, _)| *is_own) {
        services::tasks(role, &context).into_iter().for_each(|task| drop(tasks.spawn(task)));
    }
    if is_projector {
        tasks.spawn(follow_receipt_keys(Arc::clone(engine)));
    }
    if is_api {
        tasks.spawn(record_uses(Arc::clone(engine)));
        // Also where nothing is sold any more: earlier payments may still be unresolved.
        tasks.spawn(payments::watch::run(Arc::clone(&engine.context), engine.holder.clone()));
    }
    tasks.spawn(measure_lag(Arc::clone(engine)));
}

/// The cron expressions of some upstreams.
fn schedules(config: &Config, upstreams: &[&'static dyn Upstream]) -> Vec<(String, String)> {
    let names = upstreams.iter().map(|upstream| upstream.manifest().name);
    names.filter_map(|name| Some((name.to_owned(), config.sections.upstreams.get(name)?.schedule.clone()))).collect()
}

/// Reads keys of receipts that are copied to the directory while the process runs.
async fn follow_receipt_keys(engine: Arc<Engine>) {
    let (mut stop, dir) = (engine.stopping(), data_dir::receipt_keys_dir(&engine.config));
    while !*stop.borrow() {
        let read = KeyChecks::read(&engine.config.sections.data_dir).map_err(Into::into);
        if let Err(error) = read.and_then(|mut checks| data_dir::read_receipt_keys(&dir, &engine.parts.keys, &mut checks)) {
            tracing::warn!(error = ingest::reason(&*error), "receipt keys cannot be read, will retry");
        }
        metrics::count_round(RoundTask::ReceiptKeys);
        tokio::select! {
            _ = stop.changed() => {}
            () = tokio::time::sleep(engine.context.settings.rounds.receipt_keys) => {}
        }
    }
}

/// Records regularly which API keys were used, and once more before the process stops.
async fn record_uses(engine: Arc<Engine>) {
    let mut stop = engine.stopping();
    loop {
        let is_last = *stop.borrow();
        let access = Access::of(&engine.context);
        let recorded = access.record_uses(&engine.context);
        match tokio::time::timeout(if is_last { LAST_USES_TIME_MAX } else { USE_RECORDING_INTERVAL }, recorded).await {
            Ok(Ok(())) => {}
            Ok(Err(problem)) => tracing::warn!(reason = problem.detail, "recording the use of keys failed"),
            Err(_) => tracing::warn!("recording the use of keys timed out"),
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

/// Measures for metrics how far projection and ingest are behind.
async fn measure_lag(engine: Arc<Engine>) {
    let mut stop = engine.stopping();
    let upstreams: Vec<&'static dyn Upstream> = enabled_upstreams(&engine.config).collect();
    let from_s = engine.parts.clock.now_ms() / 1_000;
    let intervals = schedules(&engine.config, &upstreams).into_iter().filter_map(|(name, line)| {
        let upstream = upstreams::by_name(&name)?;
        Some(ingest::schedule::intervals(upstream, &line, from_s))
    });
    ingest::metrics::set_intervals(&intervals.flatten().collect::<Vec<_>>());
    while !*stop.borrow() {
        projector::metrics::sample(&engine.parts).await;
        if let Err(error) = ingest::metrics::sample(&*engine.parts.engine, &upstreams).await {
            tracing::warn!(error = ingest::reason(&error), "the freshness of upstreams cannot be measured");
        }
        tokio::select! {
            _ = stop.changed() => {}
            () = tokio::time::sleep(LAG_SAMPLE_INTERVAL) => {}
        }
    }
}

/// Receives SIGTERM and SIGINT from now on; the future ends with the first one.
///
/// # Errors
/// The system refuses.
pub(crate) fn signals() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
    })
}

/// Runs one command in this process, which has the data directory to itself.
///
/// # Errors
/// The data directory, the log or the store cannot be opened or closed, or the command fails.
pub(crate) async fn run_command(config: Config, command: Command, output: Arc<dyn Output>) -> Result<(), Box<dyn StdError>> {
    hardening::raise_descriptor_limit()?;
    // Only an ingest appends records, and it polls real upstreams.
    let records = matches!(command, Command::Ingest { .. }).then_some(Records::Real);
    let engine = Engine::open(config, None, records, Role::All).await?;
    let projecting = engine.start_projector();
    let result = command.run(&engine, &*output).await;
    engine.close(JoinSet::new(), projecting).await?;
    Ok(result?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Flags;

    fn addresses(settings: &[(&str, &str)]) -> (String, Option<String>) {
        let empty = tempfile::NamedTempFile::new().unwrap();
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let (address, otherwise) = operator_addresses(&Config::load(Some(empty.path()), settings, &Flags::default()).unwrap());
        (address.to_string(), otherwise.map(|address| address.to_string()))
    }

    /// Proves that operators have a loopback address by default, whatever readers have, and that a configured address is the only one that is tried.
    #[test]
    fn operators_listen_on_loopback() {
        let free = Some("127.0.0.1:0".to_owned());
        assert_eq!(addresses(&[]), ("127.0.0.1:9080".to_owned(), free.clone()));
        assert_eq!(addresses(&[("HIGHWATER_LISTEN", "[::]:443")]), ("127.0.0.1:1443".to_owned(), free));
        for no_next in ["0.0.0.0:0", "0.0.0.0:65000"] {
            assert_eq!(addresses(&[("HIGHWATER_LISTEN", no_next)]), ("127.0.0.1:0".to_owned(), None), "{no_next}");
        }
        let configured = [("HIGHWATER_LISTEN", "0.0.0.0:0"), ("HIGHWATER_OPERATOR_LISTEN", "192.0.2.1:7000")];
        assert_eq!(addresses(&configured), ("192.0.2.1:7000".to_owned(), None));
    }
}
