//! The listener: connections in, the site's answers out.
//!
//! Promises: a client that does not send its head in time is closed, one that does not send its body is told so, one that stops
//! reading is closed; heads, bodies and the number of connections are bounded; when told to stop, nothing new is accepted and what was begun is finished.

mod framing;
mod stall;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::HOST;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, watch};

use self::framing::Strict;
use self::stall::Stalling;
use crate::context::Context;
use crate::operation::Service;
use crate::surfaces::forwarded::{self, CallerAddress};
use crate::surfaces::{self, Hostless, Readiness, Site, SiteError, metrics};

/// Connections open at once; more wait in the kernel's queue.
const CONNECTIONS_MAX: u32 = 10_000;

/// Connections waiting to be accepted.
const BACKLOG_MAX: u32 = 1024;

/// The largest head of a request, in bytes; more gets 431.
const HEAD_BYTES_MAX: usize = 32 * 1024;

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
        let service = TowerToHyperService::new(warp::service(surfaces::filter(site)));
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            // Runs from the end of the answer before, too: an idle connection is closed after the same time.
            .header_read_timeout(Duration::from_secs(context.settings.request_timeout_s.max(1)))
            .max_header_size(HEAD_BYTES_MAX);
        let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX as usize));
        let (stage, watching) = watch::channel(Stage::Serving);
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let accepting = async {
                let slot = Arc::clone(&slots).acquire_owned().await;
                (slot, self.listener.accept().await)
            };
            let (slot, accepted) = tokio::select! {
                () = &mut shutdown => break,
                accepted = accepting => accepted,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let (service, context) = (service.clone(), Arc::clone(&context));
            let service = service_fn(move |mut request: hyper::Request<Incoming>| {
                if let Err(hostless) = host(&request) {
                    request.extensions_mut().insert(hostless);
                }
                let settings = &context.settings;
                let address = forwarded::caller(peer.ip(), request.headers(), &settings.trusted_proxies, settings.forwarded_header);
                request.extensions_mut().insert(CallerAddress(address));
                service.call(request)
            });
            let connection = connection(&http, stream, service, watching.clone());
            let open = Arc::clone(&slots);
            metrics::connections(CONNECTIONS_MAX as usize - open.available_permits(), CONNECTIONS_MAX as usize);
            tokio::spawn(async move {
                connection.await;
                drop(slot);
                metrics::connections(CONNECTIONS_MAX as usize - open.available_permits(), CONNECTIONS_MAX as usize);
            });
        }
        // New callers are refused at once, not kept waiting in the queue.
        drop(self.listener);
        stage.send_replace(Stage::Finishing);
        context.stopping.send_replace(true);
        if tokio::time::timeout(STOP_TIME_MAX, slots.acquire_many(CONNECTIONS_MAX)).await.is_err() {
            let open = CONNECTIONS_MAX as usize - slots.available_permits();
            tracing::warn!(open, "connections did not finish in time and are closed");
            stage.send_replace(Stage::Over);
        }
        Ok(())
    }
}

/// Whether a request says where it is for, once and readably. HTTP/1.0 need not.
fn host<B>(request: &hyper::Request<B>) -> Result<(), Hostless> {
    let mut values = request.headers().get_all(HOST).iter();
    let is_host = |value: &http::HeaderValue| {
        let authority = http::uri::Authority::try_from(value.as_bytes());
        authority.is_ok_and(|authority| !authority.as_str().contains('@') && !authority.host().is_empty())
    };
    match (values.next(), values.next()) {
        (None, _) if request.version() == hyper::Version::HTTP_11 => Err(Hostless("the Host header is missing")),
        (_, Some(_)) => Err(Hostless("the Host header is given twice")),
        (Some(value), None) if !is_host(value) => Err(Hostless("the Host header names no host")),
        (None | Some(_), None) => Ok(()),
    }
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
