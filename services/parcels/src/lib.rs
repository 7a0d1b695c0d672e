//! Parcels: how a parcel is assessed compared to sold parcels of its class around it, from public records of two counties; permits for construction in Cook
//! County; and of Allegheny County the tax liens of a parcel and flags of exemptions.

pub mod county;
pub mod operations;
pub mod record;
pub mod rules;

use crate::operations::{
    addresses, check, construction, county_coverage, delta, exemption_flags, leads, lien_bundle, pay, stalled, watchable_feed,
};
use crate::record::Parcel;
use crate::rules::ParcelsRules;
use feed::RecordFeed;
use feed::redaction::Redaction;
use serde_json::json;
use texts::{cook, masked_text};

use operation::tiers::SAVED_ITEMS_MIN_TIER;
use operation::{Definition, Price, RecordPage};
use reads::numbers::ids_without_read;
use reads::registration::Registration;
use reads::{changes_since, read, watchable_feed::standard_operations};

impl RecordFeed for ParcelsRules {
    /// Below tier pro, parcels are shown in their redacted form.
    const REDACTION: Option<Redaction> = Some(Redaction::of::<Parcel>());
}

/// How pages show the records.
const PAGE: RecordPage = RecordPage {
    list: "leads",
    rows: &["leads"],
    title: &["address", "pin", "id"],
    detail: &[("", "classLabel"), ("", "township")],
    columns: &["classLabel", "township", "tier", "r", "cycle"],
    facet: "tier",
    ..RecordPage::EMPTY
};

/// The service.
#[must_use]
pub fn service() -> Registration {
    let changes = Definition {
        summary: "New and changed parcels since a cursor, oldest first, under a filter.",
        when: "Use it to follow parcels over several calls, without gaps.",
        price: Price::Tier(SAVED_ITEMS_MIN_TIER),
        example: json!({ "start": "earliest", "minTier": "low", "limit": 10 }),
        ..changes_since::definition()
    };
    Registration::of::<watchable_feed::Parcels>(
        "Parcels",
        "Parcels of Cook County, Illinois, and of Allegheny County, Pennsylvania, that are assessed higher than sold parcels of their class around \
            them. Each names its ratio, the median, number and dispersion of its peers, the sale or floor area by which it is compared \
            and the row at the publisher. Medians are frozen until a cycle of the assessment closes, so that a change means something. Of Cook County also \
            permits for construction, fresh or long after their window; of Allegheny County the \
            tax liens of a parcel that survive, and exemptions next to something unusual in the same record. Public-record inference, not an appraisal, title report, legal or tax advice. \
            Without a paid key: true counts, masked samples, and the check of one parcel. With a key of tier pro or above, or 0.20 USD per call: \
            whole rows. Permits cost 0.02 USD per call.",
    )
    .with_page(PAGE)
    .with(vec![
        read::operation::<leads::Arguments>(),
        read::operation::<check::Arguments>(),
        read::operation::<delta::Arguments>(),
        read::operation::<pay::Arguments>().sold_by("tool", pay::PRICES),
        read::tool::<leads::Arguments>(),
        read::operation::<construction::Arguments>(),
        read::operation::<stalled::Arguments>(),
        read::operation::<lien_bundle::Arguments>(),
        read::operation::<exemption_flags::Arguments>(),
        read::operation::<county_coverage::Arguments>(),
        changes_since::operation::<watchable_feed::Parcels>(changes),
    ])
    .with(standard_operations::<watchable_feed::Parcels>(|_, _, text| ids_without_read(addresses::ids_of(text))))
    .with_data(cook::shown_classes())
    .with_data(masked_text::shown_words())
}

#[cfg(test)]
mod tests;
