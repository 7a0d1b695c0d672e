//! Decides inputs again: parked inputs, which could not be decided and do not block other keys, and the input of a group of changes that a
//! crash interrupted.

use schemas::change::{ChangeKind, Input};
use schemas::event::Fact;
use schemas::key;
use schemas::position::Seq;
use schemas::reason::reason;
use schemas::tables::{Datum, Key};
use serde::{Deserialize, Serialize};
use view_store::store::Span;

use super::Decider;
use super::chain::{Decided, Logged, PendingDraft};
use crate::Error;
use fold::service::{Draft, Service};

/// The `reason` of a change that records that a parked input has been decided after all. Stored in logs; it cannot change.
pub(super) const RETRIED: &str = "taken again";

/// A parked input, as stored in the service's `parked` table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParkedRow {
    /// The position of the input.
    pub input: Input,
    /// Why it could not be decided.
    pub reason: String,
}

pub(super) fn parked_key(key: &str, input: &Input) -> Key {
    key![key, input.stored_offset()]
}

impl<S: Service> Decider<S> {
    /// Returns the parked inputs, with the keys of their facts.
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

    /// Decides parked inputs again, oldest first within a key. Returns how many are no longer parked.
    ///
    /// # Errors
    /// When the log or the store fails.
    pub async fn retry_parked(&mut self) -> Result<u64, Error> {
        self.apply_logged_changes().await?;
        let retried = self.retry_parked_rows().await;
        // Whether the retry failed or not, the stored rows say which inputs are parked.
        self.resume().await?;
        retried
    }

    async fn retry_parked_rows(&mut self) -> Result<u64, Error> {
        let rows = self.parked_rows().await?;
        self.parked.clear();
        self.is_stale = true;
        let mut retried = 0;
        for (_, row) in rows {
            let Some(fact) = self.input_fact(&row.input).await? else { continue };
            let Some(group) = self.decide_again(&fact).await? else { continue };
            let decided = self.chain(None, &row.input, group, &[])?;
            let positions = self.checkpoint.clone();
            self.append_and_apply(decided, 0, &positions).await?;
            // The next input is decided on the rows that this one wrote.
            self.wait_for_commit().await?;
            retried += 1;
        }
        Ok(retried)
    }

    /// Decides a parked fact again; `None` if it still cannot be decided.
    async fn decide_again(&mut self, fact: &Fact<S::Fact>) -> Result<Option<Vec<PendingDraft<S>>>, Error> {
        self.check_signing([fact]).await?;
        let mut group = self.decide_one(fact).await?;
        if group.iter().any(|(draft, _, _)| draft.event == ChangeKind::Parked) {
            return Ok(None);
        }
        let id = fact.key.clone();
        let note = Draft { event: ChangeKind::Noted, id, after: None, before: None, before_seq: Seq(0), before_since: Seq(0), note: None };
        group.push((note, None, RETRIED.to_owned()));
        Ok(Some(group))
    }

    /// Completes a group of changes that a crash interrupted: decides its input again and appends the changes that the log lacks. No other
    /// change may come between them; therefore this is done before everything else.
    ///
    /// # Errors
    /// [`Error::Overtaken`] if another decider continued the group meanwhile. The rows that it wrote may be those that this one decided on.
    pub(super) async fn complete_interrupted_group(&mut self) -> Result<(), Error> {
        let interrupted = std::mem::take(&mut self.interrupted);
        let (Some(first), Some(last)) = (interrupted.first(), interrupted.last()) else { return Ok(()) };
        let decided = match self.decide_interrupted_group(first, &interrupted).await {
            Ok(decided) => decided,
            // A decider appends a whole group before it writes rows of it. So if these rows were not those before the group, the log tells.
            Err(error) => return Err(if self.is_overtaken_after(last).await { Error::Overtaken { service: S::NAME } } else { error }),
        };
        let positions = self.checkpoint.clone();
        self.append_and_apply(decided, interrupted.len(), &positions).await?;
        self.wait_for_commit().await
    }

    /// Whether another decider continued an interrupted group after this change. If the log cannot tell, that is logged: why the group could not be decided is
    /// the error to report.
    async fn is_overtaken_after(&self, last: &Logged<S>) -> bool {
        match self.is_continued_after(last).await {
            Ok(is_continued) => is_continued,
            Err(error) => {
                tracing::warn!(
                    service = S::NAME,
                    error = reason(&error),
                    "cannot tell whether another decider continued an interrupted group"
                );
                false
            }
        }
    }

    /// Decides the input of a group of which the log has the changes `interrupted`, beginning with `first`. Returns the whole group.
    async fn decide_interrupted_group(&mut self, first: &Logged<S>, interrupted: &[Logged<S>]) -> Result<Vec<Decided<S>>, Error> {
        let input = first.change.input.clone();
        let lost = || Error::Refused(format!("{}: the input of change {} is not in the log", S::NAME, first.change.seq));
        let fact = self.input_fact(&input).await?.ok_or_else(lost)?;
        // A parked input that was being retried ends with another change than one that was decided for the first time.
        let again = self.parked.remove(&fact.key).filter(|offsets| input.offset.is_some_and(|offset| offsets.contains(&offset)));
        let group = match again {
            None => {
                self.check_signing([&fact]).await?;
                self.decide_one(&fact).await?
            }
            Some(offsets) => {
                let group = self.decide_again(&fact).await?.ok_or_else(lost)?;
                self.parked.insert(fact.key.clone(), offsets);
                group
            }
        };
        tracing::info!(
            service = S::NAME,
            seq = first.change.seq.0,
            logged = interrupted.len(),
            "completing an interrupted group of changes"
        );
        self.chain(None, &input, group, interrupted)
    }

    /// Reads the fact at the position of an input; `None` if there is none.
    async fn input_fact(&self, input: &Input) -> Result<Option<Fact<S::Fact>>, Error> {
        let Some(topic) = S::INPUTS.iter().find(|topic| topic.name == input.topic) else { return Ok(None) };
        let (Ok(partition), Some(offset)) = (u32::try_from(input.partition), input.offset) else { return Ok(None) };
        let stored = self.log.read(topic, partition, offset, 1, 1).await?;
        let stored = stored.into_iter().find(|stored| stored.offset == offset);
        stored
            .map(|stored| S::read(topic, &stored.record.value))
            .transpose()
            .map_err(|source| Error::Value { topic: topic.name.to_owned(), source })
    }
}
