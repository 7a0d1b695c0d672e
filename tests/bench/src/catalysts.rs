//! The catalysts service: upcoming events and searches for a drug, compared with range queries of PostgreSQL on the same rows; deciding all
//! trials of the registry from nothing, compared with reading them; and reading target dates from documents on one core, compared with a
//! plain scan of the same documents for the word.
//!
//! One trial in thirty is a company's trial of a drug in phase 2 or 3 with a date in the next two years.

use bytes::Bytes;
use catalysts::record::{Catalyst, TABLES, words};
use catalysts::rules::sentences;
use jiff::ToSpan;
use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::facts::trials::{Intervention, TrialFact};
use schemas::topics::TRIALS;
use serde_json::json;
use upstreams::{Answer, Window};

use crate::child_server::ChildServer;
use crate::filters::scattered;
use crate::lists::{self, Kind};
use crate::loads::{self, Loaded, Observed, Plan};
use crate::pages;
use crate::report::{figure, heading, median, number, ratio, run_child};
use crate::start_time::today;
use crate::{Failure, Settings, postgres};

/// The mode of `serve-child`.
pub(crate) const MODE: &str = "catalysts";
/// The service.
const SERVICE: Loaded = Loaded { service: "catalysts", tables: &TABLES, topics: &[TRIALS], inputs: &[TRIALS], before: &[] };
const UPCOMING: &str = "upcoming";
const PHASE: &str = "phase";
const DRUG: &str = "drug";
const KINDS: [Kind; 3] = [
    Kind { name: UPCOMING, about: "upcoming events within random days, pages of 50", p99_ms_max: 3.0 },
    Kind { name: PHASE, about: "upcoming events of a phase within random days, pages of 50", p99_ms_max: 3.0 },
    Kind { name: DRUG, about: "events of a drug by the beginning of a word", p99_ms_max: 5.0 },
];
const QUERIES: [&str; 3] = [
    "select body from events where win_to >= $1::text and win_from <= $2::text order by win_from, id limit 50",
    "select body from events where phase = $3::text and win_to >= $1::text and win_from <= $2::text order by win_from, id limit 50",
    "select body from drugs where word >= $1::text and word < $1::text || '{' order by win_from, id limit 50",
];
/// One in as many trials has a readout.
const READOUT_IN: u64 = 30;
const DAYS: u64 = 700;
/// Different paths of a kind.
const QUESTIONS: u64 = 2_000;
/// The number of trials of the target for deciding, and its seconds.
const DECIDED: f64 = 600_000.0;
const DECIDED_S_MAX: f64 = 180.0;
const DOCUMENTS_PER_S_MIN: f64 = 200.0;
/// Paragraphs of a document: with these it has some 100 KB, as a press release with its tables has.
const PARAGRAPHS: usize = 400;

/// Fills an engine with trials, then compares.
pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    let events = settings.records / READOUT_IN;
    heading(&format!("catalysts: {} trials, {events} of them with a readout, one connection", settings.records));
    read_documents(settings)?;
    let times = run_child(settings, "catalysts-child", &[])?;
    let trials = settings.records as f64;
    let (raw_s, decide_s) = (number(&times, "raw_s"), number(&times, "decide_s"));
    figure("raw read, trials a second", format!("{:.0}", trials / raw_s));
    if number(&times, "decided") > 0.0 {
        figure("deciding from nothing, trials a second", format!("{:.0}", trials / decide_s));
        figure("deciding / raw read", format!("{:.3}", raw_s / decide_s));
        let scaled = decide_s * DECIDED / trials;
        ratio("deciding 600,000 trials from nothing, seconds", scaled, scaled <= DECIDED_S_MAX, "<= 180");
    }

    let cluster = postgres::Cluster::start()?;
    let api = ChildServer::start(settings, MODE, &[])?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let rows = || {
        readouts(settings.records).map(|(record, body)| (record.window.from, record.window.to, record.phase, record.id, record.drug, body))
    };
    let events = rows().map(|(from, to, phase, id, _, body)| vec![from, to, phase, id, body]);
    let drugs = rows().flat_map(|(from, _, _, id, drug, body)| {
        let own: Vec<Vec<String>> = words(&drug).map(|word| vec![word, from.clone(), id.clone(), body.clone()]).collect();
        own
    });
    runtime.block_on(async {
        let definition = "win_from text, win_to text, phase text, id text primary key, body text";
        let indexes = ["create index on events (win_from, id)", "create index on events (phase, win_from, id)"];
        lists::fill_peer(cluster.socket(), "events", definition, events, &indexes).await?;
        let definition = "word text, win_from text, id text, body text";
        lists::fill_peer(cluster.socket(), "drugs", definition, drugs, &["create index on drugs (word, win_from, id)"]).await
    })?;
    let peer = lists::start_peer(settings, cluster.socket(), &QUERIES)?;
    lists::compare(settings, &KINDS, &api, Some(&peer))
}

/// The records that the trials should have, as JSON; the rows of the peer.
fn readouts(trials: u64) -> impl Iterator<Item = (Catalyst, String)> {
    (0..trials).filter(|n| n % READOUT_IN == 0).filter_map(|n| {
        let trial = trial(n);
        let mut record = Catalyst {
            id: format!("ctgov:{}", trial.number),
            kind: "readout".to_owned(),
            company: trial.sponsor.clone(),
            drug: trial.interventions.first().map(|one| one.name.clone()).unwrap_or_default(),
            phase: trial.phase.clone(),
            title: trial.title.clone(),
            trial_id: trial.number.clone(),
            source_url: trial.url.clone(),
            date: trial.primary_completion.clone(),
            ..Catalyst::default()
        };
        (record.window.from, record.window.to) = (trial.primary_completion.clone(), trial.primary_completion);
        let body = serde_json::to_string(&record).ok()?;
        Some((record, body))
    })
}

/// Reads target dates from documents on one core, as the upstream and the rules do, in turn with a scan for the word.
fn read_documents(settings: &Settings) -> Result<(), Failure> {
    let upstream = upstreams::by_name("edgar").ok_or("no such upstream")?;
    let stream = upstream.manifest().streams.iter().find(|stream| stream.name == "edgar.pdufa").ok_or("no such stream")?;
    let today = Date::constant(2026, 11, 20);
    let own = pages::settings(None);
    let window = Window { from: Some(today), to: today };
    let hit = json!({"_id": "0001234567-26-000001:ex99-1.htm", "_source": {
        "ciks": ["0000900001"], "display_names": ["Pier Bio, Inc. (CIK 0000900001)"], "form": "8-K", "file_date": today.to_string(),
    }});
    let found = json!({"timed_out": false, "hits": {"total": {"value": 1}, "hits": [hit]}}).to_string();
    let answer = |body: String| Answer { status: 200, link: None, body: Bytes::from(body) };
    let page = upstream.map(stream, &upstream.start(stream, &window, &own), &answer(found), today)?;
    let cursor = page.next.ok_or("the search names no document")?;
    let documents: Vec<Answer> = (0..50).map(|n| answer(document(n))).collect();
    let bytes = documents.iter().map(|document| document.body.len()).sum::<usize>() / documents.len();

    let (mut dates, mut words) = (0, 0);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..settings.rounds {
        ours.push(lists::per_second(&documents, |document| {
            let Ok(page) = upstream.map(stream, &cursor, document, today) else { return };
            for observation in page.observations {
                if let FactData::Statement(fact) = observation.data {
                    dates += sentences::read(&fact.sentence, &fact.before, &fact.company, today).len();
                }
            }
        }));
        theirs.push(lists::per_second(&documents, |document| {
            words += String::from_utf8_lossy(&document.body).matches("PDUFA").count();
        }));
    }
    let (ours, theirs) = (median(ours), median(theirs));
    figure("bytes of a document", bytes);
    figure("target dates read / words found by the scan", format!("{dates} / {words}"));
    figure("a scan for the word, documents a second", format!("{theirs:.0}"));
    figure("reading target dates / a scan", format!("{:.4}", ours / theirs));
    ratio("documents a second on one core", ours, ours >= DOCUMENTS_PER_S_MIN, ">= 200");
    Ok(())
}

/// A press release with three sentences about target dates among its other paragraphs.
fn document(n: usize) -> String {
    let mut out = "<!DOCTYPE html>\n<html><body>".to_owned();
    for at in 0..PARAGRAPHS {
        out.push_str(match at {
            30 => "<p>The FDA has set a Prescription Drug User Fee Act (PDUFA) target action date of March&nbsp;27,&nbsp;2027 for Bolunib.</p>",
            170 => "<p>We expect the PDUFA date for acmezumab in the second half of 2027, and to launch it after that.</p>",
            300 => "<p>If approved by the PDUFA date of March 27, 2027, Bolunib would be the first of its kind.</p>",
            _ if (at + n).is_multiple_of(3) => "<table><tr><td><font size=\"2\">Revenue</font></td><td align=\"right\">1,234</td></tr></table>",
            _ => {
                "<p style=\"margin-top:12pt; font-family:Times New Roman\">The company reported results for the quarter that ended on June 30, 2026, \
                 which include the cost of its trials &#8212; see note 7 &#8212; and of its employees in the United States and abroad.</p>\n"
            }
        });
    }
    out + "</body></html>\n"
}

/// `catalysts-child`: appends missing trials, and decides them.
pub(crate) fn child(settings: &Settings) -> Result<(), Failure> {
    loads::child(settings, SERVICE, Plan { facts: facts(settings), later: Vec::new(), redecides: true })
}

/// A trial for each record.
pub(crate) fn facts(settings: &Settings) -> impl Iterator<Item = Observed> + use<> {
    (0..settings.records).map(|n| Observed::now(format!("clinical_trials/{}", number_of(n)), FactData::Trial(Box::new(trial(n)))))
}

/// Serves the events that `catalysts-child` decided.
pub(crate) async fn serve(settings: &Settings) -> Result<(), Failure> {
    let today = today();
    let upcoming = (0..QUESTIONS).map(|n| {
        let days = 1 + scattered(n) % DAYS;
        let last = after(today, days);
        (format!("/catalysts/v1/upcoming?days={days}&limit=50"), format!("/0?{today}&{last}"))
    });
    let of_phase = (0..QUESTIONS).map(|n| {
        let (days, phase) = (1 + scattered(n) % DAYS, phase(n));
        let last = after(today, days);
        (format!("/catalysts/v1/upcoming?days={days}&phase={phase}&limit=50"), format!("/1?{today}&{last}&{phase}"))
    });
    let of_drug = (0..QUESTIONS).map(|n| {
        let word = drug(scattered(n)).to_lowercase();
        let word = word.get(..word.len() - 2).unwrap_or_default();
        (format!("/catalysts/v1/drug?name={word}&days=730&limit=50"), format!("/2?{word}"))
    });
    let paths = vec![(UPCOMING, upcoming.collect()), (PHASE, of_phase.collect()), (DRUG, of_drug.collect())];
    lists::serve_own(settings, SERVICE, paths).await
}

fn after(day: Date, days: u64) -> Date {
    day.saturating_add(i64::try_from(days).unwrap_or(0).days())
}

fn number_of(n: u64) -> String {
    format!("NCT{n:08}")
}

fn phase(n: u64) -> &'static str {
    if n.is_multiple_of(2) { "PHASE2" } else { "PHASE3" }
}

/// One of five thousand names of drugs.
fn drug(own: u64) -> String {
    let letters = |n: u64| char::from(b'a' + (n % 26) as u8);
    let own = own % 5_000;
    format!("{}{}{}{}ozumab", letters(own).to_uppercase(), letters(own / 26), letters(own / 7), letters(own / 676))
}

/// Returns the n-th trial of the registry.
fn trial(n: u64) -> TrialFact {
    let own = scattered(n);
    let is_event = n.is_multiple_of(READOUT_IN);
    let kind = if is_event { "BIOLOGICAL" } else { ["DRUG", "DEVICE", "BEHAVIORAL"][own as usize % 3] };
    TrialFact {
        stream: "clinical_trials".to_owned(),
        number: number_of(n),
        title: format!("A Study of {} in Participants With Disease {}", drug(own), own % 2_000),
        sponsor: if is_event { format!("Company {:04} Therapeutics, Inc.", own % 900) } else { format!("University {:04}", own % 5_000) },
        sponsor_class: if is_event { "INDUSTRY" } else { "OTHER" }.to_owned(),
        phase: if is_event { phase(n / READOUT_IN) } else { ["N/A", "PHASE1", "PHASE4"][own as usize % 3] }.to_owned(),
        status: if is_event { "RECRUITING" } else { "COMPLETED" }.to_owned(),
        study_type: "INTERVENTIONAL".to_owned(),
        primary_completion: after(today(), 1 + own / 11 % DAYS).to_string(),
        primary_completion_type: "ESTIMATED".to_owned(),
        first_posted: "2026-01-05".to_owned(),
        updated: "2026-11-01".to_owned(),
        conditions: vec![format!("Disease {}", own % 2_000)],
        interventions: vec![Intervention { kind: kind.to_owned(), name: drug(own) }],
        countries: vec!["United States".to_owned()],
        summary: "This study asks whether a treatment helps people with a disease. ".repeat(12),
        url: format!("https://clinicaltrials.gov/study/{}", number_of(n)),
        ..TrialFact::default()
    }
}
