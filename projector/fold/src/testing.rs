//! A service in memory, for tests of its fold: facts in, changes and rows out, and both again.

#![expect(clippy::unwrap_used, reason = "a test that meets an error here fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proofs::hash::Hash32;
use proofs::receipt::SigningKeys;
use schemas::avro::{self, Encoder};
use schemas::change::{Change, ChangeKind, Input};
use schemas::event::{Fact, FactKind};
use schemas::key;
use schemas::position::Seq;
use schemas::tables::{Datum, Key, Table, Write};
use schemas::views::records::Row;
use serde::de::DeserializeOwned;

use crate::records::{Records, Rules};
use crate::rows::Rows;
use crate::service::{Service, Undecided, records_added};

/// The rows and changes that the facts of one service led to.
pub struct Folded<S: Service> {
    /// The rows of all tables.
    pub rows: BTreeMap<(&'static str, Key), Bytes>,
    /// The facts that were decided, in order.
    pub facts: Vec<Fact<S::Fact>>,
    /// The changes, in order.
    pub changes: Vec<Change<S::Record, S::Note>>,
    /// The keys that decisions may sign with.
    pub keys: Arc<SigningKeys>,
    /// How often a decision was repeated, because it read rows that `reads` had not named.
    pub repeats: usize,
}

impl<S: Service> Default for Folded<S> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), facts: Vec::new(), changes: Vec::new(), keys: Arc::default(), repeats: 0 }
    }
}

impl<S: Service<Fact: Clone>> Folded<S> {
    /// Decides a fact that must be decided, and applies its changes.
    ///
    /// # Panics
    /// When the fact is not decided.
    pub fn decide(&mut self, fact: &Fact<S::Fact>) {
        self.try_decide(fact).unwrap();
    }

    /// Decides a fact and applies its changes.
    ///
    /// # Errors
    /// When the fact is not decided. It is not among the facts then.
    ///
    /// # Panics
    /// When a record cannot be serialized.
    pub fn try_decide(&mut self, fact: &Fact<S::Fact>) -> Result<(), Undecided> {
        let mut rows = Rows::signing(Arc::clone(&self.keys));
        let mut wanted = S::reads(fact);
        let drafts = loop {
            for (table, key) in wanted {
                let value = self.rows.get(&(table.name, key.clone())).cloned();
                rows.write(Write { table, key, value, at: 0 });
            }
            match S::decide(&mut rows, fact) {
                Ok(drafts) => break drafts,
                Err(Undecided::Miss) => wanted = rows.take_missing(),
                Err(error) => return Err(error),
            }
            self.repeats += 1;
        };
        for draft in drafts {
            let change = Change {
                seq: self.seq().next(),
                before_seq: draft.before_seq,
                before_since: draft.before_since,
                note: draft.note,
                ..change(draft.event, draft.id, [draft.before, draft.after])
            };
            self.apply(change);
        }
        self.facts.push(fact.clone());
        Ok(())
    }

    fn apply(&mut self, change: Change<S::Record, S::Note>) {
        let record = serde_json::to_vec(&change.after).unwrap();
        for write in S::apply(&change, &record) {
            match write.value {
                Some(value) => drop(self.rows.insert((write.table.name, write.key), value)),
                None => drop(self.rows.remove(&(write.table.name, write.key))),
            }
        }
        self.changes.push(change);
    }

    /// Applies the changes again, to no rows. Each is read back from the form that it has in the log.
    ///
    /// # Panics
    /// When a change does not fit the schema of its topic.
    pub fn replay(&self) -> Self {
        let (mut replayed, mut encoder) = (Self::default(), Encoder::new(S::CHANGES.name).unwrap());
        for change in &self.changes {
            let logged = encoder.encode(change).unwrap();
            replayed.apply(avro::decode(S::CHANGES.name, &logged).unwrap());
        }
        replayed
    }

    /// Decides the facts again, with the same keys and no rows.
    ///
    /// # Panics
    /// When a fact is not decided.
    pub fn decide_again(&self) -> Self {
        let mut again = Self { keys: Arc::clone(&self.keys), ..Self::default() };
        self.facts.iter().for_each(|fact| again.decide(fact));
        again
    }

    /// Fails unless a replay gives the same rows and digest, and the facts, decided again, give these and as many changes.
    ///
    /// # Panics
    /// When there was no fact, or anything differs.
    pub fn assert_rebuilds(&self) {
        assert!(!self.facts.is_empty());
        let outcome = |folded: &Self| (folded.rows.len(), folded.changes.len(), folded.digest());
        for (how, rebuilt) in [("replayed", self.replay()), ("decided again", self.decide_again())] {
            let other = rebuilt.rows.iter().find(|(key, row)| self.rows.get(*key) != Some(*row));
            assert_eq!(other, None, "{how}");
            assert_eq!(outcome(&rebuilt), outcome(self), "{how}");
        }
    }

    /// The hash of what the engine's digest covers: the current records, in the order of their ids.
    pub fn digest(&self) -> Hash32 {
        let records: Vec<Bytes> = self.table(S::RECORDS).filter_map(|(_, row)| S::digest_row(row)).collect();
        let parts: Vec<&[u8]> = records.iter().map(|record| &record[..]).collect();
        Hash32::of_parts(&parts)
    }

    /// The seq of the last change; 0 before the first.
    pub fn seq(&self) -> Seq {
        self.changes.last().map_or(Seq(0), |change| change.seq)
    }

    /// The changes that have a record, in order.
    pub fn changes_of_records(&self) -> impl DoubleEndedIterator<Item = &Change<S::Record, S::Note>> {
        self.changes.iter().filter(|change| change.after.is_some())
    }

    /// The rows of a table, in the order of their keys.
    pub fn table(&self, table: &Table) -> impl DoubleEndedIterator<Item = (&Key, &Bytes)> {
        self.rows.iter().filter(move |((name, _), _)| *name == table.name).map(|((_, key), value)| (key, value))
    }

    /// The number of current records, as the changes count it.
    pub fn counted_records(&self) -> i64 {
        self.changes.iter().map(records_added::<S>).sum()
    }

    /// The latest versions of all records, by their ids.
    ///
    /// # Panics
    /// When a row cannot be read.
    pub fn records(&self) -> BTreeMap<String, S::Record> {
        let read = |(key, value): (&Key, &Bytes)| match key.first() {
            Some(Datum::Text(id)) => (id.clone(), serde_json::from_slice::<Row<S::Record>>(value).unwrap().record),
            _ => panic!("{key:?}"),
        };
        self.table(S::RECORDS).map(read).collect()
    }
}

impl<T: Rules> Folded<Records<T>> {
    /// The decision state under a key.
    ///
    /// # Panics
    /// When it does not have the form that is asked for.
    pub fn state<V: DeserializeOwned>(&self, key: &str) -> Option<V> {
        self.rows.get(&(T::TABLES.state.name, key![key])).map(|row| serde_json::from_slice(row).unwrap())
    }
}

/// A change of a record, with the record before and after it, as the first change of a log whose other fields are empty.
pub fn change<R, N>(event: ChangeKind, id: impl Into<String>, [before, after]: [Option<R>; 2]) -> Change<R, N> {
    Change {
        seq: Seq(1),
        prev_hash: Hash32::ZERO,
        event,
        id: id.into(),
        recorded_at: 0,
        input: Input::default(),
        following: 0,
        before_seq: Seq(0),
        before_since: Seq(0),
        after,
        before,
        note: None,
        through: None,
        reason: String::new(),
    }
}

/// A fact with this key and content, observed at a time in milliseconds since 1970.
pub fn fact<D>(key: impl Into<String>, kind: FactKind, observed_at: i64, data: Option<D>) -> Fact<D> {
    Fact {
        id: Hash32::ZERO,
        kind,
        key: key.into(),
        version: 1,
        prev_hash: Hash32::ZERO,
        content_hash: Hash32::ZERO,
        upstream: String::new(),
        observed_at,
        superseded_by: String::new(),
        data,
        run: None,
    }
}
