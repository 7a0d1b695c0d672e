//! A lease from its holder's view: acquired, renewed by a heartbeat alongside the work, released.
//!
//! A lease that its holder no longer renews expires within [`ViewStore::lease_length`] plus two seconds, by the store's clock. Leases only avoid duplicate
//! work: two processes that both believe to hold one do no harm.

use std::sync::Arc;
use std::time::{Duration, Instant};

pub use crate::store::DEFAULT_LEASE_LENGTH;
use crate::store::{Error, ViewStore};

/// How much later a lease may expire.
const LATE_MAX: Duration = Duration::from_secs(2);

/// Whether a lease of the default length whose holder crashed is taken over within half a minute, if others try to acquire it this often.
#[must_use]
pub const fn is_taken_over_soon(poll_interval: Duration) -> bool {
    DEFAULT_LEASE_LENGTH.as_secs() + LATE_MAX.as_secs() + poll_interval.as_secs() < 30
}

/// A lease with one name, for one holder.
pub struct Lease {
    store: Arc<dyn ViewStore>,
    name: String,
    holder: String,
    renewed: Option<Instant>,
}

impl Lease {
    /// Creates a lease that is not acquired yet. `holder` identifies the process.
    #[must_use]
    pub fn new(store: &Arc<dyn ViewStore>, name: String, holder: &str) -> Self {
        Self { store: Arc::clone(store), name, holder: holder.to_owned(), renewed: None }
    }

    /// Returns the name of the lease.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How often the lease must be renewed so that it does not expire: three times in its length.
    #[must_use]
    pub fn renewal_interval(&self) -> Duration {
        self.store.lease_length() / 3
    }

    /// Acquires the lease, or renews it once a third of its time has passed: on CQL a renewal costs as much as a small batch. Returns false
    /// if another process holds it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn renew(&mut self) -> Result<bool, Error> {
        if self.renewed.is_some_and(|renewed| renewed.elapsed() < self.renewal_interval()) {
            return Ok(true);
        }
        let now = Instant::now();
        self.renewed = None;
        let is_ours = self.store.coordination().lease(&self.name, &self.holder, self.store.lease_length()).await?;
        self.renewed = is_ours.then_some(now);
        Ok(is_ours)
    }

    /// Renews the lease until another process holds it, and then returns. Cancel-safe. Await it alongside the work.
    pub async fn lost(&mut self) {
        loop {
            tokio::time::sleep(self.renewal_interval()).await;
            match self.renew().await {
                Ok(true) => {}
                Ok(false) => return,
                // The work itself notices whether it can continue.
                Err(error) => {
                    tracing::warn!(lease = self.name, error = schemas::reason::reason(&error), "cannot renew the lease, will retry")
                }
            }
        }
    }

    /// Releases the lease. If that fails, it expires on its own.
    pub async fn release(&mut self) {
        self.renewed = None;
        if let Err(error) = self.store.coordination().release(&self.name, &self.holder).await {
            tracing::warn!(lease = self.name, error = schemas::reason::reason(&error), "cannot release the lease, it will expire");
        }
    }
}
