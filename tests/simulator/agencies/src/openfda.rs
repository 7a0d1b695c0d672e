//! Three enforcement datasets: limit and skip with their maximum, `search_after` in `Link`, 404 for no match.

use jiff::civil::Date;
use proofs::hash::Hash32;
use simulated_world::answer::Answer;
use simulated_world::expected_changes::{ExpectedChange, Kind};
use simulated_world::faults::{Fault, Plan};
use simulated_world::json::Json;
use simulated_world::query::Query;
use simulated_world::random::Random;
use simulated_world::words::CITIES;
use simulated_world::world::{Feed, World, brand, compact, day_before, update};

use crate::words::{BABY_FOODS, DEVICE_REASONS, DEVICES, DISTRIBUTIONS, DRUG_REASONS, DRUGS, FIRM_TAILS, FOOD_REASONS, FOODS};

const LIMIT_MAX: u64 = 1_000;
const SKIP_MAX: u64 = 25_000;

struct Dataset {
    stream: &'static str,
    path: &'static str,
    product_type: &'static str,
    letter: char,
    products: &'static [&'static str],
    reasons: &'static [&'static str],
}

fn dataset(feed: Feed) -> Dataset {
    match feed {
        Feed::Drug => {
            Dataset { stream: "openfda.drug", path: "drug", product_type: "Drugs", letter: 'D', products: DRUGS, reasons: DRUG_REASONS }
        }
        Feed::Device => Dataset {
            stream: "openfda.device",
            path: "device",
            product_type: "Devices",
            letter: 'Z',
            products: DEVICES,
            reasons: DEVICE_REASONS,
        },
        _ => Dataset { stream: "openfda.food", path: "food", product_type: "Food", letter: 'H', products: FOODS, reasons: FOOD_REASONS },
    }
}

/// Whether the record has its number already. A few new ones begin without.
pub(crate) fn is_numbered(world: &World, feed: Feed, index: u64) -> bool {
    let odds = if world.is_born(feed, index) { 12 } else { 30 };
    let young = world.is_born(feed, index) || world.date(feed, index) > day_before(world.first_today, 60);
    !young || !world.random(feed, index).once_in(50, odds) || world.fate(feed, index).numbered
}

/// Whether the record's status is not `Ongoing`.
pub(crate) fn is_closed(world: &World, feed: Feed, index: u64) -> bool {
    world.fate(feed, index).closed.is_some() || begins_closed(world, feed, index)
}

fn begins_closed(world: &World, feed: Feed, index: u64) -> bool {
    let age = world.date(feed, index) < day_before(world.first_today, 400);
    age && !world.is_born(feed, index) && !world.random(feed, index).once_in(51, 10)
}

/// The random properties of a record, independent of later changes.
pub(crate) struct Report {
    /// The firm as the record names it.
    pub(crate) firm: String,
    /// The brand that the mapping should find.
    pub(crate) brand: String,
    /// The product up to its first comma.
    pub(crate) product: String,
    pub(crate) date: Date,
    drug_brand: bool,
}

pub(crate) fn report(world: &World, feed: Feed, index: u64) -> Report {
    let (random, dataset) = (world.random(feed, index), dataset(feed));
    // Records belong to events of three: one firm, about the same day, several products.
    let event = world.random(feed, 1_000_000_000 + index / 3);
    let name = brand(event, 0);
    let tail = event.pick(2, FIRM_TAILS);
    let dba = event.once_in(3, 20);
    let firm = if dba {
        format!("{} Holdings LLC dba {name}", event.pick(4, simulated_world::words::BRAND_HEADS))
    } else {
        format!("{name} {tail}")
    };
    let products = if feed == Feed::Food && random.once_in(5, 15) { BABY_FOODS } else { dataset.products };
    let product = format!(
        "{name} {} {} {}",
        random.pick(6, products),
        1 + random.below(7, 64),
        if feed == Feed::Device { "unit pack" } else { "oz" }
    );
    let drug_brand = feed == Feed::Drug && random.once_in(8, 3);
    let brand = if drug_brand || dba { name } else { firm.clone() };
    Report { firm, brand, product, date: world.date(feed, index), drug_brand }
}

fn number(world: &World, feed: Feed, index: u64, date: Date) -> String {
    if !is_numbered(world, feed, index) {
        return String::new();
    }
    let letter = if feed == Feed::Food && date.year() < 2022 { 'F' } else { dataset(feed).letter };
    format!("{letter}-{:04}-{}", index + 1, date.year())
}

fn event_id(feed: Feed, index: u64) -> u64 {
    10_000 + (index / 3) * 3 + feed as u64 - 1
}

fn reason(world: &World, feed: Feed, index: u64) -> String {
    let random = world.random(feed, index);
    format!(
        "{}{}",
        world.random(feed, 1_000_000_000 + index / 3).pick(9, dataset(feed).reasons),
        update(random, world.fate(feed, index).edits)
    )
}

fn description(report: &Report, random: Random, event: Random) -> String {
    let (city, state, postal_code) = CITIES[event.below(10, CITIES.len() as u64) as usize];
    format!(
        "{}, packed {} per case,  UPC {:012}, Distributed by {}, {city}, {state} {postal_code}. Item number {:06}; keep in a cool, dry place away from direct sunlight.",
        report.product,
        6 + random.below(19, 40),
        random.roll(11) % 1_000_000_000_000,
        report.firm,
        random.below(20, 1_000_000)
    )
}

/// Returns the key of a record without a number: event, and the first 8 hex digits of the SHA-256 of the description in lower case with
/// collapsed white space.
fn unnumbered(event_id: u64, description: &str) -> String {
    let plain = description.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    format!("EVT-{event_id}-{}", &Hash32::of(plain.as_bytes()).to_string()[..8])
}

/// Returns the expected entries of one report.
pub(crate) fn entry(world: &World, feed: Feed, index: u64) -> ExpectedChange {
    let (dataset, report) = (dataset(feed), report(world, feed, index));
    let (number, event) = (number(world, feed, index, report.date), event_id(feed, index));
    let random = (world.random(feed, index), world.random(feed, 1_000_000_000 + index / 3));
    let unnumbered = unnumbered(event, &description(&report, random.0, random.1));
    ExpectedChange {
        n: 0,
        upstream: "openfda",
        stream: dataset.stream,
        key: format!("{}/{}", dataset.stream, if number.is_empty() { &unnumbered } else { &number }),
        kind: Kind::Current,
        agency: "FDA",
        lang: "en",
        title: Some(format!("{}: {}", report.firm, report.product)),
        brand: Some(report.brand),
        hazard: Some(reason(world, feed, index)),
        date: Some(report.date.to_string()),
        url: Some(format!("https://www.accessdata.fda.gov/scripts/ires/index.cfm?Event={event}")),
        remedy: Some(String::new()),
        number,
        visible: true,
        at_ms: 0,
    }
}

fn error(status: u16, code: &str, message: &str) -> Answer {
    let body = format!("{{\"error\":{{\"code\":\"{code}\",\"message\":\"{message}\"}}}}");
    Answer { status, ..Answer::json(body.into_bytes()) }
}

fn nothing() -> Answer {
    error(404, "NOT_FOUND", "No matches found!")
}

/// A parsed `search`: a range of report dates, and fields that must contain a phrase.
#[derive(Default)]
struct Search {
    from: Option<Date>,
    to: Option<Date>,
    phrases: Vec<(String, String)>,
}

/// Parses a search. The error is the status, code and message of the refusal.
fn search(text: &str) -> Result<Search, (u16, &'static str, &'static str)> {
    let mut out = Search::default();
    for clause in text.split(" AND ").map(str::trim).filter(|clause| !clause.is_empty()) {
        let Some((field, value)) = clause.split_once(':') else { return Err((400, "BAD_REQUEST", "Search not supported")) };
        if field == "report_date" && value.starts_with('[') {
            let range = value.trim_start_matches('[').trim_end_matches(']').split_once(" TO ");
            let dates = range.and_then(|(from, to)| Some((fda_date(from)?, fda_date(to)?)));
            let Some((from, to)) = dates.filter(|_| value.ends_with(']')) else {
                return Err((500, "SERVER_ERROR", "token_mgr_error: Lexical error"));
            };
            (out.from, out.to) = (Some(from), Some(to));
        } else {
            out.phrases.push((field.trim_end_matches(".exact").to_owned(), value.trim_matches('"').to_owned()));
        }
    }
    Ok(out)
}

fn fda_date(text: &str) -> Option<Date> {
    let text = text.trim_matches('"');
    if text.contains('-') { text.parse().ok() } else { Date::strptime("%Y%m%d", text).ok() }
}

/// Handles `/{food|drug|device}/enforcement.json`.
#[must_use]
pub fn answer(world: &World, feed: Feed, query: &Query, plan: &Plan) -> Answer {
    for (name, _) in query.pairs() {
        if !matches!(name, "search" | "sort" | "limit" | "skip" | "search_after" | "api_key") {
            return error(400, "BAD_REQUEST", &format!("Invalid parameter: {}", name.replace(['"', '\\'], "")));
        }
    }
    if query.raw.to_ascii_lowercase().contains("%2b") {
        return error(500, "SERVER_ERROR", "Check your request and try again");
    }
    let whole = |name: &str, default: u64| query.get(name).map_or(Some(default), |value| value.parse().ok());
    let (Some(limit), Some(skip)) = (whole("limit", 1), whole("skip", 0)) else {
        return error(400, "BAD_REQUEST", "Limit and skip must be whole numbers");
    };
    let limit = limit.max(1);
    if limit > LIMIT_MAX {
        return error(
            400,
            "BAD_REQUEST",
            "Limit cannot exceed 1000 results for search requests. Use the skip or search_after param to get additional results.",
        );
    }
    if skip > SKIP_MAX {
        return error(400, "BAD_REQUEST", "Skip value must 25000 or less.");
    }
    let descending = match query.get("sort") {
        None => false,
        Some(sort) => {
            let first = sort.split(',').next().unwrap_or("");
            let (field, order) = first.split_once(':').unwrap_or((first, "asc"));
            if !(field.ends_with(".exact") || field.ends_with("_date")) {
                return error(400, "BAD_REQUEST", "Sorting allowed by non-analyzed fields only");
            }
            order == "desc"
        }
    };
    let search = match search(query.get("search").unwrap_or("")) {
        Ok(search) => search,
        Err((status, code, words)) => return error(status, code, words),
    };
    let after = match query.get("search_after") {
        None => None,
        Some(_) if query.get("skip").is_some() => return error(400, "BAD_REQUEST", "search_after cannot be used with skip"),
        Some(text) => match text.rsplit_once('=').and_then(|(_, index)| index.parse::<u64>().ok()) {
            Some(index) => Some(index),
            None => return error(400, "BAD_REQUEST", "Invalid search_after"),
        },
    };
    if plan.has(Fault::Outage) {
        return page(world, feed, &[], 0, (skip, limit), plan, None);
    }
    let window = world.window(feed, search.from, search.to);
    // A search for a date range alone, which paging uses, reads only the records of the page.
    let (total, indexes) = if search.phrases.is_empty() {
        let place =
            |index: u64| if descending { window.end.saturating_sub(1).saturating_sub(index) } else { index.saturating_sub(window.start) };
        let start = plan.start(after.map_or(skip, |index| place(index).saturating_add(1)), limit);
        let total = window.end - window.start;
        let places = start.min(total)..start.saturating_add(limit).min(total);
        (total, places.map(|place| if descending { window.end - 1 - place } else { window.start + place }).collect::<Vec<_>>())
    } else {
        let mut all: Vec<u64> = window.filter(|&index| matches(world, feed, index, &search.phrases)).collect();
        if descending {
            all.reverse();
        }
        let start = after.map_or(skip as usize, |index| all.iter().position(|known| *known == index).map_or(all.len(), |at| at + 1));
        (all.len() as u64, all.iter().copied().skip(start).take(limit as usize).collect())
    };
    let Some(last) = indexes.last() else { return nothing() };
    // As in the real service, the last page has a link as well, which leads to a 404.
    let other_parameters =
        query.raw.split('&').filter(|pair| !pair.starts_with("skip=") && !pair.starts_with("search_after=")).collect::<Vec<_>>().join("&");
    let onward = if query.get("skip").is_some() {
        format!("skip={}", skip + limit)
    } else {
        format!("search_after=0%3D{}%3B1%3D{last}", compact(world.date(feed, *last)))
    };
    let link = format!("<https://api.fda.gov/{}/enforcement.json?{other_parameters}&{onward}>; rel=\"next\"", dataset(feed).path);
    page(world, feed, &indexes, total, (skip, limit), plan, Some(link))
}

fn matches(world: &World, feed: Feed, index: u64, phrases: &[(String, String)]) -> bool {
    let report = report(world, feed, index);
    phrases.iter().all(|(field, value)| match field.as_str() {
        "recall_number" => number(world, feed, index, report.date) == *value,
        "event_id" => event_id(feed, index).to_string() == *value,
        "status" => value == if is_closed(world, feed, index) { "Terminated" } else { "Ongoing" },
        "report_date" => fda_date(value) == Some(report.date),
        "recalling_firm" => report.firm.contains(value.as_str()),
        _ => false,
    })
}

fn page(world: &World, feed: Feed, indexes: &[u64], total: u64, (skip, limit): (u64, u64), plan: &Plan, link: Option<String>) -> Answer {
    let mut json = Json::new(&plan.schema, indexes.len() * 1_500 + 600);
    json.object(|json| {
        json.nested("meta", |json| {
            json.text("disclaimer", "Do not rely on openFDA to make decisions regarding medical care.");
            json.text("terms", "https://open.fda.gov/terms/");
            json.text("license", "https://open.fda.gov/license/");
            json.text("last_updated", &world.today.to_string());
            json.nested("results", |json| {
                json.raw("skip", &skip.to_string());
                json.raw("limit", &limit.to_string());
                json.raw("total", &total.to_string());
            });
        });
        json.list("results", |json| {
            for &index in indexes {
                if !plan.vanishes(world.random(feed, index)) {
                    write(json, world, feed, index);
                }
            }
        });
    });
    let etag = format!("W/\"{:x}-{:x}\"", world.seed, world.changes());
    Answer { link, etag: Some(etag), ..Answer::json(json.finish()) }
}

fn write(json: &mut Json<'_>, world: &World, feed: Feed, index: u64) {
    let (random, event) = (world.random(feed, index), world.random(feed, 1_000_000_000 + index / 3));
    let (report, fate) = (report(world, feed, index), world.fate(feed, index));
    let number = number(world, feed, index, report.date);
    let (city, state, postal_code) = CITIES[event.below(10, CITIES.len() as u64) as usize];
    let closed = is_closed(world, feed, index);
    json.object(|json| {
        json.text("status", if closed { "Terminated" } else { "Ongoing" });
        json.text("city", city);
        json.text("state", state);
        json.text("country", "United States");
        let classes = ["Class I", "Class II", "Class II", "Class III"];
        json.text("classification", if number.is_empty() { "Not Yet Classified" } else { random.pick(12, &classes) });
        json.nested("openfda", |json| {
            if report.drug_brand {
                json.list("brand_name", |json| json.item(&report.brand));
                json.list("manufacturer_name", |json| json.item(&report.firm));
                json.list("product_ndc", |json| json.item(&format!("{:05}-{:03}", random.below(13, 100_000), random.below(14, 1_000))));
                json.list("is_original_packager", |json| json.item("true"));
            }
        });
        json.text("product_type", dataset(feed).product_type);
        json.text("event_id", &event_id(feed, index).to_string());
        json.text("recalling_firm", &report.firm);
        json.text("address_1", &format!("{} {} St", 1 + event.below(15, 9_000), event.pick(16, simulated_world::words::BRAND_HEADS)));
        json.text("address_2", "");
        json.text("postal_code", postal_code);
        json.text("voluntary_mandated", "Voluntary: Firm initiated");
        json.text("initial_firm_notification", event.pick(17, &["Letter", "E-Mail", "Telephone", "Press Release", ""]));
        json.text("distribution_pattern", event.pick(18, DISTRIBUTIONS));
        json.text("recall_number", &number);
        json.text("product_description", &description(&report, random, event));
        json.text("product_quantity", &format!("{} cases", 1 + random.below(21, 20_000) + u64::from(fate.edits) * 10));
        json.text("reason_for_recall", &reason(world, feed, index));
        // Rarely a date is mistyped.
        let initiated = match random.below(22, 3_000) {
            0 => "02121207".to_owned(),
            1 => "19301211".to_owned(),
            days => compact(day_before(report.date, 20 + (days % 70) as i64)),
        };
        json.text("recall_initiation_date", &initiated);
        if !number.is_empty() {
            json.text("center_classification_date", &compact(day_before(report.date, 7)));
        }
        if let Some(day) = fate.closed {
            json.text("termination_date", &compact(day));
        } else if closed {
            let day = report.date.checked_add(jiff::Span::new().days(120 + random.below(23, 200) as i64)).unwrap_or(report.date);
            json.text("termination_date", &compact(day));
        }
        json.text("report_date", &compact(report.date));
        let codes = (0..8).map(|code| format!("{:012}", random.roll(24 + code) % 1_000_000_000_000)).collect::<Vec<_>>().join(", ");
        json.text("code_info", &codes);
        if random.once_in(40, 2) {
            json.text("more_code_info", "");
        }
    });
}
