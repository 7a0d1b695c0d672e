//! Changes in answers.

use schemars::JsonSchema;
use schemas::details::ChangeRecord;
use schemas::position::Seq;
use schemas::views::records::Record;
use serde::Serialize;

use super::filter::Element;
use super::query::Item;

/// A change of a record. `T` is the record in the form in which answers show it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Changed{T}")]
pub struct Changed<T> {
    /// The record after the change.
    #[serde(flatten)]
    pub record: T,
    /// The other members of the change.
    #[serde(flatten)]
    pub change: ChangeMembers<T>,
}

impl<R: Record, T: From<R>> From<Item<R>> for Changed<T> {
    fn from(item: Item<R>) -> Self {
        let (record, _, change) = ChangeMembers::of(item, T::from);
        Self { record: record.into(), change }
    }
}

/// A change of a record with what it says in addition to the record.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(bound = "R: JsonSchema + ChangeRecord", rename = "Filtered{R}Change")]
pub struct DetailedChange<R: ChangeRecord> {
    /// The record after the change.
    #[serde(flatten)]
    pub record: R,
    /// What the change shows in addition to the record.
    #[serde(flatten)]
    pub details: R::Details,
    /// The other members of the change.
    #[serde(flatten)]
    pub change: ChangeMembers<R>,
}

impl<R: Record> From<Item<R>> for DetailedChange<R> {
    fn from(item: Item<R>) -> Self {
        let (record, details, change) = ChangeMembers::of(item, |before| before);
        Self { record, details, change }
    }
}

/// The members of a change that follow the record. `T` is the record in the form in which answers show it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeMembers<T> {
    /// What happened: `new` or `modified`; `added` or `removed` if the filter was changed.
    pub event: String,
    /// The number of the change within the service.
    pub seq: Seq,
    /// When the change was recorded, RFC 3339 in UTC.
    #[schemars(with = "proofs::json_type::Time")]
    pub recorded_at: String,
    /// True if the change is late news: it happened long before it was recorded. Absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub backfill: bool,
    /// The record before the change, if `before` was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<T>,
}

impl<T> ChangeMembers<T> {
    /// The record of a change, its details, and its other members.
    fn of<R: Record>(Item { change, before }: Item<R>, shown: impl FnOnce(R) -> T) -> (R, R::Details, Self) {
        let (backfill, before) = (change.is_backfill(), before.map(shown));
        let Element { event, seq, recorded_at, details, record, .. } = change;
        (record, details, Self { event, seq, recorded_at, backfill, before })
    }
}

/// Changes in the form in which answers show them, without the records before them.
pub fn shown<R: Record, T: From<Item<R>>>(changes: impl IntoIterator<Item = Element<R>>) -> Vec<T> {
    changes.into_iter().map(|change| Item { change, before: None }.into()).collect()
}
