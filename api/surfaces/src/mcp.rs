//! MCP over streamable HTTP: the tools of a service at `POST {prefix}/mcp`, for both versions of the protocol, without sessions.
//!
//! Promises: the same validation, access control and metrics as REST. Only configured and loopback hosts and origins are accepted. Features that are not
//! supported (prompts, resources, completion) are refused instead of returning empty lists. A failed call is a result with `isError` and the problem
//! document as its text; it has no `structuredContent`, because clients would validate it against the schema of results.

mod messages;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use access::{Access, Open};
use arguments::echo;
use bytes::{Buf, Bytes};
use documents::tools::{self, Target, tool_resource};
use futures_util::Stream;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, ORIGIN};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use listener::caller_address::CallerAddress;
use operation::context::{Context, Part as _, Settings};
use operation::problem::Problem;
use operation::redaction::{PREFIX, hide_keys};
use operation::{Answer, Body, Form};
use payments::goods::GivenPayment;
use payments::repeats;
use payments::settlement::Settlement;
use payments::terms::Version;
use proofs::i_json::{self, Rule, Violation};
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod, CompleteRequestParams, CompleteResult,
    ContentBlock, DiscoverResult, Implementation, ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesRequestMethod,
    ListResourceTemplatesResult, ListResourcesRequestMethod, ListResourcesResult, ListToolsResult, MetaObject, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use schemas::error_code::ErrorCode;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use warp::reply::Response;

use crate::mounted_service::{Incoming, Mounted};
use crate::{MCP_ONLY, Request, body, credentials, hosts, note, reply, response, rest};

/// How long a client may cache the list of tools, in milliseconds.
const TOOLS_TTL_MS: u64 = 300_000;

/// The most characters of a library error that are forwarded.
const REFUSAL_CHARS_MAX: usize = 200;

/// The `_meta` fields of the payment of a call and of its settlement in the result.
const PAYMENT: &str = "x402/payment";
const PAYMENT_RESPONSE: &str = "x402/payment-response";

/// Where a message has the arguments of a tool.
const ARGUMENTS: [&str; 2] = ["params", "arguments"];

/// The header with the version of the protocol, and the only version with batches.
const VERSION: &str = "mcp-protocol-version";
const BATCHES_VERSION: &str = "2025-03-26";

/// The message that stands for any other one where only the head of a request counts.
const PING: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// The code of a JSON-RPC error.
const METHOD_NOT_FOUND: &str = "-32601";

/// The most messages of a batch.
const BATCH_MESSAGES_MAX: usize = 20;

/// Loopback names, which are accepted with any port.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// What became of a message.
enum Forwarded {
    /// The library answered it.
    Answer(Response),
    /// It is malformed, or the library refused it, or ignored it as a notification.
    Refusal(Response),
}

/// The MCP endpoint of one service.
pub(crate) struct Endpoint {
    service: StreamableHttpService<Tools, NeverSessionManager>,
}

impl Endpoint {
    pub(crate) fn new(context: &Arc<Context>, mounted: &Arc<Mounted>) -> Self {
        let settings = &context.settings;
        let (hosts, origins) = allowed_hosts_and_origins(settings, &mounted.settings.base_url);
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_allowed_hosts(hosts)
            .with_allowed_origins(origins)
            .with_max_request_body_bytes(settings.body_bytes_max);
        let takes_any = settings.allowed_hosts.iter().any(|host| host == hosts::ANY);
        let config = if takes_any { config.disable_allowed_hosts().disable_allowed_origins() } else { config };
        let tools = Tools::new(Arc::clone(context), Arc::clone(mounted));
        let service = StreamableHttpService::new(move || Ok(tools.clone()), Arc::new(NeverSessionManager::default()), config);
        Self { service }
    }

    /// Answers a POST request. The caller has handled other methods.
    pub(crate) async fn answer<S, B>(&self, context: &Context, base_url: &str, request: &Request<'_>, stream: S) -> Response
    where
        S: Stream<Item = Result<B, warp::Error>> + Send,
        B: Buf,
    {
        let settings = &context.settings;
        let time_max = Duration::from_secs(settings.request_timeout_s);
        let body = match body::read(stream, &request.headers, settings.body_bytes_max, time_max).await {
            Ok(body) => body,
            Err(problem) => return reply::problem(base_url, &problem),
        };
        let is_json = body::is_json(&request.headers);
        let body = if is_json { body::without_mark(body) } else { body };
        match messages::batch(&body).filter(|_| is_json && takes_batches(&request.headers)) {
            Some(batch) => self.answer_batch(context, base_url, request, batch).await,
            None => self.answer_message(context, base_url, request, body, is_json).await,
        }
    }

    /// Answers a preflight request: with the verdict on its Host and Origin that a message with the same ones gets.
    pub(crate) async fn preflight(&self, context: &Context, base_url: &str, request: &Request<'_>) -> Response {
        let mut ping = message(request, Bytes::from_static(PING), None);
        ping.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.service.handle(ping).await.status() == StatusCode::FORBIDDEN {
            let admitted = Access::of(context).admit_open(context, Open::Message, request.address);
            return reply::problem(base_url, &admitted.err().unwrap_or_else(foreign));
        }
        reply::options(MCP_ONLY)
    }

    /// Answers the messages of a batch one after the other, each with the limits of a message of its own. Notifications have no answer.
    async fn answer_batch(&self, context: &Context, base_url: &str, request: &Request<'_>, batch: Vec<Bytes>) -> Response {
        if batch.len() > BATCH_MESSAGES_MAX {
            return refusal(-32600, &format!("Invalid Request: a batch has at most {BATCH_MESSAGES_MAX} messages"));
        }
        let mut answers = Vec::new();
        for message in batch {
            let response = self.answer_message(context, base_url, request, message, true).await;
            if !has_type(response.headers(), "application/json") && response.status() != StatusCode::ACCEPTED {
                // The caller or its address is refused, not the message.
                return response;
            }
            match response.into_body().collect().await.map(http_body_util::Collected::to_bytes) {
                Ok(answer) => answers.extend((!answer.is_empty()).then_some(answer)),
                Err(error) => {
                    tracing::error!(%error, "the answer to a message of a batch cannot be read");
                    return refusal(-32603, "Internal error");
                }
            }
        }
        if answers.is_empty() {
            return reply::empty(StatusCode::ACCEPTED);
        }
        let text = [b"[".as_slice(), &answers.join(b",".as_slice()), b"]"].concat();
        response::with_content_type(response::full_body(text.into()), "application/json")
    }

    /// Answers one message.
    async fn answer_message(&self, context: &Context, base_url: &str, request: &Request<'_>, body: Bytes, is_json: bool) -> Response {
        let is_call = is_json && messages::is_call(&body);
        let admit = || {
            let admitted = Access::of(context).admit_open(context, Open::Message, request.address);
            admitted.err().map(|limited| reply::problem(base_url, &limited))
        };
        // Calls of operations have the limits of the operation, unless they do not get that far.
        if !is_call && let Some(limited) = admit() {
            return limited;
        }
        match self.forward(base_url, request, body, is_json).await {
            Forwarded::Answer(response) => response,
            Forwarded::Refusal(refusal) if is_call => admit().unwrap_or(refusal),
            Forwarded::Refusal(refusal) => refusal,
        }
    }

    /// Lets the library answer a message.
    async fn forward(&self, base_url: &str, request: &Request<'_>, mut body: Bytes, is_json: bool) -> Forwarded {
        if is_json && let Err(error) = serde_json::from_slice::<IgnoredAny>(&body) {
            let words = body::encoding_problem(&body).map_or_else(|| error.to_string(), str::to_owned);
            return Forwarded::Refusal(refusal(-32700, &format!("Parse error: {words}")));
        }
        // Numbers stay as they are written: the library returns the id of a request.
        if is_json
            && i_json::read(&body, is_refused).is_ok()
            && let Ok(mut message) = serde_json::from_slice::<Value>(&body)
        {
            if messages::repair(&mut message) {
                body = message.to_string().into();
            }
            if let Some(error) = messages::malformed(&message) {
                let response = response::full_body(hide_keys(error.to_string()).into());
                return Forwarded::Refusal(response::with_content_type(response, "application/json"));
            }
        }
        let arguments = match is_json.then(|| i_json::read(&body, is_refused)).transpose() {
            Ok(message) => message.flatten().and_then(|mut message| arguments_of(&mut message)).map(Ok),
            Err(Violation { path, rule }) => match path.strip_prefix(&ARGUMENTS.map(str::to_owned)) {
                Some(path) if !path.is_empty() => Some(Err(body::not_i_json(path, rule))),
                _ => return Forwarded::Refusal(refusal(-32600, &hide_keys(format!("Invalid Request: {}: {rule}", echo(&path.join(".")))))),
            },
        };
        let (parts, body) = self.service.handle(message(request, body, arguments)).await.into_parts();
        // A response without a session is not streamed.
        let bytes = match body.collect().await {
            Ok(collected) => collected.to_bytes(),
            Err(never) => match never {},
        };
        let is_json_answer = has_type(&parts.headers, "application/json");
        let mut response = match parts.status {
            StatusCode::UNSUPPORTED_MEDIA_TYPE if is_json => {
                return Forwarded::Refusal(refusal(-32600, "Invalid Request: not a JSON-RPC message"));
            }
            StatusCode::UNSUPPORTED_MEDIA_TYPE => return Forwarded::Refusal(reply::problem(base_url, &body::not_json())),
            StatusCode::FORBIDDEN => {
                return Forwarded::Refusal(reply::problem(base_url, &foreign()));
            }
            StatusCode::BAD_REQUEST if !is_json_answer => {
                // The library's error is plain text.
                let words: String = String::from_utf8_lossy(&bytes).chars().take(REFUSAL_CHARS_MAX).collect();
                return Forwarded::Refusal(refusal(-32600, &hide_keys(words)));
            }
            _ => response::full_body(if is_json_answer { with_words(without_keys(bytes)) } else { bytes }),
        };
        *response.status_mut() = parts.status;
        *response.headers_mut() = parts.headers;
        // The library accepts a call without an id as a notification, with 202: nothing was called.
        if parts.status == StatusCode::OK { Forwarded::Answer(response) } else { Forwarded::Refusal(response) }
    }
}

/// The problem of a Host or an Origin that is not accepted.
fn foreign() -> Problem {
    Problem::new(ErrorCode::OriginRefused, "the MCP endpoint does not accept this Host or Origin; add it to `api.allowed_hosts`")
}

/// Whether a request may hold several messages: the protocol version 2025-03-26 has batches, and it has no header for the version.
fn takes_batches(headers: &HeaderMap) -> bool {
    headers.get(VERSION).is_none_or(|version| version == BATCHES_VERSION)
}

/// Whether the content type begins with a media type.
fn has_type(headers: &HeaderMap, media_type: &str) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(media_type.as_bytes()))
}

/// A message as the library takes it, with what the handler of calls needs from the request.
fn message(request: &Request<'_>, body: Bytes, arguments: Option<Result<Map<String, Value>, Problem>>) -> http::Request<Full<Bytes>> {
    let mut message = http::Request::new(Full::new(body));
    *message.method_mut() = http::Method::POST;
    *message.headers_mut() = request.headers.clone();
    // The library knows a list of hosts. A name that no other site can own is as good as one of the list, for scripts of its own pages, too.
    let host = hosts::host(&request.headers);
    if let Some(host) = host.as_ref().and_then(|host| HeaderValue::from_str(host.as_str()).ok()) {
        message.headers_mut().insert(HOST, host);
    }
    let origin = request.headers.get(ORIGIN).and_then(|origin| origin.to_str().ok()).map(hosts::origin);
    if let Some(origin) = origin.as_ref().and_then(|origin| HeaderValue::from_str(origin).ok()) {
        message.headers_mut().insert(ORIGIN, origin);
    }
    if let Some(host) = host.filter(hosts::is_local) {
        let own = ["http", "https"].map(|scheme| format!("{scheme}://{host}"));
        if origin.is_some_and(|origin| own.iter().any(|own| origin.eq_ignore_ascii_case(own))) {
            message.headers_mut().remove(ORIGIN);
        }
        message.headers_mut().insert(HOST, HeaderValue::from_static(LOOPBACK[0]));
    }
    message.extensions_mut().insert(CallerAddress(request.address));
    message.extensions_mut().insert(Query(request.query.to_owned()));
    if let Some(arguments) = arguments {
        message.extensions_mut().insert(Arguments(arguments));
    }
    // Responses are always JSON, so clients that do not accept both types are supported, too.
    message.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    message
}

/// A JSON-RPC response of the library, without API keys. Its errors repeat names from the request, which may be keys in a wrong place.
fn without_keys(answer: Bytes) -> Bytes {
    let is_error = || serde_json::from_slice::<Value>(&answer).is_ok_and(|message| message.get("error").is_some());
    let may_hold_key = answer.windows(PREFIX.len()).any(|part| part == PREFIX.as_bytes());
    if !may_hold_key || !is_error() {
        return answer;
    }
    Bytes::from(hide_keys(String::from_utf8_lossy(&answer).into_owned()))
}

/// A JSON-RPC response of the library. Its error of an unknown method is the name of the method, without a word.
fn with_words(answer: Bytes) -> Bytes {
    if !answer.windows(METHOD_NOT_FOUND.len()).any(|part| part == METHOD_NOT_FOUND.as_bytes()) {
        return answer;
    }
    let Ok(mut message) = serde_json::from_slice::<Value>(&answer) else { return answer };
    let Some(error) = message.get_mut("error") else { return answer };
    if error["code"].as_i64() != METHOD_NOT_FOUND.parse().ok() {
        return answer;
    }
    let words = format!("Method not found: {}", echo(error["message"].as_str().unwrap_or_default()));
    error["message"] = words.into();
    Bytes::from(message.to_string())
}

/// The query of a request.
#[derive(Clone)]
struct Query(String);

/// The arguments of a tool as the text of the request has them, or the problem of arguments that are not I-JSON. The library keeps the last of two
/// equal names, and does not read every number exactly.
#[derive(Clone)]
struct Arguments(Result<Map<String, Value>, Problem>);

/// Takes the arguments out of a message.
fn arguments_of(message: &mut Value) -> Option<Map<String, Value>> {
    match message.get_mut(ARGUMENTS[0])?.get_mut(ARGUMENTS[1])?.take() {
        Value::Object(arguments) => Some(arguments),
        _ => None,
    }
}

/// Whether a violation of I-JSON makes a message invalid: numbers only matter in arguments.
fn is_refused(path: &[String], rule: Rule) -> bool {
    rule == Rule::FieldTwice || path.iter().zip(ARGUMENTS).filter(|(own, name)| own == name).count() == ARGUMENTS.len()
}

/// A JSON-RPC error for a body that is not a JSON-RPC message.
fn refusal(code: i32, message: &str) -> Response {
    let document = json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}});
    let mut response = response::with_content_type(response::full_body(document.to_string().into()), "application/json");
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}

/// The hosts and origins that an endpoint accepts: those of its base URL, configured ones, and loopback.
fn allowed_hosts_and_origins(settings: &Settings, base_url: &str) -> (Vec<String>, Vec<String>) {
    let mut hosts: Vec<String> = LOOPBACK.iter().map(|name| (*name).to_owned()).collect();
    hosts.extend(settings.allowed_hosts.iter().cloned());
    let mut origins = Vec::new();
    for host in &hosts {
        let bracketed = if host.contains("]:") || (host.contains(':') && !host.starts_with('[') && host.matches(':').count() == 1) {
            host.clone()
        } else {
            format!("{host}:*")
        };
        origins.extend(["http", "https"].map(|scheme| format!("{scheme}://{bracketed}")));
    }
    for base_url in settings.services.values().map(|service| service.base_url.as_str()).chain([base_url]) {
        let Ok(uri) = base_url.parse::<Uri>() else { continue };
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { continue };
        // Without the port, because a proxy may remove it from the Host header.
        hosts.push(authority.host().to_owned());
        let port = authority.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
        origins.push(format!("{scheme}://{}:{port}", authority.host()));
    }
    (hosts, origins)
}

/// The handler of an endpoint. It is cheap to clone and has no state of its own.
#[derive(Clone)]
struct Tools {
    context: Arc<Context>,
    mounted: Arc<Mounted>,
    /// The listed tools.
    tools: Arc<[Tool]>,
}

impl Tools {
    fn new(context: Arc<Context>, mounted: Arc<Mounted>) -> Self {
        let tools = tools::tools(&mounted.service.operations, &mounted.settings).into();
        Self { context, mounted, tools }
    }

    /// Admits a message that calls no operation, although it has the form of a call.
    fn admit_message(&self, parts: Option<&http::request::Parts>) -> Result<(), Problem> {
        Access::of(&self.context).admit_open(&self.context, Open::Message, caller_address(parts)?)
    }

    /// The refusal of a call, or `rate-limited` for an address that had too many.
    fn limit_refusal(&self, refusal: Problem, parts: Option<&http::request::Parts>) -> Problem {
        match caller_address(parts) {
            Ok(address) => Access::of(&self.context).limit_refusal(&self.context, refusal, address),
            Err(problem) => problem,
        }
    }

    /// Validates, admits and runs a tool call. Returns its answer, the note next to it (see [`note`]) and the settlement of its payment.
    async fn call(
        &self,
        index: usize,
        arguments: Result<Map<String, Value>, Problem>,
        payment: Option<GivenPayment>,
        parts: Option<&http::request::Parts>,
    ) -> Result<(Value, Option<String>, Option<Settlement>), Problem> {
        let parts = parts.ok_or_else(headless)?;
        let address = caller_address(Some(parts))?;
        // Clients that are configured with a URL only put the key there.
        let query = parts.extensions.get::<Query>().map(|query| query.0.as_str()).unwrap_or_default();
        let mut pairs = form_urlencoded::parse(query.as_bytes()).collect();
        let incoming = Incoming {
            credentials: credentials::take(&parts.headers, &mut pairs)?,
            address,
            form: Form::Json,
            is_continuation: false,
            idempotency_key: rest::idempotency_key(&parts.headers)?,
            watch_token: rest::watch_token(&parts.headers)?,
            if_none_match: None,
            payment,
            sold: None,
            resource: tool_resource(&self.mounted.settings.base_url, self.mounted.service.operations[index].name),
        };
        let arguments = arguments.and_then(|arguments| self.mounted.checkers[index].tool(arguments));
        let (mut answer, admitted) = self.mounted.call(&self.context, index, arguments, incoming).await?;
        let note = note::take(&mut answer.body);
        Ok((value(answer)?, note, admitted.settlement))
    }
}

fn headless() -> Problem {
    Problem::new(ErrorCode::Internal, "the head of the request is not available")
}

/// The caller's address, which [`Endpoint::answer`] adds to the head of a message.
fn caller_address(parts: Option<&http::request::Parts>) -> Result<IpAddr, Problem> {
    parts.and_then(|parts| parts.extensions.get::<CallerAddress>()).map(|address| address.0).ok_or_else(headless)
}

/// The JSON of an answer. Spliced pages are parsed here, because a result contains a JSON value.
fn value(answer: Answer) -> Result<Value, Problem> {
    match answer.body {
        Body::Json(value) => Ok(value),
        Body::Parts(parts) => serde_json::from_slice(&parts.concat()).map_err(|error| {
            tracing::error!(%error, "a spliced page is not valid JSON");
            Problem::new(ErrorCode::Internal, "the answer could not be encoded")
        }),
        Body::Lines { .. } | Body::Events { .. } | Body::NotModified | Body::Effect(_) | Body::File(_) | Body::Stream(_) => {
            tracing::error!("a handler returned an answer that MCP does not support");
            Err(Problem::new(ErrorCode::Internal, "the answer could not be encoded"))
        }
    }
}

/// Converts a problem to a result. Payment terms are structured content, and the first text repeats them.
fn failure(problem: &Problem, base_url: &str) -> CallToolResult {
    let document = problem.document(base_url);
    let Some(challenge) = &problem.challenge else {
        return CallToolResult::error(vec![ContentBlock::text(document.to_string())]);
    };
    let body = challenge.body(&challenge.v2, &document);
    let mut result = CallToolResult::error(vec![ContentBlock::text(body.to_string()), ContentBlock::text(problem.detail.clone())]);
    result.structured_content = Some(body);
    result
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        let service = &self.mounted.service;
        let server = Implementation::new(service.name, env!("CARGO_PKG_VERSION")).with_title(service.title);
        let base_url = &self.mounted.settings.base_url;
        let instructions = format!(
            "{}\n\nA `title` in the schema of a result names a schema in {base_url}/openapi.json, which also has the same operations over REST. \
             Documentation of errors: {base_url}/docs/errors.",
            service.about
        );
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build()).with_server_info(server).with_instructions(instructions)
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        let result = DiscoverResult::from_server_info(versions, self.get_info());
        Ok(result.with_ttl_ms(TOOLS_TTL_MS).with_cache_scope(CacheScope::Public))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|request| request.cursor.is_some()) {
            return Err(ErrorData::invalid_params("unknown cursor: the list of tools is one page", None));
        }
        let result = ListToolsResult { tools: self.tools.to_vec(), ..ListToolsResult::default() };
        Ok(result.with_ttl_ms(TOOLS_TTL_MS).with_cache_scope(CacheScope::Public))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        let operations = &self.mounted.service.operations;
        let parts = context.extensions.get::<http::request::Parts>();
        let given = request.arguments.unwrap_or_default();
        let (given, refused) = match parts.and_then(|parts| parts.extensions.get::<Arguments>()) {
            Some(Arguments(Ok(read))) => (read.clone(), None),
            Some(Arguments(Err(problem))) => (given, Some(problem.clone())),
            None => (given, None),
        };
        let target = tools::target(operations, &request.name, given);
        if !matches!(target, Some(Ok(Target::Operation(..))))
            && let Err(limited) = self.admit_message(parts)
        {
            return Ok(failure(&limited, &self.mounted.settings.base_url).into());
        }
        let Some(target) = target else {
            let hint = schemas::names::hint(&request.name, self.tools.iter().map(|tool| tool.name.as_ref()));
            return Err(ErrorData::invalid_params(format!("Unknown tool: {}{hint}", request.name), None));
        };
        let (index, arguments) = match target {
            Ok(Target::Operation(index, arguments)) => (index, arguments),
            Ok(Target::Describe) => return Ok(CallToolResult::structured(tools::descriptions(operations, &self.mounted.settings)).into()),
            Err(problem) => return Ok(failure(&problem, &self.mounted.settings.base_url).into()),
        };
        let since = Instant::now();
        let payment = context.meta.get(PAYMENT).cloned().map(|payload| GivenPayment {
            payload,
            repeat_token: context.meta.get(repeats::META).and_then(Value::as_str).map(str::to_owned),
        });
        let result = self.call(index, refused.map_or(Ok(arguments), Err), payment, parts).await;
        let result = result.map_err(|refusal| self.limit_refusal(refusal, parts));
        let status = result.as_ref().map_or_else(|problem| problem.code.status(), |_| 200);
        self.mounted.meters[index].count(status, since);
        Ok(match result {
            Ok((value, note, settlement)) => {
                let mut result = CallToolResult::structured(value);
                result.content.extend(note.map(|note| ContentBlock::text(format!("Note: {note}"))));
                if let Some(settlement) = settlement {
                    let paid = [
                        (PAYMENT_RESPONSE.to_owned(), settlement.document(Version::V2)),
                        (repeats::META.to_owned(), json!(settlement.repeat_token())),
                    ];
                    result.meta = Some(MetaObject(paid.into_iter().collect()));
                }
                result
            }
            Err(problem) => failure(&problem, &self.mounted.settings.base_url),
        }
        .into())
    }

    async fn list_prompts(&self, _: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }

    async fn complete(&self, _: CompleteRequestParams, _: RequestContext<RoleServer>) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }
}
