//! Decides for one service: reads new facts, appends the changes that they mean, and reads those back before their rows and feed pages
//! become visible.
//!
//! ```text
//! facts below the engine's position -> decide -> append -> read back what chains -> apply -> commit with the checkpoint
//! ```
//!
//! A change is applied only after it was read back from the log, in the order of the log. Two deciders that run at once do no harm: a
//! reader ignores changes that do not extend the chain, and the decider that lost the race loads the changes of the other. After a crash
//! between any two steps, the change topic is read again from the checkpoint.

mod apply;
mod chain;
mod parked_facts;
mod positions;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use event_log::EventLog;
use proofs::receipt::SigningKeys;
use schemas::avro::{self, Encoder};
use schemas::change::{ChangeKind, Input, Through};
use schemas::clock::Clock;
use schemas::event::{Fact, FactKind};
use schemas::position::{LogOffset, PositionError, Seq};
use schemas::tables::{Key, Table};
use schemas::topics::{Topic, TopicKind};
use tokio::task::JoinHandle;
use view_store::feed::FeedTail;
use view_store::{Awaited, Checkpoint, View};

pub use self::chain::ChangeOf;
use self::chain::{Decided, Logged, PendingDraft, value_error};
pub use self::parked_facts::ParkedRow;
use crate::Error;
use crate::confirmations::Confirmations;
use fold::changes_read::is_silent;
use fold::rows::Rows;
use fold::service::{Draft, Service, SigningCheck, Undecided};

/// The most facts that are decided in one batch, over all partitions. They are held with all their rows until the batch is committed, which
/// is one batch later.
const BATCH_FACTS: usize = 500;
/// How many facts are decided before other tasks can run.
const FACTS_BETWEEN_YIELDS: usize = 32;
/// The most bytes of facts that one read returns from a partition.
const BATCH_BYTES: usize = 4 << 20;

/// Decides for one service and applies its changes.
pub struct Decider<S: Service> {
    log: Arc<dyn EventLog>,
    engine: Arc<dyn View>,
    view: Arc<dyn View>,
    clock: Clock,
    encoder: Encoder,
    checkpoint: Checkpoint,
    tail: FeedTail,
    rows: Rows,
    /// The changes of a group that a crash interrupted: appended, but not all that its input means.
    interrupted: Vec<Logged<S>>,
    /// The engine's checkpoint when there was nothing more to decide.
    idle_at: Option<Checkpoint>,
    /// The offset up to which the change topic has been read. It is above the checkpoint's offset if records there do not extend the chain.
    read_offset: LogOffset,
    /// Keys of parked facts, with the offsets of those facts. Later facts of these keys are parked, too.
    parked: HashMap<String, HashSet<LogOffset>>,
    /// Whether loading the view's state failed. It is loaded again before anything else.
    is_stale: bool,
    /// The running commit. The next batch is decided meanwhile.
    committing: Option<JoinHandle<Result<(), view_store::Error>>>,
    /// Called before a batch that may create signatures.
    signing_check: Option<Arc<dyn SigningCheck>>,
    /// What the log says about the rows that signatures extend.
    confirmations: Confirmations,
    /// Whether rows are compared with it: since the first batch that may create signatures.
    is_confirming: bool,
}

impl<S: Service> Decider<S> {
    /// Opens a view and loads its current state.
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
            interrupted: Vec::new(),
            idle_at: None,
            read_offset: LogOffset(0),
            parked: HashMap::new(),
            is_stale: true,
            committing: None,
            signing_check: None,
            confirmations: Confirmations::default(),
            is_confirming: false,
        };
        this.resume().await?;
        Ok(this)
    }

    /// Sets the keys that decisions sign with, and the check that is made before a batch that may create signatures.
    #[must_use]
    pub fn with_signing(self, keys: Arc<SigningKeys>, check: Option<Arc<dyn SigningCheck>>) -> Self {
        Self { rows: Rows::signing(keys), signing_check: check, ..self }
    }

    /// If deciding any of the facts may create a signature: checks whether this process may sign, and prepares the comparison of rows with the log.
    async fn check_signing<'a>(&mut self, facts: impl IntoIterator<Item = &'a Fact<S::Fact>> + Send) -> Result<(), Error> {
        if facts.into_iter().any(S::signs) {
            if let Some(check) = &self.signing_check {
                check.check().await;
            }
            if !std::mem::replace(&mut self.is_confirming, true) {
                // Rows that were fetched before are fetched again.
                self.wait_for_commit().await?;
            }
        }
        if self.is_confirming {
            self.confirmations.advance::<S>(&*self.log, self.checkpoint.seq).await?;
        }
        Ok(())
    }

    /// Compares the change that the checkpoint names with the log: the next change will name it as its predecessor.
    async fn confirm_position(&self) -> Result<(), Error> {
        let Checkpoint { seq, hash, offset, .. } = &self.checkpoint;
        if *seq == Seq(0) {
            return Ok(());
        }
        let stored = self.log.read(S::CHANGES, 0, offset.previous(), 1, 1).await?;
        let found = stored.iter().find(|stored| stored.offset == offset.previous());
        let found = found.map(|stored| avro::datum_hash(S::CHANGES.name, &stored.record.value)).transpose().map_err(value_error::<S>)?;
        if found.is_some_and(|found| found.to_string() == *hash) {
            return Ok(());
        }
        Err(self.contradicted(format!("it ends with change {seq} at offset {}, where the log has another record", offset.previous())))
    }

    /// Fetches rows that will be needed, and compares those that signatures extend with the log.
    async fn fetch(&mut self, wanted: Vec<(&'static Table, Key)>) -> Result<(), Error> {
        let (confirmations, is_confirming) = (&self.confirmations, self.is_confirming);
        let differing = |table: &'static Table, key: &Key, row: Option<&Bytes>| {
            is_confirming && S::is_confirmed(table, key) && !confirmations.confirms(table, key, row)
        };
        match self.rows.fetch(&*self.view, wanted, differing).await? {
            None => Ok(()),
            Some((table, key)) => Err(self.contradicted(format!("row {key:?} of {} is not the one that the changes wrote", table.name))),
        }
    }

    /// Reports that the view contradicts the log, so that its store rebuilds it.
    fn contradicted(&self, reason: String) -> Error {
        self.view.report_damage(&reason);
        Error::Contradicted { view: S::NAME, reason }
    }

    /// Takes over what another decider of the service has read from the log.
    pub(crate) fn adopt_confirmations(&mut self, other: &mut Self) {
        self.confirmations = std::mem::take(&mut other.confirmations);
    }

    /// Returns the view that this decider writes.
    #[must_use]
    pub fn view(&self) -> &Arc<dyn View> {
        &self.view
    }

    /// Returns the position up to which this decider has decided and applied.
    #[must_use]
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// Returns how many keys have a parked input.
    #[must_use]
    pub fn parked_keys(&self) -> usize {
        self.parked.len()
    }

    /// Loads the view's state from the store and drops everything that was not committed.
    pub(crate) async fn resume(&mut self) -> Result<(), Error> {
        // Whether the commit failed or not, the checkpoint in the store says what was written.
        let _ = self.finish_commit().await;
        self.is_stale = true;
        self.checkpoint = self.view.checkpoint().await?;
        self.confirm_position().await?;
        self.tail = FeedTail::load(&*self.view, S::FEED, self.checkpoint.seq).await?;
        self.rows.clear();
        self.interrupted.clear();
        self.parked.clear();
        for (key, row) in self.parked_rows().await? {
            self.parked.entry(key).or_default().extend(row.input.offset);
        }
        self.is_stale = false;
        Ok(())
    }

    /// Applies the changes in the log, then decides all new facts. Returns the number of decided facts.
    ///
    /// # Errors
    /// When the log or the store fails.
    pub async fn catch_up(&mut self) -> Result<u64, Error> {
        self.catch_up_with(|_| true).await
    }

    /// Like [`Self::catch_up`], but calls `progress` after each batch with the number of facts decided so far. Stops when `progress`
    /// returns false.
    ///
    /// # Errors
    /// As [`Self::catch_up`].
    pub async fn catch_up_with(&mut self, progress: impl Fn(u64) -> bool) -> Result<u64, Error> {
        self.apply_logged_changes().await?;
        let mut decided = 0;
        loop {
            match self.decide_batch().await {
                Ok(0) => return Ok(decided),
                Ok(facts) => {
                    decided += facts;
                    if !progress(decided) {
                        self.wait_for_commit().await?;
                        return Ok(decided);
                    }
                }
                Err(Error::Overtaken { service }) => {
                    tracing::warn!(service, "another decider appended changes, will load them");
                    self.resume().await?;
                    self.apply_logged_changes().await?;
                }
                Err(error) => {
                    // Results that were decided but not committed must not influence the next attempt.
                    self.resume().await?;
                    return Err(error);
                }
            }
        }
    }

    /// Applies the changes in the log, starting from the stored state of the view: another decider may have advanced it.
    pub(crate) async fn apply_logged_changes(&mut self) -> Result<(), Error> {
        loop {
            if self.is_stale || self.view.checkpoint().await? != self.checkpoint {
                self.resume().await?;
            }
            let result = match self.apply_log(|_| ()).await {
                Ok(_) => self.complete_interrupted_group().await,
                Err(error) => Err(error),
            };
            match result {
                Err(Error::Overtaken { .. }) => self.resume().await?,
                Err(error) => {
                    // Changes that were applied but not committed are dropped.
                    self.resume().await?;
                    return Err(error);
                }
                Ok(()) => {
                    self.view.finish_rebuild().await?;
                    return Ok(());
                }
            }
        }
    }

    /// Raises the input positions to those of an earlier state of the same service, if all its changes are applied here: inputs that meant no change
    /// are not decided again.
    pub(crate) fn raise_positions(&mut self, earlier: &Checkpoint) {
        if self.checkpoint.seq >= earlier.seq {
            self.checkpoint.raise_positions(earlier);
        }
    }

    /// Returns a future that completes when facts or changes after the checkpoint may exist, or the view was replaced. Cancel-safe; borrows nothing.
    pub fn waiter(&self) -> impl Future<Output = Result<(), Error>> + Send + use<S> {
        let (log, engine, view, idle_at) = (Arc::clone(&self.log), Arc::clone(&self.engine), Arc::clone(&self.view), self.idle_at.clone());
        let offset = self.checkpoint.offset.max(self.read_offset);
        async move {
            let Some(seen) = idle_at else { return Ok(()) };
            // Most facts that the engine indexes are inputs of other services.
            let awaited: Vec<Awaited> = partitions(S::INPUTS)
                .map(|(topic, partition)| Awaited::new(topic, partition, seen.position(topic, partition).next()))
                .collect();
            tokio::select! {
                past = engine.wait_for_any(&awaited) => past.map_err(Error::from),
                past = log.wait_past(S::CHANGES, 0, offset) => past.map_err(Error::from),
                () = view.replaced() => Ok(()),
            }
        }
    }

    /// Decides one batch of facts and returns how many it passed; 0 if none are waiting.
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
        // The end of a run is passed only after the facts that it covers in all partitions. Until then its partition waits.
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
                        facts.push((input_at(topic, *partition, offset)?, fact));
                    }
                }
            }
            if !moved {
                break;
            }
        }
        if positions.positions == self.checkpoint.positions {
            self.wait_for_commit().await?;
            self.idle_at = Some(engine);
            return Ok(0);
        }
        let passed = facts.len() as u64;
        let wanted: Vec<_> = facts.iter().flat_map(|(_, fact)| S::reads(fact)).collect();
        self.check_signing(facts.iter().map(|(_, fact)| fact)).await?;
        self.fetch(wanted).await?;
        let decided = self.decide_all(&facts).await?;
        self.append_and_apply(decided, 0, &positions).await?;
        Ok(passed.max(1))
    }

    /// Reads the facts of a partition from the checkpoint to the engine's position. A fact to pass over is returned as `None`: a dropped one,
    /// and a change of another service that means nothing here.
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
            let fact = if dropped.binary_search(&stored.offset).is_ok() {
                None
            } else {
                Some(S::read(topic, &stored.record.value).map_err(|source| Error::Value { topic: topic.name.to_owned(), source })?)
            };
            queue.push_back((stored.offset, fact.filter(|fact| topic.kind != TopicKind::Changes || !is_silent(fact))));
        }
        Ok(queue)
    }

    async fn decide_all(&mut self, facts: &[(Input, Fact<S::Fact>)]) -> Result<Vec<Decided<S>>, Error> {
        let mut out: Vec<Decided<S>> = Vec::with_capacity(facts.len());
        for (n, (input, fact)) in facts.iter().enumerate() {
            if n % FACTS_BETWEEN_YIELDS == 0 {
                // Deciding never waits; this lets other tasks of the thread run.
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

    async fn decide_one(&mut self, fact: &Fact<S::Fact>) -> Result<Vec<PendingDraft<S>>, Error> {
        let bare = |event, id: String| Draft { event, id, after: None, before: None, before_seq: Seq(0), before_since: Seq(0), note: None };
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
                Err(Undecided::Miss) => {
                    let missing = self.rows.take_missing();
                    self.fetch(missing).await?;
                }
                Err(Undecided::Blocked(reason)) => return Err(Error::Refused(reason)),
                Err(Undecided::Poison(reason)) => {
                    tracing::error!(
                        service = S::NAME,
                        key = fact.key,
                        reason,
                        "fact parked: decide it again with `highwater replay --parked` after a fix"
                    );
                    self.parked.entry(fact.key.clone()).or_default();
                    return poison(reason);
                }
            }
        }
    }
}

/// Whether every other partition has passed the facts that the end of a run covers.
fn run_is_covered<D>(fact: &Fact<D>, topic: &'static Topic, own: u32, positions: &Checkpoint) -> bool {
    let Some(run) = &fact.run else { return true };
    for (partition, end) in (0..).zip(&run.ends) {
        if partition != own && positions.position(topic, partition) < *end {
            return false;
        }
    }
    true
}

/// Returns the position of an input as changes record it.
fn input_at(topic: &'static Topic, partition: u32, offset: LogOffset) -> Result<Input, Error> {
    let invalid = |_| Error::Position { of: topic.name, source: PositionError(partition.into()) };
    Ok(Input { topic: topic.name.to_owned(), partition: i32::try_from(partition).map_err(invalid)?, offset: Some(offset) })
}

fn partitions(topics: &'static [Topic]) -> impl Iterator<Item = (&'static Topic, u32)> {
    topics.iter().flat_map(|topic| (0..topic.partitions).map(move |partition| (topic, partition)))
}
