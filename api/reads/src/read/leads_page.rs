//! What a page of leads says about itself, next to its leads.

use feed::watchable::WatchableFeed;
use operation::problem::Problem;
use schemars::JsonSchema;
use serde::Serialize;

use super::reader::Reader;

/// What a page of leads says about itself. Answers flatten it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LeadsPage {
    /// Day of the last refresh, YYYY-MM-DD; empty before the first.
    pub updated: String,
    /// The number of leads in this answer.
    pub count: usize,
    /// How many leads match, over all pages; null if they are more than 2,000.
    pub total: Option<u64>,
    /// Send it as `after` to get the next page; null on the last one.
    pub next: Option<String>,
    /// The tier of the caller's key; `free` without a key.
    pub tier: &'static str,
}

impl<S: WatchableFeed> Reader<S> {
    /// What a page with so many leads says about itself. `total` and `next` are those of the ranked list.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub async fn leads_page(&self, count: usize, total: Option<u64>, next: Option<String>) -> Result<LeadsPage, Problem> {
        Ok(LeadsPage { updated: self.updated().await?, count, total, next, tier: self.tier() })
    }
}
