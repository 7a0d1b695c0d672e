//! Tables of Allegheny County: requests, the mapping of answers, and which readings are incomplete.

use schemas::facts::FactData;
use schemas::facts::liens::LienFact;
use schemas::position::UpstreamCursor;
use serde_json::{Value, json};
use upstreams::Page;

use crate::common::*;

const LIENS: &str = "allegheny.liens";

fixture_tests!("allegheny");

fn liens(page: &Page) -> Vec<&LienFact> {
    let mut liens = Vec::new();
    for observation in &page.observations {
        let FactData::Lien(fact) = &observation.data else { panic!("{observation:?}") };
        liens.push(&**fact);
    }
    liens
}

fn lien(number: usize) -> Value {
    json!({
        "_id": 9_000 - number, "pin": "0028F00194000000", "block_lot": "28F194", "filing_date": "2019-04-02", "tax_year": 2018.0,
        "dtd": format!("DTD-19-{number:06}"), "lien_description": "Allegheny County Tax Lien", "municipality": "PITTSBURGH", "ward": "4",
        "last_docket_entry": "Tax Lien", "amount": 812.5, "assignee": null, "satisfied": false,
    })
}

/// A server that knows when its table was changed, and sends at most so many rows however many are asked for.
struct Server {
    modified: &'static str,
    rows: Vec<Value>,
    limit: usize,
    /// How many rows it says there are; `None` for an estimate.
    total: Option<usize>,
}

impl Server {
    fn of(rows: usize) -> Self {
        Self { modified: "2026-11-02T04:11:00", rows: (0..rows).map(lien).collect(), limit: 40, total: Some(rows) }
    }

    fn answer(&self, path: &str) -> String {
        if path.starts_with("/api/3/action/resource_show?id=") {
            return json!({ "success": true, "result": { "id": "x", "last_modified": self.modified } }).to_string();
        }
        assert!(
            path.starts_with("/api/3/action/datastore_search?") && path.contains("sort=_id+asc") && path.contains("&fields=pin%2C"),
            "{path}"
        );
        let offset = path.split('&').find_map(|part| part.strip_prefix("offset=")).unwrap().parse().unwrap();
        let rows: Vec<&Value> = self.rows.iter().skip(offset).take(self.limit).collect();
        let total = self.total.map_or(json!(7), Value::from);
        json!({ "success": true, "result": { "records": rows, "total": total, "total_was_estimated": self.total.is_none() } }).to_string()
    }

    /// A run after another one. Returns how many pages of rows it read, its records and what is incomplete, and what it leaves.
    fn run(&self, memory: &UpstreamCursor) -> (usize, usize, Option<String>, UpstreamCursor) {
        let (upstream, stream) = stream(LIENS);
        let at = "2026-11-20T12:00:00Z".parse().unwrap();
        let mut cursor = upstream.start_after(stream, &window(), &settings(), memory, at);
        let (mut pages, mut records, mut incomplete) = (0, 0, None);
        while upstream.has_request(stream, &cursor) {
            let path = path(LIENS, &cursor);
            let page = map_at(LIENS, &cursor, &ok(self.answer(&path))).unwrap();
            pages += usize::from(path.contains("datastore_search"));
            assert!(pages < 100, "the run does not end");
            assert!(liens(&page).iter().all(|lien| !lien.is_satisfied));
            records += page.observations.len();
            incomplete = page.incomplete.map(|incomplete| incomplete.what).or(incomplete);
            cursor = page.next.unwrap();
        }
        (pages, records, incomplete, upstream.remember(stream, &cursor))
    }
}

/// Proves that a table is read whole although the server lowers the limit without saying so, also where it only estimates the total; and again only after it
/// was changed.
#[test]
fn tables_are_read_whole_when_they_change() {
    let server = Server::of(100);
    let (pages, records, incomplete, memory) = server.run(&UpstreamCursor::default());
    assert_eq!((pages, records, incomplete), (3, 100, None));
    let (pages, records, incomplete, memory) = server.run(&memory);
    assert_eq!((pages, records, incomplete), (0, 0, None));
    let changed = Server { modified: "2026-12-01T04:11:00", total: None, ..server };
    let (pages, records, incomplete, _) = changed.run(&memory);
    assert_eq!((pages, records, incomplete), (4, 100, None));
}

/// Proves that a half-loaded table is an incomplete reading in which nothing is withdrawn or satisfied, and that the next run reads the table again.
#[test]
fn half_loaded_tables_are_incomplete() {
    let (_, _, _, memory) = Server::of(100).run(&UpstreamCursor::default());
    let half = Server { modified: "2026-12-01T04:11:00", ..Server::of(50) };
    let (_, records, incomplete, after_half) = half.run(&memory);
    assert_eq!((records, incomplete.as_deref()), (50, Some("the table has 50 rows, more than 5 % fewer than the 100 of the last reading")));
    let cut = Server { modified: "2026-12-01T04:11:00", total: Some(100), ..Server::of(60) };
    assert_eq!(cut.run(&memory).2.as_deref(), Some("60 of 100 rows were read"));
    let whole = Server { modified: "2026-12-01T04:11:00", ..Server::of(101) };
    let (_, records, incomplete, memory) = whole.run(&after_half);
    assert_eq!((records, incomplete), (101, None));
    assert_eq!(whole.run(&memory).0, 0);
}

/// Proves that the numbers of rows are no identity: a table that is loaded again under other numbers has the same keys.
#[test]
fn row_numbers_are_no_identity() {
    let keys = |renumber: i64| {
        let mut row = lien(1);
        row["_id"] = renumber.into();
        let body = json!({ "success": true, "result": { "records": [row], "total": 1 } }).to_string();
        map(LIENS, body).unwrap().observations.remove(0)
    };
    assert_eq!(keys(1), keys(77));
    assert_eq!(keys(1).key, "allegheny.liens/DTD-19-000001|Allegheny County Tax Lien|2018|28F194|0028F00194000000");
}

/// Proves that a further card of a parcel is no second fact, and that the floor area of one building is not that of a parcel with several, wherever pages end:
/// rows are read by PIN, and a page begins with all rows of a parcel; and that parts follow the cycle. A run that began in another order continues in it.
#[test]
fn cards_of_a_parcel_are_one_fact() {
    const ASSESSMENTS: &str = "allegheny.assessments";
    let pin = |lot: u32| format!("0028F{lot:05}000000");
    let row = |lot: u32, value: f64| {
        json!({ "PARID": pin(lot), "MUNICODE": "104", "USECODE": "411", "CLASSDESC": "COMMERCIAL", "TAXYEAR": 2026.0, "FAIRMARKETTOTAL": value,
        "FINISHEDLIVINGAREA": "900.0" })
    };
    let rows = [row(1, 10.0), row(1, 20.0), row(2, 30.0), row(2, 40.0), row(2, 50.0), row(3, 60.0), row(4, 70.0)];
    // A page that ends among the cards of a parcel is followed by one that begins with the first of them. A page of one parcel is not known to have all its cards.
    for (limit, area) in [(1, None), (2, Some(900)), (3, Some(900)), (4, Some(900)), (5, Some(900)), (6, Some(900)), (7, Some(900))] {
        let (upstream, stream) = stream(ASSESSMENTS);
        let at = "2026-11-20T12:00:00Z".parse().unwrap();
        let mut cursor = upstream.start_after(stream, &window(), &settings(), &UpstreamCursor::default(), at);
        let (mut parcels, mut ends) = (Vec::new(), Vec::new());
        while upstream.has_request(stream, &cursor) {
            let path = path(ASSESSMENTS, &cursor);
            let result = match path.split('&').find_map(|part| part.strip_prefix("offset=")) {
                None => json!({ "id": "x", "last_modified": "2026-11-02T04:11:00" }),
                Some(offset) => {
                    assert!(path.contains("sort=PARID+asc%2C_id+asc"), "{path}");
                    let shown: Vec<&Value> = rows.iter().skip(offset.parse().unwrap()).take(limit).collect();
                    json!({ "records": shown, "total": rows.len() })
                }
            };
            let page = map_at(ASSESSMENTS, &cursor, &ok(json!({ "success": true, "result": result }).to_string())).unwrap();
            assert!(page.rejects.is_empty() && page.incomplete.is_none());
            for observation in page.observations {
                let FactData::Parcel(fact) = observation.data else { panic!("{}", observation.key) };
                match fact.kind.as_str() {
                    schemas::facts::parcels::ASSESSMENT => parcels.push((fact.pin, fact.certified, fact.floor_area)),
                    _ => ends.push((fact.kind, fact.year, fact.part)),
                }
            }
            cursor = page.next.unwrap();
        }
        let expected = [(pin(1), Some(10), None), (pin(2), Some(30), None), (pin(3), Some(60), area), (pin(4), Some(70), Some(900))];
        assert_eq!(parcels, expected, "{limit} rows a page");
        let parts = (0..16).map(|part| ("part".to_owned(), 2026, Some(part)));
        let expected: Vec<_> = std::iter::once(("cycle".to_owned(), 2026, None)).chain(parts).collect();
        assert_eq!(ends, expected, "{limit} rows a page");
    }
    let begun = UpstreamCursor(json!({ "v": 1, "modified": "2026-11-02T04:11:00", "rows": 32_000 }).to_string());
    assert!(path(ASSESSMENTS, &begun).contains("sort=_id+asc"));
}
