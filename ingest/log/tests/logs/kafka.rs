//! The log on a real Kafka broker.

use std::sync::Arc;

use bytes::Bytes;
use event_log::kafka::{KafkaLog, Options};
use event_log::{Append, EventLog, Headers, Record, contract};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::KafkaError;
use schemas::position::LogOffset;
use schemas::topics::{RECALLS, TopicKind};

use crate::within;

fn options(test: &str) -> Option<Options> {
    let address = engines::or_skip(engines::kafka(), test)?;
    Some(Options { prefix: format!("{}.", engines::unique("log")), ..Options::new(&address) })
}

fn record(value: &str) -> Append {
    let value = Bytes::from(value.to_owned());
    Append { topic: &RECALLS, partition: 0, record: Record { key: Bytes::from_static(b"k"), value, headers: Headers::default(), at_ms: 1 } }
}

/// Proves that the log on a broker fulfils the contract of all logs.
#[tokio::test(flavor = "multi_thread")]
async fn fulfils_the_contract() {
    let Some(options) = options("kafka: the log's contract") else { return };
    let record_bytes_max = options.record_bytes_max;
    let make = || {
        let options = options.clone();
        async move { KafkaLog::open(options).await.unwrap() as Arc<dyn EventLog> }
    };
    contract::run_all(make, record_bytes_max).await.unwrap();
}

/// Proves that a reader far behind reads everything from any position, including records that the cache of new records has dropped.
#[tokio::test(flavor = "multi_thread")]
async fn old_records_are_read() {
    let Some(options) = options("kafka: reading from far behind") else { return };
    let log = KafkaLog::open(Options { tail_bytes_max: 1, ..options.clone() }).await.unwrap();
    for batch in 0..40 {
        let value = format!("{batch} {}", "x".repeat(100_000));
        log.append((0..2).map(|_| record(&value)).collect()).await.unwrap();
    }
    let other = KafkaLog::open(options).await.unwrap();
    for log in [log, other] {
        let (mut next, mut read) = (LogOffset(0), Vec::new());
        loop {
            let page = log.read(&RECALLS, 0, next, 7, 1 << 30).await.unwrap();
            let Some(last) = page.last() else { break };
            next = last.offset.next();
            read.extend(page.into_iter().map(|stored| stored.record.value));
        }
        let batches: Vec<Vec<u8>> = read.iter().map(|value| value.split(|byte| *byte == b' ').next().unwrap().to_vec()).collect();
        let expected: Vec<Vec<u8>> = (0..40).flat_map(|batch| [format!("{batch}").into_bytes(), format!("{batch}").into_bytes()]).collect();
        assert_eq!(batches, expected);
        let middle = log.read(&RECALLS, 0, LogOffset(33), 1, 1).await.unwrap();
        assert_eq!(middle[0].offset, LogOffset(33));
    }
}

/// Proves that records appended by another process are seen and wake waiting readers.
#[tokio::test(flavor = "multi_thread")]
async fn appends_of_other_processes_are_seen() {
    let Some(options) = options("kafka: two processes") else { return };
    let (one, two) = (KafkaLog::open(options.clone()).await.unwrap(), KafkaLog::open(options).await.unwrap());
    for round in 0..20 {
        let waiter = {
            let two = Arc::clone(&two);
            tokio::spawn(async move { two.wait_past(&RECALLS, 0, LogOffset(round)).await })
        };
        one.append(vec![record(&round.to_string())]).await.unwrap();
        within("waking a waiting reader", waiter).await.unwrap().unwrap();
        let read = two.read(&RECALLS, 0, LogOffset(round), 10, 1 << 20).await.unwrap();
        assert_eq!(read[0].record.value, round.to_string());
        assert_eq!(two.end(&RECALLS, 0).await.unwrap(), LogOffset(round + 1));
    }
}

/// Proves that topics with wrong settings and unreachable brokers are refused with the reason.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_clusters_are_refused() {
    const WIDER: &[schemas::topics::Topic] =
        &[schemas::topics::Topic { name: "recalls", kind: TopicKind::Facts, partitions: 7, private: false }];
    let Some(options) = options("kafka: wrong clusters") else { return };
    KafkaLog::open(options.clone()).await.unwrap();
    let error = KafkaLog::open(Options { topics: WIDER, ..options.clone() }).await.err().unwrap().to_string();
    assert!(error.contains("recalls has 4 partitions, not 7"), "{error}");
    let error = KafkaLog::open(Options { record_bytes_max: 8 << 20, ..options.clone() }).await.err().unwrap().to_string();
    assert!(error.contains("refuses records over"), "{error}");
    let error = KafkaLog::open(Options { in_sync_min: 2, ..options.clone() }).await.err().unwrap().to_string();
    assert!(error.contains("min.insync.replicas=1"), "{error}");
    let nobody = Options { brokers: "127.0.0.1:1".to_owned(), ..options };
    let error = KafkaLog::open(nobody).await.err().unwrap().to_string();
    assert!(error.contains("127.0.0.1:1"), "{error}");
}

/// Proves that topics are created without unclean elections, and that a topic which allows them is accepted while it has one copy, which no election loses.
#[tokio::test(flavor = "multi_thread")]
async fn unclean_elections_of_one_copy_are_accepted() {
    const UNCLEAN: &str = "unclean.leader.election.enable";
    let Some(options) = options("kafka: unclean elections") else { return };
    KafkaLog::open(options.clone()).await.unwrap();
    assert_eq!(topic_setting(&options, UNCLEAN).await.unwrap().as_deref(), Some("false"));
    set_topic(&options, &[(UNCLEAN, "true"), ("max.message.bytes", "1114112")]).await.unwrap();
    // The broker applies new settings a moment after it has accepted them.
    let applied = async { while topic_setting(&options, UNCLEAN).await.unwrap().as_deref() != Some("true") {} };
    within("the new setting of a topic", applied).await;
    KafkaLog::open(options).await.unwrap();
}

/// Changes the largest batch that the topic accepts.
async fn set_batch_bytes_max(options: &Options, bytes_max: &str) -> Result<(), KafkaError> {
    set_topic(options, &[("max.message.bytes", bytes_max)]).await
}

fn admin(options: &Options) -> Result<AdminClient<DefaultClientContext>, KafkaError> {
    ClientConfig::new().set("bootstrap.servers", &options.brokers).create()
}

/// Reads a setting of the topic.
async fn topic_setting(options: &Options, key: &str) -> Result<Option<String>, KafkaError> {
    let name = options.name_of(&RECALLS);
    let described = admin(options)?.describe_configs(&[ResourceSpecifier::Topic(&name)], &AdminOptions::new()).await?.remove(0);
    Ok(described.map_err(KafkaError::AdminOp)?.get(key).and_then(|entry| entry.value.clone()))
}

/// Changes settings of the topic. All others but its retention become those of the broker.
async fn set_topic(options: &Options, settings: &[(&str, &str)]) -> Result<(), KafkaError> {
    let (admin, name) = (admin(options)?, options.name_of(&RECALLS));
    let altered =
        [settings.iter().fold(AlterConfig::new(ResourceSpecifier::Topic(&name)).set("retention.ms", "-1"), |altered, (key, value)| {
            altered.set(key, value)
        })];
    for result in admin.alter_configs(&altered, &AdminOptions::new()).await? {
        result.map_err(|(_, code)| KafkaError::AdminOp(code))?;
    }
    Ok(())
}

/// Proves that a topic whose size limit was lowered refuses larger records with an error that names the topic and the sizes, accepts
/// smaller ones, and accepts all of them again after the limit is raised. No record is lost or duplicated.
#[tokio::test(flavor = "multi_thread")]
async fn a_lowered_size_limit_is_reported() {
    let Some(options) = options("kafka: a topic that takes less") else { return };
    let log = KafkaLog::open(options.clone()).await.unwrap();
    let large: String = (0..100_000).map(|n: u32| char::from(b'a' + (n.wrapping_mul(2_654_435_761) >> 24) as u8 % 26)).collect();
    log.append(vec![record("before")]).await.unwrap();
    set_batch_bytes_max(&options, "2000").await.unwrap();
    let refused = async {
        loop {
            // The broker applies new settings a moment after it has accepted them.
            if let Err(error) = log.append(vec![record(&large)]).await {
                break error.to_string();
            }
        }
    };
    let error = within("the refusal of a record", refused).await;
    for words in
        [&format!("topic {}recalls refuses", options.prefix), "a record of 100001 bytes", "max.message.bytes must be 1114112 or more"]
    {
        assert!(error.contains(words), "{error}");
    }
    log.append(vec![record("meanwhile")]).await.unwrap();
    set_batch_bytes_max(&options, "1114112").await.unwrap();
    let taken = async { while log.append(vec![record(&large)]).await.is_err() {} };
    within("the append of a record", taken).await;
    let read = log.read(&RECALLS, 0, LogOffset(0), 100, 1 << 30).await.unwrap();
    let sizes: Vec<usize> = read.iter().map(|stored| stored.record.value.len()).filter(|size| *size < 1_000).collect();
    assert_eq!(sizes, ["before".len(), "meanwhile".len()]);
    assert_eq!(read.last().unwrap().record.value, large);
}
