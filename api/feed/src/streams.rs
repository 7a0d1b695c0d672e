//! The newest sync runs of the streams that a service reads.

use operation::context::{Context, store_problem, stored};
use operation::problem::Problem;
use schemars::JsonSchema;
use schemas::clock::rfc3339;
use schemas::key;
use schemas::views::engine::{RUNS, RunRow, VIEW};
use serde::Serialize;

use crate::Source;

/// The newest sync run of a stream, without what only operators see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StreamState {
    /// The name of the stream.
    pub stream: String,
    /// `never` before the first sync run, then `running`, `finished` or `failed`: the state of the newest one.
    pub state: &'static str,
    /// When that state was recorded, RFC 3339; empty before the first sync run.
    #[schemars(with = "schemas::json_type::TimeOrEmpty")]
    pub at: String,
    /// When the last complete sync run ended, RFC 3339; empty before the first.
    #[schemars(with = "schemas::json_type::TimeOrEmpty")]
    pub last_finished: String,
    /// The last day for which the stream has been read completely; empty before the first complete sync run.
    #[schemars(with = "schemas::json_type::DayOrEmpty")]
    pub through_date: String,
    /// The number of records that the newest sync run has seen.
    pub seen: i64,
    /// How many of them could not be read, and are kept for operators.
    pub rejected: i64,
}

impl StreamState {
    fn new(stream: &str, run: Option<RunRow>) -> Self {
        let Some(row) = run else {
            let unknown = String::new;
            let (at, last_finished, through_date) = (unknown(), unknown(), unknown());
            return Self { stream: stream.to_owned(), state: "never", at, last_finished, through_date, seen: 0, rejected: 0 };
        };
        let state = match row.kind.as_str() {
            "run_failed" => "failed",
            "run_finished" => "finished",
            _ => "running",
        };
        let last_finished = if row.last_finished_at_ms == 0 { String::new() } else { rfc3339(row.last_finished_at_ms) };
        Self {
            stream: stream.to_owned(),
            state,
            at: rfc3339(row.at_ms),
            last_finished,
            through_date: row.last_finished.map(|run| run.through_date).unwrap_or_default(),
            seen: row.run.seen,
            rejected: row.run.rejected,
        }
    }
}

/// The streams whose facts a service is decided from, with their newest sync runs.
///
/// # Errors
/// When rows cannot be read.
pub async fn stream_states(ctx: &Context, source: &Source) -> Result<Vec<StreamState>, Problem> {
    let all = upstreams::ALL.iter().flat_map(|upstream| upstream.manifest().streams);
    let read: Vec<&str> = all.filter(|stream| source.reads(stream.topic)).map(|stream| stream.name).collect();
    let keys: Vec<_> = read.iter().map(|stream| key![*stream]).collect();
    let view = ctx.live(&VIEW).await?;
    let rows = view.get_many(&RUNS, &keys).await.map_err(store_problem)?;
    let state = |(stream, row): (&str, Option<bytes::Bytes>)| {
        let run = row.map(|row| stored::<RunRow>(&RUNS, &row)).transpose()?;
        Ok(StreamState::new(stream, run))
    };
    read.into_iter().zip(rows).map(state).collect()
}

#[cfg(test)]
mod tests {
    use schemas::event::Run;

    use super::*;

    /// Proves that the state of a stream is that of its newest run, and that its last complete run is known also if a later one failed.
    #[test]
    fn states() {
        let finished = Run { through_date: "2026-11-01".to_owned(), ..Run::default() };
        let run = Run { seen: 7, rejected: 2, reason: "a secret of the operator".to_owned(), ..Run::default() };
        let row = RunRow { at_ms: 2_000, run, last_finished: Some(finished), last_finished_at_ms: 1_000, ..RunRow::default() };
        for (kind, state) in [("run_started", "running"), ("run_marked", "running"), ("run_finished", "finished"), ("run_failed", "failed")]
        {
            let shown = StreamState::new("cpsc", Some(RunRow { kind: kind.to_owned(), ..row.clone() }));
            assert_eq!(
                (shown.state, shown.at.as_str(), shown.last_finished.as_str()),
                (state, "1970-01-01T00:00:02.000Z", "1970-01-01T00:00:01.000Z")
            );
            assert_eq!((shown.through_date.as_str(), shown.seen, shown.rejected), ("2026-11-01", 7, 2));
            assert!(!serde_json::to_string(&shown).unwrap().contains("secret"));
        }
        let shown = StreamState::new("cpsc", None);
        assert_eq!((shown.state, shown.last_finished.as_str()), ("never", ""));
    }
}
