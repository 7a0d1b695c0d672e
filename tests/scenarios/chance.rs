//! Chance that can be repeated: numbers from a seed, and seeds from the environment.

use schemas::clock::Clock;

/// A number that the environment gives to a scenario.
pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// The seed that the environment names, or one that no run had before.
pub(crate) fn seed(name: &str) -> u64 {
    number(name).unwrap_or_else(|| u64::try_from(Clock::System.now_ms()).unwrap())
}

/// Small random numbers from a seed.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// One of a few.
    pub(crate) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }
}
