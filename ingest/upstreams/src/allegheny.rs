//! Parcels of Allegheny County, Pennsylvania, from the open data of its regional centre on CKAN: sales, assessments, permits of the City of Pittsburgh, and tax
//! liens with their current status.
//!
//! A table has no time of change for a row. Each run asks when the table was changed last, and reads it whole if that time moved; the hash of a row says
//! whether it changed. Rows are reloaded under new numbers (`_id`), so the key of a record is made of its own columns.
//!
//! A row that a table lacks withdraws nothing: tables are wiped and loaded again, and a reading can find one of them half-loaded. A reading with over 5 %
//! fewer rows than the last whole one, or fewer than the server says there are, is incomplete, and the next run reads the table again.
//!
//! A whole reading of sales ends with the facts that those of each municipality were read, and one of assessments with the year that is complete in each; the
//! counts for it are in the cursor, so a run that is interrupted continues with them.
//!
//! What is unreliable: numbers are texts or have a point (`2018.0`), flags are texts (`"t"`), headers occur among the rows, and PINs can be absent.

mod liens;
mod permits;
mod roll;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use schemas::position::UpstreamCursor;
use schemas::topics::{LIENS, PARCELS, PERMITS, SALES, Topic};
use serde::{Deserialize, Serialize};

use self::roll::Areas;
use crate::ckan::{self, PAGE_ROWS_MAX, Query, Records};
use crate::{
    Answer, Capabilities, Incomplete, Licence, Manifest, Observation, Page, Request, RunMemory, Settings, Stream, Upstream, UpstreamError,
    Window, json,
};

const ORIGIN: &str = "https://data.wprdc.org";
const LIENS_STREAM: &str = "allegheny.liens";
const ASSESSMENTS: &str = "allegheny.assessments";
const SALES_STREAM: &str = "allegheny.sales";
const PERMITS_STREAM: &str = "allegheny.pli";
/// A table with a smaller part of the rows of the last whole reading is half-loaded, in percent.
const ROWS_PERCENT_MIN: u64 = 95;
/// The order of rows.
const BY_ROW: &str = "_id asc";
/// The order of assessments: the rows of one parcel, which has one for each of its cards, are next to each other.
const BY_PIN: &str = "PARID asc,_id asc";
/// Two readings with row counts that differ by at most this part are equally long, in percent.
const ROWS_PERCENT_EQUAL: u64 = 5;

const fn stream(name: &'static str, topic: &'static Topic) -> Stream {
    Stream {
        name,
        topic,
        every: Duration::from_secs(86_400),
        snapshot: false,
        answer_bytes_max: 128 << 20,
        answer_timeout: Duration::from_secs(180),
    }
}

static MANIFEST: Manifest = Manifest {
    name: "allegheny",
    licence: Licence { terms: "Creative Commons CC0 or CC BY, by table", publisher: "Western Pennsylvania Regional Data Center (WPRDC)" },
    // Sales come first: a cycle is closed with the sales that are known.
    streams: &[stream(SALES_STREAM, &SALES), stream(ASSESSMENTS, &PARCELS), stream(LIENS_STREAM, &LIENS), stream(PERMITS_STREAM, &PERMITS)],
    full_after: Duration::from_secs(90 * 86_400),
};

/// The upstream.
#[derive(Debug)]
pub struct Allegheny;

/// A table: its stream, its resource, and its columns that are requested.
struct Dataset {
    stream: &'static str,
    resource: &'static str,
    columns: &'static [&'static str],
}

static DATASETS: &[Dataset] = &[
    Dataset { stream: SALES_STREAM, resource: "5bbe6c55-bce6-4edb-9d04-68edeb6bf7b1", columns: roll::SALE_COLUMNS },
    Dataset { stream: ASSESSMENTS, resource: "65855e14-549e-4992-b5be-d629afc676fa", columns: roll::ASSESSMENT_COLUMNS },
    Dataset { stream: LIENS_STREAM, resource: "65d0d259-3e58-49d3-bebb-80dc75f61245", columns: liens::COLUMNS },
    Dataset { stream: PERMITS_STREAM, resource: "f4d1177a-f597-4c32-8cbf-7885f56253f6", columns: permits::COLUMNS },
];

/// The position of a sync run, and what is known from the run before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Cursor {
    /// When the table that is read was changed last; empty before that was asked.
    modified: String,
    /// How many rows have been read.
    rows: u64,
    /// Whether nothing more is to be read.
    is_read: bool,
    /// When the table was changed last that was read whole; empty if none was.
    known_modified: String,
    /// The rows of the last whole reading; 0 if there was none.
    known_rows: u64,
    /// The rows of the last reading, if it was incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    doubted: Option<u64>,
    /// The municipalities of the rows so far.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    areas: Areas,
    /// Of assessments, which are read by PIN: the last PIN so far.
    #[serde(skip_serializing_if = "String::is_empty")]
    last_pin: String,
}

impl Cursor {
    /// Whether rows are read by PIN. A run that began without that order continues without it.
    fn is_by_pin(&self, stream: &Stream) -> bool {
        stream.name == ASSESSMENTS && (self.rows == 0 || !self.last_pin.is_empty())
    }

    /// The cursor after the last row of a table that has, as the server says, so many rows; and what an operator should know.
    fn finished(self, total: Option<u64>) -> (Self, Option<Incomplete>) {
        let (rows, known) = (self.rows, self.known_rows);
        let is_cut = total.is_some_and(|total| total > rows);
        let is_short = rows.saturating_mul(100) < known.saturating_mul(ROWS_PERCENT_MIN);
        let is_confirmed = self.doubted.is_some_and(|before| {
            before.abs_diff(rows).saturating_mul(100) <= before.max(rows).saturating_mul(ROWS_PERCENT_EQUAL) && rows > 0
        });
        let what = match total {
            Some(total) if is_cut => format!("{rows} of {total} rows were read"),
            _ if is_short && !is_confirmed => {
                format!("the table has {rows} rows, more than 5 % fewer than the {known} of the last reading")
            }
            _ => {
                let known_modified = self.modified.clone();
                return (Self { is_read: true, known_modified, known_rows: rows, doubted: None, ..self }, None);
            }
        };
        (Self { is_read: true, doubted: Some(rows), ..self }, Some(Incomplete { what, from: None }))
    }
}

impl Upstream for Allegheny {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, _: &Stream, _: &Window, _: &Settings) -> UpstreamCursor {
        json::write_cursor(Cursor::default())
    }

    fn request(&self, stream: &Stream, cursor: &UpstreamCursor, _: &Settings) -> Result<Request, UpstreamError> {
        let (cursor, dataset): (Cursor, _) = (json::read_cursor(stream.name, cursor)?, dataset_of(stream)?);
        if cursor.modified.is_empty() {
            return Ok(ckan::resource_request(ORIGIN, dataset.resource));
        }
        let offset = usize::try_from(cursor.rows).unwrap_or(usize::MAX);
        let query = Query {
            resource: dataset.resource,
            fields: dataset.columns,
            sort: if cursor.is_by_pin(stream) { BY_PIN } else { BY_ROW },
            limit: PAGE_ROWS_MAX,
            offset,
            ..Query::default()
        };
        Ok(query.request(ORIGIN))
    }

    fn map(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
        let mut cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        let mut page = Page::default();
        let body = json::body_text(&answer.body, &mut page.warnings);
        // A rejected record that is mapped again is a page of rows, too.
        if cursor.modified.is_empty()
            && let Ok(modified) = ckan::last_modified(stream.name, &body)
        {
            let is_read = modified == cursor.known_modified;
            page.next = Some(json::write_cursor(Cursor { modified, is_read, ..cursor }));
            return Ok(page);
        }
        let mut records = ckan::records(stream.name, &body)?;
        let (total, offset) = (records.total, usize::try_from(cursor.rows).unwrap_or(usize::MAX));
        let (next, rows, is_by_pin) = (records.next_offset(offset), records.raw.len(), cursor.is_by_pin(stream));
        if next.is_some() && is_by_pin {
            records.raw.truncate(roll::rows_of_whole_parcels(&records.raw));
        }
        let is_whole = next.is_none() || !is_by_pin || records.raw.len() < rows;
        cursor.rows = cursor.rows.saturating_add(records.raw.len() as u64);
        map_rows(stream.name, records, is_whole, today, &mut cursor, &mut page)?;
        if !is_by_pin {
            cursor.last_pin.clear();
        }
        if next.is_none() {
            cursor.last_pin.clear();
            let areas = std::mem::take(&mut cursor.areas);
            (cursor, page.incomplete) = cursor.finished(total.map(|total| total as u64));
            if page.incomplete.is_none() {
                page.observations.extend(endings(stream.name, &areas));
            }
        }
        page.next = Some(json::write_cursor(cursor));
        Ok(page)
    }

    fn single(&self, _: &Stream, raw: &[u8]) -> Vec<u8> {
        [br#"{"success":true,"result":{"records":["#, raw, b"]}}"].concat()
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities { memory: Some(self), ..Capabilities::default() }
    }
}

impl RunMemory for Allegheny {
    fn start_after(&self, stream: &Stream, window: &Window, _: &Settings, memory: &UpstreamCursor, _: Timestamp) -> UpstreamCursor {
        let mut memory: Cursor = json::read_cursor(stream.name, memory).unwrap_or_default();
        if window.from.is_none() {
            // A full run reads the table also if it is as it was.
            memory.known_modified.clear();
        }
        json::write_cursor(Cursor {
            modified: String::new(),
            rows: 0,
            is_read: false,
            areas: Areas::new(),
            last_pin: String::new(),
            ..memory
        })
    }

    fn has_request(&self, stream: &Stream, cursor: &UpstreamCursor) -> bool {
        json::read_cursor::<Cursor>(stream.name, cursor).map_or(true, |cursor| !cursor.is_read)
    }
}

fn map_rows(
    stream: &'static str,
    records: Records<'_>,
    is_whole: bool,
    today: Date,
    cursor: &mut Cursor,
    page: &mut Page,
) -> Result<(), UpstreamError> {
    let Cursor { areas, last_pin, .. } = cursor;
    let records = json::Records::of_list(records.raw);
    match stream {
        SALES_STREAM => roll::map_sales(stream, records, today, areas, page),
        ASSESSMENTS => roll::map_assessments(stream, records, is_whole, (areas, last_pin), page),
        PERMITS_STREAM => permits::map(stream, records, today, page),
        _ => liens::map(stream, records, today, page),
    }
}

/// The facts that end a whole reading.
fn endings(stream: &'static str, areas: &Areas) -> Vec<Observation> {
    match stream {
        SALES_STREAM => roll::sales_read(stream, areas),
        ASSESSMENTS => roll::cycles(stream, areas),
        _ => Vec::new(),
    }
}

fn dataset_of(stream: &Stream) -> Result<&'static Dataset, UpstreamError> {
    let unknown = || UpstreamError::Stop { stream: stream.name, field: "stream".to_owned(), reason: "has no table".to_owned() };
    DATASETS.iter().find(|dataset| dataset.stream == stream.name).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which readings are incomplete: those with fewer rows than the server says, and those with over 5 % fewer rows than the last whole one, unless
    /// the reading before was as short.
    #[test]
    fn short_readings() {
        let after = |rows: u64, known: u64, doubted: Option<u64>, total: Option<u64>| {
            let cursor = Cursor { modified: "b".into(), rows, known_modified: "a".into(), known_rows: known, doubted, ..Cursor::default() };
            let (cursor, incomplete) = cursor.finished(total);
            assert!(cursor.is_read);
            (cursor.known_modified == "b", cursor.known_rows, cursor.doubted, incomplete.is_some())
        };
        assert_eq!(after(100, 0, None, Some(100)), (true, 100, None, false));
        assert_eq!(after(95, 100, None, Some(95)), (true, 95, None, false));
        assert_eq!(after(94, 100, None, Some(94)), (false, 100, Some(94), true));
        assert_eq!(after(93, 100, Some(94), Some(93)), (true, 93, None, false));
        assert_eq!(after(0, 100, Some(0), Some(0)), (false, 100, Some(0), true));
        assert_eq!(after(100, 100, None, Some(150)), (false, 100, Some(100), true));
        assert_eq!(after(100, 100, None, None), (true, 100, None, false));
    }
}
