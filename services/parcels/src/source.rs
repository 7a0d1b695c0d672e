//! The source of the service's changes, their feed, prices, and what all answers say.

use feed::Source;
use feed::query::Feed;
use fold::records::Rules;
use texts::cook;

use crate::record::{Parcel, RULE, SQFT_RULE, TABLES};
use crate::rules::ParcelsRules;

/// The source of the service's changes. Below tier pro, parcels are shown in their redacted form.
pub const SOURCE: Source = Source::of_records(ParcelsRules::TABLES, ParcelsRules::CHANGES, ParcelsRules::INPUTS).redacted::<Parcel>();

/// The feed of its changes under a filter.
pub const FEED: Feed = Feed { source: SOURCE, tables: &TABLES, list: "changes" };

/// The price of a call for leads in millionths of a US dollar.
pub(super) const LEADS_MICROS: u64 = 200_000;

/// The price of a call for permits in millionths of a US dollar.
pub(super) const PERMITS_MICROS: u64 = 20_000;

/// The price of a report on liens in millionths of a US dollar.
pub(super) const LIENS_MICROS: u64 = 500_000;

/// The price of a call for flags of exemptions in millionths of a US dollar.
pub(super) const FLAGS_MICROS: u64 = 20_000;

/// What every answer says about itself.
pub(super) const DISCLAIMER: &str = "Public-record inference, not an appraisal, title report, legal or tax advice.";

/// The rules by which answers are made, as they name them: the comparisons, and the version of the data file of classes.
pub(super) fn rule() -> String {
    format!("{RULE}, {SQFT_RULE}, cook_classes/{}", cook::classes_version())
}
