//! The health checks behind `/readyz`: whether the log and the view store answer, whether projection makes progress, and whether this node's clock is
//! right. The checks repeat every second, and each change of their results is logged once.

use std::error::Error as StdError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use event_log::clock_guard::ClockGuard;
use schemas::clock::{Clock, rfc3339};
use schemas::reason::reason;
use schemas::views::accounts;
use view_store::ViewStore;

use crate::engine::Engine;

/// How often the log and the store are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The time limit of one check.
const CHECK_TIME_MAX: Duration = Duration::from_secs(5);
const _: () = assert!(event_log::READY_TIME_MAX.as_secs() < CHECK_TIME_MAX.as_secs(), "a log says first which servers do not answer");
/// How often the clocks are compared.
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// The largest accepted difference between the clocks of this node and the store. Recorded times come from this node's clock.
const SKEW_MAX_MS: i64 = 5_000;
/// How long a start may take until keys and suppressions are confirmed. After that it is logged that they are not.
const CONFIRMATION_TIME_MAX: Duration = Duration::from_secs(60);
/// How long the clock may be before the last record of the log until it is logged that recorded times do not advance.
pub(crate) const BEHIND_LOG_MAX_MS: i64 = 1_000;

/// The problems found by the last checks, each empty if there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Problems {
    log: String,
    store: String,
    clock: String,
    projector: String,
    views: String,
    /// That keys and suppressions are not confirmed yet, which every start takes a moment for.
    keys: String,
}

/// The health of this node.
#[derive(Default)]
pub(crate) struct Health {
    problems: Mutex<Problems>,
}

impl Health {
    fn lock(&self) -> MutexGuard<'_, Problems> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All problems in one line; `None` if there are none.
    pub(crate) fn problems(&self) -> Option<String> {
        let problems = self.lock().all().collect::<Vec<_>>().join("; ");
        Some(problems).filter(|problems| !problems.is_empty())
    }

    /// Repeats the checks until the engine stops.
    pub(crate) async fn watch(self: Arc<Self>, engine: Arc<Engine>) {
        let mut stop = engine.stopping();
        let mut clock_checked: Option<Instant> = None;
        let mut is_behind_log = false;
        let began = Instant::now();
        loop {
            if let Some(space) = &engine.space {
                // The writers of the log and the store notice a full disk themselves; this is for the warning before.
                let _ = space.check();
                projector::metrics::set_disk_space(space.last().free_bytes, space.low_bytes());
            }
            let (log, store) = tokio::join!(failure_of(engine.log.ready()), failure_of(engine.store.ready()));
            let mut found = Problems {
                log: log.map(|reason| format!("the log does not answer: {reason}")).unwrap_or_default(),
                store: store.map(|reason| format!("the view store does not answer: {reason}")).unwrap_or_default(),
                clock: self.lock().clock.clone(),
                projector: engine.projector.stalled_reason().unwrap_or_default(),
                views: rebuilt_views(&*engine.store),
                keys: unconfirmed_keys(&*engine.store),
            };
            if found.views.is_empty() && began.elapsed() >= CONFIRMATION_TIME_MAX {
                found.views = std::mem::take(&mut found.keys);
            }
            if found.store.is_empty() && clock_checked.is_none_or(|at| at.elapsed() >= CLOCK_CHECK_INTERVAL) {
                // If the store fails, the next check compares the clocks.
                if let Ok(skew_ms) = skew_ms(engine.parts.clock, &*engine.store).await {
                    projector::metrics::set_clock_skew(skew_ms);
                    found.clock = clock_problem(skew_ms);
                    clock_checked = Some(Instant::now());
                }
            }
            self.replace(found);
            is_behind_log = report_time_standing_still(&engine.clock_guard, is_behind_log);
            tokio::select! {
                _ = stop.changed() => return,
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
            }
        }
    }

    /// Stores the results of the last checks, and logs what changed.
    fn replace(&self, found: Problems) {
        let before = std::mem::replace(&mut *self.lock(), found.clone());
        for (before, now, recovery) in [
            (&before.log, &found.log, "the log answers again"),
            (&before.store, &found.store, "the view store answers again"),
            (&before.clock, &found.clock, "this node's clock is right again"),
            (&before.views, &found.views, "all views are complete again"),
        ] {
            match (before.is_empty(), now.is_empty()) {
                (true, false) => tracing::error!(reason = now, "this node is not ready"),
                (false, true) => tracing::info!("{recovery}"),
                _ => {}
            }
        }
        match (before.keys.is_empty(), found.keys.is_empty()) {
            (true, false) => tracing::debug!(reason = found.keys, "this node is not ready yet"),
            (false, true) => tracing::debug!("keys and suppressions are confirmed"),
            _ => {}
        }
    }
}

impl Problems {
    fn all(&self) -> impl Iterator<Item = &str> {
        [&self.log, &self.store, &self.clock, &self.projector, &self.views, &self.keys]
            .into_iter()
            .map(String::as_str)
            .filter(|reason| !reason.is_empty())
    }
}

/// The views that are not served while they are rebuilt, with the reasons. Empty if none is rebuilt.
fn rebuilt_views(store: &dyn ViewStore) -> String {
    let views = store.rebuilding().into_iter().map(|(view, reason)| format!("view {view} is being rebuilt from the log: {reason}"));
    views.collect::<Vec<_>>().join("; ")
}

/// That keys and suppressions are not confirmed yet although their view is not rebuilt. Empty if they are.
fn unconfirmed_keys(store: &dyn ViewStore) -> String {
    let accounts = accounts::VIEW.name;
    let is_unconfirmed = store.unserved().contains(&accounts) && store.rebuilding().iter().all(|(view, _)| *view != accounts);
    if is_unconfirmed { format!("keys and suppressions of view {accounts} are being confirmed against the log") } else { String::new() }
}

/// Logs when recorded times stop to advance because the clock is before the last record, and when they advance again. Returns whether they do not.
fn report_time_standing_still(guard: &ClockGuard, was_behind: bool) -> bool {
    let (behind_ms, last_ms) = guard.behind_ms().unwrap_or_default();
    projector::metrics::set_clock_behind_log(behind_ms);
    let is_behind = behind_ms > BEHIND_LOG_MAX_MS;
    match (was_behind, is_behind) {
        (false, true) => tracing::warn!(
            seconds = behind_ms / 1_000,
            last_record = rfc3339(last_ms),
            "this node's clock is before the last record of the log: recorded times do not advance until it has passed that record"
        ),
        (true, false) => tracing::info!("recorded times advance again"),
        _ => {}
    }
    is_behind
}

/// Why a check failed; `None` if it passed.
async fn failure_of<E: StdError + 'static>(check: impl Future<Output = Result<(), E>>) -> Option<String> {
    match tokio::time::timeout(CHECK_TIME_MAX, check).await {
        Ok(result) => result.err().map(|error| reason(&error)),
        Err(_) => Some(format!("no answer within {} s", CHECK_TIME_MAX.as_secs())),
    }
}

/// How many milliseconds our clock is certainly ahead of the store's, negative if behind. The round trip makes the comparison inexact: 0 if the clocks
/// may agree.
async fn skew_ms(clock: Clock, store: &dyn ViewStore) -> Result<i64, view_store::Error> {
    // Any other clock is that of a test or a demo, and right by definition.
    if !matches!(clock, Clock::System) {
        return Ok(0);
    }
    let before = clock.now_ms();
    let Some(store_ms) = store.now_ms().await? else { return Ok(0) };
    Ok(ahead_ms(before, store_ms, clock.now_ms()))
}

/// How many milliseconds a clock that showed `before` and then `after` is at least ahead of one that showed `other` in between.
fn ahead_ms(before: i64, other: i64, after: i64) -> i64 {
    if other < before { before - other } else { (after - other).min(0) }
}

/// The problem of a clock that is this far ahead; empty if that is accepted.
fn clock_problem(skew_ms: i64) -> String {
    if skew_ms.abs() <= SKEW_MAX_MS {
        return String::new();
    }
    let (seconds, direction) = (skew_ms.abs() / 1_000, if skew_ms > 0 { "ahead of" } else { "behind" });
    format!("this node's clock is {seconds} s {direction} the view store's: set the clocks of both")
}

#[cfg(test)]
mod tests {
    use scylla_store::{Options, ScyllaStore};
    use view_store::EmbeddedStore;

    use super::*;

    /// Proves that a clock counts as wrong only by the part that the round trip cannot explain.
    #[test]
    fn the_round_trip_is_not_skew() {
        assert_eq!([(10, 10, 20), (10, 15, 20), (10, 20, 20)].map(|(before, other, after)| ahead_ms(before, other, after)), [0, 0, 0]);
        assert_eq!(ahead_ms(10, 7, 20), 3, "ours is ahead");
        assert_eq!(ahead_ms(10, 25, 20), -5, "ours is behind");
    }

    /// Proves that all problems are in one line, and that there is no line without problems.
    #[test]
    fn problems_are_joined() {
        let health = Health::default();
        assert_eq!(health.problems(), None);
        health.replace(Problems { log: "no log".to_owned(), store: "no store".to_owned(), ..Problems::default() });
        assert_eq!(health.problems().as_deref(), Some("no log; no store"));
        health.replace(Problems { clock: clock_problem(-7_200_000), ..Problems::default() });
        assert!(health.problems().unwrap().starts_with("this node's clock is 7200 s behind the view store's"));
        assert_eq!([clock_problem(0), clock_problem(SKEW_MAX_MS)], ["", ""]);
    }

    /// Proves that a node is not ready before it has confirmed keys and suppressions, and that a view of a service does not keep it from being ready.
    #[tokio::test(flavor = "multi_thread")]
    async fn unconfirmed_keys_are_a_problem() {
        let dir = tempfile::tempdir().unwrap();
        let options =
            view_store::embedded::Options { caught_up_first: vec![accounts::VIEW.name], ..view_store::embedded::Options::default() };
        let store = EmbeddedStore::open(dir.path(), options).unwrap();
        store.live_to_project(&schemas::views::recalls::VIEW).await.unwrap();
        assert_eq!((rebuilt_views(&*store), unconfirmed_keys(&*store)), (String::new(), String::new()));
        let view = store.live_to_project(&accounts::VIEW).await.unwrap();
        assert!(store.live(&accounts::VIEW).await.is_err());
        let unconfirmed = "keys and suppressions of view accounts are being confirmed against the log";
        assert_eq!((rebuilt_views(&*store), unconfirmed_keys(&*store)), (String::new(), unconfirmed.to_owned()));
        let health = Health::default();
        health.replace(Problems { keys: unconfirmed_keys(&*store), ..Problems::default() });
        assert_eq!(health.problems().as_deref(), Some(unconfirmed));
        view.finish_rebuild().await.unwrap();
        assert_eq!((rebuilt_views(&*store), unconfirmed_keys(&*store)), (String::new(), String::new()));
    }

    /// The longest tick of a database's clock, in milliseconds.
    const TICK_MS: i64 = 100;

    /// Proves with a real database, whose answers are shifted, that a clock that differs by hours is a problem with its direction, and that one that
    /// agrees is none.
    #[tokio::test(flavor = "multi_thread")]
    async fn the_clock_is_compared_with_the_database() {
        let dir = tempfile::tempdir().unwrap();
        let embedded = EmbeddedStore::open(dir.path(), view_store::embedded::Options::default()).unwrap();
        assert_eq!(skew_ms(Clock::System, &*embedded).await.unwrap(), 0);
        let Some(address) = engines::or_skip(engines::cql(), "the clock of the CQL database") else { return };
        let keyspace = engines::unique("clock");
        for (clock_offset_ms, expected) in [(0, ""), (7_200_000, "s behind the view store's"), (-7_200_000, "s ahead of the view store's")]
        {
            let (contact_points, keyspace) = (vec![address.clone()], keyspace.clone());
            let store = ScyllaStore::open(Options { contact_points, keyspace, clock_offset_ms, ..Options::default() }).await.unwrap();
            // A node asks again if a database that is busy with other work does not answer in time.
            let compared = async {
                loop {
                    let began_ms = Clock::System.now_ms();
                    if let Ok(skew_ms) = skew_ms(Clock::System, &*store).await {
                        return (skew_ms, Clock::System.now_ms() - began_ms);
                    }
                }
            };
            let (skew_ms, round_trip_ms) = tokio::time::timeout(Duration::from_secs(300), compared).await.unwrap();
            // The answer may be of any time of the round trip, and the database may count by ticks of its own.
            assert!((skew_ms + clock_offset_ms).abs() <= round_trip_ms + TICK_MS, "{skew_ms} in {round_trip_ms} ms");
            let problem = clock_problem(skew_ms);
            assert!(problem.contains(expected) && problem.is_empty() == expected.is_empty(), "{problem}");
        }
        let store =
            ScyllaStore::open(Options { contact_points: vec![address], keyspace, clock_offset_ms: 7_200_000, ..Options::default() });
        assert_eq!(skew_ms(Clock::Fixed("2026-11-20T12:00:00Z".parse().unwrap()), &*store.await.unwrap()).await.unwrap(), 0);
    }
}
