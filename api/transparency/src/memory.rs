//! The signer's memory: the newest checkpoint that was signed with each receipt key. It is stored outside the data directory, so that a restored backup
//! or a copy of the directory is recognised as older than what was already signed.
//!
//! Promise: a checkpoint is stored durably in the memory before its note is given out. If two processes remember different checkpoints over the same
//! older one, only one succeeds. Each memory has an id, which the log names ([`schemas::views::receipts::MEMORY`]), so that a memory that was lost with
//! a file or with the whole store is recognised.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proofs::hash::{Hash32, hex};
use proofs::receipt::Refusal;
use proofs::tree::Checkpoint;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use view_store::ViewStore;

/// How often a change is repeated when another process was faster.
const TRIES: usize = 5;
/// How long the memory may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Limits the threads that wait for the disk at the same time, in case the directory does not answer.
static THREADS: Semaphore = Semaphore::const_new(4);

/// Why the memory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error("the signer's memory {path} cannot be used (checkpoints.memory names its directory, for example /var/lib/highwater-signer)")]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The row in the store cannot be read or written.
    #[error("the signer's memory in the view store cannot be used")]
    Store(#[from] view_store::Error),
    /// The stored text is not a memory.
    #[error("the signer's memory {place} is damaged")]
    Damaged {
        /// The file or row.
        place: String,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
    /// The memory did not answer in time.
    #[error("the signer's memory {place} did not answer within {} s", ANSWER_MAX.as_secs())]
    Late {
        /// The file or row.
        place: String,
    },
    /// Other processes kept changing the memory at the same time.
    #[error("the signer's memory {place} is changed by others at the same time")]
    Contended {
        /// The file or row.
        place: String,
    },
}

/// The newest signed checkpoint of one tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedTree {
    /// The origin line of the note.
    pub origin: String,
    /// The number of leaves.
    pub size: u64,
    /// The root, 64 hex digits.
    pub root: String,
}

impl SignedTree {
    fn of(checkpoint: &Checkpoint) -> Self {
        Self { origin: checkpoint.origin.clone(), size: checkpoint.size, root: checkpoint.root.to_string() }
    }

    /// The signed checkpoint; `None` if the root is not a hash.
    #[must_use]
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        Some(Checkpoint { origin: self.origin.clone(), size: self.size, root: Hash32::from_hex(&self.root)? })
    }
}

/// The key that signs in place of another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Successor {
    /// The public key, 64 hex digits.
    pub key: String,
    /// The reason of a declared restore; empty for an ordinary rotation.
    pub reason: String,
}

/// The memory of one receipt key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    /// Identifies this memory, so that a newly created one is recognised. The log names it.
    pub id: String,
    /// The newest checkpoint of each tree, by the tree's service.
    pub trees: BTreeMap<String, SignedTree>,
    /// The key that replaced this one, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub successor: Option<Successor>,
}

/// The memory of one receipt key, as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadMemory {
    /// The memory; `None` if nothing was signed with the key in this place.
    pub remembered: Option<Remembered>,
    /// The text of the memory, for the comparison when it is replaced.
    text: Option<String>,
}

impl ReadMemory {
    /// Why a process may not sign with this key. Its log names the keys `known` and, for this key, the memory `id` (empty for none). `None` if only the
    /// trees remain to be compared.
    #[must_use]
    pub fn refusal(&self, place: &str, id: &str, known: &[String]) -> Option<Refusal> {
        match &self.remembered {
            None if !id.is_empty() => {
                return Some(Refusal::Wait(format!("the signer's memory {place} is missing, but was written before: restore it")));
            }
            Some(remembered) if !id.is_empty() && remembered.id != id => {
                return Some(Refusal::Wait(format!("the signer's memory {place} was created again, or is that of another log")));
            }
            _ => {}
        }
        let successor = self.remembered.as_ref().and_then(|remembered| remembered.successor.as_ref());
        let successor = successor.filter(|successor| !known.contains(&successor.key))?;
        Some(Refusal::Conflict(format!("the key {} signs in place of this log's, and this log does not know it", successor.key)))
    }
}

/// Why a checkpoint must not be signed after the remembered one; `None` if it continues it. `proof` is the consistency proof between both, if the
/// tree gives one.
#[must_use]
pub fn conflict(remembered: &Checkpoint, next: &Checkpoint, proof: Option<&[Hash32]>) -> Option<String> {
    let (old, new) = (remembered.size, next.size);
    if new < old {
        return Some(format!("the log's tree has {new} leaves, but one of {old} was signed: this log is older than what was signed"));
    }
    let is_same = new == old && next.root == remembered.root;
    if is_same || new > old && proof.is_some_and(|proof| proofs::tree::is_consistent(proof, next, remembered)) {
        return None;
    }
    Some(format!("the log's tree of {new} leaves does not continue the one of {old} leaves that was signed: they are two histories"))
}

/// The place of the memory.
#[derive(Clone)]
pub enum Memory {
    /// Files in this directory outside the data directory, one for each key.
    Directory(PathBuf),
    /// Rows of the view store, changed by compare-and-set.
    Store(Arc<dyn ViewStore>),
}

impl Memory {
    /// The file or row of a key, for people.
    #[must_use]
    pub fn place(&self, key: &str) -> String {
        match self {
            Self::Directory(path) => path.join(format!("{key}.json")).display().to_string(),
            Self::Store(_) => row(key),
        }
    }

    /// Reads the memory of a key.
    ///
    /// # Errors
    /// When the memory cannot be read.
    pub async fn find(&self, key: &str) -> Result<ReadMemory, Error> {
        let reading = async {
            match self {
                Self::Directory(path) => {
                    let path = path.join(format!("{key}.json"));
                    blocking(move || read(&path)).await
                }
                Self::Store(store) => Ok(store.coordination().value(&row(key)).await?),
            }
        };
        let text = self.in_time(key, reading).await?;
        let damaged = |source| Error::Damaged { place: self.place(key), source };
        let remembered = text.as_deref().map(serde_json::from_str).transpose().map_err(damaged)?;
        Ok(ReadMemory { remembered, text })
    }

    /// Replaces the memory of a key that was found; returns false if another process changed it meanwhile.
    ///
    /// # Errors
    /// When the memory cannot be written.
    async fn replace(&self, key: &str, found: &ReadMemory, next: &Remembered) -> Result<bool, Error> {
        let damaged = |source| Error::Damaged { place: self.place(key), source };
        let text = serde_json::to_string(next).map_err(damaged)?;
        let replacing = async {
            match self {
                Self::Directory(path) => {
                    let (path, key, current) = (path.clone(), key.to_owned(), found.text.clone());
                    blocking(move || replace_file(&path, &key, current.as_deref(), &text)).await
                }
                Self::Store(store) => Ok(store.coordination().compare_and_store(&row(key), found.text.as_deref(), &text).await?),
            }
        };
        self.in_time(key, replacing).await
    }

    /// Waits for an answer of the memory, at most [`ANSWER_MAX`]. A late change may still happen. Then the memory holds more than was signed, as after a
    /// crash between the two.
    async fn in_time<T>(&self, key: &str, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let late = |_| Error::Late { place: self.place(key) };
        tokio::time::timeout(ANSWER_MAX, answer).await.map_err(late)?
    }

    /// Changes the memory of a key, and repeats that while other processes change it at the same time. `change` returns the new memory, or `None` for no
    /// change.
    ///
    /// # Errors
    /// When the memory cannot be read or written.
    pub async fn change(&self, key: &str, change: impl Fn(&ReadMemory) -> Option<Remembered>) -> Result<(), Error> {
        for _ in 0..TRIES {
            let found = self.find(key).await?;
            let Some(next) = change(&found) else { return Ok(()) };
            if self.replace(key, &found, &next).await? {
                return Ok(());
            }
        }
        Err(Error::Contended { place: self.place(key) })
    }

    /// Replaces the checkpoint that was found by a newer one, durably. Returns false if another process changed the memory meanwhile.
    ///
    /// # Errors
    /// When the memory cannot be written.
    pub async fn advance(&self, key: &str, tree: &str, found: &ReadMemory, checkpoint: &Checkpoint) -> Result<bool, Error> {
        let mut next = found.remembered.clone().unwrap_or_else(new_memory);
        let signed = SignedTree::of(checkpoint);
        if next.trees.get(tree) == Some(&signed) {
            return Ok(true);
        }
        next.trees.insert(tree.to_owned(), signed);
        self.replace(key, found, &next).await
    }
}

/// An empty memory with a new id.
#[must_use]
pub fn new_memory() -> Remembered {
    Remembered { id: hex(&rand::random::<[u8; 16]>()), ..Remembered::default() }
}

/// The name of the row of a key.
fn row(key: &str) -> String {
    format!("signer-memory/{key}")
}

/// Runs work that waits for the disk on one of the [`THREADS`] that may block.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
    fn lost(error: impl std::error::Error + Send + Sync + 'static) -> Error {
        Error::File { path: PathBuf::new(), source: std::io::Error::other(error) }
    }
    let permit = THREADS.acquire().await.map_err(lost)?;
    let work = move || {
        let _permit = permit;
        work()
    };
    tokio::task::spawn_blocking(work).await.map_err(lost)?
}

fn wrong(path: &Path) -> impl Fn(std::io::Error) -> Error + use<'_> {
    move |source| Error::File { path: path.to_owned(), source }
}

/// The text of a file; `None` if there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(wrong(path)(source)),
    }
}

/// Replaces the file of a key if it holds `current`. It holds a lock, and the file is durable when it returns.
pub(crate) fn replace_file(dir: &Path, key: &str, current: Option<&str>, text: &str) -> Result<bool, Error> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(wrong(dir))?;
    let lock_path = dir.join(format!("{key}.lock"));
    let lock = File::options().create(true).truncate(false).write(true).mode(0o600).open(&lock_path).map_err(wrong(&lock_path))?;
    // Released when the file is closed.
    lock.lock().map_err(wrong(&lock_path))?;
    let path = dir.join(format!("{key}.json"));
    if read(&path)?.as_deref() != current {
        return Ok(false);
    }
    write(dir, &path, text)?;
    Ok(true)
}

/// Writes a file atomically: after a crash there is the old file or the new one.
fn write(dir: &Path, path: &Path, text: &str) -> Result<(), Error> {
    let temporary = path.with_extension("new");
    let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(&temporary).map_err(wrong(&temporary))?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(wrong(&temporary))?;
    fs::rename(&temporary, path).map_err(wrong(path))?;
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(wrong(dir))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proofs::tree::{self, Question};

    use super::*;

    const TREE: &str = "receipts";

    /// A tree of some leaves, and its checkpoint at any size.
    struct TestTree(HashMap<u64, Hash32>);

    impl TestTree {
        /// Leaf n is n, from `forked` on something else.
        fn new(size: u64, forked: u64) -> Self {
            let mut stored = HashMap::new();
            for n in 0..size {
                let leaf = tree::leaf(&[u8::from(n >= forked), u8::try_from(n).unwrap()]);
                let siblings: Vec<Hash32> = tree::siblings(n).map(|place| stored[&place]).collect();
                stored.extend(tree::new_hashes(n, leaf, &siblings));
            }
            Self(stored)
        }

        fn at(&self, size: u64) -> Checkpoint {
            let root = Question::Root { size }.answer(&self.0).unwrap()[0];
            Checkpoint { origin: "x.example/receipts".to_owned(), size, root }
        }

        fn proof(&self, size: u64, old: u64) -> Option<Vec<Hash32>> {
            Question::Consistency { size, old }.answer(&self.0)
        }
    }

    fn memory(dir: &Path) -> Memory {
        Memory::Directory(dir.join("memory"))
    }

    async fn signed(memory: &Memory, checkpoint: &Checkpoint) {
        let found = memory.find("k").await.unwrap();
        assert!(memory.advance("k", TREE, &found, checkpoint).await.unwrap());
    }

    /// Proves that over a remembered checkpoint only that one and larger ones that are proven to hold it are signed.
    #[test]
    fn only_what_continues() {
        let (tree, fork) = (TestTree::new(9, 99), TestTree::new(9, 3));
        let found = |next: &Checkpoint, proof: Option<Vec<Hash32>>| conflict(&tree.at(5), next, proof.as_deref());
        assert_eq!(found(&tree.at(5), None), None);
        for size in 6..=9 {
            assert_eq!(found(&tree.at(size), tree.proof(size, 5)), None);
            assert!(found(&tree.at(size), None).unwrap().contains("two histories"), "without a proof");
            assert!(found(&fork.at(size), fork.proof(size, 5)).unwrap().contains("two histories"), "a fork with its own proof");
        }
        assert!(found(&tree.at(4), tree.proof(5, 4)).unwrap().contains("older"));
        assert!(found(&fork.at(5), Some(Vec::new())).unwrap().contains("two histories"), "the same size, another root");
    }

    /// Proves that what was remembered before a crash is there after it, and that of two who remember over the same one is refused.
    #[tokio::test]
    async fn it_is_durable_and_compared() {
        let dir = tempfile::tempdir().unwrap();
        let (memory, tree) = (memory(dir.path()), TestTree::new(9, 99));
        let before = memory.find("k").await.unwrap();
        assert_eq!(before, ReadMemory::default());
        signed(&memory, &tree.at(5)).await;
        assert!(!memory.advance("k", TREE, &before, &tree.at(6)).await.unwrap(), "another one remembered meanwhile");
        // A crash after this and before the note is given out: the same checkpoint may be signed again, an older one may not.
        let after = memory.find("k").await.unwrap();
        let remembered = after.remembered.clone().unwrap();
        assert_eq!(remembered.trees[TREE].checkpoint(), Some(tree.at(5)));
        assert_eq!(after.refusal("m", &remembered.id, &[]), None);
        signed(&memory, &tree.at(5)).await;
        signed(&memory, &tree.at(7)).await;
        assert_eq!(memory.find("k").await.unwrap().remembered.unwrap().trees[TREE].size, 7);
        assert_eq!(memory.find("other").await.unwrap(), ReadMemory::default(), "keys are apart");
    }

    /// Proves that a store that was wiped does not begin a memory that the log names, and that a log that names none begins one.
    #[tokio::test]
    async fn a_store_that_was_wiped() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let kept_in = |dir: &Path| -> Memory {
            Memory::Store(view_store::EmbeddedStore::open(dir, view_store::embedded::Options::default()).unwrap())
        };
        let (memory, tree) = (kept_in(dir.path()), TestTree::new(9, 99));
        signed(&memory, &tree.at(5)).await;
        let id = memory.find("k").await.unwrap().remembered.unwrap().id;
        assert_eq!(memory.find("k").await.unwrap().refusal("m", &id, &[]), None);
        let wiped = kept_in(other.path()).find("k").await.unwrap();
        assert!(wiped.refusal("m", &id, &[]).unwrap().reason().contains("is missing, but was written before"));
        assert_eq!(wiped.refusal("m", "", &[]), None);
    }

    /// Proves that a missing memory, another one's, and one that names a successor which the log does not know each stop the signer.
    #[tokio::test]
    async fn a_memory_that_is_not_the_one() {
        let dir = tempfile::tempdir().unwrap();
        let (memory, tree) = (memory(dir.path()), TestTree::new(9, 99));
        signed(&memory, &tree.at(5)).await;
        let path = dir.path().join("memory/k.json");
        let text = fs::read_to_string(&path).unwrap();
        let id = memory.find("k").await.unwrap().remembered.unwrap().id;
        let refusal = async |known: &[String]| {
            let refusal = memory.find("k").await.unwrap().refusal("m", &id, known);
            refusal.map(|refusal| refusal.reason().to_owned()).unwrap_or_default()
        };
        fs::remove_file(&path).unwrap();
        assert!(refusal(&[]).await.contains("is missing"));
        assert_eq!(memory.find("k").await.unwrap().refusal("m", "", &[]), None, "a log that names none begins one");
        fs::write(&path, text.replace(&id, "0123")).unwrap();
        assert!(refusal(&[]).await.contains("created again"));
        fs::write(&path, "{").unwrap();
        assert!(matches!(memory.find("k").await, Err(Error::Damaged { .. })));
        fs::write(&path, text).unwrap();
        let successor = |found: &ReadMemory| {
            let remembered = found.remembered.clone()?;
            Some(Remembered { successor: Some(Successor { key: "k2".to_owned(), reason: String::new() }), ..remembered })
        };
        memory.change("k", successor).await.unwrap();
        assert!(refusal(&["k".to_owned()]).await.contains("k2"));
        assert_eq!(refusal(&["k".to_owned(), "k2".to_owned()]).await, "");
    }
}
