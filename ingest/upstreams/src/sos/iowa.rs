//! The register of Iowa: one archive with all active entities, a line of JSON for each, published once a month.
//!
//! The address of the dataset redirects to a signed one. The answer says neither its length nor its version, so it is always downloaded as a whole, and
//! what shows that it is complete is the archive itself: the length and the checksum that its directory names. The archive is verified before any of its
//! rows are used, and then read page by page with bounded memory. Only entities of the last months are taken over; of the others only the numbers are
//! read. The file has active entities only, so one that two complete readings in a row lack has ended, and is withdrawn. A run that continues an interrupted one,
//! and a file with a row whose number cannot be read, withdraw nothing.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::time::Duration;

use jiff::ToSpan;
use jiff::civil::Date;
use schemas::position::UpstreamCursor;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::registers::Register;
use crate::archive::{ArchivedFile, ZIP_MAGIC};
use crate::{Download, FilePages, Page, Reject, Request, UpstreamError, drift, json, text};

/// The stream.
pub(super) const STREAM: &str = "sos.ia";
/// The timeout for the whole archive.
pub(super) const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(1_800);
/// How far back a run reads at least, in days: a file is up to a month old, and the one before can have been missed.
const READ_DAYS_MIN: i64 = 62;
/// The largest archive, in bytes. One of 2026 has 205 MB.
const ARCHIVE_BYTES_MAX: u64 = 1 << 30;
/// The most bytes that the file in it may unpack to.
const UNPACKED_BYTES_MAX: u64 = 4 << 30;
/// How many times the file of a day is downloaded at most: once a run, and runs are as frequent as their schedule says. The publisher names no limit.
const DOWNLOADS_PER_DAY_MAX: u32 = 1_000;
/// How many rows a page is made of at most.
const PAGE_ROWS: usize = 2_000;
/// How many bytes of rows a page is made of at most, apart from its last row.
const PAGE_BYTES_MAX: usize = 8 << 20;
/// The longest row, in bytes. Those of 2026 have some 450.
const ROW_BYTES_MAX: u64 = 64 << 10;
const BUFFER_BYTES: usize = 256 << 10;

/// The position within the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Cursor {
    /// The day of the run, which names the file on disk.
    day: Date,
    /// The first day of which entities are taken over.
    from: Date,
    /// How many rows have been read.
    #[serde(default)]
    row: u64,
    /// The last day of an entity among them that is not later than the day of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    newest: Option<Date>,
}

/// The cursor of the first page of a run on a day, which reads from a day on.
pub(super) fn start(from: Date, day: Date) -> UpstreamCursor {
    let from = from.min(day.saturating_sub(READ_DAYS_MIN.days()));
    json::write_cursor(Cursor { day, from, row: 0, newest: None })
}

/// The request of the archive. The key of the settings is one of Socrata, and is not sent.
pub(super) fn request(register: &Register, cursor: &UpstreamCursor) -> Result<Request, UpstreamError> {
    let cursor: Cursor = json::read_cursor(register.stream, cursor)?;
    Ok(Request {
        origin: register.origin.to_owned(),
        path: format!("/api/v1/datasets/{}/rows.json", register.dataset),
        download: Some(Download {
            name: format!("iowa-{}.zip", cursor.day),
            bytes_max: ARCHIVE_BYTES_MAX,
            magic: ZIP_MAGIC,
            per_year_max: DOWNLOADS_PER_DAY_MAX,
        }),
        ..Request::default()
    })
}

/// The rows of an archive.
pub(super) struct Pages {
    register: &'static Register,
    cursor: Cursor,
    /// The day of the run in UTC.
    today: Date,
    /// Whether the file is read from its first row on.
    is_from_start: bool,
    /// How many rows were rejected of which the number is not known.
    unnamed: usize,
    rows: Rows<BufReader<ArchivedFile>>,
}

impl Pages {
    /// Verifies an archive, and goes to the row at which the cursor continues.
    pub(super) fn open(register: &'static Register, cursor: &UpstreamCursor, file: &File, today: Date) -> Result<Self, UpstreamError> {
        let cursor: Cursor = json::read_cursor(register.stream, cursor)?;
        let refused = |reason: String| json::later(register.stream, reason);
        let open = || -> Result<ArchivedFile, String> {
            let file = file.try_clone().map_err(|error| error.to_string())?;
            ArchivedFile::open(file, "", UNPACKED_BYTES_MAX)
        };
        io::copy(&mut open().map_err(refused)?, &mut io::sink()).map_err(|error| refused(error.to_string()))?;
        let mut rows = Rows::new(BufReader::with_capacity(BUFFER_BYTES, open().map_err(refused)?));
        for _ in 0..cursor.row {
            if rows.next_row().map_err(|error| refused(error.to_string()))?.is_none() {
                return Err(refused(format!("the file has fewer than the {} rows that were read before", cursor.row)));
            }
        }
        Ok(Self { register, is_from_start: cursor.row == 0, cursor, today, unnamed: 0, rows })
    }

    /// A row that cannot be mapped, without what may say where a person lives.
    fn reject(&self, reason: &str, row: &str) -> Reject {
        let redacted = self.register.stored_fields().redact(row);
        let removed = redacted.removed.map(|removed| format!("; not stored: {removed}")).unwrap_or_default();
        Reject { reference: format!("row {}", self.cursor.row), reason: format!("{reason}{removed}"), raw: redacted.raw }
    }

    /// Reads the rows of a page: an array of those that are JSON, and how many others there are. Returns whether the file has ended.
    fn read(&mut self, body: &mut String, page: &mut Page) -> Result<bool, UpstreamError> {
        let (mut rows, mut unread, mut is_finished) = (0, 0, false);
        while rows < PAGE_ROWS && body.len() < PAGE_BYTES_MAX {
            let row = self.rows.next_row().map_err(|error| json::later(self.register.stream, error.to_string()))?;
            let Some(Row { bytes, is_whole }) = row else {
                is_finished = true;
                break;
            };
            let row = text::decode(bytes).into_owned();
            rows += 1;
            self.cursor.row += 1;
            let problem = match serde_json::from_str::<&RawValue>(&row) {
                _ if !is_whole => Some(format!("the row is longer than {ROW_BYTES_MAX} bytes")),
                Err(error) => Some(format!("the row is not readable: {error}")),
                Ok(_) => None,
            };
            if let Some(problem) = problem {
                unread += 1;
                page.rejects.push(self.reject(&problem, &row));
                continue;
            }
            body.push(if body.is_empty() { '[' } else { ',' });
            body.push_str(&row);
        }
        drift::share(self.register.stream, "row", unread, rows)?;
        body.push_str(if body.is_empty() { "[]" } else { "]" });
        Ok(is_finished)
    }
}

impl FilePages for Pages {
    fn next_page(&mut self) -> Result<Page, UpstreamError> {
        let (mut page, mut body) = (Page::default(), String::new());
        let is_finished = self.read(&mut body, &mut page)?;
        let rows = self.register.map(&body, &mut page)?;
        let named = rows.iter().filter(|row| row.observation.is_none() && !row.entity.is_empty()).count();
        self.unnamed += page.rejects.len().saturating_sub(named);
        let mut keys = HashSet::new();
        for row in rows {
            let key = self.register.key(&row.entity);
            self.cursor.newest = self.cursor.newest.max(row.day.filter(|day| *day <= self.today));
            let is_recent = row.day.is_some_and(|day| day >= self.cursor.from);
            match row.observation.filter(|_| is_recent) {
                Some(found) => page.observations.extend(keys.insert(key).then_some(found)),
                // An entity of earlier days, and one whose row is rejected, is in the register all the same.
                None => page.present.push(key),
            }
        }
        if is_finished {
            // The file is published once a month: it says nothing of the days since its newest entity.
            page.through = self.cursor.newest;
            if self.unnamed > 0 {
                page.warnings.push(format!("dissolved entities are not withdrawn: {} rows name no entity", self.unnamed));
            }
            page.complete_part = (self.is_from_start && self.unnamed == 0).then(|| STREAM.to_owned());
        } else {
            page.next = Some(json::write_cursor(self.cursor.clone()));
        }
        Ok(page)
    }

    fn bytes_read(&self) -> u64 {
        self.rows.input.get_ref().packed_read()
    }

    fn files_left(&self) -> u64 {
        0
    }
}

/// A line of the file; only its beginning if it is too long.
struct Row<'a> {
    bytes: &'a [u8],
    is_whole: bool,
}

/// The lines of a file that are not blank, each with bounded memory. The last one needs no end of line.
struct Rows<R> {
    input: R,
    row: Vec<u8>,
}

impl<R: BufRead> Rows<R> {
    fn new(input: R) -> Self {
        Self { input, row: Vec::new() }
    }

    /// Whether the line that was read is not cut.
    fn is_whole(&self) -> bool {
        self.row.ends_with(b"\n") || self.row.len() as u64 <= ROW_BYTES_MAX
    }

    fn next_row(&mut self) -> io::Result<Option<Row<'_>>> {
        loop {
            self.row.clear();
            if self.input.by_ref().take(ROW_BYTES_MAX + 1).read_until(b'\n', &mut self.row)? == 0 {
                return Ok(None);
            }
            if !self.is_whole() {
                self.input.skip_until(b'\n')?;
            }
            if !self.row.trim_ascii().is_empty() {
                return Ok(Some(Row { is_whole: self.is_whole(), bytes: self.row.trim_ascii() }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that lines are read whatever ends them, that blank ones are none, and that one that is too long is cut and the next one is read.
    #[test]
    fn rows() {
        let long = format!("{}\n{{\"b\":2}}", "x".repeat(3 * ROW_BYTES_MAX as usize));
        let cut = "x".repeat(ROW_BYTES_MAX as usize + 1);
        for (text, expected) in [
            ("{\"a\":1}\n{\"b\":2}", vec![("{\"a\":1}", true), ("{\"b\":2}", true)]),
            ("\r\n{\"a\":1}\r\n \n{\"b\":2}\n", vec![("{\"a\":1}", true), ("{\"b\":2}", true)]),
            ("", vec![]),
            (long.as_str(), vec![(cut.as_str(), false), ("{\"b\":2}", true)]),
        ] {
            let mut rows = Rows::new(BufReader::with_capacity(7, text.as_bytes()));
            let mut found = Vec::new();
            while let Some(Row { bytes, is_whole }) = rows.next_row().unwrap() {
                found.push((String::from_utf8(bytes.to_vec()).unwrap(), is_whole));
            }
            let expected: Vec<(String, bool)> = expected.into_iter().map(|(text, is_whole)| (text.to_owned(), is_whole)).collect();
            assert_eq!(found, expected);
            assert!(rows.row.capacity() <= 3 * ROW_BYTES_MAX as usize);
        }
    }
}
