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
mod last_sync;
mod layout;
mod list_kind;
pub mod live;
mod meanings;
mod paths;
mod pulse;
mod reads;
mod receipts;
mod record;
mod response;
mod row;
mod search;
mod sources;
mod status;
#[cfg(test)]
mod testing;
mod this_view;
pub mod url;

use operation::RecordPage;
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use serde_json::Value;

pub use activity::Activity;
pub use pages::{ACCOUNT, EXPLORE, POLICY, assets};
pub use paths::{ENTITIES, STATUS, STATUS_FEED, VERIFY};
pub use reads::{Reads, SiteService, page_id, record_path};
pub use response::Rendered;
use response::respond;
pub use url::Pairs;

/// The words that name a record, from the fields that it shows: "Northford: cutter drydock repairs". `None` if it shows none of those that can name one.
#[must_use]
pub fn record_name(record: &Value, page: &RecordPage) -> Option<String> {
    fields::given_name(record, page)
}

/// Renders the page at a path; `None` if the site has none there. `path` has no slash at the end, and `query` is as the request has it.
pub async fn render(reads: &dyn Reads, path: &str, query: &str) -> Option<Rendered> {
    let pairs = url::pairs(query);
    let site_url = reads.site_url();
    if path == "/" {
        return Some(respond(home::page(reads).await, site_url));
    }
    if let Some(below) = path.strip_prefix(guides::PATH)
        && (below.is_empty() || below.starts_with('/') || path == guides::MARKDOWN_INDEX)
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
