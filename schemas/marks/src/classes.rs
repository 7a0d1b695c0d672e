//! Classes of goods and services, and whether a trademark is live.

/// A set of classes: 1 to 45, 200 (collective membership), A and B (certification).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Classes(u64);

impl Classes {
    /// No class.
    pub const NONE: Self = Self(0);

    /// Adds a class by its code in the register: `009` or `9`, `200`, `A`, `B`. Returns whether the code is known.
    pub fn insert_code(&mut self, code: &str) -> bool {
        let bit = match code.trim() {
            "A" => 46,
            "B" => 47,
            "200" => 48,
            number => match number.parse::<u64>() {
                Ok(number @ 1..=45) => number,
                _ => return false,
            },
        };
        self.0 |= 1 << bit;
        true
    }

    /// The set of the given numbers; numbers that are no class are ignored.
    #[must_use]
    pub fn of(numbers: &[u8]) -> Self {
        Self(numbers.iter().filter(|number| (1..=45).contains(*number)).fold(0, |set, number| set | 1 << number))
    }

    /// Whether the sets have a class in common. The empty set means every class.
    #[must_use]
    pub fn meets(self, other: Self) -> bool {
        self.0 == 0 || self.0 & other.0 != 0
    }

    /// The numbers of the set, ascending; 200 is the last one.
    #[must_use]
    pub fn numbers(self) -> Vec<u8> {
        let known = (1..=45).filter(|number| self.0 >> number & 1 == 1);
        known.chain((self.0 >> 48 & 1 == 1).then_some(200)).collect()
    }

    /// The certification classes of the set.
    #[must_use]
    pub fn letters(self) -> Vec<&'static str> {
        [(46, "A"), (47, "B")].iter().filter(|(bit, _)| self.0 >> bit & 1 == 1).map(|(_, letter)| *letter).collect()
    }

    /// The set as bits, for storage.
    #[must_use]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The set from its bits; bits that mean no class are dropped.
    #[must_use]
    pub fn from_bits(bits: u64) -> Self {
        Self(bits & ((1 << 49) - 2))
    }
}

/// Whether a trademark counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Registered or pending.
    Live,
    /// The register's code is neutral, missing or not in its table: counts one tier lower.
    Unknown,
    /// Abandoned, cancelled or expired: does not count.
    Dead,
}
