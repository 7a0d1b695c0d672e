//! When each upstream runs: a cron line each, kept by tokio-cron-scheduler. A run that is due while the last one still goes is
//! left out.

use schemas::clock::Clock;
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

/// An upstream that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// Its name.
    pub upstream: String,
    /// For which turn, by the system's clock: milliseconds since 1970.
    pub at_ms: i64,
}

/// Tells each upstream when it is due.
pub struct Schedule {
    scheduler: JobScheduler,
}

impl Schedule {
    /// Starts; `lines` are (upstream, cron line in UTC). Turns arrive at `due`; one that finds no room is left out.
    ///
    /// # Errors
    /// [`ScheduleError::Line`] naming the setting.
    pub async fn start(lines: &[(String, String)], due: mpsc::Sender<Due>) -> Result<Self, ScheduleError> {
        let scheduler = JobScheduler::new().await?;
        for (upstream, line) in lines {
            let (name, sender) = (upstream.clone(), due.clone());
            let job = Job::new(line.as_str(), move |_, _| {
                // Lines are in whole seconds.
                let at_ms = Clock::System.now_ms() / 1_000 * 1_000;
                if sender.try_send(Due { upstream: name.clone(), at_ms }).is_err() {
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
