//! The trademark register: a list of files per product, archives of days and of a yearly set, and the signed addresses to which a file's path
//! redirects. A request needs a key, and the signed address refuses one that carries it.
//!
//! What a file holds follows from its day: a cast of marks to which something happens on certain days, and marks with invented names of which some
//! are filed and some change every day. Four files have a bad first day: one is not listed for two days, one is an HTML page, one declares
//! entities that expand, and one is cut off. A round adds a part to the yearly set, in which one mark has another status.

mod cast;
mod records;

use std::io::{Cursor, Write};

use jiff::ToSpan;
use jiff::civil::Date;
use serde_json::{Value, json};
use simulated_world::answer::Answer;
use simulated_world::world::{World, compact};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

pub use self::cast::{CAST, CastMark};
use self::records::DAYS_BEFORE;

const PRODUCTS: &str = "/api/v1/datasets/products/";
const FILES: &str = "/api/v1/datasets/products/files/";
const SIGNED: &str = "/simulated-signed-files/";
const DAILY: &str = "TRTDXFAP";
const ANNUAL: &str = "TRTYRAP";
/// How many parts the yearly set has before the first round.
const PARTS: u64 = 2;
/// How many parts rounds add to a set. The names of parts have at most three digits, so a later set begins after them.
const ROUNDS_A_SET: usize = 900;
/// Days after the first day whose file has a bad first day.
const MISSING_DAY: i64 = 2;
const HTML_DAY: i64 = 6;
const BOMB_DAY: i64 = 9;
const CUT_DAY: i64 = 12;

/// An endpoint of the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The list of the files of a set.
    List {
        /// Whether it is of the daily set, not of the yearly one.
        is_daily: bool,
    },
    /// A file, which leads to its address.
    File {
        /// Whether it is of the daily set, not of the yearly one.
        is_daily: bool,
    },
    /// The signed address of a file.
    Signed {
        /// Whether it is of the daily set, not of the yearly one.
        is_daily: bool,
    },
}

impl Route {
    /// The endpoint of a path; `None` for a path of another upstream.
    #[must_use]
    pub fn at(path: &str) -> Option<Self> {
        let is_daily = |rest: &str| match rest.split('/').next() {
            Some(DAILY) => Some(true),
            Some(ANNUAL) => Some(false),
            _ => None,
        };
        if let Some(rest) = path.strip_prefix(FILES) {
            return Some(Self::File { is_daily: is_daily(rest)? });
        }
        if let Some(rest) = path.strip_prefix(SIGNED) {
            return Some(Self::Signed { is_daily: is_daily(rest)? });
        }
        let rest = path.strip_prefix(PRODUCTS).filter(|rest| !rest.contains('/'))?;
        Some(Self::List { is_daily: is_daily(rest)? })
    }

    /// The name of the stream that reads it.
    #[must_use]
    pub fn name(self) -> &'static str {
        let (Self::List { is_daily } | Self::File { is_daily } | Self::Signed { is_daily }) = self;
        if is_daily { "uspto_trademarks.daily" } else { "uspto_trademarks.annual" }
    }
}

/// Answers a request.
#[must_use]
pub fn answer(world: &World, route: Route, path: &str, key: Option<&str>) -> Answer {
    let is_signed = matches!(route, Route::Signed { .. });
    if is_signed && key.is_some() {
        return Answer { status: 400, ..Answer::json(b"{\"message\":\"unexpected header\"}".to_vec()) };
    }
    if !is_signed && key != Some(simulated_world::KEY) {
        return Answer { status: 403, ..Answer::json(b"{\"message\":\"Forbidden\"}".to_vec()) };
    }
    let name = path.rsplit('/').next().unwrap_or_default();
    match route {
        Route::List { is_daily: true } => list(DAILY, days(world).map(|day| (daily_name(day), is_bad(world, day))).collect()),
        Route::List { is_daily: false } => list(ANNUAL, parts(world).map(|part| (annual_name(world, part), false)).collect()),
        Route::File { is_daily } => {
            let product = if is_daily { DAILY } else { ANNUAL };
            Answer { status: 302, location: Some(format!("{SIGNED}{product}/{name}?expires=5")), ..Answer::default() }
        }
        Route::Signed { is_daily: true } => match days(world).find(|day| daily_name(*day) == name) {
            Some(day) => daily(world, day, name),
            None => Answer::html(404, "Not Found"),
        },
        Route::Signed { is_daily: false } => match parts(world).find(|part| annual_name(world, *part) == name) {
            Some(part) if part > PARTS => {
                let records: Vec<_> =
                    cast::of_round(world, round_of(world, part)).map(|file| ("TX", records::text(&file))).into_iter().collect();
                archive(name, &document(&records, ""))
            }
            Some(part) => {
                let mut records = records::of_part(world, part, PARTS);
                if part == 1 {
                    records.extend(cast::of_set(records::cut(world)).iter().map(|file| ("TX", records::text(file))));
                }
                archive(name, &document(&records, ""))
            }
            None => Answer::html(404, "Not Found"),
        },
    }
}

/// The days that have a file: up to yesterday, without the one that is missing.
fn days(world: &World) -> impl Iterator<Item = Date> {
    let (first, today) = (world.first_today, world.today);
    let missing = first.saturating_add(MISSING_DAY.days());
    let all = (-DAYS_BEFORE..).map(move |offset| first.saturating_add(offset.days())).take_while(move |day| *day < today);
    all.filter(move |day| *day != missing || today > missing.saturating_add(2.days()))
}

/// Whether the file of a day has its bad first day today.
fn is_bad(world: &World, day: Date) -> bool {
    let offset = (day - world.first_today).get_days();
    let is_first = day.tomorrow().is_ok_and(|next| next == world.today);
    world.has_bad_files && is_first && [HTML_DAY, BOMB_DAY, CUT_DAY].contains(&i64::from(offset))
}

fn daily_name(day: Date) -> String {
    format!("apc{}.zip", &compact(day)[2..])
}

/// The number of the yearly set: how many sets rounds have filled before it.
fn set(world: &World) -> usize {
    world.rounds.len().saturating_sub(1) / ROUNDS_A_SET
}

/// The parts of the yearly set, counted from 1: those of every set, and one for each of its rounds.
fn parts(world: &World) -> std::ops::RangeInclusive<u64> {
    1..=PARTS + (world.rounds.len() - set(world) * ROUNDS_A_SET) as u64
}

/// The number of the round, counted from 0, that added a part.
fn round_of(world: &World, part: u64) -> usize {
    set(world) * ROUNDS_A_SET + usize::try_from(part.saturating_sub(PARTS + 1)).unwrap_or_default()
}

fn annual_name(world: &World, part: u64) -> String {
    let last = records::cut(world).saturating_add(i64::try_from(set(world)).unwrap_or_default().days());
    format!("apc18840407-{}-{part:02}.zip", compact(last))
}

fn list(product: &str, files: Vec<(String, bool)>) -> Answer {
    let entry = |(name, is_bad): &(String, bool)| {
        json!({
            "fileName": name, "fileSize": 1_000 + name.len(), "fileDataFromDate": "", "fileDataToDate": "", "fileTypeText": "Data",
            "fileDownloadURI": format!("https://api.uspto.gov{FILES}{product}/{name}"), "fileReleaseDate": "",
            "fileLastModifiedDateTime": if *is_bad { "04:15:00" } else { "09:40:00" },
        })
    };
    let mut bag: Vec<Value> = files.iter().map(entry).collect();
    // A file is listed twice, and a document stands between the files.
    bag.extend(files.last().map(entry));
    bag.insert(bag.len() / 2, json!({"fileName": "TM-Applications-Documentation.pdf", "fileSize": 1, "fileTypeText": "Documentation"}));
    let body = json!({"count": 1, "bulkDataProductBag": [{
        "productIdentifier": product, "productFileTotalQuantity": bag.len(), "productFileBag": {"count": bag.len(), "fileDataBag": bag},
    }]});
    Answer::json(body.to_string().into_bytes())
}

fn daily(world: &World, day: Date, name: &str) -> Answer {
    let offset = i64::from((day - world.first_today).get_days());
    let mut records = records::of_day(world, day, offset);
    records.extend(cast::of_day(day, offset).iter().map(|(key, file)| (*key, records::text(file))));
    match offset {
        HTML_DAY if is_bad(world, day) => Answer::html(200, "Open Data Portal"),
        BOMB_DAY if is_bad(world, day) => {
            let bomb =
                "<!ENTITY a \"lol\">\n<!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\">\n<!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;\">\n";
            archive(name, &document(&records, bomb))
        }
        CUT_DAY if is_bad(world, day) => {
            let mut answer = archive(name, &document(&records, ""));
            answer.body.truncate(answer.body.len() * 2 / 3);
            answer
        }
        _ => archive(name, &document(&records, "")),
    }
}

/// A document of records, each with its action key. Records of a key stand together, and the first key occurs twice.
fn document(records: &[(&'static str, String)], declarations: &str) -> String {
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<!DOCTYPE trademark-applications-daily [\n<!-- A comment with <!ENTITY in it. -->\n{declarations}\
         <!ELEMENT trademark-applications-daily (version, creation-datetime, application-information)>\n<!ELEMENT text (#PCDATA)>\n]>\n\
         <trademark-applications-daily><version><version-no>2.0</version-no><version-date>20041108</version-date></version>\
         <creation-datetime>202601010000</creation-datetime><application-information>"
    );
    if records.is_empty() {
        out.push_str("<data-available-code>N</data-available-code>");
    } else {
        out.push_str("<file-segments><file-segment>TRMK</file-segment>");
        let halves = records.split_at(records.len() / 2);
        for half in [halves.0, halves.1] {
            for key in ["IB", "NA", "TX"] {
                out.push_str(&format!("<action-keys><action-key>{key}</action-key>"));
                half.iter().filter(|(own, _)| *own == key).for_each(|(_, record)| out.push_str(record));
                out.push_str("</action-keys>\n");
            }
        }
        out.push_str("</file-segments>");
    }
    out.push_str("</application-information></trademark-applications-daily>\n");
    out
}

fn archive(name: &str, document: &str) -> Answer {
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated).compression_level(Some(1));
    let zipped = || -> zip::result::ZipResult<Vec<u8>> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        zip.start_file(name.replace(".zip", ".xml"), options)?;
        zip.write_all(document.as_bytes())?;
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
