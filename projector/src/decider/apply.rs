//! The writing half of the decider: changes are appended, read back, applied in the order of the log and committed with the checkpoint.
//!
//! At most one commit runs at a time, while the next batch is decided. Decisions see its rows through [`fold::rows::Rows`]; other readers
//! wait for it first.

use std::sync::Arc;

use bytes::Bytes;
use proofs::hash::Hash32;
use schemas::avro;
use schemas::change::{ChangeKind, Input};
use schemas::position::LogOffset;
use schemas::tables::Write;
use view_store::Checkpoint;

use super::chain::{Decided, Logged, element, extends, last_hash, record_json, writes_of};
use super::parked_facts::{ParkedRow, RETRIED, parked_key};
use super::{BATCH_BYTES, ChangeOf, Decider, value_error};
use crate::Error;
use fold::service::{Draft, Service, records_added};

/// The most changes that one read returns.
const BATCH_CHANGES: usize = 500;

impl<S: Service> Decider<S> {
    /// Takes over the input positions of another decider, where they are ahead.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn adopt_positions(&mut self, other: &Self) -> Result<(), Error> {
        if self.checkpoint.seq != other.checkpoint.seq {
            return Err(Error::Overtaken { service: S::NAME });
        }
        self.checkpoint.raise_positions(&other.checkpoint);
        self.commit(Vec::new()).await?;
        self.wait_for_commit().await
    }

    /// Applies all changes in the log that extend the chain, and returns how many. An incomplete group at the end is not applied but
    /// remembered.
    ///
    /// # Errors
    /// When the log or the store fails.
    pub async fn apply_log(&mut self, mut progress: impl FnMut(u64)) -> Result<u64, Error> {
        let mut applied = 0;
        self.wait_for_commit().await?;
        self.interrupted.clear();
        let mut offset = self.checkpoint.offset;
        let (mut seq, mut hash) = (self.checkpoint.seq, last_hash::<S>(&self.checkpoint)?);
        let mut group: Vec<(Logged<S>, LogOffset)> = Vec::new();
        loop {
            let batch = self.log.read(S::CHANGES, 0, offset, BATCH_CHANGES, BATCH_BYTES).await?;
            let Some(last) = batch.last() else { break };
            offset = last.offset.next();
            let mut writes = Vec::new();
            let before = applied;
            for stored in &batch {
                let Some(change) = extends::<S>(stored, seq, hash)? else { continue };
                seq = change.seq;
                hash = avro::datum_hash(S::CHANGES.name, &stored.record.value).map_err(value_error::<S>)?;
                let ends_group = change.following == 0;
                group.push((Logged { change, value: stored.record.value.clone(), hash }, stored.offset.next()));
                if ends_group {
                    for (Logged { change, hash, .. }, next) in group.drain(..) {
                        let record = record_json::<S>(&change)?;
                        let own = writes_of::<S>(&change, &record);
                        self.confirmations.follow::<S>(change.seq, hash, next, &own);
                        writes.extend(own);
                        self.apply_change(&change, &record, hash, next, &mut writes)?;
                        applied += 1;
                    }
                }
            }
            if applied > before {
                self.commit(writes).await?;
                progress(applied);
            }
        }
        self.wait_for_commit().await?;
        self.read_offset = offset;
        self.interrupted = group.into_iter().map(|(logged, _)| logged).collect();
        Ok(applied)
    }

    /// Whether the log has got a change that extends the chain after this one since [`Self::apply_log`] read it to its end.
    ///
    /// # Errors
    /// When the log fails, or a newer version of the program wrote to it.
    pub(super) async fn is_continued_after(&self, last: &Logged<S>) -> Result<bool, Error> {
        let mut offset = self.read_offset;
        loop {
            let batch = self.log.read(S::CHANGES, 0, offset, BATCH_CHANGES, BATCH_BYTES).await?;
            let Some(end) = batch.last() else { return Ok(false) };
            offset = end.offset.next();
            for stored in &batch {
                if extends::<S>(stored, last.change.seq, last.hash)?.is_some() {
                    return Ok(true);
                }
            }
        }
    }

    /// Appends the decided changes, except the first `logged` ones that the log already has, reads all of them back and applies them.
    pub(super) async fn append_and_apply(&mut self, decided: Vec<Decided<S>>, logged: usize, positions: &Checkpoint) -> Result<(), Error> {
        let fresh = decided.get(logged..).unwrap_or_default();
        let end = self.log.end(S::CHANGES, 0).await?;
        let mut offset = self.checkpoint.offset;
        if !fresh.is_empty() {
            let batch = fresh.iter().map(Decided::record).collect();
            self.log.append(batch).await?;
        }
        // Only changes that are in the log are applied, in the order of the log.
        let mut writes = Vec::new();
        let mut waiting = decided.into_iter().peekable();
        while waiting.peek().is_some() {
            let batch = self.log.read(S::CHANGES, 0, offset, BATCH_CHANGES, BATCH_BYTES).await?;
            let Some(last) = batch.last() else { return Err(Error::Overtaken { service: S::NAME }) };
            offset = last.offset.next();
            for stored in &batch {
                let Some(expected) = waiting.next_if(|expected| expected.value == stored.record.value) else {
                    if waiting.peek().is_none() {
                        break;
                    }
                    if stored.offset >= end || extends::<S>(stored, self.checkpoint.seq, last_hash::<S>(&self.checkpoint)?)?.is_some() {
                        return Err(Error::Overtaken { service: S::NAME });
                    }
                    continue;
                };
                self.confirmations.follow::<S>(expected.change.seq, expected.hash, stored.offset.next(), &expected.writes);
                writes.extend(expected.writes);
                self.apply_change(&expected.change, &expected.record, expected.hash, stored.offset.next(), &mut writes)?;
            }
        }
        self.checkpoint.raise_positions(positions);
        self.commit(writes).await
    }

    /// Applies one change: adds its feed entry, updates the parked inputs, and advances the checkpoint.
    fn apply_change(
        &mut self,
        change: &ChangeOf<S>,
        record: &[u8],
        hash: Hash32,
        next: LogOffset,
        writes: &mut Vec<Write>,
    ) -> Result<(), Error> {
        let element = change.event.is_shown().then(|| element::<S>(change, record)).transpose()?;
        // Another decider's clock may have been behind; the feed's times never decrease.
        let recorded_at = change.recorded_at.max(self.checkpoint.recorded_at_ms);
        self.tail.push(change.seq, recorded_at, element.as_deref())?;
        if change.event == ChangeKind::Parked {
            self.parked.entry(change.id.clone()).or_default().extend(change.input.offset);
            let parked = ParkedRow { input: change.input.clone(), reason: change.reason.clone() };
            let value = serde_json::to_vec(&parked).map_err(|source| Error::Row { table: S::PARKED.name, source })?;
            writes.push(Write::put(S::PARKED, parked_key(&change.id, &change.input), Bytes::from(value)).at(change.seq.stored()));
        } else if change.reason == RETRIED {
            if let (Some(offsets), Some(offset)) = (self.parked.get_mut(&change.id), change.input.offset) {
                offsets.remove(&offset);
                if offsets.is_empty() {
                    self.parked.remove(&change.id);
                }
            }
            writes.push(Write::delete(S::PARKED, parked_key(&change.id, &change.input)).at(change.seq.stored()));
        }
        // Before the seq: there are no records before the first change.
        self.checkpoint.records =
            self.checkpoint.current_records().and_then(|records| records.checked_add_signed(records_added::<S>(change)));
        self.checkpoint.seq = change.seq;
        self.checkpoint.hash = hash.to_string();
        self.checkpoint.offset = next;
        self.checkpoint.recorded_at_ms = recorded_at;
        if let (Ok(partition), Some(offset)) = (u32::try_from(change.input.partition), change.input.offset)
            && let Some(topic) = S::INPUTS.iter().find(|topic| topic.name == change.input.topic)
        {
            self.checkpoint.raise_position(topic, partition, offset.next());
        }
        Ok(())
    }

    /// Starts a commit of the applied changes. The next batch is decided while it runs.
    async fn commit(&mut self, mut writes: Vec<Write>) -> Result<(), Error> {
        writes.extend(self.tail.take_writes(S::FEED));
        self.finish_commit().await?;
        let (view, checkpoint) = (Arc::clone(&self.view), self.checkpoint.clone());
        self.committing = Some(tokio::spawn(async move { view.commit(writes, &checkpoint).await }));
        self.rows.committing();
        Ok(())
    }

    /// Waits for the running commit.
    pub(super) async fn finish_commit(&mut self) -> Result<(), Error> {
        let Some(committing) = self.committing.take() else { return Ok(()) };
        match committing.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(view_store::Error::Behind { .. })) => Err(Error::Overtaken { service: S::NAME }),
            Ok(Err(error)) => Err(error.into()),
            Err(lost) => Err(Error::Lost { service: S::NAME, source: lost }),
        }
    }

    /// Waits until the store has all applied changes.
    pub(super) async fn wait_for_commit(&mut self) -> Result<(), Error> {
        self.finish_commit().await?;
        self.rows.clear();
        Ok(())
    }

    /// Appends drafts that have no input fact (from deciding a service again) and applies them.
    ///
    /// # Errors
    /// When the log or the store fails, or another decider appended meanwhile.
    pub async fn append_drafts(&mut self, drafts: Vec<Draft<S::Record, S::Note>>) -> Result<(), Error> {
        let nowhere = Input { topic: String::new(), partition: 0, offset: None };
        let mut decided: Vec<Decided<S>> = Vec::with_capacity(drafts.len());
        for draft in drafts {
            decided.extend(self.chain(decided.last().map(Decided::link), &nowhere, vec![(draft, None, String::new())], &[])?);
        }
        let positions = self.checkpoint.clone();
        self.append_and_apply(decided, 0, &positions).await?;
        self.wait_for_commit().await
    }
}
