//! Coverage leads: businesses that have just come to need insurance, from public registrations, each with the rule and the facts from which a line of
//! insurance follows.

pub mod operations;
pub mod record;
pub mod rules;

use crate::operations::{addresses, feed_page, pulse, sample, sources, watchable_feed};
use crate::record::Lead;
use crate::rules::CoverageRules;
use feed::RecordFeed;
use feed::redaction::Redaction;
use matching::{mandates, shown_company_forms, shown_street_words};
use serde_json::json;

use operation::tiers::SAVED_ITEMS_MIN_TIER;
use operation::{Definition, Price, RecordPage};
use reads::numbers::ids_without_read;
use reads::registration::Registration;
use reads::{changes_since, read, watchable_feed::standard_operations};

impl RecordFeed for CoverageRules {
    /// Below tier pro, leads are shown in their redacted form.
    const REDACTION: Option<Redaction> = Some(Redaction::of::<Lead>());
}

/// How pages show the records.
const PAGE: RecordPage = RecordPage {
    title: &["business", "id"],
    detail: &[("", "coverageLine"), ("", "state")],
    columns: &["trigger", "coverageLine", "state", "triggerDate", "basis"],
    facet: "coverageLine",
    ..RecordPage::EMPTY
};

/// The service.
#[must_use]
pub fn service() -> Registration {
    let changes = Definition {
        summary: "New and modified leads since a cursor, oldest first, under a filter.",
        when: "Use it to follow leads over several calls, without gaps.",
        price: Price::Tier(SAVED_ITEMS_MIN_TIER),
        example: json!({ "start": "earliest", "state": "CO", "limit": 10 }),
        ..changes_since::definition()
    };
    Registration::of::<watchable_feed::Coverage>(
        "Coverage leads",
        "Businesses in the United States that have just come to need insurance: new motor carriers, authorities that were granted, filings of insurance \
            that lapse, and businesses that states registered. Each lead names the line of insurance, the rule from which it follows with its \
            citation, and the facts. A business in several registers is one lead. Leads from public records: no legal or insurance advice, and \
            never a statement that a business has no insurance. Without a paid key: counts, and the leads of the last 7 days without the business. \
            With a key of tier pro or above, or 0.02 USD per call: whole leads of up to 90 days.",
    )
    .with_page(PAGE)
    .with(vec![
        read::operation::<sample::Arguments>(),
        read::operation::<feed_page::Arguments>(),
        read::operation::<pulse::Arguments>(),
        read::operation::<sources::Arguments>(),
        changes_since::operation::<watchable_feed::Coverage>(changes),
    ])
    .with(standard_operations::<watchable_feed::Coverage>(|_, _, text| ids_without_read(addresses::ids_of(text))))
    .with_data(sources::licences())
    .with_data(mandates::shown())
    .with_data(shown_company_forms())
    .with_data(shown_street_words())
}

#[cfg(test)]
mod tests;
