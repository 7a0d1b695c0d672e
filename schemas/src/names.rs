//! Suggests the nearest known name in errors about an unknown one.
//!
//! The edit distance costs the product of both lengths, and callers choose one of them: a longer text than [`MAX_COMPARED_CHARS`] is not compared.

/// The longest text that is compared with known names, in characters. No name of ours is longer.
pub const MAX_COMPARED_CHARS: usize = 64;

/// Returns the known name most like the given one, if one is close enough to be meant. `None` for a text over [`MAX_COMPARED_CHARS`].
#[must_use]
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Four bytes are the most that a character takes, so a long text is refused without being read.
    if given.len() > 4 * MAX_COMPARED_CHARS || given.chars().count() > MAX_COMPARED_CHARS {
        return None;
    }
    let given = given.to_lowercase();
    let given_chars = given.chars().count();
    known
        .into_iter()
        .filter_map(|name| {
            let name_chars = name.chars().count();
            let max_distance = (name_chars.max(given_chars) / 2).max(1);
            // The distance is at least the difference of the lengths.
            if name_chars.abs_diff(given_chars) > max_distance {
                return None;
            }
            let distance = strsim::damerau_levenshtein(&given, &name.to_lowercase());
            (distance <= max_distance).then_some((distance, name))
        })
        .min()
        .map(|(_, name)| name)
}

/// Returns `, did you mean "x"?`, or an empty text: the end of an error about an unknown name.
#[must_use]
pub fn hint<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(given, known).map_or_else(String::new, |name| format!(", did you mean \"{name}\"?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a misspelled name finds the intended one and that an unrelated one finds none.
    #[test]
    fn nearest_known_name() {
        assert_eq!(nearest("categry", ["category", "agency"]), Some("category"));
        assert_eq!(nearest("zzzzzz", ["category", "agency"]), None);
    }

    /// Proves that a text of the longest length is compared and a longer one is not, whatever number of bytes its characters take.
    #[test]
    fn long_texts_are_not_compared() {
        let longest = "é".repeat(MAX_COMPARED_CHARS);
        assert_eq!(nearest(&longest, [longest.as_str()]), Some(longest.as_str()));
        let longer = "é".repeat(MAX_COMPARED_CHARS + 1);
        assert_eq!(nearest(&longer, [longer.as_str()]), None);
        let huge = "a".repeat(10 << 20);
        assert_eq!(nearest(&huge, [huge.as_str()]), None);
    }
}
