//! What is said beside an answer, and what bounds it: how shallow history is, what a key would open, and who did not answer.

use crate::Feeds;
use crate::live;
use operation::context::Part;
use std::sync::Arc;

use schemas::facts::FactData;
use schemas::position::Seq;
use upstreams::live::Question;

use super::Source;
use super::history::{history_from, shallow_note};
use super::position::{DAY_MS, Position};
use super::reading::LIMIT_MAX;
use operation::Call;
use operation::context::store_problem;
use operation::problem::Problem;

/// What is said beside an answer that is no page, and what bounds it.
#[derive(Clone, Debug)]
pub struct Told {
    /// Nothing up to this change is shown.
    pub after: Seq,
    rows_max: usize,
    notes: Vec<String>,
}

impl Told {
    /// How many rows the caller may have of those asked for.
    #[must_use]
    pub fn limit(&mut self, limit: usize) -> usize {
        if limit > self.rows_max {
            self.notes.push(format!("this tier gets at most {} rows an answer; a paid key gets up to {LIMIT_MAX}", self.rows_max));
        }
        limit.min(self.rows_max)
    }

    /// Says something more.
    pub fn add(&mut self, note: Option<String>) {
        self.notes.extend(note);
    }

    /// Asks an upstream for an answer of now; what hinders it is said.
    pub async fn ask(&mut self, call: &Call, name: &str, question: Question, at: &Position) -> Option<Arc<Vec<FactData>>> {
        let said = live::ask(&call.context, question, at.now).await;
        said.map_err(|why| self.add(Some(format!("{name}: {why}")))).ok()
    }

    /// All that is said.
    #[must_use]
    pub fn note(self) -> Option<String> {
        Some(self.notes.join("; ")).filter(|note| !note.is_empty())
    }
}

/// What must be said of an answer at a position: that history is shallow, and what a key would open.
///
/// # Errors
/// When the feed cannot be read.
pub async fn notes(call: &Call, source: &Source, at: &Position) -> Result<Told, Problem> {
    let ctx = &call.context;
    let mut notes = Vec::new();
    let after = sample(call, source, at, Seq(0), &mut notes).await?;
    let from_ms = history_from(ctx, source, &at.view, at.last.0).await?.filter(|_| at.seq.0 > 0);
    notes.extend(shallow_note(from_ms, at.now.as_millisecond()).map(str::to_owned));
    Ok(Told { after, rows_max: ctx.settings.tiers.of(call.caller.tier).rows_max, notes })
}

/// Where a reader without a key may begin.
pub(super) async fn sample(call: &Call, source: &Source, at: &Position, after: Seq, notes: &mut Vec<String>) -> Result<Seq, Problem> {
    let Some(days) = source.sample_days.filter(|_| call.caller.key_id.is_empty()) else { return Ok(after) };
    let reader = Feeds::of(&call.context).reader(source, Arc::clone(&at.view));
    let begin = reader.seq_at(at.now.as_millisecond() - days * DAY_MS - 1, at.seq).await.map_err(store_problem)?;
    notes.push(format!("without a key the last {days} days are shown; a key opens the rest"));
    Ok(after.max(begin))
}
