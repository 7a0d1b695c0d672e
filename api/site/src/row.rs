//! Rows of lists: records, and the changes that made them. Tables and lists of every page show them with the words and links that are here.

use std::collections::HashSet;

use maud::{Markup, html};
use operation::Operation;
use serde_json::Value;

use crate::fields::{grouped, is_empty, label, name, text};
use crate::list_kind::ListKind;
use crate::{SiteService, meanings, page_id};

/// The members of a change that are in other places of a page, or that are about the change as such.
const ENVELOPE: [&str; 7] = ["event", "seq", "recordedAt", "backfill", "record", "contentHash", "urlNote"];
/// The longest value of a change that is shown with it, in characters.
const DETAIL_CHARS_MAX: usize = 80;

/// A row: a record, and the change that made it if the page lists changes.
#[derive(Default)]
pub(crate) struct Row {
    pub(crate) event: String,
    pub(crate) recorded_at: String,
    /// What the change says in addition to the record, in words.
    pub(crate) details: String,
    pub(crate) record: Value,
}

impl Row {
    /// The row of a change. Feeds under a filter have the fields of the record next to those of the change.
    pub(crate) fn of_change(shown: &SiteService<'_>, mut change: Value) -> Self {
        let text = |name: &str| change[name].as_str().unwrap_or_default().to_owned();
        let (event, recorded_at) = (text("event"), text("recordedAt"));
        if change["record"].is_object() {
            return Self { event, recorded_at, details: details(&change), record: change["record"].take() };
        }
        let is_shown = |name: &str| name == "before" || shown.service.page.columns.contains(&name) || meanings::is_field(shown, name);
        let details = details_but(&change, is_shown);
        Self { event, recorded_at, details, record: change }
    }

    /// The row of a record.
    pub(crate) fn of_record(record: Value) -> Self {
        Self { record, ..Self::default() }
    }

    /// The rows of an answer, in its order: those of the page's lists of records, the changes of a feed, or what another operation lists.
    pub(crate) fn of_answer(shown: &SiteService<'_>, operation: &Operation, kind: Option<ListKind>, answer: &mut Value) -> Vec<Self> {
        let lists: Vec<&str> = if kind == Some(ListKind::Records) { shown.service.page.rows.to_vec() } else { vec![operation.list] };
        let mut rows = Vec::new();
        for list in lists {
            let Some(Value::Array(items)) = answer.get_mut(list).map(Value::take) else { continue };
            let row = |item| if kind == Some(ListKind::Changes) { Self::of_change(shown, item) } else { Self::of_record(item) };
            rows.extend(items.into_iter().map(row));
        }
        rows
    }

    /// Leaves the first row of each record. Records without an id that has a page all stay.
    pub(crate) fn first_of_each(rows: &mut Vec<Self>) {
        let mut seen = HashSet::new();
        rows.retain(|row| page_id(&row.record).is_none_or(|id| seen.insert(id.to_owned())));
    }
}

/// What a change says in addition to its record, in words: "Date before 2026-11-01 · Slip days 30". Empty if that is nothing.
pub(crate) fn details(change: &Value) -> String {
    details_but(change, |_| false)
}

/// The details without the members that are shown elsewhere.
fn details_but(change: &Value, is_shown: impl Fn(&str) -> bool) -> String {
    let members = change.as_object().into_iter().flatten().filter(|(name, value)| !ENVELOPE.contains(&name.as_str()) && !is_empty(value));
    let members = members.filter(|(name, _)| !is_shown(name));
    let words = |value: &Value| match value.as_f64() {
        Some(number) if number.fract() == 0.0 => grouped(number as i64),
        _ => text(value, DETAIL_CHARS_MAX),
    };
    members.map(|(name, value)| format!("{} {}", label(name), words(value))).collect::<Vec<_>>().join(" · ")
}

/// What happened to a record, as a mark.
pub(crate) fn event(event: &str) -> Markup {
    html! { span class={ "event " @if event == "new" { "new" } } { (event) } }
}

/// The name of a record outside of a table. It leads to the record's page if the record has an id.
pub(crate) fn named(shown: &SiteService<'_>, row: &Row) -> Markup {
    linked(shown, row, &name(&row.record, &shown.service.page))
}

/// Words that lead to the page of a record. A redacted record has no id and no page, and neither has one whose id is hidden.
pub(crate) fn linked(shown: &SiteService<'_>, row: &Row, words: &str) -> Markup {
    html! {
        @match page_id(&row.record) {
            Some(id) => { a href=(shown.record(id)) { bdi { (words) } } }
            None => { bdi { (words) } }
        }
    }
}
