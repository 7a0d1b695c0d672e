//! The case files of one archive, page by page.

use std::collections::HashSet;
use std::fs::File;
use std::io::BufReader;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::case_file;
use super::cursor::Cursor;
use crate::archive::ArchivedFile;
use crate::field_counts::FieldCounts;
use crate::xml_records::RecordReader;
use crate::{FilePages, Observation, Page, Reject, UpstreamError, drift, json};
use schemas::facts::FactData;

/// The most bytes that a file may unpack to.
const UNPACKED_BYTES_MAX: u64 = 8 << 30;

/// Maps the bytes of a case file.
pub(super) fn observe(bytes: &[u8], today: Date) -> Result<Observation, Reject> {
    match case_file::parse(bytes, today) {
        Ok(fact) => Ok(Observation::new(format!("uspto_trademarks/{}", fact.serial), FactData::Mark(Box::new(fact)))),
        Err(reason) => Err(Reject { reference: case_file::reference(bytes), reason, raw: bytes.to_vec() }),
    }
}

/// How many records a page has at most.
const PAGE_RECORDS_MAX: usize = 2_000;
/// How many bytes of records a page is made of at most, apart from its last record.
const PAGE_BYTES_MAX: usize = 32 << 20;
const BUFFER_BYTES: usize = 256 << 10;

/// The records of an archive.
pub(super) struct Pages {
    stream: &'static str,
    cursor: Cursor,
    at: Timestamp,
    reader: RecordReader<BufReader<ArchivedFile>>,
    /// How many records have been read, without the one held back.
    read: u64,
    /// A record whose key the page before has, too.
    held_back: Option<Observation>,
    /// Why nothing can be read after the records of the page before.
    damage: Option<String>,
}

impl Pages {
    pub(super) fn open(stream: &'static str, cursor: Cursor, file: File, at: Timestamp) -> Result<Self, UpstreamError> {
        let refused = |reason: String| json::later(stream, reason);
        let file = ArchivedFile::open(file, ".xml", UNPACKED_BYTES_MAX).map_err(refused)?;
        let mut reader = RecordReader::new(BufReader::with_capacity(BUFFER_BYTES, file), "trademark-applications-daily", "case-file");
        for _ in 0..cursor.record {
            if reader.next_record().map_err(refused)?.is_none() {
                return Err(refused(format!("the file has fewer than the {} records that were read before", cursor.record)));
            }
        }
        Ok(Self { stream, read: cursor.record, cursor, at, reader, held_back: None, damage: None })
    }
}

impl FilePages for Pages {
    fn next_page(&mut self) -> Result<Page, UpstreamError> {
        if let Some(reason) = self.damage.take() {
            return Err(json::later(self.stream, reason));
        }
        let today = self.at.to_zoned(TimeZone::UTC).date();
        let (mut observations, mut rejects, mut fields) = (Vec::new(), Vec::new(), FieldCounts::default());
        let (mut keys, mut bytes, mut missing) = (HashSet::new(), 0, 0);
        if let Some(held) = self.held_back.take() {
            self.read += 1;
            count(&mut fields, &held);
            keys.insert(held.key.clone());
            observations.push(held);
        }
        let mut is_finished = false;
        while observations.len() + rejects.len() < PAGE_RECORDS_MAX && bytes < PAGE_BYTES_MAX {
            let record = match self.reader.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => {
                    is_finished = true;
                    break;
                }
                Err(reason) => {
                    self.damage = Some(format!("after {} records: {reason}", self.read));
                    break;
                }
            };
            bytes += record.bytes.len();
            if record.is_too_large {
                let (reference, reason) = (case_file::reference(record.bytes), "the record is larger than 16 MB".to_owned());
                rejects.push(Reject { reference, reason, raw: record.bytes.to_vec() });
                self.read += 1;
                continue;
            }
            match observe(record.bytes, today) {
                Ok(observation) if !keys.insert(observation.key.clone()) => {
                    self.held_back = Some(observation);
                    break;
                }
                Ok(observation) => {
                    count(&mut fields, &observation);
                    observations.push(observation);
                }
                Err(reject) => {
                    missing += 1;
                    rejects.push(reject);
                }
            }
            self.read += 1;
        }
        drift::share(self.stream, "serial-number", missing, observations.len() + rejects.len())?;
        let page = if is_finished {
            self.cursor.clone().finished(self.at)
        } else {
            Page { next: Some(json::write_cursor(Cursor { record: self.read, ..self.cursor.clone() })), ..Page::default() }
        };
        Ok(Page { observations, rejects, fields, ..page })
    }

    fn bytes_read(&self) -> u64 {
        self.reader.source().get_ref().packed_read()
    }

    fn files_left(&self) -> u64 {
        self.cursor.files_left()
    }
}

fn count(fields: &mut FieldCounts, observation: &Observation) {
    let FactData::Mark(fact) = &observation.data else { return };
    fields.count([
        ("status-code", !fact.status_code.is_empty()),
        ("transaction-date", !fact.transaction_date.is_empty()),
        ("filing-date", !fact.filing_date.is_empty()),
        ("mark-identification", !fact.mark.is_empty()),
        ("party-name", !fact.owners.is_empty()),
        ("international-code", !fact.classes.is_empty()),
    ]);
}
