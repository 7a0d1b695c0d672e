//! A process that is paused at any of its steps, overtaken by another once its lease has ended, and continued: at each step in turn.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use event_log::{Append, Stored};
use futures_util::future::{self, Either};
use ingest::{Error, Outcome, Runner};
use projector::decider::Decider;
use projector::follow::wake_readers;
use projector::heads::Heads;
use projector::rebuild::Progress;
use projector::services::recalls::Recalls;
use schemas::clock::Clock;
use schemas::key;
use schemas::tables::ViewDef;
use schemas::topics::RECALLS as FACTS;
use schemas::views::engine::{RUNS, RunRow, VIEW as ENGINE};
use schemas::views::{payments, recalls};
use tokio::sync::watch;
use upstreams::http::Client;
use upstreams::{Stream, Upstream};

use crate::account::Expected;
use crate::engine::{Engine, Played, assert_shown_once, fixed_clock, runner_of};
use crate::gate::Gate;
use crate::rivals::whole;

/// A clock that is so many steps ahead of [`fixed_clock`].
fn clock_after(steps: u64) -> Clock {
    Clock::Fixed(fixed_clock().now() + Duration::from_secs(120 * steps))
}

/// Lets a process make so many calls and holds it at the next one: what is left of it then, or what it ended with before.
async fn hold<F: Future + Unpin>(gate: &Gate, calls: u64, process: F) -> Either<F::Output, F> {
    gate.hold_after(calls);
    match future::select(process, std::pin::pin!(gate.held())).await {
        Either::Left((ended, _)) => {
            gate.release();
            Either::Left(ended)
        }
        // Nobody polls it from now on: it moves no further.
        Either::Right(((), process)) => Either::Right(process),
    }
}

/// What a process ends with that may have been held.
async fn ended<F: Future>(process: Either<F::Output, F>) -> F::Output {
    match process {
        Either::Left(ended) => ended,
        Either::Right(process) => process.await,
    }
}

/// Ingestors of one stream, in a world so large that what goes from one round to the next is no outage, and what must come of them.
struct Ingesting {
    _dir: tempfile::TempDir,
    played: Played,
    engine: Engine,
    upstream: &'static dyn Upstream,
    stream: &'static Stream,
    /// What is expected, and after how many rounds.
    expected: Mutex<(Expected, usize)>,
    _stop: watch::Sender<bool>,
    stopping: watch::Receiver<bool>,
}

impl Ingesting {
    async fn begin(seed: u64, records: u64, name: &str, stream: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let played = Played::start(seed, records, fixed_clock()).await;
        let engine = Engine::open(dir.path(), fixed_clock()).await;
        engine.run_all(&played.settings()).await;
        let upstream = upstreams::by_name(name).unwrap();
        let stream = upstream.manifest().streams.iter().find(|known| known.name == stream).unwrap();
        let expected = Mutex::new((Expected::at_first(played.sim.current(None)), 0));
        let (stop, stopping) = watch::channel(false);
        Self { _dir: dir, played, engine, upstream, stream, expected, _stop: stop, stopping }
    }

    /// An ingestor that can be held.
    fn gated(&self, gate: &Arc<Gate>, clock: Clock, holder: &str) -> Runner {
        runner_of(&gate.parts(&self.engine.parts), clock, holder, self.stopping.clone())
    }

    /// The upstream goes on, and what it says then must be found once.
    fn advance(&self) {
        let known = self.played.sim.expected_changes().len() as u64;
        self.played.sim.advance(25);
        let entries = self.played.sim.expected_changes_after(known);
        let (expected, round) = &mut *self.expected.lock().unwrap();
        *round += 1;
        expected.take(*round, entries.into_iter().filter(|entry| entry.stream == self.stream.name).collect());
    }

    async fn run(&self, runner: &Runner) -> Result<Outcome, Error> {
        let settings = self.played.settings();
        let client = Client::new(&settings).unwrap();
        runner.sync_stream(self.upstream, self.stream, &client, &settings).await
    }

    /// Whether the stream's run was begun and has not ended.
    async fn is_under_way(&self) -> bool {
        let row = self.engine.parts.engine.get(&RUNS, &key![self.stream.name]).await.unwrap();
        row.is_some_and(|row| serde_json::from_slice::<RunRow>(&row).unwrap().is_under_way())
    }

    /// Runs until all is said: what a snapshot lacks is withdrawn by the second run.
    async fn run_whole(&self, runner: &Runner) {
        for _ in 0..if self.stream.snapshot { 2 } else { 1 } {
            self.run(runner).await.unwrap();
        }
    }

    /// Asserts that all has been said, and once.
    async fn assert_said(&self, runner: &Runner, what: &str) {
        let last = self.run(runner).await.unwrap();
        assert_eq!(last.run.appended, 0, "{what}: nothing is left to say");
        let facts = self.engine.facts().await;
        self.expected.lock().unwrap().0.assert_facts(&facts);
    }

    async fn end(self) {
        self.engine.projected().await;
        self.expected.into_inner().unwrap().0.assert_feed(&self.engine.feed().await, &[]);
        self.engine.close().await;
    }
}

/// Whether a run was overtaken. If not it must have ended whole.
fn is_overtaken(result: &Result<Outcome, Error>, what: &str) -> bool {
    match result {
        Ok(_) => false,
        Err(Error::Overtaken { .. }) => true,
        Err(error) => panic!("{what}: {}", ingest::reason(error)),
    }
}

/// Runs in a row that end before the step at which they should be held: there are no further steps.
const MISSED_MAX: u32 = 3;

/// Proves that an ingestor that is paused at any step of its run (each in turn), overtaken by another that finishes runs while the upstream
/// goes on, and continued, does no harm: one chain, no change lost or shown twice, nothing that it had read flows back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ingestor_paused_at_any_step_does_no_harm() {
    for (seed, records, name, stream) in [(51, 150, "openfda", "openfda.food"), (52, 600, "fsis", "fsis")] {
        let story = Ingesting::begin(seed, records, name, stream).await;
        let gate = Gate::new(false);
        let (slow, quick) = (story.gated(&gate, fixed_clock(), "slow"), story.engine.rival(clock_after(1), "quick"));
        let (mut calls, mut held, mut overtaken, mut missed) = (0, 0, 0, 0);
        while missed < MISSED_MAX {
            let what = format!("{stream} held after {calls} calls");
            story.advance();
            match hold(&gate, calls, Box::pin(story.run(&slow))).await {
                Either::Left(ended) => {
                    assert!(!is_overtaken(&ended, &what));
                    missed += 1;
                    story.run_whole(&quick).await;
                }
                Either::Right(process) => {
                    story.engine.end_lease(stream).await;
                    story.run_whole(&quick).await;
                    story.advance();
                    story.run_whole(&quick).await;
                    gate.release();
                    overtaken += u32::from(is_overtaken(&process.await, &what));
                    (held, missed) = (held + 1, 0);
                }
            }
            story.assert_said(&quick, &what).await;
            calls += 1;
        }
        println!("{stream}: held at {held} steps, overtaken at {overtaken}");
        assert!(held > 30 && overtaken > held / 2, "{stream}: {overtaken} of {held}");
        story.end().await;
    }
}

/// Proves that two ingestors that stop and go on at any of their steps, one in the midst of the other's run, do no harm together: the first
/// is held, the second begins and is held, too, the first ends, then the second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_ingestors_that_cross_at_any_steps_do_no_harm() {
    for (seed, records, name, stream) in [(53, 150, "openfda", "openfda.food"), (54, 600, "fsis", "fsis")] {
        let story = Ingesting::begin(seed, records, name, stream).await;
        let gates = [Gate::new(false), Gate::new(false)];
        let first = story.gated(&gates[0], fixed_clock(), "first");
        let second = story.gated(&gates[1], clock_after(1), "second");
        let third = story.engine.rival(clock_after(2), "third");
        let (mut calls, mut held, mut overtaken, mut missed) = (0, 0, [0, 0], 0);
        while missed < MISSED_MAX {
            // Each step of the one, against steps of the other that are spread over all of its run.
            let other = calls * 7 % 41;
            let what = format!("{stream} held after {calls} calls, the other after {other}");
            story.advance();
            match hold(&gates[0], calls, Box::pin(story.run(&first))).await {
                Either::Left(ended) => {
                    assert!(!is_overtaken(&ended, &what));
                    missed += 1;
                }
                Either::Right(one) => {
                    story.engine.end_lease(stream).await;
                    let two = hold(&gates[1], other, Box::pin(story.run(&second))).await;
                    gates[0].release();
                    let one = one.await;
                    // The second may have the lease by now.
                    if !matches!(one, Err(Error::Busy { .. })) {
                        overtaken[0] += u32::from(is_overtaken(&one, &what));
                    }
                    gates[1].release();
                    overtaken[1] += u32::from(is_overtaken(&ended(two).await, &what));
                    (held, missed) = (held + 1, 0);
                }
            }
            story.run_whole(&third).await;
            story.assert_said(&third, &what).await;
            calls += 1;
        }
        println!("{stream}: crossed at {held} steps, overtaken at {overtaken:?}");
        assert!(held > 30 && overtaken.iter().all(|times| *times > 2), "{stream}: {overtaken:?} of {held}");
        story.end().await;
    }
}

/// Proves that a run that ends while another process looks for runs to go on with, at any step of its look, is not taken for one that was cut,
/// and that a run whose lease has ended is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_ends_during_a_look_is_not_gone_on_with() {
    let story = Ingesting::begin(55, 150, "openfda", "openfda.food").await;
    let gates = [Gate::new(false), Gate::new(false)];
    let running = story.gated(&gates[0], fixed_clock(), "running");
    let looking = story.gated(&gates[1], clock_after(1), "looking");
    let (mut begun, mut calls) = (0, 0);
    let cut = loop {
        story.advance();
        let Either::Right(run) = hold(&gates[0], begun, Box::pin(story.run(&running))).await else { panic!("no step of a run is seen") };
        if !story.is_under_way().await {
            begun += 1;
            gates[0].release();
            run.await.unwrap();
            continue;
        }
        match hold(&gates[1], calls, Box::pin(looking.has_orphaned_run(story.upstream))).await {
            Either::Left(is_cut) => {
                assert!(!is_cut.unwrap(), "it has its lease");
                break run;
            }
            Either::Right(look) => {
                gates[0].release();
                run.await.unwrap();
                gates[1].release();
                assert!(!look.await.unwrap(), "it ended while a look was held after {calls} calls");
            }
        }
        calls += 1;
    };
    assert!(calls > 3, "held at {calls} steps");
    story.engine.end_lease(story.stream.name).await;
    assert!(looking.has_orphaned_run(story.upstream).await.unwrap(), "nobody goes on with it");
    gates[0].release();
    is_overtaken(&cut.await, "a run without its lease");
    let third = story.engine.rival(clock_after(2), "third");
    story.run_whole(&third).await;
    story.assert_said(&third, "in the end").await;
    story.end().await;
}

/// Proves that the readers of a view are woken when the log gets inputs of that view (facts for the heads, changes for a service), and that
/// readers of other views are not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn views_are_woken_by_their_inputs() {
    let story = Ingesting::begin(56, 150, "openfda", "openfda.food").await;
    let gate = Gate::new(false);
    let parts = gate.parts(&story.engine.parts);
    let views = [&ENGINE, &recalls::VIEW, payments::TABLES.view];
    let woken = async |expected: &[&'static ViewDef]| {
        let expected = expected.iter().map(|view| view.name).collect::<BTreeSet<_>>();
        let mut woken = gate.woken.subscribe();
        let all = woken.wait_for(|woken| *woken == expected);
        tokio::time::timeout(Duration::from_secs(60), all).await.expect("what is to be woken is").unwrap();
    };
    let ingesting = async {
        // Each once at the beginning: nobody knows what is under way.
        woken(&views).await;
        gate.woken.send_replace(BTreeSet::new());
        story.advance();
        story.run_whole(&story.engine.rival(clock_after(1), "runner")).await;
        woken(&views[..2]).await;
    };
    tokio::select! {
        () = wake_readers(&parts, &views) => {}
        () = ingesting => {}
    }
    story.end().await;
}

/// Facts that were read elsewhere, told again some at a time, and what must come of deciding them.
struct Told {
    facts: Vec<Vec<Stored>>,
    expected: Expected,
    digest: String,
}

/// How many portions facts are told in.
const PORTIONS: usize = 120;

impl Told {
    /// Facts of a world and of some rounds of its changes, merged recalls and withdrawals among them. With the ends of runs, which wait for
    /// the facts of other partitions, or without.
    async fn new(seed: u64, with_runs: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let played = Played::start(seed, 800, fixed_clock()).await;
        let engine = Engine::open(dir.path(), fixed_clock()).await;
        engine.run_all(&played.settings()).await;
        let mut expected = Expected::at_first(played.sim.current(None));
        for round in 1..=5 {
            let known = played.sim.expected_changes().len() as u64;
            played.sim.advance(60);
            expected.take(round, played.sim.expected_changes_after(known));
            engine.run_all(&played.settings()).await;
            engine.run_all(&played.settings()).await;
        }
        let mut facts = Vec::new();
        for partition in 0..FACTS.partitions {
            let mut of_records = whole(&*engine.log, &FACTS, partition).await;
            of_records.retain(|stored| with_runs || !stored.record.key.starts_with(b"@run/"));
            facts.push(of_records);
        }
        let digest = engine.digest(false).await;
        engine.close().await;
        Self { facts, expected, digest }
    }

    /// Appends some portions (counted from 0; those beyond the last are empty) to another log, and takes them in.
    async fn tell(&self, engine: &Engine, heads: &Heads, portions: Range<usize>) {
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

    /// Asserts that the engine tells all of it once, and has the rows that follow.
    async fn assert_decided(&self, engine: &Engine) {
        let feed = engine.feed().await;
        self.expected.assert_feed(&feed, &[]);
        assert_eq!(engine.changes().await.len(), feed.len(), "log and pages tell the same");
        assert_eq!(engine.digest(false).await, self.digest);
        let (rows, bytes) = (engine.digest(true).await, engine.feed_bytes(200).await);
        engine.projector.service("recalls").unwrap().replay(&(Arc::new(|_, _| ()) as Progress)).await.unwrap();
        assert_eq!((engine.digest(true).await, engine.feed_bytes(200).await), (rows, bytes), "the rows are those of the log");
    }
}

async fn decider(engine: &Engine, gate: &Arc<Gate>, clock: Clock) -> Decider<Recalls> {
    let parts = gate.parts(&engine.parts);
    let view = gate.view(&engine.view().await);
    Decider::open(parts.log, parts.engine, view, clock).await.unwrap()
}

/// Proves that a decider that is paused at any step (each in turn), overtaken by another that decides the same facts and later ones, and
/// continued, does no harm: every change once, in one order, with the rows that follow; also on a log that takes a batch record by record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decider_paused_at_any_step_does_no_harm() {
    let told = Told::new(55, false).await;
    for (is_torn, goes_further) in [(false, true), (true, false)] {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open_still(dir.path(), fixed_clock()).await;
        let heads = Heads::new(Arc::clone(&engine.log), Arc::clone(&engine.parts.engine));
        let (gate, free) = (Gate::new(is_torn), Gate::new(false));
        let (mut slow, mut quick) = (decider(&engine, &gate, fixed_clock()).await, decider(&engine, &free, clock_after(1)).await);
        let (mut calls, mut held, mut missed, mut portion) = (0, 0, 0, 0);
        while missed < MISSED_MAX {
            let what = format!("held after {calls} calls, torn {is_torn}, further {goes_further}");
            told.tell(&engine, &heads, portion..portion + 1).await;
            portion += 1;
            match hold(&gate, calls, Box::pin(slow.catch_up())).await {
                Either::Left(ended) => {
                    ended.unwrap();
                    missed += 1;
                }
                Either::Right(process) => {
                    quick.catch_up().await.unwrap();
                    if goes_further {
                        told.tell(&engine, &heads, portion..portion + 1).await;
                        portion += 1;
                        quick.catch_up().await.unwrap();
                    }
                    gate.release();
                    process.await.unwrap_or_else(|error| panic!("{what}: {error}"));
                    (held, missed) = (held + 1, 0);
                }
            }
            quick.catch_up().await.unwrap();
            // What came while it looked for more, it finds when it looks again.
            slow.catch_up().await.unwrap();
            assert_eq!(slow.checkpoint().seq, quick.checkpoint().seq, "{what}");
            assert_shown_once(&engine.feed().await);
            calls += 1;
        }
        println!("held at {held} steps, {portion} portions told");
        assert!(held > 15 && portion < PORTIONS, "{held} steps, {portion} portions");
        told.tell(&engine, &heads, portion..PORTIONS).await;
        slow.catch_up().await.unwrap();
        told.assert_decided(&engine).await;
        engine.close().await;
    }
}

/// Proves that two deciders that stop and go on at any of their steps, one in the midst of the other's batch, tell every change once; the
/// first on a log that takes a batch record by record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_deciders_that_cross_at_any_steps_do_no_harm() {
    let told = Told::new(56, true).await;
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open_still(dir.path(), fixed_clock()).await;
    let heads = Heads::new(Arc::clone(&engine.log), Arc::clone(&engine.parts.engine));
    let gates = [Gate::new(true), Gate::new(false)];
    let (mut first, mut second) = (decider(&engine, &gates[0], fixed_clock()).await, decider(&engine, &gates[1], clock_after(1)).await);
    let mut portion = 0;
    for calls in 0..PORTIONS as u64 / 2 {
        let (one, other) = (calls % 43, calls * 7 % 41);
        let what = format!("held after {one} calls, the other after {other}");
        told.tell(&engine, &heads, portion..portion + 1).await;
        let process = hold(&gates[0], one, Box::pin(first.catch_up())).await;
        told.tell(&engine, &heads, portion + 1..portion + 2).await;
        portion += 2;
        let rival = hold(&gates[1], other, Box::pin(second.catch_up())).await;
        gates[0].release();
        ended(process).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        gates[1].release();
        ended(rival).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        first.catch_up().await.unwrap();
        second.catch_up().await.unwrap();
        assert_eq!(first.checkpoint().seq, second.checkpoint().seq, "{what}");
        assert_shown_once(&engine.feed().await);
    }
    assert_eq!(portion, PORTIONS);
    told.assert_decided(&engine).await;
    engine.close().await;
}
