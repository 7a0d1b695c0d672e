//! The only loop: lease, fetch, map, compare, append, mark. It alone waits, retries and remembers.
//!
//! ```text
//! run_started -> [ fetch -> map -> compare with heads -> append facts -> wait for heads -> run_marked ]* -> run_finished | run_failed
//! ```
//!
//! - A run first waits until the heads have passed everything before it.
//! - Run events chain under `@run/DOOR`: a zombie's events do not chain, and it stops when it sees that.
//! - A page's mark is appended with the next page's facts, after its own facts are acknowledged: a crash repeats a page, whose
//!   facts then read as their heads say.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use event_log::{Append, EventLog};
use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemas::clock::Clock;
use schemas::event::{FactKind, Head, Run, run_key};
use schemas::key;
use schemas::position::{LogOffset, UpstreamCursor};
use schemas::topics::Topic;
use schemas::views::engine::{RUNS, RunRow};
use tokio::sync::{Mutex, watch};
use upstreams::http::{Client, Fetched, Validators};
use upstreams::{Answer, Door, Page, Request, Settings, Upstream, UpstreamError, Window};
use view_store::{View, ViewStore, engine};

use crate::facts::{Hashed, Writer};
use crate::snapshot::{self, Lacking, Seen};
use crate::{Error, metrics, reason};

/// How long a door's lease lasts; it is renewed three times in that.
const LEASE: Duration = Duration::from_secs(15);
/// How often it is said that the heads are waited for.
const PASS_SAID_EVERY: Duration = Duration::from_secs(30);
/// How long they are waited for once the process stops: with a projector at work it takes no longer.
const PASS_AT_STOP_MAX: Duration = Duration::from_secs(5);
/// How often an answer that cannot be taken is asked for again.
const RETAKES_MAX: u32 = 3;
/// The first pause before that; it doubles.
const RETAKE_PAUSE: Duration = Duration::from_secs(1);
/// Pages a run may have; beyond, something runs in circles.
const PAGES_MAX: i64 = 100_000;
/// Observations compared and appended at once: some upstreams answer with all they have in one page.
const OBSERVATIONS_MAX: usize = 2_000;
/// Missing keys that a run's end may name.
const MISSING_MAX: usize = 5_000;

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

/// Runs upstreams. One per process; doors run side by side, one run a door.
pub struct Runner {
    log: Arc<dyn EventLog>,
    store: Arc<dyn ViewStore>,
    engine: Arc<dyn View>,
    clock: Clock,
    holder: String,
    stop: watch::Receiver<bool>,
    /// Per door: one run at a time, and what its answers said of their versions in the last run that finished.
    doors: Mutex<HashMap<&'static str, Arc<Mutex<Remembered>>>>,
}

type Remembered = HashMap<String, Validators>;

/// A page fetched and mapped.
enum Taken {
    Page { page: Vec<Hashed>, rest: Page, validators: Option<(String, Validators)> },
    NotModified,
}

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
        Self { log, store, engine, clock, holder, stop, doors: Mutex::default() }
    }

    /// Runs all doors of an upstream, one after another; a door that fails stops no other.
    ///
    /// # Errors
    /// Only for the upstream as a whole: when its client cannot be made. A door's failure is in the list.
    pub async fn run(&self, upstream: &'static dyn Upstream, settings: &Settings) -> Result<Vec<Result<Outcome, Error>>, Error> {
        self.run_those(upstream, settings, |_| true).await
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
        self.run_those(upstream, settings, |row| !is_told_apart || row.run.holder == self.holder || row.run.started_at < due_ms).await
    }

    /// Goes on with runs that nobody goes on with, because the process that had begun them died or lost its log; and with the doors
    /// that it had not come to.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub async fn take_over(&self, upstream: &'static dyn Upstream, settings: &Settings) -> Result<Vec<Result<Outcome, Error>>, Error> {
        let mut cut_at = None;
        self.run_those(upstream, settings, |row| {
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
        for door in upstream.manifest().doors {
            if self.row(door).await?.is_under_way() && self.store.coordination().holder(&lease_of(door)).await?.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Runs those doors of an upstream whose last run says so.
    async fn run_those(
        &self,
        upstream: &'static dyn Upstream,
        settings: &Settings,
        mut is_wanted: impl FnMut(&RunRow) -> bool,
    ) -> Result<Vec<Result<Outcome, Error>>, Error> {
        let name = upstream.manifest().name;
        let client = Client::new(settings).map_err(|source| Error::Client { upstream: name, source })?;
        let _running = metrics::Running::begin();
        let mut out = Vec::new();
        for door in upstream.manifest().doors {
            if !is_wanted(&self.row(door).await?) {
                continue;
            }
            let result = self.run_door(upstream, door, &client, settings).await;
            metrics::run_ended(door.name, &result);
            match &result {
                Err(Error::Busy { .. }) => tracing::info!(door = door.name, "another ingestor runs this door"),
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
        // Another run of this door in this process ends by itself; one that was asked for comes after it.
        let slot = Arc::clone(self.doors.lock().await.entry(door.name).or_default());
        let mut remembered = slot.lock().await;
        let lease = lease_of(door);
        if !self.renew(&lease).await? {
            return Err(Error::Busy { door: door.name });
        }
        let writer = Writer::new(upstream.manifest(), door, Arc::clone(&self.engine))?;
        let mut run = DoorRun {
            runner: self,
            upstream,
            door,
            client,
            settings,
            writer,
            run: Run::default(),
            head: Head::default(),
            pending_mark: false,
            seen: Seen::default(),
            warned: HashSet::new(),
            replaced: BTreeMap::new(),
            remembered: remembered.clone(),
            validators: HashMap::new(),
        };
        let result = tokio::select! {
            biased;
            result = run.go() => result,
            error = self.keep(door, &lease) => Err(error),
        };
        let result = match result {
            Err(
                error @ (Error::Overtaken { .. } | Error::Stopped { .. } | Error::Unprojected { .. } | Error::Log(_) | Error::Store(_)),
            ) => Err(error),
            Err(error) => run.fail(error).await,
            Ok(outcome) => Ok(outcome),
        };
        let validators = std::mem::take(&mut run.validators);
        if result.is_ok() {
            // Only now: a crash before this point must read the answers again.
            remembered.extend(validators);
        }
        self.give_back(&lease).await;
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
        let slot = Arc::clone(self.doors.lock().await.entry(door.name).or_default());
        let _one = slot.lock().await;
        let lease = lease_of(door);
        if !self.renew(&lease).await? {
            return Err(Error::Busy { door: door.name });
        }
        let taken = tokio::select! {
            biased;
            taken = self.retake_all(upstream, door, settings, rejected) => taken,
            error = self.keep(door, &lease) => Err(error),
        };
        self.give_back(&lease).await;
        taken
    }

    async fn retake_all(
        &self,
        upstream: &'static dyn Upstream,
        door: &'static Door,
        settings: &Settings,
        rejected: Vec<(i64, Vec<u8>)>,
    ) -> Result<u64, Error> {
        let topic = upstream.manifest().topic;
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
        let older = page.into_iter().zip(heads).filter(|((rejected_at, _), row)| row.head.version == 0 || row.observed_at <= *rejected_at);
        let page: Vec<Hashed> = older.map(|((_, hashed), _)| hashed).collect();
        let facts = writer.changed(&page, self.clock.now_ms()).await?;
        let taken = facts.len() as u64;
        if !facts.is_empty() {
            self.log.append(facts).await?;
        }
        Ok(taken)
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

    /// Gives a lease back; one that cannot be ends by itself.
    async fn give_back(&self, lease: &str) {
        if let Err(error) = self.store.coordination().release(lease, &self.holder).await {
            tracing::warn!(lease, error = reason(&error), "a lease could not be given back");
        }
    }

    async fn renew(&self, lease: &str) -> Result<bool, Error> {
        Ok(self.store.coordination().lease(lease, &self.holder, LEASE).await?)
    }

    /// Renews a door's lease; ends when another has it.
    async fn keep(&self, door: &Door, lease: &str) -> Error {
        loop {
            tokio::time::sleep(LEASE / 3).await;
            match self.renew(lease).await {
                Ok(true) => {}
                Ok(false) => return Error::Overtaken { door: door.name },
                // The run itself finds out whether it can go on.
                Err(error) => tracing::warn!(door = door.name, error = reason(&error), "a lease could not be renewed"),
            }
        }
    }

    /// How the last run of a door stands.
    async fn row(&self, door: &Door) -> Result<RunRow, Error> {
        let row = self.engine.get(&RUNS, &key![door.name]).await?;
        Ok(row.map(|bytes| serde_json::from_slice(&bytes)).transpose()?.unwrap_or_default())
    }
}

/// The name of a door's lease.
fn lease_of(door: &Door) -> String {
    format!("ingest/{}", door.name)
}

/// All leases that ingestors work under: who holds them works alone.
#[must_use]
pub fn leases() -> Vec<String> {
    upstreams::ALL.iter().flat_map(|upstream| upstream.manifest().doors).map(lease_of).collect()
}

/// One run of one door.
struct DoorRun<'a> {
    runner: &'a Runner,
    upstream: &'static dyn Upstream,
    door: &'static Door,
    client: &'a Client,
    settings: &'a Settings,
    writer: Writer,
    run: Run,
    /// Head of the run's own key.
    head: Head,
    /// A page is acknowledged and not yet marked.
    pending_mark: bool,
    seen: Seen,
    warned: HashSet<String>,
    /// Keys that may go on under another one, and that one. Decided at the end, when it is known which of them were shown.
    replaced: BTreeMap<String, String>,
    remembered: Remembered,
    validators: Remembered,
}

impl DoorRun<'_> {
    fn topic(&self) -> &'static Topic {
        self.upstream.manifest().topic
    }

    fn today(&self) -> Date {
        self.runner.clock.now().to_zoned(TimeZone::UTC).date()
    }

    async fn go(&mut self) -> Result<Outcome, Error> {
        self.runner.pass_ends(self.topic()).await?;
        let (mut cursor, before) = self.begin().await?;
        let mut unchanged = true;
        let mut taken = Some(self.taking(cursor.clone()).await?);
        while let Some(current) = taken.take() {
            let Taken::Page { mut page, rest, validators } = current else { break };
            unchanged = false;
            self.validators.extend(validators);
            self.run.pages += 1;
            let records = count(page.len() + rest.rejects.len());
            self.run.seen += records;
            metrics::fetched(self.door.name, records);
            for warning in &rest.warnings {
                // The same oddity on every page of a run is said once.
                if self.warned.insert(warning.clone()) {
                    tracing::warn!(door = self.door.name, warning, "an answer was odd");
                }
            }
            // An upstream that shows a key twice in one run, each time otherwise, must not make it change back and forth: the
            // first counts.
            page.retain(|hashed| self.seen.insert(&hashed.observation.key));
            self.replaced.extend(self.writer.replaced(&page).await?);
            // The next page is fetched while this one is appended.
            let next = rest.next.clone();
            if self.run.pages > PAGES_MAX {
                let (door, field) = (self.door.name, "paging".to_owned());
                let source = UpstreamError::Stop { door, field, reason: format!("more than {PAGES_MAX} pages") };
                return Err(Error::Upstream { door, source });
            }
            let fetch = next.clone().map(|next| self.taking(next));
            let append = self.append_page(page, rest);
            let (fetched, appended) = match fetch {
                Some(fetch) => {
                    let (fetched, appended) = tokio::join!(fetch, append);
                    (Some(fetched), appended)
                }
                None => (None, append.await),
            };
            appended?;
            if let Some(next) = next {
                cursor = next;
                self.run.cursor = cursor.clone();
                self.pending_mark = true;
            }
            taken = fetched.transpose()?;
            if *self.runner.stop.borrow() && taken.is_some() {
                return Err(Error::Stopped { door: self.door.name });
            }
        }
        self.finish(unchanged, &before).await
    }

    /// Says that a run begins, where the last one left off if it was cut.
    async fn begin(&mut self) -> Result<(UpstreamCursor, RunRow), Error> {
        let name = run_key(self.door.name);
        self.head = self.writer.heads(&[&name]).await?.first().map(|row| row.head).unwrap_or_default();
        let row = self.runner.row(self.door).await?;
        let now_ms = self.runner.clock.now_ms();
        let last = &row.run;
        let cut = (row.is_under_way() || row.kind == "run_failed") && !last.cursor.0.is_empty() && !self.door.snapshot;
        // A page at which the last run failed at once may never come: then a fresh window is read, so that newer pages do.
        let stuck = row.kind == "run_failed" && last.pages == 0;
        let usable = cut && !stuck && self.upstream.request(self.door, &last.cursor, self.settings).is_ok();
        let today = self.today();
        let mut run = Run {
            holder: self.runner.holder.clone(),
            number: last.number + 1,
            started_at: now_ms,
            last_full_at: last.last_full_at,
            ..Run::default()
        };
        if usable {
            run.full = last.full;
            run.window_from.clone_from(&last.window_from);
            run.window_to.clone_from(&last.window_to);
            run.cursor = last.cursor.clone();
        } else {
            let full_after_ms = i64::try_from(self.upstream.manifest().full_after.as_millis()).unwrap_or(i64::MAX);
            run.full = self.door.snapshot || last.last_full_at == 0 || now_ms.saturating_sub(last.last_full_at) > full_after_ms;
            let from = if run.full { None } else { today.checked_sub(i64::from(self.settings.window_days).days()).ok() };
            let window = Window { from, to: today };
            run.window_from = from.map(|from| from.to_string()).unwrap_or_default();
            run.window_to = today.to_string();
            run.cursor = self.upstream.start(self.door, &window, self.settings);
        }
        if row.last_finished.as_ref().is_none_or(|last| last.holder != self.runner.holder) {
            // Another process read this door since: what its answers said of their versions is not known here.
            self.remembered.clear();
        }
        let cursor = run.cursor.clone();
        self.run = run;
        self.append_run(FactKind::RunStarted, Vec::new()).await?;
        Ok((cursor, row))
    }

    /// Fetches and maps the page at a cursor. The future holds nothing of the run, which appending changes meanwhile.
    fn taking(&self, cursor: UpstreamCursor) -> impl Future<Output = Result<Taken, Error>> + use<> {
        let (upstream, door, settings, client) = (self.upstream, self.door, self.settings.clone(), self.client.clone());
        let (today, remembered, mut stop) = (self.today(), self.remembered.clone(), self.runner.stop.clone());
        let fetch = async move {
            let request = upstream.request(door, &cursor, &settings).map_err(|source| Error::Upstream { door: door.name, source })?;
            let mut pause = RETAKE_PAUSE;
            let mut tries = 0;
            loop {
                tries += 1;
                match fetch_and_map(upstream, door, &client, &request, &cursor, today, &remembered).await {
                    Err(Error::Upstream { source: source @ UpstreamError::Later { .. }, .. }) if tries < RETAKES_MAX => {
                        tracing::warn!(door = door.name, error = %source, "an answer cannot be taken; asking again");
                        tokio::time::sleep(pause).await;
                        pause *= 2;
                    }
                    result => return result,
                }
            }
        };
        async move {
            // What an upstream makes us wait for must not hold up a stop; the page is asked for again at the next run.
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => Err(Error::Stopped { door: door.name }),
                result = fetch => result,
            }
        }
    }

    /// Appends what a page changed, and waits until the heads have it; what lost a race is compared again. What is done is let go, since
    /// the page after is held meanwhile.
    async fn append_page(&mut self, page: Vec<Hashed>, rest: Page) -> Result<(), Error> {
        let now_ms = self.runner.clock.now_ms();
        let mut rejects = Vec::with_capacity(rest.rejects.len());
        for reject in rest.rejects {
            tracing::warn!(door = self.door.name, reference = reject.reference, reason = reject.reason, "a record is rejected");
            rejects.push(self.writer.rejected(&reject, now_ms)?);
        }
        self.run.rejected += count(rejects.len());
        metrics::rejected(self.door.name, count(rejects.len()));
        let mut page = page.into_iter();
        // A page without observations may have rejects, and a mark to append.
        let mut chunk: Vec<Hashed> = page.by_ref().take(OBSERVATIONS_MAX).collect();
        loop {
            let facts = self.writer.changed(&chunk, now_ms).await?;
            self.stay().await?;
            let appended = count(facts.len());
            let mut batch = std::mem::take(&mut rejects);
            batch.extend(facts);
            let chained = if std::mem::take(&mut self.pending_mark) {
                self.append_run(FactKind::RunMarked, batch).await?
            } else {
                batch.is_empty() || self.append_facts(batch).await?
            };
            if chained {
                self.run.appended += appended;
                metrics::appended(self.door.name, appended);
                chunk = page.by_ref().take(OBSERVATIONS_MAX).collect();
                if chunk.is_empty() {
                    return Ok(());
                }
            }
        }
    }

    /// Asserts that no other run of this door has begun since. Called after facts are compared with their heads and before they are
    /// appended: what a run that began later appends is then newer than those heads, and what this one says about them does not
    /// chain. Without it a run that was paused would say again what was true before the pause.
    async fn stay(&self) -> Result<(), Error> {
        let name = run_key(self.door.name);
        let now = self.writer.heads(&[&name]).await?.first().map(|row| row.head).unwrap_or_default();
        if now.id == self.head.id { Ok(()) } else { Err(Error::Overtaken { door: self.door.name }) }
    }

    /// Appends facts and waits for the heads; answers whether all of them chained.
    async fn append_facts(&mut self, batch: Vec<Append>) -> Result<bool, Error> {
        let topic = self.topic();
        let partitions: Vec<Option<u32>> =
            batch.iter().map(|append| (append.topic.name == topic.name).then_some(append.partition)).collect();
        let offsets = self.runner.log.append(batch).await?;
        let mut ranges: HashMap<u32, (LogOffset, LogOffset)> = HashMap::new();
        for (partition, offset) in partitions.into_iter().zip(&offsets).filter_map(|(partition, offset)| Some((partition?, *offset))) {
            let range = ranges.entry(partition).or_insert((offset, offset.next()));
            *range = (range.0.min(offset), range.1.max(offset.next()));
        }
        let mut chained = true;
        for (partition, (from, to)) in ranges {
            self.runner.pass(topic, partition, to).await?;
            let dropped = engine::dropped(&*self.runner.engine, topic, partition, from, to).await?;
            chained &= dropped.is_empty();
        }
        Ok(chained)
    }

    /// Appends a run event behind `batch` (whose facts come first) and waits for the heads. A run event that does not chain
    /// says that another ingestor took over. Answers whether the whole batch chained.
    async fn append_run(&mut self, kind: FactKind, mut batch: Vec<Append>) -> Result<bool, Error> {
        let (append, head) = self.writer.run_event(kind, &self.run, &self.head, self.runner.clock.now_ms())?;
        batch.push(append);
        let chained = self.append_facts(batch).await?;
        if !chained {
            let name = run_key(self.door.name);
            let now = self.writer.heads(&[&name]).await?.first().map(|row| row.head).unwrap_or_default();
            if now.id != head.id {
                return Err(Error::Overtaken { door: self.door.name });
            }
        }
        self.head = head;
        Ok(chained)
    }

    /// Says that a run is over: what a snapshot lacks twice is withdrawn, and the end is marked.
    async fn finish(&mut self, unchanged: bool, before: &RunRow) -> Result<Outcome, Error> {
        let last = before.last_finished.as_ref();
        if self.door.snapshot {
            let lacking = if unchanged || self.run.rejected > 0 {
                // A record that is there and cannot be read is not missing: such a run says nothing of what is.
                Lacking { missing: last.map(|last| last.missing.clone()).unwrap_or_default(), ..Lacking::default() }
            } else {
                snapshot::lacking(&*self.runner.engine, self.topic(), self.door.name, &self.seen).await?
            };
            if lacking.doubted {
                self.run.reason = format!("{} of {} known records are missing: none is withdrawn", lacking.missing.len(), lacking.known);
                tracing::warn!(door = self.door.name, missing = lacking.missing.len(), known = lacking.known, "the answer lacks too much");
            } else {
                let before: HashSet<&String> = last.iter().filter(|_| self.run.rejected == 0).flat_map(|last| &last.missing).collect();
                let (twice, once): (Vec<String>, Vec<String>) = lacking.missing.into_iter().partition(|key| before.contains(key));
                let facts = self.writer.withdrawn(&twice, self.runner.clock.now_ms()).await?;
                self.append_last(facts).await?;
                self.run.missing = once.into_iter().take(MISSING_MAX).collect();
            }
        }
        // What this run has shown itself stands on its own, whatever number another record has.
        let mut replaced = std::mem::take(&mut self.replaced);
        replaced.retain(|old, _| !self.seen.contains(old));
        let facts = self.writer.superseded(&replaced, self.runner.clock.now_ms()).await?;
        self.append_last(facts).await?;
        if self.run.full {
            self.run.last_full_at = self.run.started_at;
        }
        self.run.cursor = UpstreamCursor::default();
        self.run.through_date.clone_from(&self.run.window_to);
        let ends = self.runner.ends(self.topic()).await?;
        self.run.ends = ends.iter().map(|end| i64::try_from(end.0).unwrap_or(i64::MAX)).collect();
        self.append_run(FactKind::RunFinished, Vec::new()).await?;
        Ok(Outcome { door: self.door.name, run: self.run.clone(), ends: self.runner.ends(self.topic()).await? })
    }

    /// Appends what only the end of a run can say.
    async fn append_last(&mut self, facts: Vec<Append>) -> Result<(), Error> {
        self.stay().await?;
        let appended = count(facts.len());
        self.run.appended += appended;
        if appended > 0 {
            self.append_facts(facts).await?;
            metrics::appended(self.door.name, appended);
        }
        Ok(())
    }

    async fn fail(&mut self, error: Error) -> Result<Outcome, Error> {
        self.run.reason = reason(&error);
        // A failed run goes on at its last mark, unless the form itself must change first.
        if matches!(error, Error::Upstream { source: UpstreamError::Stop { .. }, .. }) {
            self.run.cursor = UpstreamCursor::default();
        }
        if self.head.version > 0 || self.run.number > 0 {
            self.append_run(FactKind::RunFailed, Vec::new()).await?;
        }
        Err(error)
    }
}

async fn fetch_and_map(
    upstream: &'static dyn Upstream,
    door: &'static Door,
    client: &Client,
    request: &Request,
    cursor: &UpstreamCursor,
    today: Date,
    remembered: &Remembered,
) -> Result<Taken, Error> {
    let validators = remembered.get(&request.path).filter(|_| request.conditional);
    let fetched = client.get(door, request, validators).await.map_err(|source| Error::Fetch { door: door.name, source })?;
    let Fetched::Answer { answer, validators } = fetched else { return Ok(Taken::NotModified) };
    let (cursor, path) = (cursor.clone(), request.path.clone());
    // Parsing a large answer takes long; it must not hold up other tasks.
    let mapped = tokio::task::spawn_blocking(move || map(upstream, door, &cursor, &answer, today)).await?;
    let (page, rest) = mapped.map_err(|source| Error::Upstream { door: door.name, source })?;
    Ok(Taken::Page { page, rest, validators: request.conditional.then_some((path, validators)) })
}

fn map(
    upstream: &dyn Upstream,
    door: &Door,
    cursor: &UpstreamCursor,
    answer: &Answer,
    today: Date,
) -> Result<(Vec<Hashed>, Page), UpstreamError> {
    let mut rest = upstream.map(door, cursor, answer, today)?;
    let mut page = Vec::with_capacity(rest.observations.len());
    for observation in std::mem::take(&mut rest.observations) {
        match Hashed::new(observation) {
            Ok(hashed) => page.push(hashed),
            Err(reject) => rest.rejects.push(reject),
        }
    }
    Ok((page, rest))
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
