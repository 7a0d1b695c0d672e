//! The names service: whether a name is free as a trademark of the United States, by the marks of the register that are similar to it.

pub mod operations;
pub mod record;
pub mod rules;

use crate::operations::{check, filter, followed, health, register};
use crate::record::{TABLES, Trademark};
use schemas::topics::{CHANGES_NAMES, MARKS};
use serde_json::json;

use feed::Source;
use feed::query::Feed;
use operation::{Definition, RecordPage};
use reads::registration::{Registration, Task, TaskRole};
use reads::{changes_since, filters, history, keys, read, yearly};

/// The source of the service's changes. The check is free, so everybody sees all changes.
pub const SOURCE: Source = Source { sample_days: None, ..Source::of_records("names", &TABLES, &CHANGES_NAMES, &[MARKS]) };

/// The feed of its changes under a filter.
pub const FEED: Feed = Feed { source: SOURCE, tables: &TABLES, list: "changes" };

/// How pages show the records.
const PAGE: RecordPage = RecordPage {
    list: "",
    rows: &[],
    title: &["mark", "serial", "id"],
    detail: &[("trademark of ", "owner")],
    columns: &["owner", "status", "intlClass", "filingDate", "serial"],
    facet: "status",
    search: "word",
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
    Registration::new(
        "names",
        "Trademark name check",
        "Whether a name is free as a trademark of the United States: the live applications and registrations of the register (USPTO) that are \
            similar to it in spelling or sound, each with the rule that found it, and every change of the register. Not legal advice.",
    )
    .with_page(PAGE)
    .with(vec![read::operation::<check::Arguments>(), changes_since::operation::<followed::Names>(changes)])
    .with(vec![
        filters::save::operation::<followed::Names>().managed(),
        filters::list::operation::<followed::Names>().managed(),
        filters::delete::operation::<followed::Names>().managed(),
    ])
    .with(keys::operations())
    .with(yearly::operations::<followed::Names>())
    .with(history::operations_with_health::<Trademark, health::Extent>(SOURCE))
    .with_data(marks::words::shown())
    .with_tasks(&[Task { role: TaskRole::Api, run: |given| Box::pin(register::keep_index(given)) }])
}

/// A change of this service.
pub(crate) type Change = feed::filter::Element<Trademark>;

#[cfg(test)]
mod tests;
