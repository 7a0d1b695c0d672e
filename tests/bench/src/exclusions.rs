//! The exclusions service: evidence about an entity by its number and by its name, and the scan, compared with PostgreSQL on the same rows; names
//! screened on one core, compared with a comparison with all; the load, and a daily file with 300 changes.
//!
//! Of each exclusion there are six awards. One award in forty is of an excluded party. Exclusions are mapped from rows of the file, as the upstream
//! maps them, so that the daily file is compared with what is known.

use std::collections::HashMap;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use exclusions::record::TABLES;
use jiff::ToSpan;
use matching::company::{CompanyName, compare};
use matching::near_names::lists_of;
use rand::RngExt;
use schemas::facts::FactData;
use schemas::facts::awards::{AwardFact, kind};
use schemas::topics::{AWARDS, CHANGES_AWARDS, COMPANY_FACTS, EXCLUSIONS};
use serde_json::{Value, json};
use upstreams::http::Client;
use upstreams::{Answer, Settings as UpstreamSettings, Stream, Upstream, Window};
use warp::Filter;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::asker::Asker;
use crate::engine::Engine;
use crate::lists::{self, Kind, MoreRows, PeerRows, Sides, text};
use crate::loads::{self, Loaded, Observed, Plan};
use crate::pages;
use crate::report::{figure, heading, latency, line, median, memory_mib, number, percentile, ratio, run_child};
use crate::sample::{self, one_of};
use crate::start_time::today;
use crate::{Failure, Settings};

/// The mode of `serve-child`.
pub(crate) const MODE: &str = "exclusions";
const SERVICE: Loaded = Loaded {
    service: "exclusions",
    tables: &TABLES,
    topics: &[EXCLUSIONS, AWARDS],
    inputs: &[EXCLUSIONS, CHANGES_AWARDS, COMPANY_FACTS],
    before: &["awards"],
};
const STREAM: &str = "sam_exclusions";
const BY_UEI: &str = "entity by number";
const BY_NAME: &str = "entity by name";
const SCAN: &str = "scan";
/// Measured without `wrk`, so that the first answer after a start is measured by itself.
const BY_NAME_ALONE: &str = "entity by name without number";
const KINDS: [Kind; 3] = [
    Kind { name: BY_UEI, about: "the evidence about an entity, half of them excluded with awards", p99_ms_max: 5.0 },
    Kind { name: BY_NAME, about: "the same by the whole name", p99_ms_max: 15.0 },
    Kind { name: SCAN, about: "excluded entities with awards, pages of 50, the newest first", p99_ms_max: 10.0 },
];
const QUERIES: [&str; 3] = [
    "select body from exclusions where uei = $1::text union all (select body from awards where uei = $1::text limit 200)",
    "select body from exclusions where name = $1::text union all
     (select awards.body from exclusions join awards using (uei) where exclusions.kind = 'exclusion' and exclusions.name = $1::text limit 200)",
    "select (hits.body::jsonb || jsonb_build_object('awards', (select count(*) from awards where awards.uei = hits.uei)))::text
     from (select body, uei, active, id from exclusions where kind = 'hit' and ($1::text = 'ALL' or agency = $1::text)
     order by active desc, id limit 50) hits order by active desc, id",
];
const AWARDS_PER_EXCLUSION: u64 = 6;
/// One award in so many is of an excluded party.
const EXCLUDED_IN: u64 = 40;
/// Rows that are mapped at once.
const ROWS: u64 = 1_000;
/// The changes of a daily file: rows with another end, and new rows.
const MODIFIED: u64 = 250;
const ADDED: u64 = 50;
/// The rows of the limit of a daily file, and its seconds.
const DAILY_ROWS: f64 = 170_000.0;
const DAILY_S_MAX: f64 = 10.0;
const SCREENED_PER_S_MIN: f64 = 5_000.0;
/// The most names of a list that the service reads.
const NEAR_MAX: usize = 200;
/// Names that are screened, and those that are also compared with all.
const SCREENED: u64 = 2_000;
const SCANNED: usize = 20;
const BY_NAME_ALONE_MS_MAX: f64 = 15.0;
/// Different paths of a kind.
const QUESTIONS: u64 = 2_000;
/// Names without a number that are asked for.
const NAMES_ALONE: u64 = 200;
/// What sets the random numbers of exclusions, awards and questions apart.
const OWN: u64 = 7;
const AWARD: u64 = 8;
const QUESTION: u64 = 9;
const AGENCIES: [&str; 8] = ["HHS", "HHS", "HHS", "OPM", "EPA", "DOJ", "ARMY", "TREAS-OFAC"];
const TYPES: [&str; 3] = ["Ineligible (Proceedings Completed)", "Ineligible (Proceedings Pending)", "Prohibition/Restriction"];
const HEADER: &str = "\"Classification\",\"Name\",\"Prefix\",\"First\",\"Middle\",\"Last\",\"Suffix\",\"Address 1\",\"Address 2\",\
    \"Address 3\",\"Address 4\",\"City\",\"State / Province\",\"Country\",\"Zip Code\",\"Open Data Flag\",\"Blank (Deprecated)\",\
    \"Unique Entity ID\",\"Exclusion Program\",\"Excluding Agency\",\"CT Code\",\"Exclusion Type\",\"Additional Comments\",\
    \"Active Date\",\"Termination Date\",\"Record Status\",\"Cross-Reference\",\"SAM Number\",\"CAGE\",\"NPI\",\"Creation_Date\"\r\n";

/// Fills an engine with exclusions and awards, then compares.
pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    let awards = settings.records * AWARDS_PER_EXCLUSION;
    heading(&format!("exclusions: {} exclusions and {awards} awards, one connection", settings.records));
    screen(settings);
    let loaded = run_child(settings, "exclusions-child", &[])?;
    // Two persons of one name can have one row.
    if number(&loaded, "facts") < (settings.records + awards) as f64 * 0.99 {
        return Err("rows of exclusions could not be mapped".into());
    }
    loads::report(&loaded);
    write_daily(settings)?;
    let daily = run_child(settings, "exclusions-daily-child", &[])?;
    let (seconds, changed) = (number(&daily, "seconds"), number(&daily, "appended"));
    figure("facts of a daily file", format!("{changed:.0}"));
    if changed > 0.0 {
        let scaled = seconds * DAILY_ROWS / settings.records as f64;
        ratio("a daily file of 170,000 rows, seconds", scaled, scaled <= DAILY_S_MAX, "<= 10");
        loads::memory("peak memory of reading a daily file, MiB", number(&daily, "memory_mib"));
    }
    let of_awards = || {
        let rows = (0..awards).map(|n| {
            let award = award(n, settings.records);
            let body = serde_json::to_string(&award).unwrap_or_default();
            vec![award.award_id, award.recipient_uei, body]
        });
        Box::new(rows) as Box<dyn Iterator<Item = Vec<String>>>
    };
    let rows = PeerRows {
        table: "exclusions",
        definition: "id text primary key, kind text, uei text, name text, agency text, active text, body text",
        columns: &columns,
        indexes: &[
            "create index on exclusions (uei)",
            "create index on exclusions (name)",
            "create index on exclusions (kind, active desc, id)",
            "create index on exclusions (kind, agency, active desc, id)",
        ],
        also: &[MoreRows {
            table: "awards",
            definition: "id text primary key, uei text, body text",
            rows: &of_awards,
            indexes: &["create index on awards (uei)"],
        }],
        queries: &QUERIES,
    };
    let sides = lists::start_sides(settings, SERVICE, &loaded, MODE, &rows)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let (first, others) = runtime.block_on(async {
        let mut paths = sides.api.texts(BY_NAME_ALONE);
        let others = paths.split_off(paths.len().min(1));
        let seconds = Asker::new(&sides.api, sides.api.texts("keys"))?.ask("", &paths).await?;
        Ok::<_, Failure>((seconds, others))
    })?;
    latency("the first question by name after a start, before which the server reads all names of recipients", &first);
    lists::compare(settings, &KINDS, &sides.api, sides.peer.as_ref())?;
    runtime.block_on(ask_by_name_alone(&sides, &others))?;
    loads::memory("peak memory of the API's process, MiB", sides.api.memory_mib()?);
    Ok(())
}

/// Asks for the evidence about excluded parties without a number, whose names are compared with those of all recipients of awards.
async fn ask_by_name_alone(sides: &Sides, paths: &[String]) -> Result<(), Failure> {
    let seconds = Asker::new(&sides.api, sides.api.texts("keys"))?.ask("", paths).await?;
    latency(BY_NAME_ALONE, &seconds);
    let p99_ms = percentile(seconds, 0.99) * 1e3;
    ratio(&format!("{BY_NAME_ALONE}: p99 ms"), p99_ms, p99_ms <= BY_NAME_ALONE_MS_MAX, "<= 15");
    Ok(())
}

/// The row of a record.
fn columns(record: &Value) -> Option<Vec<String>> {
    let fields = ["id", "kind", "uei", "name", "excludingAgency", "activeDate"];
    Some(fields.iter().map(|name| text(record, name)).chain([record.to_string()]).collect())
}

/// Screens names of companies on one core by the lists of near names, in turn with a comparison with all.
fn screen(settings: &Settings) {
    let companies = (0..settings.records).map(party).filter(|party| !party.is_person());
    let known: Vec<CompanyName> = companies.filter_map(|party| CompanyName::new(&party.name)).collect();
    let mut index: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, name) in known.iter().enumerate() {
        let keys = name.exact_keys();
        let words = keys.iter().find_map(|key| key.strip_prefix("words/"));
        let lists = words.map(|words| lists_of(&words.split(' ').collect::<Vec<_>>())).unwrap_or_default();
        for list in keys.into_iter().chain(lists) {
            index.entry(list).or_default().push(at);
        }
    }
    // Half of the names are on the list, with one letter less.
    let asked = (0..SCREENED).filter_map(|n| {
        let mut random = sample::random(QUESTION, n);
        let other = sample::business(&mut random).name;
        let own = party(random.random_range(0..settings.records));
        let shortened: String = own.name.chars().take(4).chain(own.name.chars().skip(5)).collect();
        CompanyName::new(if n.is_multiple_of(2) && !own.is_person() { &shortened } else { &other })
    });
    let asked: Vec<CompanyName> = asked.collect();
    let matches = |name: &CompanyName| {
        let groups = name.near_lists();
        // As the service does: a group with a list that is longer is passed over, if another has none.
        let is_short = |group: &&Vec<String>| group.iter().all(|list| index.get(list).map_or(0, Vec::len) <= NEAR_MAX);
        let lists = groups.iter().find(is_short).or(groups.first()).into_iter().flatten().cloned().chain(name.exact_keys());
        let mut found: Vec<usize> = lists.filter_map(|list| index.get(&list)).flatten().copied().collect();
        found.sort_unstable();
        found.dedup();
        found.retain(|at| known.get(*at).is_some_and(|other| compare(name, other).is_some()));
        found
    };
    let by_scan = |name: &CompanyName| -> Vec<usize> {
        known.iter().enumerate().filter(|(_, other)| compare(name, other).is_some()).map(|(at, _)| at).collect()
    };
    let few: Vec<&CompanyName> = asked.iter().take(SCANNED).collect();
    let equal = few.iter().all(|name| matches(name) == by_scan(name));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..settings.rounds {
        ours.push(lists::per_second(&asked, |name| drop(std::hint::black_box(matches(name)))));
        theirs.push(lists::per_second(&few, |name| drop(std::hint::black_box(by_scan(name)))));
    }
    let (ours, theirs) = (median(ours), median(theirs));
    figure("names of companies on the list", known.len());
    figure("names that match", asked.iter().filter(|name| !matches(name).is_empty()).count());
    figure("a comparison with all, names a second", format!("{theirs:.1}"));
    figure("screening / a comparison with all", format!("{:.0}", ours / theirs));
    ratio("names screened a second on one core", ours, ours >= SCREENED_PER_S_MIN, ">= 5,000");
    ratio("matches equal a comparison with all", f64::from(u8::from(equal)), equal, "= 1");
}

/// `exclusions-child`: loads the exclusions and the awards.
pub(crate) fn child(settings: &Settings) -> Result<(), Failure> {
    let records = settings.records;
    let awards = (0..records * AWARDS_PER_EXCLUSION).map(move |n| {
        let award = award(n, records);
        Observed::now(format!("usaspending.awards/{}", award.award_id), FactData::Award(Box::new(award)))
    });
    loads::child(settings, SERVICE, Plan { facts: facts(settings)?.chain(awards), later: Vec::new(), redecides: false })
}

/// An exclusion for each record.
pub(crate) fn facts(settings: &Settings) -> Result<impl Iterator<Item = Observed> + use<>, Failure> {
    let parts = Parts::new(settings.records)?;
    // A part that cannot be mapped is missed by the benchmark of the service.
    Ok((0..settings.records.div_ceil(ROWS)).flat_map(move |part| parts.observed(part).unwrap_or_default()))
}

/// Serves what `exclusions-child` loaded.
pub(crate) async fn serve(settings: &Settings) -> Result<(), Failure> {
    let records = settings.records;
    let excluded = |n: u64| party(excluded_of(n * EXCLUDED_IN, records));
    let by_uei = (0..QUESTIONS).map(|n| {
        let uei = if n.is_multiple_of(2) { excluded(n).uei } else { contractor(n) };
        (format!("/exclusions/v1/entity_watch?uei={uei}"), format!("/0?{uei}"))
    });
    let by_name = (0..QUESTIONS).map(|n| {
        let mut random = sample::random(QUESTION, n);
        let name = if n.is_multiple_of(2) { excluded(n).name } else { sample::business(&mut random).name };
        let name = name.replace(' ', "%20");
        (format!("/exclusions/v1/entity_watch?name={name}"), format!("/1?{name}"))
    });
    // The second of each ten exclusions is that of a party without a number.
    let by_name_alone = (0..NAMES_ALONE.min(records / 10)).map(|n| {
        let name = party(n * 10 + 1).name.replace(' ', "%20");
        (format!("/exclusions/v1/entity_watch?name={name}"), String::new())
    });
    let scan = ["", "HHS", "OPM", "EPA", "DOJ", "ARMY"].map(|agency| {
        let (own, asked) = if agency.is_empty() { (String::new(), "ALL") } else { (format!("&agency={agency}"), agency) };
        (format!("/exclusions/v1/scan?limit=50{own}"), format!("/2?{asked}"))
    });
    let paths =
        vec![(BY_UEI, by_uei.collect()), (BY_NAME, by_name.collect()), (SCAN, scan.to_vec()), (BY_NAME_ALONE, by_name_alone.collect())];
    lists::serve_own(settings, SERVICE, paths).await
}

/// Maps rows of the file.
struct Parts {
    records: u64,
    upstream: &'static dyn Upstream,
    stream: &'static Stream,
}

impl Parts {
    fn new(records: u64) -> Result<Self, Failure> {
        let (upstream, stream) = upstream()?;
        Ok(Self { records, upstream, stream })
    }

    /// The exclusions of a part of the file.
    fn observed(&self, part: u64) -> Result<Vec<Observed>, Failure> {
        let mut body = HEADER.to_owned();
        (part * ROWS..self.records.min((part + 1) * ROWS)).for_each(|n| body.push_str(&row(n, false)));
        let cursor = self.upstream.start(self.stream, &Window { from: None, to: today() }, &pages::settings(None));
        let answer = Answer { status: 200, link: None, body: Bytes::from(body) };
        let page = self.upstream.map(self.stream, &cursor, &answer, today())?;
        Ok(page.observations.into_iter().map(|one| Observed::now(one.key, one.data)).collect())
    }
}

fn upstream() -> Result<(&'static dyn Upstream, &'static Stream), Failure> {
    let upstream = upstreams::by_name(STREAM).ok_or("no such upstream")?;
    let stream = upstream.manifest().streams.iter().find(|stream| stream.name == STREAM).ok_or("no such stream")?;
    Ok((upstream, stream))
}

fn daily_file(settings: &Settings) -> PathBuf {
    settings.dir.join(format!("{}-exclusions.zip", settings.records))
}

/// Writes a daily file: the same rows, of which some have another end, and new ones.
fn write_daily(settings: &Settings) -> Result<(), Failure> {
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    let mut zip = ZipWriter::new(BufWriter::new(std::fs::File::create(daily_file(settings))?));
    zip.start_file("SAM_Exclusions_Public_Extract_V2.CSV", options)?;
    zip.write_all(HEADER.as_bytes())?;
    let every = (settings.records / MODIFIED).max(1);
    for n in 0..settings.records + ADDED {
        zip.write_all(row(n, n < settings.records && n.is_multiple_of(every)).as_bytes())?;
    }
    zip.finish()?.flush()?;
    Ok(())
}

/// `exclusions-daily-child`: reads the daily file from a server until its last change is decided.
pub(crate) fn daily_child(settings: &Settings) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let file = warp::path!("data-services" / "v1" / "extracts").and(warp::fs::file(daily_file(settings)));
        let listener = surfaces::server::listen(std::net::SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let base_url = format!("http://{}", listener.local_addr()?);
        let server = tokio::spawn(warp::serve(file).incoming(listener).run());
        let engine = Engine::open(&SERVICE.dir(settings)).await?;
        SERVICE.wait_decided(&engine).await?;
        let (upstream, stream) = upstream()?;
        let own = UpstreamSettings { api_key: Some("bench".to_owned()), ..pages::settings(Some(base_url)) };
        let started = Instant::now();
        let outcome = Arc::clone(&engine.runner).sync_stream(upstream, stream, &Client::new(&own)?, &own).await?;
        SERVICE.wait_decided(&engine).await?;
        let seconds = started.elapsed().as_secs_f64();
        server.abort();
        engine.close().await?;
        let memory_mib = memory_mib(std::process::id())?;
        Ok::<Value, Failure>(json!({ "seconds": seconds, "appended": outcome.run.appended, "memory_mib": memory_mib }))
    })?;
    line(&result.to_string());
    Ok(())
}

/// An excluded party.
struct Party {
    classification: &'static str,
    /// The name of a company, a ship or a person.
    name: String,
    first: String,
    last: String,
    uei: String,
    business: sample::Business,
}

impl Party {
    fn is_person(&self) -> bool {
        self.classification == "Individual"
    }
}

/// Draws a party: six of ten are persons, three of ten companies with a number. The first of each ten is always such a company.
fn party(n: u64) -> Party {
    let mut random = sample::random(OWN, n);
    let business = sample::business(&mut random);
    let (first, last) = sample::person(&mut random);
    let (classification, name, uei) = match n % 10 {
        0 | 3 | 6 => ("Firm", business.name.clone(), format!("X{n:011}")),
        1 => ("Special Entity Designation", business.name.clone(), String::new()),
        _ => ("Individual", format!("{first} {last}"), String::new()),
    };
    Party { classification, name, first, last, uei, business }
}

/// The number of the excluded party of an award.
fn excluded_of(award: u64, records: u64) -> u64 {
    award / EXCLUDED_IN * 10 % records.max(10) / 10 * 10
}

/// The UEI of a contractor that is not excluded.
fn contractor(n: u64) -> String {
    format!("C{:011}", n % 100_000)
}

/// A row of the file.
fn row(n: u64, has_other_end: bool) -> String {
    let party = party(n);
    let mut random = sample::random(OWN, u64::from(u32::MAX) + n);
    let (name, first, last) = if party.is_person() { ("", &*party.first, &*party.last) } else { (&*party.name, "", "") };
    let sample::Business { street, city, state, zip, .. } = &party.business;
    let (agency, exclusion_type) = (one_of(&mut random, &AGENCIES), one_of(&mut random, &TYPES));
    let active = today().saturating_sub(random.random_range(1..4_000_i32).days());
    let end = if has_other_end { "12/31/2099" } else { "Indefinite" };
    let us_day = format!("{:02}/{:02}/{}", active.month(), active.day(), active.year());
    let cage =
        if party.uei.is_empty() { String::new() } else { format!("{:04}{}", n % 10_000, char::from(b'A' + (n / 10_000 % 26) as u8)) };
    let fields = [
        party.classification,
        name,
        "",
        first,
        "",
        last,
        "",
        street,
        "",
        "",
        "",
        city,
        state,
        "USA",
        zip,
        "",
        "",
        &party.uei,
        "Reciprocal",
        agency,
        "",
        exclusion_type,
        "",
        &us_day,
        end,
        "",
        "",
        "",
        &cage,
        "",
        &active.to_string(),
    ];
    format!("\"{}\"\r\n", fields.join("\",\""))
}

/// An award. One in ten is large enough to be bid again.
fn award(n: u64, records: u64) -> AwardFact {
    let mut random = sample::random(AWARD, n);
    let id = format!("CONT_AWD_{n:010}_9700_-NONE-_-NONE-");
    let (recipient, uei) = if n.is_multiple_of(EXCLUDED_IN) {
        let party = party(excluded_of(n, records));
        (party.name, party.uei)
    } else {
        (sample::business(&mut random).name, contractor(random.random_range(0..100_000)))
    };
    let is_large = random.random_bool(0.1);
    let amount = if is_large { random.random_range(25_000_000..2_000_000_000_i64) } else { random.random_range(100_000..20_000_000) };
    let day = |days: i32| today().saturating_add(days.days()).to_string();
    let (signed, end) = (day(-random.random_range(10..1_500)), day(random.random_range(-200..700)));
    AwardFact {
        stream: "usaspending.awards".to_owned(),
        kind: kind::AWARD.to_owned(),
        award_id: id.clone(),
        piid: format!("{n:010}"),
        award_type: one_of(&mut random, &["DELIVERY ORDER", "DEFINITIVE CONTRACT", "PURCHASE ORDER"]).to_owned(),
        description: "Support of systems and of those who use them, as ordered".to_owned(),
        recipient,
        recipient_uei: uei,
        agency: one_of(&mut random, &["Department of Defense", "Department of Veterans Affairs", "Department of Energy"]).to_owned(),
        office: format!("OFFICE {:03}", random.random_range(0..400)),
        naics: format!("{}", 541_000 + random.random_range(0..400)),
        psc: format!("R{:03}", random.random_range(0..200)),
        amount_cents: Some(amount),
        outlays_cents: Some(amount / 3),
        exercised_cents: Some(amount),
        ceiling_cents: Some(amount * 2),
        start: signed.clone(),
        signed,
        potential_end: end.clone(),
        end,
        url: format!("https://www.usaspending.gov/award/{id}"),
        ..AwardFact::default()
    }
}
