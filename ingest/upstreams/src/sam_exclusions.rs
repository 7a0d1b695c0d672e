//! The exclusions of SAM.gov: every party that is excluded from federal awards, as one zip archive with one CSV file a day.
//!
//! The file holds active exclusions only, so an exclusion that was lifted or has expired is one that two whole files in a row lack. A file with over 5 %
//! fewer rows than the last one is doubted, and lifts nothing, unless the file before was as short. Rows have no number, so they are identified by
//! their contents ([`ExclusionFact::row_id`]).
//!
//! Unreliable in the file: columns have other names and another order from year to year; comments that begin with a quotation mark break the quoting
//! of their row; rows occur twice; the names of a cross-reference come in another order each day; a third of the rows have no active date.
//!
//! [`ExclusionFact::row_id`]: schemas::facts::exclusions::ExclusionFact::row_id

mod cursor;
mod layout;
mod pages;
mod row;

use std::fs::File;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use schemas::position::UpstreamCursor;
use schemas::topics::EXCLUSIONS;

use self::cursor::Cursor;
use self::layout::Layout;
use self::row::STREAM;
use crate::archive::ZIP_MAGIC;
use crate::{
    Answer, Capabilities, Download, FilePages, Files, Licence, Manifest, Page, Request, RunMemory, Settings, Stream, Upstream,
    UpstreamError, Window, drift, json,
};

const ORIGIN: &str = "https://api.sam.gov";
/// The largest archive, in bytes as it is sent. One of 2020 has 15 MB.
const ARCHIVE_BYTES_MAX: u64 = 256 << 20;
/// A key with a role allows 1,000 requests a day. One without allows ten; a run needs one.
const DOWNLOADS_PER_DAY_MAX: u32 = 1_000;

static MANIFEST: Manifest = Manifest {
    name: STREAM,
    licence: Licence::of_government("General Services Administration"),
    streams: &[Stream {
        name: STREAM,
        topic: &EXCLUSIONS,
        every: Duration::from_secs(20 * 3_600),
        snapshot: true,
        answer_bytes_max: 16 << 20,
        answer_timeout: Duration::from_secs(1_800),
    }],
    full_after: Duration::from_secs(7 * 86_400),
};

/// The upstream.
#[derive(Debug)]
pub struct SamExclusions;

impl Upstream for SamExclusions {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, _stream: &Stream, window: &Window, _settings: &Settings) -> UpstreamCursor {
        json::write_cursor(Cursor { day: Some(window.to), ..Cursor::default() })
    }

    fn request(&self, stream: &Stream, cursor: &UpstreamCursor, settings: &Settings) -> Result<Request, UpstreamError> {
        let cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        let stop =
            |field: &str, reason: &str| UpstreamError::Stop { stream: stream.name, field: field.to_owned(), reason: reason.to_owned() };
        let key = settings.api_key.as_deref().filter(|key| !key.is_empty());
        let key = key.ok_or_else(|| stop("api_key", "the upstream requires a key, and none is set"))?;
        let day = cursor.day.ok_or_else(|| stop("cursor", "names no day"))?;
        let mut path = "/data-services/v1/extracts?fileType=EXCLUSION&api_key=".to_owned();
        path.extend(form_urlencoded::byte_serialize(key.as_bytes()));
        Ok(Request {
            origin: ORIGIN.to_owned(),
            path,
            download: Some(Download {
                // The answer is the newest file, whose own name is not known before.
                name: format!("exclusions-{day}.zip"),
                bytes_max: ARCHIVE_BYTES_MAX,
                magic: ZIP_MAGIC,
                per_year_max: DOWNLOADS_PER_DAY_MAX,
            }),
            ..Request::default()
        })
    }

    /// Maps a header line and the rows after it, as rejected records are stored.
    fn map(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
        let cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        let mut lines = row::Lines::new(&*answer.body);
        let header = lines.next_line().map_err(|reason| json::later(stream.name, reason))?;
        let layout = Layout::read(stream.name, header.as_deref().unwrap_or_default())?;
        let (mut page, mut missing, mut rows) = (Page::default(), 0, 0);
        let mut keys = std::collections::HashSet::new();
        while let Some(record) = lines.next_record().map_err(|reason| json::later(stream.name, reason))? {
            rows += 1;
            match row::observe(&layout, &record, today) {
                Ok(observation) => {
                    row::count(&mut page.fields, &observation);
                    if keys.insert(observation.key.clone()) {
                        page.observations.push(observation);
                    }
                }
                Err(reject) => {
                    missing += 1;
                    page.rejects.push(reject);
                }
            }
        }
        drift::share(stream.name, "row", missing, rows)?;
        let (next, incomplete) = cursor.finished(rows as u64);
        Ok(Page { next: Some(json::write_cursor(next)), incomplete, ..page })
    }

    fn single(&self, _: &Stream, raw: &[u8]) -> Vec<u8> {
        raw.to_vec()
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities { memory: Some(self), files: Some(self), ..Capabilities::default() }
    }
}

impl RunMemory for SamExclusions {
    fn start_after(&self, stream: &Stream, window: &Window, _: &Settings, memory: &UpstreamCursor, _: Timestamp) -> UpstreamCursor {
        let memory: Cursor = json::read_cursor(stream.name, memory).unwrap_or_default();
        json::write_cursor(Cursor { day: Some(window.to), row: 0, is_read: false, ..memory })
    }

    fn has_request(&self, stream: &Stream, cursor: &UpstreamCursor) -> bool {
        json::read_cursor::<Cursor>(stream.name, cursor).map_or(true, |cursor| !cursor.is_read)
    }
}

impl Files for SamExclusions {
    fn open(&self, stream: &Stream, cursor: &UpstreamCursor, file: File, at: Timestamp) -> Result<Box<dyn FilePages>, UpstreamError> {
        let cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        Ok(Box::new(pages::Pages::open(stream.name, cursor, file, at.to_zoned(jiff::tz::TimeZone::UTC).date())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which files are doubted: those with over 5 % fewer rows than the last one that was not, unless the file before was as short.
    #[test]
    fn short_files() {
        let after = |cursor: Cursor, rows: u64| {
            let (cursor, incomplete) = cursor.finished(rows);
            ((cursor.rows, cursor.doubted), incomplete.map(|incomplete| incomplete.what))
        };
        let cursor_with = |rows, doubted| Cursor { rows, doubted, ..Cursor::default() };
        assert_eq!(after(cursor_with(0, None), 0), ((0, None), None));
        assert_eq!(after(cursor_with(0, None), 100), ((100, None), None));
        assert_eq!(after(cursor_with(100, None), 95), ((95, None), None));
        let doubt = |rows: u64| format!("the file has {rows} rows, more than 5 % fewer than the 100 of the last one: none is withdrawn");
        assert_eq!(after(cursor_with(100, None), 94), ((100, Some(94)), Some(doubt(94))));
        // The file is whole again, or as short as the one before.
        assert_eq!(after(cursor_with(100, Some(50)), 99), ((99, None), None));
        assert_eq!(after(cursor_with(100, Some(50)), 51), ((51, None), None));
        assert_eq!(after(cursor_with(100, Some(50)), 60), ((100, Some(60)), Some(doubt(60))));
        assert_eq!(after(cursor_with(100, Some(0)), 0), ((100, Some(0)), Some(doubt(0))));
    }
}
