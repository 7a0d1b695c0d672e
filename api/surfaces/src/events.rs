//! A feed as server-sent events. The id of each event is the cursor after its item, so a reader that lost the connection continues with
//! `Last-Event-ID` without gaps or duplicates.
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
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use operation::context::Context;
use operation::context::Part;
use operation::problem::Problem;
use operation::{Answer, Body, Event};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, watch};
use warp::Reply;
use warp::reply::Response;

use crate::mounted::{Admitted, Incoming, Mounted};

/// The media type of events, by which callers ask for them.
pub(crate) const EVENTS: &str = "text/event-stream";
/// The content type of events.
pub(crate) const EVENTS_UTF8: &str = "text/event-stream; charset=utf-8";
/// How many seconds to wait for new items before a comment is sent to keep the connection alive.
const WAIT_S: u64 = 20;
/// The longest duration of a stream.
const LIFE_MAX: Duration = Duration::from_secs(3_600);
/// After how many milliseconds a client reconnects to a stream that ended.
const RETRY_MS: u64 = 1_000;

/// The state of a stream.
struct Following {
    context: Arc<Context>,
    mounted: Arc<Mounted>,
    index: usize,
    arguments: Map<String, Value>,
    incoming: Incoming,
    begun: Instant,
}

/// Starts a stream with the arguments of the feed, after the reader's last event if it has one.
///
/// # Errors
/// The errors of the operation.
pub(crate) async fn begin(
    context: &Arc<Context>,
    mounted: &Arc<Mounted>,
    index: usize,
    arguments: Value,
    last: Option<&str>,
    incoming: Incoming,
) -> Result<(Response, Admitted), Problem> {
    let mut arguments = if let Value::Object(arguments) = arguments { arguments } else { Map::new() };
    if let Some(last) = last.filter(|last| !last.is_empty()) {
        arguments.insert("cursor".to_owned(), json!(last));
        arguments.remove("start");
    }
    arguments.insert("wait".to_owned(), json!(0));
    let (answer, admitted) = mounted.call(context, index, Ok(Value::Object(arguments.clone())), incoming.clone()).await?;
    let mut begin = BytesMut::from(format!("retry: {RETRY_MS}\n\n").as_bytes());
    begin.extend_from_slice(&take_events(answer, &mut arguments));
    arguments.insert("wait".to_owned(), json!(WAIT_S));
    let following = Following {
        context: Arc::clone(context),
        mounted: Arc::clone(mounted),
        index,
        arguments,
        incoming: Incoming { is_continuation: true, ..incoming },
        begun: Instant::now(),
    };
    let wait_for_key_end = {
        let (context, credentials, address) = (Arc::clone(context), following.incoming.credentials.clone(), following.incoming.address);
        async move { Access::of(&context).wait_for_key_end(&context, &credentials, address).await }
    };
    let pieces = pages_until(wait_for_key_end, begin.freeze(), following).map(Ok::<_, std::convert::Infallible>);
    let mut response = warp::reply::stream(pieces).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS_UTF8));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok((response, admitted))
}

/// A source of pages.
trait Pages: Send + 'static {
    /// Returns the next page; `None` when the stream ends.
    fn next_piece(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

/// The first page of a stream and then the following ones, until there are no more, the reader is gone, or `ended` completes. After that, a page that
/// waits for a slow reader is not sent either.
fn pages_until(ended: impl Future<Output = ()> + Send + 'static, first: Bytes, mut pages: impl Pages) -> impl Stream<Item = Bytes> {
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
    stream::poll_fn(move |cx| if *is_ended.borrow() { Poll::Ready(None) } else { received.poll_recv(cx) })
}

impl Pages for Following {
    async fn next_piece(&mut self) -> Option<Bytes> {
        self.next_page_unless_ended().await
    }
}

impl Following {
    /// Computes the next page; `None` when the stream ends.
    async fn next_page_unless_ended(&mut self) -> Option<Bytes> {
        if *self.context.stopping.borrow() || self.begun.elapsed() > LIFE_MAX {
            return None;
        }
        // The client reconnects and gets the error then, if it still applies.
        self.next_page().await.inspect_err(|problem| tracing::debug!(detail = problem.detail, "a stream ended")).ok()
    }

    /// Computes the next page. It counts as a call if it has items.
    async fn next_page(&mut self) -> Result<Bytes, Problem> {
        let arguments = Value::Object(self.arguments.clone());
        let (answer, _) = self.mounted.call(&self.context, self.index, Ok(arguments), self.incoming.clone()).await?;
        if matches!(&answer.body, Body::Events(events) if !events.is_empty()) {
            let Incoming { credentials, address, .. } = self.incoming.clone();
            let operation = &self.mounted.service.operations[self.index];
            Access::of(&self.context).admit(&self.context, credentials, address, operation, false).await?;
        }
        Ok(take_events(answer, &mut self.arguments))
    }
}

/// The events of an answer, or a comment that keeps the connection alive. Sets the cursor for the next call.
fn take_events(answer: Answer, arguments: &mut Map<String, Value>) -> Bytes {
    arguments.insert("cursor".to_owned(), json!(answer.next_cursor));
    arguments.remove("start");
    match answer.body {
        Body::Events(events) if !events.is_empty() => text(&events),
        _ => Bytes::from_static(b":\n\n"),
    }
}

/// Formats events.
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

    /// Proves that a stream ends with its key while pages wait for a reader that does not read: no more pages are computed, and the waiting page is not sent.
    #[tokio::test]
    async fn a_waiting_page_is_not_sent_after_the_end() {
        let (revoke, revoked) = oneshot::channel::<()>();
        let ended = async { drop(revoked.await) };
        let held = Arc::new(());
        let mut pages = Box::pin(pages_until(ended, Bytes::from_static(&[0]), Numbers { last: 0, _held: Arc::clone(&held) }));
        for page in 0..5_u8 {
            assert_eq!(pages.next().await, Some(Bytes::from(vec![page])));
        }
        revoke.send(()).unwrap();
        // The sender drops its page although nobody reads.
        while Arc::strong_count(&held) > 1 {
            tokio::task::yield_now().await;
        }
        assert_eq!(pages.next().await, None);
    }
}
