//! Writes a backup.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use disk_files::durable_file;
use disk_files::keyspaces::entries;
use proofs::hash::Hash32;
use schemas::position::LogOffset;
use schemas::topics::{self, Topic};

use super::manifest::{FileEntry, LeftOut, Manifest, Segment, read_verified, segment_directory};
use super::segment;
use super::{Error, all_topics, blocking};
use crate::EventLog;
use crate::transfer::Ends;

/// The file that exists while a backup is being written.
const UNFINISHED: &str = "unfinished";
/// Names in the directory of a backup.
const CONTENTS: [&str; 6] = ["files", "lock", "log", "manifest", "manifest.new", UNFINISHED];

/// A file that belongs to the log.
#[derive(Clone, Debug)]
pub struct BackupFile {
    /// The name of the file in the backup: a relative path.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
}

/// What a backup is to hold, in addition to the log.
pub struct Plan<'a> {
    /// The directory; it is created if there is none.
    pub dir: &'a Path,
    /// An older backup of the same log: its full segments are hard links in the new backup, or copies where links are not possible.
    pub base: Option<&'a Path>,
    /// Lists the files. Called after the end offsets are fixed, so that what the log refers to is among them.
    pub sources: &'a (dyn Fn() -> Result<Vec<BackupFile>, std::io::Error> + Send + Sync),
    /// What the backup does not hold.
    pub left_out: Vec<LeftOut>,
    /// The size at which a segment is full, in bytes of keys and values before compression; [`SEGMENT_BYTES`](super::SEGMENT_BYTES) except in tests.
    pub segment_bytes: usize,
    /// The version of the program.
    pub version: String,
    /// The current time, RFC 3339.
    pub taken_at: String,
}

/// The result of a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The records of the log at the moment of the backup.
    pub records: u64,
    /// Segments that were written now, and their bytes.
    pub written: u64,
    /// The bytes of the segments that were written now.
    pub bytes_written: u64,
    /// Segments that an earlier backup into the directory wrote.
    pub kept: u64,
    /// Segments that an interrupted backup wrote.
    pub resumed: u64,
    /// Segments that were linked or copied from the older backup.
    pub linked: u64,
    /// The bytes of all segments.
    pub bytes: u64,
    /// The names of the files.
    pub files: Vec<String>,
    /// When the interrupted backup began, if there was one.
    pub interrupted: Option<String>,
}

/// Writes a backup of the log into a directory, or brings the backup that is there up to date. `progress` is called with the records that are done
/// and the total; it returns false to stop.
///
/// # Errors
/// The directory holds something else or cannot be written, the log cannot be read, or the work was stopped. The previous backup in the directory
/// remains complete.
pub async fn back_up(log: &dyn EventLog, plan: Plan<'_>, mut progress: impl FnMut(u64, u64) -> bool + Send) -> Result<Written, Error> {
    let place = BackupDir::open(&plan)?;
    let ends = Ends::read(log, &all_topics()).await?;
    for (dir, manifest) in place.earlier() {
        check_continues(log, dir, manifest, &ends).await?;
    }
    let (total, mut done) = (ends.records(), 0);
    let mut written = Written { records: total, interrupted: place.interrupted.clone(), ..Written::default() };
    let mut manifest = Manifest::new(plan.version, plan.taken_at, ends, plan.left_out);
    for topic in topics::ALL {
        for partition in 0..topic.partitions {
            let end = manifest.ends.of(topic.name, partition);
            let mut from = LogOffset(0);
            while from < end {
                let segment = match place.present(log, topic, partition, from, end, &mut written).await? {
                    Some(segment) => {
                        done += segment.to.since(segment.from);
                        segment
                    }
                    None => {
                        let mut is_stopped = false;
                        let encoded = segment::encode(log, topic, partition, from, end, plan.segment_bytes, |records| {
                            done += records;
                            is_stopped |= !progress(done, total);
                        });
                        let (segment, content) = encoded.await?;
                        if is_stopped {
                            return Err(Error::Stopped);
                        }
                        written.written += 1;
                        written.bytes_written += segment.bytes;
                        place.store(segment.path(), content).await?;
                        segment
                    }
                };
                if !progress(done, total) {
                    return Err(Error::Stopped);
                }
                from = segment.to;
                written.bytes += segment.bytes;
                manifest.segments.push(segment);
            }
        }
    }
    let sources = (plan.sources)().map_err(Error::file(plan.dir))?;
    for source in sources {
        let content = fs::read(&source.path).map_err(Error::file(&source.path))?;
        let entry = FileEntry { name: source.name, bytes: content.len() as u64, sha256: Hash32::of(&content).to_string() };
        place.store(entry.path(), content).await?;
        written.files.push(entry.name.clone());
        manifest.files.push(entry);
    }
    manifest.write(&place.dir)?;
    place.finish(&manifest)?;
    Ok(written)
}

/// Checks that the log has every record of an earlier backup: it must have the last one of each partition.
async fn check_continues(log: &dyn EventLog, dir: &Path, manifest: &Manifest, ends: &Ends) -> Result<(), Error> {
    let other = |reason: String| Error::OtherLog { path: dir.to_owned(), reason };
    for topic in topics::ALL {
        for partition in 0..topic.partitions {
            let Some(last) = manifest.segments_of(topic.name, partition).last() else { continue };
            let (end, place) = (ends.of(topic.name, partition), format!("{}/{partition}", topic.name));
            if end < last.to {
                return Err(other(format!("it has {place} up to offset {}, and this log ends at {end}", last.to)));
            }
            if !is_last_record(log, topic, last).await? {
                return Err(other(format!("it has another record at {place} offset {}", last.to.previous())));
            }
        }
    }
    Ok(())
}

/// Whether the log has the last record of a segment.
pub(super) async fn is_last_record(log: &dyn EventLog, topic: &'static Topic, segment: &Segment) -> Result<bool, Error> {
    let offset = segment.to.previous();
    let found = log.read(topic, segment.partition, offset, 1, 1).await?;
    Ok(found.first().is_some_and(|stored| stored.offset == offset && segment::hash_of(&stored.record).to_string() == segment.last_record))
}

/// The directory of a backup while it is written.
struct BackupDir {
    dir: PathBuf,
    /// The backup that is in the directory.
    previous: Option<Manifest>,
    /// An older backup in another directory.
    base: Option<(PathBuf, Manifest)>,
    /// When an interrupted backup into this directory began.
    interrupted: Option<String>,
    segment_bytes: usize,
    /// Locks the directory while it is open.
    _lock: File,
}

impl BackupDir {
    fn open(plan: &Plan<'_>) -> Result<Self, Error> {
        let Plan { dir, base, .. } = *plan;
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(Error::file(dir))?;
        let is_known = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).is_some_and(|name| CONTENTS.contains(&name));
        let found = entries(dir).map_err(Error::file(dir))?;
        let is_backup = [UNFINISHED, "manifest"].iter().any(|name| dir.join(name).exists());
        if !found.iter().all(is_known) || (!is_backup && found.iter().any(|path| path.file_name().is_some_and(|name| name != "lock"))) {
            return Err(Error::OtherFiles { path: dir.to_owned() });
        }
        let lock_path = dir.join("lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&lock_path).map_err(Error::file(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::Busy { path: dir.to_owned() }),
            Err(TryLockError::Error(error)) => return Err(Error::file(&lock_path)(error)),
        }
        let previous = Manifest::read(dir)?;
        let base = match base {
            None => None,
            Some(base) => {
                let manifest = Manifest::read(base)?;
                let reason = || "it has no manifest".to_owned();
                Some((base.to_owned(), manifest.ok_or_else(|| Error::NoBackup { path: base.to_owned(), reason: reason() })?))
            }
        };
        let unfinished = dir.join(UNFINISHED);
        let interrupted = durable_file::read_text(&unfinished).map_err(Error::file(&unfinished))?;
        let interrupted = interrupted.map(|text| text.trim().to_owned());
        if interrupted.is_none() {
            durable_file::replace(&unfinished, format!("{}\n", plan.taken_at).as_bytes(), 0o600).map_err(Error::file(&unfinished))?;
        }
        Ok(Self { dir: dir.to_owned(), previous, base, interrupted, segment_bytes: plan.segment_bytes, _lock: lock })
    }

    /// The earlier backups that this one builds on.
    fn earlier(&self) -> impl Iterator<Item = (&Path, &Manifest)> {
        let base = self.base.as_ref().map(|(dir, manifest)| (dir.as_path(), manifest));
        self.previous.as_ref().map(|manifest| (self.dir.as_path(), manifest)).into_iter().chain(base)
    }

    /// Finds a segment that begins at an offset and need not be written again.
    async fn present(
        &self,
        log: &dyn EventLog,
        topic: &'static Topic,
        partition: u32,
        from: LogOffset,
        end: LogOffset,
        written: &mut Written,
    ) -> Result<Option<Segment>, Error> {
        let is_usable = |segment: &&Segment| segment.from == from && (segment.to == end || (segment.to < end && segment.sealed));
        let find = |manifest: &Manifest| manifest.segments_of(topic.name, partition).find(is_usable).cloned();
        if let Some(segment) = self.previous.as_ref().and_then(find)
            && has_size(&self.dir.join(segment.path()), segment.bytes)
        {
            written.kept += 1;
            return Ok(Some(segment));
        }
        if let Some((base, manifest)) = &self.base
            && let Some(segment) = find(manifest)
            && has_size(&base.join(segment.path()), segment.bytes)
        {
            self.link(base, &segment).await?;
            written.linked += 1;
            return Ok(Some(segment));
        }
        if self.interrupted.is_some()
            && let Some(segment) = self.completed(topic, partition, from, end).await?
            && is_last_record(log, topic, &segment).await?
        {
            written.resumed += 1;
            return Ok(Some(segment));
        }
        Ok(None)
    }

    /// Finds a segment that an interrupted backup completed. It is in no manifest, so it is read.
    async fn completed(&self, topic: &'static Topic, partition: u32, from: LogOffset, end: LogOffset) -> Result<Option<Segment>, Error> {
        let dir = self.dir.join(segment_directory(topic.name, partition));
        let start = format!("{:020}-", from.0);
        let paths = entries(&dir).map_err(Error::file(&dir))?;
        let to_of = |path: &PathBuf| {
            let name = path.file_name()?.to_str()?.strip_prefix(&start)?.strip_suffix(".avro")?.to_owned();
            name.parse::<LogOffset>().ok()
        };
        let found = paths.iter().filter_map(|path| Some((path.clone(), to_of(path)?)));
        let Some((path, to)) = found.filter(|(_, to)| *to > from && *to <= end).max_by_key(|(_, to)| *to) else { return Ok(None) };
        let segment_bytes = self.segment_bytes;
        blocking(move || {
            let content = fs::read(&path).map_err(Error::file(&path))?;
            let (bytes, sha256) = (content.len() as u64, Hash32::of(&content).to_string());
            let records = match segment::decode(&path, content, topic, partition, from, to) {
                Ok(records) => records,
                // It is written again.
                Err(Error::Damaged { .. }) => return Ok(None),
                Err(error) => return Err(error),
            };
            let size: usize = records.iter().map(|record| record.key.len() + record.value.len()).sum();
            let (sealed, last) = (size >= segment_bytes, records.last().map_or(Hash32::ZERO, segment::hash_of));
            let topic = topic.name.to_owned();
            let segment = Segment { topic, partition, from, to, bytes, sha256, last_record: last.to_string(), sealed };
            Ok((sealed || to == end).then_some(segment))
        })
        .await
    }

    /// Links a segment of the older backup into this one; copies it where that is not possible.
    async fn link(&self, base: &Path, segment: &Segment) -> Result<(), Error> {
        let (from, path) = (base.join(segment.path()), self.dir.join(segment.path()));
        create_parent(&path)?;
        // An interrupted backup may have written the same records, but not the same bytes: each file has a random marker.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::file(&path)(error)),
            _ => {}
        }
        match fs::hard_link(&from, &path) {
            Ok(()) => durable_file::sync_directory_of(&path).map_err(Error::file(&path)),
            Err(_) => {
                let (bytes, sha256) = (segment.bytes, segment.sha256.clone());
                let content = blocking(move || read_verified(&from, bytes, &sha256)).await?;
                self.store(segment.path(), content).await
            }
        }
    }

    /// Stores a file durably, unless it is there with the same content.
    async fn store(&self, relative: PathBuf, content: Vec<u8>) -> Result<(), Error> {
        let path = self.dir.join(relative);
        blocking(move || {
            create_parent(&path)?;
            if has_size(&path, content.len() as u64) && fs::read(&path).is_ok_and(|found| found == content) {
                return Ok(());
            }
            durable_file::replace(&path, &content, 0o600).map(drop).map_err(Error::file(&path))
        })
        .await
    }

    /// Removes what the new manifest does not name, and the file that says that a backup is unfinished.
    fn finish(&self, manifest: &Manifest) -> Result<(), Error> {
        let segments = manifest.segments.iter().map(|segment| self.dir.join(segment.path()));
        let named: HashSet<PathBuf> = segments.chain(manifest.files.iter().map(|file| self.dir.join(file.path()))).collect();
        let mut directories = vec![self.dir.join("log"), self.dir.join("files")];
        while let Some(dir) = directories.pop() {
            for path in entries(&dir).map_err(Error::file(&dir))? {
                if path.is_dir() {
                    directories.push(path);
                } else if !named.contains(&path) {
                    fs::remove_file(&path).map_err(Error::file(&path))?;
                }
            }
        }
        let unfinished = self.dir.join(UNFINISHED);
        fs::remove_file(&unfinished).map_err(Error::file(&unfinished))
    }
}

fn has_size(path: &Path, bytes: u64) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() == bytes)
}

fn create_parent(path: &Path) -> Result<(), Error> {
    let Some(parent) = path.parent() else { return Ok(()) };
    DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(Error::file(parent))
}
