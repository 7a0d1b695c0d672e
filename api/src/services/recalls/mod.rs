//! Product recalls of four federal agencies as one feed.

pub mod list;
pub mod rows;
pub mod search;

use schemars::JsonSchema;
use schemas::topics;
use schemas::views::recalls::{FEED, THROUGH, VIEW};
use serde::{Deserialize, Serialize};

use crate::feed::{Source, changes};
use crate::operation::Service;
use crate::services::common::{health, keys};

/// Where the service's changes are.
pub const SOURCE: Source = Source {
    service: "recalls",
    view: &VIEW,
    feed: &FEED,
    through: &THROUGH,
    topic: &topics::CHANGES_RECALLS,
    facts: &[topics::RECALLS],
    sample_days: None,
};

/// The service.
#[must_use]
pub fn service() -> Service {
    Service {
        name: "recalls",
        title: "Product recalls",
        about: "One feed of product recalls from four US federal agencies: the Consumer Product Safety Commission (CPSC), the Food and \
            Drug Administration (FDA), the National Highway Traffic Safety Administration (NHTSA) and the Department of Agriculture \
            (USDA). One record for each real-world recall: what several agencies or several doors of one agency report is merged, dates \
            are normalised, and every amendment is kept as a change. Refreshed every 6 hours. Free: 100 calls a day without a key by \
            address, or with a key by `POST /api/keys`.",
        operations: vec![
            list::operation(),
            keys::operation(),
            changes::operation::<Record>(SOURCE, changes::example()),
            health::operation(SOURCE),
        ],
    }
}

/// A recall in full, as the feed of changes shows it. `""` and empty lists stand for unknown.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Record {
    /// The recall's identity, `AGENCY:number`.
    pub id: String,
    /// Issuing agency: CPSC, FDA, NHTSA, USDA.
    pub agency: String,
    /// food, drugs, vehicles, products, baby.
    pub category: String,
    /// Title of the notice.
    pub title: String,
    /// Brand or firm.
    pub brand: String,
    /// Why it was recalled.
    pub hazard: String,
    /// Recall date, YYYY-MM-DD.
    pub date: String,
    /// URL of the agency's notice.
    pub url: String,
    /// What the consumer gets or does.
    pub remedy: String,
    /// All agencies that issued it.
    pub agencies: Vec<String>,
    /// All numbers it goes by, `AGENCY:number`.
    pub numbers: Vec<String>,
    /// All notices of it.
    pub urls: Vec<String>,
    /// The words that decided the category.
    pub category_evidence: String,
    /// Status at the agency.
    pub status: String,
    /// Class I, II, III.
    pub classification: String,
    /// Units, as worded.
    pub units: String,
    /// A public health alert, not a recall.
    pub alert: bool,
    /// Gone from its upstream.
    pub withdrawn: bool,
    /// The id of the recall that this one turned out to be; lists show that one instead.
    pub merged_into: String,
}

#[cfg(test)]
mod tests;
