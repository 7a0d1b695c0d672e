//! Counts of leads by source, tier and line over some days, from the counts of each day that decisions keep.
//!
//! The last counts of all days are one range of rows. Only a day whose counts changed after the position, or that has no such row, is read by itself.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::record::{LastCounts, TABLES, TIERS, counts_term, last_counts_term, tier};
use feed::position::Position;
use futures_util::future::try_join_all;
use jiff::ToSpan;
use jiff::civil::Date;
use matching::mandates::LINES;
use operation::problem::Problem;
use schemars::JsonSchema;
use schemas::views::records::day_number;
use serde::Serialize;

use crate::SOURCES;
use reads::last_entry::{last_entry, numbered_entries};

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
        let of = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), 0)).collect();
        Self { total: 0, by_source: of(&SOURCES), by_tier: of(&TIERS), by_coverage_line: of(&LINES) }
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
        let term = last_counts_term();
        let latest = numbered_entries::<LastCounts>(at, TABLES.terms, (term.as_str(), 0), day_number(first), all.len()).await?;
        let mut latest: BTreeMap<i64, LastCounts> = latest.into_iter().collect();
        let reads = all.iter().map(|day| day_number(*day)).map(|day| of_day(at, day, latest.remove(&day)));
        let cells = try_join_all(reads).await?;
        let mut counts = Self::none();
        for (day, cells) in all.iter().zip(&cells) {
            counts.add(*day, at.today(), cells);
        }
        Ok(counts)
    }
}

/// The counts of a day at a position, given its last ones if they are known.
async fn of_day(at: &Position, day: i64, last: Option<LastCounts>) -> Result<BTreeMap<String, i64>, Problem> {
    match last.filter(|last| last.seq <= at.seq) {
        Some(last) => Ok(last.counts),
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
    use schemas::position::Seq;
    use schemas::tables::Write;

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
        for (seq, of, leads) in [(3, 19, 10), (5, 20, 200), (7, 19, 30)] {
            writes.extend(CoverageRules::index(&format!("counts/{}", day(of)), &counts(leads), Seq(seq)));
        }
        // Of a later day, and of one that only an older version counted.
        writes.extend(CoverageRules::index("counts/2026-11-21", &counts(50_000), Seq(2)));
        writes.push(Write::put(TABLES.terms, key![counts_term(), day_number(day(17)), Seq(1)], Bytes::from(counts(4_000))));
        view.commit(writes, &checkpoint).await.unwrap();
        let now = "2026-11-20T12:00:00Z".parse().unwrap();
        for (seq, total) in [(9, 4_230), (7, 4_230), (6, 4_210), (4, 4_010), (2, 4_000)] {
            let at = Position { view: view.clone(), seq: Seq(seq), last: Seq(9), now, clock_time: now };
            let found = Counts::read(&at, &(day(16)..=day(20))).await.unwrap();
            assert_eq!((found.total, found.by_source["fmcsa"], found.by_coverage_line["CARGO"]), (total, total, total), "{seq}");
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
