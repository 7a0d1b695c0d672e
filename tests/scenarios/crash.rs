//! Kills at random points (`kill -9`) while a changing upstream is read: the log opens, nothing that was answered is lost, nothing is
//! duplicated.
//!
//! `KILL_ROUNDS=200 cargo test --test scenarios crash` runs 200 rounds; `KILL_SEED` repeats the random choices of an earlier run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use schemas::clock::Clock;
use simulator::Simulator;

use crate::engine::{Engine, RECALL_UPSTREAMS, SimulatedUpstreams, fixed_clock, moving_clock};
use crate::expected_changes::Expected;
use crate::migration::COMPARED;
use crate::process::{Server, fix_clock, highwater, stdout, wait_for};
use crate::random::{self, Random};
use crate::reader::Reader;

/// How often a process is killed by default.
const ROUNDS: usize = 6;
/// Seeds with which [`kills_lose_and_duplicate_nothing`] failed once. Each run has the kills of these as well; with six of them, it takes about a minute.
const FAILED_ONCE: [u64; 2] = [1_795_205_081_694, 1_795_216_271_828];
/// The seed of [`two_kills_lose_and_duplicate_nothing`]: both kills come in the middle of the syncs, and the first syncs are finished between them.
const TWO_KILLS_SEED: u64 = 44;

/// How often the process is killed, and what it reads.
struct Kills {
    rounds: usize,
    seed: u64,
    records: u64,
    upstreams: Vec<&'static str>,
    clock: Clock,
    moment: Moment,
}

/// When the process is killed.
#[derive(Clone, Copy)]
enum Moment {
    /// Within about two seconds after its start.
    Time,
    /// After the upstreams have answered up to this many requests, so that the speed of the machine does not matter.
    Answers(u64),
}

impl Moment {
    /// Draws when a process that has just been started is killed. The result says whether it is time.
    fn draw(self, random: &mut Random, sim: &Arc<Simulator>) -> impl Fn() -> bool + use<> {
        let (started, sim, before) = (Instant::now(), Arc::clone(sim), sim.stats().requests);
        let drawn = match self {
            Self::Time => 50 + random.below(2_200),
            Self::Answers(answers_max) => 1 + random.below(answers_max),
        };
        move || match self {
            Self::Time => started.elapsed() >= Duration::from_millis(drawn),
            Self::Answers(_) => sim.stats().requests >= before + drawn,
        }
    }
}

/// Proves that kills at random points lose no acknowledged data and duplicate nothing: keys and cursors stay valid, every chain is
/// complete, and at the end facts and feed equal the expected changes of a simulator that changed only between finished runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_lose_and_duplicate_nothing() {
    let rounds = random::number("KILL_ROUNDS").map_or(ROUNDS, |rounds| usize::try_from(rounds).unwrap());
    println!("KILL_ROUNDS={rounds}");
    let drawn = (random::seed("KILL_SEED", 1), rounds);
    for (seed, rounds) in [drawn].into_iter().chain(FAILED_ONCE.map(|seed| (seed, ROUNDS))) {
        println!("{rounds} kills with the seed {seed}");
        let (upstreams, clock, moment) = (COMPARED.to_vec(), moving_clock(), Moment::Time);
        assert_nothing_is_lost(Kills { rounds, seed, records: 500, upstreams, clock, moment }).await;
    }
}

/// Proves the same as [`kills_lose_and_duplicate_nothing`] with two kills while recalls are read: one during the first syncs, one after the upstreams
/// have changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_kills_lose_and_duplicate_nothing() {
    let upstreams = RECALL_UPSTREAMS.to_vec();
    assert_nothing_is_lost(Kills {
        rounds: 2,
        seed: TWO_KILLS_SEED,
        records: 300,
        upstreams,
        clock: fixed_clock(),
        moment: Moment::Answers(40),
    })
    .await;
}

async fn assert_nothing_is_lost(kills: Kills) {
    let Kills { rounds, seed, records, upstreams, clock, moment } = kills;
    let mut random = Random(seed);
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let simulated = SimulatedUpstreams::start(seed % 1_000, records, clock).await;
    let serve = || {
        let mut command = highwater(&data, &simulated.base_url, &["serve"]);
        if let Clock::Fixed(at) = clock {
            fix_clock(&mut command, &at.to_string());
        }
        for name in &upstreams {
            command.env(format!("HIGHWATER_UPSTREAMS__{}__SCHEDULE", name.to_uppercase()), "* * * * * *");
        }
        command
    };
    let key = stdout(highwater(&data, &simulated.base_url, &["keys", "mint", "--tier", "fleet_plus"])).trim().to_owned();
    let (mut expected, mut reader, mut advanced) = (None::<Expected>, Reader::default(), 0);
    for round in 1..=rounds {
        let server = Server::start(serve());
        let is_over = moment.draw(&mut random, &simulated.sim);
        wait_for("the time to kill the process", || {
            // Reads the feed while it grows.
            reader.step(&server, &key);
            is_over().then_some(())
        });
        assert_eq!(
            server.get("/recalls/v1/changes?limit=1", &key).map_or(200, |(status, _)| if status == 503 { 200 } else { status }),
            200,
            "the key is refused"
        );
        server.kill();

        // The log opens and holds everything that was read before the kill.
        let engine = Engine::open_with(&data, clock, &["recalls"]).await;
        engine.wait_projected().await;
        crate::engine::assert_chained(&engine.facts().await);
        let feed = engine.feed().await;
        assert!(
            feed.len() >= reader.read.len() && feed[..reader.read.len()] == reader.read,
            "round {round}: changes that were answered are missing"
        );
        // Every other time the process is killed again before the interrupted run is finished.
        if random.below(2) == 0 || round == rounds {
            engine.run_some(&upstreams, &simulated.settings()).await;
            engine.run_some(&upstreams, &simulated.settings()).await;
            match &mut expected {
                None => expected = Some(Expected::at_first(simulated.sim.current(None))),
                Some(expected) => {
                    let entries = simulated.sim.expected_changes_after(advanced);
                    advanced += entries.len() as u64;
                    expected.take(round, entries);
                }
            }
            simulated.sim.advance(8);
        }
        engine.close().await;
    }
    // The changes since the last finished run.
    let engine = Engine::open_with(&data, clock, &["recalls"]).await;
    engine.run_some(&upstreams, &simulated.settings()).await;
    engine.run_some(&upstreams, &simulated.settings()).await;
    let mut expected = expected.unwrap();
    expected.take(usize::MAX, simulated.sim.expected_changes_after(advanced));
    expected.assert_facts(&engine.facts().await);
    let feed = engine.feed().await;
    expected.assert_feed(&feed, &[]);
    let logged = engine.changes().await;
    assert!(
        logged.iter().map(|change| (&change["seq"], &change["record"])).eq(feed.iter().map(|change| (&change["seq"], &change["record"])))
    );
    engine.close().await;

    let server = Server::ready(serve());
    reader.read_on(&server, &key);
    assert_eq!(reader.read, feed, "the feed by cursor, across all kills, differs");
    assert_eq!(server.terminate().code(), Some(0));
}
