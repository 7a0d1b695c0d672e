//! The index of names of this process: a cache that is built from the feed, follows it, and finds every mark that is similar to a name.
//!
//! Promises: an answer is exact for the position that it names, because the index holds versions of marks with their positions; it is refused with
//! 503 while the index is being built. The start never waits for the index. A snapshot on disk makes a restart short; one that is damaged, of other
//! rules or of another log is built again.

mod follow;

use std::path::PathBuf;
use std::sync::Arc;

use crate::record::TABLES;
use feed::follower::{Follower, building};
use marks::Mark;
use marks::index::{Corpus, Hit, Index};
use operation::context::{Context, Part};
use operation::problem::Problem;
use reads::registration::TaskContext;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use tokio::sync::Semaphore;
use view_store::ViewStore;

pub(crate) use self::follow::position_of;
use self::follow::{SavedIndex, save};

/// How many checks run at the same time at most, on any number of cores.
const CHECKS_MAX: usize = 8;
/// How far the index may be behind for answers about now, in changes.
const BEHIND_MAX: u64 = 100_000;
/// The largest index that is written when the server stops. A larger one follows the feed from its last snapshot.
const STOP_SNAPSHOT_BYTES_MAX: usize = 256 << 20;

/// The index of names of this process.
pub struct Register {
    follower: Follower<SavedIndex>,
    checks: Arc<Semaphore>,
}

impl Default for Register {
    /// An empty index. Nothing is read or written before [`Register::follow`].
    fn default() -> Self {
        Self { follower: Follower::default(), checks: Arc::new(Semaphore::new(checks_at_once())) }
    }
}

/// How many checks run at the same time; further ones wait for their turn. A check needs a core from its beginning to its end: with more checks than cores,
/// each of them would take longer, and none would end earlier.
fn checks_at_once() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(CHECKS_MAX)
}

impl Part for Register {}

/// Keeps the index up to date with the feed until the server stops.
pub async fn keep_index(given: Arc<TaskContext>) {
    let ctx = &given.context;
    let (register, dir) = (Register::of(ctx), ctx.settings.cache_dir.clone());
    tokio::select! {
        () = Arc::clone(&register).follow(Arc::clone(&ctx.store), dir.clone()) => {}
        () = ctx.stopped() => {}
    }
    let small = register.index().filter(|index| index.bytes() <= STOP_SNAPSHOT_BYTES_MAX);
    if let (Some(dir), Some(index)) = (dir, small)
        && let Err(error) = tokio::task::spawn_blocking(move || save(&index, &dir)).await
    {
        tracing::warn!(%error, "writing the snapshot of the index of names panicked");
    }
}

/// The index as far as it is needed for a position.
pub(crate) struct Reached {
    pub(crate) index: Arc<Index>,
    /// The position that the index covers, if it is below the one that was wanted.
    pub(crate) seq: Seq,
    /// What to know if it is.
    pub(crate) note: Option<String>,
}

impl Register {
    /// Keeps the index up to date with the view until the future is dropped. Failures are logged and retried.
    pub async fn follow(self: Arc<Self>, store: Arc<dyn ViewStore>, dir: Option<PathBuf>) {
        self.follower.follow(store.as_ref(), TABLES.view, TABLES.feed, dir).await;
    }

    /// How many marks the register had at a position; `None` if the index does not reach so far.
    #[must_use]
    pub(crate) fn corpus(&self, at: Seq) -> Option<Corpus> {
        let index = self.index()?;
        (position_of(at) <= index.seq()).then(|| index.corpus(position_of(at)))
    }

    fn index(&self) -> Option<Arc<Index>> {
        self.follower.now().ok().map(|(now, _)| Arc::clone(&now.index))
    }

    /// Waits until checks see a change, and returns the index. If they do not within the time that a read waits for what lags, and `may_be_behind`, it is the
    /// index as it is, unless it is far behind.
    ///
    /// # Errors
    /// `unavailable` while the index is being built.
    pub(crate) async fn reach(&self, ctx: &Context, seq: Seq, may_be_behind: bool) -> Result<Reached, Problem> {
        let (now, reached) = self.follower.reach(ctx, seq).await?;
        let index = Arc::clone(&now.index);
        if reached >= seq {
            return Ok(Reached { index, seq, note: None });
        }
        let behind = seq.since(reached);
        if !may_be_behind || reached == Seq(0) || behind > BEHIND_MAX {
            return Err(building::<SavedIndex>());
        }
        Ok(Reached { index, seq: reached, note: Some(format!("the newest {behind} changes of the register are not compared yet")) })
    }

    /// Every mark that is similar to a name at a position, and how many marks there are.
    ///
    /// # Errors
    /// `internal` if the comparison panics.
    pub(crate) async fn find(&self, index: Arc<Index>, name: Mark, at: Seq) -> Result<(Vec<Hit>, Corpus), Problem> {
        let Ok(turn) = Arc::clone(&self.checks).acquire_owned().await else { return Err(building::<SavedIndex>()) };
        let at = position_of(at);
        // A check runs to its end, also if its caller leaves, and has its turn until then.
        let compared = tokio::task::spawn_blocking(move || {
            let found = (index.find(&name, at), index.corpus(at));
            drop(turn);
            found
        });
        compared.await.map_err(|error| {
            tracing::error!(%error, "the index of names cannot be read");
            Problem::new(ErrorCode::Internal, "the name cannot be compared")
        })
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::mpsc;
    use std::task::Poll;
    use std::time::Duration;

    use feed::testing::{START_MS, World};

    use super::*;
    use crate::record::Trademark;

    /// Proves that a check waits for the index as long as a read waits for what is behind, and that an answer about now notes what is not compared by then.
    /// A check of an earlier time, an index that is far behind, and one that is not built yet are refused.
    #[tokio::test]
    async fn an_index_that_is_behind() {
        let world = World::new().await;
        let context = world.context_with(START_MS, |settings| settings.call_times.read = Duration::from_millis(10));
        let register = Arc::new(Register::default());
        let reached = async |seq: u64, may_be_behind: bool| match register.reach(&context, Seq(seq), may_be_behind).await {
            Ok(reached) => Ok((reached.seq, reached.note)),
            Err(problem) => Err(problem.code),
        };
        assert_eq!(reached(0, true).await, Err(ErrorCode::Unavailable), "nothing is indexed");
        let marks = ["97000001", "97000002", "97000003"];
        let marks = marks.map(|serial| Trademark { id: serial.into(), serial: serial.into(), ..Trademark::default() });
        world.fill_records(&TABLES, &marks).await;
        let following = tokio::spawn(Arc::clone(&register).follow(world.store.clone(), None));
        register.follower.wait_shown(Seq(3)).await;
        following.abort();
        assert_eq!(reached(3, false).await, Ok((Seq(3), None)));
        let note = "the newest 2 changes of the register are not compared yet".to_owned();
        assert_eq!(reached(5, true).await, Ok((Seq(3), Some(note))));
        for (seq, may_be_behind) in [(5, false), (4 + BEHIND_MAX, true)] {
            assert_eq!(reached(seq, may_be_behind).await, Err(ErrorCode::Unavailable), "{seq}");
        }
    }

    /// Proves that a check whose caller has left counts until it ends, so that callers who leave start no more checks than may run at the same time.
    #[test]
    fn checks_count_until_they_end() {
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let register = Register::default();
            let all = register.checks.available_permits();
            let (release, released) = mpsc::channel::<()>();
            // The only thread of checks is busy.
            let busy = tokio::task::spawn_blocking(move || released.recv().is_ok());
            {
                let mut check = pin!(register.find(Arc::default(), Mark::new("ACME").unwrap(), Seq(0)));
                assert!(poll_fn(|cx| Poll::Ready(check.as_mut().poll(cx).is_pending())).await);
            }
            assert_eq!(register.checks.available_permits(), all - 1);
            release.send(()).unwrap();
            assert!(busy.await.unwrap());
            // The thread takes what comes next when the check has ended.
            tokio::task::spawn_blocking(|| ()).await.unwrap();
            assert_eq!(register.checks.available_permits(), all);
        });
    }

    /// Proves that a check is refused with 503 while the index is built for the first time, whether or not an answer may be behind, and when to ask again.
    #[tokio::test]
    async fn checks_are_refused_while_the_index_is_built() {
        let world = World::new().await;
        let context = world.context_with(START_MS, |settings| settings.call_times.read = Duration::from_millis(10));
        for may_be_behind in [false, true] {
            let refused = Register::default().reach(&context, Seq(0), may_be_behind).await.err().unwrap();
            assert_eq!((refused.code.status(), refused.retry_after_s), (503, 2), "{}", refused.detail);
        }
    }
}
