//! The addresses of records by the numbers that people know, besides their ids: recall numbers, award numbers, older numbers of a trial, in any case. And the
//! numbers of companies that callers give.

use std::collections::BTreeSet;

use feed::Source;
use feed::filter::{Criteria, Element, TermQuery};
use feed::position::Position;
use feed::query::{Feed, newest};
use feed::versions::version_at;
use futures_util::future::BoxFuture;
use operation::Call;
use operation::context::{Context, store_problem, stored};
use operation::problem::Problem;
use schemas::details::ChangeRecord;
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::position::Seq;
use schemas::views::records::{Record, RecordTables, alias_key, former_key};
use serde::de::DeserializeOwned;
use texts::numbers::{CIK_DIGITS, pad_cik, trial_number};

/// Finds the ids that a text can mean at a position, those to try first in front.
pub type FindIds = for<'a> fn(&'a Context, &'a Position, &'a str) -> BoxFuture<'a, Result<Vec<String>, Problem>>;

/// The most ids that a text is tried as.
pub const IDS_MAX: usize = 50;

/// The most records of one number that an error names.
const NAMED_MAX: usize = 10;
/// How many changes are read at a time to find the records of a number.
const CHANGES_PER_READ: usize = 50;

/// No further ids: an id is an address in its own spelling only.
pub fn no_ids<'a>(_: &'a Context, _: &'a Position, _: &'a str) -> BoxFuture<'a, Result<Vec<String>, Problem>> {
    ids_without_read(Vec::new())
}

/// Ids that follow from a text alone.
pub fn ids_without_read<'a>(ids: Vec<String>) -> BoxFuture<'a, Result<Vec<String>, Problem>> {
    Box::pin(std::future::ready(Ok(ids)))
}

/// The id of the record that a text names at a position: by its id, or else by a number of the record. The text itself if there is none.
///
/// # Errors
/// When rows cannot be read; `not-found` if several records have the number, which names them to callers who may see records of any day.
pub(super) async fn id_at<R: ChangeRecord + DeserializeOwned>(
    call: &Call,
    source: &Source,
    find_ids: FindIds,
    at: &Position,
    text: String,
) -> Result<String, Problem> {
    let ctx = &call.context;
    if version_at::<R>(ctx, source, at, &text).await?.is_some() {
        return Ok(text);
    }
    let is_limited = source.sample_days_for(call).is_some() || source.redaction_for(call).is_some();
    let found = find_ids(ctx, at, &text).await.map_err(|problem| match problem.code {
        ErrorCode::NotFound if is_limited => {
            Problem::new(ErrorCode::NotFound, format!("several records have the number {text:?}; a key names them")).about("id")
        }
        _ => problem,
    });
    for id in found? {
        if version_at::<R>(ctx, source, at, &id).await?.is_some() {
            return Ok(id);
        }
    }
    Ok(text)
}

/// The id of the only record with a number at a position; `None` if there is none. `query` finds its changes, and `has_number` says which of them have it.
/// Further changes of a record that is found are passed over, so that one with many changes hides no other record.
///
/// # Errors
/// `not-found`, naming the first ones after `several`, if several records have the number; when rows cannot be read.
pub async fn only_id<R: Record>(
    ctx: &Context,
    feed: &Feed,
    at: &Position,
    query: TermQuery,
    has_number: impl Fn(&R) -> bool + Send + Sync,
    several: &str,
) -> Result<Option<String>, Problem> {
    let (mut ids, mut until) = (BTreeSet::<String>::new(), at.clone());
    loop {
        let is_other = |change: &Element<R>| has_number(&change.record) && !ids.contains(change.record.id());
        let found = newest(ctx, feed, &until, Criteria::new(vec![query.clone()], is_other), Seq(0), CHANGES_PER_READ).await?;
        let is_last = found.is_complete() || found.changes.is_empty();
        until.seq = found.complete_from().previous();
        ids.extend(found.changes.into_iter().map(|change| change.record.id().to_owned()));
        if is_last || ids.len() > NAMED_MAX {
            break;
        }
    }
    if ids.len() <= 1 {
        return Ok(ids.pop_first());
    }
    let more = if ids.len() > NAMED_MAX { " and more" } else { "" };
    let named: Vec<String> = ids.into_iter().take(NAMED_MAX).collect();
    Err(Problem::new(ErrorCode::NotFound, format!("{several}: {}{more}", named.join(", "))).about("id"))
}

/// Reads the number of a company (CIK) that a caller gives, and returns it as records write it: 10 digits.
///
/// # Errors
/// `parameter-invalid` for a text that is not a number of up to 10 digits.
pub fn read_cik(parameter: &'static str, text: &str) -> Result<String, Problem> {
    let refused = || Problem::parameter(parameter, format!("{parameter}: {text:?} is not a number of up to {CIK_DIGITS} digits"));
    pad_cik(text).ok_or_else(refused)
}

/// The numbers of the trial that has, or had, a number: that number first, then the current one, then its other earlier ones.
///
/// # Errors
/// When rows cannot be read.
pub async fn numbers_of_trial(tables: &'static RecordTables, at: &Position, text: &str) -> Result<Vec<String>, Problem> {
    let Some(number) = trial_number(text) else { return Ok(Vec::new()) };
    let current = current_number(tables, at, &number).await?;
    let former: Vec<String> = decision_state(tables, at, &former_key(current.as_ref().unwrap_or(&number))).await?;
    let mut all = Vec::new();
    for number in std::iter::once(number).chain(current).chain(former) {
        if all.len() < IDS_MAX && !all.contains(&number) {
            all.push(number);
        }
    }
    Ok(all)
}

/// The number under which the trial with an older number is continued; `None` if the number is not an older one.
///
/// # Errors
/// When rows cannot be read.
pub async fn current_number(tables: &'static RecordTables, at: &Position, number: &str) -> Result<Option<String>, Problem> {
    let current: String = decision_state(tables, at, &alias_key(&number.trim().to_ascii_uppercase())).await?;
    Ok(Some(current).filter(|current| !current.is_empty()))
}

/// A value of decision state, which is that of the last change, also at an earlier position; the default value if there is none.
///
/// # Errors
/// When the row cannot be read.
pub async fn decision_state<T: Default + DeserializeOwned>(tables: &'static RecordTables, at: &Position, key: &str) -> Result<T, Problem> {
    let value = at.view.get(tables.state, &key![key]).await.map_err(store_problem)?;
    value.map_or_else(|| Ok(T::default()), |value| stored(tables.state, &value))
}
