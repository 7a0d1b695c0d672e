//! The tables of every view with the types of their rows. The projector writes them, the API reads them.

pub mod accounts;
pub mod aviation;
pub mod awards;
pub mod cadence;
pub mod catalysts;
pub mod coverage;
pub mod deliveries;
pub mod engine;
pub mod exclusions;
pub mod filings;
pub mod labs;
pub mod names;
pub mod parcels;
pub mod payments;
pub mod phrases;
pub mod recalls;
pub mod receipts;
pub mod records;
pub mod research;
#[cfg(test)]
mod testing;
pub mod trees;
pub mod watches;
