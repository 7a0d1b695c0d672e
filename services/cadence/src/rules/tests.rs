//! Tests of what facts mean for items: polls of one store, given to `decide`.

use std::collections::BTreeMap;

use crate::record::{DAY_MS, Restock};
use schemas::clock::rfc3339;
use schemas::event::FactKind;
use schemas::key;
use schemas::views::records::Row;

use super::*;
use fold::testing::{self, Folded};

const HOST: &str = "shop.example";
/// 2026-09-01T00:00:00Z.
const START_MS: i64 = 1_788_220_800_000;

/// A store with simulated polls.
struct Store {
    folded: Folded<Cadence>,
    now_ms: i64,
    /// How many changes have been looked at.
    seen: usize,
}

/// A variant as a poll shows it: id, product, available.
type PolledVariant<'a> = (&'a str, &'a str, bool);

impl Store {
    fn new() -> Self {
        Self { folded: Folded::default(), now_ms: START_MS, seen: 0 }
    }

    fn fact(&self, key: String, kind: FactKind, data: Option<StockFact>) -> Fact<StockFact> {
        Fact { upstream: "shopify".into(), ..testing::fact(key, kind, self.now_ms, data) }
    }

    fn variant(&mut self, (id, product, available): PolledVariant<'_>, title: &str, updated_ms: i64) {
        let data = StockFact {
            stream: "shopify".into(),
            kind: kind::VARIANT.into(),
            host: HOST.into(),
            product_id: product.into(),
            variant_id: id.into(),
            title: title.into(),
            variant_title: "M".into(),
            handle: title.to_lowercase().replace(' ', "-"),
            available,
            updated_at: rfc3339(updated_ms),
            ..StockFact::default()
        };
        let fact = self.fact(format!("shopify/{HOST}/v/{id}"), FactKind::Observed, Some(data));
        self.folded.decide(&fact);
    }

    fn gone(&mut self, id: &str) {
        let fact = self.fact(format!("shopify/{HOST}/v/{id}"), FactKind::Withdrawn, None);
        self.folded.decide(&fact);
    }

    fn end(&mut self, reason: &str) {
        self.end_with(reason, self.now_ms);
    }

    /// Ends a poll that saw edits up to a time.
    fn end_with(&mut self, reason: &str, newest_edit_ms: i64) {
        let data = StockFact {
            stream: "shopify".into(),
            kind: kind::POLL.into(),
            host: HOST.into(),
            niche: "sneakers".into(),
            at: rfc3339(self.now_ms),
            interval_s: 86_400,
            complete: reason.is_empty(),
            newest_edit: rfc3339(newest_edit_ms),
            reason: reason.into(),
            ..StockFact::default()
        };
        let fact = self.fact(format!("shopify/{HOST}/poll"), FactKind::Observed, Some(data));
        self.folded.decide(&fact);
        self.now_ms += DAY_MS;
    }

    /// A complete poll that shows these changes.
    fn poll(&mut self, shown: &[PolledVariant<'_>]) {
        let now_ms = self.now_ms;
        shown.iter().for_each(|one| self.variant(*one, "Trail Runner", now_ms));
        self.end("");
    }

    fn item(&self, product: &str) -> Item {
        let row = &self.folded.rows[&(TABLES.records.name, key![format!("{HOST}/{product}")])];
        serde_json::from_slice::<Row<Item>>(row).unwrap().record
    }

    fn state<T: serde::de::DeserializeOwned>(&self, key: &str) -> T {
        self.folded.state(key).unwrap()
    }

    /// What each change since the last call said had happened.
    fn take_happened(&mut self) -> Vec<String> {
        let new = &self.folded.changes[self.seen..];
        let of_change = |change: &RecordChange<Item>| {
            let after = change.after.as_ref()?;
            Some(if change.before.is_none() { "new".to_owned() } else { details(change.before.as_ref(), after).happened.join(" ") })
        };
        let happened = new.iter().filter_map(of_change).collect();
        self.seen = self.folded.changes.len();
        happened
    }
}

/// The time of a day's poll, as records write it.
fn day(day: i64) -> String {
    rfc3339(START_MS + day * DAY_MS)
}

/// Proves that variants which one poll sees restocked are one restock of their product, in the interval between the last poll that saw them
/// sold out and the first that saw them available, however many polls changed nothing in between.
#[test]
fn variants_of_one_poll_are_one_restock() {
    let mut store = Store::new();
    store.poll(&[("1", "7", true), ("2", "7", true), ("3", "8", true)]);
    assert_eq!(store.take_happened(), ["new", "new"]);
    store.poll(&[("1", "7", false), ("2", "7", false)]);
    assert_eq!(store.take_happened(), ["sold_out"]);
    store.poll(&[]);
    store.poll(&[("1", "7", true), ("2", "7", true)]);
    assert_eq!(store.take_happened(), ["restock"]);
    let item = store.item("7");
    assert_eq!(item.restocks, [Restock { after: day(2), before: day(3), variants: 2, trickle: false }]);
    assert_eq!((item.in_stock, item.variant_count, item.variants_in_stock, item.last_sold_out.as_str()), (true, 2, 2, day(1).as_str()));
    assert_eq!((item.first_seen.as_str(), item.url.as_str()), (day(0).as_str(), "https://shop.example/products/trail-runner"));
    assert_eq!(item.variants[0].restocks.len(), 1);
}

/// Proves that a poll that failed creates no restock and is not taken for one that saw the variant sold out: a restock that it saw is recorded
/// by the next complete poll, with the time of the poll that saw it.
#[test]
fn failed_polls_create_no_restock() {
    let mut store = Store::new();
    store.poll(&[("1", "7", true)]);
    store.poll(&[("1", "7", false)]);
    store.take_happened();
    store.end("status 429");
    let now_ms = store.now_ms;
    store.variant(("1", "7", true), "Trail Runner", now_ms);
    store.end("the connection failed");
    assert_eq!(store.take_happened(), [""; 0]);
    store.end("");
    assert_eq!(store.take_happened(), ["restock"]);
    assert_eq!(store.item("7").restocks, [Restock { after: day(1), before: day(3), variants: 1, trickle: false }]);
    let state: StoreState = store.state(&store_key(HOST));
    assert_eq!(state.polls.iter().map(|poll| poll.is_complete).collect::<Vec<_>>(), [true, true, false, false, true]);
    assert_eq!(store.state::<Vec<String>>(STORES_KEY), [HOST]);
}

/// Proves that a first appearance, a launch, a rename, a removal and a return are no restocks, and that a return as sold out can be followed by
/// one.
#[test]
fn other_events_are_no_restocks() {
    let mut store = Store::new();
    store.poll(&[("1", "7", false), ("2", "8", true)]);
    store.poll(&[("1", "7", true)]);
    assert_eq!(store.take_happened(), ["new", "new", "launch"]);
    let now_ms = store.now_ms;
    store.variant(("2", "8", true), "Hill Runner", now_ms);
    store.end("");
    assert_eq!(store.take_happened(), ["edited"]);
    store.gone("2");
    store.end("");
    assert_eq!(store.take_happened(), ["removed"]);
    assert!(store.item("8").withdrawn && !store.item("8").in_stock);
    store.poll(&[("2", "8", true)]);
    assert_eq!(store.take_happened(), ["relisted edited"]);
    assert!(!store.item("8").withdrawn && store.item("8").in_stock);
    store.gone("2");
    store.end("");
    store.poll(&[("2", "8", false)]);
    store.poll(&[("2", "8", true)]);
    assert_eq!(store.item("8").restocks.len(), 1);
    assert_eq!(store.item("7").restocks.len(), 0);
}

/// Proves that a single variant which the next poll sees sold out again is a trickle, and one that stays a poll longer is not.
#[test]
fn trickles_are_marked() {
    let mut store = Store::new();
    store.poll(&[("1", "7", true), ("2", "8", true)]);
    store.poll(&[("1", "7", false), ("2", "8", false)]);
    store.poll(&[("1", "7", true), ("2", "8", true)]);
    store.take_happened();
    store.poll(&[("1", "7", false)]);
    assert_eq!(store.take_happened(), ["trickle sold_out"]);
    store.poll(&[("2", "8", false)]);
    assert_eq!(store.take_happened(), ["sold_out"]);
    assert_eq!((store.item("7").restocks[0].trickle, store.item("8").restocks[0].trickle), (true, false));
}

/// Proves that an observation older than the stored one is ignored.
#[test]
fn outdated_pages_are_ignored() {
    let mut store = Store::new();
    store.poll(&[("1", "7", true)]);
    store.poll(&[("1", "7", false)]);
    store.take_happened();
    store.variant(("1", "7", true), "Trail Runner", START_MS);
    store.end("");
    let now_ms = store.now_ms;
    store.variant(("1", "7", false), "Trail Runner", now_ms);
    store.end("");
    assert_eq!((store.take_happened().len(), store.item("7").restocks.len()), (0, 0));
}

/// Proves that a store whose present state equals what an outdated copy said, so that the variant has no new fact, is believed at the first poll
/// of a present copy; not at the poll that read the outdated page, and not while copies are outdated.
#[test]
fn outdated_pages_that_become_true_are_believed() {
    let mut store = Store::new();
    store.poll(&[("1", "7", true), ("2", "8", true)]);
    store.poll(&[("1", "7", false), ("2", "8", false)]);
    store.take_happened();
    // One page is outdated, others are not.
    store.variant(("1", "7", true), "Trail Runner", START_MS);
    store.end("");
    // The whole list is outdated, then the store cannot be read.
    store.end_with("", START_MS);
    store.end("status 503");
    assert_eq!((store.take_happened(), store.item("7").in_stock), (Vec::new(), false));
    store.end("");
    assert_eq!((store.take_happened(), store.item("7").in_stock), (vec!["restock".to_owned()], true));
    assert_eq!(store.item("7").restocks, [Restock { after: day(3), before: day(5), variants: 1, trickle: false }]);
    // A new fact counts, and what the outdated copy said does not.
    store.variant(("2", "8", true), "Trail Runner", START_MS);
    store.end("");
    store.poll(&[("2", "8", false)]);
    store.end("");
    assert_eq!((store.take_happened(), store.item("8").restocks.len()), (Vec::new(), 0));
}

/// Proves that forecasts are scored from the fifth gap on and that the spread of a niche is that of its items once there are ten.
#[test]
fn niches_have_statistics() {
    let mut store = Store::new();
    let products: Vec<String> = (0..12).map(|product| product.to_string()).collect();
    let all = |available: bool| products.iter().map(|product| (product.as_str(), product.as_str(), available)).collect::<Vec<_>>();
    store.poll(&all(true));
    for _ in 0..8 {
        store.poll(&all(false));
        (0..4).for_each(|_| store.poll(&[]));
        store.poll(&all(true));
        // A restock that the next poll sees sold out again would be a trickle.
        store.poll(&[]);
    }
    let stats: NicheStats = store.state(&niche_key("sneakers"));
    assert_eq!(stats.spreads.values().sum::<u64>(), 12);
    assert_eq!(stats.scores.values().flat_map(BTreeMap::values).sum::<u64>(), 12 * 3);
    let newest = stats.days.last().unwrap();
    assert_eq!((newest.spread(), newest.correction(), newest.coverage()), (0.0, 1.0, Some(1.0)));
    assert_eq!(stats.at(START_MS).spread(), crate::forecast::SPREAD_DEFAULT);
    store.folded.assert_rebuilds();
}

/// Proves that a batch of more products than one part of the list holds is closed completely.
#[test]
fn large_batches_are_closed() {
    let mut store = Store::new();
    let products: Vec<String> = (0..150).map(|product| product.to_string()).collect();
    let shown: Vec<PolledVariant<'_>> = products.iter().map(|product| (product.as_str(), product.as_str(), true)).collect();
    store.poll(&shown);
    assert_eq!(store.take_happened().len(), 150);
    store.poll(&[]);
    assert_eq!(store.take_happened().len(), 0);
}
