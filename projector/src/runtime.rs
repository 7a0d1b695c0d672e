//! The project role: the heads and every service's decider, each in its own task, and what the command line asks of them.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use schemas::hash::Hash32;
use schemas::names;
use schemas::reason::reason;
use schemas::topics::Topic;
use schemas::views::{self, engine};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;
use view_store::lease::{LEASE, Lease};
use view_store::{Checkpoint, View};

use crate::decider::Decider;
use crate::heads::Heads;
use crate::rebuild::{self, Parts, Progress};
use crate::service::Service;
use crate::{Error, follow, for_each_service, heads, metrics};

/// How long it waits before it asks again for a lease that another holds, or after a failure.
const RETRY: Duration = Duration::from_secs(1);
const _: () = assert!(view_store::lease::is_taken_over_soon(RETRY), "a service is taken over late");

/// How often a lease is renewed, at most, until it is looked whether there is anything to do, though nothing told of it: a minute.
const RENEWALS_MAX: u32 = 12;

/// The lease of the engine's view.
fn heads_lease() -> String {
    format!("project/{}", engine::VIEW.name)
}

/// The lease of a service's decider.
#[must_use]
pub fn decider_lease(service: &str) -> String {
    format!("decide/{service}")
}

/// All leases that projectors work under: who holds them works alone.
#[must_use]
pub fn leases() -> Vec<String> {
    std::iter::once(heads_lease()).chain(views::SERVICES.iter().map(|view| decider_lease(view.name))).collect()
}

/// What can be asked of one service's projection.
#[async_trait]
pub trait Projection: Send + Sync {
    /// The service's name.
    fn name(&self) -> &'static str;
    /// See [`rebuild::replay`].
    async fn replay(&self, progress: &Progress) -> Result<u64, Error>;
    /// See [`rebuild::redecide`].
    async fn redecide(&self, progress: &Progress) -> Result<u64, Error>;
    /// See [`Decider::take_parked`].
    async fn take_parked(&self) -> Result<u64, Error>;
    /// How many inputs are parked.
    async fn parked(&self) -> Result<u64, Error>;
    /// See [`rebuild::digest`].
    async fn digest(&self, history: bool, at: Option<u64>) -> Result<Hash32, Error>;
    /// Decides all that is there now; answers how many facts that were.
    async fn catch_up(&self) -> Result<u64, Error>;
    /// How far it has come.
    async fn checkpoint(&self) -> Result<Checkpoint, Error>;
    /// Decides until `stop` says so.
    async fn run(&self, holder: &str, stop: watch::Receiver<bool>);
}

/// What keeps views from going on: view to reason. Empty while all goes well.
type Trouble = Arc<std::sync::Mutex<BTreeMap<&'static str, String>>>;

/// Notes how a view's turn ended.
fn note_trouble<T>(trouble: &Trouble, view: &'static str, turned: &Result<T, Error>) {
    let mut trouble = trouble.lock().unwrap_or_else(PoisonError::into_inner);
    match turned {
        Ok(_) => {
            trouble.remove(view);
        }
        Err(error) => {
            let words = reason(error);
            tracing::error!(view, error = words, "a view does not go on");
            metrics::failed(view);
            trouble.insert(view, words);
        }
    }
}

/// Runs work that goes on, batch by batch, while `is_ours` says so: until another has the lease, which is kept meanwhile.
async fn under<T>(lease: &mut Lease, is_ours: &AtomicBool, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    tokio::select! {
        biased;
        done = &mut work => return done,
        () = lease.lost() => is_ours.store(false, Ordering::Relaxed),
    }
    work.await
}

struct Running<S: Service> {
    parts: Parts,
    trouble: Trouble,
    decider: Mutex<Decider<S>>,
    /// One rebuild at a time.
    rebuilding: Mutex<()>,
}

#[async_trait]
impl<S: Service> Projection for Running<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    async fn replay(&self, progress: &Progress) -> Result<u64, Error> {
        let _one = self.rebuilding.lock().await;
        rebuild::replay(&self.parts, &self.decider, progress).await
    }

    async fn redecide(&self, progress: &Progress) -> Result<u64, Error> {
        let _one = self.rebuilding.lock().await;
        rebuild::redecide(&self.parts, &self.decider, progress).await
    }

    async fn take_parked(&self) -> Result<u64, Error> {
        self.decider.lock().await.take_parked().await
    }

    async fn parked(&self) -> Result<u64, Error> {
        Ok(self.decider.lock().await.parked_rows().await?.len() as u64)
    }

    async fn digest(&self, history: bool, at: Option<u64>) -> Result<Hash32, Error> {
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
            let turned = self.turn(&mut lease, &stop).await;
            note_trouble(&self.trouble, S::NAME, &turned);
            if turned.is_err() {
                lease.release().await;
            }
            let next = async {
                if !matches!(turned, Ok(true)) {
                    return tokio::time::sleep(RETRY).await;
                }
                let mut waiter = pin!(self.decider.lock().await.waiter());
                // The lease is renewed well before it ends, also when nothing happens; what is waited for stays the same for some times.
                for _ in 0..RENEWALS_MAX {
                    if tokio::time::timeout(LEASE / 3, &mut waiter).await.is_ok() || !matches!(lease.renew().await, Ok(true)) {
                        break;
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

impl<S: Service> Running<S> {
    async fn turn(&self, lease: &mut Lease, stop: &watch::Receiver<bool>) -> Result<bool, Error> {
        if !lease.renew().await? {
            metrics::not_ours(S::NAME);
            return Ok(false);
        }
        let mut decider = self.decider.lock().await;
        let is_ours = AtomicBool::new(true);
        let catching_up = decider.catch_up_with(|_| is_ours.load(Ordering::Relaxed) && !*stop.borrow());
        let decided = match under(lease, &is_ours, catching_up).await {
            Ok(decided) => decided,
            Err(Error::Store(view_store::Error::Gone { .. })) => {
                // Another process rebuilt the view and swapped: go on with what is live now.
                tracing::info!(service = S::NAME, "the view was rebuilt elsewhere; opening it again");
                *decider = self.parts.open(self.parts.store.live(S::VIEW).await?).await?;
                return Ok(true);
            }
            Err(error) => return Err(error),
        };
        metrics::projected(S::NAME, decider.checkpoint(), decided, decider.parked_keys());
        Ok(true)
    }
}

/// Refuses a view that covers what the log does not have: the log was restored or cut, and the view tells of another past.
async fn not_ahead(parts: &Parts, view: &dyn View, changes: Option<&'static Topic>) -> Result<(), Error> {
    let checkpoint = view.checkpoint().await?;
    let mut covered: Vec<(&'static Topic, u32, u64)> = changes.map(|topic| (topic, 0, checkpoint.offset)).into_iter().collect();
    for topic in heads::fact_topics() {
        covered.extend((0..topic.partitions).map(|partition| (topic, partition, checkpoint.position(topic, partition).0)));
    }
    for (topic, partition, next) in covered {
        let end = parts.log.end(topic, partition).await?.0;
        if next > end {
            let (view, topic) = (view.def().name, topic.name);
            return Err(Error::Refused(format!(
                "view {view} covers {topic}/{partition} up to offset {next}, but the log ends at {end}: remove the views, they are rebuilt from the log"
            )));
        }
    }
    Ok(())
}

/// The project role.
pub struct Projector {
    parts: Parts,
    trouble: Trouble,
    heads: Heads,
    services: Vec<Arc<dyn Projection>>,
}

impl Projector {
    /// Opens all views where they stand.
    ///
    /// # Errors
    /// When the log or the store fails.
    pub async fn open(parts: Parts) -> Result<Self, Error> {
        let heads = Heads::new(Arc::clone(&parts.log), Arc::clone(&parts.engine));
        not_ahead(&parts, &*parts.engine, None).await?;
        let mut services: Vec<Arc<dyn Projection>> = Vec::new();
        let trouble = Trouble::default();
        macro_rules! open {
            ($service:ty) => {
                let view = parts.store.live(<$service>::VIEW).await?;
                not_ahead(&parts, &*view, Some(<$service>::CHANGES)).await?;
                let decider: Decider<$service> = parts.open(view).await?;
                services.push(Arc::new(Running {
                    parts: parts.clone(),
                    trouble: Arc::clone(&trouble),
                    decider: Mutex::new(decider),
                    rebuilding: Mutex::new(()),
                }));
            };
        }
        for_each_service!(open);
        Ok(Self { parts, trouble, heads, services })
    }

    /// What keeps views from going on, if anything does.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let words: Vec<String> = trouble.iter().map(|(view, reason)| format!("view {view} does not go on: {reason}")).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    /// All services.
    #[must_use]
    pub fn services(&self) -> &[Arc<dyn Projection>] {
        &self.services
    }

    /// The service of that name.
    ///
    /// # Errors
    /// [`Error::Refused`] with the nearest known name.
    pub fn service(&self, name: &str) -> Result<&Arc<dyn Projection>, Error> {
        self.services.iter().find(|service| service.name() == name).ok_or_else(|| {
            let hint = names::hint(name, views::SERVICES.iter().map(|view| view.name));
            Error::Refused(format!("unknown view \"{name}\"{hint}"))
        })
    }

    /// Takes in and decides all that is there now.
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

    /// Keeps the heads until `stop` says so. One projector at a time, by lease.
    async fn keep_heads(&self, holder: &str, mut stop: watch::Receiver<bool>) {
        let mut lease = Lease::new(&self.parts.store, heads_lease(), holder);
        while !*stop.borrow() {
            let turn = async {
                if !lease.renew().await? {
                    return Ok(false);
                }
                let is_ours = AtomicBool::new(true);
                under(&mut lease, &is_ours, self.heads.catch_up_while(|| is_ours.load(Ordering::Relaxed))).await?;
                // The lease is renewed well before it ends, also when nothing happens.
                match tokio::time::timeout(LEASE / 3, self.heads.wait()).await {
                    Ok(waited) => waited.map(|()| true),
                    Err(_) => Ok(true),
                }
            };
            let turned: Result<bool, Error> = tokio::select! {
                biased;
                _ = stop.changed() => break,
                turned = turn => turned,
            };
            note_trouble(&self.trouble, engine::VIEW.name, &turned);
            if turned.is_err() {
                lease.release().await;
            }
            if !matches!(turned, Ok(true)) {
                tokio::select! {
                    _ = stop.changed() => {}
                    () = tokio::time::sleep(RETRY) => {}
                }
            }
        }
        lease.release().await;
    }

    /// Runs until `stop` says so; returns when every task has ended at a batch's end.
    pub async fn run(self: Arc<Self>, holder: String, stop: watch::Receiver<bool>) {
        let mut tasks = JoinSet::new();
        {
            let (this, holder, stop) = (Arc::clone(&self), holder.clone(), stop.clone());
            tasks.spawn(async move { this.keep_heads(&holder, stop).await });
        }
        for service in &self.services {
            let (service, holder, stop) = (Arc::clone(service), holder.clone(), stop.clone());
            tasks.spawn(async move { service.run(&holder, stop).await });
        }
        let working = async { while tasks.join_next().await.is_some() {} };
        // Deciders wait at the heads, which another process may keep.
        let heads = [self.parts.engine.def()];
        tokio::select! {
            () = working => {}
            () = follow::stir(&self.parts, &heads) => {}
        }
    }
}
