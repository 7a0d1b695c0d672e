//! An HTTP server on loopback that the server under test calls.

use std::net::SocketAddr;
use std::thread::JoinHandle;

use tokio::sync::oneshot;
use warp::{Filter, Rejection, Reply};

/// Serves in its own thread until it is dropped.
pub(crate) struct Loopback {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<()>>,
}

impl Loopback {
    pub(crate) fn open<F>(routes: F) -> Self
    where
        F: Filter<Extract: Reply, Error = Rejection> + Clone + Send + Sync + 'static,
    {
        let (stop, stopped) = oneshot::channel::<()>();
        let (said, address) = std::sync::mpsc::channel();
        let serving = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
                said.send(listener.local_addr().unwrap()).unwrap();
                warp::serve(routes).incoming(listener).graceful(async { drop(stopped.await) }).run().await;
            });
        });
        Self { address: address.recv().unwrap(), stop: Some(stop), serving: Some(serving) }
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        drop(self.stop.take());
        drop(self.serving.take().map(JoinHandle::join));
    }
}
