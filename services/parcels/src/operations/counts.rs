//! Counts of over-assessed parcels, and the current cycle, as decisions keep them, as of any position.

use std::collections::BTreeMap;

use crate::county::County;
use crate::record::flag::flag_counts;
use crate::record::{COUNTIES, CurrentCycle, DeltaCounts, TABLES, TIERS, current_cycle, delta_counts, strength, township_counts};
use feed::position::Position;
use futures_util::future::try_join_all;
use operation::problem::Problem;
use schemars::JsonSchema;
use schemas::cook;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::filter::Filter;
use reads::last_entry::last_entry;

/// How many over-assessed parcels match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ParcelCounts")]
pub(crate) struct Counts {
    /// By tier: `high`, `medium`, `low`.
    pub(crate) by_tier: BTreeMap<String, i64>,
    /// By county.
    pub(crate) by_county: BTreeMap<String, i64>,
}

impl Counts {
    fn none() -> Self {
        let of = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), 0)).collect();
        Self { by_tier: of(&TIERS), by_county: of(&COUNTIES) }
    }

    /// Adds the counts of a township, or of a county: `CLASS/TIER` to a number.
    fn add(&mut self, county: County, filter: &Filter, cells: &BTreeMap<String, i64>) {
        for (cell, count) in cells {
            let Some((class, tier)) = cell.split_once('/') else { continue };
            let is_wanted = match &filter.class {
                Some(wanted) => wanted == class,
                None => county.is_commercial(class),
            };
            if is_wanted && filter.min_tier.as_ref().is_none_or(|least| strength(tier) >= strength(least)) {
                *self.by_tier.entry(tier.to_owned()).or_default() += count;
                *self.by_county.entry(county.name().to_owned()).or_default() += count;
            }
        }
    }

    /// The number of all.
    pub(crate) fn total(&self) -> i64 {
        self.by_county.values().sum()
    }

    /// The counts of the parcels that a filter takes, at a position. Without a class these are the commercial and industrial ones.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub(crate) async fn read(at: &Position, filter: &Filter) -> Result<Self, Problem> {
        let is_of = |county: County| {
            let of_class = filter.class.as_deref().is_none_or(|class| County::of_class(class) == county);
            let of_township = filter.township.as_deref().is_none_or(|code| County::of_township(code) == county);
            of_class && of_township && filter.county.as_deref().is_none_or(|name| name == county.name())
        };
        let of_cook = cook::TOWNSHIPS.iter().map(|(code, _)| (County::Cook, *code));
        // The municipalities of the other county are not listed: what has no township is counted for all of it.
        let whole = (County::Allegheny, filter.township.as_deref().unwrap_or_default());
        let is_wanted = |code: &str| filter.township.as_ref().is_none_or(|wanted| wanted == code);
        let rows = of_cook.filter(|(_, code)| is_wanted(code)).chain([whole]).filter(|(county, _)| is_of(*county));
        let reads = rows.map(async |(county, code)| {
            Ok::<_, Problem>((county, last::<BTreeMap<String, i64>>(at, &township_counts(county.name(), code)).await?))
        });
        let mut counts = Self::none();
        for (county, cells) in try_join_all(reads).await? {
            counts.add(county, filter, &cells.unwrap_or_default());
        }
        Ok(counts)
    }
}

/// The current cycle of a county at a position; empty before the first.
///
/// # Errors
/// When rows cannot be read.
pub(crate) async fn cycle(at: &Position, county: &str) -> Result<CurrentCycle, Problem> {
    Ok(last(at, &current_cycle(county)).await?.unwrap_or_default())
}

/// How many parcels a cycle made over-assessed, and how many no more, at a position.
///
/// # Errors
/// When rows cannot be read.
pub(crate) async fn delta(at: &Position, county: &str, cycle: &str) -> Result<DeltaCounts, Problem> {
    Ok(last(at, &delta_counts(county, cycle)).await?.unwrap_or_default())
}

/// How many parcels each rule flags in a county, at a position. A rule that flags none is absent.
///
/// # Errors
/// When rows cannot be read.
pub(crate) async fn flags(at: &Position, county: &str) -> Result<BTreeMap<String, i64>, Problem> {
    Ok(last(at, &flag_counts(county)).await?.unwrap_or_default())
}

/// The last row of the index under a name up to a position.
async fn last<T: DeserializeOwned>(at: &Position, name: &str) -> Result<Option<T>, Problem> {
    last_entry(at, TABLES.terms, name, 0).await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that counts follow the filter, and that both sums agree.
    #[test]
    fn sums_agree() {
        let cells = BTreeMap::from([("517/high", 2), ("593/low", 3), ("391/medium", 5)].map(|(cell, count)| (cell.to_owned(), count)));
        let of = |class: Option<&str>, least: Option<&str>| {
            let filter = Filter { class: class.map(str::to_owned), min_tier: least.map(str::to_owned), ..Filter::default() };
            let mut counts = Counts::none();
            counts.add(County::Cook, &filter, &cells);
            assert_eq!(counts.by_tier.values().sum::<i64>(), counts.total());
            counts.total()
        };
        assert_eq!([of(None, None), of(None, Some("high")), of(Some("391"), None), of(Some("391"), Some("high"))], [5, 2, 5, 0]);
    }
}
