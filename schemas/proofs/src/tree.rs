//! The Merkle tree over a service's entries (RFC 6962): its hashes, its proofs, its signed checkpoints (C2SP tlog-checkpoint and
//! signed-note) and the tiles that serve it (C2SP tlog-tiles).
//!
//! In the tree of receipts, a leaf is a receipt, in the order in which receipts were issued; its hash can be computed from the receipt
//! alone. A leaf never changes, so that every later tree contains every earlier one.

use std::cell::RefCell;
use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest, Sha256};
use tlog_tiles::{Error, Hash, HashReader, Tile};

use crate::hash::Hash32;
use crate::receipt::{Receipt, SigningKeys, bytes_of};

/// The number of hashes in a full tile, as a power of two.
const TILE_HEIGHT: u8 = 8;
/// The number of hashes in a full tile.
const FULL: u32 = 1 << TILE_HEIGHT;
/// The number of tile levels: more than any tree reaches.
const LEVELS: u8 = 8;
/// The highest tile number that is accepted: no tree reaches it.
const INDEX_MAX: u64 = 1 << 48;
/// The byte that marks an Ed25519 key in a signer's key id.
const ED25519: u8 = 1;
/// The most hashes in a proof: a tree has fewer levels.
const PROOF_HASHES_MAX: usize = 128;

/// Returns the bytes of a receipt's leaf: the receipt's canonical form (RFC 8785). `None` if it has none.
#[must_use]
pub fn entry(receipt: &Receipt) -> Option<Vec<u8>> {
    serde_json_canonicalizer::to_vec(receipt).ok()
}

/// Returns the hash of a leaf.
#[must_use]
pub fn leaf(entry: &[u8]) -> Hash32 {
    Hash32(tlog_tiles::record_hash(entry).0)
}

/// Returns the stored-hash indices of the siblings with which a new leaf is hashed, in that order: each trailing 1 bit of the leaf's index
/// completes a subtree.
pub fn siblings(index: u64) -> impl Iterator<Item = u64> {
    let levels = (0_u8..64).take_while(move |level| (index >> level) & 1 == 1);
    levels.map(move |level| tlog_tiles::stored_hash_index(level, (index >> level) - 1))
}

/// Returns the hashes that a leaf adds to the tree, with their stored-hash indices. The slice holds the hashes at the indices of
/// [`siblings`].
#[must_use]
pub fn new_hashes(index: u64, leaf: Hash32, siblings: &[Hash32]) -> Vec<(u64, Hash32)> {
    let mut hash = leaf;
    let mut out = vec![(tlog_tiles::stored_hash_index(0, index), leaf)];
    for (level, sibling) in (1..u8::MAX).zip(siblings) {
        hash = Hash32(tlog_tiles::node_hash(Hash(sibling.0), Hash(hash.0)).0);
        out.push((tlog_tiles::stored_hash_index(level, index >> level), hash));
    }
    out
}

/// A tree that only grows, of which nothing but the root is needed: it holds one hash for each complete subtree.
#[derive(Clone, Debug, Default)]
pub struct GrowingTree {
    size: u64,
    /// By stored-hash index.
    subtrees: HashMap<u64, Hash32>,
}

impl GrowingTree {
    /// Returns the number of leaves.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Adds the hash of a leaf.
    pub fn push(&mut self, leaf: Hash32) {
        // Each sibling is the top of a subtree that the leaf completes.
        let siblings: Vec<Hash32> = siblings(self.size).filter_map(|place| self.subtrees.remove(&place)).collect();
        self.subtrees.extend(new_hashes(self.size, leaf, &siblings).pop());
        self.size += 1;
    }

    /// Returns the root.
    #[must_use]
    pub fn root(&self) -> Option<Hash32> {
        Question::Root { size: self.size }.answer(&self.subtrees)?.pop()
    }
}

/// A query for the root, a proof or a tile of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// The root of the tree with `size` leaves.
    Root {
        /// The number of leaves.
        size: u64,
    },
    /// The proof that a leaf is in the tree with `size` leaves.
    Inclusion {
        /// The number of leaves.
        size: u64,
        /// The index of the leaf, from 0.
        index: u64,
    },
    /// The proof that the tree with `size` leaves contains the tree with `old` leaves.
    Consistency {
        /// The number of leaves.
        size: u64,
        /// The number of leaves of the earlier tree.
        old: u64,
    },
    /// The hashes of a tile.
    Tile(Tile),
}

/// Hashes by stored-hash index. Without hashes, it records which indices are read.
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
    /// Returns the stored-hash indices from which the answer is computed.
    #[must_use]
    pub fn places(self) -> Vec<u64> {
        let stored = Stored::default();
        // The result is meaningless without hashes; only the indices that were read count.
        drop(self.ask(&stored));
        stored.wanted.into_inner()
    }

    /// Computes the answer from hashes by stored-hash index; `None` if one is missing, or if the tree does not contain the leaf or tile.
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

/// Whether a proof shows that a leaf is in the tree of a checkpoint.
#[must_use]
pub fn is_included(proof: &[Hash32], checkpoint: &Checkpoint, index: u64, leaf: Hash32) -> bool {
    let fits = proof.len() <= PROOF_HASHES_MAX && index < checkpoint.size;
    fits && tlog_tiles::check_record(&hashes(proof), checkpoint.size, Hash(checkpoint.root.0), index, Hash(leaf.0)).is_ok()
}

/// Whether a proof shows that the tree of a checkpoint contains an earlier tree.
#[must_use]
pub fn is_consistent(proof: &[Hash32], checkpoint: &Checkpoint, old: &Checkpoint) -> bool {
    let fits = proof.len() <= PROOF_HASHES_MAX && (1..=checkpoint.size).contains(&old.size);
    fits && tlog_tiles::check_tree(&hashes(proof), checkpoint.size, Hash(checkpoint.root.0), old.size, Hash(old.root.0)).is_ok()
}

fn hashes(proof: &[Hash32]) -> Vec<Hash> {
    proof.iter().map(|hash| Hash(hash.0)).collect()
}

/// Parses the path of a tile: `tile/0/x001/234`, `tile/0/x001/234.p/5`, or `tile/entries/…` for its leaves. Returns the tile and whether
/// its leaves are requested. Only the canonical spelling of a path is accepted.
#[must_use]
pub fn parse_tile_path(path: &str) -> Option<(Tile, bool)> {
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

/// Returns the indices of the leaves under a tile of the lowest level.
#[must_use]
pub fn leaves_of(tile: &Tile) -> std::ops::Range<u64> {
    let first = tile.level_index() << TILE_HEIGHT;
    first..first + u64::from(tile.width())
}

/// The address of a tile: its level, and its number on that level.
pub type TilePlace = (u8, u64);

/// Returns the address of the tile from which a stored hash can be computed.
#[must_use]
pub fn tile_holding(place: u64) -> TilePlace {
    let tile = Tile::from_index(TILE_HEIGHT, place);
    (tile.level(), tile.level_index())
}

/// Computes a stored hash from the hashes of the tile that holds it; `None` if the tile is not wide enough yet.
#[must_use]
pub fn hash_in_tile((level, number): TilePlace, hashes: &[u8], place: u64) -> Option<Hash32> {
    let width = u32::try_from(hashes.len() / 32).ok().filter(|width| (1..=FULL).contains(width))?;
    Tile::new(TILE_HEIGHT, level, number, width, false).hash_at_index(hashes, place).ok().map(|hash| Hash32(hash.0))
}

/// The right edge of a growing tree: the partial tile of each level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edge {
    size: u64,
    levels: Vec<Vec<u8>>,
}

impl Edge {
    /// Returns the partial tiles of a tree with `size` leaves, each with its length in bytes.
    pub fn partial(size: u64) -> impl Iterator<Item = (TilePlace, usize)> {
        (0..LEVELS).filter_map(move |level| {
            let hashes = size >> (u32::from(TILE_HEIGHT) * u32::from(level));
            let width = usize::try_from(hashes % u64::from(FULL)).unwrap_or_default();
            (width > 0).then_some(((level, hashes >> TILE_HEIGHT), width * 32))
        })
    }

    /// Creates the edge of a tree with `size` leaves from its partial tiles. Hashes beyond that size are dropped. `None` if a tile is
    /// missing or too short.
    #[must_use]
    pub fn read(size: u64, tiles: &HashMap<TilePlace, Vec<u8>>) -> Option<Self> {
        let mut levels = vec![Vec::new(); usize::from(LEVELS)];
        for ((level, number), bytes) in Self::partial(size) {
            *levels.get_mut(usize::from(level))? = tiles.get(&(level, number))?.get(..bytes)?.to_vec();
        }
        Some(Self { size, levels })
    }

    /// Returns the number of leaves.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Adds the hash of a leaf. Tiles that become full are moved to `full`.
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

    /// Returns the partial tiles.
    pub fn tiles(&self) -> impl Iterator<Item = (TilePlace, &[u8])> {
        Self::partial(self.size).filter_map(|((level, number), _)| Some(((level, number), self.levels.get(usize::from(level))?.as_slice())))
    }
}

/// A tree at one size: the content of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The origin of the tree: the base address in its first receipt, without the scheme.
    pub origin: String,
    /// The number of leaves.
    pub size: u64,
    /// The root hash.
    pub root: Hash32,
}

impl Checkpoint {
    /// Returns the text that is signed.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.size, STANDARD.encode(self.root.0))
    }

    /// Returns the signed note; `None` if this process does not hold the key.
    #[must_use]
    pub fn sign(&self, keys: &SigningKeys, public_key_hex: &str) -> Option<String> {
        let text = self.text();
        let signature = keys.sign_bytes(public_key_hex, text.as_bytes())?;
        let id = key_id(&self.origin, &bytes_of(public_key_hex)?);
        let line = STANDARD.encode([id.as_slice(), &signature].concat());
        Some(format!("{text}\n\u{2014} {} {line}\n", self.origin))
    }

    /// Reads a signed note. `None` if none of the keys signed it.
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
        // A text that would be formatted differently is not the text that was signed.
        (is_signed && this.text() == text).then_some(this)
    }
}

/// Returns the id of a signer's key, as signed notes contain it.
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

    /// Builds a tree of `size` leaves.
    fn grown(size: u64) -> (Vec<Hash32>, HashMap<u64, Hash32>) {
        let leaves: Vec<Hash32> = (0..size).map(|n| leaf(&n.to_be_bytes())).collect();
        let mut stored = HashMap::new();
        for (index, leaf) in leaves.iter().enumerate() {
            let siblings: Vec<Hash32> = siblings(index as u64).map(|place| stored[&place]).collect();
            stored.extend(new_hashes(index as u64, *leaf, &siblings));
        }
        (leaves, stored)
    }

    fn at(size: u64, stored: &HashMap<u64, Hash32>) -> Checkpoint {
        Checkpoint { origin: "x.example/receipts".to_owned(), size, root: Question::Root { size }.answer(stored).unwrap()[0] }
    }

    /// Proves that every leaf of trees of many sizes has an inclusion proof that is valid for that leaf alone, and that consistency proofs
    /// between all sizes are valid.
    #[test]
    fn proofs_of_all_sizes_verify() {
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

    /// Proves that a tree of which only the tops of subtrees are held has the same root at every size.
    #[test]
    fn growing_trees_have_the_roots() {
        let (leaves, stored) = grown(300);
        let mut tree = GrowingTree::default();
        for leaf in leaves {
            tree.push(leaf);
            assert_eq!(tree.root(), Some(at(tree.size(), &stored).root));
            assert_eq!(tree.subtrees.len(), tree.size().count_ones() as usize);
        }
    }

    /// Proves that a tree built tile by tile, with interruptions, gives the same roots and proofs as one built hash by hash.
    #[test]
    fn incremental_tree_equals_the_whole() {
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

    /// Proves that a checkpoint reads back under its own key, and neither under another key nor after any modification.
    #[test]
    fn checkpoints_verify_only_under_their_key() {
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

    /// Proves that paths of tiles are accepted in the specification's spelling only.
    #[test]
    fn only_canonical_tile_paths_are_accepted() {
        let (tile, is_entries) = parse_tile_path("tile/1/x001/x234/067.p/5").unwrap();
        assert_eq!((tile.level(), tile.level_index(), tile.width(), is_entries), (1, 1_234_067, 5, false));
        let (tile, is_entries) = parse_tile_path("tile/entries/003").unwrap();
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
            assert!(parse_tile_path(bad).is_none(), "{bad}");
        }
    }
}
