//! Runs one sync of one stream under the lease of its upstream.

use std::time::Duration;

use upstreams::http::{Client, FetchError};
use upstreams::{Settings, Stream, Upstream};

use super::sync::SyncRun;
use super::{Outcome, Runner};
use crate::{Error, reason};

/// The longest pause after an upstream asked to back off. A longer request is shortened to this.
const BACK_OFF_MAX: Duration = Duration::from_secs(3_600);

impl Runner {
    /// Runs one sync of one stream to its end.
    ///
    /// # Errors
    /// Why the sync did not finish. A `run_failed` event in the log records the same reason.
    pub async fn sync_stream(
        &self,
        upstream: &'static dyn Upstream,
        stream: &'static Stream,
        client: &Client,
        settings: &Settings,
    ) -> Result<Outcome, Error> {
        // Waits for a sync run of this upstream in this process to end; the requested sync runs after it.
        let state = self.state(upstream).await;
        let mut state = state.lock().await;
        let last_validators = state.entry(stream.name).or_default();
        let back_off = upstreams::back_off_lease(upstream.manifest().name);
        if self.store.coordination().holder(&back_off).await?.is_some() {
            return Err(Error::BackingOff { stream: stream.name });
        }
        let mut lease = self.acquire_lease(upstream, stream).await?;
        let mut run = SyncRun::new(self, upstream, stream, client, settings, last_validators.clone())?;
        let result = tokio::select! {
            biased;
            result = run.run_to_end() => result,
            () = lease.lost() => Err(Error::Overtaken { stream: stream.name }),
        };
        let result = match result {
            Err(error @ Error::Stopped { .. }) => {
                if let Err(error) = run.append_pending_checkpoint().await {
                    tracing::warn!(
                        stream = stream.name,
                        error = reason(&error),
                        "the checkpoint of a stopped run could not be appended; its last pages will be read again"
                    );
                }
                Err(error)
            }
            Err(error @ (Error::Overtaken { .. } | Error::Unprojected { .. } | Error::Log(_) | Error::Store(_))) => Err(error),
            Err(error) => run.fail(error).await,
            Ok(outcome) => Ok(outcome),
        };
        let validators = std::mem::take(&mut run.validators);
        if let Err(Error::Fetch { source: FetchError::Later { pause, .. }, .. }) = &result {
            // Stored where every process sees it and for longer than this sync run: requests of other streams would be refused too, or
            // extend the pause.
            self.store.coordination().lease(&back_off, upstreams::BACK_OFF_HOLDER, (*pause).min(BACK_OFF_MAX)).await?;
        }
        if result.is_ok() {
            run.delete_downloads().await;
            // Not earlier: after a crash before this point the answers must be read again.
            last_validators.extend(validators);
        }
        lease.release().await;
        result
    }
}
