//! The coverage service: leads of a state and a line of insurance, and counts of leads, compared with PostgreSQL on the same rows; the load of all
//! facts, and a further day of 10,000 facts.
//!
//! A business has two leads or a few more. Half of the businesses are new carriers, the others entities in the registers of four states; one in forty
//! is in both.

use coverage::record::TABLES;
use jiff::ToSpan;
use jiff::civil::Date;
use rand::RngExt;
use rand::rngs::StdRng;
use schemas::facts::FactData;
use schemas::facts::businesses::BusinessFact;
use schemas::facts::carriers::{CarrierFact, kind};
use schemas::topics::{BUSINESSES, CARRIERS};
use serde_json::Value;

use crate::lists::{self, Kind, PeerRows, text};
use crate::loads::{self, LaterFacts, Loaded, Observed, Plan};
use crate::report::{heading, run_child};
use crate::sample::{self, Business, one_of};
use crate::start_time::today;
use crate::{Failure, Settings};

/// The mode of `serve-child`.
pub(crate) const MODE: &str = "coverage";
const SERVICE: Loaded =
    Loaded { service: "coverage", tables: &TABLES, topics: &[CARRIERS, BUSINESSES], inputs: &[CARRIERS, BUSINESSES], before: &[] };
const FEED: &str = "feed";
const PULSE: &str = "pulse";
const KINDS: [Kind; 2] = [
    Kind { name: FEED, about: "leads of a state and a line in 90 days, pages of 50, newest first", p99_ms_max: 5.0 },
    Kind { name: PULSE, about: "counts of random days by source, tier and line", p99_ms_max: 2.0 },
];
const QUERIES: [&str; 2] = [
    "select body from leads where state = $1::text and line = $2::text and day >= $3::text order by day desc, id limit 50",
    "select json_build_object('source', source, 'line', line, 'day', day, 'count', count(*))::text from leads
     where day between $1::text and $2::text group by source, line, day",
];
/// The leads of a business, about.
const LEADS_PER_BUSINESS: u64 = 2;
/// The days over which the triggers are spread.
const DAYS: u64 = 400;
/// Of so many businesses one carrier is in a register, too.
const JOINED_IN: u64 = 40;
/// The facts of a later day, their name in the report of the load, and the limit of their seconds.
const DAY_FACTS: u64 = 10_000;
const DAY: &str = "day_s";
const DAY_S_MAX: f64 = 5.0;
/// Different paths of a kind.
const QUESTIONS: u64 = 2_000;
/// What sets the random numbers of businesses and of questions apart.
const BUSINESS: u64 = 1;
const QUESTION: u64 = 2;
/// The registers: stream and state.
const REGISTERS: [(&str, &str); 4] = [("sos.co", "CO"), ("sos.ny", "NY"), ("sos.ct", "CT"), ("sos.or", "OR")];
const LINES: [&str; 4] = ["AUTO_LIABILITY_BIPD", "CARGO", "WORKERS_COMP", "GENERAL_LIABILITY"];

/// Fills an engine with businesses, then compares.
pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    heading(&format!("coverage: about {} leads in {DAYS} days, one connection", settings.records));
    let loaded = run_child(settings, "coverage-child", &[])?;
    loads::report(&loaded);
    loads::report_later(&loaded, DAY, "a day of 10,000 facts decided, seconds", DAY_S_MAX);
    let rows = PeerRows {
        table: "leads",
        definition: "state text, line text, source text, day text, id text primary key, body text",
        columns: &columns,
        indexes: &["create index on leads (state, line, day desc, id)", "create index on leads (day, source, line)"],
        also: &[],
        queries: &QUERIES,
    };
    let sides = lists::start_sides(settings, SERVICE, &loaded, MODE, &rows)?;
    lists::compare(settings, &KINDS, &sides.api, sides.peer.as_ref())?;
    loads::memory("peak memory of the API's process, MiB", sides.api.memory_mib()?);
    Ok(())
}

/// The row of a lead that is in lists.
fn columns(lead: &Value) -> Option<Vec<String>> {
    let is_listed = text(lead, "mergedInto").is_empty() && lead.get("withdrawn") == Some(&Value::Bool(false));
    let fields = ["state", "coverageLine", "source", "triggerDate", "id"];
    is_listed.then(|| fields.iter().map(|name| text(lead, name)).chain([lead.to_string()]).collect())
}

/// `coverage-child`: loads the businesses, and a day of further ones.
pub(crate) fn child(settings: &Settings) -> Result<(), Failure> {
    let (businesses, today) = (settings.records / LEADS_PER_BUSINESS, today());
    let facts = facts(settings);
    let later: LaterFacts = Box::new((businesses..businesses + DAY_FACTS).filter_map(move |n| fact(n, today)));
    loads::child(settings, SERVICE, Plan { facts, later: vec![(DAY, later)], redecides: false })
}

/// Businesses with about as many leads as there are records.
pub(crate) fn facts(settings: &Settings) -> impl Iterator<Item = Observed> + use<> {
    let (businesses, today) = (settings.records / LEADS_PER_BUSINESS, today());
    (0..businesses).filter_map(move |n| fact(n, day_of(n, businesses, today)))
}

/// Serves the leads that `coverage-child` loaded.
pub(crate) async fn serve(settings: &Settings) -> Result<(), Failure> {
    let today = today();
    let before = |days: i64| today.saturating_sub((days - 1).days());
    let feed = (0..QUESTIONS).map(|n| {
        let mut random = sample::random(QUESTION, n);
        let line = one_of(&mut random, &LINES);
        // Only registers have leads of general liability.
        let state = if line == LINES[3] { REGISTERS[random.random_range(0..REGISTERS.len())].1 } else { sample::state(&mut random) };
        let own = format!("/coverage/v1/feed?state={state}&coverageLine={line}&days=90&limit=50");
        (own, format!("/0?{state}&{line}&{}", before(90)))
    });
    let pulse = (0..QUESTIONS).map(|n| {
        let days = sample::random(QUESTION, n).random_range(1..=90);
        (format!("/coverage/v1/pulse?days={days}"), format!("/1?{}&{today}", before(days)))
    });
    lists::serve_own(settings, SERVICE, vec![(FEED, feed.collect()), (PULSE, pulse.collect())]).await
}

/// The day of the trigger of a business: the earliest businesses have the earliest days.
fn day_of(n: u64, businesses: u64, today: Date) -> Date {
    let ago = DAYS - 1 - n * DAYS / businesses.max(1);
    today.saturating_sub(i64::try_from(ago).unwrap_or(0).days())
}

/// The fact about the n-th business, observed on the day of its trigger.
fn fact(n: u64, day: Date) -> Option<Observed> {
    let mut random = sample::random(BUSINESS, n);
    let (key, data) = match n % JOINED_IN {
        // The carrier before, in the register of the state.
        1 => {
            let carrier = Business { state: REGISTERS[0].1.to_owned(), ..sample::business(&mut sample::random(BUSINESS, n - 1)) };
            entity(n, day, REGISTERS[0], carrier, &mut random)
        }
        0 => {
            let own = Business { state: REGISTERS[0].1.to_owned(), ..sample::business(&mut random) };
            carrier(n, day, own, &mut random)
        }
        own if own % 2 == 0 => {
            let own = sample::business(&mut random);
            carrier(n, day, own, &mut random)
        }
        _ => {
            let own = sample::business(&mut random);
            let register = REGISTERS[random.random_range(0..REGISTERS.len())];
            entity(n, day, register, own, &mut random)
        }
    };
    Some(Observed::at(key, data, sample::start_ms(day).ok()?))
}

/// A new carrier of the census.
fn carrier(n: u64, day: Date, own: Business, random: &mut StdRng) -> (String, FactData) {
    let dot = (4_000_000 + n).to_string();
    let trucks: u32 = [1, 1, 1, 2, 2, 3, 5, 12][random.random_range(0..8)];
    let fact = CarrierFact {
        stream: "fmcsa.census".to_owned(),
        kind: kind::CARRIER.to_owned(),
        dot: dot.clone(),
        docket: format!("MC{}", 1_000_000 + n),
        legal_name: own.name,
        street: own.street,
        city: own.city,
        state: own.state,
        zip: own.zip,
        country: "US".to_owned(),
        status: "A".to_owned(),
        added: day.to_string(),
        carrier_operation: one_of(random, &["A", "A", "A", "C"]).to_owned(),
        classdef: one_of(random, &["AUTHORIZED FOR HIRE", "AUTHORIZED FOR HIRE", "AUTHORIZED FOR HIRE", "PRIVATE PROPERTY"]).to_owned(),
        hm_ind: if random.random_bool(0.03) { "Y" } else { "N" }.to_owned(),
        power_units: trucks.to_string(),
        truck_units: trucks.to_string(),
        total_drivers: trucks.to_string(),
        cargo: if random.random_bool(0.05) { vec!["crgo_household".to_owned()] } else { vec!["crgo_genfreight".to_owned()] },
        ..CarrierFact::default()
    };
    (format!("fmcsa.census/{dot}"), FactData::Carrier(Box::new(fact)))
}

/// An entity that was formed, in the register of a state. That of New York gives events.
fn entity(n: u64, day: Date, (stream, state): (&str, &str), own: Business, random: &mut StdRng) -> (String, FactData) {
    let is_event = stream == "sos.ny";
    let number = (20_000_000 + n).to_string();
    let is_foreign = random.random_bool(0.1);
    let filed = if is_foreign { "APPLICATION OF AUTHORITY" } else { "ARTICLES OF ORGANIZATION" };
    let fact = BusinessFact {
        stream: stream.to_owned(),
        entity: number.clone(),
        event: if is_event { number.clone() } else { String::new() },
        name: own.name,
        entity_type: one_of(random, &["DOMESTIC LIMITED LIABILITY COMPANY", "DOMESTIC BUSINESS CORPORATION", "DLLC"]).to_owned(),
        filing_type: if is_event { filed } else { "" }.to_owned(),
        status: "Good Standing".to_owned(),
        is_foreign,
        day: day.to_string(),
        street: own.street,
        city: own.city,
        state: state.to_owned(),
        zip: own.zip,
        ..BusinessFact::default()
    };
    (format!("{stream}/{number}"), FactData::Business(Box::new(fact)))
}
