//! The open batch of a store: what facts said about its variants since its last complete poll.
//!
//! The batch is kept in rows that are small and are read by their keys: one per product, and the list of products in parts. The rows are not
//! deleted when the batch is closed; each names the batch that it belongs to.

use crate::record::{
    DAY_MS, Item, NicheStats, RESTOCKS_MAX, Restock, StoreState, VARIANT_RESTOCKS_MAX, VARIANTS_MAX, Variant, VariantRestock,
};
use schemas::clock::rfc3339;
use serde::{Deserialize, Serialize};

use super::stats::rescore;
use super::{CadenceRules, VariantState, item_id};
use fold::records::State;
use fold::undecided::{Undecided, all};

/// How many products one part of the list holds.
const PART_PRODUCTS: usize = 64;

/// What a fact said about a variant, and what was known before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Observed {
    /// Id of the variant.
    pub(super) variant: String,
    /// Title of the variant.
    pub(super) title: String,
    /// Title of the product.
    pub(super) item: String,
    pub(super) vendor: String,
    pub(super) handle: String,
    /// Whether it can be bought; `None` if it is gone from the store.
    pub(super) available: Option<bool>,
    /// The state before; `None` for a variant that was never seen.
    pub(super) before: Option<VariantState>,
    /// When the fact was observed, in milliseconds since 1970.
    pub(super) seen_ms: i64,
}

/// The number of the open batch of a store, and how many products it has.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Head {
    batch: i64,
    products: usize,
}

/// A part of the list of products of a batch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct ListPart {
    batch: i64,
    products: Vec<String>,
}

/// What facts said about the variants of one product, in the order of the facts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Pending {
    batch: i64,
    observed: Vec<Observed>,
}

pub(super) fn head_key(host: &str) -> String {
    format!("batch/{host}")
}

pub(super) fn pending_key(host: &str, product: &str) -> String {
    format!("pending/{host}/{product}")
}

fn part_key(host: &str, part: usize) -> String {
    format!("batch/{host}/{part}")
}

/// Adds an observation to the open batch of a store.
pub(super) fn add(state: &mut State<'_, CadenceRules>, host: &str, product: &str, observed: Observed) -> Result<(), Undecided> {
    let head: Head = state.get(&head_key(host))?.unwrap_or_default();
    let key = pending_key(host, product);
    let pending: Option<Pending> = state.get(&key)?;
    let mut pending = match pending.filter(|pending| pending.batch == head.batch) {
        Some(pending) => pending,
        None => {
            let part_key = part_key(host, head.products / PART_PRODUCTS);
            let part: Option<ListPart> = state.get(&part_key)?;
            let mut part = part.filter(|part| part.batch == head.batch).unwrap_or(ListPart { batch: head.batch, products: Vec::new() });
            part.products.push(product.to_owned());
            state.remember(&part_key, Some(&part))?;
            state.remember(&head_key(host), Some(&Head { products: head.products + 1, ..head }))?;
            Pending { batch: head.batch, observed: Vec::new() }
        }
    };
    pending.observed.push(observed);
    state.remember(&key, Some(&pending))
}

/// The open batch of a store: the products in the order in which facts named them, with their items.
pub(super) struct OpenBatch {
    head: Head,
    products: Vec<(String, Vec<Observed>, Option<Item>)>,
}

impl OpenBatch {
    pub(super) fn read(state: &mut State<'_, CadenceRules>, host: &str) -> Result<Self, Undecided> {
        let head: Head = state.get(&head_key(host))?.unwrap_or_default();
        let parts = head.products.div_ceil(PART_PRODUCTS);
        let parts: Vec<Option<ListPart>> = all((0..parts).map(|part| state.get(&part_key(host, part))))?;
        let products: Vec<String> = parts.into_iter().flatten().flat_map(|part| part.products).collect();
        let rows: Vec<(Option<Pending>, Option<Item>)> = all(products.iter().map(|product| {
            // Both are named before either is missed.
            let pending = state.get::<Pending>(&pending_key(host, product));
            let item = state.record(&item_id(host, product));
            Ok((pending?, item?))
        }))?;
        let products = products.into_iter().zip(rows).map(|(product, (pending, item))| {
            let observed = pending.map(|pending| pending.observed).unwrap_or_default();
            (product, observed, item)
        });
        Ok(Self { head, products: products.collect() })
    }

    /// Closes the batch: changes its items. Returns the number of restocks.
    pub(super) fn close(
        self,
        state: &mut State<'_, CadenceRules>,
        closing: &Closing<'_>,
        niche: &mut NicheStats,
    ) -> Result<i64, Undecided> {
        if self.products.is_empty() {
            return Ok(0);
        }
        state.remember(&head_key(closing.host), Some(&Head { batch: self.head.batch + 1, products: 0 }))?;
        let padding = (closing.now.poll_gap_ms(closing.at_ms) / 2) as f64 / DAY_MS as f64;
        let mut restocks = 0;
        for (product, observed, before) in self.products {
            let after = closing.changed(&product, before.clone(), &observed);
            restocks += i64::from(after.new_restock(before.as_ref()).is_some());
            rescore(niche, before.as_ref(), &after, padding);
            state.put(after)?;
        }
        Ok(restocks)
    }
}

/// The poll that closes a batch.
pub(super) struct Closing<'a> {
    pub(super) host: &'a str,
    pub(super) niche: &'a str,
    pub(super) at_ms: i64,
    /// The store before the poll.
    pub(super) earlier: &'a StoreState,
    /// The store with the poll.
    pub(super) now: &'a StoreState,
}

impl Closing<'_> {
    /// The time of the poll that a fact belongs to.
    fn poll_of(&self, seen_ms: i64) -> i64 {
        self.now.first_at_or_after(seen_ms).unwrap_or(self.at_ms)
    }

    /// Returns an item after the observations of its variants.
    fn changed(&self, product: &str, item: Option<Item>, observed: &[Observed]) -> Item {
        let is_new = item.is_none();
        let mut item = item.unwrap_or_else(|| Item {
            id: item_id(self.host, product),
            store: self.host.to_owned(),
            first_seen: rfc3339(observed.iter().map(|one| self.poll_of(one.seen_ms)).min().unwrap_or(self.at_ms)),
            ..Item::default()
        });
        item.niche = self.niche.to_owned();
        let was_in_stock = item.in_stock;
        let was_ever = observed.iter().any(|one| one.before.as_ref().is_some_and(|before| before.ever));
        let had_been_in_stock =
            was_ever || item.in_stock || !item.last_sold_out.is_empty() || !item.launched.is_empty() || !item.restocks.is_empty();
        let mut restocked: Vec<(i64, i64)> = Vec::new();
        let mut last_ms = self.at_ms;
        for one in observed {
            last_ms = self.poll_of(one.seen_ms);
            restocked.extend(self.observe(&mut item, one, last_ms));
        }
        // Times of one batch differ only after polls that were not complete.
        let (after, before) = (restocked.iter().map(|times| times.0).max(), restocked.iter().map(|times| times.1).min());
        if let (Some(after), Some(before)) = (after, before) {
            let variants = i64::try_from(restocked.len()).unwrap_or(i64::MAX);
            let after = after.min(before - 1);
            item.restocks.push(Restock { after: rfc3339(after), before: rfc3339(before), variants, trickle: false });
            let excess = item.restocks.len().saturating_sub(RESTOCKS_MAX);
            item.restocks.drain(..excess);
        }
        item.in_stock = item.variants_in_stock > 0;
        item.withdrawn = item.variant_count == 0;
        if was_in_stock && !item.in_stock && !item.withdrawn {
            item.last_sold_out = rfc3339(last_ms);
        }
        if !is_new && item.in_stock && !had_been_in_stock {
            item.launched = rfc3339(last_ms);
        }
        item
    }

    /// Applies one observation. Returns the interval of a restock, in milliseconds since 1970.
    fn observe(&self, item: &mut Item, one: &Observed, poll_ms: i64) -> Option<(i64, i64)> {
        let before = one.before.clone().unwrap_or_default();
        let (was_listed, was_available) = (one.before.is_some() && !before.removed, before.available && !before.removed);
        let is_available = one.available == Some(true);
        item.variant_count += i64::from(one.available.is_some()) - i64::from(was_listed);
        item.variants_in_stock += i64::from(is_available) - i64::from(was_available);
        if one.available.is_some() {
            item.item.clone_from(&one.item);
            item.vendor.clone_from(&one.vendor);
            item.url = url(self.host, &one.handle);
        }
        let is_restock = was_listed && !was_available && is_available && before.ever;
        let times = is_restock.then(|| {
            let seen_false = self.poll_of_past(before.since_ms);
            let after = self.earlier.last_complete_before(poll_ms).map_or(seen_false, |last| last.max(seen_false));
            (after.min(poll_ms - 1), poll_ms)
        });
        let place = item.variants.iter().position(|variant| variant.id == one.variant);
        let place = place.or_else(|| {
            (item.variants.len() < VARIANTS_MAX).then(|| {
                item.variants.push(Variant { id: one.variant.clone(), ..Variant::default() });
                item.variants.len() - 1
            })
        });
        let Some(variant) = place.and_then(|place| item.variants.get_mut(place)) else { return times };
        if one.available.is_some() {
            variant.title.clone_from(&one.title);
        }
        variant.available = is_available;
        variant.withdrawn = one.available.is_none();
        if let Some((after, before)) = times {
            variant.restocks.push(VariantRestock { after: rfc3339(after), before: rfc3339(before) });
            let excess = variant.restocks.len().saturating_sub(VARIANT_RESTOCKS_MAX);
            variant.restocks.drain(..excess);
        }
        if was_available && one.available == Some(false) {
            let last = variant.restocks.last().map(|restock| restock.before.clone());
            self.mark_trickle(item, last.as_deref(), poll_ms);
        }
        times
    }

    /// Marks the restock of a single variant that is sold out again at the next complete poll.
    fn mark_trickle(&self, item: &mut Item, restocked: Option<&str>, poll_ms: i64) {
        let previous = self.earlier.last_complete_before(poll_ms).map(rfc3339);
        if restocked.is_none() || restocked != previous.as_deref() {
            return;
        }
        if let Some(restock) = item.restocks.iter_mut().rev().find(|restock| Some(restock.before.as_str()) == restocked) {
            restock.trickle = restock.variants == 1;
        }
    }

    /// The time of the poll that an earlier fact belongs to.
    fn poll_of_past(&self, seen_ms: i64) -> i64 {
        self.earlier.first_at_or_after(seen_ms).unwrap_or(seen_ms)
    }
}

/// The URL of a product's page; that of the store if its name is unknown.
fn url(host: &str, handle: &str) -> String {
    if handle.is_empty() { format!("https://{host}/") } else { format!("https://{host}/products/{handle}") }
}
