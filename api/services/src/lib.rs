//! THE LIST of services. Each states facts about itself; `surfaces/` renders them.

pub mod awards;
pub mod common;
pub mod filings;
pub mod recalls;
pub mod receipts;
pub mod research;

use crate::operation::Service;

/// THE LIST of services.
#[must_use]
pub fn all() -> Vec<Service> {
    vec![awards::service(), filings::service(), recalls::service(), receipts::service(), research::service()]
}
