//! The topics as a product: the AsyncAPI document and the schemas served by fingerprint.

use std::path::Path;
use std::process::Command;

use schemas::avro;
use schemas::topics::{self, TopicKind};

use super::*;

/// Proves that the AsyncAPI document has a channel with message, operation and rule for every public topic and for no other, according to the list of topics.
#[tokio::test]
async fn asyncapi() {
    let fixture = Fixture::new(|_| {});
    let read = get(&fixture, "/asyncapi.json").await;
    assert_eq!((read.status.as_u16(), read.header("content-type")), (200, "application/json"));
    let document = read.json();
    assert_eq!(document["asyncapi"], "3.0.0");
    assert_eq!(document["servers"]["kafka"]["variables"]["broker"]["default"], "localhost:9092");
    let channels = document["channels"].as_object().unwrap();
    let public: Vec<_> = topics::ALL.iter().filter(|topic| !topic.private).collect();
    assert_eq!(channels.len(), public.len(), "{:?}", channels.keys());
    for topic in public {
        let (name, channel) = (topic.name, &channels[topic.name]);
        assert_eq!((&channel["address"], &channel["bindings"]["kafka"]["partitions"]), (&json!(name), &json!(topic.partitions)));
        let rule = channel["description"].as_str().unwrap();
        for word in if topic.kind == TopicKind::Changes { ["`seq`", "`prevHash`"] } else { ["`version`", "`prevHash`"] } {
            assert!(rule.contains(word), "{name}: {word}");
        }
        let operation = &document["operations"][format!("send.{name}")];
        assert_eq!((&operation["action"], &operation["channel"]["$ref"]), (&json!("send"), &json!(format!("#/channels/{name}"))));
        let message = &document["components"]["messages"][name];
        assert_eq!(message["payload"]["schemaFormat"], "application/vnd.apache.avro;version=1.9.0");
        assert_eq!(message["x-avro-fingerprint"], avro::fingerprint_hex(name).unwrap());
        assert!(!message["headers"]["properties"]["ce_type"]["enum"].as_array().unwrap().is_empty(), "{name}");
        let headers = &message["headers"]["properties"];
        assert_eq!(
            (&headers["content-type"]["enum"][0], &headers["ce_dataschema"]["format"]),
            (&message["contentType"], &json!("uri")),
            "{name}"
        );
        let served = get(&fixture, message["x-avro-schema"].as_str().unwrap()).await.json();
        assert_eq!(message["payload"]["schema"], served, "{name}");
    }
    let changes = &document["components"]["messages"]["changes.recalls"]["headers"]["properties"]["ce_type"]["enum"];
    assert_eq!(changes[0], "highwater.recalls.new");
}

/// Proves that the configured brokers are the servers of the document.
#[tokio::test]
async fn asyncapi_servers() {
    let fixture = Fixture::new(|settings| settings.public_brokers = vec!["a.example:9093".to_owned(), "b.example:9093".to_owned()]);
    let servers = get(&fixture, "/asyncapi.json").await.json()["servers"].clone();
    assert_eq!(servers["kafka-2"], json!({"host": "b.example:9093", "protocol": "kafka"}));
    assert_eq!(servers.as_object().unwrap().len(), 2);
}

/// Proves that the document says whether topics are framed by a schema registry, and its URL.
#[tokio::test]
async fn asyncapi_registry() {
    let fixture = Fixture::new(|settings| settings.registry = Some("http://registry.example:8081".to_owned()));
    let document = get(&fixture, "/asyncapi.json").await.json();
    assert_eq!(document["servers"]["kafka"]["bindings"]["kafka"]["schemaRegistryUrl"], "http://registry.example:8081");
    let message = &document["components"]["messages"]["changes.recalls"];
    assert_eq!(
        (&message["x-avro-framing"], &message["bindings"]["kafka"]["schemaIdPayloadEncoding"]),
        (&json!("confluent"), &json!("confluent"))
    );
    let types = |document: &Value| {
        let message = &document["components"]["messages"]["changes.recalls"];
        assert_eq!(message["contentType"], document["defaultContentType"]);
        message["headers"]["properties"]["content-type"]["enum"].clone()
    };
    let (framed, single) = ("application/vnd.confluent.avro", "application/vnd.apache.avro.single-object");
    assert_eq!(types(&document), json!([framed, single]));
    assert_eq!(types(&get(&Fixture::new(|_| {}), "/asyncapi.json").await.json()), json!([single, framed]));
    assert!(document["info"]["description"].as_str().unwrap().contains("a zero byte, the id of the schema"));
    assert!(get(&Fixture::new(|_| {}), "/asyncapi.json").await.json()["info"]["description"].as_str().unwrap().contains("`C3 01`"));
}

/// Proves that a public schema is found by fingerprint and cacheable for ever, that private schemas are not served, and that a mistyped fingerprint gets a suggestion.
#[tokio::test]
async fn schemas_by_fingerprint() {
    let fixture = Fixture::new(|_| {});
    let list = get(&fixture, "/schemas/").await;
    assert_eq!(list.header("cache-control"), "no-cache");
    let listed = list.json()["schemas"].as_array().unwrap().clone();
    assert_eq!(get(&fixture, "/schemas").await.body, list.body);
    let public = avro::ALL.iter().filter(|text| topics::by_name(text.topic).is_some_and(|topic| !topic.private));
    assert_eq!(listed.len(), public.count());
    for entry in &listed {
        let fingerprint = entry["fingerprint"].as_str().unwrap();
        assert!(fingerprint.len() == 16 && fingerprint.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')), "{entry}");
        let read = get(&fixture, entry["path"].as_str().unwrap()).await;
        assert_eq!(
            (read.header("content-type"), read.header("cache-control")),
            ("application/json", "public, max-age=31536000, immutable")
        );
        let schema = read.json();
        assert_eq!(entry["name"], format!("{}.{}", schema["namespace"].as_str().unwrap(), schema["name"].as_str().unwrap()));
        let again = send(&fixture, ask().path(entry["path"].as_str().unwrap()).header("if-none-match", read.header("etag"))).await;
        assert_eq!(again.status, 304);
    }
    let accounts = avro::fingerprint_hex("accounts").unwrap();
    let read = get(&fixture, &format!("/schemas/{accounts}")).await;
    assert_eq!((read.status.as_u16(), read.problem().0.as_str()), (404, "not-found"));
    let recalls = avro::fingerprint_hex("recalls").unwrap();
    let mistyped = get(&fixture, &format!("/schemas/{}", &recalls[..15])).await;
    assert_eq!(mistyped.status, 404);
    assert!(mistyped.json()["detail"].as_str().unwrap().contains(&recalls), "{}", mistyped.body);
}

/// Proves that people and models find both from the root.
#[tokio::test]
async fn linked() {
    let fixture = Fixture::new(|_| {});
    for path in ["/", "/llms.txt"] {
        let body = get(&fixture, path).await.body;
        assert!(body.contains("/asyncapi.json") && body.contains("/schemas/"), "{path}");
    }
}

/// Proves that the official parser accepts the document, if node and the parser are available; with `CI=true` they must be.
#[tokio::test]
async fn asyncapi_official() {
    let fixture = Fixture::new(|_| {});
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), get(&fixture, "/asyncapi.json").await.body).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops/checks/asyncapi");
    let output = Command::new(script).arg(file.path()).output().unwrap();
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
}
