//! The manifest: what a backup consists of. Its first line holds the SHA-256 of the rest, which is JSON.

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

use disk_files::durable_file;
use proofs::hash::Hash32;
use schemas::position::LogOffset;
use schemas::topics;
use serde::{Deserialize, Serialize};

use super::Error;
use crate::transfer::Ends;

/// The name of the manifest.
const MANIFEST: &str = "manifest";
/// The format that this version writes and reads.
const FORMAT: u32 = 1;
/// What the first line begins with.
const FIRST_LINE: &str = "highwater-backup sha256:";

/// The segment of one partition: the records from `from` below `to`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Segment {
    pub(super) topic: String,
    pub(super) partition: u32,
    pub(super) from: LogOffset,
    pub(super) to: LogOffset,
    /// The size of the file.
    pub(super) bytes: u64,
    /// The SHA-256 of the file, in hex.
    pub(super) sha256: String,
    /// The SHA-256 of the last record, in hex: shows whether a log continues this backup.
    pub(super) last_record: String,
    /// Whether the segment has its full size, so that it never grows.
    pub(super) sealed: bool,
}

impl Segment {
    /// The path of the segment below the backup's directory.
    pub(super) fn path(&self) -> PathBuf {
        segment_directory(&self.topic, self.partition).join(format!("{:020}-{:020}.avro", self.from.0, self.to.0))
    }
}

/// The directory of a partition's segments, below the backup's directory.
pub(super) fn segment_directory(topic: &str, partition: u32) -> PathBuf {
    Path::new("log").join(topic).join(partition.to_string())
}

/// A file that the backup holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileEntry {
    /// The name of the file: its path below the data directory.
    pub name: String,
    /// The size of the file.
    pub bytes: u64,
    /// The SHA-256 of the file, in hex. It is also the name of the copy.
    pub sha256: String,
}

impl FileEntry {
    /// The path of the copy below the backup's directory.
    pub(super) fn path(&self) -> PathBuf {
        Path::new("files").join(&self.sha256)
    }
}

/// Something that the backup does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeftOut {
    /// What is left out.
    pub what: String,
    /// Why, and what a restore needs instead.
    pub reason: String,
}

/// The content of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) format: u32,
    /// The version of the program that wrote it.
    pub(super) version: String,
    /// The moment of the backup, RFC 3339.
    pub(super) taken_at: String,
    /// The end offset of each partition.
    pub(super) ends: Ends,
    pub(super) segments: Vec<Segment>,
    pub(super) files: Vec<FileEntry>,
    pub(super) left_out: Vec<LeftOut>,
}

/// The part of a manifest that every format has.
#[derive(Deserialize)]
struct AnyFormat {
    format: u32,
    #[serde(default)]
    version: String,
}

/// Whether a directory has a manifest, of any format, damaged or not.
pub(super) fn exists(dir: &Path) -> bool {
    let mut first = [0; FIRST_LINE.len()];
    let read = fs::File::open(dir.join(MANIFEST)).and_then(|mut file| file.read_exact(&mut first));
    read.is_ok() && first.as_slice() == FIRST_LINE.as_bytes()
}

impl Manifest {
    pub(super) fn new(version: String, taken_at: String, ends: Ends, left_out: Vec<LeftOut>) -> Self {
        Self { format: FORMAT, version, taken_at, ends, segments: Vec::new(), files: Vec::new(), left_out }
    }

    /// Reads the manifest of a directory; `None` if there is none.
    ///
    /// # Errors
    /// It is damaged, of another format, or cannot be read.
    pub(super) fn read(dir: &Path) -> Result<Option<Self>, Error> {
        let path = dir.join(MANIFEST);
        let Some(text) = durable_file::read(&path).map_err(Error::file(&path))? else { return Ok(None) };
        let damaged = |reason: &str| Error::damaged(&path, reason);
        let end = text.iter().position(|byte| *byte == b'\n').ok_or_else(|| damaged("it has no checksum"))?;
        let (first, json) = (text.get(..end).unwrap_or_default(), text.get(end + 1..).unwrap_or_default());
        let checksum = std::str::from_utf8(first).ok().and_then(|line| Hash32::from_hex(line.strip_prefix(FIRST_LINE)?));
        if checksum.ok_or_else(|| damaged("it has no checksum"))? != Hash32::of(json) {
            return Err(damaged("it differs from its checksum"));
        }
        let unreadable = |error: serde_json::Error| Error::damaged(&path, error.to_string());
        let AnyFormat { format, version } = serde_json::from_slice(json).map_err(unreadable)?;
        if format != FORMAT {
            return Err(Error::Format { path, found: format, known: FORMAT, version });
        }
        let manifest: Self = serde_json::from_slice(json).map_err(unreadable)?;
        manifest.check().map_err(|reason| damaged(&reason))?;
        Ok(Some(manifest))
    }

    /// Replaces the manifest of a directory.
    pub(super) fn write(&self, dir: &Path) -> Result<(), Error> {
        let path = dir.join(MANIFEST);
        let mut json = serde_json::to_vec_pretty(self).map_err(|error| Error::file(&path)(error.into()))?;
        json.push(b'\n');
        let text = [format!("{FIRST_LINE}{}\n", Hash32::of(&json)).as_bytes(), &json].concat();
        durable_file::replace(&path, &text, 0o600).map(drop).map_err(Error::file(&path))
    }

    /// The segments of one partition, oldest first.
    pub(super) fn segments_of(&self, topic: &str, partition: u32) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(move |segment| segment.topic == topic && segment.partition == partition)
    }

    /// Checks that the segments cover every partition up to its end, and that no name leads out of a directory.
    fn check(&self) -> Result<(), String> {
        for topic in topics::ALL {
            for partition in 0..topic.partitions {
                let mut next = LogOffset(0);
                for segment in self.segments_of(topic.name, partition) {
                    if segment.from != next || segment.to <= segment.from {
                        return Err(format!("its segments of {}/{partition} are not consecutive at offset {next}", topic.name));
                    }
                    next = segment.to;
                }
                let end = self.ends.of(topic.name, partition);
                if next != end {
                    return Err(format!("its segments of {}/{partition} end at offset {next} and not at {end}", topic.name));
                }
            }
        }
        for segment in &self.segments {
            if topics::by_name(&segment.topic).is_none_or(|topic| segment.partition >= topic.partitions) {
                return Err(format!("it has the topic {}/{}, which this version does not know", segment.topic, segment.partition));
            }
        }
        for file in &self.files {
            let is_below = |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_)));
            if file.name.is_empty() || !is_below(Path::new(&file.name)) || Hash32::from_hex(&file.sha256).is_none() {
                return Err(format!("it has a file with the name {:?}", file.name));
            }
        }
        Ok(())
    }
}

/// Reads a file whose size and checksum are known. Blocks.
pub(super) fn read_verified(path: &Path, bytes: u64, sha256: &str) -> Result<Vec<u8>, Error> {
    let found = match fs::metadata(path) {
        Ok(found) => found.len(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(Error::damaged(path, "it is missing")),
        Err(error) => return Err(Error::file(path)(error)),
    };
    // The size is compared first: a file of another size is not read into memory.
    if found != bytes {
        return Err(Error::damaged(path, format!("it has {found} bytes and should have {bytes}")));
    }
    let content = fs::read(path).map_err(Error::file(path))?;
    if Hash32::of(&content).to_string() == sha256 { Ok(content) } else { Err(Error::damaged(path, "it differs from its checksum")) }
}
