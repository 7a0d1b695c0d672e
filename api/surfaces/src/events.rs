//! A feed as server-sent events: each item an event whose id is the cursor that stands after it, so that a reader who lost the connection
//! goes on with `Last-Event-ID` and misses and repeats nothing.
//!
//! A stream is the feed's own operation called again and again from its last position, waiting for new items. Each page of items counts as one
//! call, as it would for a reader who polls; waiting costs nothing. The stream ends when the quota is spent, after an hour, within five seconds
//! when the key is revoked, and when the server stops; the reader's client then opens it again by itself.

use access::Access;
use operation::context::Part;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, watch};
use warp::Reply;
use warp::reply::Response;

use crate::mounted::{Admitted, Incoming, Mounted};
use operation::context::Context;
use operation::problem::Problem;
use operation::{Answer, Body, Event};

/// The content type of events.
pub(crate) const EVENTS: &str = "text/event-stream";
/// Seconds that the feed is waited for before the reader gets a sign of life.
const WAIT_S: u64 = 20;
/// How long a stream lasts.
const LIFE_MAX: Duration = Duration::from_secs(3_600);
/// Milliseconds after which a reader's client opens a stream again that ended.
const RETRY_MS: u64 = 1_000;

/// Where a stream is.
struct Following {
    context: Arc<Context>,
    mounted: Arc<Mounted>,
    index: usize,
    arguments: Map<String, Value>,
    incoming: Incoming,
    begun: Instant,
}

/// Begins a stream: with the arguments of the feed, from the last event that the reader has, if it has one.
///
/// # Errors
/// What the operation itself refuses.
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
    begin.extend_from_slice(&taken(answer, &mut arguments));
    arguments.insert("wait".to_owned(), json!(WAIT_S));
    let following = Following {
        context: Arc::clone(context),
        mounted: Arc::clone(mounted),
        index,
        arguments,
        incoming: Incoming { goes_on: true, ..incoming },
        begun: Instant::now(),
    };
    let key_ended = {
        let (context, credentials, address) = (Arc::clone(context), following.incoming.credentials.clone(), following.incoming.address);
        async move { Access::of(&context).key_ended(&context, &credentials, address).await }
    };
    let pieces = pages_until(key_ended, begin.freeze(), following).map(Ok::<_, std::convert::Infallible>);
    let mut response = warp::reply::stream(pieces).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok((response, admitted))
}

/// What pages come from.
trait Pages: Send + 'static {
    /// The next page; `None` when the stream ends.
    fn next_piece(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

/// The first page of a stream and then one after the other, until there is none, the reader is gone, or `ended` is ready: then also a page that waits
/// for a reader who does not read is not sent.
fn pages_until(ended: impl Future<Output = ()> + Send + 'static, first: Bytes, mut pages: impl Pages) -> impl Stream<Item = Bytes> {
    let (sender, mut received) = mpsc::channel::<Bytes>(1);
    let (end, is_ended) = watch::channel(false);
    tokio::spawn(async move {
        let sending = async {
            let mut next = Some(first);
            while let Some(page) = next {
                // A reader that is gone needs no more.
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
        self.go_on().await
    }
}

impl Following {
    /// What comes next; `None` when the stream ends.
    async fn go_on(&mut self) -> Option<Bytes> {
        if *self.context.stopping.borrow() || self.begun.elapsed() > LIFE_MAX {
            return None;
        }
        // The reader's client opens the stream again, and gets the reason then, if it still holds.
        self.next_page().await.inspect_err(|problem| tracing::debug!(detail = problem.detail, "a stream ended")).ok()
    }

    /// The next page, counted if it holds anything.
    async fn next_page(&mut self) -> Result<Bytes, Problem> {
        let arguments = Value::Object(self.arguments.clone());
        let (answer, _) = self.mounted.call(&self.context, self.index, Ok(arguments), self.incoming.clone()).await?;
        if matches!(&answer.body, Body::Events(events) if !events.is_empty()) {
            let Incoming { credentials, address, .. } = self.incoming.clone();
            let operation = &self.mounted.service.operations[self.index];
            Access::of(&self.context).admit(&self.context, credentials, address, operation, false).await?;
        }
        Ok(taken(answer, &mut self.arguments))
    }
}

/// The events of an answer, or a sign of life; the next call goes on behind it.
fn taken(answer: Answer, arguments: &mut Map<String, Value>) -> Bytes {
    arguments.insert("cursor".to_owned(), json!(answer.next_cursor));
    arguments.remove("start");
    match answer.body {
        Body::Events(events) if !events.is_empty() => text(&events),
        _ => Bytes::from_static(b":\n\n"),
    }
}

/// Events as they are sent.
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
        _mark: Arc<()>,
    }

    impl Pages for Numbers {
        async fn next_piece(&mut self) -> Option<Bytes> {
            self.last += 1;
            Some(Bytes::from(vec![self.last]))
        }
    }

    /// Proves that a stream ends with its key while pages wait for a reader who does not read: nothing is made any more, and what waits is not sent.
    #[tokio::test]
    async fn a_waiting_page_is_not_sent_after_the_end() {
        let (revoke, revoked) = oneshot::channel::<()>();
        let ended = async { drop(revoked.await) };
        let mark = Arc::new(());
        let mut pages = Box::pin(pages_until(ended, Bytes::from_static(&[0]), Numbers { last: 0, _mark: Arc::clone(&mark) }));
        for page in 0..5_u8 {
            assert_eq!(pages.next().await, Some(Bytes::from(vec![page])));
        }
        revoke.send(()).unwrap();
        // The sender gives up what it holds, though nobody reads.
        while Arc::strong_count(&mark) > 1 {
            tokio::task::yield_now().await;
        }
        assert_eq!(pages.next().await, None);
    }
}
