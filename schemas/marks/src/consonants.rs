//! Consonants in common: skeletons that are equal, or become equal when one consonant of each, or of one, is left out.

use crate::meanings::{common_beginning, common_end};

/// The fewest consonants that are all consonants of two marks by which rule `P8` holds.
pub(crate) const EQUAL_CONSONANTS_MIN: usize = 3;
/// The fewest consonants in common, where one of each mark or of one is left out, by which rule `P8` holds.
pub(crate) const COMMON_CONSONANTS_MIN: usize = 4;

/// The sounds of a skeleton. A vowel is only its first one.
const SOUNDS: &[u8; 12] = b"aFXKTSPNLRH0";
/// The sounds of a skeleton that is a number.
const PACKED_SOUNDS_MAX: usize = 8;

/// A skeleton as a number, so that two of them are compared without their letters. Each sound takes four bits, and the first one takes the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedSkeleton(u32);

impl PackedSkeleton {
    /// A skeleton that is not known as a number: no sound has all four bits.
    pub(crate) const UNKNOWN: Self = Self(u32::MAX);

    /// The number of a skeleton; unknown if it has more than eight sounds.
    pub(crate) fn of(skeleton: &str) -> Self {
        if skeleton.len() > PACKED_SOUNDS_MAX {
            return Self::UNKNOWN;
        }
        let mut bits = 0_u32;
        for sound in skeleton.bytes() {
            let Some(place) = SOUNDS.iter().position(|known| *known == sound) else { return Self::UNKNOWN };
            bits = bits << 4 | (place as u32 + 1);
        }
        // A shift by all bits is that of the empty skeleton, which is zero.
        Self(bits.checked_shl(4 * (PACKED_SOUNDS_MAX - skeleton.len()) as u32).unwrap_or_default())
    }

    /// The skeleton as bits, for storage.
    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    /// The skeleton of bits.
    pub(crate) fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// As [`are_near_skeletons`]; `None` if one is unknown.
    pub(crate) fn near(self, other: Self) -> Option<bool> {
        if self == Self::UNKNOWN || other == Self::UNKNOWN {
            return None;
        }
        let (short, long) = if self.count() <= other.count() { (self, other) } else { (other, self) };
        let differing = short.0 ^ long.0;
        let first = differing.leading_zeros() / 4;
        Some(match long.count() - short.count() {
            0 if differing == 0 => short.count() >= EQUAL_CONSONANTS_MIN,
            0 => {
                let last = PACKED_SOUNDS_MAX as u32 - 1 - differing.trailing_zeros() / 4;
                let is_equal = short.without(first) == long.without(last) || short.without(last) == long.without(first);
                short.count() > COMMON_CONSONANTS_MIN && is_equal
            }
            1 => short.count() >= COMMON_CONSONANTS_MIN && long.without(first) == short.0,
            _ => false,
        })
    }

    /// The number of sounds.
    fn count(self) -> usize {
        PACKED_SOUNDS_MAX - self.0.trailing_zeros() as usize / 4
    }

    /// The bits that remain when the sound at a place below eight is left out.
    fn without(self, place: u32) -> u32 {
        let from_place = u32::MAX >> (4 * place);
        (self.0 & !from_place) | ((self.0 << 4) & from_place)
    }
}

impl Default for PackedSkeleton {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

/// Whether two skeletons are equal, or become equal when one consonant of each, or of one, is left out. Skeletons are ASCII.
pub(crate) fn are_near_skeletons(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    match long.len() - short.len() {
        0 if short == long => short.len() >= EQUAL_CONSONANTS_MIN,
        0 => short.len() > COMMON_CONSONANTS_MIN && are_equal_without_one_each(short, long),
        1 => short.len() >= COMMON_CONSONANTS_MIN && is_without_one(short, long),
        _ => false,
    }
}

/// Whether the longer text becomes the other when one character is left out. If it does, the first one that differs can be left out.
fn is_without_one(short: &str, long: &str) -> bool {
    let at = common_beginning(short, long);
    long.get(at + 1..) == short.get(at..)
}

/// Whether two different texts of the same length become equal when one character of each is left out.
///
/// If one text can leave out its character at `i` and the other at `j >= i`, then `i` is not after the first place that differs, because the texts are
/// equal before. If it is before this place, the characters from `i` up to this place are all the same, so that the one at this place can be left out
/// instead. In the same way, `j` can be the last place that differs.
fn are_equal_without_one_each(one: &str, other: &str) -> bool {
    let first = common_beginning(one, other);
    let Some(last) = one.len().checked_sub(common_end(one, other) + 1) else { return false };
    one.get(first + 1..=last) == other.get(first..last) || other.get(first + 1..=last) == one.get(first..last)
}

/// The texts that remain when one character is left out. The text is ASCII.
pub(crate) fn one_left_out(text: &str) -> Vec<String> {
    (0..text.len()).map(|at| text.bytes().enumerate().filter(|(index, _)| *index != at).map(|(_, byte)| byte as char).collect()).collect()
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// Proves for random skeletons of few consonants that they are near if and only if texts that remain without one consonant are equal.
    #[test]
    fn near_skeletons_have_a_text_without_one_consonant_in_common() {
        let mut random = StdRng::seed_from_u64(81);
        let skeleton = |random: &mut StdRng| -> String {
            let count = random.random_range(0..9);
            (0..count).map(|_| char::from(b"KLT"[random.random_range(0..3)])).collect()
        };
        let (mut near, mut long_skeletons) = ([0; 3], 0);
        for _ in 0..40_000 {
            let one = skeleton(&mut random);
            let mut changed: Vec<char> = one.chars().collect();
            for _ in 0..random.random_range(0..3) {
                let at = random.random_range(0..=changed.len());
                if random.random_bool(0.5) {
                    changed.insert(at, 'R');
                } else if at < changed.len() {
                    changed.remove(at);
                }
            }
            for other in [changed.into_iter().collect(), skeleton(&mut random)] {
                let (short, long) = if one.len() <= other.len() { (&one, &other) } else { (&other, &one) };
                let expected = match long.len() - short.len() {
                    0 if short == long => short.len() >= EQUAL_CONSONANTS_MIN,
                    0 => short.len() > COMMON_CONSONANTS_MIN && one_left_out(short).iter().any(|text| one_left_out(long).contains(text)),
                    1 => short.len() >= COMMON_CONSONANTS_MIN && one_left_out(long).contains(short),
                    _ => false,
                };
                let found = (are_near_skeletons(&one, &other), are_near_skeletons(&other, &one));
                assert_eq!(found, (expected, expected), "{one} and {other}");
                let packed = (PackedSkeleton::of(&one), PackedSkeleton::of(&other));
                let is_known = long.len() <= PACKED_SOUNDS_MAX;
                long_skeletons += usize::from(!is_known);
                assert_eq!(packed.0.near(packed.1), is_known.then_some(expected), "{one} and {other}");
                assert_eq!(packed.1.near(packed.0), is_known.then_some(expected), "{one} and {other}");
                if expected {
                    near[if short == long { 0 } else { 1 + long.len() - short.len() }] += 1;
                }
            }
        }
        assert!(near.iter().all(|count| *count > 100) && long_skeletons > 100, "{near:?} {long_skeletons}");
    }

    /// Proves that skeletons of up to eight sounds are different numbers, that each sound is known, and that longer ones are unknown.
    #[test]
    fn skeletons_are_numbers() {
        let numbers: std::collections::BTreeSet<u32> =
            ["", "a", "aa", "F", "FX", "XF", "KTSPNLRH", "0000000", "00000000"].map(|text| PackedSkeleton::of(text).bits()).into();
        assert!(numbers.len() == 9 && !numbers.contains(&PackedSkeleton::UNKNOWN.bits()), "{numbers:?}");
        assert_eq!((PackedSkeleton::of("").bits(), PackedSkeleton::of("aF").bits()), (0, 0x1200_0000));
        assert_eq!([PackedSkeleton::of("000000000"), PackedSkeleton::of("?")], [PackedSkeleton::UNKNOWN; 2]);
        for text in ["PHOSPHOROUS", "JACKSHAW", "QUIVERDEX", "4BOMZHE"] {
            let skeleton = crate::sound::skeleton(&crate::sound::syllables(text));
            assert!(skeleton.bytes().all(|sound| SOUNDS.contains(&sound)), "{skeleton}");
        }
    }
}
