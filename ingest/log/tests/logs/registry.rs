//! Schema-registry framing: against a real registry, and against unexpected responses.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use event_log::embedded::{EmbeddedLog, Options};
use event_log::kafka::registry::{self, Error};
use event_log::kafka::{FramedLog, Framing};
use event_log::{Append, EventLog, Headers, Record};
use schemas::avro;
use schemas::position::LogOffset;
use schemas::topics::{self, CHANGES_RECALLS, RECALLS, Topic};

/// The URL under which the schemas are.
const SCHEMAS: &str = "https://records.example.org/schemas/";

fn open(dir: &Path) -> Arc<EmbeddedLog> {
    EmbeddedLog::open(dir, Options::default()).unwrap()
}

fn options(url: &str) -> registry::Options {
    registry::Options { url: url.to_owned(), credentials: None }
}

async fn framed(log: &Arc<EmbeddedLog>, prefix: &str, framing: Framing, url: &str) -> Result<Arc<FramedLog>, Error> {
    FramedLog::registered(Arc::clone(log) as Arc<dyn EventLog>, SCHEMAS.to_owned(), topics::ALL, prefix, framing, options(url)).await
}

/// Builds a record. Records of ours have CloudEvents headers; foreign ones have none.
fn append(topic: &'static Topic, value: Vec<u8>, is_ours: bool) -> Append {
    let headers = if is_ours { Headers::new(&[("ce_id", b"1")]) } else { Headers::default() };
    Append { topic, partition: 0, record: Record { key: Bytes::from_static(b"k"), value: value.into(), headers, at_ms: 1 } }
}

fn text(topic: &Topic) -> &'static str {
    avro::ALL.iter().find(|text| text.topic == topic.name).unwrap().json
}

fn value(topic: &Topic, datum: &[u8]) -> Vec<u8> {
    let text = avro::ALL.iter().find(|text| text.topic == topic.name).unwrap();
    avro::join(&text.fingerprint().unwrap(), datum)
}

async fn values(log: &dyn EventLog, topic: &'static Topic) -> Result<Vec<Bytes>, event_log::Error> {
    Ok(log.read(topic, 0, LogOffset(0), 100, 1 << 20).await?.into_iter().map(|stored| stored.record.value).collect())
}

/// Sends a request without the client under test. Returns the body.
fn http(method: &str, url: &str, body: &str) -> serde_json::Value {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} /{path} HTTP/1.0\r\nhost: {host}\r\ncontent-type: application/vnd.schemaregistry.v1+json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.lines().next().unwrap().contains(" 200"), "{answer}");
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// Proves against a real registry that schemas are registered under the topics' names, that appended values carry their ids and read back
/// unchanged next to values of the other framing, that a newer schema is requested, and that a value with an unknown schema is an error
/// that names the record, while foreign records are unchanged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_registry() {
    let Some(url) = engines::or_skip(engines::registry(), "framing by a schema registry") else { return };
    let dir = tempfile::tempdir().unwrap();
    let (log, prefix) = (open(dir.path()), format!("{}.", engines::unique("t")));
    let single = framed(&log, &prefix, Framing::SingleObject, &url).await.unwrap();
    let confluent = framed(&log, &prefix, Framing::Confluent, &url).await.unwrap();
    let wanted = [value(&RECALLS, b"one"), value(&RECALLS, b"two"), b"\0junk".to_vec()];
    single.append(vec![append(&RECALLS, wanted[0].clone(), true)]).await.unwrap();
    confluent.append(vec![append(&RECALLS, wanted[1].clone(), true), append(&RECALLS, wanted[2].clone(), false)]).await.unwrap();
    let raw = values(&*log, &RECALLS).await.unwrap();
    assert_eq!((&raw[0][..], raw[1][0], &raw[1][5..]), (&wanted[0][..], 0, &b"two"[..]));
    for log in [&single, &confluent] {
        assert_eq!(values(&**log, &RECALLS).await.unwrap(), wanted);
    }
    let id = u32::from_be_bytes(raw[1][1..5].try_into().unwrap());
    assert_eq!(http("GET", &format!("{url}/schemas/ids/{id}"), "")["schema"], text(&RECALLS));
    let versions: Vec<usize> = (1..=avro::ALL.iter().filter(|schema| schema.topic == RECALLS.name).count()).collect();
    assert_eq!(http("GET", &format!("{url}/subjects/{prefix}recalls-value/versions"), ""), serde_json::json!(versions));

    // A newer node.
    let newer =
        text(&CHANGES_RECALLS).replacen(r#"{"name": "seq""#, r#"{"name": "added", "type": "string", "default": ""}, {"name": "seq""#, 1);
    let body = serde_json::json!({"schema": newer}).to_string();
    let newer_id = http("POST", &format!("{url}/subjects/{prefix}changes.recalls-value/versions"), &body)["id"].as_u64().unwrap();
    let frame = |id: u32, datum: &[u8]| [&[0], &id.to_be_bytes()[..], datum].concat();
    log.append(vec![append(&CHANGES_RECALLS, frame(u32::try_from(newer_id).unwrap(), b"x"), true)]).await.unwrap();
    let fingerprint = avro::learn(&newer).unwrap();
    assert_eq!(values(&*single, &CHANGES_RECALLS).await.unwrap(), [avro::join(&fingerprint, b"x")]);

    // One value with the schema of another topic, and one with an unknown id.
    log.append(vec![append(&CHANGES_RECALLS, frame(id, b"x"), true)]).await.unwrap();
    let read = async |from| single.read(&CHANGES_RECALLS, 0, LogOffset(from), 9, 9_999).await;
    assert_eq!(read(0).await.unwrap().len(), 1, "records before it are read");
    let error = read(1).await.unwrap_err();
    assert!(
        matches!(&error, event_log::Error::Damaged { offset: LogOffset(1), reason, .. } if reason.contains("something else")),
        "{error}"
    );
    log.append(vec![append(&CHANGES_RECALLS, frame(987_654_321, b"x"), true)]).await.unwrap();
    let error = read(2).await.unwrap_err().to_string();
    assert!(error.contains("987654321 of changes.recalls/0 offset 2") && error.contains("has no schema with that id"), "{error}");
    let without = FramedLog::unregistered(Arc::clone(&log) as Arc<dyn EventLog>, SCHEMAS.to_owned());
    let error = without.read(&RECALLS, 0, LogOffset(1), 9, 9_999).await.unwrap_err().to_string();
    assert!(error.contains("avro.registry_url"), "{error}");
    assert_eq!(without.read(&RECALLS, 0, LogOffset(0), 1, 9_999).await.unwrap()[0].record.value, wanted[0]);
}

/// Proves against a real registry that an incompatible schema is refused with the subject and the reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_incompatible_schema_is_refused() {
    let Some(url) = engines::or_skip(engines::registry(), "an incompatible schema") else { return };
    let dir = tempfile::tempdir().unwrap();
    let (log, prefix) = (open(dir.path()), format!("{}.", engines::unique("t")));
    let other = serde_json::json!({"schema": r#"{"type":"record","name":"Other","fields":[{"name":"a","type":"int"}]}"#}).to_string();
    http("POST", &format!("{url}/subjects/{prefix}recalls-value/versions"), &other);
    http("PUT", &format!("{url}/config/{prefix}recalls-value"), r#"{"compatibility":"FULL"}"#);
    let error = framed(&log, &prefix, Framing::Confluent, &url).await.err().unwrap();
    assert!(matches!(&error, Error::Incompatible { subject, .. } if *subject == format!("{prefix}recalls-value")), "{error}");
}

/// Starts a server that gives every request the same answer. The requests are sent to the returned channel.
fn answering(answer: String) -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requested) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut requested) = (stream.unwrap(), Vec::new());
            let mut piece = [0; 4096];
            // Reads the request to its end: closing a connection with unread bytes would discard the answer.
            while !is_whole(&requested) {
                match stream.read(&mut piece) {
                    Ok(0) | Err(_) => break,
                    Ok(read) => requested.extend_from_slice(&piece[..read]),
                }
            }
            drop(sender.send(String::from_utf8_lossy(&requested).into_owned()));
            // The client may have closed the connection.
            drop(stream.write_all(answer.as_bytes()));
        }
    });
    (url, requested)
}

/// Whether a request has arrived with all of its body.
fn is_whole(requested: &[u8]) -> bool {
    let Some(head) = requested.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let words = String::from_utf8_lossy(&requested[..head]).to_lowercase();
    let body = words.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    requested.len() >= head + 4 + body.unwrap_or(0)
}

/// Proves that a CloudEvent on Kafka is complete: it has the media type of its value, which is that of its framing, and the URL of the schema; that other
/// records have neither, and that this program reads all as they were written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_name_their_media_type_and_schema() {
    let dir = tempfile::tempdir().unwrap();
    let (log, (url, _requested)) =
        (open(dir.path()), answering("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 8\r\n\r\n{\"id\":1}".to_owned()));
    let written = [
        append(&RECALLS, value(&RECALLS, b"one"), true),
        append(&RECALLS, value(&RECALLS, b"two"), false),
        append(&RECALLS, b"x".to_vec(), true),
    ];
    let single = FramedLog::unregistered(Arc::clone(&log) as Arc<dyn EventLog>, SCHEMAS.to_owned());
    let confluent = framed(&log, "", Framing::Confluent, &url).await.unwrap();
    let fingerprint = avro::fingerprint_hex(RECALLS.name).unwrap();
    for (framed, begin, media_type) in [(&single, 0xc3, avro::SINGLE_OBJECT_TYPE), (&confluent, 0, avro::REGISTRY_FRAME_TYPE)] {
        let first = log.end(&RECALLS, 0).await.unwrap();
        framed.append(written.to_vec()).await.unwrap();
        let raw: Vec<Record> = log.read(&RECALLS, 0, first, 9, 1 << 20).await.unwrap().into_iter().map(|stored| stored.record).collect();
        let event = Headers::new(&[
            ("ce_id", b"1"),
            ("content-type", media_type.as_bytes()),
            ("ce_dataschema", format!("{SCHEMAS}{fingerprint}").as_bytes()),
        ]);
        assert_eq!((&raw[0].headers, raw[0].value[0]), (&event, begin));
        assert_eq!([&raw[1].headers, &raw[2].headers], [&written[1].record.headers, &written[2].record.headers]);
    }
    // The answers above give all schemas the same id, so this reads the values without one.
    let read: Vec<Headers> =
        single.read(&RECALLS, 0, LogOffset(0), 3, 1 << 20).await.unwrap().into_iter().map(|stored| stored.record.headers).collect();
    assert_eq!(read, written.map(|append| append.record.headers));
}

/// Proves the same of every topic with a schema, and that events of private topics have neither header: their schemas are not served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_every_public_topic_are_described() {
    let dir = tempfile::tempdir().unwrap();
    let (log, (url, _requested)) =
        (open(dir.path()), answering("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 8\r\n\r\n{\"id\":1}".to_owned()));
    let single = FramedLog::unregistered(Arc::clone(&log) as Arc<dyn EventLog>, SCHEMAS.to_owned());
    let confluent = framed(&log, "", Framing::Confluent, &url).await.unwrap();
    let all: Vec<&'static Topic> = topics::ALL.iter().filter(|topic| avro::ALL.iter().any(|text| text.topic == topic.name)).collect();
    for (framed, media_type) in [(&single, avro::SINGLE_OBJECT_TYPE), (&confluent, avro::REGISTRY_FRAME_TYPE)] {
        let batch: Vec<Append> = all.iter().copied().map(|topic| append(topic, value(topic, b"x"), true)).collect();
        framed.append(batch).await.unwrap();
        for topic in all.iter().copied() {
            let end = log.end(topic, 0).await.unwrap();
            let raw = log.read(topic, 0, LogOffset(end.0 - 1), 1, 1 << 20).await.unwrap().remove(0).record;
            let schema = format!("{SCHEMAS}{}", avro::fingerprint_hex(topic.name).unwrap());
            let described = Headers::new(&[("ce_id", b"1"), ("content-type", media_type.as_bytes()), ("ce_dataschema", schema.as_bytes())]);
            let plain = Headers::new(&[("ce_id", b"1")]);
            assert_eq!(raw.headers, if topic.private { plain } else { described }, "{}", topic.name);
        }
    }
    assert!(all.iter().filter(|topic| !topic.private).count() > 20 && all.iter().any(|topic| topic.private));
}

/// Proves that refusals, redirects, answers of other types and sizes, and missing answers are errors that say what to do, and that no
/// password is shown or sent to another host.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unexpected_responses_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    let ask = async |url: &str| {
        let options = registry::Options { url: url.to_owned(), credentials: Some(("name".to_owned(), "geheim".to_owned())) };
        assert!(!format!("{options:?}").contains("geheim"));
        let plain = Arc::clone(&log) as Arc<dyn EventLog>;
        let made = FramedLog::registered(plain, SCHEMAS.to_owned(), topics::ALL, "", Framing::Confluent, options).await;
        let error = made.err().unwrap();
        let words = schemas::reason::reason(&error);
        assert!(!words.contains("geheim"), "{words}");
        words
    };
    let (elsewhere, requested_elsewhere) = answering("HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n{\"id\":1}".to_owned());
    let large = format!("HTTP/1.1 200 OK\r\ncontent-length: 3000000\r\n\r\n{}", " ".repeat(3_000_000));
    for (answer, words) in [
        ("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n", "refuses the credentials (status 401)"),
        ("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n", "avro.registry_password"),
        (
            "HTTP/1.1 422 No\r\ncontent-length: 47\r\n\r\n{\"error_code\":42201,\"message\":\"Invalid schema\"}",
            "status 422: Invalid schema",
        ),
        ("HTTP/1.1 500 Oh\r\ncontent-length: 9\r\n\r\n<p>no</p>", "status 500: <p>no</p>"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n<p>hi</p>", "unexpected response"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{\"id\":-1.5}", "unexpected response"),
        (&format!("HTTP/1.1 307 There\r\nlocation: {elsewhere}/\r\ncontent-length: 0\r\n\r\n"), "status 307"),
        (&large, "over 1048576 bytes"),
        ("", "does not answer"),
    ] {
        let (url, requested) = answering(answer.to_owned());
        let error = ask(&url).await;
        assert!(error.contains(words) && error.contains(url.trim_start_matches("http://")), "{error}");
        let (requested, first) =
            (requested.recv().unwrap().to_lowercase(), format!("post /subjects/{}-value/versions ", topics::ALL[0].name));
        assert!(requested.starts_with(&first) && requested.contains("authorization: basic bmftztpnzwhlaw0="), "{requested}");
    }
    assert!(requested_elsewhere.try_recv().is_err(), "a redirect is not followed");
    // Nothing listens on this port, which is below those that the system gives to others.
    assert!(ask("http://127.0.0.1:1").await.contains("does not answer"));
    for url in ["registry:8081", "ftp://registry", "http://name:geheim@registry:8081", "http://registry/?x=1", ""] {
        assert!(ask(url).await.contains("is not an http or https address"), "{url}");
    }
}
