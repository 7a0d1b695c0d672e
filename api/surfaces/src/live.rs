//! The stream of changes of all services that the home page shows. Browsers open few connections to one server, so it is one stream; and the feeds are
//! followed once for all visitors, while there are any.
//!
//! The stream is for looking at: it begins now, has no cursors, and a visitor who reads slowly misses changes. Programs follow the feeds.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{Stream, stream};
use operation::context::Context;
use operation::feed_start::LATEST;
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender};
use tokio::task::JoinSet;
use warp::Reply;
use warp::reply::Response;

use crate::events::with_event_headers;
use crate::mounted_service::Mounted;

/// How many changes wait for a visitor who reads slowly.
const WAITING_MAX: usize = 64;
/// How many seconds a call waits for changes.
const WAIT_S: u64 = 20;
/// After which time without changes a comment keeps the connection alive.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// How often it is checked whether there is still a visitor.
const VISITOR_CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// How long to wait after a call that failed.
const RETRY_PAUSE: Duration = Duration::from_secs(5);
/// The longest duration of a stream.
const LIFE_MAX: Duration = Duration::from_secs(3_600);

/// The stream, and whether the feeds are followed for it.
pub(crate) struct Live {
    mounted: Vec<Arc<Mounted>>,
    items: Sender<Bytes>,
    is_followed: Mutex<bool>,
}

/// One visitor.
struct Visitor {
    context: Arc<Context>,
    items: Receiver<Bytes>,
    begun: Instant,
}

impl Live {
    pub(crate) fn new(mounted: Vec<Arc<Mounted>>) -> Self {
        Self { mounted, items: Sender::new(WAITING_MAX), is_followed: Mutex::new(false) }
    }

    /// The response to a visitor.
    pub(crate) fn stream(self: &Arc<Self>, context: &Arc<Context>) -> Response {
        let visitor = Visitor { context: Arc::clone(context), items: self.subscribe(context), begun: Instant::now() };
        with_event_headers(warp::reply::stream(pieces(visitor)).into_response())
    }

    fn subscribe(self: &Arc<Self>, context: &Arc<Context>) -> Receiver<Bytes> {
        // A visitor comes, and followers find that there is none, only one after the other.
        let mut is_followed = self.is_followed.lock().unwrap_or_else(PoisonError::into_inner);
        let items = self.items.subscribe();
        if !*is_followed {
            *is_followed = true;
            tokio::spawn(Arc::clone(self).follow(Arc::clone(context)));
        }
        items
    }

    /// Follows the feeds while there are visitors.
    async fn follow(self: Arc<Self>, context: Arc<Context>) {
        let mut followers = JoinSet::new();
        for mounted in &self.mounted {
            followers.spawn(follow_service(Arc::clone(&context), Arc::clone(mounted), self.items.clone()));
        }
        loop {
            tokio::select! {
                () = tokio::time::sleep(VISITOR_CHECK_INTERVAL) => {}
                () = context.stopped() => return,
            }
            let mut is_followed = self.is_followed.lock().unwrap_or_else(PoisonError::into_inner);
            if self.items.receiver_count() == 0 {
                *is_followed = false;
                return;
            }
        }
    }
}

/// Sends the changes of a service from now on. Ends if the service shows none without a key.
async fn follow_service(context: Arc<Context>, mounted: Arc<Mounted>, items: Sender<Bytes>) {
    let mut place = ("start".to_owned(), LATEST.to_owned());
    loop {
        let arguments = vec![place.clone(), ("wait".to_owned(), WAIT_S.to_string())];
        match mounted.show(&context, "changes", arguments, IpAddr::V4(Ipv4Addr::LOCALHOST)).await {
            Ok(answer) => {
                let changes = answer["changes"].as_array().map(Vec::as_slice).unwrap_or_default();
                for change in changes.iter().filter(|change| change["backfill"] != true) {
                    // There may be no visitor at the moment.
                    let _ = items.send(event(&site::live::item(&mounted.service, change)));
                }
                if let Some(cursor) = answer["cursor"].as_str() {
                    place = ("cursor".to_owned(), cursor.to_owned());
                }
            }
            Err(problem) if problem.code.may_retry() => tokio::time::sleep(RETRY_PAUSE).await,
            Err(problem) => {
                tracing::debug!(service = mounted.service.name, detail = problem.detail, "the changes of a service are not shown live");
                return;
            }
        }
    }
}

fn event(item: &Value) -> Bytes {
    Bytes::from(format!("data: {item}\n\n"))
}

/// The pieces of a visitor's stream.
fn pieces(visitor: Visitor) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
    let first = stream::iter([Ok(Bytes::from_static(b"retry: 3000\n: changes of all services from now on\n\n"))]);
    let following = stream::unfold(visitor, |mut visitor| async move {
        loop {
            if visitor.begun.elapsed() > LIFE_MAX {
                return None;
            }
            let context = Arc::clone(&visitor.context);
            let next = tokio::select! {
                next = tokio::time::timeout(KEEP_ALIVE_INTERVAL, visitor.items.recv()) => next,
                () = context.stopped() => return None,
            };
            let piece = match next {
                Ok(Ok(item)) => item,
                Ok(Err(RecvError::Lagged(_))) => continue,
                Ok(Err(RecvError::Closed)) => return None,
                Err(_) => Bytes::from_static(b": keep-alive\n\n"),
            };
            return Some((Ok(piece), visitor));
        }
    });
    futures_util::StreamExt::chain(first, following)
}
