//! Properties of the simulated upstreams: the same seed gives the same bytes, formats parse, windows, pages and limits work, and the
//! expected changes are correct.

mod allegheny;
mod awards;
mod businesses;
mod catalysts;
mod directives;
mod exclusions;
mod filings;
mod grants;
mod mentions;
mod parcels;
mod posted_searches;
mod rounds;
mod trademarks;
mod trials;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Cursor, Read};

use jiff::civil::date;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

const CPSC: &str = "/RestWebServices/Recall";
const POST: &str = "/odi/ffdd/rcl/FLAT_RCL_POST_2010.zip";
const PRE: &str = "/odi/ffdd/rcl/FLAT_RCL_PRE_2010.zip";
const SOCRATA: &str = "/resource/6axg-epim.json";
const FSIS: &str = "/fsis/api/recall/v/1";
const PATHS: [&str; 8] = [CPSC, "/food/enforcement.json", "/drug/enforcement.json", "/device/enforcement.json", SOCRATA, POST, PRE, FSIS];

/// Proves that the list of simulated upstreams names exactly those whose paths are answered.
#[test]
fn simulated_upstreams_answer() {
    let others = [
        "/api/3/action/datastore_search",
        "/cgi-bin/browse-edgar",
        "/submissions/CIK0000900001.json",
        "/LATEST/search-index",
        "/files/company_tickers.json",
        "/api/drs/data-pull/ADFRAWD",
        "/api/v1/documents.json",
        "/v2/projects/search",
        "/api/v2/studies",
        "/api/v2/studies/NCT07000001",
        "/api/v2/version",
        "/api/v2/search/spending_by_award/",
        "/api/v2/search/spending_by_award_count/",
        "/api/v2/search/spending_by_transaction/",
        "/api/v2/search/spending_by_transaction_count/",
        "/api/v2/awards/CONT_IDV_X_7530/",
        "/api/v2/awards/last_updated/",
        "/api/v2/transactions/",
        "/api/v1/datasets/products/TRTDXFAP",
        "/api/v1/search_by_date",
        "/data-services/v1/extracts",
        "/api/rest_v1/metrics/pageviews/top/en.wikipedia/all-access/2026/11/18",
        "/products.json",
        "/resource/az4n-8mr2.json",
        "/resource/4ykn-tg5h.json",
        "/api/v1/datasets/554/rows.json",
        "/resource/uzyt-m557.json",
        "/resource/ydr8-5enu.json",
        "/robots.txt",
    ];
    let streams = PATHS.into_iter().chain(others).map(|path| Endpoint::at(path).unwrap_or_else(|| panic!("{path} is not answered")).name());
    let simulated: BTreeSet<&str> = streams.map(|name| name.split('.').next().unwrap()).collect();
    assert_eq!(simulated, UPSTREAMS.iter().copied().collect());
}

fn options(records: u64) -> Options {
    let at = "2026-11-20T12:00:00Z".parse().unwrap();
    Options { records, today: date(2026, 11, 20), clock: Clock::Fixed(at), ..Options::default() }
}

/// Whether a record matches a filter.
type Fits<'a> = &'a dyn Fn(&Value) -> bool;

/// The business days of the four weeks after the start.
fn business_days() -> impl Iterator<Item = Date> {
    let days = std::iter::successors(Some(date(2026, 11, 21)), |day| day.tomorrow().ok()).take(28);
    days.filter(|day| !matches!(day.weekday(), jiff::civil::Weekday::Saturday | jiff::civil::Weekday::Sunday))
}

fn query(path: &str) -> &'static str {
    match path {
        CPSC => "format=json",
        SOCRATA => "$limit=50000",
        path if path.ends_with("enforcement.json") => "limit=1000",
        _ => "",
    }
}

fn get(sim: &Simulator, path: &str, query: &str) -> Answer {
    sim.answer(path, query).unwrap()
}

fn value(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&answer.body)))
}

fn list(answer: &Answer) -> Vec<Value> {
    value(answer).as_array().unwrap().clone()
}

fn unzipped(answer: &Answer) -> String {
    let mut archive = zip::ZipArchive::new(Cursor::new(&answer.body)).unwrap();
    let mut text = String::new();
    archive.by_index(0).unwrap().read_to_string(&mut text).unwrap();
    text
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().trim().to_owned()
}

/// Returns all results of an endpoint by following the links until the 404.
fn walked(sim: &Simulator, path: &str, limit: u64, sort: &str) -> Vec<Value> {
    let (mut out, mut query) = (Vec::new(), format!("limit={limit}&sort=report_date:{sort}"));
    loop {
        let answer = get(sim, path, &query);
        if answer.status == 404 {
            return out;
        }
        assert_eq!(answer.status, 200);
        out.extend(value(&answer)["results"].as_array().unwrap().iter().cloned());
        let link = answer.link.unwrap();
        query = link[link.find('?').unwrap() + 1..link.find('>').unwrap()].to_owned();
    }
}

/// Returns what is served, by key: title, hazard and remedy where the format has them.
fn served(sim: &Simulator) -> BTreeMap<String, [String; 3]> {
    let mut out = BTreeMap::new();
    for record in list(&get(sim, CPSC, "format=json")) {
        out.insert(format!("cpsc/{}", record["RecallID"]), [text(&record["Title"]), text(&record["Hazards"][0]["Name"]), String::new()]);
    }
    for endpoint in ["food", "drug", "device"] {
        for record in walked(sim, &format!("/{endpoint}/enforcement.json"), 1000, "desc") {
            let number = text(&record["recall_number"]);
            let key = if number.is_empty() {
                let plain = text(&record["product_description"]).split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
                let hash = proofs::hash::Hash32::of(plain.as_bytes()).to_string();
                format!("openfda.{endpoint}/EVT-{}-{}", text(&record["event_id"]), &hash[..8])
            } else {
                format!("openfda.{endpoint}/{number}")
            };
            let product = text(&record["product_description"]).split(',').next().unwrap().to_owned();
            out.insert(key, [format!("{}: {product}", text(&record["recalling_firm"])), text(&record["reason_for_recall"]), String::new()]);
        }
    }
    for record in list(&get(sim, SOCRATA, "$limit=50000")) {
        let key = format!("nhtsa.socrata/{}", text(&record["nhtsa_id"]));
        out.insert(key, [String::new(), text(&record["consequence_summary"]), text(&record["corrective_action"])]);
    }
    for (path, stream) in [(POST, "nhtsa.flat"), (PRE, "nhtsa.flat_pre_2010")] {
        for line in unzipped(&get(sim, path, "")).split_terminator("\r\n") {
            let fields: Vec<&str> = line.split('\t').collect();
            assert_eq!(fields.len(), 29, "{line}");
            let new = [format!("{}: {}", fields[7], fields[6]), fields[20].to_owned(), fields[21].trim().to_owned()];
            let old = out.insert(format!("{stream}/{}", fields[1]), new.clone());
            assert!(old.is_none_or(|old| old == new), "rows of {} differ", fields[1]);
        }
    }
    for record in list(&get(sim, FSIS, "")) {
        let lang = if record["langcode"] == "Spanish" { "es" } else { "en" };
        out.insert(
            format!("fsis/{}/{lang}", text(&record["field_recall_number"])),
            [text(&record["field_title"]), String::new(), String::new()],
        );
    }
    out
}

fn expected(entries: &[ExpectedChange]) -> BTreeMap<String, [String; 3]> {
    let mut out = BTreeMap::new();
    for entry in entries {
        match entry.kind {
            Kind::Withdrawn | Kind::Superseded => drop(out.remove(&entry.key)),
            _ => {
                let some = |text: &Option<String>| text.clone().unwrap_or_default();
                out.insert(entry.key.clone(), [some(&entry.title), some(&entry.hazard), some(&entry.remedy)]);
            }
        }
    }
    out
}

/// The remedies of CPSC are composed from options, so only those of NHTSA are compared as texts.
fn without_cpsc_remedy(mut all: BTreeMap<String, [String; 3]>) -> BTreeMap<String, [String; 3]> {
    all.iter_mut().filter(|(key, _)| key.starts_with("cpsc/")).for_each(|(_, texts)| texts[2].clear());
    all
}

/// Proves that the seed determines every byte, before and after changes, and that another seed gives other bytes.
#[test]
fn same_seed_same_bytes() {
    let all = |seed: u64| {
        let sim = Simulator::new(Options { seed, ..options(600) });
        sim.advance(50);
        PATHS.map(|path| get(&sim, path, query(path)))
    };
    assert_eq!(all(7), all(7));
    for (one, other) in all(7).into_iter().zip(all(8)) {
        assert_ne!(one.body, other.body);
    }
}

/// Proves that each format parses and contains everything that the upstream's description names, including all categories and special
/// cases.
#[test]
fn formats_match_the_descriptions() {
    let sim = Simulator::new(options(20_000));
    let cpsc = list(&get(&sim, CPSC, "format=json"));
    let fields = "RecallID RecallNumber RecallDate Description URL Title ConsumerContact LastPublishDate Products Inconjunctions Images Injuries Manufacturers Retailers Importers Distributors SoldAtLabel ManufacturerCountries ProductUPCs Hazards Remedies RemedyOptions";
    let names: BTreeSet<&str> = cpsc[0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, fields.split(' ').collect());
    assert!(cpsc.iter().any(|record| text(&record["Title"]).contains("Crib")), "infant products");
    let year = cpsc.iter().filter(|record| text(&record["RecallDate"]).as_str() >= "2025-11-20").count() as f64 / cpsc.len() as f64;
    assert!((0.2..0.3).contains(&year), "a quarter within the last year: {year}");
    let size = get(&sim, CPSC, "format=json").body.len() / cpsc.len();
    assert!((1_500..2_700).contains(&size), "{size} bytes a record");

    let food = walked(&sim, "/food/enforcement.json", 1000, "asc");
    assert!(
        food.iter().any(|record| record["recall_number"] == "")
            && food.iter().any(|record| text(&record["product_description"]).contains("Infant"))
    );

    let rows = unzipped(&get(&sim, POST, ""));
    let lines: Vec<&str> = rows.split_terminator("\r\n").collect();
    let distinct: BTreeSet<&str> = lines.iter().copied().collect();
    let campaigns: BTreeSet<&str> = lines.iter().map(|line| line.split('\t').nth(1).unwrap()).collect();
    assert!(distinct.len() < lines.len(), "duplicate rows");
    assert!(campaigns.len() * 3 < lines.len(), "several rows a campaign");
    assert!(lines.iter().all(|line| line.split('\t').nth(1).unwrap().len() == 9));
    assert!(rows.contains("\t19010101\t") && rows.contains("<A HREF=") && rows.contains("\tC\t"));
    let again = unzipped(&get(&sim, POST, ""));
    assert_ne!(again, rows, "numbered again");
    let unnumbered = |rows: &str| rows.split("\r\n").map(|line| line.split_once('\t').map(|(_, rest)| rest.to_owned())).collect::<Vec<_>>();
    assert_eq!(unnumbered(&again), unnumbered(&rows));

    let seats = list(&get(&sim, SOCRATA, "$limit=50000")).into_iter().filter(|row| row["recall_type"] == "Child Seat").count();
    assert!(seats > 0);
    let fsis = list(&get(&sim, FSIS, ""));
    assert!(
        fsis.iter().any(|record| record["langcode"] == "Spanish") && fsis.iter().all(|record| record["field_recall_reason"].is_array())
    );
    let titles: BTreeSet<(String, String)> = food
        .iter()
        .map(|record| {
            (
                format!("{}: {}", text(&record["recalling_firm"]), text(&record["product_description"]).split(',').next().unwrap()),
                text(&record["report_date"]),
            )
        })
        .collect();
    let twins = fsis
        .iter()
        .filter(|record| titles.contains(&(text(&record["field_title"]), text(&record["field_recall_date"]).replace('-', ""))))
        .count();
    assert!(twins > 20, "{twins} recalls of both agencies");
}

/// Proves that the initial records with the expected changes applied are what is served afterwards.
#[test]
fn expected_changes_match_what_is_served() {
    let sim = Simulator::new(options(2_000));
    let before = sim.current(None);
    assert_eq!(without_cpsc_remedy(expected(&before)), served(&sim), "at the beginning");
    assert!(sim.advance(400) >= 400);
    let expected_changes = sim.expected_changes();
    let kinds: BTreeSet<String> = expected_changes.iter().map(|entry| format!("{:?}", entry.kind)).collect();
    assert_eq!(kinds, ["Modified", "New", "Superseded", "Withdrawn"].map(str::to_owned).into());
    assert!(expected_changes.iter().zip(1..).all(|(entry, n)| entry.n == n));
    let replayed = expected(&[before, expected_changes].concat());
    assert_eq!(without_cpsc_remedy(replayed), served(&sim), "after 400 changes");
    assert_eq!(without_cpsc_remedy(expected(&sim.current(None))), served(&sim));
}

/// Proves that an entry marked as visible differs from the entry of the same key before it.
#[test]
fn visible_entries_differ() {
    let sim = Simulator::new(options(2_000));
    let mut known: BTreeMap<String, ExpectedChange> = sim.current(None).into_iter().map(|entry| (entry.key.clone(), entry)).collect();
    sim.advance(600);
    for entry in sim.expected_changes() {
        // For FSIS only the hazard changes, whose exact value is not stated.
        if entry.kind == Kind::Modified && entry.upstream != "fsis" {
            let old = &known[&entry.key];
            let differs = (&old.title, &old.hazard, &old.remedy) != (&entry.title, &entry.hazard, &entry.remedy);
            assert_eq!(differs, entry.visible, "{entry:?}");
        }
        known.insert(entry.key.clone(), entry);
    }
}

/// Proves that windows are inclusive, that pages join without gap or duplicate in both orders, and that limits are answered as in the real
/// services.
#[test]
fn windows_and_pages_are_complete() {
    let sim = Simulator::new(options(20_000));
    let food = "/food/enforcement.json";
    let total = value(&get(&sim, food, ""))["meta"]["results"]["total"].as_u64().unwrap();
    for sort in ["asc", "desc"] {
        let all = walked(&sim, food, 700, sort);
        let keys: BTreeSet<String> =
            all.iter().map(|record| format!("{}{}", text(&record["recall_number"]), text(&record["product_description"]))).collect();
        assert_eq!((all.len() as u64, keys.len() as u64), (total, total), "{sort}");
    }
    let in_june = |value: &Value| ("20260601"..="20260630").contains(&text(value).as_str());
    let count = walked(&sim, food, 1000, "asc").iter().filter(|record| in_june(&record["report_date"])).count();
    let page = value(&get(&sim, food, "search=report_date:[20260601+TO+2026-06-30]&sort=report_date:desc&limit=1000"));
    assert!(count > 0 && page["results"].as_array().unwrap().iter().all(|record| in_june(&record["report_date"])));
    assert_eq!(page["meta"]["results"]["total"], count);
    for (query, status) in [
        ("limit=1001", 400),
        ("skip=25001&limit=1", 400),
        ("skip=25000&limit=1", 404),
        ("nonsense=1", 400),
        ("sort=status:asc", 400),
        ("search=report_date:[19000101+TO+19000102]", 404),
        ("search=a%2Bb", 500),
        ("search_after=0=x;1=5&skip=1", 400),
        ("search_after=0=20260601;1=18446744073709551615", 404),
    ] {
        assert_eq!(get(&sim, food, query).status, status, "{query}");
    }
    let missing = value(&get(&sim, food, "search=report_date:[19000101+TO+19000102]"));
    assert_eq!(missing["error"]["code"], "NOT_FOUND");

    let cpsc = |query: &str| list(&get(&sim, CPSC, query));
    let all = cpsc("format=json");
    let (first, last) = ("2026-05-01T00:00:00", "2026-06-30T00:00:00");
    let within = all.iter().filter(|record| (first..=last).contains(&text(&record["RecallDate"]).as_str())).count();
    let window = cpsc("format=json&RecallDateStart=2026-05-01&RecallDateEnd=2026-06-30");
    assert!(within > 0 && window.len() == within);
    assert!(window.is_sorted_by(|one, two| text(&one["RecallDate"]) >= text(&two["RecallDate"])));
    assert_eq!(cpsc("format=json&recallDateStart=2026-05-01").len(), all.len(), "unknown parameters are ignored");
    assert_eq!(cpsc("format=json&RecallDateStart=tomorrow")[0]["RecallID"], 0);
    assert_eq!(cpsc("format=json&RecallID=17").len(), 1);
    assert!(cpsc("format=json&RecallDateStart=2100-01-01").is_empty());
    assert_eq!(get(&sim, CPSC, "").content_type, Some("text/xml; charset=utf-8"));

    let rows = |query: &str| list(&get(&sim, SOCRATA, query));
    let all = rows("$limit=50000&$order=report_received_date%20DESC,%20nhtsa_id");
    assert!(all.is_sorted_by(|one, two| text(&one["report_received_date"]) >= text(&two["report_received_date"])));
    let mut paged = Vec::new();
    while let page @ [_, ..] = &rows(&format!("$limit=500&$offset={}&$order=report_received_date+DESC", paged.len()))[..] {
        paged.extend_from_slice(page);
    }
    assert_eq!(paged, all);
    let since = all.iter().filter(|row| text(&row["report_received_date"]).as_str() >= "2026-06-01").count();
    assert_eq!(rows("$where=report_received_date%20%3E=%20%272026-06-01T00:00:00%27&$limit=50000").len(), since);
    let both = "$where=report_received_date >= '2026-06-01T00:00:00' AND report_received_date < '2026-07-01T00:00:00'&$limit=50000";
    assert!(rows(both).iter().all(|row| text(&row["report_received_date"]).starts_with("2026-06")) && !rows(both).is_empty());
    assert_eq!(get(&sim, SOCRATA, "$where=nonsense").status, 400);
}

/// Proves that a million records cost nothing to set up, and that the last page is as fast as the first.
#[test]
fn million_records_need_no_memory() {
    let sim = Simulator::new(options(1_000_000));
    let records: u64 = sim.stats().records.iter().map(|(_, records)| records).sum();
    assert_eq!(records, 1_000_000);
    let device = "/device/enforcement.json";
    let total = value(&get(&sim, device, ""))["meta"]["results"]["total"].as_u64().unwrap();
    let far = get(&sim, device, &format!("sort=report_date:desc&limit=1000&search_after=0%3D20130101%3B1%3D{}", 1_000));
    assert_eq!(value(&far)["results"].as_array().unwrap().len(), 1000, "of {total}");
    let last = get(&sim, device, &format!("limit=1000&search_after=0%3D20130101%3B1%3D{}", total - 11));
    assert_eq!(value(&last)["results"].as_array().unwrap().len(), 10);
}

/// Proves that faults are known by name, can be counted, and occur only for the selected upstream.
#[test]
fn faults_occur_as_configured() {
    let mut faults = Faults::default();
    for name in FAULT_NAMES {
        faults.set(name, 0.0).unwrap();
    }
    assert_eq!(faults, Faults::default());
    assert!(faults.set("nonsense", 1.0).unwrap_err().to_string().contains("html"));
    faults.set("html.count", 2.0).unwrap();
    faults.set_text("only", "openfda").unwrap();
    let mut count_faulty = |stream| (0..50).filter(|n| !faults.draw(stream, "x", Random::new(1, 2, *n)).is_clean()).count();
    assert_eq!((count_faulty("cpsc"), count_faulty("openfda.drug"), count_faulty("openfda.food")), (0, 2, 0));
    faults.set("html.count", 1e9).unwrap();
    faults.set("html", 0.3).unwrap();
    let mut count_faulty = |stream| (0..1000).filter(|n| !faults.draw(stream, "x", Random::new(1, 2, *n)).is_clean()).count();
    assert!((200..400).contains(&count_faulty("openfda.drug")));
}

/// Sends a request over its own connection. Returns status line and headers, and the body as far as it arrived.
async fn http(addr: std::net::SocketAddr, head: &str, body: &str) -> (String, Vec<u8>) {
    let mut stream = tokio::net::TcpStream::connect(addr).await.unwrap();
    let request = format!("{head} HTTP/1.1\r\nhost: sim\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    // A connection that breaks in the middle is one of the faults.
    drop(stream.read_to_end(&mut bytes).await);
    let at = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    (String::from_utf8(bytes[..at].to_vec()).unwrap().to_lowercase(), bytes[at + 4..].to_vec())
}

async fn start(options: Options) -> (Arc<Simulator>, std::net::SocketAddr) {
    let sim = Simulator::new(options);
    let (addr, server) = Arc::clone(&sim).bind("127.0.0.1:0".parse().unwrap(), std::future::pending()).await.unwrap();
    tokio::spawn(server);
    (sim, addr)
}

fn set(name: &str, value: f64) -> String {
    serde_json::json!({ name: value, "slow_ms": 50 }).to_string()
}

/// Proves that each fault has its effect on the wire, and that the control API sets and removes faults.
#[tokio::test]
async fn faults_change_responses() {
    let (sim, addr) = start(options(600)).await;
    let food = "GET /food/enforcement.json?limit=100&sort=report_date:desc";
    let clean = http(addr, food, "").await.1;
    let under = async |fault: &str, request: &str| {
        let (head, _) = http(addr, "POST /_sim/faults", &set(fault, 1.0)).await;
        assert!(head.starts_with("http/1.1 200"), "{fault}: {head}");
        http(addr, request, "").await
    };
    let head = under("429_retry_after", food).await.0;
    assert!(head.starts_with("http/1.1 429") && head.contains("\r\nretry-after: 1"), "{head}");
    assert!(!under("429", food).await.0.contains("retry-after"));
    assert!(under("503", food).await.0.starts_with("http/1.1 503"));
    let (head, body) = under("html", food).await;
    assert!(head.starts_with("http/1.1 200") && head.contains("text/html") && body.starts_with(b"<"), "{head}");
    let (head, body) = under("truncated", food).await;
    assert!(head.contains(&format!("content-length: {}", body.len())) && serde_json::from_slice::<Value>(&body).is_err(), "{head}");
    let (head, body) = under("truncated_length", food).await;
    assert!(head.contains(&format!("content-length: {}", clean.len())) && body.len() < clean.len(), "{head}");
    let (head, _) = under("slow", food).await;
    assert!(head.contains("transfer-encoding: chunked"), "{head}");
    let results = |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap()["results"].clone();
    assert!(results(&under("schema_missing", food).await.1)[0].get("report_date").is_none());
    assert!(results(&under("schema_retyped", food).await.1)[0]["report_date"].is_object());
    assert!(results(&under("vanished", food).await.1).as_array().unwrap().len() < 80);
    assert_eq!(results(&under("outage", food).await.1), serde_json::json!([]));
    let second = "GET /food/enforcement.json?limit=50&skip=50&sort=report_date:desc";
    assert_eq!(results(&under("duplicated_page", second).await.1)[0], results(&clean)[0]);
    assert_eq!(results(&under("shifted_page", second).await.1)[0], results(&clean)[49]);
    let flipped: Value = serde_json::from_slice(&under("fsis_flip", "GET /fsis/api/recall/v/1").await.1).unwrap();
    assert!(flipped[0]["field_recall_reason"].is_string());
    let touched: Value = serde_json::from_slice(&under("touch", "GET /RestWebServices/Recall?format=json").await.1).unwrap();
    assert!(touched.as_array().unwrap().iter().all(|record| record["LastPublishDate"] == "2026-11-20T00:00:00"));

    assert!(http(addr, "POST /_sim/faults", "{\"nonsense\":1}").await.0.starts_with("http/1.1 400"));
    assert!(http(addr, "POST /_sim/faults", "{}").await.0.starts_with("http/1.1 200"));
    assert_eq!(http(addr, food, "").await.1, clean, "healed");
    assert_eq!(sim.expected_changes(), []);
}

/// Proves that the control API applies changes, returns the expected changes after any number, and counts; and that an unchanged document
/// is answered with 304.
#[tokio::test]
async fn control_api_changes_and_reports_the_state() {
    let (sim, addr) = start(options(600)).await;
    let (head, _) = http(addr, "GET /fsis/api/recall/v/1", "").await;
    let etag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned();
    let conditional = format!("GET /fsis/api/recall/v/1 HTTP/1.1\r\nif-none-match: {etag}\r\nx:");
    assert!(http(addr, &conditional, "").await.0.starts_with("http/1.1 304"));
    assert!(http(addr, "POST /_sim/advance?n=20", "").await.0.starts_with("http/1.1 200"));
    assert!(http(addr, &conditional, "").await.0.starts_with("http/1.1 200"));
    let lines = |body: Vec<u8>| {
        String::from_utf8(body).unwrap().lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
    };
    let expected = lines(http(addr, "GET /_sim/expected", "").await.1);
    assert_eq!(expected.len(), sim.expected_changes().len());
    assert_eq!(expected[0]["atMs"], 1_795_176_000_000_i64);
    assert_eq!(lines(http(addr, "GET /_sim/expected?after=15", "").await.1), expected[15..]);
    assert_eq!(lines(http(addr, "GET /_sim/records?stream=cpsc", "").await.1).len(), sim.current(Some("cpsc")).len());
    let stats: Value = serde_json::from_slice(&http(addr, "GET /_sim/stats", "").await.1).unwrap();
    assert_eq!((&stats["requests"], &stats["changes"]), (&3.into(), &20.into()));
    assert!(http(addr, "GET /nowhere", "").await.0.starts_with("http/1.1 404"));
}

/// Proves that changes are applied automatically as configured: over time, or once after a sync run.
#[tokio::test(start_paused = true)]
async fn changes_are_applied_automatically() {
    let every = Duration::from_secs(10);
    let (sim, _) = start(Options { change: When::Always { every }, change_rate: 3, ..options(600) }).await;
    tokio::time::sleep(Duration::from_secs(25)).await;
    assert_eq!(sim.stats().changes, 6);

    let change = When::BetweenRuns { idle: Some(Duration::from_secs(4)) };
    let (sim, addr) = start(Options { change, change_rate: 5, ..options(600) }).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(sim.stats().changes, 0, "changes need a request first");
    http(addr, "GET /food/enforcement.json", "").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(sim.stats().changes, 5, "changes are applied once after a run");
}
