//! The recalls service's rows: one record per real-world recall.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::facts::recalls::RecallFact;
use crate::tables::{Table, TableKind, ValueKind, ViewDef, int, int_desc, text};

/// A recall as readers see it. The first eight fields after `id` are the contract's record, in its order. `""` is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Recall {
    /// `AGENCY:number`, the smallest of its members when agencies' duplicates are one record.
    pub id: String,
    /// Issuing agency: CPSC, FDA, NHTSA, USDA (that of `id`).
    pub agency: String,
    /// food, drugs, vehicles, products, baby.
    pub category: String,
    /// Title.
    pub title: String,
    /// Brand.
    pub brand: String,
    /// Hazard text.
    pub hazard: String,
    /// Recall date, `YYYY-MM-DD`.
    pub date: String,
    /// URL of the agency's notice.
    pub url: String,
    /// Remedy.
    pub remedy: String,
    /// All agencies that issued it, sorted.
    pub agencies: Vec<String>,
    /// All numbers it goes by, `AGENCY:number`, sorted.
    pub numbers: Vec<String>,
    /// All notices of it, the record's own first.
    pub urls: Vec<String>,
    /// The words that decided the category.
    pub category_evidence: String,
    /// Status at the agency.
    pub status: String,
    /// Class I, II, III …
    pub classification: String,
    /// Units, as worded.
    pub units: String,
    /// A public health alert, not a recall.
    pub alert: bool,
    /// Gone from its upstream.
    pub withdrawn: bool,
    /// The id of the record that it turned out to be the same recall as; then it is no record of its own any more.
    pub merged_into: String,
}

impl Recall {
    /// Whether lists show it: it is a record of its own and not withdrawn.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        !self.withdrawn && self.merged_into.is_empty()
    }

    /// Whether this agency issued it, alone or with others.
    #[must_use]
    pub fn is_of(&self, agency: &str) -> bool {
        self.agency == agency || self.agencies.iter().any(|other| other == agency)
    }
}

/// What the service remembers of one fact key for later decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Note {
    /// Key of the fact.
    pub key: String,
    /// Its version.
    pub version: i64,
    /// Withdrawn or superseded.
    pub gone: bool,
    /// The key that goes on with this record (superseded).
    pub superseded_by: String,
    /// What it said last.
    pub recall: Option<RecallFact>,
    /// Sets that decisions look up, each whole, as it stands after the change.
    pub sets: Vec<NoteSet>,
}

/// A set that decisions look up by name: `member/IDENTITY` to the keys of the facts that speak of a recall, `alike/LIKENESS`
/// to `DAY IDENTITY` of the recalls that may be one across agencies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteSet {
    /// Its name.
    pub name: String,
    /// Its items, sorted.
    pub items: Vec<String>,
}

/// A change of this service.
pub type RecallChange = Change<Recall, Note>;

/// A stored row: the record and the change that wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Seq of the change that wrote it.
    pub seq: i64,
    /// Seq since which it stands at its place in lists; 0 for nowhere.
    pub since: i64,
    /// The record.
    pub record: Recall,
}

/// Records as they stand: (id) to [`Row`] as JSON.
pub const RECALLS: Table =
    Table { name: "recalls", key: &[text("id")], partition_columns: 1, kind: TableKind::Current, value: ValueKind::Text };
/// Records as they stood, by the seq from which they did: (id, seq descending) to [`Row`] as JSON.
pub const HISTORY: Table = Table {
    name: "recalls_history",
    key: &[text("id"), int_desc("seq")],
    partition_columns: 1,
    kind: TableKind::History,
    value: ValueKind::Text,
};
/// Listed records by list and date, newest first. `list` is `CATEGORY/AGENCY`, or `*/*` for all; `month` is [`month_of`] and
/// bounds the partition; `day` is days since 1970 (-1 and month 0 for none); a row says from which seq on (`since`) until which
/// (value: JSON of [`Listed`]) the record stood there.
pub const LISTS: Table = Table {
    name: "recalls_lists",
    key: &[text("list"), int_desc("month"), int_desc("day"), text("id"), int("since")],
    partition_columns: 2,
    kind: TableKind::Derived,
    value: ValueKind::Text,
};
/// Decision state: (key of fact) to [`Note`] as JSON.
pub const SOURCES: Table =
    Table { name: "recalls_sources", key: &[text("key")], partition_columns: 1, kind: TableKind::Derived, value: ValueKind::Text };
/// Decision state: (name of a [`NoteSet`]) to its items as JSON.
pub const SETS: Table =
    Table { name: "recalls_sets", key: &[text("name")], partition_columns: 1, kind: TableKind::Derived, value: ValueKind::Text };
/// Packed pages of changes: (block) to a block, see `view_store::feed`.
pub const FEED: Table =
    Table { name: "recalls_feed", key: &[int("block")], partition_columns: 1, kind: TableKind::Derived, value: ValueKind::Bytes };
/// Upstreams' completeness: (upstream, seq descending) to [`crate::change::Through`] as JSON.
pub const THROUGH: Table = Table {
    name: "recalls_through",
    key: &[text("upstream"), int_desc("seq")],
    partition_columns: 1,
    kind: TableKind::Derived,
    value: ValueKind::Text,
};
/// Inputs that could not be decided: (key of fact, offset) to where and why, as JSON.
pub const PARKED: Table = Table {
    name: "recalls_parked",
    key: &[text("key"), int("offset")],
    partition_columns: 1,
    kind: TableKind::Derived,
    value: ValueKind::Text,
};

/// The recalls view.
pub const VIEW: ViewDef = ViewDef { name: "recalls", tables: &[&RECALLS, &HISTORY, &LISTS, &SOURCES, &SETS, &FEED, &THROUGH, &PARKED] };

/// Until when a record stood at a place of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// The seq from which it no longer does; 0 while it still does.
    pub until: i64,
}

/// The contract's record fields, in its order.
pub const RECORD_FIELDS: [&str; 8] = ["agency", "category", "title", "brand", "hazard", "date", "url", "remedy"];
/// The categories.
pub const CATEGORIES: [&str; 5] = ["food", "drugs", "vehicles", "products", "baby"];
/// The agencies.
pub const AGENCIES: [&str; 4] = ["CPSC", "FDA", "NHTSA", "USDA"];

/// The day number of a `YYYY-MM-DD` (days since 1970), or -1 for none. Works for dates before 1970 too (then below -1).
#[must_use]
pub fn day_of(date: &str) -> i64 {
    date.parse::<jiff::civil::Date>()
        .ok()
        .and_then(|date| date.since(jiff::civil::date(1970, 1, 1)).ok())
        .map_or(-1, |span| i64::from(span.get_days()))
}

/// The month of a `YYYY-MM-DD`, counted from January of the year 0; 0 for none.
#[must_use]
pub fn month_of(date: &str) -> i64 {
    date.parse::<jiff::civil::Date>().map_or(0, |date| i64::from(date.year()) * 12 + i64::from(date.month()) - 1)
}
