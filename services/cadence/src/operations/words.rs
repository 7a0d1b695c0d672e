//! The words of titles and queries: in any case, with and without accents.

use texts::folding::folded_words;

/// The words of some texts.
#[must_use]
pub(crate) fn words(texts: &[&str]) -> Vec<String> {
    texts.iter().flat_map(|text| folded_words(text)).collect()
}

/// Whether each of the wanted words is the beginning of one of the words.
#[must_use]
pub(crate) fn have(words: &[String], wanted: &[String]) -> bool {
    wanted.iter().all(|wanted| words.iter().any(|word| word.starts_with(wanted.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that words match in any case, without accents and quotation marks, and from their beginning.
    #[test]
    fn words_match_from_their_beginning() {
        let title = words(&["\u{201c}Café\u{201d} Runner 2", "Ōkami"]);
        assert_eq!(title, ["cafe", "runner", "2", "okami"]);
        for (query, expected) in [("cafe", true), ("CAFÉ run", true), ("okami 2", true), ("unner", false), ("café walker", false)] {
            assert_eq!(have(&title, &words(&[query])), expected, "{query}");
        }
        assert!(words(&["!? --"]).is_empty());
    }
}
