//! Properties of the simulated roll of parcels and of permits on them: stages, what a later day brings, and the peculiarities of the rows.

use super::*;

const VALUES: &str = "/resource/uzyt-m557.json";
const SALES: &str = "/resource/wvhk-k5uv.json";

/// Proves that this year's values are mailed on the first day and certified on a later one, that conditions select a township and a year, and that the rows
/// have the peculiarities of the dataset.
#[test]
fn the_roll_moves_on() {
    let sim = Simulator::new(options(60));
    let rows_for = |query: &str| list(&get(&sim, VALUES, query));
    let west = rows_for("$where=year%20%3E%3D%20'2026'%20AND%20township_code%20=%20'77'&$order=row_id&$limit=5000");
    assert_eq!(west.len(), 63 + 8 + 8);
    assert!(west.iter().all(|row| row.get("mailed_tot").is_some() && row.get("certified_tot").is_none() && row["board_tot"] == "0"));
    assert!(west[0]["mailed_bldg"].as_str().unwrap().ends_with(".0"));
    let other = rows_for("$where=township_code%20=%20'70'%20AND%20year%20%3E%3D%20'2026'");
    assert!(other.iter().any(|row| row["pin"].as_str().unwrap().len() == 13) && other.iter().any(|row| row["class"] == "2.1-1)A"));
    assert!(other.iter().any(|row| row["class"] == "EX" && row.get("mailed_tot").is_none()));
    sim.set_today(date(2026, 11, 30));
    let later = rows_for("$where=year%20%3E%3D%20'2026'%20AND%20township_code%20=%20'77'&$limit=5000");
    assert!(later.iter().all(|row| row.get("certified_tot").is_some()));
    let sales = list(&get(&sim, SALES, "$where=township_code%20=%20'77'&$limit=5000"));
    for odd in ["is_multisale", "sale_filter_less_than_10k", "sale_filter_deed_type", "sale_filter_same_sale_within_365"] {
        assert_eq!(sales.iter().filter(|row| row[odd] == true).count(), 1, "{odd}");
    }
}

/// Proves that permits name parcels in each of the forms of the datasets, that the city completes one permit and issues another on a later day, and that a condition
/// selects by the day of issue.
#[test]
fn permits_on_parcels() {
    let sim = Simulator::new(options(60));
    let texts = |rows: &[serde_json::Value], field: &str| {
        rows.iter().map(|row| row[field].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let assessed =
        list(&get(&sim, "/resource/6yjf-dfxs.json", "$where=date_issued%20%3E%3D%20'2021-01-01T00:00:00'&$order=row_id&$limit=5000"));
    let pins = texts(&assessed, "pin");
    for form in ["", "1012160010000", "1601216054", "16-01-216-053-0000", "16-01-216-055-0000 | 16012160550000 | 1601216056"] {
        assert!(pins.iter().any(|pin| pin == form), "{form:?}");
    }
    assert!(texts(&assessed, "date_issued").iter().any(|day| day.starts_with("2210")));
    assert_eq!(texts(&assessed, "permit_number").iter().filter(|number| *number == "M1").count(), 3);
    let city = || list(&get(&sim, "/resource/ydr8-5enu.json", "$where=issue_date%20%3E%3D%20'2026-09-01T00:00:00'&$order=id&$limit=5000"));
    let first = city();
    assert!(texts(&first, "permit_status").iter().all(|status| status == "ACTIVE") && texts(&first, "pin_list").contains(&String::new()));
    sim.set_today(date(2026, 11, 30));
    let later = city();
    assert_eq!((later.len(), texts(&later, "permit_status").iter().filter(|status| *status == "COMPLETE").count()), (first.len() + 1, 1));
}
