//! Product recalls of four federal agencies as one feed.

pub mod operations;
pub mod rules;

use crate::operations::{SOURCE, addresses, list, search, sources, webhook};
use schemas::views::recalls::Recall;

use operation::RecordPage;
use reads::registration::{Registration, Task, TaskRole};
use reads::{history, keys, records};

/// How pages show the records.
const PAGE: RecordPage = RecordPage {
    list: "search_recalls",
    rows: &["recalls"],
    title: &["title", "id"],
    detail: &[],
    columns: &["date", "agency", "category", "brand", "hazard"],
    facet: "category",
    searches: &["keyword"],
    ..RecordPage::EMPTY
};

/// The service.
#[must_use]
pub fn service() -> Registration {
    Registration::new(
        SOURCE.service,
        "Product recalls",
        "One feed of product recalls from four US federal agencies: the Consumer Product Safety Commission (CPSC), the Food and \
            Drug Administration (FDA), the National Highway Traffic Safety Administration (NHTSA) and the Department of Agriculture \
            (USDA). One record for each real-world recall: reports of several agencies, or of several streams of one agency, are merged, \
            dates are normalised, and every amendment is recorded as a change. Refreshed every 6 hours. Free: 100 calls a day without a key by \
            address, or with a key by `POST /api/keys`.",
    )
    .with_page(PAGE)
    .with(vec![list::operation()])
    .with(keys::operations())
    .with(webhook::operations())
    .with(history::with_numbers::<Recall>(SOURCE, |ctx, at, text| Box::pin(addresses::ids_of(ctx, at, text))))
    .with(vec![records::sources::operation::<Recall>(
        SOURCE,
        sources::RULE,
        |ctx, at, text| Box::pin(addresses::ids_of(ctx, at, text)),
        |at, recall| Box::pin(sources::notices_of(at, recall)),
    )])
    .with_tasks(&[Task { role: TaskRole::Api, run: |given| Box::pin(search::keep_index(given)) }])
}

#[cfg(test)]
mod tests;
