//! What decisions about facts of every kind share: withdrawing a record, its dates, its anchor and its ticker symbol.

use std::collections::BTreeMap;

use fold::records::State;
use fold::service::Undecided;
use jiff::civil::Date;
use texts::dates::Precision;

use super::companies::{Named, name_key};
use crate::record::{Catalyst, Window, verify_hash};

/// The rules of the catalysts service.
pub struct CatalystsRules;

/// The decision state of the service.
pub(super) type Decision<'a, 'b> = &'a mut State<'b, CatalystsRules>;

/// Marks an event as withdrawn, if it is known.
pub(super) fn withdraw(state: Decision<'_, '_>, id: &str) -> Result<(), Undecided> {
    match state.record(id)? {
        Some(before) => state.put(Catalyst { status: "withdrawn".to_owned(), ..before }),
        None => Ok(()),
    }
}

/// Sets the window of an event, and its day if it is one.
pub(super) fn set_dates(record: &mut Catalyst, from: Date, to: Date, precision: Precision) {
    let name = match precision {
        Precision::Day => "day",
        Precision::Month => "month",
        Precision::Quarter => "quarter",
        // Four months: no finer word says so.
        Precision::Third | Precision::Half => "half",
        Precision::Year => "year",
    };
    record.date_precision = name.to_owned();
    record.date = if precision == Precision::Day && from == to { from.to_string() } else { String::new() };
    record.window = Window { from: from.to_string(), to: to.to_string() };
}

/// Sets the object that is verified, with its hash.
pub(super) fn set_anchor(record: &mut Catalyst, parts: &[(&str, &str)]) {
    record.verify_body = parts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>();
    record.verify_hash = verify_hash(&record.verify_body);
}

/// Sets the ticker of a company that is known by its name, and remembers that the record names it.
pub(super) fn set_ticker_by_name(state: Decision<'_, '_>, record: &mut Catalyst) -> Result<(), Undecided> {
    let Some(key) = name_key(&record.company) else { return Ok(()) };
    let before: Named = state.get(&key)?.unwrap_or_default();
    (record.cik, record.ticker) = before.ticker(&record.company);
    let mut named = before.clone();
    named.add(&record.id);
    if named != before {
        state.remember(&key, Some(&named))?;
    }
    Ok(())
}

/// Removes a record from those that name a company.
pub(super) fn forget_name(state: Decision<'_, '_>, company: &str, id: &str) -> Result<(), Undecided> {
    let Some(key) = name_key(company) else { return Ok(()) };
    let Some(mut named) = state.get::<Named>(&key)? else { return Ok(()) };
    if named.records.remove(id) {
        state.remember(&key, Some(&named).filter(|named| !named.is_empty()))?;
    }
    Ok(())
}
