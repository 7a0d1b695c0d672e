//! Kills at random points (`kill -9`) while a changing upstream is read: the log opens, nothing that was answered is lost, nothing is
//! duplicated.
//!
//! `KILL_ROUNDS=200 cargo test --test scenarios crash` runs 200 rounds; `KILL_SEED` repeats the random choices of an earlier run.

use std::time::{Duration, Instant};

use schemas::clock::Clock;

use crate::engine::{Engine, SimulatedUpstreams};
use crate::expected_changes::Expected;
use crate::process::{Server, highwater, stdout};
use crate::random::{self, Random};
use crate::reader::Reader;

/// Proves that kills at random points lose no acknowledged data and duplicate nothing: keys and cursors stay valid, every chain is
/// complete, and at the end facts and feed equal the expected changes of a simulator that changed only between finished runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_lose_and_duplicate_nothing() {
    let rounds = random::number("KILL_ROUNDS").unwrap_or(6);
    let seed = random::seed("KILL_SEED", 1);
    println!("KILL_ROUNDS={rounds}");
    let mut random = Random(seed);
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let simulated = SimulatedUpstreams::start(seed % 1_000, 500, Clock::System).await;
    let serve = || {
        let mut command = highwater(&data, &simulated.base_url, &["serve"]);
        for name in crate::engine::upstream_names() {
            command.env(format!("HIGHWATER_UPSTREAMS__{}__SCHEDULE", name.to_uppercase()), "* * * * * *");
        }
        command
    };
    let key = stdout(highwater(&data, &simulated.base_url, &["keys", "mint", "--tier", "fleet_plus"])).trim().to_owned();
    let (mut expected, mut reader, mut advanced) = (None::<Expected>, Reader::default(), 0);
    for round in 1..=usize::try_from(rounds).unwrap() {
        let server = Server::start(serve());
        let life = Duration::from_millis(50 + random.below(2_200));
        let started = Instant::now();
        while started.elapsed() < life {
            if reader.step(&server, &key) != Some(true) {
                // Reads the feed while it grows.
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        assert_eq!(
            server.get("/recalls/v1/changes?limit=1", &key).map_or(200, |(status, _)| if status == 503 { 200 } else { status }),
            200,
            "the key is refused"
        );
        server.kill();

        // The log opens and holds everything that was read before the kill.
        let engine = Engine::open(&data, Clock::System).await;
        engine.wait_projected().await;
        crate::engine::assert_chained(&engine.facts().await);
        let feed = engine.feed().await;
        assert!(
            feed.len() >= reader.read.len() && feed[..reader.read.len()] == reader.read,
            "round {round}: changes that were answered are missing"
        );
        // Every other time the process is killed again before the interrupted run is finished.
        if random.below(2) == 0 || round == usize::try_from(rounds).unwrap() {
            engine.run_all(&simulated.settings()).await;
            engine.run_all(&simulated.settings()).await;
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
    let engine = Engine::open(&data, Clock::System).await;
    engine.run_all(&simulated.settings()).await;
    engine.run_all(&simulated.settings()).await;
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
