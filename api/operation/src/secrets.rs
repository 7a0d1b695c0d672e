//! The master key and what is derived from it.
//!
//! Promises: one file of 32 random bytes in hex, made at first start, readable by its owner only; every other secret is derived from it
//! by purpose and generation, so that nodes that share the file share them all. No secret is in `Debug` output or in an error.

use std::fmt;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// A keyed hash, ready to take what it is to hash.
pub type Keyed = Hmac<Sha256>;

/// Generation of the cursor key that new cursors are made with.
pub const CURSOR_GENERATION: u8 = 1;

/// Why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read or made.
    #[error("the key file {path} cannot be {verb}")]
    File {
        /// The file.
        path: PathBuf,
        /// What was tried: `read`, `made`.
        verb: &'static str,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// Others than its owner may read the file.
    #[error("the key file {path} has mode {mode:04o}: others may read it; set it to 0600, and mint a new one if they did")]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The file holds something else.
    #[error("the key file {path} does not hold 64 hex digits")]
    Malformed {
        /// The file.
        path: PathBuf,
    },
    /// The hash function refused the key, which it never does.
    #[error("a key cannot be derived")]
    Derive(#[source] hmac::digest::InvalidLength),
}

/// The master key, and the keys in constant use.
#[derive(Clone)]
pub struct Secrets {
    master: Keyed,
    cursor: Keyed,
    lookup: Keyed,
    email: Keyed,
    repeat: Keyed,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(…)")
    }
}

impl Secrets {
    /// Reads the master key, making the file if there is none. Several processes may start at once: all get the same key.
    ///
    /// # Errors
    /// When the file cannot be read or made, holds something else, or may be read by others than its owner.
    pub fn load_or_create(path: &Path) -> Result<Self, Error> {
        Self::from_master(&seed(path)?)
    }

    /// The secrets that follow from a master key.
    ///
    /// # Errors
    /// Never, in fact: the hash function takes keys of any length.
    pub fn from_master(master: &[u8; 32]) -> Result<Self, Error> {
        let master = Keyed::new_from_slice(master).map_err(Error::Derive)?;
        let derive = |purpose: &str| Keyed::new_from_slice(&derived(&master, purpose)).map_err(Error::Derive);
        Ok(Self {
            cursor: derive(&format!("cursor/{CURSOR_GENERATION}"))?,
            lookup: derive("lookup/1")?,
            email: derive("email/1")?,
            repeat: derive("repeat/1")?,
            master,
        })
    }

    /// The key for a purpose and generation, `webhook/7`.
    #[must_use]
    pub fn derive(&self, purpose: &str, generation: u32) -> [u8; 32] {
        derived(&self.master, &format!("{purpose}/{generation}"))
    }

    /// The cursor key of a generation; `None` for one that never was.
    pub fn cursor(&self, generation: u8) -> Option<Keyed> {
        (generation == CURSOR_GENERATION).then(|| self.cursor.clone())
    }

    /// The hash under which an API key is looked up.
    pub fn lookup(&self, api_key: &str) -> [u8; 32] {
        keyed(&self.lookup, &[api_key.as_bytes()])
    }

    /// The hash that stands for an e-mail address.
    pub fn email(&self, email: &str) -> [u8; 32] {
        keyed(&self.email, &[email.as_bytes()])
    }

    /// What a repeated request gives again.
    pub fn repeat(&self, parts: &[&[u8]]) -> [u8; 32] {
        keyed(&self.repeat, parts)
    }
}

/// The 32 random bytes in a key file, which is made if there is none. Several processes may start at once: all get the same.
///
/// # Errors
/// When the file cannot be read or made, holds something else, or may be read by others than its owner.
pub fn seed(path: &Path) -> Result<[u8; 32], Error> {
    let file_error = |verb| move |source| Error::File { path: path.to_owned(), verb, source };
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            create(path).map_err(file_error("made"))?;
            std::fs::read_to_string(path).map_err(file_error("read"))?
        }
        Err(source) => return Err(Error::File { path: path.to_owned(), verb: "read", source }),
    };
    let mode = std::fs::metadata(path).map_err(file_error("read"))?.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(Error::Exposed { path: path.to_owned(), mode });
    }
    let seed = schemas::hash::Hash32::from_hex(text.trim()).ok_or_else(|| Error::Malformed { path: path.to_owned() })?;
    Ok(seed.0)
}

/// The keyed hash of parts, each preceded by its length.
fn keyed(key: &Keyed, parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = key.clone();
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

fn derived(master: &Keyed, purpose: &str) -> [u8; 32] {
    let mut mac = master.clone();
    mac.update(purpose.as_bytes());
    mac.finalize().into_bytes().into()
}

/// Makes the file whole or not at all: a process that starts beside finds either no file or all of it.
fn create(path: &Path) -> std::io::Result<()> {
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        std::fs::create_dir_all(dir)?;
    }
    let mut made = path.as_os_str().to_owned();
    made.push(format!(".{:016x}", rand::random::<u64>()));
    let made = PathBuf::from(made);
    let written = (|| {
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&made)?;
        file.write_all(schemas::hash::hex(&rand::random::<[u8; 32]>()).as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        match std::fs::hard_link(&made, path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    })();
    std::fs::remove_file(&made).or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the file is made once, with mode 0600, and gives the same secrets again; that purposes and generations differ.
    #[test]
    fn made_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sub/master.key");
        let first = Secrets::load_or_create(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let second = Secrets::load_or_create(&path).unwrap();
        assert_eq!(first.derive("webhook", 1), second.derive("webhook", 1));
        assert_ne!(first.derive("webhook", 1), first.derive("webhook", 2));
        assert_ne!(first.lookup("a"), first.email("a"));
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        let other = Secrets::load_or_create(&dir.path().join("other.key")).unwrap();
        assert_ne!(first.derive("webhook", 1), other.derive("webhook", 1));
    }

    /// Proves that an exposed or malformed file is refused by name, and that no secret shows in debug output.
    #[test]
    fn refuses_what_others_can_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("master.key");
        let secrets = Secrets::load_or_create(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!format!("{secrets:?}").contains(text.trim()));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let error = Secrets::load_or_create(&path).unwrap_err();
        assert!(matches!(error, Error::Exposed { mode: 0o640, .. }), "{error}");
        assert!(error.to_string().contains("master.key"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, &text[..40]).unwrap();
        assert!(matches!(Secrets::load_or_create(&path), Err(Error::Malformed { .. })));
    }
}
