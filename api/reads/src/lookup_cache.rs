//! The cache of answers to live look-ups: limited in bytes, with a time limit for each answer.
//!
//! Promises: concurrent look-ups of one question share one request. When the cache is full, it evicts answers that are rarely requested and
//! keeps the others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use operation::metrics::{self, LookupOutcome};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use upstreams::live::{LivePage, Question};

/// What an upstream answered, or the reason why there is no answer, for the caller.
pub type LookupResult = Result<Arc<LivePage>, String>;

/// The most bytes of records in the cache.
const BYTES_MAX: u64 = 32 << 20;
/// The assumed size of an answer when the number of cache entries is estimated, in bytes.
const ANSWER_BYTES_USUAL: u64 = 64 << 10;
/// The assumed size of what an answer needs in addition to its records, in bytes.
const ENTRY_BYTES: u64 = 512;
/// The assumed size of what a record needs in addition to its fields, in bytes.
const RECORD_BYTES: u64 = 1 << 10;
/// How long an answer is cached.
const CACHED_FOR: Duration = Duration::from_secs(300);
/// How long a failure is cached.
const FAILURE_CACHED_FOR: Duration = Duration::from_secs(15);

/// A cached answer.
#[derive(Clone, Debug)]
struct Cached {
    answer: LookupResult,
    expires_at: Instant,
    bytes: u64,
}

/// Weighs an answer by its bytes.
#[derive(Clone, Debug)]
struct Bytes;

impl Weighter<Question, Cached> for Bytes {
    fn weight(&self, _: &Question, cached: &Cached) -> u64 {
        cached.bytes
    }
}

/// The cached answers to live look-ups.
#[derive(Debug)]
pub(crate) struct LookupCache {
    answers: Cache<Question, Cached, Bytes>,
}

impl Default for LookupCache {
    fn default() -> Self {
        Self::new(BYTES_MAX)
    }
}

impl LookupCache {
    fn new(bytes_max: u64) -> Self {
        let entries = usize::try_from(bytes_max / ANSWER_BYTES_USUAL).unwrap_or_default();
        Self { answers: Cache::with_weighter(entries, bytes_max, Bytes) }
    }

    /// Returns the cached answer to a question, or the one that `look_up` gets. If another call is looking the question up, waits for its answer.
    pub(crate) async fn get_or_look_up(&self, question: &Question, look_up: impl Future<Output = LookupResult>) -> LookupResult {
        let upstream = question.upstream().manifest().name;
        self.answers.remove_if(question, |cached| cached.expires_at <= Instant::now());
        let vacant = match self.answers.get_value_or_guard_async(question).await {
            Ok(cached) => {
                metrics::count_lookup(upstream, LookupOutcome::Cached);
                return cached.answer;
            }
            Err(vacant) => vacant,
        };
        let answer = look_up.await;
        metrics::count_lookup(upstream, if answer.is_ok() { LookupOutcome::Answered } else { LookupOutcome::Failed });
        let cached_for = if answer.is_ok() { CACHED_FOR } else { FAILURE_CACHED_FOR };
        let cached = Cached { expires_at: Instant::now() + cached_for, bytes: bytes_of(&answer), answer: answer.clone() };
        // An answer that is larger than the cache is not cached.
        let _ = vacant.insert(cached);
        answer
    }
}

/// The approximate size of an answer in memory, in bytes.
fn bytes_of(answer: &LookupResult) -> u64 {
    let records = answer.iter().flat_map(|found| found.facts.iter());
    ENTRY_BYTES + records.map(|fact| RECORD_BYTES + fact.canonical().len() as u64).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use schemas::facts::FactData;
    use schemas::facts::filings::FilingFact;

    use super::*;

    fn question(number: usize) -> Question {
        Question::Company { cik: format!("{number:010}") }
    }

    /// An answer with one record of about this many bytes.
    fn answer(bytes: usize) -> LookupResult {
        let facts = vec![FactData::Filing(Box::new(FilingFact { company: "x".repeat(bytes), ..FilingFact::default() }))];
        Ok(Arc::new(LivePage { facts, ..LivePage::default() }))
    }

    /// Proves that concurrent look-ups of a question share one request, that its answer and failures are cached, and that a cancelled
    /// look-up leaves the question to the next caller.
    #[tokio::test]
    async fn a_question_is_looked_up_once() {
        let (cache, requests) = (LookupCache::new(BYTES_MAX), AtomicUsize::new(0));
        let look_up = |answer: LookupResult| async {
            requests.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            answer
        };
        let first = question(1);
        let mut cancelled = Box::pin(cache.get_or_look_up(&first, look_up(answer(1))));
        assert!(futures_util::poll!(cancelled.as_mut()).is_pending());
        drop(cancelled);
        let both = tokio::join!(cache.get_or_look_up(&first, look_up(answer(5))), cache.get_or_look_up(&first, look_up(answer(6))));
        assert_eq!(both, (answer(5), answer(5)));
        assert_eq!(cache.get_or_look_up(&question(2), look_up(Err("no".to_owned()))).await, Err("no".to_owned()));
        assert_eq!(cache.get_or_look_up(&question(2), look_up(answer(1))).await, Err("no".to_owned()));
        assert_eq!(requests.load(Ordering::Relaxed), 3);
    }

    /// Proves that the cache stays within its size, evicts single answers and never all at once, and that an answer which is larger than the
    /// cache is returned.
    #[tokio::test]
    async fn the_cache_respects_its_size() {
        let cache = LookupCache::new(4 << 20);
        for number in 0..400 {
            cache.get_or_look_up(&question(number), async { answer(30_000) }).await.unwrap();
            assert!(cache.answers.weight() <= 4 << 20);
            assert!(number < 40 || cache.answers.len() > 40, "{number}: {}", cache.answers.len());
        }
        assert_eq!(cache.get_or_look_up(&question(999), async { answer(9 << 20) }).await, answer(9 << 20));
        assert!(cache.answers.len() > 40);
    }
}
