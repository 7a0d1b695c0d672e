//! `kill -9` at points of chance while a changing upstream is read: the log opens, nothing that was answered is lost, nothing comes twice.
//!
//! `KILL_ROUNDS=200 cargo test --test scenarios crash` runs as many rounds; `KILL_SEED` repeats a run.

use std::time::{Duration, Instant};

use schemas::clock::Clock;

use crate::account::Expected;
use crate::chance::{self, Chance};
use crate::engine::{Engine, Played};
use crate::process::{Server, highwater, stdout};
use crate::reader::Reader;

/// Proves that kills at points of chance lose nothing that was answered for and repeat nothing: keys go on working, cursors go on, every
/// chain is whole, and at the end facts and feed equal the account of a simulator that changed only between finished runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_lose_and_repeat_nothing() {
    let rounds = chance::number("KILL_ROUNDS").unwrap_or(6);
    let seed = chance::seed("KILL_SEED");
    println!("KILL_ROUNDS={rounds} KILL_SEED={seed}");
    let mut chance = Chance(seed);
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let played = Played::start(seed % 1_000, 500, Clock::System).await;
    let serve = || {
        let mut command = highwater(&data, &played.base_url, &["serve"]);
        for name in crate::engine::upstream_names() {
            command.env(format!("HIGHWATER_UPSTREAMS__{}__SCHEDULE", name.to_uppercase()), "* * * * * *");
        }
        command
    };
    let key = stdout(highwater(&data, &played.base_url, &["keys", "mint", "--tier", "fleet_plus"])).trim().to_owned();
    let (mut expected, mut reader, mut advanced) = (None::<Expected>, Reader::default(), 0);
    for round in 1..=usize::try_from(rounds).unwrap() {
        let server = Server::start(serve());
        let life = Duration::from_millis(50 + chance.below(2_200));
        let begun = Instant::now();
        while begun.elapsed() < life {
            if reader.step(&server, &key) != Some(true) {
                // What is answered is read as it comes.
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        assert_eq!(
            server.get("/recalls/v1/changes?limit=1", &key).map_or(200, |(status, _)| if status == 503 { 200 } else { status }),
            200,
            "the key works"
        );
        server.kill();

        // The log opens, and holds what was read before the kill.
        let engine = Engine::open(&data, Clock::System).await;
        engine.projected().await;
        crate::engine::assert_chained(&engine.facts().await);
        let feed = engine.feed().await;
        assert!(feed.len() >= reader.read.len() && feed[..reader.read.len()] == reader.read, "round {round}: what was answered stays");
        // Every other time it is killed again before the run it cut is finished.
        if chance.below(2) == 0 || round == usize::try_from(rounds).unwrap() {
            engine.run_all(&played.settings()).await;
            engine.run_all(&played.settings()).await;
            match &mut expected {
                None => expected = Some(Expected::at_first(played.sim.current(None))),
                Some(expected) => {
                    let entries = played.sim.expected_changes_after(advanced);
                    advanced += entries.len() as u64;
                    expected.take(round, entries);
                }
            }
            played.sim.advance(8);
        }
        engine.close().await;
    }
    // The changes since the last finished run.
    let engine = Engine::open(&data, Clock::System).await;
    engine.run_all(&played.settings()).await;
    engine.run_all(&played.settings()).await;
    let mut expected = expected.unwrap();
    expected.take(usize::MAX, played.sim.expected_changes_after(advanced));
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
    assert_eq!(reader.read, feed, "the feed by cursor, over all kills");
    assert_eq!(server.terminate().code(), Some(0));
}
