//! Securities filings: a feed of new ones, digests of material events, insider trades with clusters, watches of a company.

pub mod filing_events;
pub mod operations;
pub mod record;
pub mod rules;

use crate::operations::{addresses, company, digest, insiders, search, watchable_feed};
use crate::rules::FilingsRules;
use feed::RecordFeed;
use serde_json::json;

use operation::{Definition, RecordPage};
use reads::numbers::ids_without_read;
use reads::registration::Registration;
use reads::{changes_since, read, watchable_feed::standard_operations};

impl RecordFeed for FilingsRules {
    const LIST: &'static str = "filings";
}

/// How pages show the records.
const PAGE: RecordPage = RecordPage {
    title: &["company", "id"],
    detail: &[("form ", "form"), ("", "topLabel")],
    columns: &["form", "topLabel", "filingDate", "eventScore", "ticker"],
    facet: "form",
    searches: &["ticker"],
    ..RecordPage::EMPTY
};

/// The service.
#[must_use]
pub fn service() -> Registration {
    let changes = Definition {
        name: "whats_new_since",
        path: "/v1/whats_new_since",
        summary: "New filings since a cursor, oldest first.",
        when: "Use it to follow filings over several calls, without gaps.",
        description: "Keep the `cursor` of each answer and send it with the next call: every matching filing comes exactly once, and again when \
            more is known about it (its items, an amendment). A cursor belongs to its filter. With another filter it is refused with \
            `filter-changed`; with `rebase=true` the answers first list what the new filter adds and removes. A page may be shorter than \
            `limit`, or empty, while `hasMore` is true. With `start=newest` a page ends at `cursor`, if it is given: the `older` of the page \
            after it.",
        example: json!({ "start": "earliest", "form": "8-K", "limit": 10 }),
        ..Definition::read()
    };
    Registration::of::<watchable_feed::Filings>(
        "Securities filings",
        "Filings with the Securities and Exchange Commission (EDGAR): new ones since a cursor, digests of material events, insider \
            trades with clusters of several insiders at one issuer, and watches of a company. A tool for monitoring and research, not \
            investment advice. EDGAR is asked within its fair-access limits, under a declared User-Agent. Without a key: the last 7 days, 25 \
            rows an answer.",
    )
    .with_page(PAGE)
    .with(vec![
        changes_since::operation::<watchable_feed::Filings>(changes),
        read::operation::<digest::Arguments>(),
        read::operation::<company::Arguments>(),
        read::operation::<insiders::Arguments>(),
        read::operation::<search::Arguments>(),
    ])
    .with(standard_operations::<watchable_feed::Filings>(|_, _, text| ids_without_read(addresses::ids_of(text))))
}
