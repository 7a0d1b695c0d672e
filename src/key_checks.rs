//! Check values of the keys of a data directory, so that another key in the place of one of them is refused at start, and not noticed by clients whose
//! keys and cursors fail.
//!
//! The file `key-checks` in the data directory has a line for each key: its name, a space, and a value that is derived from the key and does not reveal
//! it. The master key is recorded at the first start, a receipt key when it is first read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use disk_files::durable_file;
use operation::secrets::Secrets;
use proofs::hash::Hash32;

/// The name of the master key in the file.
const MASTER: &str = "master";
/// What the check value of the master key is derived for. Changing it invalidates every recorded value.
const MASTER_PURPOSE: &str = "check";

/// Why a key is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The key in a file is another one than before.
    #[error(
        "{key} holds another key than the one that {checks} records: restore the file from the backup. If the key was replaced on purpose, \
         remove the line \"{name}\" of {checks}; {consequence}"
    )]
    Changed {
        /// The file of the key.
        key: PathBuf,
        /// The file of check values.
        checks: PathBuf,
        /// The name of the key in that file.
        name: String,
        /// What follows from a replaced key.
        consequence: &'static str,
    },
    /// The file of a receipt key is gone.
    #[error(
        "{key} is missing, but {checks} records its key: restore the file from the backup. If it was removed on purpose, remove the line \
         \"{name}\" of {checks}; receipts and checkpoints are signed only while the newest key is there"
    )]
    Missing {
        /// Where the key should be.
        key: PathBuf,
        /// The file of check values.
        checks: PathBuf,
        /// The name of the key in that file.
        name: String,
    },
    /// The file of check values cannot be read or written.
    #[error("{path} cannot be used")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
}

/// The recorded check values.
pub(crate) struct KeyChecks {
    path: PathBuf,
    recorded: BTreeMap<String, String>,
}

impl KeyChecks {
    /// Reads the check values of a data directory; none if it has no such file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn read(data_dir: &Path) -> Result<Self, Error> {
        let path = data_dir.join("key-checks");
        let text = match durable_file::read_text(&path) {
            Ok(text) => text.unwrap_or_default(),
            Err(source) => return Err(Error::File { path, source }),
        };
        let lines = text.lines().filter_map(|line| line.rsplit_once(' '));
        let recorded = lines.map(|(name, check)| (name.to_owned(), check.to_owned())).collect();
        Ok(Self { path, recorded })
    }

    /// Compares the master key with its check value; records the value if there is none.
    ///
    /// # Errors
    /// The key is another one, or the value cannot be recorded.
    pub(crate) fn check_master(&mut self, key: &Path, secrets: &Secrets) -> Result<(), Error> {
        let check = Hash32::of(&secrets.derive(MASTER_PURPOSE, 1)).to_string();
        self.check(MASTER.to_owned(), key, check, "existing API keys and cursors are refused then")
    }

    /// Refuses receipt keys that are recorded and whose files are gone. Called before a missing first key would be created.
    ///
    /// # Errors
    /// The file of a recorded key does not exist.
    pub(crate) fn check_present(&self, receipt_keys_dir: &Path) -> Result<(), Error> {
        for name in self.recorded.keys().filter(|name| *name != MASTER) {
            let key = receipt_keys_dir.join(name);
            if !key.exists() {
                return Err(Error::Missing { key, checks: self.path.clone(), name: name.clone() });
            }
        }
        Ok(())
    }

    /// Compares a receipt key with its check value, which is its public key; records the value if there is none.
    ///
    /// # Errors
    /// As [`Self::check_master`].
    pub(crate) fn check_receipt_key(&mut self, key: &Path, seed: &[u8; 32]) -> Result<(), Error> {
        let Some(name) = key.file_name().and_then(|name| name.to_str()) else { return Ok(()) };
        let public = proofs::receipt::SigningKeys::default().add(seed);
        self.check(name.to_owned(), key, public, "receipts that the lost key signed stay valid, and new ones need a key that the log names")
    }

    fn check(&mut self, name: String, key: &Path, check: String, consequence: &'static str) -> Result<(), Error> {
        match self.recorded.get(&name) {
            Some(recorded) if *recorded == check => Ok(()),
            Some(_) => Err(Error::Changed { key: key.to_owned(), checks: self.path.clone(), name, consequence }),
            None => {
                self.recorded.insert(name, check);
                let text: String = self.recorded.iter().map(|(name, check)| format!("{name} {check}\n")).collect();
                let written = durable_file::replace(&self.path, text.as_bytes(), 0o600).map(drop);
                written.map_err(|source| Error::File { path: self.path.clone(), source })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Proves that a changed master key, a changed receipt key and a missing one are refused with their files, and that a removed line accepts the key.
    #[test]
    fn other_keys_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (master, receipt) = (dir.path().join("master.key"), dir.path().join("first.key"));
        let secrets = |byte: u8| Secrets::from_master(&[byte; 32]).unwrap();
        let mut checks = KeyChecks::read(dir.path()).unwrap();
        checks.check_present(dir.path()).unwrap();
        checks.check_master(&master, &secrets(1)).unwrap();
        checks.check_receipt_key(&receipt, &[1; 32]).unwrap();

        let mut checks = KeyChecks::read(dir.path()).unwrap();
        checks.check_master(&master, &secrets(1)).unwrap();
        checks.check_receipt_key(&receipt, &[1; 32]).unwrap();
        let error = checks.check_master(&master, &secrets(2)).unwrap_err().to_string();
        assert!(error.contains("master.key holds another key") && error.contains("key-checks"), "{error}");
        let error = checks.check_receipt_key(&receipt, &[2; 32]).unwrap_err().to_string();
        assert!(error.contains("first.key holds another key"), "{error}");
        let error = checks.check_present(dir.path()).unwrap_err().to_string();
        assert!(error.contains("first.key is missing"), "{error}");
        let text = fs::read_to_string(dir.path().join("key-checks")).unwrap();
        assert!(!text.contains(&proofs::hash::hex(&[1; 32])), "a check value must not be the key");

        let rest: String = text.lines().filter(|line| !line.starts_with(MASTER)).map(|line| format!("{line}\n")).collect();
        fs::write(dir.path().join("key-checks"), rest).unwrap();
        KeyChecks::read(dir.path()).unwrap().check_master(&master, &secrets(2)).unwrap();
    }
}
