//! The Securities and Exchange Commission: requests, paging, mapping, and the special cases of its files.

use std::collections::HashSet;

use jiff::civil::date;
use schemas::facts::FactData;
use schemas::facts::filings::FilingFact;
use schemas::facts::insider_trades::InsiderTradeFact;
use schemas::facts::statements::StatementFact;
use schemas::position::UpstreamCursor;
use texts::dollars::Dollars;
use upstreams::{Answer, Page, Settings, UpstreamError, Window};

use crate::common::*;

const CURRENT: &str = "edgar.current";
const INDEX: &str = "edgar.index";
const SUBMISSIONS: &str = "edgar.submissions";
const OWNERSHIP: &str = "edgar.ownership";
const PDUFA: &str = "edgar.pdufa";
const TICKERS: &str = "edgar.tickers";

pub(crate) fn filings(page: &Page) -> Vec<&FilingFact> {
    let records = page.observations.iter().map(|observation| match &observation.data {
        FactData::Filing(fact) => &**fact,
        other => panic!("no filing: {other:?}"),
    });
    records.collect()
}

pub(crate) fn trades(page: &Page) -> Vec<&InsiderTradeFact> {
    let records = page.observations.iter().map(|observation| match &observation.data {
        FactData::InsiderTrade(fact) => &**fact,
        other => panic!("no trade: {other:?}"),
    });
    records.collect()
}

pub(crate) fn statements(page: &Page) -> Vec<&StatementFact> {
    let records = page.observations.iter().map(|observation| match &observation.data {
        FactData::Statement(fact) => &**fact,
        other => panic!("no statement: {other:?}"),
    });
    records.collect()
}

fn missing() -> Answer {
    Answer { status: 403, ..ok("<?xml version=\"1.0\"?>\n<Error><Code>AccessDenied</Code></Error>") }
}

fn index(rows: &[&str]) -> Answer {
    ok(format!("CIK|Company Name|Form Type|Date Filed|File Name\n{}\n{}\n", "-".repeat(80), rows.join("\n")))
}

fn days(from: i8, to: i8) -> Window {
    Window { from: Some(date(2026, 9, from)), to: date(2026, 9, to) }
}

/// Returns the cursor that replaces another one when the given keys are known.
fn narrowed(name: &str, cursor: &UpstreamCursor, known: &[&str]) -> Option<UpstreamCursor> {
    let (upstream, stream) = stream(name);
    let known: HashSet<String> = known.iter().map(|key| (*key).to_owned()).collect();
    upstream.narrow(stream, cursor, &known)
}

fn depends_on(name: &str, cursor: &UpstreamCursor) -> Vec<String> {
    let (upstream, stream) = stream(name);
    upstream.depends_on(stream, cursor)
}

fixture_tests!("edgar");

/// Proves that the real hosts require a name and an address in the user agent, and that each request goes to the right host.
#[test]
fn clients_identify_themselves() {
    for name in [CURRENT, INDEX, SUBMISSIONS, OWNERSHIP, TICKERS, PDUFA] {
        let (upstream, stream) = stream(name);
        let start = start(name, &window());
        let nobody = Settings { user_agent: "highwater/0.1 (public record feeds)".into(), ..Settings::default() };
        let error = upstream.request(stream, &start, &nobody).unwrap_err();
        assert!(matches!(error, UpstreamError::Stop { field, .. } if field == "user_agent"), "{name}");
        let with_base_url = Settings { base_url: Some("http://127.0.0.1:1".into()), ..nobody };
        assert!(upstream.request(stream, &start, &with_base_url).is_ok());
        let request = upstream.request(stream, &start, &settings()).unwrap();
        let origin = if name == PDUFA { "https://efts.sec.gov" } else { "https://www.sec.gov" };
        assert_eq!((&*request.origin, request.back_off.is_some(), request.conditional), (origin, true, false));
    }
}

/// Proves that block pages are never accepted as an index, a feed, a list or a filing, and which other answers are invalid.
#[test]
fn pages_are_no_answers() {
    for case in [
        "index_block_page_a",
        "index_block_page_b",
        "current_block_page_b",
        "submissions_block_page_b",
        "ownership_block_page_a",
        "index_cut_off",
        "index_odd_403",
        "current_truncated",
        "current_declares_a_type",
        "current_not_a_feed",
        "submissions_truncated",
    ] {
        assert!(matches!(fixture("edgar", case), Err(UpstreamError::Later { .. })), "{case}");
    }
    assert!(matches!(fixture("edgar", "index_columns_changed"), Err(UpstreamError::Stop { field, .. }) if field == "title"));
}

/// Proves that the daily indexes of business days are requested, that a missing one is skipped, and which day is complete then.
#[test]
fn the_index_is_read_day_by_day() {
    let paths = walk(INDEX, &days(24, 29), |_| index(&[]));
    let day = |day: &str| format!("/Archives/edgar/daily-index/2026/QTR3/master.{day}.idx");
    assert_eq!(paths, [day("20260924"), day("20260925"), day("20260928"), day("20260929")]);
    // A window that begins on a weekend begins on the Friday before.
    assert_eq!(walk(INDEX, &days(27, 27), |_| missing()), [day("20260925")]);

    let (mut cursor, mut through) = (Some(start(INDEX, &days(24, 29))), Vec::new());
    while let Some(at) = cursor {
        let path = path(INDEX, &at);
        let page = map_at(INDEX, &at, &if path.contains("0928") || path.contains("0929") { missing() } else { index(&[]) }).unwrap();
        through.push(page.through.unwrap().to_string());
        cursor = page.next;
    }
    assert_eq!(through, ["2026-09-24", "2026-09-27", "2026-09-27", "2026-09-27"]);
    let page = map_at(INDEX, &start(INDEX, &days(24, 29)), &missing()).unwrap();
    assert_eq!(page.through, Some(date(2026, 9, 23)), "nothing is complete yet");
}

/// Proves that a full read first reads the quarterly index in several passes, which share its filings without overlap even if rows are
/// added meanwhile, and then the days; and that a missing quarter is skipped.
#[test]
fn the_quarter_heals() {
    let full = Window { from: None, to: date(2026, 10, 2) };
    let row = |n: u32| format!("12|PIER CORP|8-K|2026-09-{:02}|edgar/data/12/0000000012-26-{n:06}.txt", n % 28 + 1);
    let rows: Vec<String> = (0..500).map(row).collect();
    let (mut cursor, mut keys, mut paths) = (Some(start(INDEX, &full)), Vec::new(), Vec::new());
    while let Some(at) = cursor {
        paths.push(path(INDEX, &at));
        let taken: Vec<&str> = rows.iter().skip(paths.len() % 7 * 60).chain(&rows).map(String::as_str).collect();
        let answer = if paths.last().unwrap().contains("QTR3/master.idx") { index(&taken) } else { missing() };
        let page = map_at(INDEX, &at, &answer).unwrap();
        let mut own: Vec<String> = page.observations.into_iter().map(|observation| observation.key).collect();
        own.sort();
        own.dedup();
        keys.extend(own);
        cursor = page.next;
    }
    let quarters = paths.iter().filter(|path| path.contains("/full-index/")).cloned().collect::<Vec<_>>();
    assert_eq!(quarters.len(), 9, "{quarters:?}");
    assert_eq!(
        (&*quarters[0], &*quarters[8]),
        ("/Archives/edgar/full-index/2026/QTR3/master.idx", "/Archives/edgar/full-index/2026/QTR4/master.idx")
    );
    assert_eq!(paths.len(), 9 + 6, "the days of the window come after: {paths:?}");
    keys.sort();
    let all = keys.len();
    keys.dedup();
    assert_eq!((keys.len(), all), (500, 500));
    // In the first weeks of a year the year before is read too.
    let january = Window { from: None, to: date(2026, 1, 5) };
    assert_eq!(path(INDEX, &start(INDEX, &january)), "/Archives/edgar/full-index/2025/QTR4/master.idx");
}

/// Proves that daily and quarterly indexes, and those with fixed widths, give the same record of the same filing.
#[test]
fn kinds_of_indexes_agree() {
    let key = "edgar.index/0000000012-26-000001/0000000012";
    let page_of = |case: &str| {
        let page = fixture("edgar", case).unwrap();
        assert_eq!(page.rejects, [], "{case}");
        page.observations.into_iter().find(|observation| observation.key == key).unwrap_or_else(|| panic!("{case}"))
    };
    let daily = page_of("index_ordinary");
    for case in ["index_quarterly_dates", "index_form_fixed_width", "index_form_17_wide", "index_company_broken_title"] {
        assert_eq!(page_of(case), daily, "{case}");
    }
    let wide = fixture("edgar", "index_form_rows_wider_than_title").unwrap();
    let facts = filings(&wide);
    assert_eq!((&*facts[0].form, &*facts[0].company, &*facts[0].base_form), ("SCHEDULE 13G/A", "Vanward Group", "SC 13G"));
    assert_eq!((&*facts[2].form, &*facts[2].cik), ("10-K", "0000820694"));
    assert!(facts[2].company.ends_with("A LIMITED PARTNER"));
    assert_eq!(filings(&fixture("edgar", "index_form_17_wide").unwrap())[4].form, "BD 310");
}

/// Proves that rows that have lost a column stop the stream with an error that names it, and that a single bad row is rejected alone.
#[test]
fn index_drift_names_the_field() {
    let good = "12|PIER CORP|8-K|20260101|edgar/data/12/0000000012-26-000001.txt";
    for (bad, field) in [
        ("12|PIER CORP|8-K|20260101|elsewhere", "File Name"),
        ("12|PIER CORP|8-K|January|edgar/data/12/0000000012-26-000002.txt", "Date Filed"),
        ("twelve|PIER CORP|8-K|20260101|edgar/data/12/0000000012-26-000002.txt", "CIK"),
        ("12|PIER CORP| |20260101|edgar/data/12/0000000012-26-000002.txt", "Form Type"),
    ] {
        let rows = |bads: usize| [vec![good; 15], vec![bad; bads]].concat();
        let page = map_at(INDEX, &start(INDEX, &window()), &index(&rows(1))).unwrap();
        assert_eq!(page.rejects.len(), 1);
        assert!(page.rejects[0].reason.contains(field), "{:?}", page.rejects[0]);
        let error = map_at(INDEX, &start(INDEX, &window()), &index(&rows(20))).unwrap_err();
        assert!(matches!(&error, UpstreamError::Stop { field: named, .. } if named == field), "{field}: {error}");
    }
}

/// Proves that the feed gives one record per filing and party with all its roles, and items only for 8-Ks.
#[test]
fn feed_entries_are_distinguished_by_filing_and_party() {
    let page = fixture("edgar", "current_ordinary").unwrap();
    let facts = filings(&page);
    assert_eq!(facts.len(), 7);
    let fact_with = |key: &str| facts.iter().find(|fact| fact.identity() == key).unwrap();
    assert_eq!(fact_with("0001683168-26-000199/0000000012").roles, ["Issuer"]);
    assert_eq!(fact_with("0001683168-26-000199/0002063236").roles, ["Reporting"]);
    assert_eq!(fact_with("0000820694-26-000010/0000820694").roles, ["Filed by", "Subject"]);
    let event = fact_with("0000820695-26-000006/0000820695");
    assert_eq!(
        (&*event.company, &event.items[..]),
        ("CAFÉ DEL MAR (HOLDINGS) S.A. - SERIES A", &["4.01".to_owned(), "9.01".to_owned()][..])
    );
    assert_eq!(fact_with("0002104409-26-000001/0002104409").items, [""; 0]);
    assert!(fact_with("0009000001-26-000004/0009000001").amendment);
}

/// Proves that the next page begins before a filing that may continue there, always advances, and is not requested when this page had
/// nothing new.
#[test]
fn the_feed_is_read_until_nothing_is_new() {
    let starts = |case: &str| {
        let page = fixture("edgar", case).unwrap();
        page.next.map(|next| path(CURRENT, &next).split('&').find_map(|part| part.strip_prefix("start=").map(str::to_owned)).unwrap())
    };
    assert!(path(CURRENT, &start(CURRENT, &window())).ends_with("getcurrent&type=&owner=include&count=100&start=0&output=atom"));
    assert_eq!(starts("current_last_filing_may_go_on").as_deref(), Some("1"));
    assert_eq!(starts("current_one_filing_of_many_parties").as_deref(), Some("3"));
    assert_eq!(starts("current_empty"), None);

    let next = fixture("edgar", "current_ordinary").unwrap().next.unwrap();
    let keys = depends_on(CURRENT, &next);
    assert_eq!(keys.len(), 7);
    let known: Vec<&str> = keys.iter().map(String::as_str).collect();
    assert_eq!(narrowed(CURRENT, &next, &known), None);
    let on = narrowed(CURRENT, &next, &known[1..]).unwrap();
    assert_eq!((depends_on(CURRENT, &on).len(), path(CURRENT, &on)), (0, path(CURRENT, &next)));
    // A feed that never ends is abandoned.
    let endless = ok(std::fs::read(folder("edgar").join("current_ordinary.xml")).unwrap());
    assert!(walk(CURRENT, &window(), |_| endless.clone()).len() < 800);
}

/// Proves that an index leads to the unknown filings, once each, in parts that fit into a cursor, and then to the next day.
#[test]
fn ownership_walks_what_is_not_known() {
    let window = days(24, 25);
    let rows: Vec<String> = (0..250)
        .flat_map(|n| [12, 2_063_236].map(|cik| format!("{cik}|X|4|20260924|edgar/data/{cik}/0001683168-26-{n:06}.txt")))
        .chain(["13|X|424B2|20260924|edgar/data/13/0000000013-26-000001.txt".to_owned()])
        .collect();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let nothing = ok("<SEC-DOCUMENT>");
    let mut known = vec!["edgar.ownership/0001683168-26-000003/none/0", "edgar.ownership/0001683168-26-000004/derivative/1"];
    for _ in 0..2 {
        let (mut cursor, mut requested, mut indexes) = (Some(start(OWNERSHIP, &window)), Vec::new(), 0);
        while let Some(at) = cursor {
            assert!(at.0.len() < 6_000, "{}", at.0.len());
            let path = path(OWNERSHIP, &at);
            let answer = match (path.contains("daily-index"), path.contains("0924.idx")) {
                (true, true) => index(&rows),
                (true, false) => missing(),
                _ => nothing.clone(),
            };
            if path.contains("daily-index") {
                indexes += 1
            } else {
                requested.push(path)
            }
            let next = map_at(OWNERSHIP, &at, &answer).unwrap().next;
            cursor =
                next.and_then(|next| if depends_on(OWNERSHIP, &next).is_empty() { Some(next) } else { narrowed(OWNERSHIP, &next, &known) });
        }
        assert_eq!(requested.len(), 250 - known.len());
        assert_eq!(requested[0], format!("/Archives/edgar/data/12/0001683168-26-{:06}.txt", if known.len() == 2 { 0 } else { 7 }));
        assert!(requested.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(indexes, 4);
        known.extend([0, 1, 2, 5, 6].map(|n| &*format!("edgar.ownership/0001683168-26-{n:06}/nonDerivative/1").leak()));
    }
}

/// Proves that only 8-Ks without known items lead to a list, with one request per filer.
#[test]
fn submissions_are_requested_once_per_filer() {
    let page = fixture("edgar", "submissions_index").unwrap();
    let next = page.next.unwrap();
    assert_eq!(depends_on(SUBMISSIONS, &next).len(), 4);
    let on = narrowed(SUBMISSIONS, &next, &[]).unwrap();
    assert_eq!(path(SUBMISSIONS, &on), "/submissions/CIK0000000012.json");
    let (upstream, stream) = stream(SUBMISSIONS);
    assert_eq!(upstream.request(stream, &on, &settings()).unwrap().origin, "https://data.sec.gov");
    let body = std::fs::read(folder("edgar").join("submissions_ordinary.json")).unwrap();
    let page = map_at(SUBMISSIONS, &on, &ok(body)).unwrap();
    assert_eq!(page.observations.len(), 2, "8-Ks of the window alone");
    assert!(path(SUBMISSIONS, &page.next.unwrap()).contains("daily-index"), "the filer's two filings need one request");
    let known = ["edgar.current/0000000012-26-000001/0000000012", "edgar.submissions/0000000012-26-000002/0000000012"];
    assert!(path(SUBMISSIONS, &narrowed(SUBMISSIONS, &next, &known).unwrap()).contains("20260901.idx"));
    // The list of another filer is refused.
    let other = std::fs::read(folder("edgar").join("submissions_no_filings.json")).unwrap();
    assert_eq!(map_at(SUBMISSIONS, &on, &ok(other)).unwrap().rejects.len(), 1);
}

/// Proves that a trade belongs to the issuer of the XML with all its reporters, that holdings are not trades, and how a missing price is
/// mapped.
#[test]
fn trades_belong_to_the_issuer() {
    let page = fixture("edgar", "ownership_ordinary").unwrap();
    let facts = trades(&page);
    assert_eq!(
        facts.iter().map(|fact| (&*fact.table, fact.row)).collect::<Vec<_>>(),
        [("nonDerivative", 1), ("nonDerivative", 2), ("derivative", 1)]
    );
    assert!(
        facts.iter().all(|fact| fact.issuer_cik == "0000000012" && fact.issuer_symbol == "HPC" && fact.owners.len() == 2 && fact.planned)
    );
    assert_eq!((facts[0].value(), facts[1].value(), &*facts[1].price), (Some(Dollars { cents: 1_250_000 }), None, ""));
    assert_eq!((&*facts[2].date, &*facts[2].code, &*facts[2].acquired_disposed), ("2026-01-08", "M", "D"));
    let (ada, fund) = (&facts[0].owners[0], &facts[0].owners[1]);
    assert!(ada.director && ada.officer && ada.title == "Chief & Founder" && fund.ten_percent && !fund.other);
}

/// Proves that a filing without trades gives one record that says so, also for an amendment.
#[test]
fn a_filing_without_trades_is_known() {
    for (case, form) in [("ownership_form_3_holdings", "3"), ("ownership_amendment_of_holdings", "4/A")] {
        let page = fixture("edgar", case).unwrap();
        let facts = trades(&page);
        assert_eq!((facts.len(), page.rejects.len()), (1, 0), "{case}");
        assert_eq!((&*facts[0].form, &*facts[0].table, facts[0].is_trade()), (form, "none", false), "{case}");
        assert!(page.observations[0].key.ends_with("/none/0"));
    }
}

/// Proves that rejected records can be mapped again on their own, for every stream.
#[test]
fn rejected_records_can_be_mapped_again() {
    for case in ["index_bad_rows", "current_bad_entries", "submissions_bad_rows", "ownership_bad_values", "ownership_no_issuer"] {
        let name = format!("edgar.{}", case.split('_').next().unwrap());
        let (upstream, stream) = stream(&name);
        let rejects = fixture("edgar", case).unwrap().rejects;
        assert!(!rejects.is_empty(), "{case}");
        for reject in rejects {
            let again = map(&name, upstream.single(stream, &reject.raw)).unwrap();
            assert!(again.rejects.iter().any(|again| again.reason == reject.reason), "{case}: {again:?}");
        }
    }
    let (upstream, stream) = stream(INDEX);
    let row = "12|PIER CORP|8-K|20260101|edgar/data/12/0000000012-26-000001.txt";
    assert_eq!(map(INDEX, upstream.single(stream, row.as_bytes())).unwrap().observations.len(), 1);
}

/// Proves that a filing with a row that cannot be read does not say that it holds no trade, and that the row that can be read replaces such
/// a record of an earlier version.
#[test]
fn a_rejected_row_is_no_empty_filing() {
    let page = fixture("edgar", "ownership_all_rows_bad").unwrap();
    assert_eq!((page.observations.len(), page.rejects.len()), (0, 1));
    assert_eq!(page.rejects[0].reference, "0001683168-26-000205/nonDerivative/1");
    let page = fixture("edgar", "ownership_ordinary").unwrap();
    let replaced = |observation: &upstreams::Observation| observation.replaces.iter().all(|key| key.ends_with("/none/0"));
    assert!(page.observations.iter().all(|observation| observation.replaces.len() == 1 && replaced(observation)));
}

/// Proves that companies have all their tickers, that a list without companies or with other fields is refused, and that a bad row is
/// rejected alone.
#[test]
fn tickers_are_grouped_by_company() {
    let page = fixture("edgar", "tickers_ordinary").unwrap();
    let facts = statements(&page);
    assert_eq!(facts.len(), 2);
    assert_eq!((&*facts[0].company, facts[0].tickers.join(",")), ("PIER CORP", "PIER,PIER-WT,PIERU".to_owned()));
    assert_eq!((&*facts[1].company, facts[1].tickers.join(",")), ("Quay & Sons Inc.", "BRK-B".to_owned()));
    assert_eq!(page.rejects.len(), 2);
    for case in ["tickers_empty", "tickers_truncated"] {
        assert!(matches!(fixture("edgar", case), Err(UpstreamError::Later { .. })), "{case}");
    }
    assert!(matches!(fixture("edgar", "tickers_fields_renamed"), Err(UpstreamError::Stop { field, .. }) if field == "cik_str"));
}

/// Proves that the search names documents week by week, that only those are requested that are not known, and that their sentences are
/// kept with the text before them.
#[test]
fn statements_are_read_from_documents() {
    let page = fixture("edgar", "pdufa_search").unwrap();
    let next = page.next.unwrap();
    assert!(page.observations.is_empty());
    let keys = depends_on(PDUFA, &next);
    assert_eq!(keys.len(), 8, "{keys:?}");
    let known = ["edgar.pdufa/0001234567-26-000001/a.htm/0", "edgar.pdufa/0001234567-26-000002/ex99-1.htm/1"];
    let on = narrowed(PDUFA, &next, &known).unwrap();
    assert_eq!(path(PDUFA, &on), "/Archives/edgar/data/900001/000123456726000001/ex99-1.htm");
    let document = "<p>Calderinib is new.</p><p>The FDA set a PDUFA target action date of November&nbsp;27,\n2026.</p>";
    let page = map_at(PDUFA, &on, &ok(document)).unwrap();
    let facts = statements(&page);
    assert_eq!(facts.len(), 1);
    assert_eq!(page.observations[0].key, "edgar.pdufa/0001234567-26-000001/ex99-1.htm/1");
    assert_eq!(
        (&*facts[0].company, &*facts[0].sentence, &*facts[0].before),
        ("PIER BIO, INC.", "The FDA set a PDUFA target action date of November 27, 2026.", "Calderinib is new.")
    );
    let after = page.next.unwrap();
    assert_eq!(path(PDUFA, &after), "/Archives/edgar/data/900001/000123456726000003/ex99-1.htm");
    // A document that says nothing is known afterwards, and one that is missing is not.
    let none = map_at(PDUFA, &after, &ok("<p>nothing</p>")).unwrap();
    assert_eq!(none.observations[0].key, "edgar.pdufa/0001234567-26-000003/ex99-1.htm/0");
    assert!(map_at(PDUFA, &after, &missing()).unwrap().observations.is_empty());
    // The next week is searched, and a known week is not read again.
    let week = none.next.unwrap();
    assert!(path(PDUFA, &week).contains("startdt=2026-01-08&enddt=2026-01-14"), "{}", path(PDUFA, &week));
    let all: Vec<&str> = keys.iter().map(String::as_str).collect();
    assert_eq!(narrowed(PDUFA, &next, &all).map(|cursor| path(PDUFA, &cursor)), Some(path(PDUFA, &week)));
}

/// Proves that an answer that is no search result says nothing: it is refused, and what the search did not show is stated.
#[test]
fn a_failed_search_is_not_an_empty_one() {
    for case in ["pdufa_timed_out", "pdufa_no_list", "pdufa_wall"] {
        assert!(matches!(fixture("edgar", case), Err(UpstreamError::Later { .. })), "{case}");
    }
    let empty = fixture("edgar", "pdufa_no_hits").unwrap();
    assert!(empty.incomplete.is_none() && empty.next.is_some());
    assert!(fixture("edgar", "pdufa_page_is_missing").unwrap().incomplete.is_some());
    let more = fixture("edgar", "pdufa_has_more").unwrap().next.unwrap();
    let hit = narrowed(PDUFA, &more, &["edgar.pdufa/0001234567-26-000001/ex99-1.htm/1"]).unwrap();
    assert!(path(PDUFA, &hit).ends_with("&from=1"), "{}", path(PDUFA, &hit));
}

/// Proves that a document may contain the words of a block page, and that a block page is no document.
#[test]
fn documents_and_block_pages() {
    let next = fixture("edgar", "pdufa_search").unwrap().next.unwrap();
    let on = narrowed(PDUFA, &next, &[]).unwrap();
    let (upstream, stream) = stream(PDUFA);
    let markers = upstream.request(stream, &on, &settings()).unwrap().back_off.unwrap().markers;
    assert!(!markers.iter().any(|marker| "Reference ID: 5. Traffic Limit".contains(marker)));
    let wall = "<html><head><title>SEC.gov | Request Rate Threshold Exceeded</title></head></html>";
    assert!(matches!(map_at(PDUFA, &on, &ok(wall)), Err(UpstreamError::Later { .. })));
}
