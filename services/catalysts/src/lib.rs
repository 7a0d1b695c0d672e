//! Catalysts: upcoming events of drugs by time, company or drug, each with an anchor by which its date can be verified.

pub mod operations;
pub mod record;
pub mod rules;

use crate::operations::{addresses, calendar, company, drug, pay, upcoming, watchable_feed};
use crate::record::Catalyst;
use crate::rules::CatalystsRules;
use feed::RecordFeed;
use feed::redaction::Redaction;
use serde_json::json;
use texts::company_names::{shown_aliases, shown_legal_forms};

use operation::tiers::SAVED_ITEMS_MIN_TIER;
use operation::{Definition, Price, RecordPage};
use reads::registration::Registration;
use reads::{changes_since, read, watchable_feed::standard_operations};

impl RecordFeed for CatalystsRules {
    const REDACTION: Option<Redaction> = Some(Redaction::of::<Catalyst>());
}

/// How pages show the records.
const PAGE: RecordPage = RecordPage {
    list: "upcoming",
    rows: &["catalysts"],
    title: &["title", "drug", "company", "kind"],
    detail: &[("", "company"), ("", "date")],
    columns: &["date", "kind", "company", "drug", "phase", "status"],
    facet: "kind",
    searches: &["drug"],
    lookups: &[("drug", "name"), ("company", "ticker")],
    ..RecordPage::EMPTY
};

/// The service.
#[must_use]
pub fn service() -> Registration {
    let changes = Definition {
        summary: "New and modified catalysts since a cursor, oldest first.",
        description: "A date that moved is one change with `dateBefore`, `dateAfter`, `windowBefore`, `windowAfter` and `slipDays` (null unless between two days). Keep \
            the `cursor` of each answer and send it with the next call: every matching change comes exactly once. A cursor belongs to its \
            filter. With another filter it is refused with `filter-changed`; with `rebase=true` the answers first list what the new filter \
            adds and removes. A page may be shorter than `limit`, or empty, while `hasMore` is true. With `start=newest` a page ends at \
            `cursor`, if it is given: the `older` of the page after it.",
        when: "Use it to follow dates over several calls, without gaps.",
        price: Price::Tier(SAVED_ITEMS_MIN_TIER),
        example: json!({ "start": "earliest", "kind": "pdufa", "limit": 10 }),
        ..changes_since::definition()
    };
    Registration::of::<watchable_feed::Catalysts>(
        "Catalysts",
        "Upcoming biotech events: readouts of trials (ClinicalTrials.gov), decision dates of the FDA as companies state them (SEC filings) and \
            advisory committee meetings (Federal Register), by time, company or drug. No public source is a calendar: each event is one \
            sentence or field of one public document, with its hash. Dates move, and each move is a change with both dates. Not investment \
            advice. Without a paid key: the next 30 days, 25 rows an answer.",
    )
    .with_page(PAGE)
    .with(vec![
        read::operation::<upcoming::Arguments>(),
        calendar::operation(),
        read::operation::<company::Arguments>(),
        read::operation::<drug::Arguments>(),
        read::tool::<upcoming::Arguments>(),
        read::operation::<pay::Arguments>().sold_by("tool", pay::PRICES),
        read::tool::<company::Arguments>(),
        read::tool::<drug::Arguments>(),
        changes_since::operation::<watchable_feed::Catalysts>(changes),
    ])
    .with(standard_operations::<watchable_feed::Catalysts>(|_, at, text| Box::pin(addresses::ids_of(at, text))))
    .with_data(shown_legal_forms())
    .with_data(shown_aliases())
}
