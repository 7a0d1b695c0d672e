//! Reproducible random numbers: every number follows from a seed and its purpose, independent of the order of calls.

/// Mixes the bits of a number (the finisher of a common counter-based generator).
pub fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The random numbers of one object (a record, a change, a request). Each number is named by a tag, so that adding one does not change the
/// others.
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// The random numbers of the object with an index, of a kind of objects.
    #[must_use]
    pub fn new(seed: u64, kind: u64, index: u64) -> Self {
        Self(mix(mix(seed ^ kind.wrapping_mul(0xa076_1d64_78bd_642f)) ^ index))
    }

    /// Returns any number.
    #[must_use]
    pub fn roll(self, tag: u64) -> u64 {
        mix(self.0 ^ tag.wrapping_mul(0xe703_7ed1_a0b4_28db))
    }

    /// Returns a number from 0 to below `end`; 0 when `end` is 0.
    pub fn below(self, tag: u64, end: u64) -> u64 {
        if end == 0 { 0 } else { self.roll(tag) % end }
    }

    /// Picks a text of a list; empty for an empty list.
    #[must_use]
    pub fn pick<'a>(self, tag: u64, list: &[&'a str]) -> &'a str {
        list.get(self.below(tag, list.len() as u64) as usize).copied().unwrap_or("")
    }

    /// Picks an item of a list, which must not be empty.
    pub fn choose<T>(self, tag: u64, list: &[T]) -> &T {
        &list[self.below(tag, list.len() as u64) as usize]
    }

    /// Returns true with a probability of one in `of`.
    pub fn once_in(self, tag: u64, of: u64) -> bool {
        self.below(tag, of) == 0
    }

    /// Returns a number from 0.0 to below 1.0.
    pub fn unit(self, tag: u64) -> f64 {
        (self.roll(tag) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
