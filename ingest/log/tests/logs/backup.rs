//! Backups of a log: consistent while others append, incremental, resumed after an interruption, and refused when they are damaged.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use event_log::backup::{Backup, BackupFile, Error, LeftOut, Plan, Written, back_up};
use event_log::embedded::{EmbeddedLog, Options};
use event_log::{Append, EventLog, Headers, Record, Stored};
use schemas::topics::{self, ACCOUNTS, CHANGES_RECALLS, IMPORTS, RECALLS, Topic};
use tokio::sync::Semaphore;

use crate::contents::contents_of;
use crate::within;

fn open(dir: &Path) -> Arc<EmbeddedLog> {
    EmbeddedLog::open(dir, Options::default()).unwrap()
}

fn append(topic: &'static Topic, partition: u32, number: u64, bytes: usize) -> Append {
    let headers = Headers::new(&[("ce_id", number.to_string().as_bytes())]);
    let value = Bytes::from([number.to_be_bytes().to_vec(), vec![7; bytes]].concat());
    let at_ms = i64::try_from(number).unwrap() + 1;
    Append { topic, partition, record: Record { key: Bytes::from(number.to_string()), value, headers, at_ms } }
}

/// A log with more than two full segments in one partition, and some records in others.
async fn filled_log(dir: &Path) -> Arc<EmbeddedLog> {
    let log = open(dir);
    for from in (0..500).step_by(20) {
        log.append((from..from + 20).map(|number| append(&RECALLS, 1, number, 1_000)).collect()).await.unwrap();
    }
    log.append((0..50).map(|number| append(&ACCOUNTS, 0, number, 10)).collect()).await.unwrap();
    log.append(vec![append(&IMPORTS, 0, 1, 3)]).await.unwrap();
    log
}

async fn contents(log: &dyn EventLog) -> Vec<(&'static str, u32, Vec<Stored>)> {
    contents_of(log, topics::ALL).await
}

fn plan<'a>(dir: &'a Path, base: Option<&'a Path>, sources: &'a (dyn Fn() -> std::io::Result<Vec<BackupFile>> + Send + Sync)) -> Plan<'a> {
    let left_out = vec![LeftOut { what: "views".to_owned(), reason: "they are rebuilt".to_owned() }];
    Plan { dir, base, sources, left_out, segment_bytes: 200_000, version: "1".to_owned(), taken_at: "2026-11-25T00:00:00Z".to_owned() }
}

fn no_sources() -> std::io::Result<Vec<BackupFile>> {
    Ok(Vec::new())
}

async fn backup(log: &dyn EventLog, dir: &Path) -> Result<Written, Error> {
    back_up(log, plan(dir, None, &no_sources), |_, _| true).await
}

async fn restore(from: &Path, to: &Path) -> Result<Arc<EmbeddedLog>, Error> {
    let log = open(to);
    Backup::open(from)?.restore_log(&*log, |_, _| ()).await.map(|()| log)
}

/// The segments in a backup, sorted.
fn segments(dir: &Path) -> Vec<PathBuf> {
    let (mut found, mut directories) = (Vec::new(), vec![dir.join("log")]);
    while let Some(dir) = directories.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { directories.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// Proves that a restored log has every record of every topic at its offset, also after a second backup that writes only what is new, and that the
/// files are restored with their bytes.
#[tokio::test]
async fn restored_log_is_equal_and_later_backups_write_what_is_new() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let log = filled_log(&at("log")).await;
    std::fs::write(at("secret"), "of an account").unwrap();
    let sources = || Ok(vec![BackupFile { name: "secrets/one".to_owned(), path: at("secret") }]);
    let first = back_up(&*log, plan(&at("backup"), None, &sources), |_, _| true).await.unwrap();
    assert_eq!((first.records, first.written, first.kept), (551, 5, 0), "three segments of recalls, one each of two other topics");
    assert_eq!(contents(&*restore(&at("backup"), &at("one")).await.unwrap()).await, contents(&*log).await);
    let read = Backup::open(&at("backup")).unwrap();
    assert_eq!((read.files()[0].name.as_str(), read.read_file(&read.files()[0]).unwrap()), ("secrets/one", b"of an account".to_vec()));
    assert_eq!(read.left_out()[0].what, "views");

    log.append(vec![append(&RECALLS, 1, 500, 10), append(&CHANGES_RECALLS, 0, 1, 10)]).await.unwrap();
    let before = segments(&at("backup"));
    let second = backup(&*log, &at("backup")).await.unwrap();
    assert_eq!((second.records, second.written, second.kept), (553, 2, 4), "the grown end of one partition, and a new topic");
    let after = segments(&at("backup"));
    assert_eq!(after.iter().filter(|path| !before.contains(path)).count(), 2);
    assert_eq!(before.iter().filter(|path| !after.contains(path)).count(), 1, "the shorter end is removed");
    assert_eq!(contents(&*restore(&at("backup"), &at("two")).await.unwrap()).await, contents(&*log).await);
    assert!(!at("backup/unfinished").exists());
    assert_eq!(std::fs::read_dir(at("backup/files")).unwrap().count(), 0, "a file that is no longer listed is removed");
}

/// Proves that a backup holds a state that the log had between two appends, while many tasks append to several partitions at once. Each round has a number
/// of appends, so that a slow backup has no more to write than a fast one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_backup_while_others_append_is_of_one_moment() {
    const APPENDS_PER_ROUND: usize = 1_000;
    let dir = tempfile::tempdir().unwrap();
    let log = open(&dir.path().join("log"));
    let permits = Arc::new(Semaphore::new(0));
    let writers = (0..64).map(|_| {
        let (log, permits) = (Arc::clone(&log), Arc::clone(&permits));
        tokio::spawn(async move {
            let mut number = 0;
            while let Ok(permit) = permits.acquire().await {
                permit.forget();
                let places = [(&RECALLS, 0), (&RECALLS, 3), (&CHANGES_RECALLS, 0), (&ACCOUNTS, 0)];
                log.append(places.into_iter().map(|(topic, partition)| append(topic, partition, number, 40)).collect()).await.unwrap();
                number += 1;
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    for number in 0..8 {
        let end = log.end(&ACCOUNTS, 0).await.unwrap();
        permits.add_permits(APPENDS_PER_ROUND);
        within("a hundred appends", log.wait_past(&ACCOUNTS, 0, end.plus(100))).await.unwrap();
        let written = backup(&*log, &dir.path().join("backup")).await.unwrap();
        assert!(written.records > 0 && written.records.is_multiple_of(4), "{number}: {written:?}");
        if number % 4 == 3 {
            let restored = restore(&dir.path().join("backup"), &dir.path().join(format!("restored{number}"))).await.unwrap();
            let mut ends = Vec::new();
            for (topic, partition) in [(&RECALLS, 0), (&RECALLS, 3), (&CHANGES_RECALLS, 0), (&ACCOUNTS, 0)] {
                ends.push(restored.end(topic, partition).await.unwrap().0);
            }
            assert!(ends.iter().all(|end| *end == written.records / 4), "{ends:?} of {}", written.records);
        }
    }
    permits.close();
    for writer in writers {
        within("the end of a writer", writer).await.unwrap();
    }
}

/// Proves that an interrupted backup is no backup, that the next one uses what it completed, and that an interrupted update leaves the previous backup
/// complete.
#[tokio::test]
async fn an_interrupted_backup_is_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let log = filled_log(&at("log")).await;
    // Stops after a full segment.
    let dir_of_backup = at("backup");
    let is_full = || dir_of_backup.join("log").exists() && segments(&dir_of_backup).len() > 2;
    let stopped = back_up(&*log, plan(&dir_of_backup, None, &no_sources), |_, _| !is_full());
    assert!(matches!(stopped.await.unwrap_err(), Error::Stopped));
    let Err(Error::NoBackup { reason, .. }) = Backup::open(&at("backup")) else { panic!("an unfinished backup must not be used") };
    assert!(reason.contains("interrupted"), "{reason}");

    // A file that the interruption left cut is not used.
    let cut = segments(&at("backup")).into_iter().find(|path| path.to_str().unwrap().contains("recalls")).unwrap();
    let bytes = std::fs::read(&cut).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let resumed = backup(&*log, &at("backup")).await.unwrap();
    assert!(resumed.resumed > 0 && resumed.written > 0 && resumed.interrupted.is_some(), "{resumed:?}");
    assert!(std::fs::metadata(&cut).unwrap().len() > bytes.len() as u64 / 2, "the cut file must be written again");
    assert_eq!(contents(&*restore(&at("backup"), &at("one")).await.unwrap()).await, contents(&*log).await);

    let before = contents(&*log).await;
    log.append((0..200).map(|number| append(&RECALLS, 2, number, 1_000)).collect()).await.unwrap();
    let stopped = back_up(&*log, plan(&dir_of_backup, None, &no_sources), |done, _| done < 540);
    assert!(matches!(stopped.await.unwrap_err(), Error::Stopped));
    assert!(at("backup/unfinished").exists());
    assert_eq!(contents(&*restore(&at("backup"), &at("two")).await.unwrap()).await, before);
    backup(&*log, &at("backup")).await.unwrap();
    assert_eq!(contents(&*restore(&at("backup"), &at("three")).await.unwrap()).await, contents(&*log).await);
}

/// Proves that a new backup shares the full segments of an older one by hard links and leaves it usable.
#[tokio::test]
async fn full_segments_of_an_older_backup_are_linked() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let log = filled_log(&at("log")).await;
    backup(&*log, &at("monday")).await.unwrap();
    let before = contents(&*log).await;
    log.append(vec![append(&RECALLS, 1, 500, 10)]).await.unwrap();
    let (monday, tuesday) = (at("monday"), at("tuesday"));
    let written = back_up(&*log, plan(&tuesday, Some(&monday), &no_sources), |_, _| true).await.unwrap();
    assert_eq!((written.linked, written.written), (4, 1), "{written:?}");
    let linked = segments(&tuesday).iter().filter(|path| std::fs::metadata(path).unwrap().nlink() == 2).count();
    assert_eq!(linked, 4);
    assert_eq!(contents(&*restore(&tuesday, &at("one")).await.unwrap()).await, contents(&*log).await);
    assert_eq!(contents(&*restore(&monday, &at("two")).await.unwrap()).await, before);
}

/// Proves that a damaged, missing or cut file is refused by name before anything of it is appended, and that the next backup replaces a missing one.
#[tokio::test]
async fn a_damaged_backup_is_refused_with_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let log = filled_log(&at("log")).await;
    backup(&*log, &at("backup")).await.unwrap();
    for path in segments(&at("backup")).into_iter().chain([at("backup/manifest")]) {
        let bytes = std::fs::read(&path).unwrap();
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 1;
        for damaged in [Some(flipped), Some(bytes[..bytes.len() - 1].to_vec()), None] {
            match &damaged {
                Some(damaged) => std::fs::write(&path, damaged).unwrap(),
                None if path.ends_with("manifest") => continue,
                None => std::fs::remove_file(&path).unwrap(),
            }
            let verified = match Backup::open(&at("backup")) {
                Ok(backup) => backup.verify(|_, _| ()).await,
                Err(error) => Err(error),
            };
            let Err(Error::Damaged { path: named, .. }) = verified else { panic!("{path:?}: {verified:?}") };
            assert_eq!(named, path);
            let target = tempfile::tempdir().unwrap();
            assert!(restore(&at("backup"), target.path()).await.is_err_and(|error| error.to_string().contains(path.to_str().unwrap())));
            std::fs::write(&path, &bytes).unwrap();
        }
    }
    let missing = segments(&at("backup")).remove(0);
    std::fs::remove_file(&missing).unwrap();
    backup(&*log, &at("backup")).await.unwrap();
    assert!(missing.exists());
    Backup::open(&at("backup")).unwrap().verify(|_, _| ()).await.unwrap();
}

/// Proves that an interrupted restore continues, and that one into a log with other records is refused.
#[tokio::test]
async fn an_interrupted_restore_continues() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let log = filled_log(&at("log")).await;
    backup(&*log, &at("backup")).await.unwrap();
    // The restore stops at a damaged segment, which is then repaired.
    let last = segments(&at("backup")).pop().unwrap();
    let bytes = std::fs::read(&last).unwrap();
    std::fs::write(&last, &bytes[1..]).unwrap();
    assert!(matches!(restore(&at("backup"), &at("one")).await.map(drop).unwrap_err(), Error::Damaged { .. }));
    let part = open(&at("one"));
    assert!(part.end(&RECALLS, 1).await.unwrap().0 > 0);
    drop(part);
    std::fs::write(&last, &bytes).unwrap();
    assert_eq!(contents(&*restore(&at("backup"), &at("one")).await.unwrap()).await, contents(&*log).await);

    let other = open(&at("two"));
    other.append(vec![append(&RECALLS, 1, 1_000, 9)]).await.unwrap();
    drop(other);
    let refused = restore(&at("backup"), &at("two")).await.map(drop).unwrap_err();
    assert!(matches!(refused, Error::Differs { .. }), "{refused}");
}

/// Proves that a backup of another log, of a later state of this one, and a directory with other files are refused.
#[tokio::test]
async fn a_directory_of_something_else_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (log, other) = (open(&at("log")), open(&at("other")));
    log.append((0..9).map(|number| append(&ACCOUNTS, 0, number, 10)).collect()).await.unwrap();
    backup(&*log, &at("backup")).await.unwrap();
    other.append((0..7).map(|number| append(&ACCOUNTS, 0, number, 10)).collect()).await.unwrap();
    let refused = backup(&*other, &at("backup")).await.unwrap_err().to_string();
    assert!(refused.contains("up to offset 9, and this log ends at 7") && refused.contains("Name another directory"), "{refused}");
    other.append((0..7).map(|number| append(&ACCOUNTS, 0, number + 100, 10)).collect()).await.unwrap();
    let refused = backup(&*other, &at("backup")).await.unwrap_err().to_string();
    assert!(refused.contains("another record at accounts/0 offset 8"), "{refused}");
    std::fs::create_dir(at("home")).unwrap();
    std::fs::write(at("home/letter"), "").unwrap();
    assert!(matches!(backup(&*log, &at("home")).await.unwrap_err(), Error::OtherFiles { .. }));
    let missing = Backup::open(&at("home")).map(drop).unwrap_err().to_string();
    assert!(missing.contains("holds no complete backup"), "{missing}");
}
