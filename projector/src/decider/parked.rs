//! Inputs decided once more: those that could not be decided, kept with their reason, in the way of no other key, and taken again when
//! asked; and those whose changes a crash cut short.

use schemas::change::{ChangeKind, Input};
use schemas::event::Fact;
use schemas::key;
use schemas::position::LogOffset;
use schemas::tables::{Datum, Key};
use serde::{Deserialize, Serialize};
use view_store::store::Span;

use super::Decider;
use super::chain::Undone;
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
        for (_, row) in rows {
            let Some(fact) = self.input_fact(&row.input).await? else { continue };
            let Some(group) = self.decide_again(&fact).await? else { continue };
            let decided = self.chain(None, &row.input, group, &[])?;
            let positions = self.checkpoint.clone();
            self.append_and_apply(decided, 0, &positions).await?;
            // The next input is decided on what this one wrote.
            self.settle().await?;
            taken += 1;
        }
        Ok(taken)
    }

    /// What a parked fact means now; `None` if it still cannot be decided.
    async fn decide_again(&mut self, fact: &Fact<S::Fact>) -> Result<Option<Vec<Undone<S>>>, Error> {
        self.check_signing([fact]).await;
        let mut group = self.decide_one(fact).await?;
        if group.iter().any(|(draft, _, _)| draft.event == ChangeKind::Parked) {
            return Ok(None);
        }
        let id = fact.key.clone();
        let note = Draft { event: ChangeKind::Noted, id, after: None, before: None, before_seq: 0, before_since: 0, note: None };
        group.push((note, None, TAKEN_AGAIN.to_owned()));
        Ok(Some(group))
    }

    /// Ends a group of changes that a crash cut: its input is decided once more, and what the log lacks of it is appended. Nothing may
    /// come between its changes, so this comes before everything else.
    pub(super) async fn complete_cut(&mut self) -> Result<(), Error> {
        let cut = std::mem::take(&mut self.cut);
        let Some(first) = cut.first() else { return Ok(()) };
        let input = first.change.input.clone();
        let lost = || Error::Refused(format!("{}: the input of change {} is not in the log", S::NAME, first.change.seq));
        let fact = self.input_fact(&input).await?.ok_or_else(lost)?;
        // Was it being decided, or taken again after it had been parked?
        let again = self.parked.remove(&fact.key).filter(|offsets| offsets.contains(&input.offset));
        let group = match again {
            None => {
                self.check_signing([&fact]).await;
                self.decide_one(&fact).await?
            }
            Some(offsets) => {
                let group = self.decide_again(&fact).await?.ok_or_else(lost)?;
                self.parked.insert(fact.key.clone(), offsets);
                group
            }
        };
        tracing::info!(service = S::NAME, seq = first.change.seq, logged = cut.len(), "ending a group of changes that was cut");
        let decided = self.chain(None, &input, group, &cut)?;
        let positions = self.checkpoint.clone();
        self.append_and_apply(decided, cut.len(), &positions).await?;
        self.settle().await
    }

    /// The fact at an input's place; `None` if there is none.
    async fn input_fact(&self, input: &Input) -> Result<Option<Fact<S::Fact>>, Error> {
        let Some(topic) = S::INPUTS.iter().find(|topic| topic.name == input.topic) else { return Ok(None) };
        let (Ok(partition), Ok(offset)) = (u32::try_from(input.partition), u64::try_from(input.offset)) else { return Ok(None) };
        let stored = self.log.read(topic, partition, LogOffset(offset), 1, 1).await?;
        let stored = stored.into_iter().find(|stored| stored.offset.0 == offset);
        stored
            .map(|stored| S::read(topic, &stored.record.value))
            .transpose()
            .map_err(|source| Error::Value { topic: topic.name.to_owned(), source })
    }
}
