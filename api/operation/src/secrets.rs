//! The master key and what is derived from it.
//!
//! Promises: the master key is one file of 32 random bytes in hex, created at the first start and readable by its owner only. Every other key is
//! derived from it by purpose and generation, so nodes that share the file share all keys. No secret is in `Debug` output or in an error.
//!
//! A text is sealed in the mode of synthetic initialization vectors (SIV): a keyed hash of the text comes first. The same hash function, with another
//! key, makes of that hash and a counter the bytes with which the text is combined. So equal texts give equal bytes on every node.

use std::fmt;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use disk_files::durable_file;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// A keyed hash function.
pub type Keyed = Hmac<Sha256>;

/// The length of the hash before a sealed text.
const SEAL_BYTES: usize = 32;

/// The generation of the key that signs new cursors.
pub const CURSOR_GENERATION: u8 = 1;

/// Why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read or created.
    #[error("the key file {path} cannot be {verb}")]
    File {
        /// The file.
        path: PathBuf,
        /// The operation that failed: `read` or `created`.
        verb: &'static str,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// The file is accessible to other users than its owner.
    #[error(
        "the key file {path} has mode {mode:04o}: other users can access it; set it to 0600, and replace the key if somebody may have read it"
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// The mode of the file.
        mode: u32,
    },
    /// The file does not hold a key.
    #[error("the key file {path} does not hold 64 hex digits")]
    Malformed {
        /// The file.
        path: PathBuf,
    },
    /// The hash function refused the key, which never happens.
    #[error("a key cannot be derived")]
    Derive(#[source] hmac::digest::InvalidLength),
}

/// The master key, and the derived keys that are used often.
#[derive(Clone)]
pub struct Secrets {
    master: Keyed,
    cursor: Keyed,
    lookup: Keyed,
    email: Keyed,
    repeat: Keyed,
    seal: Keyed,
    seal_stream: Keyed,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(…)")
    }
}

impl Secrets {
    /// Reads the master key file, or creates it. If several processes start at the same time, all get the same key.
    ///
    /// # Errors
    /// When the file cannot be read or created, does not hold a key, or is accessible to other users.
    pub fn load_or_create(path: &Path) -> Result<Self, Error> {
        Self::from_master(&seed(path)?)
    }

    /// Derives the secrets from a master key.
    ///
    /// # Errors
    /// Never in practice: the hash function accepts keys of any length.
    pub fn from_master(master: &[u8; 32]) -> Result<Self, Error> {
        let master = Keyed::new_from_slice(master).map_err(Error::Derive)?;
        let derive = |purpose: &str| Keyed::new_from_slice(&derive_key(&master, purpose)).map_err(Error::Derive);
        Ok(Self {
            cursor: derive(&format!("cursor/{CURSOR_GENERATION}"))?,
            lookup: derive("lookup/1")?,
            email: derive("email/1")?,
            repeat: derive("repeat/1")?,
            seal: derive("seal/1")?,
            seal_stream: derive("seal-stream/1")?,
            master,
        })
    }

    /// Derives the key for a purpose and generation, for example `webhook/7`.
    #[must_use]
    pub fn derive(&self, purpose: &str, generation: u32) -> [u8; 32] {
        derive_key(&self.master, &format!("{purpose}/{generation}"))
    }

    /// The cursor key of a generation; `None` if there is no such generation.
    pub fn cursor(&self, generation: u8) -> Option<Keyed> {
        (generation == CURSOR_GENERATION).then(|| self.cursor.clone())
    }

    /// The hash that an API key is stored under.
    pub fn lookup(&self, api_key: &str) -> [u8; 32] {
        keyed_hash(&self.lookup, &[api_key.as_bytes()])
    }

    /// The hash that an e-mail address is stored as.
    pub fn email(&self, email: &str) -> [u8; 32] {
        keyed_hash(&self.email, &[email.as_bytes()])
    }

    /// Bytes derived from an idempotent request, the same for each repetition.
    pub fn repeat(&self, parts: &[&[u8]]) -> [u8; 32] {
        keyed_hash(&self.repeat, parts)
    }

    /// Seals a text, so that only who has the master key can read it. The same text gives the same bytes.
    #[must_use]
    pub fn seal(&self, text: &[u8]) -> Vec<u8> {
        let hash = keyed_hash(&self.seal, &[text]);
        [hash.to_vec(), self.combined(&hash, text)].concat()
    }

    /// Opens a sealed text; `None` if it was not sealed with this master key, or was altered.
    #[must_use]
    pub fn unseal(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (hash, rest) = sealed.split_first_chunk::<SEAL_BYTES>()?;
        let text = self.combined(hash, rest);
        updated(&self.seal, &[text.as_slice()]).verify_slice(hash).ok()?;
        Some(text)
    }

    /// A text combined with the bytes that follow from the hash before it. Done twice it is the same text again.
    fn combined(&self, hash: &[u8; SEAL_BYTES], text: &[u8]) -> Vec<u8> {
        let stream = (0_u64..).flat_map(|block| keyed_hash(&self.seal_stream, &[hash.as_slice(), block.to_be_bytes().as_slice()]));
        text.iter().zip(stream).map(|(byte, other)| byte ^ other).collect()
    }
}

/// Reads the 32 random bytes of a key file, or creates it. If several processes start at the same time, all get the same bytes.
///
/// # Errors
/// When the file cannot be read or created, does not hold a key, or is accessible to other users.
pub fn seed(path: &Path) -> Result<[u8; 32], Error> {
    let file_error = |verb| move |source| Error::File { path: path.to_owned(), verb, source };
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            create(path).map_err(file_error("created"))?;
            std::fs::read_to_string(path).map_err(file_error("read"))?
        }
        Err(source) => return Err(Error::File { path: path.to_owned(), verb: "read", source }),
    };
    let mode = std::fs::metadata(path).map_err(file_error("read"))?.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(Error::Exposed { path: path.to_owned(), mode });
    }
    let seed = proofs::hash::Hash32::from_hex(text.trim()).ok_or_else(|| Error::Malformed { path: path.to_owned() })?;
    Ok(seed.0)
}

/// The keyed hash of parts, each prefixed with its length.
fn keyed_hash(key: &Keyed, parts: &[&[u8]]) -> [u8; 32] {
    updated(key, parts).finalize().into_bytes().into()
}

/// The keyed hash function after parts, each prefixed with its length.
fn updated(key: &Keyed, parts: &[&[u8]]) -> Keyed {
    let mut mac = key.clone();
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    mac
}

fn derive_key(master: &Keyed, purpose: &str) -> [u8; 32] {
    let mut mac = master.clone();
    mac.update(purpose.as_bytes());
    mac.finalize().into_bytes().into()
}

/// Creates the file atomically: another process finds either no file or the complete file.
fn create(path: &Path) -> std::io::Result<()> {
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        std::fs::create_dir_all(dir)?;
    }
    let text = format!("{}\n", proofs::hash::hex(&rand::random::<[u8; 32]>()));
    durable_file::create_if_absent(path, text.as_bytes(), 0o600)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the file is made once, with mode 0600, and gives the same secrets again; that purposes and generations differ.
    #[test]
    fn the_key_file_is_created_once() {
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

    /// Proves that a sealed text of any length is opened by the same key alone, that it shows nothing of the text, that equal texts give equal bytes, and
    /// that a changed or missing byte is noticed.
    #[test]
    fn sealed_texts_are_opened_by_their_key() {
        let [own, other] = [7, 8].map(|byte| Secrets::from_master(&[byte; 32]).unwrap());
        let long = "fmcsa:4312345:CARGO ".repeat(40);
        for text in ["", "4312345", &long[..31], &long[..32], &long[..33], long.as_str()] {
            let sealed = own.seal(text.as_bytes());
            assert_eq!(sealed, own.seal(text.as_bytes()));
            assert_eq!(own.unseal(&sealed).unwrap(), text.as_bytes());
            assert_eq!(other.unseal(&sealed), None);
            assert!(text.is_empty() || !sealed.windows(7).any(|bytes| text.as_bytes().windows(7).any(|part| part == bytes)));
            for at in 0..sealed.len() {
                let mut changed = sealed.clone();
                changed[at] ^= 1;
                assert_eq!(own.unseal(&changed), None);
                assert_eq!(own.unseal(&sealed[..at]), None);
            }
        }
    }

    /// Proves that an exposed or malformed file is refused by name, and that no secret shows in debug output.
    #[test]
    fn exposed_key_files_are_refused() {
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
