//! Live look-ups at upstreams, for answers that cannot wait until a sync run records the data: rate-limited, cached, with a deadline.
//!
//! Promises: all nodes together send an upstream at most [`MAX_LOOKUPS_PER_SECOND`] look-ups per second, in addition to the requests of sync runs.
//! All nodes back off from an upstream that asks for it. Concurrent look-ups of the same question share one request, and its answer is cached for
//! some minutes. The caller gets an answer, or the reason why there is none, early enough to answer without it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use operation::context::{Context, Part};
use schemas::clock::Clock;
use upstreams::Settings;
use upstreams::http::{Client, FetchError, Fetched};
use upstreams::live::Question;
use view_store::ViewStore;

use crate::lookup_cache::LookupCache;
pub use crate::lookup_cache::LookupResult;

/// The most look-ups that all nodes together send to one upstream per second.
pub const MAX_LOOKUPS_PER_SECOND: i64 = 2;
/// How long a look-up may take.
const DEADLINE: Duration = Duration::from_secs(10);
/// The longest back-off that an upstream can ask for.
const MAX_BACK_OFF: Duration = Duration::from_secs(3_600);

/// The upstreams that support live look-ups.
#[derive(Default)]
pub struct Live {
    clients: HashMap<&'static str, (Client, Settings)>,
    cache: LookupCache,
}

impl Part for Live {}

/// Looks a question up at its upstream. `now` is the time that the answer is for.
pub async fn look_up(ctx: &Context, question: Question, now: Timestamp) -> LookupResult {
    Live::of(ctx).look_up(&*ctx.store, question, now.to_zoned(TimeZone::UTC).date()).await
}

impl Live {
    /// Creates the clients of the given upstreams, by name.
    ///
    /// # Errors
    /// When a setting cannot be used.
    pub fn new(settings: impl IntoIterator<Item = (&'static str, Settings)>) -> Result<Self, upstreams::http::BuildError> {
        let client = |(name, settings): (&'static str, Settings)| Ok((name, (Client::for_look_ups(&settings)?, settings)));
        Ok(Self { clients: settings.into_iter().map(client).collect::<Result<_, _>>()?, cache: LookupCache::default() })
    }

    /// Looks a question up, or returns the cached answer.
    pub async fn look_up(&self, store: &dyn ViewStore, question: Question, today: Date) -> LookupResult {
        let fetch = async {
            match tokio::time::timeout(DEADLINE, self.fetch(store, &question, today)).await {
                Ok(answer) => answer,
                Err(_) => Err("the upstream did not answer in time".to_owned()),
            }
        };
        self.cache.get_or_look_up(&question, fetch).await
    }

    async fn fetch(&self, store: &dyn ViewStore, question: &Question, today: Date) -> LookupResult {
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
        loop {
            // The rate limit uses real time, even if answers use another clock.
            let now_ms = Clock::System.now_ms();
            let second = now_ms.div_euclid(1_000);
            let counter = format!("live/{name}/{second}");
            let added = coordination.add_to_counter(&counter, 1, MAX_LOOKUPS_PER_SECOND, now_ms, (second + 60) * 1_000);
            if added.await.map_err(store_failed)? > 0 {
                break;
            }
            let rest_ms = u64::try_from((second + 1) * 1_000 - now_ms).unwrap_or(1);
            tokio::time::sleep(Duration::from_millis(rest_ms)).await;
        }
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
