//! Random requests: valid, changed and malformed ones, made from the operations in the OpenAPI documents.

mod values;

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::texts::{DOCUMENTS, HEADERS, HOSTILE_TEXTS, MCP_METHODS, METHODS, ROOT_DOCUMENTS, UNKNOWN_KEY};
use crate::payments::{header, payment};
use crate::random::Random;

/// An operation as the OpenAPI document describes it.
pub(super) struct Operation {
    pub(super) service: String,
    pub(super) name: String,
    pub(super) method: String,
    pub(super) path: String,
    /// The documented statuses.
    pub(super) statuses: BTreeSet<u16>,
    /// Whether an answer can wait for a look-up at an upstream: it says whether it is `live`.
    pub(super) may_look_up: bool,
    parameters: Vec<Parameter>,
    /// The schema and the example of the request body; `None` without a body.
    body: Option<(Value, Value)>,
}

struct Parameter {
    name: String,
    place: String,
    is_required: bool,
    schema: Value,
    example: Value,
}

impl Operation {
    /// Reads the operations of a service's OpenAPI document.
    pub(super) fn all_of(service: &str, document: &Value) -> Vec<Self> {
        let mut all = Vec::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, described) in methods.as_object().unwrap() {
                let parameter = |found: &Value| Parameter {
                    name: found["name"].as_str().unwrap().to_owned(),
                    place: found["in"].as_str().unwrap().to_owned(),
                    is_required: found["required"] == true,
                    schema: found["schema"].clone(),
                    example: found["example"].clone(),
                };
                let content = &described["requestBody"]["content"]["application/json"];
                all.push(Self {
                    service: service.to_owned(),
                    name: described["operationId"].as_str().unwrap().to_owned(),
                    method: method.to_uppercase(),
                    path: path.clone(),
                    may_look_up: described["responses"]["200"]["content"]["application/json"]["example"].get("live").is_some(),
                    statuses: described["responses"].as_object().unwrap().keys().map(|status| status.parse().unwrap()).collect(),
                    parameters: described["parameters"].as_array().unwrap().iter().map(parameter).collect(),
                    body: content["schema"].is_object().then(|| (content["schema"].clone(), content["example"].clone())),
                });
            }
        }
        all
    }
}

/// The values that requests are made from.
pub(super) struct Material {
    pub(super) services: Vec<String>,
    pub(super) operations: Vec<Operation>,
    /// Keys that the server issued; no answer may repeat one.
    pub(super) keys: Vec<String>,
    /// Cursors, ids and other values that the server issued, by the names of the parameters that accept them.
    pub(super) known: BTreeMap<&'static str, Vec<String>>,
    /// Paths of documents with their entity tags.
    pub(super) etags: Vec<(String, String)>,
}

/// A request and the permitted outcomes.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) bytes: Vec<u8>,
    /// The index of the operation that is called; the answer must have one of its statuses.
    pub(super) operation: Option<usize>,
    /// Whether the server may close the connection without an answer, or refuse the request without a problem document, because the bytes
    /// are not an HTTP request or exceed what the server reads before it refuses them.
    pub(super) is_malformed: bool,
    /// Whether a key is in the place of an argument.
    pub(super) has_key_argument: bool,
}

/// The parts of a request before they are encoded as bytes.
struct Draft {
    method: String,
    target: Vec<u8>,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    operation: Option<usize>,
    is_malformed: bool,
}

/// Makes requests from random numbers.
pub(super) struct Generator<'a> {
    material: &'a Material,
    random: Random,
    has_key_argument: bool,
}

impl<'a> Generator<'a> {
    /// Returns the generator of one request: the same seed, number and material make the same request.
    pub(super) fn new(material: &'a Material, seed: u64, number: u64) -> Self {
        Self { material, random: Random::of(seed, number), has_key_argument: false }
    }

    /// Returns true with a probability of `share` percent.
    fn percent(&mut self, share: u64) -> bool {
        self.random.below(100) < share
    }

    fn index(&mut self, end: usize) -> usize {
        usize::try_from(self.random.below(end as u64)).unwrap()
    }

    pub(super) fn request(mut self) -> Request {
        let mut draft = match self.random.below(100) {
            0..68 => self.operation(),
            68..80 => self.tool_call(),
            80..88 => self.document(),
            _ => self.unusual_path(),
        };
        if self.percent(5) {
            self.random.pick(METHODS).clone_into(&mut draft.method);
            draft.operation = None;
        }
        self.key(&mut draft);
        while self.percent(25) {
            let (name, values) = self.random.pick(HEADERS);
            draft.headers.push((name.to_owned(), self.random.pick(values).as_bytes().to_vec()));
        }
        if self.percent(6) {
            self.payment(&mut draft);
        }
        if self.percent(6) {
            self.unusual_header(&mut draft);
        }
        self.finish(draft)
    }

    /// Makes a request to an operation, with some wrong arguments.
    fn operation(&mut self) -> Draft {
        let mut at = self.index(self.material.operations.len());
        if self.percent(4) {
            // The paid operation is one of many, so it is chosen on purpose.
            at = self.material.operations.iter().position(|operation| operation.name == "issue_receipt").unwrap_or(at);
        }
        let operation = &self.material.operations[at];
        let (mut path, mut pairs) = (operation.path.clone(), Vec::new());
        for parameter in &operation.parameters {
            let name = parameter.name.as_str();
            match parameter.place.as_str() {
                "path" => {
                    let mut value = self.parameter_value(parameter);
                    if value.is_empty() {
                        value = "x".to_owned();
                    }
                    path = path.replace(&format!("{{{name}}}"), &self.encode(&value));
                }
                "query" if parameter.is_required && self.percent(95) || self.percent(30) => {
                    pairs.push((name.to_owned(), self.parameter_value(parameter)));
                }
                _ => {}
            }
        }
        if self.percent(6) {
            let name = (*self.random.pick(&["limt", "wait ", "q", "Limit", "limit[]", "__proto__", "key", "api_key", "cursor"])).to_owned();
            let value = if name == "wait " { "0" } else { self.random.pick(HOSTILE_TEXTS) };
            pairs.push((name, value.to_owned()));
        }
        if self.percent(5) && !pairs.is_empty() {
            let again = self.index(pairs.len());
            pairs.push(pairs[again].clone());
        }
        let mut target = format!("/{}{path}", operation.service);
        for (index, (name, value)) in pairs.iter().enumerate() {
            let value = self.encode(value);
            target.push_str(&format!("{}{}={value}", if index == 0 { '?' } else { '&' }, self.encode(name)));
        }
        if self.percent(2) {
            target.push_str(self.random.pick(&["?", "&", "&&&=", "#x", "&=", "?a?b", "&%", "&%zz=%f", "&a"]));
        }
        let mut body = Vec::new();
        if let Some((schema, example)) = &operation.body {
            let whole = self.body_value(schema, example);
            body = if self.percent(25) { self.broken_json(&whole.to_string()) } else { whole.to_string().into_bytes() };
        } else if self.percent(2) {
            body = b"{}".to_vec();
        }
        let is_malformed = body.len() > 60_000;
        Draft {
            method: operation.method.clone(),
            target: target.into_bytes(),
            headers: Vec::new(),
            body,
            operation: Some(at),
            is_malformed,
        }
    }

    /// Makes a message to an MCP endpoint, usually a tool call.
    fn tool_call(&mut self) -> Draft {
        let operation = &self.material.operations[self.index(self.material.operations.len())];
        let mut arguments = Map::new();
        for parameter in operation.parameters.iter().filter(|parameter| parameter.place != "header") {
            if parameter.is_required || self.percent(30) {
                let is_text = self.percent(15);
                let value = if is_text || parameter.name == "wait" {
                    let text = self.parameter_value(parameter);
                    text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number))
                } else {
                    self.json_value(&parameter.name, &parameter.schema, 0)
                };
                arguments.insert(parameter.name.clone(), value);
            }
        }
        if let Some((schema, example)) = &operation.body
            && let Value::Object(fields) = self.body_value(schema, example)
        {
            arguments.extend(fields);
        }
        let mut message =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": operation.name, "arguments": arguments}});
        if self.percent(30) {
            message["method"] = json!(self.random.pick(MCP_METHODS));
        }
        if self.percent(10) {
            let pointer = self.random.pick(&["/jsonrpc", "/id", "/method", "/params", "/params/name", "/params/arguments"]);
            *message.pointer_mut(pointer).unwrap() = self.random_json(0);
        }
        if self.percent(10) {
            message["params"] = json!({"name": operation.name, "arguments": {}, "_meta": {"x402/payment": self.random_json(0)}});
        } else if self.percent(25) {
            message["params"] = json!({"name": "manage", "arguments": {"action": operation.name, "arguments": arguments}});
        }
        let body = if self.percent(15) { self.broken_json(&message.to_string()) } else { message.to_string().into_bytes() };
        let (is_malformed, target) = (body.len() > 60_000, format!("/{}/mcp", operation.service).into_bytes());
        Draft { method: "POST".to_owned(), target, headers: Vec::new(), body, operation: None, is_malformed }
    }

    /// Makes a request for a document or page.
    fn document(&mut self) -> Draft {
        if self.percent(10) && !self.material.etags.is_empty() {
            // With the entity tag of the current version.
            let (path, etag) = &self.material.etags[self.index(self.material.etags.len())];
            let headers = vec![("If-None-Match".to_owned(), etag.clone().into_bytes())];
            let (method, target) = ("GET".to_owned(), path.clone().into_bytes());
            return Draft { method, target, headers, body: Vec::new(), operation: None, is_malformed: false };
        }
        let target = if self.percent(50) {
            self.random.pick(ROOT_DOCUMENTS).to_owned()
        } else {
            let service = self.index(self.material.services.len());
            format!("/{}{}", self.material.services[service], self.random.pick(DOCUMENTS))
        };
        let (mut method, mut body, mut headers) = ("GET", Vec::new(), Vec::new());
        if target.starts_with("/account") && self.percent(80) {
            method = "POST";
            let act = self.random.pick(&["ping", "replay", "delete_watch", "x", ""]);
            let key = self.key_text();
            let (id, after) = (self.known("id"), self.random.pick(HOSTILE_TEXTS).to_owned());
            let form = [("key", key.as_str()), ("act", act), ("service", "awards"), ("id", id.as_str()), ("after", after.as_str())];
            let mut text: Vec<String> = Vec::new();
            for (name, value) in form {
                if self.percent(90) {
                    text.push(format!("{name}={}", self.encode(value)));
                }
            }
            body = text.join("&").into_bytes();
            let of_form = [("Content-Type", "application/x-www-form-urlencoded"), ("Sec-Fetch-Site", "same-origin")];
            headers.extend(of_form.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec())));
        }
        Draft { method: method.to_owned(), target: target.into_bytes(), headers, body, operation: None, is_malformed: false }
    }

    /// Makes a request to a path that usually does not exist.
    fn unusual_path(&mut self) -> Draft {
        let mut is_malformed = false;
        let service = self.index(self.material.services.len());
        let service = &self.material.services[service];
        let operation = &self.material.operations[self.index(self.material.operations.len())];
        let known = format!("/{}{}", operation.service, operation.path);
        let mut method = self.random.pick(METHODS);
        let target = match self.random.below(14) {
            0 => {
                let text = self.random.pick(HOSTILE_TEXTS);
                format!("/{}", self.encode(text))
            }
            1 => format!("/{service}/{}", "a".repeat(self.index(31_000))),
            2 => format!("/{service}/{}", "%41".repeat(self.index(10_000))),
            3 => format!("/{service}{}", "/x".repeat(self.index(10_000))),
            4 => known.replacen('/', "//", 1),
            5 => known.chars().flat_map(|c| if c == 'e' { "%65".chars().collect::<Vec<_>>() } else { vec![c] }).collect(),
            6 => format!("/{service}/../{service}/health"),
            7 => format!("{known}/"),
            8 => known.to_uppercase(),
            9 => format!("http://example.org{known}"),
            10 => format!("/{service}/v1/%00%ff%2f%2e%2e%5c"),
            11 => format!("/{service}/{}?{}", self.key_text(), self.key_text()),
            12 => {
                is_malformed = true;
                self.random
                    .pick(&["*", "a:443", "127.0.0.1:22", "?", "", "x", "/\u{e4}\u{1f469}", "/a b", "/a\tb", "/a#b", "http://", "/\\"])
                    .to_owned()
            }
            _ => {
                method = "CONNECT";
                self.random.pick(&["a:443", "[::1]:443", "/", "127.0.0.1:80"]).to_owned()
            }
        };
        // The server may refuse CONNECT and very long targets at any stage.
        is_malformed |= method == "CONNECT" || target.len() > 30_000;
        let body = if self.percent(20) { b"{\"a\":1}".to_vec() } else { Vec::new() };
        Draft { method: method.to_owned(), target: target.into_bytes(), headers: Vec::new(), body, operation: None, is_malformed }
    }

    /// Returns a key, which may or may not have been issued.
    fn key_text(&mut self) -> String {
        if self.percent(70) { self.material.keys[self.index(self.material.keys.len())].clone() } else { UNKNOWN_KEY.to_owned() }
    }

    fn known(&mut self, name: &str) -> String {
        match self.material.known.get(name) {
            Some(values) if !values.is_empty() => values[self.index(values.len())].clone(),
            _ => self.random.pick(HOSTILE_TEXTS).to_owned(),
        }
    }

    /// Usually puts a key into one of the places where keys are read.
    fn key(&mut self, draft: &mut Draft) {
        let key = self.key_text();
        match self.random.below(20) {
            0..12 => draft.headers.push(("X-API-Key".to_owned(), key.into_bytes())),
            12..14 => draft.headers.push(("Authorization".to_owned(), format!("Bearer {key}").into_bytes())),
            14 => {
                let joint = if draft.target.contains(&b'?') { '&' } else { '?' };
                let name = self.random.pick(&["key", "api_key", "apikey", "X-API-Key"]);
                draft.target.extend(format!("{joint}{name}={}", self.encode(&key)).into_bytes());
            }
            15 => {
                let name =
                    self.random.pick(&["Idempotency-Key", "If-None-Match", "Last-Event-ID", "X-Payment", "Accept", "Cookie", "Referer"]);
                draft.headers.push((name.to_owned(), key.into_bytes()));
            }
            _ => {}
        }
    }

    /// Adds an invalid payment.
    fn payment(&mut self, draft: &mut Draft) {
        let mut given = payment(self.random.below(1_000));
        let value = match self.random.below(4) {
            0 => STANDARD.encode(self.random_json(0).to_string()),
            1 => self.random.pick(&["", "%%%", "e30=", "bnVsbA==", "====", "\u{e4}"]).to_owned(),
            2 => {
                let pointer = self.random.pick(&[
                    "/x402Version",
                    "/scheme",
                    "/network",
                    "/payload",
                    "/payload/signature",
                    "/payload/authorization",
                    "/payload/authorization/from",
                    "/payload/authorization/to",
                    "/payload/authorization/value",
                    "/payload/authorization/validAfter",
                    "/payload/authorization/validBefore",
                    "/payload/authorization/nonce",
                ]);
                *given.pointer_mut(pointer).unwrap() = self.random_json(0);
                header(&given)
            }
            _ => header(&given),
        };
        let name = self.random.pick(&["X-PAYMENT", "PAYMENT-SIGNATURE"]);
        draft.headers.push((name.to_owned(), value.into_bytes()));
    }

    /// Adds a header that is long, repeated or malformed.
    fn unusual_header(&mut self, draft: &mut Draft) {
        let mut add = |name: &str, value: Vec<u8>| draft.headers.push((name.to_owned(), value));
        match self.random.below(8) {
            0 => add("X-Long", vec![b'a'; 8_000]),
            1 => {
                add("X-Long", vec![b'a'; 40_000]);
                draft.is_malformed = true;
            }
            2 => {
                (0..120).for_each(|number| add(&format!("x-{number}"), b"a".to_vec()));
                draft.is_malformed = true;
            }
            3 => {
                for _ in 0..2 {
                    let (name, values) = self.random.pick(&HEADERS[..4]);
                    add(name, self.random.pick(values).as_bytes().to_vec());
                    add(name, self.random.pick(values).as_bytes().to_vec());
                }
            }
            4 => {
                let name = self.random.pick(&[
                    "X-API-Key",
                    "Authorization",
                    "Accept",
                    "Idempotency-Key",
                    "Last-Event-ID",
                    "X-PAYMENT",
                    "Content-Type",
                ]);
                add(name, vec![0x80, 0xff, 0xc3, 0x28, 0xfe]);
            }
            5 => {
                add("X-Control", vec![b'a', u8::try_from(self.random.below(9)).unwrap(), b'b']);
                draft.is_malformed = true;
            }
            6 => {
                let name = self.random.pick(&["X y", "", "X:", "\u{e4}", "X\t"]);
                add(name, b"a".to_vec());
                draft.is_malformed = true;
            }
            _ => {
                let values = ["b", "a b", "", "u@a", "[::1", "\u{e4}", "a:99999999", "127.0.0.1:1"];
                add("Host", self.random.pick(&values).as_bytes().to_vec());
                draft.is_malformed = true;
            }
        }
    }

    /// Percent-encodes what a query or a path segment must not contain, and sometimes more.
    fn encode(&mut self, text: &str) -> String {
        let share = if self.percent(5) { 30 } else { 0 };
        let mut encoded = String::new();
        for byte in text.bytes() {
            let is_plain = byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
            if is_plain && !(share > 0 && self.percent(share)) {
                encoded.push(char::from(byte));
            } else {
                encoded.push_str(&format!("%{byte:02X}"));
            }
        }
        encoded
    }

    /// Encodes a draft as bytes.
    fn finish(&mut self, draft: Draft) -> Request {
        let Draft { method, target, mut headers, body, operation, mut is_malformed } = draft;
        let has = |headers: &[(String, Vec<u8>)], name: &str| headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        headers.insert(0, ("Host".to_owned(), b"127.0.0.1".to_vec()));
        let mut framed = body;
        if !framed.is_empty() || matches!(method.as_str(), "POST" | "PATCH" | "PUT") {
            if !has(&headers, "Content-Type") {
                headers.push(("Content-Type".to_owned(), b"application/json".to_vec()));
            }
            if self.percent(10) {
                headers.push(("Transfer-Encoding".to_owned(), b"chunked".to_vec()));
                let size = 1 + self.index(5_000);
                let mut chunks = Vec::new();
                for piece in framed.chunks(size) {
                    chunks.extend([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
                }
                chunks.extend(b"0\r\n\r\n");
                framed = chunks;
            } else {
                headers.push(("Content-Length".to_owned(), framed.len().to_string().into_bytes()));
            }
        }
        let mut bytes = [method.as_bytes(), b" ", &target, b" HTTP/1.1\r\n"].concat();
        for (name, value) in &headers {
            bytes.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
        // The largest head that the server reads.
        is_malformed |= bytes.len() > 30_000;
        bytes.extend(b"\r\n");
        bytes.extend(framed);
        Request {
            method,
            target: String::from_utf8_lossy(&target).into_owned(),
            bytes,
            operation,
            is_malformed,
            has_key_argument: self.has_key_argument,
        }
    }
}

/// Writes a JSON value as a query parameter.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(text_of).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}
