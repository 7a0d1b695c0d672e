//! The listener: accepts connections, checks their requests, and sends the responses of a service.
//!
//! Promises: a client that does not send its head in time is disconnected, one that does not send its body in time gets an error, and one that stops
//! reading is disconnected and costs little until then. Heads, bodies and the number of connections are limited, in total and per address. On
//! shutdown no new connections are accepted, and requests in flight are completed; a client that has not sent a whole head, or does not read, delays it
//! by a second at most. Operators have a listener of their own.

pub mod caller_address;
mod compression;
mod connections;
mod framing;
mod request_head;
mod stall;
mod tracked_body;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use http::header::IF_NONE_MATCH;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use operation::context::Context;
use operation::metrics;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

use caller_address::CallerAddress;
use compression::completed_for_caches;
pub use compression::{Suitable, compressed};
use connections::{Connections, Full, Room};
use framing::Strict;
pub use request_head::Malformed;
use request_head::well_formed;
use stall::Stalling;
use tracked_body::Tracked;

/// The most connections in the queue of the operating system.
const BACKLOG_MAX: u32 = 1024;

/// The largest request head that is read, in bytes, so that a head that is slightly too large gets a problem document.
const HEAD_BYTES_READ_MAX: usize = 64 * 1024;

/// The most bytes of a response in the system's send buffer, beyond what is in flight in the network.
const UNSENT_BYTES_MAX: u32 = 64 * 1024;

/// The most bytes of a response that a connection buffers before it asks for more.
const WRITE_BUFFER_BYTES_MAX: usize = 64 * 1024;

/// How long requests in flight may take after shutdown started.
const STOP_TIME_MAX: Duration = Duration::from_secs(10);

/// How long a response waits for a client that does not read.
const STALL_TIME_MAX: Duration = Duration::from_secs(30);

/// How long, after shutdown started, a response waits for a client that does not read, and a connection for the rest of a head.
const STOP_STALL_TIME_MAX: Duration = Duration::from_secs(1);

/// The pause after a failed accept, so that a lack of file descriptors does not cause a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Why the listener cannot bind to an address.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another program listens there.
    #[error(
        "{address} is in use by another program: stop that one or choose another address (`listen` for readers, `operator_listen` for operators)"
    )]
    InUse {
        /// The address.
        address: SocketAddr,
    },
    /// The operating system refuses, for instance a low port without privileges.
    #[error("cannot listen on {address}")]
    Refused {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
}

/// The stages of shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
enum Stage {
    Serving,
    Finishing,
    Over,
}

/// How many connections a listener holds open at most.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// In total, at least 1.
    pub max: usize,
    /// From one address, at least 1.
    pub per_address_max: usize,
}

/// A bound listener. It accepts connections once it serves.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Binds to an address; port 0 selects a free port. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// When the address is in use or refused.
    pub fn bind(address: SocketAddr) -> Result<Self, BindError> {
        let bound = || {
            let socket = listen(address)?;
            let address = socket.local_addr()?;
            Ok(Self { socket, address })
        };
        bound().map_err(|source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => BindError::InUse { address },
            _ => BindError::Refused { address, source },
        })
    }

    /// The address that the listener is bound to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` completes, then finishes the requests in flight (ten seconds at most). The listener for readers (`is_public`) measures its
    /// connections, and tells the tasks of the process when it stops.
    pub async fn serve<S, B>(
        self,
        context: &Arc<Context>,
        service: S,
        limits: ConnectionLimits,
        is_public: bool,
        shutdown: impl Future<Output = ()> + Send,
    ) where
        S: hyper::service::Service<hyper::Request<Incoming>, Response = hyper::Response<B>, Error = Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send,
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let connections = Connections::new(limits.max, limits.per_address_max);
        let measure = move |open: &Connections| {
            if is_public {
                metrics::set_connections(open.count(), open.max());
            }
        };
        let head_timeout = Duration::from_secs(context.settings.request_timeout_s.max(1));
        let (stage, watching) = watch::channel(Stage::Serving);
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let accepting = async {
                let (stream, peer) = self.socket.accept().await?;
                Ok((make_room(&connections, peer.ip(), &context.settings.trusted_proxies).await, stream, peer))
            };
            let accepted: io::Result<_> = tokio::select! {
                () = &mut shutdown => break,
                accepted = accepting => accepted,
            };
            let (room, stream, peer) = match accepted {
                Ok((Some(room), stream, peer)) => (Arc::new(room), stream, peer),
                // Closed without a response: the address has reached its limit.
                Ok((None, ..)) => continue,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let (service, context, own) = (service.clone(), Arc::clone(context), Arc::clone(&room));
            let service = service_fn(move |mut request: hyper::Request<Incoming>| {
                let active = own.begin_request();
                if let Err(malformed) = well_formed(&mut request) {
                    request.extensions_mut().insert(malformed);
                }
                let settings = &context.settings;
                let address = caller_address::caller(peer.ip(), request.headers(), &settings.trusted_proxies, settings.forwarded_header);
                request.extensions_mut().insert(CallerAddress(address));
                let known: Vec<HeaderValue> = request.headers().get_all(IF_NONE_MATCH).iter().cloned().collect();
                let answered = service.call(request);
                async move { answered.await.map(|response| completed_for_caches(&known, response).map(|body| Tracked::new(body, active))) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new())
                // The timeout also covers the time since the last response: an idle connection is closed after the same time.
                .header_read_timeout(connections.head_timeout(head_timeout))
                .max_header_size(HEAD_BYTES_READ_MAX)
                .max_buf_size(WRITE_BUFFER_BYTES_MAX.max(HEAD_BYTES_READ_MAX));
            let connection = connection(&http, stream, service, watching.clone(), Arc::clone(&room));
            measure(&connections);
            let open = Arc::clone(&connections);
            tokio::spawn(async move {
                tokio::select! {
                    () = connection => {}
                    () = room.close_requested() => tracing::debug!("an idle connection was closed for a new one"),
                }
                drop(room);
                measure(&open);
            });
        }
        // New callers are refused immediately instead of waiting in the queue.
        drop(self.socket);
        stage.send_replace(Stage::Finishing);
        if is_public {
            context.stopping.send_replace(true);
        }
        if tokio::time::timeout(STOP_TIME_MAX, connections.all_ended()).await.is_err() {
            tracing::warn!(open = connections.count(), "connections did not finish in time and are closed");
            stage.send_replace(Stage::Over);
        }
    }
}

/// A slot for a connection; `None` if its address has reached its limit with requests in flight. Waits while the whole listener is busy.
async fn make_room(connections: &Arc<Connections>, address: IpAddr, trusted_proxies: &[(IpAddr, u8)]) -> Option<Room> {
    let is_shared = caller_address::is_trusted(address.to_canonical(), trusted_proxies);
    loop {
        // Created before the check, so that a connection that ends in between is noticed.
        let freed = connections.freed();
        match connections.take(address, is_shared) {
            Ok(room) => return Some(room),
            Err(Full::Address) => return None,
            Err(Full::Listener) => freed.await,
        }
    }
}

/// Creates a listening socket with the options that all its connections inherit. Must be called inside a tokio runtime.
///
/// # Errors
/// When the address is in use or refused.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // So that a restart does not have to wait for old connections in TIME_WAIT.
    socket.set_reuseaddr(true)?;
    // With BBR congestion control the kernel paces packets, and the timers can take half of the time spent on a page. Pacing does not help between this
    // listener and a proxy on the same machine.
    #[cfg(target_os = "linux")]
    if let Err(error) = socket2::SockRef::from(&socket).set_tcp_notsent_lowat(UNSENT_BYTES_MAX) {
        tracing::debug!(%error, "the send buffer limit could not be set, the system default is used");
    }
    #[cfg(target_os = "linux")]
    if address.ip().is_loopback()
        && let Err(error) = socket2::SockRef::from(&socket).set_tcp_congestion(b"reno")
    {
        tracing::debug!(%error, "congestion control could not be set, the system default is used");
    }
    socket.bind(address)?;
    socket.listen(BACKLOG_MAX)
}

/// Serves one connection until it ends.
fn connection<S, B>(
    http: &http1::Builder,
    stream: TcpStream,
    service: S,
    mut stage: watch::Receiver<Stage>,
    room: Arc<Room>,
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
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let (read, write) = stream.into_split();
    let at = stage.clone();
    // The connection is polled when shutdown starts, and a write that waits then gets the shorter time.
    let stall_time_max = move || if *at.borrow() >= Stage::Finishing { STOP_STALL_TIME_MAX } else { STALL_TIME_MAX };
    let stream = tokio::io::join(Strict::new(read), Stalling::new(write, stall_time_max));
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
                    () = without_request(&room) => Ok(()),
                }
            }
        };
        if let Err(error) = result {
            tracing::debug!(%error, "a connection ended early");
        }
    }
}

/// Waits until a connection has had no request in flight for [`STOP_STALL_TIME_MAX`], at two looks at it. Its client has sent a part of a head at most, or
/// does not take the end of the last response.
async fn without_request(room: &Room) {
    let mut was_without = false;
    loop {
        let is_without = !room.has_request();
        if is_without && was_without {
            return;
        }
        was_without = is_without;
        tokio::time::sleep(STOP_STALL_TIME_MAX).await;
    }
}

/// Waits until shutdown has reached a stage. A closed channel means that the server is gone, which counts as reached.
async fn reached(watching: &mut watch::Receiver<Stage>, stage: Stage) {
    // Bound to a name, so that the guard is dropped before the function returns.
    let outcome = watching.wait_for(|at| *at >= stage).await.map(|_| ());
    if outcome.is_err() {
        tracing::debug!("the server stopped before its connections");
    }
}
