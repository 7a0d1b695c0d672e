//! The site: pages for people that show what the operations answer. A page is a function from answers to HTML, and works without JavaScript.
//!
//! Promises: pages read through [`Reads`] only, so they show a visitor what the API shows a caller without a key, with the same notes. Every text of a
//! record is escaped and isolated from the direction of the text around it; a link leads to http or https only. No page has a script or style of its
//! own: both are files with a fingerprint in their path, so that the content security policy can forbid everything else.

pub mod account;
mod activity;
mod chart;
mod difference;
mod entities;
mod explorer;
mod fields;
mod filters;
pub mod guides;
mod home;
mod layout;
pub mod live;
mod receipts;
mod record;
mod search;
mod sources;
mod status;
#[cfg(test)]
mod testing;
mod this_view;
pub mod url;

use futures_util::future::BoxFuture;
use operation::context::ServiceSettings;
use operation::problem::Problem;
use operation::{Operation, RecordPage, Service};
use schemas::error_code::ErrorCode;
use serde_json::Value;

pub use activity::Activity;
pub use pages::{ACCOUNT, EXPLORE, POLICY, assets};
use pages::{Page, layout};

/// The path of the status page.
pub const STATUS: &str = "/status";
/// The path of the feed of outages.
pub const STATUS_FEED: &str = "/status.atom";

/// The path below which the pages of entities are.
pub const ENTITIES: &str = "/entities";

/// The path of the page that finds and verifies receipts.
pub const VERIFY: &str = "/verify";

/// The content type of a page.
const HTML: &str = "text/html; charset=utf-8";

/// The names and values of a query.
pub type Pairs = Vec<(String, String)>;

/// A service of the site.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    /// The service.
    pub service: &'a Service,
    /// The settings of the service.
    pub settings: &'a ServiceSettings,
}

impl<'a> Shown<'a> {
    /// The operation with a name and a route.
    fn operation(&self, name: &str) -> Option<&'a Operation> {
        self.service.operations.iter().find(|operation| operation.name == name && operation.has_route())
    }

    /// The feed that takes the filter of the service; `None` if the service has none.
    fn filtered_feed(&self) -> Option<&'a Operation> {
        self.service.operations.iter().find(|operation| operation.is_feed() && operation.has_route() && operation.name != "changes")
    }

    /// The path of the explorer.
    fn explorer(&self) -> String {
        format!("{EXPLORE}/{}", self.service.name)
    }

    /// The path of the page of a record.
    fn record(&self, id: &str) -> String {
        record_path(self.service.name, id)
    }
}

/// The path of the page of a record of a service.
#[must_use]
pub fn record_path(service: &str, id: &str) -> String {
    format!("{EXPLORE}/{service}/{}", url::segment(id))
}

/// The words that name a record, from the fields that it shows: "Northford: cutter drydock repairs". `None` if it shows none of those that can name one.
#[must_use]
pub fn record_name(record: &Value, page: &RecordPage) -> Option<String> {
    fields::given_name(record, page)
}

/// What pages read. The implementation calls the operations in this process, as a caller without a key whose calls count against no quota.
pub trait Reads: Send + Sync {
    /// The services that are served, in the order of the list.
    fn services(&self) -> Vec<Shown<'_>>;

    /// Calls an operation with the arguments of a query; paid operations and those of a tier are refused as the API refuses them.
    fn read<'a>(&'a self, service: &'a str, operation: &'a str, arguments: Pairs) -> BoxFuture<'a, Result<Value, Problem>>;

    /// The cursor after a change, which `changes` takes.
    fn cursor_after(&self, service: &str, seq: u64) -> String;

    /// The time, in milliseconds since 1970.
    fn now_ms(&self) -> i64;

    /// The public URL of the listener, without a slash at the end.
    fn site_url(&self) -> &str;

    /// How many changes were recorded on each past day, as far as it is known.
    fn activity(&self) -> &Activity;
}

/// A rendered page.
pub struct Rendered {
    /// The HTTP status.
    pub status: u16,
    /// The HTML, or the text of another type.
    pub html: String,
    /// The content type.
    pub content_type: &'static str,
}

/// Renders the page at a path; `None` if the site has none there. `path` has no slash at the end, and `query` is as the request has it.
pub async fn render(reads: &dyn Reads, path: &str, query: &str) -> Option<Rendered> {
    let pairs = url::pairs(query);
    let site_url = reads.site_url();
    if path == "/" {
        return Some(respond(home::page(reads).await, site_url));
    }
    if let Some(below) = path.strip_prefix(guides::PATH)
        && (below.is_empty() || below.starts_with('/'))
    {
        return Some(guides::render(path, site_url));
    }
    if path == STATUS {
        return Some(respond(status::page(reads).await, site_url));
    }
    if path == STATUS_FEED {
        return Some(status::outages::feed(reads).await);
    }
    if path == VERIFY {
        return Some(respond(receipts::page(reads, &pairs).await, site_url));
    }
    if path == ENTITIES {
        return Some(respond(Ok(entities::overview(reads)), site_url));
    }
    if let Some(kind) = path.strip_prefix(ENTITIES).and_then(|below| below.strip_prefix('/')) {
        return Some(respond(entities::page(reads, kind, &pairs).await, site_url));
    }
    let below = path.strip_prefix(EXPLORE)?;
    let Some(below) = below.strip_prefix('/') else {
        return if below.is_empty() { Some(respond(search::page(reads, &pairs).await, site_url)) } else { None };
    };
    let (name, id) = below.split_once('/').map_or((below, None), |(name, id)| (name, Some(id)));
    let shown = reads.services().into_iter().find(|shown| shown.service.name == name);
    let Some(shown) = shown else {
        return Some(respond(Err(Problem::new(ErrorCode::NotFound, "this server has no such service")), site_url));
    };
    let page = match id {
        None => explorer::page(reads, shown, &pairs).await,
        Some(id) => match url::decoded(id) {
            Some(id) => record::page(reads, shown, &id, &pairs).await,
            None => Err(Problem::new(ErrorCode::NotFound, "the id in this address cannot be read")),
        },
    };
    Some(respond(page, site_url))
}

/// The page for a problem.
#[must_use]
pub fn problem_page(problem: &Problem) -> Rendered {
    respond(Err(problem.clone()), "")
}

fn respond(page: Result<Page<'_>, Problem>, site_url: &str) -> Rendered {
    let page = Page { site_url, ..page.unwrap_or_else(|problem| layout::problem(&problem)) };
    Rendered { status: page.status, html: layout(&page), content_type: HTML }
}
