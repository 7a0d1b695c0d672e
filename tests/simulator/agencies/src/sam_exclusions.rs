//! The exclusions of SAM.gov: a zip archive with one CSV file, for a key.
//!
//! The file of a day follows from the day: a cast of parties to which something happens on certain days, and others with invented names. The peculiarities
//! of the real file: comments that break the quoting of their row, rows that occur twice, cross-references in another order each day, blank active
//! dates and classifications, two headers, an agency that changes its code, decimal points in numbers, faulty letters, and one day with half a file.

mod rows;

use std::io::{Cursor, Write};

use simulated_world::answer::Answer;
use simulated_world::query::Query;
use simulated_world::world::World;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

pub use self::rows::{EXCLUSIONS as CAST, SimulatedExclusion};

/// The path of the extracts.
pub const PATH: &str = "/data-services/v1/extracts";
/// Days after the first day on which the file has half of the rows.
const HALF_DAY: i64 = 5;
/// The columns of 2023. In 2020 three of them had other names.
const COLUMNS: [&str; 31] = [
    "Classification",
    "Name",
    "Prefix",
    "First",
    "Middle",
    "Last",
    "Suffix",
    "Address 1",
    "Address 2",
    "Address 3",
    "Address 4",
    "City",
    "State / Province",
    "Country",
    "Zip Code",
    "Open Data Flag",
    "Blank (Deprecated)",
    "Unique Entity ID",
    "Exclusion Program",
    "Excluding Agency",
    "CT Code",
    "Exclusion Type",
    "Additional Comments",
    "Active Date",
    "Termination Date",
    "Record Status",
    "Cross-Reference",
    "SAM Number",
    "CAGE",
    "NPI",
    "Creation_Date",
];
const NAMES_OF_2020: [(&str, &str); 3] = [
    ("Open Data Flag", "D&B Open Data Flag"),
    ("Blank (Deprecated)", "Unique Entity Identifier (DUNS)"),
    ("Unique Entity ID", "Unique Entity Identifier (SAM)"),
];

/// Answers a request. `key` is the key that opens the extracts.
#[must_use]
pub fn answer(world: &World, query: &Query<'_>, key: &str) -> Answer {
    if query.get("api_key") != Some(key) {
        return Answer { status: 403, ..Answer::json(b"{\"error\":{\"code\":\"API_KEY_INVALID\"}}".to_vec()) };
    }
    if query.get("fileType") != Some("EXCLUSION") {
        return Answer { status: 400, ..Answer::json(b"{\"errorCode\":\"INVALID_FILE_TYPE\"}".to_vec()) };
    }
    archive(&file(world))
}

/// The file of the day.
fn file(world: &World) -> String {
    let offset = i64::from((world.today - world.first_today).get_days());
    let mut rows = rows::all(world, offset);
    if offset == HALF_DAY && world.has_bad_files {
        rows.truncate(rows.len() / 2);
    }
    let is_of_2020 = offset % 2 == 1;
    let names = COLUMNS.map(|name| {
        let old = NAMES_OF_2020.iter().find(|(new, _)| is_of_2020 && *new == name);
        format!("\"{}\"", old.map_or(name, |(_, old)| old))
    });
    let mut out = names.join(",");
    for row in rows {
        out.push_str("\r\n");
        out.push_str(&row);
    }
    out.push_str("\r\n");
    out
}

fn archive(file: &str) -> Answer {
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated).compression_level(Some(1));
    let zipped = || -> zip::result::ZipResult<Vec<u8>> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        zip.start_file("SAM_Exclusions_Public_Extract_V2.CSV", options)?;
        zip.write_all(file.as_bytes())?;
        Ok(zip.finish()?.into_inner())
    };
    match zipped() {
        Ok(body) => Answer { status: 200, content_type: Some("application/zip"), body, ..Answer::default() },
        Err(error) => {
            tracing::error!(%error, "the simulated archive could not be written");
            Answer::html(500, "Internal Server Error")
        }
    }
}
