//! Consonants in common: skeletons that are equal, or become equal when one consonant of each, or of one, is left out.

use crate::meanings::{common_beginning, common_end};

/// The fewest consonants that are all consonants of two marks by which rule `P8` holds.
const EQUAL_CONSONANTS_MIN: usize = 3;
/// The fewest consonants in common, where one of each mark or of one is left out, by which rule `P8` holds.
pub(crate) const COMMON_CONSONANTS_MIN: usize = 4;

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
        let mut near = [0; 3];
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
                if expected {
                    near[if short == long { 0 } else { 1 + long.len() - short.len() }] += 1;
                }
            }
        }
        assert!(near.iter().all(|count| *count > 100), "{near:?}");
    }
}
