//! Commands: what the API is asked to remember is appended to a topic of commands, and answered once the view that decides it has passed
//! it, so that a caller reads its own writes.
//!
//! Commands chain per subject like facts. Two that extend the same head: the engine takes the first, and the other tries again on top of it.

use std::time::Duration;

use bytes::Bytes;
use event_log::{Append, Headers, Record};
use schemas::avro::Encoder;
use schemas::clock::rfc3339;
use schemas::error_code::ErrorCode;
use schemas::event::{Command, Fact, FactKind, Head, content_hash, fact_id};
use schemas::hash::Hash32;
use schemas::key;
use schemas::tables::{Key, ViewDef};
use schemas::topics::Topic;
use schemas::views::engine::{self, HeadRow};
use view_store::Checkpoint;

use operation::context::{Context, store_problem};
use operation::problem::Problem;

/// How long a command may take to be appended. Beyond, it may be recorded or not.
const APPENDED_WITHIN: Duration = Duration::from_secs(4);
/// How long a command may take to be projected before the caller is told to ask again.
const PROJECTED_WITHIN: Duration = Duration::from_secs(10);
/// How often a command that lost to another one tries again.
const TRIES: usize = 5;

/// Whether a subject takes one command only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Once {
    /// The subject was made up by chance for this request: nothing can have been done for it.
    Fresh,
    /// The subject stands for the request: whatever was done for it before was done for this one, too.
    Yes,
    /// Each command is one more.
    No,
}

/// Appends a command on top of its subject's head and waits until a view has passed it; again while another one was first.
///
/// # Errors
/// `unavailable` when it is not recorded, or not projected in time.
pub async fn command<C: Command>(ctx: &Context, view: &'static ViewDef, subject: &str, once: Once, command: &C) -> Result<(), Problem> {
    for _ in 0..TRIES {
        let head = if once == Once::Fresh { Head::default() } else { head_of(ctx, C::TOPIC, subject).await? };
        if once == Once::Yes && head.version > 0 {
            return caught_up(ctx, view, C::TOPIC).await;
        }
        if taken(ctx, view, C::TOPIC, vec![envelope(ctx, subject, head, command)?]).await? == [true] {
            return Ok(());
        }
    }
    Err(Problem::new(ErrorCode::Unavailable, "others change this at the same time; ask again").retry_after(1))
}

/// Waits until a view has passed the present end of a topic of commands.
///
/// # Errors
/// `unavailable` when it has not in time.
pub async fn caught_up(ctx: &Context, view: &'static ViewDef, topic: &'static Topic) -> Result<(), Problem> {
    let place = format!("{}/0", topic.name);
    let end = ctx.log.end(topic, 0).await.map_err(|error| failed("read the end", &error))?;
    let passed = |at: &Checkpoint| end.0 == 0 || at.positions.get(&place).is_some_and(|next| *next >= end.0);
    ctx.wait_for(view, PROJECTED_WITHIN, passed).await?.map(|_| ()).ok_or_else(not_yet)
}

async fn head_of(ctx: &Context, topic: &Topic, subject: &str) -> Result<Head, Problem> {
    let view = ctx.live(&engine::VIEW).await?;
    head_in(subject, view.get(&engine::HEADS, &key![topic.name, subject]).await.map_err(store_problem)?)
}

fn head_in(subject: &str, row: Option<Bytes>) -> Result<Head, Problem> {
    let Some(bytes) = row else { return Ok(Head::default()) };
    HeadRow::from_bytes(&bytes).map(|row| row.head).ok_or_else(|| {
        tracing::error!(key = subject, "the head of a subject cannot be read");
        Problem::new(ErrorCode::Internal, "a stored row cannot be read")
    })
}

/// Appends commands, one a subject, on top of their heads, in one batch, and waits until a view has passed them; says of each whether it extended
/// its subject's head, which another one may have done first.
///
/// # Errors
/// `unavailable` when they are not recorded, or not projected in time.
pub async fn commands<C: Command>(ctx: &Context, view: &'static ViewDef, all: &[(String, C)]) -> Result<Vec<bool>, Problem> {
    let engine = ctx.live(&engine::VIEW).await?;
    let heads: Vec<Key> = all.iter().map(|(subject, _)| key![C::TOPIC.name, subject.as_str()]).collect();
    let heads = engine.get_many(&engine::HEADS, &heads).await.map_err(store_problem)?;
    let mut appends = Vec::with_capacity(all.len());
    for ((subject, command), head) in all.iter().zip(heads) {
        appends.push(envelope(ctx, subject, head_in(subject, head)?, command)?);
    }
    taken(ctx, view, C::TOPIC, appends).await
}

/// Appends and waits until a view has passed it; says of each whether it extended its subject's head.
async fn taken(ctx: &Context, view: &'static ViewDef, topic: &'static Topic, appends: Vec<Append>) -> Result<Vec<bool>, Problem> {
    let offsets = append(ctx, appends).await?;
    let Some(last) = offsets.iter().max() else { return Ok(Vec::new()) };
    let place = format!("{}/0", topic.name);
    let passed = |at: &Checkpoint| at.positions.get(&place).is_some_and(|next| next > last);
    ctx.wait_for(view, PROJECTED_WITHIN, passed).await?.ok_or_else(not_yet)?;
    let engine = ctx.live(&engine::VIEW).await?;
    let dropped: Vec<Key> = offsets.iter().map(|offset| key![topic.name, 0_i64, i64::try_from(*offset).unwrap_or(i64::MAX)]).collect();
    let dropped = engine.get_many(&engine::DROPPED, &dropped).await.map_err(store_problem)?;
    Ok(dropped.iter().map(Option::is_none).collect())
}

/// A command as it is appended on top of a head.
fn envelope<C: Command>(ctx: &Context, subject: &str, head: Head, command: &C) -> Result<Append, Problem> {
    let now_ms = ctx.clock.now_ms();
    let content = content_hash(FactKind::Observed, &command.canonical());
    let version = head.version + 1;
    let topic = C::TOPIC;
    let id: Hash32 = fact_id(topic.name, subject, version, &head.id, &content);
    let fact = Fact {
        id,
        kind: FactKind::Observed,
        key: subject.to_owned(),
        version,
        prev_hash: head.id,
        content_hash: content,
        upstream: "api".to_owned(),
        observed_at: now_ms,
        superseded_by: String::new(),
        data: Some(command),
        run: None,
    };
    let value = Encoder::new(topic.name).and_then(|mut encoder| encoder.encode(&fact)).map_err(|error| failed("encode", &error))?;
    let kind = format!("highwater.{}.{}", topic.name, command.verb());
    let headers = Headers::cloud_event(&id.to_string(), &kind, &format!("/{}", topic.name), &rfc3339(now_ms));
    let record = Record { key: Bytes::from(subject.to_owned()), value: Bytes::from(value), headers, at_ms: now_ms };
    Ok(Append { topic, partition: topic.partition_of(subject.as_bytes()), record })
}

/// Appends; answers the offsets.
async fn append(ctx: &Context, appends: Vec<Append>) -> Result<Vec<u64>, Problem> {
    let appended = tokio::time::timeout(APPENDED_WITHIN, ctx.log.append(appends)).await.map_err(|late| failed("append", &late))?;
    Ok(appended.map_err(|error| failed("append", &error))?.into_iter().map(|offset| offset.0).collect())
}

fn failed(what: &'static str, error: &(dyn std::error::Error + 'static)) -> Problem {
    tracing::error!(error, what, "a command was not recorded");
    Problem::new(ErrorCode::Unavailable, "the command could not be recorded").retry_after(1)
}

fn not_yet() -> Problem {
    Problem::new(ErrorCode::Unavailable, "the command is recorded and not yet projected; ask again").retry_after(5)
}
