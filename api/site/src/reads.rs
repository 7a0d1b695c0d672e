//! What pages read, and the services that they read it of.

use futures_util::future::BoxFuture;
use operation::context::ServiceSettings;
use operation::problem::Problem;
use operation::{Operation, Service};
use pages::EXPLORE;
use serde_json::Value;

use crate::activity::Activity;
use crate::url::{Pairs, segment};

/// A service of the site.
#[derive(Clone, Copy)]
pub struct SiteService<'a> {
    /// The service.
    pub service: &'a Service,
    /// The settings of the service.
    pub settings: &'a ServiceSettings,
}

impl<'a> SiteService<'a> {
    /// The operation with a name and a route.
    pub(crate) fn operation(&self, name: &str) -> Option<&'a Operation> {
        self.service.operations.iter().find(|operation| operation.name == name && operation.has_route())
    }

    /// The feed that takes the filter of the service; `None` if the service has none.
    pub(crate) fn filtered_feed(&self) -> Option<&'a Operation> {
        self.service.operations.iter().find(|operation| operation.is_feed() && operation.has_route() && operation.name != "changes")
    }

    /// The path of the explorer.
    pub(crate) fn explorer(&self) -> String {
        format!("{EXPLORE}/{}", self.service.name)
    }

    /// The path of the page of a record.
    pub(crate) fn record(&self, id: &str) -> String {
        record_path(self.service.name, id)
    }
}

/// The path of the page of a record of a service.
#[must_use]
pub fn record_path(service: &str, id: &str) -> String {
    format!("{EXPLORE}/{service}/{}", segment(id))
}

/// The id by which a record has a page. `None` if the caller does not see it, or only the part that names nobody: of the id of an item of a hidden shop `/7001`
/// remains.
#[must_use]
pub fn page_id(record: &Value) -> Option<&str> {
    record["id"].as_str().filter(|id| !id.is_empty() && !id.starts_with('/'))
}

/// What pages read. The implementation calls the operations in this process, as a caller without a key whose calls count against no quota.
pub trait Reads: Send + Sync {
    /// The services that are served, in the order of the list.
    fn services(&self) -> Vec<SiteService<'_>>;

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
