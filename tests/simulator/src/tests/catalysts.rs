//! The content of the upstreams of catalysts: one company has a trial, filings, a ticker and a meeting.

use super::*;

fn json_of(sim: &Simulator, path: &str, query: &str) -> Value {
    serde_json::from_slice(&get(sim, path, query).body).unwrap()
}

/// Proves that a company of the registry has a ticker, filings about its drug and a notice of a meeting, and that one company has 27
/// tickers.
#[test]
fn one_company_in_all_upstreams() {
    let sim = Simulator::new(options(600));
    let tickers = json_of(&sim, "/files/company_tickers.json", "");
    let rows: Vec<&Value> = tickers.as_object().unwrap().values().collect();
    assert!(rows.iter().any(|row| row["ticker"] == "CLDB" && row["title"].as_str().unwrap().starts_with("CALDERBROOK")));
    assert_eq!(rows.iter().filter(|row| row["cik_str"] == 960_002).count(), 27);
    assert!(!rows.iter().any(|row| row["title"].as_str().unwrap().contains("IVORYGATE")), "a sponsor without ticker");
    let found = json_of(&sim, "/LATEST/search-index", "q=%22PDUFA%22&forms=8-K,6-K,10-Q,10-K&startdt=2026-10-01&enddt=2026-11-20");
    let hits = found["hits"]["hits"].as_array().unwrap();
    assert_eq!(hits.len(), 8);
    let (number, file) = hits[1]["_id"].as_str().unwrap().split_once(':').unwrap();
    let page = get(&sim, &format!("/Archives/edgar/data/960001/{}/{file}", number.replace('-', "")), "");
    assert!(String::from_utf8(page.body).unwrap().contains("target action date of January&nbsp;4,&nbsp;2027"));
    let studies = json_of(&sim, "/api/v2/studies", "query.lead=Calderbrook&pageSize=1000");
    assert!(!studies["studies"].as_array().unwrap().is_empty());
}

/// Proves that a date moves by three months on a later day, and that no filing of the future is shown.
#[test]
fn dates_move() {
    let sim = Simulator::new(options(600));
    let query = "q=%22PDUFA%22&startdt=2026-11-21&enddt=2026-12-20";
    let count = |sim: &Simulator| json_of(sim, "/LATEST/search-index", query)["hits"]["total"]["value"].as_u64().unwrap();
    assert_eq!(count(&sim), 0);
    assert_eq!(get(&sim, "/Archives/edgar/data/960001/000960000126000009/ex99-1.htm", "").status, 403);
    sim.set_today(date(2026, 11, 23));
    assert_eq!(count(&sim), 2);
    let page = get(&sim, "/Archives/edgar/data/960001/000960000126000009/ex99-1.htm", "");
    assert!(String::from_utf8(page.body).unwrap().contains("from January 4, 2027 to April 4, 2027"));
}

/// Proves that notices come page by page by their addresses, with the fields that are asked for, and that an empty window has no list.
#[test]
fn notices_have_pages() {
    let sim = Simulator::new(options(600));
    let path = "/api/v1/documents.json";
    let first = json_of(&sim, path, "conditions[publication_date][gte]=2026-10-01&fields[]=title&fields[]=document_number");
    assert_eq!((first["count"].as_u64(), first["results"].as_array().unwrap().len()), (Some(10), 4));
    assert_eq!(first["results"][0].as_object().unwrap().len(), 2);
    let next = first["next_page_url"].as_str().unwrap();
    let second = json_of(&sim, path, next.split_once('?').unwrap().1);
    assert_ne!(second["results"], first["results"]);
    let empty = json_of(&sim, path, "conditions[publication_date][gte]=2027-10-01");
    assert!(empty["count"] == 0 && empty["results"].is_null());
}
