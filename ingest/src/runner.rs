//! Which doors run, one run of an upstream at a time by lease; and rejected records taken again. The loop of one run is `door_run`.
//!
//! Promise: one process at a time asks an upstream, through one door at a time: what an upstream allows, it allows in all. What it asks to
//! be left alone for holds for all processes and doors.

mod door_run;

use std::collections::HashMap;
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
use upstreams::{Answer, Door, Settings, Upstream, Window};
use view_store::lease::Lease;
use view_store::{View, ViewStore, engine};

use self::door_run::{DoorRun, map};
use crate::facts::{Hashed, Writer};
use crate::{Error, metrics, reason};

/// How often it is said that the heads are waited for.
const PASS_SAID_EVERY: Duration = Duration::from_secs(30);
/// How long they are waited for once the process stops: with a projector at work it takes no longer.
const PASS_AT_STOP_MAX: Duration = Duration::from_secs(5);

/// A door that is due within this is due: turns do not begin on the millisecond.
const DUE_SLACK_MS: i64 = 60_000;
/// An upstream that asks to be left alone for longer is asked again after this.
const HOLD_OFF_MAX: Duration = Duration::from_secs(3_600);

/// What a run of a door did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The door.
    pub door: &'static str,
    /// The run as it ended.
    pub run: Run,
    /// The end offset of each partition of the door's topic then.
    pub ends: Vec<LogOffset>,
}

/// Runs upstreams. One per process; upstreams run side by side, one door of each.
pub struct Runner {
    log: Arc<dyn EventLog>,
    store: Arc<dyn ViewStore>,
    engine: Arc<dyn View>,
    clock: Clock,
    holder: String,
    stop: watch::Receiver<bool>,
    /// Per upstream: one run at a time.
    upstreams: Mutex<HashMap<&'static str, Arc<Mutex<Doors>>>>,
}

/// Per door of an upstream: what its answers said of their versions in the last run that finished.
type Doors = HashMap<&'static str, Remembered>;
type Remembered = HashMap<String, Validators>;

impl Runner {
    /// A runner. `holder` names this process in leases.
    #[must_use]
    pub fn new(
        log: Arc<dyn EventLog>,
        store: Arc<dyn ViewStore>,
        engine: Arc<dyn View>,
        clock: Clock,
        holder: String,
        stop: watch::Receiver<bool>,
    ) -> Self {
        Self { log, store, engine, clock, holder, stop, upstreams: Mutex::default() }
    }

    /// Runs all doors of an upstream, one after another; a door that fails stops no other.
    ///
    /// # Errors
    /// Only for the upstream as a whole: when its client cannot be made, or how its doors stand cannot be read. A door's failure is in the list.
    pub async fn run(&self, upstream: &'static dyn Upstream, settings: &Settings) -> Result<Vec<Result<Outcome, Error>>, Error> {
        self.run_those(upstream, settings, |_, _| true).await
    }

    /// The same on schedule, for the turn that was due at `due_ms`: doors that another process has run for this turn are left to it.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub async fn run_due(
        &self,
        upstream: &'static dyn Upstream,
        settings: &Settings,
        due_ms: i64,
    ) -> Result<Vec<Result<Outcome, Error>>, Error> {
        // Under a clock that stands still every turn is due at once.
        let is_told_apart = matches!(self.clock, Clock::System);
        self.run_those(upstream, settings, |door, row| {
            !is_told_apart || (is_due(door, row, due_ms) && (row.run.holder == self.holder || row.run.started_at < due_ms))
        })
        .await
    }

    /// Goes on with runs that nobody goes on with, because the process that had begun them died or lost its log; and with the doors
    /// that it had not come to.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub async fn take_over(&self, upstream: &'static dyn Upstream, settings: &Settings) -> Result<Vec<Result<Outcome, Error>>, Error> {
        let mut cut_at = None;
        self.run_those(upstream, settings, |_, row| {
            let is_cut = row.is_under_way();
            if is_cut && cut_at.is_none() {
                cut_at = Some(row.run.started_at);
            }
            is_cut || cut_at.is_some_and(|cut_at| row.run.started_at < cut_at)
        })
        .await
    }

    /// Whether a door of the upstream has a run that was begun, has not ended, and is nobody's now.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn is_cut(&self, upstream: &'static dyn Upstream) -> Result<bool, Error> {
        let before = self.under_way(upstream).await?;
        if before.is_empty() || self.store.coordination().holder(&lease_of(upstream)).await?.is_some() {
            return Ok(false);
        }
        // One that ended between the two looks had given its lease back. (Where it stopped before the heads knew of its end, it is run again,
        // which finds nothing new.)
        let after = self.under_way(upstream).await?;
        Ok(before.iter().any(|run| after.contains(run)))
    }

    /// The upstream's runs that were begun and have not ended: door and number.
    async fn under_way(&self, upstream: &'static dyn Upstream) -> Result<Vec<(&'static str, i64)>, Error> {
        let mut out = Vec::new();
        for door in upstream.manifest().doors {
            let row = self.row(door).await?;
            if row.is_under_way() {
                out.push((door.name, row.run.number));
            }
        }
        Ok(out)
    }

    /// Runs those doors of an upstream whose last run says so.
    async fn run_those(
        &self,
        upstream: &'static dyn Upstream,
        settings: &Settings,
        mut is_wanted: impl FnMut(&Door, &RunRow) -> bool,
    ) -> Result<Vec<Result<Outcome, Error>>, Error> {
        let name = upstream.manifest().name;
        let client = Client::new(settings).map_err(|source| Error::Client { upstream: name, source })?;
        let _running = metrics::Running::begin();
        let mut out = Vec::new();
        for door in upstream.manifest().doors {
            if !is_wanted(door, &self.row(door).await?) {
                continue;
            }
            let result = self.run_door(upstream, door, &client, settings).await;
            metrics::run_ended(door.name, &result);
            match &result {
                Err(Error::Busy { .. }) => tracing::info!(door = door.name, "another ingestor runs this upstream"),
                Err(Error::HeldOff { .. }) => tracing::info!(door = door.name, "the upstream asked to be left alone"),
                Ok(Outcome { run, .. }) => tracing::info!(
                    door = door.name,
                    pages = run.pages,
                    seen = run.seen,
                    appended = run.appended,
                    rejected = run.rejected,
                    "a run finished"
                ),
                Err(error) => tracing::warn!(door = door.name, error = reason(error), "a run failed"),
            }
            out.push(result);
        }
        Ok(out)
    }

    /// Runs one door, whole.
    ///
    /// # Errors
    /// Why it did not finish; a `run_failed` event says so in the log, too.
    pub async fn run_door(
        &self,
        upstream: &'static dyn Upstream,
        door: &'static Door,
        client: &Client,
        settings: &Settings,
    ) -> Result<Outcome, Error> {
        // Another run of this upstream in this process ends by itself; one that was asked for comes after it.
        let slot = self.slot(upstream).await;
        let mut slot = slot.lock().await;
        let remembered = slot.entry(door.name).or_default();
        let hold_off = upstreams::left_alone(upstream.manifest().name);
        if self.store.coordination().holder(&hold_off).await?.is_some() {
            return Err(Error::HeldOff { door: door.name });
        }
        let mut lease = self.take(upstream, door).await?;
        let mut run = DoorRun::new(self, upstream, door, client, settings, remembered.clone())?;
        let result = tokio::select! {
            biased;
            result = run.go() => result,
            () = lease.lost() => Err(Error::Overtaken { door: door.name }),
        };
        let result = match result {
            Err(
                error @ (Error::Overtaken { .. } | Error::Stopped { .. } | Error::Unprojected { .. } | Error::Log(_) | Error::Store(_)),
            ) => Err(error),
            Err(error) => run.fail(error).await,
            Ok(outcome) => Ok(outcome),
        };
        let validators = std::mem::take(&mut run.validators);
        if let Err(Error::Fetch { source: FetchError::Later { pause, .. }, .. }) = &result {
            // Kept where every process sees it, and longer than this run: another door would be asking in vain, or make it worse.
            self.store.coordination().lease(&hold_off, upstreams::LEFT_ALONE, (*pause).min(HOLD_OFF_MAX)).await?;
        }
        if result.is_ok() {
            // Only now: a crash before this point must read the answers again.
            remembered.extend(validators);
        }
        lease.release().await;
        result
    }

    /// Maps rejected records (when, raw bytes; oldest first) again by the rules of this version; answers how many were taken. A
    /// record that the upstream has shown readable since is passed over: what it said then is newer.
    ///
    /// # Errors
    /// [`Error::Busy`] while another process reads the door, and when the log or the store fails.
    pub async fn retake(
        &self,
        upstream: &'static dyn Upstream,
        door: &'static Door,
        settings: &Settings,
        rejected: Vec<(i64, Vec<u8>)>,
    ) -> Result<u64, Error> {
        let slot = self.slot(upstream).await;
        let _one = slot.lock().await;
        let mut lease = self.take(upstream, door).await?;
        let taking = async {
            let topic = door.topic;
            let mut writer = Writer::new(upstream.manifest(), door, Arc::clone(&self.engine))?;
            let today = self.clock.now().to_zoned(TimeZone::UTC).date();
            let cursor = upstream.start(door, &Window { from: None, to: today }, settings);
            let mut page: HashMap<String, (i64, Hashed)> = HashMap::new();
            for (rejected_at, raw) in rejected {
                let answer = Answer { status: 200, link: None, body: upstream.single(door, &raw).into() };
                // What still cannot be read stays where it is.
                let Ok((records, _)) = map(upstream, door, &cursor, &answer, today) else { continue };
                page.extend(records.into_iter().map(|hashed| (hashed.observation.key.clone(), (rejected_at, hashed))));
            }
            self.pass_ends(topic).await?;
            let (keys, page): (Vec<String>, Vec<(i64, Hashed)>) = page.into_iter().unzip();
            let heads = writer.heads(&keys.iter().map(String::as_str).collect::<Vec<_>>()).await?;
            let older =
                page.into_iter().zip(heads).filter(|((rejected_at, _), row)| row.head.version == 0 || row.observed_at <= *rejected_at);
            let page: Vec<Hashed> = older.map(|((_, hashed), _)| hashed).collect();
            let facts = writer.changed(&page, self.clock.now_ms()).await?;
            let taken = facts.len() as u64;
            if !facts.is_empty() {
                self.log.append(facts).await?;
            }
            Ok(taken)
        };
        let taken = tokio::select! {
            biased;
            taken = taking => taken,
            () = lease.lost() => Err(Error::Overtaken { door: door.name }),
        };
        lease.release().await;
        taken
    }

    /// The end of each partition of a topic.
    async fn ends(&self, topic: &'static Topic) -> Result<Vec<LogOffset>, Error> {
        let mut out = Vec::new();
        for partition in 0..topic.partitions {
            out.push(self.log.end(topic, partition).await?);
        }
        Ok(out)
    }

    /// Waits until the heads have everything that a topic holds now.
    async fn pass_ends(&self, topic: &'static Topic) -> Result<(), Error> {
        for (partition, end) in (0..).zip(self.ends(topic).await?) {
            self.pass(topic, partition, end).await?;
        }
        Ok(())
    }

    /// Waits until the heads have passed an offset, and says so when that takes long: without a projector they never do.
    async fn pass(&self, topic: &'static Topic, partition: u32, end: LogOffset) -> Result<(), Error> {
        let mut stop = self.stop.clone();
        let stopped = async {
            let _ = stop.wait_for(|stop| *stop).await;
            tokio::time::sleep(PASS_AT_STOP_MAX).await;
        };
        let mut stopped = std::pin::pin!(stopped);
        let mut passing = std::pin::pin!(engine::wait_past(&*self.engine, topic, partition, end));
        loop {
            tokio::select! {
                () = &mut stopped => return Err(Error::Unprojected { topic: topic.name, partition, end }),
                passed = &mut passing => return Ok(passed.map(|_| ())?),
                () = tokio::time::sleep(PASS_SAID_EVERY) => {
                    tracing::warn!(topic = topic.name, partition, offset = end.0, "waiting for a projector to pass what was appended");
                }
            }
        }
    }

    /// Takes an upstream's lease, for a door.
    async fn take(&self, upstream: &dyn Upstream, door: &Door) -> Result<Lease, Error> {
        let mut lease = Lease::new(&self.store, lease_of(upstream), &self.holder);
        if lease.renew().await? { Ok(lease) } else { Err(Error::Busy { door: door.name }) }
    }

    /// What one run of an upstream in this process holds.
    async fn slot(&self, upstream: &dyn Upstream) -> Arc<Mutex<Doors>> {
        Arc::clone(self.upstreams.lock().await.entry(upstream.manifest().name).or_default())
    }

    /// How the last run of a door stands.
    async fn row(&self, door: &Door) -> Result<RunRow, Error> {
        let row = self.engine.get(&RUNS, &key![door.name]).await?;
        Ok(row.map(|bytes| serde_json::from_slice(&bytes)).transpose()?.unwrap_or_default())
    }
}

/// The name of an upstream's lease.
fn lease_of(upstream: &dyn Upstream) -> String {
    format!("ingest/{}", upstream.manifest().name)
}

/// Whether a door's turn has come at a time: one that failed comes with every turn.
fn is_due(door: &Door, row: &RunRow, due_ms: i64) -> bool {
    let every_ms = i64::try_from(door.every.as_millis()).unwrap_or(i64::MAX);
    row.kind != "run_finished" || row.run.started_at.saturating_add(every_ms) <= due_ms.saturating_add(DUE_SLACK_MS)
}

/// All leases that ingestors work under: who holds them works alone.
#[must_use]
pub fn leases() -> Vec<String> {
    upstreams::ALL.iter().map(|upstream| lease_of(*upstream)).collect()
}
