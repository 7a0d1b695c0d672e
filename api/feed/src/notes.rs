//! The notes added to an answer and the limits applied to it: a short history, what a key would give access to, and upstreams that did not answer.

use std::sync::Arc;

use operation::context::Context;
use operation::context::Part;
use operation::context::store_problem;
use operation::problem::Problem;
use operation::signing_state::SigningState;
use operation::{Call, Stage};
use schemas::position::Seq;

use super::Source;
use super::history::{history_from, shallow_note};
use super::page_request::LIMIT_MAX;
use super::position::Position;
use crate::Feeds;

/// The notes and limits of an answer that is not a page of a feed.
#[derive(Clone, Debug)]
pub struct ResponseNotes {
    /// Changes up to this one are not shown.
    pub after: Seq,
    rows_max: usize,
    /// Whether the call asked for more rows than the tier allows.
    is_limited: bool,
    notes: Vec<String>,
}

impl ResponseNotes {
    /// Limits the number of rows to what the caller's tier allows. If that is less than requested and rows are left out, a note says so.
    #[must_use]
    pub fn limit(&mut self, limit: usize) -> usize {
        self.is_limited |= limit > self.rows_max;
        limit.min(self.rows_max)
    }

    /// The most rows that the caller's tier allows.
    #[must_use]
    pub fn rows_max(&self) -> usize {
        self.rows_max
    }

    /// Shows only changes of the free window to a caller who sees the redacted form of records, and adds a note about it.
    ///
    /// # Errors
    /// When the feed cannot be read.
    pub async fn limit_to_free_window(&mut self, call: &Call, source: &Source, at: &Position) -> Result<(), Problem> {
        self.after = sample(call, source, at, self.after, &mut self.notes).await?;
        Ok(())
    }

    /// Adds a note.
    pub fn add(&mut self, note: Option<String>) {
        self.notes.extend(note);
    }

    /// Joins all notes; `None` if there are none. `is_cut`: the answer leaves out rows.
    #[must_use]
    pub fn note(mut self, is_cut: bool) -> Option<String> {
        if self.is_limited && is_cut {
            self.notes.push(format!("this tier is limited to {} rows per answer; a paid key allows up to {LIMIT_MAX}", self.rows_max));
        }
        Some(self.notes.join("; ")).filter(|note| !note.is_empty())
    }
}

/// The notes and limits of an answer at a position: a short history, and what a key would give access to.
///
/// # Errors
/// When the feed cannot be read.
pub async fn notes(call: &Call, source: &Source, at: &Position) -> Result<ResponseNotes, Problem> {
    let ctx = &call.context;
    let mut notes = Vec::new();
    // Reads of a service with a redacted form apply it themselves, see `Reader::redaction`.
    let after = if source.redaction.is_some() { Seq(0) } else { sample(call, source, at, Seq(0), &mut notes).await? };
    let from_ms = history_from(ctx, source, &at.view, at.last).await?.filter(|_| at.seq > Seq(0));
    notes.extend(shallow_note(from_ms, at.now.as_millisecond()).map(str::to_owned));
    // Who pays for a call gets as many rows as a paid key.
    let is_paid = matches!(call.stage, Stage::Order { .. } | Stage::Claimed(_) | Stage::Paid(_));
    let rows_max = if is_paid { LIMIT_MAX } else { ctx.settings.tiers.of(call.caller.tier).rows_max };
    Ok(ResponseNotes { after, rows_max, is_limited: false, notes })
}

/// The notes of every page of a feed: that the history is short, that the tier cut the page, and that the newest changes are not signed.
///
/// # Errors
/// When the feed cannot be read.
pub(super) async fn page_notes(ctx: &Context, source: &Source, at: &Position, limit_note: Option<String>) -> Result<Vec<String>, Problem> {
    let from_ms = history_from(ctx, source, &at.view, at.last).await?.filter(|_| at.seq > Seq(0));
    let shallow = shallow_note(from_ms, at.now.as_millisecond()).map(str::to_owned);
    Ok(shallow.into_iter().chain(limit_note).chain(SigningState::of(ctx).unsigned_note(source.service)).collect())
}

/// The seq after which a caller without a key, or below the tier that sees whole records, may read. Adds a note if the range is limited.
pub(super) async fn sample(call: &Call, source: &Source, at: &Position, after: Seq, notes: &mut Vec<String>) -> Result<Seq, Problem> {
    if let Some(redaction) = source.redaction_for(call) {
        notes.push(redaction.note());
        return Ok(after.max(before_days(call, source, at, redaction.days).await?));
    }
    let Some(days) = source.sample_days_for(call) else { return Ok(after) };
    let begin = before_days(call, source, at, days).await?;
    notes.push(format!("without a key only the last {days} days are shown; a key gives access to the rest"));
    Ok(after.max(begin))
}

/// The last seq before the last `days` days of the clock.
async fn before_days(call: &Call, source: &Source, at: &Position, days: i64) -> Result<Seq, Problem> {
    let reader = Feeds::of(&call.context).reader(source, Arc::clone(&at.view));
    reader.seq_at(at.free_window().since(days).as_millisecond() - 1, at.seq).await.map_err(store_problem)
}
