//! The aviation service: directives that may apply to a model, compared with PostgreSQL on the same rows; the assessment of a fleet and its file;
//! and directives read from documents on one core, compared with a plain scan of the same documents for a word.
//!
//! Five records are a directive, so that the default gives 20,000. Each names up to six models of one of 136 series, so that about 150 directives may apply
//! to an aircraft, and a fleet of 200 aircraft has about 30,000; one in eight replaces an earlier one.

use std::collections::HashMap;

use bytes::Bytes;
use directives::{Publication, read};
use rand::RngExt;
use rand::rngs::StdRng;
use schemas::facts::FactData;
use schemas::facts::directives::DirectiveFact;
use schemas::topics::DIRECTIVES;
use schemas::views::aviation::TABLES;
use serde_json::{Value, json};

use crate::asker::{Asker, Streamed};
use crate::lists::{self, Kind, PeerRows, Sides, text};
use crate::loads::{self, Loaded, Observed, Plan};
use crate::report::{figure, heading, latency, median, number, percentile, ratio, run_child};
use crate::sample::{self, one_of};
use crate::{Failure, Settings};

/// The mode of `serve-child`.
pub(crate) const MODE: &str = "aviation";
const SERVICE: Loaded = Loaded { service: "aviation", tables: &TABLES, topics: &[DIRECTIVES], inputs: &[DIRECTIVES], before: &[] };
const MATCH: &str = "match";
const KINDS: [Kind; 1] =
    [Kind { name: MATCH, about: "current directives that may apply to a model, pages of 50, newest first", p99_ms_max: 5.0 }];
/// Rows whose text names one of the models; the second for all models of a fleet, the third with each aircraft.
const QUERIES: [&str; 3] = [
    "select body from directives where forms @> array[$1::text] and status <> 'superseded' order by effective desc, id limit 50",
    "select body from directives where forms && string_to_array($1::text, ',')",
    "select json_build_object('tail', tail, 'ad', id, 'title', title, 'effective', effective, 'status', status)::text
     from unnest(string_to_array($1::text, ',')) with ordinality fleet (form, tail) join directives on forms @> array[form]",
];
/// Records for each directive, and the most directives.
const RECORDS_PER_DIRECTIVE: u64 = 5;
const DIRECTIVES_MAX: u64 = 20_000;
/// The numbers of a fortnight of a year.
const PER_FORTNIGHT: u64 = 30;
const FORTNIGHTS: u64 = 26;
/// The year of the last directive.
const LAST_YEAR: u64 = 2026;
/// One in so many replaces an earlier one, which is so many directives older.
const REPLACES_IN: u64 = 8;
const REPLACED_BEFORE: u64 = 500;
/// Aircraft of the fleet, and their models.
const AIRCRAFT: u64 = 200;
const MODELS: u64 = 40;
const ASSESS_MS_MAX: f64 = 100.0;
const FIRST_BYTE_MS_MAX: f64 = 50.0;
const WHOLE_MS_MAX: f64 = 500.0;
const DOCUMENTS_PER_S_MIN: f64 = 300.0;
const REDECIDE_S_MAX: f64 = 90.0;
/// Fleets and files of a round.
const ANSWERS: usize = 10;
/// Different paths of a kind.
const QUESTIONS: u64 = 2_000;
/// What sets the random numbers of directives and of questions apart.
const OWN: u64 = 5;
const QUESTION: u64 = 6;

/// A maker: the name, the series, the ends of models, and the word for the product.
type Maker = (&'static str, &'static [&'static str], &'static [&'static str], &'static str);

static MAKERS: [Maker; 10] = [
    (
        "Piper Aircraft, Inc.",
        &[
            "PA-12", "PA-18", "PA-20", "PA-22", "PA-23", "PA-24", "PA-25", "PA-28", "PA-30", "PA-31", "PA-32", "PA-34", "PA-36", "PA-38",
            "PA-39", "PA-42", "PA-44", "PA-46", "PA-60",
        ],
        &["-140", "-150", "-160", "-180", "-181", "-235", "-300"],
        "airplanes",
    ),
    (
        "Textron Aviation Inc.",
        &[
            "120", "140", "188", "195", "305", "336", "411", "526", "150", "152", "170", "172", "175", "177", "180", "182", "185", "206",
            "207", "208", "210", "310", "320", "337", "340", "401", "402", "404", "414", "421", "425", "441", "500", "510", "525", "550",
            "560", "650", "680", "750",
        ],
        &["A", "B", "C", "D", "E", "F", "M"],
        "airplanes",
    ),
    (
        "Airbus SAS",
        &["A300", "A310", "A318", "A319", "A320", "A321", "A330", "A340", "A350", "A380"],
        &["-111", "-112", "-113", "-115", "-131", "-211", "-231"],
        "airplanes",
    ),
    (
        "The Boeing Company",
        &["707", "717", "727", "737", "747", "757", "767", "777", "787"],
        &["-100", "-200", "-300", "-400", "-700", "-800", "-900"],
        "airplanes",
    ),
    (
        "Airbus Helicopters",
        &[
            "AS332", "AS350", "AS355", "AS365", "EC120", "EC130", "EC135", "EC155", "EC175", "EC225", "SA315", "SA316", "SA319", "SA321",
            "SA330", "SA341", "SA365",
        ],
        &["B", "B1", "B2", "B3", "C", "F1", "N"],
        "helicopters",
    ),
    (
        "Bell Textron Inc.",
        &["204", "205", "206", "212", "214", "222", "230", "407", "412", "427", "429", "430", "505", "525"],
        &["A", "B", "L", "L-1", "L-3"],
        "helicopters",
    ),
    (
        "Bombardier, Inc.",
        &["BD-100", "BD-500", "BD-700", "CL-215", "CL-415", "CL-600"],
        &["-1A10", "-1A11", "-2B16", "-2B19", "-2C10"],
        "airplanes",
    ),
    (
        "Embraer S.A.",
        &["EMB-110", "EMB-120", "EMB-121", "EMB-810", "EMB-820", "EMB-135", "EMB-145", "EMB-500", "EMB-505", "EMB-545"],
        &["ER", "LR", "XR", "BJ"],
        "airplanes",
    ),
    ("Mooney International Corporation", &["M10", "M18", "M20", "M22"], &["A", "B", "C", "D", "E", "F", "J"], "airplanes"),
    ("Diamond Aircraft Industries", &["DA 20", "DA 40", "DA 42", "DA 50", "DA 62", "DV 20", "HK 36"], &["", "D", "F", "NG"], "airplanes"),
];

/// Fills an engine with directives, then compares.
pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    let count = directives_of(settings);
    heading(&format!("aviation: {count} directives, a fleet of {AIRCRAFT} aircraft of {MODELS} models, one connection"));
    read_documents(settings);
    let loaded = run_child(settings, "aviation-child", &[])?;
    loads::report(&loaded);
    let scaled = number(&loaded, "redecide_s") * DIRECTIVES_MAX as f64 / count as f64;
    ratio("redecide of 20,000 directives, seconds", scaled, scaled <= REDECIDE_S_MAX, "<= 90");
    let rows = PeerRows {
        table: "directives",
        definition: "id text primary key, status text, effective text, title text, forms text[], body text",
        columns: &columns,
        indexes: &["create index on directives using gin (forms)"],
        also: &[],
        queries: &QUERIES,
    };
    let sides = lists::start_sides(settings, SERVICE, &loaded, MODE, &rows)?;
    lists::compare(settings, &KINDS, &sides.api, sides.peer.as_ref())?;
    figure("directives of an aircraft of the fleet, mean", format!("{:.0}", directives_per_aircraft(count, 0)));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(fleets(settings, &sides))?;
    loads::memory("peak memory of the API's process, MiB", sides.api.memory_mib()?);
    Ok(())
}

/// The row of a directive: the compact forms of its models as an array.
fn columns(directive: &Value) -> Option<Vec<String>> {
    let models = directive.get("models").and_then(Value::as_array).into_iter().flatten();
    let forms: Vec<String> = models.map(|model| text(model, "form")).filter(|form| !form.is_empty()).collect();
    let [id, status, effective, title] = ["id", "status", "effectiveDate", "title"].map(|name| text(directive, name));
    Some(vec![id, status, effective, title, format!("{{{}}}", forms.join(",")), directive.to_string()])
}

/// Assesses fleets, stores one, and gets its file, in turn with the rows of the same models from the peer.
async fn fleets(settings: &Settings, sides: &Sides) -> Result<(), Failure> {
    let keys = sides.api.texts("keys");
    let own = Asker::new(&sides.api, keys.clone())?;
    let peer = sides.peer.as_ref().map(|peer| Asker::new(peer, Vec::new())).transpose()?;
    let body = |n: u64, store: bool| Bytes::from(json!({ "aircraft": fleet(n), "fleet": "bench", "store": store }).to_string());
    // The file is that of the account of the first key.
    own.post(0, "/aviation/v1/assess", body(0, true)).await?;
    let (mut assessed, mut files, mut rows, mut joined) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for n in 0..ANSWERS * settings.rounds {
        assessed.push(own.post(n, "/aviation/v1/assess", body(n as u64, false)).await?);
        files.push(own.get(0, "/aviation/v1/audit.csv?fleet=bench").await?);
        if let Some(peer) = &peer {
            let models: Vec<String> = (0..MODELS).map(|at| directives::compact_form(&model_of(n as u64, at).1)).collect();
            rows.push(peer.get(0, &format!("/1?{}", models.join(","))).await?);
            let all: Vec<String> = (0..AIRCRAFT).map(|at| directives::compact_form(&model_of(0, at % MODELS).1)).collect();
            joined.push(peer.get(0, &format!("/2?{}", all.join(","))).await?);
        }
    }
    let values_of = |all: &[Streamed], field: fn(&Streamed) -> f64| all.iter().map(field).collect::<Vec<f64>>();
    let mean_bytes = |all: &[Streamed]| all.iter().map(|one| one.bytes).sum::<usize>() / all.len().max(1);
    figure("assess, bytes of an answer", mean_bytes(&assessed));
    latency("assess of 200 aircraft", &values_of(&assessed, |one| one.whole));
    figure("audit.csv, bytes", mean_bytes(&files));
    latency("audit.csv, first byte", &values_of(&files, |one| one.first));
    latency("audit.csv, whole", &values_of(&files, |one| one.whole));
    if peer.is_some() {
        latency("rows that name one of the 40 models, PostgreSQL", &values_of(&rows, |one| one.whole));
        latency("the rows of each aircraft, PostgreSQL", &values_of(&joined, |one| one.whole));
    }
    let p99 = |all: &[Streamed], field: fn(&Streamed) -> f64| percentile(values_of(all, field), 0.99) * 1e3;
    for (name, value, most) in [
        ("assess of 200 aircraft, p99 ms", p99(&assessed, |one| one.whole), ASSESS_MS_MAX),
        ("audit.csv, first byte, p99 ms", p99(&files, |one| one.first), FIRST_BYTE_MS_MAX),
        ("audit.csv, whole, p99 ms", p99(&files, |one| one.whole), WHOLE_MS_MAX),
    ] {
        ratio(name, value, value <= most, &format!("<= {most}"));
    }
    Ok(())
}

/// Reads directives from documents on one core, in turn with a scan of the same documents for a word.
fn read_documents(settings: &Settings) {
    let documents: Vec<DirectiveFact> = (0..500).map(document).collect();
    let bytes = documents.iter().map(|document| document.text.len()).sum::<usize>() / documents.len();
    let (mut models, mut words) = (0, 0);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..settings.rounds {
        ours.push(lists::per_second(&documents, |document| {
            let effective_on = document.effective_on.parse().ok();
            let source = Publication { title: &document.title, summary: &document.summary, text: &document.text, effective_on };
            models += read(&source).map_or(0, |found| found.iter().map(|one| one.applicability.models.len()).sum::<usize>());
        }));
        theirs.push(lists::per_second(&documents, |document| words += document.text.matches("Model").count()));
    }
    let (ours, theirs) = (median(ours), median(theirs));
    figure("bytes of a document", bytes);
    figure("models read / words found by the scan", format!("{models} / {words}"));
    figure("a scan for the word, documents a second", format!("{theirs:.0}"));
    figure("reading directives / a scan", format!("{:.4}", ours / theirs));
    ratio("documents a second on one core", ours, ours >= DOCUMENTS_PER_S_MIN, ">= 300");
}

/// `aviation-child`: loads the directives, and decides them again.
pub(crate) fn child(settings: &Settings) -> Result<(), Failure> {
    loads::child(settings, SERVICE, Plan { facts: facts(settings), later: Vec::new(), redecides: true })
}

/// A directive for each five records.
pub(crate) fn facts(settings: &Settings) -> impl Iterator<Item = Observed> + use<> {
    (0..directives_of(settings)).map(|n| {
        let document = document(n);
        Observed::now(format!("federal_register.ads/{}@{}", document.number, document.published), FactData::Directive(Box::new(document)))
    })
}

/// Serves the directives that `aviation-child` loaded.
pub(crate) async fn serve(settings: &Settings) -> Result<(), Failure> {
    let matched = (0..QUESTIONS).map(|n| {
        let (make, model) = model(&mut sample::random(QUESTION, n));
        let own = format!("/aviation/v1/match?make={make}&model={model}&limit=50").replace(' ', "%20");
        (own, format!("/0?{}", directives::compact_form(&model)))
    });
    lists::serve_own(settings, SERVICE, vec![(MATCH, matched.collect())]).await
}

fn directives_of(settings: &Settings) -> u64 {
    (settings.records / RECORDS_PER_DIRECTIVE).clamp(1, DIRECTIVES_MAX)
}

/// Draws a series, each as likely as the others, with its maker.
fn series_of(random: &mut StdRng) -> (Maker, &'static str) {
    let all = || MAKERS.iter().flat_map(|maker| maker.1.iter().map(move |series| (*maker, *series)));
    let at = random.random_range(0..all().count());
    all().nth(at).unwrap_or((MAKERS[0], ""))
}

/// Draws a maker and one of its models.
fn model(random: &mut StdRng) -> (&'static str, String) {
    let ((make, _, ends, _), series) = series_of(random);
    (make, format!("{series}{}", one_of(random, ends)))
}

/// How many directives are for the series of an aircraft of a fleet, in the mean.
fn directives_per_aircraft(count: u64, n: u64) -> f64 {
    let mut by_series: HashMap<(&str, &str), u64> = HashMap::new();
    for directive in 0..count {
        let ((make, ..), series) = series_of(&mut sample::random(OWN, directive));
        *by_series.entry((make, series)).or_default() += 1;
    }
    let of_model = |at: u64| {
        let ((make, ..), series) = series_of(&mut random_of_model(n, at));
        by_series.get(&(make, series)).copied().unwrap_or_default()
    };
    (0..MODELS).map(of_model).sum::<u64>() as f64 / MODELS as f64
}

/// What a model of a fleet is drawn with.
fn random_of_model(fleet: u64, at: u64) -> StdRng {
    sample::random(QUESTION, QUESTIONS + fleet * MODELS + at)
}

/// A model of a fleet.
fn model_of(fleet: u64, at: u64) -> (&'static str, String) {
    model(&mut random_of_model(fleet, at))
}

/// The aircraft of a fleet.
fn fleet(n: u64) -> Vec<Value> {
    let aircraft = |at: u64| {
        let (make, model) = model_of(n, at % MODELS);
        json!({ "tail": format!("N{:03}AB", at + 100), "make": make, "model": model, "hoursTIS": 1_200.5 + at as f64 * 10.0, "serial": format!("{}", 4_000 + at) })
    };
    (0..AIRCRAFT).map(aircraft).collect()
}

/// The number of the n-th directive of all that are generated, the last of which are of the last year.
fn number_of(n: u64) -> String {
    let per_year = FORTNIGHTS * PER_FORTNIGHT;
    let year = LAST_YEAR - DIRECTIVES_MAX / per_year + n / per_year;
    format!("{year}-{:02}-{:02}", n % per_year / PER_FORTNIGHT + 1, n % PER_FORTNIGHT + 1)
}

/// The document of the n-th directive, as long as the regulatory text of many is.
fn document(n: u64) -> DirectiveFact {
    let mut random = sample::random(OWN, n);
    let ((make, _, ends, product), series) = series_of(&mut random);
    let mut models: Vec<String> = (0..random.random_range(1..=6)).map(|_| format!("{series}{}", one_of(&mut random, ends))).collect();
    models.sort_unstable();
    models.dedup();
    let named = match models.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => models.join(""),
    };
    let scope = if random.random_bool(0.4) { ", serial numbers 4001 through 4150 inclusive, certificated" } else { ", certificated" };
    let affected = if n >= REPLACED_BEFORE && n.is_multiple_of(REPLACES_IN) {
        format!("This AD replaces AD {}.", number_of(n - REPLACED_BEFORE))
    } else {
        "None.".to_owned()
    };
    let (hours, months) = ([25, 50, 100, 500, 1_000][random.random_range(0..5)], [6, 12, 24][random.random_range(0..3)]);
    let recurring = if random.random_bool(0.5) {
        format!("Repeat the inspection thereafter at intervals not to exceed {hours} hours TIS or {months} months, whichever occurs first.")
    } else {
        "If a crack is found, replace the part before further flight.".to_owned()
    };
    let number = number_of(n);
    let (year, fortnight) = (number.get(..4).unwrap_or_default(), n / PER_FORTNIGHT % FORTNIGHTS);
    let published = format!("{year}-{:02}-{:02}", fortnight * 12 / FORTNIGHTS + 1, n % 28 + 1);
    let manual = "Use the methods in the maintenance manual, and record the results. Clean the area, look for cracks, corrosion and loose \
                  fasteners with a light and a mirror of ten times, and measure the clearance. ";
    let text = directives::clean(&format!(
        "PART 39--AIRWORTHINESS DIRECTIVES\n\n{number} {make}: Amendment 39-{}; Docket No. FAA-{year}-{:04}.\n\n(a) Effective Date\n\n\
         This AD is effective {published}.\n\n(b) Affected ADs\n\n{affected}\n\n(c) Applicability\n\nThis AD applies to {make} Model {named} \
         {product}{scope} in any category.\n\n(d) Subject\n\nJASC Code {:02}11, Structure.\n\n(e) Unsafe Condition\n\nThis AD was prompted by \
         reports of cracks. The unsafe condition, if not addressed, could result in loss of control.\n\n(f) Compliance\n\nComply with this AD \
         within the compliance times specified, unless already done.\n\n(g) Required Actions\n\nWithin {hours} hours TIS after the effective \
         date of this AD, inspect the part. {}{recurring}\n\n(h) Alternative Methods of Compliance\n\n{}\n\n(i) Related Information\n\nNone.\n\n\
         Issued on {published}.\n",
        10_000 + n,
        n % 10_000,
        n % 60 + 20,
        manual.repeat(20),
        manual.repeat(10),
    ));
    DirectiveFact {
        stream: "federal_register.ads".to_owned(),
        number: format!("{year}-{:05}", n % 100_000),
        title: format!("Airworthiness Directives; {make} {product}"),
        action: "Final rule.".to_owned(),
        summary: format!("We are adopting a new airworthiness directive for certain {make} {product}."),
        effective_on: published.clone(),
        citation: format!("91 FR {}", 10_000 + n),
        url: format!("https://www.federalregister.gov/documents/{published}/{year}-{:05}", n % 100_000),
        published,
        text,
        ..DirectiveFact::default()
    }
}
