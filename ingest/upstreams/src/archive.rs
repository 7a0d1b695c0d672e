//! Reads one file of a zip archive on disk as a stream, with bounded memory.
//!
//! The archive's directory is read first (zip64 too), so an archive whose end is missing is refused before any record is read. A file is
//! refused when it says that it unpacks to too much, and reading ends with an error as soon as it does. Its length and checksum are compared at
//! its end.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use crc32fast::Hasher;
use flate2::read::DeflateDecoder;
use zip::CompressionMethod;
use zip::ZipArchive;

/// The first bytes of a zip archive with at least one file.
pub(crate) const ZIP_MAGIC: &[u8] = b"PK\x03\x04";
/// The most files in an archive.
const FILES_MAX: u64 = 1_000;
/// A file may unpack to at most this many times its packed length, plus [`UNPACKED_BYTES_ALLOWED`]. The register's files have a ratio of 8 to 20.
const RATIO_MAX: u64 = 100;
/// Bytes that a file may unpack to whatever its packed length.
const UNPACKED_BYTES_ALLOWED: u64 = 16 << 20;
/// The length of the record that says where a zip64 directory ends.
const LOCATOR_BYTES: usize = 20;
/// The length of the end of an archive: that record, if there is one, and the end of the directory.
const END_BYTES: usize = LOCATOR_BYTES + 22;
/// The size of the buffers for packed and for unpacked bytes.
const BUFFER_BYTES: usize = 256 << 10;

/// One file of an archive, unpacked while it is read.
pub(crate) struct ArchivedFile {
    source: PackedBytes,
    checksum: Hasher,
    expected_checksum: u32,
    /// The length that the directory says.
    length: u64,
    /// How many unpacked bytes have been read.
    read: u64,
    packed_length: u64,
}

enum PackedBytes {
    Stored(io::Take<BufReader<File>>),
    Deflated(DeflateDecoder<io::Take<BufReader<File>>>),
}

impl ArchivedFile {
    /// Opens the only file of an archive whose name has an ending (`.xml`), or the only file with an empty one. `bytes_max` is the most that it may
    /// unpack to.
    ///
    /// # Errors
    /// Why the archive is refused.
    pub(crate) fn open(archive: File, ending: &str, bytes_max: u64) -> Result<Self, String> {
        let kind = if ending.is_empty() { "file" } else { ending };
        let broken = |error: zip::result::ZipError| format!("not a whole zip archive: {error}");
        let unreadable = |error: io::Error| format!("not a whole zip archive: {error}");
        let mut reader = archive.try_clone().map_err(unreadable)?;
        let files = count_files(&mut reader).map_err(unreadable)?;
        if files > FILES_MAX {
            return Err(format!("{files} files in the archive, more than {FILES_MAX}"));
        }
        let mut directory = ZipArchive::new(BufReader::new(reader)).map_err(broken)?;
        let mut found = None;
        for index in 0..directory.len() {
            let file = directory.by_index_raw(index).map_err(broken)?;
            if !file.is_file() || !file.name_raw().to_ascii_lowercase().ends_with(ending.as_bytes()) {
                continue;
            }
            if found.is_some() {
                return Err(format!("more than one {kind} in the archive"));
            }
            if file.encrypted() {
                return Err(format!("the {kind} is encrypted"));
            }
            let start = file.data_start().ok_or_else(|| format!("the {kind} has no data"))?;
            found = Some((start, file.compressed_size(), file.size(), file.crc32(), file.compression()));
        }
        let (start, packed_length, length, expected_checksum, compression) = found.ok_or_else(|| format!("no {kind} in the archive"))?;
        if length > bytes_max.min(unpacked_max(packed_length)) {
            return Err(format!("the {kind} unpacks from {packed_length} to {length} bytes, more than is accepted"));
        }
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, archive);
        reader.seek(SeekFrom::Start(start)).map_err(|error| format!("not readable: {error}"))?;
        let packed = reader.take(packed_length);
        let source = match compression {
            CompressionMethod::Stored => PackedBytes::Stored(packed),
            CompressionMethod::Deflated => PackedBytes::Deflated(DeflateDecoder::new(packed)),
            other => return Err(format!("the {kind} is packed with {other}")),
        };
        Ok(Self { source, checksum: Hasher::new(), expected_checksum, length, read: 0, packed_length })
    }

    /// Returns how many packed bytes have been read.
    pub(crate) fn packed_read(&self) -> u64 {
        let left = match &self.source {
            PackedBytes::Stored(packed) => packed.limit(),
            PackedBytes::Deflated(decoder) => decoder.get_ref().limit(),
        };
        self.packed_length.saturating_sub(left)
    }
}

/// Reads how many files the directory of an archive holds, before memory is allocated for them. Refuses an archive that does not end with its directory.
fn count_files(archive: &mut File) -> io::Result<u64> {
    let damaged = |reason: &str| io::Error::new(io::ErrorKind::InvalidData, reason.to_owned());
    let mut end = [0; END_BYTES];
    archive.seek(SeekFrom::End(-(END_BYTES as i64))).map_err(|_| damaged("it is too short"))?;
    archive.read_exact(&mut end)?;
    let (locator, end) = end.split_at(LOCATOR_BYTES);
    let number = |bytes: &[u8], at: usize, length: usize| {
        let bytes = bytes.get(at..at + length).unwrap_or_default();
        bytes.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
    };
    if !end.starts_with(b"PK\x05\x06") || number(end, 20, 2) != 0 {
        return Err(damaged("it does not end with its directory"));
    }
    let files = number(end, 10, 2);
    if !locator.starts_with(b"PK\x06\x07") {
        return Ok(files);
    }
    let mut end64 = [0; 56];
    archive.seek(SeekFrom::Start(number(locator, 8, 8)))?;
    archive.read_exact(&mut end64)?;
    if !end64.starts_with(b"PK\x06\x06") {
        return Err(damaged("its zip64 directory is missing"));
    }
    Ok(number(&end64, 32, 8))
}

/// The most bytes that a file of a packed length may unpack to.
fn unpacked_max(packed_length: u64) -> u64 {
    packed_length.saturating_mul(RATIO_MAX).saturating_add(UNPACKED_BYTES_ALLOWED)
}

impl Read for ArchivedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let read = match &mut self.source {
            PackedBytes::Stored(packed) => packed.read(buffer)?,
            PackedBytes::Deflated(decoder) => decoder.read(buffer)?,
        };
        let damaged = |reason: String| Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        if read == 0 {
            if self.read != self.length {
                return damaged(format!("the file ends after {} of {} bytes", self.read, self.length));
            }
            if self.checksum.clone().finalize() != self.expected_checksum {
                return damaged("the checksum of the file is wrong".to_owned());
            }
            return Ok(0);
        }
        self.read += read as u64;
        // The length was checked when the archive was opened, so this bounds a file that unpacks to more than it says.
        if self.read > self.length {
            return damaged(format!("the file unpacks to more than the {} bytes that it says", self.length));
        }
        self.checksum.update(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use zip::write::{SimpleFileOptions, ZipWriter};

    use super::*;

    fn packed(files: &[(&str, &[u8])], options: SimpleFileOptions) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in files {
            writer.start_file(*name, options).unwrap();
            writer.write_all(content).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn on_disk(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn read(bytes: &[u8]) -> Result<String, String> {
        let mut file = ArchivedFile::open(on_disk(bytes), ".xml", 1 << 30)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|error| error.to_string())?;
        assert!(file.packed_read() > 0);
        Ok(text)
    }

    fn deflated() -> SimpleFileOptions {
        SimpleFileOptions::default().compression_method(CompressionMethod::Deflated)
    }

    /// Proves that packed, stored and zip64 files are read, and that other files of the archive are ignored.
    #[test]
    fn reads() {
        for options in [deflated(), deflated().large_file(true), SimpleFileOptions::default().compression_method(CompressionMethod::Stored)]
        {
            let archive = packed(&[("readme.txt", b"no"), ("apc260101.XML", b"<a/>")], options);
            assert_eq!(read(&archive).unwrap(), "<a/>");
        }
    }

    /// Proves that damaged, foreign and bomb-like archives are refused with the reason.
    #[test]
    fn refuses() {
        let content = (0..100_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect::<Vec<u8>>();
        let whole = packed(&[("a.xml", &content)], deflated());
        let cut = &whole[..whole.len() / 2];
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 1;
        let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        let mut wrong_checksum = packed(&[("a.xml", b"<one/>")], stored);
        let at = wrong_checksum.windows(6).position(|bytes| bytes == b"<one/>").unwrap();
        wrong_checksum[at + 1] = b'x';
        let many: Vec<(String, &[u8])> = (0..=FILES_MAX).map(|n| (format!("{n}.xml"), &b"x"[..])).collect();
        let many: Vec<(&str, &[u8])> = many.iter().map(|(name, content)| (name.as_str(), *content)).collect();
        for (archive, reason) in [
            (cut, "not a whole zip"),
            (b"<!DOCTYPE html><html></html>".as_slice(), "not a whole zip"),
            (&packed(&[("a.txt", b"x")], deflated()), "no .xml"),
            (&packed(&[("a.xml", b"x"), ("b.xml", b"x")], deflated()), "more than one .xml"),
            (&packed(&many, stored), "1001 files"),
            (&packed(&[("a.xml", &vec![b' '; 64 << 20])], deflated()), "more than is accepted"),
            (&wrong_checksum, "the checksum of the file is wrong"),
        ] {
            let error = read(archive).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        assert!(read(&flipped).is_err());
    }

    /// Proves that a file that unpacks to more than the directory says is refused while it is read.
    #[test]
    fn refuses_a_wrong_length() {
        let mut archive =
            packed(&[("a.xml", b"<one>text</one>")], SimpleFileOptions::default().compression_method(CompressionMethod::Stored));
        // The unpacked length is 24 bytes after the signature in the directory's header of the file.
        let header = archive.windows(4).rposition(|bytes| bytes == b"PK\x01\x02").unwrap();
        archive[header + 24] -= 5;
        let error = read(&archive).unwrap_err();
        assert!(error.contains("more than the 10 bytes"), "{error}");
    }
}
