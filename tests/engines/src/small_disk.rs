//! A file system of a few MiB in memory, for tests of a full disk. Mounting it needs the rights of root.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::unique;

/// The file that fills the disk.
const FILLER: &str = "filler";
/// How much is written at a time.
const PIECES: [usize; 2] = [1 << 16, 1 << 10];

/// A mounted file system. It is unmounted when dropped.
#[derive(Debug)]
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts a file system of so many MiB in a new directory.
    ///
    /// # Errors
    /// The reason why none can be mounted here.
    pub fn mount(mib: u32) -> Result<Self, String> {
        let path = std::env::temp_dir().join(unique("small_disk"));
        fs::create_dir(&path).map_err(|error| error.to_string())?;
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &format!("size={mib}m,mode=0700"), "tmpfs"]).arg(&path);
        let mounted = command.output().map_err(|error| format!("mount cannot be run: {error}"));
        let failed = match mounted {
            Ok(output) if output.status.success() => return Ok(Self { path }),
            Ok(output) => format!("a small file system cannot be mounted: {}", String::from_utf8_lossy(&output.stderr).trim()),
            Err(reason) => reason,
        };
        fs::remove_dir(&path).map_err(|error| error.to_string())?;
        Err(failed)
    }

    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what measures the free bytes of a directory: right while the flag is set, otherwise far too many, as if another process took all space
    /// between the measurement and the write.
    pub fn measuring(is_right: &Arc<AtomicBool>) -> impl Fn(&Path) -> io::Result<u64> + Send + Sync + use<> {
        let is_right = Arc::clone(is_right);
        move |dir| {
            let stat = rustix::fs::statvfs(dir)?;
            Ok(if is_right.load(Ordering::Relaxed) { stat.f_bavail * stat.f_frsize } else { 1 << 40 })
        }
    }

    /// Takes all free space.
    ///
    /// # Errors
    /// The system's error if a write fails for another reason than a full disk.
    pub fn fill(&self) -> io::Result<()> {
        let mut filler = File::options().create(true).append(true).open(self.path.join(FILLER))?;
        for bytes in PIECES {
            loop {
                match filler.write(&vec![1; bytes]) {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::StorageFull => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Frees the space that [`Self::fill`] took.
    ///
    /// # Errors
    /// The system's error if the file cannot be removed.
    pub fn free(&self) -> io::Result<()> {
        fs::remove_file(self.path.join(FILLER))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, so that a test that failed with open files leaves nothing.
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
        let _ = fs::remove_dir(&self.path);
    }
}
