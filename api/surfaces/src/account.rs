//! `/account`: the portal of an account. Somebody signs in with a key, which the browser then keeps, sealed, in a cookie.
//!
//! Promises: the pages call the services' own operations with that key, so they do nothing that is not possible over REST. The key is in no page, no URL and
//! no log; the cookie reaches this path only, is hidden from scripts, and is not sent by other sites. A form that another site sent is refused. No response
//! is cached. A revoked key ends its sessions with the next request.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use access::{Access, Credentials, Open, session};
use bytes::Buf;
use futures_util::Stream;
use futures_util::future::BoxFuture;
use http::header::{CACHE_CONTROL, COOKIE, ETAG, LOCATION, REFERRER_POLICY, RETRY_AFTER, SET_COOKIE, VARY, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use operation::Form;
use operation::context::{Context, Part, Settings};
use operation::problem::Problem;
use operation::redaction::PREFIX;
use schemas::error_code::ErrorCode;
use schemas::views::accounts::Tier;
use serde_json::Value;
use site::account::{Arguments, Calls, KEYS, Route, SIGN_IN, SIGN_OUT, Screen, SignIn, Usage, WEBHOOKS};
use site::{ACCOUNT, Pairs, SiteService, url};
use warp::reply::Response;

use crate::mounted_service::{Incoming, Mounted, value_of};
use crate::reply::{Document, empty};
use crate::response::{set, set_text};
use crate::same_origin::is_same_origin;
use crate::{Request, body, not_allowed, reply, visitors};

/// The address of the page of webhooks before there was the portal.
const OLD_WEBHOOKS: &str = "/webhooks";
/// The supported methods.
const METHODS: &str = "GET, HEAD, POST, OPTIONS";
/// The largest form, in bytes.
const FORM_BYTES_MAX: usize = 16 << 10;
/// The name of the cookie. Where it is sent over https only, its name says so, and browsers enforce it.
const COOKIE_NAME: &str = "highwater-session";
/// The longest idempotency key of a form, in bytes.
const ONCE_BYTES_MAX: usize = 64;
/// The longest address of a page that is shown after signing in, in bytes.
const RETURN_BYTES_MAX: usize = 4_096;
/// What is added to the address of the first page after signing in, so that it can say that the browser sent no cookie.
const JUST_SIGNED_IN: &str = "signed-in";

/// Whether the portal answers a path.
pub(crate) fn has(path: &str) -> bool {
    path == OLD_WEBHOOKS || path.strip_prefix(ACCOUNT).is_some_and(|below| below.is_empty() || below.starts_with('/'))
}

/// Answers a request for a page of the portal.
pub(crate) async fn answer<S, B>(context: &Arc<Context>, services: &[&Arc<Mounted>], request: &Request<'_>, stream: S) -> Response
where
    S: Stream<Item = Result<B, warp::Error>> + Send,
    B: Buf,
{
    if *request.method == Method::OPTIONS {
        return reply::options(METHODS);
    }
    let answered = match Access::of(context).admit_open(context, Open::Page, request.address) {
        Ok(()) => Portal { context, services, request }.answer(stream).await,
        Err(limited) => Err(limited),
    };
    let mut response = answered.unwrap_or_else(|problem| reply::problem(context.settings.site_url(), &problem));
    set(&mut response, CACHE_CONTROL, HeaderValue::from_static("no-store"));
    set(&mut response, VARY, HeaderValue::from_static("Cookie, Accept"));
    // Forms of these pages must say their origin, and other sites learn no address of the portal.
    set(&mut response, REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// What one request needs.
struct Portal<'a> {
    context: &'a Arc<Context>,
    services: &'a [&'a Arc<Mounted>],
    request: &'a Request<'a>,
}

/// Whether somebody signed in.
enum Visitor {
    Nobody,
    /// The key of the session works.
    Known(Credentials, Usage),
    /// There is a session, but it does not work any more.
    Ended(Problem),
}

impl<'a> Portal<'a> {
    async fn answer<S, B>(&self, stream: S) -> Result<Response, Problem>
    where
        S: Stream<Item = Result<B, warp::Error>> + Send,
        B: Buf,
    {
        let (request, path) = (self.request, self.request.path);
        if path == OLD_WEBHOOKS {
            return Ok(redirect(WEBHOOKS));
        }
        match *request.method {
            // A form is sent there, and its answer may be loaded again.
            Method::GET | Method::HEAD if [SIGN_IN, SIGN_OUT, KEYS].contains(&path) => Ok(redirect(ACCOUNT)),
            Method::GET | Method::HEAD => {
                let route = Route::parse(path).ok_or_else(unknown)?;
                self.show(&route).await
            }
            Method::POST => {
                if !is_same_origin(&request.headers, self.context.settings.site_url(), is_secure(&self.context.settings)) {
                    let words = "the form was not sent by a page of this server; open the page here and send its form";
                    return Err(Problem::new(ErrorCode::OriginRefused, words));
                }
                let time_max = Duration::from_secs(self.context.settings.request_timeout_s);
                let bytes = body::read(stream, &request.headers, FORM_BYTES_MAX, time_max).await?;
                let form = url::pairs(&String::from_utf8_lossy(&bytes));
                self.submit(&form).await
            }
            _ => Err(not_allowed(request.method, METHODS)),
        }
    }

    async fn show(&self, route: &Route) -> Result<Response, Problem> {
        let query = url::pairs(self.request.query);
        match self.visitor().await? {
            Visitor::Known(credentials, usage) => {
                Ok(self.page(site::account::show(&self.caller(credentials), &usage, route, &query).await))
            }
            Visitor::Ended(problem) => Ok(self.ended(problem)),
            Visitor::Nobody => {
                let is_back = query.iter().any(|(name, _)| name == JUST_SIGNED_IN);
                let why = if is_back { SignIn::NoCookie } else { SignIn::Asked };
                let to = with_query(self.request.path, self.request.query);
                Ok(self.page(site::account::sign_in(&self.caller(Credentials::default()), &to, why)))
            }
        }
    }

    async fn submit(&self, form: &Pairs) -> Result<Response, Problem> {
        match self.request.path {
            SIGN_IN => return self.sign_in(form).await,
            SIGN_OUT => return Ok(self.without_cookie(redirect(ACCOUNT))),
            KEYS => {
                let (credentials, usage) = match self.visitor().await? {
                    Visitor::Known(credentials, usage) => (credentials, Some(usage)),
                    Visitor::Ended(_) | Visitor::Nobody => (Credentials::default(), None),
                };
                return Ok(self.page(site::account::create_key(&self.caller(credentials), usage.as_ref(), form).await));
            }
            _ => {}
        }
        let route = Route::parse(self.request.path).ok_or_else(unknown)?;
        match self.visitor().await? {
            Visitor::Known(credentials, usage) => {
                Ok(self.page(site::account::submit(&self.caller(credentials), &usage, &route, form).await))
            }
            Visitor::Ended(problem) => Ok(self.ended(problem)),
            Visitor::Nobody => Ok(self.ended(Problem::new(ErrorCode::KeyInvalid, "you are not signed in; nothing was changed"))),
        }
    }

    /// Begins a session.
    async fn sign_in(&self, form: &Pairs) -> Result<Response, Problem> {
        let to = Some(url::value(form, "to")).filter(|to| leads_here(to)).unwrap_or(ACCOUNT);
        let begun = async {
            let key = access::parse_key(url::value(form, "key"))?;
            self.usage(&Credentials { key: Some(key.reveal().to_owned()) }).await?;
            session::begin(self.context, &key)
        };
        match begun.await {
            Ok(sealed) => {
                let mark = if to.contains('?') { '&' } else { '?' };
                Ok(self.with_cookie(redirect(&format!("{to}{mark}{JUST_SIGNED_IN}=1")), &sealed, ""))
            }
            Err(problem) => Ok(self.page(site::account::sign_in(&self.caller(Credentials::default()), to, SignIn::Refused(problem)))),
        }
    }

    /// Who sends the request.
    ///
    /// # Errors
    /// When the key cannot be looked up.
    async fn visitor(&self) -> Result<Visitor, Problem> {
        let name = self.cookie_name();
        let sealed: Vec<&str> = cookies(&self.request.headers, &name).collect();
        if sealed.is_empty() {
            return Ok(Visitor::Nobody);
        }
        let Some(credentials) = sealed.into_iter().find_map(|sealed| session::open(self.context, sealed)) else {
            let words = format!("the session has ended: it lasts {} hours at most", session::SESSION_HOURS_MAX);
            return Ok(Visitor::Ended(Problem::new(ErrorCode::KeyInvalid, words)));
        };
        match self.usage(&credentials).await {
            Ok(usage) => Ok(Visitor::Known(credentials, usage)),
            Err(problem) if problem.code == ErrorCode::KeyInvalid => Ok(Visitor::Ended(problem)),
            Err(problem) => Err(problem),
        }
    }

    async fn usage(&self, credentials: &Credentials) -> Result<Usage, Problem> {
        let usage = Access::of(self.context).usage(self.context, credentials.clone(), self.request.address).await?;
        Ok(Usage {
            tier: usage.caller.tier.as_str().to_owned(),
            key_id: usage.caller.key_id,
            account: usage.caller.account,
            calls_max: usage.calls_max,
            remaining: usage.remaining,
            reset_s: usage.reset_s,
        })
    }

    fn caller(&self, credentials: Credentials) -> Caller<'a> {
        Caller { context: self.context, services: self.services, credentials, address: self.request.address }
    }

    /// The response with a page. Programs get the problem of a refusal as such.
    fn page(&self, screen: Screen) -> Response {
        let Screen { status, html, problem } = screen;
        match problem {
            Some(problem) if !visitors::accepts_html(&self.request.headers) => reply::problem(self.context.settings.site_url(), &problem),
            problem => {
                let mut response = Document::html(html).response(None);
                response.headers_mut().remove(ETAG);
                *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                if let Some(retry_after_s) = problem.map(|problem| problem.retry_after_s).filter(|seconds| *seconds > 0) {
                    set(&mut response, RETRY_AFTER, HeaderValue::from(retry_after_s));
                }
                if status == StatusCode::UNAUTHORIZED.as_u16() {
                    set(&mut response, WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                }
                response
            }
        }
    }

    /// The page of a session that has ended.
    fn ended(&self, problem: Problem) -> Response {
        let screen = site::account::sign_in(&self.caller(Credentials::default()), ACCOUNT, SignIn::Ended(problem));
        self.without_cookie(self.page(screen))
    }

    fn cookie_name(&self) -> String {
        format!("{}{COOKIE_NAME}", if is_secure(&self.context.settings) { "__Secure-" } else { "" })
    }

    fn without_cookie(&self, response: Response) -> Response {
        self.with_cookie(response, "", "; Max-Age=0")
    }

    /// Sets the cookie. Without `Max-Age` it ends with the browser.
    fn with_cookie(&self, mut response: Response, value: &str, age: &str) -> Response {
        let secure = if is_secure(&self.context.settings) { "; Secure" } else { "" };
        let cookie = format!("{}={value}; Path={ACCOUNT}; HttpOnly; SameSite=Strict{secure}{age}", self.cookie_name());
        set_text(&mut response, SET_COOKIE, &cookie);
        response
    }
}

/// Whether the cookie is sent over https only: always, except by a listener of this machine that is reached by plain http.
fn is_secure(settings: &Settings) -> bool {
    let is_on_this_machine = settings.listening.is_some_and(|address| address.to_canonical().is_loopback());
    !is_on_this_machine || settings.site_url().starts_with("https://")
}

/// The values of the cookies with a name. Another path or domain can have set more of them.
fn cookies<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(move |(given, value)| *given == name && !value.is_empty()).map(|(_, value)| value)
}

/// Whether a text is the path of a page of the portal, which may have a query.
fn leads_here(to: &str) -> bool {
    let path = to.split_once('?').map_or(to, |(path, _)| path);
    to.len() <= RETURN_BYTES_MAX
        && to.bytes().all(|byte| byte.is_ascii_graphic() && !b"\\#\"<>".contains(&byte))
        && Route::parse(path).is_some()
}

/// A path with the query of a request, without what signing in added to it, and without keys, which may have been sent in a wrong place.
fn with_query(path: &str, query: &str) -> String {
    let is_mark = |pair: &&str| pair.split('=').next() == Some(JUST_SIGNED_IN);
    let has_key =
        |pair: &&str| form_urlencoded::parse(pair.as_bytes()).any(|(name, value)| name.contains(PREFIX) || value.contains(PREFIX));
    let pairs: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty() && !is_mark(pair) && !has_key(pair)).collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}

fn redirect(path: &str) -> Response {
    let mut response = empty(StatusCode::SEE_OTHER);
    set_text(&mut response, LOCATION, path);
    response
}

fn unknown() -> Problem {
    Problem::new(ErrorCode::NotFound, "the account has no such page")
}

/// Calls operations with one key, or without.
struct Caller<'a> {
    context: &'a Arc<Context>,
    services: &'a [&'a Arc<Mounted>],
    credentials: Credentials,
    address: IpAddr,
}

impl Calls for Caller<'_> {
    fn services(&self) -> Vec<SiteService<'_>> {
        self.services.iter().map(|mounted| SiteService { service: &mounted.service, settings: &mounted.settings }).collect()
    }

    fn call<'a>(
        &'a self,
        service: &'a str,
        operation: &'a str,
        arguments: Arguments,
        once: &'a str,
    ) -> BoxFuture<'a, Result<Value, Problem>> {
        Box::pin(async move {
            let mounted = self.services.iter().find(|mounted| mounted.service.name == service);
            let mounted = mounted.ok_or_else(|| Problem::new(ErrorCode::NotFound, "this server has no such service"))?;
            let all = &mounted.service.operations;
            let index = all.iter().position(|known| known.name == operation && known.has_route());
            let index = index.ok_or_else(|| Problem::new(ErrorCode::NotFound, format!("this service has no operation {operation}")))?;
            let is_once = !once.is_empty() && once.len() <= ONCE_BYTES_MAX && once.bytes().all(|byte| byte.is_ascii_alphanumeric());
            let incoming = Incoming {
                credentials: self.credentials.clone(),
                address: self.address,
                form: Form::Json,
                idempotency_key: is_once.then(|| once.to_owned()),
                watch_token: None,
                if_none_match: None,
                payment: None,
                sold: None,
                resource: String::new(),
                // What a page reads has the limit of pages. What a form does counts.
                is_continuation: all[index].method == operation::Method::Get,
            };
            let arguments = mounted.checkers[index].json(arguments, ErrorCode::ParameterInvalid);
            let (answer, _) = mounted.call(self.context, index, arguments, incoming).await?;
            value_of(answer)
        })
    }

    fn paid_keys(&self) -> String {
        self.context.settings.origin_of_keys(Tier::Pro)
    }

    fn nonce(&self) -> String {
        session::nonce()
    }
}
