//! The services of the engine itself, one file or folder each.

pub mod accounts;
pub mod deliveries;
pub mod payments;
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
