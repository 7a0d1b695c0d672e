//! The optimal string alignment distance of two texts: how many letters are inserted, left out, replaced or swapped with the next one.

/// Letters of a text that fit in one word of bits.
const LETTERS_MAX: usize = 64;

/// Returns the optimal string alignment distance, in letters.
pub(crate) fn edits(one: &str, other: &str) -> usize {
    EditPattern::of(one).edits(other)
}

/// A text that is compared with others.
///
/// Texts of Latin capitals are compared a column at a time (H. Hyyrö, "A bit-vector algorithm for computing Levenshtein and Damerau edit distances",
/// 2003), without allocation; all others by `strsim`.
#[derive(Clone, Debug)]
pub(crate) struct EditPattern<'a> {
    text: &'a str,
    /// For each letter, the places where the text has it. `None` if the text is not compared in columns.
    places: Option<[u64; 26]>,
}

impl<'a> EditPattern<'a> {
    /// Prepares a text.
    pub(crate) fn of(text: &'a str) -> Self {
        if !(1..=LETTERS_MAX).contains(&text.len()) || !is_plain(text) {
            return Self { text, places: None };
        }
        let mut places = [0_u64; 26];
        for (at, byte) in text.bytes().enumerate() {
            if let Some(places) = places.get_mut(usize::from(byte - b'A')) {
                *places |= 1 << at;
            }
        }
        Self { text, places: Some(places) }
    }

    /// Returns the optimal string alignment distance to another text, in letters.
    pub(crate) fn edits(&self, other: &str) -> usize {
        let Some(places) = &self.places else { return strsim::osa_distance(self.text, other) };
        let last = 1_u64 << (self.text.len() - 1);
        // Of a column: where the distance rises by one to the next row, where it falls, and where it is that of the diagonal.
        let (mut rises, mut falls, mut is_equal, mut before) = (u64::MAX, 0_u64, 0_u64, 0_u64);
        let mut distance = self.text.len();
        for byte in other.bytes() {
            let Some(here) = places.get(usize::from(byte.wrapping_sub(b'A'))).copied() else {
                return strsim::osa_distance(self.text, other);
            };
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
}

/// Whether a text has Latin capitals only.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_uppercase())
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
