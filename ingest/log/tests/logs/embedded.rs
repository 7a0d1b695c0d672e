//! The embedded log: the contract of all logs, and what remains after a restart. Damage to its files is tested in `damage.rs`.

use std::sync::Arc;

use bytes::Bytes;
use event_log::embedded::{EmbeddedLog, Options};
use event_log::volume::{Volume, volume};
use event_log::{Append, Error, EventLog, Headers, Record, contract};
use schemas::position::LogOffset;
use schemas::topics::{self, Topic};
use tempfile::TempDir;

use crate::within;

fn record(i: usize, bytes: usize) -> Record {
    Record {
        key: Bytes::from(format!("key {i}")),
        value: Bytes::from((0..bytes).map(|b| (b * 31 + i) as u8).collect::<Vec<_>>()),
        headers: Headers::new(&[("ce_id", i.to_string().as_bytes())]),
        at_ms: i as i64,
    }
}

fn batch(topic: &'static Topic, count: usize, bytes: usize) -> Vec<Append> {
    (0..count).map(|i| Append { topic, partition: i as u32 % topic.partitions, record: record(i, bytes) }).collect()
}

async fn read_all(log: &EmbeddedLog, topic: &'static Topic, partition: u32, records_max: usize) -> Vec<Record> {
    let mut all = Vec::new();
    loop {
        let page = log.read(topic, partition, LogOffset(all.len() as u64), records_max, usize::MAX).await.unwrap();
        if page.is_empty() {
            return all;
        }
        for stored in page {
            assert_eq!(stored.offset, LogOffset(all.len() as u64));
            all.push(stored.record);
        }
    }
}

/// Proves that the embedded log fulfils the contract, with default limits and with limits so small that all of them are reached.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fulfils_the_contract() {
    let tight = Options {
        record_bytes_max: 1 << 18,
        queue_bytes_max: 1000,
        commit_bytes_max: 500,
        packed_bytes_max: 300,
        packed_records_max: 3,
        ..Options::default()
    };
    for options in [Options::default(), tight] {
        let dirs = TempDir::new().unwrap();
        let opened = std::sync::atomic::AtomicUsize::new(0);
        let make = || {
            let dir = dirs.path().join(opened.fetch_add(1, std::sync::atomic::Ordering::Relaxed).to_string());
            let log: Arc<dyn EventLog> = EmbeddedLog::open(&dir, options.clone()).unwrap();
            async { log }
        };
        contract::run_all(make, options.record_bytes_max).await.unwrap();
        // Once more on a log that already holds records, as a broker's log would.
        let shared: Arc<dyn EventLog> = EmbeddedLog::open(&dirs.path().join("shared"), options.clone()).unwrap();
        contract::run_all(|| async { Arc::clone(&shared) }, options.record_bytes_max).await.unwrap();
    }
}

/// Proves that all acknowledged records are there after the log is dropped without close, repeatedly, and that offsets continue; both with
/// all records in the journal and with write buffers so small that tables are written meanwhile.
#[tokio::test]
async fn reopens_without_close() {
    for options in [Options::default(), Options { memtable_bytes: 100_000, ..Options::default() }] {
        reopen_without_close(options).await;
    }
}

async fn reopen_without_close(options: Options) {
    let dir = TempDir::new().unwrap();
    let mut expected = vec![Vec::new(); topics::RECALLS.partitions as usize];
    for _ in 0..4 {
        let log = EmbeddedLog::open(dir.path(), options.clone()).unwrap();
        for bytes in [10, 3000] {
            let appends = batch(&topics::RECALLS, 1000, bytes);
            let offsets = log.append(appends.clone()).await.unwrap();
            for (append, offset) in appends.into_iter().zip(offsets) {
                let partition = &mut expected[append.partition as usize];
                assert_eq!(offset, LogOffset(partition.len() as u64));
                partition.push(append.record);
            }
        }
        drop(log);
    }
    let log = EmbeddedLog::open(dir.path(), options.clone()).unwrap();
    for (partition, expected) in expected.iter().enumerate() {
        assert!(read_all(&log, &topics::RECALLS, partition as u32, 300).await == *expected);
    }
}

/// Proves that all records are there after close, that reads work until the log is dropped, and that waits then end with an error.
#[tokio::test]
async fn reopens_after_close() {
    let dir = TempDir::new().unwrap();
    let appends = batch(&topics::ACCOUNTS, 3000, 2000);
    let expected: Vec<Record> = appends.iter().map(|append| append.record.clone()).collect();
    let log = EmbeddedLog::open(dir.path(), Options::default()).unwrap();
    log.append(appends).await.unwrap();
    let end = log.end(&topics::ACCOUNTS, 0).await.unwrap();
    let waiting = within("the end of a wait", log.wait_past(&topics::ACCOUNTS, 0, end));
    let (waited, closed) = tokio::join!(waiting, log.close());
    closed.unwrap();
    assert!(matches!(waited, Err(Error::Unavailable { .. })));
    assert!(read_all(&log, &topics::ACCOUNTS, 0, 777).await == expected);
    drop(log);
    let log = EmbeddedLog::open(dir.path(), Options::default()).unwrap();
    assert!(read_all(&log, &topics::ACCOUNTS, 0, 777).await == expected);
}

/// Proves that readers see a batch's records of one partition all at once or not at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_appear_at_once() {
    let dir = TempDir::new().unwrap();
    let log = EmbeddedLog::open(dir.path(), Options { packed_records_max: 7, ..Options::default() }).unwrap();
    let reader = {
        let log = Arc::clone(&log);
        tokio::spawn(async move {
            let mut end = 0;
            while end < 50 * 40 {
                within("a record after those read", log.wait_past(&topics::ACCOUNTS, 0, LogOffset(end))).await.unwrap();
                end = log.end(&topics::ACCOUNTS, 0).await.unwrap().0;
                assert_eq!(end % 40, 0);
                assert_eq!(log.read(&topics::ACCOUNTS, 0, LogOffset(end - 40), 40, usize::MAX).await.unwrap().len(), 40);
            }
        })
    };
    for _ in 0..50 {
        log.append(batch(&topics::ACCOUNTS, 40, 20)).await.unwrap();
    }
    within("the reading of all batches", reader).await.unwrap();
}

/// Proves that a cancelled append leaves the log intact: its batch is there or not, and later batches are there.
#[tokio::test]
async fn appends_can_be_cancelled() {
    let dir = TempDir::new().unwrap();
    let log = EmbeddedLog::open(dir.path(), Options::default()).unwrap();
    for _ in 0..50 {
        let mut append = log.append(batch(&topics::ACCOUNTS, 10, 20));
        tokio::select! {
            biased;
            _ = &mut append => {}
            () = tokio::task::yield_now() => {}
        }
    }
    let offsets = log.append(batch(&topics::ACCOUNTS, 10, 20)).await.unwrap();
    assert_eq!(offsets[0].0 % 10, 0);
    assert_eq!(log.end(&topics::ACCOUNTS, 0).await.unwrap(), offsets[9].next());
    assert_eq!(read_all(&log, &topics::ACCOUNTS, 0, 1000).await.len() as u64, offsets[9].0 + 1);
}

/// Proves that opening the directory twice is refused with a clear error, and works once the first log is dropped.
#[tokio::test]
async fn second_opening_is_refused() {
    let dir = TempDir::new().unwrap();
    let log = EmbeddedLog::open(dir.path(), Options::default()).unwrap();
    let error = EmbeddedLog::open(dir.path(), Options::default()).err().unwrap();
    assert!(matches!(error, Error::Unavailable { source: Some(_), .. }));
    assert!(error.to_string().contains("in use") && error.to_string().contains(&dir.path().display().to_string()), "{error}");
    drop(log);
    EmbeddedLog::open(dir.path(), Options::default()).unwrap();
}

/// Proves that a directory that cannot be used is refused with its path and the cause.
#[test]
fn unusable_directory() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "not a directory").unwrap();
    let error = EmbeddedLog::open(&file, Options::default()).err().unwrap();
    assert!(matches!(error, Error::Unavailable { source: Some(_), .. }));
    assert!(error.to_string().contains(&file.display().to_string()), "{error}");
}

/// Proves that a creation interrupted by a crash, after any of its files, does not prevent the log from opening.
#[tokio::test]
async fn creation_cut_short() {
    for files in [&["lock"][..], &["lock", "0.jnl"], &["lock", "0.jnl", "version"]] {
        let dir = TempDir::new().unwrap();
        std::fs::create_dir_all(dir.path().join("store/keyspaces/0")).unwrap();
        for file in files {
            std::fs::write(dir.path().join("store").join(file), "").unwrap();
        }
        let log = EmbeddedLog::open(dir.path(), Options::default()).unwrap();
        log.append(batch(&topics::ACCOUNTS, 1, 1)).await.unwrap();
    }
}

/// Proves that a topic has files only from its first record on, and that a topic without files is empty.
#[tokio::test]
async fn topics_are_created_with_their_first_record() {
    let dir = TempDir::new().unwrap();
    // The store has one keyspace of its own.
    let topic_count = || std::fs::read_dir(dir.path().join("store/keyspaces")).unwrap().count() - 1;
    let log = EmbeddedLog::open(dir.path(), Options::default()).unwrap();
    assert_eq!((topic_count(), log.end(&topics::AWARDS, 0).await.unwrap()), (0, LogOffset(0)));
    assert_eq!(log.read(&topics::AWARDS, 0, LogOffset(0), 10, 1_000).await.unwrap(), []);
    log.append(batch(&topics::ACCOUNTS, 1, 1)).await.unwrap();
    drop(log);
    let log = EmbeddedLog::open(dir.path(), Options::default()).unwrap();
    assert_eq!((topic_count(), log.end(&topics::AWARDS, 0).await.unwrap()), (1, LogOffset(0)));
    let offsets = log.append(batch(&topics::AWARDS, 3, 1)).await.unwrap();
    log.close().await.unwrap();
    drop(log);
    let log = EmbeddedLog::open(dir.path(), Options::default()).unwrap();
    assert_eq!((topic_count(), offsets.len()), (2, 3));
    let ends = log.ends(&[&topics::ACCOUNTS, &topics::AWARDS]).await.unwrap();
    assert_eq!(ends.concat().iter().map(|end| end.0).sum::<u64>(), 4);
}

/// Proves that a topic whose table cannot be created refuses its records with the reason, and that other topics continue.
#[tokio::test]
async fn topic_that_cannot_be_created() {
    let dir = TempDir::new().unwrap();
    let log = EmbeddedLog::open(dir.path(), Options::default()).unwrap();
    log.append(batch(&topics::ACCOUNTS, 1, 1)).await.unwrap();
    let (tables, aside) = (dir.path().join("store/keyspaces"), dir.path().join("aside"));
    std::fs::rename(&tables, &aside).unwrap();
    std::fs::write(&tables, "not a directory").unwrap();
    let error = log.append(batch(&topics::AWARDS, 1, 1)).await.unwrap_err();
    assert!(error.to_string().contains("nothing was appended") && std::error::Error::source(&error).is_some(), "{error}");
    log.append(batch(&topics::ACCOUNTS, 1, 1)).await.unwrap();
    log.ready().await.unwrap();
    std::fs::remove_file(&tables).unwrap();
    std::fs::rename(&aside, &tables).unwrap();
    log.append(batch(&topics::AWARDS, 1, 1)).await.unwrap();
    assert_eq!(read_all(&log, &topics::AWARDS, 0, 10).await.len(), 1);
}

/// Proves that the size of a small topic is exact, with the part of the last day, that the one of a large topic is within 5 % of the truth, and that few
/// of its records are read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sizes_are_estimated() {
    let dir = TempDir::new().unwrap();
    let log = EmbeddedLog::open(dir.path(), Options::default()).unwrap();
    let day_ms = 86_400_000;
    let bytes_of = |batch: &[Append], since_ms: i64| -> u64 {
        let bytes_of = |record: &Record| (record.key.len() + record.value.len() + "ce_id".len()) as u64;
        let headers = |record: &Record| record.headers.iter().map(|(_, value)| value.len() as u64).sum::<u64>();
        batch.iter().filter(|one| one.record.at_ms > since_ms).map(|one| bytes_of(&one.record) + headers(&one.record)).sum()
    };
    let mut small = batch(&topics::RECALLS, 200, 100);
    for (at, append) in small.iter_mut().enumerate() {
        // One record an hour.
        append.record.at_ms = 1 + at as i64 * day_ms / 24;
    }
    let now_ms = small.last().unwrap().record.at_ms;
    let mut large: Vec<Append> =
        (0..20_000).map(|at| Append { topic: &topics::AWARDS, partition: 0, record: record(at, 50 + at * 119 % 200) }).collect();
    large.iter_mut().for_each(|append| append.record.at_ms = now_ms - 2 * day_ms + append.record.at_ms * day_ms / 10_000);
    log.append(small.clone()).await.unwrap();
    log.append(large.clone()).await.unwrap();

    let known = volume(&*log, &topics::RECALLS, now_ms).await.unwrap();
    assert_eq!(known, Volume { bytes: bytes_of(&small, 0), day_bytes: bytes_of(&small, now_ms - day_ms), sampled: 200 });
    let estimated = volume(&*log, &topics::AWARDS, now_ms).await.unwrap();
    assert!(estimated.sampled <= 512, "{estimated:?}");
    for (bytes, truth) in [(estimated.bytes, bytes_of(&large, 0)), (estimated.day_bytes, bytes_of(&large, now_ms - day_ms))] {
        assert!(bytes.abs_diff(truth) * 20 <= truth, "{bytes} of {truth}");
    }
    assert_eq!(volume(&*log, &topics::GRANTS, now_ms).await.unwrap(), Volume::default());
    log.close().await.unwrap();
}
