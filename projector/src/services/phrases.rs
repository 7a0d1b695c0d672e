//! Looking for many phrases in a text at once.

use std::collections::HashMap;

/// Phrases by their first word, so that a text costs one look-up a word, however many phrases there are.
#[derive(Clone, Debug, Default)]
pub struct Phrases {
    by_first: HashMap<String, Vec<Phrase>>,
    /// For each byte that a first word may begin with, the lengths of such words as bits: most words of a text need no look-up.
    lengths: Vec<u64>,
}

/// A phrase.
#[derive(Clone, Debug)]
pub struct Phrase {
    /// As written in the rules.
    pub shown: String,
    /// The words after the first.
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
            let (byte, length) = sign(&first);
            out.lengths[byte] |= length;
            out.by_first.entry(first).or_default().push(Phrase { shown, rest });
        }
        out
    }
}

/// A word's first byte, and its length as a bit (the last one for all longer ones).
fn sign(word: &str) -> (usize, u64) {
    (word.bytes().next().map_or(0, usize::from), 1 << word.len().min(63))
}

impl Phrase {
    /// How many words it has.
    #[must_use]
    pub fn words(&self) -> usize {
        self.rest.len() + 1
    }
}

impl Phrases {
    /// The phrases that some words begin with.
    pub fn beginning<'a, 'w>(&'a self, words: &'w [&'w str]) -> impl Iterator<Item = &'a Phrase> + use<'a, 'w> {
        let may_begin = |first: &&&str| {
            let (byte, length) = sign(first);
            self.lengths.get(byte).is_some_and(|lengths| lengths & length != 0)
        };
        let known = words.first().filter(may_begin).and_then(|first| self.by_first.get(*first));
        known
            .into_iter()
            .flatten()
            .filter(move |phrase| phrase.rest.iter().enumerate().all(|(i, word)| words.get(i + 1) == Some(&word.as_str())))
    }
}

/// Lower-case words, one blank before and after each, so that a phrase is found whole or not at all.
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
