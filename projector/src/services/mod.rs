//! The services of the engine itself, one file or folder each.

pub mod accounts;
pub mod aviation;
pub mod awards;
pub mod cadence;
pub mod catalysts;
pub mod coverage;
pub mod deliveries;
pub mod exclusions;
pub mod filings;
pub mod labs;
pub mod names;
pub mod parcels;
pub mod payments;
pub mod phrases;
pub mod recalls;
pub mod receipts;
pub mod research;
pub mod watches;

use crate::runtime::{ProjectedService, projected};

/// The services of the engine itself, in the order of their names.
#[must_use]
pub fn of_engine() -> Vec<ProjectedService> {
    vec![
        projected::<accounts::Accounts>(),
        projected::<deliveries::Deliveries>(),
        projected::<payments::Payments>(),
        projected::<watches::Watches>(),
    ]
}
