//! Rule `S6`: nearly the same letters in nearly the same order, by the Jaro-Winkler similarity; and what that says of the letters of both texts,
//! so that the index finds them.

/// The letters of the shorter text from which on the rule applies.
pub(crate) const NEAR_LETTERS_MIN: usize = 7;
/// The least Jaro-Winkler similarity.
const NEAR_SIMILARITY_MIN: f64 = 0.94;
/// The longest beginning that raises the similarity, in letters.
pub(crate) const PREFIX_LETTERS_MAX: usize = 4;

/// Whether rule `S6` holds for two texts with numbers spelled. The result is the same in either order.
pub(crate) fn are_near(one: &str, other: &str) -> bool {
    // The smaller text comes first, because the similarity depends on the order.
    let (text, longer) = if (one.len(), one) <= (other.len(), other) { (one, other) } else { (other, one) };
    let is_long_enough = |text: &str| text.chars().nth(NEAR_LETTERS_MIN - 1).is_some();
    is_long_enough(text) && is_long_enough(longer) && strsim::jaro_winkler(text, longer) >= NEAR_SIMILARITY_MIN
}

/// The letters of a name, for a first look at many texts.
pub(crate) struct NearLetters<'a> {
    name: &'a str,
    counts: [u8; 26],
}

impl<'a> NearLetters<'a> {
    /// The name has numbers spelled.
    pub(crate) fn of(name: &'a str) -> Self {
        let mut counts = [0_u8; 26];
        for byte in name.bytes() {
            if let Some(count) = counts.get_mut(usize::from(byte.wrapping_sub(b'A'))) {
                *count = count.saturating_add(1);
            }
        }
        Self { name, counts }
    }

    /// Whether rule `S6` may hold for the name and a text with numbers spelled: it does not if too few letters are in both. Both are in Latin
    /// capitals; of other texts nothing is said.
    pub(crate) fn may_be_near(&self, text: &str) -> bool {
        let (mut left, mut common) = (self.counts, 0_usize);
        for byte in text.bytes() {
            let Some(count) = left.get_mut(usize::from(byte.wrapping_sub(b'A'))) else { return true };
            if *count > 0 {
                *count -= 1;
                common += 1;
            }
        }
        let prefix = self.name.bytes().zip(text.bytes()).take(PREFIX_LETTERS_MAX).take_while(|(a, b)| a == b).count();
        let share = |whole: &str| common as f64 / whole.len().max(1) as f64;
        // The similarity if no letter was moved.
        let most = (share(self.name) + share(text) + 1.0) / 3.0;
        // A little less than the bound, so that rounding excludes nothing.
        most + 0.1 * prefix as f64 * (1.0 - most) >= NEAR_SIMILARITY_MIN - 1e-9
    }
}

/// The edits up to which rule `S3` holds, for the number of letters of the shorter text.
pub(crate) fn edits_max(letters: usize) -> usize {
    match letters {
        9.. => 2,
        5..=8 => 1,
        _ => 0,
    }
}

/// Returns how many letters of two texts have no partner in the other one at most, if rule `S6` holds for them, `S3` does not, and the first letters
/// that they have in common are at most `prefix`. The texts are given by their numbers of letters. `None` if there are no such texts.
///
/// With `a` and `b` letters, of which `x` and `y` have no partner, and `t` transpositions, the similarity is at least 0.94 only if
/// `x/a + y/b + t/(a - x)` is at most `0.18 / (1 - prefix/10)`.
pub(crate) fn unpaired_max(one: usize, other: usize, prefix: usize) -> Option<usize> {
    let (a, b) = (one.min(other), one.max(other));
    if a < NEAR_LETTERS_MIN {
        return None;
    }
    let share = |part: usize, of: usize| part as f64 / of as f64;
    // Above the exact bound, so that rounding excludes nothing.
    let limit = 3.0 * (1.0 - NEAR_SIMILARITY_MIN) / (1.0 - share(prefix.min(PREFIX_LETTERS_MAX), 10)) + 1e-9;
    let unpaired = (0..a).map(|x| (x, x + b - a)).take_while(|(x, y)| share(*x, a) + share(*y, b) <= limit);
    // Without a transposition each letter without a partner is one edit, so that few of them are a case of `S3`.
    let is_left = |(x, y): &(usize, usize)| x + y > edits_max(a) || share(*x, a) + share(*y, b) + share(1, a - x) <= limit;
    unpaired.filter(is_left).map(|(x, y)| x + y).max()
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// Proves that texts are near without a common beginning, that six letters are too few, and that the order does not matter.
    #[test]
    fn near_texts() {
        for (one, other, expected) in [
            ("COMMCASH", "COMMUNICASH", true),
            ("CABDEFGH", "ABCDEFGH", true),
            ("SOLARENETGRID", "OSLARENTEGRID", true),
            ("ABCDEF", "ABCDEFG", false),
            ("VELTRAXAN", "BELGRAXON", false),
        ] {
            assert_eq!((are_near(one, other), are_near(other, one)), (expected, expected), "{one} and {other}");
        }
    }

    /// Proves for random texts of few letters that the first look excludes none for which the rule holds, and excludes most others.
    #[test]
    fn the_first_look_excludes_no_near_text() {
        let mut random = StdRng::seed_from_u64(41);
        let text = |random: &mut StdRng| -> String {
            let length = random.random_range(7..24);
            (0..length).map(|_| char::from(b"EAOINR"[random.random_range(0..6)])).collect()
        };
        let (mut near, mut passed) = (0, 0);
        for _ in 0..4_000 {
            let one = text(&mut random);
            let mut letters: Vec<char> = one.chars().collect();
            for _ in 0..random.random_range(0..5) {
                let (at, other) = (random.random_range(0..letters.len()), random.random_range(0..letters.len()));
                letters.swap(at, other);
            }
            letters.truncate(random.random_range(6..=letters.len()));
            for other in [letters.into_iter().collect(), text(&mut random)] {
                let may = NearLetters::of(&one).may_be_near(&other);
                assert!(may || !are_near(&one, &other), "{one} and {other}");
                near += usize::from(are_near(&one, &other));
                passed += usize::from(may);
            }
        }
        assert!(near > 200 && passed < 5_000, "{near} {passed}");
        assert!(NearLetters::of("SCHLOSS").may_be_near("КОШКА"), "of other letters nothing is said");
    }

    /// Proves how many letters have no partner at most: none at seven letters without a common beginning, and more with the length.
    #[test]
    fn unpaired_letters() {
        assert_eq!((unpaired_max(6, 7, 3), unpaired_max(7, 7, 0), unpaired_max(7, 9, 0)), (None, Some(0), None));
        assert_eq!((unpaired_max(7, 9, 3), unpaired_max(9, 7, 3), unpaired_max(20, 20, 3)), (Some(2), Some(2), Some(4)));
    }
}
