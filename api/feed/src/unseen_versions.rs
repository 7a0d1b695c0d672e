//! What changes reveal of versions that the caller does not see: nothing. A caller who sees only the last days sees each change of these days with the record
//! after it. Details that compare it with an earlier version ([`ChangeRecord::COMPARED`]) are null if that version is not of these days.

use std::collections::HashSet;

use bytes::Bytes;
use operation::problem::Problem;
use schemas::details::ChangeRecord;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use serde_json::Value;

use super::Source;
use super::filter::{self, Element};
use super::position::Position;
use super::version_seqs::previous_version;

/// Whether a caller who sees the changes above `free_after` does not see the version of a record before a change.
async fn is_before_unseen(source: &Source, at: &Position, id: &str, seq: Seq, free_after: Seq) -> Result<bool, Problem> {
    Ok(previous_version(source, at, id, seq).await?.is_none_or(|before| before <= free_after))
}

/// Hides what a change reveals of the version before it, if the caller, who sees the changes above `free_after`, does not see that. Returns whether it did.
///
/// # Errors
/// When rows cannot be read.
pub async fn hide_unseen<R: ChangeRecord>(
    source: &Source,
    at: &Position,
    id: &str,
    change: &mut Element<R>,
    free_after: Seq,
) -> Result<bool, Problem> {
    if R::COMPARED.is_empty() || free_after == Seq(0) || change.event == "new" {
        return Ok(false);
    }
    let is_unseen = is_before_unseen(source, at, id, change.seq, free_after).await?;
    if is_unseen {
        change.hide_compared();
    }
    Ok(is_unseen)
}

/// Hides what changes, which come newest first, reveal of versions that are not among them, from a caller who sees the changes above `free_after`.
pub fn hide_outside<'a, R: ChangeRecord + 'a>(
    changes: impl DoubleEndedIterator<Item = &'a mut Element<R>>,
    free_after: Seq,
    id: impl Fn(&R) -> &str,
) {
    if R::COMPARED.is_empty() || free_after == Seq(0) {
        return;
    }
    let mut seen = HashSet::new();
    for change in changes.rev() {
        if seen.insert(id(&change.record).to_owned()) {
            change.hide_compared();
        }
    }
}

/// Hides what a change, as the feed stores it, reveals of the version before it, as [`hide_unseen`] does. `None` if there is nothing to hide.
///
/// # Errors
/// When rows cannot be read; `internal` if the change cannot be decoded.
pub(super) async fn without_unseen(
    (source, compared): (&Source, &[&str]),
    at: &Position,
    line: &[u8],
    free_after: Seq,
) -> Result<Option<Bytes>, Problem> {
    let mut change: Value = serde_json::from_slice(line).map_err(unreadable)?;
    let (id, seq) = (change["record"]["id"].as_str(), serde_json::from_value(change["seq"].clone()).map_err(unreadable)?);
    if change["event"] == "new" || !is_before_unseen(source, at, id.unwrap_or_default(), seq, free_after).await? {
        return Ok(None);
    }
    filter::set_null(&mut change, compared);
    Ok(Some(Bytes::from(change.to_string())))
}

fn unreadable(error: serde_json::Error) -> Problem {
    tracing::error!(%error, "a stored change cannot be decoded");
    Problem::new(ErrorCode::Internal, "a stored change cannot be read")
}

#[cfg(test)]
mod tests {
    use schemas::views::awards::Award;
    use schemas::views::records::Record;
    use serde_json::json;

    use super::*;

    /// Proves that changes of the free window keep what they compare with a version that is among them, and tell nothing of any other; and that a caller
    /// who sees everything is shown everything.
    #[test]
    fn versions_outside_stay_hidden() {
        let change = |seq: u64, id: &str, event: &str| {
            let stored = json!({ "event": event, "seq": seq, "recordedAt": "", "amountDelta": 5.25, "record": { "id": id } });
            serde_json::from_value::<Element<Award>>(stored).unwrap()
        };
        let has_delta = |free_after: u64| {
            let mut changes = [(9, "a", "modified"), (8, "b", "modified"), (7, "c", "modified"), (6, "c", "new"), (5, "a", "modified")]
                .map(|(seq, id, event)| change(seq, id, event));
            hide_outside(changes.iter_mut(), Seq(free_after), Record::id);
            changes.map(|change| change.details.amount_delta.is_some())
        };
        assert_eq!(has_delta(4), [true, false, true, true, false]);
        assert_eq!(has_delta(0), [true; 5]);
    }
}
