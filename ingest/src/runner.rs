//! Chooses which streams are synced, and holds the lease of their upstream. `stream_sync` syncs one stream, `retry` maps rejected records again. The
//! loop of one sync run is in `sync`.
//!
//! Guarantee: only one process requests an upstream at a time, one stream after another, so that the upstream's rate limits hold for all
//! processes together. When an upstream asks for a pause, the pause applies to all of its streams in all processes.

mod downloads;
mod fetch;
mod held_pages;
mod parts;
mod retry;
mod stream_sync;
mod sync;
mod window;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use event_log::EventLog;
use schemas::clock::Clock;
use schemas::event::Run;
use schemas::key;
use schemas::position::LogOffset;
use schemas::topics::Topic;
use schemas::views::engine::{RUNS, RunRow};
use tokio::sync::{Mutex, watch};
use upstreams::http::{Client, Validators};
use upstreams::{Settings, Stream, Upstream};
use view_store::lease::Lease;
use view_store::{View, ViewStore, engine};

use crate::{Error, metrics, reason};

/// How often a warning is logged while a sync run waits for the projector.
const PROJECTION_WAIT_LOG_INTERVAL: Duration = Duration::from_secs(30);
/// How long a stopping process waits for the projector. A running projector needs less.
const PROJECTION_WAIT_AT_STOP_MAX: Duration = Duration::from_secs(5);

/// A stream counts as due when it is due within this time, because scheduled syncs do not start on the exact millisecond.
const DUE_SLACK_MS: i64 = crate::schedule::DUE_SLACK_S * 1_000;

/// The result of a sync run that finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The stream.
    pub stream: &'static str,
    /// The sync run as it ended.
    pub run: Run,
    /// The end offset of each partition of the stream's topic when the run ended.
    pub ends: Vec<LogOffset>,
}

/// Syncs upstreams. A process has one runner. Different upstreams are synced concurrently; the streams of one upstream one after another.
pub struct Runner {
    log: Arc<dyn EventLog>,
    store: Arc<dyn ViewStore>,
    engine: Arc<dyn View>,
    clock: Clock,
    holder: String,
    stop: watch::Receiver<bool>,
    /// The directory of downloaded files, with one directory per upstream.
    downloads_dir: Option<PathBuf>,
    /// Per upstream: the lock that allows one sync run at a time.
    upstreams: Mutex<HashMap<&'static str, Arc<Mutex<UpstreamState>>>>,
}

/// Per stream of an upstream: the HTTP validators (ETag, Last-Modified) of the last sync run that finished.
type UpstreamState = HashMap<&'static str, StreamValidators>;
type StreamValidators = HashMap<String, Validators>;

impl Runner {
    /// Makes a runner. `holder` names this process in leases.
    #[must_use]
    pub fn new(
        log: Arc<dyn EventLog>,
        store: Arc<dyn ViewStore>,
        engine: Arc<dyn View>,
        clock: Clock,
        holder: String,
        stop: watch::Receiver<bool>,
    ) -> Self {
        Self { log, store, engine, clock, holder, stop, downloads_dir: None, upstreams: Mutex::default() }
    }

    /// Sets the directory for files that are too large for memory. Without one, streams that download files fail.
    #[must_use]
    pub fn with_downloads(mut self, dir: PathBuf) -> Self {
        self.downloads_dir = Some(dir);
        self
    }

    /// Syncs all streams of an upstream, one after another. A stream that fails does not stop the others; its error is in the returned
    /// list.
    ///
    /// # Errors
    /// When the HTTP client of the upstream cannot be built, or the state of its streams cannot be read.
    pub async fn sync(&self, upstream: &'static dyn Upstream, settings: &Settings) -> Result<Vec<Result<Outcome, Error>>, Error> {
        self.sync_matching(upstream, settings, |_, _| true).await
    }

    /// Syncs those streams of an upstream whose names are among `names`, as [`Self::sync`] does.
    ///
    /// # Errors
    /// As [`Self::sync`].
    pub async fn sync_streams(
        &self,
        upstream: &'static dyn Upstream,
        settings: &Settings,
        names: &[&str],
    ) -> Result<Vec<Result<Outcome, Error>>, Error> {
        self.sync_matching(upstream, settings, |stream, _| names.contains(&stream.name)).await
    }

    /// Syncs the streams of an upstream that were due at `due_ms`. Streams that another process has already synced for this time are
    /// skipped.
    ///
    /// # Errors
    /// As [`Self::sync`].
    pub async fn sync_due(
        &self,
        upstream: &'static dyn Upstream,
        settings: &Settings,
        due_ms: i64,
    ) -> Result<Vec<Result<Outcome, Error>>, Error> {
        // With a fixed clock every stream is always due.
        let is_system_clock = matches!(self.clock, Clock::System);
        self.sync_matching(upstream, settings, |stream, row| {
            !is_system_clock || (is_due(stream, row, due_ms) && (row.run.holder == self.holder || row.run.started_at < due_ms))
        })
        .await
    }

    /// Resumes orphaned runs: runs whose process died or lost its log. Also syncs the streams that the dead process had not reached yet.
    ///
    /// # Errors
    /// As [`Self::sync`].
    pub async fn resume_orphaned(
        &self,
        upstream: &'static dyn Upstream,
        settings: &Settings,
    ) -> Result<Vec<Result<Outcome, Error>>, Error> {
        let mut orphaned_at = None;
        self.sync_matching(upstream, settings, |_, row| {
            let is_orphaned = row.is_under_way();
            if is_orphaned && orphaned_at.is_none() {
                orphaned_at = Some(row.run.started_at);
            }
            is_orphaned || orphaned_at.is_some_and(|orphaned_at| row.run.started_at < orphaned_at)
        })
        .await
    }

    /// Whether the upstream has an orphaned run: one that has started, has not ended, and whose lease nobody holds.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn has_orphaned_run(&self, upstream: &'static dyn Upstream) -> Result<bool, Error> {
        let before = self.under_way(upstream).await?;
        if before.is_empty() || self.store.coordination().holder(&lease_of(upstream)).await?.is_some() {
            return Ok(false);
        }
        // A run that ended between the two reads had released its lease. If it stopped before its end was projected, it is synced again,
        // which finds nothing new.
        let after = self.under_way(upstream).await?;
        Ok(before.iter().any(|run| after.contains(run)))
    }

    /// Lists the upstream's runs that have started and not ended: stream name and run number.
    async fn under_way(&self, upstream: &'static dyn Upstream) -> Result<Vec<(&'static str, i64)>, Error> {
        let mut out = Vec::new();
        for stream in upstream.manifest().streams {
            let row = self.row(stream).await?;
            if row.is_under_way() {
                out.push((stream.name, row.run.number));
            }
        }
        Ok(out)
    }

    /// Syncs the streams of an upstream whose last run satisfies `should_sync`.
    async fn sync_matching(
        &self,
        upstream: &'static dyn Upstream,
        settings: &Settings,
        mut should_sync: impl FnMut(&Stream, &RunRow) -> bool,
    ) -> Result<Vec<Result<Outcome, Error>>, Error> {
        let name = upstream.manifest().name;
        let client = Client::new(settings).map_err(|source| Error::Client { upstream: name, source })?;
        let _running = metrics::Running::begin();
        let mut out = Vec::new();
        for stream in upstream.manifest().streams {
            if !should_sync(stream, &self.row(stream).await?) {
                continue;
            }
            let result = self.sync_stream(upstream, stream, &client, settings).await;
            metrics::run_ended(stream.name, &result);
            match &result {
                Err(Error::Busy { .. }) => {
                    tracing::info!(stream = stream.name, "sync skipped: another ingestor holds the lease of this upstream")
                }
                Err(Error::BackingOff { .. }) => tracing::info!(stream = stream.name, "sync skipped: backing off as the upstream asked"),
                // The caller logs both at the level that suits: a demo syncs every few seconds.
                Err(error) if error.is_stop() => tracing::debug!(stream = stream.name, reason = reason(error), "sync stopped"),
                Ok(Outcome { run, .. }) => tracing::debug!(
                    stream = stream.name,
                    pages = run.pages,
                    seen = run.seen,
                    appended = run.appended,
                    rejected = run.rejected,
                    "sync finished"
                ),
                Err(error) => tracing::warn!(stream = stream.name, error = reason(error), "sync failed"),
            }
            out.push(result);
        }
        Ok(out)
    }

    /// Reads the end offset of each partition of a topic.
    async fn ends(&self, topic: &'static Topic) -> Result<Vec<LogOffset>, Error> {
        let mut out = Vec::new();
        for partition in 0..topic.partitions {
            out.push(self.log.end(topic, partition).await?);
        }
        Ok(out)
    }

    /// Waits until everything that a topic holds now is projected into the heads.
    async fn wait_until_projected_to_end(&self, topic: &'static Topic) -> Result<(), Error> {
        for (partition, end) in (0..).zip(self.ends(topic).await?) {
            self.wait_until_projected(topic, partition, end).await?;
        }
        Ok(())
    }

    /// Waits until the heads cover a partition up to an offset. Logs a warning when that takes long; without a projector it never ends.
    async fn wait_until_projected(&self, topic: &'static Topic, partition: u32, end: LogOffset) -> Result<(), Error> {
        let mut stop = self.stop.clone();
        let stopped = async {
            let _ = stop.wait_for(|stop| *stop).await;
            tokio::time::sleep(PROJECTION_WAIT_AT_STOP_MAX).await;
        };
        let mut stopped = std::pin::pin!(stopped);
        let mut passing = std::pin::pin!(engine::wait_past(&*self.engine, topic, partition, end));
        loop {
            tokio::select! {
                () = &mut stopped => return Err(Error::Unprojected { topic: topic.name, partition, end }),
                passed = &mut passing => return passed.map_err(Error::from),
                () = tokio::time::sleep(PROJECTION_WAIT_LOG_INTERVAL) => {
                    tracing::warn!(topic = topic.name, partition, offset = end.0, "waiting for a projector to process the appended facts");
                }
            }
        }
    }

    /// Acquires the lease of an upstream in order to sync one of its streams.
    async fn acquire_lease(&self, upstream: &dyn Upstream, stream: &Stream) -> Result<Lease, Error> {
        let mut lease = Lease::new(&self.store, lease_of(upstream), &self.holder);
        if lease.renew().await? { Ok(lease) } else { Err(Error::Busy { stream: stream.name }) }
    }

    /// Returns the state of an upstream in this process. Locking it allows one sync run at a time.
    async fn state(&self, upstream: &dyn Upstream) -> Arc<Mutex<UpstreamState>> {
        Arc::clone(self.upstreams.lock().await.entry(upstream.manifest().name).or_default())
    }

    /// Reads the row of the stream's last sync run.
    async fn row(&self, stream: &Stream) -> Result<RunRow, Error> {
        let row = self.engine.get(&RUNS, &key![stream.name]).await?;
        Ok(row.map(|bytes| serde_json::from_slice(&bytes)).transpose()?.unwrap_or_default())
    }
}

/// Returns the name of an upstream's lease.
fn lease_of(upstream: &dyn Upstream) -> String {
    format!("ingest/{}", upstream.manifest().name)
}

/// Whether a stream is due at a time. A stream whose last run did not finish is always due.
fn is_due(stream: &Stream, row: &RunRow, due_ms: i64) -> bool {
    let every_ms = i64::try_from(stream.every.as_millis()).unwrap_or(i64::MAX);
    row.kind != "run_finished" || row.run.started_at.saturating_add(every_ms) <= due_ms.saturating_add(DUE_SLACK_MS)
}

/// Returns the names of all leases that ingestors hold while they work. Whoever holds all of them is the only ingestor.
#[must_use]
pub fn leases() -> Vec<String> {
    upstreams::ALL.iter().map(|upstream| lease_of(*upstream)).collect()
}
