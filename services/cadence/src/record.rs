//! The rows of the cadence service: one record per product of a store, with its restocks.
//!
//! A **restock** of a variant is seen between two polls: the last one that saw it sold out and the first one that saw it available again, after
//! it had been available before. The variants of a product that one poll sees restocked are one restock of the product.

mod state;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use schemas::clock::DAY_MS;
use schemas::details::ChangeRecord;
use schemas::suppression::{Hides, RECORD, SHOP};
use schemas::views::records::{Place, Record, Term};
pub use state::{DayStats, NicheStats, Poll, PollCounts, PollDay, STORES_KEY, StoreState, niche_key, store_key};

/// How many restocks of a product are kept: the newest.
pub const RESTOCKS_MAX: usize = 64;
/// How many variants of a product are kept.
pub const VARIANTS_MAX: usize = 100;
/// How many restocks of a variant are kept: the newest.
pub const VARIANT_RESTOCKS_MAX: usize = 16;

/// A product of a store. `""` means unknown; times are RFC 3339 in UTC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Item {
    /// The host name of the store, slash, the id of the product.
    pub id: String,
    /// Title of the product.
    pub item: String,
    /// The host name of the store.
    pub store: String,
    /// Key of the niche.
    pub niche: String,
    /// Vendor of the product.
    pub vendor: String,
    /// URL of the product's page.
    pub url: String,
    /// Whether any variant can be bought.
    pub in_stock: bool,
    /// When a poll first saw it.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub first_seen: String,
    /// When a poll first saw it available, if earlier polls saw it sold out.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub launched: String,
    /// When a poll last saw that no variant could be bought any more.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub last_sold_out: String,
    /// Whether the product is gone from the store.
    pub withdrawn: bool,
    /// True if fields are hidden on request; only then present.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suppressed: bool,
    /// The newest restocks, oldest first; at most 64.
    pub restocks: Vec<Restock>,
    /// The number of its variants at the store.
    pub variant_count: i64,
    /// How many of them can be bought.
    pub variants_in_stock: i64,
    /// Variants in the order in which they were first seen; at most 100.
    pub variants: Vec<Variant>,
}

/// A restock of a product.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Restock {
    /// The last poll that saw the variants sold out.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub after: String,
    /// The first poll that saw them available.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub before: String,
    /// How many variants were restocked.
    pub variants: i64,
    /// Whether it was a single variant that the next poll saw sold out again, probably a returned unit.
    pub trickle: bool,
}

/// A variant of a product.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Variant {
    /// Id of the variant.
    pub id: String,
    /// Title of the variant (`M`); empty if the product has only one.
    pub title: String,
    /// Whether it can be bought.
    pub available: bool,
    /// Whether it is gone from the store.
    pub withdrawn: bool,
    /// The newest restocks of the variant, oldest first; at most 16.
    pub restocks: Vec<VariantRestock>,
}

/// A restock of a variant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct VariantRestock {
    /// The last poll that saw it sold out.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub after: String,
    /// The first poll that saw it available.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub before: String,
}

/// What a change of a product means.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ItemDetails {
    /// The restock that the change records, if it records one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restock: Option<Restock>,
    /// What happened: `restock`, `trickle`, `launch`, `sold_out`, `removed`, `relisted`, `edited`. A new product has none.
    pub happened: Vec<String>,
}

impl ChangeRecord for Item {
    type Details = ItemDetails;
}

impl Record for Item {
    const SEARCHED: &'static [&'static str] = &["item", "store", "id"];

    fn id(&self) -> &str {
        &self.id
    }

    fn is_listed(&self) -> bool {
        !self.withdrawn
    }

    fn terms(&self) -> Vec<Term> {
        [Term::new("niche", &self.niche), Term::new("store", &self.store), Term::new("id", &self.id), Term::new("item", &self.item)]
            .into_iter()
            .flatten()
            .collect()
    }

    fn places(&self) -> Vec<Place> {
        if self.withdrawn { Vec::new() } else { vec![Place { list: board(&self.niche), bucket: 0, rank: 0 }] }
    }
}

/// The name of the list of a niche's items. Their order depends on the day, so it is made when the list is read.
#[must_use]
pub fn board(niche: &str) -> String {
    format!("board/{niche}")
}

/// The milliseconds since 1970 of a time in a record; 0 if it cannot be read.
#[must_use]
pub fn millis(time: &str) -> i64 {
    time.parse::<Timestamp>().map_or(0, Timestamp::as_millisecond)
}

/// The middle of an interval, in milliseconds since 1970.
fn middle(after: &str, before: &str) -> i64 {
    let (after, before) = (millis(after), millis(before));
    after + (before - after) / 2
}

impl Restock {
    /// The time by which the restock is counted: the middle of its interval, in milliseconds since 1970.
    #[must_use]
    pub fn at_ms(&self) -> i64 {
        middle(&self.after, &self.before)
    }
}

impl VariantRestock {
    /// The time by which the restock is counted: the middle of its interval, in milliseconds since 1970.
    #[must_use]
    pub fn at_ms(&self) -> i64 {
        middle(&self.after, &self.before)
    }
}

impl Item {
    /// The times of the restocks that count, oldest first, in milliseconds since 1970: without trickles, unless there is nothing else.
    #[must_use]
    pub fn events(&self) -> Vec<i64> {
        let all = || self.restocks.iter();
        let mut events: Vec<i64> = all().filter(|restock| !restock.trickle).map(Restock::at_ms).collect();
        if events.is_empty() {
            events = all().map(Restock::at_ms).collect();
        }
        events.sort_unstable();
        events.dedup();
        events
    }

    /// The newest restock, unless the item had it before.
    #[must_use]
    pub fn new_restock(&self, before: Option<&Self>) -> Option<&Restock> {
        let known = before.and_then(|before| before.restocks.last());
        self.restocks.last().filter(|newest| known.is_none_or(|known| known.before != newest.before))
    }
}

/// The gaps between consecutive times, in days.
#[must_use]
pub fn gaps(events: &[i64]) -> Vec<f64> {
    events.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / DAY_MS as f64).collect()
}

/// Says what a change of an item means.
#[must_use]
pub fn details(before: Option<&Item>, after: &Item) -> ItemDetails {
    let Some(before) = before else { return ItemDetails::default() };
    let restock = after.new_restock(Some(before)).cloned();
    let trickles = |item: &Item| item.restocks.iter().filter(|restock| restock.trickle).count();
    let (variants_before, variants_after) = (&before.variants, &after.variants);
    let known = |id: &str| variants_before.iter().find(|variant| variant.id == id);
    let changed = |is: fn(&Variant, &Variant) -> bool| variants_after.iter().any(|now| known(&now.id).is_some_and(|known| is(known, now)));
    let texts = |item: &Item| [item.item.clone(), item.vendor.clone(), item.url.clone(), item.niche.clone()];
    let all = [
        ("restock", restock.is_some()),
        ("trickle", trickles(after) > trickles(before)),
        ("launch", before.launched.is_empty() && !after.launched.is_empty()),
        ("sold_out", changed(|before, now| before.available && !now.available && !now.withdrawn)),
        ("removed", changed(|before, now| !before.withdrawn && now.withdrawn)),
        ("relisted", changed(|before, now| before.withdrawn && !now.withdrawn)),
        ("edited", texts(before) != texts(after) || changed(|before, now| before.title != now.title)),
    ];
    let happened = all.into_iter().filter(|(_, has_happened)| *has_happened).map(|(name, _)| name.to_owned()).collect();
    ItemDetails { restock, happened }
}

/// What is hidden of a suppressed item: everything that shows what it is. Boards, searches and predictions leave it out.
const HIDDEN: &[&str] = &["item", "vendor", "url", "variants"];
/// What is hidden of the items of a suppressed shop: the shop as well. The id keeps the number of the product.
const HIDDEN_OF_SHOP: &[&str] = &["id", "store", "item", "vendor", "url", "variants"];
const HIDES: &[Hides] =
    &[Hides { kind: &SHOP, field: "store", hidden: HIDDEN_OF_SHOP }, Hides { kind: &RECORD, field: "id", hidden: HIDDEN }];

schemas::record_tables!("cadence", places, hides: HIDES);

#[cfg(test)]
mod tests {
    use super::*;
    use schemas::views::testing;

    fn item() -> Item {
        let restock = |after: &str, before: &str| Restock { after: after.into(), before: before.into(), variants: 2, trickle: false };
        Item {
            id: "shop.example/7001".into(),
            item: "Trail Runner 2".into(),
            store: "shop.example".into(),
            niche: "sneakers".into(),
            vendor: "Hill".into(),
            url: "https://shop.example/products/trail-runner-2".into(),
            in_stock: true,
            first_seen: "2026-09-01T00:00:00.000Z".into(),
            launched: "2026-09-02T00:00:00.000Z".into(),
            last_sold_out: "2026-09-05T00:00:00.000Z".into(),
            withdrawn: true,
            suppressed: false,
            restocks: vec![restock("2026-09-07T00:00:00.000Z", "2026-09-08T00:00:00.000Z")],
            variant_count: 3,
            variants_in_stock: 1,
            variants: vec![Variant {
                id: "9".into(),
                title: "M".into(),
                available: true,
                withdrawn: true,
                restocks: vec![VariantRestock { after: "a".into(), before: "b".into() }],
            }],
        }
    }

    /// Proves that a change with a value in every field reads back as written.
    #[test]
    fn changes_read_back() {
        let record = item();
        let before = Item { withdrawn: false, ..record.clone() };
        testing::assert_change_reads_back("changes.cadence", &record.id.clone(), before, record);
    }

    /// Proves that a restock stands for the middle of its interval, and that trickles count only if there is nothing else.
    #[test]
    fn events_leave_out_trickles() {
        let at = |day: u32, trickle| Restock {
            after: format!("2026-09-{:02}T00:00:00Z", day - 1),
            before: format!("2026-09-{day:02}T00:00:00Z"),
            variants: 1,
            trickle,
        };
        let item_with = |restocks: Vec<Restock>| Item { restocks, ..Item::default() };
        let mixed = item_with(vec![at(3, false), at(5, true), at(10, false)]);
        assert_eq!(mixed.events().len(), 2);
        assert_eq!(gaps(&mixed.events()), [7.0]);
        assert_eq!(rfc(mixed.events()[0]), "2026-09-02T12:00:00.000Z");
        assert_eq!(item_with(vec![at(3, true), at(5, true)]).events().len(), 2);
    }

    fn rfc(at_ms: i64) -> String {
        schemas::clock::rfc3339(at_ms)
    }

    /// Proves what a change says about a restock, a sale, a removal and a new title.
    #[test]
    fn changes_say_what_happened() {
        let before = item();
        let happened = |change: fn(&mut Item)| {
            let mut after = before.clone();
            change(&mut after);
            let ItemDetails { restock, happened } = details(Some(&before), &after);
            (restock.map(|restock| restock.before), happened.join(" "))
        };
        assert_eq!(details(None, &before), ItemDetails::default());
        assert_eq!(
            happened(|item| item.restocks.push(Restock { before: "z".into(), ..Restock::default() })),
            (Some("z".into()), "restock".into())
        );
        assert_eq!(happened(|item| item.restocks[0].trickle = true), (None, "trickle".into()));
        assert_eq!(happened(|item| item.variants[0].withdrawn = false), (None, "relisted".into()));
        assert_eq!(happened(|item| item.item.push('!')), (None, "edited".into()));
        let sold = Item { variants: vec![Variant { withdrawn: false, ..before.variants[0].clone() }], ..before.clone() };
        let mut after = sold.clone();
        after.variants[0].available = false;
        assert_eq!(details(Some(&sold), &after).happened, ["sold_out"]);
        after.variants[0].withdrawn = true;
        assert_eq!(details(Some(&sold), &after).happened, ["removed"]);
    }
}
