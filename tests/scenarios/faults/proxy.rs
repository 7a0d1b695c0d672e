//! A proxy between nodes and a server. Tests close, stall and refuse its connections.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The largest number of bytes that is forwarded at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// How the proxy treats connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Forwards all bytes.
    Forwarding,
    /// Holds bytes back in both directions.
    Stalled,
    /// Forwards requests and holds answers back.
    Unanswered,
    /// Closes new connections at once.
    RefusingFacilitator,
}

#[derive(Clone, Copy, Debug)]
struct State {
    mode: Mode,
    /// How often all connections were closed.
    cuts: u64,
}

/// The proxy; it ends with its runtime.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    state: watch::Sender<State>,
    target: watch::Sender<Option<String>>,
}

impl Proxy {
    /// Listens on its own port. All connections wait until [`Self::forward_to`] sets the target.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (state, target) = (watch::Sender::new(State { mode: Mode::Forwarding, cuts: 0 }), watch::Sender::new(None));
        let (states, targets) = (state.clone(), target.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // Read here, so that a later cut closes this connection.
                let mut state = states.subscribe();
                if state.borrow_and_update().mode != Mode::RefusingFacilitator {
                    tokio::spawn(connection(client, state, targets.subscribe()));
                }
            }
        });
        Self { address, state, target }
    }

    /// Sets the address of the server.
    pub(crate) fn forward_to(&self, target: String) {
        self.target.send_replace(Some(target));
    }

    /// Sets the mode for all connections from now on.
    pub(crate) fn set(&self, mode: Mode) {
        self.state.send_modify(|state| state.mode = mode);
    }

    /// Closes all connections; bytes that were held back are lost.
    pub(crate) fn cut(&self) {
        self.state.send_modify(|state| state.cuts += 1);
    }
}

/// Forwards one connection until either side or a cut closes it.
async fn connection(client: TcpStream, mut state: watch::Receiver<State>, mut target: watch::Receiver<Option<String>>) {
    let cuts = state.borrow().cuts;
    let passing = {
        let (requests, answers) = (state.clone(), state.clone());
        async move {
            let Ok(Some(target)) = target.wait_for(Option::is_some).await.map(|target| target.clone()) else { return };
            let Ok(server) = TcpStream::connect(target).await else { return };
            if client.set_nodelay(true).and_then(|()| server.set_nodelay(true)).is_err() {
                return;
            }
            let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
            tokio::select! {
                () = pass(from_client, to_server, requests, |mode| mode != Mode::Stalled) => {}
                () = pass(from_server, to_client, answers, |mode| !matches!(mode, Mode::Stalled | Mode::Unanswered)) => {}
            }
        }
    };
    tokio::select! {
        () = passing => {}
        _ = state.wait_for(|state| state.cuts != cuts) => {}
    }
}

/// Forwards the bytes of one direction while the mode permits it.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut state: watch::Receiver<State>,
    may_pass: impl Fn(Mode) -> bool + Copy + Send + Sync,
) {
    let mut piece = vec![0; CHUNK_BYTES];
    while let Ok(length @ 1..) = from.read(&mut piece).await {
        // The borrow of the state must end before anything is written.
        let may_go_on = state.wait_for(|state| may_pass(state.mode)).await.is_ok();
        if !may_go_on || to.write_all(&piece[..length]).await.is_err() {
            return;
        }
    }
}
