//! The aviation service: which airworthiness directives may apply to a make and model, as far as their texts say.

pub mod operations;
pub mod rules;

use crate::operations::{addresses, assess, audit, match_ads, recurring, stored_fleets, watchable_feed};
use crate::rules::AviationRules;
use feed::RecordFeed;
use schemas::views::aviation::AirworthinessDirective;
use serde_json::json;

use operation::{Definition, RecordPage};
use reads::numbers::ids_without_read;
use reads::registration::Registration;
use reads::{changes_since, history, keys, read, watchable_feed::operations};

impl RecordFeed for AviationRules {
    /// The match is free, so everybody sees all changes.
    const SAMPLE_DAYS: Option<i64> = None;
}

/// How pages show the records.
const PAGE: RecordPage = RecordPage {
    title: &["title", "adNumber", "id"],
    detail: &[("AD ", "adNumber")],
    columns: &["adNumber", "make", "product", "effectiveDate", "status"],
    facet: "product",
    searches: &["make"],
    ..RecordPage::EMPTY
};

/// The service.
#[must_use]
pub fn service() -> Registration {
    let changes = Definition {
        summary: "New and modified airworthiness directives since a cursor, oldest first; with `make` and `model` those that may apply to them.",
        when: "Use it to follow directives over several calls, without gaps.",
        example: json!({ "start": "earliest", "make": "Piper", "limit": 10 }),
        ..changes_since::definition()
    };
    Registration::of::<watchable_feed::Aviation>(
        "Airworthiness directives",
        "Which airworthiness directives of the FAA may apply to a make and model, whether they recur and in which intervals, each with the text that \
            says so, from the Federal Register. What a text does not decide is answered as POSSIBLE and named; nothing is left out in silence. \
            Results are informational, not a maintenance record; they do not decide serial-number or installed-appliance applicability.",
    )
    .with_page(PAGE)
    .with(vec![
        read::operation::<match_ads::Arguments>(),
        read::operation::<recurring::Arguments>(),
        read::operation::<assess::Arguments>(),
        read::tool::<assess::Arguments>(),
        audit::operation(),
        changes_since::operation::<watchable_feed::Aviation>(changes),
    ])
    .with(operations::<watchable_feed::Aviation>())
    .with(stored_fleets::operations())
    .with(keys::operations())
    .with(history::with_numbers::<AirworthinessDirective>(AviationRules::FEED.source, |_, _, text| {
        ids_without_read(addresses::ids_of(text))
    }))
    .with_data(directives::shown_aliases())
}

#[cfg(test)]
mod tests {
    use crate::operations::rule;

    /// Proves that answers name the version of the data file that documents show.
    #[test]
    fn answers_name_their_rule() {
        let shown = directives::shown_aliases();
        assert!(rule().ends_with(&format!(", aircraft_aliases/{}", shown.version)) && shown.name.starts_with("aircraft_aliases"));
    }
}
