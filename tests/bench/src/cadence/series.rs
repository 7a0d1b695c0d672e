//! The items of the benchmark: their restocks, and the facts that a daily poll gives.

use std::path::{Path, PathBuf};

use cadence::operations::niches::Niches;
use cadence::record::{DAY_MS, TABLES};
use event_log::Append;
use schemas::avro::Encoder;
use schemas::clock::{Clock, rfc3339};
use schemas::event::Head;
use schemas::facts::FactData;
use schemas::facts::stock::{StockFact, kind};
use schemas::topics::STOCK;

use crate::engine::Engine;
use crate::filters::scattered;
use crate::{Failure, Settings, facts};

/// The most items of a niche, which has one store.
const NICHE_ITEMS: u64 = 5_000;
/// The most items.
const ITEMS_MAX: u64 = 200_000;
/// Restocks of an item.
const RESTOCKS: u64 = 10;
/// Days of daily polls; every item has had its restocks by then.
pub(super) const DAYS: i64 = 120;
const APPEND_RECORDS: usize = 2_000;

const HEADS: [&str; 10] = ["Trail", "Harbor", "Court", "Summit", "Canyon", "Meadow", "Anchor", "Beacon", "Cinder", "Drift"];
const TAILS: [&str; 10] = ["Runner", "Low", "High", "Trainer", "Sandal", "Hoodie", "Crew", "Overshirt", "Figure", "Print"];

/// Returns the number of items.
pub(super) fn items(settings: &Settings) -> u64 {
    settings.records.clamp(1, ITEMS_MAX)
}

/// Returns the directory of the engine's data.
pub(super) fn data_dir(settings: &Settings) -> PathBuf {
    settings.dir.join(format!("cadence-{}", items(settings)))
}

/// Returns the number of niches.
pub(super) fn niches(items: u64) -> u64 {
    items.div_ceil(NICHE_ITEMS)
}

/// Returns the number of the niche of an item.
pub(super) fn niche_of(item: u64) -> u64 {
    item / NICHE_ITEMS
}

/// Returns the title of an item.
pub(super) fn title(item: u64) -> String {
    let (head, tail) = (item % 10, item / 10 % 10);
    let word_at = |list: &[&'static str; 10], at: u64| usize::try_from(at).ok().and_then(|at| list.get(at)).copied().unwrap_or_default();
    format!("{} {} {item:06}", word_at(&HEADS, head), word_at(&TAILS, tail))
}

/// Returns the days of the polls that see an item restocked, oldest first. The poll of the day before sees it sold out.
pub(super) fn restock_days(item: u64) -> Vec<i64> {
    let base = 3 + scattered(item) % 8;
    let mut day = 0;
    let mut days = Vec::new();
    for n in 0..RESTOCKS {
        // 0.6 to 1.4 times the item's usual gap.
        let factor = 60 + scattered(item * RESTOCKS + n) % 81;
        day += i64::try_from((base * factor / 100).max(2)).unwrap_or(i64::MAX);
        days.push(day);
    }
    days.retain(|day| *day < DAYS);
    days
}

/// Returns the paths of questions: a third names an item exactly, a third by its number, a third by words that fifty items of a niche have.
pub(super) fn questions(items: u64, count: usize) -> Vec<String> {
    let question = |n: usize| {
        let item = scattered(n as u64) % items.max(1);
        let title = title(item);
        let query = match n % 3 {
            0 => title.replace(' ', "%20"),
            1 => format!("{item:06}"),
            _ => title.rsplit_once(' ').map(|(words, _)| words.replace(' ', "%20")).unwrap_or_default(),
        };
        format!("predict?niche=n{}&query={query}", niche_of(item))
    };
    (0..count).map(question).collect()
}

/// Appends the facts of all polls and waits until they are decided. Returns their number; 0 if an earlier run did it.
pub(super) async fn fill(engine: &Engine, settings: &Settings, dir: &Path) -> Result<u64, Failure> {
    let complete = dir.join("complete");
    if complete.exists() {
        return Ok(0);
    }
    if engine.log.end(&STOCK, 0).await?.0 > 0 {
        return Err(format!("{} is incomplete: remove it", dir.display()).into());
    }
    let items = items(settings);
    let first_ms = Clock::System.now_ms() - DAYS * DAY_MS;
    let mut encoder = Encoder::new(STOCK.name)?;
    let mut heads = vec![Head::default(); usize::try_from(items)?];
    let mut poll_heads = vec![Head::default(); usize::try_from(niches(items))?];
    let flips = flips(items);
    let live = engine.store.live(TABLES.view).await?;
    let mut facts = 0;
    for (day, flips) in (0_i64..).zip(&flips) {
        let at_ms = first_ms + day * DAY_MS;
        let mut batch = Vec::with_capacity(APPEND_RECORDS);
        for (item, available) in flips {
            let Some(head) = heads.get_mut(usize::try_from(*item)?) else { continue };
            batch.push(variant(&mut encoder, head, *item, *available, at_ms)?);
            facts += 1;
            if batch.len() >= APPEND_RECORDS {
                engine.log.append(std::mem::take(&mut batch)).await?;
            }
        }
        for (niche, head) in (0..).zip(&mut poll_heads) {
            batch.push(poll(&mut encoder, head, niche, at_ms)?);
            facts += 1;
        }
        engine.log.append(batch).await?;
        view_store::engine::wait_past(&*live, &STOCK, 0, engine.log.end(&STOCK, 0).await?).await?;
    }
    std::fs::write(complete, facts.to_string())?;
    Ok(facts)
}

/// Returns for each day the items whose availability has changed, with the new one.
fn flips(items: u64) -> Vec<Vec<(u64, bool)>> {
    let mut flips: Vec<Vec<(u64, bool)>> = (0..DAYS).map(|_| Vec::new()).collect();
    let mut add = |day: i64, flip: (u64, bool)| {
        if let Some(day) = usize::try_from(day).ok().and_then(|day| flips.get_mut(day)) {
            day.push(flip);
        }
    };
    for item in 0..items {
        add(0, (item, true));
        for day in restock_days(item) {
            add(day - 1, (item, false));
            add(day, (item, true));
        }
    }
    flips
}

/// Returns the niches and stores, as a configuration names them.
pub(super) fn configured(items: u64) -> Niches {
    let niches = || (0..niches(items)).map(|niche| (niche, format!("n{niche}")));
    Niches::new(niches().map(|(_, key)| (key.clone(), key)), niches().map(|(niche, key)| (host(niche), key)))
}

fn host(niche: u64) -> String {
    format!("store-{niche}.example")
}

fn variant(encoder: &mut Encoder, head: &mut Head, item: u64, available: bool, at_ms: i64) -> Result<Append, Failure> {
    let host = host(niche_of(item));
    let id = (8_200_000_000_000 + item).to_string();
    let key = format!("shopify/{host}/v/{id}");
    let title = title(item);
    let fact = StockFact {
        stream: "shopify".to_owned(),
        kind: kind::VARIANT.to_owned(),
        host,
        product_id: id.clone(),
        variant_id: id,
        handle: title.to_lowercase().replace(' ', "-"),
        title,
        vendor: format!("Maker {}", item % 50),
        available,
        price_cents: Some(12_000),
        ..StockFact::default()
    };
    facts::observe(encoder, head, &key, &FactData::Stock(Box::new(fact)), at_ms)
}

fn poll(encoder: &mut Encoder, head: &mut Head, niche: u64, at_ms: i64) -> Result<Append, Failure> {
    let host = host(niche);
    let key = format!("shopify/{host}/poll");
    let variants = i64::try_from(NICHE_ITEMS)?;
    let fact = StockFact {
        stream: "shopify".to_owned(),
        kind: kind::POLL.to_owned(),
        host,
        niche: format!("n{niche}"),
        at: rfc3339(at_ms),
        interval_s: DAY_MS / 1_000,
        pages: 21,
        products: variants,
        variants,
        complete: true,
        ..StockFact::default()
    };
    facts::observe(encoder, head, &key, &FactData::Stock(Box::new(fact)), at_ms)
}
