//! The surfaces of the API: one warp filter in front of the services, each with its routes and documents.
//!
//! Architecture invariant: nothing here knows a service. Every route, tool, document and validator is derived from the definitions.

mod accept;
mod account;
mod atom;
mod body;
mod credentials;
mod durable;
mod events;
mod files;
mod hosts;
mod live;
mod mcp;
mod mounted_service;
mod note;
mod operators;
mod reply;
mod request;
mod response;
mod rest;
mod routes;
mod same_origin;
mod schemas_served;
pub mod server;
mod tables;
#[cfg(test)]
mod tests;
mod visitors;
mod witness;

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use access::{Access, Open};
use bytes::Buf;
use documents::{asyncapi, avro_schemas, card, discovery, limits, openapi, pages, sitemap};
use futures_util::Stream;
use http::header::VARY;
use http::{HeaderMap, HeaderValue, Method};
use listener::Malformed;
use listener::caller_address::CallerAddress;
use operation::context::Context;
use operation::context::Part;
use operation::metrics;
use operation::problem::Problem;
use operation::{Files, Service};
use payments::Payments;
use schemas::error_code::ErrorCode;
use warp::Filter;
use warp::reply::Response;

pub use self::request::Readiness;
pub(crate) use self::request::Request;
use self::request::{MCP_ONLY, PATH_CHARS_SHOWN, if_none_match, not_allowed, read_only, unknown};
use crate::mounted_service::Mounted;
use crate::reply::Document;
use crate::visitors::Visitors;

/// The path under which the Avro schemas are, by their fingerprints.
pub const SCHEMAS_PATH: &str = avro_schemas::PATH;

/// Why services cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// A definition is invalid.
    #[error(transparent)]
    Schema(#[from] arguments::SchemaError),
    /// Two types of a service have the same name.
    #[error(transparent)]
    SameName(#[from] openapi::SameName),
    /// A service of THE LIST has no settings.
    #[error("service {service} has no settings")]
    Unsettled {
        /// The name of the service.
        service: &'static str,
    },
}

/// A service and its path on the listener.
struct Mount {
    mounted: Arc<Mounted>,
    prefix: String,
    documents: HashMap<&'static str, Document>,
    mcp: mcp::Endpoint,
}

/// Everything that a listener serves.
pub struct Site {
    context: Arc<Context>,
    mounts: Vec<Mount>,
    documents: HashMap<String, Document>,
    visitors: Visitors,
    readiness: Readiness,
}

impl Site {
    /// Prepares the enabled services: compiles their validators and renders their documents.
    ///
    /// # Errors
    /// When a definition is invalid or has no settings.
    pub fn new(context: Arc<Context>, services: Vec<Service>, readiness: Readiness) -> Result<Self, SiteError> {
        let mut mounts = Vec::new();
        for service in services {
            let settings = context.settings.services.get(service.name).ok_or(SiteError::Unsettled { service: service.name })?;
            if settings.enabled {
                mounts.push(Mount::new(&context, Mounted::new(service, settings.clone())?)?);
            }
        }
        let all = || mounts.iter().map(|mount| (&mount.mounted.service, &mount.mounted.settings));
        let x402 = Document::json(&discovery::x402(all(), Payments::of(&context).terms()));
        let mut documents: HashMap<String, Document> = schemas_served::documents().chain(Visitors::files()).collect();
        let icon = &*::pages::assets::ICON;
        documents.extend(
            [
                ("/", Document::html(pages::home::render(context.settings.site_url(), all()))),
                ("/docs/errors", Document::html(pages::docs::errors(context.settings.site_url()))),
                ("/docs/errors.md", Document::new(pages::docs::errors_as_markdown(), "text/markdown; charset=utf-8")),
                ("/llms.txt", Document::text(discovery::llms_of_all(context.settings.site_url(), all()))),
                ("/robots.txt", Document::text(sitemap::robots(context.settings.site_url()))),
                ("/sitemap.xml", Document::new(sitemap::sitemap(context.settings.site_url(), all()), "application/xml")),
                ("/favicon.ico", Document::new(icon.bytes, icon.content_type)),
                ("/asyncapi.json", Document::json(&asyncapi::document(&context.settings))),
                ("/.well-known/x402", x402.clone()),
                ("/.well-known/x402.json", x402),
                (card::CATALOG, Document::json(&card::catalog(all()))),
            ]
            .map(|(path, document)| (path.to_owned(), document)),
        );
        let visitors = Visitors::new(mounts.iter().map(|mount| Arc::clone(&mount.mounted)).collect());
        Ok(Self { context, mounts, documents, visitors, readiness })
    }

    /// The context of the handlers.
    #[must_use]
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Answers one request.
    async fn answer<S, B>(&self, request: Request<'_>, stream: S) -> Response
    where
        S: Stream<Item = Result<B, warp::Error>> + Send,
        B: Buf,
    {
        let _answering = metrics::RequestInFlight::begin();
        // A path with a slash at the end is the same path, answered without a redirect, which many clients do not follow for POST. So is one with several
        // slashes in a row, as of a base URL with a slash at its end and a path that begins with one; but not behind a proxy, whose rules by literal path
        // do not see `/recalls//mcp` as `/recalls/mcp`.
        let path = single_slashes(request.path);
        let would_pass_rules = path.len() < request.path.len() && !self.context.settings.trusted_proxies.is_empty();
        let path = path.trim_end_matches('/');
        let request = Request { path: if path.is_empty() { "/" } else { path }, ..request };
        let preflight = (*request.method == Method::OPTIONS).then(|| request.headers.clone());
        let is_for_browser = visitors::accepts_html(&request.headers);
        let is_opened = visitors::is_opened_in_browser(&request.headers);
        let mut is_api = false;
        let mut response = if would_pass_rules {
            doubled_slashes(&self.context, &request)
        } else if let Some(response) = self.visitors.answer(&self.context, &request).await {
            response
        } else if let Some(response) = self.root(&request) {
            response
        } else if account::has(request.path) {
            let services: Vec<&Arc<Mounted>> = self.mounts.iter().map(|mount| &mount.mounted).collect();
            account::answer(&self.context, &services, &request, stream).await
        } else if let Some(path) = witness::below(&self.context, request.path) {
            witness::answer(&self.context, path, &request, stream).await
        } else if let Some((mount, path)) = self.mounts.iter().find_map(|mount| Some((mount, mount.below(request.path)?))) {
            is_api = is_for_browser && !is_opened && mount.is_api(path);
            mount.answer(&self.context, path, &Request { below: path, ..request }, stream).await
        } else {
            let prefixes = self.mounts.iter().map(|mount| mount.prefix.as_str());
            let known = self
                .documents
                .keys()
                .map(String::as_str)
                .chain(operators::PROBES)
                .chain([site::ACCOUNT, site::EXPLORE, site::STATUS, site::STATUS_FEED, site::VERIFY, site::ENTITIES, site::guides::PATH])
                .chain(prefixes);
            not_found(&self.context, self.context.settings.site_url(), &request, ("", request.path), known)
        };
        if is_for_browser && !is_api {
            response = visitors::as_page(response);
        }
        if let Some(headers) = preflight.filter(|_| response.status().is_success()) {
            reply::allow_requested(&mut response, &headers);
        }
        reply::finish(&mut response);
        metrics::count_response(response.status());
        response
    }

    /// Whether a path is for programs, see [`Mount::is_api`].
    fn is_api(&self, path: &str) -> bool {
        self.mounts.iter().any(|mount| mount.below(path).is_some_and(|below| mount.is_api(below)))
    }

    /// Answers a request for a path of the listener itself, not of a service.
    fn root(&self, request: &Request<'_>) -> Option<Response> {
        let base_url = self.context.settings.site_url();
        if let Some(found) = self.documents.get(request.path) {
            let mut response = document(&self.context, base_url, found, request);
            if request.path == "/" {
                // A browser gets the home page of the site.
                response::set(&mut response, VARY, HeaderValue::from_static("Accept"));
            }
            return Some(response);
        }
        if !operators::PROBES.contains(&request.path) {
            return None;
        }
        if let Err(limited) = Access::of(&self.context).admit_open(&self.context, Open::Probe, request.address) {
            return Some(reply::problem(base_url, &limited));
        }
        operators::probe(&self.context, &self.readiness, request.path).map(|response| read_only(request.method, base_url, response))
    }
}

impl Mount {
    fn new(context: &Arc<Context>, mounted: Mounted) -> Result<Self, SiteError> {
        let (service, settings) = (&mounted.service, &mounted.settings);
        let x402 = Document::json(&discovery::x402(std::iter::once((service, settings)), Payments::of(context).terms()));
        let reference = Document::html(pages::reference::page(service, settings));
        let llms = discovery::llms(service, settings);
        let server_card = Document::new(card::card(service, settings).to_string(), card::CARD_TYPE);
        let documents = HashMap::from([
            ("", reference.clone()),
            ("/", reference.clone()),
            ("/docs", reference),
            ("/docs.md", Document::new(llms.clone(), "text/markdown; charset=utf-8")),
            ("/docs/errors", Document::html(pages::docs::errors(context.settings.site_url()))),
            ("/openapi.json", Document::json(&openapi::document(service, settings)?)),
            ("/limits.json", Document::json(&limits::document(service, settings, &context.settings))),
            ("/llms.txt", Document::text(llms)),
            ("/.well-known/x402", x402.clone()),
            ("/.well-known/x402.json", x402),
            (card::CARD, server_card.clone()),
            (card::WELL_KNOWN_CARD, server_card),
            (card::REGISTRY_ENTRY, Document::json(&card::registry_entry(service, settings))),
        ]);
        let prefix = settings.prefix.trim_end_matches('/').to_owned();
        let mounted = Arc::new(mounted);
        let mcp = mcp::Endpoint::new(context, &mounted);
        Ok(Self { mounted, prefix, documents, mcp })
    }

    /// The path below this service's prefix; `None` if the path is not below it.
    fn below<'a>(&self, path: &'a str) -> Option<&'a str> {
        path.strip_prefix(self.prefix.as_str()).filter(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Whether a path below the prefix is for programs. They get problem documents, whatever they accept; a browser that opens the path gets pages.
    fn is_api(&self, path: &str) -> bool {
        path == "/mcp" || self.mounted.routes.find(path).is_some()
    }

    async fn answer<S, B>(&self, context: &Arc<Context>, path: &str, request: &Request<'_>, stream: S) -> Response
    where
        S: Stream<Item = Result<B, warp::Error>> + Send,
        B: Buf,
    {
        let base_url = &self.mounted.settings.base_url;
        // An operation has precedence over a document with the same path.
        if let Some((route, parameters)) = self.mounted.routes.find(path) {
            let index = match *request.method {
                Method::GET | Method::HEAD => route.get,
                Method::POST => route.post,
                Method::PATCH => route.patch,
                Method::DELETE => route.delete,
                Method::OPTIONS => return reply::options(&route.allow()),
                _ => None,
            };
            return match index {
                Some(index) => rest::operate(context, &self.mounted, index, route.is_atom, parameters, request, stream).await,
                None => reply::problem(base_url, &not_allowed(request.method, &route.allow())),
            };
        }
        if path == "/mcp" {
            return match *request.method {
                // Boxed: it needs more room than the answer of any operation, in the future of every request.
                Method::POST => Box::pin(self.mcp.answer(context, base_url, request, stream)).await,
                Method::OPTIONS => Box::pin(self.mcp.preflight(context, base_url, request)).await,
                _ => reply::problem(base_url, &not_allowed(request.method, MCP_ONLY)),
            };
        }
        if let Some(found) = self.documents.get(path) {
            return document(context, base_url, found, request);
        }
        if let Some(files) = &self.mounted.service.files
            && let Some(response) = file(files, context, base_url, path, request).await
        {
            return response;
        }
        let known = self.mounted.routes.paths().chain(self.documents.keys().copied()).chain(["/mcp"]);
        not_found(context, base_url, request, (self.prefix.as_str(), path), known)
    }
}

/// The response to a request for a document that was rendered at start.
fn document(context: &Context, base_url: &str, document: &Document, request: &Request<'_>) -> Response {
    if let Err(limited) = Access::of(context).admit_open(context, Open::Document, request.address) {
        return reply::problem(base_url, &limited);
    }
    read_only(request.method, base_url, document.response(if_none_match(&request.headers).as_deref()))
}

/// A page or file of a service, or the refusal of a method; `None` if there is none at the path.
async fn file(files: &Files, context: &Arc<Context>, base_url: &str, path: &str, request: &Request<'_>) -> Option<Response> {
    if let Err(problem) = Access::of(context).admit_open(context, Open::File, request.address) {
        return Some(reply::problem(base_url, &problem));
    }
    let finding = files(Arc::clone(context), path.trim_start_matches('/').to_owned());
    let found = tokio::time::timeout(context.settings.call_times.read, finding).await;
    let late = || Problem::new(ErrorCode::Unavailable, "the view store does not respond").retry_after(1);
    let response = match found.unwrap_or_else(|_| Err(late())) {
        Ok(file) => Document::file(file?).response(if_none_match(&request.headers).as_deref()),
        Err(problem) => reply::problem(base_url, &problem),
    };
    Some(read_only(request.method, base_url, response))
}

/// The warp filter of a site. It answers every request.
pub fn filter(site: Arc<Site>) -> impl Filter<Extract = (Response,), Error = warp::Rejection> + Clone {
    let query = warp::query::raw().or(warp::any().map(String::new)).unify();
    warp::method()
        .and(warp::path::full())
        .and(query)
        .and(warp::header::headers_cloned())
        .and(warp::ext::optional::<CallerAddress>())
        .and(warp::ext::optional::<Malformed>())
        .and(warp::body::stream())
        .then(
            move |method: Method,
                  path: warp::path::FullPath,
                  query: String,
                  headers: HeaderMap,
                  address: Option<CallerAddress>,
                  malformed: Option<Malformed>,
                  stream| {
                let site = Arc::clone(&site);
                async move {
                    if let Some(malformed) = malformed {
                        let mut response = reply::malformed(site.context.settings.site_url(), &malformed);
                        if visitors::is_opened_in_browser(&headers) || (visitors::accepts_html(&headers) && !site.is_api(path.as_str())) {
                            response = visitors::as_page(response);
                        }
                        reply::finish(&mut response);
                        metrics::count_response(response.status());
                        return response;
                    }
                    // The server always sets the address. Without it, all callers would share one anonymous quota.
                    let address = address.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |address| address.0);
                    site.answer(Request { method: &method, path: path.as_str(), below: "", query: &query, headers, address }, stream).await
                }
            },
        )
}

/// A path with one slash where it has several in a row.
fn single_slashes(path: &str) -> Cow<'_, str> {
    if !path.contains("//") {
        return Cow::Borrowed(path);
    }
    let mut out = String::with_capacity(path.len());
    for c in path.chars() {
        if c != '/' || !out.ends_with('/') {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// The response for a path with several slashes in a row behind a proxy. `request` has the path that is meant.
fn doubled_slashes(context: &Context, request: &Request<'_>) -> Response {
    let problem = Access::of(context).admit_open(context, Open::UnknownPath, request.address).err().unwrap_or_else(|| {
        let shown: String = request.path.chars().take(PATH_CHARS_SHOWN).collect();
        let detail = format!(
            "behind a proxy, a path with several slashes in a row is not taken for the one with single slashes; ask for \"{shown}\""
        );
        Problem::new(ErrorCode::NotFound, detail)
    });
    reply::problem(context.settings.site_url(), &problem)
}

/// The response for an unknown path below a prefix. Such requests count against the limit of the address before anything else is done.
fn not_found<'a>(
    context: &Context,
    base_url: &str,
    request: &Request<'_>,
    (prefix, path): (&str, &str),
    known: impl IntoIterator<Item = &'a str>,
) -> Response {
    if let Err(problem) = Access::of(context).admit_open(context, Open::UnknownPath, request.address) {
        return reply::problem(base_url, &problem);
    }
    reply::problem(base_url, &unknown(prefix, path, known))
}
