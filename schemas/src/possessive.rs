//! The possessive of English words, `Acme's`, which titles have and a phrase that is looked for does not.

use unicode_normalization::char::is_combining_mark;

/// Words whose `'s` is a verb or `us`: `let's` is no possessive.
const CONTRACTED: [&str; 13] = ["he", "here", "how", "it", "let", "she", "that", "there", "what", "when", "where", "who", "why"];

/// Returns a text in lower case without the `'s` at the end of its words, so that `acme's plan` has the word `acme`. Contractions such as `it's`, and other
/// apostrophes, stay.
#[must_use]
pub fn without_possessives(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let is_part = |at: Option<usize>| at.and_then(|at| chars.get(at)).is_some_and(|c| c.is_alphanumeric() || is_combining_mark(*c));
    let is_end_of_word = |at: Option<usize>| is_part(at) || at.and_then(|at| chars.get(at)).is_some_and(|c| matches!(c, '+' | '#'));
    let is_contracted = |end: usize| {
        let from = chars.iter().take(end).rposition(|c| !c.is_alphanumeric()).map_or(0, |at| at + 1);
        let word: String = chars.iter().take(end).skip(from).collect();
        CONTRACTED.contains(&word.as_str())
    };
    let is_possessive = |at: usize| {
        matches!(chars.get(at), Some('\'' | '’' | 'ʼ'))
            && chars.get(at + 1) == Some(&'s')
            && is_end_of_word(at.checked_sub(1))
            && !is_part(Some(at + 2))
            && !is_contracted(at)
    };
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    while let Some(c) = chars.get(at) {
        if is_possessive(at) {
            at += 2;
        } else {
            out.push(*c);
            at += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which ends of words are left out.
    #[test]
    fn ends_of_words() {
        for (text, expected) in [
            ("acme's plan, acme’s end: acmeʼs", "acme plan, acme end: acme"),
            ("c#'s and c++’s", "c# and c++"),
            ("it's the users' o'brien's don't", "it's the users' o'brien don't"),
            ("let's see what’s the outlet's", "let's see what’s the outlet"),
            ("'s 'sound' rock 'n's", "'s 'sound' rock 'n"),
            ("a'st a's\u{301} the 1990's", "a'st a's\u{301} the 1990"),
            ("", ""),
        ] {
            assert_eq!(without_possessives(text), expected, "{text}");
        }
    }
}
