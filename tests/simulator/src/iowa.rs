//! The register of Iowa: an address that redirects to a signed one, and there an archive with one file, a line of JSON for each active entity.
//!
//! The peculiarities of the real one: the file is stored and not packed, in zip64, and its length and checksum stand after it, so that the last row without
//! an end of line is followed by other bytes; an answer names no length and no version; rows of all years come in no order; numbers are numbers or texts;
//! fields without a value are left out; the same building is written in two ways in one row; and one agent has most of the rows. The file is published
//! on the 15th of a month and has the active entities until then: some end after a few weeks, and the next file lacks them.

use std::io::{Cursor, Write};

use jiff::ToSpan;
use jiff::civil::Date;
use serde_json::{Value, json};
use simulated_world::answer::Answer;
use simulated_world::days::Daily;
use simulated_world::random::Random;
use simulated_world::words::CITIES;
use simulated_world::world::{World, brand, day_before};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const ROWS: &str = "/api/v1/datasets/554/rows.json";
const SIGNED: &str = "/simulated-signed-rows/active-iowa-business-entities.zip";
const ENTITIES: Daily = Daily { kind: 405, a_day: 4 };
/// One of so many entities ends after some days.
const ENDS_ONCE_IN: u64 = 12;
/// The days after which these entities end.
const ENDS_AFTER_DAYS: i32 = 25;
/// The day of a month on which the file is published.
const PUBLISHED_ON: i8 = 15;

/// An endpoint of the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Rows,
    Signed,
}

impl Route {
    pub(crate) fn at(path: &str) -> Option<Self> {
        match path {
            ROWS => Some(Self::Rows),
            SIGNED => Some(Self::Signed),
            _ => None,
        }
    }
}

pub(crate) fn answer(world: &World, route: Route, key: Option<&str>) -> Answer {
    match route {
        // The register needs no key. One that is sent is another upstream's.
        _ if key.is_some() => Answer { status: 400, ..Answer::json(b"{\"message\":\"unexpected header\"}".to_vec()) },
        Route::Rows => Answer { status: 303, location: Some(format!("{SIGNED}?expires=21600")), ..Answer::default() },
        Route::Signed => archive(world),
    }
}

/// The day up to which the file has entities.
fn published(world: &World) -> Date {
    let day = |month: Date| month.first_of_month().saturating_add((i64::from(PUBLISHED_ON) - 1).days());
    let this_month = day(world.today);
    if this_month <= world.today { this_month } else { day(world.today.saturating_sub(1.month())) }
}

fn rows(world: &World) -> Vec<Value> {
    let last = published(world);
    let mut rows: Vec<Value> = ENTITIES
        .all(world)
        .filter(|place| place.day <= last)
        .map(|place| (place, ENTITIES.random(world, place)))
        .filter(|(place, random)| !random.once_in(5, ENDS_ONCE_IN) || (last - place.day).get_days() < ENDS_AFTER_DAYS)
        .map(|(place, random)| entity(random, place.number(), place.day))
        .collect();
    rows.extend(cast(last));
    // The rows come in no order of days.
    let middle = rows.len() / 2;
    rows.rotate_left(middle);
    rows
}

fn entity(random: Random, number: u64, day: Date) -> Value {
    let (city, state, zip) = *random.choose(1, CITIES);
    let kind = random.pick(
        2,
        &[
            "DOMESTIC LIMITED LIABILITY COMPANY",
            "DOMESTIC LIMITED LIABILITY COMPANY",
            "DOMESTIC PROFIT",
            "DOMESTIC NON PROFIT",
            "FOREIGN PROFIT",
        ],
    );
    let (city, state, zip) = if kind.starts_with("FOREIGN") { (city, state, zip) } else { ("Des Moines", "IA", "50309") };
    let street = 100 + random.below(3, 9_000);
    json!({
        "corp_number": 700_000 + number, "legal_name": format!("{} LLC", brand(random, 4)).to_uppercase(), "corporation_type": kind,
        "effective_date": day.to_string(), "registered_agent": "EXAMPLE AGENTS INC", "ra_address_1": "1 AGENT PLAZA", "ra_city": "DES MOINES",
        "ra_state": "IA", "ra_zip": "50309", "ra_location": "POINT(-93.62 41.58)", "home_office": "PAT EXAMPLE",
        "ho_address_1": format!("{street} LOCUST ST"), "ho_city": city.to_uppercase(), "ho_state": state, "ho_zip": zip,
    })
}

/// The entities that have a part to play, counted from the day up to which the file has entities.
fn cast(last: Date) -> Vec<Value> {
    let day = |before: i64| day_before(last, before).to_string();
    vec![
        json!({
            "corp_number": 690_001, "legal_name": "HAWKEYE TAVERN LLC", "corporation_type": "DOMESTIC LIMITED LIABILITY COMPANY", "effective_date": day(1),
            "registered_agent": "EXAMPLE AGENTS INC", "ra_address_1": "312 CARTER ST", "ra_location": "POINT(-95.36 40.76)",
            "ho_address_1": "312 EAST CARTER STREET", "ho_city": "DES MOINES", "ho_state": "IA", "ho_zip": "50309",
        }),
        json!({"corp_number": "690002", "legal_name": "FAR PLAINS INC", "corporation_type": "FOREIGN PROFIT", "effective_date": day(2)}),
        json!({"corp_number": 690_003, "legal_name": "CEDAR CHOIR", "corporation_type": "DOMESTIC NON PROFIT", "effective_date": day(3)}),
        json!({"corp_number": 690_004, "legal_name": "OLD MILL COMPANY", "corporation_type": "DOMESTIC PROFIT", "effective_date": "1887-05-15"}),
    ]
}

fn archive(world: &World) -> Answer {
    let lines: Vec<String> = rows(world).iter().map(Value::to_string).collect();
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored).large_file(true);
    let zipped = || -> zip::result::ZipResult<Vec<u8>> {
        let mut zip = ZipWriter::new_stream(Cursor::new(Vec::new()));
        zip.start_file("Active_Iowa_Business_Entities.json", options)?;
        zip.write_all(lines.join("\n").as_bytes())?;
        Ok(zip.finish()?.into_inner().into_inner())
    };
    match zipped() {
        Ok(body) => Answer { status: 200, content_type: Some("application/zip"), body, ..Answer::default() },
        Err(error) => {
            tracing::error!(%error, "the simulated archive could not be written");
            Answer::html(500, "Internal Server Error")
        }
    }
}
