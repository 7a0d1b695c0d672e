//! The sync loop: one sync run of one stream. It fetches, maps, compares, appends and saves checkpoints. Nothing else in ingestion waits or
//! retries, except `fetch`, which requests a page again when its answer is refused.
//!
//! ```text
//! run_started -> [ fetch -> map -> compare with heads -> append facts -> wait for heads -> run_marked ]* -> run_finished | run_failed
//! ```
//!
//! - A sync run first waits until all earlier facts are projected into the heads.
//! - Run events chain under the key `@run/STREAM`. The events of a process that was overtaken do not chain, and it stops when it sees that.
//! - `run_marked` is the checkpoint of a page. It is appended with the facts of the next page, after the facts of its own page are
//!   acknowledged. A crash therefore repeats a page; the facts of that page then equal their heads, so nothing is appended again.
//! - Pages that change nothing share a checkpoint a minute, so that a run over unchanged pages appends almost nothing. A crash repeats these pages; a
//!   stop does not, because it appends the checkpoint that is due.

mod appends;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemas::event::{FactKind, FieldCount, Head, Run, run_key};
use schemas::position::UpstreamCursor;
use schemas::topics::{REJECTED, Topic};
use schemas::views::engine::RunRow;
use tokio::sync::Mutex;
use upstreams::drift::{self, FieldCounts, Touched};
use upstreams::http::Client;
use upstreams::{Incomplete, Settings, Stream, Upstream, UpstreamError, Window};

use super::downloads::Downloads;
use super::fetch::{FetchedPage, PageFetch};
use super::held_pages::HeldPages;
use super::parts::PartsRead;
use super::window;
use super::{Outcome, Runner, StreamValidators};
use crate::facts::{Hashed, OBSERVATIONS_MAX, Writer};
use crate::snapshot::{self, MissingKeys, Seen};
use crate::{Error, metrics, reason};

/// The days that full reads of versions went back at most which did not record their first day.
const UNRECORDED_FULL_DAYS: i64 = 6 * 366;
/// The most pages of one sync run. A run with more pages is most likely stuck in a cycle.
const PAGES_MAX: i64 = 100_000;

/// How many missing keys the event `run_finished` may name.
const MISSING_MAX: usize = 5_000;

/// One sync run of one stream.
pub(super) struct SyncRun<'a> {
    runner: &'a Runner,
    upstream: &'static dyn Upstream,
    stream: &'static Stream,
    client: &'a Client,
    settings: &'a Settings,
    writer: Writer,
    run: Run,
    /// The head of the run's own key, `@run/STREAM`.
    head: Head,
    /// Whether a page is acknowledged whose checkpoint has not been appended yet.
    has_pending_checkpoint: bool,
    /// When this run last appended a run event.
    checkpoint_at: Instant,
    seen: Seen,
    /// In how many documents of the runs before each mapped field had a value.
    fields_before: Vec<FieldCount>,
    /// In how many documents of this run, so far, each mapped field had a value.
    fields: FieldCounts,
    /// What this run would append, counted while no document of it has some field that most documents had.
    touched: Touched,
    /// Pages that are not appended yet, because a field is missed in them.
    held: HeldPages,
    warned: HashSet<String>,
    /// What the upstream did not show completely.
    incomplete: Vec<String>,
    /// What else an operator should know about the run.
    notes: Vec<String>,
    /// Whether this run is a full read that does not continue an interrupted one.
    is_whole: bool,
    /// The parts of which this run has shown every record.
    parts: PartsRead,
    /// What the run leaves to the next one.
    memory: UpstreamCursor,
    /// Old keys that may continue under a new key, with that new key. They are decided at the end of the run, when it is known which old
    /// keys were still shown.
    replaced: BTreeMap<String, String>,
    last_validators: StreamValidators,
    downloads: Arc<Mutex<Downloads>>,
    /// The HTTP validators of this run's answers, by request path.
    pub(super) validators: StreamValidators,
}

impl<'a> SyncRun<'a> {
    /// Prepares a sync run; nothing is requested or appended yet.
    pub(super) fn new(
        runner: &'a Runner,
        upstream: &'static dyn Upstream,
        stream: &'static Stream,
        client: &'a Client,
        settings: &'a Settings,
        last_validators: StreamValidators,
    ) -> Result<Self, Error> {
        let dir = runner.downloads_dir.as_ref().map(|dir| dir.join(upstream.manifest().name));
        let downloads = Downloads::new(Arc::clone(&runner.store), stream, dir);
        Ok(Self {
            runner,
            upstream,
            stream,
            client,
            settings,
            writer: Writer::new(upstream.manifest(), stream, Arc::clone(&runner.engine))?,
            run: Run::default(),
            head: Head::default(),
            has_pending_checkpoint: false,
            checkpoint_at: Instant::now(),
            seen: Seen::default(),
            fields_before: Vec::new(),
            fields: FieldCounts::default(),
            touched: Touched::default(),
            held: HeldPages::default(),
            warned: HashSet::new(),
            incomplete: Vec::new(),
            notes: Vec::new(),
            is_whole: false,
            parts: PartsRead::default(),
            memory: UpstreamCursor::default(),
            replaced: BTreeMap::new(),
            last_validators,
            downloads: Arc::new(Mutex::new(downloads)),
            validators: HashMap::new(),
        })
    }

    fn topic(&self) -> &'static Topic {
        self.stream.topic
    }

    fn today(&self) -> Date {
        self.runner.clock.now().to_zoned(TimeZone::UTC).date()
    }

    /// Runs the sync from start to end.
    pub(super) async fn run_to_end(&mut self) -> Result<Outcome, Error> {
        self.runner.wait_until_projected_to_end(self.topic()).await?;
        self.runner.wait_until_projected_to_end(&REJECTED).await?;
        let (cursor, before) = self.begin().await?;
        self.parts.missing_before = before.last_finished.as_ref().map(|last| last.missing.clone()).unwrap_or_default();
        let mut unchanged = true;
        let mut fetched_page = match self.has_request(cursor) {
            Some(cursor) => Some(self.fetch_page(cursor).await?),
            None => None,
        };
        while let Some(current) = fetched_page.take() {
            let FetchedPage::Page { mut page, rest, validators } = current else { break };
            unchanged = false;
            self.validators.extend(validators);
            self.run.pages += 1;
            let records = count(page.len() + rest.rejects.len());
            self.run.seen += records;
            metrics::fetched(self.stream.name, records);
            for warning in &rest.warnings {
                // A warning that repeats on every page of a run is logged once.
                if self.warned.insert(warning.clone()) {
                    tracing::warn!(stream = self.stream.name, warning, "unexpected content in an answer");
                }
            }
            if !self.upstream.is_ordered(self.stream) {
                // An upstream may show a key twice in one run with different content. Only the first one counts; otherwise the record would
                // change back and forth.
                page.retain(|hashed| self.seen.insert(&hashed.observation.key));
            }
            for key in &rest.present {
                self.seen.insert_present(key);
            }
            let must_wait = self.count_fields(&page, &rest.fields).await?;
            if let Some(Incomplete { what, from }) = rest.incomplete.clone() {
                self.incomplete.push(what);
                let complete = from.and_then(|from| from.checked_sub(1.day()).ok()).map(|day| day.to_string());
                // Days in this form are in the order of their texts.
                if let Some(day) = complete.filter(|day| self.run.through_date.is_empty() || *day < self.run.through_date) {
                    self.run.through_date = day;
                }
            }
            self.replaced.extend(self.writer.replaced(&page).await?);
            // The next page is fetched while this one is appended.
            let next = match rest.next.clone() {
                Some(next) => self.next_cursor(next).await?.and_then(|next| self.has_request(next)),
                None => None,
            };
            if self.run.pages > PAGES_MAX {
                let (stream, field) = (self.stream.name, "paging".to_owned());
                let source = UpstreamError::Stop { stream, field, reason: format!("more than {PAGES_MAX} pages") };
                return Err(Error::Upstream { stream, source });
            }
            let begins_file = match &next {
                Some(next) => self.begins_file(next).await,
                None => false,
            };
            let fetch = next.clone().filter(|_| !begins_file).map(|next| self.fetch_page(next));
            let missed = drift::missed(&self.fields_before, &self.fields, self.touched);
            self.held.push((page, rest, next.clone()), must_wait || missed.is_some(), missed);
            let append = self.append_held();
            let (fetched, appended) = match fetch {
                Some(fetch) => {
                    let (fetched, appended) = tokio::join!(fetch, append);
                    (Some(fetched), appended)
                }
                None => (None, append.await),
            };
            appended?;
            fetched_page = match next.filter(|_| begins_file) {
                Some(next) => {
                    // A file that is read completely is not read again if the process is killed while it downloads the next one.
                    if std::mem::take(&mut self.has_pending_checkpoint) {
                        self.append_run(FactKind::RunMarked, Vec::new()).await?;
                    }
                    Some(self.fetch_page(next).await?)
                }
                None => fetched.transpose()?,
            };
            if *self.runner.stop.borrow() && fetched_page.is_some() {
                return Err(Error::Stopped { stream: self.stream.name });
            }
        }
        self.release_held().await?;
        self.finish(unchanged, &before).await
    }

    /// Starts the run and appends `run_started`. If the last run was interrupted, this one continues at its checkpoint.
    async fn begin(&mut self) -> Result<(UpstreamCursor, RunRow), Error> {
        let name = run_key(self.stream.name);
        self.head = self.writer.heads(&[&name]).await?.first().map(|row| row.head).unwrap_or_default();
        let row = self.runner.row(self.stream).await?;
        let now_ms = self.runner.clock.now_ms();
        let last = &row.run;
        let cut = (row.is_under_way() || row.kind == "run_failed") && !last.cursor.0.is_empty() && !self.stream.snapshot;
        // If the last run failed at its first page, that page may never succeed. A fresh window is then read, so that newer pages are not
        // blocked.
        let stuck = row.kind == "run_failed" && last.pages == 0;
        let usable = cut && !stuck && self.upstream.request(self.stream, &last.cursor, self.settings).is_ok();
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
            run.cursor = self.upstream.resume(self.stream, &last.cursor);
            self.parts.is_continued = true;
            run.through_date.clone_from(&last.through_date);
        } else {
            let full_after_ms = i64::try_from(self.upstream.manifest().full_after.as_millis()).unwrap_or(i64::MAX);
            run.full = self.stream.snapshot || last.last_full_at == 0 || now_ms.saturating_sub(last.last_full_at) > full_after_ms;
            let window_days = self.settings.window_days.min(self.upstream.capabilities().window_days_max.unwrap_or(u32::MAX));
            let window_days = window::days_back(row.last_finished.as_ref(), today, window_days);
            let settings = Settings { window_days, ..self.settings.clone() };
            let recent = || today.checked_sub(i64::from(window_days).days()).ok();
            let from = if run.full { self.full_from(&row, today) } else { recent() };
            self.is_whole = run.full;
            let window = Window { from, to: today };
            run.window_from = from.map(|from| from.to_string()).unwrap_or_default();
            run.window_to = today.to_string();
            let memory = row.last_finished.as_ref().map(|last| last.cursor.clone()).unwrap_or_default();
            run.cursor = self.upstream.start_after(self.stream, &window, &settings, &memory, self.runner.clock.now());
        }
        if row.last_finished.as_ref().is_none_or(|last| last.holder != self.runner.holder) {
            // Another process has synced this stream since, so the remembered validators may be outdated.
            self.last_validators.clear();
        }
        let cursor = run.cursor.clone();
        self.fields_before = row.last_finished.as_ref().map(|last| last.fields.clone()).unwrap_or_default();
        self.run = run;
        self.append_run(FactKind::RunStarted, Vec::new()).await?;
        Ok((cursor, row))
    }

    /// The first day of a full read, if absence from it withdraws records. It is not later than that of an earlier full read, so that every
    /// known record is within it.
    fn full_from(&self, row: &RunRow, today: Date) -> Option<Date> {
        let from = self.upstream.full_from(self.stream, today, self.settings)?;
        let before = match row.full_from.parse() {
            Ok(before) => Some(before),
            Err(_) if row.run.last_full_at > 0 => today.checked_sub(UNRECORDED_FULL_DAYS.days()).ok(),
            Err(_) => None,
        };
        Some(before.map_or(from, |before: Date| before.min(from)))
    }

    /// Whether absence from this run withdraws records: it is a snapshot, or a full read that read everything in one go.
    fn shows_all(&self) -> bool {
        self.stream.snapshot || (self.withdraws_in_full_reads() && self.is_whole && self.incomplete.is_empty())
    }

    /// Whether absence from the stream's full reads withdraws records.
    fn withdraws_in_full_reads(&self) -> bool {
        self.upstream.full_from(self.stream, self.today(), self.settings).is_some()
    }

    /// Counts the fields of a page. Returns whether no document of the run so far has some field that most documents had, while known records have
    /// changed: they may have lost it.
    async fn count_fields(&mut self, page: &[Hashed], fields: &FieldCounts) -> Result<bool, Error> {
        self.fields.add(fields);
        let is_lacking = drift::may_miss(&self.fields_before, &self.fields);
        if is_lacking {
            self.touched += self.writer.touched(page).await?;
        }
        Ok(is_lacking && self.touched.changed > 0)
    }

    /// Removes from the next cursor what the log already has. Returns `None` when nothing remains to be requested.
    async fn next_cursor(&self, next: UpstreamCursor) -> Result<Option<UpstreamCursor>, Error> {
        let keys = self.upstream.depends_on(self.stream, &next);
        if keys.is_empty() {
            return Ok(Some(next));
        }
        let mut known = HashSet::new();
        for keys in keys.chunks(OBSERVATIONS_MAX) {
            let names: Vec<&str> = keys.iter().map(String::as_str).collect();
            let rows = self.writer.heads(&names).await?;
            known.extend(keys.iter().zip(rows).filter(|(_, row)| row.head.version > 0).map(|(key, _)| key.clone()));
            // A rejected record is stored with its bytes, from which it is mapped again.
            let rejected = self.writer.rejected_keys(&names).await?;
            known.extend(keys.iter().zip(rejected).filter(|(_, is_rejected)| *is_rejected).map(|(key, _)| key.clone()));
        }
        Ok(self.upstream.narrow(self.stream, &next, &known))
    }

    /// Returns a cursor that has a request. One that has none ends the run, and the run remembers it.
    fn has_request(&mut self, cursor: UpstreamCursor) -> Option<UpstreamCursor> {
        if self.upstream.has_request(self.stream, &cursor) {
            return Some(cursor);
        }
        self.memory = self.upstream.remember(self.stream, &cursor);
        None
    }

    /// Whether the page at a cursor is the first one of another file than the one that is read.
    async fn begins_file(&self, cursor: &UpstreamCursor) -> bool {
        let request = self.upstream.request(self.stream, cursor, self.settings);
        let Some(download) = request.ok().and_then(|request| request.download) else { return false };
        !self.downloads.lock().await.is_reading(&download.name)
    }

    /// Fetches and maps the page at a cursor. The future borrows nothing from the run, because the run appends the page before it
    /// meanwhile.
    fn fetch_page(&mut self, cursor: UpstreamCursor) -> impl Future<Output = Result<FetchedPage, Error>> + use<> {
        let spent = self.upstream.budget(self.stream, &cursor).filter(|budget| self.parts.is_spent(budget));
        let fetch = PageFetch {
            upstream: self.upstream,
            stream: self.stream,
            client: self.client.clone(),
            settings: self.settings.clone(),
            clock: self.runner.clock,
            last_validators: self.last_validators.clone(),
            downloads: Arc::clone(&self.downloads),
            spent,
        };
        fetch.page_unless_stopped(cursor, self.runner.stop.clone())
    }

    /// Ends the run: withdraws records that two consecutive snapshots lack, and appends `run_finished`.
    async fn finish(&mut self, unchanged: bool, before: &RunRow) -> Result<Outcome, Error> {
        let last = before.last_finished.as_ref();
        if !self.shows_all()
            && self.withdraws_in_full_reads()
            && let Some(last) = last
        {
            // The next full read compares with the last one.
            let unseen = |keys: &[String]| keys.iter().filter(|key| !self.seen.contains(key)).cloned().collect();
            (self.run.missing, self.run.withheld) = (unseen(&last.missing), unseen(&last.withheld));
            self.run.rejects.clone_from(&last.rejects);
        }
        if self.shows_all() {
            let missing_before: HashSet<&String> = last.iter().flat_map(|last| &last.missing).collect();
            let mut found = if unchanged {
                let of_last = |list: fn(&Run) -> &Vec<String>| last.map(|last| list(last).clone()).unwrap_or_default();
                let (missing, withheld) = (of_last(|last| &last.missing), of_last(|last| &last.withheld));
                MissingKeys { missing, withheld, ..MissingKeys::default() }
            } else {
                let has_rejects = self.run.rejected > 0;
                let withheld = last.iter().filter(|_| has_rejects).flat_map(|last| &last.withheld).collect();
                snapshot::find_missing(&*self.runner.engine, self.topic(), self.stream.name, &self.seen, &withheld).await?
            };
            self.run.rejects = self.writer.run_rejects();
            self.run.rejects.truncate(MISSING_MAX);
            if unchanged {
                self.run.rejects = last.map(|last| last.rejects.clone()).unwrap_or_default();
            } else if self.has_new_rejects(last) {
                found.withhold_all();
            }
            found.withheld.truncate(MISSING_MAX);
            self.run.withheld.clone_from(&found.withheld);
            if !found.withheld.is_empty() {
                let (withheld, rejected) = (found.withheld.len(), self.run.rejected);
                self.run.reason = format!("{withheld} missing records may be among the {rejected} rejected ones: they are not withdrawn");
            }
            // A snapshot that is incomplete by its own account gives the reason, which is recorded at the end of the run.
            let is_incomplete = self.stream.snapshot && !self.incomplete.is_empty();
            if !unchanged && (is_incomplete || found.is_doubtful()) {
                let (stream, missing, known) = (self.stream.name, found.missing.len(), found.known);
                if !is_incomplete {
                    self.run.reason = format!("{missing} of {known} known records are missing: none is withdrawn");
                }
                tracing::warn!(stream, missing, known, "too many records are missing from the snapshot; none is withdrawn");
            } else {
                let (confirmed, first_time): (Vec<String>, Vec<String>) =
                    found.missing.into_iter().partition(|key| missing_before.contains(key));
                let facts = self.writer.withdrawn(&confirmed, self.runner.clock.now_ms()).await?;
                self.append_at_end(facts).await?;
                self.run.missing = first_time.into_iter().take(MISSING_MAX).collect();
            }
        }
        if !self.stream.snapshot && !self.withdraws_in_full_reads() {
            self.run.missing = self.parts.missing_after();
            self.run.missing.truncate(MISSING_MAX);
        }
        // A key that this run has seen itself is not superseded, whichever other record names it.
        let mut replaced = std::mem::take(&mut self.replaced);
        replaced.retain(|old, _| !self.seen.contains(old));
        let facts = self.writer.superseded(&replaced, self.runner.clock.now_ms()).await?;
        self.append_at_end(facts).await?;
        if self.run.full {
            self.run.last_full_at = self.run.started_at;
        }
        self.run.cursor = std::mem::take(&mut self.memory);
        if self.run.through_date.is_empty() {
            self.run.through_date.clone_from(&self.run.window_to);
        }
        if let Some(day) = window::unread_after(last, &self.run).map(|day| day.to_string()) {
            self.incomplete.push(format!("days after {day} were never read completely, and are too old to be read again"));
            self.run.through_date = day.min(std::mem::take(&mut self.run.through_date));
        }
        self.run.fields = self.fields.added_to(&self.fields_before, self.touched.records());
        let reasons = Some(std::mem::take(&mut self.run.reason)).filter(|reason| !reason.is_empty()).into_iter();
        self.run.reason = reasons.chain(self.incomplete.drain(..)).chain(self.notes.drain(..)).collect::<Vec<_>>().join("; ");
        self.run.ends = self.runner.ends(self.topic()).await?;
        self.append_run(FactKind::RunFinished, Vec::new()).await?;
        Ok(Outcome { stream: self.stream.name, run: self.run.clone(), ends: self.runner.ends(self.topic()).await? })
    }

    /// Whether this run rejected records that the last finished run did not reject with the same bytes. A run that has named as many records
    /// or keys as it may cannot tell, and then the answer is yes.
    fn has_new_rejects(&self, last: Option<&Run>) -> bool {
        let before: HashSet<&String> = last.iter().flat_map(|last| &last.rejects).collect();
        let is_full = self.run.rejects.len() >= MISSING_MAX || last.is_some_and(|last| last.withheld.len() >= MISSING_MAX);
        self.run.rejects.iter().any(|reject| !before.contains(reject)) || (is_full && !self.run.rejects.is_empty())
    }

    /// Deletes the files that this run downloaded.
    pub(super) async fn delete_downloads(&self) {
        self.downloads.lock().await.delete().await;
    }

    /// Appends the checkpoint that was held back, if there is one.
    pub(super) async fn append_pending_checkpoint(&mut self) -> Result<(), Error> {
        if self.has_pending_checkpoint {
            self.append_run(FactKind::RunMarked, Vec::new()).await?;
        }
        Ok(())
    }

    /// Appends `run_failed` with the reason and returns the error.
    pub(super) async fn fail(&mut self, error: Error) -> Result<Outcome, Error> {
        self.run.reason = reason(&error);
        // The next run continues at the last checkpoint, unless the mapping must change first.
        if matches!(error, Error::Upstream { source: UpstreamError::Stop { .. }, .. }) {
            self.run.cursor = UpstreamCursor::default();
        }
        if self.head.version > 0 || self.run.number > 0 {
            self.append_run(FactKind::RunFailed, Vec::new()).await?;
        }
        Err(error)
    }
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
