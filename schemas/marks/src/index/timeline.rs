//! How many marks the register had at each position: one bit a position for a new mark, for one that became live, and for one that ceased to be.

use std::sync::Arc;

use super::changes::{Change, Corpus};

/// Positions of a chunk.
const CHUNK_POSITIONS: usize = 1 << 14;
/// Words of a chunk, for each kind of bits.
const CHUNK_WORDS: usize = CHUNK_POSITIONS / 64;

/// The counts of positions `0..CHUNK_POSITIONS` of a chunk, and what was before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// The counts before the first position of the chunk.
    pub(super) before: Corpus,
    /// Bits of new marks, of marks that became live, and of marks that ceased to be live.
    pub(super) bits: [Vec<u64>; 3],
}

impl Chunk {
    fn new(before: Corpus) -> Self {
        Self { before, bits: std::array::from_fn(|_| vec![0; CHUNK_WORDS]) }
    }

    /// The counts up to a position of the chunk, inclusive.
    fn corpus(&self, at: usize) -> Corpus {
        let count = |bits: &[u64]| -> u64 {
            let whole = bits.iter().take(at / 64).map(|word| u64::from(word.count_ones())).sum::<u64>();
            let last = bits.get(at / 64).map_or(0, |word| word & (u64::MAX >> (63 - at % 64)));
            whole + u64::from(last.count_ones())
        };
        let [new, risen, fallen] = self.bits.each_ref().map(|bits| count(bits));
        Corpus { marks: self.before.marks + new, live_marks: (self.before.live_marks + risen).saturating_sub(fallen) }
    }
}

/// The counts of every position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Timeline {
    pub(super) chunks: Vec<Arc<Chunk>>,
}

impl Timeline {
    /// The timeline of a snapshot; `None` if a chunk does not have its length.
    pub(super) fn of_snapshot(chunks: Vec<Chunk>) -> Option<Self> {
        let is_sound = chunks.iter().all(|chunk| chunk.bits.iter().all(|bits| bits.len() == CHUNK_WORDS));
        is_sound.then(|| Self { chunks: chunks.into_iter().map(Arc::new).collect() })
    }

    /// Adds changes in their order, and positions without a change up to `seq`.
    pub(super) fn extend(&mut self, changes: &[Change], seq: u32) {
        for change in changes {
            self.reach(change.seq);
            let is_live = change.after.as_ref().is_some_and(|entry| entry.is_live);
            let was_live = change.was_live && !change.is_new;
            let set = [change.is_new, is_live && !was_live, was_live && !is_live];
            let (chunk, at) = place(change.seq);
            let Some(chunk) = self.chunks.get_mut(chunk) else { continue };
            for (bits, _) in Arc::make_mut(chunk).bits.iter_mut().zip(set).filter(|(_, is_set)| *is_set) {
                if let Some(word) = bits.get_mut(at / 64) {
                    *word |= 1 << (at % 64);
                }
            }
        }
        self.reach(seq);
    }

    /// Adds chunks up to a position.
    fn reach(&mut self, seq: u32) {
        while self.chunks.len() <= place(seq).0 {
            let before = self.chunks.last().map(|chunk| chunk.corpus(CHUNK_POSITIONS - 1)).unwrap_or_default();
            self.chunks.push(Arc::new(Chunk::new(before)));
        }
    }

    /// The counts at a position.
    pub(super) fn corpus(&self, at: u32) -> Corpus {
        let (chunk, at) = place(at);
        match self.chunks.get(chunk) {
            Some(chunk) => chunk.corpus(at),
            None => self.chunks.last().map(|chunk| chunk.corpus(CHUNK_POSITIONS - 1)).unwrap_or_default(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.chunks.len() * (3 * CHUNK_WORDS * 8 + size_of::<Chunk>())
    }
}

/// The chunk of a position, and the position in it.
fn place(seq: u32) -> (usize, usize) {
    (seq as usize / CHUNK_POSITIONS, seq as usize % CHUNK_POSITIONS)
}
