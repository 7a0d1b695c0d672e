//! The feed of all changes over the Durable Streams protocol 1.0: catch-up reads, long polling, server-sent events and HEAD. Other methods are refused by
//! the routes.
//!
//! A long poll is one call of the operation, which waits. A stream of events calls the operation again and again. It ends after a minute, as the protocol
//! proposes, when the quota is used up, when the key ends, and when the server stops. Clients then continue at their last offset, and get the status of a
//! problem.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use documents::wire::EVENTS;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use operation::context::Context;
use operation::problem::Problem;
use operation::{Answer, Body};
use proofs::hash::Hash32;
use serde_json::{Map, Value, json};
use warp::reply::Response;

use crate::events::{self, Pages};
use crate::mounted_service::{Incoming, Mounted};
use crate::note;
use crate::reply;
use crate::response::{full_body, set, set_text, with_content_type};

const NEXT_OFFSET: HeaderName = HeaderName::from_static("stream-next-offset");
const UP_TO_DATE: HeaderName = HeaderName::from_static("stream-up-to-date");
const CURSOR: HeaderName = HeaderName::from_static("stream-cursor");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// How caches keep a stream of events. The protocol's suite asks for `no-cache`.
const EVENTS_CACHING: &str = "no-cache, no-store, no-transform";

/// After this time a stream of events ends, once its next page is due.
const LIFE_MAX: Duration = Duration::from_secs(60);
/// The length of the intervals that cursors count, in seconds.
const INTERVAL_S: i64 = 20;
/// When the intervals begin: 2024-10-09T00:00:00Z, in seconds since 1970.
const EPOCH_S: i64 = 1_728_432_000;
/// The most intervals that a cursor is moved on: an hour of them.
const JITTER_MAX: u64 = 180;

/// A read of a stream.
pub(crate) struct StreamRead<'a> {
    pub(crate) context: &'a Arc<Context>,
    pub(crate) mounted: &'a Arc<Mounted>,
    pub(crate) index: usize,
    pub(crate) incoming: Incoming,
    pub(crate) if_none_match: Option<String>,
    pub(crate) is_head: bool,
}

impl StreamRead<'_> {
    /// Answers the read with the arguments of the operation.
    ///
    /// # Errors
    /// The errors of the operation.
    pub(crate) async fn answer(mut self, arguments: Value) -> Result<Response, Problem> {
        let mut arguments = if let Value::Object(arguments) = arguments { arguments } else { Map::new() };
        if self.is_head {
            arguments = Map::from_iter([("offset".to_owned(), json!("now"))]);
        }
        let is_at_end = arguments.get("offset").is_some_and(|offset| offset == "now");
        let live = arguments.get("live").and_then(Value::as_str).map(str::to_owned);
        if live.as_deref() == Some("sse") {
            return self.events(arguments).await;
        }
        if live.is_none() && !is_at_end {
            self.incoming.if_none_match.clone_from(&self.if_none_match);
        }
        let given = arguments.get("cursor").and_then(Value::as_str).map(str::to_owned);
        let (answer, admitted) = self.mounted.call(self.context, self.index, Ok(Value::Object(arguments)), self.incoming).await?;
        let cursor = live.map(|_| Cursor::after(self.context.clock.now().as_second(), given.as_deref()));
        let is_up_to_date = !answer.has_more;
        let Answer { body, etag, next_cursor, .. } = answer;
        let items = match &body {
            Body::Events { items, .. } => items.as_slice(),
            _ => &[],
        };
        let is_empty_poll = cursor.is_some() && items.is_empty() && is_up_to_date;
        let mut response = match &body {
            _ if is_empty_poll => reply::empty(StatusCode::NO_CONTENT),
            Body::NotModified => reply::empty(StatusCode::NOT_MODIFIED),
            _ if self.is_head => with_content_type(full_body(Bytes::new()), "application/json"),
            _ => with_content_type(full_body(array(items.iter().map(|item| &item.data))), "application/json"),
        };
        let is_kept = !is_at_end && !is_empty_poll;
        let caching = if is_kept { reply::read_caching(admitted.keyed, !is_up_to_date) } else { "no-store" };
        reply::set_caching(&mut response, if is_kept { &etag } else { "" }, caching, "Authorization, X-API-Key");
        set(&mut response, RESOURCE_POLICY, HeaderValue::from_static("cross-origin"));
        set_text(&mut response, NEXT_OFFSET, &next_cursor);
        if is_up_to_date {
            set(&mut response, UP_TO_DATE, HeaderValue::from_static("true"));
        }
        if let Body::Events { note: Some(note), .. } = &body {
            note::set_header(&mut response, note);
        }
        if let Some(cursor) = cursor {
            set_text(&mut response, CURSOR, &cursor.0.to_string());
        }
        admitted.set_headers(&mut response);
        Ok(response)
    }

    /// Begins a stream of events with a page of what is recorded, which may be empty.
    async fn events(self, mut arguments: Map<String, Value>) -> Result<Response, Problem> {
        let Self { context, mounted, index, incoming, .. } = self;
        let cursor = Cursor::after(context.clock.now().as_second(), arguments.get("cursor").and_then(Value::as_str));
        let (answer, admitted) = mounted.call(context, index, Ok(Value::Object(arguments.clone())), incoming.clone()).await?;
        arguments.insert("live".to_owned(), json!("long-poll"));
        let begun = Instant::now();
        let continued = Incoming { is_continuation: true, ..incoming };
        let mut tail =
            Tail { context: Arc::clone(context), mounted: Arc::clone(mounted), index, arguments, incoming: continued, cursor, begun };
        let note = if let Body::Events { note, .. } = &answer.body { note.clone() } else { None };
        let first = tail.piece(answer);
        let mut response =
            events::response(context, first, tail.incoming.clone(), tail, Bytes::from_static(b": the key ended\n\n"), &admitted);
        set(&mut response, CONTENT_TYPE, HeaderValue::from_static(EVENTS));
        set(&mut response, CACHE_CONTROL, HeaderValue::from_static(EVENTS_CACHING));
        set(&mut response, RESOURCE_POLICY, HeaderValue::from_static("cross-origin"));
        if let Some(note) = note {
            note::set_header(&mut response, &note);
        }
        Ok(response)
    }
}

/// The state of a stream of events.
struct Tail {
    context: Arc<Context>,
    mounted: Arc<Mounted>,
    index: usize,
    arguments: Map<String, Value>,
    incoming: Incoming,
    /// The cursor that was sent last.
    cursor: Cursor,
    begun: Instant,
}

impl Pages for Tail {
    async fn next_piece(&mut self) -> Option<Bytes> {
        if *self.context.stopping.borrow() || self.begun.elapsed() > LIFE_MAX {
            return None;
        }
        match events::continued(&self.context, &self.mounted, self.index, &self.arguments, &self.incoming).await {
            Ok(answer) => Some(self.piece(answer)),
            Err(problem) => {
                // The client reconnects and gets the status.
                tracing::debug!(detail = problem.detail, "a stream ended");
                None
            }
        }
    }
}

impl Tail {
    /// The events of a page: its changes, if there are any, and where the stream is. No blank follows the names of fields: readers of the protocol's suite
    /// expect none. Sets the offset of the next call.
    fn piece(&mut self, answer: Answer) -> Bytes {
        let Answer { body, next_cursor, has_more, .. } = answer;
        let mut text = BytesMut::new();
        if let Body::Events { items, .. } = &body
            && !items.is_empty()
        {
            for part in [b"event: data\ndata:".as_slice(), &array(items.iter().map(|item| &item.data)), b"\n\n"] {
                text.extend_from_slice(part);
            }
        }
        self.cursor = self.cursor.continued(self.context.clock.now().as_second());
        let mut control = json!({ "streamNextOffset": next_cursor, "streamCursor": self.cursor.0.to_string() });
        if !has_more {
            control["upToDate"] = json!(true);
        }
        text.extend_from_slice(format!("event: control\ndata:{control}\n\n").as_bytes());
        self.arguments.insert("offset".to_owned(), json!(next_cursor));
        text.freeze()
    }
}

/// A JSON array of values that are JSON already.
fn array<'a>(items: impl Iterator<Item = &'a Bytes>) -> Bytes {
    let mut text = BytesMut::from(&b"["[..]);
    for (at, item) in items.enumerate() {
        if at > 0 {
            text.extend_from_slice(b",");
        }
        text.extend_from_slice(item);
    }
    text.extend_from_slice(b"]");
    text.freeze()
}

/// The cursor of a live answer: the number of an interval, which is part of the key under which caches keep the next answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cursor(u64);

impl Cursor {
    /// The current interval, or one after the client's cursor if that is not an earlier one. How many intervals after it follows from the client's cursor, so
    /// that clients that wait for the same ask for the same again. A text that was not issued here counts as no cursor.
    fn after(now_s: i64, given: Option<&str>) -> Self {
        let interval = interval_at(now_s);
        let given = given.and_then(|given| given.parse::<u64>().ok()).filter(|given| *given >= interval);
        let after = given.and_then(|given| {
            let [first, ..] = Hash32::of(&given.to_be_bytes()).0;
            given.checked_add(1 + u64::from(first) % JITTER_MAX)
        });
        Self(after.unwrap_or(interval))
    }

    /// The next cursor of the same connection: the current interval, but never an earlier one than before.
    fn continued(self, now_s: i64) -> Self {
        Self(self.0.max(interval_at(now_s)))
    }
}

/// The number of the interval at a time.
fn interval_at(now_s: i64) -> u64 {
    u64::try_from((now_s - EPOCH_S).div_euclid(INTERVAL_S)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that cursors count intervals and never go back, whatever the client sends, also within one connection.
    #[test]
    fn cursors_move_on() {
        let now_s = EPOCH_S + 1_000 * INTERVAL_S + 7;
        for given in
            [None, Some("999"), Some("0"), Some(""), Some("abc"), Some("-5"), Some("18446744073709551615"), Some("18446744073709551616")]
        {
            assert_eq!(Cursor::after(now_s, given), Cursor(1_000), "{given:?}");
        }
        for given in [1_000, 1_001, 1_234_567_890_123_456_789_u64] {
            let Cursor(next) = Cursor::after(now_s, Some(&given.to_string()));
            assert!((1..=JITTER_MAX).contains(&(next - given)), "{given}: {next}");
        }
        assert_eq!(Cursor::after(0, None), Cursor(0));
        let ahead = Cursor(1_002);
        let later = [0, 1, 2, 3, 4].map(|intervals| ahead.continued(now_s + intervals * INTERVAL_S));
        assert_eq!(later, [1_002, 1_002, 1_002, 1_003, 1_004].map(Cursor));
    }
}
