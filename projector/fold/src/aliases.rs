//! The earlier numbers of records: under which number a record is continued, so that readers find it by each of its numbers, at any time.

use schemas::views::records::{alias_key, former_key};

use crate::records::{DecisionRow, Rules, State};
use crate::service::Undecided;

/// The decision state that [`remember`] reads.
pub fn reads<'a>(number: &str, aliases: &'a [String]) -> impl Iterator<Item = DecisionRow> + 'a {
    let former = (!aliases.is_empty()).then(|| DecisionRow::State(former_key(number)));
    aliases.iter().map(|alias| DecisionRow::State(alias_key(alias))).chain(former)
}

/// Remembers that a record has earlier numbers.
///
/// # Errors
/// When a row has not been fetched or cannot be decoded.
pub fn remember<T: Rules>(state: &mut State<'_, T>, number: &str, aliases: &[String]) -> Result<(), Undecided> {
    for alias in aliases {
        state.change(&alias_key(alias), |current: &mut String| number.clone_into(current))?;
    }
    if aliases.is_empty() {
        return Ok(());
    }
    state.change(&former_key(number), |former: &mut Vec<String>| {
        former.extend(aliases.iter().cloned());
        former.sort_unstable();
        former.dedup();
    })
}
