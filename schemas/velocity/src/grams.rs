//! The phrases of a title, and those that are asked for.

use std::collections::HashSet;

pub use texts::titles::normal;

use crate::words::is_stop_word;

/// The most words of a phrase that has a row of its own, and so a label.
pub const GRAM_WORDS_MAX: usize = 4;
/// The most words of a phrase that is counted in every title of usual length, of up to 20 words. Rows leave longer phrases out of long titles, see
/// [`GRAMS_MAX`].
const COUNTED_WORDS_MAX: usize = 2;
/// The most phrases of a title that are counted.
pub const GRAMS_MAX: usize = 40;
/// The longest phrase that can be asked for, in characters.
pub const PHRASE_CHARS_MAX: usize = 100;
/// The most words of a phrase that can be asked for.
pub const PHRASE_WORDS_MAX: usize = 6;

/// Why a text is no phrase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPhrase {
    /// It has neither letters nor digits.
    Empty,
    /// It has more than [`PHRASE_CHARS_MAX`] characters.
    TooLong,
    /// It has more than [`PHRASE_WORDS_MAX`] words.
    TooManyWords,
}

/// Returns the normal form of a phrase that is asked for.
///
/// # Errors
/// Why it is no phrase.
pub fn phrase(text: &str) -> Result<String, NoPhrase> {
    if text.chars().nth(PHRASE_CHARS_MAX).is_some() {
        return Err(NoPhrase::TooLong);
    }
    let normal = normal(text);
    match normal.split(' ').filter(|word| !word.is_empty()).count() {
        0 => Err(NoPhrase::Empty),
        words if words > PHRASE_WORDS_MAX => Err(NoPhrase::TooManyWords),
        _ => Ok(normal),
    }
}

/// Whether a title contains a phrase as a run of whole words. Both are in their normal form.
#[must_use]
pub fn contains(title: &str, phrase: &str) -> bool {
    // Most titles do not even have its letters, which is found out faster.
    if !title.contains(phrase) {
        return false;
    }
    let mut rest = title;
    loop {
        if rest.strip_prefix(phrase).is_some_and(|after| after.is_empty() || after.starts_with(' ')) {
            return true;
        }
        match rest.split_once(' ') {
            Some((_, after_word)) => rest = after_word,
            None => return false,
        }
    }
}

/// Whether a phrase consists of stop words alone. Such a phrase is not counted.
#[must_use]
pub fn is_stop_phrase(phrase: &str) -> bool {
    phrase.split(' ').all(is_stop_word)
}

/// Returns the phrases of a title in its normal form that rows count: the first [`GRAMS_MAX`] of [`all_grams`]. So a phrase of one or two words is
/// counted in every title of up to 20 words, and longer ones in shorter titles.
#[must_use]
pub fn grams(title: &str) -> Vec<&str> {
    grams_up_to(title, GRAMS_MAX)
}

/// Returns all phrases of a title in its normal form: runs of 1 to 4 words without those of stop words alone, each once, the short ones first.
#[must_use]
pub fn all_grams(title: &str) -> Vec<&str> {
    grams_up_to(title, usize::MAX)
}

fn grams_up_to(title: &str, grams_max: usize) -> Vec<&str> {
    let mut ends: Vec<(usize, usize)> = Vec::new();
    let mut from = 0;
    for word in title.split(' ').filter(|word| !word.is_empty()) {
        ends.push((from, from + word.len()));
        from += word.len() + 1;
    }
    let is_stop: Vec<bool> = ends.iter().map(|(from, to)| is_stop_word(&title[*from..*to])).collect();
    let (mut seen, mut out) = (HashSet::new(), Vec::new());
    for words in 1..=GRAM_WORDS_MAX {
        for (run, is_stop) in ends.windows(words).zip(is_stop.windows(words)) {
            if out.len() == grams_max {
                return out;
            }
            if is_stop.iter().all(|is_stop| *is_stop) {
                continue;
            }
            let gram = &title[run[0].0..run[words - 1].1];
            if seen.insert(gram) {
                out.push(gram);
            }
        }
    }
    out
}

/// Whether the row of a phrase counts every title of usual length that contains it. Other phrases are counted by the titles that [`key_of`] finds.
#[must_use]
pub fn has_exact_row(phrase: &str) -> bool {
    phrase.split(' ').count() <= COUNTED_WORDS_MAX && !is_stop_phrase(phrase)
}

/// Returns the phrase by which the titles that contain a phrase are found: itself if it has one or two words, else two of its words in a row. Both are
/// counted in every title of usual length. `None` if it has only stop words.
#[must_use]
pub fn key_of(phrase: &str) -> Option<&str> {
    if is_stop_phrase(phrase) {
        return None;
    }
    if has_exact_row(phrase) {
        return Some(phrase);
    }
    // The longest run of two words is likely the rarest.
    let pairs = grams(phrase).into_iter().filter(|gram| gram.split(' ').count() == 2);
    pairs.max_by_key(|pair| pair.len())
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// Proves which titles have a phrase as it is asked for, and that each such phrase is found by one that is counted in the title; a plural, another
    /// spelling and a part of a version are other words.
    #[test]
    fn phrases_as_they_are_asked_for() {
        for (title, asked, is_there) in [
            ("Introducing GPT-4o", "gpt-4o", true),
            ("GPT 4o is out", "GPT-4o", true),
            ("OpenAI releases GPT\u{2011}5.2 Codex", "gpt-5.2", true),
            ("C++26: reflection", "C++26", true),
            ("Sam Bankman-Fried’s trial", "Sam Bankman-Fried", false),
            ("Sam Bankman-Fried on trial", "sam bankman fried", true),
            ("Meta releases Llama 3.1 405B", "llama 3.1", true),
            ("Llama-3.1-405B runs at home", "Llama 3.1 405B", true),
            ("The Heartbleed Bug (CVE-2014-0160)", "CVE-2014-0160", true),
            ("Show HN: Bun 1.0", "bun 1.0", true),
            ("A zero‑day in TCP/IP", "tcp ip", true),
            ("‘Quiet quitting’: what’s that?", "\"quiet quitting\"", true),
            ("Notes on C++20 modules", "c++20", true),
            ("AT&amp;T is down", "AT&T", true),
            ("Node.js and node.js", "NODE.JS", true),
            (
                "A very long title that says in twenty words or so how the agent mesh of the year came about",
                "the agent mesh of the year",
                true,
            ),
            ("Bun v1.0", "bun 1.0", false),
            ("Chromebooks for schools", "chromebook", false),
            ("Llama 3.10", "llama 3.1", false),
            ("OpenAI's plan", "openai", false),
            ("Notes on C++20 modules", "c++", false),
        ] {
            let (title, phrase) = (normal(title), phrase(asked).unwrap());
            assert_eq!(contains(&title, &phrase), is_there, "{asked:?} in {title:?}");
            let key = key_of(&phrase).unwrap();
            assert!(!is_there || grams(&title).contains(&key), "{asked:?} is not found in {title:?} by {key:?}");
        }
    }

    /// Proves that the normal form of a normal form is itself, for random texts of many scripts and signs.
    #[test]
    fn normal_forms_are_stable() {
        let mut random = StdRng::seed_from_u64(1);
        let alphabet: Vec<char> = "aZ09 .,-_&+#'\"’“´¨<>;:/()[]éßİıǅﬁΣς\u{301}日本हि\u{200d}½①\u{1f600}$%@!?ｱ"
            .chars()
            .chain(['\u{a0}', '\u{2003}', '\t'])
            .collect();
        for _ in 0..20_000 {
            let length = random.random_range(0..40);
            let text: String = (0..length).map(|_| alphabet[random.random_range(0..alphabet.len())]).collect();
            let once = normal(&text);
            assert_eq!(normal(&once), once, "{text:?}");
            assert!(!once.contains("  ") && once.trim() == once, "{text:?}");
        }
    }

    /// Proves which texts are phrases.
    #[test]
    fn phrases() {
        assert_eq!(phrase(" Agent-Mesh "), Ok("agent mesh".to_owned()));
        assert_eq!(phrase("a b c d e f"), Ok("a b c d e f".to_owned()));
        assert_eq!(phrase("a b c d e f g"), Err(NoPhrase::TooManyWords));
        assert_eq!(phrase(&"x".repeat(100)).map(|phrase| phrase.len()), Ok(100));
        assert_eq!(phrase(&"x".repeat(101)), Err(NoPhrase::TooLong));
        for empty in ["", " ", "?!", "--", "'", "\u{200b}"] {
            assert_eq!(phrase(empty), Err(NoPhrase::Empty), "{empty:?}");
        }
    }

    /// Proves that a phrase matches whole words only.
    #[test]
    fn matches() {
        let title = normal("The agent mesh meshes agents");
        for (phrase, expected) in [("agent mesh", true), ("mesh", true), ("agent", true), ("gent mesh", false), ("mesh agents", false)] {
            assert_eq!(contains(&title, phrase), expected, "{phrase}");
        }
        // Where the end of another word and the phrase overlap.
        assert!(contains("ergo go go", "go go") && contains("la la la land", "la la land") && !contains("ergo gogo", "go go"));
        assert!(!contains("", "go") && !contains("go", "go go"));
    }

    /// Proves that a title gives at most 40 phrases, short ones first, each once, none of stop words alone, and all of a short title.
    #[test]
    fn phrases_of_titles() {
        assert_eq!(grams("the agent mesh"), ["agent", "mesh", "the agent", "agent mesh", "the agent mesh"]);
        assert_eq!(grams("a a a"), Vec::<&str>::new());
        assert_eq!(grams("x x x x x"), ["x", "x x", "x x x", "x x x x"]);
        assert_eq!(grams(""), Vec::<&str>::new());
        let long = (0..30).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ");
        let of_long = grams(&long);
        assert_eq!((of_long.len(), of_long[29], of_long[30]), (40, "w29", "w0 w1"));
        let eleven = (0..11).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ");
        assert_eq!(grams(&eleven).len(), 11 + 10 + 9 + 8);
        let twenty = (0..20).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ");
        assert_eq!(grams(&twenty).iter().filter(|gram| gram.contains(' ')).count(), 20 - 1 + 1);
        for gram in grams(&eleven) {
            assert!(contains(&eleven, gram), "{gram}");
        }
    }

    /// Proves by which phrase long phrases are found.
    #[test]
    fn keys() {
        assert_eq!(key_of("agent mesh"), Some("agent mesh"));
        assert_eq!(key_of("of the"), None);
        assert_eq!(key_of("the law of large numbers wins"), Some("large numbers"));
        assert_eq!(key_of("the agent mesh"), Some("agent mesh"));
        assert!(has_exact_row("agent mesh") && !has_exact_row("the agent mesh") && !has_exact_row("of the"));
    }

    /// Proves that every phrase of 1 to 6 words in a title of 20 words is found by a phrase that is counted in it.
    #[test]
    fn phrases_of_long_titles_are_found() {
        let title = "the w1 of w3 w4 w5 to the w8 w9 w10 w11 is w13 w14 w15 w16 w17 w18 end";
        let words: Vec<&str> = title.split(' ').collect();
        assert_eq!(words.len(), 20);
        let counted = grams(title);
        for phrase in (1..=PHRASE_WORDS_MAX).flat_map(|count| words.windows(count)).map(|run| run.join(" ")) {
            let is_found = key_of(&phrase).is_none_or(|key| counted.contains(&key) && contains(&phrase, key));
            assert!(is_found, "{phrase}");
        }
        assert!(!counted.contains(&"w16 w17 w18 end") && all_grams(title).contains(&"w16 w17 w18 end"));
    }
}
