//! HTTP responses: bodies, validators, problem documents. Promise: bytes that a handler prepared are sent unchanged and with their length. Only many
//! small pieces are joined, because that is cheaper than many writes.

use bytes::{Bytes, BytesMut};
use documents::plain_text::plain_text;
use documents::wire::{ATOM, NDJSON};
use feed::page::OLDER;
use futures_util::stream;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
    ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, RETRY_AFTER, VARY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use listener::Malformed;
use operation::problem::Problem;
use operation::{Answer, Body, File, Form};
use proofs::hash::Hash32;
use schemas::error_code::ErrorCode;
use serde_json::Value;
use warp::Reply;
use warp::reply::Response;

use crate::atom;
use crate::files::{self, PartRequest};
use crate::note;
use crate::response::{full_body, set, set_text, with_content_type};
use crate::tables::{self, Table};

const EXPOSED: &str = "RateLimit, RateLimit-Policy, Retry-After, ETag, Next-Cursor, Older-Cursor, Answer-Note, PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE, Payment-Repeat-Token, Accept-Ranges, Content-Range, Content-Disposition, Content-Length, \
                       Accept, Allow, WWW-Authenticate, Stream-Next-Offset, Stream-Up-To-Date, Stream-Cursor, MCP-Protocol-Version";
const ALLOWED: &str = "X-API-Key, Authorization, X-PAYMENT, PAYMENT-SIGNATURE, Payment-Repeat-Token, Content-Type, Accept, Idempotency-Key, X-Watch-Token, If-None-Match, Range, If-Range, \
                       Mcp-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name, Last-Event-ID";

const NEXT_CURSOR: HeaderName = HeaderName::from_static("next-cursor");
const OLDER_CURSOR: HeaderName = HeaderName::from_static("older-cursor");

/// How many headers an answer has, with those that are added to it later.
const HEADERS_EXPECTED: usize = 20;

/// The most further headers of a script's request that are allowed.
const REQUESTED_MAX: usize = 32;

/// The most pieces that hyper puts into one write.
const PIECES_PER_WRITE: usize = 16;

/// Smaller pieces are cheaper to copy than to write separately.
const SMALL_PIECE_BYTES: usize = 4096;

/// How caches keep a closed page that was read without a key. After a minute they ask for it again with its ETag, so that what was suppressed meanwhile, or
/// is not free any more, disappears.
const CLOSED_PUBLIC: &str = "public, max-age=60, must-revalidate";

/// How caches keep a closed page that was read with a key.
const CLOSED_PRIVATE: &str = "private, max-age=60, must-revalidate";

/// A document that is rendered when the service is mounted.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    body: Bytes,
    content_type: &'static str,
    etag: String,
    caching: &'static str,
    /// The content security policy; empty for none.
    policy: &'static str,
}

impl Document {
    /// A text with a content type.
    pub(crate) fn new(body: impl Into<Bytes>, content_type: &'static str) -> Self {
        let body = body.into();
        let etag = format!("\"{}\"", Hash32::of(&body));
        let policy = if content_type.starts_with("text/html") { pages::POLICY } else { "" };
        Self { body, content_type, etag, caching: "no-cache", policy }
    }

    /// Makes the document cacheable forever, for a URL whose content never changes.
    pub(crate) fn immutable(self) -> Self {
        Self { caching: "public, max-age=31536000, immutable", ..self }
    }

    /// A page or file of a service.
    pub(crate) fn file(file: File) -> Self {
        let document = Self { policy: file.policy, ..Self::new(file.bytes, file.content_type) };
        if file.is_immutable { document.immutable() } else { document }
    }

    /// A JSON value.
    pub(crate) fn json(value: &Value) -> Self {
        Self::new(value.to_string(), "application/json")
    }

    /// A page for people.
    pub(crate) fn html(page: String) -> Self {
        Self::new(page, "text/html; charset=utf-8")
    }

    /// A text for people and models.
    pub(crate) fn text(text: String) -> Self {
        Self::new(text, "text/plain; charset=utf-8")
    }

    /// The document, or 304 if the caller has the current version.
    pub(crate) fn response(&self, if_none_match: Option<&str>) -> Response {
        let mut response = if matches(if_none_match, &self.etag) {
            empty(StatusCode::NOT_MODIFIED)
        } else {
            let mut response = full_body(self.body.clone());
            set(&mut response, CONTENT_TYPE, HeaderValue::from_static(self.content_type));
            response
        };
        set_text(&mut response, ETAG, &self.etag);
        set(&mut response, CACHE_CONTROL, HeaderValue::from_static(self.caching));
        if !self.policy.is_empty() {
            set(&mut response, CONTENT_SECURITY_POLICY, HeaderValue::from_static(self.policy));
        }
        response
    }
}

/// The properties of a request that determine how its answer is rendered.
pub(crate) struct Rendering<'a> {
    /// The field that holds the list, empty for none.
    pub(crate) list: &'a str,
    /// The requested form.
    pub(crate) form: Form,
    /// The table that the lines of the answer are rendered as; `None` if they are sent as they are.
    pub(crate) table: Option<Table>,
    /// Whether a key was used, so that shared caches must not store the response.
    pub(crate) keyed: bool,
    /// Whether the answer was paid for, so that no cache may store the response.
    pub(crate) paid: bool,
    /// Whether the request was a read, so that it can be revalidated.
    pub(crate) read: bool,
    /// The caller's `If-None-Match`.
    pub(crate) if_none_match: Option<&'a str>,
    /// The part of a file that the caller asks for.
    pub(crate) part: PartRequest<'a>,
    /// The base URL of the service, for the documentation of errors.
    pub(crate) base_url: &'a str,
    /// Whether the answer is a closed page of a feed: one from a given position that more changes follow. A cache may keep it for a short time.
    pub(crate) is_closed: bool,
    /// The Atom document that the answer is rendered as; `None` for the other forms.
    pub(crate) atom: Option<atom::Document<'a>>,
}

/// Renders an answer.
pub(crate) fn answer(answer: Answer, rendering: &Rendering<'_>) -> Response {
    let Answer { mut body, etag, mut next_cursor, has_more, status } = answer;
    let mut older_cursor = String::new();
    let mut note = note::take(&mut body);
    let is_revalidated = rendering.read && !rendering.paid;
    let (body, etag) = if etag.is_empty() && is_revalidated { with_etag(body, rendering.form) } else { (body, etag) };
    let etag = match &rendering.table {
        Some(table) if !etag.is_empty() => table.etag(&etag),
        _ => etag,
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    let known = rendering.read && !etag.is_empty() && matches(rendering.if_none_match, &etag);
    let mut response = match body {
        Body::NotModified => empty(StatusCode::NOT_MODIFIED),
        _ if known => empty(StatusCode::NOT_MODIFIED),
        Body::Json(mut value) if rendering.form == Form::Lines && value.get(rendering.list).is_some_and(Value::is_array) => {
            if next_cursor.is_empty() {
                // The position after a page of a feed, or of a list.
                let next = ["cursor", "next"].into_iter().find_map(|name| value.get(name).filter(|next| !next.is_null()));
                next_cursor = next.map(plain_text).unwrap_or_default();
            }
            value.get(OLDER).and_then(Value::as_str).unwrap_or_default().clone_into(&mut older_cursor);
            note = note.or_else(|| note::of_list(&value));
            let items = match value.get_mut(rendering.list).map(Value::take) {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            };
            match &rendering.table {
                Some(table) => file_of(table, Ok(items), rendering.base_url),
                None => lines(items.iter().map(|item| Bytes::from(item.to_string())).collect()),
            }
        }
        Body::Json(value) => with_content_type(full_body(value.to_string().into()), "application/json"),
        Body::Parts(parts) => with_content_type(pieces(parts), "application/json"),
        Body::Lines { items, older, note: of_lines } => {
            older_cursor = older.unwrap_or_default();
            note = of_lines;
            match &rendering.table {
                Some(table) => file_of(table, tables::items_of_lines(&items), rendering.base_url),
                None => lines(items),
            }
        }
        Body::Effect(_) => empty(StatusCode::NO_CONTENT),
        Body::File(mut file) => {
            note = file.note.take();
            files::response(file, &etag, &rendering.part).unwrap_or_else(|refusal| problem(rendering.base_url, &refusal))
        }
        Body::Stream(mut body) => {
            note = body.note.take();
            files::streamed(&body, (rendering.part.key_end)())
        }
        Body::Events { items, older, updated, note: of_events, .. } => {
            note = of_events;
            match &rendering.atom {
                Some(document) => {
                    let next = has_more.then_some(next_cursor.as_str());
                    with_content_type(full_body(document.render(&items, updated.as_deref(), older.as_deref(), next).into()), ATOM)
                }
                None => with_content_type(full_body(super::events::text(&items)), super::events::EVENTS_UTF8),
            }
        }
    };
    if response.status().is_client_error() || response.status().is_server_error() {
        // It is not a version of the answer: it has neither an ETag nor a next cursor, and caches must not store it.
        return response;
    }
    if response.status() == StatusCode::OK {
        *response.status_mut() = status;
    }
    // The first headers would be moved again and again while the others are added.
    response.headers_mut().reserve(HEADERS_EXPECTED);
    for (name, cursor) in [(NEXT_CURSOR, &next_cursor), (OLDER_CURSOR, &older_cursor)] {
        if !cursor.is_empty() {
            set_text(&mut response, name, cursor);
        }
    }
    if let Some(note) = note {
        note::set_header(&mut response, &note);
    }
    let caching = match (rendering.read, rendering.keyed) {
        _ if rendering.paid => "private, no-store",
        (false, _) => "no-store",
        (true, keyed) => read_caching(keyed, rendering.is_closed),
    };
    set_caching(&mut response, &etag, caching, "Accept, Authorization, X-API-Key");
    response
}

/// Tells caches what they need to know of an answer: its ETag unless that is empty, how they keep it, and which headers of requests it differs by.
pub(crate) fn set_caching(response: &mut Response, etag: &str, caching: &'static str, vary: &'static str) {
    if !etag.is_empty() {
        set_text(response, ETAG, etag);
    }
    set(response, CACHE_CONTROL, HeaderValue::from_static(caching));
    set(response, VARY, HeaderValue::from_static(vary));
}

/// How caches keep the answer to a read. `keyed`: a key was used; `is_closed`: see [`Rendering::is_closed`].
pub(crate) fn read_caching(keyed: bool, is_closed: bool) -> &'static str {
    match (keyed, is_closed) {
        (true, true) => CLOSED_PRIVATE,
        (false, true) => CLOSED_PUBLIC,
        (true, false) => "private, no-cache",
        (false, false) => "no-cache",
    }
}

/// Gives a JSON answer an ETag: the hash of its bytes. Lines of the same answer have another one.
fn with_etag(body: Body, form: Form) -> (Body, String) {
    let value = match body {
        Body::Json(value) => value,
        Body::Parts(parts) => {
            let text = Bytes::from(parts.concat());
            let etag = format!("\"{}\"", Hash32::of(&text));
            return (Body::Parts(vec![text]), etag);
        }
        body => return (body, String::new()),
    };
    let text = Bytes::from(value.to_string());
    let hash = Hash32::of(&text);
    if form == Form::Lines { (Body::Json(value), format!("\"{hash}-lines\"")) } else { (Body::Parts(vec![text]), format!("\"{hash}\"")) }
}

/// Renders the refusal of a malformed request, which closes the connection.
pub(crate) fn malformed(base_url: &str, malformed: &Malformed) -> Response {
    let mut response = problem(base_url, &malformed.problem);
    set(&mut response, CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Renders a problem.
pub(crate) fn problem(base_url: &str, problem: &Problem) -> Response {
    let document = problem.document(base_url);
    let mut response = match &problem.challenge {
        Some(challenge) => with_content_type(full_body(challenge.body(&challenge.v1, &document).to_string().into()), "application/json"),
        None => with_content_type(full_body(document.to_string().into()), "application/problem+json"),
    };
    *response.status_mut() = StatusCode::from_u16(problem.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    set(&mut response, CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if problem.retry_after_s > 0 {
        set(&mut response, RETRY_AFTER, HeaderValue::from(problem.retry_after_s));
    }
    if problem.code == ErrorCode::KeyInvalid {
        set(&mut response, WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    for (name, value) in &problem.headers {
        set_text(&mut response, HeaderName::from_static(name), value);
    }
    // A browser may get it as a page.
    response.extensions_mut().insert(problem.clone());
    response
}

/// The response to `OPTIONS`.
pub(crate) fn options(allow: &str) -> Response {
    let mut response = empty(StatusCode::NO_CONTENT);
    for name in [ALLOW, ACCESS_CONTROL_ALLOW_METHODS] {
        set_text(&mut response, name, allow);
    }
    set(&mut response, ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(ALLOWED));
    set(&mut response, ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    response
}

/// Allows the headers that a script wants to send in addition: some payment clients put headers of responses into requests, and a header that this server
/// does not read does no harm.
pub(crate) fn allow_requested(response: &mut Response, headers: &HeaderMap) {
    let lines = headers.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter().filter_map(|line| line.to_str().ok());
    let names = lines.flat_map(|line| line.split(',')).map(str::trim);
    let is_known = |name: &str| ALLOWED.split(", ").any(|known| known.eq_ignore_ascii_case(name));
    let further = names.filter(|name| HeaderName::from_bytes(name.as_bytes()).is_ok() && !is_known(name)).take(REQUESTED_MAX);
    let all: Vec<&str> = std::iter::once(ALLOWED).chain(further).collect();
    set_text(response, ACCESS_CONTROL_ALLOW_HEADERS, &all.join(", "));
    set(response, VARY, HeaderValue::from_static("Access-Control-Request-Headers"));
}

/// Sets the headers of every response: it is open to scripts of any origin, and its content type must not be guessed.
pub(crate) fn finish(response: &mut Response) {
    set(response, ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    set(response, ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    set(response, X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

/// A response without a body.
pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = full_body(Bytes::new());
    *response.status_mut() = status;
    response
}

/// A body of pieces with known length, so that the response is not chunked.
fn pieces(parts: Vec<Bytes>) -> Response {
    let length: usize = parts.iter().map(Bytes::len).sum();
    let mut parts = if parts.len() > PIECES_PER_WRITE { gather(parts) } else { parts };
    if parts.len() == 1 {
        return full_body(parts.pop().unwrap_or_default());
    }
    let parts = parts.into_iter().map(Ok::<_, std::convert::Infallible>);
    let mut response = warp::reply::stream(stream::iter(parts)).into_response();
    set(&mut response, CONTENT_LENGTH, HeaderValue::from(length));
    response
}

/// Joins small neighbouring pieces. A write takes only a few pieces, and it costs more than copying small ones; large pieces are not copied.
fn gather(parts: Vec<Bytes>) -> Vec<Bytes> {
    let is_small = |part: &Bytes| part.len() < SMALL_PIECE_BYTES;
    let mut small = BytesMut::with_capacity(parts.iter().filter(|part| is_small(part)).map(Bytes::len).sum());
    let mut gathered = Vec::new();
    for part in parts {
        if is_small(&part) {
            small.extend_from_slice(&part);
            continue;
        }
        if !small.is_empty() {
            gathered.push(small.split().freeze());
        }
        gathered.push(part);
    }
    if !small.is_empty() || gathered.is_empty() {
        gathered.push(small.freeze());
    }
    gathered
}

/// The items of a list as lines.
fn lines(items: Vec<Bytes>) -> Response {
    let end = Bytes::from_static(b"\n");
    with_content_type(pieces(items.into_iter().flat_map(|item| [item, end.clone()]).collect()), NDJSON)
}

/// The items of a list as a table.
fn file_of(table: &Table, items: Result<Vec<Value>, Problem>, base_url: &str) -> Response {
    match items.and_then(|items| table.file(items)) {
        Ok(file) => with_content_type(full_body(file), table.content_type()),
        Err(refusal) => problem(base_url, &refusal),
    }
}

/// Whether `If-None-Match` contains the ETag, by weak comparison.
fn matches(if_none_match: Option<&str>, etag: &str) -> bool {
    let Some(given) = if_none_match else { return false };
    given.trim() == "*" || given.split(',').any(|tag| tag.trim().trim_start_matches("W/") == etag)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Proves that an answer has the same ETag and bytes whether it is a value or text in parts, and that lines of it have another ETag.
    #[test]
    fn etags_of_parts() {
        let value = json!({ "count": 2, "list": [1, 2] });
        let parts = [r#"{"count":2,"list":["#, "1", ",2", "]}"].map(|part| Bytes::from_static(part.as_bytes()));
        let text = |body| match body {
            Body::Parts(parts) => parts.concat(),
            body => panic!("{body:?}"),
        };
        let (of_value, etag) = with_etag(Body::Json(value.clone()), Form::Json);
        let (of_parts, etag_of_parts) = with_etag(Body::Parts(parts.into()), Form::Json);
        assert_eq!((text(of_value), etag.clone()), (text(of_parts), etag_of_parts));
        let (lines, etag_of_lines) = with_etag(Body::Json(value.clone()), Form::Lines);
        assert_eq!((lines.into_value(), etag_of_lines == etag), (Some(value), false));
        assert_eq!(with_etag(Body::NotModified, Form::Json).1, "");
    }
}
