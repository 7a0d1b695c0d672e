//! The parcels service: over-assessed parcels, the check of one parcel and the liens of one, compared with PostgreSQL on the same rows, the leads with a
//! materialised view; the load of all facts, and a cycle of one township.
//!
//! Four in five parcels are of Cook County: each has the values of three years, one in five was sold, and one in seven has a permit. The others are of
//! Allegheny County: each has a row of its assessment, two in five with a homestead exclusion, one in five has liens, and one in 500 has 60. Sales of
//! Allegheny County are not loaded. The last township gets the values of the newest year, and its cycle, only after everything else is decided.

use std::time::Instant;

use ::parcels::record::{TABLES, strength};
use rand::RngExt;
use rand::rngs::StdRng;
use schemas::facts::FactData;
use schemas::facts::liens::LienFact;
use schemas::facts::parcels::{self, ParcelFact};
use schemas::facts::permits::PermitFact;
use schemas::facts::sales::{self, SaleFact};
use schemas::topics::{LIENS, PARCELS, PERMITS, SALES, Topic};
use serde_json::Value;
use texts::cook::{TOWNSHIPS, level};

use crate::lists::{self, Kind, PeerRows, text};
use crate::loads::{self, LaterFacts, Loaded, Observed, Plan};
use crate::report::{figure, heading, number, ratio, run_child};
use crate::sample::{self, one_of};
use crate::start_time::today;
use crate::{Failure, Settings, postgres};

/// The mode of `serve-child`.
pub(crate) const MODE: &str = "parcels";
const TOPICS: &[Topic] = &[PARCELS, SALES, LIENS, PERMITS];
const SERVICE: Loaded = Loaded { service: "parcels", tables: &TABLES, topics: TOPICS, inputs: TOPICS, before: &[] };
const LEADS: &str = "leads";
const LEADS_TOWNSHIP: &str = "leads of a township";
const PARCEL: &str = "parcel";
const BUNDLE: &str = "lien bundle";
const KINDS: [Kind; 4] = [
    Kind { name: LEADS, about: "over-assessed commercial parcels of a tier, pages of 50, the largest difference first", p99_ms_max: 5.0 },
    Kind { name: LEADS_TOWNSHIP, about: "the same of a township", p99_ms_max: 5.0 },
    Kind { name: PARCEL, about: "the check of one parcel", p99_ms_max: 2.0 },
    Kind { name: BUNDLE, about: "the report of a parcel with 60 liens; of the peer the rows of the liens", p99_ms_max: 5.0 },
];
const QUERIES: [&str; 4] = [
    "select body from leads where strength >= $1::text::int order by r desc, pin limit 50",
    "select body from leads where township = $2::text and strength >= $1::text::int order by r desc, pin limit 50",
    "select body from parcels where id = $1::text",
    "select body from parcels where pin = $1::text and kind = 'lien'",
];
/// The parcels of a township and of a neighbourhood, about. There are no more townships than the county has.
const TOWNSHIP_PARCELS: u64 = 50_000;
const NEIGHBORHOOD_PARCELS: u64 = 2_000;
/// One in so many parcels of Cook County was sold, and one in so many has a permit.
const SOLD_IN: u64 = 5;
const PERMIT_IN: u64 = 7;
/// One in so many parcels is of Allegheny County.
const ALLEGHENY_IN: u64 = 5;
/// One in so many parcels of Allegheny County has liens, at most so many; and one in so many has the number of liens that the limit is for.
const LIENS_IN: u64 = 5;
const LIENS_MAX: u64 = 16;
const BUNDLE_IN: u64 = 500;
const BUNDLE_LIENS: u64 = 60;
/// Of one in so many liens the publisher does not know the PIN.
const WITHOUT_PIN_IN: u64 = 100;
/// The day of a sale that is earlier than all homestead exclusions.
const SOLD_BEFORE: &str = "2015-03-01";
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
const PERMIT: u64 = 11;
const ALLEGHENY: u64 = 12;
const TIERS: [&str; 3] = ["low", "medium", "high"];
const COMMERCIAL: [&str; 4] = ["517", "517", "592", "593"];
const RENTAL: [&str; 2] = ["314", "315"];
const RESIDENTIAL: [&str; 6] = ["203", "205", "211", "234", "278", "299"];
const JOB_CODES: [(&str, &str); 3] =
    [("COMMERCIAL PERMIT", "NEW BUILDING"), ("RESIDENTIAL PERMIT", "ADDITION"), ("RESIDENTIAL PERMIT", "DECK")];
const DESCRIPTIONS: [&str; 4] =
    ["City & School Tax Lien", "School District Tax Lien", "Allegheny County Tax Lien", "Pgh Water & Sewer Tax Lien"];
const ENTRIES: [&str; 6] = ["Tax Lien", "Tax Lien", "Notice", "Satisfaction", "Satisfied as to School ONLY", "Mail Returned"];

/// Fills an engine with parcels, then compares.
pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    let county = County::of(settings);
    heading(&format!(
        "parcels: {} parcels in {} townships with permits, and {} parcels of Allegheny County with liens, one connection",
        county.parcels, county.townships, county.others
    ));
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
    let bytes = number(&loaded, "log_bytes") + number(&loaded, "view_bytes");
    figure("disk of a parcel with all its records, bytes", format!("{:.0}", bytes / (county.parcels + county.others) as f64));
    let rows = PeerRows {
        table: "parcels",
        definition: "id text primary key, kind text, pin text, township text, class text, strength int, r double precision, body text",
        columns: &columns,
        indexes: &[
            "create index on parcels (pin) where kind = 'lien'",
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

/// The row of a record: of a parcel, permit, lien or flag.
fn columns(record: &Value) -> Option<Vec<String>> {
    let r = record.get("r").and_then(Value::as_f64).unwrap_or_default();
    let strength = strength(&text(record, "tier"));
    let kind = ["permit", "lien", "flag"].into_iter().find(|kind| record.get(kind).is_some()).unwrap_or(PARCEL).to_owned();
    let [id, pin, township, class] = ["id", "pin", "townshipCode", "class"].map(|name| text(record, name));
    Some(vec![id, kind, pin, township, class, strength.to_string(), r.to_string(), record.to_string()])
}

/// `parcels-child`: loads the parcels, then the newest values of the last township with its cycle.
pub(crate) fn child(settings: &Settings) -> Result<(), Failure> {
    let county = County::of(settings);
    let later: LaterFacts = Box::new(county.newest_values(county.townships - 1));
    loads::child(settings, SERVICE, Plan { facts: facts(settings), later: vec![(CYCLE, later)], redecides: false })
}

/// The parcels of both counties, one for each record.
pub(crate) fn facts(settings: &Settings) -> impl Iterator<Item = Observed> + use<> {
    let county = County::of(settings);
    let of_cook = (0..county.townships).flat_map(move |township| county.facts(township));
    of_cook.chain((0..county.others).flat_map(move |n| county.facts_of_other(n)))
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
        (format!("/parcels/api/parcel?pin={pin}"), format!("/2?cook-il/{pin}"))
    });
    let bundle = (0..county.others).step_by(BUNDLE_IN as usize).map(|n| {
        let pin = other_pin(n);
        (format!("/parcels/x402/pay?tool=lien_bundle_report&pin={pin}"), format!("/3?{pin}"))
    });
    let paths = vec![
        (LEADS, leads.collect()),
        (LEADS_TOWNSHIP, of_township.collect()),
        (PARCEL, parcel.collect()),
        (BUNDLE, bundle.take(QUESTIONS as usize).collect()),
    ];
    lists::serve_own(settings, SERVICE, paths).await
}

/// Cook County with its parcels in townships of equal size, and the parcels of Allegheny County.
#[derive(Clone, Copy)]
struct County {
    /// The parcels of Cook County.
    parcels: u64,
    townships: u64,
    /// The parcels of Allegheny County.
    others: u64,
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
    /// Whether its building has a higher value in the newest year than before.
    is_built: bool,
}

impl County {
    fn of(settings: &Settings) -> Self {
        let others = (settings.records / ALLEGHENY_IN).max(1);
        let parcels = settings.records.saturating_sub(others).max(1);
        let townships = (parcels / TOWNSHIP_PARCELS).clamp(1, TOWNSHIPS.len() as u64);
        Self { parcels, townships, others, year: i64::from(today().year()), at_ms: sample::start_ms(today()).unwrap_or_default() }
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

    /// The facts of a township: values of three years, sales, permits and cycles. The last one has those of the two years before the newest.
    fn facts(self, township: u64) -> impl Iterator<Item = Observed> {
        let is_last = township + 1 == self.townships;
        let of_parcel = move |n: u64| {
            let parcel = self.parcel(township, n);
            let sale = parcel.is_sold.then(|| self.sale(township, &parcel, n));
            let first_ago = i64::from(is_last);
            let permit = n.is_multiple_of(PERMIT_IN).then(|| self.permit(&parcel, n));
            let values: Vec<Observed> = (first_ago..=2).map(|ago| self.value(township, &parcel, self.year - ago)).collect();
            values.into_iter().chain(sale).chain(permit)
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
            is_built: n.is_multiple_of(2 * PERMIT_IN),
        }
    }

    /// The values of a parcel in a year: those of earlier years are 3 percent lower each, and have all stages.
    fn value(&self, township: u64, parcel: &Parcel, year: i64) -> Observed {
        let ago = self.year - year;
        let total = parcel.assessed * (100 - 3 * ago) / 100;
        let is_final = ago > 0;
        let tenths = if parcel.is_built && is_final { 3 } else { 5 };
        let building = parcel.assessed * tenths / 10;
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
            mailed_building: Some(building),
            certified_building: is_final.then_some(building),
            board_building: is_final.then_some(building),
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

    /// The permit of a parcel, of one of the last four years.
    fn permit(&self, parcel: &Parcel, n: u64) -> Observed {
        let mut random = sample::random(PERMIT, n);
        let number = (200_000_000 + n).to_string();
        let (year, month, day) = (self.year - random.random_range(0..=3), random.random_range(1..=12), random.random_range(1..=28));
        let (primary, secondary) = JOB_CODES[random.random_range(0..JOB_CODES.len())];
        let fact = PermitFact {
            stream: "cook.permits".to_owned(),
            pin: parcel.pin.clone(),
            number: number.clone(),
            issued: format!("{year}-{month:02}-{day:02}"),
            status: one_of(&mut random, &["OPEN", "OPEN", "RECHECK", "CLOSED"]).to_owned(),
            assessable: "Assessable".to_owned(),
            amount: Some(random.random_range(5_000..900_000)),
            job_code: primary.to_owned(),
            job_code_secondary: secondary.to_owned(),
            description: "ERECT A BUILDING AS PER PLANS".to_owned(),
            municipality: "CHICAGO".to_owned(),
            ..PermitFact::default()
        };
        Observed::at(format!("cook.permits/{}/{number}", parcel.pin), FactData::Permit(Box::new(fact)), self.at_ms)
    }

    /// The facts of a parcel of Allegheny County: the row of its assessment, and its liens.
    fn facts_of_other(self, n: u64) -> impl Iterator<Item = Observed> {
        let mut random = sample::random(ALLEGHENY, n);
        let liens = if n.is_multiple_of(BUNDLE_IN) {
            BUNDLE_LIENS
        } else if n.is_multiple_of(LIENS_IN) {
            random.random_range(1..=LIENS_MAX)
        } else {
            0
        };
        let is_homestead = random.random_range(0..5) < 2;
        let is_commercial = !is_homestead && random.random_range(0..5) == 0;
        let (class, use_class, use_label) =
            if is_commercial { ("C411", "COMMERCIAL", "RETL/APT'S OVER") } else { ("R010", "RESIDENTIAL", "SINGLE FAMILY") };
        let mailing_city = if random.random_range(0..20) == 0 { "BOCA RATON" } else { "PITTSBURGH" };
        let of_homestead = |text: String| if is_homestead { text } else { String::new() };
        let assessment = ParcelFact {
            stream: "allegheny.assessments".to_owned(),
            kind: parcels::ASSESSMENT.to_owned(),
            pin: other_pin(n),
            year: self.year,
            class: class.to_owned(),
            township: (101 + n % 32).to_string(),
            township_name: "1st Ward - PITTSBURGH".to_owned(),
            neighborhood: (10_000 + n % 200).to_string(),
            certified: Some(random.random_range(20_000..600_000)),
            zip: "15222".to_owned(),
            street: format!("{} MAIN ST", n % 9_000 + 1),
            city: "PITTSBURGH".to_owned(),
            state: "PA".to_owned(),
            use_class: use_class.to_owned(),
            use_label: use_label.to_owned(),
            owner_kind: one_of(&mut random, &["REGULAR", "REGULAR", "REGULAR", "REGULAR", "CORPORATION"]).to_owned(),
            is_homestead,
            // Two parcels in fifty have one mailing address.
            mailing_hash: of_homestead(format!("{:024x}", if n % 50 == 1 { n - 1 } else { n })),
            mailing_city: of_homestead(mailing_city.to_owned()),
            mailing_state: of_homestead("PA".to_owned()),
            sale_date: SOLD_BEFORE.to_owned(),
            floor_area: (!is_commercial).then(|| 900 + i64::try_from(n % 1_800).unwrap_or_default()),
            ..ParcelFact::default()
        };
        let assessment =
            Observed::at(format!("allegheny.assessments/{}", assessment.pin), FactData::Parcel(Box::new(assessment)), self.at_ms);
        std::iter::once(assessment).chain((0..liens).map(move |at| self.lien(n, at)))
    }

    /// A lien of a parcel of Allegheny County. A tax year has at most four.
    fn lien(&self, n: u64, at: u64) -> Observed {
        let mut random = sample::random(ALLEGHENY, (n + 1) * 1_000 + at);
        let year = self.year - 1 - i64::try_from(at / 4).unwrap_or_default();
        let pin = if (n + at).is_multiple_of(WITHOUT_PIN_IN) { String::new() } else { other_pin(n) };
        let fact = LienFact {
            stream: "allegheny.liens".to_owned(),
            docket: format!("DTD-{:02}-{:06}", year % 100, n),
            description: DESCRIPTIONS[usize::try_from(at % 4).unwrap_or_default()].to_owned(),
            year: Some(year),
            block_lot: block_lot(n),
            pin,
            filed: format!("{}-05-01", year + 1),
            amount_cents: Some(random.random_range(5_000..900_000)),
            last_entry: one_of(&mut random, &ENTRIES).to_owned(),
            municipality: "1st Ward - PITTSBURGH".to_owned(),
            ..LienFact::default()
        };
        let key = format!("allegheny.liens/{}|{}|{year}|{}|{}", fact.docket, fact.description, fact.block_lot, fact.pin);
        Observed::at(key, FactData::Lien(Box::new(fact)), self.at_ms)
    }
}

/// The number of the n-th neighbourhood of a township.
fn neighborhood_name(at: u64) -> String {
    format!("{:03}", (at + 1) * 10)
}

/// The map and the lot of a parcel of Allegheny County.
fn map_and_lot(n: u64) -> (u64, u64) {
    (n / 10_000 + 1, n % 10_000 + 1)
}

/// The PIN of a parcel of Allegheny County: 16 characters.
fn other_pin(n: u64) -> String {
    let (map, lot) = map_and_lot(n);
    format!("{map:04}A{lot:05}000000")
}

/// The same parcel as courts write it.
fn block_lot(n: u64) -> String {
    let (map, lot) = map_and_lot(n);
    format!("{map}A{lot}")
}

/// The PIN of a parcel of Cook County: 14 digits.
fn pin(n: u64) -> String {
    format!("{:010}0000", 1_000_000_000 + n)
}
