//! What `/readyz` says beside "ready": which of the log and the view store does not answer, which view does not go on, and whether this
//! node's clock is right. Asked again and again, so that it is as true as it can be said within seconds; a change is logged once.

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use schemas::clock::Clock;
use schemas::reason::reason;
use view_store::ViewStore;

use crate::engine::Engine;

/// How often the log and the store are asked whether they answer.
const ASKED_EVERY: Duration = Duration::from_secs(1);
/// How long they may take to say so.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// How often the clocks are compared.
const CLOCK_ASKED_EVERY: Duration = Duration::from_secs(30);
/// How far a node's clock may be off. Recorded times come from it; beyond, they mislead readers.
const SKEW_MAX_MS: i64 = 5_000;

/// What was found when it was last looked; empty texts are good.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Found {
    log: String,
    store: String,
    clock: String,
    projector: String,
}

/// What keeps a node from being ready.
#[derive(Default)]
pub(crate) struct Health {
    found: Mutex<Found>,
}

impl Health {
    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that is wrong, in one line; `None` if nothing is.
    pub(crate) fn trouble(&self) -> Option<String> {
        let mut words = String::new();
        for reason in self.found().reasons() {
            let separator = if words.is_empty() { "" } else { "; " };
            let _ = write!(words, "{separator}{reason}");
        }
        Some(words).filter(|words| !words.is_empty())
    }

    /// Looks again and again, until the engine stops.
    pub(crate) async fn watch(self: Arc<Self>, engine: Arc<Engine>) {
        let mut stop = engine.stopping();
        let mut clock_asked: Option<Instant> = None;
        loop {
            let (log, store) = tokio::join!(answer(engine.log.ready()), answer(engine.store.ready()));
            let mut found = Found {
                log: log.map(|why| format!("the log does not answer: {why}")).unwrap_or_default(),
                store: store.map(|why| format!("the view store does not answer: {why}")).unwrap_or_default(),
                clock: self.found().clock.clone(),
                projector: engine.projector.stalled_reason().unwrap_or_default(),
            };
            if found.store.is_empty() && clock_asked.is_none_or(|at| at.elapsed() >= CLOCK_ASKED_EVERY) {
                // What cannot be told now is told the next time.
                if let Ok(skew_ms) = skew_ms(engine.parts.clock, &*engine.store).await {
                    projector::metrics::set_clock_skew(skew_ms);
                    found.clock = clock_words(skew_ms);
                    clock_asked = Some(Instant::now());
                }
            }
            self.replace(found);
            tokio::select! {
                _ = stop.changed() => return,
                () = tokio::time::sleep(ASKED_EVERY) => {}
            }
        }
    }

    /// Takes in what was found, and logs what changed.
    fn replace(&self, found: Found) {
        let before = std::mem::replace(&mut *self.found(), found.clone());
        for (before, now, again) in [
            (&before.log, &found.log, "the log answers again"),
            (&before.store, &found.store, "the view store answers again"),
            (&before.clock, &found.clock, "this node's clock is right again"),
        ] {
            match (before.is_empty(), now.is_empty()) {
                (true, false) => tracing::error!(reason = now, "this node is not ready"),
                (false, true) => tracing::info!("{again}"),
                _ => {}
            }
        }
    }
}

impl Found {
    fn reasons(&self) -> impl Iterator<Item = &str> {
        [&self.log, &self.store, &self.clock, &self.projector].into_iter().map(String::as_str).filter(|reason| !reason.is_empty())
    }
}

/// Why there is no good answer, if there is none.
async fn answer<E: StdError + 'static>(asked: impl Future<Output = Result<(), E>>) -> Option<String> {
    match tokio::time::timeout(ANSWER_MAX, asked).await {
        Ok(answered) => answered.err().map(|error| reason(&error)),
        Err(_) => Some(format!("nothing came within {} s", ANSWER_MAX.as_secs())),
    }
}

/// How far our clock is ahead of the store's, as far as the time that asking takes lets it be known: 0 where it may be right.
async fn skew_ms(clock: Clock, store: &dyn ViewStore) -> Result<i64, view_store::Error> {
    // One that stands still is a test's or a demo's, and right by definition.
    if matches!(clock, Clock::Fixed(_) | Clock::Simulated(_)) {
        return Ok(0);
    }
    let before = clock.now_ms();
    let Some(theirs) = store.now_ms().await? else { return Ok(0) };
    Ok(ahead_ms(before, theirs, clock.now_ms()))
}

/// How far a clock that showed `before` and `after` is ahead of one that showed `theirs` in between.
fn ahead_ms(before: i64, theirs: i64, after: i64) -> i64 {
    if theirs < before { before - theirs } else { (after - theirs).min(0) }
}

fn clock_words(skew_ms: i64) -> String {
    if skew_ms.abs() <= SKEW_MAX_MS {
        return String::new();
    }
    let (seconds, where_to) = (skew_ms.abs() / 1_000, if skew_ms > 0 { "ahead of" } else { "behind" });
    format!("this node's clock is {seconds} s {where_to} the view store's: set the clocks of both")
}

#[cfg(test)]
mod tests {
    use view_store::scylla::Options;
    use view_store::{EmbeddedStore, ScyllaStore};

    use super::*;

    /// Proves that a clock counts as off only as far as the round trip leaves no doubt.
    #[test]
    fn a_clock_between_question_and_answer_is_right() {
        assert_eq!([(10, 10, 20), (10, 15, 20), (10, 20, 20)].map(|(before, theirs, after)| ahead_ms(before, theirs, after)), [0, 0, 0]);
        assert_eq!(ahead_ms(10, 7, 20), 3, "ours is ahead");
        assert_eq!(ahead_ms(10, 25, 20), -5, "ours is behind");
    }

    /// Proves that all that is wrong is said in one line, and that nothing is said of what is well.
    #[test]
    fn reasons_are_joined() {
        let health = Health::default();
        assert_eq!(health.trouble(), None);
        health.replace(Found { log: "no log".to_owned(), store: "no store".to_owned(), ..Found::default() });
        assert_eq!(health.trouble().as_deref(), Some("no log; no store"));
        health.replace(Found { clock: clock_words(-7_200_000), ..Found::default() });
        assert!(health.trouble().unwrap().starts_with("this node's clock is 7200 s behind the view store's"));
        assert_eq!([clock_words(0), clock_words(SKEW_MAX_MS)], ["", ""]);
    }

    /// Proves that a node hears of a database whose clock differs by hours, in which direction, and of none where both agree: a real
    /// database, whose answer is shifted.
    #[tokio::test(flavor = "multi_thread")]
    async fn the_databases_clock_is_asked() {
        let dir = tempfile::tempdir().unwrap();
        let embedded = EmbeddedStore::open(dir.path(), view_store::embedded::Options::default()).unwrap();
        assert_eq!(skew_ms(Clock::System, &*embedded).await.unwrap(), 0);
        let Some(address) = engines::or_skip(engines::cql(), "the clock of the CQL database") else { return };
        let keyspace = engines::unique("clock");
        for (clock_offset_ms, words) in [(0, ""), (7_200_000, "s behind the view store's"), (-7_200_000, "s ahead of the view store's")] {
            let (contact_points, keyspace) = (vec![address.clone()], keyspace.clone());
            let store = ScyllaStore::open(Options { contact_points, keyspace, clock_offset_ms, ..Options::default() }).await.unwrap();
            let skew_ms = skew_ms(Clock::System, &*store).await.unwrap();
            assert!((skew_ms + clock_offset_ms).abs() < 1_000, "{skew_ms}");
            let said = clock_words(skew_ms);
            assert!(said.contains(words) && said.is_empty() == words.is_empty(), "{said}");
        }
        let store =
            ScyllaStore::open(Options { contact_points: vec![address], keyspace, clock_offset_ms: 7_200_000, ..Options::default() });
        assert_eq!(skew_ms(Clock::Fixed("2026-11-20T12:00:00Z".parse().unwrap()), &*store.await.unwrap()).await.unwrap(), 0);
    }
}
