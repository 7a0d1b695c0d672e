//! The operation `stream`, the same for every service: the feed of all changes as a stream of the Durable Streams protocol 1.0, for reading only.
//!
//! A page is a page of `changes`: the same changes, free window, redaction and price. Only positions are written in another way. The protocol wants offsets
//! that sort as text, so an offset is the seq of a change with zeros before it. It needs no signature: it selects nothing that `start` and
//! a cursor cannot select.

use operation::feed_start::{EARLIEST, LATEST};
use operation::problem::Problem;
use operation::{Answer, Call, DURABLE_STREAM_WAIT_S, Definition, Form, Operation, Surface};
use schemars::JsonSchema;
use schemas::details::ChangeRecord;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use serde::Deserialize;
use serde_json::json;
use texts::numbers::has_only_digits;

use super::changes::{self, Changes};
use super::page_request::{LIMIT_MAX, PageRequest};
use super::{Source, cursor};

/// The digits of an offset: those of the largest seq.
const OFFSET_DIGITS: usize = 20;

/// How a reader waits for further changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Live {
    /// One answer, as soon as there is a change.
    LongPoll,
    /// Server-sent events.
    Sse,
}

/// Arguments of `stream`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct StreamRequest {
    /// Where to read from: `-1` for the beginning, `now` for the end, or the `Stream-Next-Offset` of an earlier answer. By default the beginning.
    offset: Option<String>,
    /// How to wait for changes: `long-poll` waits up to 20 seconds if there are none, `sse` sends server-sent events. Both need an `offset`.
    live: Option<Live>,
    /// The `Stream-Cursor` of the last live answer, which keeps caches from repeating it.
    #[expect(dead_code, reason = "only the surface reads it")]
    cursor: Option<String>,
    /// The most changes of an answer.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = 200))]
    limit: usize,
}

fn limit_default() -> usize {
    LIMIT_MAX
}

/// Defines the operation for one service, whose records are `R`.
pub fn operation<R: ChangeRecord + JsonSchema + 'static>(source: Source) -> Operation {
    let definition = Definition {
        name: "stream",
        path: "/v1/stream",
        summary: "The changes as a durable stream, oldest first.",
        description: "The feed `changes` by the Durable Streams protocol 1.0, for reading: an answer is a JSON array of changes, and the header \
                    `Stream-Next-Offset` says where the next one begins. `Stream-Up-To-Date` says that no more changes are recorded. Offsets sort as text. \
                    The stream is never closed, and cannot be written to.",
        price: source.price_of_records(),
        surface: Surface::Route,
        errors: &[ErrorCode::CursorInvalid],
        example: json!({ "offset": "-1", "limit": 10 }),
        ..Definition::read()
    };
    let mut operation =
        Operation::define::<StreamRequest, Changes<R>, _, _>(definition, move |call, request| answer((source, R::COMPARED), call, request))
            .as_durable_stream();
    source.document_redaction(&mut operation);
    // An answer is the list alone.
    for schema in [&mut operation.output, &mut operation.named_output.schema] {
        if let Some(list) = schema.pointer_mut("/properties/changes").map(serde_json::Value::take) {
            *schema = list;
        }
    }
    operation
}

async fn answer((source, compared): (Source, &[&str]), call: Call, request: StreamRequest) -> Result<Answer, Problem> {
    let StreamRequest { offset, live, limit, .. } = request;
    // A stream of events waits between its pages, by calls with `long-poll`.
    let wait = if live == Some(Live::LongPoll) { DURABLE_STREAM_WAIT_S } else { 0 };
    if live.is_some() && offset.is_none() {
        return Err(Problem::parameter("offset", "`live` needs an `offset`: -1, now, or a `Stream-Next-Offset`"));
    }
    let secrets = &call.context.secrets;
    let (start, cursor) = match offset.as_deref() {
        None | Some("-1") => (Some(EARLIEST.to_owned()), None),
        Some("now") => (Some(LATEST.to_owned()), None),
        Some(text) => (None, Some(cursor::encode(secrets, source.service, seq_of(text)?, ""))),
    };
    let call = Call { form: Form::Events, ..call };
    let page = PageRequest { cursor, start, limit, wait, as_of: None };
    let answer = changes::answer((source, compared), call.clone(), page).await.map_err(|problem| match problem.code {
        ErrorCode::CursorInvalid => Problem { detail: "the offset is beyond the end of the stream".to_owned(), ..problem.about("offset") },
        _ => problem,
    })?;
    let next = cursor::decode(&call.context.secrets, source.service, "", &answer.next_cursor)?;
    Ok(Answer { next_cursor: offset_of(next), ..answer })
}

/// The offset after a change.
fn offset_of(seq: Seq) -> String {
    format!("{seq:0>OFFSET_DIGITS$}")
}

/// Reads an offset.
fn seq_of(text: &str) -> Result<Seq, Problem> {
    let is_offset = text.len() == OFFSET_DIGITS && has_only_digits(text);
    let seq = if is_offset { text.parse().ok() } else { None };
    seq.ok_or_else(|| Problem::parameter("offset", format!("offset: {text:?} is neither -1, now nor an offset of {OFFSET_DIGITS} digits")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that offsets sort as text as their changes do, read back, and are never one of the protocol's own; and that nothing else is an offset.
    #[test]
    fn offsets_sort_as_text() {
        let seqs = [0, 1, 9, 10, 99, 100, 4_294_967_296, u64::MAX].map(Seq);
        let offsets = seqs.map(offset_of);
        assert!(offsets.is_sorted() && offsets.iter().all(|offset| offset.len() == 20), "{offsets:?}");
        assert_eq!(offsets.map(|offset| seq_of(&offset)), seqs.map(Ok));
        for text in
            ["", "0", "-1", "now", "1,2", "0000000000000000001", "000000000000000000001", "+0000000000000000001", "99999999999999999999"]
        {
            assert_eq!(seq_of(text).unwrap_err().parameter, "offset", "{text}");
        }
    }
}
