//! Commands: a write request is appended to a topic of commands, and answered once the view that decides it has processed it, so that a caller
//! reads its own writes.
//!
//! Commands chain per subject like facts. If two commands extend the same head, the engine applies the first, and the other is retried.

use bytes::Bytes;
use event_log::{Append, Headers, Record};
use operation::context::{Context, store_problem};
use operation::problem::Problem;
use schemas::avro::Encoder;
use schemas::clock::rfc3339;
use schemas::error_code::ErrorCode;
use schemas::event::{Command, Fact, FactKind, Head, content_hash};
use schemas::key;
use schemas::position::LogOffset;
use schemas::tables::{Key, ViewDef};
use schemas::topics::Topic;
use schemas::views::engine::{self, HeadRow};
use view_store::Checkpoint;

/// How often a command is tried when other commands are applied first.
const ATTEMPTS_MAX: usize = 5;

/// How many commands a subject takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandPolicy {
    /// The subject is random and new, so no command can exist for it yet.
    NewSubject,
    /// The subject identifies the request. If it has a command already, the request was processed before.
    OncePerSubject,
    /// The subject takes any number of commands.
    Always,
}

/// Appends a command on top of its subject's head and waits until a view has processed it. Retries if another command was applied first.
///
/// # Errors
/// `unavailable` when the command is not recorded, or not projected in time.
pub async fn append_command<C: Command>(
    ctx: &Context,
    view: &'static ViewDef,
    subject: &str,
    policy: CommandPolicy,
    command: &C,
) -> Result<(), Problem> {
    for _ in 0..ATTEMPTS_MAX {
        let head = if policy == CommandPolicy::NewSubject { Head::default() } else { head_of(ctx, C::TOPIC, subject).await? };
        if policy == CommandPolicy::OncePerSubject && head.version > 0 {
            return wait_until_projected(ctx, view, C::TOPIC).await;
        }
        if append_and_wait(ctx, view, C::TOPIC, vec![envelope(ctx, subject, head, command)?]).await? == [true] {
            return Ok(());
        }
    }
    Err(Problem::new(ErrorCode::Unavailable, "too many concurrent changes; try again").retry_after(1))
}

/// Waits until a view has processed a topic of commands up to its current end.
///
/// # Errors
/// `unavailable` when the view does not get there in time.
pub async fn wait_until_projected(ctx: &Context, view: &'static ViewDef, topic: &'static Topic) -> Result<(), Problem> {
    let end = ctx.log.end(topic, 0).await.map_err(|error| append_failed("read the end", &error))?;
    let passed = |at: &Checkpoint| at.position(topic, 0) >= end;
    ctx.wait_for(view, ctx.settings.call_times.projection(), passed).await?.map(|_| ()).ok_or_else(not_projected)
}

async fn head_of(ctx: &Context, topic: &Topic, subject: &str) -> Result<Head, Problem> {
    let view = ctx.live(&engine::VIEW).await?;
    head_in(subject, view.get(&engine::HEADS, &key![topic.name, subject]).await.map_err(store_problem)?)
}

fn head_in(subject: &str, row: Option<Bytes>) -> Result<Head, Problem> {
    let Some(bytes) = row else { return Ok(Head::default()) };
    HeadRow::from_bytes(&bytes).map(|row| row.head).ok_or_else(|| {
        tracing::error!(key = subject, "the stored head of a subject cannot be decoded");
        Problem::new(ErrorCode::Internal, "a stored row cannot be read")
    })
}

/// Appends commands in one batch, one per subject, on top of their heads, and waits until a view has processed them. Returns for each command
/// whether it was applied; it was not if another command extended the same head first.
///
/// # Errors
/// `unavailable` when the commands are not recorded, or not projected in time.
pub async fn append_commands<C: Command>(ctx: &Context, view: &'static ViewDef, all: &[(String, C)]) -> Result<Vec<bool>, Problem> {
    let engine = ctx.live(&engine::VIEW).await?;
    let heads: Vec<Key> = all.iter().map(|(subject, _)| key![C::TOPIC.name, subject.as_str()]).collect();
    let heads = engine.get_many(&engine::HEADS, &heads).await.map_err(store_problem)?;
    let mut appends = Vec::with_capacity(all.len());
    for ((subject, command), head) in all.iter().zip(heads) {
        appends.push(envelope(ctx, subject, head_in(subject, head)?, command)?);
    }
    append_and_wait(ctx, view, C::TOPIC, appends).await
}

/// Appends records and waits until a view has processed them. Returns for each record whether it extended its subject's head.
async fn append_and_wait(ctx: &Context, view: &'static ViewDef, topic: &'static Topic, appends: Vec<Append>) -> Result<Vec<bool>, Problem> {
    let offsets = append(ctx, appends).await?;
    let Some(last) = offsets.iter().max() else { return Ok(Vec::new()) };
    let passed = |at: &Checkpoint| at.position(topic, 0) > *last;
    ctx.wait_for(view, ctx.settings.call_times.projection(), passed).await?.ok_or_else(not_projected)?;
    let engine = ctx.live(&engine::VIEW).await?;
    let dropped: Vec<Key> = offsets.iter().map(|offset| key![topic.name, 0_i64, *offset]).collect();
    let dropped = engine.get_many(&engine::DROPPED, &dropped).await.map_err(store_problem)?;
    Ok(dropped.iter().map(Option::is_none).collect())
}

/// Builds the record of a command on top of a head.
fn envelope<C: Command>(ctx: &Context, subject: &str, head: Head, command: &C) -> Result<Append, Problem> {
    let now_ms = ctx.clock.now_ms();
    let content = content_hash(FactKind::Observed, &command.canonical());
    let topic = C::TOPIC;
    let next = Fact::after(&head, topic.name, FactKind::Observed, subject.to_owned(), content);
    let fact = Fact { upstream: "api".to_owned(), observed_at: now_ms, data: Some(command), ..next };
    let value = Encoder::new(topic.name).and_then(|mut encoder| encoder.encode(&fact)).map_err(|error| append_failed("encode", &error))?;
    let kind = format!("highwater.{}.{}", topic.name, command.verb());
    let headers = Headers::cloud_event(&fact.id.to_string(), &kind, &format!("/{}", topic.name), &rfc3339(now_ms));
    let record = Record { key: Bytes::from(subject.to_owned()), value: Bytes::from(value), headers, at_ms: now_ms };
    Ok(Append { topic, partition: topic.partition_of(subject.as_bytes()), record })
}

/// Appends records and returns their offsets. After the time for it, it is unknown whether they are recorded.
async fn append(ctx: &Context, appends: Vec<Append>) -> Result<Vec<LogOffset>, Problem> {
    let appending = tokio::time::timeout(ctx.settings.call_times.append(), ctx.log.append(appends));
    let appended = appending.await.map_err(|late| append_failed("append", &late))?;
    match appended {
        Ok(offsets) => Ok(offsets),
        // A log that accepts nothing is reported once, by the health checks.
        Err(error) if ctx.log.ready().await.is_err() => {
            tracing::debug!(error = &error as &dyn std::error::Error, "a command could not be appended: the log accepts nothing");
            Err(not_recorded())
        }
        Err(error) => Err(append_failed("append", &error)),
    }
}

fn append_failed(what: &'static str, error: &(dyn std::error::Error + 'static)) -> Problem {
    tracing::error!(error, what, "a command could not be appended");
    not_recorded()
}

fn not_recorded() -> Problem {
    Problem::new(ErrorCode::Unavailable, "the command could not be recorded").retry_after(1)
}

fn not_projected() -> Problem {
    Problem::new(ErrorCode::Unavailable, "the command is recorded, but not projected yet; try again").retry_after(5)
}
