//! Opens the log, the store and the views of one process, and closes them in order.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use access::Access;
use async_trait::async_trait;
use cadence::operations::niches::Niches;
use disk_files::space::SpaceWatch;
use event_log::EventLog;
use event_log::clock_guard::ClockGuard;
use event_log::metered_log::Metered;
use feed::streams::{NextRun, NextRuns};
use fold::service::SigningCheck;
use futures_util::future::try_join_all;
use ingest::Runner;
use operation::context::{Context, Part, Settings};
use operation::secrets::{self, Secrets};
use operation::signing_state::SigningState;
use projector::rebuild::Parts;
use projector::runtime::{Projector, decider_lease};
use proofs::receipt::SigningKeys;
use reads::live::Live;
use receipts::operations::shared_refusals::Participant;
use receipts::operations::signer::Signer;
use schemas::tables::ViewDef;
use schemas::topics::{self, Topic};
use schemas::views::engine::VIEW as ENGINE_VIEW;
use schemas::views::receipts::TABLES as RECEIPTS;
use services::{Disabled, Selection};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use transparency::memory::Memory;
use transparency::witness::RecordPlace;
use upstreams::cook::Options as CookOptions;
use upstreams::shopify::{Options as ShopifyOptions, Store};
use upstreams::{Manifest, OwnOptions, Settings as UpstreamSettings, Stream, Upstream};
use view_store::ViewStore;
use view_store::following_view::FollowingView;

use crate::api_settings::{api_settings, invalid_payments, payments};
use crate::backend;
use crate::config::{self, Config, ShopifySection, StoreEntry};
use crate::data_dir::{self, Records};
use crate::failure::Failure;
use crate::key_checks::KeyChecks;
use crate::role::Role;
use crate::witnesses;

/// How long releasing unused quota may delay a stop.
const QUOTA_RELEASE_TIME_MAX: Duration = Duration::from_secs(5);

/// An import into this log has begun and is not finished.
#[derive(Debug, thiserror::Error)]
#[error("an import into this log is unfinished: run `highwater import` with the same files again, it resumes where it stopped")]
struct UnfinishedImport;

/// The opened log, store, views, projector, runner and API context of a process.
pub(crate) struct Engine {
    pub(crate) config: Config,
    pub(crate) log: Arc<dyn EventLog>,
    /// Compares the clock with the last record of the log.
    pub(crate) clock_guard: Arc<ClockGuard>,
    /// The free space of the data directory, if the log or the store is in it.
    pub(crate) space: Option<Arc<SpaceWatch>>,
    pub(crate) store: Arc<dyn ViewStore>,
    pub(crate) parts: Parts,
    /// The services that are disabled.
    pub(crate) disabled: Vec<Disabled>,
    pub(crate) projector: Arc<Projector>,
    pub(crate) runner: Runner,
    pub(crate) context: Arc<Context>,
    /// Signs receipts and checkpoints, and decides whether this process may.
    pub(crate) signer: Arc<Signer>,
    /// Whether this process projects, and therefore signs.
    pub(crate) is_signer: bool,
    /// Whether this process serves, or only runs one command.
    pub(crate) is_serving: bool,
    /// The name under which this process takes leases.
    pub(crate) holder: String,
    stop: watch::Sender<bool>,
    /// The projector stops last, because other tasks may wait for it.
    stop_projector: watch::Sender<bool>,
    /// Locks the data directory while it is open.
    _lock: File,
}

impl Engine {
    /// Opens everything. `listening` is the listener's address, if this process serves; `records` is the kind of records that it may append, if any.
    ///
    /// # Errors
    /// The data directory, the log or the store cannot be opened, or a setting cannot be used.
    pub(crate) async fn open(
        config: Config,
        listening: Option<SocketAddr>,
        records: Option<Records>,
        role: Role,
    ) -> Result<Arc<Self>, Box<dyn StdError>> {
        let dir = config.sections.data_dir.clone();
        let lock = data_dir::lock(&dir)?;
        // Before anything is written: on a full disk this makes room for it.
        let space = backend::watch_space(&config);
        if let Some(records) = records {
            data_dir::mark(&dir, records)?;
        }
        data_dir::check_master_key(&config)?;
        let mut key_checks = KeyChecks::read(&dir)?;
        let (master_key, keys_dir) = (data_dir::master_key(&config), data_dir::receipt_keys_dir(&config));
        key_checks.check_present(&keys_dir)?;
        let secrets = Secrets::load_or_create(&master_key)?;
        key_checks.check_master(&master_key, &secrets)?;
        let clock = config.clock();
        let (clock_guard, log) =
            ClockGuard::wrap(backend::open_log(&config, space.clone()).await?, clock, config.sections.clock.limits()).await?;
        if let Some(reason) = clock_guard.refusal() {
            tracing::error!(reason, "the log accepts no records under this clock");
        }
        let log = Metered::wrap(log);
        if event_log::transfer::unfinished(&*log).await?.is_some() {
            return Err(UnfinishedImport.into());
        }
        let store = backend::open_store(&config, &*log, listening.is_some(), space.clone()).await?;
        let engine_view = FollowingView::for_projector(&store, &ENGINE_VIEW).await?;
        let heads = FollowingView::for_readers(&store, &ENGINE_VIEW).await?;

        let keys = SigningKeys::default();
        let receipt_key = keys.add(&secrets::seed(&keys_dir.join("first.key"))?);
        data_dir::read_receipt_keys(&keys_dir, &keys, &mut key_checks).map_err(|error| error as Box<dyn StdError>)?;
        let keys = Arc::new(keys);
        let memory = data_dir::signer_memory(&config, &store)?;
        let witness_record = match &memory {
            Memory::Directory(path) if !store.is_shared() => RecordPlace::Directory(path.clone()),
            _ => RecordPlace::Store,
        };

        let (stop, stopping) = watch::channel(false);
        let (stop_projector, _) = watch::channel(false);
        let holder = format!("{}-{}", std::process::id(), clock.now_ms());
        let runner =
            Runner::new(Arc::clone(&log), Arc::clone(&store), heads, clock, holder.clone(), stopping).with_downloads(dir.join("downloads"));

        let settings = Settings { cache_dir: Some(dir.join("cache")), ..api_settings(&config, listening) };
        let live_upstreams = enabled_upstreams(&config).map(|upstream| {
            let name = upstream.manifest().name;
            Ok((name, upstream_settings(&config, name)?))
        });
        let live = Live::new(live_upstreams.collect::<Result<Vec<_>, config::Error>>()?)?.with_deadline(settings.call_times.look_up());
        let mut payments = payments(&config)?;
        if listening.is_some() && role.includes(Role::Api) {
            payments.load_supported_versions().await.map_err(|error| invalid_payments(&config, &error))?;
        }
        let context = Context::new(settings, clock, secrets, Arc::clone(&log), Arc::clone(&store))
            .with(live)
            .with(payments)
            .with(SigningState::new(Arc::clone(&keys)))
            .with(niches(&config))
            .with(next_runs(&config))
            .with(witnesses::witnessing(&config, witness_record)?);
        let context = services::with_parts(context);
        let context = Arc::new(if may_clear_names(&config, role) { context } else { services::without_register(context) });

        let signer = Arc::new(Signer::new(Arc::clone(&context), memory, receipt_key));
        let signing_check: Arc<dyn SigningCheck> = Arc::new(CheckBySigner(Arc::clone(&signer)));
        let selection = config.selection();
        if listening.is_some() {
            report_disabled(&selection);
        }
        let parts = Parts {
            log: Arc::clone(&log),
            store: Arc::clone(&store),
            engine: engine_view,
            services: services::defs(),
            projected: selection.projected.iter().map(|service| service.def).collect(),
            clock,
            keys,
            signing_check: Some(signing_check),
        };
        let projector = Arc::new(Projector::open(parts.clone(), &selection.projected).await?);
        Ok(Arc::new(Self {
            config,
            log,
            clock_guard,
            space,
            store,
            parts,
            disabled: selection.disabled,
            projector,
            runner,
            context,
            signer,
            is_signer: role.includes(Role::Project),
            is_serving: listening.is_some(),
            holder,
            stop,
            stop_projector,
            _lock: lock,
        }))
    }

    /// A receiver that becomes true when the engine stops.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// Why nothing can be written now: the clock or the disk; `None` if neither refuses writes.
    pub(crate) fn write_refusal(&self) -> Option<String> {
        let disk_full = || self.space.as_ref()?.check().err().map(|full| full.to_string());
        self.clock_guard.refusal().or_else(disk_full)
    }

    /// Runs a future until it is done or the engine stops.
    pub(crate) fn until_stopped<W: Future<Output = ()>>(&self, work: W) -> impl Future<Output = ()> + use<W> {
        let mut stop = self.stopping();
        async move {
            tokio::select! {
                () = work => {}
                _ = stop.changed() => {}
            }
        }
    }

    /// The settings of an upstream.
    ///
    /// # Errors
    /// The configuration has no section for it.
    pub(crate) fn upstream_settings(&self, name: &str) -> Result<UpstreamSettings, config::Error> {
        upstream_settings(&self.config, name)
    }

    /// Starts the projector and the signer. The signer signs nothing until it has compared the log with what it signed before; projection does
    /// not wait for that.
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

    /// Whether the log names a key that signs receipts. The first one is named soon after the start, by a background task.
    pub(crate) async fn has_signing_key(&self) -> bool {
        receipts::operations::pubkey::named(&self.context).await.is_ok_and(|signing| !signing.keys.is_empty())
    }

    /// This process as one of those that exchange which signatures they refuse to make.
    pub(crate) fn participant(&self) -> Participant {
        Participant { holder: self.holder.clone(), decider_lease: decider_lease(RECEIPTS.view.name), is_signer: self.is_signer }
    }

    /// Checks that a service is not disabled.
    ///
    /// # Errors
    /// It is, and no other service needs it.
    pub(crate) fn check_projected(&self, service: &str) -> Result<(), Failure> {
        if self.disabled.iter().any(|disabled| disabled.service == service && disabled.needed_by.is_none()) {
            return Err(Failure::new(format!("{service} is disabled: it has no view while services.{service}.enabled is false")));
        }
        Ok(())
    }

    /// The views that this process projects: the engine's and those of its services.
    pub(crate) fn projected_views(&self) -> Vec<&'static ViewDef> {
        std::iter::once(&ENGINE_VIEW).chain(self.parts.projected.iter().map(|service| service.view)).collect()
    }

    /// Waits until every service that reads a topic has projected everything that is in it now.
    ///
    /// # Errors
    /// The log or the store fails.
    pub(crate) async fn wait_projected(&self, topic: &'static Topic) -> Result<(), Box<dyn StdError + Send + Sync>> {
        let wait = async |service: &'static ViewDef, partition: u32| -> Result<(), Box<dyn StdError + Send + Sync>> {
            let end = self.log.end(topic, partition).await?;
            loop {
                let view = self.store.live_to_project(service).await?;
                match view_store::engine::wait_past(&*view, topic, partition, end).await {
                    // The view was replaced by a replay: wait for the new one.
                    Err(view_store::Error::Gone { .. }) => {}
                    other => return Ok(other?),
                }
            }
        };
        let readers = self.parts.projected.iter().filter(|service| service.reads(topic)).map(|service| service.view);
        let readers: Vec<&'static ViewDef> = readers.collect();
        let waits = readers.into_iter().flat_map(|service| (0..topic.partitions).map(move |partition| (service, partition)));
        try_join_all(waits.map(|(service, partition)| wait(service, partition))).await.map(drop)
    }

    /// Waits until all facts that are in the log now are projected.
    ///
    /// # Errors
    /// The log or the store fails.
    pub(crate) async fn wait_all_projected(&self) -> Result<(), Box<dyn StdError + Send + Sync>> {
        try_join_all(topics::fact_topics().map(|topic| self.wait_projected(topic))).await.map(drop)
    }

    /// Stops all tasks, releases what the process holds, and closes the store and the log.
    ///
    /// # Errors
    /// The projector panicked, or the store or the log cannot be closed.
    pub(crate) async fn close(&self, mut tasks: JoinSet<()>, projecting: JoinHandle<()>) -> Result<(), Box<dyn StdError>> {
        self.stop.send_replace(true);
        // Tasks may wait for the projector, so it stops after them.
        while tasks.join_next().await.is_some() {}
        self.stop_projector.send_replace(true);
        projecting.await?;
        // An unreachable store does not prevent the stop: each caller loses at most one block of calls.
        match tokio::time::timeout(QUOTA_RELEASE_TIME_MAX, Access::of(&self.context).release_all(&self.context)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(error = ingest::reason(&error), "unused quota could not be released"),
            Err(_) => tracing::warn!("releasing unused quota timed out"),
        }
        self.store.close().await?;
        self.log.close().await?;
        Ok(())
    }
}

/// Logs which services are disabled.
fn report_disabled(selection: &Selection) {
    for Disabled { service, needed_by } in &selection.disabled {
        match needed_by {
            Some(reader) => tracing::info!(service, reader, "the service is disabled, but projected: the reader decides from its changes"),
            None => tracing::info!(service, "the service is disabled: it is neither projected nor served"),
        }
    }
}

/// The user agent of the defaults, which names nobody.
const PLACEHOLDER_USER_AGENT: &str = "highwater/0.1 (public record feeds)";

/// Checks that requests to real upstreams name somebody. Those to simulated ones need not.
///
/// # Errors
/// An enabled upstream would be read at its own hosts under the user agent of the defaults.
pub(crate) fn check_user_agent(config: &Config) -> Result<(), config::Error> {
    for upstream in enabled_upstreams(config) {
        let name = upstream.manifest().name;
        let settings = upstream_settings(config, name)?;
        if settings.base_url.is_none() && settings.user_agent == PLACEHOLDER_USER_AGENT {
            let reason = format!(
                "requests to {name} must say who sends them: set user_agent, or HIGHWATER_USER_AGENT, for example \"Example Company ops@example.com\""
            );
            return Err(config.invalid("user_agent", reason));
        }
    }
    Ok(())
}

/// The upstreams that are polled by schedule.
pub(crate) fn enabled_upstreams(config: &Config) -> impl Iterator<Item = &'static dyn Upstream> {
    let sections = &config.sections.upstreams;
    let is_enabled = |upstream: &&dyn Upstream| sections.get(upstream.manifest().name).is_some_and(|section| section.enabled);
    upstreams::ALL.iter().copied().filter(is_enabled)
}

/// Whether names are cleared by the register of trademarks: a process that reads upstreams needs the credential for it. A process that only serves
/// cannot know which credentials the one that reads has, and goes by the age of the register.
pub(crate) fn may_clear_names(config: &Config, role: Role) -> bool {
    let register = config.sections.upstreams.get(upstreams::uspto_trademarks::UsptoTrademarks.manifest().name);
    !role.includes(Role::Ingest) || register.is_some_and(|section| section.api_key.is_some())
}

/// When the streams of the enabled upstreams are synced next. A demo syncs them by itself, not by their schedules.
fn next_runs(config: &Config) -> NextRuns {
    if config.is_demo() {
        return NextRuns::default();
    }
    let of_upstream = |upstream: &'static dyn Upstream| {
        let Manifest { name, streams, .. } = upstream.manifest();
        let line = config.sections.upstreams.get(*name)?.schedule.clone();
        Some(streams.iter().map(move |stream| (stream.name, line.clone())))
    };
    let lines: HashMap<&'static str, String> = enabled_upstreams(config).filter_map(of_upstream).flatten().collect();
    let next: Box<NextRun> = Box::new(move |stream: &Stream, last_start_ms: i64, now_ms: i64| {
        let line = lines.get(stream.name)?;
        let next_s = ingest::schedule::next_run(line, stream.every, last_start_ms / 1_000, now_ms / 1_000)?;
        next_s.checked_mul(1_000)
    });
    NextRuns(Some(next))
}

/// The settings of an upstream.
///
/// # Errors
/// The configuration has no section for it.
pub(crate) fn upstream_settings(config: &Config, name: &str) -> Result<UpstreamSettings, config::Error> {
    let section = config.sections.upstreams.get(name);
    let section = section.ok_or_else(|| config.invalid(&format!("upstreams.{name}"), "this section is missing"))?.clone();
    let own = own_options(config, name, section.ptaxsim_path);
    Ok(UpstreamSettings {
        base_url: section.base_url.or_else(|| config.sections.upstreams_base_url.clone()),
        api_key: section.api_key,
        user_agent: section.user_agent.unwrap_or_else(|| config.sections.user_agent.clone()),
        requests_per_second: section.requests_per_second,
        window_days: section.window_days.get(),
        backfill_days: section.backfill_days,
        own,
    })
}

/// The options that only an upstream has.
fn own_options(config: &Config, name: &str, ptaxsim_path: Option<PathBuf>) -> OwnOptions {
    if name == ShopifySection::UPSTREAM {
        return OwnOptions::new(shopify_options(&config.shopify));
    }
    ptaxsim_path.map(|ptaxsim_path| OwnOptions::new(CookOptions { ptaxsim_path })).unwrap_or_default()
}

fn shopify_options(section: &ShopifySection) -> ShopifyOptions {
    let store = |store: &StoreEntry| Store { host: store.host.clone(), niche: store.niche.clone(), interval_s: store.interval_s };
    ShopifyOptions { stores: section.stores.iter().map(store).collect(), is_every_store_due: false }
}

/// The configured niches with their stores, which the API shows.
fn niches(config: &Config) -> Niches {
    let ShopifySection { niches, stores } = config.shopify.clone();
    let niches = niches.into_iter().map(|niche| (niche.key, niche.label));
    Niches::new(niches, stores.into_iter().map(|store| (store.host, store.niche)))
}

/// Lets the signer decide before each batch whether receipts may be signed.
struct CheckBySigner(Arc<Signer>);

#[async_trait]
impl SigningCheck for CheckBySigner {
    async fn check(&self) {
        self.0.check_before_batch().await;
    }
}
