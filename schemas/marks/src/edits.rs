//! The optimal string alignment distance of two texts: how many letters are inserted, left out, replaced or swapped with the next one.

/// Letters of a text that fit in one word of bits.
const LETTERS_MAX: usize = 64;

/// Returns the optimal string alignment distance, in letters.
///
/// Texts of Latin capitals are compared a column at a time (H. Hyyrö, "A bit-vector algorithm for computing Levenshtein and Damerau edit distances",
/// 2003), without allocation; all others by `strsim`.
pub(crate) fn edits(one: &str, other: &str) -> usize {
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_uppercase());
    if !(1..=LETTERS_MAX).contains(&one.len()) || !is_plain(one) || !is_plain(other) {
        return strsim::osa_distance(one, other);
    }
    // For each letter, the places where `one` has it.
    let mut places = [0_u64; 26];
    for (at, byte) in one.bytes().enumerate() {
        if let Some(places) = places.get_mut(usize::from(byte - b'A')) {
            *places |= 1 << at;
        }
    }
    let last = 1_u64 << (one.len() - 1);
    // Of a column: where the distance rises by one to the next row, where it falls, and where it is that of the diagonal.
    let (mut rises, mut falls, mut is_equal, mut before) = (u64::MAX, 0_u64, 0_u64, 0_u64);
    let mut distance = one.len();
    for byte in other.bytes() {
        let here = places.get(usize::from(byte - b'A')).copied().unwrap_or_default();
        let swapped = ((!is_equal & here) << 1) & before;
        is_equal = ((here & rises).wrapping_add(rises) ^ rises) | here | falls | swapped;
        let up = falls | !(is_equal | rises);
        let down = is_equal & rises;
        distance += usize::from(up & last != 0);
        distance -= usize::from(down & last != 0);
        let up = (up << 1) | 1;
        rises = (down << 1) | !(is_equal | up);
        falls = up & is_equal;
        before = here;
    }
    distance
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// Proves that the distance is that of `strsim` for texts of up to 70 letters, of which few are different, also if one is empty or has other
    /// letters.
    #[test]
    fn distances_are_those_of_strsim() {
        let mut random = StdRng::seed_from_u64(31);
        let text = |random: &mut StdRng, letters: &[char]| -> String {
            let count = [0, 1, 2, 3, 5, 8, 13, 63, 64, 65, 70][random.random_range(0..11)];
            (0..count).map(|_| letters[random.random_range(0..letters.len())]).collect()
        };
        for letters in [&['A', 'B'][..], &['A', 'B', 'C', 'Z'][..], &['A', 'É', '가'][..]] {
            for _ in 0..1_500 {
                let (one, other) = (text(&mut random, letters), text(&mut random, letters));
                assert_eq!(edits(&one, &other), strsim::osa_distance(&one, &other), "{one} and {other}");
            }
        }
        assert_eq!((edits("TURCOOL", "TRUCOOL"), edits("SEIKO", "SEYCO"), edits("", "AB")), (1, 2, 2));
    }
}
