//! The database file PTAXSIM of the county's assessor, of which the operator has a copy on this machine: which parcels have an exemption of a residence.
//!
//! The last tax year of its table `pin` is read, since rule X4 asks for no other, in pages in the order of the table's key: year and PIN. Each page opens
//! the file again, read-only, so a run is interrupted and continued between any two of them. A file with another table, key or type is refused with the
//! reason, and a row with another type or a longer text is rejected.
//!
//! Left out on purpose: which exemptions a parcel has, and their amounts. They say who lives there is a senior, a veteran or disabled. The query answers only
//! whether there is one, so nothing else leaves the file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, ErrorCode, OpenFlags};
use schemas::facts::FactData;
use schemas::facts::parcels::{self, ParcelFact};
use schemas::position::UpstreamCursor;
use serde::{Deserialize, Serialize};
use texts::cook;

use super::streams::PTAXSIM;
use crate::{Observation, Page, Reject, Request, Settings, UpstreamError, Window, drift, json};

/// The setting with the path of the file.
const SETTING: &str = "ptaxsim_path";
/// The first year that is a tax year.
const YEAR_MIN: i64 = 1_990;
/// The rows of a page.
const PAGE_ROWS: usize = 5_000;
/// The longest PIN or class that is read, in bytes. A PIN with dashes has 18.
const TEXT_BYTES_MAX: usize = 20;
/// The largest value that SQLite loads from the file, in bytes.
const VALUE_BYTES_MAX: i32 = 100_000;
/// The columns of the exemptions of residences. An abatement (`exe_abate`) is none.
const EXEMPTIONS: [&str; 11] = [
    "exe_homeowner",
    "exe_senior",
    "exe_freeze",
    "exe_longtime_homeowner",
    "exe_disabled",
    "exe_vet_returning",
    "exe_vet_dis_lt50",
    "exe_vet_dis_50_69",
    "exe_vet_dis_ge70",
    "exe_vet_dis_100",
    "exe_wwii",
];
/// Those of them that files before the tax year 2024 do not have.
const NEW_EXEMPTIONS: [&str; 2] = ["exe_vet_dis_100", "exe_wwii"];

/// What only upstream `cook` has in its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The path of a copy of the database file PTAXSIM on this machine.
    pub ptaxsim_path: PathBuf,
}

/// The position of a sync run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Cursor {
    /// The current year, after which no tax year can be.
    current: i64,
    /// The tax year that is read; 0 on the first page.
    year: i64,
    /// The PIN after which the page begins; empty for the first page.
    after: String,
    /// Whether no file is configured, so that there is nothing to read.
    is_without_file: bool,
}

/// The PIN, the class and whether there is an exemption, as they are read from a row.
type Values = (Option<String>, Option<String>, Option<bool>);

/// A row of the table. `None` is a value that is absent, of another type or too long.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    year: i64,
    pin: String,
    class: Option<String>,
    is_exempt: Option<bool>,
}

/// The path of the file, if one is configured.
fn path(settings: &Settings) -> Option<&PathBuf> {
    settings.own.get::<Options>().map(|options| &options.ptaxsim_path)
}

pub(super) fn start(window: &Window, settings: &Settings) -> UpstreamCursor {
    json::write_cursor(Cursor { current: i64::from(window.to.year()), is_without_file: path(settings).is_none(), ..Cursor::default() })
}

/// Whether there is a file to read.
pub(super) fn has_file(cursor: &UpstreamCursor) -> bool {
    json::read_cursor::<Cursor>(PTAXSIM, cursor).map_or(true, |cursor| !cursor.is_without_file)
}

pub(super) fn request(cursor: &UpstreamCursor, settings: &Settings) -> Result<Request, UpstreamError> {
    json::read_cursor::<Cursor>(PTAXSIM, cursor)?;
    let path = path(settings).cloned().ok_or_else(|| stop(SETTING, "is not set"))?;
    Ok(Request { local_file: Some(path), ..Request::default() })
}

/// Reads the page at a cursor.
pub(super) fn read(cursor: &UpstreamCursor, path: &Path) -> Result<Page, UpstreamError> {
    let cursor: Cursor = json::read_cursor(PTAXSIM, cursor)?;
    let table = Table::open(path)?;
    let year = if cursor.year == 0 { table.last_year(cursor.current)? } else { cursor.year };
    let rows = table.rows(year, &cursor.after)?;
    let lacking = |is_absent: fn(&Row) -> bool| rows.iter().filter(|row| is_absent(row)).count();
    drift::share(PTAXSIM, "class", lacking(|row| row.class.is_none()), rows.len())?;
    drift::share(PTAXSIM, "exe_homeowner", lacking(|row| row.is_exempt.is_none()), rows.len())?;
    let mut page = page_of(&rows);
    let last = rows.last().filter(|_| rows.len() == PAGE_ROWS);
    page.next = last.map(|last| json::write_cursor(Cursor { year, after: last.pin.clone(), ..cursor }));
    Ok(page)
}

/// Maps rows that were rejected before, as an array.
pub(super) fn map(body: &[u8]) -> Result<Page, UpstreamError> {
    let rows: Vec<Row> = serde_json::from_slice(body).map_err(|error| json::later(PTAXSIM, format!("not rows of the table: {error}")))?;
    Ok(page_of(&rows))
}

fn page_of(rows: &[Row]) -> Page {
    let mut page = Page::default();
    for row in rows {
        match observe(row) {
            Ok(observation) => page.observations.push(observation),
            Err(reason) => page.rejects.push(Reject {
                reference: format!("{} {}", row.pin, row.year),
                reason: reason.to_owned(),
                raw: serde_json::to_vec(row).unwrap_or_default(),
            }),
        }
    }
    page
}

/// The fact of a row, or why it is rejected.
fn observe(row: &Row) -> Result<Observation, &'static str> {
    let pin = cook::published_pin(&row.pin).ok_or("pin does not have 14 digits")?;
    let class = row.class.as_deref().map(cook::class).filter(|class| !class.is_empty());
    let fact = ParcelFact {
        stream: PTAXSIM.to_owned(),
        kind: parcels::EXEMPTION.to_owned(),
        year: row.year,
        class: class.ok_or("class is absent, too long or no text")?,
        is_homestead: row.is_exempt.ok_or("an exemption is absent or no number")?,
        pin,
        ..ParcelFact::default()
    };
    Ok(Observation::new(format!("{PTAXSIM}/{}{}", fact.pin, fact.year), FactData::Parcel(Box::new(fact))))
}

/// The table `pin` of an open file.
struct Table {
    file: Connection,
    /// The columns of exemptions that it has.
    exemptions: Vec<&'static str>,
}

impl Table {
    /// Opens a file, and checks that its table has the columns and the key that are read.
    fn open(path: &Path) -> Result<Self, UpstreamError> {
        if !path.is_file() {
            return Err(json::later(PTAXSIM, format!("there is no file at {SETTING}")));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let file = Connection::open_with_flags(path, flags).map_err(refused)?;
        restrict(&file).map_err(refused)?;
        let columns = columns(&file).map_err(refused)?;
        if columns.is_empty() {
            return Err(stop("pin", "the file has no such table"));
        }
        let exemptions: Vec<&str> = EXEMPTIONS.into_iter().filter(|name| columns.contains_key(*name)).collect();
        let required = EXEMPTIONS.into_iter().filter(|name| !NEW_EXEMPTIONS.contains(name));
        if let Some(missing) = ["year", "pin", "class"].into_iter().chain(required).find(|name| !columns.contains_key(*name)) {
            return Err(stop(missing, "the table pin has no such column"));
        }
        // Without this key a page would sort the whole table.
        if (columns["year"], columns["pin"]) != (1, 2) {
            return Err(stop("pin", "the primary key of the table is not year and pin"));
        }
        Ok(Self { file, exemptions })
    }

    /// The last tax year of the table.
    fn last_year(&self, current: i64) -> Result<i64, UpstreamError> {
        let read = self.file.query_row("SELECT max(year) FROM pin", (), |row| {
            Ok(match row.get_ref(0)? {
                ValueRef::Null => Err(stop("pin", "the table has no rows")),
                ValueRef::Integer(year) if (YEAR_MIN..=current).contains(&year) => Ok(year),
                ValueRef::Integer(year) => Err(stop("year", format!("{year} is no tax year"))),
                _ => Err(stop("year", "is no whole number")),
            })
        });
        read.map_err(refused)?
    }

    /// The rows of a page.
    fn rows(&self, year: i64, after: &str) -> Result<Vec<Row>, UpstreamError> {
        // Only the length of a longer text is read, not the text.
        let text = |name: &str| format!("CASE WHEN typeof({name}) = 'text' AND octet_length({name}) <= {TEXT_BYTES_MAX} THEN {name} END");
        let each = |form: fn(&str) -> String, word: &str| self.exemptions.iter().map(|name| form(name)).collect::<Vec<_>>().join(word);
        let are_numbers = each(|name| format!("typeof({name}) IN ('integer', 'real')"), " AND ");
        let is_any = each(|name| format!("{name} > 0"), " OR ");
        let place = if after.is_empty() { "" } else { "AND pin > ?2" };
        let query = format!(
            "SELECT {}, {}, CASE WHEN {are_numbers} THEN {is_any} END FROM pin WHERE year = ?1 {place} ORDER BY pin LIMIT {PAGE_ROWS}",
            text("pin"),
            text("class"),
        );
        let read = || -> Result<Vec<Values>, Error> {
            let mut query = self.file.prepare(&query)?;
            let mut found = if after.is_empty() { query.query((year,))? } else { query.query((year, after))? };
            let mut rows = Vec::new();
            while let Some(row) = found.next()? {
                rows.push((text_of(row.get_ref(0)?), text_of(row.get_ref(1)?), row.get(2)?));
            }
            Ok(rows)
        };
        // A row without a readable PIN has no place after which the next page could begin.
        let row = |(pin, class, is_exempt): Values| {
            let pin = pin
                .filter(|pin| !pin.is_empty())
                .ok_or_else(|| stop("pin", format!("is absent, no text or too long in a row of {year}")))?;
            Ok(Row { year, pin, class, is_exempt })
        };
        read().map_err(refused)?.into_iter().map(row).collect()
    }
}

/// Turns off what only a hostile file makes use of: views, functions in its schema, and values of any length.
fn restrict(file: &Connection) -> Result<(), Error> {
    file.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    file.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    file.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    file.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)?;
    Ok(())
}

/// The columns of the table, in lower case, each with its place in the primary key; 0 if it is no part of that.
fn columns(file: &Connection) -> Result<BTreeMap<String, i64>, Error> {
    let mut query = file.prepare("SELECT lower(name), pk FROM pragma_table_info('pin')")?;
    query.query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

fn text_of(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).ok().map(str::to_owned),
        _ => None,
    }
}

fn stop(field: &str, reason: impl Into<String>) -> UpstreamError {
    UpstreamError::Stop { stream: PTAXSIM, field: field.to_owned(), reason: reason.into() }
}

/// Why SQLite does not read the file. The path is not named: the reason is recorded in the log.
fn refused(error: Error) -> UpstreamError {
    let reason = match error.sqlite_error_code() {
        Some(ErrorCode::CannotOpen | ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::SystemIoFailure) => {
            return json::later(PTAXSIM, format!("the file at {SETTING} cannot be read now"));
        }
        Some(ErrorCode::NotADatabase) => "the file is no SQLite database".to_owned(),
        Some(ErrorCode::DatabaseCorrupt) => "the file is damaged".to_owned(),
        Some(ErrorCode::TooBig) => format!("the file has a value of more than {VALUE_BYTES_MAX} bytes"),
        _ => format!("the file cannot be read: {error}"),
    };
    stop(SETTING, reason)
}
