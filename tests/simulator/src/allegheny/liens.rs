//! The table of tax liens.

use serde_json::{Value, json};
use simulated_world::world::World;

use super::day;

/// The parcels that have ordinary liens.
const PARCELS: i64 = 50;
const BODIES: [&str; 6] = [
    "Allegheny County Tax Lien",
    "School District Tax Lien",
    "City Tax Lien",
    "Pgh Water & Sewer Tax Lien",
    "Borough Tax Lien",
    "Township Tax Lien",
];
/// Liens of several bodies, and the entries that satisfy one of these.
const IN_PART: [(&str, &str); 6] = [
    ("City & School Tax Lien", "Satisfied as to School ONLY"),
    ("Borough & School Tax Lien", "Satisfied as to Borough ONLY"),
    ("Township & School Tax Lien", "Satisfied as to Township ONLY"),
    ("School & Library Tax Lien", "Satisfied as to Library ONLY"),
    ("City & School Tax Lien", "Satisfied as to City ONLY"),
    ("Allegheny County Tax Lien", "Partial Exoneration - Tax Lien"),
];

fn lien(docket: &str, pin: &str, block_lot: &str, year: i64, amount: f64) -> Value {
    json!({
        "pin": pin, "block_lot": block_lot, "filing_date": format!("{}-05-01", year + 1), "tax_year": format!("{year}.0"), "dtd": docket,
        "lien_description": BODIES[0], "municipality": "4th Ward - PITTSBURGH", "ward": "104", "last_docket_entry": "Tax Lien", "amount": amount,
        "assignee": null, "satisfied": false,
    })
}

fn with(mut row: Value, changes: &[(&str, Value)]) -> Value {
    for (name, value) in changes {
        row[*name] = value.clone();
    }
    row
}

/// The rows of the day.
pub(super) fn rows(world: &World) -> Vec<Value> {
    let (day, year) = (day(world), i64::from(world.first_today.year()));
    let mut rows = Vec::new();
    for number in 0..PARCELS {
        let (pin, block_lot) = (format!("0028F{:05}000000", 100 + number), format!("28F{}", 100 + number));
        for count in 0..=number % 3 {
            let (tax_year, docket) = (year - 2 - number % 9, format!("DTD-{:02}-{:06}", (year - 1 - number % 9) % 100, 1_000 + number));
            let body = BODIES[usize::try_from(number + count).unwrap_or(0) % BODIES.len()];
            let amount = 100.0 + (number * 37 + count * 11) as f64 + 0.25;
            // A fifth of the liens is paid, and two more on a later day.
            let is_paid = number % 5 == 4 || (day > 0 && number < 2);
            let entry = if is_paid { "Satisfaction" } else { "Tax Lien" };
            let flag = if number % 2 == 0 { json!(is_paid) } else { json!(if is_paid { "t" } else { "f" }) };
            let assignee = if number % 7 == 0 { json!("MTAG SERVICES LLC") } else { Value::Null };
            let changes =
                [("lien_description", json!(body)), ("last_docket_entry", json!(entry)), ("satisfied", flag), ("assignee", assignee)];
            rows.push(with(lien(&docket, &pin, &block_lot, tax_year, amount), &changes));
        }
    }
    rows.extend(special(day, year));
    rows
}

/// The liens of one parcel with each peculiarity, and those of block-lots.
fn special(day: i32, year: i64) -> Vec<Value> {
    const PIN: &str = "0028F00194000000";
    const BLOCK_LOT: &str = "28F194";
    let mut rows: Vec<Value> = IN_PART
        .iter()
        .enumerate()
        .map(|(at, (description, entry))| {
            let docket = format!("DTD-19-{:06}", 9_000 + at);
            let changes = [("lien_description", json!(description)), ("last_docket_entry", json!(entry))];
            with(lien(&docket, PIN, BLOCK_LOT, year - 8, 1_200.0), &changes)
        })
        .collect();
    // On a later day an entry hides the satisfaction.
    let (entry, is_satisfied) = if day == 0 { ("Satisfaction", json!("t")) } else { ("Mail Returned", json!("f")) };
    let changes = [("lien_description", json!(BODIES[1])), ("last_docket_entry", json!(entry)), ("satisfied", is_satisfied)];
    rows.push(with(lien("DTD-97-004687", PIN, BLOCK_LOT, 1_996, 800.0), &changes));
    rows.push(with(lien("DTD-12-000777", PIN, BLOCK_LOT, 2_011, 90.0), &[("last_docket_entry", json!("Tax Lien Strike-off"))]));
    rows.push(with(lien("DTD-03-000123", PIN, BLOCK_LOT, 2_002, 640.5), &[("filing_date", json!("2003-05-01"))]));
    rows.push(with(lien("DTD-21-000500", PIN, BLOCK_LOT, year - 6, 333.33), &[("assignee", json!("EXAMPLE PAT Q"))]));
    rows.push(with(lien("DTD-22-000501", PIN, BLOCK_LOT, year - 5, 0.0), &[("filing_date", Value::Null), ("amount", Value::Null)]));
    for (block_lot, pin) in [("232L374 2", "0232L00374000200"), ("233J211 2", "0233J00211000002"), ("232L374 02", "0232L00374000200")] {
        rows.push(lien("DTD-03-037477", pin, block_lot, year - 7, 55.0));
    }
    rows.push(with(lien("DTD-08-000042", "", "296- N-1-1", year - 9, 21.0), &[("pin", Value::Null)]));
    rows.push(with(lien("DTD-08-000043", "", "28F195 7", year - 9, 22.0), &[("pin", json!(" "))]));
    rows
}
