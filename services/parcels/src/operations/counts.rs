//! Counts of over-assessed parcels, and the current cycle, as decisions keep them, as of any position.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::county::County;
use crate::record::flag::{ExemptionYear, exemption_year, flag_counts};
use crate::record::{COUNTIES, CurrentCycle, DeltaCounts, TABLES, TIERS, current_cycle, delta_counts, strength, township_counts};
use feed::latest::{LatestAt, PositionKey};
use feed::position::Position;
use futures_util::future::try_join_all;
use operation::context::{Context, Part};
use operation::problem::Problem;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use texts::cook;

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
        let zeros = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), 0)).collect();
        Self { by_tier: zeros(&TIERS), by_county: zeros(&COUNTIES) }
    }

    /// Adds the counts of a township, or of a county: `CLASS/TIER` to a number.
    fn add(&mut self, county: County, filter: &Filter, cells: &Cells) {
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
    pub(crate) async fn read(ctx: &Context, at: &Position, filter: &Filter) -> Result<Self, Problem> {
        let is_of = |county: County| {
            let of_class = filter.class.as_deref().is_none_or(|class| County::of_class(class) == county);
            let of_township = filter.township.as_deref().is_none_or(|code| County::of_township(code) == county);
            of_class && of_township && filter.county.as_deref().is_none_or(|name| name == county.name())
        };
        let mut counts = Self::none();
        match filter.township.as_deref() {
            Some(code) => {
                let county = County::of_township(code);
                // No other code of this county is counted.
                let is_counted = county == County::Allegheny || cook::TOWNSHIPS.iter().any(|(known, _)| *known == code);
                if is_of(county) && is_counted {
                    counts.add(county, filter, &cells(at, county, code).await?);
                }
            }
            None => {
                for (county, cells) in Townships::of(ctx).at(at).await?.iter().filter(|(county, _)| is_of(*county)) {
                    counts.add(*county, filter, cells);
                }
            }
        }
        Ok(counts)
    }
}

/// The counts of a township, or of a county if the code is empty.
type Cells = BTreeMap<String, i64>;

/// The counts of a township, or of a county if the code is empty, at a position.
async fn cells(at: &Position, county: County, code: &str) -> Result<Cells, Problem> {
    Ok(last(at, &township_counts(county.name(), code)).await?.unwrap_or_default())
}

/// The counts of all townships at the last position of the view. They are dozens of rows, and stay the same until parcels change.
#[derive(Default)]
struct Townships(LatestAt<PositionKey, Arc<Vec<(County, Cells)>>>);

impl Part for Townships {}

impl Townships {
    /// The counts at a position, of each township with its county.
    async fn at(&self, at: &Position) -> Result<Arc<Vec<(County, Cells)>>, Problem> {
        if let Some(cells) = self.0.read(&at.key(), Arc::clone) {
            return Ok(cells);
        }
        let of_cook = cook::TOWNSHIPS.iter().map(|(code, _)| (County::Cook, *code));
        // The municipalities of the other county are not listed: what has no township is counted for all of it.
        let rows = of_cook.chain([(County::Allegheny, "")]);
        let reads = rows.map(async |(county, code)| Ok::<_, Problem>((county, cells(at, county, code).await?)));
        let cells = Arc::new(try_join_all(reads).await?);
        // Answers as of earlier times do not replace what most calls ask for.
        if at.is_latest() {
            self.0.set(at.key(), Arc::clone(&cells));
        }
        Ok(cells)
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

/// The newest tax year of which exemptions of a county were read, at a position; `None` if none were.
///
/// # Errors
/// When rows cannot be read.
pub(crate) async fn exemptions_until(at: &Position, county: &str) -> Result<Option<i64>, Problem> {
    let year: ExemptionYear = last(at, &exemption_year(county)).await?.unwrap_or_default();
    Ok(Some(year.tax_year).filter(|year| *year > 0))
}

/// The last row of the index under a name up to a position.
async fn last<T: DeserializeOwned>(at: &Position, name: &str) -> Result<Option<T>, Problem> {
    last_entry(at, TABLES.terms, name, 0).await
}

#[cfg(test)]
mod tests {
    use feed::testing::records::RecordView;
    use feed::testing::{START_MS, World};
    use fold::records::Rules;
    use schemas::position::Seq;
    use schemas::tables::Write;

    use super::*;
    use crate::record::Parcel;
    use crate::rules::ParcelsRules;

    /// Proves that counts are those of their position, also after others were kept, that a later change is counted, and that the counts of a township
    /// agree with those of all.
    #[tokio::test]
    async fn counts_as_of_a_position() {
        let world = World::new().await;
        let ctx = world.context(START_MS);
        let RecordView { view, checkpoint, .. } = RecordView::<Parcel>::new(&*world.store, &TABLES).await;
        let commit = async |rows: &[(u64, &str, &str, i64)]| {
            let write = |(seq, county, code, count): &(u64, &str, &str, i64)| {
                ParcelsRules::index(&township_counts(county, code), &format!("{{\"{}/high\":{count}}}", class(county)), Seq(*seq))
            };
            let writes: Vec<Write> = rows.iter().flat_map(write).collect();
            view.commit(writes, &checkpoint).await.unwrap();
        };
        let total = async |seq: u64, last: u64, township: Option<&str>| {
            let now = "2026-11-20T12:00:00Z".parse().unwrap();
            let at = Position { view: view.clone(), seq: Seq(seq), last: Seq(last), now, clock_time: now };
            let filter = Filter { township: township.map(str::to_owned), ..Filter::default() };
            Counts::read(&ctx, &at, &filter).await.unwrap().total()
        };
        commit(&[
            (3, cook::COUNTY, "77", 10),
            (5, cook::COUNTY, "70", 200),
            (7, "allegheny-pa", "", 3_000),
            (7, "allegheny-pa", "104", 3_000),
        ])
        .await;
        for _ in 0..2 {
            assert_eq!(
                (total(7, 7, None).await, total(5, 7, None).await, total(3, 7, None).await, total(2, 7, None).await),
                (3_210, 210, 10, 0)
            );
        }
        assert_eq!((total(7, 7, Some("77")).await, total(7, 7, Some("104")).await, total(7, 7, Some("00")).await), (10, 3_000, 0));
        commit(&[(8, cook::COUNTY, "77", 11)]).await;
        assert_eq!((total(8, 8, None).await, total(7, 8, None).await, total(8, 8, Some("77")).await), (3_211, 3_210, 11));
    }

    /// A commercial class of a county.
    fn class(county: &str) -> &'static str {
        if county == cook::COUNTY { "517" } else { "C411" }
    }

    /// Proves that counts follow the filter, and that both sums agree.
    #[test]
    fn sums_agree() {
        let cells = BTreeMap::from([("517/high", 2), ("593/low", 3), ("391/medium", 5)].map(|(cell, count)| (cell.to_owned(), count)));
        let total_of = |class: Option<&str>, least: Option<&str>| {
            let filter = Filter { class: class.map(str::to_owned), min_tier: least.map(str::to_owned), ..Filter::default() };
            let mut counts = Counts::none();
            counts.add(County::Cook, &filter, &cells);
            assert_eq!(counts.by_tier.values().sum::<i64>(), counts.total());
            counts.total()
        };
        assert_eq!(
            [total_of(None, None), total_of(None, Some("high")), total_of(Some("391"), None), total_of(Some("391"), Some("high"))],
            [5, 2, 5, 0]
        );
    }
}
