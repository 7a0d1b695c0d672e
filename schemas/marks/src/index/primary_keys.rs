//! The first Double Metaphone keys of marks, in alphabetical order. The marks whose key begins with that of a name are next to each other, so that rule
//! `P5` is known to hold for them: no key is computed again, which allocates memory for most letters.

use super::keys;

/// The letters of a key that are stored. Few names have a longer key.
const LETTERS: usize = 8;

/// Rows in the order of their keys.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PrimaryKeys {
    /// The first letters of each key as [`packed`] returns them, ascending.
    pub(super) keys: Vec<u64>,
    /// The row of each key.
    pub(super) rows: Vec<u32>,
}

/// The first letters of a key or another text as a number that is ordered as the letters are. Letters that are missing are zero.
pub(super) fn packed(text: &str) -> u64 {
    let mut bytes = [0; LETTERS];
    bytes.iter_mut().zip(text.bytes()).for_each(|(place, letter)| *place = letter);
    u64::from_be_bytes(bytes)
}

impl PrimaryKeys {
    /// Stores rows under their packed keys.
    pub(super) fn build(mut entries: Vec<(u64, u32)>) -> Self {
        entries.sort_unstable();
        Self { keys: entries.iter().map(|(key, _)| *key).collect(), rows: entries.iter().map(|(_, row)| *row).collect() }
    }

    /// Whether each key has a row, and the keys are in order: what a snapshot must have.
    pub(super) fn is_sound(&self) -> bool {
        self.keys.len() == self.rows.len() && self.keys.is_sorted()
    }

    /// Adds the rows for which rule `P5` holds to `known`, or to `possible` where letters of both keys that are not stored must be compared.
    pub(super) fn add(&self, key: &str, known: &mut Vec<u32>, possible: &mut Vec<u32>) {
        if key.len() < keys::PRIMARY_LETTERS_MIN {
            return;
        }
        // A key that is shorter than that of the name has the letters of its beginning and no others.
        for beginning in (keys::PRIMARY_LETTERS_MIN..key.len().min(LETTERS)).filter_map(|count| key.get(..count)) {
            known.extend_from_slice(self.between(packed(beginning), packed(beginning)));
        }
        let first = packed(key);
        let missing_bits = 8 * LETTERS.saturating_sub(key.len()) as u32;
        let last = first | ((1_u64 << missing_bits) - 1);
        let out = if key.len() <= LETTERS { known } else { possible };
        out.extend_from_slice(self.between(first, last));
    }

    /// The rows of the keys from one to another, both inclusive.
    fn between(&self, first: u64, last: u64) -> &[u32] {
        let start = self.keys.partition_point(|key| *key < first);
        let after = self.keys.get(start..).unwrap_or_default();
        self.rows.get(start..start + after.partition_point(|key| *key <= last)).unwrap_or_default()
    }

    pub(super) fn size(&self) -> usize {
        self.keys.capacity() * 8 + self.rows.capacity() * 4
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// Proves for random keys of up to twelve letters that the known rows are some for which the rule holds, that known and possible rows together are all
    /// of them, each once, and that only names with more letters than are stored have possible ones.
    #[test]
    fn rows_have_keys_that_begin_alike() {
        let mut random = StdRng::seed_from_u64(71);
        let key = |random: &mut StdRng| -> String {
            let count = random.random_range(0..=12);
            (0..count).map(|_| char::from(b"0KT"[random.random_range(0..3)])).collect()
        };
        let stored: Vec<String> = (0..6_000).map(|_| key(&mut random)).collect();
        let is_stored = |text: &String| text.len() >= keys::PRIMARY_LETTERS_MIN;
        let entries = (0_u32..).zip(&stored).filter(|(_, text)| is_stored(text)).map(|(row, text)| (packed(text), row));
        let all = PrimaryKeys::build(entries.collect());
        assert!(all.is_sound() && all.size() > 0);
        let (mut held, mut surplus) = ([0; 2], 0);
        for _ in 0..600 {
            let name = key(&mut random);
            let (mut known, mut possible) = (Vec::new(), Vec::new());
            all.add(&name, &mut known, &mut possible);
            let holds = |row: &u32| {
                let its = &stored[*row as usize];
                name.len().min(its.len()) >= keys::PRIMARY_LETTERS_MIN && (its.starts_with(&name) || name.starts_with(its.as_str()))
            };
            assert!(known.iter().all(holds), "{name}");
            assert!(possible.is_empty() || name.len() > LETTERS, "{name}");
            let expected: Vec<u32> = (0..stored.len() as u32).filter(holds).collect();
            surplus += known.len() + possible.len() - expected.len();
            held[usize::from(name.len() > LETTERS)] += expected.len();
            let mut found: Vec<u32> = known.iter().copied().chain(possible.into_iter().filter(holds)).collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{name}");
        }
        assert!(held.iter().all(|count| *count > 100) && surplus > 0, "{held:?} {surplus}");
        assert!(!PrimaryKeys { rows: Vec::new(), ..all }.is_sound());
    }

    /// Proves that keys are ordered as their letters are, and that a key that begins another one comes before it.
    #[test]
    fn packed_keys_have_the_order_of_their_letters() {
        let ordered = ["", "0", "0KTS", "AKSF", "AKSFA", "AKSFT", "AKSFTNRL", "PLTR"];
        assert!(ordered.map(packed).is_sorted_by(|one, next| one < next));
        assert_eq!(packed("AKSFTNRLK"), packed("AKSFTNRLT"), "further letters are not stored");
    }
}
