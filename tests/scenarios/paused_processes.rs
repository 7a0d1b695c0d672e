//! Processes that are paused at any of their steps, replaced by another process after their lease has expired, and then continued.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::recalls::rules::Recalls;
use event_log::{Append, Stored};
use futures_util::future::{self, Either};
use ingest::{Error, Outcome, Runner};
use projector::decider::Decider;
use projector::follow::wake_readers;
use projector::heads::Heads;
use projector::rebuild::Progress;
use schemas::clock::Clock;
use schemas::key;
use schemas::tables::ViewDef;
use schemas::topics::RECALLS as FACTS;
use schemas::views::engine::{RUNS, RunRow, VIEW as ENGINE};
use schemas::views::{payments, recalls};
use tokio::sync::watch;
use upstreams::http::Client;
use upstreams::{Stream, Upstream};

use crate::child::within;
use crate::concurrent_processes::read_partition;
use crate::engine::{Engine, RECALL_UPSTREAMS, SimulatedUpstreams, assert_shown_once, fixed_clock, runner_of};
use crate::expected_changes::Expected;
use crate::gate::Gate;

/// Returns a clock that is this many steps ahead of [`fixed_clock`].
fn clock_after(steps: u64) -> Clock {
    Clock::Fixed(fixed_clock().now() + Duration::from_secs(120 * steps))
}

/// Lets a process make this many calls and holds it at the next one. Returns the paused process, or its result if it ended before.
async fn hold<F: Future + Unpin>(gate: &Gate, calls: u64, process: F) -> Either<F::Output, F> {
    gate.hold_after(calls);
    match within("the end or the step of a process", future::select(process, std::pin::pin!(gate.held()))).await {
        Either::Left((ended, _)) => {
            gate.release();
            Either::Left(ended)
        }
        // Nothing polls the process from now on, so it stays where it is.
        Either::Right(((), process)) => Either::Right(process),
    }
}

/// Runs a process that may have been held to its end.
async fn finish<F: Future>(process: Either<F::Output, F>) -> F::Output {
    match process {
        Either::Left(ended) => ended,
        Either::Right(process) => within("the end of a process that was held", process).await,
    }
}

/// Ingestors of one stream and the expected changes. There are so many records that the changes of a round do not look like an outage.
struct IngestScenario {
    _dir: tempfile::TempDir,
    simulated: SimulatedUpstreams,
    engine: Engine,
    upstream: &'static dyn Upstream,
    stream: &'static Stream,
    /// The expected changes and the number of rounds so far.
    expected: Mutex<(Expected, usize)>,
    _stop: watch::Sender<bool>,
    stopping: watch::Receiver<bool>,
}

impl IngestScenario {
    async fn begin(seed: u64, records: u64, name: &str, stream: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let simulated = SimulatedUpstreams::start(seed, records, fixed_clock()).await;
        let engine = Engine::open_with(dir.path(), fixed_clock(), &["recalls"]).await;
        engine.run_some(RECALL_UPSTREAMS, &simulated.settings()).await;
        let upstream = upstreams::by_name(name).unwrap();
        let stream = upstream.manifest().streams.iter().find(|known| known.name == stream).unwrap();
        let expected = Mutex::new((Expected::at_first(simulated.sim.current(None)), 0));
        let (stop, stopping) = watch::channel(false);
        Self { _dir: dir, simulated, engine, upstream, stream, expected, _stop: stop, stopping }
    }

    /// Returns an ingestor behind a gate.
    fn gated_runner(&self, gate: &Arc<Gate>, clock: Clock, holder: &str) -> Runner {
        runner_of(&gate.parts(&self.engine.parts), clock, holder, self.stopping.clone())
    }

    /// Advances the upstream and adds its changes to the expected ones.
    fn advance(&self) {
        let known = self.simulated.sim.expected_changes().len() as u64;
        self.simulated.sim.advance(25);
        let entries = self.simulated.sim.expected_changes_after(known);
        let (expected, round) = &mut *self.expected.lock().unwrap();
        *round += 1;
        expected.take(*round, entries.into_iter().filter(|entry| entry.stream == self.stream.name).collect());
    }

    async fn run(&self, runner: &Runner) -> Result<Outcome, Error> {
        let settings = self.simulated.settings();
        let client = Client::new(&settings).unwrap();
        runner.sync_stream(self.upstream, self.stream, &client, &settings).await
    }

    /// Whether a sync run of the stream has begun and not ended.
    async fn is_under_way(&self) -> bool {
        let row = self.engine.parts.engine.get(&RUNS, &key![self.stream.name]).await.unwrap();
        row.is_some_and(|row| serde_json::from_slice::<RunRow>(&row).unwrap().is_under_way())
    }

    /// Syncs until all changes are recorded: a record that a snapshot lacks is withdrawn by the second run.
    async fn run_until_complete(&self, runner: &Runner) {
        for _ in 0..if self.stream.snapshot { 2 } else { 1 } {
            self.run(runner).await.unwrap();
        }
    }

    /// Asserts that all expected facts are recorded once.
    async fn assert_recorded(&self, runner: &Runner, what: &str) {
        let last = self.run(runner).await.unwrap();
        assert_eq!(last.run.appended, 0, "{what}: a further run must append nothing");
        let facts = self.engine.facts().await;
        self.expected.lock().unwrap().0.assert_facts(&facts);
    }

    async fn end(self) {
        self.engine.wait_projected().await;
        self.expected.into_inner().unwrap().0.assert_feed(&self.engine.feed().await, &[]);
        self.engine.close().await;
    }
}

/// Whether a run was overtaken. Any other error fails the test.
fn is_overtaken(result: &Result<Outcome, Error>, what: &str) -> bool {
    match result {
        Ok(_) => false,
        Err(Error::Overtaken { .. }) => true,
        Err(error) => panic!("{what}: {}", ingest::reason(error)),
    }
}

/// The steps at which a process is paused.
#[derive(Clone, Copy)]
enum Steps {
    /// Each one, in turn.
    All,
    /// The fifth and every tenth one after it.
    EveryTenth,
}

impl Steps {
    /// Returns the first step, and how many steps follow until the next one.
    fn first_and_stride(self) -> (u64, u64) {
        match self {
            Self::All => (0, 1),
            Self::EveryTenth => (5, 10),
        }
    }

    /// Returns how many of the processes that were held must be overtaken at least.
    fn share_of(self, held: u64) -> u64 {
        match self {
            Self::All => held / 2,
            Self::EveryTenth => 0,
        }
    }

    /// How many consecutive runs that end before the step at which they should be held mean that there are no further steps.
    fn missed_max(self) -> u32 {
        match self {
            Self::All => 3,
            Self::EveryTenth => 1,
        }
    }
}

/// Proves that an ingestor that is paused at any step of its run (each in turn), overtaken by another that finishes runs of a changing
/// upstream, and then continued corrupts nothing: there is one chain, no change is lost or shown twice, and its old data does not reappear.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ingestor_paused_at_any_step_is_fenced() {
    println!("{}", paused_ingestor_is_fenced(Steps::All).await);
}

/// Proves the same as [`ingestor_paused_at_any_step_is_fenced`], for every tenth step.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ingestor_paused_at_every_tenth_step_is_fenced() {
    println!("{}", paused_ingestor_is_fenced(Steps::EveryTenth).await);
}

/// Asserts the above for some steps; returns how many there were.
async fn paused_ingestor_is_fenced(steps: Steps) -> String {
    let mut figures = Vec::new();
    let (first, stride) = steps.first_and_stride();
    for (seed, records, name, stream) in [(51, 150, "openfda", "openfda.food"), (52, 600, "fsis", "fsis")] {
        let fixture = IngestScenario::begin(seed, records, name, stream).await;
        let gate = Gate::new(false);
        let (slow, quick) = (fixture.gated_runner(&gate, fixed_clock(), "slow"), fixture.engine.other_runner(clock_after(1), "quick"));
        let (mut calls, mut held, mut overtaken, mut missed) = (first, 0, 0, 0);
        while missed < steps.missed_max() {
            let what = format!("{stream} held after {calls} calls");
            fixture.advance();
            match hold(&gate, calls, Box::pin(fixture.run(&slow))).await {
                Either::Left(ended) => {
                    assert!(!is_overtaken(&ended, &what));
                    missed += 1;
                    fixture.run_until_complete(&quick).await;
                }
                Either::Right(process) => {
                    fixture.engine.end_lease(stream).await;
                    fixture.run_until_complete(&quick).await;
                    fixture.advance();
                    fixture.run_until_complete(&quick).await;
                    gate.release();
                    overtaken += u64::from(is_overtaken(&process.await, &what));
                    (held, missed) = (held + 1, 0);
                }
            }
            fixture.assert_recorded(&quick, &what).await;
            calls += stride;
        }
        figures.push(format!("{stream}: held at {held} steps, overtaken at {overtaken}"));
        assert!(held * stride > 30 && overtaken > steps.share_of(held), "{stream}: {overtaken} of {held}");
        fixture.end().await;
    }
    figures.join("; ")
}

/// Proves that two ingestors that pause at any of their steps, one during the other's run, corrupt nothing: the first is held, the second
/// starts and is held too, then the first ends, then the second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interleaved_ingestors_are_fenced() {
    for (seed, records, name, stream) in [(53, 150, "openfda", "openfda.food"), (54, 600, "fsis", "fsis")] {
        let fixture = IngestScenario::begin(seed, records, name, stream).await;
        let gates = [Gate::new(false), Gate::new(false)];
        let first = fixture.gated_runner(&gates[0], fixed_clock(), "first");
        let second = fixture.gated_runner(&gates[1], clock_after(1), "second");
        let third = fixture.engine.other_runner(clock_after(2), "third");
        let (mut calls, mut held, mut overtaken, mut missed) = (0, 0, [0, 0], 0);
        while missed < Steps::All.missed_max() {
            // Each step of the first one is combined with steps from the whole run of the second one.
            let other = calls * 7 % 41;
            let what = format!("{stream} held after {calls} calls, the other after {other}");
            fixture.advance();
            match hold(&gates[0], calls, Box::pin(fixture.run(&first))).await {
                Either::Left(ended) => {
                    assert!(!is_overtaken(&ended, &what));
                    missed += 1;
                }
                Either::Right(one) => {
                    fixture.engine.end_lease(stream).await;
                    let two = hold(&gates[1], other, Box::pin(fixture.run(&second))).await;
                    gates[0].release();
                    let one = one.await;
                    // The second one may have the lease by now.
                    if !matches!(one, Err(Error::Busy { .. })) {
                        overtaken[0] += u32::from(is_overtaken(&one, &what));
                    }
                    gates[1].release();
                    overtaken[1] += u32::from(is_overtaken(&finish(two).await, &what));
                    (held, missed) = (held + 1, 0);
                }
            }
            fixture.run_until_complete(&third).await;
            fixture.assert_recorded(&third, &what).await;
            calls += 1;
        }
        println!("{stream}: crossed at {held} steps, overtaken at {overtaken:?}");
        assert!(held > 30 && overtaken.iter().all(|times| *times > 2), "{stream}: {overtaken:?} of {held}");
        fixture.end().await;
    }
}

/// Proves that a run that ends while another process checks for orphaned runs, at any step of the check, is not reported as orphaned, and
/// that a run whose lease has expired is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_that_ends_during_an_orphan_check_is_not_resumed() {
    let fixture = IngestScenario::begin(55, 150, "openfda", "openfda.food").await;
    let gates = [Gate::new(false), Gate::new(false)];
    let running = fixture.gated_runner(&gates[0], fixed_clock(), "running");
    let looking = fixture.gated_runner(&gates[1], clock_after(1), "looking");
    let (mut started, mut calls) = (0, 0);
    let cut = loop {
        fixture.advance();
        let Either::Right(run) = hold(&gates[0], started, Box::pin(fixture.run(&running))).await else {
            panic!("the run was not held at any step")
        };
        if !fixture.is_under_way().await {
            started += 1;
            gates[0].release();
            run.await.unwrap();
            continue;
        }
        fixture.engine.extend_lease(fixture.stream.name).await;
        match hold(&gates[1], calls, Box::pin(looking.has_orphaned_run(fixture.upstream))).await {
            Either::Left(is_cut) => {
                assert!(!is_cut.unwrap(), "a run with a lease counts as orphaned");
                break run;
            }
            Either::Right(check) => {
                gates[0].release();
                run.await.unwrap();
                gates[1].release();
                assert!(!check.await.unwrap(), "a run that ended while the check was held after {calls} calls counts as orphaned");
            }
        }
        calls += 1;
    };
    assert!(calls > 3, "held at {calls} steps");
    fixture.engine.end_lease(fixture.stream.name).await;
    assert!(looking.has_orphaned_run(fixture.upstream).await.unwrap(), "a run without a lease must count as orphaned");
    gates[0].release();
    is_overtaken(&cut.await, "a run without its lease");
    let third = fixture.engine.other_runner(clock_after(2), "third");
    fixture.run_until_complete(&third).await;
    fixture.assert_recorded(&third, "in the end").await;
    fixture.end().await;
}

/// Proves that the readers of a view are woken when the log gets inputs of that view (facts for the latest-version index, changes for a
/// service), and that readers of other views are not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn views_are_woken_by_their_inputs() {
    let fixture = IngestScenario::begin(56, 150, "openfda", "openfda.food").await;
    let gate = Gate::new(false);
    let parts = gate.parts(&fixture.engine.parts);
    let views = [&ENGINE, &recalls::VIEW, payments::TABLES.view];
    let woken = async |expected: &[&'static ViewDef]| {
        let expected = expected.iter().map(|view| view.name).collect::<BTreeSet<_>>();
        let mut woken = gate.woken.subscribe();
        let all = woken.wait_for(|woken| *woken == expected);
        within("the wake-up of all views", all).await.unwrap();
    };
    let ingesting = async {
        // Each view is woken once at the beginning, because appends may have been in progress.
        woken(&views).await;
        gate.woken.send_replace(BTreeSet::new());
        fixture.advance();
        fixture.run_until_complete(&fixture.engine.other_runner(clock_after(1), "runner")).await;
        woken(&views[..2]).await;
    };
    tokio::select! {
        () = wake_readers(&parts, &views) => {}
        () = ingesting => {}
    }
    fixture.end().await;
}

/// Facts that were recorded elsewhere and are appended again in portions, and the expected result of deciding them.
struct RecordedFacts {
    facts: Vec<Vec<Stored>>,
    expected: Expected,
    digest: String,
}

/// The number of portions.
const PORTIONS: usize = 120;

impl RecordedFacts {
    /// Records the facts of a simulation and some rounds of its changes, including merged recalls and withdrawals. Facts about the end of a
    /// run wait for the facts of other partitions; `with_runs` says whether they are included.
    async fn new(seed: u64, with_runs: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let simulated = SimulatedUpstreams::start(seed, 800, fixed_clock()).await;
        let engine = Engine::open_with(dir.path(), fixed_clock(), &["recalls"]).await;
        engine.run_some(RECALL_UPSTREAMS, &simulated.settings()).await;
        let mut expected = Expected::at_first(simulated.sim.current(None));
        for round in 1..=5 {
            let known = simulated.sim.expected_changes().len() as u64;
            simulated.sim.advance(60);
            expected.take(round, simulated.sim.expected_changes_after(known));
            engine.run_some(RECALL_UPSTREAMS, &simulated.settings()).await;
            engine.run_some(RECALL_UPSTREAMS, &simulated.settings()).await;
        }
        let mut facts = Vec::new();
        for partition in 0..FACTS.partitions {
            let mut of_records = read_partition(&*engine.log, &FACTS, partition).await;
            of_records.retain(|stored| with_runs || !stored.record.key.starts_with(b"@run/"));
            facts.push(of_records);
        }
        let digest = engine.digest(false).await;
        engine.close().await;
        Self { facts, expected, digest }
    }

    /// Appends some portions (from 0; those beyond the last are empty) to another log, and updates its latest-version index.
    async fn append_to(&self, engine: &Engine, heads: &Heads, portions: Range<usize>) {
        let mut batch = Vec::new();
        for (partition, facts) in (0..).zip(&self.facts) {
            let [from, to] = [portions.start, portions.end].map(|at| facts.len() * at.min(PORTIONS) / PORTIONS);
            batch.extend(facts[from..to].iter().map(|stored| Append { topic: &FACTS, partition, record: stored.record.clone() }));
        }
        if !batch.is_empty() {
            engine.log.append(batch).await.unwrap();
            heads.catch_up().await.unwrap();
        }
    }

    /// Asserts that the engine emitted each change once and has the resulting rows.
    async fn assert_decided(&self, engine: &Engine) {
        let feed = engine.feed().await;
        self.expected.assert_feed(&feed, &[]);
        assert_eq!(engine.changes().await.len(), feed.len(), "log and pages must have the same changes");
        assert_eq!(engine.digest(false).await, self.digest);
        let (rows, bytes) = (engine.digest(true).await, engine.feed_bytes(200).await);
        engine.projector.service("recalls").unwrap().replay(&(Arc::new(|_, _| ()) as Progress)).await.unwrap();
        assert_eq!((engine.digest(true).await, engine.feed_bytes(200).await), (rows, bytes), "the rows must equal those of a replay");
    }
}

async fn decider(engine: &Engine, gate: &Arc<Gate>, clock: Clock) -> Decider<Recalls> {
    let parts = gate.parts(&engine.parts);
    let view = gate.view(&engine.view().await);
    Decider::open(parts.log, parts.engine, view, clock).await.unwrap()
}

/// Proves that a decider that is paused at any step (each in turn), overtaken by another that decides the same facts and later ones, and
/// then continued corrupts nothing: every change is emitted once, in one order, with the resulting rows; also on a log that appends a batch
/// record by record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decider_paused_at_any_step_is_fenced() {
    println!("{}", paused_decider_is_fenced(Steps::All).await);
}

/// Proves the same as [`decider_paused_at_any_step_is_fenced`], for every tenth step.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decider_paused_at_every_tenth_step_is_fenced() {
    println!("{}", paused_decider_is_fenced(Steps::EveryTenth).await);
}

/// Asserts the above for some steps; returns how many there were.
async fn paused_decider_is_fenced(steps: Steps) -> String {
    let mut figures = Vec::new();
    let (first, stride) = steps.first_and_stride();
    let recorded = RecordedFacts::new(55, false).await;
    for (is_torn, goes_further) in [(false, true), (true, false)] {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::idle_with(dir.path(), fixed_clock(), &["recalls"]).await;
        let heads = Heads::new(Arc::clone(&engine.log), Arc::clone(&engine.parts.engine), engine.parts.services);
        let (gate, free) = (Gate::new(is_torn), Gate::new(false));
        let (mut slow, mut quick) = (decider(&engine, &gate, fixed_clock()).await, decider(&engine, &free, clock_after(1)).await);
        let (mut calls, mut held, mut missed, mut portion) = (first, 0, 0, 0);
        while missed < steps.missed_max() {
            let what = format!("held after {calls} calls, torn {is_torn}, further {goes_further}");
            recorded.append_to(&engine, &heads, portion..portion + 1).await;
            portion += 1;
            match hold(&gate, calls, Box::pin(slow.catch_up())).await {
                Either::Left(ended) => {
                    ended.unwrap();
                    missed += 1;
                }
                Either::Right(process) => {
                    quick.catch_up().await.unwrap();
                    if goes_further {
                        recorded.append_to(&engine, &heads, portion..portion + 1).await;
                        portion += 1;
                        quick.catch_up().await.unwrap();
                    }
                    gate.release();
                    process.await.unwrap_or_else(|error| panic!("{what}: {error}"));
                    (held, missed) = (held + 1, 0);
                }
            }
            quick.catch_up().await.unwrap();
            // Facts that arrived during its last read are found by the next one.
            slow.catch_up().await.unwrap();
            assert_eq!(slow.checkpoint().seq, quick.checkpoint().seq, "{what}");
            assert_shown_once(&engine.feed().await);
            calls += stride;
        }
        figures.push(format!("held at {held} steps, {portion} portions appended"));
        assert!(held * stride > 15 && portion < PORTIONS, "{held} steps, {portion} portions");
        recorded.append_to(&engine, &heads, portion..PORTIONS).await;
        slow.catch_up().await.unwrap();
        recorded.assert_decided(&engine).await;
        engine.close().await;
    }
    figures.join("; ")
}

/// Proves that two deciders that pause at any of their steps, one during the other's batch, emit every change once; the first one on a log
/// that appends a batch record by record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interleaved_deciders_emit_each_change_once() {
    let recorded = RecordedFacts::new(56, true).await;
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::idle_with(dir.path(), fixed_clock(), &["recalls"]).await;
    let heads = Heads::new(Arc::clone(&engine.log), Arc::clone(&engine.parts.engine), engine.parts.services);
    let gates = [Gate::new(true), Gate::new(false)];
    let (mut first, mut second) = (decider(&engine, &gates[0], fixed_clock()).await, decider(&engine, &gates[1], clock_after(1)).await);
    let mut portion = 0;
    for calls in 0..PORTIONS as u64 / 2 {
        let (one, other) = (calls % 43, calls * 7 % 41);
        let what = format!("held after {one} calls, the other after {other}");
        recorded.append_to(&engine, &heads, portion..portion + 1).await;
        let process = hold(&gates[0], one, Box::pin(first.catch_up())).await;
        recorded.append_to(&engine, &heads, portion + 1..portion + 2).await;
        portion += 2;
        let rival = hold(&gates[1], other, Box::pin(second.catch_up())).await;
        gates[0].release();
        finish(process).await.unwrap_or_else(|error| panic!("{what}: the first one: {error}"));
        gates[1].release();
        finish(rival).await.unwrap_or_else(|error| panic!("{what}: the other one: {error}"));
        first.catch_up().await.unwrap();
        second.catch_up().await.unwrap();
        assert_eq!(first.checkpoint().seq, second.checkpoint().seq, "{what}");
        assert_shown_once(&engine.feed().await);
    }
    assert_eq!(portion, PORTIONS);
    recorded.assert_decided(&engine).await;
    engine.close().await;
}
