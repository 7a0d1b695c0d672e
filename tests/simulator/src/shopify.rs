//! Shopify storefronts: `/products.json` and `/robots.txt` of several stores in three niches.
//!
//! The stock of every product is a function of the seed and the time, so past polls can be simulated by a clock that is moved. Stores fail on
//! certain days in every way that real ones do, unless a caller sets a fault.

mod stock;

use simulated_world::answer::Answer;
use simulated_world::query::Query;
use simulated_world::random::Random;
use stock::{DAY_MS, Pattern, Stock, shop_time};

/// The niches: key and label.
pub const NICHES: [(&str, &str); 3] = [("collectibles", "Collectibles"), ("sneakers", "Sneakers"), ("streetwear", "Streetwear")];
/// The stores: host and niche.
pub const STORES: [(&str, &str); 6] = [
    ("sole-and-lace.example", "sneakers"),
    ("harbor-kicks.example", "sneakers"),
    ("northside-supply.example", "streetwear"),
    ("loom-street.example", "streetwear"),
    ("vault-cards.example", "collectibles"),
    ("grail-room.example", "collectibles"),
];
/// Products of a store, without those of fixed kinds.
const PRODUCTS: [u64; STORES.len()] = [14, 10, 16, 12, 14, 8];
/// The most products on a page: what clients may ask for, and what one store gives at most.
const LIMIT_MAX: u64 = 250;
const SMALL_PAGE: u64 = 5;
/// The numbers of products of fixed kinds.
const GIFT_CARD: u64 = 1_000;
const NEWCOMER: u64 = 1_001;
/// The product that each round sells out or restocks, and its store, which has no faults of its own.
const IN_ROUNDS: u64 = 1_002;
const STORE_OF_ROUNDS: usize = 2;
/// How long a newcomer is in the list, and how long it is announced before it can be bought, in days.
const NEWCOMER_DAYS: i64 = 30;
/// Shifts the days on which a newcomer replaces another, so that no other product leaves the list on them.
const NEWCOMER_SHIFT: i64 = 14;
const ANNOUNCED_DAYS: i64 = 3;

/// What a store does instead of answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// Answers with this status.
    Status(u16),
    /// Answers with a password page and status 200.
    Password,
    /// Answers with a list without products.
    Empty,
    /// Breaks the JSON off.
    Truncated,
    /// Answers in the form of single products, with prices in cents.
    CentPrices,
    /// Answers with the state of two days before.
    Outdated,
    /// Disallows the list in `robots.txt`.
    Disallowed,
}

/// A path of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Products,
    Robots,
}

impl Route {
    pub(crate) fn at(path: &str) -> Option<Self> {
        match path {
            "/products.json" => Some(Self::Products),
            "/robots.txt" => Some(Self::Robots),
            _ => None,
        }
    }
}

/// A request to a store at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visit<'a> {
    pub(crate) host: &'a str,
    pub(crate) at_ms: i64,
    /// What the caller set for the store: `None` leaves it to the store's own days.
    pub(crate) fault: Option<Option<StoreFault>>,
    /// The number of rounds so far, and the time of the last one in milliseconds since 1970.
    pub(crate) rounds: (usize, i64),
}

/// Answers a request to a store.
pub(crate) fn answer(seed: u64, route: Route, visit: Visit<'_>, query: &Query<'_>) -> Answer {
    let Some(store) = STORES.iter().position(|(host, _)| *host == visit.host) else { return Answer::html(404, "Not Found") };
    let day = visit.at_ms.div_euclid(DAY_MS);
    let fault = visit.fault.unwrap_or_else(|| fault_of_day(store, day));
    if route == Route::Robots {
        let rule = if fault == Some(StoreFault::Disallowed) { "/" } else { "/admin\nDisallow: /cart\nDisallow: /checkout" };
        let body = format!("# a storefront\nUser-agent: *\nDisallow: {rule}\n").into_bytes();
        return Answer { status: 200, content_type: Some("text/plain"), body, ..Answer::default() };
    }
    match fault {
        Some(StoreFault::Status(status)) => return Answer::html(status, "Unavailable"),
        Some(StoreFault::Password) => return Answer::html(200, "Opening soon: enter the password"),
        Some(StoreFault::Empty) => return Answer::json(b"{\"products\":[]}".to_vec()),
        _ => {}
    }
    let at_ms = if fault == Some(StoreFault::Outdated) { visit.at_ms - 2 * DAY_MS } else { visit.at_ms };
    let mut numbers = numbers(store, at_ms);
    if store == STORE_OF_ROUNDS && visit.rounds.0 > 0 {
        numbers.insert(0, IN_ROUNDS);
    }
    let asked = query.get("limit").and_then(|limit| limit.parse().ok()).unwrap_or(30).clamp(1, LIMIT_MAX);
    let limit = if store == 1 { asked.min(SMALL_PAGE) } else { asked };
    let page: u64 = query.get("page").and_then(|page| page.parse().ok()).unwrap_or(1).max(1);
    // The list moves while it is read: some days a product is skipped, some days one is shown twice.
    let start = (page - 1) * limit;
    let start = match day.rem_euclid(5) {
        2 if store == 1 && page == 2 => start + 1,
        3 if store == 1 && page == 2 => start - 1,
        _ => start,
    };
    let shown = numbers.iter().skip(usize::try_from(start).unwrap_or(usize::MAX)).take(usize::try_from(limit).unwrap_or(usize::MAX));
    let products: Vec<String> =
        shown.map(|number| product(seed, store, *number, at_ms, visit.rounds, fault == Some(StoreFault::CentPrices))).collect();
    let mut body = format!("{{\"products\":[{}]}}", products.join(",")).into_bytes();
    if fault == Some(StoreFault::Truncated) {
        body.truncate(body.len() * 3 / 5);
    }
    Answer::json(body)
}

/// What a store does on a day of its own accord.
fn fault_of_day(store: usize, day: i64) -> Option<StoreFault> {
    match store {
        0 if day.rem_euclid(19) == 7 => Some(StoreFault::Outdated),
        // A bad week every month and a half.
        3 => match day.rem_euclid(45) {
            0 => Some(StoreFault::Status(403)),
            1 => Some(StoreFault::Status(429)),
            2 => Some(StoreFault::Status(430)),
            3 => Some(StoreFault::Password),
            4 => Some(StoreFault::Empty),
            5 => Some(StoreFault::Truncated),
            6 => Some(StoreFault::CentPrices),
            _ => None,
        },
        // Refuses for two weeks.
        5 if day.rem_euclid(70) >= 56 => Some(StoreFault::Status(403)),
        _ => None,
    }
}

/// The products of a store at a time, the newest first.
fn numbers(store: usize, at_ms: i64) -> Vec<u64> {
    let day = at_ms.div_euclid(DAY_MS);
    let ordinary = (0..PRODUCTS[store]).rev().filter(|number| {
        // One product of each store is taken from the list for some days, and comes back.
        *number != 5 || day.rem_euclid(40) >= 6
    });
    [NEWCOMER, GIFT_CARD].into_iter().chain(ordinary).collect()
}

/// How the restocks of a product follow each other.
fn pattern(store: usize, number: u64) -> Pattern {
    match store {
        // So regular that polls once a day find a median gap of a week, whatever the date (a test proves it).
        0 | 1 => Pattern::LogNormal { median_days: 7.0, spread: 0.02 },
        2 if number >= 12 => Pattern::Regime { median_days: 7.0, spread: 0.2 },
        2 => Pattern::LogNormal { median_days: 8.0 + (number % 5) as f64, spread: 0.3 },
        3 => Pattern::LogNormal { median_days: 7.0 + (number % 4) as f64, spread: 0.6 },
        _ => Pattern::Irregular,
    }
}

const HEADS: &[&str] = &["Trail", "Harbor", "Court", "Summit", "Canyon", "Meadow", "Anchor", "Beacon", "Cinder", "Drift"];
const TAILS: [&[&str]; 3] = [
    &["Runner", "Low", "High", "Trainer", "Slip-On"],
    &["Hoodie", "Crew", "Overshirt", "Cargo Pant", "Coach Jacket"],
    &["Booster Box", "Figure", "Print", "Medal", "Card Set"],
];

fn title(store: usize, number: u64) -> String {
    match number {
        GIFT_CARD => "Gift Card".to_owned(),
        NEWCOMER => format!("{} Preview", HEADS[store]),
        IN_ROUNDS => "Rotation Tee".to_owned(),
        // Quotation marks as shops write them.
        2 => format!("\u{201c}{}\u{201d} Classic", HEADS[(store + 3) % HEADS.len()]),
        _ => {
            let (head, tail) = (number as usize + store * 3, TAILS[store / 2]);
            format!("{} {} {}", HEADS[head % HEADS.len()], tail[head % tail.len()], number + 1)
        }
    }
}

/// One product as JSON.
fn product(seed: u64, store: usize, number: u64, at_ms: i64, (rounds, round_ms): (usize, i64), has_cent_prices: bool) -> String {
    let day = at_ms.div_euclid(DAY_MS);
    let generation = if number == NEWCOMER { (day + NEWCOMER_SHIFT).div_euclid(NEWCOMER_DAYS) } else { 0 };
    let id = 8_200_000_000_000 + store as u64 * 100_000_000 + number * 10_000 + generation.unsigned_abs();
    let title = title(store, number);
    let random = Random::new(seed, 200 + store as u64, number);
    let stock = Stock::at(random, pattern(store, number), at_ms);
    // A name in URLs changes now and then; the product stays the same.
    let suffix = if number == 3 { day.div_euclid(50) } else { 0 };
    let words = title.to_lowercase();
    let words: Vec<&str> = words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let handle = if suffix > 0 { format!("{}-{suffix}", words.join("-")) } else { words.join("-") };
    let published_ms = if number == NEWCOMER {
        (generation * NEWCOMER_DAYS - NEWCOMER_SHIFT) * DAY_MS
    } else {
        1_700_000_000_000 + id as i64 % 10_000_000
    };
    let cents = match number {
        GIFT_CARD => 0,
        _ => 4_000 + random.below(900, 90) * 100 + u64::try_from(day.div_euclid(17).rem_euclid(3)).unwrap_or(0) * 500,
    };
    let sizes: &[&str] = if number == GIFT_CARD { &["Default Title"] } else { &["S", "M", "L"] };
    let mut updated_ms = published_ms.max(day.div_euclid(17) * 17 * DAY_MS);
    let mut variants = Vec::with_capacity(sizes.len());
    for (at, size) in sizes.iter().enumerate() {
        let (is_available, since_ms) = match number {
            GIFT_CARD => (true, published_ms),
            // Announced first, then always there.
            NEWCOMER => {
                let from_ms = published_ms + ANNOUNCED_DAYS * DAY_MS;
                (at_ms >= from_ms, if at_ms >= from_ms { from_ms } else { published_ms })
            }
            IN_ROUNDS => (rounds.is_multiple_of(2), round_ms),
            _ => stock.variant(at, number.is_multiple_of(4)),
        };
        updated_ms = updated_ms.max(since_ms);
        let price = if has_cent_prices { cents.to_string() } else { format!("\"{}.{:02}\"", cents / 100, cents % 100) };
        variants.push(format!(
            r#"{{"id":{},"title":"{size}","option1":"{size}","option2":null,"option3":null,"sku":" SKU {} ","requires_shipping":true,"taxable":true,"featured_image":null,"available":{is_available},"price":{price},"grams":500,"compare_at_price":"","position":{},"product_id":{id},"created_at":"{}","updated_at":"{}"}}"#,
            45_000_000_000_000 + (id - 8_200_000_000_000) * 10 + at as u64,
            id % 97,
            at + 1,
            shop_time(published_ms),
            shop_time(since_ms.max(day.div_euclid(17) * 17 * DAY_MS)),
        ));
    }
    let title = serde_json::Value::from(title);
    format!(
        r#"{{"id":{id},"title":{title},"handle":"{handle}","body_html":"<p>Made with care &amp; attention.</p>","published_at":"{published}","created_at":"{published}","updated_at":"{}","vendor":"{vendor}","product_type":"","tags":["new","{}"],"variants":[{}],"images":[],"options":[{{"name":"Size","position":1,"values":[]}}]}}"#,
        shop_time(updated_ms),
        day.rem_euclid(9),
        variants.join(","),
        published = shop_time(published_ms),
        vendor = ["Sole & Lace", "Harbor", "Northside", "Loom", "Vault", "Grail"][store],
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// 2026-11-20T22:00:00Z.
    const NOW_MS: i64 = 1_795_212_000_000;

    fn list(store: usize, at_ms: i64, query: &str) -> Value {
        list_of(store, at_ms, query, (0, 0))
    }

    fn list_of(store: usize, at_ms: i64, query: &str, rounds: (usize, i64)) -> Value {
        let visit = Visit { host: STORES[store].0, at_ms, fault: Some(None), rounds };
        serde_json::from_slice(&answer(1, Route::Products, visit, &Query::new(query)).body).unwrap()
    }

    fn ids(list: &Value) -> Vec<u64> {
        list["products"].as_array().unwrap().iter().map(|product| product["id"].as_u64().unwrap()).collect()
    }

    /// Proves that rounds sell out and restock one product of one store, with the time of the round, and change no other product.
    #[test]
    fn rounds() {
        let without = list(STORE_OF_ROUNDS, NOW_MS, "limit=250");
        for round in 1..6_usize {
            let at_ms = NOW_MS + 30_000 * i64::try_from(round).unwrap();
            let mut with = list_of(STORE_OF_ROUNDS, NOW_MS, "limit=250", (round, at_ms));
            let own = with["products"].as_array_mut().unwrap().remove(0);
            assert_eq!(with, without);
            for variant in own["variants"].as_array().unwrap() {
                assert_eq!((&variant["available"], &variant["updated_at"]), (&(round % 2 == 0).into(), &shop_time(at_ms).into()));
            }
        }
    }

    /// Proves that the pages of every store end with an empty one, that a store may give less than asked for, and that on some days a product
    /// is skipped or shown twice.
    #[test]
    fn pages() {
        for store in 0..STORES.len() {
            let all = numbers(store, NOW_MS).len();
            let mut shown = Vec::new();
            for page in 1.. {
                let page = ids(&list(store, NOW_MS, &format!("limit=250&page={page}")));
                if page.is_empty() {
                    break;
                }
                shown.extend(page);
            }
            shown.sort_unstable();
            shown.dedup();
            assert!(shown.len() == all || store == 1 && shown.len() + 1 >= all, "{store}: {} of {all}", shown.len());
        }
        let two_pages = |day: i64| [1, 2].map(|page| ids(&list(1, day * DAY_MS, &format!("limit=250&page={page}")))).concat();
        let distinct = |mut ids: Vec<u64>| {
            ids.sort_unstable();
            ids.dedup();
            ids.len()
        };
        let day = NOW_MS / DAY_MS / 40 * 40 + 10;
        assert_eq!([day, day + 2, day + 3].map(|day| (two_pages(day).len(), distinct(two_pages(day)))), [(10, 10), (10, 10), (10, 9)]);
    }

    /// Proves that daily polls of a weekly product show gaps with a median of about a week, on whatever day the last 120 polls end.
    #[test]
    fn weekly_gaps() {
        const POLLS: i64 = 120;
        for (store, number) in [0, 1].into_iter().flat_map(|store| (0..PRODUCTS[store]).map(move |number| (store, number))) {
            let random = Random::new(1, 200 + store as u64, number);
            // The last variant: it has no returned units.
            let is_up = |day: i64| Stock::at(random, pattern(store, number), NOW_MS + day * DAY_MS).variant(2, false).0;
            let restocks: Vec<i64> = (-POLLS..3 * 365).filter(|day| is_up(*day) && !is_up(day - 1)).collect();
            for end in 0..3 * 365 {
                let seen: Vec<i64> = restocks.iter().copied().filter(|day| (end - POLLS + 1..=end).contains(day)).collect();
                let mut gaps: Vec<i64> = seen.windows(2).map(|pair| pair[1] - pair[0]).collect();
                gaps.sort_unstable();
                let twice_median = gaps[(gaps.len() - 1) / 2] + gaps[gaps.len() / 2];
                assert!((13..=15).contains(&twice_median), "store {store}, product {number}, day {end}: {gaps:?}");
            }
        }
    }

    /// Proves that the stock of a weekly product goes up about once a week, that a gift card never runs out, and that every fault of a store
    /// occurs on some day.
    #[test]
    fn stock_and_faults() {
        let available = |at_ms: i64, number: usize| {
            let list = list(0, at_ms, "limit=250");
            let product = &list["products"].as_array().unwrap()[number];
            product["variants"].as_array().unwrap().iter().any(|variant| variant["available"] == true)
        };
        let mut ups = 0;
        for day in 1..120 {
            ups += u32::from(available(NOW_MS + day * DAY_MS, 4) && !available(NOW_MS + (day - 1) * DAY_MS, 4));
            assert!(available(NOW_MS + day * DAY_MS, 1), "the gift card");
        }
        assert!((15..=19).contains(&ups), "{ups}");
        let faults: Vec<StoreFault> = (0..3_200).filter_map(|day| fault_of_day(day % 6, i64::try_from(day / 6).unwrap())).collect();
        for fault in [
            StoreFault::Status(430),
            StoreFault::Password,
            StoreFault::Empty,
            StoreFault::Truncated,
            StoreFault::CentPrices,
            StoreFault::Outdated,
        ] {
            assert!(faults.contains(&fault), "{fault:?}");
        }
        let visit = Visit { host: STORES[3].0, at_ms: NOW_MS, fault: Some(Some(StoreFault::Password)), rounds: (0, 0) };
        assert_eq!(answer(1, Route::Products, visit, &Query::new("")).content_type, Some("text/html; charset=utf-8"));
        assert_eq!(answer(1, Route::Products, Visit { host: "?", ..visit }, &Query::new("")).status, 404);
    }
}
