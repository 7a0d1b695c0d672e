//! Decides the category of a grant by the phrases of the lexicon that it uses.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use crate::record::Evidence;
use crate::record::lexicon::{Category, GENERAL, LEXICON};

use texts::phrases::{Phrase, Phrases, words};

/// How much a phrase in a title counts.
const TITLE_WEIGHT: i64 = 3;
/// How much a phrase in the terms or the summary counts.
const OTHER_WEIGHT: i64 = 1;
/// The lowest sum with which a grant is in a category.
const SCORE_MIN: i64 = 2;

/// The classifier of the lexicon of this version of the program.
pub static CLASSIFIER: LazyLock<Classifier> = LazyLock::new(|| Classifier::new(&LEXICON.entries));

/// The texts of a grant that are searched for phrases.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'a> {
    /// Title.
    pub title: &'a str,
    /// The funder's terms. A phrase occurs within one of them.
    pub terms: &'a [String],
    /// The beginning of the abstract.
    pub summary: &'a str,
}

/// The category of a grant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantCategory {
    /// The name of the category.
    pub category: String,
    /// The phrases that decided it, in the order of fields and words.
    pub evidence: Vec<Evidence>,
    /// The names of other categories with a score of 2 or more, in the lexicon's order.
    pub others: Vec<String>,
}

/// The phrases of all categories in a form that is fast to search.
#[derive(Clone, Debug, Default)]
pub struct Classifier {
    /// The names of the categories, in the lexicon's order.
    names: Vec<String>,
    phrases: Phrases,
    /// The category of each phrase, as an index into the names.
    categories: HashMap<String, usize>,
}

impl Classifier {
    /// Prepares the phrases of a lexicon.
    #[must_use]
    pub fn new(lexicon: &[Category]) -> Self {
        let names = lexicon.iter().map(|category| category.name.clone()).collect();
        let phrases_of =
            |(index, category): (usize, &Category)| category.words.iter().map(move |phrase| (phrase.clone(), index)).collect::<Vec<_>>();
        let categories: HashMap<String, usize> = lexicon.iter().enumerate().flat_map(phrases_of).collect();
        let phrases: Vec<String> = lexicon.iter().flat_map(|category| category.words.clone()).collect();
        Self { names, phrases: phrases.into(), categories }
    }

    /// Returns the category of a grant: that with the highest sum, the first one of several, or `General laboratory` below 2.
    #[must_use]
    pub fn classify(&self, texts: &Texts<'_>) -> GrantCategory {
        let mut found = Vec::new();
        self.find("title", TITLE_WEIGHT, [texts.title], &mut found);
        self.find("terms", OTHER_WEIGHT, texts.terms.iter().map(String::as_str), &mut found);
        self.find("summary", OTHER_WEIGHT, [texts.summary], &mut found);
        let mut scores = vec![0; self.names.len()];
        for (category, evidence) in &found {
            scores[*category] += evidence.weight;
        }
        let best = scores.iter().copied().max().filter(|score| *score >= SCORE_MIN);
        let Some(chosen) = best.and_then(|best| scores.iter().position(|score| *score == best)) else {
            return GrantCategory { category: GENERAL.to_owned(), ..GrantCategory::default() };
        };
        let others = self.names.iter().zip(&scores).enumerate();
        GrantCategory {
            category: self.names[chosen].clone(),
            evidence: found.into_iter().filter(|(category, _)| *category == chosen).map(|(_, evidence)| evidence).collect(),
            others: others
                .filter(|(index, (_, score))| *index != chosen && **score >= SCORE_MIN)
                .map(|(_, (name, _))| name.clone())
                .collect(),
        }
    }

    /// Adds the phrases that occur in one of a field's texts, each once, with their categories. A phrase does not count where it lies inside a longer
    /// one: "mouse" in "mouse model".
    fn find<'a>(&'a self, field: &str, weight: i64, texts: impl IntoIterator<Item = &'a str>, found: &mut Vec<(usize, Evidence)>) {
        let mut seen: HashSet<&str> = HashSet::new();
        for text in texts {
            for phrase in self.longest(text) {
                if let Some(category) = self.categories.get(&phrase.shown)
                    && seen.insert(&phrase.shown)
                {
                    found.push((*category, Evidence { phrase: phrase.shown.clone(), field: field.to_owned(), weight }));
                }
            }
        }
    }

    /// The phrases of a text that lie in no longer one, in the order of their first words.
    fn longest(&self, text: &str) -> Vec<&Phrase> {
        let text = words(text);
        let list: Vec<&str> = text.split_ascii_whitespace().collect();
        let mut found = Vec::new();
        // Where the phrases so far end. One that begins later and ends by then lies inside one of them.
        let mut end = 0;
        for at in 0..list.len() {
            let longest = self.phrases.beginning(list.get(at..).unwrap_or_default()).max_by_key(|phrase| phrase.words());
            if let Some(phrase) = longest
                && at + phrase.words() > end
            {
                end = at + phrase.words();
                found.push(phrase);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lexicon(entries: &[(&str, &[&str])]) -> Classifier {
        let category = |(name, words): &(&str, &[&str])| Category {
            name: (*name).to_owned(),
            about: String::new(),
            words: words.iter().map(|word| (*word).to_owned()).collect(),
        };
        Classifier::new(&entries.iter().map(category).collect::<Vec<_>>())
    }

    fn of<'a>(title: &'a str, terms: &'a [String]) -> Texts<'a> {
        Texts { title, terms, summary: "" }
    }

    fn of_terms(terms: &[String]) -> Texts<'_> {
        Texts { title: "", terms, summary: "" }
    }

    fn evidence(list: &[(&str, &str, i64)]) -> Vec<Evidence> {
        let one = |(phrase, field, weight): &(&str, &str, i64)| Evidence {
            phrase: (*phrase).to_owned(),
            field: (*field).to_owned(),
            weight: *weight,
        };
        list.iter().map(one).collect()
    }

    /// Proves the worked examples of categories: a sum of 9 from a title, and two sums of 1, which are too low.
    #[test]
    fn worked_examples() {
        let microscopy = lexicon(&[("Microscopy and imaging", &["confocal", "imaging", "microscope"])]);
        let found = microscopy.classify(&of("Confocal microscope for the imaging core", &[]));
        assert_eq!(found.category, "Microscopy and imaging");
        assert_eq!(found.evidence, evidence(&[("confocal", "title", 3), ("microscope", "title", 3), ("imaging", "title", 3)]));
        assert_eq!(found.evidence.iter().map(|one| one.weight).sum::<i64>(), 9);
        let two = lexicon(&[("Animal research", &["mouse"]), ("Electrophysiology", &["electrophysiology"])]);
        let terms = ["electrophysiology".to_owned(), "mouse".to_owned()];
        let found = two.classify(&of("Neural circuits of sleep", &terms));
        assert_eq!(found, GrantCategory { category: "General laboratory".to_owned(), ..GrantCategory::default() });
    }

    /// Proves that a phrase does not count where it lies inside a longer one, of the same or another category, at its beginning, middle or end; that it
    /// counts where it occurs elsewhere in the field, or overlaps; and that one mention alone is too low.
    #[test]
    fn the_longest_phrase_counts() {
        let all = lexicon(&[
            ("Animals", &["knock in mouse model", "model", "mouse", "mouse model"]),
            ("Cells", &["cell culture", "culture", "single cell", "stem cell"]),
        ]);
        let categories_of = |title: &str| -> Vec<String> {
            let mut found = Vec::new();
            all.find("title", 3, [title], &mut found);
            found.into_iter().map(|(_, evidence)| evidence.phrase).collect()
        };
        for (title, expected) in [
            ("A mouse model", &["mouse model"][..]),
            ("A knock-in mouse model", &["knock in mouse model"]),
            ("A knock-in mouse", &["mouse"]),
            ("A mouse model and a mouse", &["mouse model", "mouse"]),
            ("A mouse, a mouse model, a model", &["mouse", "mouse model", "model"]),
            ("Mouse model model", &["mouse model", "model"]),
            ("Single cell culture", &["single cell", "cell culture"]),
            ("Stem cell culture in culture", &["stem cell", "cell culture", "culture"]),
        ] {
            assert_eq!(categories_of(title), expected, "{title}");
        }
        let terms = |terms: &[&str]| {
            let terms: Vec<String> = terms.iter().map(|term| (*term).to_owned()).collect();
            all.classify(&of_terms(&terms)).category
        };
        assert_eq!((terms(&["mouse model"]).as_str(), terms(&["mouse", "model"]).as_str()), (GENERAL, "Animals"));
        assert_eq!(terms(&["mouse model", "mouse"]), "Animals");
    }

    /// Proves for the lexicon of this version that each of its phrases is found alone as itself, whichever of its words are phrases, too.
    #[test]
    fn phrases_of_the_lexicon() {
        for phrase in LEXICON.entries.iter().flat_map(|category| &category.words) {
            let shown: Vec<&str> = CLASSIFIER.longest(phrase).into_iter().map(|found| found.shown.as_str()).collect();
            assert_eq!(shown, [phrase.as_str()]);
        }
    }

    /// Proves the example of the contract with the lexicon of this version.
    #[test]
    fn the_example_lead() {
        let found = CLASSIFIER.classify(&of("Single-cell RNA sequencing of papilloma", &[]));
        assert_eq!(found.category, "Sequencing and genomics");
        assert_eq!(found.evidence, evidence(&[("single-cell", "title", 3), ("rna sequencing", "title", 3)]));
        assert_eq!(found.others, Vec::<String>::new());
    }

    /// Proves that a phrase counts once a field, that case and hyphens are ignored, that words count whole and phrases within one term, and
    /// that the first of two categories with the same sum is chosen while the other one is named.
    #[test]
    fn rules_of_counting() {
        let two = lexicon(&[("First", &["cell sorter"]), ("Second", &["flow"])]);
        let found = two.classify(&of("FLOW and cell-sorter and flow", &[]));
        assert_eq!((found.category.as_str(), found.others.as_slice()), ("First", ["Second".to_owned()].as_slice()));
        assert_eq!(found.evidence, evidence(&[("cell sorter", "title", 3)]));
        let terms = ["red cell".to_owned(), "sorter".to_owned(), "overflow".to_owned()];
        assert_eq!(two.classify(&of("", &terms)).category, GENERAL);
        let texts = Texts { title: "", terms: &["flow".to_owned(), "flow".to_owned()], summary: "A flow." };
        assert_eq!(two.classify(&texts).evidence, evidence(&[("flow", "terms", 1), ("flow", "summary", 1)]));
    }
}
