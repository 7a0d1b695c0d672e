//! Commands that wait for projection. The process that runs a command may not project, and perhaps no process does; so the caller is informed
//! while projection makes no progress, and the command gives up after a while.

use std::time::Duration;

use projector::lag::Lag;
use schemas::views::SERVICES;
use schemas::views::engine::VIEW as ENGINE_VIEW;
use view_store::Checkpoint;

use crate::engine::Engine;
use crate::failure::Failure;
use crate::output::Output;

/// How often the progress of projection is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// The time limit of one check.
const CHECK_TIME_MAX: Duration = Duration::from_secs(5);
/// Consecutive checks without progress after which a command gives up: about two minutes. A projector that died is replaced within its lease,
/// which is a fraction of this.
const STALLED_CHECKS_MAX: u32 = 24;

/// Waits until everything that is in the log now is projected, as [`with_reports`] does.
///
/// # Errors
/// The log or the store fails, or projection stalls.
pub(crate) async fn wait_caught_up(engine: &Engine, output: &dyn Output) -> Result<(), Failure> {
    let caught_up = async { engine.wait_all_projected().await.map_err(|error| Failure::from_error(&*error)) };
    with_reports(engine, output, caught_up).await
}

/// Awaits work that needs projection. Writes a note while views are behind and make no progress, and gives up in the end.
///
/// # Errors
/// The work fails, or projection stalls.
pub(crate) async fn with_reports<T>(
    engine: &Engine,
    output: &dyn Output,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let mut work = std::pin::pin!(work);
    let mut stall = Stall::default();
    loop {
        let checked = async {
            tokio::time::sleep(CHECK_INTERVAL).await;
            tokio::time::timeout(CHECK_TIME_MAX, check(engine)).await
        };
        let checked = tokio::select! {
            result = &mut work => return result,
            checked = checked => checked,
        };
        // While the log or the store is unavailable no process can project; the wait continues when they are back.
        let Ok(Ok((lags, checkpoints))) = checked else { continue };
        let Some(note) = stall.update(lags, checkpoints) else { continue };
        output.note(&note);
        if stall.checks >= STALLED_CHECKS_MAX {
            let after_s = (CHECK_INTERVAL * STALLED_CHECKS_MAX).as_secs();
            return Err(Failure::new(format!(
                "gave up after {after_s} s: {note}; appended records stay in the log and are projected when a projector runs"
            )));
        }
    }
}

/// How far each view is behind, and its checkpoint.
async fn check(engine: &Engine) -> Result<(Vec<Lag>, Vec<Checkpoint>), projector::Error> {
    let mut checkpoints = Vec::new();
    for view in std::iter::once(&ENGINE_VIEW).chain(SERVICES.iter().copied()) {
        checkpoints.push(engine.store.live(view).await?.checkpoint().await?);
    }
    Ok((projector::lag::measure(&engine.parts).await?, checkpoints))
}

/// Consecutive checks without progress.
#[derive(Default)]
struct Stall {
    checkpoints: Vec<Checkpoint>,
    checks: u32,
}

impl Stall {
    /// Adds a check. Returns a note if a view is behind and none has made progress since the previous check.
    fn update(&mut self, lags: Vec<Lag>, checkpoints: Vec<Checkpoint>) -> Option<String> {
        let is_unchanged = self.checkpoints == checkpoints;
        self.checkpoints = checkpoints;
        let behind = lags.into_iter().find(|lag| lag.events > 0).filter(|_| is_unchanged);
        self.checks = if behind.is_some() { self.checks + 1 } else { 0 };
        behind.map(|Lag { view, events, .. }| {
            format!("waiting for a projector: view {view} is {events} records behind the log and makes no progress; is a process with role project running?")
        })
    }
}

#[cfg(test)]
mod tests {
    use schemas::position::Seq;

    use super::*;

    /// Proves that a note is written only for views that are behind and make no progress, and that progress resets the count.
    #[test]
    fn a_stall_is_reported() {
        let lag = |events| vec![Lag { view: "engine", events: 0, seconds: 0 }, Lag { view: "recalls", events, seconds: 1 }];
        let at = |seq| vec![Checkpoint { seq: Seq(seq), ..Checkpoint::default() }];
        let mut stall = Stall::default();
        assert_eq!(stall.update(lag(3), at(1)), None, "the first check has nothing to compare with");
        let note = stall.update(lag(3), at(1)).unwrap();
        assert!(note.starts_with("waiting for a projector: view recalls is 3 records behind"), "{note}");
        assert!(stall.update(lag(4), at(1)).is_some());
        assert_eq!(stall.checks, 2);
        assert_eq!(stall.update(lag(4), at(2)), None, "progress");
        assert_eq!(stall.update(lag(0), at(2)), None, "no view is behind: the work itself takes long");
        assert_eq!(stall.checks, 0);
    }
}
