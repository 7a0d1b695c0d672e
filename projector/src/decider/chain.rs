//! Drafts become changes: each gets its place in the chain, its bytes and the rows it writes.

use bytes::Bytes;
use event_log::{Append, Headers, Record, Stored};
use schemas::avro;
use schemas::change::{Change, Input, Through};
use schemas::clock::rfc3339;
use schemas::hash::Hash32;
use schemas::tables::Write;

use super::{ChangeOf, Decider, i64_of, value_error};
use crate::Error;
use crate::service::{Draft, Service};

/// What most records need as JSON.
const RECORD_BYTES: usize = 2_048;

/// A draft with the two things that only the engine adds: what a run's end says, and the reason of what is parked.
pub(super) type Undone<S> = (Draft<<S as Service>::Record, <S as Service>::Note>, Option<Through>, String);

/// What the next change extends.
#[derive(Clone, Copy)]
pub(super) struct Link {
    pub(super) seq: i64,
    pub(super) hash: Hash32,
    pub(super) recorded_at: i64,
}

/// A change as the log has it.
pub(super) struct Logged<S: Service> {
    pub(super) change: ChangeOf<S>,
    pub(super) value: Bytes,
    pub(super) hash: Hash32,
}

/// A decided change, encoded, with what it writes.
pub(super) struct Decided<S: Service> {
    pub(super) change: ChangeOf<S>,
    pub(super) value: Bytes,
    pub(super) hash: Hash32,
    /// The record after it, as JSON.
    pub(super) record: Vec<u8>,
    pub(super) writes: Vec<Write>,
}

impl<S: Service> Decided<S> {
    pub(super) fn link(&self) -> Link {
        Link { seq: self.change.seq, hash: self.hash, recorded_at: self.change.recorded_at }
    }

    /// A change as a record of its topic.
    pub(super) fn record(&self) -> Append {
        let Self { change, value, hash, .. } = self;
        let kind = format!("highwater.{}.{}", S::NAME, change.event.as_str());
        let headers = Headers::cloud_event(&hash.to_string(), &kind, &format!("/{}", S::NAME), &rfc3339(change.recorded_at));
        let record = Record { key: Bytes::from(change.id.clone()), value: value.clone(), headers, at_ms: change.recorded_at };
        Append { topic: S::CHANGES, partition: 0, record }
    }
}

impl<S: Service> Decider<S> {
    /// Gives a group of drafts its places in the chain, behind `last` or the checkpoint. Of a group that a crash cut, `logged` are those
    /// that the log has.
    pub(super) fn chain(
        &mut self,
        last: Option<Link>,
        input: &Input,
        group: Vec<Undone<S>>,
        logged: &[Logged<S>],
    ) -> Result<Vec<Decided<S>>, Error> {
        let Link { mut seq, mut hash, mut recorded_at } = last.unwrap_or_else(|| Link {
            seq: i64_of(self.checkpoint.seq),
            hash: parse_hash(&self.checkpoint.hash),
            recorded_at: self.checkpoint.recorded_at_ms,
        });
        // The system's clock may go back; recorded times never do.
        recorded_at = recorded_at.max(self.clock.now_ms());
        let mut following = i32::try_from(group.len()).unwrap_or(i32::MAX);
        let mut out = Vec::with_capacity(group.len());
        for (draft, through, reason) in group {
            let Draft { event, id, after, before, before_seq, before_since, note } = draft;
            seq += 1;
            following -= 1;
            let (prev_hash, input) = (hash, input.clone());
            let mut change = Change {
                seq,
                prev_hash,
                event,
                id,
                recorded_at,
                input,
                following,
                before_seq,
                before_since,
                after,
                before,
                note,
                through,
                reason,
            };
            let value;
            (value, hash) = match logged.get(out.len()) {
                // The clock has moved on, nothing else may have.
                Some(logged) => {
                    recorded_at = logged.change.recorded_at;
                    change.recorded_at = recorded_at;
                    if change != logged.change {
                        let (name, seq) = (S::NAME, change.seq);
                        return Err(Error::Refused(format!(
                            "{name} decides change {seq} otherwise than the log has it: its group was cut by a crash under other rules; \
                             let the version that began it end it, then go on with this one"
                        )));
                    }
                    (logged.value.clone(), logged.hash)
                }
                None => {
                    let value = Bytes::from(self.encoder.encode(&change).map_err(value_error::<S>)?);
                    let hash = avro::datum_hash(S::CHANGES.name, &value).map_err(value_error::<S>)?;
                    (value, hash)
                }
            };
            let record = record_json::<S>(&change)?;
            let writes = writes_of::<S>(&change, &record);
            out.push(Decided { change, value, hash, record, writes });
        }
        Ok(out)
    }
}

/// What a change writes, stamped with its seq.
pub(super) fn writes_of<S: Service>(change: &ChangeOf<S>, record: &[u8]) -> Vec<Write> {
    S::apply(change, record).into_iter().map(|write| write.at(change.seq)).collect()
}

/// The record after a change as JSON, empty for none.
pub(super) fn record_json<S: Service>(change: &ChangeOf<S>) -> Result<Vec<u8>, Error> {
    match &change.after {
        Some(record) => {
            let mut out = Vec::with_capacity(RECORD_BYTES);
            serde_json::to_writer(&mut out, record).map_err(|source| Error::Row { table: S::RECORDS.name, source })?;
            Ok(out)
        }
        None => Ok(Vec::new()),
    }
}

/// A feed element: what readers see of a change, as JSON.
pub(super) fn element<S: Service>(change: &ChangeOf<S>, record: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(record.len() + 96);
    let (event, recorded_at, told) = (change.event.as_str(), rfc3339(change.recorded_at), S::told(change).unwrap_or_default());
    let head = format!(r#"{{"event":"{event}","seq":{},"recordedAt":"{recorded_at}",{told}"record":"#, change.seq);
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(record);
    out.push(b'}');
    out
}

/// The change in a record, if it extends the chain.
pub(super) fn extends<S: Service>(stored: &Stored, seq: u64, hash: Hash32) -> Option<ChangeOf<S>> {
    let change: ChangeOf<S> = avro::decode(S::CHANGES.name, &stored.record.value).ok()?;
    (change.seq == i64_of(seq + 1) && change.prev_hash == hash).then_some(change)
}

pub(super) fn parse_hash(hex: &str) -> Hash32 {
    Hash32::from_hex(hex).unwrap_or(Hash32::ZERO)
}
