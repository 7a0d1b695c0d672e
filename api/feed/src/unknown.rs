//! Notes about values of a filter that nothing recorded has, with the nearest values that are recorded. A filter states its fields with such values
//! ([`Filter::named`]); every feed, list, saved filter and watch gets the notes.
//!
//! Promises: whether a value is known is decided by a search that reads a bounded number of rows; the nearest values are those of the names that are
//! in memory. A caller who sees redacted records, or only the last days, and a view that hides values, gets notes that say nothing about recorded values.

use filter_values::nearest_values::{nearest_values, neighbours};
use operation::Call;
use operation::context::Context;
use operation::problem::Problem;
use schemas::position::Seq;
use schemas::suppression::Hides;
use schemas::views::records::{Record, RecordTables, normal};
use serde_json::{Map, Value, json};

use super::filter::{Filter, Named, TermQuery};
use super::names::{names_containing, values_of};
use super::position::Position;
use super::select::{Direction, Selection};
use crate::Source;

/// How many nearest values a note names at most.
const NEAREST_MAX: usize = 3;
/// How many values of a filter get a note at most.
const NOTES_MAX: usize = 5;
/// The most characters of a value that a note repeats.
const SHOWN_CHARS_MAX: usize = 64;
/// The most searches by which a value is looked for.
const ROUNDS_MAX: usize = 5;

/// A service whose values are looked up.
pub struct Recorded<'a> {
    /// The context.
    pub ctx: &'a Context,
    /// The source of its changes.
    pub source: &'a Source,
    /// The tables of its records.
    pub tables: &'static RecordTables,
    /// Where it is read.
    pub at: &'a Position,
}

/// The notes of an answer about values of its filter that nothing recorded has, and about a filter that nothing can match. `is_empty` says whether the
/// answer shows nothing: of an answer that shows something only the values of lists are checked.
///
/// # Errors
/// When rows cannot be read.
pub async fn unknown_values<F: Filter>(call: &Call, recorded: &Recorded<'_>, filter: &F, is_empty: bool) -> Result<Vec<String>, Problem> {
    let Ok(Value::Object(fields)) = serde_json::to_value(filter) else { return Ok(Vec::new()) };
    let is_limited = recorded.source.sample_days_for(call).is_some() || recorded.source.redaction_for(call).is_some();
    let mut notes = Vec::new();
    for named in &F::named() {
        let (values, is_list) = match fields.get(named.field) {
            Some(Value::String(text)) => (vec![text.as_str()], false),
            Some(Value::Array(items)) => (items.iter().filter_map(Value::as_str).collect(), true),
            _ => continue,
        };
        for value in values.iter().filter(|_| is_empty || values.len() > 1) {
            if notes.len() == NOTES_MAX {
                return Ok(notes);
            }
            if is_limited {
                notes.extend(is_empty.then(|| format!("this tier is shown nothing with the {} {}", named.field, shown(value))));
                continue;
            }
            let alone = Map::from_iter([(named.field.to_owned(), if is_list { json!([value]) } else { json!(value) })]);
            let Ok(alone) = serde_json::from_value::<F>(Value::Object(alone)) else { continue };
            if !is_known(recorded, named, alone).await? {
                let nearest = nearest_recorded::<F::Record>(recorded, named, value).await?;
                notes.push(note_of_unknown(named, value, &nearest));
            }
        }
    }
    notes.extend(filter.contradiction().filter(|_| is_empty));
    Ok(notes)
}

/// Whether anything recorded matches a filter of one value.
async fn is_known<F: Filter>(recorded: &Recorded<'_>, named: &Named, mut alone: F) -> Result<bool, Problem> {
    let Recorded { ctx, source, tables, at } = *recorded;
    alone.look_up(ctx, at, Seq(0)).await?;
    if let Some(is_known) = alone.resolves(named.field) {
        return Ok(is_known);
    }
    // Names that are hidden are in memory as well.
    if at.view.rendition() == 0 {
        for query in alone.term_queries() {
            let found = match &query {
                TermQuery::Exact(dimension, wanted) => {
                    let values = values_of::<F::Record>(ctx, source, tables, at, dimension).await?;
                    wanted.iter().any(|wanted| values.contains(&normal(wanted)))
                }
                TermQuery::Part(dimension, part) => {
                    let found = names_containing::<F::Record>(ctx, source, tables, at, dimension, part, 1).await?;
                    let is_found = found.is_none_or(|values| !values.is_empty());
                    if !is_found && alone.wildcard(dimension).is_none() {
                        // A search would look for the same names again.
                        return Ok(false);
                    }
                    is_found
                }
                TermQuery::Prefix(dimension, prefixes) => {
                    let values = values_of::<F::Record>(ctx, source, tables, at, dimension).await?;
                    !values.starting_with(prefixes.iter().map(|prefix| normal(prefix))).is_empty()
                }
            };
            if found {
                return Ok(true);
            }
        }
    }
    let selection = Selection::new(ctx, source, tables, at, vec![alone.criteria()]).await?;
    let mut upto = at.seq;
    for _ in 0..ROUNDS_MAX {
        let found = selection.find(Seq(0), upto, 1, Direction::Backwards).await?;
        upto = found.to.previous();
        if !found.changes.is_empty() || upto <= Seq(0) {
            return Ok(!found.changes.is_empty());
        }
    }
    // The search reached its limit, so the value may be known.
    Ok(true)
}

/// The recorded values that are nearest to one that is not, in lower case. None in a view that hides values of the dimension.
///
/// # Errors
/// When rows cannot be read.
pub async fn nearest_recorded<R: Record>(recorded: &Recorded<'_>, named: &Named, value: &str) -> Result<Vec<String>, Problem> {
    let Recorded { ctx, source, tables, at } = *recorded;
    // An id can hold the name of what is hidden.
    let is_hidden = |hides: &Hides| {
        named.dimension == "id" || named.has_values_of(hides.field) || hides.hidden.iter().any(|field| named.has_values_of(field))
    };
    if at.view.rendition() != 0 && at.view.def().hides.iter().any(is_hidden) {
        return Ok(Vec::new());
    }
    let known = values_of::<R>(ctx, source, tables, at, named.dimension).await?;
    let mut found = nearest_values(value, &known, NEAREST_MAX);
    if found.is_empty() && named.is_code {
        found = neighbours(value, &known);
    }
    Ok(found.into_iter().map(str::to_owned).collect())
}

/// The note about a value that nothing recorded has, with the nearest recorded ones.
#[must_use]
pub fn note_of_unknown(named: &Named, value: &str, nearest: &[String]) -> String {
    let spelled = |value: &String| shown(&if named.is_code { value.to_uppercase() } else { value.clone() });
    let nearest: Vec<String> = nearest.iter().map(spelled).collect();
    let hint = if nearest.is_empty() { String::new() } else { format!(", the nearest known are {}", nearest.join(", ")) };
    format!("nothing recorded has the {} {}{hint}", named.field, shown(value))
}

/// A value as notes show it.
fn shown(value: &str) -> String {
    match value.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{:?}", format!("{}…", &value[..end])),
        None => format!("{value:?}"),
    }
}
