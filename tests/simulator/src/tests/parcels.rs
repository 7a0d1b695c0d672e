//! Properties of the simulated roll of parcels: its stages, and the peculiarities of its rows.

use super::*;

const VALUES: &str = "/resource/uzyt-m557.json";
const SALES: &str = "/resource/wvhk-k5uv.json";

/// Proves that this year's values are mailed on the first day and certified on a later one, that conditions select a township and a year, and that the rows
/// have the peculiarities of the dataset.
#[test]
fn the_roll_moves_on() {
    let sim = Simulator::new(options(60));
    let of = |query: &str| list(&get(&sim, VALUES, query));
    let west = of("$where=year%20%3E%3D%20'2026'%20AND%20township_code%20=%20'77'&$order=row_id&$limit=5000");
    assert_eq!(west.len(), 63 + 8 + 8);
    assert!(west.iter().all(|row| row.get("mailed_tot").is_some() && row.get("certified_tot").is_none() && row["board_tot"] == "0"));
    assert!(west[0]["mailed_bldg"].as_str().unwrap().ends_with(".0"));
    let other = of("$where=township_code%20=%20'70'%20AND%20year%20%3E%3D%20'2026'");
    assert!(other.iter().any(|row| row["pin"].as_str().unwrap().len() == 13) && other.iter().any(|row| row["class"] == "2.1-1)A"));
    assert!(other.iter().any(|row| row["class"] == "EX" && row.get("mailed_tot").is_none()));
    sim.set_today(date(2026, 11, 30));
    let later = of("$where=year%20%3E%3D%20'2026'%20AND%20township_code%20=%20'77'&$limit=5000");
    assert!(later.iter().all(|row| row.get("certified_tot").is_some()));
    let sales = list(&get(&sim, SALES, "$where=township_code%20=%20'77'&$limit=5000"));
    for odd in ["is_multisale", "sale_filter_less_than_10k", "sale_filter_deed_type", "sale_filter_same_sale_within_365"] {
        assert_eq!(sales.iter().filter(|row| row[odd] == true).count(), 1, "{odd}");
    }
}
