//! Exports topics from a log to an archive file.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use schemas::position::LogOffset;
use schemas::topics::Topic;

use super::archive::ArchiveWriter;
use super::{BATCH_BYTES, BATCH_RECORDS, Ends, Error};
use crate::EventLog;

/// Writes all records of some topics. `write` gets the archive in pieces and returns false to stop. `progress` is called with the number of
/// records written so far and the total.
///
/// # Errors
/// When the log fails, or when other processes append to it without a pause.
pub async fn export(
    log: &dyn EventLog,
    topics: &[&'static Topic],
    mut progress: impl FnMut(u64, u64) + Send,
    write: &mut (dyn FnMut(&[u8]) -> bool + Send),
) -> Result<(), Error> {
    let ends = Ends::read(log, topics).await?;
    let (mut done, total) = (0, ends.records());
    let is_closed = AtomicBool::new(false);
    let mut archive = ArchiveWriter::new(&Ends::default(), &ends, Out { write, is_closed: &is_closed })?;
    for topic in topics {
        for partition in 0..topic.partitions {
            let (mut from, end) = (LogOffset(0), ends.of(topic.name, partition));
            while from < end {
                let records_max = BATCH_RECORDS.min(usize::try_from(end.since(from)).unwrap_or(usize::MAX));
                let batch = log.read(topic, partition, from, records_max, BATCH_BYTES).await?;
                let Some(last) = batch.last() else {
                    let what = format!("{}/{partition} has no record at offset {}, below its end {}", topic.name, from, end);
                    return Err(crate::Error::Unavailable { what, source: None }.into());
                };
                from = last.offset.next();
                for stored in &batch {
                    archive.push(topic.name, partition, stored)?;
                }
                done += batch.len() as u64;
                progress(done, total);
                if is_closed.load(Ordering::Relaxed) {
                    return Ok(());
                }
            }
        }
    }
    archive.finish().map(|_| ())
}

/// A writer that ends quietly when its reader has gone away.
struct Out<'a> {
    write: &'a mut (dyn FnMut(&[u8]) -> bool + Send),
    is_closed: &'a AtomicBool,
}

impl Write for Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_closed.load(Ordering::Relaxed) && !(self.write)(bytes) {
            self.is_closed.store(true, Ordering::Relaxed);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
