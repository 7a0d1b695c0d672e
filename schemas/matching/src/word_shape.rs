//! The shape of a word: what shows, without a comparison of its letters, that another word is no partner of it in a name.

use crate::near_names::edits_max;

/// The bits of letters: one for each of A to Z, the others shared by all other characters.
const BITS: u32 = 32;
/// The bits of A to Z.
const LETTER_BITS: u32 = 26;
/// How many of the bits that say which letters occur one edit can change: a substitution removes one letter and adds another.
const BITS_PER_EDIT: u32 = 2;

/// The shape of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WordShape {
    /// How many edits the word admits, see [`edits_max`].
    edits: u32,
    /// Its length in characters.
    chars: u32,
    /// A bit for each letter that occurs in it.
    letters: u32,
}

impl WordShape {
    /// The shape of a word.
    pub(crate) fn of(word: &str) -> Self {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let letters = word.chars().fold(0, |letters: u32, c| letters | (1 << bit(c)));
        Self { edits: count(edits_max(word)), chars: count(word.chars().count()), letters }
    }

    /// Whether the word admits no edit, so that its partner is the same word.
    pub(crate) fn is_fixed(self) -> bool {
        self.edits == 0
    }

    /// Whether a word of another shape may be within the edits that both admit. If not, it is not.
    pub(crate) fn may_be_near(self, other: Self) -> bool {
        let edits = self.edits.min(other.edits);
        self.chars.abs_diff(other.chars) <= edits && (self.letters ^ other.letters).count_ones() <= BITS_PER_EDIT * edits
    }
}

/// The bit of a character.
fn bit(c: char) -> u32 {
    match c {
        'A'..='Z' => u32::from(c) - u32::from('A'),
        _ => LETTER_BITS + u32::from(c) % (BITS - LETTER_BITS),
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// Proves that words within the edits that both admit always have near shapes, and that most other words do not.
    #[test]
    fn near_words_have_near_shapes() {
        let (mut random, mut near, mut apart, mut refused) = (StdRng::seed_from_u64(41), 0, 0, 0);
        for _ in 0..20_000 {
            let length = random.random_range(4..14);
            let word: Vec<char> = (0..length).map(|_| letter(&mut random)).collect();
            let mut other = word.clone();
            for _ in 0..random.random_range(1..4) {
                edit(&mut random, &mut other);
            }
            let (word, other): (String, String) = (word.into_iter().collect(), other.into_iter().collect());
            let limit = edits_max(&word).min(edits_max(&other));
            let may_be_near = WordShape::of(&word).may_be_near(WordShape::of(&other));
            if strsim::osa_distance(&word, &other) <= limit {
                assert!(may_be_near, "{word} {other}");
                near += 1;
            }
            let unrelated: String = (0..length).map(|_| letter(&mut random)).collect();
            apart += 1;
            refused += usize::from(!WordShape::of(&word).may_be_near(WordShape::of(&unrelated)));
        }
        assert!(near > 2_000 && refused * 10 > apart * 8, "{near} {refused} {apart}");
    }

    fn letter(random: &mut StdRng) -> char {
        if random.random_bool(0.1) { '\u{141}' } else { char::from(b'A' + random.random_range(0..26_u8)) }
    }

    /// Changes a word by one edit: a letter inserted, removed, replaced, or swapped with the next.
    fn edit(random: &mut StdRng, word: &mut Vec<char>) {
        let at = random.random_range(0..word.len());
        match random.random_range(0..4) {
            0 => word.insert(at, letter(random)),
            1 if word.len() > 1 => drop(word.remove(at)),
            2 if at + 1 < word.len() => word.swap(at, at + 1),
            _ => word[at] = letter(random),
        }
    }

    /// Proves which words admit no edit, and that shapes of other lengths are apart.
    #[test]
    fn shapes() {
        let shape_of = WordShape::of;
        assert_eq!(["ACME", "B2B", "ACMES"].map(|word| shape_of(word).is_fixed()), [true, true, false]);
        assert!(shape_of("FREIGHT").may_be_near(shape_of("FRIEGHT")) && shape_of("FREIGHT").may_be_near(shape_of("FREIGHTS")));
        assert!(!shape_of("FREIGHT").may_be_near(shape_of("FREIGHTSS")) && !shape_of("FREIGHT").may_be_near(shape_of("FRAMING")));
    }
}
