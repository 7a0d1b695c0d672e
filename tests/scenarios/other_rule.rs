//! A service under another rule than its own, for scenarios that decide all facts again.

use std::marker::PhantomData;

use bytes::Bytes;
use fold::rows::Rows;
use fold::service::{CurrentRecord, Decided, DraftOf, Service};
use jiff::civil::Date;
use schemas::avro;
use schemas::change::{Change, ChangeKind};
use schemas::details::ChangeRecord;
use schemas::event::Fact;
use schemas::position::Seq;
use schemas::tables::{Key, Table, ViewDef, Write};
use schemas::topics::Topic;

/// Another rule for a service.
pub(crate) trait OtherRule<S: Service>: Send + Sync + 'static {
    /// The rows that a decision reads, see [`Service::reads`].
    fn reads(fact: &Fact<S::Fact>) -> Vec<(&'static Table, Key)> {
        S::reads(fact)
    }

    /// Decides a fact by this rule, see [`Service::decide`].
    fn decide(rows: &mut Rows, fact: &Fact<S::Fact>) -> Decided<S>;
}

/// The service `S` under the rule `R`.
pub(crate) struct Under<S, R>(PhantomData<(S, R)>);

impl<S: Service, R: OtherRule<S>> Service for Under<S, R> {
    type Fact = S::Fact;
    type Record = S::Record;
    type Note = S::Note;

    const NAME: &'static str = S::NAME;
    const VIEW: &'static ViewDef = S::VIEW;
    const INPUTS: &'static [Topic] = S::INPUTS;
    const CHANGES: &'static Topic = S::CHANGES;
    const FEED: &'static Table = S::FEED;
    const RECORDS: &'static Table = S::RECORDS;
    const PARKED: &'static Table = S::PARKED;
    const DECISION_TABLES: &'static [&'static Table] = S::DECISION_TABLES;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<S::Fact>, avro::Error> {
        S::read(topic, value)
    }

    fn reads(fact: &Fact<S::Fact>) -> Vec<(&'static Table, Key)> {
        R::reads(fact)
    }

    /// A draft that the rule makes equal to the stored record changes none.
    fn decide(rows: &mut Rows, fact: &Fact<S::Fact>) -> Decided<Self> {
        let mut drafts = R::decide(rows, fact)?;
        for draft in drafts.iter_mut().filter(|draft| draft.after.is_some() && draft.after == draft.before) {
            (draft.event, draft.after, draft.before, draft.before_seq, draft.before_since) =
                (ChangeKind::Noted, None, None, Seq(0), Seq(0));
        }
        Ok(drafts)
    }

    fn apply(change: &Change<S::Record, S::Note>, record: &[u8]) -> Vec<Write> {
        S::apply(change, record)
    }

    fn change_details(record: &S::Record, change: &Change<S::Record, S::Note>) -> <S::Record as ChangeRecord>::Details {
        S::change_details(record, change)
    }

    fn backfill(
        record: &S::Record,
        details: &<S::Record as ChangeRecord>::Details,
        change: &Change<S::Record, S::Note>,
        recorded: Date,
    ) -> Option<bool> {
        S::backfill(record, details, change, recorded)
    }

    fn is_listed(record: &S::Record) -> bool {
        S::is_listed(record)
    }

    fn digest_row(value: &Bytes) -> Option<Bytes> {
        S::digest_row(value)
    }

    fn read_row(value: &[u8]) -> Result<CurrentRecord<Self>, serde_json::Error> {
        S::read_row(value)
    }

    fn difference(id: &str, before: Option<CurrentRecord<Self>>, after: Option<S::Record>) -> Option<DraftOf<Self>> {
        S::difference(id, before, after)
    }

    fn remember(table: &'static Table, key: &Key, value: Option<&Bytes>) -> Result<Option<DraftOf<Self>>, serde_json::Error> {
        S::remember(table, key, value)
    }
}
