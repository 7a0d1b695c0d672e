//! `GET /health`: liveness, and the depth and completeness of the history.

use feed::Feeds;
use operation::context::{Context, Part};
use schemars::JsonSchema;
use schemas::clock::{DAY_MS, rfc3339, rfc3339_or_empty};
use schemas::position::Seq;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use feed::Source;
use feed::days::{DayOfChanges, changes_by_day};
use feed::history::{history_from, shallow_note};
use feed::position::{Position, latest, position};
use feed::streams::{StreamState, parked_inputs, stream_states};
use operation::problem::Problem;
use operation::{Answer, Body, Call, Definition, Operation, Surface};

/// Arguments of `health`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    /// Answer as of this time: a date YYYY-MM-DD (its end in UTC) or an RFC 3339 time, not later than now.
    pub as_of: Option<String>,
    /// Count the changes of each of the last so many days.
    #[schemars(range(min = 1, max = 90))]
    pub days: Option<u32>,
    /// List the streams that the service reads, with their newest and next sync runs, how those of the last 90 days ended, outages, and what is assumed of
    /// the upstream; and count parked inputs. Not with `asOf`.
    #[serde(default)]
    pub streams: bool,
}

/// What the health of a service says in addition to that of every service.
pub trait HealthFields: Serialize + JsonSchema + Sized + Send + 'static {
    /// Reads the fields at a position.
    fn read(ctx: &Context, at: &Position) -> impl Future<Output = Result<Self, Problem>> + Send;
}

/// Nothing in addition.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct NoFields {}

impl HealthFields for NoFields {
    async fn read(_: &Context, _: &Position) -> Result<Self, Problem> {
        Ok(Self {})
    }
}

/// The health of the service.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Health<F> {
    /// Always `ok`: a server that is not healthy does not answer.
    pub status: &'static str,
    /// The name of the service.
    pub service: &'static str,
    /// When the latest complete sync run of an upstream ended, RFC 3339; empty before the first.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub last_snapshot: String,
    /// When the first change was recorded, RFC 3339; empty if there is none.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub history_from: String,
    /// The whole days since `historyFrom`.
    pub history_days: i64,
    /// The number of complete sync runs.
    pub snapshot_count: u64,
    /// The last day for which every upstream has been read completely; empty before the first complete sync run.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub through_date: String,
    /// The number of recorded changes, which is the `seq` of the last one. Internal changes, which no feed shows, have a `seq`, too, so that a feed can have
    /// fewer changes.
    pub changes: Seq,
    /// The number of current records. Withdrawn records and records that were merged into another one do not count; records with suppressed fields do,
    /// and so do those that callers without a key are not shown. Absent with `asOf`, because the records are counted for the latest change only, and absent
    /// while the count is not known: until the operator replays the service, if a version that did not count records wrote its view.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// With `days`: how many changes were recorded on each of the last days, the oldest first. Internal changes, which no feed shows, count as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes_by_day: Option<Vec<DayOfChanges>>,
    /// With `streams`: the streams that the service reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<Vec<StreamState>>,
    /// With `streams`: how many inputs could not be decided and wait for the operator; 1,000 if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parked_inputs: Option<usize>,
    /// What only this service says.
    #[serde(flatten)]
    pub more: F,
    /// A note while the history is short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The operation for one service.
#[must_use]
pub fn operation<F: HealthFields>(source: Source) -> Operation {
    let words = Definition {
        name: "health",
        path: "/health",
        summary: "Liveness, last snapshot and depth of history.",
        description: "Needs no key and counts against no quota. One address gets at most 6,000 answers a minute, with `asOf` or `days` 60.",
        surface: Surface::Route,
        counted: false,
        example: json!({}),
        ..Definition::read()
    };
    Operation::define::<Arguments, Health<F>, _, _>(words, move |call, arguments| answer::<F>(source, call, arguments))
}

async fn answer<F: HealthFields>(source: Source, call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let (at, records) = match arguments.as_of.as_deref() {
        Some(as_of) => (position(ctx, &source, Some(as_of)).await?, None),
        None => {
            let (at, checkpoint) = latest(ctx, &source).await?;
            (at, checkpoint.current_records())
        }
    };
    if arguments.streams && arguments.as_of.is_some() {
        return Err(Problem::parameter("streams", "the state of streams is known for now only; leave out `asOf`"));
    }
    let standing = Feeds::of(ctx).completeness(&source, at.view.as_ref(), at.seq, at.last).await?;
    let from = history_from(ctx, &source, &at.view, at.last).await?.filter(|_| at.seq > Seq(0));
    let changes_by_day = match arguments.days {
        Some(days) => Some(changes_by_day(ctx, &source, &at, days.into()).await?),
        None => None,
    };
    let (streams, parked_inputs) = if arguments.streams {
        (Some(stream_states(ctx, &source).await?), Some(parked_inputs(ctx, &source, at.seq).await?))
    } else {
        (None, None)
    };
    let now_ms = at.now.as_millisecond();
    let mut answer = Answer::json(&Health {
        status: "ok",
        service: source.service,
        last_snapshot: rfc3339_or_empty(standing.finished_at_ms),
        history_from: from.map_or_else(String::new, rfc3339),
        history_days: from.map_or(0, |from| (now_ms - from).max(0) / DAY_MS),
        snapshot_count: standing.snapshot_count,
        through_date: standing.through_date,
        changes: at.seq,
        records,
        changes_by_day,
        streams: None,
        parked_inputs,
        more: F::read(ctx, &at).await?,
        note: shallow_note(from, now_ms).map(str::to_owned),
    })?;
    // They are JSON already.
    if let (Body::Json(Value::Object(fields)), Some(streams)) = (&mut answer.body, streams) {
        fields.insert("streams".to_owned(), Value::Array(streams));
    }
    Ok(answer)
}
