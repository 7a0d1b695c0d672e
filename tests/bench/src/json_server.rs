//! The HTTP server of peers: the framework of the API's server with a route that answers JSON.

use std::net::SocketAddr;

use serde_json::json;
use surfaces::server::listen;
use warp::Filter;

use crate::Failure;
use crate::report::line;

/// Serves a route, and prints the address first.
pub(crate) async fn serve<F, R>(route: F) -> Result<(), Failure>
where
    F: Filter<Extract = (R,), Error: Into<warp::Rejection> + std::fmt::Debug> + Clone + Send + Sync + 'static,
    R: warp::Reply,
{
    // The same socket options as in the API's server, so that only what is behind the sockets differs.
    let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    line(&json!({ "address": listener.local_addr()?.to_string() }).to_string());
    warp::serve(route).incoming(listener).run().await;
    Ok(())
}
