//! Damages the embedded log's files. Every damage must lead to an error that says what is wrong or to the true records, never to other or
//! fewer records.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use event_log::embedded::{EmbeddedLog, Options};
use event_log::{Append, Error, EventLog, Headers, Record};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use schemas::position::LogOffset;
use schemas::topics::{Topic, TopicKind};
use tempfile::TempDir;

static TOPICS: [Topic; 2] = [
    Topic { name: "wide", kind: TopicKind::Facts, partitions: 2, private: false },
    Topic { name: "narrow", kind: TopicKind::Changes, partitions: 1, private: false },
];

fn options() -> Options {
    Options { topics: &TOPICS, ..Options::default() }
}

type Places = Vec<(&'static Topic, u32, Vec<Record>)>;

/// The size of the large values. They are random, because compressed they would not be large.
const LARGE_BYTES: usize = 6_000;

/// Returns random bytes that depend on a number only.
fn random(number: usize, bytes: usize) -> Bytes {
    let mut out = vec![0; bytes];
    StdRng::seed_from_u64(number as u64).fill(&mut out[..]);
    Bytes::from(out)
}

/// The content of the log: small values, which remain in tables, and large ones, which get separate files.
fn expected() -> Places {
    let record = |i: usize, bytes: usize| Record {
        key: Bytes::from(format!("key {i}")),
        value: if bytes < LARGE_BYTES {
            Bytes::from((0..bytes).map(|b| (b * 131 + i * 7) as u8).collect::<Vec<_>>())
        } else {
            random(i, bytes)
        },
        headers: Headers::new(&[("ce_id", i.to_string().as_bytes())]),
        at_ms: i as i64,
    };
    let mut places = Vec::new();
    for topic in &TOPICS {
        for partition in 0..topic.partitions {
            places.push((topic, partition, (0..60).map(|i| record(i, if i % 10 == 0 { LARGE_BYTES } else { 50 })).collect()));
        }
    }
    places
}

/// Creates a log with the first half of the records in tables and the second half in the journal.
async fn make(dir: &Path) {
    for (from, to) in [(0, 30), (30, 60)] {
        let log = EmbeddedLog::open(dir, options()).unwrap();
        for i in from..to {
            let batch =
                expected().into_iter().map(|(topic, partition, records)| Append { topic, partition, record: records[i].clone() }).collect();
            log.append(batch).await.unwrap();
        }
        if to == 30 {
            log.close().await.unwrap();
        }
    }
    // The journal is allocated with space to grow; opening cuts it to its content, so that it can be copied quickly.
    drop(EmbeddedLog::open(dir, options()).unwrap());
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() { copy(&entry.path(), &target) } else { fs::copy(entry.path(), target).map(|_| ()).unwrap() }
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() { found.extend(files(&entry.path())) } else { found.push(entry.path()) }
    }
    found.sort();
    found
}

/// The result of opening damaged files.
#[derive(Debug, PartialEq)]
enum Ended {
    Refused(String),
    ReadFailed(String),
    Whole,
}

/// Opens the log and reads everything. Panics if a record is wrong or missing without an error.
async fn open_and_read(dir: &Path, what: &str) -> Ended {
    let log = match EmbeddedLog::open(dir, options()) {
        Ok(log) => log,
        Err(error @ Error::Unavailable { .. }) => {
            assert!(error.to_string().contains(&dir.display().to_string()), "{what}: the error names no path: {error}");
            return Ended::Refused(error.to_string());
        }
        Err(error @ Error::Damaged { .. }) => return Ended::Refused(error.to_string()),
        Err(error) => panic!("{what}: {error}"),
    };
    let mut ended = Ended::Whole;
    for (topic, partition, records) in expected() {
        if let Err(error) = read_place(&log, topic, partition, &records, what).await {
            assert!(matches!(error, Error::Damaged { .. }), "{what}: {error}");
            ended = Ended::ReadFailed(error.to_string());
        }
    }
    ended
}

async fn read_place(log: &Arc<EmbeddedLog>, topic: &'static Topic, partition: u32, records: &[Record], what: &str) -> Result<(), Error> {
    let mut at = 0;
    loop {
        let page = log.read(topic, partition, LogOffset(at as u64), 7, usize::MAX).await?;
        if page.is_empty() {
            assert_eq!(at, records.len(), "{what}: {}/{partition} ends early without an error", topic.name);
            return Ok(());
        }
        for stored in page {
            assert!(stored.record == records[at], "{what}: {}/{partition} returns a wrong record at {at}", topic.name);
            at += 1;
        }
    }
}

/// Damages one file after another at `places` positions each, and collects how opening ended.
async fn damage_each(pick: impl Fn(&Path) -> bool, damage: impl Fn(&mut Vec<u8>, usize), places: usize) -> Vec<(String, Ended)> {
    let dir = TempDir::new().unwrap();
    let whole = dir.path().join("whole");
    make(&whole).await;
    let mut outcomes = Vec::new();
    let is_large_value = |file: &PathBuf| file.components().any(|part| part.as_os_str() == "blobs");
    assert!(files(&whole).iter().any(is_large_value), "no value has a file of its own");
    for file in files(&whole) {
        let name = file.strip_prefix(&whole).unwrap();
        let bytes = fs::read(&file).unwrap();
        if bytes.is_empty() || !pick(name) {
            continue;
        }
        let mut tried: Vec<usize> = (0..places).map(|i| i * bytes.len() / places).collect();
        tried.dedup();
        for at in tried {
            let broken = dir.path().join("broken");
            copy(&whole, &broken);
            let mut bytes = bytes.clone();
            damage(&mut bytes, at);
            fs::write(broken.join(name), bytes).unwrap();
            let what = format!("{} at {at}", name.display());
            let ended = open_and_read(&broken, &what).await;
            // A second opening must not hide what the first one found.
            if let Ended::Refused(_) = &ended {
                assert!(open_and_read(&broken, &what).await != Ended::Whole, "{what}: refused once, then opened as if whole");
            }
            fs::remove_dir_all(&broken).unwrap();
            outcomes.push((what, ended));
        }
    }
    outcomes
}

fn is_journal(name: &Path) -> bool {
    name.extension().is_some_and(|extension| extension == "jnl")
}

/// Proves that a flipped bit in any file leads to an error or to the true records.
#[tokio::test]
async fn flipped_bits() {
    let outcomes = damage_each(|name| !is_journal(name), |bytes, at| bytes[at] ^= 0x24, 4).await;
    let noticed = outcomes.iter().filter(|(_, ended)| *ended != Ended::Whole).count();
    assert!(noticed > 10, "only {noticed} of {} were noticed: {outcomes:#?}", outcomes.len());
}

/// Proves that a flipped bit among acknowledged records in the journal is always noticed, although the store treats the rest as a torn
/// write.
#[tokio::test]
async fn flipped_bits_in_the_journal() {
    let outcomes = damage_each(is_journal, |bytes, at| bytes[at] ^= 0x24, 60).await;
    assert!(outcomes.len() >= 60, "{outcomes:#?}");
    let lost = outcomes
        .iter()
        .filter(|(_, ended)| matches!(ended, Ended::Refused(words) if words.contains("acknowledged records are missing")))
        .count();
    assert!(lost > 0, "the case that this test is for did not happen: {outcomes:#?}");
}

/// Proves that a batch which the store skips at replay, because its sequence number was changed (no checksum of the store covers it), is
/// noticed when the log is opened and not only when it is read.
#[tokio::test]
async fn skipped_batch() {
    let dir = TempDir::new().unwrap();
    make(dir.path()).await;
    let journal = dir.path().join("store/0.jnl");
    let mut bytes = fs::read(&journal).unwrap();
    // The journal entry that starts a batch of three: the tag, the number of items, the sequence number. The 50th batch is not in tables
    // yet.
    let starts: Vec<usize> =
        (0..bytes.len() - 13).filter(|at| bytes[*at..].starts_with(&[1, 3, 0, 0, 0]) && bytes[at + 7..at + 13] == [0; 6]).collect();
    assert_eq!(starts.len(), 60);
    bytes[starts[50] + 5] = 0;
    bytes[starts[50] + 6] = 0;
    fs::write(&journal, bytes).unwrap();
    for _ in 0..2 {
        let ended = open_and_read(dir.path(), "a skipped batch").await;
        assert!(matches!(&ended, Ended::Refused(words) if words.contains("the records from here to offset 51 are missing")), "{ended:?}");
    }
}

/// Proves that a truncated file leads to an error or to the true records.
#[tokio::test]
async fn truncated_files() {
    let outcomes = damage_each(|_| true, |bytes, at| bytes.truncate(at), 3).await;
    assert!(outcomes.iter().any(|(_, ended)| *ended != Ended::Whole), "{outcomes:#?}");
}

/// Proves that an incomplete write at the journal's end, as a crash leaves it, loses nothing that was acknowledged.
#[tokio::test]
async fn torn_journal_tail() {
    let outcomes = damage_each(is_journal, |bytes, at| bytes.extend_from_slice(&[2, 0, 0, 1, 2, 3, 1, 9, 9][..1 + at % 9]), 9).await;
    assert!(outcomes.iter().all(|(_, ended)| *ended == Ended::Whole), "{outcomes:#?}");
}

/// Proves that the journal is backed up when acknowledged records are missing, so that it can still be repaired, and that no backup remains
/// when the log is complete.
#[tokio::test]
async fn journal_is_backed_up() {
    let dir = TempDir::new().unwrap();
    make(dir.path()).await;
    let journal = dir.path().join("store/0.jnl");
    let whole = fs::read(&journal).unwrap();
    // The tag of the last batch's end is 13 bytes before the end of the file. Damaging it makes the batch before it the last one.
    let mut bad = whole.clone();
    let at = bad.len() - 13;
    bad[at] ^= 0x40;
    fs::write(&journal, &bad).unwrap();
    for _ in 0..2 {
        let ended = open_and_read(dir.path(), "a damaged tag").await;
        assert!(matches!(&ended, Ended::Refused(words) if words.contains("1 acknowledged records are missing")), "{ended:?}");
    }
    assert!(fs::metadata(&journal).unwrap().len() < bad.len() as u64, "the store no longer cuts its journal: is the copy still needed?");
    let backup = dir.path().join("journal.kept");
    assert!(fs::read(backup.join("0.jnl")).unwrap() == bad);
    fs::write(&journal, whole).unwrap();
    assert_eq!(open_and_read(dir.path(), "mended").await, Ended::Whole);
    assert!(!backup.exists());
}

/// Proves that removing the `ends` file accepts the loss, so that the log opens with the remaining records, and that the journal backup is
/// preserved.
#[tokio::test]
async fn loss_can_be_accepted() {
    let dir = TempDir::new().unwrap();
    make(dir.path()).await;
    let journal = dir.path().join("store/0.jnl");
    let bytes = fs::read(&journal).unwrap();
    fs::write(&journal, &bytes[..bytes.len() / 2]).unwrap();
    for _ in 0..2 {
        let error = EmbeddedLog::open(dir.path(), options()).err().unwrap();
        assert!(matches!(&error, Error::Damaged { reason, .. } if reason.contains("acknowledged records are missing")), "{error}");
    }
    fs::remove_file(dir.path().join("ends")).unwrap();
    let log = EmbeddedLog::open(dir.path(), options()).unwrap();
    let end = log.end(&TOPICS[0], 0).await.unwrap();
    assert!((30..60).contains(&end.0), "{end:?}");
    log.append(vec![Append { topic: &TOPICS[0], partition: 0, record: Record::default() }]).await.unwrap();
    drop(log);
    drop(EmbeddedLog::open(dir.path(), options()).unwrap());
    assert!(dir.path().join("journal.lost/0.jnl").exists() && !dir.path().join("journal.kept").exists());
}
