//! What a sync run appends: the facts of pages with their checkpoints, and the events of the run.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use event_log::Append;
use schemas::event::{FactKind, run_key};
use schemas::position::LogOffset;
use upstreams::{Page, UpstreamError};
use view_store::engine;

use super::{SyncRun, count};
use crate::facts::{Hashed, OBSERVATIONS_MAX};
use crate::{Error, metrics};

/// How long the checkpoints of pages without new facts are held back.
const IDLE_CHECKPOINT_INTERVAL: Duration = Duration::from_secs(60);

impl SyncRun<'_> {
    /// Appends the pages that are held, unless a field may be missing in them. Then they stay held, and the run reads on: if a later document has the
    /// field, the ones before were unexpected and all are appended. When too much is held, it is decided as if there were no more pages.
    pub(super) async fn append_held(&mut self) -> Result<(), Error> {
        if self.held.must_wait() && !self.held.is_full() { Ok(()) } else { self.release_held().await }
    }

    /// Decides about the pages that are held. If no document of the run had a field that is missed, and records that the log has would lose it, or the
    /// runs before have missed it too, the stream stops. Otherwise the pages are appended, with a warning if a field is missed.
    pub(super) async fn release_held(&mut self) -> Result<(), Error> {
        if let Some(missed) = self.held.take_missed() {
            let (stream, field, reason) = (self.stream.name, missed.field.clone(), missed.reason());
            if missed.is_repeated || missed.is_lost {
                return Err(Error::Upstream { stream, source: UpstreamError::Stop { stream, field, reason } });
            }
            let note = format!("field {field}: {reason}; the next run stops if no document has it");
            if self.warned.insert(note.clone()) {
                tracing::warn!(stream, field, reason, "a field is missing; the next sync run stops if no document has it");
                self.notes.push(note);
            }
        }
        self.append_pages().await
    }

    /// Appends the pages that are held, oldest first, each with its checkpoint.
    async fn append_pages(&mut self) -> Result<(), Error> {
        while let Some((page, rest, next)) = self.held.pop() {
            let through = rest.through;
            self.append_page(page, *rest).await?;
            if let Some(through) = through {
                self.run.through_date = through.to_string();
            }
            if let Some(next) = next {
                self.run.cursor = next;
                self.has_pending_checkpoint = true;
            }
        }
        Ok(())
    }

    /// Appends the changes of a page and waits until they are projected into the heads. If another writer changed a head meanwhile, the
    /// facts are compared and appended again. Processed observations are dropped early, because the next page is in memory too.
    async fn append_page(&mut self, page: Vec<Hashed>, rest: Page) -> Result<(), Error> {
        let now_ms = self.runner.clock.now_ms();
        let mut rejects = Vec::new();
        let known = self.writer.known_rejects(&rest.rejects).await?;
        self.run.rejected += count(known.len());
        self.run.known_rejected += count(known.iter().filter(|is_known| **is_known).count());
        for (reject, _) in rest.rejects.into_iter().zip(known).filter(|(_, is_known)| !is_known) {
            tracing::warn!(stream = self.stream.name, reference = reject.reference, reason = reject.reason, "record rejected");
            rejects.push(self.writer.rejected(&reject, now_ms)?);
        }
        metrics::rejected(self.stream.name, count(rejects.len()));
        let gone = match &rest.complete_part {
            Some(part) => {
                let (engine, topic) = (&*self.runner.engine, self.topic());
                let (gone, doubt) = self.parts.take(engine, topic, part, &self.seen).await?;
                self.incomplete.extend(doubt);
                gone
            }
            None => Vec::new(),
        };
        let mut page = page.into_iter();
        // A page without observations can still have rejected records and a checkpoint to append.
        let mut chunk: Vec<Hashed> = page.by_ref().take(OBSERVATIONS_MAX).collect();
        loop {
            let mut facts = self.writer.withdrawn(&gone, now_ms).await?;
            facts.extend(self.writer.changed(&chunk, now_ms).await?);
            self.ensure_not_overtaken().await?;
            let (appended, of_parts) = (count(facts.len()), self.parts.counts_of(&facts));
            let mut batch = std::mem::take(&mut rejects);
            batch.extend(facts);
            let is_due = !batch.is_empty() || self.checkpoint_at.elapsed() >= IDLE_CHECKPOINT_INTERVAL;
            let chained = if self.has_pending_checkpoint && is_due {
                self.append_run(FactKind::RunMarked, batch).await?
            } else {
                batch.is_empty() || self.append_facts(batch).await?
            };
            if chained {
                self.run.appended += appended;
                self.parts.add_appended(of_parts);
                metrics::appended(self.stream.name, appended);
                chunk = page.by_ref().take(OBSERVATIONS_MAX).collect();
                if chunk.is_empty() {
                    return Ok(());
                }
            }
        }
    }

    /// Checks that no other run of this stream has started since. It is called after facts were compared with their heads and before they
    /// are appended. If a run that started later appends facts, these are newer than the compared heads, so the facts of this run do not
    /// chain. Without this check a run that was paused could append outdated content as new.
    async fn ensure_not_overtaken(&self) -> Result<(), Error> {
        let name = run_key(self.stream.name);
        let now = self.writer.heads(&[&name]).await?.first().map(|row| row.head).unwrap_or_default();
        if now.id == self.head.id { Ok(()) } else { Err(Error::Overtaken { stream: self.stream.name }) }
    }

    /// Appends facts and waits until they are projected. Returns whether all of them chained.
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
            self.runner.wait_until_projected(topic, partition, to).await?;
            let dropped = engine::dropped(&*self.runner.engine, topic, partition, from, to).await?;
            chained &= dropped.is_empty();
        }
        Ok(chained)
    }

    /// Appends a run event after the facts of `batch` and waits until both are projected. Returns whether the whole batch chained. A run
    /// event that does not chain means that another ingestor took over, which is an error.
    pub(super) async fn append_run(&mut self, kind: FactKind, mut batch: Vec<Append>) -> Result<bool, Error> {
        // Every run event holds the cursor.
        (self.has_pending_checkpoint, self.checkpoint_at) = (false, Instant::now());
        let (append, head) = self.writer.run_event(kind, &self.run, &self.head, self.runner.clock.now_ms())?;
        batch.push(append);
        let chained = self.append_facts(batch).await?;
        if !chained {
            let name = run_key(self.stream.name);
            let now = self.writer.heads(&[&name]).await?.first().map(|row| row.head).unwrap_or_default();
            if now.id != head.id {
                return Err(Error::Overtaken { stream: self.stream.name });
            }
        }
        self.head = head;
        Ok(chained)
    }

    /// Appends facts that can only be decided at the end of the run.
    pub(super) async fn append_at_end(&mut self, facts: Vec<Append>) -> Result<(), Error> {
        self.ensure_not_overtaken().await?;
        let appended = count(facts.len());
        self.run.appended += appended;
        if appended > 0 {
            self.append_facts(facts).await?;
            metrics::appended(self.stream.name, appended);
        }
        Ok(())
    }
}
