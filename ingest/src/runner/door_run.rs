//! One run of one door, the only loop: fetch, map, compare, append, mark. It alone waits, retries and remembers.
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

use event_log::Append;
use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemas::event::{FactKind, Head, Run, run_key};
use schemas::position::{LogOffset, UpstreamCursor};
use schemas::topics::Topic;
use schemas::views::engine::RunRow;
use upstreams::http::{Client, Fetched, Validators};
use upstreams::{Answer, Door, Page, Request, Settings, Upstream, UpstreamError, Window};
use view_store::engine;

use super::{Outcome, Remembered, Runner};
use crate::facts::{Hashed, Writer};
use crate::snapshot::{self, Lacking, Seen};
use crate::{Error, metrics, reason};

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

/// A page fetched and mapped.
enum Taken {
    Page { page: Vec<Hashed>, rest: Page, validators: Option<(String, Validators)> },
    NotModified,
}

/// One run of one door.
pub(super) struct DoorRun<'a> {
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
    /// What its answers said of their versions.
    pub(super) validators: Remembered,
}

impl<'a> DoorRun<'a> {
    /// A run that has not begun.
    pub(super) fn new(
        runner: &'a Runner,
        upstream: &'static dyn Upstream,
        door: &'static Door,
        client: &'a Client,
        settings: &'a Settings,
        remembered: Remembered,
    ) -> Result<Self, Error> {
        Ok(Self {
            runner,
            upstream,
            door,
            client,
            settings,
            writer: Writer::new(upstream.manifest(), door, Arc::clone(&runner.engine))?,
            run: Run::default(),
            head: Head::default(),
            pending_mark: false,
            seen: Seen::default(),
            warned: HashSet::new(),
            replaced: BTreeMap::new(),
            remembered,
            validators: HashMap::new(),
        })
    }

    fn topic(&self) -> &'static Topic {
        self.door.topic
    }

    fn today(&self) -> Date {
        self.runner.clock.now().to_zoned(TimeZone::UTC).date()
    }

    /// The whole run.
    pub(super) async fn go(&mut self) -> Result<Outcome, Error> {
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
            let next = match rest.next.clone() {
                Some(next) => self.narrowed(next).await?,
                None => None,
            };
            let through = rest.through;
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
            if let Some(through) = through {
                self.run.through_date = through.to_string();
            }
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
            run.through_date.clone_from(&last.through_date);
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

    /// Where to go on: the next cursor without what is known already of the things that it would ask for.
    async fn narrowed(&self, next: UpstreamCursor) -> Result<Option<UpstreamCursor>, Error> {
        let keys = self.upstream.depends_on(self.door, &next);
        if keys.is_empty() {
            return Ok(Some(next));
        }
        let mut known = HashSet::new();
        for keys in keys.chunks(OBSERVATIONS_MAX) {
            let rows = self.writer.heads(&keys.iter().map(String::as_str).collect::<Vec<_>>()).await?;
            known.extend(keys.iter().zip(rows).filter(|(_, row)| row.head.version > 0).map(|(key, _)| key.clone()));
        }
        Ok(self.upstream.narrow(self.door, &next, &known))
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
        if self.run.through_date.is_empty() {
            self.run.through_date.clone_from(&self.run.window_to);
        }
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

    /// Says why it did not finish.
    pub(super) async fn fail(&mut self, error: Error) -> Result<Outcome, Error> {
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
    let validators = remembered.get(&request.path).filter(|_| request.is_conditional());
    let fetched = client.fetch(door, request, validators).await.map_err(|source| Error::Fetch { door: door.name, source })?;
    let Fetched::Answer { answer, validators } = fetched else { return Ok(Taken::NotModified) };
    let (cursor, path) = (cursor.clone(), request.path.clone());
    // Parsing a large answer takes long; it must not hold up other tasks.
    let mapped = tokio::task::spawn_blocking(move || map(upstream, door, &cursor, &answer, today)).await?;
    let (page, rest) = mapped.map_err(|source| Error::Upstream { door: door.name, source })?;
    Ok(Taken::Page { page, rest, validators: request.is_conditional().then_some((path, validators)) })
}

pub(super) fn map(
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
