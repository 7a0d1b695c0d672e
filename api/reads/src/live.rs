//! Live look-ups at upstreams, for answers that cannot wait until a sync run records the data: rate-limited, cached, with a deadline.
//!
//! Promises: all nodes together send an upstream at most [`MAX_LOOKUPS_PER_SECOND`] look-ups per second of the configured clock, in addition to the requests
//! of sync runs; a fixed clock, whose second never ends, counts as the system's.
//! All nodes back off from an upstream that asks for it. Concurrent look-ups of the same question share one request, and its answer is cached for
//! some minutes. The caller gets an answer, or the reason why there is none, early enough to answer without it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use operation::call_times::CallTimes;
use operation::context::{Context, Part};
use schemas::clock::Clock;
use upstreams::Settings;
use upstreams::http::{Client, FetchError, Fetched};
use upstreams::live::Question;
use view_store::{Coordination, ViewStore};

use crate::lookup_cache::LookupCache;
pub use crate::lookup_cache::LookupResult;

/// The most look-ups that all nodes together send to one upstream per second.
pub const MAX_LOOKUPS_PER_SECOND: i64 = 2;
/// How long the counter of a second is stored, in milliseconds.
const COUNTER_STORED_MS: i64 = 60_000;
/// The longest back-off that an upstream can ask for.
const MAX_BACK_OFF: Duration = Duration::from_secs(3_600);

/// The upstreams that support live look-ups.
pub struct Live {
    clients: HashMap<&'static str, (Client, Settings)>,
    cache: LookupCache,
    deadline: Duration,
}

impl Default for Live {
    fn default() -> Self {
        Self { clients: HashMap::new(), cache: LookupCache::default(), deadline: CallTimes::default().look_up() }
    }
}

impl Part for Live {}

/// Looks a question up at its upstream. `now` is the time that the answer is for.
pub async fn look_up(ctx: &Context, question: Question, now: Timestamp) -> LookupResult {
    Live::of(ctx).look_up(&*ctx.store, ctx.clock, question, now.to_zoned(TimeZone::UTC).date()).await
}

impl Live {
    /// Creates the clients of the given upstreams, by name.
    ///
    /// # Errors
    /// When a setting cannot be used.
    pub fn new(settings: impl IntoIterator<Item = (&'static str, Settings)>) -> Result<Self, upstreams::http::BuildError> {
        let client = |(name, settings): (&'static str, Settings)| Ok((name, (Client::for_look_ups(&settings)?, settings)));
        Ok(Self { clients: settings.into_iter().map(client).collect::<Result<_, _>>()?, ..Self::default() })
    }

    /// Sets how long a look-up may take.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// Looks a question up, or returns the cached answer. The limit of look-ups per second counts the seconds of `clock`.
    pub async fn look_up(&self, store: &dyn ViewStore, clock: Clock, question: Question, today: Date) -> LookupResult {
        let fetch = async {
            match tokio::time::timeout(self.deadline, self.fetch(store, clock, &question, today)).await {
                Ok(answer) => answer,
                Err(_) => Err("the upstream did not answer in time".to_owned()),
            }
        };
        self.cache.get_or_look_up(&question, fetch).await
    }

    async fn fetch(&self, store: &dyn ViewStore, clock: Clock, question: &Question, today: Date) -> LookupResult {
        let name = question.upstream().manifest().name;
        let not_enabled = || format!("{name} is not enabled here");
        let ((client, settings), stream) = self.clients.get(name).zip(question.stream()).ok_or_else(not_enabled)?;
        let request = question.request(stream, settings).map_err(|error| {
            tracing::warn!(upstream = name, %error, "a look-up is not possible with the configured settings");
            "look-ups are not possible with its settings".to_owned()
        })?;
        let coordination = store.coordination();
        let store_failed = |error: view_store::Error| {
            tracing::warn!(error = schemas::reason::reason(&error), "the rate limit of look-ups cannot be read");
            "look-ups are not possible now".to_owned()
        };
        // Sync runs hold the lease under the same name.
        let back_off_lease = upstreams::back_off_lease(name);
        if coordination.holder(&back_off_lease).await.map_err(store_failed)?.is_some() {
            return Err("the upstream asked to back off".to_owned());
        }
        wait_for_permit(coordination, name, clock).await.map_err(store_failed)?;
        let fetched = match client.fetch(stream, &request, None).await {
            Ok(fetched) => fetched,
            Err(error) => {
                tracing::warn!(upstream = name, error = schemas::reason::reason(&error), "a look-up failed");
                if let FetchError::Later { pause, .. } = &error {
                    let pause = (*pause).min(MAX_BACK_OFF);
                    coordination.lease(&back_off_lease, upstreams::BACK_OFF_HOLDER, pause).await.map_err(store_failed)?;
                    return Err("the upstream asked to back off".to_owned());
                }
                return Err("the upstream did not answer".to_owned());
            }
        };
        let Fetched::Answer { answer, .. } = fetched else { return Err("the upstream returned no content".to_owned()) };
        let question = question.clone();
        // Parsing a large answer takes long and must not block other tasks.
        let read = tokio::task::spawn_blocking(move || question.read(stream, &answer, today)).await;
        match read {
            Ok(Ok(found)) => Ok(Arc::new(found)),
            Ok(Err(error)) => {
                tracing::warn!(upstream = name, %error, "the answer to a look-up cannot be parsed");
                Err("its answer could not be parsed".to_owned())
            }
            Err(error) => {
                tracing::error!(upstream = name, %error, "task that parses a look-up panicked");
                Err("its answer could not be parsed".to_owned())
            }
        }
    }
}

/// Waits until one more look-up at an upstream is permitted, by the seconds of a clock. A clock that stands still, as one that a test moves, delays a look-up as
/// long as a moving one: the time that a look-up waited counts as well.
async fn wait_for_permit(coordination: &dyn Coordination, upstream: &str, clock: Clock) -> Result<(), view_store::Error> {
    let moving = clock.moving();
    let mut at_ms = moving.now_ms();
    loop {
        let second = at_ms.div_euclid(1_000);
        // All counters of a store expire by the configured clock.
        let now_ms = clock.now_ms();
        let counter = format!("live/{upstream}/{second}");
        if coordination.add_to_counter(&counter, 1, MAX_LOOKUPS_PER_SECOND, now_ms, now_ms + COUNTER_STORED_MS).await? > 0 {
            return Ok(());
        }
        let next_ms = (second + 1) * 1_000;
        tokio::time::sleep(Duration::from_millis(next_ms.abs_diff(at_ms))).await;
        at_ms = moving.now_ms().max(next_ms);
    }
}

#[cfg(test)]
mod tests {
    use schemas::clock::SimulatedClock;
    use tokio::time::Instant;
    use view_store::EmbeddedStore;
    use view_store::embedded::Options;

    use super::*;

    /// Proves that the limit counts seconds of the configured clock: no look-up waits while the clock moves on, one beyond the limit waits until the next
    /// second though the clock stands still, and a fixed clock is not counted by.
    #[tokio::test(start_paused = true)]
    async fn the_limit_follows_the_clock() {
        let dir = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(dir.path(), Options::default()).unwrap();
        let start: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
        let moved = SimulatedClock::new(start, Clock::System);
        let permit = async |clock| wait_for_permit(store.coordination(), "edgar", clock).await.unwrap();
        let began = Instant::now();
        for second in 0..20 {
            moved.move_to(start + Duration::from_secs(second));
            for _ in 0..MAX_LOOKUPS_PER_SECOND {
                permit(Clock::Simulated(moved)).await;
            }
        }
        assert_eq!(Instant::now(), began, "look-ups within the limit do not wait");
        permit(Clock::Simulated(moved)).await;
        assert!(Instant::now() >= began + Duration::from_secs(1), "a look-up beyond the limit waits");
        let fixed = start + Duration::from_secs(3_600);
        permit(Clock::Fixed(fixed)).await;
        let (counter, now_ms) = (format!("live/edgar/{}", fixed.as_second()), fixed.as_millisecond());
        let unused = store.coordination().add_to_counter(&counter, MAX_LOOKUPS_PER_SECOND, MAX_LOOKUPS_PER_SECOND, now_ms, now_ms).await;
        assert_eq!(unused.unwrap(), MAX_LOOKUPS_PER_SECOND, "a second that never ends permits look-ups forever or never");
        store.close().await.unwrap();
    }

    /// Proves that a look-up which is not answered before the deadline ends with the reason.
    #[tokio::test]
    async fn a_look_up_ends_at_its_deadline() {
        let dir = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(dir.path(), Options::default()).unwrap();
        // Nobody accepts the connection, so that nobody answers.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let base_url = Some(format!("http://{}", silent.local_addr().unwrap()));
        let settings =
            Settings { base_url, user_agent: "test test@example.org".to_owned(), requests_per_second: 10.0, ..Settings::default() };
        let live = Live::new([("edgar", settings)]).unwrap().with_deadline(Duration::from_millis(1));
        let question = Question::Company { cik: "0000900001".to_owned() };
        let answer = live.look_up(&*store, Clock::System, question, jiff::civil::date(2026, 11, 20)).await;
        assert_eq!(answer.unwrap_err(), "the upstream did not answer in time");
        store.close().await.unwrap();
    }
}
