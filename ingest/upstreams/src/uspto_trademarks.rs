//! The trademark register of the United States Patent and Trademark Office: case files as bulk data, one zip archive per day, and once a year an
//! archive set of all case files.
//!
//! There are two streams. Both show the same records under the same keys (`uspto_trademarks/SERIAL`), and a record names the day of its last
//! transaction, by which services order them. A run lists the files of a product, then downloads and reads one after another. The days are read in
//! their order without a gap: a day that is missing, or whose file is damaged, holds up the later ones. The parts of the yearly set are read in any
//! order.
//!
//! The cursor names what has been read, and within a file the record at which it continues. A file that is damaged is not requested for a time
//! that grows with each attempt, because each file may be downloaded a few times a year only.

mod case_file;
mod catalogue;
mod cursor;
mod pages;

use std::fs::File;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use schemas::position::UpstreamCursor;
use schemas::topics::MARKS;

use self::cursor::{Cursor, Step};
use self::pages::observe;
use crate::archive::ZIP_MAGIC;
use crate::{
    Answer, Capabilities, Download, Failures, FilePages, Files, Licence, Manifest, Page, Request, RunMemory, Settings, Stream,
    TimedRecords, Upstream, UpstreamError, Window, json,
};

const DAILY: &str = "uspto_trademarks.daily";
const ANNUAL: &str = "uspto_trademarks.annual";
const ORIGIN: &str = "https://api.uspto.gov";
/// The header of the key. It is not sent to the signed address of a file.
const KEY_HEADER: &str = "x-api-key";
/// The largest file of a day, in bytes as it is sent. The largest seen has 67 MB.
const DAILY_BYTES_MAX: u64 = 512 << 20;
/// The largest part of a yearly set, in bytes as it is sent.
const ANNUAL_BYTES_MAX: u64 = 2 << 30;
/// The office allows 20 downloads of a file in a year. Half of that in each calendar year is never more than that in any year.
const DOWNLOADS_PER_YEAR_MAX: u32 = 10;

const fn stream(name: &'static str, every: Duration) -> Stream {
    Stream { name, topic: &MARKS, every, snapshot: false, answer_bytes_max: 16 << 20, answer_timeout: Duration::from_secs(3_600) }
}

static MANIFEST: Manifest = Manifest {
    name: "uspto_trademarks",
    licence: Licence::of_government("Patent and Trademark Office"),
    // A first load begins with the yearly set, which has the names of marks that the days only mention.
    streams: &[stream(ANNUAL, Duration::from_secs(20 * 3_600)), stream(DAILY, Duration::ZERO)],
    full_after: Duration::from_secs(365 * 86_400),
};

/// The upstream.
#[derive(Debug)]
pub struct UsptoTrademarks;

/// The product of a stream.
fn product(stream: &Stream) -> &'static str {
    if stream.name == DAILY { "TRTDXFAP" } else { "TRTYRAP" }
}

impl Upstream for UsptoTrademarks {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, stream: &Stream, window: &Window, settings: &Settings) -> UpstreamCursor {
        let at = window.to.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp()).unwrap_or_default();
        self.start_after(stream, window, settings, &UpstreamCursor::default(), at)
    }

    fn request(&self, stream: &Stream, cursor: &UpstreamCursor, settings: &Settings) -> Result<Request, UpstreamError> {
        let cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        let stop =
            |field: &str, reason: &str| UpstreamError::Stop { stream: stream.name, field: field.to_owned(), reason: reason.to_owned() };
        let key = settings.api_key.clone().ok_or_else(|| stop("api_key", "the upstream requires a key, and none is set"))?;
        let headers = vec![(KEY_HEADER, key)];
        let product = product(stream);
        let request = Request { origin: ORIGIN.to_owned(), headers, ..Request::default() };
        match cursor.step {
            Step::List => {
                Ok(Request { path: format!("/api/v1/datasets/products/{product}"), media_types: &["application/json"], ..request })
            }
            Step::Read if catalogue::is_file_name(&cursor.file) => Ok(Request {
                path: format!("/api/v1/datasets/products/files/{product}/{}", cursor.file),
                download: Some(Download {
                    name: cursor.file,
                    bytes_max: if stream.name == DAILY { DAILY_BYTES_MAX } else { ANNUAL_BYTES_MAX },
                    magic: ZIP_MAGIC,
                    per_year_max: DOWNLOADS_PER_YEAR_MAX,
                }),
                ..request
            }),
            Step::Read | Step::Rest => Err(stop("cursor", "names no file")),
        }
    }

    fn map(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
        let at = today.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp()).unwrap_or_default();
        self.map_at(stream, cursor, answer, at)
    }

    fn single(&self, _: &Stream, raw: &[u8]) -> Vec<u8> {
        raw.to_vec()
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            memory: Some(self),
            files: Some(self),
            failures: Some(self),
            timed_records: Some(self),
            ordered_streams: &[ANNUAL, DAILY],
            ..Capabilities::default()
        }
    }
}

impl TimedRecords for UsptoTrademarks {
    fn map_at(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, at: Timestamp) -> Result<Page, UpstreamError> {
        if answer.body.trim_ascii_start().starts_with(b"<case-file") {
            // A rejected record that is mapped again.
            let mut page = Page::default();
            match observe(&answer.body, at.to_zoned(TimeZone::UTC).date()) {
                Ok(observation) => page.observations.push(observation),
                Err(reject) => page.rejects.push(reject),
            }
            return Ok(page);
        }
        let cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        let files = catalogue::read(stream.name, &answer.body)?;
        Ok(if stream.name == DAILY { cursor.plan_days(&files, at) } else { cursor.plan_parts(&files, at) })
    }
}

impl RunMemory for UsptoTrademarks {
    fn start_after(&self, stream: &Stream, window: &Window, settings: &Settings, memory: &UpstreamCursor, _: Timestamp) -> UpstreamCursor {
        let memory: Cursor = json::read_cursor(stream.name, memory).unwrap_or_default();
        let days = Some(i64::from(settings.backfill_days)).filter(|days| *days > 0);
        let first = days.and_then(|days| window.to.checked_sub(days.days()).ok());
        json::write_cursor(Cursor { step: Step::List, first, file: String::new(), record: 0, ..memory })
    }

    fn has_request(&self, stream: &Stream, cursor: &UpstreamCursor) -> bool {
        json::read_cursor::<Cursor>(stream.name, cursor).map_or(true, |cursor| cursor.step != Step::Rest)
    }
}

impl Files for UsptoTrademarks {
    fn open(&self, stream: &Stream, cursor: &UpstreamCursor, file: File, at: Timestamp) -> Result<Box<dyn FilePages>, UpstreamError> {
        let cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        Ok(Box::new(pages::Pages::open(stream.name, cursor, file, at)?))
    }
}

impl Failures for UsptoTrademarks {
    fn failed(&self, stream: &Stream, cursor: &UpstreamCursor, reason: &str, at: Timestamp) -> Option<Page> {
        let cursor: Cursor = json::read_cursor(stream.name, cursor).ok()?;
        (cursor.step == Step::Read).then(|| cursor.put_off(reason, at))
    }
}
