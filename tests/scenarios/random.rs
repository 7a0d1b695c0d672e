//! Reproducible random numbers, with seeds that are fixed in the tests that CI runs and drawn in longer runs.

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use schemas::clock::Clock;

/// Reads a number from an environment variable.
pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// The variable with which `ops/test --all` and `ops/test --long` let every test draw a new seed.
const DRAW: &str = "HIGHWATER_DRAW";

/// Reads a seed from an environment variable and prints it. Without the variable, the seed is `fixed`, or a new one from the clock if
/// `HIGHWATER_DRAW` is 1.
#[expect(clippy::print_stdout, reason = "the output of a failed test says how to repeat it")]
pub(crate) fn seed(name: &str, fixed: u64) -> u64 {
    let drawn = || std::env::var(DRAW).is_ok_and(|draw| draw == "1").then(|| u64::try_from(Clock::System.now_ms()).unwrap());
    let seed = number(name).or_else(drawn).unwrap_or(fixed);
    println!("{name}={seed}");
    seed
}

/// Generates small random numbers from a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Returns the generator of one of many objects under a seed.
    pub(crate) fn of(seed: u64, number: u64) -> Self {
        let mut whole = [0; 32];
        whole[..8].copy_from_slice(&seed.to_le_bytes());
        whole[8..16].copy_from_slice(&number.to_le_bytes());
        Self(StdRng::from_seed(whole).next_u64())
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// Picks one of several values.
    pub(crate) fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }
}
