//! The parcels service: over-assessed parcels and the check of one parcel, compared with a materialised view of PostgreSQL on the same rows; the load of
//! all facts, and a cycle of one township.
//!
//! A parcel has the values of three years; one in five was sold. The last township gets the values of the newest year, and its cycle, only after
//! everything else is decided. Liens, exemptions and permits are not loaded, so they are not measured.

use std::time::Instant;

use ::parcels::record::{TABLES, strength};
use rand::RngExt;
use rand::rngs::StdRng;
use schemas::cook::{TOWNSHIPS, level};
use schemas::facts::FactData;
use schemas::facts::parcels::{self, ParcelFact};
use schemas::facts::sales::{self, SaleFact};
use schemas::topics::{PARCELS, SALES};
use serde_json::Value;

use crate::lists::{self, Kind, PeerRows, text};
use crate::loads::{self, Loaded, Observed, Plan};
use crate::report::{figure, heading, line, number, ratio, run_child};
use crate::sample::{self, one_of};
use crate::start_time::today;
use crate::{Failure, Settings, postgres};

/// The mode of `serve-child`.
pub(crate) const MODE: &str = "parcels";
const SERVICE: Loaded = Loaded { service: "parcels", tables: &TABLES, topics: &[PARCELS, SALES], inputs: &[PARCELS, SALES], before: &[] };
const LEADS: &str = "leads";
const LEADS_TOWNSHIP: &str = "leads of a township";
const PARCEL: &str = "parcel";
const KINDS: [Kind; 3] = [
    Kind { name: LEADS, about: "over-assessed commercial parcels of a tier, pages of 50, the largest difference first", p99_ms_max: 5.0 },
    Kind { name: LEADS_TOWNSHIP, about: "the same of a township", p99_ms_max: 5.0 },
    Kind { name: PARCEL, about: "the check of one parcel", p99_ms_max: 2.0 },
];
const QUERIES: [&str; 3] = [
    "select body from leads where strength >= $1::text::int order by r desc, pin limit 50",
    "select body from leads where township = $2::text and strength >= $1::text::int order by r desc, pin limit 50",
    "select body from parcels where pin = $1::text",
];
/// The parcels of a township and of a neighbourhood, about. There are no more townships than the county has.
const TOWNSHIP_PARCELS: u64 = 50_000;
const NEIGHBORHOOD_PARCELS: u64 = 2_000;
/// One in so many parcels was sold.
const SOLD_IN: u64 = 5;
/// The facts of the limit for the load, and its seconds.
const FACTS: f64 = 8_000_000.0;
const FACTS_S_MAX: f64 = 900.0;
/// The later cycle in the report of the load, and the limit of its seconds for 50,000 parcels.
const CYCLE: &str = "cycle_s";
const CYCLE_S_MAX: f64 = 20.0;
/// Different paths of a kind.
const QUESTIONS: u64 = 2_000;
/// What sets the random numbers of parcels and of questions apart.
const OWN: u64 = 3;
const QUESTION: u64 = 4;
const TIERS: [&str; 3] = ["low", "medium", "high"];
const COMMERCIAL: [&str; 4] = ["517", "517", "592", "593"];
const RENTAL: [&str; 2] = ["314", "315"];
const RESIDENTIAL: [&str; 6] = ["203", "205", "211", "234", "278", "299"];

/// Fills an engine with parcels, then compares.
pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    let county = County::of(settings);
    heading(&format!("parcels: {} parcels in {} townships, one connection", county.parcels, county.townships));
    line("  liens and exemptions are not read yet, permits are not loaded: neither is measured");
    let loaded = run_child(settings, "parcels-child", &[])?;
    loads::report(&loaded);
    if number(&loaded, "appended") > 0.0 {
        let seconds = (number(&loaded, "heads_s") + number(&loaded, "decide_s")) * FACTS / number(&loaded, "facts");
        ratio("8 million facts loaded, then decided, seconds", seconds, seconds <= FACTS_S_MAX, "<= 900");
    }
    let cycle_s = number(&loaded, CYCLE);
    if cycle_s > 0.0 {
        let scaled = cycle_s * TOWNSHIP_PARCELS as f64 / county.last_township().count() as f64;
        ratio("a cycle of 50,000 parcels with its values, seconds", scaled, scaled <= CYCLE_S_MAX, "<= 20");
    }
    let rows = PeerRows {
        table: "parcels",
        definition: "pin text primary key, township text, class text, strength int, r double precision, body text",
        columns: &columns,
        indexes: &[
            "create materialized view leads as select pin, township, strength, r, body from parcels where strength > 0 and class like '5%'",
            "create index on leads (strength, r desc, pin)",
            "create index on leads (township, r desc, pin)",
            "analyze leads",
        ],
        also: &[],
        queries: &QUERIES,
    };
    let sides = lists::start_sides(settings, SERVICE, &loaded, MODE, &rows)?;
    if let Some(cluster) = &sides.cluster {
        figure("refresh of the materialised view, PostgreSQL, seconds", format!("{:.2}", refresh(cluster)?));
    }
    lists::compare(settings, &KINDS, &sides.api, sides.peer.as_ref())?;
    loads::memory("peak memory of the API's process, MiB", sides.api.memory_mib()?);
    Ok(())
}

/// Refreshes the materialised view, which a new cycle needs. Returns the seconds.
fn refresh(cluster: &postgres::Cluster) -> Result<f64, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let client = postgres::connect(cluster.socket()).await?;
        let started = Instant::now();
        client.batch_execute("refresh materialized view leads").await?;
        Ok(started.elapsed().as_secs_f64())
    })
}

/// The row of a parcel.
fn columns(parcel: &Value) -> Option<Vec<String>> {
    let r = parcel.get("r").and_then(Value::as_f64).unwrap_or_default();
    let strength = strength(&text(parcel, "tier"));
    let fields = ["pin", "townshipCode", "class"].map(|name| text(parcel, name));
    Some(fields.into_iter().chain([strength.to_string(), r.to_string(), parcel.to_string()]).collect())
}

/// `parcels-child`: loads the parcels, then the newest values of the last township with its cycle.
pub(crate) fn child(settings: &Settings) -> Result<(), Failure> {
    let county = County::of(settings);
    let facts = (0..county.townships).flat_map(|township| county.facts(township));
    let later = county.newest_values(county.townships - 1).collect();
    loads::child(settings, SERVICE, Plan { facts, later: vec![(CYCLE, later)], redecides: false })
}

/// Serves the parcels that `parcels-child` loaded.
pub(crate) async fn serve(settings: &Settings) -> Result<(), Failure> {
    let county = County::of(settings);
    let leads = TIERS.iter().map(|tier| {
        let own = format!("/parcels/api/leads?county=cook-il&minTier={tier}&limit=50");
        (own, format!("/0?{}", strength(tier)))
    });
    let of_township = (0..county.townships).flat_map(|township| {
        let code = county.code(township);
        TIERS.iter().map(move |tier| {
            let own = format!("/parcels/api/leads?township={code}&minTier={tier}&limit=50");
            (own, format!("/1?{}&{code}", strength(tier)))
        })
    });
    let parcel = (0..QUESTIONS).map(|n| {
        let pin = pin(sample::random(QUESTION, n).random_range(0..county.parcels));
        (format!("/parcels/api/parcel?pin={pin}"), format!("/2?{pin}"))
    });
    let paths = vec![(LEADS, leads.collect()), (LEADS_TOWNSHIP, of_township.collect()), (PARCEL, parcel.collect())];
    lists::serve_own(settings, SERVICE, paths).await
}

/// The county: its parcels in townships of equal size.
#[derive(Clone, Copy)]
struct County {
    parcels: u64,
    townships: u64,
    /// The newest year of assessment.
    year: i64,
    at_ms: i64,
}

/// A parcel as it is in all years.
struct Parcel {
    pin: String,
    class: &'static str,
    neighborhood: String,
    /// Dollars.
    price: i64,
    /// The assessed value of the newest year, in dollars.
    assessed: i64,
    is_sold: bool,
}

impl County {
    fn of(settings: &Settings) -> Self {
        let parcels = settings.records.max(1);
        let townships = (parcels / TOWNSHIP_PARCELS).clamp(1, TOWNSHIPS.len() as u64);
        Self { parcels, townships, year: i64::from(today().year()), at_ms: sample::start_ms(today()).unwrap_or_default() }
    }

    fn code(&self, township: u64) -> &'static str {
        usize::try_from(township).ok().and_then(|at| TOWNSHIPS.get(at)).map_or("77", |(code, _)| code)
    }

    /// The numbers of the parcels of a township.
    fn numbers(&self, township: u64) -> std::ops::Range<u64> {
        township * self.parcels / self.townships..(township + 1) * self.parcels / self.townships
    }

    fn last_township(&self) -> std::ops::Range<u64> {
        self.numbers(self.townships - 1)
    }

    /// The facts of a township: values of three years, sales and cycles. The last one has those of the two years before the newest.
    fn facts(self, township: u64) -> impl Iterator<Item = Observed> {
        let is_last = township + 1 == self.townships;
        let of_parcel = move |n: u64| {
            let parcel = self.parcel(township, n);
            let sale = parcel.is_sold.then(|| self.sale(township, &parcel, n));
            let first_ago = i64::from(is_last);
            let values: Vec<Observed> = (first_ago..=2).map(|ago| self.value(township, &parcel, self.year - ago)).collect();
            values.into_iter().chain(sale)
        };
        let cycle_year = if is_last { self.year - 1 } else { self.year };
        let read = SaleFact {
            stream: "cook.sales".to_owned(),
            kind: sales::READ.to_owned(),
            township: self.code(township).to_owned(),
            ..SaleFact::default()
        };
        let read = Observed::at(format!("cook.sales/read/{}", self.code(township)), FactData::Sale(Box::new(read)), self.at_ms);
        self.numbers(township).flat_map(of_parcel).chain([read]).chain(self.cycles(township, cycle_year))
    }

    /// The values of the newest year of a township, with their cycles.
    fn newest_values(self, township: u64) -> impl Iterator<Item = Observed> {
        let value = move |n: u64| self.value(township, &self.parcel(township, n), self.year);
        self.numbers(township).map(value).chain(self.cycles(township, self.year))
    }

    /// The cycles of the neighbourhoods of a township, then its own.
    fn cycles(self, township: u64, year: i64) -> impl Iterator<Item = Observed> {
        let numbers = self.numbers(township);
        let neighborhoods = (numbers.end - numbers.start).div_ceil(NEIGHBORHOOD_PARCELS);
        let names = (0..neighborhoods).map(neighborhood_name).chain([String::new()]);
        names.map(move |neighborhood| {
            let key = format!("cook.values/cycle/{}/{neighborhood}", self.code(township));
            let fact = ParcelFact {
                stream: "cook.values".to_owned(),
                kind: parcels::CYCLE.to_owned(),
                year,
                township: self.code(township).to_owned(),
                neighborhood,
                stage: "mailed".to_owned(),
                ..ParcelFact::default()
            };
            Observed::at(key, FactData::Parcel(Box::new(fact)), self.at_ms).one_of_many()
        })
    }

    /// Draws a parcel. One in ten is commercial. Assessments are spread around the level of the class, as sums of several draws are.
    fn parcel(&self, township: u64, n: u64) -> Parcel {
        let mut random = sample::random(OWN, n);
        let class = match random.random_range(0..100) {
            0..10 => one_of(&mut random, &COMMERCIAL),
            10..13 => one_of(&mut random, &RENTAL),
            _ => one_of(&mut random, &RESIDENTIAL),
        };
        let price = random.random_range(90_000..900_000);
        let spread: i64 = (0..4).map(|_| random.random_range(-80..=80)).sum();
        let assessed = price * level(class).unwrap_or(1_000) / 10_000 * (1_000 + spread) / 1_000;
        Parcel {
            pin: pin(n),
            class,
            neighborhood: neighborhood_name((n - self.numbers(township).start) / NEIGHBORHOOD_PARCELS),
            price,
            assessed,
            is_sold: n.is_multiple_of(SOLD_IN),
        }
    }

    /// The values of a parcel in a year: those of earlier years are 3 percent lower each, and have all stages.
    fn value(&self, township: u64, parcel: &Parcel, year: i64) -> Observed {
        let ago = self.year - year;
        let total = parcel.assessed * (100 - 3 * ago) / 100;
        let is_final = ago > 0;
        let fact = ParcelFact {
            stream: "cook.values".to_owned(),
            kind: parcels::VALUE.to_owned(),
            pin: parcel.pin.clone(),
            year,
            class: parcel.class.to_owned(),
            township: self.code(township).to_owned(),
            neighborhood: parcel.neighborhood.clone(),
            mailed: Some(total),
            certified: is_final.then_some(total),
            board: is_final.then_some(total),
            mailed_building: Some(total * 7 / 10),
            ..ParcelFact::default()
        };
        Observed::at(format!("cook.values/{}{year}", parcel.pin), FactData::Parcel(Box::new(fact)), self.at_ms)
    }

    /// The sale of a parcel in the last two years.
    fn sale(&self, township: u64, parcel: &Parcel, n: u64) -> Observed {
        let mut random: StdRng = sample::random(OWN, n + self.parcels);
        let sale = (100_000_000 + n).to_string();
        let (year, month, day) = (self.year - random.random_range(1..=2), random.random_range(1..=12), random.random_range(1..=28));
        let fact = SaleFact {
            stream: "cook.sales".to_owned(),
            kind: sales::SALE.to_owned(),
            sale: sale.clone(),
            pin: parcel.pin.clone(),
            township: self.code(township).to_owned(),
            class: parcel.class.to_owned(),
            date: format!("{year}-{month:02}-{day:02}"),
            is_date_exact: true,
            price: Some(parcel.price),
            document: format!("{:010}", 2_500_000_000 + n),
            deed_type: one_of(&mut random, &["Warranty", "Warranty", "Trustee", "Quit claim"]).to_owned(),
            parcels: Some(1),
            ..SaleFact::default()
        };
        Observed::at(format!("cook.sales/{sale}"), FactData::Sale(Box::new(fact)), self.at_ms)
    }
}

/// The number of the n-th neighbourhood of a township.
fn neighborhood_name(at: u64) -> String {
    format!("{:03}", (at + 1) * 10)
}

/// The PIN of a parcel: 14 digits.
fn pin(n: u64) -> String {
    format!("{:010}0000", 1_000_000_000 + n)
}
