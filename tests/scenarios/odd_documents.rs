//! Documents of EDGAR in which a field is missing: odd ones among ordinary ones, and a field that the upstream has renamed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use ingest::{Error, Outcome};
use jiff::ToSpan as _;
use jiff::civil::{Date, Weekday, date};
use schemas::clock::{Clock, SimulatedClock};
use schemas::event::FactKind;
use schemas::topics::INSIDER_TRADES;
use upstreams::Settings;
use upstreams::http::Client;
use warp::Filter as _;
use warp::http::{Response, StatusCode};

use crate::engine::{Engine, noon, of_kind, settings};
use crate::loopback::Loopback;
use crate::random::{Random, seed};

/// The stream under test. The other streams of EDGAR are not synced.
const STREAM: &str = "edgar.ownership";
/// The first day with filings, a Monday.
const FIRST: Date = date(2026, 1, 5);

/// How a filing differs from an ordinary one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// One trade, every field filled.
    Ordinary,
    /// So many trades of an issuer without a ticker symbol.
    NoTicker(usize),
    /// One trade whose price is only in a footnote.
    NoPrice,
    /// No trade at all.
    NoTrade,
    /// One trade, in a form whose element for the ticker symbol has another name.
    Renamed,
}

impl Kind {
    /// How many facts the filing gives.
    const fn facts(self) -> usize {
        match self {
            Self::NoTicker(rows) => rows,
            Self::Ordinary | Self::NoPrice | Self::NoTrade | Self::Renamed => 1,
        }
    }

    /// Returns the form with its trades.
    fn form(self, cik: usize) -> String {
        let (symbol_name, symbol) = match self {
            Self::Renamed => ("issuerSymbol", "OAK"),
            Self::NoTicker(_) => ("issuerTradingSymbol", "NONE"),
            _ => ("issuerTradingSymbol", "OAK"),
        };
        let price = if self == Self::NoPrice { "<footnoteId id=\"F1\"/>" } else { "<value>12.50</value>" };
        let trade = format!(
            "<nonDerivativeTransaction><securityTitle><value>Common Stock</value></securityTitle><transactionDate><value>2026-01-02</value>\
             </transactionDate><transactionCoding><transactionCode>P</transactionCode></transactionCoding><transactionAmounts><transactionShares>\
             <value>100</value></transactionShares><transactionPricePerShare>{price}</transactionPricePerShare>\
             <transactionAcquiredDisposedCode><value>A</value></transactionAcquiredDisposedCode></transactionAmounts><postTransactionAmounts>\
             <sharesOwnedFollowingTransaction><value>500</value></sharesOwnedFollowingTransaction></postTransactionAmounts><ownershipNature>\
             <directOrIndirectOwnership><value>D</value></directOrIndirectOwnership></ownershipNature></nonDerivativeTransaction>"
        );
        let trades = if self == Self::NoTrade { String::new() } else { trade.repeat(self.facts()) };
        format!(
            "<ownershipDocument><documentType>4</documentType><periodOfReport>2026-01-02</periodOfReport><issuer><issuerCik>{cik:010}</issuerCik>\
             <issuerName>Oak {cik}</issuerName><{symbol_name}>{symbol}</{symbol_name}></issuer><reportingOwner><reportingOwnerId><rptOwnerCik>\
             0001900001</rptOwnerCik><rptOwnerName>Insider</rptOwnerName></reportingOwnerId><reportingOwnerRelationship><isDirector>1</isDirector>\
             </reportingOwnerRelationship></reportingOwner><nonDerivativeTable>{trades}</nonDerivativeTable></ownershipDocument>"
        )
    }
}

/// The filings of each day, in the order in which the index names them.
type Days = Arc<Mutex<BTreeMap<Date, Vec<Kind>>>>;

/// Returns the business day that is `n` business days after [`FIRST`].
fn business_day(n: usize) -> Date {
    let is_open = |day: &Date| !matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday);
    FIRST.series(1.day()).filter(is_open).nth(n).unwrap()
}

/// EDGAR with the filings that a test writes, and an engine that reads it.
struct Edgar {
    days: Days,
    server: Loopback,
    engine: Engine,
    clock: &'static SimulatedClock,
    /// How many facts all filings give.
    facts: usize,
    _dir: tempfile::TempDir,
}

impl Edgar {
    async fn begin() -> Self {
        let days = Days::default();
        let shown = Arc::clone(&days);
        let routes =
            warp::get().and(warp::path::full()).map(move |path: warp::path::FullPath| answer(&shown.lock().unwrap(), path.as_str()));
        let (dir, clock) = (tempfile::tempdir().unwrap(), SimulatedClock::new(noon(FIRST), Clock::Fixed(noon(FIRST))));
        let engine = Engine::open(&dir.path().join("data"), Clock::Simulated(clock)).await;
        Self { days, server: Loopback::open(routes), engine, clock, facts: 0, _dir: dir }
    }

    /// Adds the filings of a day.
    fn file(&mut self, day: Date, filings: Vec<Kind>) {
        self.facts += filings.iter().map(|kind| kind.facts()).sum::<usize>();
        self.days.lock().unwrap().insert(day, filings);
    }

    /// Syncs the stream at noon of the day after `day`, when its index is complete.
    async fn sync_after(&self, day: Date) -> Result<Outcome, Error> {
        self.clock.move_to(noon(day.tomorrow().unwrap()));
        let settings = Settings { window_days: 5, ..settings(&format!("http://{}", self.server.address)) };
        let (upstream, client) = (upstreams::by_name("edgar").unwrap(), Client::new(&settings).unwrap());
        let stream = upstream.manifest().streams.iter().find(|stream| stream.name == STREAM).unwrap();
        self.engine.runner.sync_stream(upstream, stream, &client, &settings).await
    }

    /// Files and syncs a day.
    async fn day(&mut self, n: usize, filings: Vec<Kind>) -> Result<Outcome, Error> {
        self.file(business_day(n), filings);
        self.sync_after(business_day(n)).await
    }

    /// Counts the trades in the log.
    async fn recorded(&self) -> usize {
        let facts = self.engine.export(INSIDER_TRADES.name, false).await;
        of_kind(&facts, FactKind::Observed).len()
    }
}

/// Answers a request: an index, a filing, or nothing.
fn answer(days: &BTreeMap<Date, Vec<Kind>>, path: &str) -> Response<String> {
    let text = |body: String| Response::builder().header("content-type", "text/plain").body(body).unwrap();
    let file = path.rsplit('/').next().unwrap();
    if let Some(day) = file.strip_prefix("master.").and_then(|name| name.strip_suffix(".idx")) {
        let day = Date::strptime("%Y%m%d", day).unwrap();
        if let Some(filings) = days.get(&day) {
            let row = |at: usize| {
                let (cik, accession) = (900_001 + at, accession(day, at));
                format!("{cik}|Oak {cik}|4|{}|edgar/data/{cik}/{accession}.txt\n", day.strftime("%Y%m%d"))
            };
            let rows: String = (0..filings.len()).map(row).collect();
            let title = "CIK|Company Name|Form Type|Date Filed|File Name";
            return text(format!("Description: Daily Index\n\n{title}\n{}\n{rows}", "-".repeat(80)));
        }
    }
    let filing = file.strip_suffix(".txt").and_then(|accession| {
        let mut parts = accession.split('-').skip(1);
        let (year, number) = (parts.next()?.parse::<i16>().ok()?, parts.next()?.parse::<i64>().ok()?);
        let day = date(2_000 + year, 1, 1).saturating_add((number / 1_000 - 1).days());
        let at = usize::try_from(number % 1_000).ok()?;
        let kind = days.get(&day)?.get(at)?;
        Some((day, at, *kind))
    });
    match filing {
        Some((day, at, kind)) => text(format!(
            "<SEC-DOCUMENT>\nACCESSION NUMBER: {}\nFILED AS OF DATE: {}\n<XML>\n{}\n</XML>\n",
            accession(day, at),
            day.strftime("%Y%m%d"),
            kind.form(900_001 + at)
        )),
        None if !path.starts_with("/Archives/") => Response::builder().status(StatusCode::NOT_FOUND).body(String::new()).unwrap(),
        None => {
            let body = "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>".to_owned();
            Response::builder().status(StatusCode::FORBIDDEN).header("content-type", "application/xml").body(body).unwrap()
        }
    }
}

/// The accession number of a day's filing: the day of the year and the position are in its last part.
fn accession(day: Date, at: usize) -> String {
    format!("0001683168-{:02}-{:06}", day.year() - 2_000, usize::from(day.day_of_year().unsigned_abs()) * 1_000 + at)
}

/// Proves that odd filings, first, last or alone on their day, of one row or two hundred, stop no run and cost no row: neither when all
/// filings before had the field, nor when many days in a row have only one odd filing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_filings_stop_no_run() {
    let mut edgar = Edgar::begin().await;
    let ordinary = |count: usize| vec![Kind::Ordinary; count];
    edgar.day(0, ordinary(12)).await.unwrap();
    let odd = [Kind::NoTicker(2), Kind::NoPrice, Kind::NoTrade, Kind::NoTicker(200), Kind::NoTicker(1)];
    let mut n = 1;
    for kind in odd {
        for position in [0, 3, 6] {
            let mut filings = ordinary(6);
            filings.insert(position, kind);
            edgar.day(n, filings).await.unwrap();
            n += 1;
        }
        edgar.day(n, vec![kind]).await.unwrap();
        // The days of a window are read again in each run.
        let count = if kind == Kind::NoTicker(200) { 2 } else { 9 };
        edgar.day(n + 1, vec![kind; count]).await.unwrap();
        edgar.day(n + 2, ordinary(1)).await.unwrap();
        n += 3;
    }
    for _ in 0..9 {
        edgar.day(n, vec![Kind::NoTicker(3)]).await.unwrap();
        n += 1;
    }
    assert_eq!(edgar.recorded().await, edgar.facts);
    edgar.engine.close().await;
}

/// Proves for a year of filings, with odd ones in every position of a day, that no run stops and every row is recorded; and that an element that is renamed at
/// the end of the year is noticed within two days.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_year_of_odd_filings_stops_no_run() {
    // With the second seed one filing in seven lacked the field, so that twelve renamed ones were too few to be noticed.
    for seed in [seed("ODD_FILINGS_SEED", 1), 1_795_954_361_919] {
        a_year_of_odd_filings(Random(seed)).await;
    }
}

async fn a_year_of_odd_filings(mut random: Random) {
    let mut edgar = Edgar::begin().await;
    let odd = [Kind::NoTicker(1), Kind::NoTicker(2), Kind::NoTicker(200), Kind::NoPrice, Kind::NoTrade];
    let mut n = 0;
    while business_day(n).year() == FIRST.year() {
        // Kinds and positions take turns, so that each meets each; how many ordinary ones there are next to it, and whether a second odd one, is drawn.
        let (kind, position) = (n % odd.len(), n / odd.len() % 5);
        let others = if position == 0 { random.below(2) } else { 4 + random.below(4) };
        let mut filings = vec![Kind::Ordinary; usize::try_from(others).unwrap()];
        filings.insert(position, odd[kind]);
        if random.below(3) == 0 {
            filings.push(random.pick(&odd));
        }
        let outcome = edgar.day(n, filings.clone()).await.unwrap_or_else(|error| panic!("{}: {filings:?}: {error}", business_day(n)));
        assert_eq!(outcome.run.reason, "", "{}: {filings:?}", business_day(n));
        n += 1;
    }
    assert!(n > 250, "{n} days");
    assert_eq!(edgar.recorded().await, edgar.facts);

    let warned = edgar.day(n, vec![Kind::Renamed; 24]).await.unwrap();
    assert!(warned.run.reason.contains("issuerTradingSymbol"), "{}", warned.run.reason);
    let Err(Error::Upstream { source, .. }) = edgar.day(n + 1, vec![Kind::Renamed; 24]).await else {
        panic!("the renamed element is not noticed")
    };
    assert!(source.to_string().contains("issuerTradingSymbol"), "{source}");
    edgar.engine.close().await;
}

/// Proves that an element that was renamed is named in the first run with ten filings, which records them, and stops the second; that a filing with
/// the old name ends this without anybody's help, and that no filing of the days between is left out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renamed_element_is_noticed_within_two_days() {
    let mut edgar = Edgar::begin().await;
    edgar.day(0, vec![Kind::Ordinary; 30]).await.unwrap();
    let warned = edgar.day(1, vec![Kind::Renamed; 12]).await.unwrap();
    assert_eq!(
        warned.run.reason,
        "field issuerTradingSymbol: present in 30 of 30 documents of the runs before, absent in the last 12; the next run stops if no document has it"
    );
    let recorded = edgar.recorded().await;
    assert_eq!(recorded, edgar.facts);
    for n in 2..12 {
        let Err(Error::Upstream { source, .. }) = edgar.day(n, vec![Kind::Renamed; 3]).await else { panic!("day {n} is read") };
        assert!(source.to_string().contains("issuerTradingSymbol") && source.to_string().contains("absent in the last"), "{source}");
    }
    assert_eq!(edgar.recorded().await, recorded);
    let resumed = edgar.day(12, vec![Kind::Renamed, Kind::Ordinary, Kind::NoTicker(2)]).await.unwrap();
    assert_eq!((resumed.run.reason.as_str(), edgar.recorded().await), ("", edgar.facts));
    edgar.engine.close().await;
}

/// Proves that a run after an outage that was longer than the window reads every day since the last finished run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn days_of_an_outage_are_read_later() {
    let mut edgar = Edgar::begin().await;
    edgar.day(0, vec![Kind::Ordinary; 3]).await.unwrap();
    for n in 1..40 {
        edgar.file(business_day(n), vec![Kind::Ordinary]);
    }
    let outcome = edgar.sync_after(business_day(39)).await.unwrap();
    assert_eq!((edgar.recorded().await, outcome.run.reason.as_str()), (edgar.facts, ""));
    edgar.engine.close().await;
}
