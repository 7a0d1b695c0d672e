//! The table of permits of the city.

use jiff::ToSpan;
use serde_json::{Value, json};
use simulated_world::world::World;

use super::day;

/// The permits of the first day.
const PERMITS: i64 = 12;

/// The rows of the day: numbers of parcels with and without dashes and one that is none, costs as numbers and as texts, and a permit that is completed on a later
/// day, when another one is issued.
pub(super) fn rows(world: &World) -> Vec<Value> {
    let day = i64::from(day(world));
    let count = PERMITS + i64::from(day > 0);
    let permit = |number: i64| {
        let lot = 100 + number;
        let pin = match number {
            3 => "MULTIPLE".to_owned(),
            number if number % 4 == 1 => format!("0028-F-{lot:05}-0000-00"),
            _ => format!("0028F{lot:05}000000"),
        };
        let (kind, work) = match number % 3 {
            0 => ("Building & Development Application", "New Construction"),
            1 => ("BUILDING", "EXISTING (ALTERATION/ADDITION)"),
            _ => ("Demolition Permit", "Demolition"),
        };
        let value = 25_000 * (number + 1);
        let issued = world.first_today.saturating_sub((30 * number).days());
        json!({
            "permit_id": format!("BDA-{}-{number:05}", issued.year()), "permit_type": kind, "owner_name": "EXAMPLE PAT", "contractor_name": "EXAMPLE PAT",
            "work_description": "ERECT BUILDING FOR PAT EXAMPLE AS PER PLANS", "work_type": work, "commercial_or_residential": "Commercial",
            "total_project_value": if number % 2 == 0 { json!(value as f64) } else { json!(value.to_string()) }, "issue_date": issued.to_string(),
            "parcel_num": pin, "address": format!("{} FORBES AVE, Pittsburgh, PA 15213-", 3_300 + number), "ward": "4",
            "status": if day > 0 && number == 0 { "Completed" } else { "Issued" },
        })
    };
    (0..count).map(permit).collect()
}
