//! The common part of services with one kind of record. A fact changes decision state and records; the differences from the current records
//! become changes. A service implements [`Rules`]; `decide` and `apply` are here.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use bytes::Bytes;
use jiff::civil::Date;
use proofs::receipt::SigningKeys;
use schemas::avro;
use schemas::change::ChangeKind;
use schemas::clock::day_of;
use schemas::details::ChangeRecord;
use schemas::event::Fact;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::{Datum, Key, Table, ViewDef, Write};
use schemas::topics::Topic;
use schemas::views::records::{Place, Record, RecordChange, RecordTables, RememberedRow, RememberedRows, Row, Term};
use serde::Serialize;
use serde::de::DeserializeOwned;
use texts::folding::is_same_content;

use crate::rows::Rows;
use crate::service::{CurrentRecord, Draft, Service};
use crate::undecided::{Undecided, all};

/// Decodes a fact of one of several input topics, whose records are boxed in an enum with a variant for each topic. `variant`: the variant of the topic.
///
/// # Errors
/// When the value does not have the form that the topic holds.
pub fn read_variant<D: DeserializeOwned, F>(
    topic: &Topic,
    value: &[u8],
    variant: impl FnOnce(Box<D>) -> F,
) -> Result<Fact<F>, avro::Error> {
    avro::decode(topic.name, value).map(|fact: Fact<D>| fact.map(|data| variant(Box::new(data))))
}

/// The rules of a service with one kind of record.
pub trait Rules: Send + Sync + 'static {
    /// The records of the input facts.
    type Fact: Send + Sync;
    /// The record that readers see.
    type Record: Record;

    /// The tables of the service.
    const TABLES: &'static RecordTables;
    /// The name of the service, which its view has as well.
    const NAME: &'static str = Self::TABLES.view.name;
    /// The topics that the service decides from.
    const INPUTS: &'static [Topic];
    /// The change topic of the service.
    const CHANGES: &'static Topic;
    /// See [`Service::FINAL`].
    const FINAL: bool = false;
    /// The tables that decisions read: records and decision state.
    const DECISION_TABLES: &'static [&'static Table] = &[Self::TABLES.records, Self::TABLES.state];

    /// Decodes a fact of one of the input topics.
    ///
    /// # Errors
    /// When the value does not have the form that the topic holds.
    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<Self::Fact>, avro::Error>;

    /// Returns the rows that [`Self::decide`] will read, as far as the fact tells: they are fetched for a whole batch at once. One that is not read after
    /// all does no harm.
    fn reads(fact: &Fact<Self::Fact>) -> Vec<DecisionRow>;

    /// See [`Service::change_details`].
    #[must_use]
    fn change_details(_record: &Self::Record, _change: &RecordChange<Self::Record>) -> <Self::Record as ChangeRecord>::Details {
        <Self::Record as ChangeRecord>::Details::default()
    }

    /// See [`Service::backfill`].
    #[must_use]
    fn backfill(
        record: &Self::Record,
        details: &<Self::Record as ChangeRecord>::Details,
        change: &RecordChange<Self::Record>,
        recorded: Date,
    ) -> Option<bool> {
        record.is_backfill(details, change.event == ChangeKind::New, recorded).then_some(true)
    }

    /// Returns the entries of the terms table that a row of decision state writes: an index of what is remembered, which answers as of an
    /// earlier time read. `value` is the row as JSON, empty if it was deleted. Their dimension is none of the record's.
    #[must_use]
    fn index(_key: &str, _value: &str, _seq: Seq) -> Vec<Write> {
        Vec::new()
    }

    /// Returns the entries of an index as [`Self::index`] does, of which one is kept for each day on which changes were recorded: their keys have the day in
    /// place of the seq, so that the last one of a day replaces the others.
    #[must_use]
    fn index_by_day(_key: &str, _value: &str, _seq: Seq, _recorded: Date) -> Vec<Write> {
        Vec::new()
    }

    /// Returns what a record becomes that the rules no longer create when all facts are decided again; `None` leaves it unchanged.
    #[must_use]
    fn no_longer_created(_record: &Self::Record) -> Option<Self::Record> {
        None
    }

    /// See [`Service::signs`].
    #[must_use]
    fn signs(_fact: &Fact<Self::Fact>) -> bool {
        false
    }

    /// See [`Service::is_confirmed`]: whether the decision state under a key is.
    #[must_use]
    fn is_confirmed(_key: &str) -> bool {
        false
    }

    /// Applies a fact to the state. Deterministic.
    ///
    /// # Errors
    /// As [`Service::decide`].
    fn decide(state: &mut State<'_, Self>, fact: &Fact<Self::Fact>) -> Result<(), Undecided>
    where
        Self: Sized;
}

/// A row that a decision reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecisionRow {
    /// The record with an id.
    Record(String),
    /// The decision state under a key.
    State(String),
}

/// A stored row, and the record that it is to have.
type RecordUpdate<R> = (Option<Row<R>>, Option<R>);

/// The state that a decision changes: the rows, with the changes of this decision.
pub struct State<'a, T: Rules> {
    rows: &'a mut Rows,
    records: BTreeMap<String, RecordUpdate<T::Record>>,
    state: BTreeMap<String, String>,
}

impl<'a, T: Rules> State<'a, T> {
    fn new(rows: &'a mut Rows) -> Self {
        Self { rows, records: BTreeMap::new(), state: BTreeMap::new() }
    }

    /// Asks for rows that the decision will read: those that have not been fetched are fetched at once, and the decision is repeated once for all of them.
    ///
    /// # Errors
    /// When one of the rows has not been fetched.
    pub fn need(&mut self, reads: impl IntoIterator<Item = DecisionRow>) -> Result<(), Undecided> {
        let rows = reads.into_iter().map(row_of::<T>);
        all(rows.map(|(table, key)| self.rows.get(table, &key).map(drop))).map(drop)
    }

    /// Returns a record.
    ///
    /// # Errors
    /// When the row has not been fetched or cannot be decoded.
    pub fn record(&mut self, id: &str) -> Result<Option<T::Record>, Undecided> {
        self.load(id)?;
        Ok(self.records.get(id).and_then(|(_, now)| now.clone()))
    }

    /// Loads a record that this decision has not read yet.
    fn load(&mut self, id: &str) -> Result<(), Undecided> {
        if !self.records.contains_key(id) {
            let row = self.stored_row(id)?;
            let record = row.as_ref().map(|row| row.record.clone());
            self.records.insert(id.to_owned(), (row, record));
        }
        Ok(())
    }

    /// Returns the stored record, without the changes of this decision: call it before the decision changes the record. It is for decisions that compare
    /// many records and change few.
    ///
    /// # Errors
    /// As [`Self::record`].
    pub fn unchanged_record(&mut self, id: &str) -> Result<Option<T::Record>, Undecided> {
        Ok(self.stored_row(id)?.map(|row| row.record))
    }

    fn stored_row(&mut self, id: &str) -> Result<Option<Row<T::Record>>, Undecided> {
        self.rows.get_json(T::TABLES.records, &key![id])
    }

    /// Sets a record.
    ///
    /// # Errors
    /// As [`Self::record`].
    pub fn put(&mut self, record: T::Record) -> Result<(), Undecided> {
        self.load(record.id())?;
        if let Some((_, now)) = self.records.get_mut(record.id()) {
            *now = Some(record);
        }
        Ok(())
    }

    /// Adds a record that cannot exist yet, because its id depends on this decision.
    pub fn add(&mut self, record: T::Record) {
        self.records.insert(record.id().to_owned(), (None, Some(record)));
    }

    /// Returns the decision state under a key.
    ///
    /// # Errors
    /// As [`Self::record`].
    pub fn get<S: DeserializeOwned>(&mut self, key: &str) -> Result<Option<S>, Undecided> {
        match self.state.get(key).map(String::as_str) {
            Some("") => Ok(None),
            Some(text) => serde_json::from_str(text).map(Some).map_err(|error| Undecided::Poison(format!("state {key}: {error}"))),
            None => self.rows.get_json(T::TABLES.state, &key![key]),
        }
    }

    /// Sets the decision state under a key; `None` deletes it.
    ///
    /// # Errors
    /// When the value cannot be serialized.
    pub fn remember<S: Serialize>(&mut self, key: &str, value: Option<&S>) -> Result<(), Undecided> {
        let text = value.map(serde_json::to_string).transpose().map_err(|error| Undecided::Poison(format!("state {key}: {error}")))?;
        self.state.insert(key.to_owned(), text.unwrap_or_default());
        Ok(())
    }

    /// Changes the decision state under a key, the default value if there is none. Nothing is remembered if it remains as it was; the default value is
    /// deleted.
    ///
    /// # Errors
    /// As [`Self::record`].
    pub fn change<S>(&mut self, key: &str, change: impl FnOnce(&mut S)) -> Result<(), Undecided>
    where
        S: Clone + Default + DeserializeOwned + PartialEq + Serialize,
    {
        let before: S = self.get(key)?.unwrap_or_default();
        let mut now = before.clone();
        change(&mut now);
        if now == before { Ok(()) } else { self.remember(key, Some(&now).filter(|now| **now != S::default())) }
    }

    /// Adds to the counts under a key: a map from a cell to a number. Cells of 0 are removed. Counts without cells are remembered, too, because an index has
    /// an entry for each change of them.
    ///
    /// # Errors
    /// As [`Self::record`].
    pub fn count(&mut self, key: &str, changes: impl IntoIterator<Item = (String, i64)>) -> Result<(), Undecided> {
        let mut counts: BTreeMap<String, i64> = self.get(key)?.unwrap_or_default();
        for (cell, change) in changes {
            *counts.entry(cell).or_default() += change;
        }
        counts.retain(|_, count| *count > 0);
        self.remember(key, Some(&counts))
    }

    /// Returns the keys that decisions may sign with.
    #[must_use]
    pub fn keys(&self) -> &SigningKeys {
        self.rows.keys()
    }

    /// Returns the drafts of all changes to the state.
    fn drafts(self, id: &str) -> Vec<Draft<T::Record, RememberedRows>> {
        let mut drafts: Vec<Draft<T::Record, RememberedRows>> = self
            .records
            .into_iter()
            .filter_map(|(id, (before, after))| difference(&id, before.map(|row| (row.record, row.seq, row.since)), after))
            .collect();
        let rows: Vec<RememberedRow> = self.state.into_iter().map(|(key, value)| RememberedRow { key, value }).collect();
        if !rows.is_empty() {
            let note = Some(RememberedRows { rows });
            match drafts.first_mut() {
                Some(first) => first.note = note,
                None => drafts.push(Draft { note, ..note_draft(id) }),
            }
        }
        drafts
    }
}

/// A service with one kind of record, which implements [`Service`] from its [`Rules`].
pub struct Records<T>(PhantomData<T>);

impl<T: Rules> Service for Records<T> {
    type Fact = T::Fact;
    type Record = T::Record;
    type Note = RememberedRows;

    const NAME: &'static str = T::NAME;
    const VIEW: &'static ViewDef = T::TABLES.view;
    const INPUTS: &'static [Topic] = T::INPUTS;
    const CHANGES: &'static Topic = T::CHANGES;
    const FINAL: bool = T::FINAL;
    const FEED: &'static Table = T::TABLES.feed;
    const RECORDS: &'static Table = T::TABLES.records;
    const PARKED: &'static Table = T::TABLES.parked;
    const DECISION_TABLES: &'static [&'static Table] = T::DECISION_TABLES;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<T::Fact>, avro::Error> {
        T::read(topic, value)
    }

    fn reads(fact: &Fact<T::Fact>) -> Vec<(&'static Table, Key)> {
        T::reads(fact).into_iter().map(row_of::<T>).collect()
    }

    fn signs(fact: &Fact<T::Fact>) -> bool {
        T::signs(fact)
    }

    fn is_confirmed(table: &Table, key: &Key) -> bool {
        table.name == T::TABLES.state.name && matches!(key.first(), Some(Datum::Text(key)) if T::is_confirmed(key))
    }

    fn decide(rows: &mut Rows, fact: &Fact<T::Fact>) -> Result<Vec<Draft<T::Record, RememberedRows>>, Undecided> {
        let mut state = State::new(rows);
        T::decide(&mut state, fact)?;
        Ok(state.drafts(&fact.key))
    }

    fn apply(change: &RecordChange<T::Record>, record: &[u8]) -> Vec<Write> {
        let (mut writes, recorded) = (Vec::new(), day_of(change.recorded_at));
        for RememberedRow { key, value } in change.note.iter().flat_map(|note| &note.rows) {
            writes.extend(T::index(key, value, change.seq));
            writes.extend(T::index_by_day(key, value, change.seq, recorded));
            writes.push(match value.as_str() {
                "" => Write::delete(T::TABLES.state, key![key.as_str()]),
                value => Write::put(T::TABLES.state, key![key.as_str()], Bytes::from(value.to_owned())),
            });
        }
        if let Some(through) = &change.through
            && let Ok(value) = serde_json::to_vec(through)
        {
            writes.push(Write::put(T::TABLES.through, key![through.upstream.as_str(), change.seq], Bytes::from(value)));
        }
        let Some(after) = &change.after else { return writes };
        let since = write_places(T::TABLES, change, after, &mut writes);
        writes.push(Write::put(T::TABLES.records, key![after.id()], row_json(change.seq, since, record)));
        if let Some(before) = change.before.as_ref().and_then(|before| serde_json::to_vec(before).ok()) {
            let row = row_json(change.before_seq, change.before_since, &before);
            writes.push(Write::put(T::TABLES.history, key![after.id(), change.before_seq], row));
        }
        write_terms(T::TABLES, change, &mut writes);
        writes
    }

    fn change_details(record: &T::Record, change: &RecordChange<T::Record>) -> <T::Record as ChangeRecord>::Details {
        T::change_details(record, change)
    }

    fn backfill(
        record: &T::Record,
        details: &<T::Record as ChangeRecord>::Details,
        change: &RecordChange<T::Record>,
        recorded: Date,
    ) -> Option<bool> {
        T::backfill(record, details, change, recorded)
    }

    fn is_listed(record: &T::Record) -> bool {
        record.is_listed()
    }

    fn digest_row(value: &Bytes) -> Option<Bytes> {
        let row: Row<T::Record> = serde_json::from_slice(value).ok()?;
        row.record.is_listed().then(|| serde_json::to_vec(&row.record).ok().map(Bytes::from)).flatten()
    }

    fn read_row(value: &[u8]) -> Result<CurrentRecord<Self>, serde_json::Error> {
        serde_json::from_slice(value).map(|row: Row<T::Record>| (row.record, row.seq, row.since))
    }

    fn difference(id: &str, before: Option<CurrentRecord<Self>>, after: Option<T::Record>) -> Option<Draft<T::Record, RememberedRows>> {
        let after = after.or_else(|| before.as_ref().and_then(|(record, ..)| T::no_longer_created(record)));
        difference(id, before, after)
    }

    fn remember(
        table: &'static Table,
        key: &Key,
        value: Option<&Bytes>,
    ) -> Result<Option<Draft<T::Record, RememberedRows>>, serde_json::Error> {
        let Some(Datum::Text(key)) = key.first().filter(|_| table == T::TABLES.state) else { return Ok(None) };
        let value = value.map(|value| serde_json::from_slice::<Box<serde_json::value::RawValue>>(value)).transpose()?;
        let row = RememberedRow { key: key.clone(), value: value.map(|value| value.get().to_owned()).unwrap_or_default() };
        Ok(Some(Draft { note: Some(RememberedRows { rows: vec![row] }), ..note_draft("") }))
    }
}

/// The table and the key of a row that a decision reads.
fn row_of<T: Rules>(read: DecisionRow) -> (&'static Table, Key) {
    match read {
        DecisionRow::Record(id) => (T::TABLES.records, key![id]),
        DecisionRow::State(key) => (T::TABLES.state, key![key]),
    }
}

/// Writes the terms of the record after a change, which index the change.
fn write_terms<R: Record>(tables: &RecordTables, change: &RecordChange<R>, writes: &mut Vec<Write>) {
    let before: Vec<Term> = change.before.iter().flat_map(Record::terms).collect();
    let mut terms: Vec<Term> = change.after.iter().flat_map(Record::terms).collect();
    terms.sort_unstable();
    terms.dedup();
    for term in terms {
        if R::SEARCHED.contains(&term.dimension) && !before.contains(&term) {
            writes.push(Write::put(tables.names, key![term.dimension, term.shard(), term.value.as_str()], Bytes::new()));
        }
        writes.push(Write::put(tables.terms, key![term.text(), change.seq.stored() / tables.term_bucket, change.seq], Bytes::new()));
    }
}

/// Creates a draft that changes no record.
fn note_draft<R>(id: &str) -> Draft<R, RememberedRows> {
    Draft { event: ChangeKind::Noted, id: id.to_owned(), after: None, before: None, before_seq: Seq(0), before_since: Seq(0), note: None }
}

/// Returns the draft that turns one record into another, if they differ. A record without another one is left unchanged: no fact says that
/// it is gone.
fn difference<R: Record>(id: &str, before: Option<(R, Seq, Seq)>, after: Option<R>) -> Option<Draft<R, RememberedRows>> {
    let after = after?;
    let (event, before, before_seq, before_since) = match before {
        // A record that was gone before it was ever shown is not a change.
        None if !after.is_listed() => return None,
        None => (ChangeKind::New, None, Seq(0), Seq(0)),
        Some((before, _, _)) if is_same_content(&before, &after) => return None,
        Some((before, seq, since)) => (ChangeKind::Modified, Some(before), seq, since),
    };
    Some(Draft { event, id: id.to_owned(), after: Some(after), before, before_seq, before_since, note: None })
}

/// Writes the places of a record in ranked lists: all of them if one of them changed. Returns the seq since which the record has them; 0 if
/// it has none.
fn write_places<R: Record>(tables: &RecordTables, change: &RecordChange<R>, after: &R, writes: &mut Vec<Write>) -> Seq {
    let Some(table) = tables.places else { return Seq(0) };
    let (before, now) = (change.before.as_ref().map(places).unwrap_or_default(), places(after));
    if before == now {
        return change.before_since;
    }
    let mut put = |places: Vec<Place>, since: Seq, until: Seq| {
        let value = Bytes::from(format!(r#"{{"until":{until}}}"#));
        for Place { list, bucket, rank } in places {
            writes.push(Write::put(table, key![list, bucket, rank, after.id(), since], value.clone()));
        }
    };
    let since = if now.is_empty() { Seq(0) } else { change.seq };
    put(before, change.before_since, change.seq);
    put(now, change.seq, Seq(0));
    since
}

/// The places of a record in a fixed order; none if it is not listed.
fn places<R: Record>(record: &R) -> Vec<Place> {
    let mut places = if record.is_listed() { record.places() } else { Vec::new() };
    places.sort_unstable();
    places.dedup();
    places
}

fn row_json(seq: Seq, since: Seq, record: &[u8]) -> Bytes {
    let since = if since == Seq(0) { String::new() } else { format!(r#""since":{since},"#) };
    let mut out = format!(r#"{{"seq":{seq},{since}"record":"#).into_bytes();
    out.extend_from_slice(record);
    out.push(b'}');
    Bytes::from(out)
}

#[cfg(test)]
mod tests {
    use schemas::views::awards::Award;

    use super::*;

    /// Proves that a record in another normal form of its texts is no change, and that a corrected accent or case is one.
    #[test]
    fn normal_forms_are_no_change() {
        let award_to = |recipient: &str| Award { id: "award/1".into(), recipient: recipient.into(), ..Award::default() };
        let change =
            |before: &str, after: &str| difference("award/1", Some((award_to(before), Seq(1), Seq(0))), Some(award_to(after))).is_some();
        let (composed, decomposed) = ("Universit\u{e9}", "Universite\u{301}");
        assert!(!change(decomposed, composed) && !change(composed, decomposed) && !change(composed, composed));
        assert!(change(composed, "Universite") && change(composed, "UNIVERSIT\u{c9}") && change("Universite", decomposed));
    }
}
