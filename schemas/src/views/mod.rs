//! The tables of every view with the types of their rows. The projector writes them, the API reads them.

pub mod accounts;
pub mod aviation;
pub mod awards;
pub mod deliveries;
pub mod engine;
pub mod payments;
pub mod recalls;
pub mod receipts;
pub mod records;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod watches;
