//! A lease as its holder sees it: taken, kept by a heartbeat beside the work, given back.
//!
//! Promise: a lease that its holder can no longer renew ends by itself within [`LEASE`] and two seconds, by the store's clock. Nothing rests
//! on holding one but that work is not done twice: two that both believe they hold it do no harm.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::store::{Error, ViewStore};

/// How long a lease lasts; it is renewed three times in that.
pub const LEASE: Duration = Duration::from_secs(15);

/// How much later than that it may end.
const LATE_MAX: Duration = Duration::from_secs(2);

/// Whether the work of a dead holder is taken over within half a minute by those who look for it this often.
#[must_use]
pub const fn is_taken_over_soon(looked_for: Duration) -> bool {
    LEASE.as_secs() + LATE_MAX.as_secs() + looked_for.as_secs() < 30
}

/// A lease of one name, for one holder.
pub struct Lease {
    store: Arc<dyn ViewStore>,
    name: String,
    holder: String,
    renewed: Option<Instant>,
}

impl Lease {
    /// A lease that is not taken yet. `holder` tells processes apart.
    #[must_use]
    pub fn new(store: &Arc<dyn ViewStore>, name: String, holder: &str) -> Self {
        Self { store: Arc::clone(store), name, holder: holder.to_owned(), renewed: None }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes it, or renews it once a third of its time has passed: on CQL that costs as much as a small batch. False: another has it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn renew(&mut self) -> Result<bool, Error> {
        if self.renewed.is_some_and(|renewed| renewed.elapsed() < LEASE / 3) {
            return Ok(true);
        }
        let now = Instant::now();
        self.renewed = None;
        let is_ours = self.store.coordination().lease(&self.name, &self.holder, LEASE).await?;
        self.renewed = is_ours.then_some(now);
        Ok(is_ours)
    }

    /// Renews it again and again; ends when another has it. Cancel-safe. To be awaited beside the work.
    pub async fn lost(&mut self) {
        loop {
            tokio::time::sleep(LEASE / 3).await;
            match self.renew().await {
                Ok(true) => {}
                Ok(false) => return,
                // The work itself finds out whether it can go on.
                Err(error) => tracing::warn!(lease = self.name, error = schemas::reason::reason(&error), "a lease could not be renewed"),
            }
        }
    }

    /// Gives it back; one that cannot be given back ends by itself.
    pub async fn release(&mut self) {
        self.renewed = None;
        if let Err(error) = self.store.coordination().release(&self.name, &self.holder).await {
            tracing::warn!(lease = self.name, error = schemas::reason::reason(&error), "a lease could not be given back");
        }
    }
}
