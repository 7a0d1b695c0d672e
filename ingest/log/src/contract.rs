//! The behaviour that every log must have, as checks that any implementation can run: `run_all(|| async { log }, limit).await?`.
//!
//! The log may already hold records (a broker outlives its tests), so each check starts at the current ends; nothing else may append during
//! the checks. Chaining and duplicates are not checked here: a log does not interpret its records.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use schemas::position::LogOffset;
use schemas::topics::{self, Topic};

use crate::{Append, Error, EventLog, Headers, Record, Stored};

/// A topic with several partitions, and one with a single partition.
const WIDE: &Topic = &topics::RECALLS;
const NARROW: &Topic = &topics::ACCOUNTS;
/// A wait that takes longer than this is treated as one that never ends.
const WAIT_MAX: Duration = Duration::from_secs(300);
const BYTES_MAX: usize = 1 << 30;

/// A check that failed.
#[derive(Debug, thiserror::Error)]
#[error("log contract, {check}: {reason}")]
pub struct Failure {
    /// The name of the check.
    pub check: &'static str,
    /// What was wrong.
    pub reason: String,
}

type Outcome = Result<(), String>;
type Log = Arc<dyn EventLog>;

macro_rules! ensure {
    ($holds:expr, $($words:tt)+) => {
        if !$holds {
            return Err(format!($($words)+));
        }
    };
}

/// Runs all checks one after another, each on a log that `make` opens. The log must have the topics [`topics::ALL`] and refuse records of
/// more than `record_bytes_max` bytes.
///
/// # Errors
/// The first check that failed.
pub async fn run_all<Made: Future<Output = Log>>(make: impl Fn() -> Made, record_bytes_max: usize) -> Result<(), Failure> {
    let named = |check| move |reason| Failure { check, reason };
    offsets_rise(make().await).await.map_err(named("offsets rise in the batch's order"))?;
    acknowledged_is_readable(make().await).await.map_err(named("what was answered can be read at once, in all partitions"))?;
    reads_are_limited(make().await).await.map_err(named("reads keep to their limits"))?;
    end_is_empty(make().await).await.map_err(named("a read at or past the end is empty"))?;
    bytes_come_back(make().await).await.map_err(named("keys, values, headers and times come back byte for byte"))?;
    last_time(make().await).await.map_err(named("the latest time of the last records is known"))?;
    waiting_wakes(make().await).await.map_err(named("waiting wakes and misses nothing"))?;
    waiting_is_cancel_safe(make().await).await.map_err(named("a wait that is dropped harms nothing"))?;
    concurrent_appends(make().await).await.map_err(named("concurrent appenders lose nothing and keep their order"))?;
    no_such_partition(make().await).await.map_err(named("a partition that does not exist is refused"))?;
    too_large(make().await, record_bytes_max).await.map_err(named("a record over the limit is refused with its batch"))?;
    close_twice(make().await).await.map_err(named("close can be called again, and ends appending"))
}

fn words(error: Error) -> String {
    format!("unexpected error: {error}")
}

fn record(name: &str) -> Record {
    Record {
        key: Bytes::from(name.to_owned()),
        value: Bytes::from(format!("value of {name}")),
        headers: Headers::default(),
        at_ms: 1_700_000_000_000,
    }
}

fn to(topic: &'static Topic, partition: u32, record: Record) -> Append {
    Append { topic, partition, record }
}

/// Reads from `from` until the log returns no more records.
async fn read_to_end(log: &Log, topic: &'static Topic, partition: u32, mut from: LogOffset) -> Result<Vec<Stored>, String> {
    let mut all: Vec<Stored> = Vec::new();
    loop {
        let page = log.read(topic, partition, from, 100, BYTES_MAX).await.map_err(words)?;
        let Some(last) = page.last() else { return Ok(all) };
        ensure!(last.offset >= from, "a read from {from:?} answered offset {:?}", last.offset);
        from = last.offset.next();
        all.extend(page);
    }
}

async fn offsets_rise(log: Log) -> Outcome {
    let mut last = None;
    for round in 0..5 {
        let batch: Vec<Append> = (0..20).map(|i| to(NARROW, 0, record(&format!("{round}-{i}")))).collect();
        let before = log.end(NARROW, 0).await.map_err(words)?;
        let offsets = log.append(batch.clone()).await.map_err(words)?;
        ensure!(offsets.len() == batch.len(), "{} offsets for {} records", offsets.len(), batch.len());
        for offset in &offsets {
            ensure!(last.is_none_or(|last| last < *offset), "{offset:?} follows {last:?}");
            ensure!(*offset >= before, "{offset:?} is before the end {before:?}");
            last = Some(*offset);
        }
        for (append, offset) in batch.iter().zip(&offsets) {
            let page = log.read(NARROW, 0, *offset, 1, BYTES_MAX).await.map_err(words)?;
            ensure!(page.len() == 1, "a read of one record answered {}", page.len());
            ensure!(
                page.iter().all(|stored| stored.offset == *offset && stored.record == append.record),
                "another record is at {offset:?}"
            );
        }
    }
    let none = log.append(Vec::new()).await.map_err(words)?;
    ensure!(none.is_empty(), "an empty batch got offsets");
    Ok(())
}

async fn acknowledged_is_readable(log: Log) -> Outcome {
    let mut ends = Vec::new();
    for partition in 0..WIDE.partitions {
        ends.push(log.end(WIDE, partition).await.map_err(words)?);
    }
    let narrow_end = log.end(NARROW, 0).await.map_err(words)?;
    // The partitions are mixed within the batch, so that the order of the batch differs from the order within each partition.
    let batch: Vec<Append> = (0..103)
        .map(|i| {
            if i % 7 == 3 { to(NARROW, 0, record(&format!("n{i}"))) } else { to(WIDE, (i * 5) % WIDE.partitions, record(&format!("w{i}"))) }
        })
        .collect();
    let offsets = log.append(batch.clone()).await.map_err(words)?;
    ensure!(offsets.len() == batch.len(), "{} offsets for {} records", offsets.len(), batch.len());
    let places = ends.iter().enumerate().map(|(partition, end)| (WIDE, partition as u32, *end)).chain([(NARROW, 0, narrow_end)]);
    for (topic, partition, from) in places {
        let expected: Vec<Stored> = batch
            .iter()
            .zip(&offsets)
            .filter(|(append, _)| append.topic.name == topic.name && append.partition == partition)
            .map(|(append, offset)| Stored { offset: *offset, record: append.record.clone() })
            .collect();
        let found = read_to_end(&log, topic, partition, from).await?;
        ensure!(found == expected, "{}/{partition} holds {} records, not the {} appended", topic.name, found.len(), expected.len());
        let end = log.end(topic, partition).await.map_err(words)?;
        ensure!(expected.last().is_none_or(|last| last.offset < end), "the end {end:?} is not past the last record");
    }
    Ok(())
}

async fn reads_are_limited(log: Log) -> Outcome {
    let from = log.end(NARROW, 0).await.map_err(words)?;
    let value = Bytes::from(vec![7; 990]);
    let batch = (0..50)
        .map(|_| to(NARROW, 0, Record { key: Bytes::from_static(b"0123456789"), value: value.clone(), ..Record::default() }))
        .collect();
    log.append(batch).await.map_err(words)?;
    for (records_max, bytes_max, least, most) in [
        (7, BYTES_MAX, 7, 7),
        (1, BYTES_MAX, 1, 1),
        (50, BYTES_MAX, 50, 50),
        (50, 10_000, 10, 11),
        (50, 1, 1, 1),
        (1, 1, 1, 1),
        (3, 10_000, 3, 3),
    ] {
        let found = log.read(NARROW, 0, from, records_max, bytes_max).await.map_err(words)?.len();
        ensure!((least..=most).contains(&found), "a read of at most {records_max} records and {bytes_max} bytes answered {found}");
    }
    // Pages join without a gap or a duplicate.
    let whole = read_to_end(&log, NARROW, 0, from).await?;
    let mut paged = Vec::new();
    let mut at = from;
    while let Some(last) = {
        let page = log.read(NARROW, 0, at, 3, BYTES_MAX).await.map_err(words)?;
        let last = page.last().map(|stored| stored.offset);
        paged.extend(page);
        last
    } {
        at = last.next();
    }
    ensure!(paged == whole && whole.len() == 50, "pages of 3 answered {} records, a whole read {}", paged.len(), whole.len());
    Ok(())
}

async fn end_is_empty(log: Log) -> Outcome {
    log.append(vec![to(NARROW, 0, record("one"))]).await.map_err(words)?;
    let end = log.end(NARROW, 0).await.map_err(words)?;
    for from in [end, end.next(), LogOffset(end.0 + 1_000_000)] {
        let found = log.read(NARROW, 0, from, 10, BYTES_MAX).await.map_err(words)?.len();
        ensure!(found == 0, "a read from {from:?}, with the end at {end:?}, answered {found}");
    }
    Ok(())
}

async fn bytes_come_back(log: Log) -> Outcome {
    let from = log.end(NARROW, 0).await.map_err(words)?;
    let all_bytes: Vec<u8> = (0..=255).collect();
    let records = [
        Record { at_ms: 1_700_000_000_123, ..Record::default() },
        Record { key: Bytes::from_static(b"k"), at_ms: 1, ..Record::default() },
        Record { value: Bytes::from_static(b"v"), at_ms: 1, ..Record::default() },
        Record {
            key: Bytes::from(all_bytes.clone()),
            value: Bytes::from(all_bytes.repeat(257)),
            headers: Headers::new(&[("all", &all_bytes)]),
            at_ms: 253_402_300_799_999,
        },
        Record {
            headers: Headers::new(&[("ce_id", b"1"), ("ce_empty", b""), ("ce_id", b"twice"), ("größe", "名前".as_bytes())]),
            ..record("headers")
        },
        Record { value: Bytes::from(vec![0; 200_000]), ..record("zeros") },
    ];
    log.append(records.iter().map(|record| to(NARROW, 0, record.clone())).collect()).await.map_err(words)?;
    let found = read_to_end(&log, NARROW, 0, from).await?;
    ensure!(found.len() == records.len(), "{} records came back, not {}", found.len(), records.len());
    for (index, (found, appended)) in found.iter().zip(&records).enumerate() {
        ensure!(found.record == *appended, "record {index} came back changed");
    }
    Ok(())
}

async fn last_time(log: Log) -> Outcome {
    let before = log.last_at_ms().await.map_err(words)?;
    let at = |at_ms| Record { at_ms, ..record("last") };
    log.append(vec![to(WIDE, 1, at(before + 2)), to(NARROW, 0, at(before + 1))]).await.map_err(words)?;
    let after = log.last_at_ms().await.map_err(words)?;
    ensure!(after == before + 2, "{after} follows {before}");
    Ok(())
}

async fn waiting_wakes(log: Log) -> Outcome {
    for round in 0..50_u32 {
        let end = log.end(NARROW, 0).await.map_err(words)?;
        // Some wait before the append starts, some during it, some after it.
        let waiters: Vec<_> = (0..4)
            .map(|_| {
                let log = Arc::clone(&log);
                tokio::spawn(async move { log.wait_past(NARROW, 0, end).await })
            })
            .collect();
        if round % 2 == 0 {
            tokio::task::yield_now().await;
        }
        log.append(vec![to(NARROW, 0, record("wake"))]).await.map_err(words)?;
        for waiter in waiters {
            let woken =
                tokio::time::timeout(WAIT_MAX, waiter).await.map_err(|_| format!("a wait past {end:?} did not end in round {round}"))?;
            woken.map_err(|error| format!("a waiter died: {error}"))?.map_err(words)?;
        }
        let late = tokio::time::timeout(WAIT_MAX, log.wait_past(NARROW, 0, end)).await;
        late.map_err(|_| "a wait past an end that is passed did not end".to_owned())?.map_err(words)?;
    }
    Ok(())
}

async fn waiting_is_cancel_safe(log: Log) -> Outcome {
    let end = log.end(NARROW, 0).await.map_err(words)?;
    for _ in 0..10 {
        tokio::select! {
            biased;
            _ = log.wait_past(NARROW, 0, end) => return Err(format!("a wait past {end:?} ended without an append")),
            () = tokio::task::yield_now() => {}
        }
    }
    // An append to another partition must not end this wait.
    log.append(vec![to(WIDE, 1, record("elsewhere"))]).await.map_err(words)?;
    let mut wait = log.wait_past(NARROW, 0, end);
    tokio::select! {
        biased;
        _ = &mut wait => return Err("an append to another partition ended the wait".to_owned()),
        () = tokio::task::yield_now() => {}
    }
    log.append(vec![to(NARROW, 0, record("here"))]).await.map_err(words)?;
    tokio::time::timeout(WAIT_MAX, wait).await.map_err(|_| "the wait did not end".to_owned())?.map_err(words)
}

async fn concurrent_appends(log: Log) -> Outcome {
    const APPENDERS: usize = 8;
    const BATCHES: usize = 25;
    let mut froms = Vec::new();
    for partition in 0..WIDE.partitions {
        froms.push(log.end(WIDE, partition).await.map_err(words)?);
    }
    let appenders: Vec<_> = (0..APPENDERS)
        .map(|appender| {
            let log = Arc::clone(&log);
            tokio::spawn(async move {
                let mut acknowledged = Vec::new();
                for batch in 0..BATCHES {
                    let appends: Vec<Append> = (0..1 + batch % 4)
                        .map(|i| to(WIDE, ((appender + i) % WIDE.partitions as usize) as u32, record(&format!("{appender} {batch} {i}"))))
                        .collect();
                    let offsets = log.append(appends.clone()).await?;
                    acknowledged.extend(appends.into_iter().zip(offsets));
                }
                Ok::<_, Error>(acknowledged)
            })
        })
        .collect();
    let mut expected = vec![Vec::new(); WIDE.partitions as usize];
    for appender in appenders {
        let acknowledged = appender.await.map_err(|error| format!("an appender died: {error}"))?.map_err(words)?;
        let mut lasts = vec![None; WIDE.partitions as usize];
        for (append, offset) in acknowledged {
            let partition = append.partition as usize;
            ensure!(lasts[partition].is_none_or(|last| last < offset), "an appender's order was not preserved in partition {partition}");
            lasts[partition] = Some(offset);
            expected[partition].push(Stored { offset, record: append.record });
        }
    }
    for (partition, mut expected) in expected.into_iter().enumerate() {
        expected.sort_by_key(|stored| stored.offset);
        let found = read_to_end(&log, WIDE, partition as u32, froms[partition]).await?;
        ensure!(
            found == expected,
            "partition {partition} holds {} records, and {} were acknowledged; or they differ",
            found.len(),
            expected.len()
        );
    }
    Ok(())
}

async fn no_such_partition(log: Log) -> Outcome {
    let wanted = |error: Option<Error>| matches!(error, Some(Error::NoPartition { topic, partition }) if topic == NARROW.name && partition == NARROW.partitions);
    let end = log.end(NARROW, 0).await.map_err(words)?;
    let batch = vec![to(NARROW, 0, record("good")), to(NARROW, NARROW.partitions, record("bad"))];
    ensure!(wanted(log.append(batch).await.err()), "an append was not refused");
    ensure!(log.end(NARROW, 0).await.map_err(words)? == end, "a part of a refused batch was appended");
    ensure!(wanted(log.read(NARROW, NARROW.partitions, LogOffset(0), 1, 1).await.err()), "a read was not refused");
    ensure!(wanted(log.end(NARROW, NARROW.partitions).await.err()), "the end was not refused");
    ensure!(wanted(log.wait_past(NARROW, NARROW.partitions, LogOffset(0)).await.err()), "a wait was not refused");
    Ok(())
}

async fn too_large(log: Log, record_bytes_max: usize) -> Outcome {
    let (narrow, wide) = (log.end(NARROW, 0).await.map_err(words)?, log.end(WIDE, 0).await.map_err(words)?);
    let large = Record { value: Bytes::from(vec![1; record_bytes_max + 1]), ..Record::default() };
    let batch = vec![to(NARROW, 0, record("before")), to(WIDE, 0, large), to(NARROW, 0, record("after"))];
    match log.append(batch).await {
        Err(Error::TooLarge { bytes, bytes_max }) => {
            ensure!(bytes > record_bytes_max && bytes_max <= record_bytes_max, "{bytes} bytes were over {bytes_max}")
        }
        Err(error) => return Err(words(error)),
        Ok(_) => return Err("it was taken".to_owned()),
    }
    ensure!(log.end(NARROW, 0).await.map_err(words)? == narrow, "a part of the batch was appended");
    ensure!(log.end(WIDE, 0).await.map_err(words)? == wide, "the record was appended");
    log.append(vec![to(NARROW, 0, record("next"))]).await.map_err(words)?;
    Ok(())
}

async fn close_twice(log: Log) -> Outcome {
    log.append(vec![to(NARROW, 0, record("last"))]).await.map_err(words)?;
    log.close().await.map_err(words)?;
    log.close().await.map_err(words)?;
    let late = log.append(vec![to(NARROW, 0, record("late"))]).await;
    ensure!(matches!(late, Err(Error::Unavailable { .. })), "an append after close answered {late:?}");
    Ok(())
}
