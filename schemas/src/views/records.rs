//! Shared definitions for services with one kind of record: the record trait, terms that index its changes, and rows of decision state.
//! [`record_tables!`](crate::record_tables) defines the tables of such a service.

use std::cmp::Ordering;

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::accounts::Tier;
use crate::change::Change;
use crate::details::ChangeRecord;
use crate::position::Seq;
use crate::tables::{Column, Table, TableKind, ValueKind, ViewDef, int, text};

/// The number of consecutive changes whose terms share a partition. It bounds the partition of a term that every change has.
pub const TERM_BUCKET: i64 = 1 << 18;
/// The number of partitions over which the names of one dimension are spread.
pub const NAME_SHARDS: i64 = 16;
/// The longest value of a term, in characters. Longer values are truncated.
const VALUE_CHARS_MAX: usize = 200;

/// A record that readers see.
pub trait Record: ChangeRecord + Serialize + DeserializeOwned + Clone + PartialEq + Send + Sync + 'static {
    /// The term dimensions whose values are held in memory: those in which readers search for a part of a value, and those whose nearest values are
    /// proposed for a value that nothing has.
    const SEARCHED: &'static [&'static str] = &[];

    /// Returns the identity of the record within the service.
    fn id(&self) -> &str;

    /// Whether the record is still at its upstream. The digest of current records leaves out the others.
    fn is_listed(&self) -> bool {
        true
    }

    /// Returns the terms that index the changes of the record.
    fn terms(&self) -> Vec<Term> {
        Vec::new()
    }

    /// Returns the places of the record in ranked lists. A record that is not listed has none. Requires tables with
    /// [`places`](RecordTables::places).
    fn places(&self) -> Vec<Place> {
        Vec::new()
    }
}

/// A record of which callers below some tier see a redacted form only, and only for a while.
pub trait Redact: Record {
    /// The redacted form. It has no id, and no value of a field that only paying callers see.
    type Redacted: Serialize + JsonSchema + 'static;

    /// The lowest tier whose callers see the whole record, at any time.
    const WHOLE_FROM: Tier;
    /// The free window: callers below that tier see the changes of this many days.
    const FREE_DAYS: i64;

    /// Whether the record is within the free window on a day, so that callers below that tier see it in its redacted form.
    fn is_free(&self, today: Date) -> bool;

    /// Whether everybody can know the ids, for example because they are numbers of awards at the upstream. A record by its id would then say what its
    /// redacted form is made of, so single records, their histories and the feed of changes are for callers of whole records only.
    const IDS_ARE_PUBLIC: bool = false;

    /// Whether the redacted form marks a record that is in no list any more. Only then callers below that tier see such a record: without a mark it
    /// would look like a current one.
    const MARKS_UNLISTED: bool = false;

    /// Whether callers below that tier may ask for the record by its id. It is `false` where the id alone says what the redacted form hides, so that an answer
    /// would confirm a guess.
    fn is_shown_by_id(&self) -> bool {
        true
    }

    /// What a note tells callers below that tier; `None` for the usual words about the redacted form.
    const NOTE: Option<&'static str> = None;

    /// Returns the redacted form.
    fn redacted(&self) -> Self::Redacted;

    /// The order of redacted rows in answers, by what they show: an order by a field that is not shown would tell its value. Rows that are equal here
    /// are ordered by their JSON.
    fn order(one: &Self::Redacted, other: &Self::Redacted) -> Ordering;
}

/// The place of a record in a ranked list. Lists are read in the order of bucket, rank and id, smallest first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The name of the list: `category/Computing`.
    pub list: String,
    /// The part of the list, which bounds the partition: a month, for example. A smaller rank never has a larger bucket.
    pub bucket: i64,
    /// The rank within the list.
    pub rank: i64,
}

impl Place {
    /// Creates a place in a list that shows the newest day first, in buckets of months. `None` if the text is not a day `YYYY-MM-DD`.
    #[must_use]
    pub fn newest_first(list: impl Into<String>, day: &str) -> Option<Self> {
        let place = Self::soonest_first(list, day)?;
        Some(Self { bucket: -place.bucket, rank: -place.rank, ..place })
    }

    /// Creates a place in a list that shows the earliest day first, in buckets of months. `None` if the text is not a day `YYYY-MM-DD`.
    #[must_use]
    pub fn soonest_first(list: impl Into<String>, day: &str) -> Option<Self> {
        let date: Date = day.parse().ok()?;
        Some(Self { list: list.into(), bucket: month_number(date), rank: day_number(date) })
    }
}

/// The number of a day: days since 1970.
#[must_use]
pub fn day_number(day: Date) -> i64 {
    i64::from((day - Date::constant(1970, 1, 1)).get_days())
}

/// The number of a day's month, counted from January of year 0.
#[must_use]
pub fn month_number(day: Date) -> i64 {
    i64::from(day.year()) * 12 + i64::from(day.month()) - 1
}

/// A term that indexes the changes of a record: `naics/541512`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term {
    /// The dimension of the term: `naics`.
    pub dimension: &'static str,
    /// The value of the term, in the form that [`normal`] returns.
    pub value: String,
}

impl Term {
    /// Creates a term; `None` if the value is empty.
    #[must_use]
    pub fn new(dimension: &'static str, value: &str) -> Option<Self> {
        let value = normal(value);
        (!value.is_empty()).then_some(Self { dimension, value })
    }

    /// Formats the term as the tables contain it.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}/{}", self.dimension, self.value)
    }

    /// Returns the shard that holds the value's name.
    #[must_use]
    pub fn shard(&self) -> i64 {
        let hash = self.value.bytes().fold(0_i64, |hash, byte| (hash * 31 + i64::from(byte)) & 0xffff);
        hash % NAME_SHARDS
    }
}

/// Normalizes a value for comparison: lower case, white space collapsed, truncated to the longest length.
#[must_use]
pub fn normal(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for word in value.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.extend(word.chars().flat_map(char::to_lowercase));
    }
    if let Some((end, _)) = out.char_indices().nth(VALUE_CHARS_MAX) {
        out.truncate(end);
    }
    out
}

/// The key of decision state: the number under which the record with an earlier number is continued.
#[must_use]
pub fn alias_key(number: &str) -> String {
    format!("alias/{number}")
}

/// The key of decision state: the earlier numbers of the record with a number.
#[must_use]
pub fn former_key(number: &str) -> String {
    format!("former/{number}")
}

/// Decision state: rows of the service's table [`RecordTables::state`] that later decisions need. Schemas of changes call it `Note`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "Note", rename_all = "camelCase", default)]
pub struct RememberedRows {
    /// Rows with their contents after the change.
    pub rows: Vec<RememberedRow>,
}

/// One row of decision state. Schemas of changes call it `NoteRow`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RememberedRow {
    /// Key of the row.
    pub key: String,
    /// Value of the row as JSON; empty if the row was deleted.
    pub value: String,
}

/// A change of a service with one kind of record.
pub type RecordChange<R> = Change<R, RememberedRows>;

/// A stored row: the record and the seq of the change that wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row<R> {
    /// Seq of the change that wrote it.
    pub seq: Seq,
    /// Seq since which the record has its places in ranked lists; 0 if it is in none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub since: Seq,
    /// The record.
    pub record: R,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
fn is_zero(seq: &Seq) -> bool {
    *seq == Seq(0)
}

/// What a row of a ranked list says about a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceRow {
    /// The seq since which the record no longer has the place; 0 while it has.
    pub until: Seq,
}

/// The tables of a service with one kind of record.
#[derive(Clone, Copy, Debug)]
pub struct RecordTables {
    /// Current records: (id) to [`Row`] as JSON.
    pub records: &'static Table,
    /// Earlier versions of records, by the seq that wrote them: (id, seq descending) to [`Row`] as JSON.
    pub history: &'static Table,
    /// Index of changes by term: (term, bucket, seq) to nothing. `bucket` is the seq divided by `term_bucket`.
    pub terms: &'static Table,
    /// The number of consecutive changes whose terms share a partition, see [`TERM_BUCKET`].
    pub term_bucket: i64,
    /// All values of the terms of searched dimensions: (dimension, shard, value) to nothing.
    pub names: &'static Table,
    /// Ranked lists, if the service has any: (list, bucket, rank, id, since) to [`PlaceRow`] as JSON. A row says from which seq (`since`) until
    /// which seq the record had the place, so a list as of any seq is one range.
    pub places: Option<&'static Table>,
    /// Decision state: (key) to JSON. The name of the stored table ends with `_sources`, as when only records of sources were remembered.
    pub state: &'static Table,
    /// Packed pages of changes: (block) to a block, see `view_store::feed`.
    pub feed: &'static Table,
    /// Completeness of upstreams: (upstream, seq descending) to [`crate::change::Through`] as JSON.
    pub through: &'static Table,
    /// Parked inputs: (key of fact, offset) to position and reason, as JSON.
    pub parked: &'static Table,
    /// The view with all these tables.
    pub view: &'static ViewDef,
}

/// The table of a service's ranked lists, see [`RecordTables::places`].
#[must_use]
pub const fn places_table(name: &'static str) -> Table {
    const KEY: &[Column] = &[text("list"), int("bucket"), int("rank"), text("id"), int("since")];
    Table { name, key: KEY, partition_columns: 2, kind: TableKind::Derived, value: ValueKind::Text }
}

/// Defines `TABLES` of a service with one kind of record; with `places`, of one that has ranked lists; with `hides:` and a list of
/// [`Hides`](crate::suppression::Hides), of one whose records hide fields when a key is suppressed.
#[macro_export]
macro_rules! record_tables {
    ($service:literal $(, hides: $hides:expr)?) => {
        $crate::record_tables!(@define $service, None, [], [$($hides)?]);
    };
    ($service:literal, places $(, hides: $hides:expr)?) => {
        $crate::record_tables!(
            @define $service,
            Some(const { &$crate::views::records::places_table(concat!($service, "_places")) }),
            [const { &$crate::views::records::places_table(concat!($service, "_places")) }],
            [$($hides)?]
        );
    };
    (@hides) => { &[] };
    (@hides $hides:expr) => { $hides };
    (@define $service:literal, $places:expr, [$($more:expr)?], [$($hides:expr)?]) => {
        /// The service's tables.
        pub const TABLES: $crate::views::records::RecordTables = {
            use $crate::tables::{Column, Table, TableKind, ValueKind, int, int_desc, text};
            const fn table(
                name: &'static str,
                key: &'static [Column],
                partition_columns: usize,
                kind: TableKind,
                value: ValueKind,
            ) -> Table {
                Table { name, key, partition_columns, kind, value }
            }
            const RECORDS: Table = table($service, &[text("id")], 1, TableKind::Current, ValueKind::Text);
            const HISTORY: Table =
                table(concat!($service, "_history"), &[text("id"), int_desc("seq")], 1, TableKind::History, ValueKind::Text);
            const TERMS: Table =
                table(concat!($service, "_terms"), &[text("term"), int("bucket"), int("seq")], 2, TableKind::Derived, ValueKind::Bytes);
            const NAMES: Table = table(
                concat!($service, "_names"),
                &[text("dimension"), int("shard"), text("name")],
                2,
                TableKind::Derived,
                ValueKind::Bytes,
            );
            const STATE: Table = table(concat!($service, "_sources"), &[text("key")], 1, TableKind::Derived, ValueKind::Text);
            const FEED: Table = table(concat!($service, "_feed"), &[int("block")], 1, TableKind::Derived, ValueKind::Bytes);
            const THROUGH: Table =
                table(concat!($service, "_through"), &[text("upstream"), int_desc("seq")], 1, TableKind::Derived, ValueKind::Text);
            const PARKED: Table =
                table(concat!($service, "_parked"), &[text("key"), int("offset")], 1, TableKind::Derived, ValueKind::Text);
            const VIEW: $crate::tables::ViewDef = $crate::tables::ViewDef {
                name: $service,
                tables: &[&RECORDS, &HISTORY, &TERMS, &NAMES, &STATE, &FEED, &THROUGH, &PARKED $(, $more)?],
                hides: $crate::record_tables!(@hides $($hides)?),
            };
            $crate::views::records::RecordTables {
                records: &RECORDS,
                history: &HISTORY,
                terms: &TERMS,
                term_bucket: $crate::views::records::TERM_BUCKET,
                names: &NAMES,
                places: $places,
                state: &STATE,
                feed: &FEED,
                through: &THROUGH,
                parked: &PARKED,
                view: &VIEW,
            }
        };
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that days are ranked by month and day in both directions, and that a text that is no day has no place.
    #[test]
    fn days_have_places() {
        let place = |bucket, rank| Some(Place { list: "all".into(), bucket, rank });
        assert_eq!(Place::soonest_first("all", "1970-02-01"), place(1970 * 12 + 1, 31));
        assert_eq!(Place::newest_first("all", "1970-02-01"), place(-(1970 * 12 + 1), -31));
        assert_eq!(Place::newest_first("all", ""), None);
        assert!(Place::newest_first("all", "2026-11-30") < Place::newest_first("all", "2026-11-29"));
    }

    /// Proves that a row without places is stored as before ranked lists existed.
    #[test]
    fn rows_without_places_are_unchanged() {
        let row = Row { seq: Seq(7), since: Seq(0), record: "r".to_owned() };
        assert_eq!(serde_json::to_string(&row).unwrap(), r#"{"seq":7,"record":"r"}"#);
        assert_eq!(serde_json::from_str::<Row<String>>(r#"{"seq":7,"since":3,"record":"r"}"#).unwrap().since, Seq(3));
    }

    /// Proves that values are normalized regardless of case and spaces, and that long ones are truncated.
    #[test]
    fn values_are_normalized() {
        assert_eq!(normal("  ACME \n Corp "), "acme corp");
        assert_eq!(Term::new("org", " "), None);
        assert_eq!(Term::new("org", "Ünï").unwrap().text(), "org/ünï");
        assert_eq!(normal(&"é".repeat(300)).chars().count(), VALUE_CHARS_MAX);
        assert!((0..NAME_SHARDS).contains(&Term::new("org", "acme").unwrap().shard()));
    }
}
