//! Lists in which a name is found by one that is spelled a little differently, without comparing it with each.
//!
//! Two names are near each other if they have as many words, and each word has a partner within a few edits ([`edits_max`]). The words that admit no edit
//! are then the same in both. Of any other word a list is made for each of some pieces: one piece more than the word may have edits. The pieces have a gap
//! between them, so that no edit changes two of them, not even one that swaps two neighbours. So one piece at least is the same in both words, at a place
//! that differs by no more than the edits allow. A name that looks for near ones reads the lists of the pieces of one of its words; they hold all of them,
//! and others, which are then compared.

/// The longest word that is compared with others, in characters; longer ones must be the same.
const COMPARED_WORD_CHARS_MAX: usize = 64;

/// Returns how many edits two words may differ by: insertions, deletions, substitutions, and transpositions of neighbours. A word with a digit must
/// be the same, since another number is another thing.
#[must_use]
pub fn edits_max(word: &str) -> usize {
    let mut count = 0;
    for c in word.chars() {
        if c.is_numeric() {
            return 0;
        }
        count += 1;
    }
    edits_of_length(count)
}

/// How many edits a word of so many characters may have.
fn edits_of_length(chars: usize) -> usize {
    match chars {
        0..5 => 0,
        5..9 => 1,
        9..=COMPARED_WORD_CHARS_MAX => 2,
        _ => 0,
    }
}

/// A part of a word: its first letters, those between two gaps, or its last ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    First,
    Middle,
    Last,
}

/// The letters of each piece of a word of a length, of which there are one more than edits.
fn piece_chars(length: usize) -> usize {
    let edits = edits_of_length(length);
    length.saturating_sub(edits) / (edits + 1)
}

/// The parts of which a word of a length has pieces.
fn parts(length: usize) -> &'static [Part] {
    match edits_of_length(length) {
        0 => &[],
        1 => &[Part::First, Part::Last],
        _ => &[Part::First, Part::Middle, Part::Last],
    }
}

/// The place of a part in a word of a length.
fn place(part: Part, length: usize) -> usize {
    let chars = piece_chars(length);
    match part {
        Part::First => 0,
        Part::Middle => chars + 1,
        Part::Last => length - chars,
    }
}

/// What all names share that can be near each other: the number of words, and the words that admit no edit. `words` are sorted.
fn shared(words: &[&str]) -> String {
    let fixed: Vec<&str> = words.iter().copied().filter(|word| edits_max(word) == 0).collect();
    format!("{}/{}", words.len(), fixed.join(" "))
}

/// The list of the words of a length that have letters at a part.
fn list(shared: &str, part: Part, length: usize, letters: &[char]) -> String {
    let part = match part {
        Part::First => "first",
        Part::Middle => "middle",
        Part::Last => "last",
    };
    format!("{shared}/{length}/{part}/{}", letters.iter().collect::<String>())
}

/// The words of a name that admit edits, each once.
fn varied<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut varied: Vec<&str> = words.iter().copied().filter(|word| edits_max(word) > 0).collect();
    varied.dedup();
    varied
}

/// Returns the lists in which a name with some sorted words is found by near ones.
#[must_use]
pub fn lists_of(words: &[&str]) -> Vec<String> {
    let shared = shared(words);
    let mut lists = Vec::new();
    for word in varied(words) {
        let letters: Vec<char> = word.chars().collect();
        let (length, chars) = (letters.len(), piece_chars(letters.len()));
        for part in parts(length) {
            let from = place(*part, length);
            lists.extend(letters.get(from..from + chars).map(|piece| list(&shared, *part, length, piece)));
        }
    }
    lists
}

/// Returns the lists in which the names are that are near one with some sorted words: one group of lists for each word that admits edits, of which any one
/// holds all. The group with the longest pieces is the first, since its lists are the shortest. Empty if no word admits edits: then only the same words are
/// near.
#[must_use]
pub fn lists_near(words: &[&str]) -> Vec<Vec<String>> {
    let shared = shared(words);
    let mut varied = varied(words);
    varied.sort_by_key(|word| std::cmp::Reverse(piece_chars(word.chars().count())));
    varied.into_iter().map(|word| near(&shared, &word.chars().collect::<Vec<char>>())).collect()
}

/// The lists of the words that may be partners of a word.
fn near(shared: &str, word: &[char]) -> Vec<String> {
    let (own, most) = (word.len(), edits_of_length(word.len()));
    let mut lists = Vec::new();
    for length in own.saturating_sub(most)..=own + most {
        let edits = most.min(edits_of_length(length));
        if own.abs_diff(length) > edits {
            continue;
        }
        let chars = piece_chars(length);
        let piece = |from: usize| word.get(from..from + chars);
        for part in parts(length) {
            let from = match part {
                Part::First => vec![Some(0)],
                Part::Last => vec![own.checked_sub(chars)],
                // Edits before the piece move it, as far as edits are left for the difference in length after it.
                Part::Middle => shifts(own, length, edits).map(|shift| place(*part, length).checked_add_signed(shift)).collect(),
            };
            lists.extend(from.into_iter().flatten().filter_map(piece).map(|letters| list(shared, *part, length, letters)));
        }
    }
    lists
}

/// By how many places a piece in the middle of a word of a length can be moved in one with `own` letters.
fn shifts(own: usize, length: usize, edits: usize) -> impl Iterator<Item = isize> {
    let edits = isize::try_from(edits).unwrap_or(0);
    let difference = isize::try_from(own).unwrap_or(0) - isize::try_from(length).unwrap_or(0);
    (-edits..=edits).filter(move |shift| shift.abs() + (difference - shift).abs() <= edits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_found(name: &[&str], by: &[&str]) -> bool {
        let (lists, groups) = (lists_of(name), lists_near(by));
        !groups.is_empty() && groups.iter().all(|group| group.iter().any(|list| lists.contains(list)))
    }

    /// Every text that one edit makes of a word: a letter removed, inserted, replaced by another, or swapped with the next.
    fn edited(word: &str) -> Vec<String> {
        let letters: Vec<char> = word.chars().collect();
        let mut all = Vec::new();
        for at in 0..=letters.len() {
            let (before, after) = letters.split_at(at);
            let with = |middle: &[char], rest: &[char]| [before, middle, rest].concat().into_iter().collect::<String>();
            all.push(with(&['Q'], after));
            if let [first, rest @ ..] = after {
                all.extend([with(&[], rest), with(&['Q'], rest)]);
                if let [second, rest @ ..] = rest {
                    all.push(with(&[*second, *first], rest));
                }
            }
        }
        all
    }

    /// Proves that a word is found by every other within its edits, in both directions, at lengths with one edit and with two.
    #[test]
    fn every_near_word_is_found() {
        let mut pairs = 0;
        for length in (5..=12_u8).chain([15]) {
            let word: String = (0..length).map(|at| char::from(b'A' + at % 16)).collect();
            let once = edited(&word);
            let twice = once.iter().flat_map(|other| edited(other));
            let others: Vec<String> = if edits_max(&word) == 1 { once } else { twice.collect() };
            for other in others {
                // A swap of letters of which one is then edited again is more than two edits here, but may be fewer in truth.
                let limit = edits_max(&word).min(edits_max(&other));
                if limit > 0 && strsim::osa_distance(&word, &other) <= limit {
                    assert!(is_found(&[&word], &[&other]) && is_found(&[&other], &[&word]), "{word} {other}");
                    pairs += 1;
                }
            }
        }
        assert!(pairs > 5_000, "{pairs} pairs prove too little");
    }

    /// Proves that names are found by one of their words only if the words that admit no edit are the same, and as many words.
    #[test]
    fn the_other_words_decide() {
        assert!(is_found(&["CRYSTALORD", "US"], &["CRISTALORD", "US"]));
        for other in [&["CRISTALORD", "UK"][..], &["CRISTALORD"], &["CRISTALORD", "SHIPPING", "US"], &["CRISTALORD", "US", "US"]] {
            assert!(!is_found(&["CRYSTALORD", "US"], other), "{other:?}");
        }
        assert_eq!((lists_of(&["ACME", "OIL"]), lists_near(&["ACME", "A1B2C3"])), (Vec::new(), Vec::<Vec<String>>::new()));
    }

    /// Proves that the lists stay few: those of a name by its words, and those that one search reads.
    #[test]
    fn lists_are_few() {
        assert_eq!(lists_of(&["ACME", "FREIGHT", "LOGISTICS"]).len(), 5);
        let longest: String = ["ABCDEFGHIJKLMNOP"; 4].concat();
        for word in ["FREIGHT", "LOGISTICS", "INTERNATIONAL", &longest] {
            let groups = lists_near(&[word]);
            assert!(groups.len() == 1 && groups[0].len() <= 23, "{word}: {}", groups[0].len());
        }
        assert_eq!(lists_of(&[&format!("{longest}X")]), Vec::<String>::new(), "a word that is too long");
    }
}
