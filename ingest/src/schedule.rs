//! Runs a cron schedule for each upstream, with tokio-cron-scheduler. A sync that comes due while the last one is still running is skipped.

use schemas::clock::Clock;
use tokio::sync::mpsc;
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};

/// Why a schedule cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The setting is not a cron expression.
    #[error("upstreams.{upstream}.schedule: \"{line}\" is not a cron expression (seconds minutes hours day month weekday)")]
    Line {
        /// The upstream.
        upstream: String,
        /// The cron expression.
        line: String,
        /// Why.
        #[source]
        source: JobSchedulerError,
    },
    /// The scheduler itself failed.
    #[error("the scheduler failed")]
    Scheduler(#[from] JobSchedulerError),
}

/// An upstream that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// The upstream's name.
    pub upstream: String,
    /// When it was due by the system's clock, in milliseconds since 1970.
    pub at_ms: i64,
}

/// The running scheduler. It sends a [`Due`] for each upstream whose time has come.
pub struct Schedule {
    scheduler: JobScheduler,
}

impl Schedule {
    /// Starts the scheduler. `lines` are pairs of an upstream and its cron expression in UTC. Due upstreams are sent to `due`; one that
    /// finds the channel full is skipped.
    ///
    /// # Errors
    /// [`ScheduleError::Line`], which names the setting.
    pub async fn start(lines: &[(String, String)], due: mpsc::Sender<Due>) -> Result<Self, ScheduleError> {
        let scheduler = JobScheduler::new().await?;
        for (upstream, line) in lines {
            let (name, sender) = (upstream.clone(), due.clone());
            let job = Job::new(line.as_str(), move |_, _| {
                // Cron expressions have a resolution of one second.
                let at_ms = Clock::System.now_ms() / 1_000 * 1_000;
                if sender.try_send(Due { upstream: name.clone(), at_ms }).is_err() {
                    tracing::debug!(upstream = name, "sync skipped: the previous one is still running");
                }
            })
            .map_err(|source| ScheduleError::Line { upstream: upstream.clone(), line: line.clone(), source })?;
            scheduler.add(job).await?;
        }
        scheduler.start().await?;
        Ok(Self { scheduler })
    }

    /// Stops the scheduler. No upstream becomes due after that.
    pub async fn stop(mut self) {
        if let Err(error) = self.scheduler.shutdown().await {
            tracing::warn!(%error, "the scheduler did not stop cleanly");
        }
    }
}
