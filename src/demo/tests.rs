//! The pace of a demo: which streams are read when, and that every service changes within a minute.

use event_log::Stored;
use jiff::civil::date;
use schemas::change::ChangeKind;
use schemas::position::LogOffset;
use schemas::topics::{self, TopicKind};
use tokio::task::JoinSet;

use super::*;
use crate::config::Flags;
use crate::hardening;

/// Proves that a stream is synced on the first day of a demo, and then as often as the settings say; that stories are synced more rarely until the last
/// days; and that each day leaves some streams out.
#[test]
fn streams_are_synced_by_their_schedules() {
    let (dir, empty) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
    let settings = [("HIGHWATER_DATA_DIR", dir.path().to_str().unwrap()), ("HIGHWATER_UPSTREAMS__CPSC__SCHEDULE", "0 0 9 * * MON-FRI")];
    let settings = settings.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    let config = Config::load(Some(empty.path()), settings, &Flags::default()).unwrap();
    // A Friday; the first day is one as well.
    let history = History::load(&config, date(2026, 11, 20));
    let synced: Vec<Vec<&str>> = (0..HISTORY_DAYS).map(|days| history.synced_on(history.first.saturating_add(days.days()))).collect();
    let days_of = |stream: &'static str| -> Vec<usize> {
        synced.iter().enumerate().filter(|(_, streams)| streams.contains(&stream)).map(|(day, _)| day).collect()
    };
    let each_day: Vec<usize> = (0..28).collect();
    assert_eq!((days_of("fsis"), days_of("edgar.current"), days_of("shopify")), (each_day.clone(), each_day.clone(), each_day));
    assert_eq!(days_of("cpsc"), [0, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 17, 18, 19, 20, 21, 24, 25, 26, 27]);
    assert_eq!((days_of("sos.or"), days_of("sos.ia")), (vec![0, 7, 14, 21], vec![0, 10, 20]));
    assert_eq!((days_of("cook.values"), days_of("usaspending.totals")), (vec![0, 14], vec![0]));
    assert_eq!(days_of("hacker_news"), [0, 3, 6, 9, 12, 15, 18, 21, 22, 23, 24, 25, 26, 27]);
    let (first, all) = (synced.first().unwrap(), streams_of(simulator::UPSTREAMS));
    assert!(all.len() > 30 && all.iter().all(|stream| first.contains(stream)), "{first:?}");
    assert!(synced.iter().skip(1).all(|streams| streams.len() < all.len()), "a stream with a rare schedule is synced every day");
}

/// Proves that a changing demo reads recalls most often, other streams in rounds, and whole files only when the day of the upstreams changes.
#[test]
fn whole_files_are_read_once_a_day() {
    let all = streams_of(simulator::UPSTREAMS);
    assert_eq!((due_streams(true, false), due_streams(true, true)), (all.clone(), all));
    let (round, between) = (due_streams(false, true), due_streams(false, false));
    for stream in ["cook.values", "sam_exclusions", "sos.ia", "usaspending.totals"] {
        assert!(!round.contains(&stream), "{stream} is read in each round");
    }
    for stream in [
        "chicago.permits",
        "edgar.current",
        "hacker_news",
        "nih_reporter",
        "shopify",
        "sos.co",
        "usaspending.transactions",
        "uspto_trademarks.annual",
    ] {
        assert!(round.contains(&stream) && !between.contains(&stream), "{stream}");
    }
    assert!(between.len() > 5 && between.iter().all(|stream| round.contains(stream)), "{between:?}");
}

/// How many changes of records each service has, once those that decide from the changes of another service have done so: [`sync`] waits for the others.
/// Changes that feeds leave out, such as the end of a run, are not counted: every run has one.
async fn changes_of_records(engine: &Engine) -> Vec<(&'static str, usize)> {
    for changes in topics::ALL.iter().filter(|topic| topic.kind == TopicKind::Changes) {
        engine.wait_projected(changes).await.unwrap();
    }
    let mut counts = Vec::new();
    for name in services::names() {
        let service = services::defs().iter().find(|service| service.view.name == name).unwrap();
        let logged = engine.log.read(service.changes, 0, LogOffset(0), usize::MAX, usize::MAX).await.unwrap();
        let shown = [ChangeKind::New, ChangeKind::Modified].map(|kind| format!("highwater.{name}.{}", kind.as_str()));
        let is_shown = |stored: &&Stored| {
            stored.record.headers.iter().any(|(header, kind)| header == "ce_type" && shown.iter().any(|shown| shown.as_bytes() == kind))
        };
        counts.push((name, logged.iter().filter(is_shown).count()));
    }
    counts
}

/// Proves that records of each of the services change in each minute of a demo, on a day on which the upstreams' own day does not move. A minute is the
/// rounds of as many steps as the demo makes in one. The other steps, in which only recalls change, and the pauses are left out: with them there is more that
/// changes. A demo that is started again, whose upstreams are made again, continues in the same way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_service_changes_in_each_minute() {
    hardening::raise_descriptor_limit().unwrap();
    let (dir, empty) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let settings = [
        ("HIGHWATER_DATA_DIR", path("data")),
        ("HIGHWATER_CHECKPOINTS__MEMORY", path("memory")),
        // A Saturday, shortly after the beginning of an hour. Only the test moves the clock.
        ("HIGHWATER_CLOCK__FIXED", "2026-11-21T11:00:05Z".to_owned()),
    ];
    let settings = settings.into_iter().map(|(name, value)| (name.to_owned(), value));
    let mut config = Config::load(Some(empty.path()), settings, &Flags::default()).unwrap();
    let today = config.clock().today();
    // A short history, but so long that labels of phrases have something to compare with. On the days between its first and its last one, only stories and
    // stores are synced.
    let first = today.saturating_sub(8.days());
    let daily = [streams_of(&MENTIONS_UPSTREAMS), streams_of(&[STORES_UPSTREAM])].concat();
    let mut scheduled = scheduled(&config, first, today);
    for (_, days) in scheduled.iter_mut().filter(|(stream, _)| !daily.contains(stream)) {
        days.retain(|day| *day == first);
    }
    let history = History { first, next: first, scheduled, ..History::load(&config, today) };
    let simulated_clock = SimulatedClock::new(snapshot_time(first).unwrap(), config.clock());
    config.set_simulated_clock(simulated_clock);
    let (clock, before_start) = (config.clock(), config.clone());
    let simulator = simulated_upstreams(&config, first, 60, 1);
    let (_stop, stopping) = tokio::sync::oneshot::channel::<()>();
    let shutdown = async move { drop(stopping.await) };
    let (bound, serving) = Arc::clone(&simulator).bind(SocketAddr::from(([127, 0, 0, 1], 0)), shutdown).await.unwrap();
    tokio::spawn(serving);
    adapt(&mut config, bound);
    let engine = Engine::open(config, None, Some(Records::Simulated), Role::All).await.unwrap();
    let (projecting, mut tasks) = (engine.start_projector(), JoinSet::new());
    // One of them names the first key of receipts.
    serve::spawn_background_tasks(&mut tasks, &engine, Role::All);
    engine.store.served(&[ENGINE_VIEW.name]).await;
    let day = history.simulate(&engine, &simulator, simulated_clock, true).await;
    assert_eq!(day, today);
    first_signatures::wait_until_signing(&engine).await;

    let mut changing = Changing { engine: Arc::clone(&engine), simulator: Arc::clone(&simulator), clock, day, syncs: 0, appended: 0 };
    for minute in 0..2 {
        let before = changes_of_records(&engine).await;
        for step in (minute * SYNCS_PER_DAY..).take(SYNCS_PER_DAY as usize).filter(|step| (*step + 1).is_multiple_of(SYNCS_PER_ROUND)) {
            simulated_clock.move_to(clock.now().checked_add(SYNC_INTERVAL * SYNCS_PER_ROUND).unwrap());
            changing.syncs = step;
            changing.step().await;
        }
        let after = changes_of_records(&engine).await;
        let unchanged: Vec<&str> = before.iter().zip(&after).filter(|(one, other)| one.1 >= other.1).map(|(one, _)| one.0).collect();
        assert!(unchanged.is_empty() && after.len() > 13, "minute {minute}: no change of {unchanged:?}");
    }
    // The upstreams of a demo that is started again have the rounds of before.
    let again = simulated_upstreams(&before_start, first, 60, 1);
    let list = |simulator: &Simulator| simulator.answer("/api/v1/datasets/products/TRTYRAP", "").unwrap().body;
    assert!(list(&again) == list(&simulator) && !list(&again).is_empty());
    // As a server does that stops: background tasks end.
    engine.context.stopping.send_replace(true);
    engine.close(tasks, projecting).await.unwrap();
}
