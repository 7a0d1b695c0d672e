//! A feed as server-sent events. The id of each event is the cursor after its item, so a reader that lost the connection continues with
//! `Last-Event-ID` without gaps or duplicates.
//!
//! A stream begins with an event `position`, whose id is the cursor at which the stream starts, and sends it again with the current cursor when no change
//! came for a while. A reader that is cut before its first change thus has an id to continue from. The event has data because not every client keeps the id
//! of a block without data: browsers do, as the HTML standard says, but the parser of npm's `eventsource` drops it. The first one has the note of the first
//! page, too, as the headers of the response have, which a browser does not show.
//!
//! A stream that the server ends says why: in an event `reset` with the problem and the cursor to continue from, or in an event `end` when nothing is
//! wrong. A browser gives up on any status but 200, so a problem that a later attempt or another cursor overcomes is answered with 200 and `reset`, also
//! at the beginning.
//!
//! A stream calls the feed's operation again and again from its last position, and waits for new items. Each page with items counts as one call, as it
//! would for a reader that polls; waiting does not count. The stream ends when the quota is used up, after an hour, within five seconds after the
//! key is revoked, and when the server stops; clients then reconnect automatically.

use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use access::Access;
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use http::header::{CACHE_CONTROL, RETRY_AFTER};
use http::{HeaderName, HeaderValue};
use operation::context::Context;
use operation::context::Part;
use operation::problem::Problem;
use operation::{Answer, Body, Event};
use schemas::error_code::ErrorCode;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, watch};
use warp::Reply;
use warp::reply::Response;

use crate::mounted_service::{Admitted, Incoming, Mounted};
use crate::note;
use crate::response::{full_body, set_text, with_content_type};

/// The content type of events.
pub(crate) const EVENTS_UTF8: &str = "text/event-stream; charset=utf-8";
/// How many seconds to wait for new items before the position is sent again, which keeps the connection alive.
const WAIT_S: u64 = 20;
/// The longest duration of a stream.
const LIFE_MAX: Duration = Duration::from_secs(3_600);
/// After how many milliseconds a client reconnects to a stream that ended.
const RETRY_MS: u64 = 1_000;
/// After how many milliseconds a client reconnects to a stream that ended with a problem which names no time to wait.
const RESET_RETRY_MS: u64 = 300_000;

/// The state of a stream.
struct Following {
    context: Arc<Context>,
    mounted: Arc<Mounted>,
    index: usize,
    arguments: Map<String, Value>,
    incoming: Incoming,
    begun: Instant,
    /// Whether the event that ends the stream was sent.
    has_ended: bool,
}

/// Starts a stream with the arguments of the feed, after the reader's last event if it has one.
///
/// # Errors
/// The errors of the operation that neither a later attempt nor another cursor overcomes.
pub(crate) async fn begin(
    context: &Arc<Context>,
    mounted: &Arc<Mounted>,
    index: usize,
    arguments: Value,
    last: Option<&str>,
    incoming: Incoming,
) -> Result<Response, Problem> {
    let mut arguments = if let Value::Object(arguments) = arguments { arguments } else { Map::new() };
    if let Some(last) = last.filter(|last| !last.is_empty()) {
        arguments.insert("cursor".to_owned(), json!(last));
        arguments.remove("start");
    }
    arguments.insert("wait".to_owned(), json!(0));
    let (answer, admitted) = match mounted.call(context, index, Ok(Value::Object(arguments.clone())), incoming.clone()).await {
        Ok(called) => called,
        Err(problem) if is_overcome_later(&problem) => return Ok(refusal(&problem, &arguments, &mounted.settings.base_url)),
        Err(problem) => return Err(problem),
    };
    let (from, items, note) = take_events(answer, &mut arguments);
    // Without items, everything up to the next cursor is known to hold none.
    let from = if items.is_empty() { cursor_of(&arguments) } else { from };
    let mut begin = BytesMut::from(format!("retry: {RETRY_MS}\n").as_bytes());
    begin.extend_from_slice(&position(&from, note.as_deref()));
    begin.extend_from_slice(&text(&items));
    arguments.insert("wait".to_owned(), json!(WAIT_S));
    let following = Following {
        context: Arc::clone(context),
        mounted: Arc::clone(mounted),
        index,
        arguments,
        incoming: Incoming { is_continuation: true, ..incoming },
        begun: Instant::now(),
        has_ended: false,
    };
    let key_ended = Problem::new(ErrorCode::KeyInvalid, "the API key was revoked or replaced while the stream was open");
    let key_ended = reset(&key_ended, &Map::new(), &mounted.settings.base_url);
    let mut response = response(context, begin.freeze(), following.incoming.clone(), following, key_ended, &admitted);
    if let Some(note) = note {
        note::set_header(&mut response, &note);
    }
    Ok(response)
}

/// The response to a call that was admitted: a stream of pages, which ends with `last` when the key of the call ends.
pub(crate) fn response(
    context: &Arc<Context>,
    first: Bytes,
    incoming: Incoming,
    pages: impl Pages,
    last: Bytes,
    admitted: &Admitted,
) -> Response {
    let wait_for_key_end = {
        let (context, Incoming { credentials, address, .. }) = (Arc::clone(context), incoming);
        async move { Access::of(&context).wait_for_key_end(&context, &credentials, address).await }
    };
    let pieces = pages_until(wait_for_key_end, first, pages, last).map(Ok::<_, std::convert::Infallible>);
    let mut response = with_event_headers(warp::reply::stream(pieces).into_response());
    admitted.set_headers(&mut response);
    response
}

/// Continues a stream with a call of its operation. It counts as a call if it has items.
///
/// # Errors
/// The errors of the operation, and of the quota.
pub(crate) async fn continued(
    context: &Arc<Context>,
    mounted: &Mounted,
    index: usize,
    arguments: &Map<String, Value>,
    incoming: &Incoming,
) -> Result<Answer, Problem> {
    let (answer, _) = mounted.call(context, index, Ok(Value::Object(arguments.clone())), incoming.clone()).await?;
    if matches!(&answer.body, Body::Events { items, .. } if !items.is_empty()) {
        let Incoming { credentials, address, .. } = incoming.clone();
        Access::of(context).admit(context, credentials, address, &mounted.service.operations[index], false).await?;
    }
    Ok(answer)
}

/// Sets the headers of an event stream: nothing on the way may store, collect or compress it.
pub(crate) fn with_event_headers(response: Response) -> Response {
    let mut response = with_content_type(response, EVENTS_UTF8);
    let headers = [(CACHE_CONTROL, "no-store, no-transform"), (HeaderName::from_static("x-accel-buffering"), "no")];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Whether a later attempt or another cursor can overcome a problem. A browser must survive such a problem, so it is not answered with its status.
fn is_overcome_later(problem: &Problem) -> bool {
    problem.code.may_retry() || is_about_cursor(problem)
}

/// Whether the stream cannot continue from its cursor.
fn is_about_cursor(problem: &Problem) -> bool {
    matches!(problem.code, ErrorCode::CursorInvalid | ErrorCode::FilterChanged)
}

/// The response to a reader whose stream cannot begin: a stream of one event.
fn refusal(problem: &Problem, arguments: &Map<String, Value>, base_url: &str) -> Response {
    let mut response = with_event_headers(full_body(reset(problem, arguments, base_url)));
    for (name, value) in &problem.headers {
        set_text(&mut response, HeaderName::from_static(name), value);
    }
    if problem.retry_after_s > 0 {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(problem.retry_after_s));
    }
    response
}

/// A source of pages.
pub(crate) trait Pages: Send + 'static {
    /// Returns the next page; `None` when the stream ends.
    fn next_piece(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

/// The first page of a stream and then the following ones, until there are no more, the reader is gone, or `ended` completes. After that, a page that
/// waits for a slow reader is not sent either, only `last`.
fn pages_until(
    ended: impl Future<Output = ()> + Send + 'static,
    first: Bytes,
    mut pages: impl Pages,
    last: Bytes,
) -> impl Stream<Item = Bytes> {
    let mut last = Some(last);
    let (sender, mut received) = mpsc::channel::<Bytes>(1);
    let (end, is_ended) = watch::channel(false);
    tokio::spawn(async move {
        let sending = async {
            let mut next = Some(first);
            while let Some(page) = next {
                // The reader is gone.
                if sender.send(page).await.is_err() {
                    return;
                }
                next = tokio::select! {
                    () = sender.closed() => None,
                    page = pages.next_piece() => page,
                };
            }
        };
        tokio::select! {
            () = sending => {}
            () = ended => drop(end.send(true)),
        }
    });
    stream::poll_fn(move |cx| if *is_ended.borrow() { Poll::Ready(last.take()) } else { received.poll_recv(cx) })
}

impl Pages for Following {
    async fn next_piece(&mut self) -> Option<Bytes> {
        self.next_page_unless_ended().await
    }
}

impl Following {
    /// Computes the next page, or the event that ends the stream; `None` after that event.
    async fn next_page_unless_ended(&mut self) -> Option<Bytes> {
        if self.has_ended {
            return None;
        }
        let reason = if *self.context.stopping.borrow() {
            Some("server-stopping")
        } else {
            (self.begun.elapsed() > LIFE_MAX).then_some("time-limit")
        };
        if let Some(reason) = reason {
            self.has_ended = true;
            let cursor = cursor_of(&self.arguments);
            return Some(block("end", &cursor, &json!({ "reason": reason, "cursor": cursor }), None));
        }
        let page = self.next_page().await;
        Some(page.unwrap_or_else(|problem| {
            tracing::debug!(detail = problem.detail, "a stream ended");
            self.has_ended = true;
            reset(&problem, &self.arguments, &self.mounted.settings.base_url)
        }))
    }

    /// Computes the next page. It counts as a call if it has items.
    async fn next_page(&mut self) -> Result<Bytes, Problem> {
        let answer = continued(&self.context, &self.mounted, self.index, &self.arguments, &self.incoming).await?;
        let (_, items, _) = take_events(answer, &mut self.arguments);
        Ok(if items.is_empty() { position(&cursor_of(&self.arguments), None) } else { text(&items) })
    }
}

/// The cursor before the events of an answer, the events, and its note. Sets the cursor for the next call.
fn take_events(answer: Answer, arguments: &mut Map<String, Value>) -> (String, Vec<Event>, Option<String>) {
    arguments.insert("cursor".to_owned(), json!(answer.next_cursor));
    arguments.remove("start");
    match answer.body {
        Body::Events { from, items, note, .. } => (from, items, note),
        _ => (answer.next_cursor, Vec::new(), None),
    }
}

/// The cursor in the arguments of a call; empty if there is none.
fn cursor_of(arguments: &Map<String, Value>) -> String {
    arguments.get("cursor").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The event that says where the stream is, with a comment for readers of the raw stream. `note`: what to know about the stream.
fn position(cursor: &str, note: Option<&str>) -> Bytes {
    let mut data = json!({ "cursor": cursor });
    if let Some(note) = note {
        data["note"] = json!(note);
    }
    let event = block("position", cursor, &data, None);
    [b": keep-alive\n", event.as_ref()].concat().into()
}

/// The event that ends a stream with a problem. It has no id, so that the reader keeps the last one that it received. A cursor that is refused is no
/// cursor to continue from.
fn reset(problem: &Problem, arguments: &Map<String, Value>, base_url: &str) -> Bytes {
    let mut data = problem.document(base_url);
    let cursor = arguments.get("cursor").filter(|_| !is_about_cursor(problem));
    data["cursor"] = cursor.cloned().unwrap_or(Value::Null);
    let retry_ms = if problem.retry_after_s > 0 { problem.retry_after_s.saturating_mul(1_000) } else { RESET_RETRY_MS };
    block("reset", "", &data, Some(retry_ms))
}

/// Formats an event that is no change. An empty id is left out.
fn block(event: &str, id: &str, data: &Value, retry_ms: Option<u64>) -> Bytes {
    let id = if id.is_empty() { String::new() } else { format!("id: {id}\n") };
    let retry = retry_ms.map(|retry_ms| format!("retry: {retry_ms}\n")).unwrap_or_default();
    Bytes::from(format!("event: {event}\n{id}{retry}data: {data}\n\n"))
}

/// Formats changes as events.
pub(crate) fn text(events: &[Event]) -> Bytes {
    let mut out = BytesMut::with_capacity(events.iter().map(|event| event.id.len() + event.data.len() + 16).sum());
    for Event { id, data } in events {
        for part in [b"id: ", id.as_bytes(), b"\ndata: ", data, b"\n\n"] {
            out.extend_from_slice(part);
        }
    }
    out.freeze()
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    /// Numbers as pages.
    struct Numbers {
        last: u8,
        _held: Arc<()>,
    }

    impl Pages for Numbers {
        async fn next_piece(&mut self) -> Option<Bytes> {
            self.last += 1;
            Some(Bytes::from(vec![self.last]))
        }
    }

    /// The last piece of a stream whose key ended.
    const LAST: Bytes = Bytes::from_static(b"last");

    /// Proves that a keep-alive has the id of its position, and data, without which some clients do not keep the id.
    #[test]
    fn positions_have_an_id() {
        assert_eq!(position("c1", None), ": keep-alive\nevent: position\nid: c1\ndata: {\"cursor\":\"c1\"}\n\n");
        let noted = String::from_utf8(position("c1", Some("two\nlines")).to_vec()).unwrap();
        assert!(noted.lines().filter(|line| line.starts_with("data: ")).count() == 1 && noted.contains("\nid: c1\n"), "{noted}");
    }

    /// Proves that a stream ends with its key while pages wait for a reader that does not read: no more pages are computed, and the waiting page is not
    /// sent, only the event that says why the stream ends.
    #[tokio::test]
    async fn a_waiting_page_is_not_sent_after_the_end() {
        let (revoke, revoked) = oneshot::channel::<()>();
        let ended = async { drop(revoked.await) };
        let held = Arc::new(());
        let mut pages = Box::pin(pages_until(ended, Bytes::from_static(&[0]), Numbers { last: 0, _held: Arc::clone(&held) }, LAST));
        for page in 0..5_u8 {
            assert_eq!(pages.next().await, Some(Bytes::from(vec![page])));
        }
        revoke.send(()).unwrap();
        // The sender drops its page although nobody reads.
        while Arc::strong_count(&held) > 1 {
            tokio::task::yield_now().await;
        }
        assert_eq!((pages.next().await, pages.next().await), (Some(LAST), None));
    }
}
