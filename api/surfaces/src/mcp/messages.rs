//! Messages as clients write them. Clients of some languages write an empty object as `[]`, and the library refuses a message whose parameters it cannot
//! read as if its method did not exist, or without the id of the request. This module reads an empty list as an empty object, and names the
//! parameter of a request that is malformed. It also splits the batches of older clients.

use std::borrow::Cow;

use arguments::echo;
use bytes::Bytes;
use proofs::i_json;
use rmcp::model::{ClientRequest, ErrorCode, ErrorData};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The objects within the parameters of a message that clients write as an empty list.
const OBJECTS: [&[&str]; 2] = [&["_meta"], &["arguments"]];

/// The objects within the parameters that hold nothing but objects and truth values, whatever a later version of the protocol adds.
const CAPABILITIES: [&[&str]; 2] = [&["capabilities"], &["_meta", "io.modelcontextprotocol/clientCapabilities"]];

/// What the parameters of a method must have: the path, the type, and whether it is required.
type Rule = (&'static [&'static str], Type, bool);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Text,
    Object,
}

const INITIALIZE: &[Rule] = &[
    (&["protocolVersion"], Type::Text, true),
    (&["capabilities"], Type::Object, true),
    (&["clientInfo"], Type::Object, true),
    (&["clientInfo", "name"], Type::Text, true),
    (&["clientInfo", "version"], Type::Text, true),
];
const CALL: &[Rule] = &[(&["name"], Type::Text, true), (&["arguments"], Type::Object, false)];
const LIST: &[Rule] = &[(&["cursor"], Type::Text, false)];

/// The rules of a method; `None` if the endpoint does not have it.
fn rules(method: &str) -> Option<&'static [Rule]> {
    match method {
        "initialize" => Some(INITIALIZE),
        "tools/call" => Some(CALL),
        "tools/list" => Some(LIST),
        "ping" | "server/discover" => Some(&[]),
        _ => None,
    }
}

/// Whether a message calls a tool.
pub(super) fn is_call(message: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow)]
        method: Cow<'a, str>,
    }
    serde_json::from_slice::<Head<'_>>(message).is_ok_and(|head| head.method == "tools/call")
}

/// The messages of a batch as they are written; `None` for any other body, also for an empty list.
pub(super) fn batch(body: &[u8]) -> Option<Vec<Bytes>> {
    if body.trim_ascii_start().first() != Some(&b'[') {
        return None;
    }
    let messages: Vec<&RawValue> = serde_json::from_slice(body).ok()?;
    let messages: Vec<Bytes> = messages.into_iter().map(|message| Bytes::copy_from_slice(message.get().as_bytes())).collect();
    (!messages.is_empty()).then_some(messages)
}

/// Reads empty lists as empty objects, and arguments that are the text of a JSON object, or of an empty list, as that object. Returns whether the message
/// changed.
pub(super) fn repair(message: &mut Value) -> bool {
    if message.get("method").and_then(Value::as_str).is_none() {
        return false;
    }
    let Some(params) = message.get_mut("params") else { return false };
    let mut has_changed = to_object(params);
    if let Some(arguments) = params.get_mut("arguments")
        && let Some(Ok(Some(read))) = arguments.as_str().map(|text| i_json::read(text.as_bytes(), |_, _| true))
        && (read.is_object() || read.as_array().is_some_and(Vec::is_empty))
    {
        *arguments = read;
        has_changed = true;
    }
    for path in OBJECTS {
        has_changed |= at(params, path).is_some_and(to_object);
    }
    for path in CAPABILITIES {
        has_changed |= at(params, path).is_some_and(to_objects);
    }
    has_changed
}

/// The value at a path.
fn at<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |value, name| value.get_mut(name))
}

/// Replaces an empty list with an empty object, also in the fields of an object.
fn to_objects(value: &mut Value) -> bool {
    match value {
        Value::Object(fields) => fields.values_mut().fold(false, |has_changed, field| to_objects(field) | has_changed),
        value => to_object(value),
    }
}

/// Replaces an empty list with an empty object.
fn to_object(value: &mut Value) -> bool {
    let is_empty_list = value.as_array().is_some_and(Vec::is_empty);
    if is_empty_list {
        *value = Value::Object(Map::new());
    }
    is_empty_list
}

/// The JSON-RPC error of a request whose parameters are malformed, with the id of the request; `None` for any other message.
pub(super) fn malformed(message: &Value) -> Option<Value> {
    let id = message.get("id").filter(|id| id.is_string() || id.is_i64() || id.is_u64())?;
    let method = message.get("method")?.as_str()?;
    let rules = rules(method)?;
    let words = check(rules, message.get("params").unwrap_or(&Value::Null)).or_else(|| unreadable(method, message.get("params")))?;
    let error = ErrorData::new(ErrorCode::INVALID_PARAMS, format!("Invalid params: {words}"), None);
    Some(json!({ "jsonrpc": "2.0", "id": id, "error": error }))
}

/// The first violation of the rules.
fn check(rules: &[Rule], params: &Value) -> Option<String> {
    let show = |value: &Value| echo(&value.to_string()).into_owned();
    let is_missing = params.is_null();
    if !is_missing && !params.is_object() {
        return Some(format!("params: {} is not an object", show(params)));
    }
    rules.iter().find_map(|(path, kind, is_required)| {
        let name = path.join(".");
        match path.iter().try_fold(params, |value, name| value.get(name)).filter(|value| !value.is_null()) {
            None => is_required.then(|| format!("params.{name} is missing")),
            Some(value) if *kind == Type::Text && !value.is_string() => Some(format!("params.{name}: {} is not a text", show(value))),
            Some(value) if *kind == Type::Object && !value.is_object() => Some(format!("params.{name}: {} is not an object", show(value))),
            Some(_) => None,
        }
    })
}

/// The words for parameters that the library cannot read. It takes such a request for one of an unknown method.
fn unreadable(method: &str, params: Option<&Value>) -> Option<String> {
    let mut request = json!({ "method": method });
    if let Some(params) = params {
        request["params"] = params.clone();
    }
    if is_readable(request) {
        return None;
    }
    // The field is the first without which, or with an empty object as which, the request can be read.
    let fields = params.and_then(Value::as_object);
    let culprit = fields.into_iter().flatten().find(|(name, _)| {
        let mut rest = fields.cloned().unwrap_or_default();
        rest.remove(*name);
        let is_read_without = is_readable(json!({ "method": method, "params": rest.clone() }));
        rest.insert((*name).clone(), json!({}));
        is_read_without || is_readable(json!({ "method": method, "params": rest }))
    });
    Some(culprit.map_or_else(
        || "params does not have the fields of this method".to_owned(),
        |(name, value)| format!("params.{name}: {} does not have the type of this field", echo(&value.to_string())),
    ))
}

/// Whether the library reads a request as one of its method.
fn is_readable(request: Value) -> bool {
    serde_json::from_value::<ClientRequest>(request).is_ok_and(|request| !matches!(request, ClientRequest::CustomRequest(_)))
}
