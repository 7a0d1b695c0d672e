//! The rows of one archive, page by page.
//!
//! The file is read twice: first as a whole, which verifies it and decides which of several rows with the same key counts (the one with the smallest
//! hash), then page by page. So the order of the rows and their repetition change nothing, and no page of a damaged file is used.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;

use jiff::civil::Date;
use proofs::hash::Hash32;
use schemas::facts::FactData;

use super::Cursor;
use super::layout::Layout;
use super::row::{self, Lines};
use crate::archive::ArchivedFile;
use crate::{FilePages, Observation, Page, UpstreamError, drift, json};

/// The most bytes that the file in it may unpack to.
const UNPACKED_BYTES_MAX: u64 = 1 << 30;

/// How many rows a page has at most.
const PAGE_ROWS_MAX: u64 = 2_000;
const BUFFER_BYTES: usize = 256 << 10;

/// The first bytes of the hash of a key or of a row.
type Short = [u8; 16];

/// The rows of an archive.
pub(super) struct Pages {
    stream: &'static str,
    cursor: Cursor,
    today: Date,
    layout: Layout,
    lines: Lines<BufReader<ArchivedFile>>,
    /// The rows of the file.
    rows: u64,
    /// The row that counts of each key that was not shown yet.
    chosen: HashMap<Short, Short>,
}

impl Pages {
    pub(super) fn open(stream: &'static str, cursor: Cursor, file: File, today: Date) -> Result<Self, UpstreamError> {
        let refused = |reason: String| json::later(stream, reason);
        let again = file.try_clone().map_err(|error| refused(error.to_string()))?;
        let (layout, mut lines) = begin(stream, file)?;
        let (mut rows, mut unread) = (0_usize, 0_usize);
        let mut chosen: HashMap<Short, Short> = HashMap::new();
        while let Some(record) = lines.next_record().map_err(refused)? {
            rows += 1;
            match row::observe(&layout, &record, today) {
                Ok(observation) => {
                    let own = hash_of(&observation);
                    let best = chosen.entry(short(observation.key.as_bytes())).or_insert(own);
                    *best = own.min(*best);
                }
                Err(_) => unread += 1,
            }
        }
        drift::share(stream, "row", unread, rows)?;
        drop(lines);
        let (layout, lines) = begin(stream, again).map(|(_, lines)| (layout, lines))?;
        let mut pages = Self { stream, today, layout, lines, rows: rows as u64, chosen, cursor: Cursor { row: 0, ..cursor.clone() } };
        while pages.cursor.row < cursor.row {
            if pages.next_row()?.is_none() {
                return Err(refused(format!("the file has fewer than the {} rows that were read before", cursor.row)));
            }
        }
        Ok(pages)
    }

    /// Reads a row: the observation, `None` for a row that does not count, or why it was rejected. `None` at the end of the file.
    fn next_row(&mut self) -> Result<Option<Result<Option<Observation>, crate::Reject>>, UpstreamError> {
        let record = self.lines.next_record().map_err(|reason| json::later(self.stream, reason))?;
        let Some(record) = record else { return Ok(None) };
        self.cursor.row += 1;
        let observed = row::observe(&self.layout, &record, self.today).map(|observation| {
            let key = short(observation.key.as_bytes());
            let is_chosen = self.chosen.get(&key) == Some(&hash_of(&observation));
            if is_chosen {
                self.chosen.remove(&key);
            }
            is_chosen.then_some(observation)
        });
        Ok(Some(observed))
    }
}

/// Opens the file of an archive and reads its header.
fn begin(stream: &'static str, file: File) -> Result<(Layout, Lines<BufReader<ArchivedFile>>), UpstreamError> {
    let refused = |reason: String| json::later(stream, reason);
    let file = ArchivedFile::open(file, ".csv", UNPACKED_BYTES_MAX).map_err(refused)?;
    let mut lines = Lines::new(BufReader::with_capacity(BUFFER_BYTES, file));
    let header = lines.next_line().map_err(refused)?.unwrap_or_default();
    Ok((Layout::read(stream, &header)?, lines))
}

fn hash_of(observation: &Observation) -> Short {
    match &observation.data {
        FactData::Exclusion(fact) => short(&fact.canonical()),
        _ => Short::default(),
    }
}

fn short(bytes: &[u8]) -> Short {
    let Hash32(hash) = Hash32::of(bytes);
    let mut out = Short::default();
    out.iter_mut().zip(hash).for_each(|(to, from)| *to = from);
    out
}

impl FilePages for Pages {
    fn next_page(&mut self) -> Result<Page, UpstreamError> {
        let mut page = Page::default();
        let end = self.cursor.row + PAGE_ROWS_MAX;
        while self.cursor.row < end {
            match self.next_row()? {
                Some(Ok(Some(observation))) => {
                    row::count(&mut page.fields, &observation);
                    page.observations.push(observation);
                }
                Some(Ok(None)) => {}
                Some(Err(reject)) => page.rejects.push(reject),
                None => {
                    let (next, incomplete) = self.cursor.clone().finished(self.rows);
                    return Ok(Page { next: Some(json::write_cursor(next)), incomplete, ..page });
                }
            }
        }
        Ok(Page { next: Some(json::write_cursor(self.cursor.clone())), ..page })
    }

    fn bytes_read(&self) -> u64 {
        self.lines.source().get_ref().packed_read()
    }

    fn files_left(&self) -> u64 {
        0
    }
}
