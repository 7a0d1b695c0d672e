//! Inputs that could not be decided: kept with their reason, in the way of no other key, and taken again when asked.

use schemas::avro;
use schemas::change::{ChangeKind, Input};
use schemas::key;
use schemas::position::LogOffset;
use schemas::tables::{Datum, Key};
use serde::{Deserialize, Serialize};
use view_store::store::Span;

use super::Decider;
use crate::Error;
use crate::service::{Draft, Service};

/// The `reason` of a change that says: this parked input has been decided after all.
pub(super) const TAKEN_AGAIN: &str = "taken again";

/// A parked input, in a service's table of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParkedRow {
    /// Where it stands.
    pub input: Input,
    /// Why it could not be decided.
    pub reason: String,
}

pub(super) fn parked_key(key: &str, input: &Input) -> Key {
    key![key, input.offset]
}

impl<S: Service> Decider<S> {
    /// The parked inputs, with the keys of their facts.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn parked_rows(&self) -> Result<Vec<(String, ParkedRow)>, Error> {
        let (mut out, mut scan) = (Vec::new(), self.view.scan(S::PARKED, Span::default()));
        loop {
            let rows = scan.next(1_000).await?;
            if rows.is_empty() {
                return Ok(out);
            }
            for (key, value) in rows {
                let row = serde_json::from_slice(&value).map_err(|source| Error::Row { table: S::PARKED.name, source })?;
                if let Some(Datum::Text(name)) = key.first() {
                    out.push((name.clone(), row));
                }
            }
        }
    }

    /// Decides parked inputs again, oldest first within a key; answers how many are no longer parked.
    ///
    /// # Errors
    /// When the log or the store fails.
    pub async fn take_parked(&mut self) -> Result<u64, Error> {
        self.take_up().await?;
        let taken = self.retake_parked().await;
        // Whatever happened, the rows say what is parked now.
        self.resume().await?;
        taken
    }

    async fn retake_parked(&mut self) -> Result<u64, Error> {
        let rows = self.parked_rows().await?;
        self.parked.clear();
        self.is_stale = true;
        let mut taken = 0;
        for (key, row) in rows {
            let Some(topic) = S::INPUTS.iter().find(|topic| topic.name == row.input.topic) else { continue };
            let (Ok(partition), Ok(offset)) = (u32::try_from(row.input.partition), u64::try_from(row.input.offset)) else { continue };
            let stored = self.log.read(topic, partition, LogOffset(offset), 1, 1).await?;
            let Some(stored) = stored.into_iter().find(|stored| stored.offset.0 == offset) else { continue };
            let fact =
                avro::decode(topic.name, &stored.record.value).map_err(|source| Error::Value { topic: topic.name.to_owned(), source })?;
            let mut group = self.decide_one(&fact).await?;
            if group.iter().any(|(draft, _, _)| draft.event == ChangeKind::Parked) {
                continue;
            }
            let note = Draft { event: ChangeKind::Noted, id: key, after: None, before: None, before_seq: 0, before_since: 0, note: None };
            group.push((note, None, TAKEN_AGAIN.to_owned()));
            let decided = self.chain(None, &row.input, group, 0)?;
            let positions = self.checkpoint.clone();
            self.append_and_apply(decided, &positions).await?;
            // The next input is decided on what this one wrote.
            self.settle().await?;
            taken += 1;
        }
        Ok(taken)
    }
}
