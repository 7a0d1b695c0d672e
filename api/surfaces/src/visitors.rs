//! The pages of the site: home, explorers and records, rendered by the crate `site` from the answers of the mounted services. A visitor sees what a caller
//! without a key sees. A page counts against no quota, but each address has a limit.

use std::net::IpAddr;
use std::sync::Arc;

use access::{Access, Open};
use bytes::Bytes;
use feed::cursor;
use futures_util::future::BoxFuture;
use http::header::{CONTENT_TYPE, ETAG, VARY};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use operation::context::{Context, Part};
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use serde_json::Value;
use site::{Activity, Pairs, Reads, Rendered, SiteService};
use tokio::task::JoinSet;
use warp::reply::Response;

use crate::live::Live;
use crate::mounted_service::Mounted;
use crate::reply::Document;
use crate::response::{full_body, set};
use crate::{Request, if_none_match, read_only, reply, rest, tables};

/// Types that programs accept. A caller that names one of them before HTML is no browser.
const DATA_TYPES: [&str; 6] =
    ["application/json", "application/problem+json", "application/x-ndjson", "text/event-stream", tables::CSV, tables::PARQUET];

/// What the pages of a listener share.
pub(crate) struct Visitors {
    mounted: Vec<Arc<Mounted>>,
    activity: Activity,
    live: Arc<Live>,
}

/// What one request reads.
struct Visit<'a> {
    context: &'a Arc<Context>,
    visitors: &'a Visitors,
    address: IpAddr,
}

impl Visitors {
    pub(crate) fn new(mounted: Vec<Arc<Mounted>>) -> Self {
        Self { live: Arc::new(Live::new(mounted.clone())), mounted, activity: Activity::default() }
    }

    /// The files of the pages, with their paths.
    pub(crate) fn files() -> impl Iterator<Item = (String, Document)> {
        pages::assets::all().map(|asset| (asset.path.clone(), Document::new(asset.bytes, asset.content_type).immutable()))
    }

    /// Answers a request for a page of the site; `None` if the path has none, or if the home page is requested by a program.
    pub(crate) async fn answer(&self, context: &Arc<Context>, request: &Request<'_>) -> Option<Response> {
        let is_live = request.path == site::live::PATH;
        let is_below = |prefix: &str| request.path.strip_prefix(prefix).is_some_and(|below| below.is_empty() || below.starts_with('/'));
        let is_page = [site::STATUS, site::STATUS_FEED, site::VERIFY, site::guides::MARKDOWN_INDEX].contains(&request.path)
            || is_below(site::EXPLORE)
            || is_below(site::guides::PATH)
            || is_below(site::ENTITIES);
        let is_home = request.path == "/" && accepts_html(&request.headers);
        if !(is_live || is_page || is_home) {
            return None;
        }
        let base_url = context.settings.site_url();
        if !matches!(*request.method, Method::GET | Method::HEAD) {
            return Some(read_only(request.method, base_url, full_body(Bytes::new())));
        }
        if let Err(limited) = Access::of(context).admit_open(context, Open::Page, request.address) {
            return Some(reply::problem(base_url, &limited));
        }
        if is_live {
            return Some(self.live.stream(context));
        }
        let visit = Visit { context, visitors: self, address: request.address };
        let rendered = site::render(&visit, request.path, request.query).await?;
        let mut response = page(rendered, if_none_match(&request.headers).as_deref());
        if is_home {
            set(&mut response, VARY, HeaderValue::from_static("Accept"));
        }
        Some(response)
    }
}

/// Whether the caller is a browser: it names HTML before any form of data.
pub(crate) fn accepts_html(headers: &HeaderMap) -> bool {
    rest::accepts_before(headers, "text/html", &DATA_TYPES)
}

/// Whether a browser shows the answer in its window: somebody followed a link or an address, and no script reads the answer. Browsers say so in
/// `Sec-Fetch-Mode`, which scripts cannot set, to servers that they reach over https or on their own machine.
pub(crate) fn is_opened_in_browser(headers: &HeaderMap) -> bool {
    accepts_html(headers) && headers.get("sec-fetch-mode").is_some_and(|mode| mode == "navigate")
}

/// The page of a refusal, instead of its problem document. Status and headers stay. An unpaid call stays as it is: its body has the terms of payment and the
/// free preview of the answer, which a page has not.
pub(crate) fn as_page(mut response: Response) -> Response {
    let found = response.extensions_mut().remove::<Problem>().filter(|problem| problem.challenge.is_none());
    let Some(problem) = found else { return response };
    let mut page = Document::html(site::problem_page(&problem).html).response(None);
    page.headers_mut().remove(ETAG);
    *page.status_mut() = response.status();
    for (name, value) in response.headers() {
        if *name != CONTENT_TYPE {
            page.headers_mut().insert(name, value.clone());
        }
    }
    set(&mut page, VARY, HeaderValue::from_static("Accept"));
    page
}

fn page(rendered: Rendered, if_none_match: Option<&str>) -> Response {
    let is_ok = rendered.status == 200;
    let mut response = Document::new(rendered.html, rendered.content_type).response(if_none_match.filter(|_| is_ok));
    if !is_ok {
        *response.status_mut() = StatusCode::from_u16(rendered.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    }
    response
}

/// Runs a read of a page in a task of its own, so that a page that reads many services uses all cores. The task ends with the page.
async fn in_own_task(read: impl Future<Output = Result<Value, Problem>> + Send + 'static) -> Result<Value, Problem> {
    let mut task = JoinSet::new();
    task.spawn(read);
    match task.join_next().await {
        Some(Ok(answer)) => answer,
        failed => {
            tracing::error!(?failed, "a task that reads for a page did not end");
            Err(Problem::new(ErrorCode::Internal, "the operation failed because of an internal error"))
        }
    }
}

impl Reads for Visit<'_> {
    fn services(&self) -> Vec<SiteService<'_>> {
        self.visitors.mounted.iter().map(|mounted| SiteService { service: &mounted.service, settings: &mounted.settings }).collect()
    }

    fn read<'a>(&'a self, service: &'a str, operation: &'a str, arguments: Pairs) -> BoxFuture<'a, Result<Value, Problem>> {
        let mounted = self.visitors.mounted.iter().find(|mounted| mounted.service.name == service).map(Arc::clone);
        let (context, operation, address) = (Arc::clone(self.context), operation.to_owned(), self.address);
        Box::pin(async move {
            let mounted = mounted.ok_or_else(|| Problem::new(ErrorCode::NotFound, "unknown service"))?;
            in_own_task(async move { mounted.show(&context, &operation, arguments, address).await }).await
        })
    }

    fn cursor_after(&self, service: &str, seq: u64) -> String {
        cursor::encode(&self.context.secrets, service, Seq(seq), "")
    }

    fn now_ms(&self) -> i64 {
        self.context.clock.now_ms()
    }

    fn site_url(&self) -> &str {
        self.context.settings.site_url()
    }

    fn activity(&self) -> &Activity {
        &self.visitors.activity
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::sync::Barrier;

    use super::*;

    /// Proves that the reads of a page run in tasks of their own: none of two ends before the other began; that one that panics is a problem, and that a
    /// read ends with its page.
    #[tokio::test]
    async fn reads_run_in_tasks() {
        let both = Arc::new(Barrier::new(2));
        let read = |value: Value| {
            let both = Arc::clone(&both);
            in_own_task(async move {
                both.wait().await;
                Ok(json!({ "of": tokio::task::id().to_string(), "value": value }))
            })
        };
        let (one, other) = tokio::join!(read(json!(1)), read(json!(2)));
        let (one, other) = (one.unwrap(), other.unwrap());
        assert_eq!((&one["value"], &other["value"]), (&json!(1), &json!(2)));
        assert_ne!(one["of"], other["of"]);

        let panics_at = |value: Value| {
            assert!(value.is_null(), "made for a test");
            Ok::<_, Problem>(value)
        };
        assert_eq!(in_own_task(async move { panics_at(json!(1)) }).await.unwrap_err().code, ErrorCode::Internal);

        let (held, ended) = tokio::sync::oneshot::channel::<()>();
        let mut page = Box::pin(in_own_task(async move {
            let _held = held;
            std::future::pending::<Result<Value, Problem>>().await
        }));
        assert!(futures_util::poll!(page.as_mut()).is_pending());
        drop(page);
        assert!(ended.await.is_err(), "the task was dropped");
    }
}
