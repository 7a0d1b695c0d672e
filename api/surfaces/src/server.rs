//! The two listeners of a process: the one for readers and the one for operators.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use hyper_util::service::TowerToHyperService;
pub use listener::{BindError, listen};
use listener::{ConnectionLimits, Listener, compressed};
use operation::Service;
use operation::context::Context;

use crate::{Readiness, Site, SiteError, operators};

/// The most open connections of the listener for operators.
const OPERATOR_CONNECTIONS_MAX: usize = 64;

/// A bound listener. It accepts connections once it runs.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
}

impl Server {
    /// Binds to an address; port 0 selects a free port. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// When the address is in use or refused.
    pub fn bind(address: SocketAddr) -> Result<Self, BindError> {
        Ok(Self { listener: Listener::bind(address)? })
    }

    /// The address that the listener is bound to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Serves until `shutdown` completes, then finishes the requests in flight (ten seconds at most).
    ///
    /// # Errors
    /// When the services cannot be served: a definition is invalid or has no settings.
    pub async fn run(
        self,
        context: Arc<Context>,
        services: Vec<Service>,
        readiness: Readiness,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), SiteError> {
        let site = Site::new(Arc::clone(&context), services, readiness).inspect_err(|_| {
            // Tasks of the process wait for the end of the server, which never begins.
            context.stopping.send_replace(true);
        })?;
        let service = TowerToHyperService::new(compressed(warp::service(crate::filter(Arc::new(site)))));
        let settings = &context.settings;
        let limits = ConnectionLimits { max: settings.connections_max, per_address_max: settings.connections_per_address_max };
        self.listener.serve(&context, service, limits, true, shutdown).await;
        Ok(())
    }

    /// Serves the endpoints for operators until the future is dropped.
    pub async fn run_for_operators(self, context: Arc<Context>, readiness: Readiness) {
        let is_on_loopback = self.address().ip().to_canonical().is_loopback();
        let service = TowerToHyperService::new(warp::service(operators::filter(Arc::clone(&context), readiness, is_on_loopback)));
        let limits = ConnectionLimits { max: OPERATOR_CONNECTIONS_MAX, per_address_max: OPERATOR_CONNECTIONS_MAX };
        self.listener.serve(&context, service, limits, false, std::future::pending()).await;
    }
}
