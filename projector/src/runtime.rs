//! The project role: one task for the heads and one for each service's decider, and the operations that the command line calls.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{BoxFuture, try_join_all};
use proofs::hash::Hash32;
use schemas::names;
use schemas::position::{LogOffset, Seq};
use schemas::reason::reason;
use schemas::topics::Topic;
use schemas::views::engine;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;
use view_store::lease::Lease;
use view_store::{Checkpoint, View};

use crate::decider::Decider;
use crate::fsck::{self, CheckedView};
use crate::heads::Heads;
use crate::rebuild::{self, Parts, Progress};
use crate::service_def::{ServiceDef, indexed_topics};
use crate::{Error, follow, metrics};
use fold::service::Service;

/// How long to wait before the next attempt to get a lease that another process holds, or after a failure.
const RETRY: Duration = Duration::from_secs(1);
const _: () = assert!(view_store::lease::is_taken_over_soon(RETRY), "a service would be taken over late");

/// How often it is checked whether the store has replaced a damaged view, and how many times.
const REPLACEMENT_POLL_INTERVAL: Duration = Duration::from_millis(50);
const REPLACEMENT_POLLS_MAX: u32 = 100;

/// How often a lease is renewed, at most, before the log is checked even without a notification: 12 renewals are a minute.
const RENEWALS_MAX: u32 = 12;

/// Returns the name of the lease for the engine's view.
fn heads_lease() -> String {
    format!("project/{}", engine::VIEW.name)
}

/// Returns the name of the lease for a service's decider.
#[must_use]
pub fn decider_lease(service: &str) -> String {
    format!("decide/{service}")
}

/// Returns the names of all leases of projectors of some services. Each lets one process at a time work.
#[must_use]
pub fn leases(services: &[ServiceDef]) -> Vec<String> {
    std::iter::once(heads_lease()).chain(services.iter().map(|service| decider_lease(service.view.name))).collect()
}

/// Operations on the projection of one service.
#[async_trait]
pub trait Projection: Send + Sync {
    /// Returns the name of the service.
    fn name(&self) -> &'static str;
    /// See [`rebuild::replay`].
    async fn replay(&self, progress: &Progress) -> Result<u64, Error>;
    /// Compares the view with the one that the log makes; with `repair`, replaces it if they differ.
    async fn check(&self, repair: bool, progress: &Progress) -> Result<CheckedView, Error>;
    /// See [`rebuild::redecide`].
    async fn redecide(&self, progress: &Progress) -> Result<u64, Error>;
    /// See [`Decider::retry_parked`].
    async fn retry_parked(&self) -> Result<u64, Error>;
    /// Returns how many inputs are parked.
    async fn parked(&self) -> Result<u64, Error>;
    /// See [`rebuild::digest`].
    async fn digest(&self, history: bool, at: Option<Seq>) -> Result<Hash32, Error>;
    /// Decides all new facts and returns how many there were.
    async fn catch_up(&self) -> Result<u64, Error>;
    /// Returns the position of the decider.
    async fn checkpoint(&self) -> Result<Checkpoint, Error>;
    /// Decides until `stop` is set.
    async fn run(&self, holder: &str, stop: watch::Receiver<bool>);
}

/// Why views are stalled, by view. Empty if none is.
type StalledViews = Arc<std::sync::Mutex<BTreeMap<&'static str, String>>>;

/// Records whether a view is stalled, given the result of its last attempt.
fn record_outcome<T>(stalled: &StalledViews, view: &'static str, outcome: &Result<T, Error>) {
    let mut stalled = stalled.lock().unwrap_or_else(PoisonError::into_inner);
    match outcome {
        Ok(_) => {
            stalled.remove(view);
        }
        Err(error) => {
            let reason = reason(error);
            metrics::count_failure(view);
            // A cause that remains is logged once.
            if stalled.get(view) != Some(&reason) {
                tracing::error!(view, error = reason, "projection stalled, will retry");
            }
            stalled.insert(view, reason);
        }
    }
}

/// Runs work in batches while this process holds the lease, which is renewed meanwhile. Sets `is_ours` to false when the lease is lost.
async fn run_while_leased<T>(lease: &mut Lease, is_ours: &AtomicBool, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    tokio::select! {
        biased;
        done = &mut work => return done,
        () = lease.lost() => is_ours.store(false, Ordering::Relaxed),
    }
    work.await
}

struct ServiceProjection<S: Service> {
    parts: Parts,
    stalled: StalledViews,
    decider: Mutex<Decider<S>>,
    /// Permits one rebuild at a time.
    rebuilding: Mutex<()>,
}

#[async_trait]
impl<S: Service> Projection for ServiceProjection<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    async fn replay(&self, progress: &Progress) -> Result<u64, Error> {
        let _guard = self.rebuilding.lock().await;
        rebuild::replay(&self.parts, &self.decider, progress).await
    }

    async fn check(&self, repair: bool, progress: &Progress) -> Result<CheckedView, Error> {
        let _guard = self.rebuilding.lock().await;
        fsck::check_view(&self.parts, &self.decider, repair, progress).await
    }

    async fn redecide(&self, progress: &Progress) -> Result<u64, Error> {
        let _guard = self.rebuilding.lock().await;
        rebuild::redecide(&self.parts, &self.decider, progress).await
    }

    async fn retry_parked(&self) -> Result<u64, Error> {
        self.decider.lock().await.retry_parked().await
    }

    async fn parked(&self) -> Result<u64, Error> {
        Ok(self.decider.lock().await.parked_rows().await?.len() as u64)
    }

    async fn digest(&self, history: bool, at: Option<Seq>) -> Result<Hash32, Error> {
        let view = Arc::clone(self.decider.lock().await.view());
        rebuild::digest::<S>(&*view, history, at).await
    }

    async fn catch_up(&self) -> Result<u64, Error> {
        self.decider.lock().await.catch_up().await
    }

    async fn checkpoint(&self) -> Result<Checkpoint, Error> {
        Ok(self.decider.lock().await.checkpoint().clone())
    }

    async fn run(&self, holder: &str, mut stop: watch::Receiver<bool>) {
        let mut lease = Lease::new(&self.parts.store, decider_lease(S::NAME), holder);
        while !*stop.borrow() {
            let outcome = self.catch_up_under_lease(&mut lease, &stop).await;
            record_outcome(&self.stalled, S::NAME, &outcome);
            if outcome.is_err() {
                lease.release().await;
            }
            let next = async {
                if !matches!(outcome, Ok(true)) {
                    return tokio::time::sleep(RETRY).await;
                }
                let mut waiter = pin!(self.decider.lock().await.waiter());
                // The lease is renewed well before it expires, also while nothing happens. The waiter remains the same for several
                // renewals.
                for _ in 0..RENEWALS_MAX {
                    match tokio::time::timeout(lease.renewal_interval(), &mut waiter).await {
                        Ok(Ok(())) => break,
                        // The log or the store cannot be waited for, which is no wake-up.
                        Ok(Err(error)) => {
                            tracing::debug!(service = S::NAME, error = reason(&error), "waiting for changes failed, will retry");
                            return tokio::time::sleep(RETRY).await;
                        }
                        Err(_) if matches!(lease.renew().await, Ok(true)) => {}
                        Err(_) => break,
                    }
                }
            };
            tokio::select! {
                biased;
                _ = stop.changed() => {}
                () = next => {}
            }
        }
        lease.release().await;
    }
}

impl<S: Service> ServiceProjection<S> {
    async fn catch_up_under_lease(&self, lease: &mut Lease, stop: &watch::Receiver<bool>) -> Result<bool, Error> {
        if !lease.renew().await? {
            metrics::clear_parked(S::NAME);
            return Ok(false);
        }
        let mut decider = self.decider.lock().await;
        let is_ours = AtomicBool::new(true);
        let catching_up = decider.catch_up_with(|_| is_ours.load(Ordering::Relaxed) && !*stop.borrow());
        let decided = match run_while_leased(lease, &is_ours, catching_up).await {
            Ok(decided) => decided,
            Err(Error::Store(view_store::Error::Gone { .. })) => {
                // Another process rebuilt the view and swapped it, or it was damaged: continue with the live one.
                tracing::info!(service = S::NAME, "the view was replaced, will open the new one");
                let earlier = decider.checkpoint().clone();
                let mut replaced =
                    std::mem::replace(&mut *decider, self.parts.open(self.parts.store.live_to_project(S::VIEW).await?).await?);
                decider.adopt_confirmations(&mut replaced);
                decider.apply_logged_changes().await?;
                decider.raise_positions(&earlier);
                return Ok(true);
            }
            Err(error) => return Err(error),
        };
        metrics::record_progress(S::NAME, decider.checkpoint(), decided, decider.parked_keys());
        Ok(true)
    }
}

/// Opens the decider of a service. If its view turns out to be damaged, that of the generation which replaces it.
async fn open_decider<S: Service>(parts: &Parts, mut view: Arc<dyn View>) -> Result<Decider<S>, Error> {
    for _ in 0..REPLACEMENT_POLLS_MAX {
        let error = match parts.open(Arc::clone(&view)).await {
            Ok(decider) => return Ok(decider),
            Err(
                error @ (Error::Contradicted { .. } | Error::Store(view_store::Error::Rebuilding { .. } | view_store::Error::Gone { .. })),
            ) => error,
            Err(error) => return Err(error),
        };
        if !parts.store.replaces_damaged_views() {
            return Err(error);
        }
        tokio::time::sleep(REPLACEMENT_POLL_INTERVAL).await;
        view = parts.store.live_to_project(S::VIEW).await?;
    }
    parts.open(view).await
}

/// Refuses a view that covers records which the log does not have: the log was restored or truncated, and the view belongs to another
/// history.
async fn refuse_view_ahead_of_log(parts: &Parts, view: &dyn View, changes: Option<&'static Topic>) -> Result<(), Error> {
    let checkpoint = view.checkpoint().await?;
    let mut covered: Vec<(&'static Topic, u32, LogOffset)> = changes.map(|topic| (topic, 0, checkpoint.offset)).into_iter().collect();
    for topic in indexed_topics(parts.services) {
        covered.extend((0..topic.partitions).map(|partition| (topic, partition, checkpoint.position(topic, partition))));
    }
    covered.retain(|(_, _, next)| *next > LogOffset(0));
    let ends = try_join_all(covered.iter().map(|(topic, partition, _)| parts.log.end(topic, *partition))).await?;
    for ((topic, partition, next), end) in covered.into_iter().zip(ends) {
        if next > end {
            let (view, topic) = (view.def().name, topic.name);
            return Err(Error::Refused(format!(
                "the log is older than the views: view {view} covers {topic}/{partition} up to offset {next}, but the log ends at {end}. Put the newer \
                 copy of the log back; to continue with this one, remove the directory `views` in data_dir, which is rebuilt from the log"
            )));
        }
    }
    Ok(())
}

/// A service that a projector runs.
#[derive(Clone, Copy)]
pub struct ProjectedService {
    /// The view and the topics of the service.
    pub def: ServiceDef,
    open: Open,
}

/// Opens the view of a service.
type Open = for<'a> fn(&'a Parts, &'a StalledViews) -> BoxFuture<'a, Result<Arc<dyn Projection>, Error>>;

/// Returns a service as a projector runs it.
#[must_use]
pub fn projected<S: Service>() -> ProjectedService {
    ProjectedService { def: ServiceDef::of::<S>(), open: |parts, stalled| Box::pin(open_service::<S>(parts, stalled)) }
}

async fn open_service<S: Service>(parts: &Parts, stalled: &StalledViews) -> Result<Arc<dyn Projection>, Error> {
    let view = parts.store.live_to_project(S::VIEW).await?;
    refuse_view_ahead_of_log(parts, &*view, Some(S::CHANGES)).await?;
    let decider: Decider<S> = open_decider(parts, view).await?;
    let (parts, stalled) = (parts.clone(), Arc::clone(stalled));
    Ok(Arc::new(ServiceProjection { parts, stalled, decider: Mutex::new(decider), rebuilding: Mutex::new(()) }))
}

/// The project role of a process.
pub struct Projector {
    parts: Parts,
    stalled: StalledViews,
    heads: Heads,
    services: Vec<Arc<dyn Projection>>,
}

impl Projector {
    /// Opens the views of some services and loads their current state. They are those that the parts say are projected.
    ///
    /// # Errors
    /// When the log or the store fails.
    pub async fn open(parts: Parts, services: &[ProjectedService]) -> Result<Self, Error> {
        let heads = Heads::new(Arc::clone(&parts.log), Arc::clone(&parts.engine), parts.services);
        refuse_view_ahead_of_log(&parts, &*parts.engine, None).await?;
        let stalled = StalledViews::default();
        // All at the same time: each reads its last change from the log.
        let services = try_join_all(services.iter().map(|service| (service.open)(&parts, &stalled))).await?;
        Ok(Self { parts, stalled, heads, services })
    }

    /// Returns why views are stalled; `None` if none is.
    #[must_use]
    pub fn stalled_reason(&self) -> Option<String> {
        let stalled = self.stalled.lock().unwrap_or_else(PoisonError::into_inner);
        let reasons: Vec<String> = stalled.iter().map(|(view, reason)| format!("view {view} is stalled: {reason}")).collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// Returns all services.
    #[must_use]
    pub fn services(&self) -> &[Arc<dyn Projection>] {
        &self.services
    }

    /// Returns the service with a name.
    ///
    /// # Errors
    /// [`Error::Refused`] with the nearest known name.
    pub fn service(&self, name: &str) -> Result<&Arc<dyn Projection>, Error> {
        self.services.iter().find(|service| service.name() == name).ok_or_else(|| {
            let hint = names::hint(name, self.services.iter().map(|service| service.name()));
            Error::Refused(format!("unknown view \"{name}\"{hint}"))
        })
    }

    /// Indexes and decides all new facts.
    ///
    /// # Errors
    /// When the log or the store fails.
    pub async fn catch_up(&self) -> Result<(), Error> {
        self.heads.catch_up().await?;
        for service in &self.services {
            service.catch_up().await?;
        }
        Ok(())
    }

    /// Maintains the heads until `stop` is set. One process at a time does so, by lease.
    async fn maintain_heads(&self, holder: &str, mut stop: watch::Receiver<bool>) {
        let mut lease = Lease::new(&self.parts.store, heads_lease(), holder);
        while !*stop.borrow() {
            let attempt = async {
                if !lease.renew().await? {
                    return Ok(false);
                }
                let is_ours = AtomicBool::new(true);
                run_while_leased(&mut lease, &is_ours, self.heads.catch_up_while(|| is_ours.load(Ordering::Relaxed))).await?;
                // The lease is renewed well before it expires, also while nothing happens.
                match tokio::time::timeout(lease.renewal_interval(), self.heads.wait()).await {
                    Ok(waited) => waited.map(|()| true),
                    Err(_) => Ok(true),
                }
            };
            let outcome: Result<bool, Error> = tokio::select! {
                biased;
                _ = stop.changed() => break,
                outcome = attempt => outcome,
            };
            record_outcome(&self.stalled, engine::VIEW.name, &outcome);
            if outcome.is_err() {
                lease.release().await;
            }
            if !matches!(outcome, Ok(true)) {
                tokio::select! {
                    _ = stop.changed() => {}
                    () = tokio::time::sleep(RETRY) => {}
                }
            }
        }
        lease.release().await;
    }

    /// Runs until `stop` is set. Returns when every task has finished its batch.
    pub async fn run(self: Arc<Self>, holder: String, stop: watch::Receiver<bool>) {
        let mut tasks = JoinSet::new();
        {
            let (this, holder, stop) = (Arc::clone(&self), holder.clone(), stop.clone());
            tasks.spawn(async move { this.maintain_heads(&holder, stop).await });
        }
        for service in &self.services {
            let (service, holder, stop) = (Arc::clone(service), holder.clone(), stop.clone());
            tasks.spawn(async move { service.run(&holder, stop).await });
        }
        let working = async { while tasks.join_next().await.is_some() {} };
        // Deciders wait for the heads, which another process may maintain.
        let heads = [self.parts.engine.def()];
        tokio::select! {
            () = working => {}
            () = follow::wake_readers(&self.parts, &heads) => {}
        }
    }
}
