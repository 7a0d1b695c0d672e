//! The rows of the recalls service: one record per recall, also if several agencies published it.

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use texts::numbers::has_only_digits;

use crate::change::Change;
use crate::details::{ChangeRecord, LinkDetails};
use crate::facts::recalls::RecallFact;
use crate::news::{News, RECALL_NEWS_DAYS};
use crate::position::Seq;
use crate::tables::{Table, TableKind, ValueKind, ViewDef, int, int_desc, text};

/// A recall as readers see it. The first eight fields after `id` are those of the contract's record, in its order. `""` means unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "RecordedRecall")]
pub struct Recall {
    /// Id of the record, `AGENCY:number`: the smallest of its numbers if several agencies' notices are one record. The other fields are those of that
    /// notice; what it does not state is from the other notices, in the order of `numbers`.
    pub id: String,
    /// Issuing agency: CPSC, FDA, NHTSA, USDA (that of `id`).
    pub agency: String,
    /// Category: food, drugs, vehicles, products or baby.
    pub category: String,
    /// Title.
    pub title: String,
    /// Brand.
    pub brand: String,
    /// Hazard text.
    pub hazard: String,
    /// Recall date, `YYYY-MM-DD`.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub date: String,
    /// URL of the agency's notice.
    pub url: String,
    /// Remedy.
    pub remedy: String,
    /// All agencies that issued it, sorted.
    pub agencies: Vec<String>,
    /// All numbers of the recall, `AGENCY:number`, sorted. Notices of different agencies are one record if they have the same brand and title, except for
    /// case, punctuation and white space, if their dates are at most 7 days apart, and if there is at most one of each agency.
    pub numbers: Vec<String>,
    /// URLs of all notices of the recall, that of the record first.
    pub urls: Vec<String>,
    /// The words that decided the category.
    pub category_evidence: String,
    /// Status at the agency.
    pub status: String,
    /// Classification: Class I, II, III …
    pub classification: String,
    /// Units, as worded.
    pub units: String,
    /// Whether it is a public health alert, not a recall.
    pub alert: bool,
    /// Whether the recall is gone from its upstream.
    pub withdrawn: bool,
    /// The id of the record into which this one was merged. A merged record is no longer a record of its own.
    pub merged_into: String,
}

impl ChangeRecord for Recall {
    type Details = LinkDetails;

    fn is_in_tables(&self) -> bool {
        self.is_listed()
    }

    /// By its date, or by the year in one of its numbers if that is over before: agencies give old recalls the date on which they published them again.
    fn news(&self) -> Option<News> {
        let in_numbers = self.numbers.iter().filter_map(|number| last_day_of_number(number));
        let day = self.date.parse().ok().into_iter().chain(in_numbers).min()?;
        Some(News::new(day, RECALL_NEWS_DAYS))
    }
}

impl Recall {
    /// Whether lists show the recall: it is a record of its own and not withdrawn.
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

/// The decision state of one fact key: what later decisions of the service need. The schema of changes calls it `RecallNote`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RememberedFact {
    /// Key of the fact.
    pub key: String,
    /// Version of the fact.
    pub version: i64,
    /// Whether the fact was withdrawn or superseded.
    pub gone: bool,
    /// The key under which the upstream continues the record (superseded only).
    pub superseded_by: String,
    /// The record of the newest observed fact.
    pub recall: Option<RecallFact>,
    /// Sets that decisions look up, each with all its items after the change.
    pub sets: Vec<RememberedSet>,
}

/// A set that decisions look up by name: `member/IDENTITY` holds the keys of the facts about a recall, `alike/LIKENESS` holds `DAY
/// IDENTITY` of recalls that may be the same across agencies. The schema of changes calls it `NoteSet`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RememberedSet {
    /// Name of the set.
    pub name: String,
    /// Items of the set, sorted.
    pub items: Vec<String>,
}

/// A change of the recalls service.
pub type RecallChange = Change<Recall, RememberedFact>;

/// A stored row: the record and the seq of the change that wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Seq of the change that wrote it.
    pub seq: Seq,
    /// Seq since which the record has its position in lists; 0 if it is in none.
    pub since: Seq,
    /// The record.
    pub record: Recall,
}

/// Current records: (id) to [`Row`] as JSON.
pub const RECALLS: Table =
    Table { name: "recalls", key: &[text("id")], partition_columns: 1, kind: TableKind::Current, value: ValueKind::Text };
/// Earlier versions of records, by the seq that wrote them: (id, seq descending) to [`Row`] as JSON.
pub const HISTORY: Table = Table {
    name: "recalls_history",
    key: &[text("id"), int_desc("seq")],
    partition_columns: 1,
    kind: TableKind::History,
    value: ValueKind::Text,
};
/// ListEntry records by list and date, newest first. `list` is `CATEGORY/AGENCY`, or `*/*` for all. `month` is [`month_of`] and bounds the
/// partition. `day` is days since 1970 (-1 and month 0 if there is no date). A row says from which seq (`since`) until which seq (value:
/// JSON of [`ListEntry`]) the record had that position.
pub const LISTS: Table = Table {
    name: "recalls_lists",
    key: &[text("list"), int_desc("month"), int_desc("day"), text("id"), int("since")],
    partition_columns: 2,
    kind: TableKind::Derived,
    value: ValueKind::Text,
};
/// Decision state: (key of fact) to [`RememberedFact`] as JSON.
pub const SOURCES: Table =
    Table { name: "recalls_sources", key: &[text("key")], partition_columns: 1, kind: TableKind::Derived, value: ValueKind::Text };
/// Decision state: (name of a [`RememberedSet`]) to its items as JSON.
pub const SETS: Table =
    Table { name: "recalls_sets", key: &[text("name")], partition_columns: 1, kind: TableKind::Derived, value: ValueKind::Text };
/// Packed pages of changes: (block) to a block, see `view_store::feed`.
pub const FEED: Table =
    Table { name: "recalls_feed", key: &[int("block")], partition_columns: 1, kind: TableKind::Derived, value: ValueKind::Bytes };
/// Completeness of upstreams: (upstream, seq descending) to [`crate::change::Through`] as JSON.
pub const THROUGH: Table = Table {
    name: "recalls_through",
    key: &[text("upstream"), int_desc("seq")],
    partition_columns: 1,
    kind: TableKind::Derived,
    value: ValueKind::Text,
};
/// Parked inputs: (key of fact, offset) to position and reason, as JSON.
pub const PARKED: Table = Table {
    name: "recalls_parked",
    key: &[text("key"), int("offset")],
    partition_columns: 1,
    kind: TableKind::Derived,
    value: ValueKind::Text,
};

/// The view of the recalls service.
pub const VIEW: ViewDef =
    ViewDef { name: "recalls", tables: &[&RECALLS, &HISTORY, &LISTS, &SOURCES, &SETS, &FEED, &THROUGH, &PARKED], hides: &[] };

/// An entry of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListEntry {
    /// The seq since which the record no longer has this position; 0 while it has.
    pub until: Seq,
}

/// The fields of the contract's record, in its order.
pub const RECORD_FIELDS: [&str; 8] = ["agency", "category", "title", "brand", "hazard", "date", "url", "remedy"];
/// The categories of recalls.
pub const CATEGORIES: [&str; 5] = ["food", "drugs", "vehicles", "products", "baby"];
/// The agencies that publish recalls.
pub const AGENCIES: [&str; 4] = ["CPSC", "FDA", "NHTSA", "USDA"];

/// Returns the last day of the year that an agency's number names: `FDA:F-0123-2013`, `FDA:Z-0123-05`, `USDA:077-2009`, `USDA:PHA-09012009-01`,
/// `NHTSA:09V123000`. `None` for a number without a year.
fn last_day_of_number(identity: &str) -> Option<Date> {
    let (agency, number) = identity.split_once(':')?;
    let is_number = |part: &&str| has_only_digits(part);
    let year = match agency {
        "FDA" => full_year(number.rsplit('-').next().filter(|part| part.len() < number.len()).filter(is_number)?),
        // The day of a health alert is written MMDDYYYY.
        "USDA" => number.split('-').filter(is_number).find_map(|part| full_year(part.get(part.len().checked_sub(4)?..)?)),
        "NHTSA" => number.get(..2).filter(is_number).and_then(full_year),
        _ => None,
    }?;
    Date::new(year, 12, 31).ok()
}

/// Returns a year that is written with its last one or two digits, or in full.
fn full_year(digits: &str) -> Option<i16> {
    let year: i16 = digits.parse().ok()?;
    match digits.len() {
        1 => Some(2000 + year),
        2 if year < 60 => Some(2000 + year),
        2 => Some(1900 + year),
        4 if (1960..2100).contains(&year) => Some(year),
        _ => None,
    }
}

/// Returns the day number of a `YYYY-MM-DD` (days since 1970), or -1 for other texts. Dates before 1970 give numbers below -1.
#[must_use]
pub fn day_of(date: &str) -> i64 {
    date.parse::<jiff::civil::Date>()
        .ok()
        .and_then(|date| date.since(jiff::civil::date(1970, 1, 1)).ok())
        .map_or(-1, |span| i64::from(span.get_days()))
}

/// Returns the month of a `YYYY-MM-DD`, counted from January of year 0; 0 for other texts.
#[must_use]
pub fn month_of(date: &str) -> i64 {
    date.parse::<jiff::civil::Date>().map_or(0, |date| i64::from(date.year()) * 12 + i64::from(date.month()) - 1)
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    /// Proves which numbers name a year, in all forms that the agencies gave them.
    #[test]
    fn years_of_numbers() {
        for (identity, year) in [
            ("FDA:F-0123-2013", Some(2013)),
            ("FDA:Z-0123-05", Some(2005)),
            ("FDA:D-1234-98", Some(1998)),
            ("FDA:D-035-4", Some(2004)),
            ("USDA:077-2009", Some(2009)),
            ("USDA:PHA-09012009-01", Some(2009)),
            ("NHTSA:09V123000", Some(2009)),
            ("NHTSA:99E012000", Some(1999)),
            ("FDA:12345", None),
            ("FDA:F-0123-2013A", None),
            ("FDA:", None),
            ("USDA:077", None),
            ("USDA:PHA-01", None),
            ("NHTSA:V123", None),
            ("CPSC:82010", None),
            ("082010", None),
        ] {
            assert_eq!(last_day_of_number(identity), year.map(|year| date(year, 12, 31)), "{identity}");
        }
    }

    /// Proves that a recall is late by its date, or by a number of an earlier year whatever its date says; and that only its first change is.
    #[test]
    fn late_recalls() {
        let recorded = date(2026, 11, 24);
        for (day, number, is_late) in [
            ("2001-05-02", "CPSC:01123", true),
            ("2026-11-20", "USDA:077-2009", true),
            ("2026-11-20", "FDA:F-0123-2013", true),
            ("", "FDA:F-0123-2013", true),
            ("2026-11-20", "FDA:F-0123-2026", false),
            ("2026-09-25", "USDA:018-2026", false),
            ("2026-09-24", "USDA:018-2026", true),
            ("", "USDA:018-2026", false),
            ("", "CPSC:01123", false),
        ] {
            let recall = Recall { date: day.into(), numbers: vec![number.into()], ..Recall::default() };
            let is_backfill = |is_new: bool| recall.is_backfill(&LinkDetails::default(), is_new, recorded);
            assert_eq!((is_backfill(true), is_backfill(false)), (is_late, false), "{day} {number}");
        }
    }
}
