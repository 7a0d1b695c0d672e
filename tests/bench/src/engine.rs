//! The engine's parts in one process, connected as in `highwater serve`, on a directory of the benchmark.

use std::path::Path;
use std::sync::Arc;

use event_log::EventLog;
use event_log::embedded::EmbeddedLog;
use ingest::Runner;
use projector::heads::Heads;
use projector::rebuild::Parts;
use projector::runtime::Projector;
use proofs::receipt::SigningKeys;
use schemas::clock::Clock;
use schemas::topics::RECALLS;
use schemas::views::{engine, recalls};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use view_store::ViewStore;
use view_store::embedded::EmbeddedStore;

use crate::Failure;

/// An open engine with a running projector.
pub(crate) struct Engine {
    pub(crate) log: Arc<dyn EventLog>,
    pub(crate) store: Arc<dyn ViewStore>,
    pub(crate) projector: Arc<Projector>,
    pub(crate) runner: Arc<Runner>,
    /// The public half of a key that receipts can be signed with; the log does not name a key yet.
    pub(crate) receipt_key: String,
    pub(crate) keys: Arc<SigningKeys>,
    stop: watch::Sender<bool>,
    projecting: JoinHandle<()>,
}

impl Engine {
    /// Opens a directory, or creates it.
    pub(crate) async fn open(dir: &Path) -> Result<Self, Failure> {
        Self::open_with(dir, true).await
    }

    /// Opens a directory with or without deciders; the latest-version index (`heads`) is maintained either way.
    pub(crate) async fn open_with(dir: &Path, deciders: bool) -> Result<Self, Failure> {
        let log = EmbeddedLog::open(&dir.join("log"), event_log::embedded::Options::default())?;
        let store = EmbeddedStore::open(&dir.join("views"), view_store::embedded::Options::default())?;
        Self::with_backends(log, store, deciders).await
    }

    /// Opens an engine over any log and store.
    pub(crate) async fn with_backends(log: Arc<dyn EventLog>, store: Arc<dyn ViewStore>, deciders: bool) -> Result<Self, Failure> {
        let clock = Clock::System;
        let heads = store.live(&engine::VIEW).await?;
        let keys = SigningKeys::default();
        let receipt_key = keys.add(&[7; 32]);
        let keys = Arc::new(keys);
        let (engine, own) = (Arc::clone(&heads), Arc::clone(&keys));
        let parts = Parts {
            log: Arc::clone(&log),
            store: Arc::clone(&store),
            engine,
            services: services::defs(),
            projected: services::defs().into(),
            clock,
            keys: own,
            signing_check: None,
        };
        let projector = Arc::new(Projector::open(parts, services::projected_services()).await?);
        let (stop, stopping) = watch::channel(false);
        let runner = Runner::new(Arc::clone(&log), Arc::clone(&store), heads, clock, "bench".to_owned(), stopping.clone());
        let downloads = std::env::temp_dir().join(format!("highwater-bench-downloads-{}", std::process::id()));
        let runner = Arc::new(runner.with_downloads(downloads));
        let projecting = if deciders {
            tokio::spawn(Arc::clone(&projector).run("bench".to_owned(), stopping))
        } else {
            tokio::spawn(run_heads(Heads::new(Arc::clone(&log), store.live(&engine::VIEW).await?, services::defs()), stopping))
        };
        Ok(Self { log, store, projector, runner, receipt_key, keys, stop, projecting })
    }

    /// Waits until the recalls are projected up to the current end of the log.
    pub(crate) async fn wait_projected(&self) -> Result<(), Failure> {
        let view = self.store.live(&recalls::VIEW).await?;
        for partition in 0..RECALLS.partitions {
            let end = self.log.end(&RECALLS, partition).await?;
            view_store::engine::wait_past(&*view, &RECALLS, partition, end).await?;
        }
        Ok(())
    }

    /// Stops the projector and closes store and log.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        self.stop.send_replace(true);
        self.projecting.await?;
        self.store.close().await?;
        self.log.close().await?;
        Ok(())
    }
}

/// Maintains the latest-version index, as the projector does without deciders.
async fn run_heads(heads: Heads, mut stop: watch::Receiver<bool>) {
    let keep = async { while heads.catch_up().await.is_ok() && heads.wait().await.is_ok() {} };
    tokio::select! {
        _ = stop.changed() => {}
        () = keep => {}
    }
}
