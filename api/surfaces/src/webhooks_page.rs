//! `/webhooks`: a page for the owner of a key, with the status and attempts of their webhooks, and buttons to test, replay and resend.
//!
//! Promises: the page calls the services' own operations with the caller's key. The key is sent in the body of a form, is in no URL, and no response
//! that contains it is cached. Opening the page counts as one call.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Buf;
use futures_util::Stream;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY};
use http::{HeaderMap, Method};
use maud::{Markup, html};
use operation::context::Context;
use operation::problem::Problem;
use operation::{Body, Form};
use pages::{POLICY, Page, layout, table};
use schemas::error_code::ErrorCode;
use serde_json::{Value, json};
use warp::reply::Response;

use super::mounted::{Incoming, Mounted};
use super::{Request, body, credentials, not_allowed, reply, response};

/// The largest form, in bytes.
const FORM_BYTES_MAX: usize = 16 << 10;
/// The most webhooks of one service that are shown.
const SHOWN_MAX: usize = 50;
/// The most attempts per webhook that are shown.
const ATTEMPTS_MAX: usize = 10;
/// The supported methods.
const METHODS: &str = "GET, HEAD, POST, OPTIONS";
/// The actions of the page: the operation, and the label of its button.
const ACTIONS: [(&str, &str); 3] =
    [("ping_webhook", "Send a test message"), ("replay_webhook", "Resume or replay"), ("resend_message", "Send again")];
/// The operations that list webhooks, and the field of the list in their answers.
const LISTS: [(&str, &str); 2] = [("list_webhooks", "webhooks"), ("list_watches", "watches")];

/// Answers a request for the page.
pub(super) async fn answer<S, B>(context: &Arc<Context>, services: &[&Arc<Mounted>], request: &Request<'_>, stream: S) -> Response
where
    S: Stream<Item = Result<B, warp::Error>> + Send,
    B: Buf,
{
    let main = match *request.method {
        Method::GET | Method::HEAD => form(None),
        Method::OPTIONS => return reply::options(METHODS),
        Method::POST => match render_with_key(context, services, request, stream).await {
            Ok(main) => main,
            Err(problem) => form(Some(&problem.detail)),
        },
        _ => return reply::problem(context.settings.site_url(), &not_allowed(request.method, METHODS)),
    };
    let mut response = response::with_content_type(
        response::full_body(layout(&Page { title: "Webhooks".to_owned(), main, ..Page::default() }).into()),
        "text/html; charset=utf-8",
    );
    response::set_text(&mut response, CACHE_CONTROL, "no-store");
    response::set_text(&mut response, CONTENT_SECURITY_POLICY, POLICY);
    response
}

/// The form that asks for a key, with the reason why a request failed, if one did.
fn form(failure: Option<&str>) -> Markup {
    html! {
        h1 { "Webhooks" }
        @if let Some(failure) = failure { p { strong { (failure) } } }
        p { "The status of your account's webhooks. The key is sent in the body of this form and is not stored." }
        form method="post" action="/webhooks" {
            p {
                label { "Key " input type="password" name="key" required autocomplete="off" size="50"; } " "
                button { "Show" }
            }
        }
    }
}

async fn render_with_key<S, B>(
    context: &Arc<Context>,
    services: &[&Arc<Mounted>],
    request: &Request<'_>,
    stream: S,
) -> Result<Markup, Problem>
where
    S: Stream<Item = Result<B, warp::Error>> + Send,
    B: Buf,
{
    let time_max = Duration::from_secs(context.settings.request_timeout_s);
    let bytes = body::read(stream, &request.headers, FORM_BYTES_MAX, time_max).await?;
    let mut fields: Vec<(Cow<'_, str>, Cow<'_, str>)> = form_urlencoded::parse(&bytes).collect();
    let field = |fields: &[(Cow<'_, str>, Cow<'_, str>)], name: &str| {
        fields.iter().find(|(given, _)| given == name).map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
    };
    let [key, act, service, id, message] = ["key", "act", "service", "id", "message"].map(|name| field(&fields, name));
    let range = ["after", "upto"].map(|name| (name, field(&fields, name)));
    fields.retain(|(name, _)| name == "key");
    let mut caller =
        Caller { context, address: request.address, credentials: credentials::take(&HeaderMap::new(), &mut fields)?, is_counted: false };
    let mut outcome = None;
    if let Some((name, _)) = ACTIONS.into_iter().find(|(name, _)| *name == act) {
        let mounted = services.iter().find(|mounted| mounted.service.name == service);
        let mounted = mounted.ok_or_else(|| Problem::new(ErrorCode::NotFound, "unknown service"))?;
        let mut arguments = json!({ "id": id });
        if name == "resend_message" {
            arguments["message"] = json!(message);
        }
        for (bound, text) in range.iter().filter(|(_, text)| name == "replay_webhook" && !text.is_empty()) {
            let seq = text.parse::<u64>().map_err(|_| Problem::parameter(*bound, format!("{bound}: is not the seq of a change")))?;
            arguments[bound] = json!(seq);
        }
        outcome = Some(match caller.call(mounted, name, arguments).await {
            Ok(answer) => describe_outcome(&answer),
            Err(problem) => problem.detail,
        });
    }
    let (mut sections, mut refused) = (Vec::new(), None);
    for mounted in services {
        let Some((name, list)) = LISTS.into_iter().find(|(name, _)| has(mounted, name)) else { continue };
        let all = match caller.call(mounted, name, json!({})).await {
            Ok(all) => all,
            // The tier may give access to some services only; these are shown.
            Err(problem) if problem.code == ErrorCode::TierTooLow => {
                refused = Some(problem);
                continue;
            }
            Err(problem) => return Err(problem),
        };
        let targets: Vec<&Value> = all[list].as_array().into_iter().flatten().filter(|target| target["webhookHost"].is_string()).collect();
        let mut webhooks = Vec::new();
        for target in targets.iter().take(SHOWN_MAX) {
            let deliveries = caller.call(mounted, "webhook_deliveries", json!({ "id": target["id"] })).await?;
            webhooks.push(render_webhook(mounted.service.name, &key, target, &deliveries));
        }
        sections.push(html! {
            h2 { (mounted.service.title) }
            @if targets.is_empty() { p.soft { "None." } }
            @if targets.len() > SHOWN_MAX { p.soft { "The last " (SHOWN_MAX) " of " (targets.len()) "." } }
            @for webhook in webhooks { (webhook) }
        });
    }
    match refused {
        Some(problem) if !caller.is_counted => Err(problem),
        _ => Ok(html! {
            h1 { "Webhooks" }
            @if let Some(outcome) = outcome { p { strong { (outcome) } } }
            @for section in sections { (section) }
        }),
    }
}

/// Calls operations with one key.
struct Caller<'a> {
    context: &'a Arc<Context>,
    address: IpAddr,
    credentials: access::Credentials,
    /// Whether one call was counted; the others continue it.
    is_counted: bool,
}

impl Caller<'_> {
    async fn call(&mut self, mounted: &Mounted, name: &str, arguments: Value) -> Result<Value, Problem> {
        let index = mounted.service.operations.iter().position(|operation| operation.name == name);
        let index = index.ok_or_else(|| Problem::new(ErrorCode::NotFound, "this service has no webhooks"))?;
        let incoming = Incoming {
            credentials: self.credentials.clone(),
            address: self.address,
            form: Form::Json,
            idempotency_key: None,
            watch_token: None,
            if_none_match: None,
            payment: None,
            resource: String::new(),
            is_continuation: self.is_counted,
        };
        let Value::Object(arguments) = arguments else { return Err(Problem::new(ErrorCode::Internal, "arguments are an object")) };
        let arguments = mounted.checkers[index].json(arguments, ErrorCode::ParameterInvalid);
        let (answer, _) = mounted.call(self.context, index, arguments, incoming).await?;
        self.is_counted = true;
        match answer.body {
            Body::Json(value) => Ok(value),
            _ => Err(Problem::new(ErrorCode::Internal, "the answer could not be displayed")),
        }
    }
}

fn has(mounted: &Mounted, name: &str) -> bool {
    mounted.service.operations.iter().any(|operation| operation.name == name)
}

/// Describes the outcome of an action.
fn describe_outcome(answer: &Value) -> String {
    match (answer["accepted"].as_bool(), &answer["reason"]) {
        (Some(true), _) => format!("The message was accepted with status {}.", answer["status"]),
        (Some(false), reason) => format!("The message was not accepted: {}.", reason.as_str().unwrap_or_default()),
        (None, _) => format!("Delivery continues after change {}.", answer["deliveredSeq"]),
    }
}

/// The text of a JSON value.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Renders one webhook.
fn render_webhook(service: &str, key: &str, target: &Value, deliveries: &Value) -> Markup {
    let id = text(&target["id"]);
    let button = |act: &str, fields: &Markup| {
        let label = ACTIONS.into_iter().find(|(name, _)| *name == act).map_or("", |(_, label)| label);
        html! {
            form.inline method="post" action="/webhooks" {
                @for (name, value) in [("key", key), ("act", act), ("service", service), ("id", &id)] {
                    input type="hidden" name=(name) value=(value);
                }
                (fields)
                button { (label) }
            }
            " "
        }
    };
    let state = [
        ("State", "state"),
        ("Delivered up to change", "deliveredSeq"),
        ("Messages delivered", "delivered"),
        ("Messages skipped", "skipped"),
        ("Failing since", "failingSince"),
        ("Reason", "reason"),
        ("Next attempt", "dueAt"),
    ]
    .map(|(name, field)| (name, text(&deliveries[field])));
    let range = html! {
        @for (name, label) in [("after", "after change"), ("upto", "up to")] {
            label { (label) " " input name=(name) size="8" inputmode="numeric"; } " "
        }
    };
    let attempts = deliveries["deliveries"].as_array().map(Vec::as_slice).unwrap_or_default();
    html! {
        section.panel {
            h3 { (text(&target["webhookHost"])) " " span.soft { (id) } }
            dl.facts {
                @for (name, value) in state.iter().filter(|(_, value)| !value.is_empty()) {
                    div { dt { (name) } dd { (value) } }
                }
            }
            (button("ping_webhook", &html! {}))
            (button("replay_webhook", &range))
            @if !attempts.is_empty() {
                (table(&format!("Attempts of {id}"), &["Message", "Attempt", "At", "Status", "Reason of failure", "Action"], &html! {
                    @for attempt in attempts.iter().take(ATTEMPTS_MAX) {
                        tr {
                            @for field in ["message", "attempt", "at", "status", "reason"] { td { (text(&attempt[field])) } }
                            td {
                                (button("resend_message", &html! { input type="hidden" name="message" value=(text(&attempt["message"])); }))
                            }
                        }
                    }
                }))
            }
        }
    }
}
