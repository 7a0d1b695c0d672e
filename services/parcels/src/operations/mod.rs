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

use texts::cook;

use crate::record::{RULE, SQFT_RULE};

/// The price of a call for leads in millionths of a US dollar.
pub(crate) const LEADS_MICROS: u64 = 200_000;

/// The price of a call for permits in millionths of a US dollar.
pub(crate) const PERMITS_MICROS: u64 = 20_000;

/// The price of a report on liens in millionths of a US dollar.
pub(crate) const LIENS_MICROS: u64 = 500_000;

/// The price of a call for flags of exemptions in millionths of a US dollar.
pub(crate) const FLAGS_MICROS: u64 = 20_000;

/// What every answer says about itself.
pub(crate) const DISCLAIMER: &str = "Public-record inference, not an appraisal, title report, legal or tax advice.";

/// The rules by which answers are made, as they name them: the comparisons, and the version of the data file of classes.
pub(crate) fn rule() -> String {
    format!("{RULE}, {SQFT_RULE}, cook_classes/{}", cook::classes_version())
}
