//! The OpenAPI 3.1 document of a service, rendered from its operations.

pub(crate) mod examples;
mod types;

use std::collections::BTreeMap;

use operation::context::ServiceSettings;
use operation::{Method, Operation, Price, Service};
use payments::repeats;
use proofs::evidence::ARTIFACT_HASH;
use schemas::error_code::ErrorCode;
use serde_json::{Map, Value, json};

use crate::prices;
use crate::wire::{ANSWER_NOTE, ATOM, EVENTS, IDEMPOTENCY_KEY_CHARS_MAX, NDJSON};
pub use types::SameName;

/// The headers that answers of a durable stream have.
const STREAM_HEADERS: [&str; 3] = ["Stream-Next-Offset", "Stream-Up-To-Date", "Stream-Cursor"];

/// What documents say about a feed as an Atom document.
const ATOM_ABOUT: &str = "The same changes, parameters and limits as those of the feed in JSON, as an Atom feed (RFC 4287) for feed readers. Without `cursor` and `start` it \
    has the newest changes. The link `next` leads to the changes after those of the document, if there are more; links do not contain the API key. The \
    content of an entry is the change as JSON.";

/// What documents say about the list of an answer as a table.
const TABLES_ABOUT: &str = "With `Accept: text/csv` or `Accept: application/vnd.apache.parquet`, the items of the list come as a table.";

/// The document.
///
/// # Errors
/// When two different types of the service have the same name.
pub fn document(service: &Service, settings: &ServiceSettings) -> Result<Value, SameName> {
    let mut schemas = types::types(service)?;
    let tags = tags(service);
    let mut paths: Map<String, Value> = Map::new();
    for operation in service.operations.iter().filter(|operation| operation.has_route()) {
        let method = match operation.method {
            Method::Get => "get",
            Method::Post => "post",
            Method::Patch => "patch",
            Method::Delete => "delete",
        };
        let item = paths.entry(operation.path).or_insert_with(|| json!({}));
        item[method] = operation_entry(operation, settings, &schemas);
        item[method]["tags"] = json!([tag(service, operation, &tags)]);
        if let Some(path) = operation.atom_path() {
            let entry = atom_entry(&item[method], operation);
            paths.insert(path, json!({ "get": entry }));
        }
    }
    schemas.insert("Problem".to_owned(), problem_schema());
    let tags =
        tags.iter().map(|(name, operations)| json!({ "name": name, "description": format!("Operations: {}.", operations.join(", ")) }));
    let tags: Vec<Value> = tags.collect();
    Ok(json!({
        "openapi": "3.1.0",
        "info": {
            "title": service.title,
            "version": env!("CARGO_PKG_VERSION"),
            "description": service.about,
            "x-llms-txt": format!("{}/llms.txt", settings.base_url),
            "x-mcp": format!("{}/mcp", settings.base_url),
            "x-limits": format!("{}/limits.json", settings.base_url),
        },
        "servers": [{"url": settings.base_url}],
        "externalDocs": {"url": format!("{}/docs", settings.base_url)},
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": schemas,
            "headers": headers(),
            "securitySchemes": {
                "keyHeader": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
                "bearer": {"type": "http", "scheme": "bearer"},
                "apiKeyParameter": {"type": "apiKey", "in": "query", "name": "api_key"},
                "keyParameter": {"type": "apiKey", "in": "query", "name": "key"},
            },
        },
    }))
}

/// The tags of a service with the names of their operations. Operations below one path, such as `/v1/watchlist`, have a tag of its name; the others
/// have the tag of the service.
pub(crate) fn tags(service: &Service) -> BTreeMap<&str, Vec<&str>> {
    let mut by_resource: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for operation in &service.operations {
        by_resource.entry(resource(operation)).or_default().push(operation.name);
    }
    let mut tags: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (resource, names) in by_resource {
        let tag = if names.len() > 1 { resource } else { service.name };
        tags.entry(tag).or_default().extend(names);
    }
    tags
}

/// The first segment of an operation's path after the version.
fn resource(operation: &Operation) -> &str {
    operation.path.split('/').find(|segment| !matches!(*segment, "" | "v1" | "api")).unwrap_or_default()
}

/// The tag of an operation.
pub(crate) fn tag<'a>(service: &'a Service, operation: &'a Operation, tags: &BTreeMap<&str, Vec<&str>>) -> &'a str {
    let resource = resource(operation);
    if tags.get(resource).is_some_and(|names| names.contains(&operation.name)) { resource } else { service.name }
}

fn operation_entry(operation: &Operation, settings: &ServiceSettings, types: &Map<String, Value>) -> Value {
    let keys = [json!({"keyHeader": []}), json!({"bearer": []}), json!({"apiKeyParameter": []}), json!({"keyParameter": []})];
    let (security, needs) = match operation.price {
        Price::Free => ([vec![json!({})], keys.to_vec()].concat(), String::new()),
        Price::Tier(_) => (keys.to_vec(), format!("\n\n{}", prices::needs(operation, settings))),
        Price::PerCall { .. } => ([vec![json!({})], keys.to_vec()].concat(), format!("\n\n{}", prices::needs(operation, settings))),
    };
    let mut entry = json!({
        "operationId": operation.name,
        "summary": operation.summary,
        "description": format!("{}{needs}", operation.description),
        "security": security,
        "responses": responses(operation, types),
        "parameters": parameters(operation),
    });
    if operation.method.has_body() {
        let mut schema = operation.input.clone();
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.retain(|name, _| !in_path(operation, name));
        }
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| !in_path(operation, name.as_str().unwrap_or_default()));
        }
        entry["requestBody"] = json!({
            "required": schema.get("required").and_then(Value::as_array).is_some_and(|names| !names.is_empty()),
            "content": {"application/json": {"schema": schema, "example": operation.example}},
        });
    }
    entry
}

/// The entry of a feed as an Atom document, from that of the feed.
fn atom_entry(feed: &Value, operation: &Operation) -> Value {
    let mut entry = feed.clone();
    entry["operationId"] = json!(format!("{}_atom", operation.name));
    entry["summary"] = json!(format!("{} As an Atom feed.", operation.summary));
    entry["description"] = json!(ATOM_ABOUT);
    entry["responses"]["200"]["content"] = json!({ ATOM: { "schema": { "type": "string" } } });
    entry
}

fn in_path(operation: &Operation, name: &str) -> bool {
    operation.path.split('/').any(|segment| segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) == Some(name))
}

fn parameters(operation: &Operation) -> Vec<Value> {
    let required = operation.input.get("required").and_then(Value::as_array);
    let mut parameters = Vec::new();
    for (name, schema) in operation.input.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let path = in_path(operation, name);
        if operation.method.has_body() && !path {
            continue;
        }
        let mut parameter = json!({
            "name": name,
            "in": if path { "path" } else { "query" },
            "required": path || required.is_some_and(|names| names.iter().any(|required| required == name)),
            "schema": schema,
        });
        let mut words = schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
        let aliases = || operation.aliases.iter().filter(|(_, of)| of == name).map(|(alias, _)| *alias);
        for alias in aliases() {
            words = format!("{words} Alias: `{alias}`.").trim().to_owned();
        }
        if !words.is_empty() {
            parameter["description"] = words.into();
        }
        if let Some(example) = operation.example.get(name) {
            parameter["example"] = example.clone();
        }
        if schema.get("type").and_then(Value::as_str) == Some("array") {
            parameter["style"] = if path { "simple" } else { "form" }.into();
            parameter["explode"] = false.into();
        }
        // Clients generated from the document send only documented parameters, so an alias is a parameter, too.
        let other_names = aliases().filter(|_| !path).map(|alias| {
            let mut other = parameter.clone();
            other["name"] = alias.into();
            other["required"] = false.into();
            other["description"] = format!("Alias of `{name}`; send only one of the two.").into();
            other
        });
        let other_names: Vec<Value> = other_names.collect();
        parameters.push(parameter);
        parameters.extend(other_names);
    }
    if operation.method == Method::Post {
        let pattern = format!("^[!-~]{{1,{IDEMPOTENCY_KEY_CHARS_MAX}}}$");
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header", "required": false, "schema": {"type": "string", "pattern": pattern},
            "description": "A request that is repeated with the same key returns the same result and is not executed twice.",
        }));
    }
    if operation.takes_watch_token {
        parameters.push(json!({
            "name": "X-Watch-Token", "in": "header", "required": false, "schema": {"type": "string", "pattern": "^wt_[A-Za-z0-9_-]{43}$"},
            "description": "The token of a watch that was bought without an API key. It opens that watch without a key.",
        }));
    }
    parameters
}

/// The error codes that an operation may return, by status.
pub(crate) fn errors(operation: &Operation) -> BTreeMap<u16, Vec<ErrorCode>> {
    let mut codes = vec![
        ErrorCode::ParameterInvalid,
        ErrorCode::RequestInvalid,
        ErrorCode::KeyInvalid,
        ErrorCode::HeadTooLarge,
        ErrorCode::RateLimited,
        ErrorCode::Internal,
        ErrorCode::Unavailable,
    ];
    if operation.method.has_body() {
        codes.extend([ErrorCode::BodyInvalid, ErrorCode::RequestTimeout, ErrorCode::BodyTooLarge, ErrorCode::MediaTypeUnsupported]);
    }
    if operation.path.contains('{') {
        codes.push(ErrorCode::NotFound);
    }
    if matches!(operation.price, Price::Tier(_)) {
        codes.push(ErrorCode::TierTooLow);
    }
    if matches!(operation.price, Price::PerCall { .. }) {
        codes.push(ErrorCode::PaymentRequired);
    }
    codes.extend(operation.errors);
    let mut by_status: BTreeMap<u16, Vec<ErrorCode>> = BTreeMap::new();
    for code in codes {
        let same = by_status.entry(code.status()).or_default();
        if !same.contains(&code) {
            same.push(code);
        }
    }
    by_status
}

fn responses(operation: &Operation, types: &Map<String, Value>) -> Value {
    let header = |name: &str| json!({"$ref": format!("#/components/headers/{name}")});
    let limits = json!({"RateLimit": header("RateLimit"), "RateLimit-Policy": header("RateLimit-Policy")});
    let mut good = json!({
        "description": operation.summary,
        "headers": limits,
        "content": {"application/json": {
            "schema": types::answer(operation),
            "example": examples::example(&operation.named_output.schema, types),
        }},
    });
    if !operation.files.is_empty() {
        let schema = |is_text| {
            if is_text { json!({"type": "string"}) } else { json!({"type": "string", "contentMediaType": "application/octet-stream"}) }
        };
        let content = operation.files.iter().map(|(media_type, is_text)| ((*media_type).to_owned(), json!({"schema": schema(*is_text)})));
        good["content"] = Value::Object(content.collect());
        for name in ["Content-Disposition", "Accept-Ranges", ANSWER_NOTE] {
            good["headers"][name] = header(name);
        }
    }
    let mut responses = json!({});
    if !operation.files.is_empty() && !operation.is_streamed {
        let mut part = good.clone();
        part["description"] = json!("The part of the file that `Range` asks for.");
        part["headers"]["Content-Range"] = header("Content-Range");
        responses["206"] = part;
    }
    if operation.method == Method::Get {
        good["headers"]["ETag"] = header("ETag");
        responses["304"] = json!({"description": "Not modified: the caller has the current version (`If-None-Match`).", "headers": {"ETag": header("ETag")}});
    }
    if matches!(operation.price, Price::PerCall { .. }) {
        for name in ["PAYMENT-RESPONSE", "X-PAYMENT-RESPONSE", repeats::HEADER] {
            good["headers"][name] = header(name);
        }
    }
    if operation.named_output.schema.pointer(&format!("/properties/{ARTIFACT_HASH}")).is_some() {
        good["headers"][ANSWER_NOTE] = header(ANSWER_NOTE);
    }
    if operation.is_durable_stream {
        good["content"][EVENTS] = json!({"schema": {"type": "string"}});
        for name in STREAM_HEADERS.into_iter().chain([ANSWER_NOTE]) {
            good["headers"][name] = header(name);
        }
        responses["204"] = json!({"description": "No change was recorded while the call waited.", "headers": good["headers"]});
    }
    if !operation.list.is_empty() {
        let items = operation.named_output.schema.pointer(&format!("/properties/{}/items", operation.list)).cloned();
        let items = items.unwrap_or_else(|| json!({}));
        good["content"][NDJSON] = json!({"schema": items});
        // Types of clients are made of the documented content, and those of files would be of no use in them.
        good["description"] = json!(format!("{} {TABLES_ABOUT}", operation.summary));
        for name in ["Next-Cursor", ANSWER_NOTE] {
            good["headers"][name] = header(name);
        }
        if operation.named_output.schema.pointer("/properties/older").is_some() {
            good["headers"]["Older-Cursor"] = header("Older-Cursor");
        }
    }
    if operation.method == Method::Post {
        responses["201"] = good.clone();
    }
    responses["200"] = good;
    for (status, codes) in errors(operation) {
        let names: Vec<&str> = codes.iter().map(|code| code.as_str()).collect();
        let words: Vec<String> = codes.iter().map(|code| format!("`{}`: {}", code.as_str(), code.title().trim())).collect();
        let mut response = json!({
            "description": words.join("\n\n"),
            "content": {"application/problem+json": {"schema": {
                "allOf": [{"$ref": "#/components/schemas/Problem"}, {"properties": {"code": {"enum": names}}}],
            }}},
        });
        if codes.contains(&ErrorCode::PaymentRequired) {
            response["content"] = json!({"application/json": {"schema": challenge_schema()}});
            response["headers"]["PAYMENT-REQUIRED"] = header("PAYMENT-REQUIRED");
        }
        if codes.iter().any(|code| code.may_retry()) {
            response["headers"]["Retry-After"] = header("Retry-After");
        }
        if status == ErrorCode::RateLimited.status() {
            response["headers"]["RateLimit"] = header("RateLimit");
            response["headers"]["RateLimit-Policy"] = header("RateLimit-Policy");
        }
        responses[status.to_string()] = response;
    }
    responses
}

fn headers() -> Value {
    json!({
        "RateLimit": {"description": "The remaining quota, and the seconds until it resets.", "schema": {"type": "string"}},
        "RateLimit-Policy": {"description": "The quota and its window in seconds.", "schema": {"type": "string"}},
        "Retry-After": {"description": "Seconds to wait before a retry.", "schema": {"type": "integer", "minimum": 0}},
        "ETag": {"description": "A strong ETag, made from position, parameters and tier.", "schema": {"type": "string"}},
        "PAYMENT-REQUIRED": {"description": "The payment terms in x402 version 2: JSON in base64.", "schema": {"type": "string"}},
        "PAYMENT-RESPONSE": {"description": "The settlement of the payment in x402 version 2: JSON in base64.", "schema": {"type": "string"}},
        "X-PAYMENT-RESPONSE": {"description": "The settlement of the payment in x402 version 1: JSON in base64.", "schema": {"type": "string"}},
        (repeats::HEADER): {"description": "Sent with the same payment and request, it gets the same answer again from any network address.", "schema": {"type": "string"}},
        "Accept-Ranges": {"description": "`bytes`: the file can be read in parts; `none`: it is sent whole.", "schema": {"type": "string"}},
        "Content-Range": {"description": "The part that is sent, and the length of the file.", "schema": {"type": "string"}},
        "Content-Disposition": {"description": "The name of the file.", "schema": {"type": "string"}},
        "Stream-Next-Offset": {"description": "The offset at which the next read continues.", "schema": {"type": "string"}},
        "Stream-Up-To-Date": {"description": "`true`: no more changes are recorded.", "schema": {"type": "string"}},
        "Stream-Cursor": {"description": "Of a live read: the `cursor` of the next one.", "schema": {"type": "string"}},
        (ANSWER_NOTE): {"description": "What to know about an answer that has no field `note`: one as lines, as a table, as a file or of a stream, or one that states its own hash.", "schema": {"type": "string"}},
        "Next-Cursor": {"description": "The next cursor, with NDJSON and tables.", "schema": {"type": "string"}},
        "Older-Cursor": {"description": "The member `older`, with NDJSON and tables.", "schema": {"type": "string"}},
    })
}

/// The body of 402: the payment terms in x402 version 1, and the problem.
fn challenge_schema() -> Value {
    json!({
        "allOf": [{"$ref": "#/components/schemas/Problem"}, {
            "type": "object",
            "required": ["x402Version", "error", "accepts"],
            "properties": {
                "x402Version": {"const": 1},
                "error": {"type": "string", "description": "Why the call was not answered."},
                "accepts": {"type": "array", "items": {"type": "object"}, "description": "The accepted payments."},
                "preview": {"description": "A free preview of the answer; null if there is none."},
                "previewNote": {"type": "string", "description": "Why there is no preview, such as an argument that is missing."},
            },
        }],
    })
}

fn problem_schema() -> Value {
    let codes: Vec<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    json!({
        "type": "object",
        "description": "An error (RFC 9457).",
        "required": ["type", "title", "status", "detail", "code"],
        "properties": {
            "type": {"type": "string", "description": "URL of the documentation of this code."},
            "title": {"type": "string", "description": "What the code means."},
            "status": {"type": "integer", "description": "The HTTP status."},
            "detail": {"type": "string", "description": "What is wrong with this request."},
            "code": {"type": "string", "enum": codes},
            "parameter": {"type": "string", "description": "The parameter or field that is wrong; of a field within JSON its path, with dots: `filter.state`, `aircraft.0.tail`."},
            "retryAfter": {"type": "integer", "description": "Seconds to wait before a retry."},
        },
    })
}
