//! Scores the importance of a filing, 0 to 100: by the items of a current report (8-K), otherwise by its form. The scores are data
//! (`data/filing_events.json`).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use schemas::facts::filings::has_items;

/// The highest item number in use before August 2004.
const OLD_ITEM_MAX: u8 = 12;

/// The scoring rules, as the data file contains them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Weights {
    /// The version of the rules; each change of the rules increases it.
    pub version: u32,
    unknown_item: i64,
    items: BTreeMap<String, (i64, String)>,
    unknown_form: i64,
    forms: BTreeMap<String, i64>,
}

/// The scoring rules of this version of the program.
pub static WEIGHTS: LazyLock<Weights> = LazyLock::new(|| {
    // A file that does not parse is a bug in this crate. A test parses it, so that it is found before a release.
    serde_json::from_str(include_str!("../data/filing_events.json")).unwrap_or_default()
});

/// The most important event that a filing reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The item with the highest score, the lowest number of several; empty if the filing has no items.
    pub item: String,
    /// What the item is about.
    pub label: String,
    /// The score, 0 to 100.
    pub score: i64,
}

impl Weights {
    /// Returns the event of a filing, by its base form and items.
    #[must_use]
    pub fn event(&self, base_form: &str, items: &[String]) -> Event {
        let items = items.iter().filter(|_| has_items(base_form));
        let heaviest = items.map(|item| self.item(item)).max_by(|a, b| a.score.cmp(&b.score).then_with(|| b.item.cmp(&a.item)));
        heaviest.unwrap_or_else(|| Event { score: self.forms.get(base_form).copied().unwrap_or(self.unknown_form), ..Event::default() })
    }

    /// Returns the codes of all known items: those of the table, and the whole numbers in use before August 2004.
    #[must_use]
    pub fn item_codes(&self) -> Vec<String> {
        self.items.keys().cloned().chain((1..=OLD_ITEM_MAX).map(|number| number.to_string())).collect()
    }

    fn item(&self, code: &str) -> Event {
        let (score, label) = match self.items.get(code) {
            Some((score, label)) => (*score, label.clone()),
            // Before August 2004 items were whole numbers.
            None if code.bytes().all(|byte| byte.is_ascii_digit()) => (self.unknown_item, format!("Item {code} (before 2004)")),
            None => (self.unknown_item, format!("Item {code}")),
        };
        Event { item: code.to_owned(), label, score }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the table parses, that the item with the highest score counts, that of two with one score the lower number does, and how
    /// unknown items are labelled.
    #[test]
    fn item_with_the_highest_score_counts() {
        assert!(WEIGHTS.version > 0);
        let score_of = |form: &str, items: &[&str]| {
            let items: Vec<String> = items.iter().map(|item| (*item).to_owned()).collect();
            let Event { item, label, score } = WEIGHTS.event(form, &items);
            (item, label, score)
        };
        let text = |item: &str, label: &str, score| (item.to_owned(), label.to_owned(), score);
        assert_eq!(score_of("8-K", &["9.01", "1.03", "2.02"]), text("1.03", "Bankruptcy or Receivership", 100));
        assert_eq!(score_of("8-K", &["8.01", "7.01"]), text("7.01", "Regulation FD Disclosure", 20));
        assert_eq!(score_of("8-K", &["9.01"]), text("9.01", "Financial Statements and Exhibits", 0));
        assert_eq!(score_of("8-K", &["5"]), text("5", "Item 5 (before 2004)", 15));
        assert_eq!(score_of("8-K", &["9.99"]), text("9.99", "Item 9.99", 15));
        assert_eq!(score_of("8-K", &[]), text("", "", 5));
        assert_eq!(score_of("D", &["06b"]), text("", "", 5));
        assert_eq!(score_of("SC 13D", &[]), text("", "", 50));
    }
}
