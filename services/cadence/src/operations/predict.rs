//! `GET /v1/predict`: when an item is likely to be restocked next.

use std::sync::Arc;

use crate::forecast::{COVERAGE, METHOD};
use crate::record::DAY_MS;
use filter_values::nearest_values::nearest_values;
use filter_values::sorted_values::SortedValues;
use operation::problem::Problem;
use operation::{Definition, Price};
use schemars::JsonSchema;
use schemas::clock::rfc3339;
use schemas::error_code::ErrorCode;
use schemas::views::accounts::Tier;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::calibration::shown_days;
use super::catalog::{Catalog, KnownItem, KnownVariant};
use super::filter::Filter;
use super::niches::{KnownNiche, known, niche};
use super::polled_through::PolledThrough;
use super::prediction::{Confidence, Prediction, predict};
use super::watchable_feed::Cadence;
use super::words::{have, words};
use reads::number::Number;
use reads::read::{Read, Reader};

/// The price of a prediction in millionths of a US dollar.
const PRICE_MICROS: u64 = 20_000;
/// How many other matches are named.
const ALTERNATIVES_MAX: usize = 5;
const DISCLAIMER: &str = "An estimate from past observations; no promise of availability.";

/// Arguments of `predict_restock`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The id of an item, as boards, changes and watches show it. Give either this, or `niche` and `query`.
    #[schemars(length(min = 3, max = 300))]
    pub item: Option<String>,
    /// The key of a niche, see `list_niches`.
    #[schemars(length(min = 1, max = 100))]
    pub niche: Option<String>,
    /// The item to search: every word must be the beginning of a word of its title or vendor, in any case, with or without accents.
    #[schemars(length(min = 1, max = 200))]
    pub query: Option<String>,
    /// Only items of this store, by its host name.
    #[schemars(length(min = 1, max = 253))]
    pub store: Option<String>,
    /// The title or the id of one variant, for the restocks of that variant alone.
    #[schemars(length(min = 1, max = 300))]
    pub variant: Option<String>,
}

/// A prediction.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Predicted {
    /// The item.
    pub item: ShownItem,
    /// The window that holds the next restock with `probability`; null if too little is known.
    pub window: Option<Window>,
    /// The most likely time of the next restock, RFC 3339; null if too little is known.
    pub centre: Option<String>,
    /// The probability that the next restock lies in the window; null without a window.
    pub probability: Option<f64>,
    /// How sure the prediction is. `INSUFFICIENT` has no window: `tracker` says what is known.
    pub confidence: Confidence,
    /// Whether the first window has passed without a restock. The window is the one after it then, and the confidence one step lower.
    pub overdue: bool,
    /// The number of restocks that the prediction is made of.
    pub events_observed: usize,
    /// The whole days from the first observation of the item to the last complete poll of its store.
    pub history_days: i64,
    /// The median of the newest gaps between restocks, in days; null if there is none.
    pub median_gap_days: Option<Number>,
    /// How irregular they are: 1.4826 times their median absolute deviation, over the median; null if there is none.
    pub cv: Option<Number>,
    /// The usual gap between polls of the store, in hours.
    pub poll_gap_hours: Number,
    /// The share of the newest gaps that a forecast from the others holds; null under two gaps.
    pub hit_rate: Option<Number>,
    /// The method.
    pub method: &'static str,
    /// Why the prediction is as it is.
    pub reasons: Vec<String>,
    /// What was observed.
    pub tracker: Tracker,
    /// Other items that match the query, at most 5.
    pub alternatives: Vec<Alternative>,
    /// How past forecasts of the niche fitted.
    pub calibration: Fit,
    /// What a prediction is not.
    pub disclaimer: &'static str,
    /// How completely the stores have been polled.
    #[serde(flatten)]
    pub polled: PolledThrough,
}

/// The item of a prediction.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ShownItem {
    /// The host name of the store, slash, the id of the product.
    pub id: String,
    /// Title.
    pub item: String,
    /// The host name of the store.
    pub store: String,
    /// The key of the niche.
    pub niche: String,
    /// Title of the variant; empty for the product as a whole.
    pub variant: String,
    /// URL of the product's page.
    pub url: String,
}

/// A window of time, to the minute.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Window {
    /// The beginning of the window, RFC 3339.
    pub from: String,
    /// The end of the window, RFC 3339.
    pub to: String,
}

/// What was observed of an item.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tracker {
    /// Whether it can be bought.
    pub in_stock: bool,
    /// The last restock: the middle of its interval, RFC 3339; empty if there is none.
    pub last_restock: String,
    /// When a poll last saw it sold out for the first time, RFC 3339; empty if it never did.
    pub last_sold_out: String,
    /// The number of restocks in the last 30 days.
    #[serde(rename = "restocks30d")]
    pub restocks_30d: usize,
    /// The number of restocks in the last 90 days.
    #[serde(rename = "restocks90d")]
    pub restocks_90d: usize,
}

/// Another item that matches.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Alternative {
    /// The host name of the store, slash, the id of the product.
    pub id: String,
    /// Title.
    pub item: String,
    /// The host name of the store.
    pub store: String,
}

/// How past forecasts of a niche fitted, as they were given.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Fit {
    /// The key of the niche.
    pub niche: String,
    /// The number of forecasts that restocks of the last 90 days were compared with. Once windows of the niche are corrected, only those that were given so.
    pub forecasts: i64,
    /// The share of them whose window held the restock; null if there is none. `/v1/calibration` has the same.
    pub coverage: Option<Number>,
    /// The first day of those restocks, YYYY-MM-DD; empty if there is none.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub from: String,
    /// The last day of those restocks, YYYY-MM-DD; empty if there is none.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub to: String,
}

/// The item that a query finds, and what is predicted for it.
struct PredictedItem {
    entry: Arc<KnownItem>,
    /// The variant that was asked for.
    variant: Option<KnownVariant>,
    events: Vec<i64>,
    prediction: Prediction,
    poll_gap_ms: i64,
    alternatives: Vec<Arc<KnownItem>>,
    catalog: Arc<Catalog>,
}

/// The items that are asked for, the best match first. There is at least one.
struct Matches {
    catalog: Arc<Catalog>,
    entries: Vec<Arc<KnownItem>>,
}

/// What a call asks for.
enum Wanted<'a> {
    /// One item, by its id.
    Item(&'a str),
    /// The items of a niche that a query finds.
    Query { niche: &'a str, query: &'a str, store: Option<&'a str> },
}

impl Arguments {
    /// Checks which arguments are given together.
    fn wanted(&self) -> Result<Wanted<'_>, Problem> {
        let Self { item, niche, query, store, .. } = self;
        match (item.as_deref(), niche.as_deref(), query.as_deref()) {
            (Some(item), None, None) if store.is_none() => Ok(Wanted::Item(item.trim())),
            (None, Some(niche), Some(query)) => Ok(Wanted::Query { niche, query, store: store.as_deref() }),
            (Some(_), ..) => Err(Problem::parameter("item", "item: give either `item`, or `niche` and `query`, with or without `store`")),
            (None, Some(_), None) => Err(Problem::parameter("query", "query is missing: give `item`, or `niche` and `query`")),
            (None, None, Some(_)) => Err(Problem::parameter("niche", "niche is missing: `query` needs `niche` with it")),
            (None, None, None) => Err(Problem::parameter("item", "item is missing: give `item`, or `niche` and `query`")),
        }
    }

    /// Finds the item and predicts.
    async fn find(&self, reader: &mut Reader<Cadence>) -> Result<PredictedItem, Problem> {
        let Matches { catalog, entries } = match self.wanted()? {
            Wanted::Item(id) => by_id(reader, id).await?,
            Wanted::Query { niche, query, store } => by_query(reader, niche, query, store).await?,
        };
        let mut found = entries.into_iter();
        let entry = found.next().ok_or_else(|| Problem::new(ErrorCode::NotFound, "no item matches"))?;
        let alternatives = found.take(ALTERNATIVES_MAX).collect();
        let variant = self.variant.as_deref().map(|wanted| variant_of(&entry, wanted)).transpose()?;
        let events = variant.as_ref().map_or_else(|| entry.events.clone(), |variant| variant.events.clone());
        let now_ms = reader.at.now.as_millisecond();
        let basis = catalog.basis(&entry, &events, now_ms);
        let (prediction, poll_gap_ms) = (predict(&basis), basis.poll_gap_ms);
        Ok(PredictedItem { entry, variant, events, prediction, poll_gap_ms, alternatives, catalog })
    }
}

/// Finds an item by its id, in the niche of its store.
async fn by_id(reader: &mut Reader<Cadence>, id: &str) -> Result<Matches, Problem> {
    let nothing = || Problem::new(ErrorCode::NotFound, format!("no item has the id {id:?}")).about("item");
    // Host names have no case; the numbers of products have no letters.
    let id = id.to_lowercase();
    let host = id.split_once('/').map(|(host, _)| host).ok_or_else(nothing)?;
    let niches = known(reader.context(), &reader.at).await?;
    let (niche, _) = niches.into_iter().find(|(_, known)| known.stores.iter().any(|store| store == host)).ok_or_else(nothing)?;
    let catalog = Catalog::of(reader.context(), &reader.at, &niche).await?;
    let gone = || {
        let notes: String = catalog.notes().map(|note| format!("; {note}")).collect();
        Problem::new(ErrorCode::NotFound, format!("the item {id:?} is not at its store now{notes}")).about("item")
    };
    let entry = catalog.items.entries.get(&id).cloned().ok_or_else(gone)?;
    Ok(Matches { catalog, entries: vec![entry] })
}

/// Finds the items of a niche whose title and vendor match a query: those whose title is the query first, then the most often restocked.
async fn by_query(reader: &mut Reader<Cadence>, key: &str, query: &str, store: Option<&str>) -> Result<Matches, Problem> {
    let (niche, known) = niche(reader.context(), &reader.at, key).await?;
    let wanted = words(&[query]);
    if wanted.is_empty() {
        return Err(Problem::parameter("query", format!("query: {query:?} has neither letters nor digits")));
    }
    let store = store.map(|store| store_of(&niche, &known, store)).transpose()?;
    let catalog = Catalog::of(reader.context(), &reader.at, &niche).await?;
    catalog.notes().for_each(|note| reader.note(note));
    let fits = |entry: &&Arc<KnownItem>| store.as_deref().is_none_or(|store| entry.store == store) && have(&entry.words, &wanted);
    let mut entries: Vec<Arc<KnownItem>> = catalog.items.entries.values().filter(fits).cloned().collect();
    entries.sort_by_cached_key(|entry| rank(entry, &wanted));
    if entries.is_empty() {
        let titles: SortedValues = catalog.items.entries.values().map(|entry| entry.title.to_lowercase()).collect();
        let nearest: Vec<String> = nearest_values(query, &titles, ALTERNATIVES_MAX).into_iter().map(|title| format!("{title:?}")).collect();
        let of_store = store.as_ref().map_or_else(String::new, |store| format!(" at {store}"));
        let hint = if nearest.is_empty() { String::new() } else { format!("; the nearest are {}", nearest.join(", ")) };
        let nothing = format!("no item of the niche {niche:?}{of_store} matches {query:?}{hint}");
        return Err(Problem::new(ErrorCode::NotFound, nothing).about("query"));
    }
    Ok(Matches { catalog, entries })
}

/// The place of an item among those that match the words of a query: the smallest first.
fn rank(entry: &KnownItem, wanted: &[String]) -> (bool, std::cmp::Reverse<usize>, String, String) {
    let is_titled = words(&[&entry.title]) == wanted;
    (!is_titled, std::cmp::Reverse(entry.events.len()), entry.title.clone(), entry.id.clone())
}

/// Finds a store of a niche by its host name, in any case.
fn store_of(niche: &str, known: &KnownNiche, text: &str) -> Result<String, Problem> {
    let host = text.trim().to_lowercase();
    known.stores.iter().find(|store| **store == host).cloned().ok_or_else(|| {
        let hint = schemas::names::hint(&host, known.stores.iter().map(String::as_str));
        Problem::parameter("store", format!("store: {text:?} is not a store of the niche {niche:?}, see `/stores`{hint}"))
    })
}

/// Finds a variant by its title or id.
fn variant_of(entry: &KnownItem, wanted: &str) -> Result<KnownVariant, Problem> {
    let wanted = wanted.trim();
    let is_wanted = |variant: &&KnownVariant| variant.id == wanted || variant.title.to_lowercase() == wanted.to_lowercase();
    entry.variants.iter().find(is_wanted).cloned().ok_or_else(|| {
        let titles: Vec<&str> = entry.variants.iter().map(|variant| variant.title.as_str()).filter(|title| !title.is_empty()).collect();
        let hint = schemas::names::hint(wanted, titles.iter().copied());
        Problem::parameter("variant", format!("variant: {:?} has no variant {wanted:?}{hint}", entry.title))
    })
}

impl PredictedItem {
    fn item(&self) -> ShownItem {
        let entry = &self.entry;
        ShownItem {
            id: entry.id.clone(),
            item: entry.title.clone(),
            store: entry.store.clone(),
            niche: self.catalog.items.niche.clone(),
            variant: self.variant.as_ref().map(|variant| variant.title.clone()).unwrap_or_default(),
            url: entry.url.clone(),
        }
    }

    fn tracker(&self, now_ms: i64) -> Tracker {
        let since = |days: i64| self.events.iter().filter(|at| **at >= now_ms - days * DAY_MS).count();
        Tracker {
            in_stock: self.variant.as_ref().map_or(self.entry.in_stock, |variant| variant.is_available),
            last_restock: self.events.last().map_or_else(String::new, |at| rfc3339(*at)),
            last_sold_out: self.entry.last_sold_out.clone(),
            restocks_30d: since(30),
            restocks_90d: since(90),
        }
    }

    fn fit(&self, now_ms: i64) -> Fit {
        let stats = self.catalog.stats.at(now_ms);
        let (from, to) = shown_days(&stats);
        Fit {
            niche: self.catalog.items.niche.clone(),
            forecasts: stats.given,
            coverage: stats.coverage().map(|coverage| Number::rounded(coverage, 4)),
            from,
            to,
        }
    }
}

/// A time to the minute.
fn to_the_minute(at_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(at_ms).map_or_else(|_| String::new(), |at| format!("{at:.0}"))
}

impl Read for Arguments {
    type Service = Cadence;
    type Answer = Predicted;

    fn definition() -> Definition {
        Definition {
            name: "predict_restock",
            path: "/v1/predict",
            when: "Use it for the next restock of one item.",
            summary: "The window in which an item is likely to be restocked next, with its confidence.",
            description: "With `item`, of that item. Else, of the items that match, the one whose title is the query is taken, then the one with \
                the most observed restocks, then by title; `alternatives` names others. \
                The window holds the next restock in 80 % of cases (method `log-t/1`, see `/v1/calibration`). `confidence`: HIGH needs 8 \
                restocks, regular, over 6 usual gaps; MEDIUM 5 over 3; under 3 restocks, 14 days of history, or with many polls missing it is \
                INSUFFICIENT, without a window. An estimate from past observations; no promise of availability.",
            price: Price::PerCall { micros: PRICE_MICROS, free_from: Tier::Pro },
            errors: &[ErrorCode::AsOfInvalid, ErrorCode::NotFound],
            example: json!({ "niche": "sneakers", "query": "runner" }),
            ..Definition::read()
        }
    }

    async fn preview(self, _filter: Filter, reader: &mut Reader<Cadence>) -> Result<Option<Value>, Problem> {
        let found = self.find(reader).await?;
        let now_ms = reader.at.now.as_millisecond();
        Ok(Some(json!({
            "item": found.entry.title,
            "store": found.entry.store,
            "confidence": found.prediction.confidence,
            "eventsObserved": found.events.len(),
            "historyDays": found.prediction.history_days,
            "tracker": found.tracker(now_ms),
        })))
    }

    async fn answer(self, _filter: Filter, reader: &mut Reader<Cadence>) -> Result<Predicted, Problem> {
        let found = self.find(reader).await?;
        let now_ms = reader.at.now.as_millisecond();
        let polled = PolledThrough::read(reader).await?;
        let (item, tracker, calibration) = (found.item(), found.tracker(now_ms), found.fit(now_ms));
        let PredictedItem { events, prediction, poll_gap_ms, alternatives, .. } = found;
        let window = prediction.window.map(|(from, to)| Window { from: to_the_minute(from), to: to_the_minute(to) });
        let alternatives =
            alternatives.iter().map(|entry| Alternative { id: entry.id.clone(), item: entry.title.clone(), store: entry.store.clone() });
        Ok(Predicted {
            item,
            probability: window.is_some().then_some(COVERAGE),
            window,
            centre: prediction.centre.map(to_the_minute),
            confidence: prediction.confidence,
            overdue: prediction.overdue,
            events_observed: events.len(),
            history_days: prediction.history_days,
            median_gap_days: prediction.median_gap_days.map(|days| Number::rounded(days, 2)),
            cv: prediction.variation.map(|cv| Number::rounded(cv, 3)),
            poll_gap_hours: Number::rounded(poll_gap_ms as f64 / 3_600_000.0, 2),
            hit_rate: prediction.hit_rate.map(|rate| Number::rounded(rate, 2)),
            method: METHOD,
            reasons: prediction.reasons,
            tracker,
            alternatives: alternatives.collect(),
            calibration,
            disclaimer: DISCLAIMER,
            polled,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::record::{Item, Restock};

    use super::*;

    fn entry(id: &str, title: &str, restocks: usize) -> KnownItem {
        let restock = |n: usize| {
            let day = |hour: usize| format!("2026-01-{:02}T{hour:02}:00:00Z", n + 1);
            Restock { after: day(0), before: day(12), variants: 2, trickle: false }
        };
        let restocks = (0..restocks).map(restock).collect();
        KnownItem::new(Item { id: id.to_owned(), item: title.to_owned(), vendor: "Hill".to_owned(), restocks, ..Item::default() })
    }

    /// Proves that an item whose title is the query comes before those whose title only begins so, however often they were restocked; that the number
    /// of restocks decides among the others, then title and id.
    #[test]
    fn equal_titles_come_first() {
        let entries = [
            entry("a/1", "Court Print 11", 9),
            entry("a/2", "Court Print 1", 2),
            entry("a/3", "Court Print 10", 9),
            entry("b/1", "COURT  PRINT 1!", 2),
            entry("a/4", "Court Print 1 Deluxe", 12),
        ];
        let found_by = |query: &str| {
            let wanted = words(&[query]);
            let mut found: Vec<&KnownItem> = entries.iter().filter(|entry| have(&entry.words, &wanted)).collect();
            found.sort_by_cached_key(|entry| rank(entry, &wanted));
            found.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(found_by("court print 1"), ["b/1", "a/2", "a/4", "a/3", "a/1"]);
        assert_eq!(found_by("Court Print 10"), ["a/3"]);
        assert_eq!(found_by("court hill"), ["a/4", "a/3", "a/1", "b/1", "a/2"]);
        assert_eq!(found_by("print court 1"), ["a/4", "a/3", "a/1", "b/1", "a/2"]);
    }

    /// Proves which arguments belong together, and that the missing or superfluous one is named.
    #[test]
    fn arguments_that_belong_together() {
        let check_arguments = |given: Value| {
            let arguments: Arguments = serde_json::from_value(given).unwrap();
            arguments.wanted().map(|_| ()).map_err(|problem| problem.parameter)
        };
        for good in [
            json!({ "item": "a/1" }),
            json!({ "item": "a/1", "variant": "M" }),
            json!({ "niche": "n", "query": "q" }),
            json!({ "niche": "n", "query": "q", "store": "a" }),
        ] {
            assert_eq!(check_arguments(good.clone()), Ok(()), "{good}");
        }
        for (bad, parameter) in [
            (json!({}), "item"),
            (json!({ "niche": "n" }), "query"),
            (json!({ "query": "q" }), "niche"),
            (json!({ "store": "a" }), "item"),
            (json!({ "item": "a/1", "niche": "n" }), "item"),
            (json!({ "item": "a/1", "query": "q" }), "item"),
            (json!({ "item": "a/1", "store": "a" }), "item"),
        ] {
            assert_eq!(check_arguments(bad.clone()), Err(parameter.to_owned()), "{bad}");
        }
    }

    /// Proves that a store that the niche does not have is named, with the nearest one that it has.
    #[test]
    fn unknown_stores_are_named() {
        let known = KnownNiche { label: String::new(), stores: vec!["harbor-kicks.example".into(), "north.example".into()] };
        assert_eq!(store_of("n", &known, " North.EXAMPLE "), Ok("north.example".to_owned()));
        for (text, part) in [("nort.example", "did you mean \"north.example\"?"), ("zzz", "is not a store"), ("", "is not a store")] {
            let problem = store_of("n", &known, text).unwrap_err();
            assert!(problem.parameter == "store" && problem.detail.contains(part), "{problem:?}");
        }
    }
}
