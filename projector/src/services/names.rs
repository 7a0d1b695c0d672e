//! The names service: one record per trademark of the register.
//!
//! Promises: a record of the register never replaces one with a later day of its last transaction, whichever stream it came from; so the files of
//! the register may be read in any order. A sparse record, which gives the status only, leaves mark, owner and classes as they are.

use schemas::avro;
use schemas::event::{Fact, FactKind};
use schemas::facts::marks::MarkFact;
use schemas::topics::{CHANGES_NAMES, MARKS, Topic};
use schemas::views::names::{TABLES, Trademark, TrademarkDetails, classes_of, status_of};
use schemas::views::records::{RecordChange, RecordTables};

use super::records::{Read, Records, Rules, State};
use crate::service::Undecided;

/// The service's two folds.
pub type Names = Records<NamesRules>;

/// The rules of the service.
pub struct NamesRules;

impl Rules for NamesRules {
    type Fact = MarkFact;
    type Record = Trademark;

    const NAME: &'static str = "names";
    const TABLES: &'static RecordTables = &TABLES;
    const INPUTS: &'static [Topic] = &[MARKS];
    const CHANGES: &'static Topic = &CHANGES_NAMES;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<MarkFact>, avro::Error> {
        avro::decode(topic.name, value)
    }

    fn reads(fact: &Fact<MarkFact>) -> Vec<Read> {
        let serial = serial_of(&fact.key);
        vec![Read::Record(serial.to_owned()), Read::Source(serial.to_owned())]
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
        // The day of the last transaction is no field of the record: readers see no change when it moves alone.
        let known: Option<String> = state.source(serial)?;
        let day = &mark.transaction_date;
        if known.as_ref().is_some_and(|known| !day.is_empty() && day < known) {
            return Ok(());
        }
        let before = state.record(serial)?;
        state.put(record_of(serial, mark, before))?;
        if !day.is_empty() && known.as_ref() != Some(day) {
            state.remember(serial, Some(day))?;
        }
        Ok(())
    }
}

/// The serial number in the key of a fact, which follows the name of the upstream.
fn serial_of(key: &str) -> &str {
    key.rsplit_once('/').map_or(key, |(_, serial)| serial)
}

/// Returns the record after a fact.
fn record_of(serial: &str, fact: &MarkFact, before: Option<Trademark>) -> Trademark {
    let (intl_class, other_classes) = classes_of(fact.classes.iter().map(|class| class.code.as_str()));
    let now = Trademark {
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
    };
    let Some(before) = before.filter(|_| fact.sparse) else { return now };
    let or_before = |now: String, before: String| if now.is_empty() { before } else { now };
    Trademark {
        registration: or_before(now.registration, before.registration),
        filing_date: or_before(now.filing_date, before.filing_date),
        mark: before.mark,
        pseudo_marks: before.pseudo_marks,
        owner: before.owner,
        intl_class: before.intl_class,
        other_classes: before.other_classes,
        ..now
    }
}

#[cfg(test)]
mod tests;
