//! The operations of the service, one file each, and what they share.

pub(crate) mod addresses;
pub mod assess;
pub mod audit;
pub mod basis;
pub mod comparisons;
pub mod directive_match;
pub mod filter;
pub mod fleet;
pub mod fleet_watch;
pub mod match_ads;
pub mod next_due;
mod pieces;
pub mod recurring;
pub mod shared_directive;
pub mod stored_fleets;
pub mod watchable_feed;

/// What every answer about an aircraft says.
pub(crate) const DISCLAIMER: &str =
    "Results are informational, not a maintenance record; they do not decide serial-number or installed-appliance applicability.";

/// The rules by which answers are made, as they name them: those that read and compare texts, and the version of the data file of makes and models.
pub(crate) fn rule() -> String {
    format!("directives/{}, aircraft_aliases/{}", directives::RULES_VERSION, directives::aliases_version())
}
