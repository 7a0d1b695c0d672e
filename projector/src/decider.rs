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

mod parked;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use event_log::{Append, EventLog, Record, Stored};
use schemas::avro::{self, Encoder, Framing};
use schemas::change::{Change, ChangeKind, Input, Through};
use schemas::clock::{Clock, rfc3339};
use schemas::event::{Fact, FactKind};
use schemas::hash::Hash32;
use schemas::position::{LogOffset, Seq};
use schemas::tables::Write;
use schemas::topics::Topic;
use view_store::feed::FeedTail;
use view_store::{Checkpoint, View};

pub use self::parked::ParkedRow;
use self::parked::{TAKEN_AGAIN, parked_key};
use crate::Error;
use crate::rows::Rows;
use crate::service::{Draft, Service, Undecided};

/// Facts decided at once, over all partitions: each is held with all its rows, some 50 KB, until the batch is committed.
const BATCH_FACTS: usize = 1_000;
/// Bytes of facts read at once, from one partition.
const BATCH_BYTES: usize = 4 << 20;
/// Changes read back at once.
const BATCH_CHANGES: usize = 2_000;

/// A change of service `S`.
pub type ChangeOf<S> = Change<<S as Service>::Record, <S as Service>::Note>;

/// A draft with the two things that only the engine adds: what a run's end says, and the reason of what is parked.
type Undone<S> = (Draft<<S as Service>::Record, <S as Service>::Note>, Option<Through>, String);

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
    cut: VecDeque<ChangeOf<S>>,
    /// The engine's checkpoint when nothing more could be decided.
    idle_at: Option<Checkpoint>,
    /// Offset up to which the change topic has been read; above the checkpoint's when what stands there does not chain.
    read_to: LogOffset,
    /// Keys of parked facts; later facts of theirs are parked too.
    parked: HashSet<String>,
}

/// What the next change extends.
#[derive(Clone, Copy)]
struct Link {
    seq: i64,
    hash: Hash32,
    recorded_at: i64,
}

/// A decided change, encoded, with what it writes.
struct Decided<S: Service> {
    change: ChangeOf<S>,
    value: Bytes,
    hash: Hash32,
    /// The record after it, as JSON.
    record: Vec<u8>,
    writes: Vec<Write>,
}

impl<S: Service> Decided<S> {
    fn link(&self) -> Link {
        Link { seq: self.change.seq, hash: self.hash, recorded_at: self.change.recorded_at }
    }
}

impl<S: Service> Decider<S> {
    /// Opens a view where it stands.
    ///
    /// # Errors
    /// When the store fails or holds rows that this version cannot read.
    pub async fn open(
        log: Arc<dyn EventLog>,
        engine: Arc<dyn View>,
        view: Arc<dyn View>,
        clock: Clock,
        framing: Framing,
    ) -> Result<Self, Error> {
        let encoder = Encoder::new(S::CHANGES.name, framing).map_err(value_error::<S>)?;
        let mut this = Self {
            log,
            engine,
            view,
            clock,
            encoder,
            checkpoint: Checkpoint::default(),
            tail: FeedTail::empty(),
            rows: Rows::default(),
            cut: VecDeque::new(),
            idle_at: None,
            read_to: LogOffset(0),
            parked: HashSet::new(),
        };
        this.resume().await?;
        Ok(this)
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

    /// Takes up the view's state as stored, forgetting what was not committed.
    pub(crate) async fn resume(&mut self) -> Result<(), Error> {
        self.checkpoint = self.view.checkpoint().await?;
        self.tail = FeedTail::load(&*self.view, S::FEED, Seq(self.checkpoint.seq)).await?;
        self.rows.clear();
        self.cut.clear();
        self.parked = self.parked_rows().await?.into_iter().map(|(key, _)| key).collect();
        Ok(())
    }

    /// Takes over another decider's positions, where they are further.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn adopt_positions(&mut self, other: &Self) -> Result<(), Error> {
        if self.checkpoint.seq != other.checkpoint.seq {
            return Err(Error::Overtaken { service: S::NAME });
        }
        for (position, next) in &other.checkpoint.positions {
            let kept = self.checkpoint.positions.entry(position.clone()).or_default();
            *kept = (*kept).max(*next);
        }
        self.commit(Vec::new()).await
    }

    /// Applies all changes that are in the log and chain; answers how many. A group cut short at the end stays unapplied.
    ///
    /// # Errors
    /// When the log or the store fails.
    pub async fn apply_log(&mut self, mut progress: impl FnMut(u64)) -> Result<u64, Error> {
        let mut applied = 0;
        self.cut.clear();
        let mut offset = LogOffset(self.checkpoint.offset);
        let (mut seq, mut hash) = (self.checkpoint.seq, parse_hash(&self.checkpoint.hash));
        let mut group: Vec<(ChangeOf<S>, Hash32, LogOffset)> = Vec::new();
        loop {
            let batch = self.log.read(S::CHANGES, 0, offset, BATCH_CHANGES, BATCH_BYTES).await?;
            let Some(last) = batch.last() else { break };
            offset = last.offset.next();
            let mut writes = Vec::new();
            let before = applied;
            for stored in &batch {
                let Some(change) = extends::<S>(stored, seq, hash) else { continue };
                seq += 1;
                hash = avro::datum_hash(S::CHANGES.name, &stored.record.value).map_err(value_error::<S>)?;
                let ends_group = change.following == 0;
                group.push((change, hash, stored.offset.next()));
                if ends_group {
                    for (change, hash, next) in group.drain(..) {
                        let record = record_json::<S>(&change)?;
                        writes.extend(S::apply(&change, &record));
                        self.take(&change, &record, hash, next, &mut writes)?;
                        applied += 1;
                    }
                }
            }
            if applied > before {
                self.commit(writes).await?;
                progress(applied);
            }
        }
        self.read_to = offset;
        self.cut = group.into_iter().map(|(change, _, _)| change).collect();
        Ok(applied)
    }

    /// Applies what the log has, then decides all facts that are there. Answers whether anything was decided.
    ///
    /// # Errors
    /// When the log or the store fails.
    pub async fn catch_up(&mut self) -> Result<u64, Error> {
        self.catch_up_with(|_| ()).await
    }

    /// The same, telling how many facts are decided after each batch.
    ///
    /// # Errors
    /// As [`Self::catch_up`].
    pub async fn catch_up_with(&mut self, progress: impl Fn(u64)) -> Result<u64, Error> {
        self.take_up().await?;
        let mut decided = 0;
        loop {
            match self.decide_batch().await {
                Ok(0) => return Ok(decided),
                Ok(facts) => {
                    decided += facts;
                    progress(decided);
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
            if self.view.checkpoint().await? != self.checkpoint {
                self.resume().await?;
            }
            match self.apply_log(|_| ()).await {
                Err(Error::Overtaken { .. }) => self.resume().await?,
                Err(error) => {
                    // What was applied but not committed is not there.
                    self.resume().await?;
                    return Err(error);
                }
                Ok(_) => return Ok(()),
            }
        }
    }

    /// A future that ends when facts or changes beyond the checkpoint may be there. Cancel-safe; borrows nothing.
    pub fn waiter(&self) -> impl Future<Output = Result<(), Error>> + Send + use<S> {
        let (log, engine, idle_at) = (Arc::clone(&self.log), Arc::clone(&self.engine), self.idle_at.clone());
        let offset = LogOffset(self.checkpoint.offset).max(self.read_to);
        async move {
            let Some(idle_at) = idle_at else { return Ok(()) };
            tokio::select! {
                past = engine.wait_past(&idle_at) => past.map(|_| ()).map_err(Error::from),
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
            self.idle_at = Some(engine);
            return Ok(0);
        }
        self.complete_cut(&mut facts);
        let passed = facts.len() as u64;
        let wanted: Vec<_> = facts.iter().flat_map(|(_, fact)| S::reads(fact)).collect();
        self.rows.fetch(&*self.view, wanted).await?;
        let decided = self.decide_all(&facts).await?;
        self.append_and_apply(decided, positions).await?;
        self.rows.clear();
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
                let fact: Fact<S::Fact> = avro::decode(topic.name, &stored.record.value)
                    .map_err(|source| Error::Value { topic: topic.name.to_owned(), source })?;
                Some(fact)
            };
            queue.push_back((stored.offset, fact));
        }
        Ok(queue)
    }

    /// Puts the input of a cut group first: nothing may come between its changes.
    fn complete_cut(&self, facts: &mut [(Input, Fact<S::Fact>)]) {
        if let Some(first) = self.cut.front()
            && let Some(at) = facts.iter().position(|(input, _)| *input == first.input)
        {
            facts[..=at].rotate_right(1);
        }
    }

    async fn decide_all(&mut self, facts: &[(Input, Fact<S::Fact>)]) -> Result<Vec<Decided<S>>, Error> {
        let mut out: Vec<Decided<S>> = Vec::with_capacity(facts.len());
        for (input, fact) in facts {
            let group = self.decide_one(fact).await?;
            let decided = self.chain(out.last().map(Decided::link), input, group, out.len())?;
            for decided in &decided {
                for write in decided.writes.iter().filter(|write| S::DECISION_TABLES.iter().any(|table| table.name == write.table.name)) {
                    self.rows.write(write.clone());
                }
            }
            out.extend(decided);
        }
        Ok(out)
    }

    /// Gives a group of drafts its places in the chain, behind `last` or the checkpoint. `at` is the group's place in the batch,
    /// to compare it with what a crash left in the log.
    fn chain(&mut self, last: Option<Link>, input: &Input, group: Vec<Undone<S>>, at: usize) -> Result<Vec<Decided<S>>, Error> {
        let Link { mut seq, mut hash, mut recorded_at } = last.unwrap_or_else(|| Link {
            seq: i64_of(self.checkpoint.seq),
            hash: parse_hash(&self.checkpoint.hash),
            recorded_at: self.checkpoint.recorded_at_ms,
        });
        // The system's clock may go back; recorded times never do.
        recorded_at = recorded_at.max(self.clock.now_ms());
        let mut following = i32::try_from(group.len()).unwrap_or(i32::MAX);
        let mut out = Vec::with_capacity(group.len());
        for (draft, through, reason) in group {
            let Draft { event, id, after, before, before_seq, before_since, note } = draft;
            seq += 1;
            following -= 1;
            let (prev_hash, input) = (hash, input.clone());
            let mut change = Change {
                seq,
                prev_hash,
                event,
                id,
                recorded_at,
                input,
                following,
                before_seq,
                before_since,
                after,
                before,
                note,
                through,
                reason,
            };
            if let Some(logged) = self.cut.get(at + out.len()) {
                // Already in the log: the clock has moved on, nothing else may have.
                recorded_at = logged.recorded_at;
                change.recorded_at = recorded_at;
                if change != *logged {
                    let (name, seq) = (S::NAME, change.seq);
                    return Err(Error::Refused(format!(
                        "{name} decides change {seq} otherwise than the log has it: it was cut by a crash under other rules"
                    )));
                }
            }
            let value = Bytes::from(self.encoder.encode(&change).map_err(value_error::<S>)?);
            hash = avro::datum_hash(S::CHANGES.name, &value).map_err(value_error::<S>)?;
            let record = record_json::<S>(&change)?;
            let writes = S::apply(&change, &record);
            out.push(Decided { change, value, hash, record, writes });
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
        if self.parked.contains(&fact.key) {
            return poison("an earlier fact of this key is parked".to_owned());
        }
        loop {
            match S::decide(&mut self.rows, fact) {
                Ok(drafts) => return Ok(drafts.into_iter().map(|draft| (draft, None, String::new())).collect()),
                Err(Undecided::Miss) => self.rows.fetch_missing(&*self.view).await?,
                Err(Undecided::Poison(reason)) => {
                    tracing::error!(service = S::NAME, key = fact.key, reason, "a fact is parked");
                    self.parked.insert(fact.key.clone());
                    return poison(reason);
                }
            }
        }
    }

    async fn append_and_apply(&mut self, decided: Vec<Decided<S>>, positions: Checkpoint) -> Result<(), Error> {
        let logged = self.cut.len();
        let fresh = &decided[logged.min(decided.len())..];
        let end = self.log.end(S::CHANGES, 0).await?;
        let mut offset = LogOffset(self.checkpoint.offset);
        if !fresh.is_empty() {
            let batch = fresh.iter().map(|decided| self.record(decided)).collect();
            self.log.append(batch).await?;
        }
        // Read back: only what stands in the log, in the log's order, is applied.
        let mut writes = Vec::new();
        let mut waiting = decided.into_iter().peekable();
        while waiting.peek().is_some() {
            let batch = self.log.read(S::CHANGES, 0, offset, BATCH_CHANGES, BATCH_BYTES).await?;
            let Some(last) = batch.last() else { return Err(Error::Overtaken { service: S::NAME }) };
            offset = last.offset.next();
            for stored in &batch {
                let Some(expected) = waiting.next_if(|expected| expected.value == stored.record.value) else {
                    if waiting.peek().is_none() {
                        break;
                    }
                    if stored.offset >= end || extends::<S>(stored, self.checkpoint.seq, parse_hash(&self.checkpoint.hash)).is_some() {
                        return Err(Error::Overtaken { service: S::NAME });
                    }
                    continue;
                };
                writes.extend(expected.writes);
                self.take(&expected.change, &expected.record, expected.hash, stored.offset.next(), &mut writes)?;
            }
        }
        self.cut.clear();
        for (position, next) in positions.positions {
            let kept = self.checkpoint.positions.entry(position).or_default();
            *kept = (*kept).max(next);
        }
        self.commit(writes).await
    }

    /// A change as a record of its topic.
    fn record(&self, decided: &Decided<S>) -> Append {
        let Decided { change, value, hash, .. } = decided;
        let headers = vec![
            ("ce_id".to_owned(), Bytes::from(hash.to_string())),
            ("ce_type".to_owned(), Bytes::from(format!("highwater.{}.{}", S::NAME, change.event.as_str()))),
            ("ce_source".to_owned(), Bytes::from(format!("/{}", S::NAME))),
            ("ce_time".to_owned(), Bytes::from(rfc3339(change.recorded_at))),
        ];
        let record = Record { key: Bytes::from(change.id.clone()), value: value.clone(), headers, at_ms: change.recorded_at };
        Append { topic: S::CHANGES, partition: 0, record }
    }

    /// Takes one change in: its feed entry, what is parked, its place in the checkpoint.
    fn take(&mut self, change: &ChangeOf<S>, record: &[u8], hash: Hash32, next: LogOffset, writes: &mut Vec<Write>) -> Result<(), Error> {
        let element = change.event.is_shown().then(|| element(change, record));
        let seq = u64::try_from(change.seq).unwrap_or(0);
        // Another decider's clock may have been behind; the feed's times never go back.
        let recorded_at = change.recorded_at.max(self.checkpoint.recorded_at_ms);
        self.tail.push(Seq(seq), recorded_at, element.as_deref())?;
        if change.event == ChangeKind::Parked {
            self.parked.insert(change.id.clone());
            let parked = ParkedRow { input: change.input.clone(), reason: change.reason.clone() };
            let value = serde_json::to_vec(&parked).map_err(|source| Error::Row { table: S::PARKED.name, source })?;
            writes.push(Write { table: S::PARKED, key: parked_key(&change.id, &change.input), value: Some(Bytes::from(value)) });
        } else if change.reason == TAKEN_AGAIN {
            writes.push(Write { table: S::PARKED, key: parked_key(&change.id, &change.input), value: None });
        }
        self.checkpoint.seq = seq;
        self.checkpoint.hash = hash.to_string();
        self.checkpoint.offset = next.0;
        self.checkpoint.recorded_at_ms = recorded_at;
        if let (Ok(partition), Ok(offset)) = (u32::try_from(change.input.partition), u64::try_from(change.input.offset))
            && let Some(topic) = S::INPUTS.iter().find(|topic| topic.name == change.input.topic)
        {
            self.checkpoint.raise_position(topic, partition, LogOffset(offset).next());
        }
        Ok(())
    }

    async fn commit(&mut self, mut writes: Vec<Write>) -> Result<(), Error> {
        writes.extend(self.tail.take_writes(S::FEED));
        match self.view.commit(writes, &self.checkpoint).await {
            Err(view_store::Error::Behind { .. }) => Err(Error::Overtaken { service: S::NAME }),
            result => Ok(result?),
        }
    }

    /// Appends drafts that no fact gave (a service decided again) and applies them.
    ///
    /// # Errors
    /// When the log or the store fails, or another decider appended meanwhile.
    pub async fn append_drafts(&mut self, drafts: Vec<Draft<S::Record, S::Note>>) -> Result<(), Error> {
        let nowhere = Input { topic: String::new(), partition: 0, offset: -1 };
        let mut decided: Vec<Decided<S>> = Vec::with_capacity(drafts.len());
        for draft in drafts {
            decided.extend(self.chain(decided.last().map(Decided::link), &nowhere, vec![(draft, None, String::new())], decided.len())?);
        }
        let positions = self.checkpoint.clone();
        self.append_and_apply(decided, positions).await
    }
}

/// The record after a change as JSON, empty for none.
fn record_json<S: Service>(change: &ChangeOf<S>) -> Result<Vec<u8>, Error> {
    match &change.after {
        Some(record) => serde_json::to_vec(record).map_err(|source| Error::Row { table: S::RECORDS.name, source }),
        None => Ok(Vec::new()),
    }
}

/// A feed element: what readers see of a change, as JSON.
fn element<R, N>(change: &Change<R, N>, record: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(record.len() + 96);
    let head =
        format!(r#"{{"event":"{}","seq":{},"recordedAt":"{}","record":"#, change.event.as_str(), change.seq, rfc3339(change.recorded_at));
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(record);
    out.push(b'}');
    out
}

/// The change in a record, if it extends the chain.
fn extends<S: Service>(stored: &Stored, seq: u64, hash: Hash32) -> Option<ChangeOf<S>> {
    let change: ChangeOf<S> = avro::decode(S::CHANGES.name, &stored.record.value).ok()?;
    (change.seq == i64_of(seq + 1) && change.prev_hash == hash).then_some(change)
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

fn parse_hash(hex: &str) -> Hash32 {
    Hash32::from_hex(hex).unwrap_or(Hash32::ZERO)
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
