//! Reads a backup: verifies it, restores its log, returns its files.

use std::path::{Path, PathBuf};

use proofs::hash::Hash32;
use schemas::topics::{self, Topic};

use super::manifest::{self, FileEntry, LeftOut, Manifest, Segment, read_verified};
use super::write::is_last_record;
use super::{Error, all_topics, blocking, segment};
use crate::{Append, EventLog, Record};

/// The most records and bytes of one append.
const BATCH_RECORDS: usize = 2_000;
const BATCH_BYTES: usize = 4 << 20;

/// A complete backup whose manifest was verified.
pub struct Backup {
    dir: PathBuf,
    manifest: Manifest,
}

impl Backup {
    /// Opens the backup in a directory.
    ///
    /// # Errors
    /// There is none, or its manifest is damaged or of another format.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let missing = || {
            let reason = if dir.join("unfinished").exists() {
                "the first backup into it was interrupted; run `highwater backup` again"
            } else {
                "it has no manifest"
            };
            Error::NoBackup { path: dir.to_owned(), reason: reason.to_owned() }
        };
        Ok(Self { dir: dir.to_owned(), manifest: Manifest::read(dir)?.ok_or_else(missing)? })
    }

    /// Whether a directory holds a backup, which may be damaged or of another format.
    #[must_use]
    pub fn is_in(dir: &Path) -> bool {
        manifest::exists(dir)
    }

    /// Identifies the backup: the hash of its content.
    ///
    /// # Errors
    /// The content cannot be written as JSON, which does not occur.
    pub fn id(&self) -> Result<String, Error> {
        let json = serde_json::to_vec(&self.manifest).map_err(|error| Error::file(&self.dir)(error.into()))?;
        Ok(Hash32::of(&json).to_string())
    }

    /// The moment of the backup, RFC 3339.
    #[must_use]
    pub fn taken_at(&self) -> &str {
        &self.manifest.taken_at
    }

    /// The version of the program that wrote it.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.manifest.version
    }

    /// How many records the log has.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.manifest.ends.records()
    }

    /// The files.
    #[must_use]
    pub fn files(&self) -> &[FileEntry] {
        &self.manifest.files
    }

    /// What the backup does not hold.
    #[must_use]
    pub fn left_out(&self) -> &[LeftOut] {
        &self.manifest.left_out
    }

    /// Reads a file and compares it with its checksum.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn read_file(&self, entry: &FileEntry) -> Result<Vec<u8>, Error> {
        read_verified(&self.dir.join(entry.path()), entry.bytes, &entry.sha256)
    }

    /// Verifies every segment and file. Writes nothing.
    ///
    /// # Errors
    /// The first file that is damaged.
    pub async fn verify(&self, mut progress: impl FnMut(u64, u64) + Send) -> Result<(), Error> {
        let (mut done, total) = (0, self.records());
        for entry in self.files() {
            self.read_file(entry)?;
        }
        for segment in &self.manifest.segments {
            self.read_segment(segment).await?;
            done += segment.to.since(segment.from);
            progress(done, total);
        }
        Ok(())
    }

    /// Appends all records that the log does not have yet, at their offsets. The log must be empty, or the result of an interrupted restore of this
    /// backup, and no other process may use it.
    ///
    /// # Errors
    /// A segment is damaged, the log has other records, or it fails. What was appended before remains, and the restore can be repeated.
    pub async fn restore_log(&self, log: &dyn EventLog, mut progress: impl FnMut(u64, u64) + Send) -> Result<(), Error> {
        let (mut done, total) = (0, self.records());
        for segment in &self.manifest.segments {
            // The manifest was checked: every topic is known.
            let Some(topic) = topics::by_name(&segment.topic) else { continue };
            self.restore_segment(log, topic, segment).await?;
            done += segment.to.since(segment.from);
            progress(done, total);
        }
        let ends = log.ends(&all_topics()).await?;
        for (topic, ends) in topics::ALL.iter().zip(ends) {
            for (partition, end) in (0..).zip(ends) {
                if end != self.manifest.ends.of(topic.name, partition) {
                    return Err(Error::Differs { topic: topic.name.to_owned(), partition, offset: end });
                }
            }
        }
        Ok(())
    }

    async fn restore_segment(&self, log: &dyn EventLog, topic: &'static Topic, segment: &Segment) -> Result<(), Error> {
        let partition = segment.partition;
        let differs = |offset| Error::Differs { topic: topic.name.to_owned(), partition, offset };
        let end = log.end(topic, partition).await?;
        if end >= segment.to {
            return if is_last_record(log, topic, segment).await? { Ok(()) } else { Err(differs(segment.to.previous())) };
        }
        let records = self.read_segment(segment).await?;
        let present = usize::try_from(end.since(segment.from)).unwrap_or(usize::MAX);
        if let Some(last) = present.checked_sub(1).and_then(|last| records.get(last)) {
            let found = log.read(topic, partition, end.previous(), 1, 1).await?;
            if found.first().is_none_or(|stored| stored.record != *last) {
                return Err(differs(end.previous()));
            }
        }
        let mut records = records.into_iter().skip(present).peekable();
        let mut next = end;
        while records.peek().is_some() {
            let (mut batch, mut bytes) = (Vec::new(), 0);
            while batch.len() < BATCH_RECORDS
                && bytes < BATCH_BYTES
                && let Some(record) = records.next()
            {
                bytes += record.key.len() + record.value.len();
                batch.push(Append { topic, partition, record });
            }
            let count = batch.len() as u64;
            let offsets = log.append(batch).await?;
            if offsets.first() != Some(&next) {
                return Err(differs(next));
            }
            next = next.plus(count);
        }
        Ok(())
    }

    async fn read_segment(&self, segment: &Segment) -> Result<Vec<Record>, Error> {
        let (path, segment) = (self.dir.join(segment.path()), segment.clone());
        blocking(move || {
            let content = read_verified(&path, segment.bytes, &segment.sha256)?;
            let topic = topics::by_name(&segment.topic).ok_or_else(|| Error::damaged(&path, "its topic is unknown"))?;
            segment::decode(&path, content, topic, segment.partition, segment.from, segment.to)
        })
        .await
    }
}
