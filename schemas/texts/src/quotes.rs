//! Quotation marks and apostrophes, which the words of phrases do not have.

/// Whether a character is a quotation mark or an apostrophe, as titles and people write them: also an accent, a prime, a letter in the place of one
/// (`Hawaiʻi`), and the marks of Hebrew abbreviations. Unify compatible characters (NFKC) after these are dropped: an accent that stands for an apostrophe
/// becomes a blank with an accent.
#[must_use]
pub fn is_quote(c: char) -> bool {
    matches!(
        c,
        '\'' | '"' | '`' | '´' | '«' | '»' | '‹' | '›' | '‘'..='‟' | '′' | '″' | '\u{2b9}'..='\u{2bf}' | '\u{5f3}' | '\u{5f4}'
    )
}
