//! Counts of leads by source, tier and line over some days, from the counts of each day that decisions keep.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::record::{TABLES, TIERS, counts_term, tier};
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
use reads::last_entry::last_entry;

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
        let (first, last, term) = (*days.start(), *days.end(), counts_term());
        let all: Vec<Date> = first.series(1.day()).take_while(|day| *day <= last).collect();
        let reads = all.iter().map(|day| last_entry::<BTreeMap<String, i64>>(at, TABLES.terms, &term, day_number(*day)));
        let cells = try_join_all(reads).await?;
        let mut counts = Self::none();
        for (day, cells) in all.iter().zip(cells) {
            counts.add(*day, at.today(), &cells.unwrap_or_default());
        }
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
