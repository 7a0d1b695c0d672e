//! The labs service: lists of leads of one category and state, compared with PostgreSQL with a composite index on the same rows; grants
//! classified in a second on one core, compared with a plain scan of the texts; and deciding all grants again.

use jiff::ToSpan;
use labs::record::TABLES;
use labs::record::lexicon::LEXICON;
use labs::rules::category::{CLASSIFIER, Texts};
use labs::rules::lead;
use schemas::facts::FactData;
use schemas::facts::grants::GrantFact;
use schemas::topics::GRANTS;
use texts::values::US_STATES;

use crate::child_server::ChildServer;
use crate::filters::scattered;
use crate::lists::{self, Kind};
use crate::loads::{self, Loaded, Observed, Plan};
use crate::report::{figure, heading, median, number, ratio, run_child};
use crate::start_time::today;
use crate::{Failure, Settings, postgres};

/// The mode of `serve-child`.
pub(crate) const MODE: &str = "labs";
/// The service.
const SERVICE: Loaded = Loaded { service: "labs", tables: &TABLES, topics: &[GRANTS], inputs: &[GRANTS], before: &[] };
const NAME: &str = "category and state";
const KINDS: [Kind; 1] = [Kind { name: NAME, about: "leads of one category and state, pages of 50, newest first", p99_ms_max: 5.0 }];
const QUERY: &str =
    "select body from leads where category = $1::text and state = $2::text and notice >= $3::text order by notice desc, id limit 50";
/// The days over which the notices of award are spread.
const DAYS: u64 = 360;
/// Different paths of a kind.
const QUESTIONS: u64 = 2_000;
const CLASSIFIED_PER_S_MIN: f64 = 20_000.0;
/// The number of grants of the target for deciding again, and its seconds.
const REDECIDED: f64 = 250_000.0;
const REDECIDED_S_MAX: f64 = 60.0;

/// Fills an engine with grants, then compares.
pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    heading(&format!("labs: {} leads in {DAYS} days, one connection", settings.records));
    classify(settings);
    let times = run_child(settings, "labs-child", &[])?;
    let leads = settings.records as f64;
    let (raw_s, decide_s, redecide_s) = (number(&times, "raw_s"), number(&times, "decide_s"), number(&times, "redecide_s"));
    figure("raw read, grants a second", format!("{:.0}", leads / raw_s));
    if number(&times, "decided") > 0.0 {
        figure("deciding from nothing, grants a second", format!("{:.0}", number(&times, "decided") / decide_s));
    }
    figure("redecide labs, grants a second", format!("{:.0}", leads / redecide_s));
    figure("redecide / raw read", format!("{:.3}", raw_s / redecide_s));
    let scaled = redecide_s * REDECIDED / leads;
    ratio("redecide labs, seconds for 250,000 grants", scaled, scaled <= REDECIDED_S_MAX, "<= 60");

    let cluster = postgres::Cluster::start()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let rows = (0..settings.records).filter_map(|n| {
        let grant = grant(n);
        let lead = lead::lead(format!("nih:{}", grant.number), &grant)?;
        let body = serde_json::to_string(&lead).ok()?;
        Some(vec![lead.category, lead.state, lead.notice_date, lead.id, body])
    });
    let definition = "category text, state text, notice text, id text primary key, body text";
    let index = "create index on leads (category, state, notice desc, id)";
    runtime.block_on(lists::fill_peer(cluster.socket(), "leads", definition, rows, &[index]))?;
    let api = ChildServer::start(settings, MODE, &[])?;
    let peer = lists::start_peer(settings, cluster.socket(), &[QUERY])?;
    lists::compare(settings, &KINDS, &api, Some(&peer))
}

/// Classifies grants on one core, in turn with a scan of the same texts for each phrase.
fn classify(settings: &Settings) {
    let grants: Vec<GrantFact> = (0..settings.records.min(2_000)).map(grant).collect();
    let texts = |grant: &'_ GrantFact| format!("{} {} {}", grant.title, grant.terms.join(" "), grant.summary).to_lowercase();
    let mut found = 0;
    let mut own = |grant: &GrantFact| {
        found += CLASSIFIER.classify(&Texts { title: &grant.title, terms: &grant.terms, summary: &grant.summary }).evidence.len();
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut scanned = 0;
    for _ in 0..settings.rounds {
        ours.push(lists::per_second(&grants, &mut own));
        theirs.push(lists::per_second(&grants, |grant: &GrantFact| {
            let text = texts(grant);
            let words = LEXICON.entries.iter().flat_map(|category| &category.words);
            scanned += words.filter(|phrase| text.contains(phrase.as_str())).count();
        }));
    }
    let (ours, theirs) = (median(ours), median(theirs));
    figure("phrases found, ours / scan", format!("{found} / {scanned}"));
    figure("a scan for each phrase, grants a second", format!("{theirs:.0}"));
    figure("classifying / a scan for each phrase", format!("{:.1}", ours / theirs));
    ratio("classifying, grants a second on one core", ours, ours >= CLASSIFIED_PER_S_MIN, ">= 20,000");
}

/// `labs-child`: appends missing grants, decides them, and decides them again.
pub(crate) fn child(settings: &Settings) -> Result<(), Failure> {
    loads::child(settings, SERVICE, Plan { facts: facts(settings), later: Vec::new(), redecides: true })
}

/// A grant for each record.
pub(crate) fn facts(settings: &Settings) -> impl Iterator<Item = Observed> + use<> {
    (0..settings.records).map(|n| Observed::now(format!("nih_reporter/{}", number_of(n)), FactData::Grant(Box::new(grant(n)))))
}

/// Serves the leads that `labs-child` decided.
pub(crate) async fn serve(settings: &Settings) -> Result<(), Failure> {
    let from = today().saturating_sub(364.days());
    let paths = (0..QUESTIONS).map(|n| {
        let (category, state) = (category(scattered(n)).replace(' ', "%20"), state(scattered(n)));
        let own = format!("/labs/v1/leads?category={category}&state={state}&days=365&limit=50");
        (own, format!("/0?{category}&{state}&{from}"))
    });
    lists::serve_own(settings, SERVICE, vec![(NAME, paths.collect())]).await
}

fn number_of(n: u64) -> u64 {
    10_000_000 + n
}

/// The category that the title of a grant names. The last category has no words.
fn category(own: u64) -> &'static str {
    let named = LEXICON.entries.len().saturating_sub(1).max(1);
    LEXICON.entries.get(own as usize % named).map_or("", |category| category.name.as_str())
}

fn state(own: u64) -> &'static str {
    US_STATES.get((own / 100) as usize % US_STATES.len()).copied().unwrap_or("OH")
}

/// Returns the n-th grant: a new award whose texts are as long as real ones, and whose title has two phrases of a category.
fn grant(n: u64) -> GrantFact {
    let own = scattered(n);
    let words = |at: u64| -> &'static str {
        let entry = LEXICON.entries.iter().find(|entry| entry.name == category(own));
        entry.and_then(|entry| entry.words.get(at as usize % entry.words.len().max(1))).map_or("", String::as_str)
    };
    let day = today().saturating_sub(i64::try_from(own / 7 % DAYS).unwrap_or(0).days());
    let term =
        |at: u64| format!("{} of {}", ["Goals", "Disease", "Signal Transduction", "Patients", "Cells"][at as usize % 5], (own + at) % 900);
    GrantFact {
        stream: "nih_reporter".to_owned(),
        number: number_of(n).to_string(),
        project_number: format!("1R01CA{:06}-01", n % 1_000_000),
        core_project: format!("R01CA{n:07}"),
        title: format!("{} and {} in the study of disease number {}", words(own / 3), words(own / 5), own % 10_000),
        pi: format!("Investigator {:06}", own % 150_000),
        pi_number: (own % 150_000).to_string(),
        org: format!("UNIVERSITY {:04}", own % 2_000),
        city: "RIVERTON".to_owned(),
        state: state(own).to_owned(),
        country: "UNITED STATES".to_owned(),
        amount: i64::try_from(50_000 + own % 1_500_000).ok(),
        fiscal_year: Some(i64::from(day.year())),
        award_type: "1".to_owned(),
        activity_code: "R01".to_owned(),
        mechanism: "Non-SBIR/STTR".to_owned(),
        notice_date: day.to_string(),
        budget_start: day.to_string(),
        terms: (0..40).map(term).collect(),
        summary: "This project asks how cells of patients answer to signals, and what follows for treatment. ".repeat(11),
        url: format!("https://reporter.nih.gov/project-details/{}", number_of(n)),
        ..GrantFact::default()
    }
}
