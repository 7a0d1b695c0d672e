//! Permits for construction on the parcels of [`crate::cook`]: those of the assessor, one row for each parcel, and those of the city, one row for each permit;
//! both on Socrata ([`crate::soda`]).
//!
//! Buildings of 32 parcels were finished, so that their value rises this year; on others work continues, was never finished, or is closed. On a later day the city
//! completes one permit and issues another. The peculiarities of the datasets are there: numbers of parcels with 10 digits, with dashes, joined by `|`, with a
//! lost zero, or absent; a permit on many parcels, one without a number, one that is issued in the year 2210, and costs of 0. Columns with applicants and
//! contacts exist: a client that requests them gets them.

use jiff::ToSpan;
use jiff::civil::Date;
use serde_json::{Value, json};
use simulated_world::answer::Answer;
use simulated_world::faults::Plan;
use simulated_world::query::Query;
use simulated_world::world::World;

use crate::cook::REBUILT;
use crate::soda::{self, Dataset};

/// A dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Register {
    Assessor,
    City,
}

impl Register {
    pub(crate) fn at(path: &str) -> Option<Self> {
        match path {
            "/resource/6yjf-dfxs.json" => Some(Self::Assessor),
            "/resource/ydr8-5enu.json" => Some(Self::City),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        if self == Self::Assessor { "cook.permits" } else { "chicago.permits" }
    }

    pub(crate) fn date_field(self) -> &'static str {
        if self == Self::Assessor { "date_issued" } else { "issue_date" }
    }

    fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Assessor => &[
                "row_id",
                "pin",
                "year",
                "permit_number",
                "local_permit_number",
                "date_issued",
                "estimated_date_of_completion",
                "status",
                "assessable",
                "amount",
                "municipality",
                "township",
                "property_address",
                "mailing_address",
                "applicant_name",
                "job_code_primary",
                "job_code_secondary",
                "work_description",
                "improvement_code_1",
                "improvement_code_2",
                "improvement_code_3",
                "improvement_code_4",
            ],
            Self::City => &[
                "id",
                "permit_",
                "permit_status",
                "permit_milestone",
                "permit_type",
                "issue_date",
                "street_number",
                "street_direction",
                "street_name",
                "work_description",
                "reported_cost",
                "pin_list",
                "contact_1_name",
                "contact_1_city",
            ],
        }
    }
}

/// The PIN of a parcel of the neighbourhood with most sold parcels.
fn pin(number: u64) -> String {
    format!("16012160{number:02}0000")
}

fn time(day: Date) -> String {
    format!("{day}T00:00:00.000")
}

/// A row of the assessor. A permit of the city has its number there.
fn assessed(pin: &str, number: &str, local: &str, issued: Date, amount: &str, job: &str, change: &[(&str, Value)]) -> Value {
    let mut row = json!({
        "row_id": format!("{pin}{number}{local}{issued}"), "pin": pin, "year": issued.year().to_string(), "permit_number": number, "local_permit_number": local,
        "date_issued": time(issued), "status": "OPEN", "assessable": "Assessable", "amount": amount, "municipality": "CITY OF CHICAGO",
        "township": "West Chicago", "property_address": "100 N CARTER ST", "mailing_address": "1 PRIVATE ROAD", "applicant_name": "PAT EXAMPLE",
        "job_code_primary": "COMMERCIAL PERMIT", "job_code_secondary": job, "improvement_code_1": job,
        "work_description": "AS PER PLANS, QUESTIONS TO PAT@EXAMPLE.COM OR (312) 555-0100",
    });
    if let Some(fields) = row.as_object_mut() {
        fields.extend(change.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        // A field without value is left out.
        fields.retain(|_, value| *value != "" && !value.is_null());
    }
    row
}

fn of_assessor(world: &World) -> Vec<Value> {
    let (first, year) = (world.first_today, world.first_today.year());
    let new = "NEW BUILDING";
    let ago = |days: i64| first.saturating_sub(days.days());
    let mut rows = Vec::new();
    // Buildings of last year that are finished: their value rises in the assessment of this year.
    for number in 0..REBUILT {
        let month = 3 + i8::try_from(number % 3).unwrap_or_default();
        let issued = Date::new(year - 1, month, 5).unwrap_or(first);
        let status = if number % 2 == 0 { "CLOSED" } else { "OPEN" };
        rows.push(assessed(&pin(number), &format!("N{number}"), "", issued, "400000", new, &[("status", json!(status))]));
    }
    // Work that continues.
    for (at, number) in (40_u64..52).enumerate() {
        let days = 20 + 25 * i64::try_from(at).unwrap_or_default();
        let local = format!("1010000{number}");
        rows.push(assessed(&pin(number), &format!("W{number}"), &local, ago(days), &format!("{}.0", 50_000 + 150_000 * at), new, &[]));
    }
    rows.extend([
        // One permit on three parcels, one row each.
        assessed(&pin(52), "M1", "", ago(100), "3000000", "ADDITIONS", &[]),
        assessed("16-01-216-053-0000", "M1", "", ago(100), "3000000", "ADDITIONS", &[]),
        assessed("1601216054", "M1", "", ago(100), "3000000", "ADDITIONS", &[]),
        assessed(
            "16-01-216-055-0000 | 16012160550000 | 1601216056",
            "M2",
            "",
            ago(110),
            "800000",
            new,
            &[("status", json!("MANAGER REVIEW"))],
        ),
        // Work that is not in the window: minor, not assessable, closed.
        assessed(&pin(57), "X1", "", ago(30), "20000", "FENCING (and Gates)", &[("improvement_code_1", json!("133"))]),
        assessed(&pin(57), "X2", "", ago(30), "900000", new, &[("assessable", json!("Non-Assessable"))]),
        assessed(&pin(57), "X3", "", ago(40), "900000", new, &[("status", json!("CLOSED"))]),
        // Work that was issued long ago and is not closed.
        assessed(&pin(58), "S1", "", ago(700), "2500000", new, &[("status", json!("RECHECK"))]),
        assessed(&pin(59), "S2", "", ago(1_000), "600000", "ADDITIONS", &[("status", json!("LEGACY"))]),
        assessed(&pin(60), "S3", "", ago(1_200), "260000", "OTHER - MAJOR NEW CONSTRUCTION", &[]),
        assessed(&pin(60), "S4", "", ago(1_200), "9000", new, &[]),
        assessed(&pin(60), "S5", "", ago(1_200), "5000000", new, &[("status", json!("CLOSED"))]),
        // Rows with fields that are absent.
        assessed(&pin(61), "", "", ago(60), "700000", new, &[("status", json!("PENDING"))]),
        assessed(
            "1012160010000",
            "Z1",
            "",
            ago(70),
            "300000",
            new,
            &[("municipality", json!("BARRINGTON")), ("township", json!("Barrington"))],
        ),
        assessed("", "P1", "", ago(80), "450000", new, &[]),
        assessed(&pin(61), "F1", "", Date::constant(2210, 1, 7), "450000", new, &[]),
        assessed(&pin(61), "A1", "", ago(90), "", new, &[]),
    ]);
    rows
}

/// A row of the city.
fn issued(number: u64, day: Date, status: &str, kind: &str, cost: &str, pins: &str) -> Value {
    let mut row = json!({
        "id": (3_000_000 + number).to_string(), "permit_": (101_000_000 + number).to_string(), "permit_status": status,
        "permit_milestone": if status == "COMPLETE" { "PERMIT COMPLETE" } else { "PERMIT ISSUED" }, "permit_type": kind, "issue_date": time(day),
        "street_number": (100 + number).to_string(), "street_direction": "N", "street_name": "CARTER ST", "reported_cost": cost, "pin_list": pins,
        "work_description": "ERECT BUILDING AS PER PLANS. CONTACT 312-555-0100", "contact_1_name": "PAT EXAMPLE", "contact_1_city": "CHICAGO",
    });
    if let Some(fields) = row.as_object_mut() {
        fields.retain(|_, value| *value != "");
    }
    row
}

fn of_city(world: &World) -> Vec<Value> {
    const NEW: &str = "PERMIT - NEW CONSTRUCTION";
    const OTHER: &str = "PERMIT - RENOVATION/ALTERATION";
    let first = world.first_today;
    let ago = |days: i64| first.saturating_sub(days.days());
    let is_later = world.today > first;
    let status = |is_done: bool| if is_done { "COMPLETE" } else { "ACTIVE" };
    let mut rows = vec![
        // The assessor has this one, too.
        issued(40, ago(20), status(false), NEW, "50000", "16-01-216-040-0000"),
        issued(41, ago(45), status(is_later), NEW, "200000", "1601216041"),
        issued(1, ago(15), status(false), NEW, "1800000", "1601216062 | 16-01-216-063-0000 | 1601216062"),
        issued(2, ago(25), status(false), OTHER, "75000", "16012160640000"),
        issued(3, ago(35), status(false), NEW, "0", "16012160650000"),
        issued(4, ago(50), status(false), NEW, "640000", ""),
        issued(5, ago(300), "PHASED PERMITTING", NEW, "99999999999", "16-01-216-066-0000"),
        issued(6, ago(1_100), status(false), NEW, "4200000", "16-01-216-067-0000"),
        issued(7, ago(1_100), "CANCELLED", NEW, "4200000", "16-01-216-068-0000"),
    ];
    if is_later || !world.rounds.is_empty() {
        // Each round raises its cost.
        let cost = (975_000 + 1_000 * world.rounds.len()).to_string();
        rows.push(issued(8, world.today, status(false), NEW, &cost, "16-01-216-069-0000"));
    }
    rows
}

/// Answers a query of a dataset.
pub(crate) fn answer(world: &World, register: Register, query: &Query, token: Option<&str>, plan: &Plan) -> Answer {
    let rows = if register == Register::Assessor { of_assessor(world) } else { of_city(world) };
    soda::answer(Dataset { columns: register.columns(), numbers: &[], rows }, query, token, plan)
}
