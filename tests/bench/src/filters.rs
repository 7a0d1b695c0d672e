//! The cost of a feed as its history grows, and the cost of selective filters: pages of the awards and filings services with a tenth of the
//! records and with all of them. Each size has a server process; the servers are loaded in turn, so that other load on the machine slows
//! both.

use std::net::SocketAddr;
use std::sync::Arc;

use event_log::Append;
use feed::cursor;
use operation::context::Context;
use schemas::avro::Encoder;
use schemas::clock::Clock;
use schemas::event::Head;
use schemas::facts::FactData;
use schemas::facts::awards::{AwardFact, kind};
use schemas::facts::filings::FilingFact;
use schemas::position::Seq;
use schemas::tables::ViewDef;
use schemas::views::awards;
use serde_json::json;
use surfaces::server::Server;

use crate::child_server::{ChildServer, api_context, mint_keys};
use crate::engine::Engine;
use crate::load::{Round, Target};
use crate::loads::Observed;
use crate::report::{figure, heading, line, median, ratio};
use crate::{Failure, Settings, facts};

/// The mode of `serve-child`.
pub(crate) const MODE: &str = "filters";
/// The environment variable with the number of records of each service.
const RECORDS: &str = "BENCH_FILTERED_RECORDS";
/// The environment variable with the number of records of the smaller server.
const RECORDS_SMALLER: &str = "BENCH_FILTERED_RECORDS_SMALLER";
/// The environment variable with the only service that has records; all have if it is not set.
const ONLY: &str = "BENCH_FILTERED_ONLY";
/// Different paths of a kind.
const QUESTIONS: u64 = 2_000;
const APPEND_RECORDS: u64 = 2_000;
/// The largest number of facts that are appended before waiting until they are decided.
const AHEAD_MAX: u64 = 100_000;
const LIMIT: u64 = 200;
const P99_MS_MAX: f64 = 20.0;
/// The number of different values that the records are spread over.
const COMPANIES: u64 = 200_000;
const RECIPIENTS: u64 = 100_000;
const INDUSTRIES: u64 = 1_000;
/// The recipient of only one award.
const SINGULAR: &str = "SINGULAR WORKS INC";

/// The kinds of requests: service, name and description. The items of a selective page of 200 are in 200 blocks, those of a default page in
/// 50.
const KINDS: [(&str, &str, &str); 11] = [
    ("awards", ALL, "all changes, cursors anywhere"),
    ("awards", FIRST, "all changes, cursors anywhere in as many as the smaller server has"),
    ("filings", "company", "filings of one company of 200,000, from the beginning"),
    ("awards", "recipient", "awards of one recipient of 100,000, from the beginning"),
    ("awards", "singular", "the one award of a recipient, from the beginning"),
    ("awards", "industry", "one industry of 1,000, cursors anywhere, pages of the default size"),
    ("awards", "industries", "a prefix of ten industries, cursors anywhere, pages of the default size"),
    ("awards", "sector", "a prefix of a hundred industries, cursors anywhere, pages of the default size"),
    ("awards", "industry 200", "one industry of 1,000, cursors anywhere"),
    ("awards", "industries 200", "a prefix of ten industries, cursors anywhere"),
    ("awards", "sector 200", "a prefix of a hundred industries, cursors anywhere"),
];
const ALL: &str = "all";
/// All changes, with cursors only where both servers have records.
const FIRST: &str = "first";

/// Adds missing records, then loads the servers in turn.
pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    let sizes = [settings.records / 10, settings.records];
    heading(&format!("filters: pages of {LIMIT}, {} and {} records of each service, one connection", sizes[0], sizes[1]));
    let mut servers = Vec::new();
    for records in sizes {
        let only = settings.only.iter().map(|only| (ONLY, only.clone()));
        let set = [(RECORDS, records.to_string()), (RECORDS_SMALLER, sizes[0].to_string())];
        servers.push(ChildServer::start(settings, MODE, &set.into_iter().chain(only).collect::<Vec<_>>())?);
    }
    for (service, name, what) in KINDS {
        if settings.only.as_ref().is_some_and(|only| only != service) {
            continue;
        }
        let mut targets = Vec::new();
        for server in &servers {
            let dir = tempfile::tempdir()?;
            let own = server.texts("keys");
            let lines: Vec<String> =
                server.texts(name).into_iter().zip(own.iter().cycle()).map(|(path, key)| format!("{path} {key}")).collect();
            let target = Target::new(name, server.address(), dir.path(), &lines)?;
            target.load(dir.path(), 1, 1)?;
            targets.push((target, dir, Vec::<Round>::new()));
        }
        for _ in 0..settings.rounds {
            for (target, dir, rounds) in &mut targets {
                rounds.push(target.load(dir.path(), 1, settings.seconds)?);
            }
        }
        figure(what, "");
        let median_of = |rounds: &[Round], field: fn(&Round) -> f64| median(rounds.iter().map(field).collect());
        let figures: Vec<_> = targets
            .iter()
            .map(|(_, _, rounds)| (median_of(rounds, |round| round.p50_ms), median_of(rounds, |round| round.p99_ms)))
            .collect();
        let bytes: Vec<String> =
            targets.iter().map(|(_, _, rounds)| format!("{:.0}", median_of(rounds, |round| round.bytes_per_answer))).collect();
        figure("... bytes of an answer", bytes.join(" / "));
        let [(few, few_p99), (many, many_p99)] = figures[..] else { return Err("there must be two servers".into()) };
        figure("... p50 ms", format!("{few:.2} / {many:.2}"));
        figure("... p99 ms", format!("{few_p99:.2} / {many_p99:.2}"));
        if [ALL, FIRST].contains(&name) {
            ratio("... p50, all records / a tenth", many / few, many / few <= 1.1, "<= 1.1");
        } else {
            ratio("... p99 ms with all records", many_p99, many_p99 < P99_MS_MAX, "< 20");
        }
    }
    Ok(())
}

/// Serves the given number of records, which are stored for the next run.
pub(crate) async fn serve(settings: &Settings) -> Result<(), Failure> {
    let records: u64 = std::env::var(RECORDS)?.parse()?;
    let dir = settings.dir.join(format!("filtered-{records}"));
    let engine = Engine::open(&dir).await?;
    for (view, fact) in [(awards::TABLES.view, award as fn(u64, u64) -> (String, FactData)), (filings::record::TABLES.view, filing)] {
        if std::env::var(ONLY).map_or(true, |only| only == view.name) {
            fill(&engine, view, records, fact).await?;
        }
    }
    let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let address = server.address();
    let context = api_context(&engine, &dir, address)?;
    let mut report = questions(&context, records, std::env::var(RECORDS_SMALLER)?.parse()?);
    report["address"] = json!(address.to_string());
    report["keys"] = json!(mint_keys(&context).await?);
    line(&report.to_string());
    server.run(Arc::clone(&context), services::all(), Arc::new(|| Ok(())), std::future::pending()).await?;
    Ok(())
}

/// Returns the paths of the requests, by kind.
fn questions(context: &Context, records: u64, few: u64) -> serde_json::Value {
    let seqs = |of: u64| (0..QUESTIONS).map(move |n| Seq(scattered(n) % of.saturating_sub(LIMIT).max(1)));
    let cursor = |seq: Seq, filter: &str| cursor::encode(&context.secrets, "awards", seq, filter);
    let since = "/awards/v1/whats_changed_since?";
    let all = |of: u64| -> Vec<String> { seqs(of).map(|seq| format!("{since}limit={LIMIT}&cursor={}", cursor(seq, ""))).collect() };
    // Industries by their first digits.
    let anywhere = |digits: usize, limit: &str| -> Vec<String> {
        let filter_at = |seq: Seq| {
            let code = &industry(scattered(seq.0))[..digits];
            format!("{since}{limit}naics={code}&cursor={}", cursor(seq, &json!({ "naics": [code] }).to_string()))
        };
        seqs(records).map(filter_at).collect()
    };
    let from_the_beginning = |query_of: &dyn Fn(u64) -> String| -> Vec<String> { (0..QUESTIONS).map(|n| query_of(scattered(n))).collect() };
    let large = format!("limit={LIMIT}&");
    json!({
        ALL: all(records),
        FIRST: all(few),
        "company": from_the_beginning(&|n| format!("/filings/v1/whats_new_since?limit={LIMIT}&start=earliest&cik={}", company(n))),
        "recipient": from_the_beginning(&|n| format!("{since}{large}start=earliest&recipient={}", recipient(n).replace(' ', "%20"))),
        "singular": [format!("{since}{large}start=earliest&recipient={}", SINGULAR.replace(' ', "%20"))],
        "industry": anywhere(6, ""),
        "industries": anywhere(5, ""),
        "sector": anywhere(4, ""),
        "industry 200": anywhere(6, &large),
        "industries 200": anywhere(5, &large),
        "sector 200": anywhere(4, &large),
    })
}

/// Appends the missing facts of a service and waits until all are decided.
async fn fill(engine: &Engine, view: &'static ViewDef, records: u64, fact: fn(u64, u64) -> (String, FactData)) -> Result<(), Failure> {
    let live = engine.store.live(view).await?;
    let topic = fact(0, records).1.topic();
    let mut encoder = Encoder::new(topic.name)?;
    let mut n = 0;
    for partition in 0..topic.partitions {
        n += engine.log.end(topic, partition).await?.0;
    }
    while n < records {
        let upto = records.min(n + APPEND_RECORDS);
        let batch: Result<Vec<Append>, Failure> = (n..upto)
            .map(|n| {
                let (key, data) = fact(n, records);
                facts::observe(&mut encoder, &mut Head::default(), &key, &data, Clock::System.now().as_millisecond())
            })
            .collect();
        engine.log.append(batch?).await?;
        n = upto;
        if n % AHEAD_MAX == 0 || n == records {
            for partition in 0..topic.partitions {
                view_store::engine::wait_past(&*live, topic, partition, engine.log.end(topic, partition).await?).await?;
            }
        }
    }
    Ok(())
}

/// An award and a filing for each two records.
pub(crate) fn awards_and_filings(settings: &Settings) -> impl Iterator<Item = Observed> + use<> {
    let half = settings.records / 2;
    (0..half).flat_map(move |n| [award(n, half), filing(n, half)]).map(|(key, data)| Observed::now(key, data))
}

/// Returns the key and data of the n-th award.
fn award(n: u64, records: u64) -> (String, FactData) {
    let id = format!("CONT_AWD_{n:010}_8900_-NONE-_-NONE-");
    let own = scattered(n);
    let fact = AwardFact {
        stream: "usaspending.awards".to_owned(),
        kind: kind::AWARD.to_owned(),
        award_id: id.clone(),
        piid: format!("{n:010}"),
        description: "Support of systems and of those who use them, as ordered".to_owned(),
        recipient: if n == records / 3 { SINGULAR.to_owned() } else { recipient(own) },
        agency: format!("Department {:02}", own % 20),
        naics: industry(own),
        amount_cents: i64::try_from(own % 1_000_000_000).ok(),
        signed: "2026-10-01".to_owned(),
        start: "2026-10-01".to_owned(),
        end: format!("2027-{:02}-28", 1 + own % 12),
        url: format!("https://www.usaspending.gov/award/{id}"),
        ..AwardFact::default()
    };
    (format!("usaspending.awards/{id}"), FactData::Award(Box::new(fact)))
}

/// Returns the key and data of the n-th filing.
fn filing(n: u64, _records: u64) -> (String, FactData) {
    let cik = company(scattered(n));
    let accession = format!("{:010}-26-{:06}", n / 1_000_000, n % 1_000_000);
    let fact = FilingFact {
        stream: "edgar.index".to_owned(),
        accession: accession.clone(),
        company: format!("COMPANY {cik}"),
        form: "8-K".to_owned(),
        base_form: "8-K".to_owned(),
        filing_date: "2026-10-01".to_owned(),
        cik: cik.clone(),
        ..FilingFact::default()
    };
    (format!("edgar.index/{accession}/{cik}"), FactData::Filing(Box::new(fact)))
}

fn company(n: u64) -> String {
    format!("{:010}", n % COMPANIES + 1)
}

fn recipient(n: u64) -> String {
    format!("CONTRACTOR {:06} LLC", n % RECIPIENTS)
}

fn industry(n: u64) -> String {
    format!("{}", 541_000 + n / RECIPIENTS % INDUSTRIES)
}

/// Returns pseudo-random numbers that are the same in every run.
pub(crate) fn scattered(n: u64) -> u64 {
    (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) >> 8
}
