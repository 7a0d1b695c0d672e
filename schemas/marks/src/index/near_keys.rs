//! The keys by which rule `S6` finds candidates: how often each letter of a group of letters is in the text.
//!
//! Two texts for which the rule holds differ in few letters ([`unpaired_max`]). The alphabet is split into so many groups that a group has at most
//! one of the letters that differ. A mark is stored under its letters of each group with its length. A name asks for each length that a mark can
//! have: for its own letters of each group, and with one letter more or less for as many groups as are needed.

use std::sync::LazyLock;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::mark::Mark;
use crate::near::{NEAR_LETTERS_MIN, PREFIX_LETTERS_MAX, unpaired_max};

/// The letters of a mark up to which it is stored by groups. A longer one, which is rare, is stored by its length alone.
const GROUPED_LETTERS_MAX: usize = 40;
/// The seed of the hash. It is above the number of kinds of other keys, so that these keys do not meet them.
const SEED: u64 = 255;
/// The letters by their usual frequency, so that groups of every n-th letter are equally frequent.
const LETTERS: &[u8; 26] = b"EAOIRNTSLCUDPMHGBYFVKWXZJQ";

/// How often a text has each of `LETTERS`.
type Counts = [u8; LETTERS.len()];

/// Pairs of texts that are found by keys of their own.
#[derive(Clone, Copy)]
enum Pairs {
    /// The first letters differ.
    OtherBeginning,
    /// The first letters are the same, not all four: with the same four letters a key of theirs finds the mark.
    SameLetter,
}

impl Pairs {
    const ALL: [Self; 2] = [Self::OtherBeginning, Self::SameLetter];

    /// The most first letters in common.
    fn prefix(self) -> usize {
        match self {
            Self::OtherBeginning => 0,
            Self::SameLetter => PREFIX_LETTERS_MAX - 1,
        }
    }

    /// The letter that is part of the keys.
    fn letter(self, text: &str) -> u8 {
        match self {
            Self::OtherBeginning => 0,
            Self::SameLetter => text.bytes().next().unwrap_or_default(),
        }
    }
}

/// For each kind of pairs, the number of groups for marks of so many letters.
static GROUPS: LazyLock<[[usize; GROUPED_LETTERS_MAX + 1]; 2]> = LazyLock::new(|| {
    Pairs::ALL.map(|pairs| {
        std::array::from_fn(|length| {
            let unpaired = (NEAR_LETTERS_MIN..=2 * length).filter_map(|other| unpaired_max(length, other, pairs.prefix()));
            unpaired.max().map_or(0, |unpaired| unpaired / 2 + 1)
        })
    })
});

/// The number of groups for marks of so many letters.
fn groups(pairs: Pairs, length: usize) -> usize {
    GROUPS.get(pairs as usize).and_then(|groups| groups.get(length)).copied().unwrap_or_default()
}

fn counts(text: &str) -> Counts {
    let mut counts = [0_u8; LETTERS.len()];
    for byte in text.bytes() {
        if let Some(count) = LETTERS.iter().position(|letter| *letter == byte).and_then(|at| counts.get_mut(at)) {
            *count = count.saturating_add(1);
        }
    }
    counts
}

fn key(length: usize, part: &[u8]) -> u64 {
    xxh3_64_with_seed(part, SEED + 256 * length as u64)
}

/// The key of the letters of one group of so many.
fn group_key(length: usize, first: u8, (group, groups): (usize, usize), counts: &Counts) -> u64 {
    let mut part = vec![first, group as u8];
    part.extend(counts.iter().skip(group).step_by(groups.max(1)));
    key(length, &part)
}

/// Adds the keys that a mark is stored under.
pub(super) fn stored(mark: &Mark, out: &mut Vec<u64>) {
    let text = mark.spelled();
    let length = text.len();
    if length > GROUPED_LETTERS_MAX {
        out.push(key(length, &[]));
    } else if length >= NEAR_LETTERS_MIN {
        let counts = counts(text);
        for pairs in Pairs::ALL {
            let groups = groups(pairs, length);
            out.extend((0..groups).map(|group| group_key(length, pairs.letter(text), (group, groups), &counts)));
        }
    }
}

/// The keys that a name asks for.
pub(super) fn asked(name: &Mark) -> Vec<u64> {
    let (text, mut out) = (name.spelled(), Vec::new());
    let own = counts(text);
    for length in NEAR_LETTERS_MIN..=2 * text.len() {
        for pairs in Pairs::ALL {
            let Some(unpaired) = unpaired_max(text.len(), length, pairs.prefix()) else { continue };
            if length > GROUPED_LETTERS_MAX {
                out.push(key(length, &[]));
                continue;
            }
            let groups = groups(pairs, length);
            let mut ask = |group: usize, counts: &Counts| out.push(group_key(length, pairs.letter(text), (group, groups), counts));
            (0..groups).for_each(|group| ask(group, &own));
            // If each group has a letter that differs, then at most `unpaired - groups` groups have more than one.
            for group in 0..(unpaired + 1).saturating_sub(groups).min(groups) {
                for at in (group..own.len()).step_by(groups) {
                    for count in [own[at].checked_add(1), own[at].checked_sub(1)].into_iter().flatten() {
                        let mut other = own;
                        other[at] = count;
                        ask(group, &other);
                    }
                }
            }
        }
    }
    out.sort_unstable();
    out.dedup();
    out
}
