//! Decides the category of a recall: that of its stream, or `baby` if the product is for infants or children. The phrases are data
//! (`lexicon.json`); a recall names those that decided its category.

use std::collections::HashMap;
use std::sync::LazyLock;

use schemas::facts::recalls::RecallFact;
use serde::Deserialize;

use texts::phrases::{Phrase, Phrases, words};

/// The rules, as the data file contains them.
#[derive(Default, Deserialize)]
struct Rules {
    version: u32,
    defaults: HashMap<String, String>,
    not_evidence: Vec<String>,
    baby: HashMap<String, Vec<String>>,
}

/// The rules in a form that is fast to look up.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Rules")]
pub struct Lexicon {
    /// The version of the rules; each change of the rules increases it.
    pub version: u32,
    defaults: HashMap<String, String>,
    not_evidence: Phrases,
    baby: HashMap<String, Phrases>,
}

impl From<Rules> for Lexicon {
    fn from(rules: Rules) -> Self {
        let Rules { version, defaults, not_evidence, baby } = rules;
        let baby = baby.into_iter().map(|(own, phrases)| (own, Phrases::from(phrases))).collect();
        Self { version, defaults, not_evidence: not_evidence.into(), baby }
    }
}

/// The lexicon of this version of the program.
pub static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    // A file that does not parse is a bug in this crate. A test parses it, so that it is found before a release.
    serde_json::from_str(include_str!("../../data/lexicon.json")).unwrap_or_else(|_| Rules::default().into())
});

impl Lexicon {
    /// Returns the category of a recall and the phrases that decided it (empty for the category of the stream).
    #[must_use]
    pub fn category(&self, fact: &RecallFact) -> (String, String) {
        let own = self.defaults.get(&fact.stream).map_or("products", String::as_str);
        if fact.stream.starts_with("nhtsa") && is_child_seat(&fact.product_type) {
            return ("baby".to_owned(), fact.product_type.clone());
        }
        let mut found: Vec<&str> = Vec::new();
        if let Some(baby) = self.baby.get(own) {
            // The text after "due to" describes the hazard, and a hazard to children does not make a product one for children.
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

    /// Adds the phrases that a text contains, each once. Phrases that are not evidence are skipped.
    fn find<'a>(&self, phrases: &'a Phrases, text: &str, found: &mut Vec<&'a str>) {
        let text = words(text);
        let list: Vec<&str> = text.split_ascii_whitespace().collect();
        let mut at = 0;
        while let Some(rest) = list.get(at..).filter(|rest| !rest.is_empty()) {
            if let Some(passed) = self.not_evidence.beginning(rest).map(Phrase::words).max() {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn category(stream: &str, title: &str, products: &str, kind: &str) -> String {
        let fact = RecallFact {
            stream: stream.into(),
            title: title.into(),
            products: products.into(),
            product_type: kind.into(),
            ..Default::default()
        };
        LEXICON.category(&fact).0
    }

    /// Proves that the lexicon parses and that each stream has its own category.
    #[test]
    fn streams_have_their_own_category() {
        assert!(LEXICON.version > 0);
        assert_eq!(category("cpsc", "Best Buy Recalls Gas Ranges", "Gas Ranges", ""), "products");
        assert_eq!(category("openfda.food", "Firm: Ice Pop", "", "Food"), "food");
        assert_eq!(category("openfda.drug", "Firm: Tablets", "", "Drugs"), "drugs");
        assert_eq!(category("openfda.device", "Firm: Pump", "", "Devices"), "products");
        assert_eq!(category("nhtsa.flat", "Maker: BRAKES", "", "V"), "vehicles");
        assert_eq!(category("fsis", "Firm Recalls Beef", "", ""), "food");
    }

    /// Proves that products for infants or children are `baby` in every stream, and that similar-sounding products are not.
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
