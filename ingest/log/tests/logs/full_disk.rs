//! The embedded log on a disk that fills up: appends pause and continue without a restart, and reads are answered meanwhile.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use disk_files::space::{Limits, SpaceWatch};
use engines::SmallDisk;
use event_log::embedded::{EmbeddedLog, Options};
use event_log::{Append, EventLog, Record};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use schemas::position::LogOffset;
use schemas::topics::{ACCOUNTS, RECALLS, Topic};

use crate::within;

const MIB: u64 = 1024 * 1024;
const LIMITS: Limits = Limits { reserve_bytes: 4 * MIB, low_bytes: 8 * MIB };
const POLL_INTERVAL: Duration = Duration::from_millis(20);

fn open(dir: &Path, space: SpaceWatch) -> Arc<EmbeddedLog> {
    EmbeddedLog::open(&dir.join("log"), Options { space: Some(Arc::new(space)), ..Options::default() }).unwrap()
}

/// Returns a small disk, whether its free space is measured right, and a log on it.
fn on_small_disk(test: &str) -> Option<(SmallDisk, Arc<AtomicBool>, Arc<EmbeddedLog>)> {
    let disk = engines::or_skip(SmallDisk::mount(32), test)?;
    let is_honest = Arc::new(AtomicBool::new(true));
    let log = open(disk.path(), SpaceWatch::measured(disk.path(), LIMITS, SmallDisk::measuring(&is_honest)));
    Some((disk, is_honest, log))
}

fn record(number: u64) -> Vec<Append> {
    record_of(&ACCOUNTS, number)
}

/// A record of 64 KiB that begins with its number. The rest is random, because compressed it would take no space.
fn record_of(topic: &'static Topic, number: u64) -> Vec<Append> {
    let mut value = vec![0; 65_536];
    StdRng::seed_from_u64(number).fill(&mut value[8..]);
    value[..8].copy_from_slice(&number.to_be_bytes());
    vec![Append { topic, partition: 0, record: Record { value: Bytes::from(value), at_ms: 1, ..Record::default() } }]
}

async fn wait_until_ready(log: &EmbeddedLog) {
    let ready = async {
        while log.ready().await.is_err() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    within("readiness of the log", ready).await;
}

/// Returns the numbers of all records.
async fn numbers(log: &EmbeddedLog) -> Vec<u64> {
    let mut all = Vec::new();
    loop {
        let page = log.read(&ACCOUNTS, 0, LogOffset(all.len() as u64), 100, usize::MAX).await.unwrap();
        if page.is_empty() {
            return all;
        }
        all.extend(page.iter().map(|stored| u64::from_be_bytes(stored.record.value[..8].try_into().unwrap())));
    }
}

/// Proves that appends fail while less space is free than writers need, that reads and waits continue, and that appends continue by themselves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_pause_before_the_disk_is_full() {
    let dir = tempfile::tempdir().unwrap();
    let free = Arc::new(AtomicU64::new(100 * MIB));
    let measured = Arc::clone(&free);
    let log = open(dir.path(), SpaceWatch::measured(dir.path(), LIMITS, move |_| Ok(measured.load(Ordering::Relaxed))));
    log.append(record(1)).await.unwrap();
    let waiting = tokio::spawn({
        let log = Arc::clone(&log);
        async move { log.wait_past(&ACCOUNTS, 0, LogOffset(1)).await }
    });
    free.store(MIB / 2, Ordering::Relaxed);
    for _ in 0..2 {
        let error = log.append(record(2)).await.unwrap_err();
        let reason = schemas::reason::reason(&error);
        assert!(reason.contains("until the disk has space") && reason.contains("MiB are free"), "{reason}");
    }
    log.ready().await.unwrap_err();
    assert_eq!(numbers(&log).await, [1]);
    assert!(!waiting.is_finished(), "a full disk is no reason to wake those who wait");
    free.store(100 * MIB, Ordering::Relaxed);
    wait_until_ready(&log).await;
    log.append(record(3)).await.unwrap();
    within("waking a waiting reader", waiting).await.unwrap().unwrap();
    assert_eq!(numbers(&log).await, [1, 3]);
    log.close().await.unwrap();
}

/// Proves on a small file system that a commit which meets a full disk loses nothing that was acknowledged, that reads are answered while the disk is full,
/// and that the log accepts records again when there is space, in the same process and several times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_that_meet_a_full_disk() {
    let Some((disk, is_honest, log)) = on_small_disk("the log on a small file system") else { return };
    let (mut next, mut acknowledged) = (0, Vec::new());
    for round in 0..3 {
        log.append(record(next)).await.unwrap();
        acknowledged.push(next);
        is_honest.store(false, Ordering::Relaxed);
        disk.fill().unwrap();
        let error = loop {
            next += 1;
            match log.append(record(next)).await {
                Ok(_) => acknowledged.push(next),
                Err(error) => break error,
            }
        };
        is_honest.store(true, Ordering::Relaxed);
        assert!(schemas::reason::reason(&error).contains("until the disk has space"), "round {round}: {error}");
        log.append(record(next)).await.unwrap_err();
        assert!(numbers(&log).await.starts_with(&acknowledged), "reads are answered while the disk is full");
        disk.free().unwrap();
        wait_until_ready(&log).await;
        // The record that failed may be durable.
        let found = numbers(&log).await;
        assert!(found == acknowledged || (found.starts_with(&acknowledged) && found.ends_with(&[next])), "round {round}: {found:?}");
        acknowledged = found;
        next += 1;
    }
    log.append(record(next)).await.unwrap();
    acknowledged.push(next);
    log.close().await.unwrap();
    drop(log);
    let log = open(disk.path(), SpaceWatch::open(disk.path(), LIMITS));
    assert_eq!(numbers(&log).await, acknowledged);
}

/// Proves on a small file system that the first record of a topic, whose table cannot be created because the disk is full, is appended when there is space.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn topics_that_begin_on_a_full_disk() {
    let Some((disk, is_honest, log)) = on_small_disk("a new topic on a small file system") else { return };
    log.append(record(1)).await.unwrap();
    is_honest.store(false, Ordering::Relaxed);
    disk.fill().unwrap();
    let error = log.append(record_of(&RECALLS, 2)).await.unwrap_err();
    is_honest.store(true, Ordering::Relaxed);
    assert!(schemas::reason::reason(&error).contains("until the disk has space"), "{error}");
    disk.free().unwrap();
    wait_until_ready(&log).await;
    log.append(record_of(&RECALLS, 3)).await.unwrap();
    let found = log.read(&RECALLS, 0, LogOffset(0), 10, usize::MAX).await.unwrap();
    assert_eq!((numbers(&log).await, found.len()), (vec![1], 1));
    log.close().await.unwrap();
    drop(log);
    let log = open(disk.path(), SpaceWatch::open(disk.path(), LIMITS));
    assert_eq!(log.read(&RECALLS, 0, LogOffset(0), 10, usize::MAX).await.unwrap(), found);
}
