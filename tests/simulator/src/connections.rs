//! The connections of the simulated upstreams.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use warp::reply::Response;

/// The pause after a failed accept, so that a lack of file descriptors does not cause a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves the connections of a listener until `shutdown` ends; then requests in flight are answered. A client that leaves early is no error of an upstream:
/// a sync that is stopped leaves in the middle of a request.
pub(crate) async fn serve<S>(listener: TcpListener, service: S, shutdown: impl Future<Output = ()> + Send)
where
    S: Service<Request<Incoming>, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    let (serving, stopping) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(connection(stream, service.clone(), stopping.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection to the simulated upstreams could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop((listener, serving));
    while connections.join_next().await.is_some() {}
}

/// Serves one connection until it ends, or until the sender of `stopping` is dropped and the request in flight is answered.
async fn connection<S>(stream: TcpStream, service: S, mut stopping: watch::Receiver<()>)
where
    S: Service<Request<Incoming>, Response = Response, Error = Infallible>,
{
    let mut connection = pin!(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    let result = tokio::select! {
        result = connection.as_mut() => result,
        _ = stopping.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.as_mut().await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection to the simulated upstreams ended early");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use hyper::service::service_fn;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::oneshot;
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Level, Metadata, Subscriber};

    use super::*;

    /// Collects the levels of events.
    struct Levels(Arc<Mutex<Vec<Level>>>);

    impl Subscriber for Levels {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.target().starts_with("simulator")
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            self.0.lock().unwrap().push(*event.metadata().level());
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    /// Proves that a client that leaves within a request causes no warning, and that the server answers others until it stops.
    #[tokio::test]
    async fn a_client_may_leave_early() {
        let levels: Arc<Mutex<Vec<Level>>> = Arc::default();
        let _guard = tracing::subscriber::set_default(Levels(Arc::clone(&levels)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let service = service_fn(|_: Request<Incoming>| async { Ok::<_, Infallible>(Response::default()) });
        let serving = tokio::spawn(serve(listener, service, async { drop(stopped.await) }));

        let mut leaving = TcpStream::connect(address).await.unwrap();
        leaving.write_all(b"GET / HTTP/1.1\r\nhost: ").await.unwrap();
        leaving.shutdown().await.unwrap();
        let mut rest = Vec::new();
        // Until the server has seen the end and closed its side.
        leaving.read_to_end(&mut rest).await.unwrap();

        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nhost: upstream\r\n\r\n").await.unwrap();
        let mut status = [0; 12];
        client.read_exact(&mut status).await.unwrap();
        assert_eq!(&status, b"HTTP/1.1 200");
        stop.send(()).unwrap();
        serving.await.unwrap();
        assert_eq!(*levels.lock().unwrap(), [Level::DEBUG]);
    }
}
