//! REST: converts a request to a call, and its answer to a response.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use access::Access;
use arguments::echo;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Buf;
use documents::wire::{EVENTS, IDEMPOTENCY_KEY_CHARS_MAX, NDJSON};
use futures_util::Stream;
use futures_util::future::BoxFuture;
use http::header::{IF_RANGE, RANGE};
use http::{HeaderMap, HeaderName};
use operation::context::{Context, Part as _};
use operation::problem::Problem;
use operation::tracking::counts_visitors;
use operation::{Form, Method, Operation};
use payments::goods::GivenPayment;
use payments::signed_payment::PAYLOAD_BYTES_MAX;
use schemas::error_code::ErrorCode;
use serde_json::Value;
use warp::reply::Response;

use crate::files::PartRequest;
use crate::mounted_service::{Incoming, Mounted};
use crate::routes::PathParameters;
use crate::tables::{self, Table};
use crate::{Request, accept, atom, body, credentials, durable, events, if_none_match, reply};

static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
static PAYMENT: HeaderName = HeaderName::from_static("x-payment");
static PAYMENT_REPEAT_TOKEN: HeaderName = HeaderName::from_static("payment-repeat-token");
static PAYMENT_SIGNATURE: HeaderName = HeaderName::from_static("payment-signature");
static WATCH_TOKEN: HeaderName = HeaderName::from_static("x-watch-token");

/// The parameter by which `event-source-polyfill` sends the last event that it has.
const LAST_EVENT_PARAMETER: &str = "lastEventId";

/// Answers a request to an operation. `is_atom`: a feed is answered with an Atom document, whatever the caller accepts.
pub(crate) async fn operate<S, B>(
    context: &Arc<Context>,
    mounted: &Arc<Mounted>,
    index: usize,
    is_atom: bool,
    path: PathParameters<'_>,
    request: &Request<'_>,
    stream: S,
) -> Response
where
    S: Stream<Item = Result<B, warp::Error>> + Send,
    B: Buf,
{
    let since = Instant::now();
    let (operation, meter) = (&mounted.service.operations[index], &mounted.meters[index]);
    let response = match call(context, mounted, index, is_atom, path, request, stream).await {
        Ok(response) => response,
        Err(problem) => {
            let problem = Access::of(context).limit_refusal(context, problem, request.address);
            reply::problem(&mounted.settings.base_url, &problem)
        }
    };
    tracing::debug!(service = mounted.service.name, operation = operation.name, status = response.status().as_u16(), "answered");
    meter.count(response.status().as_u16(), since);
    response
}

async fn call<S, B>(
    context: &Arc<Context>,
    mounted: &Arc<Mounted>,
    index: usize,
    is_atom: bool,
    path: PathParameters<'_>,
    request: &Request<'_>,
    stream: S,
) -> Result<Response, Problem>
where
    S: Stream<Item = Result<B, warp::Error>> + Send,
    B: Buf,
{
    let operation = &mounted.service.operations[index];
    let mut pairs: Vec<(Cow<'_, str>, Cow<'_, str>)> = form_urlencoded::parse(request.query.as_bytes()).collect();
    let credentials = credentials::take(&request.headers, &mut pairs)?;
    let read = operation.method == Method::Get;
    let (form, table) = if is_atom { (Form::Atom, None) } else { form(operation, &request.headers) };
    let last_event = if form == Form::Events { last_event_id(&request.headers, &mut pairs)? } else { None };
    let resource = format!("{}{}", mounted.settings.base_url, request.below);
    let sold = mounted.checkers[index].sold(&pairs).map(str::to_owned);
    let arguments = arguments(context, mounted, index, path, pairs, request, stream).await;
    let if_none_match = if_none_match(&request.headers).filter(|_| read);
    let incoming = Incoming {
        credentials,
        address: request.address,
        form,
        idempotency_key: idempotency_key(&request.headers)?,
        watch_token: watch_token(&request.headers)?,
        // The ETag of a table is not that of the lines that it is made of.
        if_none_match: if_none_match.clone().filter(|_| form != Form::Events && !operation.is_durable_stream && table.is_none()),
        payment: payment(&request.headers)?,
        sold,
        resource,
        is_continuation: false,
    };
    if operation.is_durable_stream {
        let is_head = request.method == http::Method::HEAD;
        let read = durable::StreamRead { context, mounted, index, incoming, if_none_match, is_head };
        return read.answer(arguments?).await;
    }
    if form == Form::Events {
        return events::begin(context, mounted, index, arguments?, last_event.as_deref(), incoming).await;
    }
    // A range of a HEAD request has no meaning.
    let has_parts = request.method == http::Method::GET && !operation.files.is_empty();
    let (range, if_range) = if has_parts { part(&request.headers) } else { (None, None) };
    let (credentials, address) = (incoming.credentials.clone(), incoming.address);
    let key_end = || -> BoxFuture<'static, ()> {
        let (context, credentials) = (Arc::clone(context), credentials.clone());
        Box::pin(async move { Access::of(&context).wait_for_key_end(&context, &credentials, address).await })
    };
    let given = arguments.as_ref().ok().and_then(Value::as_object);
    let is_positioned = given.is_some_and(|given| ["cursor", "start"].iter().any(|name| given.contains_key(*name)));
    // Only an Atom document repeats the arguments, in its links.
    let repeated = given.filter(|_| is_atom).cloned();
    let (answer, admitted) = mounted.call(context, index, arguments, incoming).await?;
    let rendering = reply::Rendering {
        list: operation.list,
        form,
        table,
        keyed: admitted.keyed,
        paid: admitted.settlement.is_some(),
        read,
        if_none_match: if_none_match.as_deref(),
        part: PartRequest { range, if_range, key_end: &key_end },
        base_url: &mounted.settings.base_url,
        is_closed: answer.has_more && is_positioned,
        atom: repeated.map(|arguments| atom::Document { mounted, operation, site_url: context.settings.site_url(), arguments }),
    };
    let mut response = reply::answer(answer, &rendering);
    admitted.set_headers(&mut response);
    Ok(response)
}

/// The validated arguments of a request, from its path and its query or body.
async fn arguments<S, B>(
    context: &Context,
    mounted: &Mounted,
    index: usize,
    path: PathParameters<'_>,
    pairs: Vec<(Cow<'_, str>, Cow<'_, str>)>,
    request: &Request<'_>,
    stream: S,
) -> Result<Value, Problem>
where
    S: Stream<Item = Result<B, warp::Error>> + Send,
    B: Buf,
{
    if !mounted.service.operations[index].method.has_body() {
        return mounted.checkers[index].strings(path.into_iter().chain(pairs));
    }
    if let Some((name, _)) = pairs.iter().find(|(name, _)| !counts_visitors(name)) {
        let name = echo(name);
        return Err(Problem::parameter(name.as_ref(), format!("unknown parameter \"{name}\": this operation takes a JSON body")));
    }
    let time_max = Duration::from_secs(context.settings.request_timeout_s);
    let body = body::read(stream, &request.headers, context.settings.body_bytes_max, time_max).await?;
    mounted.checkers[index].body(body::fields(&body, &request.headers)?, path.into_iter())
}

/// The payment of a request: a JSON object in base64, in x402 version 1 or 2.
///
/// # Errors
/// `request-invalid`, naming the header, if it is none: a caller whose payment cannot be read does not learn it from a price.
fn payment(headers: &HeaderMap) -> Result<Option<GivenPayment>, Problem> {
    let (name, text) = match (text(headers, &PAYMENT)?, text(headers, &PAYMENT_SIGNATURE)?) {
        (Some(_), Some(_)) => {
            return Err(
                Problem::new(ErrorCode::RequestInvalid, "two payments are given, in X-PAYMENT and PAYMENT-SIGNATURE").about("X-PAYMENT")
            );
        }
        (Some(text), None) => ("X-PAYMENT", text),
        (None, Some(text)) => ("PAYMENT-SIGNATURE", text),
        (None, None) => return Ok(None),
    };
    let payload = payload(text).map_err(|reason| {
        let expected = "the payload of x402 is expected, a JSON object in base64";
        Problem::new(ErrorCode::RequestInvalid, format!("{name}: the payment {reason}; {expected}")).about(name)
    })?;
    let repeat_token = self::text(headers, &PAYMENT_REPEAT_TOKEN)?.map(str::to_owned);
    Ok(Some(GivenPayment { payload, repeat_token }))
}

/// Reads a payload in either alphabet of base64, with or without padding.
fn payload(text: &str) -> Result<Value, String> {
    if text.len() > PAYLOAD_BYTES_MAX {
        return Err(format!("is longer than {PAYLOAD_BYTES_MAX} bytes"));
    }
    let text = text.trim().trim_end_matches('=').replace('-', "+").replace('_', "/");
    let bytes = STANDARD_NO_PAD.decode(text).map_err(|_| "is not base64".to_owned())?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|_| "is not JSON".to_owned())?;
    if value.is_object() { Ok(value) } else { Err("is not a JSON object".to_owned()) }
}

/// The requested form: NDJSON and tables for list operations, server-sent events for feeds, if the caller prefers them to JSON. A table is made of lines.
fn form(operation: &Operation, headers: &HeaderMap) -> (Form, Option<Table>) {
    let events = operation.is_feed().then_some(EVENTS);
    let lines: &[&str] = match (operation.list.is_empty(), operation.is_durable_stream) {
        (true, _) => &[],
        (false, true) => &[NDJSON],
        (false, false) => &[NDJSON, tables::CSV, tables::PARQUET],
    };
    let offered: Vec<&str> = std::iter::once(accept::JSON).chain(events).chain(lines.iter().copied()).collect();
    match accept::preferred(headers, &offered) {
        Some(EVENTS) => (Form::Events, None),
        Some(NDJSON) => (Form::Lines, None),
        Some(media_type @ (tables::CSV | tables::PARQUET)) => (Form::Lines, Some(Table::new(operation, media_type))),
        _ => (Form::Json, None),
    }
}

/// Whether the caller names a media type, and prefers none of some others to it.
pub(crate) fn accepts_before(headers: &HeaderMap, media_type: &str, others: &[&str]) -> bool {
    let offered: Vec<&str> = std::iter::once(media_type).chain(others.iter().copied()).collect();
    accept::preferred(headers, &offered) == Some(media_type)
}

/// The `Idempotency-Key`: printable ASCII of limited length.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(key) = text(headers, &IDEMPOTENCY_KEY)? else { return Ok(None) };
    if key.is_empty() || key.len() > IDEMPOTENCY_KEY_CHARS_MAX || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        let words = format!("Idempotency-Key must be 1 to {IDEMPOTENCY_KEY_CHARS_MAX} printable characters without spaces");
        return Err(Problem::parameter("Idempotency-Key", words));
    }
    Ok(Some(key.to_owned()))
}

/// The `X-Watch-Token`. Operations that take it check its form.
pub(crate) fn watch_token(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    Ok(text(headers, &WATCH_TOKEN)?.map(str::to_owned))
}

/// The `Range` and the `If-Range` of a request. If one of them is given twice or is not plain text, the whole file is sent: it has been counted.
fn part(headers: &HeaderMap) -> (Option<&str>, Option<&str>) {
    match (text(headers, &RANGE), text(headers, &IF_RANGE)) {
        (Ok(range), Ok(if_range)) => (range, if_range),
        _ => (None, None),
    }
}

/// The last event that the reader of a stream has: of the header `Last-Event-ID`, or of the parameter by which programs that replace a browser's own
/// `EventSource` send it. The parameter is taken out of the pairs.
fn last_event_id(headers: &HeaderMap, pairs: &mut Vec<(Cow<'_, str>, Cow<'_, str>)>) -> Result<Option<String>, Problem> {
    let of_query = pairs.iter().position(|(name, _)| &**name == LAST_EVENT_PARAMETER).map(|at| pairs.remove(at).1.into_owned());
    let of_header = text(headers, &LAST_EVENT_ID)?.filter(|id| !id.is_empty()).map(str::to_owned);
    Ok(of_header.or(of_query))
}

/// A header that must occur at most once.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match (value.to_str(), values.next()) {
        (Ok(value), None) => Ok(Some(value)),
        (Ok(_), Some(_)) => Err(Problem::new(ErrorCode::RequestInvalid, format!("header {name} is given twice")).about(name.as_str())),
        (Err(_), _) => Err(Problem::new(ErrorCode::RequestInvalid, format!("header {name} is not plain text")).about(name.as_str())),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use serde_json::json;

    use super::*;

    /// Proves that the last event of a reader comes from the header, or from a parameter, which the operation does not see then.
    #[test]
    fn last_events() {
        let given = |text: &str| vec![(Cow::from("limit"), Cow::from("3")), (Cow::from("lastEventId"), Cow::from(text.to_owned()))];
        let (mut headers, mut pairs) = (HeaderMap::new(), given("c1"));
        assert_eq!(last_event_id(&headers, &mut pairs).unwrap().as_deref(), Some("c1"));
        assert_eq!(pairs, [(Cow::from("limit"), Cow::from("3"))]);
        assert_eq!(last_event_id(&headers, &mut pairs).unwrap(), None);
        headers.insert("last-event-id", HeaderValue::from_static("c2"));
        let mut pairs = given("c1");
        assert_eq!((last_event_id(&headers, &mut pairs).unwrap().as_deref(), pairs.len()), (Some("c2"), 1));
        headers.insert("last-event-id", HeaderValue::from_static(""));
        assert_eq!(last_event_id(&headers, &mut given("c1")).unwrap().as_deref(), Some("c1"), "an empty header says nothing");
        headers.append("last-event-id", HeaderValue::from_static("c3"));
        assert_eq!(last_event_id(&headers, &mut pairs).unwrap_err().code, ErrorCode::RequestInvalid);
    }

    /// Proves that a payment is read in both alphabets of base64, with padding and without, and that anything else names its header and what is expected.
    #[test]
    fn payments() {
        let given = |name: &'static str, text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HeaderName::from_static(name), HeaderValue::from_str(text).unwrap());
            payment(&headers).map(|given| given.unwrap().payload)
        };
        let read = json!({ "a": "\u{3ff}\u{fff}?>" });
        let text = STANDARD_NO_PAD.encode(read.to_string());
        assert!(text.contains(['+', '/']), "{text}");
        let padded = format!("{text}{}", "=".repeat((4 - text.len() % 4) % 4));
        for text in [&text, &padded, &text.replace('+', "-").replace('/', "_"), &format!(" {padded} ")] {
            assert_eq!(given("x-payment", text).as_ref(), Ok(&read), "{text}");
        }
        for (text, reason) in [
            ("%%%", "base64"),
            ("", "JSON"),
            (&*STANDARD_NO_PAD.encode("{"), "JSON"),
            (&*STANDARD_NO_PAD.encode("[1]"), "object"),
            (&*STANDARD_NO_PAD.encode("null"), "object"),
            (&*"a".repeat(PAYLOAD_BYTES_MAX + 1), "longer"),
        ] {
            let problem = given("payment-signature", text).unwrap_err();
            assert_eq!((problem.code, problem.parameter.as_str()), (ErrorCode::RequestInvalid, "PAYMENT-SIGNATURE"));
            assert!(problem.detail.contains(reason) && problem.detail.contains("a JSON object in base64"), "{}", problem.detail);
        }
    }

    /// Proves that a `Range` counts with its `If-Range`, and that the whole file is asked for where one of them is given twice or is not plain text.
    #[test]
    fn parts() {
        let part_of = |given: &[(HeaderName, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in given {
                headers.append(name.clone(), HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
            let (range, if_range) = part(&headers);
            (range.map(str::to_owned), if_range.map(str::to_owned))
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(part_of(&[]), (None, None));
        assert_eq!(part_of(&[(RANGE, "bytes=0-3")]), (text("bytes=0-3"), None));
        assert_eq!(part_of(&[(RANGE, "bytes=0-3"), (IF_RANGE, "\"a\"")]), (text("bytes=0-3"), text("\"a\"")));
        assert_eq!(part_of(&[(RANGE, "bytes=0-3"), (RANGE, "bytes=5-")]), (None, None));
        assert_eq!(part_of(&[(RANGE, "bytes=0-3"), (IF_RANGE, "\"a\""), (IF_RANGE, "\"b\"")]), (None, None));
        assert_eq!(part_of(&[(RANGE, "bytes=0-3"), (IF_RANGE, "\u{ff}")]), (None, None));
        assert_eq!(part_of(&[(RANGE, "\u{ff}"), (IF_RANGE, "\"a\"")]), (None, None));
    }
}
