//! Decides for one service: reads the facts that are there, appends the changes they mean, reads them back, and only then
//! lets their rows and pages be seen.
//!
//! ```text
//! facts below the engine's position -> decide -> append -> read back what chains -> apply -> commit with the checkpoint
//! ```
//!
//! Promises: a change is applied once it is read back from the log, in the log's order, and never otherwise. Two deciders at
//! once do no harm: what does not chain is not there, and the one that lost takes up the other's changes. A crash between any
//! two steps is healed by reading the change topic from the checkpoint on.

mod apply;
mod chain;
mod parked;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use event_log::EventLog;
use schemas::avro::{self, Encoder};
use schemas::change::{Change, ChangeKind, Input, Through};
use schemas::clock::Clock;
use schemas::event::{Fact, FactKind};
use schemas::position::{LogOffset, Seq};
use schemas::receipt::SigningKeys;
use schemas::topics::Topic;
use tokio::task::JoinHandle;
use view_store::feed::FeedTail;
use view_store::{Checkpoint, View};

use self::chain::{Decided, Logged, Undone};
pub use self::parked::ParkedRow;
use crate::Error;
use crate::rows::Rows;
use crate::service::{Draft, Service, SigningCheck, Undecided};

/// Facts decided at once, over all partitions: each is held with all its rows until the batch is committed, one batch later.
const BATCH_FACTS: usize = 500;
/// Facts decided before other tasks have their turn.
const FACTS_BETWEEN_YIELDS: usize = 32;
/// Bytes of facts read at once, from one partition.
const BATCH_BYTES: usize = 4 << 20;

/// A change of service `S`.
pub type ChangeOf<S> = Change<<S as Service>::Record, <S as Service>::Note>;

/// One service's decider and applier.
pub struct Decider<S: Service> {
    log: Arc<dyn EventLog>,
    engine: Arc<dyn View>,
    view: Arc<dyn View>,
    clock: Clock,
    encoder: Encoder,
    checkpoint: Checkpoint,
    tail: FeedTail,
    rows: Rows,
    /// Changes of a group that a crash cut: appended, but not yet all of what its input means.
    cut: Vec<Logged<S>>,
    /// The engine's checkpoint when nothing more could be decided.
    idle_at: Option<Checkpoint>,
    /// Offset up to which the change topic has been read; above the checkpoint's when what stands there does not chain.
    read_to: LogOffset,
    /// Keys of parked facts, with the offsets of those facts; later facts of these keys are parked too.
    parked: HashMap<String, HashSet<i64>>,
    /// Taking up the view's state did not end: it is taken up again before anything else.
    is_stale: bool,
    /// The commit under way: what comes next is decided meanwhile.
    committing: Option<JoinHandle<Result<(), view_store::Error>>>,
    /// Asked before a batch that may make signatures.
    signing_check: Option<Arc<dyn SigningCheck>>,
}

impl<S: Service> Decider<S> {
    /// Opens a view where it stands.
    ///
    /// # Errors
    /// When the store fails or holds rows that this version cannot read.
    pub async fn open(log: Arc<dyn EventLog>, engine: Arc<dyn View>, view: Arc<dyn View>, clock: Clock) -> Result<Self, Error> {
        let encoder = Encoder::new(S::CHANGES.name).map_err(value_error::<S>)?;
        let mut this = Self {
            log,
            engine,
            view,
            clock,
            encoder,
            checkpoint: Checkpoint::default(),
            tail: FeedTail::empty(),
            rows: Rows::default(),
            cut: Vec::new(),
            idle_at: None,
            read_to: LogOffset(0),
            parked: HashMap::new(),
            is_stale: true,
            committing: None,
            signing_check: None,
        };
        this.resume().await?;
        Ok(this)
    }

    /// The same, with keys to sign with, and who is asked before a batch that may make signatures.
    #[must_use]
    pub fn with_signing(self, keys: Arc<SigningKeys>, check: Option<Arc<dyn SigningCheck>>) -> Self {
        Self { rows: Rows::signing(keys), signing_check: check, ..self }
    }

    /// Has it looked whether this process may sign, if one of some facts may make a signature.
    async fn check_signing<'a>(&self, facts: impl IntoIterator<Item = &'a Fact<S::Fact>> + Send) {
        if let Some(check) = &self.signing_check
            && facts.into_iter().any(S::signs)
        {
            check.check().await;
        }
    }

    /// The view this decider writes.
    #[must_use]
    pub fn view(&self) -> &Arc<dyn View> {
        &self.view
    }

    /// How far it has come.
    #[must_use]
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// How many keys have a parked input.
    #[must_use]
    pub fn parked_keys(&self) -> usize {
        self.parked.len()
    }

    /// Takes up the view's state as stored, forgetting what was not committed.
    pub(crate) async fn resume(&mut self) -> Result<(), Error> {
        // However it ends, the store says what it wrote.
        let _ = self.finish_commit().await;
        self.is_stale = true;
        self.checkpoint = self.view.checkpoint().await?;
        self.tail = FeedTail::load(&*self.view, S::FEED, Seq(self.checkpoint.seq)).await?;
        self.rows.clear();
        self.cut.clear();
        self.parked.clear();
        for (key, row) in self.parked_rows().await? {
            self.parked.entry(key).or_default().insert(row.input.offset);
        }
        self.is_stale = false;
        Ok(())
    }

    /// Applies what the log has, then decides all facts that are there. Answers whether anything was decided.
    ///
    /// # Errors
    /// When the log or the store fails.
    pub async fn catch_up(&mut self) -> Result<u64, Error> {
        self.catch_up_with(|_| true).await
    }

    /// The same, telling after each batch how many facts are decided; goes on while that is answered with true.
    ///
    /// # Errors
    /// As [`Self::catch_up`].
    pub async fn catch_up_with(&mut self, progress: impl Fn(u64) -> bool) -> Result<u64, Error> {
        self.take_up().await?;
        let mut decided = 0;
        loop {
            match self.decide_batch().await {
                Ok(0) => return Ok(decided),
                Ok(facts) => {
                    decided += facts;
                    if !progress(decided) {
                        self.settle().await?;
                        return Ok(decided);
                    }
                }
                Err(Error::Overtaken { service }) => {
                    tracing::warn!(service, "another decider appended changes; taking them up");
                    self.resume().await?;
                    self.take_up().await?;
                }
                Err(error) => {
                    // What was decided but not committed must not colour the next try.
                    self.resume().await?;
                    return Err(error);
                }
            }
        }
    }

    /// Applies what the log has, from where the view stands: another decider may have come further than this one knows.
    pub(crate) async fn take_up(&mut self) -> Result<(), Error> {
        loop {
            if self.is_stale || self.view.checkpoint().await? != self.checkpoint {
                self.resume().await?;
            }
            let taken_up = match self.apply_log(|_| ()).await {
                Ok(_) => self.complete_cut().await,
                Err(error) => Err(error),
            };
            match taken_up {
                Err(Error::Overtaken { .. }) => self.resume().await?,
                Err(error) => {
                    // What was applied but not committed is not there.
                    self.resume().await?;
                    return Err(error);
                }
                Ok(()) => return Ok(()),
            }
        }
    }

    /// A future that ends when facts or changes beyond the checkpoint may be there. Cancel-safe; borrows nothing.
    pub fn waiter(&self) -> impl Future<Output = Result<(), Error>> + Send + use<S> {
        let (log, engine, idle_at) = (Arc::clone(&self.log), Arc::clone(&self.engine), self.idle_at.clone());
        let offset = LogOffset(self.checkpoint.offset).max(self.read_to);
        async move {
            let Some(mut seen) = idle_at else { return Ok(()) };
            let facts = async {
                loop {
                    let now = engine.wait_past(&seen).await?;
                    // Most of what the engine takes in is another service's.
                    if partitions(S::INPUTS).any(|(topic, partition)| now.position(topic, partition) > seen.position(topic, partition)) {
                        return Ok(());
                    }
                    seen = now;
                }
            };
            tokio::select! {
                past = facts => past,
                past = log.wait_past(S::CHANGES, 0, offset) => past.map_err(Error::from),
            }
        }
    }

    /// Decides one batch of facts; answers how many were passed (0: nothing is waiting).
    async fn decide_batch(&mut self) -> Result<u64, Error> {
        let engine = self.engine.checkpoint().await?;
        let mut positions = self.checkpoint.clone();
        let mut facts = Vec::new();
        let mut queues = Vec::new();
        let waiting: Vec<_> = partitions(S::INPUTS)
            .filter(|(topic, partition)| self.checkpoint.position(topic, *partition) < engine.position(topic, *partition))
            .collect();
        for (topic, partition) in &waiting {
            let queue = self.read_facts(topic, *partition, &engine, BATCH_FACTS.div_ceil(waiting.len())).await?;
            queues.push((*topic, *partition, queue));
        }
        // A run's end is passed only after the facts it covers in every partition; until then its partition waits.
        loop {
            let mut moved = false;
            for (topic, partition, queue) in &mut queues {
                while let Some((offset, fact)) = queue.front() {
                    if let Some(fact) = fact
                        && fact.kind == FactKind::RunFinished
                        && !run_is_covered(fact, topic, *partition, &positions)
                    {
                        break;
                    }
                    positions.raise_position(topic, *partition, offset.next());
                    moved = true;
                    if let Some((offset, Some(fact))) = queue.pop_front() {
                        facts.push((Input { topic: topic.name.to_owned(), partition: i32_of(*partition), offset: i64_of(offset.0) }, fact));
                    }
                }
            }
            if !moved {
                break;
            }
        }
        if positions.positions == self.checkpoint.positions {
            self.settle().await?;
            self.idle_at = Some(engine);
            return Ok(0);
        }
        let passed = facts.len() as u64;
        let wanted: Vec<_> = facts.iter().flat_map(|(_, fact)| S::reads(fact)).collect();
        self.rows.fetch(&*self.view, wanted).await?;
        self.check_signing(facts.iter().map(|(_, fact)| fact)).await;
        let decided = self.decide_all(&facts).await?;
        self.append_and_apply(decided, 0, &positions).await?;
        Ok(passed.max(1))
    }

    /// Reads a partition's facts from the checkpoint to the engine's position; what does not chain is passed as `None`.
    async fn read_facts(
        &self,
        topic: &'static Topic,
        partition: u32,
        engine: &Checkpoint,
        facts_max: usize,
    ) -> Result<VecDeque<(LogOffset, Option<Fact<S::Fact>>)>, Error> {
        let (from, end) = (self.checkpoint.position(topic, partition), engine.position(topic, partition));
        let mut queue = VecDeque::new();
        if from >= end {
            return Ok(queue);
        }
        let batch = self.log.read(topic, partition, from, facts_max, BATCH_BYTES).await?;
        let dropped = view_store::engine::dropped(&*self.engine, topic, partition, from, end).await?;
        for stored in batch {
            if stored.offset >= end {
                break;
            }
            let fact = if dropped.binary_search(&stored.offset.0).is_ok() {
                None
            } else {
                Some(S::read(topic, &stored.record.value).map_err(|source| Error::Value { topic: topic.name.to_owned(), source })?)
            };
            queue.push_back((stored.offset, fact));
        }
        Ok(queue)
    }

    async fn decide_all(&mut self, facts: &[(Input, Fact<S::Fact>)]) -> Result<Vec<Decided<S>>, Error> {
        let mut out: Vec<Decided<S>> = Vec::with_capacity(facts.len());
        for (n, (input, fact)) in facts.iter().enumerate() {
            if n % FACTS_BETWEEN_YIELDS == 0 {
                // Deciding waits for nothing; others on this thread have their turn.
                tokio::task::yield_now().await;
            }
            let group = self.decide_one(fact).await?;
            let decided = self.chain(out.last().map(Decided::link), input, group, &[])?;
            for decided in &decided {
                for write in decided.writes.iter().filter(|write| S::DECISION_TABLES.iter().any(|table| table.name == write.table.name)) {
                    self.rows.write(write.clone());
                }
            }
            out.extend(decided);
        }
        Ok(out)
    }

    async fn decide_one(&mut self, fact: &Fact<S::Fact>) -> Result<Vec<Undone<S>>, Error> {
        let bare = |event, id: String| Draft { event, id, after: None, before: None, before_seq: 0, before_since: 0, note: None };
        if let Some(run) = &fact.run {
            if fact.kind != FactKind::RunFinished {
                return Ok(Vec::new());
            }
            let upstream = fact.key.trim_start_matches("@run/").to_owned();
            let through = Through { upstream, through_date: run.through_date.clone(), finished_at: fact.observed_at };
            return Ok(vec![(bare(ChangeKind::Through, String::new()), Some(through), String::new())]);
        }
        let poison = |reason: String| Ok(vec![(bare(ChangeKind::Parked, fact.key.clone()), None, reason)]);
        if self.parked.contains_key(&fact.key) {
            return poison("an earlier fact of this key is parked".to_owned());
        }
        loop {
            match S::decide(&mut self.rows, fact) {
                Ok(drafts) => return Ok(drafts.into_iter().map(|draft| (draft, None, String::new())).collect()),
                Err(Undecided::Miss) => self.rows.fetch_missing(&*self.view).await?,
                Err(Undecided::Blocked(reason)) => return Err(Error::Refused(reason)),
                Err(Undecided::Poison(reason)) => {
                    tracing::error!(service = S::NAME, key = fact.key, reason, "a fact is parked");
                    self.parked.entry(fact.key.clone()).or_default();
                    return poison(reason);
                }
            }
        }
    }
}

/// Whether every other partition has passed the facts that a run's end covers.
fn run_is_covered<D>(fact: &Fact<D>, topic: &Topic, own: u32, positions: &Checkpoint) -> bool {
    let Some(run) = &fact.run else { return true };
    (0..)
        .zip(&run.ends)
        .all(|(partition, end)| partition == own || positions.position(topic, partition).0 >= u64::try_from(*end).unwrap_or(0))
}

fn partitions(topics: &'static [Topic]) -> impl Iterator<Item = (&'static Topic, u32)> {
    topics.iter().flat_map(|topic| (0..topic.partitions).map(move |partition| (topic, partition)))
}

fn i64_of(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn i32_of(value: u32) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

fn value_error<S: Service>(source: avro::Error) -> Error {
    Error::Value { topic: S::CHANGES.name.to_owned(), source }
}
