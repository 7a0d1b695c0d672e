//! Sync of every simulated stream: all records are read, and the next day brings more.

use std::collections::{BTreeMap, BTreeSet};

use ingest::Outcome;
use jiff::civil::date;
use schemas::clock::Clock;

use crate::engine::{Engine, SimulatedUpstreams, fixed_clock, upstream_names};

/// The streams whose records change only from day to day.
const DAILY: &[&str] = &[
    "clinical_trials",
    "edgar.current",
    "edgar.index",
    "edgar.ownership",
    "nih_reporter",
    "usaspending.awards",
    "usaspending.details",
    "usaspending.transactions",
];

/// Upstreams of which every stream has records on the first day.
const FILLED: &[&str] = &["allegheny", "chicago", "cook", "fmcsa", "hacker_news", "sam_exclusions", "sos", "uspto_trademarks", "wikimedia"];

/// The stream that reads a file of the operator, which is not simulated: its runs finish without a record.
const WITHOUT_FILE: &str = "cook.ptaxsim";

/// Returns how many records each stream saw and appended. None may be rejected.
fn counts(outcomes: Vec<Outcome>) -> BTreeMap<&'static str, (i64, i64)> {
    let own = |outcome: Outcome| {
        assert_eq!(outcome.run.rejected, 0, "{outcome:?}");
        (outcome.stream, (outcome.run.seen, outcome.run.appended))
    };
    outcomes.into_iter().map(own).collect()
}

/// Proves that all simulated records are read without an error or a rejected record, that a second sync on the same day finds nothing new,
/// and that the next business day brings new records in every daily stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_simulated_stream_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::without_bad_files(21, 300, fixed_clock()).await;
    let engine = Engine::open_with(dir.path(), fixed_clock(), &["recalls"]).await;
    let first = counts(engine.run_all(&simulated.settings()).await);
    let streams = upstream_names().into_iter().flat_map(|name| upstreams::by_name(name).unwrap().manifest().streams);
    assert_eq!(first.keys().copied().collect::<BTreeSet<_>>(), streams.map(|stream| stream.name).collect());
    for upstream in FILLED {
        let streams = upstreams::by_name(upstream).unwrap().manifest().streams.iter();
        for stream in streams.filter(|stream| stream.name != WITHOUT_FILE) {
            assert!(first[stream.name].0 > 0 && first[stream.name].1 > 0, "{}: {:?}", stream.name, first[stream.name]);
        }
    }
    assert_eq!(first[WITHOUT_FILE], (0, 0));
    for stream in DAILY {
        assert!(first[stream].0 > 0 && first[stream].1 > 0, "{stream}: {:?}", first[stream]);
    }
    let second = counts(engine.run_all(&simulated.settings()).await);
    assert!(second.values().all(|(_, appended)| *appended == 0), "{second:?}");
    engine.close().await;

    // From a Friday to the next Monday.
    simulated.sim.set_today(date(2026, 11, 23));
    let engine = Engine::open_with(dir.path(), Clock::Fixed("2026-11-23T12:00:00Z".parse().unwrap()), &["recalls"]).await;
    let third = counts(engine.run_all(&simulated.settings()).await);
    for stream in DAILY {
        assert!(third[stream].1 > 0, "{stream}: {:?}", third[stream]);
    }
    assert!(engine.export("rejected", true).await.is_empty());
    engine.close().await;
}
