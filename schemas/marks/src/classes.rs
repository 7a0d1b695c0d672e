//! Classes of goods and services, and whether a trademark is live.

/// A set of classes: 1 to 45, 200 (collective membership), A and B (certification).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Classes(u64);

impl Classes {
    /// No class.
    pub const NONE: Self = Self(0);

    /// The set of the classes with the given codes of the register: `009` or `9`, `200`, `A`, `B`. Codes that are no class are ignored.
    #[must_use]
    pub fn of_codes<C: AsRef<str>>(codes: impl IntoIterator<Item = C>) -> Self {
        Self(codes.into_iter().filter_map(|code| bit_of(code.as_ref())).fold(0, |set, bit| set | 1 << bit))
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

/// The bit of a class, by its code in the register; `None` if the code is not known.
fn bit_of(code: &str) -> Option<u64> {
    match code.trim() {
        "A" => Some(46),
        "B" => Some(47),
        "200" => Some(48),
        number => number.parse::<u64>().ok().filter(|number| (1..=45).contains(number)),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that classes are found by every spelling of their codes, and that other codes add none.
    #[test]
    fn codes() {
        let classes = Classes::of_codes(["009", "9", " 45 ", "200", "A", "B"]);
        assert_eq!((classes.numbers(), classes.letters()), (vec![9, 45, 200], vec!["A", "B"]));
        assert_eq!(Classes::of_codes(["0", "46", "C", ""]), Classes::NONE);
    }
}
