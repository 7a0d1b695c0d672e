//! Sales of parcels: which of them count when an assessment is compared with a price.

use std::collections::{BTreeMap, BTreeSet};

use jiff::ToSpan;
use jiff::civil::Date;
use schemas::facts::sales::SaleFact;
use serde::{Deserialize, Serialize};

/// Sales count if they are at most so many years older than the year of assessment, or younger.
pub const SALE_YEARS: i64 = 3;
/// Why a repeat does not count, see [`repeats`].
pub const REPEAT: &str = "the parcel was sold at the same price within 365 days before";
/// The least price of a sale that counts, in dollars.
const PRICE_MIN: i64 = 10_000;
/// A sale at the price of one that counts at most so many days earlier is the same sale again.
const REPEAT_DAYS: i64 = 365;
/// The type of sales at arm's length, of a publisher that marks them.
const VALID_SALE: &str = "VALID SALE";
/// The words of deeds that are no sale on the market.
const OTHER_DEEDS: [&str; 2] = ["QUIT", "EXECUTOR"];

/// A sale of a parcel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sale {
    /// The day, `YYYY-MM-DD`.
    pub date: String,
    /// The price in dollars.
    pub price: Option<i64>,
    /// The number of the deed.
    pub document: String,
    /// Why it does not count; empty if it does.
    pub dropped: String,
}

impl Sale {
    /// A sale as it was published. `is_marked`: whether the publisher marks sales at arm's length.
    #[must_use]
    pub fn of(fact: &SaleFact, is_marked: bool) -> Self {
        let deed = fact.deed_type.to_uppercase();
        let dropped = if fact.price.is_none_or(|price| price < PRICE_MIN) || fact.is_low {
            "its price is below 10,000 dollars or unknown"
        } else if is_marked && fact.sale_type != VALID_SALE {
            "the publisher does not mark it as a valid sale"
        } else if fact.is_multisale || fact.parcels.is_some_and(|parcels| parcels > 1) {
            "several parcels were sold together"
        } else if fact.is_resale {
            "the parcel was sold again within 365 days"
        } else if fact.is_other_deed || OTHER_DEEDS.iter().any(|word| deed.contains(word)) {
            "its deed is a quit-claim or executor deed"
        } else {
            ""
        };
        Self { date: fact.date.clone(), price: fact.price, document: fact.document.clone(), dropped: dropped.to_owned() }
    }

    /// The price, if the sale counts for a year of assessment.
    fn counted(&self, year: i64) -> Option<i64> {
        let sold: i64 = self.date.get(..4)?.parse().ok()?;
        self.price.filter(|_| self.dropped.is_empty() && sold >= year - SALE_YEARS)
    }
}

/// The newest of some sales, by their numbers, that counts for a year of assessment and is no repeat, and its price in dollars.
#[must_use]
pub fn newest<'a>(sales: &'a BTreeMap<String, Sale>, repeats: &BTreeSet<&str>, year: i64) -> Option<(&'a Sale, i64)> {
    let counted = sales.iter().filter(|(number, _)| !repeats.contains(number.as_str()));
    let counted = counted.filter_map(|(number, sale)| Some((number, sale, sale.counted(year)?)));
    counted.max_by_key(|(number, sale, _)| (&sale.date, *number)).map(|(_, sale, price)| (sale, price))
}

/// The numbers of the sales that have the price of one that counts at most 365 days earlier: one publisher marks such sales, and another does not. A sale that
/// does not count makes no later one a repeat. Of two on one day the one with the lower number counts.
#[must_use]
pub fn repeats(sales: &BTreeMap<String, Sale>) -> BTreeSet<&str> {
    let (mut last_counted, mut repeats) = (BTreeMap::<Option<i64>, Date>::new(), BTreeSet::new());
    let candidates = sales.iter().filter(|(_, sale)| sale.dropped.is_empty());
    let mut candidates: Vec<(&str, &str, Option<i64>)> =
        candidates.map(|(number, sale)| (sale.date.as_str(), number.as_str(), sale.price)).collect();
    candidates.sort_unstable();
    for (date, number, price) in candidates {
        let Ok(day) = date.parse::<Date>() else { continue };
        let is_soon_after = |first: &Date| day <= first.saturating_add(REPEAT_DAYS.days());
        if last_counted.get(&price).is_some_and(is_soon_after) {
            repeats.insert(number);
        } else {
            last_counted.insert(price, day);
        }
    }
    repeats
}
