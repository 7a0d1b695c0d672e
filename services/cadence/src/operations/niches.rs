//! The niches and stores that an installation is configured for, and those that have been polled.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use crate::record::{Item, STORES_KEY, StoreState, TABLES, store_key};
use feed::position::Position;
use feed::suppression::without_hidden;
use operation::context::{Context, Part, store_problem, stored};
use operation::known_values::unknown_value;
use operation::problem::Problem;
use schemas::key;
use schemas::views::records::normal;
use view_store::View;

/// The configured niches and stores.
#[derive(Clone, Debug, Default)]
pub struct Niches {
    /// Labels by key.
    labels: BTreeMap<String, String>,
    /// Niches by host.
    stores: BTreeMap<String, String>,
}

impl Part for Niches {}

impl Niches {
    /// The niches by key and label, and the stores by host and niche.
    #[must_use]
    pub fn new(niches: impl Iterator<Item = (String, String)>, stores: impl Iterator<Item = (String, String)>) -> Self {
        Self { labels: niches.collect(), stores: stores.collect() }
    }

    /// Whether a store is configured. Without any configured store every store is.
    #[must_use]
    pub(crate) fn has_store(&self, host: &str) -> bool {
        self.stores.is_empty() || self.stores.contains_key(host)
    }

    /// Checks the store that a parameter names, or the store of the item that it names. Nothing is ever recorded of one that is not configured.
    ///
    /// # Errors
    /// `parameter-invalid` with the configured stores and the nearest one, without those that are hidden.
    pub(crate) fn check_store(&self, parameter: &'static str, text: &str, is_hidden: impl Fn(&str) -> bool) -> Result<(), Problem> {
        let host = text.split('/').next().unwrap_or_default().trim().to_lowercase();
        if self.has_store(&host) {
            return Ok(());
        }
        let known: Vec<&str> = self.stores.keys().map(String::as_str).filter(|host| !is_hidden(host)).collect();
        let unknown = unknown_value(&format!("the store {host:?}"), &host, &known);
        Err(Problem::parameter(parameter, format!("{parameter}: {unknown}")))
    }
}

/// A niche with its stores.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownNiche {
    /// The label; the key if none is configured.
    pub(crate) label: String,
    /// The hosts of its stores.
    pub(crate) stores: Vec<String>,
}

/// Whether operators hide a store.
pub(crate) fn is_hidden(view: &dyn View, host: &str) -> bool {
    let own = Item { id: host.to_owned(), store: host.to_owned(), ..Item::default() };
    without_hidden(view, own).is_none_or(|shown| shown.suppressed)
}

/// The niches at a position, by key, with the stores that are not hidden: the configured ones; without any configured store, also those of the stores that
/// have been polled.
///
/// # Errors
/// When rows cannot be read.
pub(crate) async fn known(ctx: &Context, at: &Position) -> Result<BTreeMap<String, KnownNiche>, Problem> {
    let configured = Niches::of(ctx);
    let mut niches: BTreeMap<String, KnownNiche> =
        configured.labels.iter().map(|(key, label)| (key.clone(), KnownNiche { label: label.clone(), stores: Vec::new() })).collect();
    for (host, niche) in &configured.stores {
        niches.entry(niche.clone()).or_default().stores.push(host.clone());
    }
    if configured.stores.is_empty() {
        for (host, state) in stores(ctx, at).await? {
            niches.entry(state.niche.clone()).or_default().stores.push(host);
        }
    }
    for (key, known) in &mut niches {
        known.stores.retain(|host| !is_hidden(&*at.view, host));
        if known.label.is_empty() {
            known.label.clone_from(key);
        }
    }
    Ok(niches)
}

/// How many of the stores that answers can be about are hidden: of the configured ones; without any configured store, of those that have been polled.
///
/// # Errors
/// When rows cannot be read.
pub(crate) async fn hidden_stores(ctx: &Context, at: &Position) -> Result<usize, Problem> {
    let configured = Niches::of(ctx);
    if configured.stores.is_empty() {
        return Ok(stores(ctx, at).await?.keys().filter(|host| is_hidden(&*at.view, host)).count());
    }
    Ok(configured.stores.keys().filter(|host| is_hidden(&*at.view, host)).count())
}

/// The states of stores by host, each with the stored row that it was decoded from. A row has hundreds of polls and days, and is the same until the next poll
/// of its store.
#[derive(Default)]
struct KnownStates(Mutex<HashMap<String, KnownState>>);

/// The bytes of a row, and what they are decoded to.
type KnownState = (Vec<u8>, Arc<StoreState>);

impl Part for KnownStates {}

impl KnownStates {
    /// The state of a store by its stored row: the one that is known, or decoded from the row.
    fn of_row(&self, host: &str, row: &[u8]) -> Result<Arc<StoreState>, Problem> {
        {
            let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, state)) = all.get(host).filter(|(known, _)| known == row) {
                return Ok(Arc::clone(state));
            }
        }
        let state: Arc<StoreState> = Arc::new(stored(TABLES.state, row)?);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(host.to_owned(), (row.to_vec(), Arc::clone(&state)));
        Ok(state)
    }
}

/// The stores that have been polled, by host.
///
/// # Errors
/// When rows cannot be read.
pub(crate) async fn stores(ctx: &Context, at: &Position) -> Result<BTreeMap<String, Arc<StoreState>>, Problem> {
    let table = TABLES.state;
    let Some(hosts) = at.view.get(table, &key![STORES_KEY]).await.map_err(store_problem)? else { return Ok(BTreeMap::new()) };
    let hosts: Vec<String> = stored(table, &hosts)?;
    let keys: Vec<_> = hosts.iter().map(|host| key![store_key(host)]).collect();
    let rows = at.view.get_many(table, &keys).await.map_err(store_problem)?;
    let states = hosts.into_iter().zip(rows).filter_map(|(host, row)| Some((host, row?)));
    let known = KnownStates::of(ctx);
    states.map(|(host, row)| known.of_row(&host, &row).map(|state| (host, state))).collect()
}

/// Finds a niche that answers can be about, in any case, and returns its key with it.
///
/// # Errors
/// `parameter-invalid` with the nearest known one.
pub(crate) async fn niche(ctx: &Context, at: &Position, text: &str) -> Result<(String, KnownNiche), Problem> {
    let mut niches = known(ctx, at).await?;
    let key = key_of(text, niches.keys())?;
    Ok(niches.remove_entry(&key).unwrap_or_default())
}

/// Checks that a filter names a niche that changes can be about: a configured one, or one of a store that was polled at any time.
///
/// # Errors
/// `parameter-invalid` with the nearest known one.
pub(crate) async fn check_niche(ctx: &Context, at: &Position, text: &str) -> Result<(), Problem> {
    let (configured, polled) = (Niches::of(ctx), stores(ctx, at).await?);
    let keys = configured.labels.keys().chain(configured.stores.values());
    key_of(text, keys.chain(polled.values().map(|state| &state.niche))).map(|_| ())
}

/// Finds the key that a text names, in any case. The error names the known ones, sorted and each once, as for the values of a closed list.
fn key_of<'a>(text: &str, mut keys: impl Iterator<Item = &'a String> + Clone) -> Result<String, Problem> {
    let known = keys.clone();
    keys.find(|key| normal(key) == normal(text)).cloned().ok_or_else(|| {
        let known: BTreeSet<&str> = known.map(String::as_str).collect();
        if known.is_empty() {
            return Problem::parameter("niche", format!("niche: {text:?} is not a niche, and none is known yet"));
        }
        let known: Vec<&str> = known.into_iter().collect();
        Problem::parameter("niche", format!("niche: {}", unknown_value(&format!("{text:?}"), text, &known)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the row of a store is decoded once until it changes, and each store by its own row.
    #[test]
    fn rows_are_decoded_once() {
        let states = KnownStates::default();
        let row = |niche: &str| serde_json::to_vec(&StoreState { niche: niche.to_owned(), ..StoreState::default() }).unwrap();
        let state_of = |host: &str, niche: &str| states.of_row(host, &row(niche)).unwrap();
        let first = state_of("a.example", "art");
        assert!(Arc::ptr_eq(&first, &state_of("a.example", "art")), "the same bytes are not decoded again");
        assert_eq!((state_of("a.example", "toys").niche.as_str(), state_of("b.example", "art").niche.as_str()), ("toys", "art"));
        assert!(states.of_row("a.example", b"{").is_err());
        assert_eq!(state_of("a.example", "toys").niche, "toys");
    }

    /// Proves that a niche is found in any case, and that an unknown one is refused with all known ones, each once, and the nearest.
    #[test]
    fn an_unknown_niche_is_refused_with_the_known_ones() {
        let known = ["toys", "sneakers", "toys"].map(str::to_owned);
        let key_named = |text: &str, known: &[String]| key_of(text, known.iter()).map_err(|problem| (problem.parameter, problem.detail));
        assert_eq!(key_named("Sneakers", &known), Ok("sneakers".to_owned()));
        let refused = |detail: &str| Err(("niche".to_owned(), detail.to_owned()));
        assert_eq!(key_named("x", &known), refused("niche: \"x\" is not one of sneakers, toys"));
        assert_eq!(key_named("sneaker", &known), refused("niche: \"sneaker\" is not one of sneakers, toys, did you mean \"sneakers\"?"));
        assert_eq!(key_named("x", &[]), refused("niche: \"x\" is not a niche, and none is known yet"));
    }

    /// Proves that a store, or an item of a store, that is not configured is refused with the nearest one, and that every store is known without any
    /// configured one.
    #[test]
    fn stores_are_a_closed_list() {
        let niches = || [("sneakers".to_owned(), "Sneakers".to_owned())].into_iter();
        let configured = Niches::new(niches(), [("shop.example".to_owned(), "sneakers".to_owned())].into_iter());
        for text in ["shop.example", " SHOP.example ", "shop.example/7"] {
            assert_eq!(configured.check_store("store", text, |_| false), Ok(()), "{text}");
        }
        for text in ["shp.example", "shp.example/7"] {
            let problem = configured.check_store("item", text, |_| false).unwrap_err();
            assert_eq!(problem.parameter, "item");
            assert!(
                problem.detail.contains("shp.example") && problem.detail.contains("did you mean \"shop.example\""),
                "{}",
                problem.detail
            );
        }
        let hidden = configured.check_store("item", "shp.example/7", |_| true).unwrap_err();
        assert!(!hidden.detail.contains("shop.example"), "{}", hidden.detail);
        assert_eq!(Niches::new(niches(), std::iter::empty()).check_store("store", "any.example", |_| false), Ok(()));
    }
}
