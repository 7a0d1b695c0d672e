//! `GET /v1/predict`: when an item is likely to be restocked next.

use std::collections::BTreeSet;
use std::sync::Arc;

use operation::problem::Problem;
use operation::{Definition, Price};
use schemars::JsonSchema;
use schemas::clock::rfc3339;
use schemas::error_code::ErrorCode;
use schemas::forecast::{COVERAGE, METHOD};
use schemas::nearest_values::nearest_values;
use schemas::views::accounts::Tier;
use schemas::views::cadence::DAY_MS;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::catalog::{Catalog, Entry, KnownVariant};
use super::filter::Filter;
use super::followed::Cadence;
use super::niches::{Niches, niche};
use super::prediction::{Confidence, Prediction, predict};
use super::words::{have, words};
use crate::common::number::Number;
use crate::common::read::{Read, Reader};
use feed::position::day_text;
use operation::context::Part;

/// The price of a prediction in millionths of a US dollar.
const PRICE_MICROS: u64 = 20_000;
/// How many other matches are named.
const ALTERNATIVES_MAX: usize = 5;
const DISCLAIMER: &str = "An estimate from past observations; no promise of availability.";

/// Arguments of `predict_restock`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The key of a niche, see `list_niches`.
    #[schemars(length(min = 1, max = 100))]
    pub niche: String,
    /// The item to search: every word must be the beginning of a word of its title or vendor, in any case, with or without accents.
    #[schemars(length(min = 1, max = 200))]
    pub query: String,
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
    /// The last day for which every store has been polled; empty before the first complete run.
    pub through_date: String,
    /// The number of complete runs.
    pub snapshot_count: u64,
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
    /// Its beginning, RFC 3339.
    pub from: String,
    /// Its end, RFC 3339.
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

/// How past forecasts of a niche fitted, without a correction.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Fit {
    /// The key of the niche.
    pub niche: String,
    /// The number of forecasts in the 90 days before the end of the last day.
    pub forecasts: i64,
    /// The share of them whose window held the restock; null if there is none.
    pub coverage: Option<Number>,
    /// The first day of those forecasts, YYYY-MM-DD; empty if there is none.
    pub from: String,
    /// The last day.
    pub to: String,
}

/// The item that a query finds, and what is predicted for it.
struct Found {
    entry: Arc<Entry>,
    /// The variant that was asked for.
    variant: Option<KnownVariant>,
    events: Vec<i64>,
    prediction: Prediction,
    poll_gap_ms: i64,
    alternatives: Vec<Arc<Entry>>,
    catalog: Arc<Catalog>,
}

impl Arguments {
    /// Finds the item and predicts.
    async fn find(&self, reader: &mut Reader<Cadence>) -> Result<Found, Problem> {
        let (niche, _) = niche(reader.context(), &reader.at, &self.niche).await?;
        self.store.as_deref().map_or(Ok(()), |store| Niches::of(reader.context()).check_store("store", store))?;
        let wanted = words(&[&self.query]);
        if wanted.is_empty() {
            return Err(Problem::parameter("query", format!("query: {:?} has neither letters nor digits", self.query)));
        }
        let catalog = Catalog::of(reader.context(), &reader.at, &niche).await?;
        catalog.notes().for_each(|note| reader.note(note));
        let store = self.store.as_deref().map(|store| store.trim().to_lowercase());
        let fits = |entry: &&Arc<Entry>| store.as_deref().is_none_or(|store| entry.store == store) && have(&entry.words, &wanted);
        let mut found: Vec<Arc<Entry>> = catalog.entries.values().filter(fits).cloned().collect();
        found.sort_by(|a, b| {
            let rank = |entry: &Entry| std::cmp::Reverse(entry.events.len());
            (rank(a), &a.title, &a.id).cmp(&(rank(b), &b.title, &b.id))
        });
        let mut found = found.into_iter();
        let nothing = || {
            let titles: BTreeSet<String> = catalog.entries.values().map(|entry| entry.title.to_lowercase()).collect();
            let nearest: Vec<String> =
                nearest_values(&self.query, &titles, ALTERNATIVES_MAX).into_iter().map(|title| format!("{title:?}")).collect();
            let of_store = store.as_ref().map_or_else(String::new, |store| format!(" at {store}"));
            let hint = if nearest.is_empty() { String::new() } else { format!("; the nearest are {}", nearest.join(", ")) };
            Problem::new(ErrorCode::NotFound, format!("no item of the niche {niche:?}{of_store} matches {:?}{hint}", self.query))
                .about("query")
        };
        let entry = found.next().ok_or_else(nothing)?;
        let alternatives = found.take(ALTERNATIVES_MAX).collect();
        let variant = self.variant.as_deref().map(|wanted| variant_of(&entry, wanted)).transpose()?;
        let events = variant.as_ref().map_or_else(|| entry.events.clone(), |variant| variant.events.clone());
        let now_ms = reader.at.now.as_millisecond();
        let basis = catalog.basis(&entry, &events, now_ms);
        let (prediction, poll_gap_ms) = (predict(&basis), basis.poll_gap_ms);
        Ok(Found { entry, variant, events, prediction, poll_gap_ms, alternatives, catalog })
    }
}

/// Finds a variant by its title or id.
fn variant_of(entry: &Entry, wanted: &str) -> Result<KnownVariant, Problem> {
    let wanted = wanted.trim();
    let is_wanted = |variant: &&KnownVariant| variant.id == wanted || variant.title.to_lowercase() == wanted.to_lowercase();
    entry.variants.iter().find(is_wanted).cloned().ok_or_else(|| {
        let titles: Vec<&str> = entry.variants.iter().map(|variant| variant.title.as_str()).filter(|title| !title.is_empty()).collect();
        let hint = schemas::names::hint(wanted, titles.iter().copied());
        Problem::parameter("variant", format!("variant: {:?} has no variant {wanted:?}{hint}", entry.title))
    })
}

impl Found {
    fn item(&self) -> ShownItem {
        let entry = &self.entry;
        ShownItem {
            id: entry.id.clone(),
            item: entry.title.clone(),
            store: entry.store.clone(),
            niche: self.catalog.niche.clone(),
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
        let day = |days: i64| if stats.forecasts > 0 { day_text(days * DAY_MS) } else { String::new() };
        Fit {
            niche: self.catalog.niche.clone(),
            forecasts: stats.forecasts,
            coverage: stats.coverage().map(|coverage| Number::rounded(coverage, 3)),
            from: day(stats.day - 89),
            to: day(stats.day),
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
            description: "Of the items that match, the one with the most observed restocks is taken, then by title; `alternatives` names others. \
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
        let standing = reader.completeness().await?;
        let (item, tracker, calibration) = (found.item(), found.tracker(now_ms), found.fit(now_ms));
        let Found { events, prediction, poll_gap_ms, alternatives, .. } = found;
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
            through_date: standing.through_date,
            snapshot_count: standing.snapshot_count,
        })
    }
}
