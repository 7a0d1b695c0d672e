//! Commands that wait for projection. The process that runs a command may not project, and perhaps no process does; so the caller is informed
//! while projection makes no progress, and the command gives up after a while.

use std::time::Duration;

use operation::context::Part;
use operation::signing_state::SigningState;
use projector::lag::Lag;
use schemas::views::receipts::TABLES as RECEIPTS;
use view_store::Checkpoint;

use crate::engine::Engine;
use crate::failure::Failure;
use crate::output::Output;

/// How often the progress of projection is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// After how long the caller is informed that views are not served yet.
const NOTE_PAUSE: Duration = Duration::from_secs(1);
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
        let refusal = SigningState::of(&engine.context).refusal().map(|refusal| refusal.reason().to_owned());
        let Some(note) = stall.update(lags, checkpoints, refusal.as_deref()) else { continue };
        output.note(&note);
        if stall.checks >= STALLED_CHECKS_MAX {
            let after_s = (CHECK_INTERVAL * STALLED_CHECKS_MAX).as_secs();
            return Err(Failure::new(format!(
                "gave up after {after_s} s: {note}; appended records stay in the log and are projected when a projector runs"
            )));
        }
    }
}

/// Waits until the views that a command reads are served: a damaged or new one is filled from the log first.
///
/// # Errors
/// Projection stalls.
pub(crate) async fn wait_served(engine: &Engine, output: &dyn Output) -> Result<(), Failure> {
    let views: Vec<&str> = engine.projected_views().into_iter().map(|view| view.name).collect();
    let served = async {
        if tokio::time::timeout(NOTE_PAUSE, engine.store.served(&views)).await.is_err() {
            output.note(&format!("waiting for views to be completed from the log: {}", engine.store.unserved().join(", ")));
            engine.store.served(&views).await;
        }
        Ok(())
    };
    with_reports(engine, output, served).await
}

/// How far each view is behind, and its checkpoint.
async fn check(engine: &Engine) -> Result<(Vec<Lag>, Vec<Checkpoint>), projector::Error> {
    let mut checkpoints = Vec::new();
    for view in engine.projected_views() {
        checkpoints.push(engine.store.live_to_project(view).await?.checkpoint().await?);
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
    /// Adds a check. Returns a note if a view is behind and none has made progress since the previous check. `refusal` is why no receipt is
    /// signed, which the decisions about receipts wait for.
    fn update(&mut self, lags: Vec<Lag>, checkpoints: Vec<Checkpoint>, refusal: Option<&str>) -> Option<String> {
        let is_unchanged = self.checkpoints == checkpoints;
        self.checkpoints = checkpoints;
        let behind = lags.into_iter().find(|lag| lag.events > 0).filter(|_| is_unchanged);
        self.checks = if behind.is_some() { self.checks + 1 } else { 0 };
        behind.map(|Lag { view, events, .. }| {
            let cause = refusal.filter(|_| view == RECEIPTS.view.name).unwrap_or("is a process with role project running?");
            format!("waiting for a projector: view {view} is {events} records behind the log and makes no progress; {cause}")
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
        let lags = |view, events| vec![Lag { view: "engine", events: 0, seconds: 0 }, Lag { view, events, seconds: 1 }];
        let lag = |events| lags("recalls", events);
        let at = |seq| vec![Checkpoint { seq: Seq(seq), ..Checkpoint::default() }];
        let mut stall = Stall::default();
        assert_eq!(stall.update(lag(3), at(1), Some("not signed")), None, "the first check has nothing to compare with");
        let note = stall.update(lag(3), at(1), Some("not signed")).unwrap();
        assert!(note.starts_with("waiting for a projector: view recalls is 3 records behind") && note.ends_with("running?"), "{note}");
        assert!(stall.update(lag(4), at(1), Some("not signed")).is_some());
        assert_eq!(stall.checks, 2);
        assert_eq!(stall.update(lag(4), at(2), Some("not signed")), None, "progress");
        assert_eq!(stall.update(lag(0), at(2), Some("not signed")), None, "no view is behind: the work itself takes long");
        assert_eq!(stall.checks, 0);
        assert!(stall.update(lags("receipts", 1), at(2), Some("not signed")).unwrap().ends_with("makes no progress; not signed"));
    }
}
