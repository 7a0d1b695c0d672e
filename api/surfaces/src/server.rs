//! The listener: connections in, the site's answers out.
//!
//! Promises: a client that does not send its head in time is closed, one that does not send its body gets an error, one that stops
//! reading is closed and costs little until then; heads, bodies and the number of connections are bounded, in all and from one address; when
//! the server stops, nothing new is accepted and what was begun is finished.

mod connections;
mod framing;
mod stall;
mod tracked;

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Uri};
use hyper::body::Incoming;
use hyper::header::HOST;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

use self::connections::{Connections, Full, Room};
use self::framing::Strict;
use self::stall::Stalling;
use self::tracked::Tracked;
use crate::forwarded::{self, CallerAddress};
use crate::{Malformed, Readiness, Site, SiteError};
use operation::Service;
use operation::context::Context;
use operation::metrics;

/// Connections waiting to be accepted.
const BACKLOG_MAX: u32 = 1024;

/// The largest head of a request that is answered, in bytes; more gets 431.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// The largest head that is read, in bytes: one that is only somewhat too large gets a document that says so.
const HEAD_BYTES_READ_MAX: usize = 64 * 1024;

/// What of an answer may wait in the system's buffers for a reader, in bytes beyond what its network can hold.
const UNSENT_BYTES_MAX: u32 = 64 * 1024;

/// What a connection may hold of an answer before more of it is asked for, in bytes.
const WRITE_BUFFER_BYTES_MAX: usize = 64 * 1024;

/// How long requests in flight may take once the server stops.
const STOP_TIME_MAX: Duration = Duration::from_secs(10);

/// How long an answer waits for a reader that takes nothing.
const STALL_TIME_MAX: Duration = Duration::from_secs(30);

/// The pause after a failed accept, so that a lack of file handles does not become a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Why an address cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another program listens there.
    #[error("{address} is in use by another program: stop that one or choose another address with `listen`")]
    InUse {
        /// The address.
        address: SocketAddr,
    },
    /// The system refuses, for instance a low port to an ordinary user.
    #[error("cannot listen on {address}")]
    Refused {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        #[source]
        source: io::Error,
    },
}

/// How far stopping has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
enum Stage {
    Serving,
    Finishing,
    Over,
}

/// A listener that accepts connections once it runs.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    /// Takes an address; port 0 takes any free one. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// The address is in use or refused.
    pub fn bind(address: SocketAddr) -> Result<Self, BindError> {
        let bound = || {
            let listener = listen(address)?;
            let address = listener.local_addr()?;
            Ok(Self { listener, address })
        };
        bound().map_err(|source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => BindError::InUse { address },
            _ => BindError::Refused { address, source },
        })
    }

    /// The address listened on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` is ready, then finishes the requests in flight (ten seconds at most).
    ///
    /// # Errors
    /// The services cannot be served: a definition is wrong or has no settings.
    pub async fn run(
        self,
        context: Arc<Context>,
        services: Vec<Service>,
        readiness: Readiness,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), SiteError> {
        let site = Arc::new(Site::new(Arc::clone(&context), services, readiness)?);
        let service = TowerToHyperService::new(warp::service(crate::filter(site)));
        let connections = Connections::new(context.settings.connections_max, context.settings.connections_per_address_max);
        let head_timeout = Duration::from_secs(context.settings.request_timeout_s.max(1));
        let (stage, watching) = watch::channel(Stage::Serving);
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let accepting = async {
                let (stream, peer) = self.listener.accept().await?;
                Ok((make_room(&connections, peer.ip(), &context.settings.trusted_proxies).await, stream, peer))
            };
            let accepted: io::Result<_> = tokio::select! {
                () = &mut shutdown => break,
                accepted = accepting => accepted,
            };
            let (room, stream, peer) = match accepted {
                Ok((Some(room), stream, peer)) => (Arc::new(room), stream, peer),
                // Closed without an answer: its address has its share already.
                Ok((None, ..)) => continue,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let (service, context, own) = (service.clone(), Arc::clone(&context), Arc::clone(&room));
            let service = service_fn(move |mut request: hyper::Request<Incoming>| {
                let answering = own.answering();
                if let Err(malformed) = well_formed(&mut request) {
                    request.extensions_mut().insert(malformed);
                }
                let settings = &context.settings;
                let address = forwarded::caller(peer.ip(), request.headers(), &settings.trusted_proxies, settings.forwarded_header);
                request.extensions_mut().insert(CallerAddress(address));
                let answered = service.call(request);
                async move { answered.await.map(|response| response.map(|body| Tracked::new(body, answering))) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new())
                // Runs from the end of the answer before, too: an idle connection is closed after the same time.
                .header_read_timeout(connections.head_timeout(head_timeout))
                .max_header_size(HEAD_BYTES_READ_MAX)
                .max_buf_size(WRITE_BUFFER_BYTES_MAX.max(HEAD_BYTES_READ_MAX));
            let connection = connection(&http, stream, service, watching.clone());
            metrics::connections(connections.count(), connections.max());
            let open = Arc::clone(&connections);
            tokio::spawn(async move {
                tokio::select! {
                    () = connection => {}
                    () = room.gives_way() => tracing::debug!("a waiting connection was closed to make room for another"),
                }
                drop(room);
                metrics::connections(open.count(), open.max());
            });
        }
        // New callers are refused at once, not kept waiting in the queue.
        drop(self.listener);
        stage.send_replace(Stage::Finishing);
        context.stopping.send_replace(true);
        if tokio::time::timeout(STOP_TIME_MAX, connections.all_ended()).await.is_err() {
            tracing::warn!(open = connections.count(), "connections did not finish in time and are closed");
            stage.send_replace(Stage::Over);
        }
        Ok(())
    }
}

/// Room for a connection; `None` if its address has its share, all of it being answered. Waits while the whole listener only answers.
async fn make_room(connections: &Arc<Connections>, address: IpAddr, trusted_proxies: &[(IpAddr, u8)]) -> Option<Room> {
    let is_shared = forwarded::is_trusted(address.to_canonical(), trusted_proxies);
    loop {
        // Made before the look, so that a connection that ends in between is not missed.
        let freed = connections.freed();
        match connections.take(address, is_shared) {
            Ok(room) => return Some(room),
            Err(Full::Address) => return None,
            Err(Full::Listener) => freed.await,
        }
    }
}

/// Checks what no route can: the method and the form of the address, the size of the head, and that the request says once and readably where it
/// is for. A request without a path is given one, so that the refusal can be answered.
fn well_formed<B>(request: &mut hyper::Request<B>) -> Result<(), Malformed> {
    if request.method() == Method::CONNECT || request.uri().path().is_empty() {
        *request.uri_mut() = Uri::from_static("/");
        return Err(Malformed::new("method", "CONNECT and addresses without a path are not served: this is no proxy"));
    }
    if head_bytes(request) > HEAD_BYTES_MAX {
        return Err(Malformed::head_too_large(HEAD_BYTES_MAX));
    }
    let mut values = request.headers().get_all(HOST).iter();
    let is_host = |value: &http::HeaderValue| {
        let authority = http::uri::Authority::try_from(value.as_bytes());
        authority.is_ok_and(|authority| !authority.as_str().contains('@') && !authority.host().is_empty())
    };
    let wrong = |reason| Err(Malformed::new("Host", reason));
    match (values.next(), values.next()) {
        // HTTP/1.0 need not say.
        (None, _) if request.version() == hyper::Version::HTTP_11 => wrong("the Host header is missing"),
        (_, Some(_)) => wrong("the Host header is given twice"),
        (Some(value), None) if !is_host(value) => wrong("the Host header names no host"),
        (None | Some(_), None) => Ok(()),
    }
}

/// The bytes of a request's head, nearly as they came.
fn head_bytes<B>(request: &hyper::Request<B>) -> usize {
    let uri = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    let line = request.method().as_str().len() + uri + " HTTP/1.1\r\n ".len();
    line + request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len()).sum::<usize>()
}

/// A listener with the options that all its connections inherit. Must be called inside a tokio runtime.
///
/// # Errors
/// The address is in use or refused.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // So that a restart need not wait for the connections of the run before to be forgotten.
    socket.set_reuseaddr(true)?;
    // A system whose way of sending is BBR paces, which costs timers for every page, half of the time spent on it. Pacing spares
    // networks, and between this listener and its callers, such as a proxy on this machine, there is none.
    #[cfg(target_os = "linux")]
    if let Err(error) = socket2::SockRef::from(&socket).set_tcp_notsent_lowat(UNSENT_BYTES_MAX) {
        tracing::debug!(%error, "the system bounds what waits for a reader by itself");
    }
    #[cfg(target_os = "linux")]
    if address.ip().is_loopback()
        && let Err(error) = socket2::SockRef::from(&socket).set_tcp_congestion(b"reno")
    {
        tracing::debug!(%error, "answers are sent in the system's way");
    }
    socket.bind(address)?;
    socket.listen(BACKLOG_MAX)
}

/// One connection until its end.
fn connection<S, B>(
    http: &http1::Builder,
    stream: TcpStream,
    service: S,
    mut stage: watch::Receiver<Stage>,
) -> impl Future<Output = ()> + Send + use<S, B>
where
    S: hyper::service::Service<hyper::Request<Incoming>, Response = hyper::Response<B>> + Send + 'static,
    S::Future: Send,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection keeps its delay");
    }
    let (read, write) = stream.into_split();
    let stream = tokio::io::join(Strict::new(read), Stalling::new(write, STALL_TIME_MAX));
    let connection = http.serve_connection(TokioIo::new(stream), service);
    async move {
        let mut connection = std::pin::pin!(connection);
        let result = tokio::select! {
            result = connection.as_mut() => result,
            () = reached(&mut stage, Stage::Finishing) => {
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    result = connection.as_mut() => result,
                    () = reached(&mut stage, Stage::Over) => Ok(()),
                }
            }
        };
        if let Err(error) = result {
            tracing::debug!(%error, "a connection ended early");
        }
    }
}

/// Waits until stopping has come this far. A closed channel is a server that is gone, which counts as far enough.
async fn reached(watching: &mut watch::Receiver<Stage>, stage: Stage) {
    // Named, so that the guard inside is gone before the caller goes on.
    let outcome = watching.wait_for(|at| *at >= stage).await.map(|_| ());
    if outcome.is_err() {
        tracing::debug!("the server is gone before its connections");
    }
}
