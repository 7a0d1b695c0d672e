//! Which category a recall is in: the door's own, unless the product is for infants or children, which makes it `baby`. The
//! words are data (`lexicon.json`); a recall names those that decided.

use std::collections::HashMap;
use std::sync::LazyLock;

use schemas::facts::recalls::RecallFact;
use serde::Deserialize;

/// The rules as they are written down.
#[derive(Default, Deserialize)]
struct Rules {
    version: u32,
    defaults: HashMap<String, String>,
    not_evidence: Vec<String>,
    baby: HashMap<String, Vec<String>>,
}

/// The rules, as data, ready to be looked up.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Rules")]
pub struct Lexicon {
    /// Raised with every change of the rules.
    pub version: u32,
    defaults: HashMap<String, String>,
    not_evidence: Phrases,
    baby: HashMap<String, Phrases>,
}

/// Phrases by their first word, so that a text costs one look-up a word, however many phrases there are.
#[derive(Clone, Debug, Default)]
struct Phrases {
    by_first: HashMap<String, Vec<Phrase>>,
    /// For each byte that a first word may begin with, the lengths of such words as bits: most words of a text need no look-up.
    lengths: Vec<u64>,
}

#[derive(Clone, Debug)]
struct Phrase {
    /// As written in the rules.
    shown: String,
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

impl Phrases {
    /// The phrases that some words begin with.
    fn beginning<'a, 'w>(&'a self, words: &'w [&'w str]) -> impl Iterator<Item = &'a Phrase> + use<'a, 'w> {
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

impl From<Rules> for Lexicon {
    fn from(rules: Rules) -> Self {
        let Rules { version, defaults, not_evidence, baby } = rules;
        let baby = baby.into_iter().map(|(own, phrases)| (own, Phrases::from(phrases))).collect();
        Self { version, defaults, not_evidence: not_evidence.into(), baby }
    }
}

/// The lexicon of this version.
pub static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    // A file that does not parse is a bug in this crate; a test reads it, so that it cannot ship.
    serde_json::from_str(include_str!("lexicon.json")).unwrap_or_else(|_| Rules::default().into())
});

impl Lexicon {
    /// The category of a recall and the words that decided it (empty when the door's own category stands).
    #[must_use]
    pub fn category(&self, fact: &RecallFact) -> (String, String) {
        let own = self.defaults.get(&fact.door).map_or("products", String::as_str);
        if fact.door.starts_with("nhtsa") && is_child_seat(&fact.product_type) {
            return ("baby".to_owned(), fact.product_type.clone());
        }
        let mut found: Vec<&str> = Vec::new();
        if let Some(baby) = self.baby.get(own) {
            // What follows "due to" tells of the hazard, and a hazard to children does not make a product theirs.
            for text in [cut_at_hazard(&fact.title), &fact.products, &fact.product_type] {
                self.find(baby, text, &mut found);
            }
        }
        if found.is_empty() {
            return (own.to_owned(), String::new());
        }
        found.sort_unstable();
        ("baby".to_owned(), found.join(", "))
    }

    /// Adds the phrases that a text holds, each once, passing over what is no evidence.
    fn find<'a>(&self, phrases: &'a Phrases, text: &str, found: &mut Vec<&'a str>) {
        let text = words(text);
        let list: Vec<&str> = text.split_ascii_whitespace().collect();
        let mut at = 0;
        while let Some(rest) = list.get(at..).filter(|rest| !rest.is_empty()) {
            if let Some(passed) = self.not_evidence.beginning(rest).map(|phrase| phrase.rest.len() + 1).max() {
                at += passed;
                continue;
            }
            for phrase in phrases.beginning(rest) {
                if !found.contains(&phrase.shown.as_str()) {
                    found.push(&phrase.shown);
                }
            }
            at += 1;
        }
    }
}

fn is_child_seat(product_type: &str) -> bool {
    let kind = product_type.to_lowercase();
    kind.contains("child") || kind == "c"
}

fn cut_at_hazard(title: &str) -> &str {
    const DUE_TO: &[u8] = b" due to ";
    let at = title.as_bytes().windows(DUE_TO.len()).position(|window| window.eq_ignore_ascii_case(DUE_TO));
    at.and_then(|at| title.get(..at)).unwrap_or(title)
}

/// Lower-case words, one blank before and after each, so that a phrase is found whole or not at all.
fn words(text: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn category(door: &str, title: &str, products: &str, kind: &str) -> String {
        let fact = RecallFact {
            door: door.into(),
            title: title.into(),
            products: products.into(),
            product_type: kind.into(),
            ..Default::default()
        };
        LEXICON.category(&fact).0
    }

    /// Proves that the lexicon is readable and that each door has its own category.
    #[test]
    fn doors_have_their_own_category() {
        assert!(LEXICON.version > 0);
        assert_eq!(category("cpsc", "Best Buy Recalls Gas Ranges", "Gas Ranges", ""), "products");
        assert_eq!(category("openfda.food", "Firm: Ice Pop", "", "Food"), "food");
        assert_eq!(category("openfda.drug", "Firm: Tablets", "", "Drugs"), "drugs");
        assert_eq!(category("openfda.device", "Firm: Pump", "", "Devices"), "products");
        assert_eq!(category("nhtsa.flat", "Maker: BRAKES", "", "V"), "vehicles");
        assert_eq!(category("fsis", "Firm Recalls Beef", "", ""), "food");
    }

    /// Proves that products for infants or children are `baby` at every door, and what only sounds like it is not.
    #[test]
    fn baby_wins_for_products_for_children_only() {
        assert_eq!(category("cpsc", "X Recalls Cribs Due to Fall Hazard", "", ""), "baby");
        assert_eq!(category("cpsc", "X Recalls Children’s Pajamas", "", ""), "baby");
        assert_eq!(category("openfda.food", "Firm: Infant Formula Powder", "", "Food"), "baby");
        assert_eq!(category("nhtsa.socrata", "Buckle may not latch", "", "Child Seat"), "baby");
        assert_eq!(category("cpsc", "X Recalls Dressers Due to Tip-Over Hazard to Children", "Dressers", ""), "products");
        assert_eq!(
            category("cpsc", "X Recalls Bottles Due to Failure to Meet Child-Resistant Packaging", "Lidocaine, child-resistant", ""),
            "products"
        );
        assert_eq!(category("cpsc", "X Recalls Bottles", "Child-resistant child-resistant caps", ""), "products");
        assert_eq!(category("cpsc", "X Recalls Chairs", "High, chairs; high chairs", ""), "baby");
        assert_eq!(category("fsis", "X Recalls Baby Back Ribs", "", ""), "food");
        assert_eq!(category("openfda.food", "Firm: Baby Carrots", "", "Food"), "food");
    }
}
