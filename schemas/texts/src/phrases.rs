//! Finds many phrases in a text at once.

use std::collections::HashMap;

/// Phrases by their first word. Scanning a text takes one look-up per word, however many phrases there are.
#[derive(Clone, Debug, Default)]
pub struct Phrases {
    by_first: HashMap<String, Vec<Phrase>>,
    /// For each byte that can start a first word, the lengths of such words as bits. Most words of a text thus need no look-up.
    lengths: Vec<u64>,
}

/// A phrase to find in texts.
#[derive(Clone, Debug)]
pub struct Phrase {
    /// The phrase as the rules contain it.
    pub shown: String,
    /// The words after the first one.
    rest: Vec<String>,
}

impl From<Vec<String>> for Phrases {
    fn from(phrases: Vec<String>) -> Self {
        let mut out = Self { lengths: vec![0; 256], ..Self::default() };
        for shown in phrases {
            let text = words(&shown);
            let mut all = text.split_ascii_whitespace().map(str::to_owned);
            let Some(first) = all.next() else { continue };
            let rest = all.collect();
            let (byte, length) = first_byte_and_length(&first);
            out.lengths[byte] |= length;
            out.by_first.entry(first).or_default().push(Phrase { shown, rest });
        }
        out
    }
}

/// Returns the first byte of a word, and its length as a bit (lengths of 63 and more share one).
fn first_byte_and_length(word: &str) -> (usize, u64) {
    (word.bytes().next().map_or(0, usize::from), 1 << word.len().min(63))
}

impl Phrase {
    /// Returns the number of words.
    #[must_use]
    pub fn words(&self) -> usize {
        self.rest.len() + 1
    }
}

impl Phrases {
    /// Returns the phrases that a sequence of words starts with.
    pub fn beginning<'a, 'w>(&'a self, words: &'w [&'w str]) -> impl Iterator<Item = &'a Phrase> + use<'a, 'w> {
        let may_start = |first: &&&str| {
            let (byte, length) = first_byte_and_length(first);
            self.lengths.get(byte).is_some_and(|lengths| lengths & length != 0)
        };
        let known = words.first().filter(may_start).and_then(|first| self.by_first.get(*first));
        known
            .into_iter()
            .flatten()
            .filter(move |phrase| phrase.rest.iter().enumerate().all(|(i, word)| words.get(i + 1) == Some(&word.as_str())))
    }
}

/// Returns the words of a text in lower case, with one blank before and after each.
#[must_use]
pub fn words(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push(' ');
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        } else if c.is_alphanumeric() || matches!(c, '\'' | '’') {
            out.extend(if c == '’' { '\'' } else { c }.to_lowercase());
        } else if !out.ends_with(' ') {
            out.push(' ');
        }
    }
    if !out.ends_with(' ') {
        out.push(' ');
    }
    out
}
