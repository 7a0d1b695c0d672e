//! Moving topics between logs: records arrive unchanged at their offsets, and an archive that does not fit is refused.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use event_log::embedded::{EmbeddedLog, Options};
use event_log::transfer::{self, Archive, Error, Outcome};
use event_log::{Append, EventLog, Headers, Record, Stored};
use schemas::position::LogOffset;
use schemas::topics::{self, ACCOUNTS, CHANGES_RECALLS, IMPORTS, RECALLS, REJECTED, Topic};

use crate::contents::contents_of;

fn open(dir: &Path) -> Arc<EmbeddedLog> {
    EmbeddedLog::open(dir, Options::default()).unwrap()
}

fn append(topic: &'static Topic, partition: u32, n: u32) -> Append {
    let headers = Headers::new(&[("ce_id", n.to_string().as_bytes()), ("ce_id", b""), ("größe", b"\xff")]);
    let key = Bytes::from(if n.is_multiple_of(7) { String::new() } else { format!("key/{n}") });
    // A value that is not Avro and an empty value are moved like all others.
    let value = Bytes::from(vec![u8::try_from(n % 251).unwrap(); (n as usize * 37) % 4_000]);
    Append { topic, partition, record: Record { key, value, headers, at_ms: i64::from(n) + 1 } }
}

/// A log with thousands of records, some of them duplicates, over most partitions; one topic is empty.
async fn filled_log(dir: &Path) -> Arc<EmbeddedLog> {
    let log = open(dir);
    for from in (0..6_000).step_by(500) {
        let places = [(&RECALLS, 0), (&RECALLS, 1), (&RECALLS, 3), (&ACCOUNTS, 0), (&REJECTED, 0)];
        let batch = (from..from + 500).map(|n| append(places[n as usize % 5].0, places[n as usize % 5].1, n % 5_900));
        log.append(batch.collect()).await.unwrap();
    }
    log
}

async fn file(log: &dyn EventLog, topics: &[&'static Topic]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut write = |bytes: &[u8]| {
        out.extend_from_slice(bytes);
        true
    };
    transfer::export(log, topics, |_, _| (), &mut write).await.unwrap();
    out
}

async fn all(log: &dyn EventLog) -> Vec<u8> {
    file(log, &transfer::topics().collect::<Vec<_>>()).await
}

fn archive(bytes: &[u8]) -> Result<Archive, Error> {
    Archive::open("the file", Box::new(std::io::Cursor::new(bytes.to_vec())))
}

async fn import(log: &dyn EventLog, bytes: &[u8]) -> Result<Outcome, Error> {
    transfer::import(log, vec![archive(bytes)?], 1, |_, _| ()).await
}

async fn contents(log: &dyn EventLog) -> Vec<(&'static str, u32, Vec<Stored>)> {
    contents_of(log, topics::ALL.iter().filter(|topic| **topic != IMPORTS)).await
}

/// Proves that every record of every topic arrives with its bytes, headers, time and offset, that a second import appends nothing, and that
/// later records follow.
#[tokio::test]
async fn records_arrive_unchanged() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, to) = (filled_log(one.path()).await, open(other.path()));
    let bytes = all(&*from).await;
    assert_eq!(import(&*to, &bytes).await.unwrap(), Outcome { appended: 6_000, passed: 0 });
    assert_eq!(contents(&*to).await, contents(&*from).await);
    assert_eq!(transfer::unfinished(&*to).await.unwrap(), None);

    let noted = to.end(&IMPORTS, 0).await.unwrap();
    assert_eq!(import(&*to, &bytes).await.unwrap(), Outcome { appended: 0, passed: 6_000 });
    assert_eq!(to.end(&IMPORTS, 0).await.unwrap(), noted, "where nothing is appended nothing is said");
    from.append(vec![append(&CHANGES_RECALLS, 0, 1), append(&RECALLS, 2, 2)]).await.unwrap();
    assert_eq!(import(&*to, &all(&*from).await).await.unwrap(), Outcome { appended: 2, passed: 6_000 });
    assert_eq!(contents(&*to).await, contents(&*from).await);
}

/// Proves that another Avro library reads the archive with the same content.
#[tokio::test]
async fn another_library_reads_it() {
    let dir = tempfile::tempdir().unwrap();
    let log = filled_log(dir.path()).await;
    let bytes = file(&*log, &[&REJECTED]).await;
    let rows: Vec<_> = apache_avro::Reader::new(&bytes[..]).unwrap().map(|row| row.unwrap()).collect();
    let records = contents(&*log).await.into_iter().find(|(topic, _, _)| *topic == REJECTED.name).unwrap().2;
    assert_eq!(rows.len(), records.len());
    let apache_avro::types::Value::Record(fields) = &rows[3] else { panic!("{:?}", rows[3]) };
    let field = |name: &str| fields.iter().find(|(own, _)| own == name).unwrap().1.clone();
    assert_eq!(field("value"), apache_avro::types::Value::Bytes(records[3].record.value.to_vec()));
    assert_eq!(field("offset"), apache_avro::types::Value::Long(3));
}

/// Proves that an import interrupted at any block continues when it is repeated, and that the log is marked as incomplete until then.
#[tokio::test]
async fn an_interrupted_import_continues() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, to) = (filled_log(one.path()).await, open(other.path()));
    let (whole, only) = (all(&*from).await, file(&*from, &[&ACCOUNTS]).await);
    for share in [3, 2] {
        let error = import(&*to, &whole[..whole.len() / share]).await.unwrap_err();
        assert!(matches!(error, Error::DamagedFile { .. } | Error::Cut { .. }), "{error}");
        assert!(transfer::unfinished(&*to).await.unwrap().is_some());
    }
    // Another archive does not complete it.
    let error = import(&*to, &only).await.unwrap_err();
    assert!(matches!(error, Error::Unfinished { .. }), "{error}");
    assert!(transfer::unfinished(&*to).await.unwrap().is_some());
    let outcome = import(&*to, &whole).await.unwrap();
    assert!(outcome.appended > 0 && outcome.passed > 0, "{outcome:?}");
    assert_eq!(contents(&*to).await, contents(&*from).await);
    assert_eq!(transfer::unfinished(&*to).await.unwrap(), None);
}

/// Proves that an archive which ends between two blocks, as after a full disk, is recognised as truncated.
#[tokio::test]
async fn a_truncated_archive_is_recognised() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, to) = (filled_log(one.path()).await, open(other.path()));
    let whole = file(&*from, &[&RECALLS]).await;
    let marker = whole[whole.len() - 16..].to_vec();
    let ends: Vec<usize> = (16..whole.len()).filter(|end| whole[end - 16..*end] == marker[..]).collect();
    assert!(ends.len() > 2, "{} blocks", ends.len());
    for end in [ends[0], ends[ends.len() / 2]] {
        let error = import(&*to, &whole[..end]).await.unwrap_err();
        assert!(matches!(error, Error::Cut { topic: "recalls", .. }), "{error}");
    }
    let mut flipped = whole.clone();
    let middle = ends[0] + (ends[1] - ends[0]) / 2;
    flipped[middle] ^= 1;
    assert!(matches!(import(&*to, &flipped).await.unwrap_err(), Error::DamagedFile { .. }));
}

/// Proves that nothing is appended over another log, or after a record that differs.
#[tokio::test]
async fn another_log_is_refused() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, to) = (filled_log(one.path()).await, open(other.path()));
    let records = contents(&*from).await;
    let (_, _, accounts) = records.iter().find(|(topic, _, _)| *topic == ACCOUNTS.name).unwrap();
    let mut batch: Vec<Append> =
        accounts.iter().take(40).map(|stored| Append { topic: &ACCOUNTS, partition: 0, record: stored.record.clone() }).collect();
    batch[33].record.headers = Headers::default();
    to.append(batch).await.unwrap();
    let error = import(&*to, &file(&*from, &[&ACCOUNTS]).await).await.unwrap_err();
    assert!(matches!(error, Error::Differs { topic: "accounts", partition: 0, offset: LogOffset(33) }), "{error}");
    assert_eq!(to.end(&ACCOUNTS, 0).await.unwrap(), LogOffset(40));
    assert_eq!(transfer::unfinished(&*to).await.unwrap(), None);
}

/// Proves that a record larger than the log accepts is named, and that nothing of its batch is appended.
#[tokio::test]
async fn a_record_too_large_is_named() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let from = open(one.path());
    let mut batch: Vec<Append> = (0..20).map(|n| append(&ACCOUNTS, 0, n)).collect();
    batch[13].record.value = Bytes::from(vec![7; 9_000]);
    from.append(batch).await.unwrap();
    let to = EmbeddedLog::open(other.path(), Options { record_bytes_max: 8_000, ..Options::default() }).unwrap();
    let error = import(&*to, &all(&*from).await).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { topic: "accounts", partition: 0, offset: LogOffset(13), .. }), "{error}");
    assert_eq!(to.end(&ACCOUNTS, 0).await.unwrap(), LogOffset(0));
}

/// Topic, partition and offset.
type RowPosition<'a> = (&'a str, i32, i64);

/// An archive with these end offsets in its header and these rows of topic, partition and offset.
fn written(ends: &str, rows: &[RowPosition]) -> Vec<u8> {
    let schema = apache_avro::Schema::parse_str(include_str!("../../src/transfer/record.avsc")).unwrap();
    let mut writer = apache_avro::Writer::new(&schema, Vec::new()).unwrap();
    writer.add_user_metadata("highwater.ends".to_owned(), ends).unwrap();
    for (topic, partition, offset) in rows {
        let mut row = apache_avro::types::Record::new(&schema).unwrap();
        row.put("topic", *topic);
        row.put("partition", *partition);
        row.put("offset", *offset);
        row.put("key", b"k".to_vec());
        row.put("headers", apache_avro::types::Value::Array(Vec::new()));
        row.put("value", b"v".to_vec());
        row.put("atMs", 1_i64);
        writer.append_value(row).unwrap();
    }
    writer.into_inner().unwrap()
}

/// Proves that gaps, unknown topics and partitions, and files of other formats are refused with the name of the file before anything is
/// appended.
#[tokio::test]
async fn wrong_archives_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    let cases: [(&str, &[RowPosition], &str); 7] = [
        (r#"{"accounts":[2]}"#, &[("accounts", 0, 1)], "offset 1 of accounts/0 where 0 must come"),
        (r#"{"accounts":[2]}"#, &[("accounts", 0, -1)], "offset -1 of accounts/0 where 0 must come"),
        (r#"{"accounts":[2]}"#, &[("accounts", 1, 0)], "records of accounts/1"),
        (r#"{"acounts":[2]}"#, &[], "did you mean \"accounts\"?"),
        (r#"{"imports":[2]}"#, &[], "unknown topic \"imports\""),
        (r#"{"recalls":[1]}"#, &[], "1 partitions there and 4 here"),
        ("[]", &[], "is not an archive of records"),
    ];
    for (ends, rows, words) in cases {
        let error = import(&*log, &written(ends, rows)).await.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    for bytes in [&b""[..], b"Obj", b"{\"seq\":1}\n", &apache_avro_of_others()] {
        assert!(matches!(archive(bytes).err().unwrap(), Error::NoArchive { .. }));
    }
    assert_eq!(import(&*log, &written(r#"{"accounts":[1]}"#, &[("accounts", 0, 0)])).await.unwrap().appended, 1);
    let error = import(&*log, &written(r#"{"accounts":[3]}"#, &[("accounts", 0, 0), ("accounts", 0, 2)])).await.unwrap_err();
    assert!(matches!(error, Error::Hole { expected: LogOffset(1), found: 2, .. }), "{error}");
    assert_eq!(log.end(&ACCOUNTS, 0).await.unwrap(), LogOffset(1), "nothing of a chunk with a hole");
}

/// An Avro container written by another program.
fn apache_avro_of_others() -> Vec<u8> {
    let schema = apache_avro::Schema::parse_str(r#""long""#).unwrap();
    let mut writer = apache_avro::Writer::new(&schema, Vec::new()).unwrap();
    writer.append_value(apache_avro::types::Value::Long(1)).unwrap();
    writer.into_inner().unwrap()
}

/// Proves that a concurrent append by another process is noticed at once.
#[tokio::test]
async fn a_concurrent_append_is_noticed() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, to) = (filled_log(one.path()).await, open(other.path()));
    let bytes = all(&*from).await;
    let mut is_first = true;
    let meddling = |_, _| {
        if std::mem::take(&mut is_first) {
            let (log, append) = (Arc::clone(&to), append(&REJECTED, 0, 9));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(log.append(vec![append])).unwrap();
                });
            });
        }
    };
    let error = transfer::import(&*to, vec![archive(&bytes).unwrap()], 1, meddling).await.unwrap_err();
    assert!(matches!(error, Error::Differs { topic: "rejected", .. }), "{error}");
    assert!(transfer::unfinished(&*to).await.unwrap().is_some());
}
