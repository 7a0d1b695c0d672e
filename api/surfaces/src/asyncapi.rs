//! The AsyncAPI 3 document of the public topics, rendered from the lists of topics and schemas.
//!
//! Architecture invariant: no topic is named here. What a topic is follows from its kind.

use schemas::topics::{self, Topic, TopicKind};
use serde_json::{Map, Value, json};

use crate::schemas_served;
use operation::context::Settings;

/// The media type of an Avro schema inside an AsyncAPI document.
const AVRO: &str = "application/vnd.apache.avro;version=1.9.0";

/// Version of the Kafka bindings used below.
const BINDING: &str = "0.5.0";

const ABOUT: &str = "\
Public records as Kafka topics: **facts** are what an upstream said, **changes** what it means for one service, in that service's one order. \
Nothing in a topic is changed, re-ordered or removed, so a reader begins at the earliest offset and has everything.\n\n\
**Values** are Avro, framed as {framing}. `/schemas/` lists the schemas, `/schemas/{fingerprint}` is one of them, the fingerprint as 16 hex digits, most significant \
first; what stands there never changes. Read a value with the schema that its frame names, resolved to the one you know.\n\n\
**Headers** are CloudEvents attributes in UTF-8, each with the prefix `ce_`.\n\n\
**What counts is what chains.** A topic may hold the same record twice, or one of a writer that lost a race; neither extends its chain. The \
channels say each kind's rule. A reader that follows it sees each record once and in order, whatever was sent again, and needs no transactions.";

const SINGLE_OBJECT: &str = "\
single objects: the bytes `C3 01`, the CRC-64-AVRO fingerprint of the schema in 8 bytes little endian, then the datum";

const CONFLUENT: &str = "\
schema registries do: a zero byte, the id of the schema at the registry in 4 bytes big endian, then the datum; the subjects are the topics' \
names with `-value` behind. Values from before this was set may be single objects: the bytes `C3 01`, the CRC-64-AVRO fingerprint of the \
schema in 8 bytes little endian, then the datum";

const FACTS: &str = "\
Facts chain per key. Keep, for each `key`, the `version` and `id` of the last fact taken. Take a fact if its `version` is one above (1 for \
the first of the key) and its `prevHash` is that `id` (32 zero bytes for the first); skip every other. Of two that would extend the chain \
the first in the partition counts.\n\n\
A record's key is `DOOR/NUMBER`; its partition is that of Kafka's default partitioner, so that a key stays in one partition. Keys that \
begin with `@run/` tell of runs (`run_started`, `run_marked`, `run_finished`, `run_failed`) and chain in the same way; who wants records \
only leaves them out.";

const CHANGES: &str = "\
The topic chains as a whole. Keep the `seq` of the last change taken and its hash, the SHA-256 of its datum (the value without its frame, \
which is 10 bytes after `C3 01` and 5 after `00`); begin with `seq` 0 and 32 zero bytes. Take a change if its `seq` is one above and its `prevHash` is that hash; skip every \
other.\n\n\
`new` and `modified` change a record, which stands in `after`; `noted`, `through` and `parked` are bookkeeping, which a reader of records \
skips, but they are part of the chain. `following` counts the changes of the same input that come after: who wants an input whole waits \
for 0.";

/// The document, with what readers are told of brokers and registry.
pub(crate) fn document(settings: &Settings) -> Value {
    let registry = settings.registry.as_deref();
    let (mut channels, mut operations, mut messages) = (Map::new(), Map::new(), Map::new());
    for topic in topics::ALL.iter().filter(|topic| !topic.private) {
        let name = topic.name;
        let (title, rule) = match topic.kind {
            TopicKind::Facts | TopicKind::Commands => ("Facts", FACTS),
            TopicKind::Changes => ("Changes", CHANGES),
            // Chain in no way and are offered to nobody.
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
        "defaultContentType": "application/avro",
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
            "description": "The brokers of this installation, where its log is on Kafka; its operator tells their addresses.",
            "variables": {"broker": {"default": "localhost:9092", "description": "host:port of any broker"}},
        }))});
    }
    let server =
        |(index, broker): (usize, &String)| (format!("kafka-{}", index + 1), with_registry(json!({"host": broker, "protocol": "kafka"})));
    Value::Object(brokers.iter().enumerate().map(server).collect())
}

/// The one message of a topic; `None` for a topic without a schema.
fn message(topic: &Topic, is_registered: bool) -> Option<Value> {
    let (fingerprint, text) = schemas_served::public().find(|(_, text)| text.topic == topic.name)?;
    let schema: Value = serde_json::from_str(text.json).ok()?;
    let (kind, key, source, id) = match topic.kind {
        TopicKind::Changes => ("event", "the `id` of the record; empty where a change is about none", "service", "the change's hash"),
        _ => ("kind", "`key` of the fact", "door, the way in at the upstream", "`id` of the fact"),
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
        "contentType": "application/avro",
        "headers": {
            "type": "object",
            "required": ["ce_specversion", "ce_id", "ce_type", "ce_source", "ce_time"],
            "properties": {
                "ce_specversion": {"const": "1.0", "description": "version of CloudEvents"},
                "ce_id": {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": format!("CloudEvents id: {id}, as 64 hex digits")},
                "ce_type": {"type": "string", "enum": types, "description": "CloudEvents type"},
                "ce_source": {"type": "string", "description": format!("CloudEvents source: `/` and the {source}")},
                "ce_time": {"type": "string", "format": "date-time", "description": "CloudEvents time, RFC 3339"},
            },
        },
        "payload": {"schemaFormat": AVRO, "schema": schema},
        "bindings": {"kafka": binding},
        "x-avro-framing": if is_registered { "confluent" } else { "single-object" },
        "x-avro-fingerprint": fingerprint,
        "x-avro-schema": schemas_served::path(&fingerprint),
    }))
}

/// The symbols of an enum field of a record schema.
fn symbols<'a>(schema: &'a Value, field: &str) -> Vec<&'a str> {
    let fields = schema.get("fields").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let found = fields.iter().find(|candidate| candidate.get("name").and_then(Value::as_str) == Some(field));
    let symbols = found.and_then(|field| field.pointer("/type/symbols")).and_then(Value::as_array);
    symbols.into_iter().flatten().filter_map(Value::as_str).collect()
}
