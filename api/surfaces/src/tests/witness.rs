//! The witness over HTTP: which checkpoints it cosigns, and with which status it refuses the others.

use std::collections::HashMap;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::join_all;
use proofs::hash::Hash32;
use proofs::receipt::SigningKeys;
use proofs::tree::{self, Checkpoint, Question};
use transparency::note::{KeyType, Signed, SignedNote, VerifierKey};
use transparency::witness::{KnownLog, OwnWitness, RecordPlace, Witnessing};

use super::*;

/// The log, its first two checkpoints and the proof between them, computed with Python's `cryptography` and a tree of its own.
const ORIGIN: &str = "log.example/recalls";
const LOG: &str = "log.example/recalls+db223629+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c";
const FIRST: &str = "old 0\n\nlog.example/recalls\n3\nO2zM1+PgI/85MAbwMDFe562esRGwIrQfun5bejlz9og=\n\n\u{2014} log.example/recalls \
    2yI2KSH+7+LI5FWZdkN9zX8ewy/QDG3/9KqEdtdyFoXgXKxOH9Jf9IknqEBsX9oLwcnFMya1sfSHrzTRxUL9Y1J/8QU=\n";
const SECOND: &str = "old 3\n/PCmxwDdE+J0tvuo3uqN2bJuTu3eNJVxfKyECMnFF38=\nWDx9+3swVdmUZVRAMqVx4QoTSxtvdpQiu7cf1/oWel0=\n\
    ogv5p8wtyKCPX0FacbGfasQnurVNJO7IaLXTEDRJlTo=\nickpg07RRZsH9lteGiFDqM9djv3zD0n//6Moux2RM7s=\n\n\
    log.example/recalls\n7\nNWAZGAMChESyMgGKwEf9tWHAnCOnpodsheCLXk1I6fM=\n\n\u{2014} log.example/recalls \
    2yI2KQKwC8cPsQr33Up4zQTfd6EbhN4hJGKITqnTQmo1Lfbus+yb0HwShcgEC5MIcR+0d1BkJWfLvYkCxEaUMuSzWgM=\n";
/// The SHA-256 of the origin.
const ORIGIN_HASH: &str = "2aea625c83a1d5be88e136fc969ed3de9259e6a6692b074774eb287de4e1cf79";

/// A log that signs whatever it is asked to; from the leaf `forked` on it has other leaves.
struct Log {
    keys: SigningKeys,
    public: String,
    hashes: HashMap<u64, Hash32>,
}

impl Log {
    fn new(seed: u8, forked: u64) -> Self {
        let mut hashes = HashMap::new();
        for n in 0..40_u64 {
            let byte = u8::try_from(n).unwrap() + if n >= forked { 100 } else { 0 };
            let siblings: Vec<Hash32> = tree::siblings(n).map(|place| hashes[&place]).collect();
            hashes.extend(tree::new_hashes(n, tree::leaf(&[byte]), &siblings));
        }
        let keys = SigningKeys::default();
        let public = keys.add(&[seed; 32]);
        Self { keys, public, hashes }
    }

    fn root(&self, size: u64) -> Hash32 {
        Question::Root { size }.answer(&self.hashes).unwrap()[0]
    }

    fn note(&self, size: u64, root: Hash32) -> String {
        Checkpoint { origin: ORIGIN.to_owned(), size, root }.sign(&self.keys, &self.public).unwrap()
    }

    /// A request from one size to another, with the log's own proof.
    fn request(&self, old: u64, size: u64) -> String {
        let proof = Question::Consistency { size, old }.answer(&self.hashes).unwrap_or_default();
        let lines: String = proof.iter().map(|hash| format!("{}\n", STANDARD.encode(hash.0))).collect();
        format!("old {old}\n{lines}\n{}", self.note(size, self.root(size)))
    }
}

/// A server that is a witness for the log.
fn witness(fixture: Fixture, place: RecordPlace) -> Fixture {
    let known = vec![KnownLog::new(ORIGIN, LOG).unwrap()];
    let own = OwnWitness::new("witness.example/w1", &[2; 32], known, place).unwrap();
    let Fixture { _dir, context, gate } = fixture;
    let context = Arc::into_inner(context).unwrap().with(Witnessing::new(Vec::new(), Some(own)));
    Fixture { _dir, context: Arc::new(context), gate }
}

/// A server that is a witness and records in a directory.
fn recording_in(directory: &Path) -> Fixture {
    witness(Fixture::new(|_| {}), RecordPlace::Directory(directory.to_owned()))
}

async fn submit(fixture: &Fixture, body: &str) -> TextResponse {
    send(fixture, ask().method("POST").path("/witness/add-checkpoint").body(body.to_owned())).await
}

/// Whether the lines of an answer are the witness's own cosignature of a requested checkpoint.
fn is_cosigned(read: &TextResponse, request: &str) -> bool {
    let key = VerifierKey::parse("witness.example/w1+df1c0a35+BIE5dw6ofRdfVqNUZsNMfszLjYqRtO43ol32D1uPybOU", KeyType::Cosignature).unwrap();
    let text = SignedNote::parse(request.split_once("\n\n").unwrap().1).unwrap().text();
    let lines = SignedNote::of_lines(text, &read.body).unwrap();
    read.status == StatusCode::OK && matches!(lines.signed_by(&key), Signed::Valid { time_s, .. } if time_s > 1_700_000_000)
}

/// Proves that a log's checkpoints are cosigned one after another, that the newest one can be cosigned again, and that it and the key are served.
#[tokio::test]
async fn checkpoints_that_continue_are_cosigned() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = recording_in(dir.path());
    let shown = format!("/witness/{ORIGIN_HASH}/checkpoint");
    assert_eq!(get(&fixture, &shown).await.status, StatusCode::NOT_FOUND, "nothing was cosigned yet");
    let read = submit(&fixture, FIRST).await;
    assert!(is_cosigned(&read, FIRST), "{}: {}", read.status, read.body);
    let read = submit(&fixture, SECOND).await;
    assert!(is_cosigned(&read, SECOND), "{}: {}", read.status, read.body);
    let log = Log::new(1, 99);
    assert!(SECOND.ends_with(&log.note(7, log.root(7))), "the same log");
    assert!(is_cosigned(&submit(&fixture, &log.request(7, 7)).await, SECOND), "the same checkpoint again");
    let read = submit(&fixture, &log.request(7, 33)).await;
    assert!(is_cosigned(&read, &log.request(7, 33)), "{}", read.body);

    let newest = get(&fixture, &shown).await;
    assert!(newest.body.starts_with(&log.note(33, log.root(33))) && newest.body.ends_with(&read.body), "{}", newest.body);
    let key = get(&fixture, "/witness/vkey").await;
    assert_eq!(key.body, "witness.example/w1+df1c0a35+BIE5dw6ofRdfVqNUZsNMfszLjYqRtO43ol32D1uPybOU\n");
    // A signature of somebody else, such as another witness, changes nothing.
    let note = log.request(33, 34) + "\u{2014} other.example AAAAAAAA\n";
    assert!(is_cosigned(&submit(&fixture, &note).await, &note));
}

/// Proves that each refusal has the status of the specification, and that no refusal affects later cosignatures.
#[tokio::test]
async fn refusals_have_their_status() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = recording_in(dir.path());
    let (log, fork, stranger) = (Log::new(1, 99), Log::new(1, 2), Log::new(9, 99));
    let empty = |old: u64, root: Hash32| format!("old {old}\n\n{}", log.note(0, root));
    let line = "PlRNCrwHpqhGrupue0L7gxbjbMiKA9temvuZZDDpkaw=\n";
    for (words, body, status) in [
        ("no checkpoint was cosigned yet", log.request(3, 7), 409),
        ("a proof for the first", log.request(0, 3).replacen('\n', &format!("\n{line}"), 1), 422),
        ("another root of the empty tree", empty(0, Hash32::ZERO), 422),
    ] {
        assert_eq!(submit(&fixture, &body).await.status, status, "{words}");
    }
    assert_eq!(submit(&fixture, &empty(0, Hash32::of(b""))).await.status, 200, "the empty tree");
    assert_eq!(submit(&fixture, FIRST).await.status, 200);
    let signature = SECOND.rfind("2yI2KQKw").unwrap();
    let forged = format!("{}2yI2KQKx{}", &SECOND[..signature], &SECOND[signature + 8..]);
    for (words, body, status) in [
        ("no body", String::new(), 400),
        ("no checkpoint", "old 3\n\n".to_owned(), 400),
        ("no signature", SECOND.split('\u{2014}').next().unwrap().to_owned(), 400),
        ("64 lines", format!("old 3\n{}\n{}", line.repeat(64), log.note(7, log.root(7))), 400),
        ("a size above the checkpoint's", log.request(8, 7), 400),
        ("an unknown origin", SECOND.replace("log.example/recalls\n7", "other.example\n7"), 404),
        ("the signature of another key", stranger.request(3, 7), 403),
        ("a signature that does not verify", forged, 403),
        ("no proof", format!("old 3\n\n{}", log.note(7, log.root(7))), 422),
        ("the proof of another tree", fork.request(3, 7), 422),
        ("another tree of the same size", fork.request(3, 3), 422),
        ("a proof between equal trees", log.request(3, 3).replacen('\n', &format!("\n{line}"), 1), 422),
        ("the empty tree again", empty(0, Hash32::of(b"")), 409),
        ("from a size that is past", log.request(2, 7), 409),
        ("from a size that is to come", log.request(5, 7), 409),
        ("the first one again", FIRST.to_owned(), 409),
    ] {
        let read = submit(&fixture, &body).await;
        assert_eq!(read.status, status, "{words}: {}", read.body);
        if status == 409 {
            assert_eq!((read.body.as_str(), read.header("content-type")), ("3\n", "text/x.tlog.size"), "{words}");
        }
    }
    assert_eq!(submit(&fixture, &"x".repeat((64 << 10) + 1)).await.status, 413);
    assert_eq!(get(&fixture, "/witness/add-checkpoint").await.header("allow"), "POST, OPTIONS");
    for path in ["/witness/", "/witness/x/checkpoint", &format!("/witness/{ORIGIN_HASH}/x"), "/witness/vkey/x"] {
        assert_eq!(get(&fixture, path).await.status, 404, "{path}");
    }
    assert_eq!(submit(&Fixture::new(|_| {}), FIRST).await.status, 404, "who is no witness");
    assert_eq!(submit(&fixture, SECOND).await.status, 200, "nothing was changed");
}

/// Proves that if several histories are submitted concurrently for one checkpoint, one of them is cosigned, wherever the record is stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_history_wins() {
    let dir = tempfile::tempdir().unwrap();
    for place in [RecordPlace::Directory(dir.path().to_owned()), RecordPlace::Store] {
        let fixture = witness(Fixture::new(|_| {}), place.clone());
        let site = fixture.site(Arc::new(|| Ok(())));
        let forks: Vec<Log> = (0..8).map(|fork| Log::new(1, if fork == 0 { 99 } else { 2 + fork })).collect();
        for old in [0, 20] {
            let size = old + 20;
            let requests = forks.iter().map(|fork| fork.request(old, size)).map(|body| {
                let request = ask().method("POST").path("/witness/add-checkpoint").body(body);
                tokio::spawn(request.reply(Arc::clone(&site)))
            });
            let answers: Vec<TextResponse> = join_all(requests).await.into_iter().map(Result::unwrap).collect();
            let cosigned = answers.iter().filter(|read| read.status == StatusCode::OK).count();
            // Over the second checkpoint only the fork that won the first one has a proof.
            assert_eq!(cosigned, 1, "{place:?} {old}");
        }
    }
}

/// Proves that a restarted witness continues after what it cosigned, also on an older data directory, and that it cosigns nothing while
/// its record is missing.
#[tokio::test]
async fn a_restarted_witness_keeps_its_record() {
    let dir = tempfile::tempdir().unwrap();
    let fork = Log::new(1, 2);
    let fixture = recording_in(dir.path());
    assert_eq!(submit(&fixture, FIRST).await.status, 200);
    // Another data directory: the record is outside it.
    let restored = recording_in(dir.path());
    assert_eq!(submit(&restored, &fork.request(0, 7)).await.status, 409);
    assert_eq!(submit(&restored, &fork.request(3, 7)).await.status, 422);
    assert_eq!(submit(&restored, SECOND).await.status, 200);
    // The first process learns of it.
    assert_eq!(submit(&fixture, SECOND).await.body, "7\n");
    std::fs::remove_dir_all(dir.path().join("witness")).unwrap();
    for body in [FIRST.to_owned(), fork.request(0, 7)] {
        let read = submit(&fixture, &body).await;
        assert_eq!(read.status, 503);
        assert!(read.body.contains("is missing"), "{}", read.body);
        assert!(!read.body.contains(&*dir.path().to_string_lossy()) && !read.body.contains(".json"), "no file is named: {}", read.body);
    }
}

/// Proves that no refusal names a place of this server: a record that is damaged or cannot be read, or a directory that is none.
#[tokio::test]
async fn refusals_name_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let refused = async |fixture: &Fixture, status: u16, words: &str| {
        let read = submit(fixture, SECOND).await;
        assert_eq!(read.status, status, "{words}: {}", read.body);
        assert!(!read.body.contains(&*dir.path().to_string_lossy()) && !read.body.contains(".json"), "{words}: {}", read.body);
    };
    let fixture = recording_in(dir.path());
    assert_eq!(submit(&fixture, FIRST).await.status, 200);
    let of_key = std::fs::read_dir(dir.path().join("witness")).unwrap().next().unwrap().unwrap().path();
    let record = of_key.join(format!("{ORIGIN_HASH}.json"));
    for (text, status) in [(&b"no JSON"[..], 500), (br#"{"origin": "x", "note": "no note"}"#, 500), (b"\xff", 503)] {
        std::fs::write(&record, text).unwrap();
        refused(&fixture, status, &String::from_utf8_lossy(text)).await;
    }
    std::fs::remove_file(&record).unwrap();
    std::fs::create_dir(&record).unwrap();
    refused(&fixture, 503, "a directory in place of the record").await;
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    refused(&recording_in(&file), 503, "a file in place of the directory").await;
}

/// Proves that the number of checkpoints that one address may submit per minute is limited.
#[tokio::test]
async fn submissions_are_limited_by_address() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = recording_in(dir.path());
    let site = fixture.site(Arc::new(|| Ok(())));
    // Over two minutes at most, should one end meanwhile.
    for _ in 0..1_300 {
        let read = ask().method("POST").path("/witness/add-checkpoint").body("x").reply(Arc::clone(&site)).await;
        if read.status == StatusCode::TOO_MANY_REQUESTS {
            assert!(!read.header("retry-after").is_empty());
            return;
        }
    }
    panic!("no submission was refused");
}
