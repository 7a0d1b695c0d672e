//! The content of the simulated EDGAR.

use super::*;

/// Returns the trades of the last weeks: issuer, symbol, owner, code.
fn trades(sim: &Simulator) -> Vec<[String; 4]> {
    let mut out = Vec::new();
    let days = std::iter::successors(Some(date(2026, 11, 19)), |day| day.yesterday().ok()).take(18);
    for day in days {
        let index = get(sim, &format!("/Archives/edgar/daily-index/2026/QTR4/master.{}.idx", day.strftime("%Y%m%d")), "");
        let text = String::from_utf8(index.body).unwrap();
        let files: BTreeSet<&str> =
            text.lines().filter(|line| line.split('|').nth(2) == Some("4")).filter_map(|line| line.rsplit('|').next()).collect();
        let numbers: BTreeSet<&str> = files.iter().filter_map(|file| file.rsplit('/').next()).collect();
        for number in numbers {
            let form = String::from_utf8(get(sim, &format!("/Archives/edgar/data/1/{number}"), "").body).unwrap();
            let between =
                |open: &str| form.split_once(open).map(|(_, rest)| rest.split('<').next().unwrap().to_owned()).unwrap_or_default();
            out.push(["<issuerCik>", "<issuerTradingSymbol>", "<rptOwnerCik>", "<transactionCode>"].map(between));
        }
    }
    out
}

/// Proves that several insiders of one company buy within days, that most companies have a symbol, and that there are other trades.
#[test]
fn several_insiders_buy_within_days() {
    let sim = Simulator::new(options(600));
    let trades = trades(&sim);
    let mut buyers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for [issuer, _, owner, _] in trades.iter().filter(|trade| trade[3] == "P") {
        buyers.entry(issuer).or_default().insert(owner);
    }
    assert!(buyers.values().any(|owners| owners.len() >= 3), "{buyers:?}");
    let symbols: BTreeSet<&str> = trades.iter().map(|trade| trade[1].as_str()).collect();
    assert!(symbols.iter().filter(|symbol| **symbol != "NONE").count() > 1, "{symbols:?}");
    let codes: BTreeSet<&str> = trades.iter().map(|trade| trade[3].as_str()).collect();
    assert!(codes.len() > 2, "{codes:?}");
}

/// Proves that 8-Ks have items of several kinds, some of them more than one.
#[test]
fn current_reports_have_items() {
    let sim = Simulator::new(options(600));
    let feed = String::from_utf8(get(&sim, "/cgi-bin/browse-edgar", "count=100&start=0").body).unwrap();
    let items_of = |entry: &str| entry.matches("br&gt;Item ").count();
    let entries: Vec<&str> = feed.split("<entry>").filter(|entry| entry.contains("<title>8-K")).collect();
    assert!(entries.iter().all(|entry| items_of(entry) > 0) && entries.iter().any(|entry| items_of(entry) > 1));
    let items: BTreeSet<&str> = feed.split("br&gt;Item ").skip(1).filter_map(|rest| rest.split(':').next()).collect();
    assert!(items.len() > 4, "{items:?}");
}

/// Proves that the search finds the documents of the requested forms and days, including amendments, page by page, and nothing else.
#[test]
fn search_finds_documents() {
    let sim = Simulator::new(options(600));
    let find = |query: &str| -> (usize, Vec<Value>) {
        let mut body: Value = serde_json::from_slice(&get(&sim, "/LATEST/search-index", query).body).unwrap();
        let total = body["hits"]["total"]["value"].as_u64().unwrap() as usize;
        (total, body["hits"]["hits"].take().as_array().unwrap().clone())
    };
    let (total, first) = find("q=&forms=8-K&dateRange=custom&startdt=2026-11-09&enddt=2026-11-13");
    assert_eq!(total, first.len());
    let values_of =
        |name: &str| -> BTreeSet<String> { first.iter().map(|hit| hit["_source"][name].as_str().unwrap().to_owned()).collect() };
    assert_eq!(values_of("form"), ["8-K", "8-K/A"].map(str::to_owned).into());
    assert_eq!(values_of("file_date").len(), 5, "{:?}", values_of("file_date"));
    assert!(values_of("adsh").len() * 2 == total, "every filing must have two documents");
    let (all, page) = find("q=");
    let (_, second) = find("q=&from=100");
    assert!(page.len() == 100 && all > 100 && page.iter().all(|hit| !second.contains(hit)));
    assert_eq!(find("q=&forms=10-K").0, 0);
    assert_eq!(find("q=&startdt=2026-11-21").0, 0);
}
