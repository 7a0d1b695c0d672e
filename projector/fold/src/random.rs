//! Random numbers of tests: the same in every run.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// A generator of random numbers.
pub struct Random(StdRng);

impl Random {
    /// Creates a generator whose numbers depend on the seed alone.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// A number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0.random_range(..bound)
    }

    /// One of several values.
    pub fn one<'a>(&mut self, values: &[&'a str]) -> &'a str {
        values[self.below(values.len())]
    }
}
