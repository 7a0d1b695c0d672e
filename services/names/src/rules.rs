//! The names service: one record per trademark of the register.
//!
//! Promises: a record of the register never replaces one with a later day of its last transaction, whichever stream it came from; so the files of
//! the register may be read in any order. A sparse record, which gives the status only, leaves mark, owner and classes as they are: those of the
//! latest full record, also if that record is read later.

use crate::record::{TABLES, Trademark, TrademarkDetails, classes_of, status_of};
use schemas::avro;
use schemas::event::{Fact, FactKind};
use schemas::facts::marks::MarkFact;
use schemas::topics::{CHANGES_NAMES, MARKS, Topic};
use schemas::views::records::{RecordChange, RecordTables};
use serde::{Deserialize, Serialize};

use fold::records::{DecisionRow, Records, Rules, State};
use fold::service::Undecided;

/// The service's two folds.
pub type Names = Records<NamesRules>;

/// The rules of the service.
pub struct NamesRules;

impl Rules for NamesRules {
    type Fact = MarkFact;
    type Record = Trademark;

    const TABLES: &'static RecordTables = &TABLES;
    const INPUTS: &'static [Topic] = &[MARKS];
    const CHANGES: &'static Topic = &CHANGES_NAMES;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<MarkFact>, avro::Error> {
        avro::decode(topic.name, value)
    }

    fn reads(fact: &Fact<MarkFact>) -> Vec<DecisionRow> {
        let serial = serial_of(&fact.key);
        vec![DecisionRow::Record(serial.to_owned()), DecisionRow::State(serial.to_owned())]
    }

    fn change_details(record: &Trademark, change: &RecordChange<Trademark>) -> TrademarkDetails {
        change.before.as_ref().map(|before| TrademarkDetails::between(before, record)).unwrap_or_default()
    }

    fn decide(state: &mut State<'_, Self>, fact: &Fact<MarkFact>) -> Result<(), Undecided> {
        let mark = match (fact.kind, &fact.data) {
            (FactKind::Observed, Some(mark)) => mark,
            (FactKind::Observed, None) => return Err(Undecided::Poison("an observed fact without its record".to_owned())),
            // The register publishes no complete snapshots, so that no mark is ever gone from it.
            _ => return Ok(()),
        };
        let serial = serial_of(&fact.key);
        let known: Option<Days> = state.get(serial)?;
        let before = state.record(serial)?;
        let last = known.as_ref().map(Days::last).unwrap_or_default();
        let full = known.as_ref().and_then(Days::full).filter(|_| before.as_ref().is_some_and(is_described));
        let day = mark.transaction_date.as_str();
        let days = if !day.is_empty() && day < last {
            let Some(before) = before.filter(|_| !mark.sparse && full.is_none_or(|full| full <= day)) else { return Ok(()) };
            state.put(with_words_of(before, described(serial, mark)))?;
            Days::new(last, Some(day))
        } else {
            state.put(record_of(serial, mark, before))?;
            let last = if day.is_empty() { last } else { day };
            Days::new(last, if mark.sparse { full } else { Some(last) })
        };
        if !days.last().is_empty() && known.as_ref() != Some(&days) {
            state.remember(serial, Some(&days))?;
        }
        Ok(())
    }
}

/// The days of the transactions that a record is from, YYYY-MM-DD. They are no fields of the record: readers see no change when they move alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Days {
    /// All of the record is from this day.
    All(String),
    /// The status is from `last`, and the words, owner and classes from `full`; none if no full record was read yet.
    StatusLater { last: String, full: Option<String> },
}

impl Days {
    fn new(last: &str, full: Option<&str>) -> Self {
        if full == Some(last) {
            return Self::All(last.to_owned());
        }
        Self::StatusLater { last: last.to_owned(), full: full.map(str::to_owned) }
    }

    fn last(&self) -> &str {
        match self {
            Self::All(last) | Self::StatusLater { last, .. } => last,
        }
    }

    fn full(&self) -> Option<&str> {
        match self {
            Self::All(last) => Some(last),
            Self::StatusLater { full, .. } => full.as_deref(),
        }
    }
}

/// The serial number in the key of a fact, which follows the name of the upstream.
fn serial_of(key: &str) -> &str {
    key.rsplit_once('/').map_or(key, |(_, serial)| serial)
}

/// Returns the record after a fact that is not older.
fn record_of(serial: &str, fact: &MarkFact, before: Option<Trademark>) -> Trademark {
    let now = described(serial, fact);
    match before.filter(|_| fact.sparse) {
        Some(before) => with_words_of(now, before),
        None => now,
    }
}

/// Returns the record that a fact describes alone.
fn described(serial: &str, fact: &MarkFact) -> Trademark {
    let (intl_class, other_classes) = classes_of(fact.classes.iter().map(|class| class.code.as_str()));
    Trademark {
        id: serial.to_owned(),
        serial: serial.to_owned(),
        registration: fact.registration.clone(),
        mark: fact.mark.clone(),
        pseudo_marks: fact.pseudo_marks.clone(),
        owner: fact.owners.join("; "),
        intl_class,
        other_classes,
        status: status_of(&fact.status_code).to_owned(),
        status_code: fact.status_code.clone(),
        filing_date: fact.filing_date.clone(),
    }
}

/// Returns a record with the status of one, and what a sparse fact does not give of another.
fn with_words_of(status: Trademark, words: Trademark) -> Trademark {
    let or_else = |own: String, other: String| if own.is_empty() { other } else { own };
    Trademark {
        registration: or_else(status.registration, words.registration),
        filing_date: or_else(status.filing_date, words.filing_date),
        mark: words.mark,
        pseudo_marks: words.pseudo_marks,
        owner: words.owner,
        intl_class: words.intl_class,
        other_classes: words.other_classes,
        ..status
    }
}

/// Whether a record has anything that only a full fact gives. Without it the record is from sparse facts, also where [`Days`] that an earlier version
/// wrote do not say so.
fn is_described(record: &Trademark) -> bool {
    !(record.mark.is_empty() && record.owner.is_empty() && record.intl_class.is_empty() && record.other_classes.is_empty())
}

#[cfg(test)]
mod tests;
