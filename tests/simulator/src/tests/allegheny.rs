//! Properties of the simulated tables of liens: what the server does with pages and numbers, and the peculiarities of the rows.

use super::*;

const LIENS: &str = "65d0d259-3e58-49d3-bebb-80dc75f61245";

const PERMITS: &str = "f4d1177a-f597-4c32-8cbf-7885f56253f6";
const ASSESSMENTS: &str = "65855e14-549e-4992-b5be-d629afc676fa";
const SALES: &str = "5bbe6c55-bce6-4edb-9d04-68edeb6bf7b1";

fn page(sim: &Simulator, query: &str) -> Value {
    page_of(sim, LIENS, query)
}

fn page_of(sim: &Simulator, table: &str, query: &str) -> Value {
    let found = value(&get(sim, "/api/3/action/datastore_search", &format!("resource_id={table}&{query}")));
    assert_eq!(found["success"], true);
    found["result"].clone()
}

fn rows(sim: &Simulator) -> Vec<Value> {
    let page = |offset: usize| page(sim, &format!("limit=32000&offset={offset}"))["records"].as_array().unwrap().clone();
    let mut rows = page(0);
    while let Some(more) = Some(page(rows.len())).filter(|more| !more.is_empty()) {
        rows.extend(more);
    }
    rows
}

/// Proves that the server lowers a limit, returns the columns that are asked for, numbers the rows again each day, and estimates the total on every second
/// day; and that it refuses a table that it does not have.
#[test]
fn pages_of_tables() {
    let sim = Simulator::new(options(60));
    let first = page(&sim, "limit=32000&fields=pin,dtd");
    let records = first["records"].as_array().unwrap();
    assert_eq!((records.len(), records[0].as_object().unwrap().len()), (100, 3));
    assert!(first["total"].as_u64().unwrap() > 100 && first["total_was_estimated"] == false);
    let id = records[0]["_id"].clone();
    sim.set_today(date(2026, 11, 21));
    let later = page(&sim, "limit=1");
    assert!(later["total_was_estimated"] == true && later["records"][0]["_id"] != id);
    assert_eq!(get(&sim, "/api/3/action/resource_show", "id=none").status, 404);
    let shown = value(&get(&sim, "/api/3/action/resource_show", &format!("id={LIENS}")));
    assert_eq!(shown["result"]["last_modified"], "2026-11-21T04:11:00.000000");
}

/// Proves that permits of the city name parcels in each form, and that one is completed and another issued on a later day.
#[test]
fn permits_of_the_city() {
    let sim = Simulator::new(options(60));
    let permits = || page_of(&sim, PERMITS, "limit=32000")["records"].as_array().unwrap().clone();
    let first = permits();
    for form in ["0028F00100000000", "0028-F-00101-0000-00", "MULTIPLE"] {
        assert!(first.iter().any(|row| row["parcel_num"] == form), "{form}");
    }
    assert!(first.iter().all(|row| row["status"] == "Issued"));
    sim.set_today(date(2026, 11, 21));
    let later = permits();
    assert_eq!((later.len(), later.iter().filter(|row| row["status"] == "Completed").count()), (first.len() + 1, 1));
}

/// Proves that each peculiarity of liens is there, and that a later entry hides a satisfaction on the next day.
#[test]
fn peculiar_liens() {
    let sim = Simulator::new(options(60));
    let entries = |rows: &[Value]| rows.iter().map(|row| row["last_docket_entry"].as_str().unwrap().to_owned()).collect::<BTreeSet<_>>();
    let first = rows(&sim);
    for body in ["School", "Borough", "Township", "Library", "City"] {
        assert!(entries(&first).contains(&format!("Satisfied as to {body} ONLY")), "{body}");
    }
    let with = |rows: &[Value], fits: &dyn Fn(&Value) -> bool| rows.iter().filter(|row| fits(row)).count();
    assert_eq!(with(&first, &|row| row["dtd"] == "DTD-03-037477"), 3);
    assert!(with(&first, &|row| row["satisfied"] == "t") > 1);
    assert_eq!(with(&first, &|row| row["block_lot"] == "296- N-1-1" && row["pin"].is_null()), 1);
    let buried = |rows: &[Value]| rows.iter().find(|row| row["dtd"] == "DTD-97-004687").unwrap()["last_docket_entry"].clone();
    assert_eq!(buried(&first), "Satisfaction");
    sim.set_today(date(2026, 11, 21));
    assert_eq!(buried(&rows(&sim)), "Mail Returned");
}

/// Proves that on one day half of the table is there, with a header among its rows.
#[test]
fn half_a_table() {
    let sim = Simulator::new(options(60));
    let whole = rows(&sim).len();
    sim.set_today(date(2026, 11, 25));
    let half = rows(&sim);
    assert!(half.len() <= whole / 2 + 1);
    assert_eq!(half.iter().filter(|row| row["last_docket_entry"] == "LAST_DOCKET_ENTRY").count(), 1);
}

/// Proves that assessments and sales have the peculiarities of their tables: numbers in both forms, days with the month first, blanks, second cards of
/// parcels, and sales that are none on the market; homes with exemptions, and floor areas of homes only.
#[test]
fn peculiar_rolls() {
    let sim = Simulator::new(options(60));
    let records_of = |table: &str| page_of(&sim, table, "limit=100")["records"].as_array().unwrap().clone();
    let (parcels, sales) = (records_of(ASSESSMENTS), records_of(SALES));
    assert!(parcels.iter().any(|row| row["FAIRMARKETTOTAL"].is_string()) && parcels.iter().any(|row| row["FAIRMARKETTOTAL"].is_f64()));
    assert!(
        parcels.iter().all(|row| row["TAXYEAR"] == 2026.0 && row["PROPERTYUNIT"] == " " && row["SALEDATE"].as_str().unwrap().len() == 10)
    );
    let year_sold = |row: &Value| row["SALEDATE"].as_str().unwrap().rsplit_once('-').unwrap().1.parse::<i16>().unwrap();
    assert!(parcels.iter().all(|row| year_sold(row) < 2026), "no parcel was sold after today");
    let pins: BTreeSet<&str> = parcels.iter().map(|row| row["PARID"].as_str().unwrap()).collect();
    assert_eq!(pins.len(), parcels.len() - 2);
    let areas = || parcels.iter().map(|row| &row["FINISHEDLIVINGAREA"]);
    assert!(areas().any(Value::is_string) && areas().any(Value::is_f64));
    assert!(parcels.iter().all(|row| row["FINISHEDLIVINGAREA"].is_null() || row["USECODE"] == "010"));
    assert_eq!(parcels.iter().filter(|row| row["HOMESTEADFLAG"] == "HOM").count(), 8);
    let kinds: BTreeSet<&str> = sales.iter().map(|row| row["SALEDESC"].as_str().unwrap()).collect();
    assert_eq!(kinds, BTreeSet::from(["LOVE AND AFFECTION SALE", "MULTI-PARCEL SA", "VALID SALE"]));
}
