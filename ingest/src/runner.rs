//! Chooses which streams are synced, holds the lease of their upstream, and retries rejected records. The loop of one sync run is in
//! `sync`.
//!
//! Guarantee: only one process requests an upstream at a time, one stream after another, so that the upstream's rate limits hold for all
//! processes together. When an upstream asks for a pause, the pause applies to all of its streams in all processes.

mod downloads;
mod fetch;
mod held;
mod parts;
mod sync;
mod window;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use event_log::EventLog;
use jiff::tz::TimeZone;
use schemas::clock::Clock;
use schemas::event::Run;
use schemas::key;
use schemas::position::LogOffset;
use schemas::topics::Topic;
use schemas::views::engine::{RUNS, RunRow};
use tokio::sync::{Mutex, watch};
use upstreams::http::{Client, FetchError, Validators};
use upstreams::{Answer, Settings, Stream, Upstream, Window};
use view_store::lease::Lease;
use view_store::{View, ViewStore, engine};

use self::fetch::map;
use self::sync::SyncRun;
use crate::facts::{Hashed, Writer};
use crate::{Error, metrics, reason};

/// How often a warning is logged while a sync run waits for the projector.
const PROJECTION_WAIT_LOG_INTERVAL: Duration = Duration::from_secs(30);
/// How long a stopping process waits for the projector. A running projector needs less.
const PROJECTION_WAIT_AT_STOP_MAX: Duration = Duration::from_secs(5);

/// A stream counts as due when it is due within this time, because scheduled syncs do not start on the exact millisecond.
const DUE_SLACK_MS: i64 = crate::schedule::DUE_SLACK_S * 1_000;
/// The longest pause after an upstream asked to back off. A longer request is shortened to this.
const BACK_OFF_MAX: Duration = Duration::from_secs(3_600);

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

    /// Runs one sync of one stream to its end.
    ///
    /// # Errors
    /// Why the sync did not finish. A `run_failed` event in the log records the same reason.
    pub async fn sync_stream(
        &self,
        upstream: &'static dyn Upstream,
        stream: &'static Stream,
        client: &Client,
        settings: &Settings,
    ) -> Result<Outcome, Error> {
        // Waits for a sync run of this upstream in this process to end; the requested sync runs after it.
        let state = self.state(upstream).await;
        let mut state = state.lock().await;
        let last_validators = state.entry(stream.name).or_default();
        let back_off = upstreams::back_off_lease(upstream.manifest().name);
        if self.store.coordination().holder(&back_off).await?.is_some() {
            return Err(Error::BackingOff { stream: stream.name });
        }
        let mut lease = self.acquire_lease(upstream, stream).await?;
        let mut run = SyncRun::new(self, upstream, stream, client, settings, last_validators.clone())?;
        let result = tokio::select! {
            biased;
            result = run.run_to_end() => result,
            () = lease.lost() => Err(Error::Overtaken { stream: stream.name }),
        };
        let result = match result {
            Err(error @ Error::Stopped { .. }) => {
                if let Err(error) = run.append_pending_checkpoint().await {
                    tracing::warn!(
                        stream = stream.name,
                        error = reason(&error),
                        "the checkpoint of a stopped run could not be appended; its last pages will be read again"
                    );
                }
                Err(error)
            }
            Err(error @ (Error::Overtaken { .. } | Error::Unprojected { .. } | Error::Log(_) | Error::Store(_))) => Err(error),
            Err(error) => run.fail(error).await,
            Ok(outcome) => Ok(outcome),
        };
        let validators = std::mem::take(&mut run.validators);
        if let Err(Error::Fetch { source: FetchError::Later { pause, .. }, .. }) = &result {
            // Stored where every process sees it and for longer than this sync run: requests of other streams would be refused too, or
            // extend the pause.
            self.store.coordination().lease(&back_off, upstreams::BACK_OFF_HOLDER, (*pause).min(BACK_OFF_MAX)).await?;
        }
        if result.is_ok() {
            run.delete_downloads().await;
            // Not earlier: after a crash before this point the answers must be read again.
            last_validators.extend(validators);
        }
        lease.release().await;
        result
    }

    /// Maps rejected records again with the mapping of this version and appends those that succeed. `rejected` holds the time of rejection
    /// and the raw bytes, oldest first. Returns how many records were accepted. A record that the upstream has shown readable since its
    /// rejection is skipped, because the newer content counts.
    ///
    /// # Errors
    /// [`Error::Busy`] while another process syncs the upstream; otherwise when the log or the store fails.
    pub async fn retry_rejected(
        &self,
        upstream: &'static dyn Upstream,
        stream: &'static Stream,
        settings: &Settings,
        rejected: Vec<(i64, Vec<u8>)>,
    ) -> Result<u64, Error> {
        let state = self.state(upstream).await;
        let _one = state.lock().await;
        let mut lease = self.acquire_lease(upstream, stream).await?;
        let retrying = async {
            let topic = stream.topic;
            let mut writer = Writer::new(upstream.manifest(), stream, Arc::clone(&self.engine))?;
            let today = self.clock.now().to_zoned(TimeZone::UTC).date();
            let cursor = upstream.start(stream, &Window { from: None, to: today }, settings);
            let mut page: HashMap<String, (i64, Hashed)> = HashMap::new();
            for (rejected_at, raw) in rejected {
                let answer = Answer { status: 200, link: None, body: upstream.single(stream, &raw).into() };
                // Records that still cannot be mapped remain in the topic `rejected`.
                let Ok((records, _)) = map(upstream, stream, &cursor, &answer, today) else { continue };
                page.extend(records.into_iter().map(|hashed| (hashed.observation.key.clone(), (rejected_at, hashed))));
            }
            self.wait_until_projected_to_end(topic).await?;
            let (keys, page): (Vec<String>, Vec<(i64, Hashed)>) = page.into_iter().unzip();
            let heads = writer.heads(&keys.iter().map(String::as_str).collect::<Vec<_>>()).await?;
            let older =
                page.into_iter().zip(heads).filter(|((rejected_at, _), row)| row.head.version == 0 || row.observed_at <= *rejected_at);
            let page: Vec<Hashed> = older.map(|((_, hashed), _)| hashed).collect();
            let mut facts = writer.changed(&page, self.clock.now_ms()).await?;
            let accepted = facts.len() as u64;
            let replaced = writer.replaced(&page).await?.into_iter().collect();
            facts.extend(writer.superseded(&replaced, self.clock.now_ms()).await?);
            if !facts.is_empty() {
                self.log.append(facts).await?;
            }
            Ok(accepted)
        };
        let accepted = tokio::select! {
            biased;
            accepted = retrying => accepted,
            () = lease.lost() => Err(Error::Overtaken { stream: stream.name }),
        };
        lease.release().await;
        accepted
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
