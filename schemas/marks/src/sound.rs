//! How a mark sounds: Double Metaphone keys, consonants by class, and a distance that weighs a change by how much of it is heard and seen.

use std::sync::LazyLock;

use rphonetic::DoubleMetaphone;

static METAPHONE: LazyLock<DoubleMetaphone> = LazyLock::new(|| DoubleMetaphone::new(None));

/// The Double Metaphone keys of a text in Latin capitals, each once.
pub(crate) fn keys(text: &str) -> Vec<String> {
    if !text.is_ascii() {
        return Vec::new();
    }
    let result = METAPHONE.double_metaphone(text);
    let (one, other) = (result.primary(), result.alternate());
    let mut keys = Vec::with_capacity(2);
    if one != other && !other.is_empty() {
        keys.push(other);
    }
    if !one.is_empty() {
        keys.insert(0, one);
    }
    keys
}

/// The first Double Metaphone key of a text in Latin capitals.
pub(crate) fn primary_key(text: &str) -> String {
    if text.is_ascii() { METAPHONE.double_metaphone(text).primary() } else { String::new() }
}

/// The sounds of a text by class, all vowels as `a`, neighbours that are alike once: `HUGGIES` is `HaKaS`.
pub(crate) fn syllables(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    write_syllables(text, &mut out);
    out
}

/// As [`syllables`], into a text whose memory is used again.
pub(crate) fn write_syllables(text: &str, out: &mut String) {
    out.clear();
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at + 1).copied().unwrap_or(b' ');
        if byte == next {
            at += 1;
            continue;
        }
        let (sound, used): (&str, usize) = match (byte, next) {
            (b'P', b'H') => ("F", 2),
            (b'C' | b'S', b'H') => ("X", 2),
            (b'C', b'K') => ("K", 2),
            (b'G', b'H') => (if out.is_empty() { "K" } else { "" }, 2),
            (b'K' | b'G', b'N') | (b'W', b'R') | (b'P', b'S') if at == 0 => ("", 1),
            (b'T', b'H') => ("T", 2),
            (b'Q', b'U') => ("K", 2),
            (b'C', b'E' | b'I' | b'Y') => ("S", 1),
            (b'A' | b'E' | b'I' | b'O' | b'U' | b'Y', _) => ("a", 1),
            (b'B' | b'P', _) => ("P", 1),
            (b'D' | b'T', _) => ("T", 1),
            (b'C' | b'G' | b'K' | b'Q', _) => ("K", 1),
            (b'F' | b'V', _) => ("F", 1),
            (b'S' | b'Z', _) => ("S", 1),
            (b'X', _) => (if at == 0 { "S" } else { "KS" }, 1),
            (b'J', _) => ("X", 1),
            (b'M' | b'N', _) => ("N", 1),
            (b'L', _) => ("L", 1),
            (b'R', _) => ("R", 1),
            (b'H' | b'W', _) => (if at == 0 { "H" } else { "" }, 1),
            (other, _) if other.is_ascii_digit() => ("0", 1),
            _ => ("", 1),
        };
        // All sounds are ASCII.
        for sound in sound.bytes() {
            if out.as_bytes().last() != Some(&sound) {
                out.push(char::from(sound));
            }
        }
        at += used;
    }
}

/// The consonants by class of what [`syllables`] returned: the sounds without vowels, except a vowel at the beginning.
pub(crate) fn skeleton(sounds: &str) -> String {
    let mut out = String::with_capacity(sounds.len());
    write_skeleton(sounds, &mut out);
    out
}

/// As [`skeleton`], into a text whose memory is used again.
pub(crate) fn write_skeleton(sounds: &str, out: &mut String) {
    out.clear();
    for (at, sound) in sounds.bytes().enumerate() {
        if (sound != b'a' || at == 0) && out.as_bytes().last() != Some(&sound) {
            out.push(char::from(sound));
        }
    }
}

/// What it costs to change a consonant.
const FULL: u32 = 10;
/// What it costs to swap two letters.
const SWAPPED: u32 = 6;

fn is_vowel(byte: u8) -> bool {
    matches!(byte, b'A' | b'E' | b'I' | b'O' | b'U' | b'Y')
}

/// The class of letters that are hard to distinguish by ear.
fn class(byte: u8) -> u8 {
    match byte {
        b'B' | b'P' => b'P',
        b'D' | b'T' => b'T',
        b'C' | b'G' | b'K' | b'Q' | b'X' => b'K',
        b'F' | b'V' => b'F',
        b'S' | b'Z' => b'S',
        b'M' | b'N' => b'N',
        other => other,
    }
}

fn replaced(one: u8, other: u8, is_first: bool) -> u32 {
    match () {
        () if one == other => 0,
        () if is_vowel(one) && is_vowel(other) => 3,
        () if class(one) == class(other) => 4,
        () if matches!((one, other), (b'C', b'S') | (b'S', b'C')) => 3,
        () if is_first => FULL + FULL / 2,
        () => FULL,
    }
}

fn dropped(letter: u8, before: Option<u8>, is_first: bool) -> u32 {
    match () {
        () if before == Some(letter) => 1,
        () if matches!(letter, b'H' | b'W') => 3,
        () if is_vowel(letter) && before.is_some_and(is_vowel) => 3,
        () if is_vowel(letter) => 5,
        () if is_first => FULL + FULL / 2,
        () if before.is_some_and(|before| class(before) == class(letter)) => 2,
        () => FULL,
    }
}

/// The bit of a capital; no bit for another letter.
fn letter_bit(letter: u8) -> u32 {
    1_u32.checked_shl(u32::from(letter.wrapping_sub(b'A'))).unwrap_or_default()
}

/// The distance of two texts in Latin capitals in tenths of a letter: changes of vowels and of letters that sound alike cost less, those of the
/// first letter more.
pub(crate) fn weighted_distance(one: &str, other: &str) -> u32 {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let before = |text: &[u8], at: usize| at.checked_sub(1).and_then(|at| text.get(at).copied());
    let width = other.len() + 1;
    let mut rows = vec![0_u32; (one.len() + 1) * width];
    for i in 0..=one.len() {
        for j in 0..=other.len() {
            let mut best = if i == 0 && j == 0 { 0 } else { u32::MAX };
            if i > 0 {
                best = best.min(rows[(i - 1) * width + j] + dropped(one[i - 1], before(one, i - 1), i == 1));
            }
            if j > 0 {
                best = best.min(rows[i * width + j - 1] + dropped(other[j - 1], before(other, j - 1), j == 1));
            }
            if i > 0 && j > 0 {
                best = best.min(rows[(i - 1) * width + j - 1] + replaced(one[i - 1], other[j - 1], i == 1 && j == 1));
            }
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                best = best.min(rows[(i - 2) * width + j - 2] + SWAPPED);
            }
            rows[i * width + j] = best;
        }
    }
    rows[one.len() * width + other.len()]
}

/// A text in Latin capitals that is compared with others by [`weighted_distance`]: what each change of it costs is computed once, and what one of the
/// others has in common with the one before at its beginning is compared once.
#[derive(Clone, Debug)]
pub(crate) struct WeightedText {
    letters: Vec<u8>,
    /// What it costs to leave out each letter.
    dropped: Vec<u32>,
    /// For each capital in turn, what it costs to put it in the place of each letter. The first letters of two texts cost more.
    replaced: Vec<u32>,
    /// For each capital, a bit for each letter that follows it somewhere in the text.
    followers: [u32; 26],
    /// The letters of the other text that was compared last, as far as they were compared.
    other: Vec<u8>,
    /// The distances of the beginnings of the text to each beginning of the other text: a column for the empty one and for each letter of `other`.
    columns: Vec<u32>,
    /// The least distance of each column.
    least: Vec<u32>,
}

impl WeightedText {
    /// Prepares a text in Latin capitals.
    pub(crate) fn of(text: &str) -> Self {
        let letters = text.as_bytes().to_vec();
        let before = |at: usize| at.checked_sub(1).and_then(|at| letters.get(at).copied());
        let dropped: Vec<u32> = letters.iter().enumerate().map(|(at, letter)| dropped(*letter, before(at), at == 0)).collect();
        let replaced = (b'A'..=b'Z').flat_map(|other| letters.iter().map(move |letter| replaced(*letter, other, false))).collect();
        let mut followers = [0_u32; 26];
        for (letter, next) in letters.iter().zip(letters.iter().skip(1)) {
            if let Some(followers) = followers.get_mut(usize::from(letter.wrapping_sub(b'A'))) {
                *followers |= letter_bit(*next);
            }
        }
        // Of an empty text: all letters are left out.
        let mut columns = vec![0_u32];
        columns.extend(dropped.iter().scan(0_u32, |total, loss| {
            *total += *loss;
            Some(*total)
        }));
        Self { letters, dropped, replaced, followers, other: Vec::new(), columns, least: vec![0] }
    }

    /// Returns a number that the weighted distance to another text does not exceed: what it costs to replace each letter by the one in its place, where
    /// the longer text leaves out the one letter that it has more. `u32::MAX` if it has several more.
    pub(crate) fn distance_max(&self, other: &str) -> u32 {
        let (own, other) = (&self.letters, other.as_bytes());
        let pair = |at: usize, place: usize| match (own.get(at), other.get(place)) {
            (Some(letter), Some(its)) => {
                let cost = self.replaced.get(usize::from(its.wrapping_sub(b'A')) * own.len() + at).filter(|_| at + place > 0);
                cost.copied().unwrap_or_else(|| replaced(*letter, *its, at + place == 0))
            }
            _ => 0,
        };
        if own.len() == other.len() {
            return (0..own.len()).map(|at| pair(at, at)).sum();
        }
        let is_longer = own.len() == other.len() + 1;
        if !is_longer && own.len() + 1 != other.len() {
            return u32::MAX;
        }
        // The letters after the one that is left out are a place behind those of the other text.
        let moved = |at: usize| if is_longer { pair(at + 1, at) } else { pair(at, at + 1) };
        let loss = |at: usize| match is_longer {
            true => self.dropped.get(at).copied().unwrap_or_default(),
            false => other.get(at).map_or(0, |letter| dropped(*letter, at.checked_sub(1).and_then(|at| other.get(at).copied()), at == 0)),
        };
        let count = own.len().min(other.len());
        let mut others: u32 = (0..count).map(moved).sum();
        let mut least = others + loss(0);
        for at in 0..count {
            others = others + pair(at, at) - moved(at);
            least = least.min(others + loss(at + 1));
        }
        least
    }

    /// Returns the weighted distance to another text in Latin capitals if it is at most `limit`.
    pub(crate) fn distance_within(&mut self, other: &str, limit: u32) -> Option<u32> {
        let Self { letters, dropped: losses, replaced: costs, followers, other: compared, columns, least: least_of_columns } = self;
        let (count, width) = (letters.len(), letters.len() + 1);
        let shared = compared.iter().zip(other.bytes()).take_while(|(one, letter)| *one == letter).count();
        compared.truncate(shared);
        least_of_columns.truncate(shared + 1);
        for letter in other.bytes().skip(shared) {
            // Each way to the end leads through the last column, or over it by a swap from the one before, and no step costs less than nothing.
            if let [.., before, last] = least_of_columns.as_slice()
                && *last > limit
                && *before > limit.saturating_sub(SWAPPED)
            {
                return None;
            }
            let (place, before) = (compared.len(), compared.last().copied());
            let loss = dropped(letter, before, place == 0);
            // Both texts have capitals only.
            let capital = usize::from(letter.wrapping_sub(b'A'));
            let (followers, costs) = (followers.get(capital)?, costs.get(capital * count..(capital + 1) * count)?);
            let start = place * width;
            if columns.len() < start + 2 * width {
                columns.resize(start + 2 * width, 0);
            }
            let (known, new) = columns.split_at_mut(start + width);
            let (older, old) = known.split_at(start);
            let (letters, losses) = (&letters[..count], &losses[..count]);
            let (old, new) = (&old[..=count], &mut new[..=count]);
            let mut left = old[0] + loss;
            let mut least = left;
            new[0] = left;
            if before.is_some_and(|before| followers & letter_bit(before) == 0) {
                // No letters of the text are these two in the other order, and this is not the first letter: each step has a known cost.
                let mut diagonal = old[0];
                for ((cell, above), (cost, drop)) in new[1..].iter_mut().zip(&old[1..]).zip(costs.iter().zip(losses)) {
                    left = (diagonal + cost).min(above + loss).min(left + drop);
                    least = least.min(left);
                    (diagonal, *cell) = (*above, left);
                }
            } else {
                // A swap needs a letter before, which has a column before.
                let older = &older[start.saturating_sub(width)..];
                for at in 0..count {
                    let cost = if at == 0 && place == 0 { replaced(letters[0], letter, true) } else { costs[at] };
                    let mut best = (old[at] + cost).min(old[at + 1] + loss).min(left + losses[at]);
                    if at > 0 && letters[at - 1] == letter && before == Some(letters[at]) {
                        best = best.min(older[at - 1] + SWAPPED);
                    }
                    new[at + 1] = best;
                    left = best;
                    least = least.min(best);
                }
            }
            compared.push(letter);
            least_of_columns.push(least);
        }
        columns.get(compared.len() * width + count).copied().filter(|distance| *distance <= limit)
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// Proves for random texts that the distance of a prepared text is the weighted distance if it is within the limit, whatever texts were compared
    /// before, and that there is none otherwise.
    #[test]
    fn prepared_texts_have_the_weighted_distance() {
        let mut random = StdRng::seed_from_u64(37);
        let text = |random: &mut StdRng, letters: &[u8]| -> String {
            let count = random.random_range(0..14);
            (0..count).map(|_| char::from(letters[random.random_range(0..letters.len())])).collect()
        };
        let (mut within, mut above, mut equal) = (0, 0, 0);
        for letters in [&b"AEKC"[..], &b"ABPTDMHWSC"[..], &b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"[..]] {
            for _ in 0..300 {
                let one = text(&mut random, letters);
                let mut prepared = WeightedText::of(&one);
                for _ in 0..20 {
                    let mut other = text(&mut random, letters);
                    if random.random_bool(0.5) && one.len() > 2 {
                        let at = random.random_range(0..one.len() - 1);
                        let (start, end) = one.split_at(at);
                        other = format!("{start}{}{}", end.chars().take(2).collect::<Vec<_>>().iter().rev().collect::<String>(), &end[2..]);
                    }
                    let expected = weighted_distance(&one, &other);
                    let max = prepared.distance_max(&other);
                    assert!(expected <= max && (max == u32::MAX) == (one.len().abs_diff(other.len()) > 1), "{one} and {other}: {max}");
                    equal += usize::from(expected == max);
                    assert_eq!(weighted_distance(&other, &one), expected, "{one} and {other}");
                    for limit in [0, expected.saturating_sub(1), expected, expected + 3, 20, 1_000] {
                        let found = prepared.distance_within(&other, limit);
                        assert_eq!(found, (expected <= limit).then_some(expected), "{one} and {other} within {limit}");
                        within += usize::from(found.is_some());
                        above += usize::from(found.is_none());
                    }
                }
            }
        }
        assert!(within > 1_000 && above > 1_000 && equal > 1_000, "{within} {above} {equal}");
        let maxima = [("NALEX", "NOLIX"), ("CRESCO", "CRESSCO"), ("TEXON", "EXON"), ("LEGO", "LEGOLAND")];
        let maxima = maxima.map(|(one, other)| (WeightedText::of(one).distance_max(other), WeightedText::of(other).distance_max(one)));
        assert_eq!(maxima, [(6, 6), (1, 1), (15, 15), (u32::MAX, u32::MAX)]);
        assert_eq!(WeightedText::of("AB").distance_within("a", 1_000), None, "other letters are not compared");
    }

    /// Proves that a text in the order of their letters has the weighted distance, whatever it has in common with the texts before, how far they were
    /// compared within their limits, and whether they had other letters.
    #[test]
    fn beginnings_in_common_are_compared_once() {
        let mut random = StdRng::seed_from_u64(38);
        let (mut within, mut above) = (0, 0);
        for letters in [&b"AB"[..], &b"AEKC"[..]] {
            for _ in 0..40 {
                let text = |random: &mut StdRng| -> String {
                    (0..random.random_range(0..10)).map(|_| char::from(letters[random.random_range(0..letters.len())])).collect()
                };
                let one = text(&mut random);
                let mut others: Vec<String> = (0..120).map(|_| text(&mut random)).collect();
                others.sort_unstable();
                let mut prepared = WeightedText::of(&one);
                for other in &others {
                    if random.random_bool(0.1) {
                        assert_eq!(prepared.distance_within(&format!("{other}É{other}"), 1_000), None);
                    }
                    let (limit, expected) = (random.random_range(0..60), weighted_distance(&one, other));
                    let found = prepared.distance_within(other, limit);
                    assert_eq!(found, (expected <= limit).then_some(expected), "{one} and {other} within {limit}");
                    within += usize::from(found.is_some());
                    above += usize::from(found.is_none());
                }
            }
        }
        assert!(within > 1_000 && above > 1_000, "{within} {above}");
    }

    /// Proves that the library gives the same Double Metaphone keys as when the table was written: another key changes results, and needs a new
    /// version of the rules. `HIGHWATER_BLESS=1` writes the table.
    #[test]
    fn keys_are_frozen() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/double_metaphone.txt");
        let table = std::fs::read_to_string(&path).unwrap();
        let words: Vec<&str> = table.lines().filter_map(|line| line.split(' ').next()).collect();
        let now: String = words.iter().map(|word| format!("{word} {}\n", keys(word).join(" "))).collect();
        if std::env::var("HIGHWATER_BLESS").is_ok() {
            std::fs::write(&path, &now).unwrap();
        } else {
            assert_eq!(table, now);
        }
        assert!(words.len() >= 200);
    }

    /// Proves how sounds are classed, and that changes that are hardly heard cost less.
    #[test]
    fn sounds() {
        assert_eq!((syllables("HUGGIES"), syllables("DOUGIES")), ("HaKaS".to_owned(), "TaKaS".to_owned()));
        assert_eq!((skeleton(&syllables("NALEX")), skeleton(&syllables("NOLEX"))), ("NLKS".to_owned(), "NLKS".to_owned()));
        assert_eq!(weighted_distance("NALEX", "NOLEX"), 3);
        assert!(weighted_distance("MEGO", "LEGO") > weighted_distance("LEGO", "LEKO"));
        assert_eq!((weighted_distance("", ""), weighted_distance("CRESCO", "CRESSCO")), (0, 1));
    }
}
