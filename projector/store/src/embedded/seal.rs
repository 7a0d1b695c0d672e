//! The checksum of every row: over the name of its keyspace, its key and its value, stored after the value.
//!
//! The engine's checksums cover blocks of files. This one also finds a row that is intact but in the wrong place: under another key, in another
//! table, or of another generation.

use bytes::Bytes;
use fjall::UserValue;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The bytes of the checksum after a value.
const SEAL_BYTES: usize = 8;
/// The largest value that is copied out of the engine's blocks, so that a held row does not keep a block in memory.
const COPIED_BYTES_MAX: usize = 1_024;

/// Computes the checksums of one keyspace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seal(u64);

impl Seal {
    pub(super) fn new(keyspace: &str) -> Self {
        Self(xxh3_64(keyspace.as_bytes()))
    }

    fn checksum(self, key: &[u8], value: &[u8]) -> [u8; SEAL_BYTES] {
        xxh3_64_with_seed(value, xxh3_64_with_seed(key, self.0)).to_be_bytes()
    }

    /// Returns the bytes that are stored for a value.
    pub(super) fn close(self, key: &[u8], value: &[u8]) -> UserValue {
        let mut stored = Vec::with_capacity(value.len() + SEAL_BYTES);
        stored.extend_from_slice(value);
        stored.extend_from_slice(&self.checksum(key, value));
        stored.into()
    }

    /// Returns the value in stored bytes; `None` if they are not what was written under this key.
    pub(super) fn open(self, key: &[u8], stored: UserValue) -> Option<Bytes> {
        let (value, checksum) = stored.split_last_chunk::<SEAL_BYTES>()?;
        if self.checksum(key, value) != *checksum {
            return None;
        }
        let length = value.len();
        // Small values are copied, large ones (feed blocks) are shared.
        Some(if length <= COPIED_BYTES_MAX { Bytes::copy_from_slice(value) } else { Bytes::from_owner(stored).slice(..length) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a value is read back under its own keyspace and key only, and not if any of its bytes changed.
    #[test]
    fn values_belong_to_their_place() {
        let (seal, other) = (Seal::new("recalls.g1.recalls"), Seal::new("recalls.g2.recalls"));
        for value in [b"".to_vec(), b"x".to_vec(), vec![7; COPIED_BYTES_MAX + 1]] {
            let stored = seal.close(b"key", &value);
            assert_eq!(seal.open(b"key", stored.clone()).as_deref(), Some(&value[..]));
            assert_eq!((other.open(b"key", stored.clone()), seal.open(b"kex", stored.clone())), (None, None));
            for at in 0..stored.len() {
                let mut damaged = stored.to_vec();
                damaged[at] ^= 1;
                assert_eq!(seal.open(b"key", damaged.into()), None);
            }
            assert_eq!(seal.open(b"key", stored[..stored.len() - 1].into()), None);
        }
    }
}
