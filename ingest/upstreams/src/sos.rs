//! New businesses, from the open registers of businesses of states: one stream for each state. Iowa publishes its register as one archive ([`iowa`]),
//! the others are on Socrata.
//!
//! Registers differ: Colorado, Connecticut and Iowa publish entities, New York events, and Oregon one row for each name and address of an entity. Where a
//! register publishes the address of a registered agent only, no address is stored: one agent has thousands of businesses. Agents and people who file
//! are not requested at all.
//!
//! What is unreliable: rows arrive late, so days are read again; dates are written in two ways; the name of an entity that ended says so; a new event is
//! often an amendment or a second filing of the same day. What an event means is decided by the services that read it.

mod iowa;
mod registers;

use std::fs::File;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemas::position::UpstreamCursor;
use schemas::topics::BUSINESSES;
use serde::{Deserialize, Serialize};

use self::registers::{REGISTERS, Register, Scope};
use crate::{
    Answer, Capabilities, FilePages, Files, Licence, Manifest, Page, Request, Settings, Stream, Upstream, UpstreamError, Window, drift,
    json, socrata,
};

/// The rows of a page.
const PAGE_ROWS: usize = 1_000;
/// How far back a full read goes, unless the settings say otherwise.
const FULL_READ_DAYS: u32 = 30;

const fn stream(name: &'static str, every_days: u64) -> Stream {
    Stream {
        name,
        topic: &BUSINESSES,
        every: Duration::from_secs(every_days * 86_400),
        snapshot: false,
        answer_bytes_max: 64 << 20,
        answer_timeout: Duration::from_secs(120),
    }
}

static MANIFEST: Manifest = Manifest {
    name: "sos",
    licence: Licence { terms: "by state, see `licence` of the sources of coverage", publisher: "the secretaries of state" },
    // Iowa and Oregon replace theirs once a month.
    streams: &[
        stream("sos.co", 0),
        stream("sos.ct", 0),
        Stream { answer_timeout: iowa::DOWNLOAD_TIMEOUT, ..stream("sos.ia", 10) },
        stream("sos.ny", 0),
        stream("sos.or", 7),
    ],
    full_after: Duration::from_secs(14 * 86_400),
};

/// The upstream.
#[derive(Debug)]
pub struct Sos;

/// The position of a sync run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Cursor {
    /// The first day.
    from: Date,
    /// The values of the columns of the row after which the page begins; empty for the first page.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    after: Vec<String>,
}

impl Upstream for Sos {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, stream: &Stream, window: &Window, settings: &Settings) -> UpstreamCursor {
        let from = window.first_day(settings.full_read_days(FULL_READ_DAYS));
        if stream.name == iowa::STREAM {
            return iowa::start(from, window.to);
        }
        json::write_cursor(Cursor { from, after: Vec::new() })
    }

    fn request(&self, stream: &Stream, cursor: &UpstreamCursor, settings: &Settings) -> Result<Request, UpstreamError> {
        if stream.name == iowa::STREAM {
            return iowa::request(register(stream)?, cursor);
        }
        let (cursor, register): (Cursor, _) = (json::read_cursor(stream.name, cursor)?, register(stream)?);
        let since = match register.scope {
            Scope::Since(day) => Some(format!("{day} >= '{}T00:00:00'", cursor.from)),
            Scope::Whole | Scope::File => None,
        };
        let conditions: Vec<String> = since.into_iter().chain(register.keyset.after(&cursor.after)?).collect();
        let (select, order, limit) = (register.columns.join(","), register.keyset.order(), PAGE_ROWS.to_string());
        let condition = conditions.join(" AND ");
        let mut parameters = vec![("$select", &*select), ("$order", &*order), ("$limit", &*limit)];
        if !condition.is_empty() {
            parameters.push(("$where", &condition));
        }
        Ok(socrata::reasoned(socrata::request(register.origin, register.dataset, &parameters, settings)))
    }

    fn map(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, _today: Date) -> Result<Page, UpstreamError> {
        let (cursor, register): (Cursor, _) = (json::read_cursor(stream.name, cursor)?, register(stream)?);
        let mut page = Page::default();
        if let Scope::File = register.scope {
            // Rows of the file as an array, as rejected ones are mapped again.
            let rows = register.map(&json::body_text(&answer.body, &mut page.warnings), &mut page)?;
            page.observations = registers::grouped(rows);
            return Ok(page);
        }
        let body = socrata::rows_or_reason(stream.name, answer, &mut page.warnings)?;
        let mut rows = register.map(&body, &mut page)?;
        if let Scope::Since(_) = register.scope {
            let outside = rows.iter().filter(|row| row.day.is_some_and(|day| day < cursor.from)).count();
            page.warnings.extend(drift::outside(stream.name, "$where", outside, rows.len())?);
        }
        let is_full = rows.len() >= PAGE_ROWS;
        let keys: Vec<Vec<String>> = rows.iter().map(|row| row.key.clone()).collect();
        let mut next = register.keyset.next(&keys, &cursor.after, PAGE_ROWS)?;
        if register.has_rows_of_parts {
            if is_full {
                // The next page may have more rows of the last entity, so it begins before them.
                let last = rows.last().map(|row| row.entity.clone()).unwrap_or_default();
                let cut = rows.iter().position(|row| row.entity == last).unwrap_or(0);
                if cut == 0 {
                    let reason = format!("one entity has {PAGE_ROWS} rows or more");
                    return Err(UpstreamError::Stop { stream: stream.name, field: register.entity_column.to_owned(), reason });
                }
                rows.truncate(cut);
                next = rows.last().map(|row| row.key.clone());
            }
            page.observations = registers::grouped(rows);
        } else {
            page.observations = rows.into_iter().filter_map(|row| row.observation).collect();
        }
        page.next = next.map(|after| json::write_cursor(Cursor { after, ..cursor }));
        Ok(page)
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities { files: Some(self), ..Capabilities::default() }
    }
}

impl Files for Sos {
    fn open(&self, stream: &Stream, cursor: &UpstreamCursor, file: File, at: Timestamp) -> Result<Box<dyn FilePages>, UpstreamError> {
        Ok(Box::new(iowa::Pages::open(register(stream)?, cursor, &file, at.to_zoned(TimeZone::UTC).date())?))
    }
}

fn register(stream: &Stream) -> Result<&'static Register, UpstreamError> {
    let unknown = || UpstreamError::Stop { stream: stream.name, field: "stream".to_owned(), reason: "has no register".to_owned() };
    REGISTERS.iter().find(|register| register.stream == stream.name).ok_or_else(unknown)
}
