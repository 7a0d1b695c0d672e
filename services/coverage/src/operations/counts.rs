//! Counts of leads by source, tier and line over some days, from the counts of each day that decisions keep.
//!
//! The last counts of all days are one range of rows, and so are their versions as of earlier days. Only a day that has no such row, or whose counts changed
//! again later on the day of the position, is read by itself.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::record::{
    LastCounts, TABLES, TIERS, counts_term, counts_version, counts_versions_term, days_of_version, last_counts_term, tier,
};
use feed::position::Position;
use futures_util::future::try_join_all;
use jiff::ToSpan;
use jiff::civil::Date;
use matching::mandates::LINES;
use operation::context::stored;
use operation::problem::Problem;
use schemars::JsonSchema;
use schemas::position::Seq;
use schemas::views::records::day_number;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::SOURCES;
use reads::last_entry::{all_numbered_entries, last_entry, numbered_entries};

/// Counts of leads. Each lead counts once, under its first source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "CoverageCounts")]
pub(crate) struct Counts {
    /// All leads.
    pub(crate) total: i64,
    /// By source.
    pub(crate) by_source: BTreeMap<String, i64>,
    /// By tier: `hot`, `warm`, `cool`.
    pub(crate) by_tier: BTreeMap<String, i64>,
    /// By line of insurance.
    pub(crate) by_coverage_line: BTreeMap<String, i64>,
}

impl Counts {
    /// No leads, under every name.
    fn none() -> Self {
        let zeros = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), 0)).collect();
        Self { total: 0, by_source: zeros(&SOURCES), by_tier: zeros(&TIERS), by_coverage_line: zeros(&LINES) }
    }

    fn add(&mut self, day: Date, today: Date, cells: &BTreeMap<String, i64>) {
        for (cell, count) in cells {
            let Some((source, line)) = cell.split_once('/') else { continue };
            self.total += count;
            *self.by_source.entry(source.to_owned()).or_default() += count;
            *self.by_tier.entry(tier(day, today).to_owned()).or_default() += count;
            *self.by_coverage_line.entry(line.to_owned()).or_default() += count;
        }
    }

    /// The counts of the leads with a trigger on some days, at a position.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub(crate) async fn read(at: &Position, days: &RangeInclusive<Date>) -> Result<Self, Problem> {
        let (first, last) = (*days.start(), *days.end());
        let all: Vec<Date> = first.series(1.day()).take_while(|day| *day <= last).collect();
        let mut known = if at.seq < at.last { earlier(at, first, last).await? } else { latest(at, first, all.len()).await? };
        let reads = all.iter().map(|day| day_number(*day)).map(|day| of_day(at, day, known.remove(&day)));
        let cells = try_join_all(reads).await?;
        let mut counts = Self::none();
        for (day, cells) in all.iter().zip(&cells) {
            counts.add(*day, at.today(), cells);
        }
        Ok(counts)
    }
}

/// The counts of days, by the numbers of the days.
type CountsOfDays = BTreeMap<i64, BTreeMap<String, i64>>;

/// The last counts of some days. Those of days that changed after the position, or that have no row of them, are left out.
async fn latest(at: &Position, first: Date, days: usize) -> Result<CountsOfDays, Problem> {
    let found = numbered_entries::<LastCounts>(at, TABLES.terms, (last_counts_term().as_str(), 0), day_number(first), days).await?;
    Ok(found.into_iter().filter(|(_, last)| last.seq <= at.seq).map(|(day, last)| (day, last.counts)).collect())
}

/// What the versions of the counts of a day say about a position.
#[derive(Default)]
struct AtPosition {
    /// The last version up to the position.
    last: Option<Version>,
    /// Whether the counts changed again later on the day of the position. That version replaced the one of the position.
    is_replaced: bool,
}

/// A version of the counts of a day. Most are not needed, so the counts are not decoded.
#[derive(Deserialize)]
struct Version {
    seq: Seq,
    counts: Box<RawValue>,
}

/// The counts of some days at a position before the last one of the view. Days are left out of which the versions do not say that.
async fn earlier(at: &Position, first: Date, last: Date) -> Result<CountsOfDays, Problem> {
    let numbers = counts_version(day_number(first), 0)..=counts_version(day_number(last) + 1, 0) - 1;
    let versions = all_numbered_entries::<Version>(at, TABLES.terms, (counts_versions_term().as_str(), 0), numbers).await?;
    let today = day_number(at.today());
    let mut days: BTreeMap<i64, AtPosition> = BTreeMap::new();
    for (number, version) in versions {
        let (day, recorded) = days_of_version(number);
        let known = days.entry(day).or_default();
        if version.seq > at.seq {
            known.is_replaced |= recorded <= today;
        } else if known.last.as_ref().is_none_or(|last| last.seq < version.seq) {
            known.last = Some(version);
        }
    }
    let known = days.into_iter().filter(|(_, known)| !known.is_replaced);
    let known = known.filter_map(|(day, known)| Some((day, known.last?.counts)));
    known.map(|(day, counts)| stored(TABLES.terms, counts.get().as_bytes()).map(|counts| (day, counts))).collect()
}

/// The counts of a day at a position, if they are not known.
async fn of_day(at: &Position, day: i64, known: Option<BTreeMap<String, i64>>) -> Result<BTreeMap<String, i64>, Problem> {
    match known {
        Some(counts) => Ok(counts),
        None => Ok(last_entry(at, TABLES.terms, &counts_term(), day).await?.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use feed::testing::World;
    use feed::testing::records::RecordView;
    use fold::records::Rules;
    use schemas::key;
    use schemas::tables::{Datum, Write};

    use super::*;
    use crate::record::Lead;
    use crate::rules::CoverageRules;

    /// Proves that the counts of several days are those of their last rows, that at an earlier position each day counts as it did then, and that a day which an
    /// older version counted is read as well.
    #[tokio::test]
    async fn counts_as_of_a_position() {
        let world = World::new().await;
        let RecordView { view, checkpoint, .. } = RecordView::<Lead>::new(&*world.store, &TABLES).await;
        let day = |day: i8| Date::constant(2026, 11, day);
        let counts = |leads: i64| format!("{{\"fmcsa/CARGO\":{leads}}}");
        let mut writes: Vec<Write> = Vec::new();
        let counted = |of: i8, leads, seq| {
            let (key, counts) = (format!("counts/{}", day(of)), counts(leads));
            [CoverageRules::index(&key, &counts, Seq(seq)), CoverageRules::index_by_day(&key, &counts, Seq(seq), day(20))].concat()
        };
        for (seq, of, leads) in [(3, 19, 10), (5, 20, 200), (7, 19, 30)] {
            writes.extend(counted(of, leads, seq));
        }
        // Of a later day, and of one that only an older version counted.
        writes.extend(counted(21, 50_000, 2));
        writes.push(Write::put(TABLES.terms, key![counts_term(), day_number(day(17)), Seq(1)], Bytes::from(counts(4_000))));
        view.commit(writes, &checkpoint).await.unwrap();
        let now = "2026-11-20T12:00:00Z".parse().unwrap();
        for (seq, total) in [(9, 4_230), (7, 4_230), (6, 4_210), (4, 4_010), (2, 4_000)] {
            let at = Position { view: view.clone(), seq: Seq(seq), last: Seq(9), now, clock_time: now };
            let found = Counts::read(&at, &(day(16)..=day(20))).await.unwrap();
            assert_eq!((found.total, found.by_source["fmcsa"], found.by_coverage_line["CARGO"]), (total, total, total), "{seq}");
        }
    }

    /// Proves that the counts as of the end of each day are those of one range: without the entries by seq they are the same.
    #[tokio::test]
    async fn counts_as_of_a_day_are_one_range() {
        let world = World::new().await;
        let RecordView { view, checkpoint, .. } = RecordView::<Lead>::new(&*world.store, &TABLES).await;
        let day = |day: i8| Date::constant(2026, 11, day);
        let mut writes: Vec<Write> = Vec::new();
        // The seq, the recorded day, the day of the triggers, and how many there are since then.
        for (seq, recorded, of, leads) in
            [(1, 16, 16, 1), (2, 17, 16, 2), (3, 17, 17, 10), (4, 17, 17, 20), (5, 18, 18, 100), (6, 19, 16, 3), (7, 19, 17, 30)]
        {
            let (key, counts) = (format!("counts/{}", day(of)), format!("{{\"fmcsa/CARGO\":{leads}}}"));
            writes.extend(CoverageRules::index(&key, &counts, Seq(seq)));
            writes.extend(CoverageRules::index_by_day(&key, &counts, Seq(seq), day(recorded)));
        }
        writes.retain(|write| write.key.first() != Some(&Datum::Text(counts_term())));
        view.commit(writes, &checkpoint).await.unwrap();
        for (today, seq, total) in [(16, 1, 1), (17, 4, 22), (18, 5, 122), (19, 7, 133), (20, 7, 133)] {
            let now = format!("2026-11-{today}T23:59:59.999Z").parse().unwrap();
            let at = Position { view: view.clone(), seq: Seq(seq), last: Seq(7), now, clock_time: now };
            let found = Counts::read(&at, &(day(10)..=day(20))).await.unwrap();
            assert_eq!(found.total, total, "{today}");
        }
    }

    /// Proves that days which an older version counted are right as of every change, also those that changed since: it wrote no versions of them.
    #[tokio::test]
    async fn counts_of_an_older_version_are_read() {
        let world = World::new().await;
        let RecordView { view, checkpoint, .. } = RecordView::<Lead>::new(&*world.store, &TABLES).await;
        let (day, mut writes) = (|day: i8| Date::constant(2026, 11, day), Vec::new());
        // The seq, the recorded day, the day of the triggers, and how many there are since then; the first three are of the older version.
        let all = [(1, 16, 16, 1), (2, 16, 15, 10), (3, 17, 16, 2), (4, 17, 16, 3), (5, 18, 15, 20), (6, 18, 16, 4), (7, 20, 16, 5)];
        for (seq, recorded, of, leads) in all {
            let (key, counts) = (format!("counts/{}", day(of)), format!("{{\"fmcsa/CARGO\":{leads}}}"));
            writes.extend(CoverageRules::index(&key, &counts, Seq(seq)));
            if seq > 3 {
                writes.extend(CoverageRules::index_by_day(&key, &counts, Seq(seq), day(recorded)));
            }
        }
        view.commit(writes, &checkpoint).await.unwrap();
        for (seq, recorded, ..) in all {
            let now = format!("2026-11-{recorded}T12:00:00Z").parse().unwrap();
            let at = Position { view: view.clone(), seq: Seq(seq), last: Seq(7), now, clock_time: now };
            let last = |of: i8| all.iter().rfind(|(known, _, day, _)| *known <= seq && *day == of).map_or(0, |(.., leads)| *leads);
            assert_eq!(Counts::read(&at, &(day(10)..=day(20))).await.unwrap().total, last(15) + last(16), "{seq}");
        }
    }

    /// Proves that each sum is the total, by the tier of the day.
    #[test]
    fn sums_agree() {
        let today = Date::constant(2026, 11, 20);
        let cells = |pairs: &[(&str, i64)]| pairs.iter().map(|(cell, count)| ((*cell).to_owned(), *count)).collect();
        let mut counts = Counts::none();
        counts.add(today, today, &cells(&[("fmcsa/CARGO", 2), ("sos-co/GENERAL_LIABILITY", 3)]));
        counts.add(Date::constant(2026, 11, 13), today, &cells(&[("fmcsa/CARGO", 1)]));
        counts.add(Date::constant(2026, 10, 21), today, &cells(&[("sos-ny/GENERAL_LIABILITY", 4)]));
        assert_eq!(counts.total, 10);
        for sums in [&counts.by_source, &counts.by_tier, &counts.by_coverage_line] {
            assert_eq!(sums.values().sum::<i64>(), counts.total);
        }
        assert_eq!(TIERS.map(|tier| counts.by_tier[tier]), [5, 1, 4]);
        assert_eq!((counts.by_source["fmcsa"], counts.by_source["sos-or"], counts.by_coverage_line.len()), (3, 0, 8));
    }
}
