//! Reads and remembers the rows of a phrase's mentions.

use velocity::gram_rows::{GramRow, GramRows, RecentRow};
use velocity::mentions::Mentions;
use velocity::rows::{gram_key, recent_key};

use super::Rows;
use fold::service::Undecided;

/// Reads the rows of a phrase: the second one only if the first says that there is one. It is for decisions about many phrases, most of which are rare.
pub(super) fn read(state: &mut Rows<'_>, phrase: &str) -> Result<GramRows, Undecided> {
    let row: Option<GramRow> = state.get(&gram_key(phrase))?;
    let recent = if row.as_ref().is_some_and(GramRow::is_divided) { state.get(&recent_key(phrase))? } else { None };
    Ok(GramRows { row, recent })
}

/// Reads the mentions of a phrase. Both rows are named before either is missed, which is for phrases that are frequent.
pub(super) fn read_mentions(state: &mut Rows<'_>, phrase: &str) -> Result<Mentions, Undecided> {
    let (row, recent) = (state.get::<GramRow>(&gram_key(phrase)), state.get::<RecentRow>(&recent_key(phrase)));
    GramRows { row: row?, recent: recent? }.mentions().ok_or_else(|| damaged(phrase))
}

/// Remembers the rows that differ from those before.
pub(super) fn remember(state: &mut Rows<'_>, phrase: &str, before: &GramRows, rows: &GramRows) -> Result<(), Undecided> {
    if rows.row != before.row {
        state.remember(&gram_key(phrase), rows.row.as_ref())?;
    }
    if rows.recent != before.recent {
        state.remember(&recent_key(phrase), rows.recent.as_ref())?;
    }
    Ok(())
}

/// Says that the rows of a phrase cannot be decoded.
pub(super) fn damaged(phrase: &str) -> Undecided {
    Undecided::Poison(format!("the mentions of {phrase:?} are damaged"))
}
