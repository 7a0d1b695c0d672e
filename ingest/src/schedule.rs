//! When each upstream runs: a cron line each, kept by tokio-cron-scheduler. A run that is due while the last one still goes is
//! left out.

use tokio::sync::mpsc;
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};

/// Why a schedule cannot be kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The line is no cron expression.
    #[error("upstreams.{upstream}.schedule: \"{line}\" is no cron expression (seconds minutes hours day month weekday)")]
    Line {
        /// The upstream.
        upstream: String,
        /// The line.
        line: String,
        /// Why.
        #[source]
        source: JobSchedulerError,
    },
    /// The scheduler itself failed.
    #[error("the scheduler failed")]
    Scheduler(#[from] JobSchedulerError),
}

/// Sends the name of each upstream when it is due.
pub struct Schedule {
    scheduler: JobScheduler,
}

impl Schedule {
    /// Starts; `lines` are (upstream, cron line in UTC). Names arrive at `due`; one that finds no room is left out.
    ///
    /// # Errors
    /// [`ScheduleError::Line`] naming the setting.
    pub async fn start(lines: &[(String, String)], due: mpsc::Sender<String>) -> Result<Self, ScheduleError> {
        let scheduler = JobScheduler::new().await?;
        for (upstream, line) in lines {
            let (name, sender) = (upstream.clone(), due.clone());
            let job = Job::new(line.as_str(), move |_, _| {
                if sender.try_send(name.clone()).is_err() {
                    tracing::debug!(upstream = name, "still running; this turn is left out");
                }
            })
            .map_err(|source| ScheduleError::Line { upstream: upstream.clone(), line: line.clone(), source })?;
            scheduler.add(job).await?;
        }
        scheduler.start().await?;
        Ok(Self { scheduler })
    }

    /// Stops; nothing is due any more.
    pub async fn stop(mut self) {
        if let Err(error) = self.scheduler.shutdown().await {
            tracing::warn!(%error, "the scheduler did not stop cleanly");
        }
    }
}
