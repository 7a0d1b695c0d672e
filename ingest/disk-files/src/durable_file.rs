//! Writes small files so that a crash leaves the old content or the new content, and nothing in between.

use std::fs::{self, File};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Reads a file; `None` if there is none.
///
/// # Errors
/// When the file cannot be read.
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    if_present(fs::read(path))
}

/// Reads a text; `None` if there is no such file.
///
/// # Errors
/// When the file cannot be read, or is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<Option<String>> {
    if_present(fs::read_to_string(path))
}

fn if_present<T>(content: io::Result<T>) -> io::Result<Option<T>> {
    match content {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        content => content.map(Some),
    }
}

/// Replaces a file, or creates it with the given mode, and returns it opened for writing. The content is durable when this returns. Only one caller
/// at a time may replace a file.
///
/// # Errors
/// When the file or its directory cannot be written.
pub fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<File> {
    let temporary = with_suffix(path, "new");
    let mut file = File::options().create(true).truncate(true).write(true).mode(mode).open(&temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    sync_directory_of(path)?;
    Ok(file)
}

/// Creates a file with the given mode, unless it exists. If several processes do this at the same time, one of them creates the file, and all of
/// them find it complete. The content is durable when this returns.
///
/// # Errors
/// When the file or its directory cannot be written.
pub fn create_if_absent(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    // A random name, because processes of several machines may share the directory. Each `RandomState` has random keys.
    let temporary = with_suffix(path, &format!("{:016x}.new", RandomState::new().build_hasher().finish()));
    let created = write_and_link(&temporary, path, content, mode);
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => return created.and(Err(error)),
        _ => {}
    }
    created?;
    sync_directory_of(path)
}

/// Writes a temporary file and links it to the path, which fails if the path exists.
fn write_and_link(temporary: &Path, path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut file = File::options().create_new(true).write(true).mode(mode).open(temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    match fs::hard_link(temporary, path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    }
}

/// Adds a suffix to the name of a file: `ends` becomes `ends.new`.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}

/// Syncs the directory of a file: a rename or link is durable only after that.
///
/// # Errors
/// When the directory cannot be opened or synced.
pub fn sync_directory_of(path: &Path) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Proves that a file that is missing is no error, and that one that cannot be read is.
    #[test]
    fn missing_files_are_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        assert_eq!((read(&path).unwrap(), read_text(&path).unwrap()), (None, None));
        fs::write(&path, "one").unwrap();
        assert_eq!((read(&path).unwrap(), read_text(&path).unwrap()), (Some(b"one".to_vec()), Some("one".to_owned())));
        fs::write(&path, [0xff]).unwrap();
        assert!(read_text(&path).is_err() && read(dir.path()).is_err());
    }

    /// Proves that a file is replaced as a whole, that an existing file is not created again, and that no temporary file remains.
    #[test]
    fn files_are_replaced_and_created() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        create_if_absent(&path, b"first", 0o600).unwrap();
        create_if_absent(&path, b"second", 0o600).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        drop(replace(&path, b"third", 0o600).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"third");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
