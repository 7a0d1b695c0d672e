//! Look-ups at upstreams, for answers that must not wait until something is recorded: polite, cached, within a deadline.
//!
//! Promise: all nodes together ask an upstream [`A_SECOND`] times a second at most, each look-up once, beside what ingestors ask; one that asked to be left alone is
//! left alone by all. An answer is asked for once, however many want it, and kept for some minutes. Whoever asks gets an answer or the reason
//! why there is none, in time to answer without it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use operation::context::{Context, Part};
use schemas::clock::Clock;
use schemas::facts::FactData;
use tokio::sync::OnceCell;
use upstreams::Settings;
use upstreams::http::{Client, FetchError, Fetched};
use upstreams::live::Question;
use view_store::ViewStore;

/// Look-ups of all nodes at one upstream in one second.
pub const A_SECOND: i64 = 2;
/// How long an answer is waited for.
const DEADLINE: Duration = Duration::from_secs(10);
/// How long an answer is kept.
const KEPT_FOR: Duration = Duration::from_secs(300);
/// How long it is kept that there is none.
const FAILURE_KEPT_FOR: Duration = Duration::from_secs(15);
/// Answers kept.
const KEPT_MAX: usize = 500;
/// An upstream that asks to be left alone for longer is asked again after this.
const LEFT_ALONE_MAX: Duration = Duration::from_secs(3_600);

/// What an upstream said, or why it said nothing, in words for the caller.
pub type Said = Result<Arc<Vec<FactData>>, String>;

/// An answer that is kept, or on its way.
type Kept = Arc<OnceCell<(Instant, Said)>>;

/// The upstreams that may be asked.
#[derive(Default)]
pub struct Live {
    clients: HashMap<&'static str, (Client, Settings)>,
    kept: Mutex<HashMap<Question, Kept>>,
}

impl Part for Live {}

/// Asks an upstream, at the time of an answer.
pub async fn ask(ctx: &Context, question: Question, now: Timestamp) -> Said {
    Live::of(ctx).ask(&*ctx.store, question, now.to_zoned(TimeZone::UTC).date()).await
}

impl Live {
    /// Those of the upstreams whose settings are given, by name.
    ///
    /// # Errors
    /// When a setting cannot be used.
    pub fn new(settings: impl IntoIterator<Item = (&'static str, Settings)>) -> Result<Self, upstreams::http::BuildError> {
        let client = |(name, settings): (&'static str, Settings)| Ok((name, (Client::for_look_ups(&settings)?, settings)));
        Ok(Self { clients: settings.into_iter().map(client).collect::<Result<_, _>>()?, kept: Mutex::default() })
    }

    /// Asks a question, or gives what was said to it not long ago.
    pub async fn ask(&self, store: &dyn ViewStore, question: Question, today: Date) -> Said {
        let kept = self.kept(&question);
        let answer = kept.get_or_init(|| async {
            let said = match tokio::time::timeout(DEADLINE, self.fetch(store, &question, today)).await {
                Ok(said) => said,
                Err(_) => Err("it did not answer in time".to_owned()),
            };
            (Instant::now(), said)
        });
        answer.await.1.clone()
    }

    /// The place of a question's answer: a fresh one where the last is too old.
    fn kept(&self, question: &Question) -> Kept {
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh =
            |kept: &Kept| kept.get().is_none_or(|(at, said)| at.elapsed() < if said.is_ok() { KEPT_FOR } else { FAILURE_KEPT_FOR });
        if let Some(kept) = all.get(question).filter(|kept| is_fresh(kept)) {
            return Arc::clone(kept);
        }
        if all.len() >= KEPT_MAX {
            all.retain(|_, kept| is_fresh(kept));
            if all.len() >= KEPT_MAX {
                all.clear();
            }
        }
        let fresh = Kept::default();
        all.insert(question.clone(), Arc::clone(&fresh));
        fresh
    }

    async fn fetch(&self, store: &dyn ViewStore, question: &Question, today: Date) -> Said {
        let name = question.upstream().manifest().name;
        let unset = || format!("{name} is not enabled here");
        let ((client, settings), stream) = self.clients.get(name).zip(question.stream()).ok_or_else(unset)?;
        let request = question.request(stream, settings).map_err(|error| {
            tracing::warn!(upstream = name, %error, "an upstream must not be asked");
            "it must not be asked with these settings".to_owned()
        })?;
        let coordination = store.coordination();
        let unknown = |error: view_store::Error| {
            tracing::warn!(error = schemas::reason::reason(&error), "whether an upstream may be asked cannot be told");
            "it cannot be asked now".to_owned()
        };
        // Ingestors say so under the same name.
        let left_alone = upstreams::back_off_lease(name);
        if coordination.holder(&left_alone).await.map_err(unknown)?.is_some() {
            return Err("it asked to be left alone".to_owned());
        }
        loop {
            // Turns are of real seconds, whatever clock answers go by.
            let now_ms = Clock::System.now_ms();
            let second = now_ms.div_euclid(1_000);
            let turns = format!("live/{name}/{second}");
            let turn = coordination.add_to_counter(&turns, 1, A_SECOND, now_ms, (second + 60) * 1_000);
            if turn.await.map_err(unknown)? > 0 {
                break;
            }
            let rest_ms = u64::try_from((second + 1) * 1_000 - now_ms).unwrap_or(1);
            tokio::time::sleep(Duration::from_millis(rest_ms)).await;
        }
        let fetched = match client.fetch(stream, &request, None).await {
            Ok(fetched) => fetched,
            Err(error) => {
                tracing::warn!(upstream = name, error = schemas::reason::reason(&error), "an upstream did not answer a look-up");
                if let FetchError::Later { pause, .. } = &error {
                    let pause = (*pause).min(LEFT_ALONE_MAX);
                    coordination.lease(&left_alone, upstreams::BACK_OFF_HOLDER, pause).await.map_err(unknown)?;
                    return Err("it asked to be left alone".to_owned());
                }
                return Err("it did not answer".to_owned());
            }
        };
        let Fetched::Answer { answer, .. } = fetched else { return Err("it answered nothing".to_owned()) };
        let question = question.clone();
        // Reading a large answer takes long; it must not hold up other tasks.
        let read = tokio::task::spawn_blocking(move || question.read(stream, &answer, today)).await;
        match read {
            Ok(Ok(facts)) => Ok(Arc::new(facts)),
            Ok(Err(error)) => {
                tracing::warn!(upstream = name, %error, "an upstream's answer to a look-up cannot be read");
                Err("its answer could not be read".to_owned())
            }
            Err(error) => {
                tracing::error!(upstream = name, %error, "reading an upstream's answer ended by itself");
                Err("its answer could not be read".to_owned())
            }
        }
    }
}
