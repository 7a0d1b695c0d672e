//! The file `format` in the log's directory: the format of its files and the version of the program that wrote it, as text. An older version of the program
//! refuses a newer format, instead of taking what it cannot read for damage.

use std::fs;
use std::path::Path;

use disk_files::durable_file;

use super::store_error::unavailable;
use crate::Error;

/// The format that this version writes. Format 2 has compressed values; the values of format 1 are read as they are.
const FORMAT: u32 = 2;
/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Refuses a directory of a newer format. Logs from before the file have format 1.
pub(super) fn check(dir: &Path) -> Result<(), Error> {
    let path = dir.join("format");
    let text =
        durable_file::read_text(&path).map_err(|error| unavailable(format!("the log's file {} cannot be read", path.display()), error))?;
    let Some(text) = text else { return Ok(()) };
    let mut words = text.split_whitespace();
    let what = match (words.next().map(str::parse::<u32>), words.next()) {
        (Some(Ok(format)), _) if format <= FORMAT => return Ok(()),
        (Some(Ok(format)), Some(version)) => format!(
            "the log in {} has format {format}, which version {version} of this program wrote; this is version {VERSION}, which reads format {FORMAT} and \
             older ones: start version {version} or a newer one",
            dir.display()
        ),
        _ => format!(
            "the log's file {} is damaged: it should be \"{FORMAT} {VERSION}\"; remove the file if this version wrote the log, otherwise restore the log from a copy",
            path.display()
        ),
    };
    Err(Error::Unavailable { what, source: None })
}

/// Writes the file, unless it names this format. Call it before anything of this format is written.
pub(super) fn record(dir: &Path) -> Result<(), Error> {
    let path = dir.join("format");
    let is_current = |text: String| text.split_whitespace().next() == Some(FORMAT.to_string().as_str());
    if fs::read_to_string(&path).is_ok_and(is_current) {
        return Ok(());
    }
    let written = durable_file::replace(&path, format!("{FORMAT} {VERSION}\n").as_bytes(), 0o666);
    written.map(drop).map_err(|error| unavailable(format!("the log's file {} cannot be written", path.display()), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a newer format is refused with both versions, that a file that cannot be read is refused with its name, that the own format and no
    /// file pass, and that an older format is replaced by the own one.
    #[test]
    fn newer_formats_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        check(dir.path()).unwrap();
        record(dir.path()).unwrap();
        check(dir.path()).unwrap();
        let own = fs::read_to_string(dir.path().join("format")).unwrap();
        assert_eq!(own, format!("{FORMAT} {VERSION}\n"));
        fs::write(dir.path().join("format"), "1 0.0.1\n").unwrap();
        check(dir.path()).unwrap();
        record(dir.path()).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("format")).unwrap(), own);
        let of_own_format = format!("{FORMAT} 0.0.2\n");
        fs::write(dir.path().join("format"), &of_own_format).unwrap();
        record(dir.path()).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("format")).unwrap(), of_own_format, "a file of this format is kept");
        fs::write(dir.path().join("format"), "3 9.8.7\n").unwrap();
        let message = check(dir.path()).unwrap_err().to_string();
        for part in ["has format 3", "version 9.8.7", &format!("this is version {VERSION}"), &dir.path().display().to_string()] {
            assert!(message.contains(part), "{message}");
        }
        for damaged in ["", "x", "9"] {
            fs::write(dir.path().join("format"), damaged).unwrap();
            let message = check(dir.path()).unwrap_err().to_string();
            assert!(message.contains("format is damaged"), "{message}");
        }
    }
}
