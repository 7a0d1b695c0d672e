//! The names service: whether a name is free as a trademark of the United States, by the marks of the register that are similar to it.

pub mod operations;
pub mod record;
pub mod rules;

use crate::operations::{addresses, check, filter, health, register, watchable_feed};
use crate::record::Trademark;
use crate::rules::NamesRules;
use feed::RecordFeed;
use serde_json::json;

use operation::{Definition, RecordPage};
use reads::numbers::ids_without_read;
use reads::registration::{Registration, Task, TaskRole};
use reads::{changes_since, filters, history, keys, read, yearly};

impl RecordFeed for NamesRules {
    /// The check is free, so everybody sees all changes.
    const SAMPLE_DAYS: Option<i64> = None;
}

/// How pages show the records.
const PAGE: RecordPage = RecordPage {
    title: &["mark", "serial", "id"],
    detail: &[("trademark of ", "owner")],
    columns: &["owner", "status", "intlClass", "filingDate", "serial"],
    facet: "status",
    searches: &["word", "owner"],
    ..RecordPage::EMPTY
};

/// The service.
#[must_use]
pub fn service() -> Registration {
    let changes = Definition {
        summary: "New and modified trademarks since a cursor, oldest first; with `name` those that are similar to a name.",
        when: "Use it to follow the register, or the marks that are similar to a name, over several calls, without gaps.",
        example: json!({ "start": "earliest", "class": [9], "limit": 10 }),
        aliases: filter::ALIASES,
        ..changes_since::definition()
    };
    Registration::of::<watchable_feed::Names>(
        "Trademark name check",
        "Whether a name is free as a trademark of the United States: the live applications and registrations of the register (USPTO) that are \
            similar to it in spelling or sound, each with the rule that found it, and every change of the register. Not legal advice.",
    )
    .with_page(PAGE)
    .with(vec![read::operation::<check::Arguments>(), changes_since::operation::<watchable_feed::Names>(changes)])
    .with(vec![
        filters::save::operation::<watchable_feed::Names>().managed(),
        filters::list::operation::<watchable_feed::Names>().managed(),
        filters::delete::operation::<watchable_feed::Names>().managed(),
    ])
    .with(keys::operations())
    .with(yearly::operations::<watchable_feed::Names>())
    .with(history::with_numbers_and_health::<Trademark, health::Extent>(NamesRules::FEED.source, |_, _, text| {
        ids_without_read(addresses::ids_of(text))
    }))
    .with_data(marks::words::shown())
    .with_tasks(&[Task { role: TaskRole::Api, run: |given| Box::pin(register::keep_index(given)) }])
}

#[cfg(test)]
mod tests;
