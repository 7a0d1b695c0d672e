//! Commands that wait for projection, and what they say meanwhile. The process that is asked may be one that does not project, and perhaps
//! none does: a script that waits must hear of it, and not wait for ever.

use std::time::Duration;

use projector::lag::Lag;
use schemas::views::SERVICES;
use schemas::views::engine::VIEW as ENGINE_VIEW;
use view_store::Checkpoint;

use crate::commands::Failure;
use crate::engine::Engine;
use crate::output::Output;

/// How often it is looked whether projection goes on.
const LOOKED_EVERY: Duration = Duration::from_secs(5);
/// How long a look may take.
const LOOK_MAX: Duration = Duration::from_secs(5);
/// Looks in a row that find views behind and none of them further before a command gives up, in all some two minutes. A projector that
/// died is replaced within its lease, a fraction of this.
const STANDSTILLS_MAX: u32 = 24;

/// Awaits what needs projection; says so while views are behind and do not move, and gives up in the end.
pub(crate) async fn telling<T>(engine: &Engine, output: &dyn Output, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let mut work = std::pin::pin!(work);
    let mut seen = Seen::default();
    loop {
        let looked = async {
            tokio::time::sleep(LOOKED_EVERY).await;
            tokio::time::timeout(LOOK_MAX, look(engine)).await
        };
        let looked = tokio::select! {
            result = &mut work => return result,
            looked = looked => looked,
        };
        // While the log or the store does not answer nobody can project; who waits goes on when they do.
        let Ok(Ok((lags, checkpoints))) = looked else { continue };
        let Some(words) = seen.take(lags, checkpoints) else { continue };
        output.note(&words);
        if seen.standstills >= STANDSTILLS_MAX {
            let after_s = (LOOKED_EVERY * STANDSTILLS_MAX).as_secs();
            return Err(Failure::new(format!(
                "given up after {after_s} s: {words}; what was appended stays, and is projected when one runs"
            )));
        }
    }
}

/// How far each view is behind, and where it stands.
async fn look(engine: &Engine) -> Result<(Vec<Lag>, Vec<Checkpoint>), projector::Error> {
    let mut checkpoints = Vec::new();
    for view in std::iter::once(&ENGINE_VIEW).chain(SERVICES.iter().copied()) {
        checkpoints.push(engine.store.live(view).await?.checkpoint().await?);
    }
    Ok((projector::lag::measure(&engine.parts).await?, checkpoints))
}

/// What the last look found.
#[derive(Default)]
struct Seen {
    checkpoints: Vec<Checkpoint>,
    standstills: u32,
}

impl Seen {
    /// Takes in a look; answers what is waited for, if views are behind and none has moved since the last one.
    fn take(&mut self, lags: Vec<Lag>, checkpoints: Vec<Checkpoint>) -> Option<String> {
        let stands = self.checkpoints == checkpoints;
        self.checkpoints = checkpoints;
        let behind = lags.into_iter().find(|lag| lag.events > 0).filter(|_| stands);
        self.standstills = if behind.is_some() { self.standstills + 1 } else { 0 };
        behind.map(|Lag { view, events, .. }| {
            format!("waiting for a projector: view {view} is {events} records behind the log and does not move; does a process of role project run?")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that only views that are behind and do not move are told of, and that any move begins the count anew.
    #[test]
    fn a_standstill_is_told() {
        let lag = |events| vec![Lag { view: "engine", events: 0, seconds: 0 }, Lag { view: "recalls", events, seconds: 1 }];
        let at = |seq| vec![Checkpoint { seq, ..Checkpoint::default() }];
        let mut seen = Seen::default();
        assert_eq!(seen.take(lag(3), at(1)), None, "the first look compares with nothing");
        let words = seen.take(lag(3), at(1)).unwrap();
        assert!(words.starts_with("waiting for a projector: view recalls is 3 records behind"), "{words}");
        assert!(seen.take(lag(4), at(1)).is_some());
        assert_eq!(seen.standstills, 2);
        assert_eq!(seen.take(lag(4), at(2)), None, "it moves");
        assert_eq!(seen.take(lag(0), at(2)), None, "nothing is behind: the work itself takes long");
        assert_eq!(seen.standstills, 0);
    }
}
