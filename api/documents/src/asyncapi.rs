//! The AsyncAPI 3 document of the public topics, rendered from THE LISTs of topics and schemas.
//!
//! Architecture invariant: no topic is named here. The description of a topic follows from its kind.

use operation::context::Settings;
use schemas::avro::{REGISTRY_FRAME_TYPE, SINGLE_OBJECT_TYPE};
use schemas::topics::{self, Topic, TopicKind};
use serde_json::{Map, Value, json};

use crate::avro_schemas;

/// The media type of an Avro schema inside an AsyncAPI document.
const AVRO: &str = "application/vnd.apache.avro;version=1.9.0";

/// Version of the Kafka bindings used below.
const BINDING: &str = "0.5.0";

const ABOUT: &str = "\
Public records as Kafka topics. **Facts** are what an upstream published. **Changes** are what a service derived from facts, in one total order per service. \
Records in a topic are never changed, re-ordered or removed, so a consumer that starts at the earliest offset reads everything.\n\n\
**Values** are Avro, framed as {framing}. `/schemas/` lists the schemas and `/schemas/{fingerprint}` is one of them, with the fingerprint as 16 hex digits, most \
significant first. The schema of a fingerprint never changes. Decode a value with the schema that its frame identifies, resolved to the schema you know.\n\n\
**Headers** are CloudEvents attributes in UTF-8, each with the prefix `ce_`, and `content-type`, which names the frame of the value: the binary mode of the \
CloudEvents Kafka binding. Records of earlier versions have no `content-type` and no `ce_dataschema`.\n\n\
**Only records that extend their chain count.** A topic may contain a record twice, or a record of a writer that lost a race; neither extends its chain. The \
channels define the rule for each kind of topic. A consumer that applies it sees each record exactly once and in order, and needs no transactions.";

const SINGLE_OBJECT: &str = "\
single objects: the bytes `C3 01`, the CRC-64-AVRO fingerprint of the schema in 8 bytes little endian, then the datum";

const CONFLUENT: &str = "\
schema registries do: a zero byte, the id of the schema at the registry in 4 bytes big endian, then the datum. The subjects are the topic names followed by \
`-value`. Values from before a registry was configured may be single objects: the bytes `C3 01`, the CRC-64-AVRO fingerprint of the \
schema in 8 bytes little endian, then the datum";

const FACTS: &str = "\
Facts chain per key. For each `key`, keep the `version` and `id` of the last fact that you accepted. Accept a fact if its `version` is one higher (1 for \
the first fact of a key) and its `prevHash` is that `id` (32 zero bytes for the first fact); skip all others. Of two facts that would extend the chain, \
the first in the partition counts.\n\n\
The key of a record is `STREAM/NUMBER`. Its partition is that of Kafka's default partitioner, so a key is always in the same partition. Keys that \
start with `@run/` are about sync runs (`run_started`, `run_marked`, `run_finished`, `run_failed`) and chain in the same way; skip them if you only \
want records.";

const CHANGES: &str = "\
The topic has one chain. Keep the `seq` of the last change that you accepted and its hash, the SHA-256 of its datum (the value without its frame, \
which has 10 bytes after `C3 01` and 5 after `00`); start with `seq` 0 and 32 zero bytes. Accept a change if its `seq` is one higher and its `prevHash` is that \
hash; skip all others.\n\n\
`new` and `modified` change a record, which is in `after`. `noted`, `through` and `parked` are bookkeeping: skip them if you only want records, but they \
are part of the chain. `following` is the number of changes of the same input that come after this one; wait for 0 to process an input as a whole.";

/// Renders the document, with the public addresses of brokers and registry.
#[must_use]
pub fn document(settings: &Settings) -> Value {
    let registry = settings.registry.as_deref();
    let (mut channels, mut operations, mut messages) = (Map::new(), Map::new(), Map::new());
    for topic in topics::ALL.iter().filter(|topic| !topic.private) {
        let name = topic.name;
        let (title, rule) = match topic.kind {
            TopicKind::Facts | TopicKind::Commands => ("Facts", FACTS),
            TopicKind::Changes => ("Changes", CHANGES),
            // Topics of other kinds have no chain and are not published.
            TopicKind::Rejects | TopicKind::Imports => continue,
        };
        let Some(message) = message(topic, registry.is_some()) else { continue };
        channels.insert(
            name.to_owned(),
            json!({
                "address": name,
                "title": format!("{title}: {name}"),
                "description": rule,
                "messages": {name: {"$ref": format!("#/components/messages/{name}")}},
                "bindings": {"kafka": {
                    "topic": name,
                    "partitions": topic.partitions,
                    "topicConfiguration": {"cleanup.policy": ["delete"], "retention.ms": -1, "retention.bytes": -1},
                    "bindingVersion": BINDING,
                }},
            }),
        );
        operations.insert(
            format!("send.{name}"),
            json!({
                "action": "send",
                "title": format!("Appends to {name}"),
                "channel": {"$ref": format!("#/channels/{name}")},
                "messages": [{"$ref": format!("#/channels/{name}/messages/{name}")}],
            }),
        );
        messages.insert(name.to_owned(), message);
    }
    json!({
        "asyncapi": "3.0.0",
        "info": {
            "title": "Highwater topics",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT.replace("{framing}", if registry.is_some() { CONFLUENT } else { SINGLE_OBJECT }),
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": media_type(registry.is_some()),
        "servers": servers(&settings.public_brokers, registry),
        "channels": channels,
        "operations": operations,
        "components": {"messages": messages},
    })
}

fn servers(brokers: &[String], registry: Option<&str>) -> Value {
    let with_registry = |mut server: Value| {
        if let (Some(url), Some(server)) = (registry.filter(|url| !url.is_empty()), server.as_object_mut()) {
            let binding = json!({"schemaRegistryUrl": url, "schemaRegistryVendor": "confluent", "bindingVersion": BINDING});
            server.insert("bindings".to_owned(), json!({"kafka": binding}));
        }
        server
    };
    if brokers.is_empty() {
        return json!({"kafka": with_registry(json!({
            "host": "{broker}",
            "protocol": "kafka",
            "description": "The Kafka brokers of this installation, if its log is on Kafka. Ask its operator for their addresses.",
            "variables": {"broker": {"default": "localhost:9092", "description": "host:port of any broker"}},
        }))});
    }
    let server =
        |(index, broker): (usize, &String)| (format!("kafka-{}", index + 1), with_registry(json!({"host": broker, "protocol": "kafka"})));
    Value::Object(brokers.iter().enumerate().map(server).collect())
}

/// The media type of values, with or without the frame of a schema registry.
fn media_type(is_registered: bool) -> &'static str {
    if is_registered { REGISTRY_FRAME_TYPE } else { SINGLE_OBJECT_TYPE }
}

/// The message of a topic; `None` for a topic without a schema.
fn message(topic: &Topic, is_registered: bool) -> Option<Value> {
    let (fingerprint, text) = avro_schemas::public().find(|(_, text)| text.topic == topic.name)?;
    let schema: Value = serde_json::from_str(text.json).ok()?;
    let (kind, key, source, id) = match topic.kind {
        TopicKind::Changes => {
            ("event", "the `id` of the record; empty if the change is not about a record", "service", "the change's hash")
        }
        _ => ("kind", "`key` of the fact", "stream, the dataset or endpoint at the upstream", "`id` of the fact"),
    };
    let prefix = format!("highwater.{}.", topic.name.trim_start_matches("changes."));
    let types: Vec<String> = symbols(&schema, kind).iter().map(|symbol| format!("{prefix}{symbol}")).collect();
    let mut binding = json!({"key": {"type": "string", "description": format!("{key}, in UTF-8")}, "bindingVersion": BINDING});
    if let (true, Some(binding)) = (is_registered, binding.as_object_mut()) {
        for (name, value) in
            [("schemaIdLocation", "payload"), ("schemaIdPayloadEncoding", "confluent"), ("schemaLookupStrategy", "TopicNameStrategy")]
        {
            binding.insert(name.to_owned(), json!(value));
        }
    }
    Some(json!({
        "name": topic.name,
        "title": schema.get("name"),
        "summary": schema.get("doc"),
        "contentType": media_type(is_registered),
        "headers": {
            "type": "object",
            "required": ["ce_specversion", "ce_id", "ce_type", "ce_source", "ce_time"],
            "properties": {
                "ce_specversion": {"const": "1.0", "description": "version of CloudEvents"},
                "ce_id": {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": format!("CloudEvents id: {id}, as 64 hex digits")},
                "ce_type": {"type": "string", "enum": types, "description": "CloudEvents type"},
                "ce_source": {"type": "string", "description": format!("CloudEvents source: `/` and the {source}")},
                "ce_time": {"type": "string", "format": "date-time", "description": "CloudEvents time, RFC 3339"},
                "content-type": {
                    "enum": [media_type(is_registered), media_type(!is_registered)],
                    "description": "media type of the value; the first is that of values written now, the other that of values with the other frame",
                },
                "ce_dataschema": {"type": "string", "format": "uri", "description": "CloudEvents dataschema: URL of the schema of the value"},
            },
        },
        "payload": {"schemaFormat": AVRO, "schema": schema},
        "bindings": {"kafka": binding},
        "x-avro-framing": if is_registered { "confluent" } else { "single-object" },
        "x-avro-fingerprint": fingerprint,
        "x-avro-schema": avro_schemas::path(&fingerprint),
    }))
}

/// The symbols of an enum field in a record schema.
fn symbols<'a>(schema: &'a Value, field: &str) -> Vec<&'a str> {
    let fields = schema.get("fields").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let found = fields.iter().find(|candidate| candidate.get("name").and_then(Value::as_str) == Some(field));
    let symbols = found.and_then(|field| field.pointer("/type/symbols")).and_then(Value::as_array);
    symbols.into_iter().flatten().filter_map(Value::as_str).collect()
}
