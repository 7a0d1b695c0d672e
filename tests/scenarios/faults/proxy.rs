//! A proxy between nodes and a server, whose connections a test cuts, stalls and refuses.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What is read before it is passed on.
const PIECE_BYTES: usize = 64 * 1024;

/// What happens to what comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It is passed on.
    Forwarding,
    /// It waits, both ways.
    Stalled,
    /// Requests are passed on, answers wait.
    Unanswered,
    /// New connections end at once.
    Refusing,
}

#[derive(Clone, Copy, Debug)]
struct State {
    mode: Mode,
    /// How often all connections were cut.
    cuts: u64,
}

/// The proxy; ends with its runtime.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    state: watch::Sender<State>,
    target: watch::Sender<Option<String>>,
}

impl Proxy {
    /// Listens on a port of its own. Until [`Self::forward_to`] has said where to, all connections wait.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (state, target) = (watch::Sender::new(State { mode: Mode::Forwarding, cuts: 0 }), watch::Sender::new(None));
        let (states, targets) = (state.clone(), target.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // Read here, so that a cut that follows is one of this connection.
                let mut state = states.subscribe();
                if state.borrow_and_update().mode != Mode::Refusing {
                    tokio::spawn(connection(client, state, targets.subscribe()));
                }
            }
        });
        Self { address, state, target }
    }

    /// Says where the server is.
    pub(crate) fn forward_to(&self, target: String) {
        self.target.send_replace(Some(target));
    }

    /// Says what happens to what comes from now on.
    pub(crate) fn set(&self, mode: Mode) {
        self.state.send_modify(|state| state.mode = mode);
    }

    /// Cuts all connections; what waits is lost with them.
    pub(crate) fn cut(&self) {
        self.state.send_modify(|state| state.cuts += 1);
    }
}

/// One connection until either side or a cut ends it.
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

/// Passes on what comes one way, while it may.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut state: watch::Receiver<State>,
    may_pass: impl Fn(Mode) -> bool + Copy + Send + Sync,
) {
    let mut piece = vec![0; PIECE_BYTES];
    while let Ok(length @ 1..) = from.read(&mut piece).await {
        // The state is let go before anything is written.
        let may_go_on = state.wait_for(|state| may_pass(state.mode)).await.is_ok();
        if !may_go_on || to.write_all(&piece[..length]).await.is_err() {
            return;
        }
    }
}
