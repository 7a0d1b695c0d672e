//! The cadence service: one record per product of a store, with its restocks.
//!
//! Facts about variants are collected until the fact of their poll arrives, which follows them in the log. A complete poll closes the batch:
//! all variants of a product that it saw restocked are one restock, and each product changes once. After a poll that is not complete the batch
//! stays open, because an unchanged variant of such a poll was not seen. What an outdated copy of a page says is not believed. Stores and niches have decision
//! state: the times of polls, and how well forecasts fitted.

mod batch;
mod outdated_variants;
mod stats;
mod variant;

use crate::record::{Item, ItemDetails, NicheStats, STORES_KEY, StoreState, TABLES, details, millis, niche_key, store_key};
use schemas::avro;
use schemas::event::{Fact, FactKind};
use schemas::facts::stock::{StockFact, kind};
use schemas::topics::{CHANGES_CADENCE, STOCK, Topic};
use schemas::views::records::{RecordChange, RecordTables};

use self::batch::{Observed, OpenBatch};
pub use self::variant::CadenceRules;
pub(crate) use self::variant::VariantState;
use self::variant::{item_id, variant_key};
use fold::records::{DecisionRow, Records, Rules, State};
use fold::service::Undecided;

/// How many stores are listed.
const STORES_MAX: usize = 10_000;

/// The service's two folds.
pub type Cadence = Records<CadenceRules>;

impl Rules for CadenceRules {
    type Fact = StockFact;
    type Record = Item;

    const TABLES: &'static RecordTables = &TABLES;
    const INPUTS: &'static [Topic] = &[STOCK];
    const CHANGES: &'static Topic = &CHANGES_CADENCE;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<StockFact>, avro::Error> {
        avro::decode(topic.name, value)
    }

    fn reads(fact: &Fact<StockFact>) -> Vec<DecisionRow> {
        let Some((host, rest)) = parts(&fact.key) else { return Vec::new() };
        let keys = match (rest.strip_prefix("v/"), &fact.data) {
            (Some(variant), Some(data)) => {
                vec![batch::head_key(host), variant_key(host, variant), batch::pending_key(host, &data.product_id)]
            }
            (Some(variant), None) => vec![batch::head_key(host), variant_key(host, variant)],
            (None, _) => vec![batch::head_key(host), store_key(host), STORES_KEY.to_owned()],
        };
        keys.into_iter().map(DecisionRow::State).collect()
    }

    fn change_details(record: &Item, change: &RecordChange<Item>) -> ItemDetails {
        details(change.before.as_ref(), record)
    }

    fn decide(state: &mut State<'_, Self>, fact: &Fact<StockFact>) -> Result<(), Undecided> {
        let Some((host, rest)) = parts(&fact.key) else {
            return Err(Undecided::Poison(format!("the key {} names neither a variant nor a poll", fact.key)));
        };
        match (fact.kind, &fact.data, rest.strip_prefix("v/")) {
            (FactKind::Observed, None, _) => Err(Undecided::Poison("an observed fact without its record".to_owned())),
            (FactKind::Observed, Some(data), Some(variant)) if data.kind == kind::VARIANT => {
                decide_variant(state, host, variant, fact, data)
            }
            (FactKind::Observed, Some(data), None) if data.kind == kind::POLL => decide_poll(state, host, data),
            (FactKind::Withdrawn | FactKind::Superseded, _, Some(variant)) => decide_withdrawn(state, host, variant, fact.observed_at),
            _ => Ok(()),
        }
    }
}

/// The host of a fact's key, and what follows it: `poll`, or `v/` and the id of a variant.
fn parts(key: &str) -> Option<(&str, &str)> {
    let (_stream, rest) = key.split_once('/')?;
    rest.split_once('/').filter(|(host, rest)| !host.is_empty() && !rest.is_empty())
}

/// Adds a variant's state to the open batch of its store.
fn decide_variant(
    state: &mut State<'_, CadenceRules>,
    host: &str,
    variant: &str,
    fact: &Fact<StockFact>,
    data: &StockFact,
) -> Result<(), Undecided> {
    let key = variant_key(host, variant);
    let before: Option<VariantState> = state.get(&key)?;
    let updated_ms = millis(&data.updated_at);
    let observed = Observed {
        variant: variant.to_owned(),
        title: data.variant_title.clone(),
        item: data.title.clone(),
        vendor: data.vendor.clone(),
        handle: data.handle.clone(),
        available: Some(data.available),
        before: before.clone(),
        seen_ms: fact.observed_at,
    };
    if let Some(before) = before.as_ref().filter(|before| updated_ms > 0 && updated_ms < before.updated_ms) {
        state.remember(&key, Some(&VariantState { is_outdated: true, ..before.clone() }))?;
        return outdated_variants::add(state, host, &data.product_id, observed);
    }
    let was = before.clone().unwrap_or_default();
    let has_moved = before.is_none() || was.removed || was.available != data.available;
    let now = VariantState {
        item: item_id(host, &data.product_id),
        available: data.available,
        ever: was.ever || data.available,
        removed: false,
        since_ms: if has_moved { fact.observed_at } else { was.since_ms },
        is_outdated: false,
        updated_ms: updated_ms.max(was.updated_ms),
    };
    state.remember(&key, Some(&now))?;
    batch::add(state, host, &data.product_id, observed)
}

/// Adds to the open batch of a store that a variant is gone.
fn decide_withdrawn(state: &mut State<'_, CadenceRules>, host: &str, variant: &str, seen_ms: i64) -> Result<(), Undecided> {
    let key = variant_key(host, variant);
    let Some(before): Option<VariantState> = state.get(&key)? else { return Ok(()) };
    let product = before.item.rsplit('/').next().unwrap_or_default().to_owned();
    state
        .remember(&key, Some(&VariantState { available: false, removed: true, is_outdated: false, since_ms: seen_ms, ..before.clone() }))?;
    let observed = Observed { variant: variant.to_owned(), available: None, before: Some(before), seen_ms, ..Observed::default() };
    batch::add(state, host, &product, observed)
}

/// Adds a poll to its store. A complete one closes the open batch.
fn decide_poll(state: &mut State<'_, CadenceRules>, host: &str, poll: &StockFact) -> Result<(), Undecided> {
    let at_ms = millis(&poll.at);
    let (store_key, niche_key) = (store_key(host), niche_key(&poll.niche));
    let mut store: StoreState = state.get(&store_key)?.unwrap_or_default();
    let mut niche: NicheStats = state.get(&niche_key)?.unwrap_or_default();
    let stats_before = niche.clone();
    niche.close_days(at_ms);
    let earlier = store.clone();
    store.niche.clone_from(&poll.niche);
    store.interval_s = poll.interval_s;
    store.reason.clone_from(&poll.reason);
    store.add(at_ms, poll.complete, poll.variants);
    if poll.complete {
        let newest_edit_ms = millis(&poll.newest_edit);
        if newest_edit_ms >= earlier.newest_edit_ms {
            outdated_variants::settle(state, host, at_ms, &earlier)?;
        }
        store.newest_edit_ms = newest_edit_ms.max(earlier.newest_edit_ms);
        let batch = OpenBatch::read(state, host)?;
        let closing = batch::Closing { host, niche: &poll.niche, at_ms, earlier: &earlier, now: &store };
        let restocks = batch.close(state, &closing, &mut niche)?;
        store.add_restocks(at_ms, restocks);
    }
    let mut stores: Vec<String> = state.get(STORES_KEY)?.unwrap_or_default();
    if let Err(place) = stores.binary_search_by(|known| known.as_str().cmp(host))
        && stores.len() < STORES_MAX
    {
        stores.insert(place, host.to_owned());
        state.remember(STORES_KEY, Some(&stores))?;
    }
    if niche != stats_before {
        state.remember(&niche_key, Some(&niche))?;
    }
    state.remember(&store_key, Some(&store))
}

#[cfg(test)]
mod tests;
