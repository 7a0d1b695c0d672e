//! The rows that decisions read and write, and what decisions of every kind share.

use std::collections::BTreeSet;

use fold::records::State;
use fold::service::Undecided;
use velocity::calendar::hour_of;

/// The rules of the service.
pub struct PhrasesRules;

/// The state that a decision changes.
pub(super) type Rows<'a> = State<'a, PhrasesRules>;

/// Parses an hour of a fact.
pub(super) fn hour(text: &str) -> Result<i64, Undecided> {
    hour_of(text).ok_or_else(|| Undecided::Poison(format!("{text:?} is no hour")))
}

/// Adds a value to a list of a row; a value that is there changes nothing.
pub(super) fn add_to_list(state: &mut Rows<'_>, key: &str, value: &str) -> Result<(), Undecided> {
    let mut list: BTreeSet<String> = state.get(key)?.unwrap_or_default();
    if list.insert(value.to_owned()) {
        state.remember(key, Some(&list))?;
    }
    Ok(())
}
