//! The newest sync runs of the streams that a service reads.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use operation::context::{Context, Part, store_problem, stored};
use operation::problem::Problem;
use schemars::JsonSchema;
use schemas::clock::{rfc3339, rfc3339_or_empty};
use schemas::key;
use schemas::position::Seq;
use schemas::views::engine::{Outage, RUNS, RunDay, RunRow, VIEW};
use serde::Serialize;
use serde_json::Value;
use upstreams::Stream;
use view_store::store::Span;

use crate::Source;
use crate::query::to_value;

/// The most parked inputs of a service that are counted.
pub const PARKED_MAX: usize = 1_000;

/// Computes when a stream is synced next: from the start of its newest run if that finished, and the current time. All times are in milliseconds
/// since 1970; the start is 0 if it did not.
pub type NextRun = dyn Fn(&Stream, i64, i64) -> Option<i64> + Send + Sync;

/// When streams are synced next. The engine sets it if its configuration has schedules.
#[derive(Default)]
pub struct NextRuns(pub Option<Box<NextRun>>);

impl Part for NextRuns {}

/// The numbers of parked inputs by service, each with the change at which it was counted. Every input that is parked, and every one that is decided later,
/// is a change.
#[derive(Default)]
struct ParkedCounts(Mutex<HashMap<&'static str, (Seq, usize)>>);

impl Part for ParkedCounts {}

/// The states of streams by their names. The row of a stream is the same until the next event of one of its sync runs, and to decode its 90 days and its
/// fields takes many times as long as to read it.
#[derive(Default)]
struct KnownStates(Mutex<HashMap<&'static str, KnownState>>);

impl Part for KnownStates {}

/// What is made of the stored row of a stream.
struct KnownState {
    /// The row; `None` before the first sync run.
    row: Option<Bytes>,
    /// When the newest sync run began, in milliseconds since 1970; 0 if that did not finish.
    last_start_ms: i64,
    /// The [`StreamState`] as JSON. Its time of the next sync run is empty, because it depends on the time of the answer.
    state: Value,
}

impl KnownStates {
    /// When the newest sync run of a stream began, and the state of the stream, by its stored row: the one that is known, or made of the row.
    fn of_row(&self, stream: &Stream, row: Option<Bytes>) -> Result<(i64, Value), Problem> {
        {
            let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = all.get(stream.name).filter(|known| known.row == row) {
                return Ok((known.last_start_ms, known.state.clone()));
            }
        }
        let run = row.as_ref().map(|row| stored::<RunRow>(&RUNS, row)).transpose()?;
        // As for the runner, a stream whose newest run did not finish is due.
        let last_start_ms = run.as_ref().filter(|row| row.kind == "run_finished").map_or(0, |row| row.run.started_at);
        let state = to_value(&StreamState::new(stream, run, None))?;
        let known = KnownState { row, last_start_ms, state: state.clone() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(stream.name, known);
        Ok((last_start_ms, state))
    }
}

/// The newest sync run of a stream, without what only operators see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StreamState {
    /// The name of the stream.
    pub stream: String,
    /// `never` before the first sync run, then `running`, `finished` or `failed`: the state of the newest one.
    pub state: &'static str,
    /// When that state was recorded, RFC 3339; empty before the first sync run.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub at: String,
    /// When the last complete sync run ended, RFC 3339; empty before the first.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub last_finished: String,
    /// The last day for which the stream has been read completely; empty before the first complete sync run.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub through_date: String,
    /// The number of records that the newest sync run has seen.
    pub seen: i64,
    /// How many of them could not be read, and are kept for operators.
    pub rejected: i64,
    /// When the next sync run is due by schedule, RFC 3339; empty if this server has no schedule for the stream.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub next_run: String,
    /// How the sync runs of the last 90 days that had some ended, the oldest day first.
    pub runs_by_day: Vec<RunsOfDay>,
    /// The last 20 times during which sync runs failed, the oldest first.
    pub outages: Vec<FailedTime>,
    /// What a sync run relies on, and stops without.
    pub assumptions: Assumptions,
}

/// How the sync runs of a stream ended on one day in UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunsOfDay {
    /// The day, YYYY-MM-DD.
    #[schemars(with = "proofs::json_type::Day")]
    pub day: String,
    /// How many finished.
    pub finished: u32,
    /// How many failed.
    pub failed: u32,
}

/// A time from the first sync run that failed until the first one after it that finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FailedTime {
    /// When the first sync run failed, RFC 3339.
    #[schemars(with = "proofs::json_type::Time")]
    pub from: String,
    /// When a sync run finished again, RFC 3339; empty while none has.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub until: String,
}

/// What sync runs of a stream assume of the upstream. A run in which an assumption fails stops and counts as failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Assumptions {
    /// Whether one sync run reads all records of the upstream, so that a record that is missing from two runs counts as withdrawn.
    pub is_snapshot: bool,
    /// The largest answer that is accepted, in bytes.
    pub answer_bytes_max: usize,
    /// The fields that most records had so far, as the upstream names them, and in how many of the records.
    pub fields: Vec<AssumedField>,
    /// When the fields were last compared with those of a complete sync run, RFC 3339; empty if they never were.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub checked_at: String,
}

/// A field of an upstream that most records have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AssumedField {
    /// The name of the field.
    pub name: String,
    /// In how many records it had a value.
    pub filled: i64,
    /// In how many records it was looked for.
    pub records: i64,
}

impl StreamState {
    fn new(stream: &Stream, run: Option<RunRow>, next_run_ms: Option<i64>) -> Self {
        let row = run.unwrap_or_default();
        let state = match row.kind.as_str() {
            "" => "never",
            "run_failed" => "failed",
            "run_finished" => "finished",
            _ => "running",
        };
        let assumptions = Assumptions::of(stream, &row);
        Self {
            stream: stream.name.to_owned(),
            state,
            at: rfc3339_or_empty(row.at_ms),
            last_finished: rfc3339_or_empty(row.last_finished_at_ms),
            through_date: row.last_finished.map(|run| run.through_date).unwrap_or_default(),
            seen: row.run.seen,
            rejected: row.run.rejected,
            next_run: next_run_ms.map_or_else(String::new, rfc3339),
            runs_by_day: row.days.into_iter().map(|RunDay { day, finished, failed }| RunsOfDay { day, finished, failed }).collect(),
            outages: row
                .outages
                .iter()
                .map(|Outage { from_ms, until_ms }| FailedTime { from: rfc3339_or_empty(*from_ms), until: rfc3339_or_empty(*until_ms) })
                .collect(),
            assumptions,
        }
    }
}

impl Assumptions {
    fn of(stream: &Stream, row: &RunRow) -> Self {
        let counted = row.last_finished.iter().flat_map(|run| &run.fields);
        let expected = counted.filter(|field| field.is_expected());
        let fields: Vec<AssumedField> =
            expected.map(|field| AssumedField { name: field.name.clone(), filled: field.filled, records: field.records }).collect();
        let checked_at = if fields.is_empty() { String::new() } else { rfc3339(row.last_finished_at_ms) };
        Self { is_snapshot: stream.snapshot, answer_bytes_max: stream.answer_bytes_max, fields, checked_at }
    }
}

/// The streams whose facts a service is decided from, each a [`StreamState`] as JSON. A row that is the same as in the answer before is not decoded again.
///
/// # Errors
/// When rows cannot be read.
pub async fn stream_states(ctx: &Context, source: &Source) -> Result<Vec<Value>, Problem> {
    let all = upstreams::ALL.iter().flat_map(|upstream| upstream.manifest().streams);
    let read: Vec<&Stream> = all.filter(|stream| source.reads(stream.topic)).collect();
    let keys: Vec<_> = read.iter().map(|stream| key![stream.name]).collect();
    let view = ctx.live(&VIEW).await?;
    let rows = view.get_many(&RUNS, &keys).await.map_err(store_problem)?;
    let (known, next_runs, now_ms) = (KnownStates::of(ctx), NextRuns::of(ctx), ctx.clock.now_ms());
    let state = |(stream, row): (&Stream, Option<Bytes>)| {
        let (last_start_ms, mut state) = known.of_row(stream, row)?;
        let next_run_ms = next_runs.0.as_ref().and_then(|next| next(stream, last_start_ms, now_ms));
        if let Value::Object(fields) = &mut state {
            fields.insert("nextRun".to_owned(), next_run_ms.map_or_else(String::new, rfc3339).into());
        }
        Ok(state)
    };
    read.into_iter().zip(rows).map(state).collect()
}

/// How many inputs of a service could not be decided and wait for the operator, at most [`PARKED_MAX`]. They are counted once for each `seq`, the last
/// change of the view.
///
/// # Errors
/// When rows cannot be read.
pub async fn parked_inputs(ctx: &Context, source: &Source, seq: Seq) -> Result<usize, Problem> {
    let counts = ParkedCounts::of(ctx);
    let known = counts.0.lock().unwrap_or_else(PoisonError::into_inner).get(source.service).copied();
    if let Some((_, count)) = known.filter(|(counted_at, _)| *counted_at == seq) {
        return Ok(count);
    }
    let view = ctx.live(source.view).await?;
    let (mut scan, mut counted) = (view.scan(source.parked, Span::default()), 0);
    while counted < PARKED_MAX {
        match scan.next(PARKED_MAX - counted).await.map_err(store_problem)?.len() {
            0 => break,
            rows => counted += rows,
        }
    }
    counts.0.lock().unwrap_or_else(PoisonError::into_inner).insert(source.service, (seq, counted));
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use schemas::event::{FieldCount, Run};
    use schemas::views::recalls;

    use super::*;
    use crate::testing::{SOURCE, START_MS, World};

    /// Proves that parked inputs are counted once for the last change, and again after a later one.
    #[tokio::test]
    async fn parked_inputs_are_counted_once() {
        let mut world = World::new().await;
        let ctx = world.context(START_MS);
        for offset in [1_i64, 2] {
            world.put(&recalls::PARKED, key!["a", offset], b"{}".to_vec());
            world.through(START_MS, "cpsc", "2026-10-31");
            world.commit().await;
            let count = parked_inputs(&ctx, &SOURCE, Seq(1)).await.unwrap();
            assert_eq!(count, 1, "the count of the first change remains");
        }
        assert_eq!(parked_inputs(&ctx, &SOURCE, Seq(2)).await.unwrap(), 2);
    }

    /// Proves that a row is decoded once, whoever asks, and again when it has another event; and that a stream without a row is known as such.
    #[test]
    fn rows_are_decoded_once() {
        let stream = &upstreams::by_name("cpsc").unwrap().manifest().streams[0];
        let states = KnownStates::default();
        let row = |kind: &str, started_at: i64| {
            let run = Run { started_at, ..Run::default() };
            Some(Bytes::from(serde_json::to_vec(&RunRow { kind: kind.to_owned(), run, ..RunRow::default() }).unwrap()))
        };
        let state_of = |row: Option<Bytes>| states.of_row(stream, row).map(|(start, state)| (start, state["state"].clone())).unwrap();
        assert_eq!(state_of(None), (0, "never".into()));
        assert_eq!(state_of(row("run_finished", 7)), (7, "finished".into()));
        states.0.lock().unwrap().get_mut(stream.name).unwrap().state["state"] = "known".into();
        assert_eq!(state_of(row("run_finished", 7)), (7, "known".into()), "the same bytes are not decoded again");
        assert_eq!(state_of(row("run_failed", 8)), (0, "failed".into()));
        assert_eq!(state_of(row("run_finished", 7)), (7, "finished".into()));
        assert!(states.of_row(stream, Some(Bytes::from_static(b"{"))).is_err());
        assert_eq!(state_of(row("run_finished", 7)), (7, "finished".into()), "a damaged row replaces nothing");
    }

    /// Proves that the state of a stream is that of its newest run, and that its last complete run is known also if a later one failed.
    #[test]
    fn states() {
        let stream = &upstreams::by_name("cpsc").unwrap().manifest().streams[0];
        let field = |name: &str, filled| FieldCount { name: name.to_owned(), filled, records: 10, absent: 0 };
        let fields = vec![field("RecallID", 10), field("Remedy", 5)];
        let finished = Run { through_date: "2026-11-01".to_owned(), fields, ..Run::default() };
        let run = Run { seen: 7, rejected: 2, reason: "a secret of the operator".to_owned(), ..Run::default() };
        let days = vec![RunDay { day: "1970-01-01".to_owned(), finished: 3, failed: 1 }];
        let outages = vec![Outage { from_ms: 500, until_ms: 1_000 }, Outage { from_ms: 2_000, until_ms: 0 }];
        let row =
            RunRow { days, outages, at_ms: 2_000, run, last_finished: Some(finished), last_finished_at_ms: 1_000, ..RunRow::default() };
        for (kind, state) in [("run_started", "running"), ("run_marked", "running"), ("run_finished", "finished"), ("run_failed", "failed")]
        {
            let shown = StreamState::new(stream, Some(RunRow { kind: kind.to_owned(), ..row.clone() }), Some(3_000));
            assert_eq!(
                (shown.state, shown.at.as_str(), shown.last_finished.as_str()),
                (state, "1970-01-01T00:00:02.000Z", "1970-01-01T00:00:01.000Z")
            );
            assert_eq!((shown.through_date.as_str(), shown.seen, shown.rejected), ("2026-11-01", 7, 2));
            assert_eq!((shown.next_run.as_str(), shown.runs_by_day[0].finished), ("1970-01-01T00:00:03.000Z", 3));
            let outages: Vec<(&str, &str)> = shown.outages.iter().map(|outage| (outage.from.as_str(), outage.until.as_str())).collect();
            assert_eq!(outages, [("1970-01-01T00:00:00.500Z", "1970-01-01T00:00:01.000Z"), ("1970-01-01T00:00:02.000Z", "")]);
            // A field that half of the records have is not relied on.
            let fields: Vec<&str> = shown.assumptions.fields.iter().map(|field| field.name.as_str()).collect();
            assert_eq!((fields, shown.assumptions.checked_at.as_str()), (vec!["RecallID"], "1970-01-01T00:00:01.000Z"));
            assert!(!serde_json::to_string(&shown).unwrap().contains("secret"));
        }
        let shown = StreamState::new(stream, None, None);
        assert_eq!((shown.state, shown.last_finished.as_str(), shown.next_run.as_str()), ("never", "", ""));
        assert_eq!(shown.assumptions.checked_at, "");
    }
}
