//! The operations of the service, one file each, and what they share.

pub(crate) mod addresses;
pub mod check;
pub mod construction;
pub(crate) mod counts;
pub mod county_coverage;
pub mod delta;
pub mod exemption_flags;
pub mod filter;
mod hidden_records;
pub mod lead;
#[cfg(test)]
mod lead_tests;
pub mod leads;
pub mod lien_bundle;
pub mod pay;
pub mod permit_lead;
#[cfg(test)]
mod permit_tests;
pub mod stalled;
pub mod watchable_feed;
