//! Turns drafts into changes: assigns each its position in the chain.

use bytes::Bytes;
use schemas::avro;
use schemas::change::{Change, Input};
use schemas::position::Seq;

use super::Decider;
use super::chain::{Decided, Link, Logged, PendingDraft, last_hash, record_json, value_error, writes_of};
use crate::Error;
use fold::service::{Draft, Service};

impl<S: Service> Decider<S> {
    /// Assigns a group of drafts their positions in the chain, after `last` or the checkpoint. For a group that a crash interrupted,
    /// `logged` are the changes that the log already has.
    pub(super) fn chain(
        &mut self,
        last: Option<Link>,
        input: &Input,
        group: Vec<PendingDraft<S>>,
        logged: &[Logged<S>],
    ) -> Result<Vec<Decided<S>>, Error> {
        let Link { mut seq, mut hash, mut recorded_at } = match last {
            Some(last) => last,
            None => Link { seq: self.checkpoint.seq, hash: last_hash::<S>(&self.checkpoint)?, recorded_at: self.checkpoint.recorded_at_ms },
        };
        // The system clock may go back; recorded times never decrease.
        recorded_at = recorded_at.max(self.clock.now_ms());
        let mut following = i32::try_from(group.len()).unwrap_or(i32::MAX);
        let mut out = Vec::with_capacity(group.len());
        for (draft, through, reason) in group {
            let Draft { event, id, after, before, before_seq, before_since, note } = draft;
            seq = seq.next();
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
                // Only the recorded time may differ.
                Some(logged) => {
                    recorded_at = logged.change.recorded_at;
                    change.recorded_at = recorded_at;
                    if change != logged.change {
                        return Err(decided_differently::<S>(change.seq));
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
        // Each change says how many follow it, so that only an input that now means no change at all gives too few.
        match logged.first() {
            Some(first) if out.is_empty() => Err(decided_differently::<S>(first.change.seq)),
            _ => Ok(out),
        }
    }
}

/// Returns the error about a group that a crash interrupted, and whose input means other changes now.
fn decided_differently<S: Service>(seq: Seq) -> Error {
    Error::Refused(format!(
        "{} decides change {seq} differently from the log: a crash interrupted its group under other rules; \
         let the version that started the group complete it, then continue with this one",
        S::NAME
    ))
}
