//! The Merkle tree over all receipts (RFC 6962): its hashes, its proofs, its signed checkpoints (C2SP tlog-checkpoint and signed-note) and the
//! tiles that it is served by (C2SP tlog-tiles).
//!
//! Promise: a leaf is a receipt, in the order in which receipts were issued, and its hash can be worked out from the receipt alone. What was a
//! leaf stays one, so that every later tree holds every earlier one.

use std::cell::RefCell;
use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest, Sha256};
use tlog_tiles::{Error, Hash, HashReader, Tile};

use crate::hash::Hash32;
use crate::receipt::{Receipt, SigningKeys, bytes_of};

/// Hashes of a full tile, as a power of two.
const TILE_HEIGHT: u8 = 8;
/// Hashes of a full tile.
const FULL: u32 = 1 << TILE_HEIGHT;
/// Levels of tiles: more than any tree has.
const LEVELS: u8 = 8;
/// The last tile of a level that is asked for: beyond that no tree reaches.
const INDEX_MAX: u64 = 1 << 48;
/// Marks an Ed25519 key in the id of a signer.
const ED25519: u8 = 1;
/// Hashes that a proof has at most: a tree has fewer levels.
const PROOF_HASHES_MAX: usize = 128;

/// The bytes of a leaf: the receipt's canonical form (RFC 8785).
#[must_use]
pub fn entry(receipt: &Receipt) -> Option<Vec<u8>> {
    serde_json_canonicalizer::to_vec(receipt).ok()
}

/// The hash of a leaf.
#[must_use]
pub fn leaf(entry: &[u8]) -> Hash32 {
    Hash32(tlog_tiles::record_hash(entry).0)
}

/// The places of the hashes that a new leaf is hashed with, in that order: each trailing one of its index completes a subtree.
pub fn siblings(index: u64) -> impl Iterator<Item = u64> {
    let levels = (0_u8..64).take_while(move |level| (index >> level) & 1 == 1);
    levels.map(move |level| tlog_tiles::stored_hash_index(level, (index >> level) - 1))
}

/// The hashes that a leaf adds to the tree, with their places, from those of its [`siblings`].
#[must_use]
pub fn added(index: u64, leaf: Hash32, siblings: &[Hash32]) -> Vec<(u64, Hash32)> {
    let mut hash = leaf;
    let mut out = vec![(tlog_tiles::stored_hash_index(0, index), leaf)];
    for (level, sibling) in (1..u8::MAX).zip(siblings) {
        hash = Hash32(tlog_tiles::node_hash(Hash(sibling.0), Hash(hash.0)).0);
        out.push((tlog_tiles::stored_hash_index(level, index >> level), hash));
    }
    out
}

/// What is asked of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// The root of the tree of so many leaves.
    Root {
        /// Leaves.
        size: u64,
    },
    /// That a leaf is in the tree of so many.
    Inclusion {
        /// Leaves.
        size: u64,
        /// Which one, from 0.
        index: u64,
    },
    /// That the tree of so many holds an earlier one.
    Consistency {
        /// Leaves.
        size: u64,
        /// Leaves of the earlier one.
        old: u64,
    },
    /// The hashes of a tile.
    Tile(Tile),
}

/// Hashes by their places. Where none are, it notes which are wanted.
#[derive(Default)]
struct Stored<'a> {
    hashes: Option<&'a HashMap<u64, Hash32>>,
    wanted: RefCell<Vec<u64>>,
}

impl HashReader for Stored<'_> {
    fn read_hashes(&self, places: &[u64]) -> Result<Vec<Hash>, Error> {
        let Some(hashes) = self.hashes else {
            self.wanted.borrow_mut().extend_from_slice(places);
            return Ok(vec![Hash([0; 32]); places.len()]);
        };
        let hash = |place: &u64| hashes.get(place).map(|hash| Hash(hash.0)).ok_or(Error::InvalidInput(format!("no hash {place}")));
        places.iter().map(hash).collect()
    }
}

impl Question {
    /// The places of the hashes that the answer takes.
    #[must_use]
    pub fn places(self) -> Vec<u64> {
        let stored = Stored::default();
        // What comes of no hashes is nothing; which ones are wanted is what counts.
        drop(self.ask(&stored));
        stored.wanted.into_inner()
    }

    /// The answer from those hashes; `None` if some are missing, or nothing of the kind is in the tree.
    #[must_use]
    pub fn answer(self, hashes: &HashMap<u64, Hash32>) -> Option<Vec<Hash32>> {
        self.ask(&Stored { hashes: Some(hashes), ..Stored::default() }).ok()
    }

    fn ask(self, stored: &Stored<'_>) -> Result<Vec<Hash32>, Error> {
        let proof = match self {
            Self::Root { size } => vec![tlog_tiles::tree_hash(size, stored)?],
            Self::Inclusion { size, index } => tlog_tiles::prove_record(size, index, stored)?,
            Self::Consistency { size, old } => tlog_tiles::prove_tree(size, old, stored)?,
            Self::Tile(tile) => {
                let data = tile.read_data(stored)?;
                return Ok(data.chunks_exact(32).filter_map(|hash| hash.try_into().ok()).map(Hash32).collect());
            }
        };
        Ok(proof.into_iter().map(|hash| Hash32(hash.0)).collect())
    }
}

/// Whether a proof shows that a leaf is in a tree.
#[must_use]
pub fn is_included(proof: &[Hash32], checkpoint: &Checkpoint, index: u64, leaf: Hash32) -> bool {
    let fits = proof.len() <= PROOF_HASHES_MAX && index < checkpoint.size;
    fits && tlog_tiles::check_record(&hashes(proof), checkpoint.size, Hash(checkpoint.root.0), index, Hash(leaf.0)).is_ok()
}

/// Whether a proof shows that a tree holds an earlier one.
#[must_use]
pub fn is_consistent(proof: &[Hash32], checkpoint: &Checkpoint, old: &Checkpoint) -> bool {
    let fits = proof.len() <= PROOF_HASHES_MAX && (1..=checkpoint.size).contains(&old.size);
    fits && tlog_tiles::check_tree(&hashes(proof), checkpoint.size, Hash(checkpoint.root.0), old.size, Hash(old.root.0)).is_ok()
}

fn hashes(proof: &[Hash32]) -> Vec<Hash> {
    proof.iter().map(|hash| Hash(hash.0)).collect()
}

/// The tile of a path as it is served: `tile/0/x001/234`, `tile/0/x001/234.p/5`; and whether its leaves are asked for, `tile/entries/…`. Only
/// the one way in which a tile is written is read.
#[must_use]
pub fn tile_of(path: &str) -> Option<(Tile, bool)> {
    let (level, rest) = path.strip_prefix("tile/")?.split_once('/')?;
    let is_entries = level == "entries";
    let level: u8 = if is_entries { 0 } else { level.parse().ok().filter(|parsed: &u8| parsed.to_string() == level)? };
    let (index, width) = match rest.split_once(".p/") {
        Some((index, width)) => (index, width.parse().ok().filter(|parsed: &u32| parsed.to_string() == width && *parsed < FULL)?),
        None => (rest, FULL),
    };
    let mut number = 0_u64;
    let mut parts = index.split('/').peekable();
    let mut is_first = true;
    while let Some(part) = parts.next() {
        let digits = if parts.peek().is_some() { part.strip_prefix('x')? } else { part };
        let is_padded = is_first && parts.peek().is_some() && digits == "000";
        if digits.len() != 3 || !digits.bytes().all(|byte| byte.is_ascii_digit()) || is_padded || number > INDEX_MAX {
            return None;
        }
        number = number * 1_000 + digits.parse::<u64>().ok()?;
        is_first = false;
    }
    let is_tile = level < LEVELS && width > 0 && number <= INDEX_MAX;
    is_tile.then(|| (Tile::new(TILE_HEIGHT, level, number, width, false), is_entries))
}

/// The leaves that lie under a tile of the lowest level.
#[must_use]
pub fn leaves_of(tile: &Tile) -> std::ops::Range<u64> {
    let first = tile.level_index() << TILE_HEIGHT;
    first..first + u64::from(tile.width())
}

/// The place of a tile: its level, and its number on that level.
pub type TilePlace = (u8, u64);

/// The tile from which a stored hash can be computed.
#[must_use]
pub fn tile_holding(place: u64) -> TilePlace {
    let tile = Tile::from_index(TILE_HEIGHT, place);
    (tile.level(), tile.level_index())
}

/// A stored hash, computed from the hashes of the tile that holds it; `None` if the tile is not that wide yet.
#[must_use]
pub fn hash_in_tile((level, number): TilePlace, hashes: &[u8], place: u64) -> Option<Hash32> {
    let width = u32::try_from(hashes.len() / 32).ok().filter(|width| (1..=FULL).contains(width))?;
    Tile::new(TILE_HEIGHT, level, number, width, false).hash_at_index(hashes, place).ok().map(|hash| Hash32(hash.0))
}

/// The right edge of a tree that grows: on each level the tile that is not full.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edge {
    size: u64,
    levels: Vec<Vec<u8>>,
}

impl Edge {
    /// The tiles that are not full in a tree of so many leaves, with the bytes that each has.
    pub fn partial(size: u64) -> impl Iterator<Item = (TilePlace, usize)> {
        (0..LEVELS).filter_map(move |level| {
            let hashes = size >> (u32::from(TILE_HEIGHT) * u32::from(level));
            let width = usize::try_from(hashes % u64::from(FULL)).unwrap_or_default();
            (width > 0).then_some(((level, hashes >> TILE_HEIGHT), width * 32))
        })
    }

    /// The edge of a tree of so many leaves, from its tiles that are not full; `None` if one is missing or too short. What is beyond the size is
    /// left out.
    #[must_use]
    pub fn read(size: u64, tiles: &HashMap<TilePlace, Vec<u8>>) -> Option<Self> {
        let mut levels = vec![Vec::new(); usize::from(LEVELS)];
        for ((level, number), bytes) in Self::partial(size) {
            *levels.get_mut(usize::from(level))? = tiles.get(&(level, number))?.get(..bytes)?.to_vec();
        }
        Some(Self { size, levels })
    }

    /// Leaves.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Adds a leaf's hash; hands out the tiles that are full now.
    pub fn push(&mut self, leaf: Hash32, full: &mut HashMap<TilePlace, Vec<u8>>) {
        let mut hash = leaf.0;
        for (level, hashes) in (0..LEVELS).zip(&mut self.levels) {
            hashes.extend_from_slice(&hash);
            if hashes.len() < FULL as usize * 32 {
                break;
            }
            let tile = std::mem::take(hashes);
            hash = Tile::subtree_hash(&tile).0;
            full.insert((level, self.size >> (u32::from(TILE_HEIGHT) * (u32::from(level) + 1))), tile);
        }
        self.size += 1;
    }

    /// The tiles that are not full.
    pub fn tiles(&self) -> impl Iterator<Item = (TilePlace, &[u8])> {
        Self::partial(self.size).filter_map(|((level, number), _)| Some(((level, number), self.levels.get(usize::from(level))?.as_slice())))
    }
}

/// A tree at one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Which tree: the address that its first receipt names, without the scheme.
    pub origin: String,
    /// Leaves.
    pub size: u64,
    /// The root.
    pub root: Hash32,
}

impl Checkpoint {
    /// The text that is signed.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.size, STANDARD.encode(self.root.0))
    }

    /// The signed note; `None` if the key is not here.
    #[must_use]
    pub fn sign(&self, keys: &SigningKeys, public_key_hex: &str) -> Option<String> {
        let text = self.text();
        let signature = keys.sign_bytes(public_key_hex, text.as_bytes())?;
        let id = key_id(&self.origin, &bytes_of(public_key_hex)?);
        let line = STANDARD.encode([id.as_slice(), &signature].concat());
        Some(format!("{text}\n\u{2014} {} {line}\n", self.origin))
    }

    /// Reads a signed note that one of some keys signed.
    #[must_use]
    pub fn read<'a>(note: &str, public_keys_hex: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let (body, signatures) = note.split_once("\n\n")?;
        let text = format!("{body}\n");
        let mut lines = body.lines();
        let (origin, size, root) = (lines.next()?, lines.next()?, lines.next()?);
        let root: [u8; 32] = STANDARD.decode(root).ok()?.try_into().ok()?;
        let this = Self { origin: origin.to_owned(), size: size.parse().ok()?, root: Hash32(root) };
        let keys: Vec<[u8; 32]> = public_keys_hex.into_iter().filter_map(bytes_of).collect();
        let is_signed = signatures.lines().filter_map(|line| line.strip_prefix("\u{2014} ")?.split_once(' ')).any(|(name, signature)| {
            let bytes = STANDARD.decode(signature).unwrap_or_default();
            let Some((id, signature)) = bytes.split_at_checked(4) else { return false };
            let Ok(signature) = Signature::from_slice(signature) else { return false };
            let holds = |key: &[u8; 32]| {
                let verifying = VerifyingKey::from_bytes(key);
                key_id(name, key) == id && verifying.is_ok_and(|own| own.verify_strict(text.as_bytes(), &signature).is_ok())
            };
            name == this.origin && keys.iter().any(holds)
        });
        // What would be written again otherwise is not what was signed.
        (is_signed && this.text() == text).then_some(this)
    }
}

/// The id of a signer's key.
fn key_id(name: &str, key: &[u8; 32]) -> [u8; 4] {
    let mut hasher = Sha256::new();
    for part in [name.as_bytes(), b"\n", &[ED25519], key] {
        hasher.update(part);
    }
    let hash: [u8; 32] = hasher.finalize().into();
    [hash[0], hash[1], hash[2], hash[3]]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of some leaves.
    fn grown(size: u64) -> (Vec<Hash32>, HashMap<u64, Hash32>) {
        let leaves: Vec<Hash32> = (0..size).map(|n| leaf(&n.to_be_bytes())).collect();
        let mut stored = HashMap::new();
        for (index, leaf) in leaves.iter().enumerate() {
            let siblings: Vec<Hash32> = siblings(index as u64).map(|place| stored[&place]).collect();
            stored.extend(added(index as u64, *leaf, &siblings));
        }
        (leaves, stored)
    }

    fn at(size: u64, stored: &HashMap<u64, Hash32>) -> Checkpoint {
        Checkpoint { origin: "x.example/receipts".to_owned(), size, root: Question::Root { size }.answer(stored).unwrap()[0] }
    }

    /// Proves that every leaf of trees of many sizes has a proof that holds, for itself alone, and that every tree is shown to hold every earlier one.
    #[test]
    fn proofs() {
        let (leaves, stored) = grown(70);
        for size in 1..=70 {
            let checkpoint = at(size, &stored);
            for index in 0..size {
                let question = Question::Inclusion { size, index };
                let few: HashMap<u64, Hash32> = question.places().into_iter().map(|place| (place, stored[&place])).collect();
                let proof = question.answer(&few).unwrap();
                assert!(is_included(&proof, &checkpoint, index, leaves[usize::try_from(index).unwrap()]));
                assert!(!is_included(&proof, &checkpoint, index, leaf(b"another")));
                assert!(size == 1 || !is_included(&proof, &checkpoint, (index + 1) % size, leaves[usize::try_from(index).unwrap()]));
            }
            for old in 1..=size {
                let proof = Question::Consistency { size, old }.answer(&stored).unwrap();
                assert!(is_consistent(&proof, &checkpoint, &at(old, &stored)));
                let forked = Checkpoint { root: leaf(b"fork"), ..at(old, &stored) };
                assert!(!is_consistent(&proof, &checkpoint, &forked));
            }
        }
        assert_eq!(Question::Inclusion { size: 3, index: 3 }.answer(&stored), None);
    }

    /// Proves that a tree grown tile by tile, stopped and read again on the way, gives the roots and proofs of the same tree grown hash by hash.
    #[test]
    fn edges() {
        let (leaves, stored) = grown(700);
        let (mut tiles, mut edge) = (HashMap::new(), Edge::read(0, &HashMap::new()).unwrap());
        for (n, leaf) in leaves.iter().enumerate() {
            edge.push(*leaf, &mut tiles);
            if n % 97 == 0 || n == 699 {
                tiles.extend(edge.tiles().map(|(place, hashes)| (place, hashes.to_vec())));
                edge = Edge::read(edge.size(), &tiles).unwrap();
            }
        }
        assert_eq!((edge.size(), tiles.len()), (700, 4), "two full tiles, a partial one, and one above them");
        for question in [Question::Root { size: 700 }, Question::Root { size: 513 }, Question::Consistency { size: 700, old: 300 }] {
            let hash = |place: u64| (place, hash_in_tile(tile_holding(place), &tiles[&tile_holding(place)], place).unwrap());
            let few: HashMap<u64, Hash32> = question.places().into_iter().map(hash).collect();
            assert_eq!(question.answer(&few), question.answer(&stored));
        }
        assert_eq!(Edge::read(701, &tiles), None, "a tile is too short");
    }

    /// Proves that a checkpoint reads back under its key, and not under another or with anything changed.
    #[test]
    fn checkpoints() {
        let keys = SigningKeys::default();
        let (own, other) = (keys.add(&[1; 32]), keys.add(&[2; 32]));
        let checkpoint = Checkpoint { origin: "x.example/receipts".to_owned(), size: 7, root: leaf(b"root") };
        let note = checkpoint.sign(&keys, &own).unwrap();
        assert_eq!(Checkpoint::read(&note, [own.as_str()]), Some(checkpoint));
        assert_eq!(Checkpoint::read(&note, [other.as_str()]), None);
        for (from, to) in [("\n7\n", "\n8\n"), ("x.example", "y.example"), ("\n7\n", "\n07\n")] {
            assert_eq!(Checkpoint::read(&note.replacen(from, to, 1), [own.as_str()]), None, "{to}");
        }
        assert_eq!(Checkpoint::read("", [own.as_str()]), None);
    }

    /// Proves that paths of tiles are read as the specification writes them, and nothing else is.
    #[test]
    fn paths() {
        let (tile, is_entries) = tile_of("tile/1/x001/x234/067.p/5").unwrap();
        assert_eq!((tile.level(), tile.level_index(), tile.width(), is_entries), (1, 1_234_067, 5, false));
        let (tile, is_entries) = tile_of("tile/entries/003").unwrap();
        assert_eq!((leaves_of(&tile), is_entries), (768..1024, true));
        for bad in [
            "tile/0",
            "tile/0/3",
            "tile/x/003",
            "tile/0/003.p/256",
            "tile/0/003.p/0",
            "tile/9/003",
            "tile/data/003",
            "tile/0/../003",
            "tile/00/003",
            "tile/0/003.p/05",
            "tile/0/x000/003",
            "tile/0/001/003",
            "tile/0/x001/x003",
            "tile/0/x999/x999/x999/x999/x999/x999/x999/999",
        ] {
            assert!(tile_of(bad).is_none(), "{bad}");
        }
    }
}
