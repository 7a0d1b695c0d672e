//! Decides the topics of a grant or trial by the phrases of a data file (`topic_lexicon.json`), each with the phrases that decided it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::record::Topic;
use texts::phrases::{Phrases, words};

/// How many phrases the evidence of one topic names.
const EVIDENCE_MAX: usize = 5;

/// The rules, as the data file contains them.
#[derive(Default, Deserialize)]
struct Rules {
    version: u32,
    topics: BTreeMap<String, Vec<String>>,
}

/// The rules in a form that is fast to look up.
pub struct Lexicon {
    /// The version of the rules; each change of the rules increases it.
    pub version: u32,
    topics: Vec<(String, Phrases)>,
}

/// The lexicon of this version of the program.
pub static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    // A file that does not parse is a bug in this crate. A test parses it, so that it is found before a release.
    let Rules { version, topics } = serde_json::from_str(include_str!("../../data/topic_lexicon.json")).unwrap_or_default();
    Lexicon { version, topics: topics.into_iter().map(|(slug, phrases)| (slug, phrases.into())).collect() }
});

impl Lexicon {
    /// Returns the topics of named texts, sorted by slug. The evidence of a topic gives the names of the texts.
    #[must_use]
    pub fn topics(&self, texts: &[(&str, &str)]) -> Vec<Topic> {
        let texts: Vec<(&str, String)> = texts.iter().map(|(name, text)| (*name, words(text))).collect();
        let texts: Vec<(&str, Vec<&str>)> = texts.iter().map(|(name, text)| (*name, text.split_ascii_whitespace().collect())).collect();
        let topics = self.topics.iter().filter_map(|(slug, phrases)| {
            let mut evidence: Vec<String> = Vec::new();
            for (name, words) in &texts {
                let mut found: Vec<&str> = Vec::new();
                for at in 0..words.len() {
                    for phrase in phrases.beginning(&words[at..]) {
                        if !found.contains(&phrase.shown.as_str()) {
                            found.push(&phrase.shown);
                        }
                    }
                }
                if !found.is_empty() {
                    found.truncate(EVIDENCE_MAX);
                    evidence.push(format!("{name}: {}", found.join(", ")));
                }
            }
            (!evidence.is_empty()).then(|| Topic { slug: slug.clone(), evidence: evidence.join("; ") })
        });
        topics.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the lexicon parses and has the topics that filters know, which are those that the contract promises.
    #[test]
    fn slugs() {
        assert!(LEXICON.version > 0);
        let slugs: Vec<&str> = LEXICON.topics.iter().map(|(slug, _)| slug.as_str()).collect();
        assert_eq!(slugs, texts::values::TOPICS);
    }

    /// Proves that whole words match, in any letter case, and that the evidence names them and the field in which they occur.
    #[test]
    fn evidence() {
        let found = LEXICON.topics(&[("title", "A Phase 2 Study in Heart Failure"), ("terms", "Hearten; TUMOR Microenvironment; tumors")]);
        let found: Vec<(&str, &str)> = found.iter().map(|topic| (topic.slug.as_str(), topic.evidence.as_str())).collect();
        assert_eq!(found, [("cardiology", "title: heart, heart failure"), ("oncology", "terms: tumor, tumors")]);
        assert_eq!(LEXICON.topics(&[("title", "Bread")]), []);
    }
}
